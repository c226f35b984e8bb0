//! `csv`: a request log as a table with a header: comma, semicolon or tab.

use super::builder::{Builder, Row};
use super::{FIELDS, Format, Mapping, Recorded, RecordingError, Source, unreadable};
use crate::interop::trace::cell::clip;
use crate::recording::Recording;
use csv::{ReaderBuilder, StringRecord};
use std::io::{BufRead, Read};

pub(super) const FORMAT: Format = Format { name: "csv", recognises: |_, _| true, read };

fn read(source: Source) -> Result<Recorded, RecordingError> {
    let builder = Builder::new(source.columns);
    table(source.name, "csv", source.body, source.columns, builder).map(Recorded::Requests)
}

/// Reads a table row by row.
pub(super) fn table(
    name: &str,
    format: &'static str,
    mut body: Box<dyn BufRead + '_>,
    columns: &Mapping,
    mut builder: Builder,
) -> Result<Recording, RecordingError> {
    let start = body.fill_buf().map_err(|e| unreadable(0, &e))?;
    let header = start.split(|b| *b == b'\n').find(|l| !l.trim_ascii().is_empty());
    let header = header.unwrap_or_default();
    let delimiter = delimiter(header);
    let lines = Lines { after_end: u64::from(!header.ends_with(b"\r")) };
    // A last line without an end would be counted differently from the others.
    let body = body.chain(&b"\n"[..]);
    let mut reader = ReaderBuilder::new().flexible(true).delimiter(delimiter).from_reader(body);
    let header = reader.headers().map_err(|e| broken(&e))?.clone();
    let names: Vec<&str> = header.iter().map(|n| n.trim_start_matches('\u{feff}').trim()).collect();
    let places = places(&names, columns)?;
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(|e| broken(&e))? {
        let line = lines.of(reader.position().line(), &record);
        if record.len() != names.len() {
            let (found, wanted) = (record.len(), names.len());
            return Err(RecordingError::at(
                line,
                format!("this line has {found} fields, the header has {wanted}"),
                "quote fields that hold the delimiter, and close every quote",
            ));
        }
        let row: Row = places.map(|place| place.and_then(|p| record.get(p)));
        builder.push(line, &row)?;
    }
    builder.finish(name, format)
}

/// Finds the line of a record. A reader's own place of a record is before blank lines that it
/// skips, so the line is told from where the reader stands afterwards.
struct Lines {
    /// Lines that the reader is past the end of a record: none where lines end with CR LF, of
    /// which it has not read the LF yet.
    after_end: u64,
}

impl Lines {
    fn of(&self, reader_line: u64, record: &StringRecord) -> u64 {
        let inside = record.iter().map(|cell| cell.matches('\n').count() as u64).sum::<u64>();
        reader_line.saturating_sub(self.after_end + inside)
    }
}

/// Where the fields stand.
fn places(
    names: &[&str],
    columns: &Mapping,
) -> Result<[Option<usize>; FIELDS.len()], RecordingError> {
    let mut places = [None; FIELDS.len()];
    for (place, field) in places.iter_mut().zip(FIELDS) {
        let (column, asked) = columns.column(field);
        *place = names.iter().position(|name| *name == column);
        if place.is_none() && (asked || matches!(field, "arrival" | "finish")) {
            return Err(missing(column, field, names));
        }
    }
    Ok(places)
}

/// The complaint about a column (key) that is not there.
pub(super) fn missing(column: &str, field: &str, names: &[&str]) -> RecordingError {
    const MOST: usize = 16;
    let list: Vec<String> = names.iter().take(MOST).map(|n| format!("`{}`", clip(n))).collect();
    let flag = field.replace('_', "-");
    RecordingError::at(
        1,
        format!("no column `{}`; there are {}", clip(column), list.join(", ")),
        format!("say which one holds it, as in --{flag} NAME"),
    )
}

/// The most frequent of comma, semicolon and tab; a comma when there is none.
fn delimiter(header: &[u8]) -> u8 {
    let count = |d: u8| header.iter().filter(|&&b| b == d).count();
    // The last of equal maxima wins.
    [b'\t', b';', b','].into_iter().max_by_key(|&d| count(d)).unwrap_or(b',')
}

fn broken(e: &csv::Error) -> RecordingError {
    let line = e.position().map_or(0, csv::Position::line);
    RecordingError::at(line, format!("the table cannot be read: {e}"), "is it UTF-8 and complete?")
}

//! Recordings of real servers: request logs, load generators' exports, and our own folders.
//!
//! One file per format and one line in `FORMATS`. A format is recognised from the first line when
//! it is not named. Rows are read one by one; a row that cannot be meant ends the reading with its
//! line, what is wrong and what to write instead.

mod aiperf;
mod builder;
mod csv;
mod folder;
mod jsonl;
mod perf_analyzer;

use crate::recording::{Aggregates, Recording};
use flate2::read::MultiGzDecoder;
use std::fmt;
use std::io::{BufRead, BufReader, Read};

/// What a file holds.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one of each run of the program")]
pub enum Recorded {
    /// Every request.
    Requests(Recording),
    /// Quantiles and throughput at several loads.
    Aggregates(Aggregates),
}

/// Why a recording cannot be read: where, what is wrong, what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingError {
    /// Line of the file, from 1; 0 when the complaint is about the file as a whole.
    pub line: u64,
    /// One sentence: what is wrong.
    pub message: String,
    /// What to write or do instead.
    pub help: String,
}

impl RecordingError {
    fn at(line: u64, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { line, message: message.into(), help: help.into() }
    }

    fn whole(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::at(0, message, help)
    }
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}: ", self.line)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for RecordingError {}

/// What to read, and how.
pub struct Input<'a> {
    /// What results call the recording.
    pub name: &'a str,
    /// `config.json` of a recording folder.
    pub config: Option<&'a [u8]>,
    /// The requests, compressed by gzip or not.
    pub body: Box<dyn Read + 'a>,
    /// The format; recognised when `None`.
    pub format: Option<&'a str>,
    /// Columns (keys) of generic logs.
    pub columns: &'a Mapping,
}

/// Names of the columns (keys) of a generic log, by the names of [`FIELDS`]; what is not named
/// is looked for under its own name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Pairs of a field and the column that holds it.
    pub columns: Vec<(&'static str, String)>,
    /// Unit of numeric times: ns, us, ms or s.
    pub unit: Option<String>,
}

/// What a row of a log can say.
pub const FIELDS: [&str; 10] = [
    "arrival",
    "finish",
    "start",
    "end",
    "batch",
    "instance",
    "batch_size",
    "status",
    "items",
    "priority",
];

impl Mapping {
    /// The column of a field, and whether it was asked for by name.
    fn column(&self, field: &'static str) -> (&str, bool) {
        match self.columns.iter().find(|(f, _)| *f == field) {
            Some((_, column)) => (column, true),
            None => (field, false),
        }
    }
}

/// A format of recordings.
struct Format {
    name: &'static str,
    /// Whether a file whose first line is this is surely of this format.
    recognises: fn(first_line: &str, input: &Source) -> bool,
    read: fn(Source) -> Result<Recorded, RecordingError>,
}

/// The formats, the most particular first; the last recognises everything.
const FORMATS: &[Format] =
    &[folder::FORMAT, perf_analyzer::FORMAT, aiperf::FORMAT, jsonl::FORMAT, csv::FORMAT];

/// A recording as its format reads it.
struct Source<'a> {
    name: &'a str,
    config: Option<&'a [u8]>,
    body: Box<dyn BufRead + 'a>,
    columns: &'a Mapping,
}

/// Names of the formats, as `--recording-format` takes them.
#[must_use]
pub fn formats() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.name).collect()
}

/// Reads a recording.
///
/// # Errors
/// The first line that cannot be meant: not UTF-8, a missing column, a time without a unit or
/// not a number, an answer before its request, no requests at all.
pub fn read(input: Input) -> Result<Recorded, RecordingError> {
    let mut body = unpacked(input.body)?;
    let (first, skipped) = first_line(&mut body)?;
    let body: Box<dyn BufRead> = Box::new(BufReader::new(skipped.chain(body)));
    let source = Source { name: input.name, config: input.config, body, columns: input.columns };
    let format = match input.format {
        Some(name) => FORMATS.iter().find(|f| f.name == name).ok_or_else(|| {
            let shown = super::trace::cell::clip(name);
            let help = format!("write one of {}, or leave it out", formats().join(", "));
            RecordingError::whole(format!("unknown recording format `{shown}`"), help)
        })?,
        None => FORMATS.iter().find(|f| (f.recognises)(&first, &source)).unwrap_or(&csv::FORMAT),
    };
    (format.read)(source)
}

/// The text behind gzip, or the text itself.
fn unpacked<'a>(body: Box<dyn Read + 'a>) -> Result<Box<dyn BufRead + 'a>, RecordingError> {
    let mut body = BufReader::new(body);
    let start = body.fill_buf().map_err(|e| unreadable(0, &e))?;
    if start.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(BufReader::new(MultiGzDecoder::new(body))));
    }
    if start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) {
        return Err(RecordingError::whole("the recording is UTF-16", "save it as UTF-8"));
    }
    Ok(Box::new(body))
}

/// The first line that says something, and all that was read to find it.
fn first_line(
    body: &mut dyn BufRead,
) -> Result<(String, std::io::Cursor<Vec<u8>>), RecordingError> {
    /// No header is longer.
    const LONGEST: u64 = 1 << 20;
    let mut read = Vec::new();
    let mut limited = body.take(LONGEST);
    loop {
        let from = read.len();
        let n = limited.read_until(b'\n', &mut read).map_err(|e| unreadable(0, &e))?;
        if n == 0 && read.iter().all(u8::is_ascii_whitespace) {
            return Err(RecordingError::whole(
                "the recording is empty",
                "a log has a header line that names its columns, then one line per request",
            ));
        }
        let line = String::from_utf8_lossy(&read[from..]);
        let line = line.trim_start_matches('\u{feff}').trim();
        if n == 0 || !line.is_empty() {
            return Ok((line.to_owned(), std::io::Cursor::new(read)));
        }
    }
}

fn unreadable(line: u64, e: &std::io::Error) -> RecordingError {
    let help = match e.kind() {
        std::io::ErrorKind::InvalidData => "save it as UTF-8",
        _ => "is the file complete? a cut .gz file cannot be unpacked",
    };
    RecordingError::at(line, format!("the recording cannot be read: {e}"), help)
}

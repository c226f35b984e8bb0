//! Delimited text: header, delimiter, quoted fields, and the place of each field.

use super::builder::{Builder, Fault, Row, Which};
use super::when::Clock;
use super::{Input, TraceError};
use crate::arrivals::{Columns, Trace};
use csv::StringRecord;

/// A table of text whose first line names its columns.
pub(super) struct Table<'a> {
    text: &'a str,
    delimiter: u8,
    reader: csv::Reader<&'a [u8]>,
    /// Names of the columns.
    header: StringRecord,
    /// Line of the header, from 1.
    pub(super) header_line: u64,
    lines: Lines<'a>,
}

/// Counts lines as the reader moves on, so that no line is counted twice.
struct Lines<'a> {
    text: &'a str,
    byte: usize,
    line: u64,
}

impl Lines<'_> {
    /// Line of the first text at or after `byte`, and where that text starts.
    fn advance(&mut self, byte: usize) -> (u64, usize) {
        let bytes = self.text.as_bytes();
        let blank = |b: &&u8| matches!(b, b'\r' | b'\n');
        let skipped = bytes.iter().skip(byte).take_while(blank).count();
        let start = (byte + skipped).min(bytes.len());
        let passed = bytes.get(self.byte..start).unwrap_or_default();
        self.line += passed.iter().filter(|&&b| b == b'\n').count() as u64;
        self.byte = start;
        (self.line, start)
    }
}

/// The most frequent of comma, semicolon and tab in the header; a comma when there is none.
pub(super) fn delimiter(header: &str) -> u8 {
    let count = |d: u8| header.bytes().filter(|&b| b == d).count();
    // The last of equal maxima wins, so the comma stands last.
    [b'\t', b';', b','].into_iter().max_by_key(|&d| count(d)).unwrap_or(b',')
}

impl<'a> Table<'a> {
    pub(super) fn open(text: &'a str) -> Result<Self, TraceError> {
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
        let delimiter = delimiter(first);
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .from_reader(text.as_bytes());
        let lines = Lines { text, byte: 0, line: 1 };
        let header = StringRecord::new();
        let mut table = Self { text, delimiter, reader, header, header_line: 1, lines };
        let mut header = StringRecord::new();
        if let Some((line, _)) = table.next(&mut header)? {
            table.header_line = line;
        }
        header.trim();
        let names: Vec<&str> = header.iter().collect();
        if !names.is_empty() && names.iter().all(|name| name.parse::<f64>().is_ok()) {
            return Err(TraceError::at(
                table.header_line,
                1,
                "the first line holds numbers, not names of columns",
                "add a header line, such as `arrival,input_length,output_length`",
            ));
        }
        table.header = header;
        Ok(table)
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.header.iter().collect()
    }

    /// Position of a named column.
    fn find(&self, name: &str) -> Result<usize, TraceError> {
        let mut places = self.header.iter().enumerate().filter(|(_, have)| *have == name);
        match (places.next(), places.next()) {
            (Some((at, _)), None) => Ok(at),
            (Some(_), Some(_)) => Err(TraceError::at(
                self.header_line,
                1,
                format!("two columns are called `{}`", super::cell::clip(name)),
                "rename one of them",
            )),
            (None, _) => Err(super::suggest::missing(name, &self.names(), self.header_line)),
        }
    }

    /// Reads the next line that is not blank: its line number and first byte.
    fn next(&mut self, record: &mut StringRecord) -> Result<Option<(u64, usize)>, TraceError> {
        loop {
            let more = self.reader.read_record(record).map_err(|e| {
                TraceError::whole(format!("the table cannot be read: {e}"), "check its quotes")
            })?;
            if !more {
                return Ok(None);
            }
            if record.len() == 1 && record.get(0).is_none_or(|cell| cell.trim().is_empty()) {
                continue;
            }
            let byte = record.position().map_or(0, csv::Position::byte);
            return Ok(Some(self.lines.advance(usize::try_from(byte).unwrap_or(usize::MAX))));
        }
    }

    /// Reads all rows. `clock` says how times are written, from the first of them.
    pub(super) fn trace(
        mut self,
        input: &Input,
        columns: &Columns,
        clock: impl Fn(&str) -> Result<Clock, Fault>,
    ) -> Result<Trace, TraceError> {
        let plan = Plan::new(&self, columns)?;
        let mut record = StringRecord::new();
        let mut builder = None;
        while let Some((line, start)) = self.next(&mut record)? {
            if record.len() != self.header.len() {
                return Err(ragged(line, record.len(), self.header.len()));
            }
            let place = |fault| self.place(&plan, (line, start), fault);
            let row = plan.row(&record, line);
            let builder = match &mut builder {
                Some(builder) => builder,
                None => {
                    let clock = clock(row.arrival).map_err(place)?;
                    let hint = self.sort_hint(&plan, clock, &input.replay.file);
                    builder.insert(Builder::new(clock, input.limit, hint))
                }
            };
            builder.push(&row).map_err(place)?;
        }
        builder.and_then(Builder::finish).ok_or_else(|| {
            TraceError::at(
                self.header_line,
                1,
                "the trace has a header but no requests",
                "add one line per request",
            )
        })
    }

    /// Turns a fault of a row into its place in the file.
    fn place(&self, plan: &Plan, (line, start): (u64, usize), fault: Fault) -> TraceError {
        let index = match fault.which {
            Which::Row => Some(0),
            Which::Arrival => Some(plan.arrival),
            Which::Input => plan.input,
            Which::Output => plan.output,
            Which::Items => plan.items,
            Which::Priority => plan.priority,
        };
        let text = self.text.get(start..).unwrap_or("");
        let (mut line, mut column) = (line, 1);
        let (mut left, mut quoted) = (index.unwrap_or(0), false);
        for c in text.chars() {
            if left == 0 {
                break;
            }
            column += 1;
            match c {
                '"' => quoted = !quoted,
                '\n' => (line, column) = (line + 1, 1),
                _ if !quoted && u32::from(c) == u32::from(self.delimiter) => left -= 1,
                _ => {}
            }
        }
        TraceError::at(line, column, fault.message, fault.help)
    }

    fn sort_hint(&self, plan: &Plan, clock: Clock, file: &str) -> String {
        let separator = match self.delimiter {
            b'\t' => "$'\\t'".to_owned(),
            other => format!("'{}'", char::from(other)),
        };
        let numeric = if clock == Clock::DateTime { "" } else { " -g" };
        let key = plan.arrival + 1;
        format!(
            "sort it first: (head -n {head} {file}; tail -n +{body} {file} | sort -s{numeric} \
             -t {separator} -k {key},{key}) > sorted.csv",
            head = self.header_line,
            body = self.header_line + 1,
        )
    }
}

fn ragged(line: u64, found: usize, wanted: usize) -> TraceError {
    let fields = if found == 1 { "field" } else { "fields" };
    TraceError::at(
        line,
        1,
        format!("this line has {found} {fields}, the header has {wanted}"),
        "quote fields that hold the delimiter, and close every quote",
    )
}

/// Which columns hold what.
struct Plan {
    arrival: usize,
    input: Option<usize>,
    output: Option<usize>,
    items: Option<usize>,
    priority: Option<usize>,
}

impl Plan {
    fn new(table: &Table, columns: &Columns) -> Result<Self, TraceError> {
        let find = |name: &Option<String>| name.as_deref().map(|n| table.find(n)).transpose();
        Ok(Self {
            arrival: table.find(&columns.arrival)?,
            input: find(&columns.input_length)?,
            output: find(&columns.output_length)?,
            items: find(&columns.items)?,
            priority: find(&columns.priority)?,
        })
    }

    fn row<'r>(&self, record: &'r StringRecord, line: u64) -> Row<'r> {
        let cell = |at: usize| record.get(at).unwrap_or("").trim();
        Row {
            line,
            arrival: cell(self.arrival),
            input: self.input.map(cell),
            output: self.output.map(cell),
            items: self.items.map(cell),
            priority: self.priority.map(cell),
        }
    }
}

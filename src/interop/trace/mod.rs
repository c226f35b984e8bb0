//! Trace files: recorded arrivals with, where present, input and output lengths.
//!
//! One file per format and one line in `FORMATS`. A format is recognised from the first line
//! when the scenario does not name it. Times become exact nanoseconds since the first arrival;
//! a file is refused, with the place and what to write, rather than repaired in silence.

mod azure_llm;
mod builder;
pub(super) mod cell;
mod csv;
mod jsonl;
mod suggest;
mod table;
pub(super) mod when;

use crate::arrivals::{Columns, Replay, Trace};
use crate::scenario::TraceProblem;
use crate::stats::burstiness;
use std::fmt;

/// A trace as read, and what to know about it.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceFile {
    /// The arrivals, sorted, the first at zero, and their lengths.
    pub trace: Trace,
    /// The format it was read as: `azure-llm-2023`, `csv` or `jsonl`.
    pub format: &'static str,
    /// The columns (keys) that were read.
    pub columns: Columns,
    /// What to know before trusting short-scale behaviour: a coarse clock, many ties.
    pub warnings: Vec<String>,
}

/// Why a trace cannot be read: where, what is wrong, what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Line of the file, from 1; 0 when the complaint is about the file or the scenario.
    pub line: u64,
    /// Column in characters, from 1; 0 with line 0.
    pub column: u64,
    /// One sentence: what is wrong.
    pub message: String,
    /// What to write or do instead.
    pub help: String,
}

impl TraceError {
    fn at(line: u64, column: u64, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { line, column, message: message.into(), help: help.into() }
    }

    /// A complaint about the file as a whole.
    fn whole(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::at(0, 0, message, help)
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "{}:{}: ", self.line, self.column)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for TraceError {}

/// A format of trace files.
struct Format {
    name: &'static str,
    /// Whether a file whose first line is this is surely of this format.
    recognises: fn(first_line: &str, replay: &Replay) -> bool,
    read: fn(&Input) -> Result<Read, TraceError>,
}

/// The formats, the most particular first; the last recognises everything.
const FORMATS: &[Format] = &[azure_llm::FORMAT, jsonl::FORMAT, csv::FORMAT];

/// What a format reads.
struct Input<'a> {
    text: &'a str,
    replay: &'a Replay,
    /// Most requests that can be numbered.
    limit: usize,
}

/// What a format hands back.
struct Read {
    trace: Trace,
    columns: Columns,
}

/// Names of the trace formats, as `format = "…"` takes them.
#[must_use]
pub fn formats() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.name).collect()
}

/// Reads a trace file.
///
/// # Errors
/// The first line that cannot be meant: not UTF-8, no header, a missing column, a time without
/// a unit, unsorted, negative or not a number, a length that is not a count, more than 2³² − 1
/// requests.
pub fn read(bytes: &[u8], replay: &Replay) -> Result<TraceFile, TraceError> {
    read_at_most(bytes, replay, u32::MAX as usize)
}

/// [`read`] in the form that the scenario reader takes.
///
/// # Errors
/// Those of [`read`].
pub fn for_scenario(replay: &Replay, bytes: Vec<u8>) -> Result<Trace, TraceProblem> {
    read(&bytes, replay).map(|file| file.trace).map_err(|e| TraceProblem {
        what: e.message,
        line: (e.line > 0).then_some(e.line),
        help: (!e.help.is_empty()).then_some(e.help),
    })
}

fn read_at_most(bytes: &[u8], replay: &Replay, limit: usize) -> Result<TraceFile, TraceError> {
    let text = decode(bytes)?;
    let Some(first_line) = text.lines().map(str::trim).find(|line| !line.is_empty()) else {
        return Err(TraceError::whole(
            "the trace is empty",
            "a trace has a header line that names its columns, then one line per request",
        ));
    };
    let format = match &replay.format {
        Some(name) => named(name)?,
        None => FORMATS
            .iter()
            .find(|format| (format.recognises)(first_line, replay))
            .unwrap_or(&csv::FORMAT),
    };
    let Read { trace, columns } = (format.read)(&Input { text, replay, limit })?;
    let warnings = burstiness::clock_warnings(&trace);
    Ok(TraceFile { trace, format: format.name, columns, warnings })
}

fn named(name: &str) -> Result<&'static Format, TraceError> {
    FORMATS.iter().find(|format| format.name == name).ok_or_else(|| {
        TraceError::whole(
            format!("unknown trace format `{}`", cell::clip(name)),
            format!("write one of {}, or leave `format` out", formats().join(", ")),
        )
    })
}

/// The bytes as text without a byte-order mark.
fn decode(bytes: &[u8]) -> Result<&str, TraceError> {
    let not_text = |what: &str, help: &str| Err(TraceError::whole(what, help));
    if bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(b"PK\x03\x04") {
        return not_text("the trace is compressed", "unpack it first, as in `gunzip trace.csv.gz`");
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return not_text("the trace is UTF-16", "save it as UTF-8");
    }
    if bytes.starts_with(b"version https://git-lfs") {
        return not_text(
            "this is a pointer of Git LFS, not the trace",
            "fetch the data with `git lfs pull`",
        );
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|e| {
        let (good, _) = bytes.split_at(e.valid_up_to());
        let good = String::from_utf8_lossy(good);
        let line = good.matches('\n').count() as u64 + 1;
        let column = good.rsplit('\n').next().unwrap_or("").chars().count() as u64 + 1;
        TraceError::at(line, column, "not valid UTF-8 from here on", "save the trace as UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_requests() {
        let replay = Replay { file: "t.csv".into(), format: None, columns: None, scale: None };
        let text = b"TIMESTAMP,ContextTokens,GeneratedTokens\n\
            2023-11-16 18:15:46.6805900,1,2\n2023-11-16 18:15:46.6805901,1,2\n";
        let read = |limit| read_at_most(text, &replay, limit);
        assert_eq!(read(2).map(|t| t.trace.arrivals.len()), Ok(2));
        let error = read(1).expect_err("one too many");
        assert_eq!((error.line, error.column), (3, 1));
        assert!(error.message.contains("more than 1 request"), "{error}");
    }
}

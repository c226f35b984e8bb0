//! `batchsim trace`.

use super::Done;
use super::args::{Common, InspectArgs, TraceArgs, TraceVerb};
use super::exit::{Code, Failure};
use super::show::{self, say};
use crate::arrivals::{Columns, Replay};
use crate::interop::trace;
use crate::report::{Format, Grid};
use crate::stats::burstiness::{TraceStats, inspect};
use anyhow::Context;
use std::io::Read;
use std::path::Path;

/// Runs the verb.
pub(super) fn run(args: &TraceArgs, common: &Common) -> Done {
    match &args.verb {
        TraceVerb::Inspect(args) => look(args, common),
    }
}

fn look(args: &InspectArgs, common: &Common) -> Done {
    let columns = match &args.arrival {
        Some(arrival) => Some(Columns {
            arrival: arrival.clone(),
            unit: args.unit.clone(),
            input_length: args.input_length.clone(),
            output_length: args.output_length.clone(),
            ..Columns::default()
        }),
        None if args.unit.is_some() || args.input_length.is_some() => {
            return Err(Failure::usage(
                "a column mapping needs the column of arrival times",
                "add --arrival NAME",
            ));
        }
        None => None,
    };
    let replay = Replay {
        file: args.trace.display().to_string(),
        format: args.trace_format.clone(),
        columns,
        scale: None,
    };
    let bytes = read(&args.trace)?;
    let file = trace::read(&bytes, &replay).map_err(|e| Failure::Usage {
        what: format!("{}:{e}", args.trace.display()),
        help: (!e.help.is_empty()).then_some(e.help),
    })?;
    let stats = inspect(&file.trace);
    match common.format {
        Format::Json => show::print(&show::json(&stats)?)?,
        Format::Table => show::print(&table(&stats).to_text())?,
        Format::Csv => show::print(&table(&stats).to_csv())?,
        Format::Markdown => show::print(&table(&stats).to_markdown())?,
    }
    stats.warnings.iter().for_each(|w| say(&format!("warning: {w}")));
    Ok(Code::Fine)
}

fn table(stats: &TraceStats) -> Grid {
    let mut grid = Grid::new(&["<figure", "value", "<unit"]);
    for row in stats.rows() {
        grid.row(vec![row.name.clone(), row.text(), row.unit.to_owned()]);
    }
    grid
}

/// Largest file that is read: two years of requests at one a second.
const LARGEST: u64 = 4 << 30;

fn bounded(bytes: Vec<u8>, path: &Path) -> Result<Vec<u8>, Failure> {
    if bytes.len() as u64 <= LARGEST {
        return Ok(bytes);
    }
    Err(Failure::usage(
        format!("{} is larger than 4 GiB", path.display()),
        "is this a device, or the wrong file? cut a long trace into parts",
    ))
}

/// The bytes of a file, or of standard input for `-`.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let place = || format!("cannot read {}", path.display());
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().take(LARGEST + 1).read_to_end(&mut bytes).with_context(place)?;
        return bounded(bytes, path);
    }
    if path.is_dir() {
        return Err(Failure::usage(
            format!("{} is a folder, not a file", path.display()),
            "name the file in it",
        ));
    }
    let opened = std::fs::File::open(path).and_then(|file| {
        let mut bytes = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut bytes).map(|_| bytes)
    });
    match opened {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            Err(Failure::usage(format!("there is no file {}", path.display()), "check the path"))
        }
        other => bounded(other.with_context(place)?, path),
    }
}

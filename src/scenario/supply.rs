//! Files a scenario names (traces, cost models), read once.

use crate::arrivals::{Replay, Trace};
use crate::cost::Cost;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest file that is read.
const LARGEST: u64 = 4 << 30;

/// Where the files that a scenario names come from.
pub trait Files {
    /// The content of a file, by its path as the scenario writes it.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The arrivals that the bytes of a trace file hold.
    ///
    /// # Errors
    /// The bytes are not a trace of the format and columns that `replay` says.
    fn trace(&self, replay: &Replay, bytes: Vec<u8>) -> Result<Trace, TraceProblem>;
}

/// Why a trace cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceProblem {
    /// One sentence.
    pub what: String,
    /// The line of the trace file, from 1, where there is one to point at.
    pub line: Option<u64>,
    /// What to do about it.
    pub help: Option<String>,
}

/// A parser of trace files.
pub type TraceParser = fn(&Replay, Vec<u8>) -> Result<Trace, TraceProblem>;

/// Files on disk, relative to the folder of the scenario.
#[derive(Clone, Debug)]
pub struct Disk {
    base: PathBuf,
    parser: TraceParser,
}

impl Disk {
    /// Files beside the scenario at `path`; `-` looks in the current folder.
    #[must_use]
    pub fn beside(path: &Path, parser: TraceParser) -> Self {
        let base = path.parent().map(Path::to_path_buf).unwrap_or_default();
        Self { base, parser }
    }
}

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let path = self.base.join(path);
        if path.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        // A device has no end.
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 4 GiB"));
        }
        Ok(bytes)
    }

    fn trace(&self, replay: &Replay, bytes: Vec<u8>) -> Result<Trace, TraceProblem> {
        (self.parser)(replay, bytes)
    }
}

/// What was read already; shared by all points of a sweep.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cache {
    traces: Vec<(Replay, Arc<Trace>)>,
    costs: Vec<(String, Cost)>,
}

impl Cache {
    /// The trace of this file, format and columns.
    pub(crate) fn trace(&self, replay: &Replay) -> Option<Arc<Trace>> {
        let same = |r: &Replay| {
            r.file == replay.file && r.format == replay.format && r.columns == replay.columns
        };
        self.traces.iter().find(|(r, _)| same(r)).map(|(_, trace)| Arc::clone(trace))
    }

    /// Keeps a trace.
    pub(crate) fn keep_trace(&mut self, replay: &Replay, trace: &Arc<Trace>) {
        self.traces.push((replay.clone(), Arc::clone(trace)));
    }

    /// The cost model in this file.
    pub(crate) fn cost(&self, file: &str) -> Option<Cost> {
        self.costs.iter().find(|(f, _)| f == file).map(|(_, cost)| cost.clone())
    }

    /// Keeps a cost model.
    pub(crate) fn keep_cost(&mut self, file: &str, cost: &Cost) {
        self.costs.push((file.to_owned(), cost.clone()));
    }
}

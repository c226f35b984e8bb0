//! What a sweep has computed so far, on disk, and the results it ends with.

use super::choices::SearchMethod;
use super::exit::Failure;
use super::files;
use super::show::{self, say};
use crate::outcome::{Cell, Outcome, SizeCount};
use crate::study::{Shard, SweepCell};
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// What is complete so far; gone once the sweep is.
pub(super) const JOURNAL: &str = "cells.partial.jsonl";
/// The cells, one per line, in index order.
const CELLS: &str = "cells.jsonl";
/// Batch-size histograms of the cells, one per line.
pub(super) const SIZES: &str = "batch-sizes.jsonl";

/// A complete cell in a journal or shard.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) index: usize,
    pub(super) cell: Cell,
    pub(super) sizes: Vec<SizeCount>,
    /// Requests that nothing can start any more.
    pub(super) stalled: Option<u64>,
}

/// What the cells of a sweep belong to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Heading {
    /// The Outcome without its cells: scenario, seed, build, axes.
    pub(super) outcome: Outcome,
    pub(super) precision: Option<f64>,
    /// Whether the event engine was asked for.
    #[serde(default)]
    pub(super) event_engine: bool,
    /// How the cells are examined.
    pub(super) method: SearchMethod,
    /// Of each recorded stream, so that another file under the same name is noticed.
    pub(super) traces: Vec<u64>,
    /// The part of the sweep; none is all of it.
    #[serde(default)]
    pub(super) shard: Option<Shard>,
}

/// A value as one line of JSON.
pub(super) fn line<T: Serialize>(value: &T) -> Result<String, Failure> {
    Ok(serde_json::to_string(value).context("cannot write the result as JSON")? + "\n")
}

/// Complete cells of a sweep on disk.
pub(super) struct Journal {
    path: PathBuf,
    pub(super) done: BTreeMap<usize, Entry>,
    file: Mutex<File>,
}

impl Journal {
    /// Opens the journal of this sweep. One of another scenario, seed, precision, build or shard
    /// is started over.
    pub(super) fn open(
        folder: &Path,
        heading: &Heading,
        cells: &[SweepCell],
        fresh: bool,
    ) -> Result<Self, Failure> {
        let path = folder.join(JOURNAL);
        let done = if fresh { None } else { Self::read(&path, heading, cells) };
        let done = done.unwrap_or_default();
        // Rewritten whole, so that a line cut short by a crash does not stay in the middle.
        let mut text = line(heading)?;
        for entry in done.values() {
            text += &line(entry)?;
        }
        files::write(&path, text.as_bytes())?;
        let file =
            OpenOptions::new().append(true).open(&path).context("cannot open the journal")?;
        Ok(Self { path, done, file: Mutex::new(file) })
    }

    fn read(path: &Path, heading: &Heading, cells: &[SweepCell]) -> Option<BTreeMap<usize, Entry>> {
        let mut lines = BufReader::new(File::open(path).ok()?).lines();
        let first: Heading = serde_json::from_str(&lines.next()?.ok()?).ok()?;
        if first != *heading {
            say("starting over: what was saved here is of another scenario, seed or build");
            return None;
        }
        let entries = lines.map_while(|line| serde_json::from_str::<Entry>(&line.ok()?).ok());
        let planned = |e: &Entry| {
            heading.shard.is_none_or(|shard| shard.takes(e.index))
                && cells.get(e.index).is_some_and(|c| c.coords == e.cell.coords)
        };
        Some(entries.filter(planned).map(|e| (e.index, e)).collect())
    }

    pub(super) fn append(&self, entry: &Entry) -> Result<(), Failure> {
        let line = line(entry)?;
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(file.write_all(line.as_bytes()).context("cannot write the journal")?)
    }

    /// All cells, in index order: what was there before and what was computed since.
    pub(super) fn all(&mut self, computed: Vec<Entry>) -> Vec<Entry> {
        let mut all = std::mem::take(&mut self.done);
        all.extend(computed.into_iter().map(|e| (e.index, e)));
        all.into_values().collect()
    }

    /// Drops the journal: the results are written.
    pub(super) fn close(self) {
        // Gone already where another sweep of the same scenario finished in this folder.
        let _ = std::fs::remove_file(self.path);
    }
}

/// Writes the results of a whole sweep; returns how many of its cells stall.
pub(super) fn write_results(
    folder: &Path,
    outcome: &mut Outcome,
    entries: Vec<Entry>,
) -> Result<u64, Failure> {
    let mut stalled = 0;
    let (mut cells, mut sizes) = (String::new(), String::new());
    for entry in entries {
        cells += &line(&entry.cell)?;
        sizes += &line(&entry.sizes)?;
        stalled += u64::from(entry.stalled.is_some());
        outcome.cells.push(entry.cell);
    }
    files::write(&folder.join(CELLS), cells.as_bytes())?;
    files::write(&folder.join(SIZES), sizes.as_bytes())?;
    files::write(&folder.join("outcome.json"), show::json(outcome)?.as_bytes())?;
    Ok(stalled)
}

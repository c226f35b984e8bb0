//! `batchsim sweep`: a grid, kept cell by cell so that it can be interrupted and go on.

use super::args::{Common, SweepArgs};
use super::exit::{Code, Failure};
use super::progress::Progress;
use super::run::RunInfo;
use super::show::{self, say};
use super::signals::Signals;
use super::{Done, files, input, plot};
use crate::outcome::{Cell, Outcome, SizeCount};
use crate::report::{count, simulated};
use crate::scenario::Loaded;
use crate::study::{self, Control, Options, SweepCell};
use anyhow::Context;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// What is complete so far; gone once the sweep is.
const JOURNAL: &str = "cells.partial.jsonl";
/// The cells, one per line, in index order.
const CELLS: &str = "cells.jsonl";
/// Batch-size histograms of the cells, one per line.
pub(super) const SIZES: &str = "batch-sizes.jsonl";

/// A complete cell in the journal.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    index: usize,
    cell: Cell,
    sizes: Vec<SizeCount>,
    /// Requests that nothing can start any more.
    stalled: Option<u64>,
}

/// First line of the journal: what its cells belong to.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Heading {
    outcome: Outcome,
    precision: Option<f64>,
    /// Of each recorded stream, so that another file under the same name is noticed.
    traces: Vec<u64>,
}

/// Runs the verb.
pub(super) fn run(args: &SweepArgs, common: &Common) -> Done {
    let loaded = input::load(&args.scenario, Some(&args.precision), common)?;
    if loaded.scenario.sweep.is_empty() {
        return Err(Failure::usage(
            "this scenario has no [sweep]",
            "add one, as in [sweep] \"dynamic.max_wait\" = { values = [\"0ms\", \"5ms\"] }",
        ));
    }
    let options = input::options(&args.precision)?;
    input::threads(common)?;
    let folder = files::output(args.scenario.output.as_ref(), &loaded.scenario.name);
    files::folder(&folder)?;
    let cells = study::plan_sweep(&loaded.scenario);
    let mut frame = study::outcome_frame("sweep", &loaded.scenario);
    frame.axes = study::axis_values(&loaded.scenario);
    let traces = loaded.scenario.arrivals.iter().filter_map(|s| s.trace.as_deref());
    let traces = traces.map(crate::arrivals::Trace::fingerprint).collect();
    let heading = Heading { outcome: frame, precision: options.precision, traces };
    let journal = Journal::open(&folder, &heading, &cells, args.fresh)?;
    if !journal.done.is_empty() {
        let (done, all) = (journal.done.len() as u64, cells.len() as u64);
        say(&format!("going on: {} of {} cells were complete", count(done), count(all)));
    }
    let control = Arc::new(Control::default());
    let signals = Signals::watch(&control)?;
    let start = Instant::now();
    let done_before = journal.done.len() as u64;
    let progress = Progress::watch(common.progress, &control, cells.len() as u64, done_before);
    let sweep = Sweep { loaded: &loaded, options, control: &control, journal: &journal };
    let computed = sweep.compute(&cells)?;
    drop(progress);
    let interrupted = control.stopped() && computed.len() + journal.done.len() < cells.len();
    if interrupted {
        let complete = (computed.len() + journal.done.len()) as u64;
        say(&format!(
            "interrupted: {} of {} cells are saved in {}; the same command goes on",
            count(complete),
            count(cells.len() as u64),
            folder.display()
        ));
        return Ok(signals.code());
    }
    let (outcome, stalled) = journal.finish(heading.outcome, computed)?;
    RunInfo::new(&control, start).save(&folder)?;
    show::outcome(&outcome, common.format, &input::title(&loaded.scenario))?;
    if !args.precision.no_charts {
        plot::draw_all(&outcome, &[], &folder)?;
    }
    say(&format!("{} requests, results in {}", simulated(&outcome), folder.display()));
    // A sweep marks what is feasible; a cell that fails is an answer, not a failure.
    if stalled == 0 {
        return Ok(Code::Fine);
    }
    let all = count(outcome.cells.len() as u64);
    say(&format!("error: {} of {all} cells stall: requests wait for ever", count(stalled)));
    Ok(Code::Stall)
}

struct Sweep<'a> {
    loaded: &'a Loaded,
    options: Options,
    control: &'a Control,
    journal: &'a Journal,
}

impl Sweep<'_> {
    /// Computes what is missing, writing each cell as it completes.
    fn compute(&self, cells: &[SweepCell]) -> Result<Vec<Entry>, Failure> {
        let missing: Vec<usize> =
            (0..cells.len()).filter(|i| !self.journal.done.contains_key(i)).collect();
        let entries: Vec<Result<Option<Entry>, Failure>> = missing
            .into_par_iter()
            .map(|index| {
                if self.control.stopped() {
                    return Ok(None);
                }
                let done = cells[index].simulate(self.loaded, &self.options, self.control)?;
                // A cell that was cut short would differ from an uninterrupted run.
                let Some(done) = done.filter(|d| !d.interrupted) else { return Ok(None) };
                let mut cell = done.cell;
                let sizes = std::mem::take(&mut cell.batch_size.histogram);
                let stalled = done.stalled.map(|s| s.waiting);
                let entry = Entry { index, cell, sizes, stalled };
                // A disk that is full stays full: do not compute what cannot be kept.
                self.journal.append(&entry).inspect_err(|_| self.control.stop())?;
                Ok(Some(entry))
            })
            .collect();
        entries.into_iter().filter_map(Result::transpose).collect()
    }
}

/// A value as one line of JSON.
fn line<T: Serialize>(value: &T) -> Result<String, Failure> {
    Ok(serde_json::to_string(value).context("cannot write the result as JSON")? + "\n")
}

/// Complete cells of a sweep on disk.
struct Journal {
    folder: PathBuf,
    done: BTreeMap<usize, Entry>,
    file: Mutex<File>,
}

impl Journal {
    /// Opens the journal of this sweep. One of another scenario, seed, precision or build is
    /// started over.
    fn open(
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
        Ok(Self { folder: folder.to_path_buf(), done, file: Mutex::new(file) })
    }

    fn read(path: &Path, heading: &Heading, cells: &[SweepCell]) -> Option<BTreeMap<usize, Entry>> {
        let mut lines = BufReader::new(File::open(path).ok()?).lines();
        let first: Heading = serde_json::from_str(&lines.next()?.ok()?).ok()?;
        if first != *heading {
            say("starting over: what was saved here is of another scenario, seed or build");
            return None;
        }
        let entries = lines.map_while(|line| serde_json::from_str::<Entry>(&line.ok()?).ok());
        let planned = |e: &Entry| cells.get(e.index).is_some_and(|c| c.coords == e.cell.coords);
        Some(entries.filter(planned).map(|e| (e.index, e)).collect())
    }

    fn append(&self, entry: &Entry) -> Result<(), Failure> {
        let line = line(entry)?;
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(file.write_all(line.as_bytes()).context("cannot write the journal")?)
    }

    /// Writes the results in index order and drops the journal.
    fn finish(self, mut outcome: Outcome, computed: Vec<Entry>) -> Result<(Outcome, u64), Failure> {
        let mut stalled = 0;
        let mut all = self.done;
        all.extend(computed.into_iter().map(|e| (e.index, e)));
        let (mut cells, mut sizes) = (String::new(), String::new());
        for entry in all.into_values() {
            cells += &line(&entry.cell)?;
            sizes += &line(&entry.sizes)?;
            stalled += u64::from(entry.stalled.is_some());
            outcome.cells.push(entry.cell);
        }
        files::write(&self.folder.join(CELLS), cells.as_bytes())?;
        files::write(&self.folder.join(SIZES), sizes.as_bytes())?;
        files::write(&self.folder.join("outcome.json"), show::json(&outcome)?.as_bytes())?;
        // Gone already where another sweep of the same scenario finished in this folder.
        let _ = std::fs::remove_file(self.folder.join(JOURNAL));
        Ok((outcome, stalled))
    }
}

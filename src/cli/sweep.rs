//! `batchsim sweep`: a grid, kept cell by cell so that it can be interrupted and go on.

use super::args::{Common, SearchMethod, SweepArgs};
use super::exit::{Code, Failure};
use super::journal::{Entry, Heading, Journal, write_results};
use super::progress::Progress;
use super::run::RunInfo;
use super::show::{self, say};
use super::signals::Signals;
use super::{Done, files, input, plot, shard};
use crate::outcome::{Cell, Outcome};
use crate::report::{count, simulated};
use crate::scenario::Loaded;
use crate::study::{self, Control, Engine, Options, SweepCell};
use rayon::prelude::*;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Runs the verb.
pub(super) fn run(args: &SweepArgs, common: &Common) -> Done {
    let loaded = input::load(&args.scenario.source, Some(&args.precision), common)?;
    if loaded.scenario.sweep.is_empty() {
        return Err(Failure::usage(
            "this scenario has no [sweep]",
            "add one, as in [sweep] \"dynamic.max_wait\" = { values = [\"0ms\", \"5ms\"] }",
        ));
    }
    let options = input::options(&args.precision)?;
    input::threads(common)?;
    let mut folder = files::output(args.scenario.output.as_ref(), &loaded.scenario.name);
    if let Some(shard) = args.shard {
        folder = folder.join(shard::folder_name(shard));
    }
    files::folder(&folder)?;
    let cells = study::plan_sweep(&loaded.scenario);
    let mine = (0..cells.len()).filter(|i| args.shard.is_none_or(|s| s.takes(*i))).count();
    let heading = heading(&loaded, &options, args);
    let mut journal = Journal::open(&folder, &heading, &cells, args.fresh)?;
    if !journal.done.is_empty() {
        let (done, all) = (journal.done.len() as u64, mine as u64);
        say(&format!("going on: {} of {} cells were complete", count(done), count(all)));
    }
    let control = Arc::new(Control::default());
    let signals = Signals::watch(&control)?;
    let start = Instant::now();
    let done_before = journal.done.len() as u64;
    let progress = Progress::watch(common.progress, &control, mine as u64, done_before);
    let sweep = Sweep { loaded: &loaded, options, control: &control, journal: &journal };
    let computed = sweep.compute(&cells, &heading)?;
    drop(progress);
    let complete = computed.len() + journal.done.len();
    if control.stopped() && complete < mine {
        say(&format!(
            "interrupted: {} of {} cells are saved in {}; the same command goes on",
            count(complete as u64),
            count(mine as u64),
            folder.display()
        ));
        return Ok(signals.code());
    }
    let entries = journal.all(computed);
    let title = input::title(&loaded.scenario);
    if args.shard.is_some() {
        let stalled = shard::write(&folder, &heading, &title, cells.len(), &entries)?;
        RunInfo::new(&control, start).save(&folder)?;
        journal.close();
        return Ok(stall_code(stalled, mine));
    }
    let mut outcome = heading.outcome;
    let stalled = write_results(&folder, &mut outcome, entries)?;
    journal.close();
    RunInfo::new(&control, start).save(&folder)?;
    present(&outcome, common, &title, args.precision.no_charts, &folder)?;
    Ok(stall_code(stalled, mine))
}

fn heading(loaded: &Loaded, options: &Options, args: &SweepArgs) -> Heading {
    let mut outcome = study::outcome_frame("sweep", &loaded.scenario);
    outcome.axes = study::axis_values(&loaded.scenario);
    let traces = loaded.scenario.arrivals.iter().filter_map(|s| s.trace.as_deref());
    Heading {
        outcome,
        precision: options.precision,
        event_engine: options.engine == Engine::Event,
        method: args.method,
        traces: traces.map(crate::arrivals::Trace::fingerprint).collect(),
        shard: args.shard,
    }
}

/// Prints a whole sweep and draws its charts.
pub(super) fn present(
    outcome: &Outcome,
    common: &Common,
    title: &str,
    no_charts: bool,
    folder: &Path,
) -> Result<(), Failure> {
    show::outcome(outcome, common.format, title)?;
    if !no_charts {
        plot::draw_all(outcome, &[], folder)?;
    }
    say(&format!("{} requests, results in {}", simulated(outcome), folder.display()));
    Ok(())
}

/// A sweep marks what is feasible; a cell that fails is an answer, not a failure. One that stalls
/// is.
pub(super) fn stall_code(stalled: u64, cells: usize) -> Code {
    if stalled == 0 {
        return Code::Fine;
    }
    let all = count(cells as u64);
    say(&format!("error: {} of {all} cells stall: requests wait for ever", count(stalled)));
    Code::Stall
}

struct Sweep<'a> {
    loaded: &'a Loaded,
    options: Options,
    control: &'a Control,
    journal: &'a Journal,
}

impl Sweep<'_> {
    /// Computes what is missing, writing each cell as it completes.
    fn compute(&self, cells: &[SweepCell], heading: &Heading) -> Result<Vec<Entry>, Failure> {
        let mine = |i: &usize| heading.shard.is_none_or(|shard| shard.takes(*i));
        let missing: Vec<usize> =
            (0..cells.len()).filter(mine).filter(|i| !self.journal.done.contains_key(i)).collect();
        let entries: Vec<Result<Option<Entry>, Failure>> = missing
            .into_par_iter()
            .map(|index| {
                if self.control.stopped() {
                    return Ok(None);
                }
                let found = self.examine(&cells[index], heading.method);
                // The first cell that cannot be examined ends the sweep.
                let found = found.inspect_err(|_| self.control.stop())?;
                let Some((mut cell, stalled)) = found else { return Ok(None) };
                let sizes = std::mem::take(&mut cell.batch_size.histogram);
                let entry = Entry { index, cell, sizes, stalled };
                // A disk that is full stays full: do not compute what cannot be kept.
                self.journal.append(&entry).inspect_err(|_| self.control.stop())?;
                Ok(Some(entry))
            })
            .collect();
        entries.into_iter().filter_map(Result::transpose).collect()
    }

    /// One cell, and how many of its requests wait for ever; `None` when it was stopped from
    /// outside.
    fn examine(
        &self,
        cell: &SweepCell,
        method: SearchMethod,
    ) -> Result<Option<(Cell, Option<u64>)>, Failure> {
        if method != SearchMethod::Simulation {
            match cell.solve(self.loaded)? {
                Ok(solved) => {
                    self.control.add_cell();
                    return Ok(Some((solved, None)));
                }
                Err(why) if method == SearchMethod::Exact => {
                    return Err(uncovered(cell, &why));
                }
                Err(_) => {}
            }
        }
        let done = cell.simulate(self.loaded, &self.options, self.control)?;
        // A cell that was cut short would differ from an uninterrupted run.
        let done = done.filter(|d| !d.interrupted);
        Ok(done.map(|d| (d.cell, d.stalled.map(|s| s.waiting))))
    }
}

fn uncovered(cell: &SweepCell, why: &str) -> Failure {
    let coords: Vec<String> = cell.coords.iter().map(|(k, v)| format!("{k} = {v}")).collect();
    let at = if coords.is_empty() { String::new() } else { format!(" at {}", coords.join(", ")) };
    Failure::usage(
        format!("--method exact: no exact solution{at}: {why}"),
        "write --method auto to simulate such cells",
    )
}

//! `batchsim run`.

use super::args::{Common, OnInconclusive, RunArgs};
use super::exit::{Code, Failure};
use super::progress::Progress;
use super::show::{self, say};
use super::signals::Signals;
use super::{Done, files, input, plot};
use crate::outcome::{CdfFile, Judgement, Outcome};
use crate::report::{count, simulated};
use crate::scenario::{Curve, CurvePoints, Scenario};
use crate::study::{self, Control, Stalled};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Runs the verb.
pub(super) fn run(args: &RunArgs, common: &Common) -> Done {
    let loaded = input::load(&args.scenario.source, Some(&args.precision), common)?;
    let mut scenario = loaded.scenario;
    if args.curve && scenario.total_rate_per_s().is_none() {
        return Err(Failure::usage(
            "--curve needs a rate that can be varied, and these arrivals have none",
            "a curve is drawn for open sources with a rate; leave --curve out",
        ));
    }
    if args.curve && scenario.curve.is_none() {
        scenario.curve = Some(Curve::default());
    }
    let options = input::options(&args.precision)?;
    input::threads(common)?;
    let folder = files::output(args.scenario.output.as_ref(), &scenario.name);
    files::folder(&folder)?;
    let control = Arc::new(Control::default());
    let signals = Signals::watch(&control)?;
    let start = Instant::now();
    let cells = (scenario.servers.len() * scenario.policies.len()) as u64 + points(&scenario);
    let progress = Progress::watch(common.progress, &control, cells, 0);
    let study::Ran { mut outcome, mut cdfs, sections, stalled } =
        study::run_sections(&scenario, &options, &control);
    drop(progress);
    let missing = control.cells() < cells;
    if missing {
        outcome.warnings.push("interrupted: what was complete by then is here".into());
    }
    if missing && outcome.cells.is_empty() {
        // Nothing is complete: an earlier result in the folder is worth more.
        say("interrupted before any policy was complete; nothing is saved");
        return Ok(signals.code());
    }
    name_side_files(&mut outcome, &mut cdfs);
    show::outcome(&outcome, common.format, &input::title(&scenario))?;
    save(&folder, &outcome, &cdfs)?;
    files::write(&folder.join("sections.json"), show::compact_json(&sections)?.as_bytes())?;
    RunInfo::new(&control, start).save(&folder)?;
    if !args.precision.no_charts {
        plot::draw_all(&outcome, &cdfs, &folder)?;
    }
    say(&format!("{} requests, results in {}", simulated(&outcome), folder.display()));
    if missing {
        return Ok(signals.code());
    }
    Ok(verdict_code(&outcome, &stalled, args.inconclusive))
}

fn points(scenario: &Scenario) -> u64 {
    let each = scenario.curve.as_ref().map_or(0, |c| match &c.points {
        CurvePoints::Loads(points) | CurvePoints::Rates(points) => points.len(),
    });
    (each * scenario.policies.len() * scenario.servers.len()) as u64
}

/// Names the side file of every cell that has a distribution.
pub(super) fn name_side_files(outcome: &mut Outcome, cdfs: &mut [CdfFile]) {
    let with_latency = outcome.cells.iter_mut().filter(|c| c.latency_ms.is_some());
    let mut taken: Vec<String> = Vec::new();
    for (number, (cell, cdf)) in with_latency.zip(cdfs).enumerate() {
        let slug = files::slug(&cdf.label);
        let mut name = format!("cdf-{slug}.json");
        // Labels that differ only in what a file name cannot hold, or in case.
        if taken.contains(&name.to_lowercase()) {
            name = format!("cdf-{slug}-{number}.json");
        }
        taken.push(name.to_lowercase());
        cell.cdf_file = Some(name);
    }
}

/// Writes the Outcome and its side files.
pub(super) fn save(folder: &Path, outcome: &Outcome, cdfs: &[CdfFile]) -> Result<(), Failure> {
    let names = outcome.cells.iter().filter_map(|c| c.cdf_file.as_ref());
    for (name, cdf) in names.zip(cdfs) {
        files::write(&folder.join(name), show::json(cdf)?.as_bytes())?;
    }
    files::write(&folder.join("outcome.json"), show::json(outcome)?.as_bytes())
}

/// What depends on the machine and the moment, kept apart from the Outcome.
#[derive(Debug, Serialize)]
pub(super) struct RunInfo {
    wall_s: f64,
    threads: usize,
    requests_simulated: u64,
    requests_per_s: f64,
    target: String,
}

impl RunInfo {
    #[expect(clippy::cast_precision_loss, reason = "for display")]
    pub(super) fn new(control: &Control, start: Instant) -> Self {
        let wall_s = start.elapsed().as_secs_f64();
        let requests_simulated = control.requests();
        Self {
            wall_s,
            threads: rayon::current_num_threads(),
            requests_simulated,
            requests_per_s: requests_simulated as f64 / wall_s.max(1e-9),
            target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        }
    }

    pub(super) fn save(&self, folder: &Path) -> Result<(), Failure> {
        files::write(&folder.join("run-info.json"), show::json(self)?.as_bytes())
    }
}

/// The exit code of what was found, the worst first.
pub(super) fn verdict_code(
    outcome: &Outcome,
    stalled: &[Stalled],
    inconclusive: OnInconclusive,
) -> Code {
    let any = |judgement| {
        outcome.cells.iter().flat_map(|c| &c.verdicts).any(|v| v.judgement == judgement)
    };
    for stall in stalled {
        say(&format!(
            "error: {} stalls: {} requests wait and nothing can start them any more",
            stall.label,
            count(stall.waiting)
        ));
    }
    // A verdict on a server that stopped working would mean little.
    if !stalled.is_empty() {
        Code::Stall
    } else if any(Judgement::Fail) {
        Code::Threshold
    } else if any(Judgement::Inconclusive) && inconclusive == OnInconclusive::Fail {
        Code::Inconclusive
    } else {
        Code::Fine
    }
}

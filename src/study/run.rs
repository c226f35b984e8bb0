//! `run`: every policy of a scenario on every server.

use super::cell::{Budget, Measured, simulate};
use super::control::Control;
use super::curve::curve_points;
use super::setup::{Bench, Engine};
use super::verdict::{Context, judge, limits_ns};
use super::{measure, sections, verdict};
use crate::number::{count, rate};
use crate::outcome::{
    CdfFile, Cell, CellSections, Method, Outcome, PolicyInfo, Precision, SCHEMA, Sections, Series,
    Slo, Tool,
};
use crate::record::{ExactLatencies, Histogram, LatencyStore};
use crate::scenario::{Labelled, Metric, Op, Scenario, Server, Threshold};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// How a study is run, beyond what the scenario says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Which engine.
    pub engine: Engine,
    /// Relative half-width on p99 that overrides the scenario's.
    pub precision: Option<f64>,
}

/// One cell to simulate.
#[derive(Clone, Debug)]
pub struct CellTask<'a> {
    /// The scenario at this point.
    pub scenario: &'a Scenario,
    /// The server.
    pub server: &'a Server,
    /// The policy.
    pub policy: &'a Labelled,
    /// Where in a sweep.
    pub coords: BTreeMap<String, String>,
    /// How many requests it may take.
    pub budget: Budget,
    /// Which engine.
    pub engine: Engine,
    /// Whether thresholds are judged here.
    pub judged: bool,
    /// Whether the points of the distribution are wanted.
    pub distribution: bool,
}

/// A simulated cell, and the points of its latency distribution.
#[derive(Clone, Debug)]
pub struct CellDone {
    /// The cell.
    pub cell: Cell,
    /// Its distribution; absent where there are no latencies.
    pub cdf: Option<CdfFile>,
    /// Set when the server can never answer what is left in it.
    pub stalled: Option<Stalled>,
    /// Whether it was stopped from outside before it was precise enough.
    pub interrupted: bool,
}

/// A simulated server in which nothing will happen any more although requests wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stalled {
    /// Label of the policy.
    pub label: String,
    /// Requests that wait for ever.
    pub waiting: u64,
}

/// Requests of each replication in the first wave of a `run`.
const FIRST_WAVE: u64 = 200_000;
/// Cap on the requests of one cell of a `run`.
const CAP: u64 = 200_000_000;
/// The same for cells of sweeps and curves.
pub(super) const SMALL: Budget = Budget { precision: 0.03, first_wave: 20_000, cap: 2_000_000 };

impl CellTask<'_> {
    fn bench(&self) -> Bench<'_> {
        Bench {
            scenario: self.scenario,
            server: self.server,
            policy: &self.policy.policy,
            engine: self.engine,
        }
    }

    /// `label`, or `label@server` when servers are compared.
    fn label(&self) -> String {
        self.scenario.cell_label(self.server, self.policy)
    }
}

/// Simulates one cell; `None` when it was stopped from outside.
#[must_use]
pub fn simulate_cell(task: &CellTask<'_>, control: &Control) -> Option<CellDone> {
    simulate_task(task, false, control).map(|(done, _)| done)
}

/// Simulates one cell and keeps its numbers section by section, for comparisons; `None` when it
/// was stopped from outside.
#[must_use]
pub fn simulate_sections(
    task: &CellTask<'_>,
    control: &Control,
) -> Option<(CellDone, Vec<Series>)> {
    simulate_task(task, true, control)
}

fn simulate_task(
    task: &CellTask<'_>,
    sectioned: bool,
    control: &Control,
) -> Option<(CellDone, Vec<Series>)> {
    let done = if task.scenario.run.exact_latencies {
        simulate_as::<ExactLatencies>(task, sectioned, control)
    } else {
        simulate_as::<Histogram<10>>(task, sectioned, control)
    };
    if done.as_ref().is_some_and(|(d, _)| !d.interrupted) {
        control.add_cell();
    }
    done
}

fn simulate_as<L: LatencyStore + Send + Sync>(
    task: &CellTask<'_>,
    sectioned: bool,
    control: &Control,
) -> Option<(CellDone, Vec<Series>)> {
    let bench = task.bench();
    // With a closed loop beside them the open sources alone are a lower bound.
    let offered = task.scenario.open_rate_per_s();
    let capacity = task.scenario.capacity_per_s(task.server, &task.policy.policy);
    let too_much = offered.zip(capacity).is_some_and(|(rate, most)| rate >= most);
    let mut overload = (too_much && !limited(&bench)).then(|| overloaded(offered, capacity));
    // An overloaded queue never settles: a short look at its throughput is all there is.
    let task = &CellTask { budget: bounded(task), ..task.clone() };
    let budget = match overload {
        Some(_) => Budget { first_wave: SMALL.first_wave, ..task.budget },
        None => task.budget,
    };
    let limits = limits_ns(&task.scenario.thresholds);
    let measured: Measured<L> = simulate(&bench, &limits, &budget, overload.is_some(), control)?;
    if overload.is_none() && grows(&bench, &measured) {
        overload = Some(overloaded(None, None));
    }
    let series = if sectioned {
        let asked = sections::Asked {
            limits_ms: &verdict::limits_ms(&task.scenario.thresholds),
            classes: &bench.classes(),
            instances: task.server.slots(),
            stable: overload.is_none(),
        };
        sections::series(&measured, &asked)
    } else {
        Vec::new()
    };
    Some((assemble(task, &measured, &limits, overload, capacity), series))
}

/// Most latencies that are kept one by one in a cell.
const EXACT_LATENCIES: u64 = 10_000_000;

/// The budget of a cell; latencies that are kept one by one bound it further.
fn bounded(task: &CellTask<'_>) -> Budget {
    let most = if task.scenario.run.exact_latencies { EXACT_LATENCIES } else { u64::MAX };
    Budget { cap: task.budget.cap.min(most), ..task.budget }
}

/// Whether something keeps the queue short whatever is offered.
pub(super) fn limited(bench: &Bench<'_>) -> bool {
    bench.server.queue_limit.is_some()
        || bench.policy.limits_queue()
        || bench.scenario.arrivals.iter().all(|s| s.timeout.is_some())
}

fn overloaded(offered: Option<f64>, capacity: Option<f64>) -> String {
    match (offered, capacity) {
        (Some(offered), Some(capacity)) => {
            format!("OVERLOADED: {}/s offered, capacity {}/s", rate(offered), rate(capacity))
        }
        _ => "OVERLOADED: the queue grows without end".to_owned(),
    }
}

/// A backlog at the last arrival that no full batch and no chance explains.
#[expect(clippy::cast_precision_loss, reason = "a comparison")]
pub(super) fn grows<L>(bench: &Bench<'_>, measured: &Measured<L>) -> bool {
    if limited(bench) || bench.scenario.open_rate_per_s().is_none() || bench.replays_trace() {
        return false;
    }
    let s = &measured.pooled;
    let held = f64::from(bench.policy.cap().unwrap_or(1)) * f64::from(bench.server.slots());
    let runs = measured.sections.len() as f64;
    s.backlog as f64 > (0.1 * s.offered as f64).max(50.0 * held * runs)
}

fn assemble<L: LatencyStore>(
    task: &CellTask<'_>,
    measured: &Measured<L>,
    limits: &[u64],
    overload: Option<String>,
    capacity: Option<f64>,
) -> CellDone {
    let bench = task.bench();
    let pooled = &measured.pooled;
    let label = task.label();
    let stable = overload.is_none();
    let (throughput_per_s, utilization) = measure::rates(pooled, task.server.slots());
    let (batch_size, dispatch_reasons) = measure::batches(pooled);
    let nominal = task.scenario.total_rate_per_s().filter(|_| !bench.replays_trace());
    let rate_per_s = nominal.unwrap_or_else(|| measure::measured_rate(pooled));
    let limits_ms = verdict::limits_ms(&task.scenario.thresholds);
    let classes = bench.classes();
    let verdicts = if task.judged {
        let thresholds = task.scenario.applicable(task.policy);
        let instances = task.server.slots();
        let context = Context { limits_ns: limits, classes: &classes, instances };
        judge(&thresholds, &context, measured, overload.as_deref())
    } else {
        Vec::new()
    };
    let fixed = task.scenario.run.requests.is_some() || task.scenario.run.duration.is_some();
    let sought = stable && !fixed;
    let precision = if sought { measure::precision(measured, task.budget.precision) } else { None };
    let warnings = warnings(measured, overload, precision.as_ref());
    let replays = bench.replays_trace();
    let cell = Cell {
        coords: task.coords.clone(),
        policy: policy_info(label.clone(), task.policy),
        method: match (replays, bench.by_recurrence()) {
            (true, _) => Method::Trace,
            (false, true) => Method::Recurrence,
            (false, false) => Method::Simulation,
        },
        replications: u32::try_from(measured.sections.len()).unwrap_or(u32::MAX),
        requests: measure::requests(pooled.offered, &pooled.counts),
        rate_per_s,
        capacity_per_s: capacity,
        load: nominal.or(replays.then_some(rate_per_s)).zip(capacity).map(|(r, c)| r / c),
        stable,
        throughput_per_s,
        utilization,
        latency_ms: if stable { measure::latency(measured) } else { None },
        group_latency_ms: if stable { measure::groups(measured) } else { None },
        queue_ms: if stable { measure::queue(measured) } else { None },
        batch_size,
        dispatch_reasons,
        attainment: measure::attainment(measured, &limits_ms),
        precision,
        warmup_ms: measured.warmup.as_ms(),
        classes: if stable { measure::classes(measured, &classes) } else { Vec::new() },
        warnings,
        verdicts,
        cdf_file: None,
    };
    let wanted = stable && task.distribution;
    let cdf = if wanted { measure::cdf(&label, measured) } else { None };
    let stalled = measured.stalled.map(|waiting| Stalled { label, waiting });
    CellDone { cell, cdf, stalled, interrupted: measured.interrupted }
}

/// Says so where groups lack answers: their latencies are those of the others.
fn unanswered_groups<L>(measured: &Measured<L>) -> Option<String> {
    let groups = measured.pooled.groups.as_ref().filter(|g| g.incomplete > 0)?;
    let (lacking, all) = (count(groups.incomplete), count(groups.offered()));
    Some(format!(
        "groups without every answer: {lacking} of {all}; group latencies are those of the others"
    ))
}

/// What a reader of a cell should know.
fn warnings<L>(
    measured: &Measured<L>,
    overload: Option<String>,
    precision: Option<&Precision>,
) -> Vec<String> {
    let mut warnings = measured.warnings.clone();
    warnings.extend(overload);
    warnings.extend(unanswered_groups(measured));
    if measured.interrupted {
        warnings.push("interrupted: the intervals are wider than was asked for".into());
    }
    if let Some(p) = precision.filter(|p| p.reached > p.target) {
        warnings.push(format!(
            "precision not reached: p99 is known to ±{:.2} %, asked for ±{:.2} %",
            p.reached * 100.0,
            p.target * 100.0
        ));
    }
    warnings
}

/// What an Outcome says of a policy.
#[must_use]
pub fn policy_info(label: String, policy: &Labelled) -> PolicyInfo {
    let mut params = serde_json::to_value(&policy.policy).unwrap_or_default();
    if let Some(map) = params.as_object_mut() {
        map.remove("kind");
    }
    PolicyInfo { kind: policy.policy.kind().to_owned(), label, release: None, params }
}

/// This build.
#[must_use]
pub fn tool() -> Tool {
    Tool {
        name: "batchsim".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        commit: env!("BATCHSIM_COMMIT").into(),
    }
}

/// An Outcome without cells.
#[must_use]
pub fn outcome_frame(study: &str, scenario: &Scenario) -> Outcome {
    Outcome {
        schema: SCHEMA,
        tool: tool(),
        study: study.into(),
        scenario: scenario.to_value(),
        seed: scenario.seed,
        rng: crate::rng::NAME.into(),
        slos: slos(&scenario.thresholds),
        axes: Vec::new(),
        cells: Vec::new(),
        curve: Vec::new(),
        warnings: Vec::new(),
    }
}

/// Latency objectives among thresholds: upper limits on quantiles.
fn slos(thresholds: &[Threshold]) -> Vec<Slo> {
    thresholds
        .iter()
        .filter_map(|t| match (t.metric, t.op) {
            (Metric::Quantile(quantile), Op::Below | Op::AtMost) => {
                Some(Slo { quantile, latency_ms: t.limit, expr: t.expr.clone() })
            }
            _ => None,
        })
        .collect()
}

/// The policies of a scenario on its servers, in the order of results.
#[must_use]
pub fn tasks<'a>(scenario: &'a Scenario, options: &Options) -> Vec<CellTask<'a>> {
    let precision = options.precision.unwrap_or(scenario.run.precision);
    let budget =
        Budget { precision, first_wave: FIRST_WAVE, cap: scenario.run.max_requests.unwrap_or(CAP) };
    let mut tasks = Vec::new();
    for server in &scenario.servers {
        for policy in &scenario.policies {
            tasks.push(CellTask {
                scenario,
                server,
                policy,
                coords: BTreeMap::new(),
                budget,
                engine: options.engine,
                judged: true,
                distribution: true,
            });
        }
    }
    tasks
}

/// What [`run_sections`] comes to.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The Outcome.
    pub outcome: Outcome,
    /// The distributions, in the order of the cells that have one.
    pub cdfs: Vec<CdfFile>,
    /// The numbers of every cell, section by section.
    pub sections: Sections,
    /// Servers that can never answer what waits in them.
    pub stalled: Vec<Stalled>,
}

/// Every policy on every server, and the curve when the scenario asks for one; what was stopped
/// from outside is left out. The distributions come in the order of the cells that have one.
#[must_use]
pub fn run(
    scenario: &Scenario,
    options: &Options,
    control: &Control,
) -> (Outcome, Vec<CdfFile>, Vec<Stalled>) {
    let ran = run_sections(scenario, options, control);
    (ran.outcome, ran.cdfs, ran.stalled)
}

/// The same, with the numbers of every cell section by section.
#[must_use]
pub fn run_sections(scenario: &Scenario, options: &Options, control: &Control) -> Ran {
    let tasks = tasks(scenario, options);
    let done: Vec<Option<(CellDone, Vec<Series>)>> =
        tasks.par_iter().map(|task| simulate_sections(task, control)).collect();
    let mut ran = Ran {
        outcome: outcome_frame("run", scenario),
        cdfs: Vec::new(),
        sections: Sections { schema: SCHEMA, cells: Vec::new() },
        stalled: Vec::new(),
    };
    for (done, series) in done.into_iter().flatten() {
        let label = done.cell.policy.label.clone();
        ran.sections.cells.push(CellSections { label, series });
        ran.outcome.cells.push(done.cell);
        ran.cdfs.extend(done.cdf);
        ran.stalled.extend(done.stalled);
    }
    ran.outcome.curve = curve_points(scenario, options, control);
    ran
}

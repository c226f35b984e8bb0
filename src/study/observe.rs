//! One cell at one length of run: what each threshold is held against, as numbers.
//!
//! Searches over rates or settings ask this instead of an Outcome: they steer by the numbers
//! behind the verdicts, at a length that they choose themselves.

use super::cell::{Budget, Measured, simulate};
use super::control::Control;
use super::measure;
use super::run::{grows, limited};
use super::setup::Bench;
use super::verdict::{Context, evidence_of, limits_ns};
use crate::outcome::{GroupLatency, Latency};
use crate::record::{Histogram, LatencyStore, Summary};
use crate::scenario::{End, Metric, Scenario, Threshold, Warmup};
use crate::stats::{Evidence, half_width};
use crate::time::Nanos;

/// What a searching study sees of one cell.
#[derive(Clone, Debug)]
pub struct Observed {
    /// For each threshold asked about, what it is judged on; empty where the queue grows.
    pub evidence: Vec<Evidence>,
    /// For each threshold the number it names (ms, a share or a rate per second) and the
    /// half-width of its 95 % interval.
    pub values: Vec<(f64, Option<f64>)>,
    /// The latency distribution; absent where nothing completed or the queue grows.
    pub latency_ms: Option<Latency>,
    /// The latency of groups; absent without them, and where none was answered whole.
    pub group_latency_ms: Option<GroupLatency>,
    /// Requests per second completed.
    pub throughput_per_s: f64,
    /// Share of time an instance is busy.
    pub utilization: f64,
    /// Items in a batch, on average.
    pub mean_batch: f64,
    /// Numbers of all replications together, for comparing settings.
    pub pooled: Section,
    /// The same numbers of every replication, in order.
    pub sections: Vec<Section>,
    /// Measured requests.
    pub requests: u64,
    /// Start-up that was deleted from every replication.
    pub warmup: Nanos,
    /// False where the queue grows without end.
    pub stable: bool,
}

/// One replication of an observed cell, or all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Mean latency, ms.
    pub mean_ms: f64,
    /// Latency quantiles at the levels asked for, ms.
    pub quantiles_ms: Vec<f64>,
    /// Mean group latency, ms; absent without groups.
    pub group_mean_ms: Option<f64>,
    /// Quantiles of the group latency at the same levels, ms; empty without groups.
    pub group_quantiles_ms: Vec<f64>,
    /// Busy seconds of all instances per thousand completed requests.
    pub busy_s_per_1000: f64,
}

/// How long to look, and at what.
#[derive(Clone, Debug)]
pub struct Look<'a> {
    /// Thresholds to hold the cell against.
    pub thresholds: &'a [&'a Threshold],
    /// Measured requests over all replications; a recorded stream is replayed as the scenario
    /// says.
    pub requests: u64,
    /// Start-up to delete; `None` finds it with a pilot.
    pub warmup: Option<Nanos>,
    /// Quantile levels wanted of every section, increasing.
    pub quantiles: &'a [f64],
}

/// Whether the queue of a cell must grow without end: nothing limits it, and the offered rate is
/// at its capacity or above.
#[must_use]
pub fn must_grow(bench: &Bench<'_>) -> bool {
    let capacity = bench.server.cost.capacity_per_s(bench.policy.cap(), bench.server.slots());
    let offered = bench.scenario.open_rate_per_s();
    !limited(bench) && offered.zip(capacity).is_some_and(|(rate, most)| rate >= most)
}

/// Whether something (a queue limit, timeouts) keeps the queue short whatever is offered.
#[must_use]
pub fn queue_is_limited(bench: &Bench<'_>) -> bool {
    limited(bench)
}

/// Simulates a cell for a given number of requests; `None` when it was stopped from outside.
///
/// The scenario's own length does not count, except for a recorded stream.
#[must_use]
pub fn observe(bench: &Bench<'_>, look: &Look<'_>, control: &Control) -> Option<Observed> {
    let mut scenario: Scenario = bench.scenario.clone();
    if !bench.replays_trace() {
        scenario.run.requests = Some(look.requests);
        scenario.run.duration = None;
        scenario.run.end = End::Flush;
    }
    scenario.run.warmup = look.warmup.map_or(scenario.run.warmup, Warmup::Time);
    let bench = Bench { scenario: &scenario, ..*bench };
    let limits = limits_ns(&scenario.thresholds);
    let budget = Budget { precision: 1.0, first_wave: look.requests, cap: look.requests };
    let growing = must_grow(&bench);
    let measured: Measured<Histogram<10>> = simulate(&bench, &limits, &budget, growing, control)?;
    let stable = !growing && !grows(&bench, &measured);
    Some(observed(&bench, look, &limits, &measured, stable))
}

fn observed<L: LatencyStore>(
    bench: &Bench<'_>,
    look: &Look<'_>,
    limits: &[u64],
    measured: &Measured<L>,
    stable: bool,
) -> Observed {
    let classes = bench.classes();
    let instances = bench.server.slots();
    let context = Context { limits_ns: limits, classes: &classes, instances };
    let (throughput_per_s, utilization) = measure::rates(&measured.pooled, instances);
    let evidence: Vec<Evidence> =
        look.thresholds.iter().map(|t| evidence_of(t, &context, measured)).collect();
    let values =
        look.thresholds.iter().zip(&evidence).map(|(threshold, e)| match threshold.metric {
            Metric::Quantile(q) => quantile(threshold, q, &classes, measured),
            Metric::GroupQuantile(q) => group_quantile(q, measured),
            _ => (e.value, half_width(e.value, &e.sections)),
        });
    Observed {
        values: values.collect(),
        evidence,
        latency_ms: if stable { measure::latency(measured) } else { None },
        group_latency_ms: if stable { measure::groups(measured) } else { None },
        throughput_per_s,
        utilization,
        mean_batch: measure::batches(&measured.pooled).0.mean,
        sections: measured.sections.iter().map(|s| section(s, look.quantiles)).collect(),
        pooled: section(&measured.pooled, look.quantiles),
        requests: measured.pooled.offered,
        warmup: measured.warmup,
        stable,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn section<L: LatencyStore>(s: &Summary<L>, quantiles: &[f64]) -> Section {
    let completed = s.counts.completed.max(1) as f64;
    let read = |store: &L| -> Vec<f64> {
        let ns = store.quantiles(quantiles).unwrap_or_default();
        ns.into_iter().map(|ns| ns / 1e6).collect()
    };
    let groups = s.groups.as_ref().filter(|g| g.completed > 0);
    Section {
        group_mean_ms: groups.map(|g| g.latency_sum_ns as f64 / g.completed as f64 / 1e6),
        group_quantiles_ms: groups.map(|g| read(&g.latency)).unwrap_or_default(),
        mean_ms: s.latency_sum_ns as f64 / completed / 1e6,
        quantiles_ms: read(&s.latency),
        busy_s_per_1000: s.busy_all_ns as f64 / 1e9 / completed * 1e3,
    }
}

/// A latency quantile of the requests a threshold is about, ms; NaN where none completed.
fn quantile<L: LatencyStore>(
    threshold: &Threshold,
    q: f64,
    classes: &[String],
    measured: &Measured<L>,
) -> (f64, Option<f64>) {
    let class = threshold.class.as_ref().and_then(|name| classes.iter().position(|c| c == name));
    let at = |s: &Summary<L>| {
        let store = match class.and_then(|i| s.classes.get(i)) {
            Some(class) => &class.latency,
            None => &s.latency,
        };
        store.quantiles(&[q]).map(|v| v[0] / 1e6)
    };
    with_half_width(at, measured)
}

/// A quantile of the group latency, ms; NaN where no group was answered whole.
fn group_quantile<L: LatencyStore>(q: f64, measured: &Measured<L>) -> (f64, Option<f64>) {
    let at = |s: &Summary<L>| s.groups.as_ref()?.latency.quantiles(&[q]).map(|v| v[0] / 1e6);
    with_half_width(at, measured)
}

/// A number of the whole and the half-width of its interval.
fn with_half_width<L>(
    at: impl Fn(&Summary<L>) -> Option<f64>,
    measured: &Measured<L>,
) -> (f64, Option<f64>) {
    let Some(value) = at(&measured.pooled) else { return (f64::NAN, None) };
    let parts: Option<Vec<f64>> = measured.sections.iter().map(at).collect();
    (value, parts.and_then(|parts| half_width(value, &parts)))
}

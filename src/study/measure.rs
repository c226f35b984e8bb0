//! From summaries to the numbers of an Outcome.

use super::cell::{Measured, relative_half_width};
use crate::outcome::{
    Attainment, BatchSize, CdfFile, ClassRow, GroupLatency, HalfWidths, Latency, Precision,
    Requests, SizeCount,
};
use crate::policy::Reason;
use crate::record::{Counts, LatencyStore, Summary};
use crate::stats::half_width;
use std::collections::BTreeMap;

/// The quantiles an Outcome states.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// Below this many requests p99.9 is not stated at all.
const P999_NEEDS: u64 = 1_000;

fn ms(ns: f64) -> f64 {
    ns / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn mean_ms(sum_ns: u128, n: u64) -> f64 {
    if n == 0 { 0.0 } else { sum_ns as f64 / n as f64 / 1e6 }
}

/// Means and quantiles of one distribution and of its sections.
struct Distribution {
    n: u64,
    max_ns: u64,
    mean: (f64, Vec<f64>),
    quantiles: Vec<(f64, Vec<f64>)>,
}

impl Distribution {
    #[expect(clippy::cast_precision_loss, reason = "for display")]
    fn latency(&self) -> Latency {
        // Interpolation inside a bin must not pass what was seen.
        let max = self.max_ns as f64 / 1e6;
        let value = |i: usize| self.quantiles[i].0.min(max);
        let half = |(value, parts): &(f64, Vec<f64>)| half_width(*value, parts).unwrap_or(0.0);
        let p999 = self.n >= P999_NEEDS;
        let ci95 = (self.mean.1.len() > 1).then(|| HalfWidths {
            mean: half(&self.mean),
            p50: half(&self.quantiles[0]),
            p90: half(&self.quantiles[1]),
            p95: half(&self.quantiles[2]),
            p99: half(&self.quantiles[3]),
            p999: p999.then(|| half(&self.quantiles[4])),
        });
        Latency {
            mean: self.mean.0,
            p50: value(0),
            p90: value(1),
            p95: value(2),
            p99: value(3),
            p999: p999.then(|| value(4)),
            max: Some(max),
            ci95,
        }
    }
}

fn distribution<L>(
    pooled: &L,
    sections: &[&L],
    n: impl Fn(&L) -> u64,
    sum: impl Fn(&L) -> u128,
    quantiles: impl Fn(&L, &[f64]) -> Option<Vec<f64>>,
    max_ns: u64,
) -> Option<Distribution> {
    let values = quantiles(pooled, &QUANTILES)?;
    let parts: Vec<Vec<f64>> = sections.iter().filter_map(|s| quantiles(s, &QUANTILES)).collect();
    // A section without a single completion says nothing: no interval then.
    let parts = if parts.len() == sections.len() { parts } else { Vec::new() };
    let mean = |s: &L| mean_ms(sum(s), n(s));
    let means =
        if parts.is_empty() { Vec::new() } else { sections.iter().map(|s| mean(s)).collect() };
    let quantiles = values
        .iter()
        .enumerate()
        .map(|(i, v)| (ms(*v), parts.iter().map(|p| ms(p[i])).collect()))
        .collect();
    Some(Distribution { n: n(pooled), max_ns, mean: (mean(pooled), means), quantiles })
}

/// Latency of the whole cell.
pub(super) fn latency<L: LatencyStore>(measured: &Measured<L>) -> Option<Latency> {
    let sections: Vec<&Summary<L>> = measured.sections.iter().collect();
    distribution(
        &measured.pooled,
        &sections,
        |s| s.counts.completed,
        |s| s.latency_sum_ns,
        |s, qs| s.latency.quantiles(qs),
        measured.pooled.latency_max_ns,
    )
    .map(|d| d.latency())
}

/// Latency of the groups; `None` where there are none, and where none was answered whole.
pub(super) fn groups<L: LatencyStore>(measured: &Measured<L>) -> Option<GroupLatency> {
    let pooled = measured.pooled.groups.as_ref()?;
    let sections: Vec<_> = measured.sections.iter().filter_map(|s| s.groups.as_ref()).collect();
    let all = distribution(
        pooled,
        &sections,
        |g| g.completed,
        |g| g.latency_sum_ns,
        |g, qs| g.latency.quantiles(qs),
        pooled.latency_max_ns,
    )?;
    Some(GroupLatency {
        n: pooled.completed,
        incomplete: pooled.incomplete,
        latency: all.latency(),
    })
}

/// Time in the queue.
pub(super) fn queue<L: LatencyStore>(measured: &Measured<L>) -> Option<Latency> {
    let sections: Vec<&Summary<L>> = measured.sections.iter().collect();
    distribution(
        &measured.pooled,
        &sections,
        |s| s.counts.completed,
        |s| s.wait_sum_ns,
        |s, qs| s.wait.quantiles(qs),
        measured.pooled.wait_max_ns,
    )
    .map(|d| d.latency())
}

/// Rows of the classes.
pub(super) fn classes<L: LatencyStore>(measured: &Measured<L>, names: &[String]) -> Vec<ClassRow> {
    names
        .iter()
        .enumerate()
        .filter_map(|(i, name)| {
            let pooled = measured.pooled.classes.get(i)?;
            let sections: Vec<_> =
                measured.sections.iter().filter_map(|s| s.classes.get(i)).collect();
            let latency = distribution(
                pooled,
                &sections,
                |c| c.counts.completed,
                |c| c.latency_sum_ns,
                |c, qs| c.latency.quantiles(qs),
                pooled.latency_max_ns,
            );
            Some(ClassRow {
                class: name.clone(),
                requests: requests(pooled.counts.total(), &pooled.counts),
                latency_ms: latency.map(|d| d.latency()),
            })
        })
        .collect()
}

/// Counts as an Outcome states them.
pub(super) fn requests(offered: u64, counts: &Counts) -> Requests {
    Requests {
        offered,
        completed: counts.completed,
        rejected: counts.rejected,
        expired: counts.expired,
        shed: counts.shed,
        cancelled: counts.cancelled,
        unfinished: counts.unfinished,
    }
}

/// Batch sizes and reasons.
#[expect(clippy::cast_precision_loss, reason = "a mean")]
pub(super) fn batches<L>(pooled: &Summary<L>) -> (BatchSize, BTreeMap<String, u64>) {
    let mut reasons = BTreeMap::new();
    let mut histogram = Vec::new();
    let (mut batches, mut items) = (0u64, 0u64);
    for (size, by_reason) in (0u32..).zip(&pooled.batches) {
        let named: BTreeMap<String, u64> = Reason::ALL
            .iter()
            .zip(by_reason)
            .filter(|(_, n)| **n > 0)
            .map(|(reason, n)| (reason.name().to_owned(), *n))
            .collect();
        for (reason, n) in &named {
            *reasons.entry(reason.clone()).or_default() += n;
            batches += n;
            items += n * u64::from(size);
        }
        if !named.is_empty() {
            histogram.push(SizeCount { size, by_reason: named });
        }
    }
    let mean = if batches == 0 { 0.0 } else { items as f64 / batches as f64 };
    (BatchSize { mean, histogram }, reasons)
}

/// Completions per second and utilisation of `instances`.
///
/// Both are taken while arrivals last, which start and end have no part in; where most of the run
/// is the drain after the last arrival (a handful of requests, an overload), over the whole run.
#[expect(clippy::cast_precision_loss, reason = "for display")]
pub(super) fn rates<L>(s: &Summary<L>, instances: u32) -> (f64, f64) {
    let steady =
        s.done_in_window > 20 * (s.counts.completed - s.done_in_window.min(s.counts.completed));
    let (done, busy, ns) = if steady {
        (s.done_in_window, s.busy_ns, s.window_ns)
    } else {
        (s.counts.completed, s.busy_all_ns, s.whole_ns)
    };
    if ns == 0 {
        return (0.0, 0.0);
    }
    let ns = ns as f64;
    (done as f64 * 1e9 / ns, (busy as f64 / (ns * f64::from(instances))).min(1.0))
}

/// Arrivals per second as they were measured.
#[expect(clippy::cast_precision_loss, reason = "for display")]
pub(super) fn measured_rate<L>(s: &Summary<L>) -> f64 {
    if s.window_ns == 0 { 0.0 } else { s.offered as f64 * 1e9 / s.window_ns as f64 }
}

/// Share of offered requests within each limit.
#[expect(clippy::cast_precision_loss, reason = "shares")]
pub(super) fn attainment<L>(measured: &Measured<L>, limits_ms: &[f64]) -> Vec<Attainment> {
    let share = |s: &Summary<L>, i: usize| {
        if s.offered == 0 { 0.0 } else { s.within[i] as f64 / s.offered as f64 }
    };
    limits_ms
        .iter()
        .enumerate()
        .filter(|(i, _)| *i < measured.pooled.within.len())
        .map(|(i, &within_ms)| {
            let value = share(&measured.pooled, i);
            let parts: Vec<f64> = measured.sections.iter().map(|s| share(s, i)).collect();
            let ci95 = half_width(value, &parts)
                .map(|half| [(value - half).max(0.0), (value + half).min(1.0)]);
            Attainment { within_ms, share: value, ci95 }
        })
        .collect()
}

/// Precision reached on p99 against the one asked for.
pub(super) fn precision<L: LatencyStore>(measured: &Measured<L>, target: f64) -> Option<Precision> {
    if measured.sections.len() < 2 {
        return None;
    }
    let reached = relative_half_width(&measured.pooled, &measured.sections, 0.99)?;
    Some(Precision { target, reached })
}

/// Quantiles at which charts draw a distribution: every percent up to the median, from there
/// evenly in `-log10(1 - q)` down to the last hundred-thousandth.
pub(super) fn chart_quantiles() -> impl Iterator<Item = f64> {
    let body = (0..50).map(|i| f64::from(i) / 100.0);
    let deep = |i: u32| 1.0 - 0.5 * 10f64.powf(-f64::from(i) * 0.02);
    body.chain((0..235).map(deep))
}

/// Points of the distribution for a chart: dense where charts look, down to the last percentile
/// that a handful of requests support.
#[expect(clippy::cast_precision_loss, reason = "counts of requests")]
pub(super) fn cdf<L: LatencyStore>(label: &str, measured: &Measured<L>) -> Option<CdfFile> {
    let n = measured.pooled.counts.completed;
    let deepest = (1.0 - 10.0 / n as f64).clamp(0.0, 0.99999);
    let mut qs: Vec<f64> = chart_quantiles().filter(|&q| q <= deepest).collect();
    qs.push(deepest.max(0.5));
    qs.dedup_by(|a, b| *a <= *b);
    let values = measured.pooled.latency.quantiles(&qs)?;
    let parts: Vec<Vec<f64>> =
        measured.sections.iter().filter_map(|s| s.latency.quantiles(&qs)).collect();
    let half = |i: usize| {
        let parts: Vec<f64> = parts.iter().map(|p| p[i]).collect();
        half_width(values[i], &parts).map(ms)
    };
    let half_width_ms = (0..qs.len()).map(half).collect::<Option<Vec<f64>>>().unwrap_or_default();
    Some(CdfFile {
        label: label.to_owned(),
        latency_ms: values.iter().map(|v| ms(*v)).collect(),
        quantiles: qs,
        half_width_ms,
    })
}

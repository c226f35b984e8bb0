//! Rough sizes for warnings: what a batch costs, what a policy can do, how large batches get.

use super::{Scenario, Server};
use crate::arrivals::{Process, Think, ThinkKind, ThinkLaw};
use crate::cost::Cost;
use crate::time::Nanos;

/// Mean seconds of one pass over `n` items.
pub(crate) fn cost_s(cost: &Cost, n: u32) -> f64 {
    Nanos(cost.service_ns(n)).as_s()
}

/// What is offered, as far as it can be said without simulating.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Mean arrivals per second.
    pub(crate) mean_per_s: Option<f64>,
    /// Arrivals per second while it is busiest, and the largest CV of gaps; `None` for traces
    /// and groups.
    peak: Option<(f64, f64)>,
    /// Clients, if every source is a closed loop.
    pub(crate) clients: Option<u64>,
    /// Measured requests of a cell, if the scenario fixes its length.
    pub(crate) requests: Option<f64>,
}

impl Load {
    /// Of a scenario.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let mut clients = Some(0u64);
        let mut peak = Some((0.0f64, 1.0f64));
        for source in &scenario.arrivals {
            clients = match (&source.process, clients) {
                (Process::ClosedLoop(p), Some(n)) => Some(n + u64::from(p.clients)),
                _ => None,
            };
            let one = source.process.peak();
            peak = match (peak, one) {
                (Some((sum, cv)), Some((rate, own))) => Some((sum + rate, cv.max(own))),
                _ => None,
            };
        }
        let mean_per_s = scenario.total_rate_per_s();
        let run = &scenario.run;
        let traced: Option<Vec<f64>> = scenario
            .arrivals
            .iter()
            .map(|s| s.trace.as_ref().map(|t| t.arrivals.len() as f64))
            .collect();
        let requests = match (run.requests, run.duration, mean_per_s, traced) {
            (Some(n), ..) => Some(n as f64),
            (None, None, _, Some(traces)) => Some(traces.iter().sum()),
            (None, Some(time), Some(rate), None) => {
                Some(time.as_s() * rate * f64::from(run.replications))
            }
            _ => None,
        };
        Self { mean_per_s, peak, clients, requests }
    }

    /// How many requests come together while an instance waits and works, and the most that can
    /// reasonably be.
    pub(crate) fn batch(&self, server: &Server, wait: Nanos) -> Option<(f64, f64)> {
        let (rate, cv) = self.peak?;
        let rate = rate / f64::from(server.replicas);
        let mut n: f64 = 1.0;
        for _ in 0..100 {
            let busy = cost_s(&server.cost, whole(n)) / f64::from(server.instances);
            n = (rate * (wait.as_s() + busy)).min(1e6);
        }
        Some((n, n + 4.0 * cv * n.sqrt() + 1.0))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded above")]
fn whole(n: f64) -> u32 {
    n.ceil() as u32
}

/// Whether think times are random.
pub(crate) fn thinks_randomly(think: &Think) -> bool {
    matches!(think, Think::Law(ThinkLaw { kind: ThinkKind::Exponential, .. }))
}

/// A rate as people write it: `1,333/s`, `117.6/s`.
pub(crate) fn people_rate(per_s: f64) -> String {
    if per_s >= 1000.0 {
        return format!("{}/s", people_count(per_s));
    }
    format!("{}/s", short(per_s))
}

/// A count as people write it: `10,000`.
pub(crate) fn people_count(n: f64) -> String {
    let whole = format!("{n:.0}");
    let (head, tail) = whole.split_at(whole.len() % 3);
    let mut groups: Vec<&str> = Vec::new();
    if !head.is_empty() {
        groups.push(head);
    }
    groups.extend(tail.as_bytes().chunks(3).filter_map(|c| std::str::from_utf8(c).ok()));
    groups.join(",")
}

/// Milliseconds as people write them.
pub(crate) fn people_time(ms: f64) -> String {
    if ms >= 1000.0 { format!("{}s", short(ms / 1e3)) } else { format!("{}ms", short(ms)) }
}

fn short(x: f64) -> f64 {
    let scale = if x >= 100.0 { 10.0 } else { 100.0 };
    (x * scale).round() / scale
}

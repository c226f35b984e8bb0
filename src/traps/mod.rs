//! What is easily misunderstood in a server's settings, in words and with numbers.
//!
//! One file per server, and `common` for all. Each trap has a name that never changes, looks at
//! one policy on one server under one load, and is silent where the setting does what it seems to.

mod common;
mod litserve;
mod mosec;
mod torchserve;
mod triton;

use crate::cost::Cost;
use crate::policy::Policy;
use crate::scenario::{Labelled, Load, Metric, Op, Overhead, Scenario, Server};
use crate::time::Nanos;

/// Below this share of busy time instances hardly ever meet, and a pass is hardly ever waited for.
const LIGHT: f64 = 0.1;

/// A trap that a setting has walked into.
#[derive(Clone, Debug, PartialEq)]
pub struct Trap {
    /// Its name, as in `triton-preferred-caps`.
    pub id: &'static str,
    /// The key it is about.
    pub key: &'static str,
    /// What the server does with this setting.
    pub what: String,
    /// What to do instead.
    pub help: String,
    /// Other settings that avoid it, in words and as policies.
    pub ways_out: Vec<(String, Policy)>,
}

impl Trap {
    fn new(
        id: &'static str,
        key: &'static str,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { id, key, what: what.into(), help: help.into(), ways_out: Vec::new() }
    }

    fn way_out(mut self, words: impl Into<String>, policy: Policy) -> Self {
        self.ways_out.push((words.into(), policy));
        self
    }
}

/// Every trap of a policy on a server of a scenario.
#[must_use]
pub fn traps(scenario: &Scenario, server: &Server, labelled: &Labelled) -> Vec<Trap> {
    let place = Place::of(scenario, server, labelled);
    let mut found = match &labelled.policy {
        Policy::Triton(policy) => triton::traps(policy, &place),
        Policy::TorchServe(policy) => torchserve::traps(policy, &place),
        Policy::Mosec(policy) => mosec::traps(policy, &place),
        Policy::LitServe(policy) => litserve::traps(policy, &place),
        _ => Vec::new(),
    };
    found.extend(common::traps(&labelled.policy, &place));
    found
}

/// The load and the server around a policy.
#[derive(Clone, Debug)]
pub struct Place<'a> {
    /// Mean arrivals per second, where they can be said.
    pub rate_per_s: Option<f64>,
    /// Instances that share the queue.
    pub instances: u32,
    /// Cost of a pass.
    pub cost: &'a Cost,
    /// Times around a pass.
    pub overhead: &'a Overhead,
    /// Share of each shape in the load; one entry where all requests are alike.
    pub shapes: Vec<f64>,
    /// The shortest latency objective of a quantile or a share, ms, and how it is written.
    pub objective: Option<(f64, String)>,
    /// Fixed delays around the server.
    pub outside: Nanos,
    /// How many requests may come together within a wait and a pass: usual, and most.
    together: Option<(f64, f64)>,
}

impl<'a> Place<'a> {
    /// What surrounds a policy of a scenario.
    #[must_use]
    pub fn of(scenario: &Scenario, server: &'a Server, labelled: &Labelled) -> Self {
        let limit = |t: &&crate::scenario::Threshold| match (t.metric, t.op) {
            (Metric::Quantile(_), Op::Below | Op::AtMost) => Some((t.limit, t.expr.clone())),
            (Metric::Attainment(within), Op::Above | Op::AtLeast) => Some((within, t.expr.clone())),
            _ => None,
        };
        let applicable = scenario.applicable(labelled);
        let limits = applicable.iter().filter_map(limit);
        let load = Load::of(scenario);
        Self {
            rate_per_s: load.mean_per_s,
            instances: server.instances,
            cost: &server.cost,
            overhead: &server.overhead,
            shapes: shapes(scenario),
            objective: limits.min_by(|a, b| a.0.total_cmp(&b.0)),
            outside: scenario.outside(server),
            together: load.batch(server, held(&labelled.policy)),
        }
    }

    /// A pass over `n` items, ms.
    fn pass_ms(&self, n: u32) -> f64 {
        Nanos(self.cost.service_ns(n)).as_ms()
    }

    /// From the leaving of a batch of `n` requests until its instance can take the next, ms.
    fn held_ms(&self, n: u32) -> f64 {
        self.pass_ms(n) + self.overhead.between(f64::from(n)) * 1e3
    }

    /// Items per second where every batch has `n` items.
    fn capacity(&self, n: u32) -> f64 {
        f64::from(n) * f64::from(self.instances) * 1e3 / self.held_ms(n)
    }

    /// Share of time that instances would be busy with single requests, at most 1; unknown loads
    /// count as busy.
    fn busy(&self) -> f64 {
        let work = |rate: f64| rate * self.pass_ms(1) / 1e3 / f64::from(self.instances);
        self.rate_per_s.map_or(1.0, work).min(1.0)
    }
}

/// How long a policy may hold a request while an instance is idle.
fn held(policy: &Policy) -> Nanos {
    match policy {
        Policy::Triton(p) => p.delay(),
        other => other.textbook().map_or_else(|| other.max_wait(), |law| law.wait),
    }
}

/// Share of the load of each shape.
fn shapes(scenario: &Scenario) -> Vec<f64> {
    let mut found: Vec<(&Option<String>, f64)> = Vec::new();
    for source in &scenario.arrivals {
        // Where a rate is unknown the shape is there all the same.
        let rate = source.rate_per_s().unwrap_or(1.0);
        match found.iter_mut().find(|(shape, _)| *shape == &source.shape) {
            Some((_, sum)) => *sum += rate,
            None => found.push((&source.shape, rate)),
        }
    }
    let all: f64 = found.iter().map(|(_, rate)| rate).sum();
    found.into_iter().map(|(_, rate)| rate / all).collect()
}

/// A wait below this share of a pass hardly shows.
const SHORT: f64 = 0.25;

/// Whether a wait that begins anew with every batch shows: it is not short beside a pass, batches
/// hold more than one, and the queue is not so long that they are full at once.
fn restarts(wait: Nanos, cap: u32, place: &Place<'_>) -> bool {
    let saturated = place.rate_per_s.is_some_and(|rate| rate >= place.capacity(cap));
    cap > 1 && wait.as_ms() >= SHORT * place.pass_ms(1) && !saturated
}

/// What all workers that compete for requests have in common.
fn compete(place: &Place<'_>, cap: u32) -> Option<String> {
    let light = place.busy() < LIGHT;
    (place.instances > 1 && cap > 1 && !light).then(|| {
        format!(
            "{} workers compete for every request: while several are idle they share a burst, and \
             each fills its own batch of up to {cap}",
            place.instances
        )
    })
}

/// Milliseconds as people write them.
fn ms(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} ms")
}

/// A list as it stands in a file.
fn list(sizes: &[u32]) -> String {
    let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
    format!("[{}]", sizes.join(", "))
}

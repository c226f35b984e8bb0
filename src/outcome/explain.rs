//! What `explain` answers: where the latency of the slowest requests comes from, and why.

use super::{PolicyInfo, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer for one policy on one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// Version of the schema, 1.
    pub schema: u32,
    /// What made this result.
    pub tool: Tool,
    /// Always `explain`.
    pub study: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// The policy.
    pub policy: PolicyInfo,
    /// Offered arrivals per second; absent for closed loops and traces without a rate.
    pub rate_per_s: Option<f64>,
    /// Throughput of this policy with a queue that never empties; absent without a limit.
    pub capacity_per_s: Option<f64>,
    /// Whether the queue settles; else latencies grow with the length of the run.
    pub stable: bool,
    /// Requests of the run, start-up left out.
    pub requests: ExplainedRequests,
    /// The quantile that was asked about, 0.99 for p99.
    pub quantile: f64,
    /// Its latency, ms.
    pub latency_ms: f64,
    /// The requests at this latency and above.
    pub above: BlameRow,
    /// All completed requests.
    pub all: BlameRow,
    /// Why batches left, most batches first.
    pub reasons: Vec<ReasonRow>,
    /// The slowest requests that have no moment in common, slowest first.
    pub bursts: Vec<Burst>,
    /// What is easily misunderstood in this setting.
    pub traps: Vec<TrapNote>,
}

/// What became of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedRequests {
    /// Arrived after the start-up.
    pub offered: u64,
    /// Answered.
    pub completed: u64,
    /// Refused at the door.
    pub rejected: u64,
    /// Refused because they had waited too long.
    pub expired: u64,
    /// Lost in another way, or still in the server when time was cut.
    pub other: u64,
}

/// Where time goes. The parts of a request add up to its latency, to the nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Blame {
    /// It waited while an instance was idle: the rule held it.
    pub forming: f64,
    /// It waited in the queue while all instances were busy.
    pub queue: f64,
    /// The same, after a batch had left with room for it and without it.
    pub passed_over: f64,
    /// It waited in a batch that was formed already, while all instances were busy.
    pub formed: f64,
    /// Its pass, as long as it would have taken alone.
    pub service: f64,
    /// What its pass took longer because of the others in the batch.
    pub others: f64,
    /// What its pass took longer because it was padded to a larger size.
    pub padding: f64,
    /// Ways to and from the server, dispatch, and answers held back to keep an order.
    pub overhead: f64,
}

/// Where the time of a group of requests goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlameRow {
    /// How many they are.
    pub requests: u64,
    /// Their mean latency, ms.
    pub latency_ms: f64,
    /// Mean time of each part, ms.
    pub mean_ms: Blame,
    /// Share of each part in all of their latency; they add up to 1.
    pub share: Blame,
}

/// The batches that left for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReasonRow {
    /// The reason.
    pub reason: String,
    /// Batches.
    pub batches: u64,
    /// Share of all batches.
    pub share: f64,
    /// Items in them, on average.
    pub mean_size: f64,
    /// How long the oldest request in them had been in the server, on average, ms.
    pub oldest_ms: f64,
}

/// One of the slowest requests and what happened around it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Burst {
    /// Its latency, ms.
    pub latency_ms: f64,
    /// Its arrival at the server, seconds since the start of the run.
    pub arrival_s: f64,
    /// Where its time went, ms.
    pub blame_ms: Blame,
    /// The batches from the one that ran when it arrived to its own.
    pub batches: Vec<BurstBatch>,
}

/// A batch around a slow request; times are milliseconds after its arrival.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstBatch {
    /// When it left.
    pub at_ms: f64,
    /// When its pass was over.
    pub done_ms: f64,
    /// The instance, from 0.
    pub instance: u32,
    /// Items in it.
    pub size: u32,
    /// Why it left.
    pub reason: String,
    /// Requests that arrived since the batch before it in this list left.
    pub arrived: u64,
    /// Requests left waiting, in the queue or in formed batches.
    pub waiting: u64,
    /// Whether the slow request is in it.
    pub own: bool,
}

/// Something in a setting that is easily misunderstood.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrapNote {
    /// Its name, which never changes.
    pub id: String,
    /// The key it is about.
    pub key: String,
    /// What the server does with this setting.
    pub what: String,
    /// What to do instead.
    pub help: String,
    /// The same load with other settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Trial>,
}

/// What another setting comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// What is different.
    pub change: String,
    /// Median latency, ms; absent where nothing completed.
    pub p50_ms: Option<f64>,
    /// 99th percentile, ms.
    pub p99_ms: Option<f64>,
    /// Items in a batch, on average.
    pub mean_batch: f64,
}

impl Blame {
    /// The parts with their names, in the order of a request's way.
    #[must_use]
    pub const fn parts(&self) -> [(&'static str, f64); 8] {
        [
            ("forming", self.forming),
            ("queue", self.queue),
            ("passed over", self.passed_over),
            ("in a formed batch", self.formed),
            ("service alone", self.service),
            ("other items", self.others),
            ("padding", self.padding),
            ("overhead", self.overhead),
        ]
    }
}

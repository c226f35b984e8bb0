//! The Outcome: one versioned struct whose JSON is the public result of every study.
//!
//! Charts, tables and reports read this and the side files it names, nothing else, so an old
//! result can always be drawn again. It is a pure function of scenario, seed and build; what
//! depends on the machine or the clock goes to `run-info.json` instead.

pub mod capacity;
mod compare;
mod explain;
mod guard;
mod validate;

pub use compare::{CellComparison, Comparison, LimitCheck, Side};
pub use explain::{
    Blame, BlameRow, Burst, BurstBatch, ExplainedRequests, Explanation, ReasonRow, TrapNote, Trial,
};
pub use guard::{
    Against, Baseline, Better, Cause, CellCheck, CellSections, Change, Check, ExactCheck, Finding,
    KeyChange, RecordedCell, ScenarioCheck, Sections, Series, Shift, Spot, StandardError,
    ThresholdCheck,
};
pub mod tune;
pub use validate::{
    Distance, Errors, FitStep, FittedOverheads, FourMs, LoadNumbers, LoadPoint, LoadValidation,
    Observation, OverheadMs, RecordingInfo, SizeShare, Tolerance, Validation,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of this schema.
pub const SCHEMA: u32 = 1;

/// The result of `run`, `sweep` or `exact`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Version of the schema, 1.
    pub schema: u32,
    /// What made this result.
    pub tool: Tool,
    /// Which study: `run`, `sweep` or `exact`.
    pub study: String,
    /// The scenario as it was understood, with every default filled in; it can be run again.
    pub scenario: serde_json::Value,
    /// Seed of all random streams.
    pub seed: u64,
    /// Name of the generator, fixed for this schema version.
    pub rng: String,
    /// Latency objectives found in the thresholds, for drawing.
    pub slos: Vec<Slo>,
    /// The axes of a sweep, in order; empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<AxisValues>,
    /// One entry per policy and point of the sweep, in index order.
    pub cells: Vec<Cell>,
    /// Points of the throughput–latency curve, when one was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<Cell>,
    /// What a reader should know about the whole result.
    pub warnings: Vec<String>,
}

/// The program that made a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Always `batchsim`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The commit it was built from, `unknown` outside a checkout.
    pub commit: String,
}

/// A latency objective: share `quantile` of the requests within `latency_ms`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slo {
    /// The quantile, 0.99 for p99.
    pub quantile: f64,
    /// The limit in milliseconds.
    pub latency_ms: f64,
    /// The threshold it comes from, as written.
    pub expr: String,
}

/// The values of one sweep axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AxisValues {
    /// The path that varies, as in `dynamic.max_wait`.
    pub path: String,
    /// Its values, as written with units.
    pub values: Vec<String>,
    /// The same values as numbers, for axes of charts (ms, /s, or as they are).
    pub numbers: Vec<f64>,
    /// Unit of `numbers`: `ms`, `/s` or empty.
    pub unit: String,
}

/// One policy at one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Where in the sweep: path to value, empty for a plain run.
    pub coords: BTreeMap<String, String>,
    /// The policy of this cell.
    pub policy: PolicyInfo,
    /// How the numbers were obtained.
    pub method: Method,
    /// Independent replications behind the intervals; 1 means there are no intervals.
    pub replications: u32,
    /// Counts of measured requests over all replications; they add up.
    pub requests: Requests,
    /// Offered arrivals per second (measured for closed loops and traces).
    pub rate_per_s: f64,
    /// Throughput of this policy with a queue that never empties; absent when it has no limit.
    pub capacity_per_s: Option<f64>,
    /// Offered rate ÷ capacity.
    pub load: Option<f64>,
    /// Whether the queue settles; latencies of an unstable cell are absent.
    pub stable: bool,
    /// Completions per second.
    pub throughput_per_s: f64,
    /// Fraction of time an instance is busy.
    pub utilization: f64,
    /// Completion minus arrival; absent when overloaded or nothing completed.
    pub latency_ms: Option<Latency>,
    /// Of a fan-out, the largest latency among the requests of a group; absent without groups,
    /// when overloaded, and where no group was answered whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_latency_ms: Option<GroupLatency>,
    /// Start of service minus arrival.
    pub queue_ms: Option<Latency>,
    /// Sizes of batches.
    pub batch_size: BatchSize,
    /// Batches by the reason they left.
    pub dispatch_reasons: BTreeMap<String, u64>,
    /// Share of offered requests completed within each objective.
    pub attainment: Vec<Attainment>,
    /// Relative precision asked for and reached on p99; absent when there are no intervals.
    pub precision: Option<Precision>,
    /// Warm-up deleted at the start of every replication, in milliseconds.
    pub warmup_ms: f64,
    /// One row per class, when the scenario names classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassRow>,
    /// What a reader should know about this cell.
    pub warnings: Vec<String>,
    /// Judged thresholds.
    pub verdicts: Vec<Verdict>,
    /// Side file with the points of the latency distribution, relative to the Outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cdf_file: Option<String>,
}

/// The policy of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyInfo {
    /// Its kind.
    pub kind: String,
    /// How the scenario calls it; with several servers, `label@server`.
    pub label: String,
    /// Release of the server it mirrors; absent for textbook rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Its parameters.
    pub params: serde_json::Value,
}

/// How the numbers of a cell were obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The event engine.
    Simulation,
    /// The closed recurrence, equal to the event engine.
    Recurrence,
    /// The exact solution.
    Exact,
    /// One replay of recorded arrivals; there are no intervals.
    Trace,
}

/// Counts of requests; `offered` is the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Requests {
    /// Arrived in the measured part.
    pub offered: u64,
    /// Answered.
    pub completed: u64,
    /// Refused at the door.
    pub rejected: u64,
    /// Found expired when taken from the queue.
    pub expired: u64,
    /// Given up by the policy.
    pub shed: u64,
    /// Taken back by the client.
    pub cancelled: u64,
    /// Still in the server at the end.
    pub unfinished: u64,
}

/// A latency distribution in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile; absent below 1,000 requests.
    pub p999: Option<f64>,
    /// Largest seen; absent for an exact solution.
    pub max: Option<f64>,
    /// Half-widths of the two-sided 95 % intervals; absent for one replay.
    pub ci95: Option<HalfWidths>,
}

/// Latencies of groups in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupLatency {
    /// Groups all of whose requests were answered; the latencies are theirs.
    pub n: u64,
    /// Groups some of whose requests were not.
    pub incomplete: u64,
    /// The distribution.
    #[serde(flatten)]
    pub latency: Latency,
}

/// Half-widths of two-sided 95 % intervals in milliseconds; zero for an exact solution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HalfWidths {
    /// Of the mean.
    pub mean: f64,
    /// Of the median.
    pub p50: f64,
    /// Of the 90th percentile.
    pub p90: f64,
    /// Of the 95th percentile.
    pub p95: f64,
    /// Of the 99th percentile.
    pub p99: f64,
    /// Of the 99.9th percentile.
    pub p999: Option<f64>,
}

/// Batch sizes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BatchSize {
    /// Mean over batches.
    pub mean: f64,
    /// Batches of each size by reason, increasing size; sizes that never occurred are left out.
    pub histogram: Vec<SizeCount>,
}

/// How many batches of one size left for which reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeCount {
    /// Batch size.
    pub size: u32,
    /// Batches by reason; for an exact solution, the share of batches in millionths.
    pub by_reason: BTreeMap<String, u64>,
}

/// Share of offered requests completed within a limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attainment {
    /// The limit in milliseconds.
    pub within_ms: f64,
    /// The share.
    pub share: f64,
    /// Two-sided 95 % interval; absent for one replay.
    pub ci95: Option<[f64; 2]>,
}

/// Relative half-width of the interval of p99.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Precision {
    /// Asked for.
    pub target: f64,
    /// Reached.
    pub reached: f64,
}

/// One class of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassRow {
    /// Its label.
    pub class: String,
    /// Its counts.
    pub requests: Requests,
    /// Its latency.
    pub latency_ms: Option<Latency>,
}

/// What a threshold came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// Met; the interval clears the limit.
    Pass,
    /// Missed; the interval clears the limit.
    Fail,
    /// The interval straddles the limit.
    Inconclusive,
}

/// A judged threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The threshold as written.
    pub expr: String,
    /// What it came to.
    pub judgement: Judgement,
    /// The number behind it, in words with its interval.
    pub evidence: String,
}

/// Points of one latency distribution, a side file of the Outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CdfFile {
    /// Label of the policy.
    pub label: String,
    /// Quantiles, increasing, from 0 to 0.99999 at the most.
    pub quantiles: Vec<f64>,
    /// Latency at each quantile, in milliseconds.
    pub latency_ms: Vec<f64>,
    /// Half-width of its 95 % interval; empty for one replay and exact solutions.
    pub half_width_ms: Vec<f64>,
}

//! The result of `tune`: the best settings, and what that rests on.

use super::capacity::Closest;
use super::{Latency, Method, PolicyInfo, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of `tune`. Like every Outcome a pure function of scenario, seed and build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneOutcome {
    /// Version of the schema, 1.
    pub schema: u32,
    /// What made this result.
    pub tool: Tool,
    /// Always `tune`.
    pub study: String,
    /// The scenario as it was understood; it can be run again.
    pub scenario: serde_json::Value,
    /// Seed of all random streams of the search.
    pub seed: u64,
    /// Name of the generator.
    pub rng: String,
    /// What was sought, as in `max rate`.
    pub objective: String,
    /// What it measures, as in `highest rate`.
    pub measure: String,
    /// Unit of its values.
    pub unit: String,
    /// Whether larger values are better.
    pub maximise: bool,
    /// Settings within this share of the best count as equal to it.
    pub indifference: f64,
    /// Paths that varied, in order.
    pub over: Vec<String>,
    /// Every setting, in index order.
    pub settings: Vec<TunedSetting>,
    /// Number of the setting with the best value, taken at face value.
    pub best: Option<usize>,
    /// Numbers of the settings within the indifference zone of the best or not to be told from
    /// it, the simplest first.
    pub ties: Vec<usize>,
    /// Number of the recommended setting: the simplest of the ties.
    pub recommended: Option<usize>,
    /// What is claimed of `ties`, in words.
    pub guarantee: String,
    /// What waiting is worth here.
    pub waiting: Option<Waiting>,
    /// The recommended setting, simulated afresh.
    pub certificate: Option<Certificate>,
    /// What a little more or less of each knob does to the recommended setting.
    pub marginal: Vec<Change>,
    /// What ±10 % in the conditions does to it.
    pub sensitivity: Vec<Change>,
    /// The setting in the words of servers.
    pub snippets: Vec<Snippet>,
    /// The common advice, where it was asked for.
    pub ladder: Option<Ladder>,
    /// Where nothing is feasible: what came closest.
    pub closest: Option<Closest>,
    /// Number of the setting that came closest.
    pub closest_setting: Option<usize>,
    /// Requests simulated to compare the settings; 0 where all were solved exactly.
    pub search_requests: u64,
    /// Requests simulated in all: the search, the certificate, the changes, the ladder.
    pub requests: u64,
    /// What a reader should know.
    pub warnings: Vec<String>,
}

/// How a setting fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// Within the indifference zone of the best, or not to be told from it.
    Tied,
    /// Worse.
    Worse,
    /// Its capacity alone rules it out; it was not examined.
    Pruned,
    /// A threshold is missed.
    Infeasible,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TunedSetting {
    /// Path to value.
    pub coords: BTreeMap<String, String>,
    /// The policy.
    pub policy: PolicyInfo,
    /// Instances of its server.
    pub instances: u32,
    /// Throughput with a queue that never empties; absent where there is no limit.
    pub capacity_per_s: Option<f64>,
    /// How it was examined; absent where it was not.
    pub method: Option<Method>,
    /// How it fared.
    pub fate: Fate,
    /// Its value of the objective; absent where it has none.
    pub value: Option<f64>,
    /// Two-sided 95 % interval of `value`; absent for exact solutions and one replay.
    pub ci95: Option<[f64; 2]>,
    /// The threshold that binds or is missed, as written.
    pub binds: Option<String>,
    /// Whether an interval still straddles a limit.
    pub open: bool,
    /// Requests simulated for it.
    pub requests: u64,
}

/// What waiting is worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    /// Number of the best setting that never waits.
    pub without: usize,
    /// Number of the best setting that does.
    pub with: usize,
    /// Improvement of the value by waiting, as a share; negative where waiting costs.
    pub gain: f64,
    /// Whether that is more than the indifference zone.
    pub pays: bool,
    /// Latency of the best setting that never waits, at the offered load, p99 in ms.
    pub p99_without_ms: Option<f64>,
    /// The same of the best setting that waits.
    pub p99_with_ms: Option<f64>,
}

/// The recommended setting, simulated with fresh random streams as `tuned.toml` does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Certificate {
    /// Its load, arrivals per second.
    pub rate_per_s: Option<f64>,
    /// Whether that load is the highest that was found rather than the one offered.
    pub at_highest_rate: bool,
    /// Seed of these random streams.
    pub seed: u64,
    /// Measured requests.
    pub requests: u64,
    /// Independent replications; 1 means there are no intervals.
    pub replications: u32,
    /// Latency.
    pub latency_ms: Option<Latency>,
    /// The exact p99, where there is an exact solution.
    pub exact_p99_ms: Option<f64>,
    /// Share of offered requests that miss each latency limit.
    pub violations: Vec<Violation>,
    /// Fraction of time an instance is busy.
    pub utilization: f64,
    /// Items in a batch, on average.
    pub mean_batch: f64,
}

/// Requests that miss a latency limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Violation {
    /// The threshold, as written.
    pub expr: String,
    /// Share of the offered requests.
    pub share: f64,
    /// Two-sided 95 % interval; absent for one replay.
    pub ci95: Option<[f64; 2]>,
    /// Share that the threshold allows.
    pub allowed: f64,
}

/// The recommended setting with something changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What was changed, as in `max_wait + 1ms`.
    pub what: String,
    /// Value of the objective; absent where a threshold is missed at every rate.
    pub value: Option<f64>,
    /// Two-sided 95 % interval; absent for exact solutions.
    pub ci95: Option<[f64; 2]>,
    /// `value` ÷ the unchanged one − 1.
    pub relative: Option<f64>,
    /// p99 at the offered load, ms; absent where the queue grows.
    pub p99_ms: Option<f64>,
    /// Whether all thresholds hold (for the highest rate: at some rate), at face value.
    pub holds: bool,
    /// How it was examined.
    pub method: Method,
}

/// A fragment of a server's own configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snippet {
    /// The server and the file, as in `Triton, config.pbtxt`.
    pub server: String,
    /// The fragment.
    pub text: String,
    /// What it does not say.
    pub note: String,
}

/// The common advice, followed step by step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ladder {
    /// Its steps, in order.
    pub rungs: Vec<Rung>,
    /// Number of the step it ends on; absent where no step meets the thresholds.
    pub chosen: Option<usize>,
    /// Why it ended, in words.
    pub ended: String,
    /// Value of the objective at the step it ends on; absent where it has none.
    pub value: Option<f64>,
    /// How much worse that is than the best, as a share of it.
    pub worse: Option<f64>,
}

/// One step of the ladder, at the offered load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rung {
    /// Path to value.
    pub coords: BTreeMap<String, String>,
    /// Completions per second.
    pub throughput_per_s: f64,
    /// p99, ms; absent where the queue grows.
    pub p99_ms: Option<f64>,
    /// Whether the thresholds hold.
    pub holds: bool,
}

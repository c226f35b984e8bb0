//! The result of `capacity`: how much a setting can take, or how many instances a load needs.

use super::{Latency, Method, PolicyInfo, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of `capacity`. Like every Outcome a pure function of scenario, seed and build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityOutcome {
    /// Version of the schema, 1.
    pub schema: u32,
    /// What made this result.
    pub tool: Tool,
    /// Always `capacity`.
    pub study: String,
    /// The scenario as it was understood; it can be run again.
    pub scenario: serde_json::Value,
    /// Seed of all random streams.
    pub seed: u64,
    /// Name of the generator.
    pub rng: String,
    /// One entry per server and policy, and per point of the sweep where that was asked for.
    pub cells: Vec<CapacityCell>,
    /// What a reader should know about the whole result.
    pub warnings: Vec<String>,
}

/// What one policy on one server can take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityCell {
    /// Where in the sweep: path to value, empty without one.
    pub coords: BTreeMap<String, String>,
    /// The policy.
    pub policy: PolicyInfo,
    /// How the numbers were obtained.
    pub method: Method,
    /// The thresholds that had to hold, as written.
    pub thresholds: Vec<String>,
    /// Instances of the server.
    pub instances: u32,
    /// Arrivals per second that the scenario offers; absent for closed loops.
    pub offered_per_s: Option<f64>,
    /// Throughput with a queue that never empties; absent where there is no limit.
    pub capacity_per_s: Option<f64>,
    /// Whether all thresholds hold at some examined rate; absent where rates were not examined.
    pub feasible: Option<bool>,
    /// Highest rate at which all thresholds hold.
    pub max_rate_per_s: Option<f64>,
    /// `max_rate_per_s` ÷ `offered_per_s` − 1.
    pub headroom: Option<f64>,
    /// For recorded arrivals: how much faster than recorded they can be replayed.
    pub max_speed_factor: Option<f64>,
    /// Stretches of rates in which all thresholds hold, the highest first; usually one.
    pub windows: Vec<RateWindow>,
    /// Lowest and highest rate that were examined.
    pub examined_per_s: Option<[f64; 2]>,
    /// Latency at the highest rate, or at the best one where nothing is feasible.
    pub latency_ms: Option<Latency>,
    /// What came closest, where nothing is feasible.
    pub best: Option<Closest>,
    /// Fewest instances for a load, where they were asked for.
    pub fewest: Option<Fewest>,
    /// Requests simulated for this entry; 0 for an exact solution.
    pub requests: u64,
    /// What a reader should know about this entry.
    pub warnings: Vec<String>,
}

/// A stretch of rates in which all thresholds hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateWindow {
    /// Its lower end; absent where they hold at every lower rate that was examined.
    pub low: Option<RateEnd>,
    /// Its upper end.
    pub high: RateEnd,
}

/// An end of a stretch of rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateEnd {
    /// The rate, arrivals per second.
    pub rate_per_s: f64,
    /// Two-sided 95 % interval; absent for exact solutions and for one replay.
    pub ci95: Option<[f64; 2]>,
    /// Rate ÷ capacity.
    pub load: Option<f64>,
    /// The threshold that stops holding here, as written; `capacity` where the queue would grow
    /// without end first, `search` where it still holds at the highest rate examined.
    pub binds: String,
}

/// What came closest to being feasible.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Closest {
    /// The rate, arrivals per second.
    pub rate_per_s: f64,
    /// The threshold that is missed there by most, as written.
    pub binds: String,
    /// What it names, at its best over all examined rates: ms, a share, or a rate per second.
    pub value: f64,
    /// Half-width of the 95 % interval of `value`; absent for exact solutions and one replay.
    pub ci95: Option<f64>,
    /// Its limit, in the same unit.
    pub limit: f64,
    /// Unit of both: `ms`, `/s` or empty for a share.
    pub unit: String,
}

/// How many instances a load needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fewest {
    /// The load, arrivals per second (measured for recorded arrivals); absent for closed loops.
    pub rate_per_s: Option<f64>,
    /// Fewest instances that hold all thresholds; absent where no number of them does.
    pub instances: Option<u32>,
    /// False where the interval of a threshold still straddles its limit at the answer or one
    /// instance below.
    pub certain: bool,
    /// Numbers of instances that were examined, with what they came to, increasing.
    pub examined: Vec<Staffed>,
}

/// What a number of instances came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Staffed {
    /// The number.
    pub instances: u32,
    /// How it was examined.
    pub method: Method,
    /// Whether all thresholds hold, at face value.
    pub holds: bool,
    /// Whether the intervals clear the limits.
    pub certain: bool,
    /// The threshold with the least margin, as written; `capacity` where the queue would grow.
    pub binds: String,
    /// What that threshold names: ms, a share, or a rate per second; absent where the queue grows.
    pub value: Option<f64>,
    /// Half-width of its 95 % interval; absent for exact solutions and one replay.
    pub ci95: Option<f64>,
    /// Load per instance, offered rate ÷ capacity.
    pub load: Option<f64>,
    /// Requests simulated.
    pub requests: u64,
}

impl CapacityCell {
    /// The topmost feasible stretch of rates.
    #[must_use]
    pub fn window(&self) -> Option<&RateWindow> {
        self.windows.first()
    }
}

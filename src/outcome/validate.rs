//! What `validate` finds: a recorded run beside what a policy and the textbook rule do with it.

use super::{PolicyInfo, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A recording held against a prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validation {
    /// Version of this structure: 1.
    pub schema: u32,
    /// The program that made it.
    pub tool: Tool,
    /// Always `validate`.
    pub study: String,
    /// What was recorded.
    pub recording: RecordingInfo,
    /// The policy that predicts.
    pub policy: PolicyInfo,
    /// The textbook rule beside it: size or oldest age, formed when an instance is free.
    pub textbook_policy: PolicyInfo,
    /// What the server adds to every request and batch, in both predictions.
    pub overhead_ms: OverheadMs,
    /// The recorded run.
    pub measured: Observation,
    /// What the policy does with the same requests.
    pub predicted: Observation,
    /// What the textbook rule does with them.
    pub textbook: Observation,
    /// Predicted against measured: (predicted − measured) / measured.
    pub relative_error: Errors,
    /// The same for the textbook rule.
    pub textbook_relative_error: Errors,
    /// How far the distributions of the prediction are from the recorded ones.
    pub distance: Distance,
    /// The same for the textbook rule.
    pub textbook_distance: Distance,
    /// How large errors of the prediction may be: the same scale as `relative_error`.
    pub tolerance: Tolerance,
    /// Numbers of the prediction outside their tolerance: `mean_batch`, `p50`, `p90`, `p99`,
    /// `accepted`.
    pub misses: Vec<String>,
}

/// What was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingInfo {
    /// Its name.
    pub name: String,
    /// The format it was read as.
    pub format: String,
    /// The server, where the recording says.
    pub server: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// What the recording is about.
    pub description: Option<String>,
    /// Requests that were sent.
    pub requests: u64,
    /// From the first request to the last, s.
    pub span_s: f64,
}

/// Overheads of a server, ms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverheadMs {
    /// From sending to joining the queue.
    pub inbound: f64,
    /// From a batch's leaving to the start of its pass.
    pub dispatch: f64,
    /// From the end of a pass until its instance takes the next batch.
    pub release: f64,
    /// The same for each request of the batch that ended.
    pub release_per_request: f64,
    /// From the end of a pass to the answer at the client.
    pub response: f64,
    /// Where the numbers come from.
    pub source: String,
}

/// One column of the comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// Latency of answered requests; `null` where none was answered.
    pub latency_ms: Option<FourMs>,
    /// Items in a batch, on average; `null` where the recording has no batches.
    pub mean_batch: Option<f64>,
    /// Requests that were answered.
    pub accepted: u64,
    /// Batches by size; empty where the recording has no batches.
    pub batch_sizes: Vec<SizeShare>,
    /// Latency at the 200 levels (i + ½) / 200, ms; empty where none was answered.
    pub quantiles_ms: Vec<f64>,
}

/// Mean and three quantiles of a latency, ms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FourMs {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90 % quantile.
    pub p90: f64,
    /// 99 % quantile.
    pub p99: f64,
}

/// How many batches have a size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeShare {
    /// Items.
    pub size: u32,
    /// Batches.
    pub batches: u64,
    /// Their share of all batches.
    pub share: f64,
}

/// Relative errors; `null` where one side has no such number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Errors {
    /// Of the latency.
    pub latency_ms: Option<FourMs>,
    /// Of the mean batch size.
    pub mean_batch: Option<f64>,
    /// Of the number of answered requests.
    pub accepted: f64,
}

/// Distances between distributions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distance {
    /// Mean absolute difference of the latency over 200 quantiles, ms.
    pub quantile_ms: Option<f64>,
    /// Total variation between the laws of the batch size, 0 to 1.
    pub batch_tv: Option<f64>,
}

/// How large relative errors may be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tolerance {
    /// Of the mean batch size.
    pub mean_batch: f64,
    /// Of the median latency.
    pub p50: f64,
    /// Of the 90 % quantile.
    pub p90: f64,
    /// Of the 99 % quantile.
    pub p99: f64,
    /// Of the number of answered requests.
    pub accepted: f64,
}

/// Measured aggregates held against predictions, load by load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadValidation {
    /// Version of this structure: 1.
    pub schema: u32,
    /// The program that made it.
    pub tool: Tool,
    /// Always `validate-loads`.
    pub study: String,
    /// Name of the measurement.
    pub name: String,
    /// The policy that predicts.
    pub policy: PolicyInfo,
    /// The textbook rule beside it.
    pub textbook_policy: PolicyInfo,
    /// What the server adds to every request and batch.
    pub overhead_ms: OverheadMs,
    /// One entry per load.
    pub points: Vec<LoadPoint>,
}

/// One load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPoint {
    /// The load in words: `100/s`, or `8 at a time`.
    pub load: String,
    /// Measured.
    pub measured: LoadNumbers,
    /// Predicted by the policy.
    pub predicted: LoadNumbers,
    /// Predicted by the textbook rule.
    pub textbook: LoadNumbers,
}

/// Numbers of one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadNumbers {
    /// Answers per second.
    pub throughput_per_s: f64,
    /// Latency at each measured quantile, ms, by name (`p99`), and `mean` where it was measured.
    pub latency_ms: std::collections::BTreeMap<String, f64>,
}

/// Overheads fitted to recordings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FittedOverheads {
    /// The server.
    pub server: String,
    /// The way through it that the busy recording took.
    pub path: String,
    /// What was fitted.
    pub overhead_ms: OverheadMs,
    /// How each number came about.
    pub steps: Vec<FitStep>,
}

/// How one overhead was fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FitStep {
    /// The overhead.
    pub name: String,
    /// Its value, ms.
    pub ms: f64,
    /// The recording it was fitted on; `null` where it is a convention.
    pub recording: Option<String>,
    /// Observations behind it.
    pub samples: u64,
    /// What was taken of them.
    pub method: String,
}

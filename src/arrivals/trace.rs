//! `trace`: recorded arrivals, replayed as they are or with time stretched or squeezed.

use crate::tagged::{BadParam, params};
use crate::time::Nanos;

/// How a trace is made faster or slower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "schema",
    derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum TimeScaleMode {
    /// Divide every gap by the factor: the CV stays, bursts become shorter.
    #[default]
    Time,
}

params! {
    /// A change of a trace's rate.
    pub struct TimeScale {
        /// How: `time` divides every gap.
        #[cfg_attr(feature = "schema", serde(default))]
        pub mode: TimeScaleMode,
        /// How many times faster; 5 turns 10 requests a second into 50.
        pub factor: f64,
    }
}

params! {
    /// Parameters of `trace`.
    pub struct Replay {
        /// The trace, relative to the scenario file.
        pub file: String,
        /// Its format: azure-llm-2023, csv, jsonl; recognised from the header when left out.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub format: Option<String>,
        /// For csv and jsonl: which column (key) is what, and in which unit.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub columns: Option<Columns>,
        /// Replay faster or slower (default: as recorded).
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub scale: Option<TimeScale>,
    }
}

params! {
    /// Column names of a generic trace.
    pub struct Columns {
        /// The column of arrival times.
        pub arrival: String,
        /// Unit of numeric arrival times: ns, us, ms or s; date-times need none.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub unit: Option<String>,
        /// The column of input lengths (tokens).
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub input_length: Option<String>,
        /// The column of output lengths (tokens).
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub output_length: Option<String>,
    }
}

impl Replay {
    /// How many times faster than recorded.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.scale.as_ref().map_or(1.0, |s| s.factor)
    }

    pub(super) fn check(&self) -> Result<(), BadParam> {
        let factor = self.factor();
        if factor.is_finite() && factor > 0.0 {
            return Ok(());
        }
        Err(BadParam::new(
            "scale",
            format!("a trace is scaled by a positive factor, not {factor}"),
            "write how many times faster to replay, as in { factor = 5 }",
        ))
    }
}

/// A recorded stream of arrivals, sorted, the first at zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Arrival times since the first arrival.
    pub arrivals: Vec<Nanos>,
    /// Input length of each request in tokens; empty when the trace has none.
    pub input_lengths: Vec<u32>,
    /// Output length of each request in tokens; empty when the trace has none.
    pub output_lengths: Vec<u32>,
}

//! `trace`: recorded arrivals, replayed as they are or with time stretched or squeezed.

use super::Stream;
use crate::tagged::{BadParam, params};
use crate::time::Nanos;
use std::sync::Arc;

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
    #[derive(Default)]
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
        /// The column of items that a request carries.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub items: Option<String>,
        /// The column of priority levels: 1 is the highest, 0 leaves it to the server.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub priority: Option<String>,
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

/// What a recorded request says of itself besides its time and lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Items it carries.
    pub items: u32,
    /// Priority level it asks for; 0 leaves it to the server.
    pub priority: u32,
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
    /// Different marks of its requests; empty when the trace has no such columns.
    pub mark_table: Vec<Mark>,
    /// The mark of each request, a place in that table; empty when the trace has none.
    pub marks: Vec<u8>,
}

impl Trace {
    /// Arrivals per second over the trace: gaps per span; 0 for fewer than two arrivals.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of requests")]
    pub fn rate_per_s(&self) -> f64 {
        match self.arrivals.last() {
            Some(last) if *last > Nanos::ZERO => (self.arrivals.len() - 1) as f64 / last.as_s(),
            _ => 0.0,
        }
    }
}

impl Trace {
    /// A number that tells one recording from another (FNV-1a over its arrival times and marks).
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mix = |hash: u64, time: Nanos| (hash ^ time.0).wrapping_mul(0x0100_0000_01b3);
        let marks = self.marks.iter().map(|m| {
            let mark = self.mark_table.get(usize::from(*m)).copied();
            Nanos(mark.map_or(0, |m| u64::from(m.items) << 32 | u64::from(m.priority)))
        });
        self.arrivals.iter().copied().chain(marks).fold(0xcbf2_9ce4_8422_2325, mix)
    }
}

/// Replays recorded times, every gap divided by a factor.
pub(super) struct Playback {
    trace: Arc<Trace>,
    factor: f64,
    at: usize,
}

impl Playback {
    pub(super) fn new(trace: Arc<Trace>, factor: f64) -> Self {
        Self { trace, factor, at: 0 }
    }
}

impl Stream for Playback {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    #[expect(clippy::cast_precision_loss, reason = "below 104 days a nanosecond is exact")]
    fn fill(&mut self, out: &mut [u64]) -> usize {
        let rest = &self.trace.arrivals[self.at..];
        let n = rest.len().min(out.len());
        let unscaled = (self.factor - 1.0).abs() < f64::EPSILON;
        for (slot, time) in out.iter_mut().zip(rest) {
            *slot = if unscaled { time.0 } else { (time.0 as f64 / self.factor).round() as u64 };
        }
        self.at += n;
        n
    }
}

//! Recordings: what a real server was sent, and what came of it.
//!
//! Plain data, whatever file it came from. Times are nanoseconds since the first request was sent.

use crate::time::Nanos;
use std::collections::BTreeMap;

/// A recorded run of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// What results call it.
    pub name: String,
    /// The format it was read as.
    pub format: &'static str,
    /// The server and its settings, where the recording says.
    pub setup: Option<Setup>,
    /// Every request in the order of sending, the first at zero. Never empty.
    pub exchanges: Vec<Exchange>,
    /// Numbers of two runs of the same arrivals, where there were two: the spread to beat.
    pub repeats: Option<[Repeat; 2]>,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When it was sent, ns.
    pub send_ns: u64,
    /// When its answer arrived, ns; `None` where it was refused or never answered.
    pub done_ns: Option<u64>,
    /// Items it carries.
    pub items: u32,
    /// Priority level it asks for; 0 leaves it to the server.
    pub priority: u32,
    /// The batch it ran in, where the recording says.
    pub pass: Option<Pass>,
}

/// A request's place in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Number of the batch within the recording.
    pub batch: u32,
    /// Number of the instance that ran it.
    pub instance: u32,
    /// Items of the batch, where the recording says.
    pub size: Option<u32>,
    /// Start of its forward pass, ns.
    pub start_ns: Option<u64>,
    /// End of its forward pass, ns.
    pub end_ns: Option<u64>,
}

/// The server behind a recording, and a model whose pass takes `fixed + per_item · n`.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Name of the server, as policies are called.
    pub server: String,
    /// Its version, in words.
    pub version: String,
    /// What the recording is about.
    pub description: String,
    /// Time of a pass that does not depend on the batch.
    pub fixed: Nanos,
    /// Time of a pass for each item.
    pub per_item: Nanos,
    /// Most items in a batch.
    pub max_batch: u32,
    /// The delay of the server's own rule.
    pub delay: Nanos,
    /// Instances or workers.
    pub instances: u32,
    /// Preferred batch sizes.
    pub preferred: Vec<u32>,
    /// Most waiting requests; 0 is no limit.
    pub max_queue: u32,
    /// How long a request may wait; zero is for ever.
    pub queue_timeout: Nanos,
    /// Whether a request that waited too long goes to the back instead of being refused.
    pub delays_expired: bool,
    /// Number of priority levels; 0 is none.
    pub priority_levels: u32,
    /// Whether an input has a variable dimension, so that the server compares shapes.
    pub varies_shape: bool,
}

/// Numbers of one of two runs of the same arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeat {
    /// Mean batch size.
    pub mean_batch: f64,
    /// Median, 90 % and 99 % quantile of the latency, ms.
    pub latency_ms: [f64; 3],
}

/// A batch that a server ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedBatch {
    /// Places of its members in `exchanges`.
    pub members: Vec<usize>,
    /// Items in it.
    pub size: u32,
    /// The instance that ran it.
    pub instance: u32,
    /// Start of its pass, ns; `None` where no member says.
    pub start_ns: Option<u64>,
    /// End of its pass, ns; `None` where no member says.
    pub end_ns: Option<u64>,
}

/// Measurements at several loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregates {
    /// What results call it.
    pub name: String,
    /// Quantile levels that were measured, such as 0.99, increasing.
    pub levels: Vec<f64>,
    /// One entry per load. Never empty.
    pub points: Vec<Point>,
}

/// What was measured at one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The load.
    pub load: Load,
    /// Inferences per second.
    pub throughput_per_s: f64,
    /// Latency at each level, ms.
    pub latency_ms: Vec<f64>,
    /// Mean latency, ms, where the file has it.
    pub mean_ms: Option<f64>,
}

/// How a load generator loads a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Requests per second, whatever is answered.
    Rate(f64),
    /// Requests under way at a time.
    Concurrency(u32),
}

impl Exchange {
    /// From sending to the answer, ns; `None` where there was none.
    #[must_use]
    pub fn latency_ns(&self) -> Option<u64> {
        Some(self.done_ns?.saturating_sub(self.send_ns))
    }
}

impl Recording {
    /// The batches, in the order in which they started; empty where the recording has none.
    #[must_use]
    pub fn batches(&self) -> Vec<RecordedBatch> {
        let mut by_number: BTreeMap<u32, RecordedBatch> = BTreeMap::new();
        for (place, exchange) in self.exchanges.iter().enumerate() {
            let Some(pass) = exchange.pass else { continue };
            let batch = by_number.entry(pass.batch).or_insert_with(|| RecordedBatch {
                members: Vec::new(),
                size: 0,
                instance: pass.instance,
                start_ns: pass.start_ns,
                end_ns: pass.end_ns,
            });
            batch.members.push(place);
            // A stated size counts once, stated items add up.
            match pass.size {
                Some(size) => batch.size = size,
                None => batch.size += exchange.items,
            }
        }
        let mut batches: Vec<RecordedBatch> = by_number.into_values().collect();
        batches.sort_by_key(|b| (b.start_ns, b.members.first().copied()));
        batches
    }

    /// Requests that were answered.
    #[must_use]
    pub fn answered(&self) -> usize {
        self.exchanges.iter().filter(|e| e.done_ns.is_some()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_put_together() {
        let pass = |batch, size, start| {
            Some(Pass { batch, instance: 0, size, start_ns: start, end_ns: None })
        };
        let exchange = |send_ns, items, pass| Exchange {
            send_ns,
            done_ns: Some(send_ns + 9),
            items,
            priority: 0,
            pass,
        };
        let recording = Recording {
            name: "x".into(),
            format: "csv",
            setup: None,
            exchanges: vec![
                exchange(0, 2, pass(7, None, Some(50))),
                exchange(1, 1, pass(3, Some(4), Some(20))),
                exchange(2, 3, pass(7, None, Some(50))),
                exchange(3, 1, None),
            ],
            repeats: None,
        };
        let batches = recording.batches();
        let seen: Vec<_> = batches.iter().map(|b| (b.size, b.members.clone())).collect();
        assert_eq!(seen, [(4, vec![1]), (5, vec![0, 2])]);
        assert_eq!(recording.exchanges[2].latency_ns(), Some(9));
    }
}

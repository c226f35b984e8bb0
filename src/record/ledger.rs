//! Everything that happened, for tests, small runs and timelines.

use super::{BatchRow, Gone, Recorder};

/// A batch and the arrival times of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchEntry {
    /// The batch.
    pub row: BatchRow,
    /// Arrival times of its members in order, ns.
    pub arrivals: Vec<u64>,
}

/// A request that left without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its arrival, ns.
    pub arrival_ns: u64,
    /// When it left, ns.
    pub at_ns: u64,
    /// Why.
    pub why: Gone,
}

/// Keeps every batch and every refusal of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Batches in order of completion.
    pub batches: Vec<BatchEntry>,
    /// Refusals in order of time.
    pub refusals: Vec<Refusal>,
    /// Requests that arrived.
    pub offered: u64,
    /// End of the run, ns.
    pub ended_ns: u64,
}

impl Recorder for Ledger {
    fn arrived(&mut self, times: &[u64]) {
        self.offered += times.len() as u64;
    }

    fn completed(&mut self, batch: &BatchRow, arrivals: &[u64], _: &[u8], first: bool) {
        match self.batches.last_mut() {
            Some(last) if !first => last.arrivals.extend_from_slice(arrivals),
            _ => self.batches.push(BatchEntry { row: *batch, arrivals: arrivals.to_vec() }),
        }
    }

    fn gone(&mut self, arrival_ns: u64, _: u8, at_ns: u64, why: Gone) {
        self.refusals.push(Refusal { arrival_ns, at_ns, why });
    }

    fn ended(&mut self, at_ns: u64) {
        self.ended_ns = at_ns;
    }
}

//! Recorders: what an engine tells, and the summaries made of it.
//!
//! A recorder is a type parameter of the engines, so that what it does not want costs nothing.

mod groups;
mod histogram;
mod ledger;
mod pilot;
mod store;
mod summary;

pub use groups::{GroupSource, GroupSummary};
pub use histogram::{Histogram, rank};
pub use ledger::{BatchEntry, Ledger, Refusal};
pub use pilot::Pilot;
pub use store::{ExactLatencies, LatencyStore};
pub use summary::{ClassSummary, Counts, Plan, Summary};

use crate::policy::Reason;

/// Why a request left without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// Refused at the door: the queue was full.
    Rejected,
    /// Found expired when the policy took it from the queue.
    Expired,
    /// Given up by the policy.
    Shed,
    /// Taken back by the client.
    Cancelled,
    /// Still waiting or in service when time was cut.
    Unfinished,
}

/// A batch that has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRow {
    /// Items in it.
    pub size: u32,
    /// The padded size that was paid for.
    pub ran_as: u32,
    /// Instance it ran on.
    pub slot: u32,
    /// Start of service, ns.
    pub start_ns: u64,
    /// Service time, ns.
    pub took_ns: u64,
    /// How long its answers are held back after the pass, ns.
    pub held_ns: u64,
    /// Why it left.
    pub reason: Reason,
}

impl BatchRow {
    /// End of the pass, ns.
    #[inline(always)]
    #[must_use]
    pub const fn done_ns(&self) -> u64 {
        self.start_ns + self.took_ns
    }

    /// When its requests are answered, ns.
    #[inline(always)]
    #[must_use]
    pub const fn answered_ns(&self) -> u64 {
        self.start_ns + self.took_ns + self.held_ns
    }
}

/// Hears what happened in a run. Times are nanoseconds since its start.
pub trait Recorder {
    /// Requests arrived at these times.
    #[inline(always)]
    fn arrived(&mut self, _times: &[u64]) {}

    /// A batch completed; `arrivals` and `tags` are part of its members (in order; several calls
    /// may share one batch, `first` marks the first of them).
    fn completed(&mut self, batch: &BatchRow, arrivals: &[u64], tags: &[u8], first: bool);

    /// The same where only the first `n`, at least one, are members, and what lies behind them
    /// may be read: a recorder that works in blocks of fixed size is faster for it.
    #[inline(always)]
    fn completed_ahead(
        &mut self,
        batch: &BatchRow,
        arrivals: &[u64],
        tags: &[u8],
        n: usize,
        first: bool,
    ) {
        self.completed(batch, &arrivals[..n], &tags[..n], first);
    }

    /// A request left without an answer.
    #[inline(always)]
    fn gone(&mut self, _arrival_ns: u64, _tag: u8, _at_ns: u64, _why: Gone) {}

    /// The last arrival came at this moment (with `end = "cut"`: time stopped).
    #[inline(always)]
    fn arrivals_ended(&mut self, _at_ns: u64) {}

    /// The run is over.
    #[inline(always)]
    fn ended(&mut self, _at_ns: u64) {}
}

//! Engines: one replication in, what happened out.
//!
//! [`event::run`] runs any policy on any arrivals. [`recurrence::run`] runs size-or-timeout laws
//! on open-loop arrivals without any events, two to three times faster, and tells the recorder
//! exactly the same. [`fleet::run`] runs several servers behind a balancer. All are free functions
//! over type parameters; nothing in them allocates, hashes or locks per request.

mod cx;
pub mod event;
pub mod fleet;
mod inflow;
mod kind;
pub mod recurrence;
mod requests;
mod sight;
mod watch;

pub use cx::{Bid, Cx, Key, Position, Slot};
pub use fleet::Balancer;
pub use inflow::{Callers, Inflow, Loops};
pub use kind::{Kind, Kinds};
pub use requests::Rid;
pub use watch::{Flight, Member, Pass, Watched};

use crate::rng::SimRng;
use crate::time::Nanos;

/// Moments from here on never come: 292 years. Half of all time is kept free so that sums of a
/// moment and a delay cannot wrap.
const NEVER_NS: u64 = u64::MAX / 2;

/// When a batch completes; `u64::MAX` is never.
#[inline(always)]
const fn completion_ns(start_ns: u64, took_ns: u64) -> u64 {
    let done = start_ns.saturating_add(took_ns);
    if done >= NEVER_NS { u64::MAX } else { done }
}

/// The server around the policy.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Instances sharing the queue, at least 1.
    pub instances: u32,
    /// Most waiting requests; `u32::MAX` is no limit.
    pub queue_limit: u32,
    /// What requests say of themselves, by tag.
    pub kinds: Kinds,
    /// Time between a batch's leaving and the start of its pass.
    pub dispatch: Nanos,
    /// Time between the end of a pass and the moment its instance can take the next batch: per
    /// batch, and per request in it.
    pub release: [Nanos; 2],
    /// Time stops here (`end = "cut"`); else every batch held only by its rule leaves at the last
    /// arrival.
    pub cut_ns: Option<u64>,
    /// Substream of the policy.
    pub policy_rng: SimRng,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The last moment anything happened.
    pub at_ns: u64,
    /// Requests left in a server in which nothing will happen any more.
    pub stalled: Option<u64>,
}

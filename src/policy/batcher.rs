//! The seam between policies and the engine.

use super::Law;
use crate::engine::{Bid, Cx, Key, Kind, Rid, Slot};
use crate::time::Nanos;

/// What a policy hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request arrived and waits in a lane.
    Arrived {
        /// The request.
        rid: Rid,
        /// Where it waits.
        lane: u8,
    },
    /// A batch completed; its instance is idle.
    Done {
        /// The instance.
        slot: Slot,
        /// The batch; gone after this event.
        batch: Bid,
        /// How long it took.
        took: Nanos,
    },
    /// A timer of the policy fired.
    Timer(Key),
    /// A client took a request back while it waited.
    Cancelled(Rid),
}

/// When the policy wants to be woken by arrivals: not before `lane` holds `at_least` requests.
///
/// Triton's batcher thread sleeps in this way; it is also what makes simulation fast, because
/// arrivals nobody waits for are absorbed in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// The lane that is watched, or [`ANY_LANE`](Self::ANY_LANE).
    pub lane: u8,
    /// Requests it must hold.
    pub at_least: u32,
}

impl Interest {
    /// Watches all lanes together.
    pub const ANY_LANE: u8 = u8::MAX;

    /// Deaf to arrivals: only completions and timers matter.
    pub const NONE: Self = Self { lane: 0, at_least: u32::MAX };

    /// Woken once the first lane holds `n` requests.
    #[must_use]
    pub const fn queue(n: u32) -> Self {
        Self { lane: 0, at_least: n }
    }

    /// Woken once all lanes together hold `n` requests.
    #[must_use]
    pub const fn any(n: u32) -> Self {
        Self { lane: Self::ANY_LANE, at_least: n }
    }
}

/// What a policy promises; the invariant tests hold it to this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// No batch exceeds the policy's cap.
    pub cap: bool,
    /// Requests of one lane start in order of arrival.
    pub fifo: bool,
    /// No instance is idle while a request waits.
    pub work_conserving: bool,
    /// An instance runs one batch at a time.
    pub one_batch_per_slot: bool,
    /// While an instance is idle, no request waits longer than the law's wait after its anchor.
    pub wait_bound: bool,
}

/// A batching policy: hears events, issues commands through [`Cx`].
///
/// At one instant the engine first absorbs all arrivals, then completions, then arrivals those
/// caused at this instant, then timers; only then it calls [`settle`](Self::settle), again
/// and again until that issues no command.
pub trait Batcher {
    /// What this policy promises.
    fn promises(&self) -> Promises;

    /// Number of queues; [`lane`](Self::lane) sorts requests into them.
    fn lanes(&self) -> u8 {
        1
    }

    /// The queue that requests of a kind join.
    fn lane(&self, _kind: Kind) -> u8 {
        0
    }

    /// Most items a request may carry; a larger one would fit no batch and is rejected.
    fn largest_request(&self) -> u32 {
        u32::MAX
    }

    /// How many more requests may join a queue; those beyond are rejected at the door.
    fn room(&self, _lane: u8, _cx: &Cx) -> u32 {
        u32::MAX
    }

    /// Whether that changes with time alone. It may then only shrink: so many as find room at the
    /// end of a stretch in which the policy does nothing find it throughout.
    fn room_varies(&self) -> bool {
        false
    }

    /// How many requests would leave the queue at once, were they to arrive now, those in it
    /// included. A policy may let a request that it has taken stay in its lane for a while; a
    /// queue limit does not count these.
    fn places(&self, _cx: &Cx) -> u32 {
        0
    }

    /// Whether [`on`](Self::on) wants to hear each arrival.
    fn hears_arrivals(&self) -> bool {
        false
    }

    /// Whether answers leave in the order in which batches started: one that is done early waits
    /// for those before it.
    fn answers_in_order(&self) -> bool {
        false
    }

    /// Hears an event. The queues already show it.
    fn on(&mut self, _event: Event, _cx: &mut Cx) {}

    /// Acts on the state of this instant, and says when arrivals should wake it next.
    fn settle(&mut self, cx: &mut Cx) -> Interest;

    /// The closed recurrence of this policy, where it has one.
    fn law(&self) -> Option<Law> {
        None
    }
}

//! Why a batch left: one function, shared by every engine.

use super::Anchor;
use crate::mutant::mutate;
use crate::time::Nanos;

/// Why a batch left, the first that holds in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It reached `max_batch_size`.
    Full,
    /// It reached a preferred size.
    Preferred,
    /// The next request has another shape.
    Shape,
    /// The next request would break a budget (tokens, memory).
    Budget,
    /// `max_wait` had passed since its anchor.
    Timer,
    /// An instance was free and there was nothing to wait for.
    Idle,
    /// The arrivals were over and only the rule still held it.
    Flush,
}

impl Reason {
    /// How many reasons there are.
    pub const COUNT: usize = 7;

    /// All, in order of precedence.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Full,
        Self::Preferred,
        Self::Shape,
        Self::Budget,
        Self::Timer,
        Self::Idle,
        Self::Flush,
    ];

    /// Its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Preferred => "preferred",
            Self::Shape => "shape",
            Self::Budget => "budget",
            Self::Timer => "timer",
            Self::Idle => "idle",
            Self::Flush => "flush",
        }
    }
}

/// A size-or-timeout rule in closed form: a free instance starts once `target` requests are
/// queued, else `wait` after the anchor; a batch takes at most `cap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Law {
    /// Most requests in a batch.
    pub cap: u32,
    /// Queue length that starts a batch at once; at most `cap`.
    pub target: u32,
    /// How long fewer than `target` are held; [`Nanos::MAX`] is for ever.
    pub wait: Nanos,
    /// What `wait` counts from.
    pub anchor: Anchor,
}

impl Law {
    /// A free instance takes what is there, at most `cap`.
    pub(super) const fn greedy(cap: u32) -> Self {
        Self { cap, target: 1, wait: Nanos::ZERO, anchor: Anchor::OldestArrival }
    }

    /// Why a batch of `n` that started at `start` left, when its timer was due at `timer`.
    #[inline(always)]
    #[must_use]
    pub fn reason(&self, n: u32, timer: Nanos, start: Nanos) -> Reason {
        if n >= self.cap {
            Reason::Full
        } else if self.wait > Nanos::ZERO && mutate!(ReasonTie, timer <= start, timer < start) {
            Reason::Timer
        } else if n >= self.target || self.wait == Nanos::ZERO {
            Reason::Idle
        } else {
            Reason::Flush
        }
    }
}

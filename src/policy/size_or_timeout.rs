//! The engine side of the textbook rules: size, preferred size, timer, in this order.
//!
//! With an idle instance and `q` waiting requests:
//! 1. `q >= cap`: the `cap` oldest leave;
//! 2. `q` reaches a preferred size: the largest such size leaves;
//! 3. `q >= target`: all leave;
//! 4. `anchor + wait` has come, or no request will arrive any more: all leave;
//! 5. else the policy sleeps until the next of these can happen.
//!
//! `none` is cap 1; `greedy` is target 1; `static` is target = cap with no timer; `dynamic` has
//! them all. Expired requests count in `q`, as they do for servers that notice a timeout when they
//! take a request; they are refused when met and the batch is filled from those behind them.

use super::{Anchor, Batcher, Event, Interest, Law, Promises, Reason};
use crate::engine::{Cx, Key};
use crate::mutant::mutate;
use crate::time::Nanos;

const TIMER: Key = 0;
const LANE: u8 = 0;

/// Size or timeout, whichever comes first.
#[derive(Clone, Debug)]
pub struct SizeOrTimeout {
    law: Law,
    /// Preferred sizes below the cap, increasing.
    preferred: Vec<u32>,
    /// When an idle instance first found the present queue; only for the pickup anchor.
    picked_up: Option<Nanos>,
    timer_is_set: bool,
}

impl SizeOrTimeout {
    /// A batcher of this law that also lets the given sizes leave at once.
    #[must_use]
    pub fn new(law: Law, preferred: &[u32]) -> Self {
        let mut preferred: Vec<u32> =
            preferred.iter().copied().filter(|&size| size < law.cap).collect();
        preferred.sort_unstable();
        preferred.dedup();
        Self { law, preferred, picked_up: None, timer_is_set: false }
    }

    fn due(&mut self, cx: &Cx) -> Nanos {
        let anchor = match self.law.anchor {
            Anchor::OldestArrival => mutate!(
                TimerFromNewest,
                mutate!(
                    AnchorPickup,
                    cx.oldest_arrival(LANE).unwrap_or(cx.now()),
                    *self.picked_up.get_or_insert(cx.now())
                ),
                newest_arrival(cx).unwrap_or(cx.now())
            ),
            Anchor::Pickup => {
                mutate!(PickupMoves, *self.picked_up.get_or_insert(cx.now()), cx.now())
            }
        };
        let wait = self.law.wait;
        anchor.plus(mutate!(TimerTwice, wait, wait.plus(wait)))
    }

    /// How many leave now, of `q` that wait; 0 when the rule still holds them.
    fn ready(&self, q: u32, due: Nanos, cx: &Cx) -> u32 {
        if q >= self.law.cap {
            return self.law.cap;
        }
        let fits = |size: &&u32| mutate!(PreferredNeedsMore, **size <= q, **size < q);
        let sizes = || self.preferred.iter();
        if let Some(&size) =
            mutate!(SmallestPreferred, sizes().rev().find(fits), sizes().find(fits))
        {
            return size;
        }
        let reached = mutate!(TargetNeedsMore, q >= self.law.target, q > self.law.target);
        let over = mutate!(DrainTooEarly, mutate!(NoDrain, cx.draining(), false), true);
        if reached || due <= cx.now() || over { q } else { 0 }
    }

    fn reason(&self, size: u32, q: u32, due: Nanos, cx: &Cx) -> Reason {
        if size < self.law.cap && self.preferred.contains(&size) {
            return Reason::Preferred;
        }
        match self.law.reason(size, due, cx.now()) {
            // Expired requests were counted when the rule was met.
            Reason::Flush if q >= self.law.target || self.preferred.iter().any(|&p| p <= q) => {
                Reason::Idle
            }
            reason => reason,
        }
    }

    /// Sleeps until the queue or the timer can change the answer.
    fn sleep(&mut self, q: u32, due: Nanos, cx: &mut Cx) -> Interest {
        if due < Nanos::MAX && !self.timer_is_set {
            cx.timer(TIMER, due);
            self.timer_is_set = true;
        }
        let preferred = self.preferred.iter().copied().find(|&size| size > q);
        let at = preferred.map_or(self.law.target, |size| size.min(self.law.target));
        Interest::queue(mutate!(WakeLate, at, at + 1))
    }

    fn forget_timer(&mut self, cx: &mut Cx) {
        if self.timer_is_set {
            cx.cancel(TIMER);
            self.timer_is_set = false;
        }
    }
}

impl Batcher for SizeOrTimeout {
    const PROMISES: Promises = Promises {
        cap: true,
        fifo: true,
        // Only where wait is zero; the tests ask the law.
        work_conserving: false,
        one_batch_per_slot: true,
        wait_bound: true,
    };

    #[inline(always)]
    fn on(&mut self, event: Event, _: &mut Cx) {
        if let Event::Timer(_) = event {
            self.timer_is_set = false;
        }
    }

    #[inline(always)]
    fn settle(&mut self, cx: &mut Cx) -> Interest {
        loop {
            let Some(slot) = cx.idle_slot() else {
                self.picked_up = None;
                return Interest::NONE;
            };
            let queued = cx.queued(LANE);
            if queued == 0 {
                self.picked_up = None;
                let timed = self.law.wait < Nanos::MAX;
                return Interest::queue(if timed { 1 } else { self.sleepless() });
            }
            let due = self.due(cx);
            let q = mutate!(
                TieLeftOut,
                queued,
                queued - u32::from(queued > 1 && newest_arrival(cx) == Some(cx.now()))
            );
            let n = self.ready(q, due, cx);
            if n == 0 {
                return self.sleep(q, due, cx);
            }
            self.forget_timer(cx);
            self.picked_up = None;
            let batch = cx.open();
            let size = cx.take_live(batch, LANE, n);
            if size == 0 {
                cx.requeue(batch, LANE, crate::engine::Position::Back);
                continue;
            }
            let reason = self.reason(size, q, due, cx);
            cx.start(batch, slot, size, reason);
        }
    }

    fn law(&self) -> Option<Law> {
        self.preferred.is_empty().then_some(self.law)
    }
}

/// When the newest waiting request arrived; only faults ask.
#[cfg(feature = "mutants")]
fn newest_arrival(cx: &Cx) -> Option<Nanos> {
    let last = cx.queued(LANE).checked_sub(1)?;
    cx.waiting(LANE, last).map(|rid| cx.arrival(rid))
}

impl SizeOrTimeout {
    /// Queue length that can wake a rule without a timer.
    fn sleepless(&self) -> u32 {
        self.preferred.first().map_or(self.law.target, |size| self.law.target.min(*size))
    }
}

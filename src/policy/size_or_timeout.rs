//! The engine side of the textbook rules: size, preferred size, timer, in this order.
//!
//! With an idle instance and `q` waiting requests:
//! 1. `q >= cap`: the `cap` oldest leave;
//! 2. `q` reaches a preferred size: the largest such size leaves;
//! 3. `q >= target`: all leave;
//! 4. `anchor + wait` has come, or no request will arrive any more: all leave;
//! 5. else the policy sleeps until the next of these can happen.
//!
//! A cap, a target and a preferred size count items. Where requests carry several, those that fit
//! leave in order of arrival and none is skipped: one that does not fit fills the batch before it.
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

    /// How many items leave now, of `q` that could; 0 when the rule still holds them.
    fn ready(&self, q: Front, due: Nanos, cx: &Cx) -> u32 {
        if q.full {
            return q.items;
        }
        if let Some(size) = self.preferred(q.items, cx) {
            return size;
        }
        let (items, target) = (q.items, self.law.target);
        let reached = mutate!(TargetNeedsMore, items >= target, items > target);
        let over = mutate!(DrainTooEarly, mutate!(NoDrain, cx.draining(), false), true);
        if reached || due <= cx.now() || over { items } else { 0 }
    }

    /// The largest preferred size that the first `items` items of the queue hold exactly.
    fn preferred(&self, items: u32, cx: &Cx) -> Option<u32> {
        let exact = |size: u32| cx.unit_items() || cx.fitting(LANE, size).1 == size;
        let below = |size: u32| mutate!(PreferredNeedsMore, size <= items, size < items);
        let fits = |size: &u32| below(*size) && exact(*size);
        let sizes = || self.preferred.iter().copied();
        mutate!(SmallestPreferred, sizes().rev().find(fits), sizes().find(fits))
    }

    fn reason(&self, size: u32, q: Front, due: Nanos, cx: &Cx) -> Reason {
        if q.full && !cx.unit_items() {
            return Reason::Full;
        }
        if size < self.law.cap && self.preferred.contains(&size) {
            return Reason::Preferred;
        }
        match self.law.reason(size, due, cx.now()) {
            // Expired requests were counted when the rule was met.
            Reason::Flush if q.items >= self.law.target || self.any_preferred(q.items) => {
                Reason::Idle
            }
            reason => reason,
        }
    }

    fn any_preferred(&self, items: u32) -> bool {
        self.preferred.iter().any(|&p| p <= items)
    }

    /// Sleeps until the queue or the timer can change the answer.
    fn sleep(&mut self, q: Front, due: Nanos, cx: &mut Cx) -> Interest {
        if due < Nanos::MAX && !self.timer_is_set {
            cx.timer(TIMER, due);
            self.timer_is_set = true;
        }
        if !cx.unit_items() {
            return Interest::queue(cx.queued(LANE) + 1);
        }
        let preferred = self.preferred.iter().copied().find(|&size| size > q.items);
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

/// What could leave at once.
#[derive(Clone, Copy, Debug)]
struct Front {
    /// Items of the oldest requests that fit into one batch.
    items: u32,
    /// Whether no further one could be added.
    full: bool,
}

impl Front {
    #[inline(always)]
    fn of(cap: u32, cx: &Cx) -> Self {
        let (n, items) = cx.fitting(LANE, cap);
        Self { items, full: items >= cap || n < cx.queued(LANE) }
    }
}

impl Batcher for SizeOrTimeout {
    fn promises(&self) -> Promises {
        Promises {
            cap: true,
            fifo: true,
            // A rule that never waits leaves no instance idle while anything is queued.
            work_conserving: self.law.target == 1 || self.law.wait == Nanos::ZERO,
            one_batch_per_slot: true,
            wait_bound: true,
        }
    }

    fn largest_request(&self) -> u32 {
        self.law.cap
    }

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
            if cx.queued(LANE) == 0 {
                self.picked_up = None;
                let timed = self.law.wait < Nanos::MAX || !cx.unit_items();
                return Interest::queue(if timed { 1 } else { self.sleepless() });
            }
            let front = Front::of(self.law.cap, cx);
            let due = self.due(cx);
            let q = mutate!(TieLeftOut, front, front.without_tie(cx));
            let n = self.ready(q, due, cx);
            if n == 0 {
                return self.sleep(q, due, cx);
            }
            self.forget_timer(cx);
            self.picked_up = None;
            let batch = cx.open();
            if cx.take_live(batch, LANE, n) == 0 {
                cx.requeue(batch, LANE, crate::engine::Position::Back);
                continue;
            }
            let size = cx.items(batch);
            let reason = self.reason(size, q, due, cx);
            cx.start(batch, slot, size, reason);
        }
    }

    fn law(&self) -> Option<Law> {
        self.preferred.is_empty().then_some(self.law)
    }
}

#[cfg(feature = "mutants")]
impl Front {
    /// Without the request that arrived at this very moment.
    fn without_tie(self, cx: &Cx) -> Self {
        let tie = cx.queued(LANE) > 1 && newest_arrival(cx) == Some(cx.now());
        let items = self.items - u32::from(tie);
        Self { items, full: self.full && !tie }
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

//! The batcher thread and the instance threads of one model.

use super::scan::{Cursor, Levels};
use super::{Triton, WakeRace};
use crate::engine::{Bid, Cx, Key, Kind, Slot};
use crate::policy::{Batcher, Event, Interest, Promises, Reason};
use crate::time::Nanos;
use std::collections::VecDeque;

/// The batcher looks again after this long, whatever happens.
const RECHECK: Nanos = Nanos(500_000_000);
/// Wakes the sleeping batcher.
const ALARM: Key = 0;
/// Lets the batcher, which waits for a slot, refuse what has expired.
const SLOT_CHECK: Key = 1;

/// A batch that waits for an instance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payload {
    bid: Bid,
    oldest: Nanos,
    /// Nothing may be merged into it: the next request has another shape.
    closed: bool,
    shape: u16,
    /// The next request did not fit.
    full: bool,
}

/// The payload under construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forming {
    /// Nothing is in it.
    New,
    /// It is the last that waits for an instance, and may still grow.
    Queued,
    /// An instance has taken it, or has marked it as taken.
    Taken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Asleep,
    /// Requests wait, and there is no slot.
    AwaitsSlot,
    /// At work: whoever wakes it now wakes nobody.
    Running,
}

/// Triton's dynamic batcher with its instances.
#[derive(Clone, Debug)]
pub(in crate::policy) struct Former {
    pub(super) max: u32,
    pub(super) preferred: Vec<u32>,
    pub(super) delay: Nanos,
    pub(super) prefetch: bool,
    pub(super) enforce_shapes: bool,
    pub(super) race: WakeRace,
    pub(super) stall: f64,
    pub(super) ordered: bool,
    pub(super) default_level: u32,
    pub(super) priorities: u32,
    pub(super) levels: Levels,
    /// One queue, no timeouts, one shape: requests need no look of their own.
    pub(super) simple: bool,
    pub(super) state: State,
    /// Payloads that wait for an instance, oldest first.
    pub(super) formed: VecDeque<Payload>,
    pub(super) forming: Forming,
    /// Shape of the payload under construction, and whether it is closed.
    pub(super) shape: u16,
    pub(super) closed: bool,
    pub(super) full: bool,
    pub(super) saturated: bool,
    /// Items that must be queued for an arrival to wake the batcher.
    pub(super) next_preferred: u32,
    pub(super) cursor: Cursor,
    /// Idle instances in the order in which they became idle.
    pub(super) parked: VecDeque<Slot>,
    pub(super) begun: bool,
    pub(super) freed: Vec<Slot>,
    /// Requests that waited when it last looked.
    pub(super) seen: u32,
    pub(super) rung: Option<Key>,
    pub(super) alarm_is_set: bool,
}

impl Former {
    /// The batcher of a model configuration.
    #[must_use]
    pub(in crate::policy) fn new(p: &Triton) -> Self {
        let levels = Levels::new(p.levels());
        Self {
            max: p.max_batch_size,
            preferred: p.preferred(),
            delay: p.delay(),
            prefetch: p.prefetches(),
            enforce_shapes: p.enforce_shapes,
            race: p.wake_race,
            stall: p.idle_stall,
            ordered: p.keeps_order(),
            default_level: p.default_priority_level,
            priorities: p.priority_levels,
            simple: levels.lanes() == 1 && !levels.expire,
            levels,
            state: State::Asleep,
            formed: VecDeque::new(),
            forming: Forming::New,
            shape: 0,
            closed: false,
            full: false,
            saturated: false,
            next_preferred: 0,
            cursor: Cursor::default(),
            parked: VecDeque::new(),
            begun: false,
            freed: Vec::new(),
            seen: 0,
            rung: None,
            alarm_is_set: false,
        }
    }

    fn level(&self, kind: Kind) -> usize {
        let level = match kind.priority {
            _ if self.priorities == 0 => 1,
            asked if (1..=self.priorities).contains(&asked) => asked,
            _ => self.default_level,
        };
        level as usize - 1
    }

    /// Requests in the scheduler's queue.
    #[inline]
    pub(super) fn waiting(&self, cx: &Cx) -> u32 {
        match self.levels.lanes() {
            1 => cx.queued(0),
            lanes => (0..lanes).map(|lane| cx.queued(lane)).sum(),
        }
    }

    /// Whether a payload may be formed.
    #[inline]
    fn slot(&self, cx: &Cx) -> bool {
        if self.prefetch {
            self.formed.len() < 2 * cx.slots() as usize
        } else {
            !self.parked.is_empty()
        }
    }

    /// Items already in the payload under construction.
    #[inline]
    pub(super) fn base(&self, cx: &Cx) -> u32 {
        match (self.forming, self.formed.back()) {
            (Forming::Queued, Some(payload)) => cx.items(payload.bid),
            _ => 0,
        }
    }

    /// Whether at least `n` items are queued.
    fn holds(&self, n: u32, cx: &Cx) -> bool {
        if cx.unit_items() {
            return self.waiting(cx) >= n;
        }
        let mut items = 0;
        (0..self.levels.lanes()).any(|lane| {
            let mut requests = (0..).map_while(|at| cx.waiting(lane, at));
            requests.any(|rid| {
                items += cx.kind(rid).items;
                items >= n
            })
        }) || n == 0
    }

    /// Whether the arrivals of this instant wake the batcher.
    fn woken(&self, cx: &Cx) -> bool {
        self.slot(cx)
            && (self.enforce_shapes
                || self.saturated
                || self.forming == Forming::Taken
                || self.holds(self.next_preferred, cx))
    }

    fn notify(&mut self, cx: &mut Cx) {
        match self.state {
            State::Asleep => self.run(cx),
            State::AwaitsSlot if self.slot(cx) => self.run(cx),
            State::AwaitsSlot | State::Running => {}
        }
    }

    fn sleep_until(&mut self, at: Nanos, cx: &mut Cx) {
        self.state = State::Asleep;
        cx.timer(ALARM, at);
        self.alarm_is_set = true;
    }

    fn quiet(&mut self, cx: &mut Cx) {
        if self.alarm_is_set {
            cx.cancel(ALARM);
            self.alarm_is_set = false;
        }
        if self.state == State::AwaitsSlot {
            cx.cancel(SLOT_CHECK);
        }
    }

    /// The batcher thread, from its waking until it sleeps again.
    fn run(&mut self, cx: &mut Cx) {
        self.quiet(cx);
        self.state = State::Running;
        loop {
            if self.saturated || self.forming == Forming::Taken {
                (self.forming, self.saturated) = (Forming::New, false);
                (self.closed, self.full, self.next_preferred) = (false, false, 0);
            }
            if self.waiting(cx) == 0 {
                self.state = State::Asleep;
                // Nothing can come any more that the look would find.
                if !cx.draining() {
                    self.sleep_until(cx.now().plus(RECHECK), cx);
                }
                return;
            }
            if !self.slot(cx) {
                self.state = State::AwaitsSlot;
                if self.levels.expire || self.stall > 0.0 {
                    cx.timer(SLOT_CHECK, cx.now().plus(RECHECK));
                }
                return;
            }
            match self.plan(cx) {
                Some(wait) => return self.sleep_until(cx.now().plus(wait), cx),
                None if self.cursor.count > 0 => self.form(cx),
                None => {
                    let stuck = self.waiting(cx) > 0 && !self.saturated;
                    if stuck && self.forming == Forming::Queued && self.closed {
                        // The thread spins here until an instance takes the payload.
                        self.state = State::Asleep;
                        return;
                    }
                }
            }
        }
    }

    /// Moves what was scanned into the payload, and queues that where it is new.
    fn form(&mut self, cx: &mut Cx) {
        let mut left = std::mem::take(&mut self.cursor.count);
        let bid = match (self.forming, self.formed.back()) {
            (Forming::Queued, Some(payload)) => payload.bid,
            _ => cx.open(),
        };
        for lane in 0..self.levels.lanes() {
            if left > 0 {
                left -= cx.take(bid, lane, left);
            }
        }
        let oldest = self.cursor.oldest;
        self.cursor.pending = 0;
        self.cursor.forget();
        let (closed, shape, full) = (self.closed, self.shape, self.full);
        match (self.forming, self.formed.back_mut()) {
            (Forming::Queued, Some(payload)) => {
                let oldest = payload.oldest.min(oldest);
                *payload = Payload { bid, oldest, closed, shape, full };
            }
            _ => {
                self.formed.push_back(Payload { bid, oldest, closed, shape, full });
                self.forming = Forming::Queued;
                if let Some(slot) = self.parked.pop_front() {
                    self.pick(slot, cx);
                }
            }
        }
    }

    /// An instance takes the oldest payload, and what is overdue behind it while it fits.
    fn pick(&mut self, slot: Slot, cx: &mut Cx) {
        let Some(first) = self.formed.pop_front() else { return };
        self.taken();
        if self.delay > Nanos::ZERO && self.max > 1 && !first.closed {
            while let Some(next) = self.formed.front().copied() {
                if next.closed || cx.now().0 - next.oldest.0 <= self.delay.0 {
                    break;
                }
                // Marked before it is known to fit: it grows no more even where it stays.
                if self.formed.len() == 1 && self.forming == Forming::Queued {
                    self.forming = Forming::Taken;
                }
                let fits = cx.items(first.bid) + cx.items(next.bid) <= self.max;
                if !fits || (self.enforce_shapes && next.shape != first.shape) {
                    break;
                }
                cx.merge(first.bid, next.bid);
                self.formed.pop_front();
            }
        }
        let items = cx.items(first.bid);
        let reason = self.reason(&first, items, cx);
        cx.start(first.bid, slot, items, reason);
        self.notify(cx);
    }

    /// The oldest payload has left the queue.
    fn taken(&mut self) {
        if self.formed.is_empty() && self.forming == Forming::Queued {
            self.forming = Forming::Taken;
        }
    }

    fn reason(&self, payload: &Payload, items: u32, cx: &Cx) -> Reason {
        if items >= self.max || payload.full {
            Reason::Full
        } else if self.preferred.binary_search(&items).is_ok() {
            Reason::Preferred
        } else if payload.closed {
            Reason::Shape
        } else if self.delay > Nanos::ZERO && payload.oldest.plus(self.delay) <= cx.now() {
            Reason::Timer
        } else {
            Reason::Idle
        }
    }

    /// The pass of an instance is over.
    fn free(&mut self, slot: Slot, cx: &mut Cx) {
        if self.race == WakeRace::Batcher {
            self.notify(cx);
        }
        if !self.formed.is_empty() {
            return self.pick(slot, cx);
        }
        self.parked.push_back(slot);
        if self.prefetch || !self.stalls(cx) {
            self.notify(cx);
        }
    }

    /// Whether the batcher sleeps through the end of this pass.
    #[expect(clippy::cast_precision_loss, reason = "a probability")]
    fn stalls(&self, cx: &mut Cx) -> bool {
        self.stall > 0.0 && ((cx.random() >> 11) as f64) < self.stall * (1u64 << 53) as f64
    }

    fn ring(&mut self, key: Key, cx: &mut Cx) {
        if key == ALARM {
            self.alarm_is_set = false;
            if self.state == State::Asleep {
                self.run(cx);
            }
        } else if self.state == State::AwaitsSlot {
            if self.slot(cx) {
                return self.run(cx);
            }
            if self.levels.refuse_expired(cx) {
                self.cursor.forget();
            }
            cx.timer(SLOT_CHECK, cx.now().plus(RECHECK));
        }
    }

    /// When arrivals must wake it next.
    fn interest(&self, cx: &Cx) -> Interest {
        if !self.slot(cx) {
            return Interest::NONE;
        }
        let waiting = self.waiting(cx);
        if self.enforce_shapes
            || self.saturated
            || self.forming == Forming::Taken
            || !cx.unit_items()
        {
            return Interest::any(waiting + 1);
        }
        Interest::any(self.next_preferred.max(self.joining(cx)).max(waiting + 1))
    }

    /// How many requests join the queued payload as they come. It is the same to let them join
    /// together, once it reaches its size or an instance takes it.
    fn joining(&self, cx: &Cx) -> u32 {
        let grows = self.delay == Nanos::ZERO
            && self.forming == Forming::Queued
            && !self.levels.expire
            && !self.enforce_shapes
            && !self.saturated
            && cx.unit_items()
            && self.slot(cx);
        if !grows {
            return 0;
        }
        let base = self.base(cx);
        let next = self.preferred.iter().copied().find(|&size| size > base);
        next.unwrap_or(self.max).saturating_sub(base)
    }
}

impl Batcher for Former {
    fn promises(&self) -> Promises {
        Promises {
            cap: true,
            // Levels overtake each other, and delayed requests go to the back.
            fifo: self.levels.lanes() == 1,
            work_conserving: self.delay == Nanos::ZERO && self.stall == 0.0,
            one_batch_per_slot: true,
            wait_bound: false,
        }
    }

    fn lanes(&self) -> u8 {
        self.levels.lanes()
    }

    fn lane(&self, kind: Kind) -> u8 {
        self.levels.live(self.level(kind))
    }

    fn largest_request(&self) -> u32 {
        self.max
    }

    #[inline]
    fn room(&self, lane: u8, cx: &Cx) -> u32 {
        if self.prefetch { u32::MAX } else { self.levels.room(lane, cx) }
    }

    fn places(&self, cx: &Cx) -> u32 {
        self.joining(cx)
    }

    fn hears_arrivals(&self) -> bool {
        // A kept scan must know of requests that join before it.
        self.levels.expire && self.levels.lanes() > 1
    }

    fn answers_in_order(&self) -> bool {
        self.ordered
    }

    #[inline]
    fn on(&mut self, event: Event, cx: &mut Cx) {
        match event {
            Event::Arrived { rid, .. } => self.cursor.joined(self.level(cx.kind(rid))),
            Event::Done { slot, .. } => self.freed.push(slot),
            Event::Timer(key) => self.rung = Some(key),
            Event::Cancelled(_) => {}
        }
    }

    fn settle(&mut self, cx: &mut Cx) -> Interest {
        if !self.begun {
            self.begun = true;
            self.simple &= !self.enforce_shapes || cx.one_shape();
            self.parked = (0..cx.slots()).collect();
        }
        if self.waiting(cx) > self.seen && self.woken(cx) {
            self.notify(cx);
        }
        for at in 0..self.freed.len() {
            self.free(self.freed[at], cx);
        }
        self.freed.clear();
        if let Some(key) = self.rung.take() {
            self.ring(key, cx);
        }
        self.seen = self.waiting(cx);
        if self.seen == 0 && cx.draining() {
            self.quiet(cx);
        }
        self.interest(cx)
    }
}

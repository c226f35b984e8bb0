//! `litserve`: the batched loop of LitServe 0.2.19. Windows run freely, request or not.
//!
//! A worker that asks opens a window of `batch_timeout` seconds and takes requests as they come.
//! With `max_batch_size` of them it runs them at once; when the window ends it runs what it has,
//! and opens the next window when that is done. A window that ends empty is followed by the next
//! without a gap: with the first at `window_phase`, a lone request at `a` leaves at
//! `window_phase + ⌈(a − window_phase) / T⌉ · T`, after half a window on average. After a pass a
//! partial backlog waits a whole window. Several workers compete as in `mosec`: each request goes
//! to the one that has waited for its next request longest.
//!
//! `batch_timeout = 0` and `max_batch_size = 1` take what is there and never wait.
//!
//! A request older than `timeout` seconds when a worker takes it is set aside: it takes no place,
//! and its 504 is sent when the batch or its window is over. Nothing limits the queue.
//!
//! The order of several workers is an inference: they share a queue between processes, whose
//! order nobody specifies. The worker's polling each millisecond changes nothing here. Workers are
//! the server's instances (`workers_per_device`). Source: Lightning-AI/LitServe,
//! loops/simple_loops.py and loops/base.py. Requests count, not items.

use super::{
    Batcher, Event, Interest, LANE, Promises, Reason, came_before, check_cap, refuse_late,
};
use crate::engine::{Bid, Cx, Key, Rid, Slot};
use crate::record::Gone;
use crate::tagged::{BadParam, params};
use crate::time::Nanos;
use std::cmp::Reverse;

/// The longest time in seconds that is not for ever: some three years.
const MOST_S: f64 = 1e8;

/// The versions whose rule this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema))]
pub enum LitServeRelease {
    /// 0.2.19.
    #[default]
    #[cfg_attr(feature = "schema", serde(rename = "0.2.19"))]
    V0_2_19,
}

params! {
    /// Parameters of `litserve`, by LitServe's names. Its workers are the server's instances.
    pub struct LitServe {
        /// The version that is meant: 0.2.19 (default).
        #[cfg_attr(feature = "schema", serde(default))]
        pub release: LitServeRelease,
        /// Most requests in one batch (default 1).
        #[cfg_attr(feature = "schema", serde(default = "one"))]
        pub max_batch_size: u32,
        /// Length of a window in seconds (default 0.0: never wait).
        #[cfg_attr(feature = "schema", serde(default))]
        pub batch_timeout: f64,
        /// Seconds after which a waiting request is answered with an error; 0 is never (default
        /// 30.0).
        #[cfg_attr(feature = "schema", serde(default = "half_a_minute"))]
        pub timeout: f64,
        /// When the first window of every worker opens (default 0).
        #[cfg_attr(feature = "schema", serde(default))]
        pub window_phase: Nanos,
    }
}

#[cfg(feature = "schema")]
const fn one() -> u32 {
    1
}

#[cfg(feature = "schema")]
const fn half_a_minute() -> f64 {
    30.0
}

impl Default for LitServe {
    fn default() -> Self {
        Self {
            release: LitServeRelease::default(),
            max_batch_size: 1,
            batch_timeout: 0.0,
            timeout: 30.0,
            window_phase: Nanos::ZERO,
        }
    }
}

impl LitServe {
    /// Length of a window; zero where there are none.
    #[must_use]
    pub fn window(&self) -> Nanos {
        let seconds = if self.max_batch_size == 1 { 0.0 } else { self.batch_timeout };
        Nanos::from_ms(seconds * 1e3)
    }

    pub(super) fn check(&self) -> Result<(), BadParam> {
        check_cap(self.max_batch_size)?;
        for (key, value) in [("batch_timeout", self.batch_timeout), ("timeout", self.timeout)] {
            if !(0.0..=MOST_S).contains(&value) {
                let what = format!("{key} {value} is not a number of seconds from 0 to {MOST_S:e}");
                return Err(BadParam::new(key, what, "write seconds, as in 0.005 for 5 ms"));
            }
        }
        if self.batch_timeout > 0.0 && Nanos::from_ms(self.batch_timeout * 1e3) == Nanos::ZERO {
            let what = "batch_timeout is shorter than a nanosecond";
            return Err(BadParam::new("batch_timeout", what, "write 0 for no window"));
        }
        Ok(())
    }
}

/// When a worker came to the line of receivers: the earliest is served first.
type Turn = (Nanos, bool, Reverse<Nanos>, u64);

/// A worker and the batch it forms.
#[derive(Clone, Copy, Debug, Default)]
struct Worker {
    /// The batch it forms.
    forming: Option<Bid>,
    /// Requests in that batch, or in the lane behind it.
    taken: u32,
    /// Requests that are too old, until they are told.
    aside: Option<Bid>,
    /// When its present row of windows opened.
    origin: Nanos,
    /// End of the window in which something was taken; the end of time in an empty one.
    end: Nanos,
    /// When it took its latest request.
    latest: Nanos,
    /// Number of the step with which that row opened.
    opened: u64,
    /// Number of the step with which it took its latest request.
    step: u64,
    /// Number of the batch it closed last.
    closed: u64,
}

/// The batcher of LitServe.
#[derive(Clone, Debug)]
pub struct Windows {
    max: u32,
    /// Length of a window; zero without windows.
    window: Nanos,
    timeout: Nanos,
    phase: Nanos,
    workers: Vec<Worker>,
    /// Idle workers, in no order.
    receivers: Vec<Slot>,
    freed: Vec<Slot>,
    /// Workers whose timer has fired since the last settling.
    fired: Vec<Key>,
    opened: bool,
    steps: u64,
}

impl Windows {
    /// The batcher for these parameters.
    #[must_use]
    pub fn new(p: &LitServe) -> Self {
        let timeout = if p.timeout == 0.0 { Nanos::MAX } else { Nanos::from_ms(p.timeout * 1e3) };
        Self {
            max: p.max_batch_size,
            window: p.window(),
            timeout,
            phase: p.window_phase,
            workers: Vec::new(),
            receivers: Vec::new(),
            freed: Vec::new(),
            fired: Vec::new(),
            opened: false,
            steps: 0,
        }
    }

    /// The place of the next receiver in `receivers`.
    #[inline(always)]
    fn next(&self, now: Nanos) -> Option<usize> {
        if self.receivers.len() <= 1 {
            return self.receivers.len().checked_sub(1);
        }
        (0..self.receivers.len())
            .min_by_key(|at| self.turn(&self.workers[self.receivers[*at] as usize], now))
    }

    fn turn(&self, worker: &Worker, now: Nanos) -> Turn {
        if worker.taken > 0 {
            return (worker.latest, false, Reverse(Nanos::ZERO), worker.step);
        }
        // An empty window ends, and the worker lines up again at the end.
        let opened = self.window_end(worker.origin, now).0 - self.window.0;
        (Nanos(opened), true, Reverse(worker.origin), worker.opened)
    }

    /// End of the window that `now` belongs to, of those from `origin` on; the moment at which one
    /// follows the other belongs to the earlier.
    fn window_end(&self, origin: Nanos, now: Nanos) -> Nanos {
        if self.window == Nanos::ZERO {
            return origin;
        }
        let windows = (now.0 - origin.0).div_ceil(self.window.0).max(1);
        Nanos(origin.0.saturating_add(windows.saturating_mul(self.window.0)))
    }

    /// What came goes to the receivers.
    #[inline(always)]
    fn arrivals(&mut self, cx: &mut Cx) {
        while let Some(came) = cx.oldest_arrival(LANE)
            && let Some(at) = self.next(came)
        {
            let slot = self.receivers[at];
            // One that takes them all takes the last of them now.
            let now = if self.receivers.len() == 1 { cx.now() } else { came };
            let worker = &self.workers[slot as usize];
            let ends = match worker.end {
                Nanos::MAX => self.window_end(worker.origin, now) == now,
                end => end == now,
            };
            let most = match self.receivers.len() {
                _ if self.window == Nanos::ZERO => 1,
                // The first of this moment ends the window, after those that came before.
                1 if ends => came_before(now, cx) + 1,
                1 => u32::MAX,
                _ => 1,
            };
            self.take(slot, most.min(self.max - worker.taken), now, cx);
            let full = self.workers[slot as usize].taken >= self.max;
            if full || ends || self.window == Nanos::ZERO {
                self.receivers.swap_remove(at);
                let why =
                    if ends && self.window > Nanos::ZERO { Reason::Timer } else { Reason::Idle };
                self.close(slot, why, cx);
            }
        }
    }

    /// A worker takes up to `most` requests that came until `now`.
    #[inline(always)]
    fn take(&mut self, slot: Slot, most: u32, now: Nanos, cx: &mut Cx) {
        let origin = self.workers[slot as usize].origin;
        let end = self.window_end(origin, now);
        self.steps += 1;
        let worker = &mut self.workers[slot as usize];
        (worker.latest, worker.step) = (now, self.steps);
        let batch = *worker.forming.get_or_insert_with(|| cx.open());
        worker.taken += cx.take(batch, LANE, most);
        if self.window > Nanos::ZERO && worker.end == Nanos::MAX {
            worker.end = end;
            cx.timer(slot, end);
        }
    }

    /// A worker asks: a window opens, and what waits is taken.
    fn open(&mut self, slot: Slot, cx: &mut Cx) {
        let now = cx.now();
        self.steps += 1;
        let worker = &mut self.workers[slot as usize];
        (worker.origin, worker.opened, worker.end) = (now, self.steps, Nanos::MAX);
        if cx.queued(LANE) > 0 {
            self.backlog(slot, cx);
        }
        let worker = &mut self.workers[slot as usize];
        if worker.taken >= self.max || (self.window == Nanos::ZERO && worker.taken > 0) {
            return self.close(slot, Reason::Idle, cx);
        }
        if self.window == Nanos::ZERO {
            self.tell_late(slot, cx);
        } else if worker.taken > 0 || worker.aside.is_some_and(|batch| cx.size(batch) > 0) {
            worker.end = now.plus(self.window);
            cx.timer(slot, worker.end);
        }
        self.receivers.push(slot);
    }

    /// Takes what waits, and sets aside what is too old.
    fn backlog(&mut self, slot: Slot, cx: &mut Cx) {
        let worker = &mut self.workers[slot as usize];
        worker.latest = cx.now();
        let batch = *worker.forming.get_or_insert_with(|| cx.open());
        let young = |arrival: Nanos| arrival.plus(self.timeout) >= cx.now();
        if !cx.any_timeout() && cx.oldest_arrival(LANE).is_some_and(young) {
            worker.taken += cx.take(batch, LANE, self.max - worker.taken);
            return;
        }
        while worker.taken < self.max {
            refuse_late(cx);
            let Some(arrival) = cx.oldest_arrival(LANE) else { return };
            if arrival.plus(self.timeout) < cx.now() {
                let aside = *worker.aside.get_or_insert_with(|| cx.open());
                cx.take(aside, LANE, 1);
            } else {
                worker.taken += cx.take(batch, LANE, 1);
            }
        }
    }

    /// The requests set aside get their 504.
    fn tell_late(&self, slot: Slot, cx: &mut Cx) {
        let Some(aside) = self.workers[slot as usize].aside.filter(|b| cx.size(*b) > 0) else {
            return;
        };
        for rid in cx.members(aside).collect::<Vec<Rid>>() {
            cx.give_up(aside, rid, Gone::Expired);
        }
    }

    fn close(&mut self, slot: Slot, why: Reason, cx: &mut Cx) {
        cx.cancel(slot);
        self.tell_late(slot, cx);
        let worker = &mut self.workers[slot as usize];
        let Some(batch) = worker.forming.take() else { return };
        self.steps += 1;
        worker.closed = self.steps;
        (worker.taken, worker.end) = (0, Nanos::MAX);
        let reason = if cx.size(batch) >= self.max { Reason::Full } else { why };
        cx.start(batch, slot, cx.items(batch), reason);
    }

    #[inline(always)]
    fn ask_again(&mut self, cx: &mut Cx) {
        if self.freed.len() > 1 {
            let workers = &self.workers;
            self.freed.sort_unstable_by_key(|slot| workers[*slot as usize].closed);
        }
        for at in 0..self.freed.len() {
            self.open(self.freed[at], cx);
        }
        self.freed.clear();
    }

    /// Windows that end now.
    fn ends(&mut self, cx: &mut Cx) {
        let mut fired = std::mem::take(&mut self.fired);
        fired.sort_unstable_by_key(|slot| {
            let worker = &self.workers[*slot as usize];
            (Reverse(worker.origin), worker.opened)
        });
        for slot in fired {
            let over = self.workers[slot as usize].end <= cx.now();
            let Some(at) = self.receivers.iter().position(|s| *s == slot).filter(|_| over) else {
                continue;
            };
            self.receivers.swap_remove(at);
            if self.workers[slot as usize].taken > 0 {
                self.close(slot, Reason::Timer, cx);
            } else {
                self.tell_late(slot, cx);
                self.open(slot, cx);
            }
        }
    }

    /// Sleeps until a request may complete a batch, or starts one and its timer; those before it
    /// are dealt out then, each in its turn.
    #[inline(always)]
    fn interest(&self) -> Interest {
        let taken = |slot: &Slot| self.workers[*slot as usize].taken;
        let fullest = |a: u32, b: u32| if a == 0 || b == 0 { 0 } else { a.max(b) };
        match self.receivers.iter().map(taken).reduce(fullest) {
            None => Interest::NONE,
            Some(0) => Interest::queue(1),
            Some(most) => {
                let rounds = u64::from(self.max - most - 1) * self.receivers.len() as u64;
                Interest::queue(u32::try_from(rounds + 1).unwrap_or(u32::MAX))
            }
        }
    }

    /// The first windows open once time has come to them.
    #[cold]
    fn begin(&mut self, cx: &mut Cx) {
        if self.workers.is_empty() {
            self.workers = vec![Worker::default(); cx.slots() as usize];
            // By a timer, so that arrivals of that moment come before.
            cx.timer(0, self.phase);
        }
        if !self.fired.is_empty() {
            self.fired.clear();
            self.opened = true;
            (0..cx.slots()).for_each(|slot| self.open(slot, cx));
        }
    }
}

impl Batcher for Windows {
    fn promises(&self) -> Promises {
        Promises {
            cap: true,
            // Several workers: a later request may be in the batch that leaves earlier.
            fifo: false,
            work_conserving: self.window == Nanos::ZERO && self.phase == Nanos::ZERO,
            one_batch_per_slot: true,
            wait_bound: false,
        }
    }

    fn places(&self, _: &Cx) -> u32 {
        let room = |slot: &Slot| self.max - self.workers[*slot as usize].taken;
        let free = |slot: &Slot| if self.window == Nanos::ZERO { 1 } else { room(slot) };
        self.receivers.iter().map(free).fold(0, u32::saturating_add)
    }

    #[inline(always)]
    fn on(&mut self, event: Event, _: &mut Cx) {
        match event {
            Event::Done { slot, .. } => self.freed.push(slot),
            Event::Timer(key) => self.fired.push(key),
            _ => {}
        }
    }

    #[inline(always)]
    fn settle(&mut self, cx: &mut Cx) -> Interest {
        if !self.opened {
            self.begin(cx);
        }
        self.arrivals(cx);
        self.ask_again(cx);
        if !self.fired.is_empty() {
            self.ends(cx);
        }
        self.interest()
    }
}

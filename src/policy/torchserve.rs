//! `torchserve`: the `BatchAggregator` of TorchServe 0.12.0, for stateless models.
//!
//! Workers form batches one at a time, under a lock. The worker that has it
//! 1. waits for a request, without end, and takes it: from here on its time counts, however long
//!    the request has waited;
//! 2. takes more, at most `batchSize` with the first. After each it subtracts the whole
//!    milliseconds of the clock that have passed from `maxBatchDelay`; once nothing remains it
//!    stops, with the request just taken; once what remains passes without a request, it stops;
//! 3. gives the lock to the worker that waits longest and runs its batch.
//!
//! With `⌊·⌋` the whole milliseconds of the clock, a worker that takes its first request at `t₀`
//! and its latest at `t` closes at `(⌊t₀⌋ + maxBatchDelay) ms + (t − ⌊t⌋)`, or with a request
//! taken at or after `⌊t₀⌋ + maxBatchDelay`, or with its last turn: between one millisecond less
//! and one more than `maxBatchDelay` after `t₀`. `maxBatchDelay = 0` therefore runs one or two
//! requests at a time, whatever waits.
//!
//! `job_queue_size` requests may wait; a further one gets a 503. A request that has waited
//! `clientTimeoutInMills` is dropped when it is taken, without an answer; it uses up a turn, and
//! the first of a batch is never looked at. Java's lock is not fair; this one serves in turn.
//!
//! Source: pytorch/serve, wlm/BatchAggregator.java and Model.java. Requests count, not items.

use super::{Batcher, Event, Interest, LANE, Promises, Reason, came_before, refuse_late};
use crate::engine::{Bid, Cx, Key, Slot};
use crate::record::Gone;
use crate::tagged::{BadParam, params};
use crate::time::Nanos;
use std::collections::VecDeque;

const TIMER: Key = 0;
/// Nanoseconds in a millisecond.
const MS: u64 = 1_000_000;

/// The versions whose rule this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema))]
pub enum TorchServeRelease {
    /// 0.12.0 (2024-09), the last.
    #[default]
    #[cfg_attr(feature = "schema", serde(rename = "0.12.0"))]
    V0_12_0,
}

params! {
    /// Parameters of `torchserve`, by TorchServe's names. Its workers are the server's instances.
    pub struct TorchServe {
        /// The version that is meant: 0.12.0 (default).
        #[cfg_attr(feature = "schema", serde(default))]
        pub release: TorchServeRelease,
        /// Most requests in one batch (default 1).
        #[cfg_attr(feature = "schema", serde(rename = "batchSize", default = "one"))]
        pub batch_size: u32,
        /// Milliseconds that a worker waits for more after its first request (default 100). A 0
        /// in TorchServe's own files means 100; here it is the 0 of its management API.
        #[cfg_attr(feature = "schema", serde(rename = "maxBatchDelay", default = "hundred"))]
        pub max_batch_delay: u32,
        /// Most waiting requests (default 100).
        #[cfg_attr(feature = "schema", serde(default = "hundred"))]
        pub job_queue_size: u32,
        /// Milliseconds after which a waiting request is dropped when met; 0 (default) is never.
        #[cfg_attr(feature = "schema", serde(rename = "clientTimeoutInMills", default))]
        pub client_timeout_in_mills: u32,
        /// Not simulated: only false is accepted.
        #[cfg_attr(feature = "schema", serde(rename = "useJobTicket", default))]
        pub use_job_ticket: bool,
        /// How far the server's clock is into a millisecond at time zero (default 0).
        #[cfg_attr(feature = "schema", serde(default))]
        pub clock_phase: Nanos,
    }
}

#[cfg(feature = "schema")]
const fn one() -> u32 {
    1
}

#[cfg(feature = "schema")]
const fn hundred() -> u32 {
    100
}

impl Default for TorchServe {
    fn default() -> Self {
        Self {
            release: TorchServeRelease::default(),
            batch_size: 1,
            max_batch_delay: 100,
            job_queue_size: 100,
            client_timeout_in_mills: 0,
            use_job_ticket: false,
            clock_phase: Nanos::ZERO,
        }
    }
}

impl TorchServe {
    /// How long a worker waits for more after its first request.
    #[must_use]
    pub fn delay(&self) -> Nanos {
        Nanos(u64::from(self.max_batch_delay) * MS)
    }

    /// Requests of a batch when the queue never empties: pairs when the delay is 0.
    pub(super) fn saturated_batch(&self) -> u32 {
        if self.max_batch_delay == 0 { self.batch_size.min(2) } else { self.batch_size }
    }

    pub(super) fn check(&self) -> Result<(), BadParam> {
        if self.batch_size == 0 {
            let what = "a batch holds at least one request, batchSize is 0";
            return Err(BadParam::new("batchSize", what, "write 1 or more"));
        }
        if self.job_queue_size == 0 {
            let what = "a queue that holds nothing rejects every request";
            return Err(BadParam::new("job_queue_size", what, "write how many requests may wait"));
        }
        if self.use_job_ticket {
            let what = "useJobTicket is not simulated: a request would be accepted only while a \
                        worker waits for one";
            let help = "leave it out; job_queue_size limits the queue";
            return Err(BadParam::new("useJobTicket", what, help));
        }
        if self.clock_phase.0 >= MS {
            let what = format!("clock_phase {} is a millisecond or more", self.clock_phase);
            return Err(BadParam::new("clock_phase", what, "write less than \"1ms\""));
        }
        Ok(())
    }
}

/// Who has the lock.
#[derive(Clone, Debug)]
enum Holder {
    Nobody,
    /// A worker that waits for its first request; nothing is queued.
    Blocked(Slot),
    /// A worker that takes requests as they come.
    Collecting(Slot, Window),
}

/// A batch that forms. While nothing can close it, what it has taken stays in the lane.
#[derive(Clone, Debug)]
struct Window {
    batch: Bid,
    /// Requests it may still take beyond those in `batch`.
    turns: u32,
    /// From here on one more request closes it.
    ripe: Nanos,
    /// When it took the latest of those in `batch`.
    latest: Nanos,
    /// When nothing remains of its time; known once it is ripe.
    due: Option<Nanos>,
}

/// The batcher of TorchServe.
#[derive(Clone, Debug)]
pub struct BatchAggregator {
    cap: u32,
    delay_ms: u64,
    limit: u32,
    client_timeout: Option<Nanos>,
    phase_ns: u64,
    holder: Holder,
    /// Idle workers that wait for the lock.
    waiting: VecDeque<Slot>,
    /// Workers that became idle since the last settling.
    freed: Vec<Slot>,
    /// For each worker: the number of the batch it closed last.
    closed: Vec<u64>,
    batches: u64,
}

impl BatchAggregator {
    /// The batcher for these parameters.
    #[must_use]
    pub fn new(p: &TorchServe) -> Self {
        let client_timeout = (p.client_timeout_in_mills > 0)
            .then(|| Nanos(u64::from(p.client_timeout_in_mills) * MS));
        Self {
            cap: p.batch_size,
            delay_ms: u64::from(p.max_batch_delay),
            limit: p.job_queue_size,
            client_timeout,
            phase_ns: p.clock_phase.0,
            holder: Holder::Nobody,
            waiting: VecDeque::new(),
            freed: Vec::new(),
            closed: Vec::new(),
            batches: 0,
        }
    }

    /// All workers ask for the lock before anything arrives.
    #[cold]
    fn begin(&mut self, cx: &Cx) {
        self.closed = vec![0; cx.slots() as usize];
        self.waiting = (0..cx.slots()).collect();
        self.pass_on();
    }

    /// Gives the lock to the worker that has waited longest.
    fn pass_on(&mut self) {
        self.holder = self.waiting.pop_front().map_or(Holder::Nobody, Holder::Blocked);
    }

    /// Lets the holders of the lock take what came, in its order.
    #[inline(always)]
    fn arrivals(&mut self, cx: &mut Cx) {
        loop {
            match self.holder {
                Holder::Blocked(slot) if cx.queued(LANE) > 0 => self.first(slot, false, cx),
                Holder::Collecting(..) => {
                    if !self.gather(cx) {
                        return;
                    }
                }
                _ => return,
            }
        }
    }

    /// A worker with the lock takes its first request, and those behind it that `all` were there
    /// before it asked.
    fn first(&mut self, slot: Slot, all: bool, cx: &mut Cx) {
        refuse_late(cx);
        if cx.queued(LANE) == 0 {
            self.holder = Holder::Blocked(slot);
            return;
        }
        let batch = cx.open();
        cx.take(batch, LANE, 1);
        let mut turns = self.cap - 1;
        if all {
            turns -= self.backlog(batch, turns, cx);
        }
        if turns == 0 || self.delay_ms == 0 {
            return self.close(slot, batch, Reason::Idle, cx);
        }
        let now = cx.now();
        let whole = (now.0 + self.phase_ns) / MS + self.delay_ms;
        let ripe = Nanos(whole * MS - self.phase_ns);
        cx.timer(TIMER, ripe);
        let window = Window { batch, turns, ripe, latest: now, due: None };
        self.holder = Holder::Collecting(slot, window);
    }

    /// Takes up to `turns` requests that wait; returns how many turns that took.
    fn backlog(&self, batch: Bid, turns: u32, cx: &mut Cx) -> u32 {
        // No time is left after one when there was none before it.
        let most = if self.delay_ms == 0 { turns.min(1) } else { turns };
        if self.client_timeout.is_none() && !cx.any_timeout() {
            return cx.take(batch, LANE, most);
        }
        let mut used = 0;
        while used < most {
            refuse_late(cx);
            let Some(arrival) = cx.oldest_arrival(LANE) else { break };
            used += 1;
            if self.client_timeout.is_some_and(|timeout| cx.now() >= arrival.plus(timeout)) {
                cx.refuse(LANE, 0, Gone::Expired, true);
            } else {
                cx.take(batch, LANE, 1);
            }
        }
        used
    }

    /// The collecting worker takes what came since; whether that closed its batch.
    #[inline(always)]
    fn gather(&mut self, cx: &mut Cx) -> bool {
        let phase = self.phase_ns;
        let Holder::Collecting(slot, window) = &mut self.holder else { return false };
        let slot = *slot;
        if cx.now() < window.ripe {
            if cx.queued(LANE) < window.turns {
                return false;
            }
            let batch = window.batch;
            cx.take(batch, LANE, window.turns);
            self.close(slot, batch, Reason::Idle, cx);
            return true;
        }
        if window.due.is_none() {
            let early = came_before(window.ripe, cx);
            if let Some(last) = early.checked_sub(1).and_then(|at| cx.waiting(LANE, at)) {
                window.latest = cx.arrival(last);
                window.turns -= cx.take(window.batch, LANE, early);
            }
            let due = Nanos(window.ripe.0 + (window.latest.0 + phase) % MS);
            window.due = Some(due);
            cx.timer(TIMER, due);
        }
        if cx.queued(LANE) == 0 {
            return false;
        }
        let batch = window.batch;
        cx.take(batch, LANE, 1);
        self.close(slot, batch, Reason::Timer, cx);
        true
    }

    /// Idle workers ask for the lock, in the order in which they closed their batches.
    #[inline(always)]
    fn ask(&mut self, cx: &mut Cx) {
        if self.freed.len() > 1 {
            let closed = &self.closed;
            self.freed.sort_unstable_by_key(|slot| closed[*slot as usize]);
        }
        for at in 0..self.freed.len() {
            let slot = self.freed[at];
            match self.holder {
                Holder::Nobody => self.first(slot, true, cx),
                _ => self.waiting.push_back(slot),
            }
        }
        self.freed.clear();
    }

    fn close(&mut self, slot: Slot, batch: Bid, why: Reason, cx: &mut Cx) {
        cx.cancel(TIMER);
        let reason = if cx.size(batch) >= self.cap { Reason::Full } else { why };
        cx.start(batch, slot, cx.items(batch), reason);
        self.batches += 1;
        self.closed[slot as usize] = self.batches;
        self.pass_on();
    }

    /// Requests that a worker would take at one moment, were they to arrive one after another.
    fn fresh(&self) -> u32 {
        if self.delay_ms == 0 { 1 } else { self.cap }
    }
}

impl Batcher for BatchAggregator {
    fn promises(&self) -> Promises {
        Promises {
            cap: true,
            fifo: true,
            work_conserving: self.delay_ms == 0 || self.cap == 1,
            one_batch_per_slot: true,
            wait_bound: false,
        }
    }

    fn room(&self, _: u8, cx: &Cx) -> u32 {
        self.limit.saturating_add(self.places(cx)).saturating_sub(cx.queued(LANE))
    }

    fn room_varies(&self) -> bool {
        true
    }

    fn places(&self, cx: &Cx) -> u32 {
        let mine = match &self.holder {
            Holder::Nobody => return 0,
            Holder::Blocked(_) => self.fresh(),
            Holder::Collecting(_, w) if cx.now() < w.ripe => w.turns,
            Holder::Collecting(_, w) if w.due.is_some() => 1,
            Holder::Collecting(_, w) => came_before(w.ripe, cx) + 1,
        };
        let others = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        mine.saturating_add(others.saturating_mul(self.fresh()))
    }

    #[inline(always)]
    fn on(&mut self, event: Event, _: &mut Cx) {
        if let Event::Done { slot, .. } = event {
            self.freed.push(slot);
        }
    }

    #[inline(always)]
    fn settle(&mut self, cx: &mut Cx) -> Interest {
        if self.closed.is_empty() {
            self.begin(cx);
        }
        self.arrivals(cx);
        self.ask(cx);
        if let Holder::Collecting(slot, window) = &self.holder
            && window.due.is_some_and(|due| due <= cx.now())
        {
            let (slot, batch) = (*slot, window.batch);
            self.close(slot, batch, Reason::Timer, cx);
        }
        match &self.holder {
            Holder::Nobody => Interest::NONE,
            Holder::Collecting(_, window) if window.due.is_none() => Interest::queue(window.turns),
            _ => Interest::queue(1),
        }
    }
}

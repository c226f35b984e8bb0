//! `mosec`: the batching of mosec 0.9.8. Every idle worker competes for every request.
//!
//! Idle workers stand in line for one channel. A request goes to the first of them, who lines up
//! again at the end unless its batch is complete; so several idle workers split the stream. A
//! worker's timer starts with the first request it receives, however long that has waited:
//! received at `t₀`, the batch leaves with `max_batch_size` requests or at
//! `t₀ + max_wait_time + timer_extra`. `max_wait_time = 0` selects the 10 ms of the command line.
//!
//! `capacity` requests may wait in the channel; a further one gets a 429. `timeout` is the
//! client's: once it has passed the client gets a 408, wherever its request is. In the channel and
//! in a batch that forms it keeps its place and is left out when the batch leaves; a pass that
//! has begun includes it.
//!
//! `timer_extra` is how much later than asked the timer fires: the runtime counts milliseconds,
//! and recordings of the real server show 1 ms. Workers are the server's instances (mosec's
//! `num`). Source: mosecorg/mosec, src/protocol.rs and src/tasks.rs. Requests count, not items.

use super::{Batcher, Event, Interest, LANE, Promises, Reason, check_cap, refuse_late};
use crate::engine::{Bid, Cx, Key, Position, Rid, Slot};
use crate::record::Gone;
use crate::tagged::{BadParam, params};
use crate::time::Nanos;
use std::collections::VecDeque;

/// The timer of the oldest request's patience; those of the workers have their numbers.
const PATIENCE: Key = Key::MAX;
/// Nanoseconds in a millisecond.
const MS: u64 = 1_000_000;
/// What `max_wait_time = 0` selects.
const DEFAULT_WAIT_MS: u32 = 10;

/// The versions whose rule this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema))]
pub enum MosecRelease {
    /// 0.9.8.
    #[default]
    #[cfg_attr(feature = "schema", serde(rename = "0.9.8"))]
    V0_9_8,
}

params! {
    /// Parameters of `mosec`, by mosec's names. Its workers are the server's instances.
    pub struct Mosec {
        /// The version that is meant: 0.9.8 (default).
        #[cfg_attr(feature = "schema", serde(default))]
        pub release: MosecRelease,
        /// Most requests in one batch (default 1).
        #[cfg_attr(feature = "schema", serde(default = "one"))]
        pub max_batch_size: u32,
        /// Milliseconds that a worker waits for more after its first request; 0 (default) is 10.
        #[cfg_attr(feature = "schema", serde(default))]
        pub max_wait_time: u32,
        /// Most waiting requests (default 1024).
        #[cfg_attr(feature = "schema", serde(default = "capacity"))]
        pub capacity: u32,
        /// Milliseconds after which a client gives up (default 3000).
        #[cfg_attr(feature = "schema", serde(default = "timeout"))]
        pub timeout: u32,
        /// How much later than `max_wait_time` the timer fires (default "1ms", as recorded).
        #[cfg_attr(feature = "schema", serde(default = "timer_extra"))]
        pub timer_extra: Nanos,
    }
}

#[cfg(feature = "schema")]
const fn one() -> u32 {
    1
}

#[cfg(feature = "schema")]
const fn capacity() -> u32 {
    1024
}

#[cfg(feature = "schema")]
const fn timeout() -> u32 {
    3000
}

#[cfg(feature = "schema")]
const fn timer_extra() -> Nanos {
    Nanos(MS)
}

impl Default for Mosec {
    fn default() -> Self {
        Self {
            release: MosecRelease::default(),
            max_batch_size: 1,
            max_wait_time: 0,
            capacity: 1024,
            timeout: 3000,
            timer_extra: Nanos(MS),
        }
    }
}

impl Mosec {
    /// How long a worker waits for more after its first request.
    #[must_use]
    pub fn wait(&self) -> Nanos {
        let asked = if self.max_wait_time == 0 { DEFAULT_WAIT_MS } else { self.max_wait_time };
        Nanos(u64::from(asked) * MS).plus(self.timer_extra)
    }

    pub(super) fn check(&self) -> Result<(), BadParam> {
        check_cap(self.max_batch_size)?;
        if self.capacity == 0 {
            let what = "a channel that holds nothing rejects every request";
            return Err(BadParam::new("capacity", what, "write how many requests may wait"));
        }
        if self.timeout == 0 {
            let what = "a timeout of zero expires every request";
            return Err(BadParam::new("timeout", what, "write milliseconds, as in 3000"));
        }
        Ok(())
    }
}

/// A worker and the batch it forms or runs.
#[derive(Clone, Copy, Debug, Default)]
struct Worker {
    /// The batch it forms, once it has received anything.
    forming: Option<Bid>,
    /// Places of that batch that are gone, those of clients that gave up included.
    used: u32,
    running: Option<Bid>,
    /// When its timer fires.
    due: Nanos,
    /// Number of that timer.
    timer: u64,
    /// Number of the batch it closed last.
    closed: u64,
}

/// The batcher of mosec.
#[derive(Clone, Debug)]
pub struct Channel {
    max: u32,
    wait: Nanos,
    capacity: u32,
    timeout: Nanos,
    workers: Vec<Worker>,
    /// Idle workers in the order in which they receive.
    receivers: VecDeque<Slot>,
    /// Places left in the batches of the receivers.
    room: u32,
    /// Places at the front of the channel whose clients have given up.
    abandoned: u32,
    freed: Vec<Slot>,
    /// Timers that have fired since the last settling.
    fired: Vec<Key>,
    batches: u64,
    timers: u64,
}

impl Channel {
    /// The batcher for these parameters.
    #[must_use]
    pub fn new(p: &Mosec) -> Self {
        Self {
            max: p.max_batch_size,
            wait: p.wait(),
            capacity: p.capacity,
            timeout: Nanos(u64::from(p.timeout) * MS),
            workers: Vec::new(),
            receivers: VecDeque::new(),
            room: 0,
            abandoned: 0,
            freed: Vec::new(),
            fired: Vec::new(),
            batches: 0,
            timers: 0,
        }
    }

    #[cold]
    fn begin(&mut self, cx: &mut Cx) {
        self.workers = vec![Worker::default(); cx.slots() as usize];
        (0..cx.slots()).for_each(|slot| self.line_up(slot));
        cx.timer(PATIENCE, cx.now().plus(self.timeout));
    }

    fn line_up(&mut self, slot: Slot) {
        self.room = self.room.saturating_add(self.max - self.workers[slot as usize].used);
        self.receivers.push_back(slot);
    }

    /// The receiver at a place of the line leaves it.
    fn leave(&mut self, at: usize) -> Option<Slot> {
        let slot = self.receivers.remove(at)?;
        self.room = self.room.saturating_sub(self.max - self.workers[slot as usize].used);
        Some(slot)
    }

    /// A worker receives up to `most` requests.
    #[inline(always)]
    fn receive(&mut self, slot: Slot, most: u32, cx: &mut Cx) {
        let worker = &mut self.workers[slot as usize];
        let most = most.min(self.max - worker.used);
        // Abandoned requests come first, and use places.
        let lost = self.abandoned.min(most);
        let n = (most - lost).min(cx.queued(LANE));
        if lost + n == 0 {
            return;
        }
        self.abandoned -= lost;
        if worker.used == 0 && self.max > 1 {
            self.timers += 1;
            (worker.due, worker.timer) = (cx.now().plus(self.wait), self.timers);
            cx.timer(slot, worker.due);
        }
        worker.used += lost + n;
        let batch = *worker.forming.get_or_insert_with(|| cx.open());
        cx.take(batch, LANE, n);
    }

    /// After receiving: a complete batch leaves, else the worker lines up for more.
    #[inline(always)]
    fn go_on(&mut self, slot: Slot, cx: &mut Cx) {
        if self.workers[slot as usize].used >= self.max {
            self.close(slot, Reason::Idle, cx);
        } else {
            self.line_up(slot);
        }
    }

    /// What came goes to the receivers, each in turn.
    #[inline(always)]
    fn arrivals(&mut self, cx: &mut Cx) {
        while cx.queued(LANE) > 0
            && let Some(slot) = self.leave(0)
        {
            let alone = self.receivers.is_empty();
            self.receive(slot, if alone { u32::MAX } else { 1 }, cx);
            self.go_on(slot, cx);
        }
    }

    /// A worker that became idle receives what waits.
    fn fill(&mut self, slot: Slot, cx: &mut Cx) {
        if cx.any_timeout() {
            let worker = slot as usize;
            while self.workers[worker].used < self.max {
                if self.abandoned == 0 {
                    refuse_late(cx);
                }
                let before = self.workers[worker].used;
                self.receive(slot, 1, cx);
                if self.workers[worker].used == before {
                    break;
                }
            }
        } else {
            self.receive(slot, u32::MAX, cx);
        }
        self.go_on(slot, cx);
    }

    #[inline(always)]
    fn idle_again(&mut self, cx: &mut Cx) {
        if self.freed.len() > 1 {
            let workers = &self.workers;
            self.freed.sort_unstable_by_key(|slot| workers[*slot as usize].closed);
        }
        for at in 0..self.freed.len() {
            self.fill(self.freed[at], cx);
        }
        self.freed.clear();
    }

    fn close(&mut self, slot: Slot, why: Reason, cx: &mut Cx) {
        let worker = &mut self.workers[slot as usize];
        cx.cancel(slot);
        let Some(batch) = worker.forming.take() else { return };
        worker.used = 0;
        let size = cx.size(batch);
        if size == 0 {
            // Everybody in it has given up.
            cx.requeue(batch, LANE, Position::Back);
            return self.fill(slot, cx);
        }
        worker.running = Some(batch);
        self.batches += 1;
        worker.closed = self.batches;
        let reason = if size >= self.max { Reason::Full } else { why };
        cx.start(batch, slot, cx.items(batch), reason);
    }

    /// Timers that fire now, in the order in which they were set.
    fn ring(&mut self, cx: &mut Cx) {
        let mut fired = std::mem::take(&mut self.fired);
        let (workers, patient) = (&self.workers, self.timeout < self.wait);
        fired.sort_unstable_by_key(|key| match workers.get(*key as usize) {
            Some(worker) => worker.timer,
            // A client's timer was set with its request.
            None if patient => u64::MAX,
            None => 0,
        });
        for key in fired {
            if key == PATIENCE {
                self.give_up(cx);
            } else if let Some(at) = self.receivers.iter().position(|slot| *slot == key)
                && self.workers[key as usize].used > 0
                && self.workers[key as usize].due <= cx.now()
            {
                self.leave(at);
                self.close(key, Reason::Timer, cx);
            }
        }
    }

    /// Sleeps until a request sets a timer or completes a batch; those before it are dealt out
    /// then, each in its turn.
    #[inline(always)]
    fn interest(&self) -> Interest {
        let line = self.receivers.len() as u64;
        let mut wanted = u64::MAX;
        for (at, slot) in (1..).zip(&self.receivers) {
            if at >= wanted {
                break;
            }
            wanted = wanted.min(match self.workers[*slot as usize].used {
                0 => at,
                used => at + u64::from(self.max - used - 1) * line,
            });
        }
        // More than a queue can hold never come.
        Interest::queue(u32::try_from(wanted).unwrap_or(u32::MAX))
    }

    /// Clients whose patience has ended get their 408.
    fn give_up(&mut self, cx: &mut Cx) {
        let late = |rid: Rid, cx: &Cx| cx.arrival(rid).plus(self.timeout) <= cx.now();
        while cx.waiting(LANE, 0).is_some_and(|rid| late(rid, cx)) {
            cx.refuse(LANE, 0, Gone::Expired, false);
            self.abandoned += 1;
        }
        let batches = self.workers.iter().flat_map(|w| [w.forming, w.running]).flatten();
        for batch in batches {
            let first: Vec<Rid> = cx.members(batch).take_while(|rid| late(*rid, cx)).collect();
            for rid in first {
                cx.give_up(batch, rid, Gone::Expired);
            }
        }
        // The next to give up is the oldest that is left, or someone who has yet to come.
        match self.oldest(cx) {
            None if cx.draining() => {}
            oldest => cx.timer(PATIENCE, oldest.unwrap_or(cx.now()).plus(self.timeout)),
        }
    }

    /// Arrival of the oldest request that is not answered.
    fn oldest(&self, cx: &Cx) -> Option<Nanos> {
        let batches = self.workers.iter().flat_map(|w| [w.forming, w.running]).flatten();
        let firsts = batches.filter_map(|batch| cx.members(batch).next());
        let all = firsts.chain(cx.waiting(LANE, 0)).map(|rid| cx.arrival(rid));
        all.min()
    }
}

impl Batcher for Channel {
    fn promises(&self) -> Promises {
        Promises {
            cap: true,
            // Several workers: a later request may be in the batch that leaves earlier.
            fifo: false,
            work_conserving: self.max == 1,
            one_batch_per_slot: true,
            wait_bound: false,
        }
    }

    fn room(&self, _: u8, cx: &Cx) -> u32 {
        let waiting = cx.queued(LANE).saturating_add(self.abandoned);
        self.capacity.saturating_add(self.room).saturating_sub(waiting)
    }

    fn places(&self, _: &Cx) -> u32 {
        self.room
    }

    #[inline(always)]
    fn on(&mut self, event: Event, _: &mut Cx) {
        match event {
            Event::Done { slot, .. } => {
                self.workers[slot as usize].running = None;
                self.freed.push(slot);
            }
            Event::Timer(key) => self.fired.push(key),
            _ => {}
        }
    }

    #[inline(always)]
    fn settle(&mut self, cx: &mut Cx) -> Interest {
        if self.workers.is_empty() {
            self.begin(cx);
        }
        self.arrivals(cx);
        self.idle_again(cx);
        if !self.fired.is_empty() {
            self.ring(cx);
        }
        if cx.draining() && self.oldest(cx).is_none() {
            cx.cancel(PATIENCE);
        }
        self.interest()
    }
}

//! The recurrence: size-or-timeout laws without events.
//!
//! With head arrival `a`, earliest free instance `F` and the arrival `t` that brings the queue to
//! the target, the next batch starts at `S = max(F, a, min(t, anchor + wait))` and takes the
//! arrivals up to `S`, at most `cap`. It holds for open-loop arrivals, one queue, no limit and no
//! timeouts; any number of instances. Equal to the event engine there, call for call.

use super::{Ending, Rules, completion_ns};
use crate::arrivals::{BLOCK, Blocks, Feed};
use crate::cost::CostModel;
use crate::policy::{Anchor, Law};
use crate::record::{BatchRow, Gone, Recorder};
use crate::time::Nanos;

/// Entries behind the last known arrival: later than everything, so that a search needs no end.
const BEHIND: usize = 32;
/// Room for arrivals at first.
const START: usize = 2 * BLOCK;

/// Arrivals from the oldest that has not started, as far ahead as was needed.
struct Window {
    blocks: Blocks,
    /// Of what is known, then [`BEHIND`] times that never come, then anything.
    times: Vec<u64>,
    tags: Vec<u8>,
    head: usize,
    known: usize,
    /// The latest arrival that is known.
    last_ns: u64,
    ended: bool,
}

impl Window {
    fn new(feed: Feed) -> Self {
        let (times, tags) = (vec![u64::MAX; START], vec![0; START]);
        let blocks = feed.into_blocks();
        Self { blocks, times, tags, head: 0, known: 0, last_ns: 0, ended: false }
    }

    /// How many arrivals are known.
    #[inline(always)]
    fn waiting(&self) -> usize {
        self.known - self.head
    }

    /// The arrivals that are known, and what lies behind them.
    #[inline(always)]
    fn ahead(&self) -> (&[u64], &[u8]) {
        (&self.times[self.head..self.known + BEHIND], &self.tags[self.head..self.known + BEHIND])
    }

    /// Whether an arrival after `past` is known.
    #[inline(always)]
    fn sees_past(&self, past: u64) -> bool {
        self.last_ns > past
    }

    /// How many arrivals came up to `until`, counted to `cap`.
    #[inline(always)]
    fn up_to(&self, until: u64, cap: usize) -> usize {
        let (times, _) = self.ahead();
        let mut n = 0;
        // Eights and then ones: fewer branches to foresee than in a scan.
        while let Some(eight) = times[n..].first_chunk::<8>()
            && n < cap
        {
            if eight[7] <= until {
                n += 8;
                continue;
            }
            n += eight.iter().map(|&t| usize::from(t <= until)).sum::<usize>();
            break;
        }
        n.min(cap)
    }

    #[cold]
    #[inline(never)]
    fn extend(&mut self, recorder: &mut impl Recorder) {
        if self.head > self.known / 2 {
            self.times.copy_within(self.head..self.known, 0);
            self.tags.copy_within(self.head..self.known, 0);
            self.known -= self.head;
            self.head = 0;
        }
        let end = self.known + BLOCK;
        if self.times.len() < end + BEHIND {
            let wider = self.times.len() * 2;
            self.times.resize(wider, 0);
            self.tags.resize(wider, 0);
        }
        let (times, tags) = (&mut self.times[self.known..end], &mut self.tags[self.known..end]);
        let n = self.blocks.next(times, tags);
        self.ended = n == 0;
        recorder.arrived(&times[..n]);
        self.last_ns = times[..n].last().copied().unwrap_or(self.last_ns);
        self.known += n;
        self.times[self.known..self.known + BEHIND].fill(u64::MAX);
    }
}

struct Run<'a, R> {
    law: Law,
    window: Window,
    cut_ns: Option<u64>,
    told_last: bool,
    /// Requests in batches that were cut off or are never done.
    lost: u64,
    recorder: &'a mut R,
}

/// When each instance is free, and which is first, the lowest number among equals.
struct Free {
    /// A copy that stays in a register: each batch waits for it.
    earliest_ns: u64,
    slot: usize,
    all_ns: Vec<u64>,
}

impl Free {
    /// The instance that was free first starts a batch.
    #[inline(always)]
    fn busy_until(&mut self, done_ns: u64) {
        if self.all_ns.len() == 1 {
            self.earliest_ns = done_ns;
            return;
        }
        self.all_ns[self.slot] = done_ns;
        (self.earliest_ns, self.slot) = (self.all_ns[0], 0);
        for (slot, free) in self.all_ns.iter().enumerate().skip(1) {
            if *free < self.earliest_ns {
                (self.earliest_ns, self.slot) = (*free, slot);
            }
        }
    }
}

/// A batch about to start.
struct Start {
    at_ns: u64,
    timer_ns: u64,
    size: usize,
}

/// Runs one replication to its end.
pub fn run<C: CostModel, R: Recorder>(
    law: Law,
    cost: &mut C,
    feed: Feed,
    rules: &Rules,
    recorder: &mut R,
) -> Ending {
    let mut run = Run {
        law,
        window: Window::new(feed),
        cut_ns: rules.cut_ns,
        told_last: false,
        lost: 0,
        recorder,
    };
    let stop = rules.cut_ns.unwrap_or(u64::MAX);
    let mut end_ns = 0;
    let mut free = Free { earliest_ns: 0, slot: 0, all_ns: vec![0; rules.instances as usize] };
    loop {
        let slot = free.slot;
        let Some(start) = run.next(free.earliest_ns) else {
            break;
        };
        if start.at_ns > stop || start.at_ns == u64::MAX {
            break;
        }
        let size = u32::try_from(start.size).unwrap_or(u32::MAX);
        let slot_number = u32::try_from(slot).unwrap_or(u32::MAX);
        let row = BatchRow {
            size,
            ran_as: size,
            slot: slot_number,
            start_ns: start.at_ns,
            took_ns: cost.took_ns(slot_number, size),
            held_ns: 0,
            reason: law.reason(size, Nanos(start.timer_ns), Nanos(start.at_ns)),
        };
        let done_ns = completion_ns(row.start_ns, row.took_ns);
        free.busy_until(done_ns);
        if done_ns <= stop && done_ns < u64::MAX {
            run.complete(&row, done_ns);
            end_ns = end_ns.max(done_ns);
        } else {
            // Cut off, or never done.
            run.lost += start.size as u64;
            run.unfinished(start.size, rules.cut_ns.unwrap_or(row.start_ns));
        }
    }
    run.finish(end_ns)
}

impl<R: Recorder> Run<'_, R> {
    /// The next batch, on an instance free at `free_ns`.
    #[inline(always)]
    fn next(&mut self, free_ns: u64) -> Option<Start> {
        let target = self.law.target as usize;
        while self.window.waiting() < target && !self.window.ended {
            self.window.extend(self.recorder);
        }
        if self.window.waiting() == 0 {
            return None;
        }
        let (times, _) = self.window.ahead();
        let head = times[0];
        let ready = free_ns.max(head);
        let anchor = match self.law.anchor {
            Anchor::OldestArrival => head,
            Anchor::Pickup => ready,
        };
        let timer_ns = anchor.saturating_add(self.law.wait.0);
        let filled = times.get(target - 1).copied().unwrap_or(u64::MAX);
        let mut held_until = filled.min(timer_ns);
        if self.window.ended && self.cut_ns.is_none() {
            // The last arrival lets go of whatever only the rule would hold.
            held_until = held_until.min(self.window.last_ns);
        }
        let at_ns = ready.max(held_until);
        let cap = self.law.cap as usize;
        while self.window.waiting() < cap && !self.window.ended && !self.window.sees_past(at_ns) {
            self.window.extend(self.recorder);
        }
        Some(Start { at_ns, timer_ns, size: self.window.up_to(at_ns, cap) })
    }

    #[inline(always)]
    fn complete(&mut self, row: &BatchRow, done_ns: u64) {
        // The recorder wants to know the last arrival before what completes after it.
        while !self.window.ended && !self.window.sees_past(done_ns) {
            self.window.extend(self.recorder);
        }
        self.tell_last();
        let (times, tags) = self.window.ahead();
        let n = row.size as usize;
        self.recorder.completed_ahead(row, times, tags, n, true);
        self.window.head += n;
    }

    #[inline(always)]
    fn tell_last(&mut self) {
        if self.window.ended && !self.told_last && self.cut_ns.is_none() {
            self.told_last = true;
            self.recorder.arrivals_ended(self.window.last_ns);
        }
    }

    /// Reports `n` requests that time was cut for.
    fn unfinished(&mut self, n: usize, at_ns: u64) {
        let from = self.window.head;
        for i in from..from + n {
            let (time, tag) = (self.window.times[i], self.window.tags[i]);
            self.recorder.gone(time, tag, at_ns, Gone::Unfinished);
        }
        self.window.head += n;
    }

    fn finish(mut self, end_ns: u64) -> Ending {
        let Some(cut) = self.cut_ns else {
            while !self.window.ended {
                self.window.extend(self.recorder);
            }
            self.tell_last();
            // Behind a batch that is never done.
            self.lost += self.window.waiting() as u64;
            self.unfinished(self.window.waiting(), end_ns);
            self.recorder.ended(end_ns);
            return Ending { at_ns: end_ns, stalled: (self.lost > 0).then_some(self.lost) };
        };
        self.recorder.arrivals_ended(cut);
        while !self.window.ended {
            self.window.extend(self.recorder);
        }
        self.unfinished(self.window.waiting(), cut);
        self.recorder.ended(cut);
        Ending { at_ns: cut, stalled: None }
    }
}

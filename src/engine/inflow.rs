//! What flows into a server: the open-loop feed, and callers that wait for their answers.

use super::requests::leading;
use crate::arrivals::{Feed, Tags, Think, ThinkKind};
use crate::rng::SimRng;
use rand::RngExt;
use rand_distr::Exp1;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Callers of one closed-loop source.
#[derive(Debug)]
pub struct Callers {
    /// Tags of their requests; no other source has any of them.
    pub tags: Tags,
    /// How many.
    pub clients: u32,
    /// Time between an answer and the next request.
    pub think: Think,
    /// Fixed time an answer and the next request spend outside the server, ns.
    pub away_ns: u64,
    /// Substream of the think times.
    pub rng: SimRng,
}

/// Closed-loop sources: what arrives depends on what was answered.
#[derive(Debug)]
pub struct Loops {
    callers: Vec<Callers>,
    /// When each caller calls next, and the first tag of its source.
    pending: BinaryHeap<Reverse<(u64, u8)>>,
    /// Measured requests still to be sent, by these callers and by the open sources together.
    left: u64,
    measure_from_ns: u64,
    until_ns: u64,
    /// Whether the callers have fallen silent.
    ended: bool,
    /// Set from outside to silence them early.
    stop: Option<Arc<AtomicBool>>,
}

impl Loops {
    /// All callers send their first request at time zero; `measured` requests from
    /// `measure_from_ns` on are sent in all, those of the open sources beside them included, and
    /// none by a caller at or after `until_ns`.
    #[must_use]
    pub fn new(
        callers: Vec<Callers>,
        measure_from_ns: u64,
        measured: Option<u64>,
        until_ns: Option<u64>,
    ) -> Self {
        let first =
            callers.iter().flat_map(|c| (0..c.clients).map(|_| Reverse((0, c.tags.first()))));
        Self {
            pending: first.collect(),
            left: measured.unwrap_or(u64::MAX),
            measure_from_ns,
            until_ns: until_ns.unwrap_or(u64::MAX),
            ended: false,
            stop: None,
            callers,
        }
    }

    /// The same callers, who fall silent once `stop` is set.
    #[must_use]
    pub fn unless(self, stop: Option<Arc<AtomicBool>>) -> Self {
        Self { stop, ..self }
    }

    fn peek(&mut self) -> Option<u64> {
        let Reverse((time, _)) = *self.pending.peek()?;
        let stopped = self.stop.as_ref().is_some_and(|s| s.load(Ordering::Relaxed));
        if self.over() || time >= self.until_ns || stopped {
            self.ended = true;
            self.pending.clear();
            return None;
        }
        Some(time)
    }

    fn pop(&mut self) -> Option<(u64, u8)> {
        self.peek()?;
        let Reverse((time, tag)) = self.pending.pop()?;
        self.count(time);
        let caller = self.callers.iter_mut().find(|c| c.tags.first() == tag)?;
        Some((time, caller.tags.next_tag()))
    }

    /// Counts a request that was sent.
    fn count(&mut self, time: u64) {
        if time >= self.measure_from_ns && self.left < u64::MAX {
            self.left -= 1;
        }
    }

    /// Whether no caller will send a request any more, whatever is answered.
    fn over(&self) -> bool {
        self.ended || self.left == 0
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    #[expect(clippy::cast_precision_loss, reason = "a random time")]
    fn answered(&mut self, tag: u8, at_ns: u64, refused: bool) {
        let Some(caller) = self.callers.iter_mut().find(|c| c.tags.holds(tag)) else {
            return;
        };
        let source = caller.tags.first();
        let think = match caller.think {
            Think::Constant(think) => think.0,
            Think::Law(law) => match law.kind {
                ThinkKind::Constant => law.mean.0,
                ThinkKind::Exponential => {
                    (caller.rng.sample::<f64, _>(Exp1) * law.mean.0 as f64).round() as u64
                }
            },
        };
        // A refusal that costs no time would be repeated for ever at one instant.
        let think = if refused { think.max(1) } else { think };
        let back = at_ns.saturating_add(think).saturating_add(caller.away_ns);
        self.pending.push(Reverse((back, source)));
    }
}

/// All arrivals of one run.
pub struct Inflow {
    /// Open-loop arrivals. Beside closed loops its own count of measured requests must be
    /// unlimited: theirs counts both.
    pub feed: Feed,
    /// Closed-loop arrivals, if there are any.
    pub loops: Option<Loops>,
}

impl Inflow {
    /// Time of the next arrival that is known.
    #[inline(always)]
    pub(super) fn next_ns(&mut self) -> u64 {
        let open = self.open_ns();
        match &mut self.loops {
            None => open,
            Some(loops) => open.min(loops.peek().unwrap_or(u64::MAX)),
        }
    }

    /// Time of the next open-loop arrival; the end of time when there is none.
    #[inline(always)]
    fn open_ns(&mut self) -> u64 {
        if self.loops.as_ref().is_some_and(|l| l.left == 0) {
            return u64::MAX;
        }
        self.feed.ready().0.first().copied().unwrap_or(u64::MAX)
    }

    /// Whether nothing will arrive any more.
    #[inline(always)]
    pub(super) fn over(&mut self) -> bool {
        self.open_ns() == u64::MAX
            && !self.feed.is_open()
            && self.loops.as_mut().is_none_or(|l| l.peek().is_none() && l.over())
    }

    /// Next arrivals up to `until_ns`, at most `most`: a block of the feed, or one caller's.
    #[inline(always)]
    pub(super) fn take(&mut self, until_ns: u64, most: usize, to: &mut impl Taker) -> usize {
        if self.loops.is_some() {
            return self.take_one(until_ns, most, to);
        }
        let (times, tags) = self.feed.ready();
        let n = leading(&times[..times.len().min(most)], until_ns);
        if n > 0 {
            to.take(&times[..n], &tags[..n]);
            self.feed.consume(n);
        }
        n
    }

    /// The next arrival of an open source or of a caller.
    fn take_one(&mut self, until_ns: u64, most: usize, to: &mut impl Taker) -> usize {
        let open = self.open_ns();
        let Some(loops) = &mut self.loops else { return 0 };
        let caller = loops.peek().unwrap_or(u64::MAX);
        let next = open.min(caller);
        if most == 0 || next > until_ns || next == u64::MAX {
            return 0;
        }
        // At equal times the open sources come first.
        if caller < open {
            if let Some((time, tag)) = loops.pop() {
                to.take(&[time], &[tag]);
            }
        } else {
            loops.count(open);
            let (times, tags) = self.feed.ready();
            to.take(&times[..1], &tags[..1]);
            self.feed.consume(1);
        }
        1
    }

    pub(super) fn answered(&mut self, tag: u8, at_ns: u64, refused: bool) {
        if let Some(loops) = &mut self.loops {
            loops.answered(tag, at_ns, refused);
        }
    }
}

/// Receives arrivals.
pub(super) trait Taker {
    fn take(&mut self, times: &[u64], tags: &[u8]);
}

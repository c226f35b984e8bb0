//! What flows into a server: the open-loop feed, and callers that wait for their answers.

use crate::arrivals::{Feed, Think, ThinkKind};
use crate::rng::SimRng;
use rand::RngExt;
use rand_distr::Exp1;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Callers of one closed-loop source.
#[derive(Debug)]
pub struct Callers {
    /// Number of this source.
    pub tag: u8,
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
    pending: BinaryHeap<Reverse<(u64, u8)>>,
    /// Measured requests still to be sent.
    left: u64,
    measure_from_ns: u64,
    until_ns: u64,
}

impl Loops {
    /// All callers send their first request at time zero; `measured` requests from
    /// `measure_from_ns` on are sent in all, and none at or after `until_ns`.
    #[must_use]
    pub fn new(
        callers: Vec<Callers>,
        measure_from_ns: u64,
        measured: Option<u64>,
        until_ns: Option<u64>,
    ) -> Self {
        let first = callers.iter().flat_map(|c| (0..c.clients).map(|_| Reverse((0, c.tag))));
        Self {
            pending: first.collect(),
            left: measured.unwrap_or(u64::MAX),
            measure_from_ns,
            until_ns: until_ns.unwrap_or(u64::MAX),
            callers,
        }
    }

    fn peek(&mut self) -> Option<u64> {
        let Reverse((time, _)) = *self.pending.peek()?;
        if self.left == 0 || time >= self.until_ns {
            self.left = 0;
            self.pending.clear();
            return None;
        }
        Some(time)
    }

    fn pop(&mut self) -> Option<(u64, u8)> {
        self.peek()?;
        let Reverse((time, tag)) = self.pending.pop()?;
        if time >= self.measure_from_ns && self.left < u64::MAX {
            self.left -= 1;
        }
        Some((time, tag))
    }

    /// Whether no request will be sent any more, whatever is answered.
    fn over(&self) -> bool {
        self.left == 0
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    #[expect(clippy::cast_precision_loss, reason = "a random time")]
    fn answered(&mut self, tag: u8, at_ns: u64, refused: bool) {
        let Some(caller) = self.callers.iter_mut().find(|c| c.tag == tag) else {
            return;
        };
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
        self.pending.push(Reverse((back, tag)));
    }
}

/// All arrivals of one run.
pub struct Inflow {
    /// Open-loop arrivals.
    pub feed: Feed,
    /// Closed-loop arrivals, if there are any.
    pub loops: Option<Loops>,
}

impl Inflow {
    /// Time of the next arrival that is known.
    #[inline(always)]
    pub(super) fn next_ns(&mut self) -> u64 {
        let open = self.feed.ready().0.first().copied().unwrap_or(u64::MAX);
        match &mut self.loops {
            None => open,
            Some(loops) => open.min(loops.peek().unwrap_or(u64::MAX)),
        }
    }

    /// Whether nothing will arrive any more.
    #[inline(always)]
    pub(super) fn over(&mut self) -> bool {
        self.feed.ready().0.is_empty()
            && self.loops.as_mut().is_none_or(|l| l.peek().is_none() && l.over())
    }

    /// Next arrivals up to `until_ns`, at most `most`: a block of the feed, or one caller's.
    #[inline(always)]
    pub(super) fn take(&mut self, until_ns: u64, most: usize, to: &mut impl Taker) -> usize {
        if let Some(loops) = &mut self.loops {
            let open = self.feed.ready().0.first().copied().unwrap_or(u64::MAX);
            // At equal times the open sources come first.
            if let Some(time) = loops.peek()
                && time < open
            {
                if time > until_ns || most == 0 {
                    return 0;
                }
                if let Some((time, tag)) = loops.pop() {
                    to.take(&[time], &[tag]);
                }
                return 1;
            }
        }
        let only_one = self.loops.is_some();
        let (times, tags) = self.feed.ready();
        let most = if only_one { most.min(1) } else { most };
        let n = leading(&times[..times.len().min(most)], until_ns);
        if n > 0 {
            to.take(&times[..n], &tags[..n]);
            self.feed.consume(n);
        }
        n
    }

    pub(super) fn answered(&mut self, tag: u8, at_ns: u64, refused: bool) {
        if let Some(loops) = &mut self.loops {
            loops.answered(tag, at_ns, refused);
        }
    }
}

/// How many leading times are at most `until`.
#[inline(always)]
fn leading(times: &[u64], until: u64) -> usize {
    match times.last() {
        None => 0,
        Some(&last) if last <= until => times.len(),
        // Usually a few: a short scan beats a binary search over the block.
        _ => times.iter().position(|&t| t > until).unwrap_or(times.len()),
    }
}

/// Receives arrivals.
pub(super) trait Taker {
    fn take(&mut self, times: &[u64], tags: &[u8]);
}

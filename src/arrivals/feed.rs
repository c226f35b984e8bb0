//! The open-loop arrivals of one replication: sources merged, cut to length, buffered in blocks.

use super::{Stream, Tags};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Arrivals per block: large enough to hide the call, small enough to stay in the L1 cache.
pub const BLOCK: usize = 1024;

/// How many arrivals a run wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Arrivals before this moment are warm-up and do not count towards `measured`.
    pub measure_from_ns: u64,
    /// Stop after this many measured arrivals.
    pub measured: Option<u64>,
    /// Stop before the first arrival at or after this moment.
    pub until_ns: Option<u64>,
}

/// Where the blocks of a feed come from.
pub(crate) struct Blocks {
    sources: Vec<Box<dyn Stream + Send>>,
    /// Tags of their requests.
    tags_of: Vec<Tags>,
    /// Next arrival of each source, when there are several.
    heads: Vec<Option<u64>>,
    ended: bool,
    limits: Limits,
    measured_left: u64,
    /// The latest arrival that was handed out.
    last_ns: u64,
    /// Set from outside to end the stream early.
    stop: Option<Arc<AtomicBool>>,
}

/// A sorted stream of arrivals of one or several sources.
pub struct Feed {
    blocks: Blocks,
    times: Vec<u64>,
    /// Tag of each time; stays all zero with a single plain source.
    tags: Vec<u8>,
    at: usize,
    len: usize,
    /// Whether more may be pushed.
    open: bool,
}

impl Feed {
    /// A feed of `sources`, numbered in order (at most 256).
    #[must_use]
    pub fn new(sources: Vec<Box<dyn Stream + Send>>, limits: Limits) -> Self {
        let number = |i: usize| u8::try_from(i).unwrap_or(u8::MAX);
        let tags = (0..sources.len()).map(|i| Tags::same(number(i))).collect();
        Self::tagged(sources, tags, limits)
    }

    /// A feed of `sources` whose requests have these tags.
    #[must_use]
    pub fn tagged(
        mut sources: Vec<Box<dyn Stream + Send>>,
        tags_of: Vec<Tags>,
        limits: Limits,
    ) -> Self {
        let heads = if sources.len() > 1 {
            sources.iter_mut().map(|s| one(s.as_mut())).collect()
        } else {
            Vec::new()
        };
        let ended = sources.is_empty();
        let measured_left = limits.measured.unwrap_or(u64::MAX);
        let blocks = Blocks {
            sources,
            tags_of,
            heads,
            ended,
            limits,
            measured_left,
            last_ns: 0,
            stop: None,
        };
        Self { blocks, times: Vec::new(), tags: Vec::new(), at: 0, len: 0, open: false }
    }

    /// A feed without sources, into which arrivals are pushed one by one.
    pub(crate) fn mailbox() -> Self {
        let limits = Limits { measure_from_ns: 0, measured: None, until_ns: None };
        Self { open: true, ..Self::tagged(Vec::new(), Vec::new(), limits) }
    }

    /// Whether more may be pushed.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Nothing more is pushed.
    pub(crate) fn close(&mut self) {
        self.open = false;
    }

    /// Adds an arrival, not earlier than those before it.
    #[inline(always)]
    pub(crate) fn push(&mut self, time: u64, tag: u8) {
        if self.at == self.len {
            (self.at, self.len) = (0, 0);
        }
        if self.len == self.times.len() {
            let wider = (2 * self.len).max(BLOCK);
            self.times.resize(wider, 0);
            self.tags.resize(wider, 0);
        }
        self.times[self.len] = time;
        self.tags[self.len] = tag;
        self.len += 1;
    }

    /// Arrivals that were pushed and not consumed.
    pub(crate) fn waiting(&self) -> &[u64] {
        &self.times[self.at..self.len]
    }

    /// The same feed, which ends at its next block once `stop` is set.
    #[must_use]
    pub fn unless(mut self, stop: Option<Arc<AtomicBool>>) -> Self {
        self.blocks.stop = stop;
        self
    }

    /// For who keeps blocks in a place of its own; before anything was [`ready`](Self::ready).
    pub(crate) fn into_blocks(self) -> Blocks {
        self.blocks
    }

    /// The next arrivals that are ready, with their sources: at least one, or none when the
    /// stream has ended.
    #[inline(always)]
    pub fn ready(&mut self) -> (&[u64], &[u8]) {
        if self.at == self.len {
            self.refill();
        }
        (&self.times[self.at..self.len], &self.tags[self.at..self.len])
    }

    /// Drops the first `n` of what is ready.
    #[inline(always)]
    pub fn consume(&mut self, n: usize) {
        debug_assert!(self.at + n <= self.len);
        self.at += n;
    }

    #[cold]
    fn refill(&mut self) {
        self.at = 0;
        self.times.resize(BLOCK, 0);
        self.tags.resize(BLOCK, 0);
        self.len = self.blocks.next(&mut self.times, &mut self.tags);
    }
}

impl Blocks {
    /// Writes the next arrivals and their tags into places for [`BLOCK`] of each, and returns
    /// how many: none when the stream has ended. Tags of a single plain source
    /// are left as they are, zero.
    pub(crate) fn next(&mut self, times: &mut [u64], tags: &mut [u8]) -> usize {
        let stopped = self.stop.as_ref().is_some_and(|s| s.load(Ordering::Relaxed));
        if self.ended || self.measured_left == 0 || stopped {
            self.ended = true;
            return 0;
        }
        // Past the warm-up the rest is counted: a short run must not pay for a whole block.
        let warm = self.last_ns >= self.limits.measure_from_ns;
        let left = usize::try_from(self.measured_left).unwrap_or(BLOCK);
        let wanted = if warm { left.min(BLOCK) } else { BLOCK };
        let mut n = match self.sources.as_mut_slice() {
            [single] => {
                let n = single.fill(&mut times[..wanted]);
                if let [of] = self.tags_of.as_mut_slice()
                    && of.constant().is_none()
                {
                    tags[..n].fill_with(|| of.next_tag());
                }
                n
            }
            _ => self.merge(times, tags),
        };
        if let Some(until) = self.limits.until_ns {
            let keep = times[..n].partition_point(|&t| t < until);
            self.ended |= keep < n;
            n = keep;
        }
        let warm_up = times[..n].partition_point(|&t| t < self.limits.measure_from_ns);
        let measured = (n - warm_up) as u64;
        if measured >= self.measured_left {
            // The cast is exact: fewer than a block.
            n = warm_up + usize::try_from(self.measured_left).unwrap_or(0);
            self.measured_left = 0;
        } else if self.limits.measured.is_some() {
            self.measured_left -= measured;
        }
        // The end of time is the end of every stream.
        n = times[..n].partition_point(|&t| t < u64::MAX);
        self.ended |= n == 0;
        self.last_ns = times[..n].last().copied().unwrap_or(self.last_ns);
        n
    }

    /// Fills a block from several sources; at equal times the lower source comes first.
    fn merge(&mut self, times: &mut [u64], tags: &mut [u8]) -> usize {
        for i in 0..BLOCK {
            let next = self
                .heads
                .iter()
                .enumerate()
                .filter_map(|(source, head)| head.map(|t| (t, source)))
                .min();
            let Some((time, source)) = next else { return i };
            times[i] = time;
            tags[i] = self.tags_of[source].next_tag();
            self.heads[source] = one(self.sources[source].as_mut());
        }
        BLOCK
    }
}

fn one(stream: &mut (dyn Stream + Send)) -> Option<u64> {
    let mut time = [0];
    (stream.fill(&mut time) == 1).then_some(time[0])
}

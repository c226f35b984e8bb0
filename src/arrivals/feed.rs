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

/// A sorted stream of arrivals of one or several sources.
pub struct Feed {
    sources: Vec<Box<dyn Stream + Send>>,
    /// Tags of their requests.
    tags_of: Vec<Tags>,
    /// Next arrival of each source, when there are several.
    heads: Vec<Option<u64>>,
    times: Box<[u64; BLOCK]>,
    /// Tag of each time; stays all zero with a single plain source.
    tags: Box<[u8; BLOCK]>,
    at: usize,
    len: usize,
    ended: bool,
    limits: Limits,
    measured_left: u64,
    /// The latest arrival that was handed out.
    last_ns: u64,
    /// Set from outside to end the stream early.
    stop: Option<Arc<AtomicBool>>,
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
        let same = match tags_of.as_slice() {
            [single] => single.constant().unwrap_or(0),
            _ => 0,
        };
        Self {
            sources,
            tags_of,
            heads,
            times: Box::new([0; BLOCK]),
            tags: Box::new([same; BLOCK]),
            at: 0,
            len: 0,
            ended,
            limits,
            measured_left,
            last_ns: 0,
            stop: None,
        }
    }

    /// The same feed, which ends at its next block once `stop` is set.
    #[must_use]
    pub fn unless(self, stop: Option<Arc<AtomicBool>>) -> Self {
        Self { stop, ..self }
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
        self.len = 0;
        let stopped = self.stop.as_ref().is_some_and(|s| s.load(Ordering::Relaxed));
        if self.ended || self.measured_left == 0 || stopped {
            self.ended = true;
            return;
        }
        // Past the warm-up the rest is counted: a short run must not pay for a whole block.
        let warm = self.last_ns >= self.limits.measure_from_ns;
        let left = usize::try_from(self.measured_left).unwrap_or(BLOCK);
        let wanted = if warm { left.min(BLOCK) } else { BLOCK };
        let mut n = match self.sources.as_mut_slice() {
            [single] => {
                let n = single.fill(&mut self.times[..wanted]);
                if let [tags] = self.tags_of.as_mut_slice()
                    && tags.constant().is_none()
                {
                    self.tags[..n].fill_with(|| tags.next_tag());
                }
                n
            }
            _ => self.merge(),
        };
        if let Some(until) = self.limits.until_ns {
            let keep = self.times[..n].partition_point(|&t| t < until);
            self.ended |= keep < n;
            n = keep;
        }
        let warm_up = self.times[..n].partition_point(|&t| t < self.limits.measure_from_ns);
        let measured = (n - warm_up) as u64;
        if measured >= self.measured_left {
            // The cast is exact: fewer than a block.
            n = warm_up + usize::try_from(self.measured_left).unwrap_or(0);
            self.measured_left = 0;
        } else if self.limits.measured.is_some() {
            self.measured_left -= measured;
        }
        // The end of time is the end of every stream.
        n = self.times[..n].partition_point(|&t| t < u64::MAX);
        self.ended |= n == 0;
        self.len = n;
        self.last_ns = self.times[..n].last().copied().unwrap_or(self.last_ns);
    }

    /// Fills a block from several sources; at equal times the lower source comes first.
    fn merge(&mut self) -> usize {
        for i in 0..BLOCK {
            let next = self
                .heads
                .iter()
                .enumerate()
                .filter_map(|(source, head)| head.map(|t| (t, source)))
                .min();
            let Some((time, source)) = next else { return i };
            self.times[i] = time;
            self.tags[i] = self.tags_of[source].next_tag();
            self.heads[source] = one(self.sources[source].as_mut());
        }
        BLOCK
    }
}

fn one(stream: &mut (dyn Stream + Send)) -> Option<u64> {
    let mut time = [0];
    (stream.fill(&mut time) == 1).then_some(time[0])
}

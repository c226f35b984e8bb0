//! The limit loop: the tightest single-core code we know for one fixed job.
//!
//! `dynamic` with cap 32 and oldest-arrival wait, affine cost, Poisson arrivals: draw, batch, and
//! count latencies (10-bit log-linear bins), batches by size and reason, and completions within
//! one limit. No policy, no recorder, no queue waits, nothing configurable but numbers. What the
//! engines cost beyond this is the price of being general; `tests/limit.rs` holds the loop to
//! their results, so that it cannot win by leaving work out.
//!
//! How it is fast:
//! * gaps are drawn in blocks; the clock is two integer additions a draw;
//! * a batch is found by a branch-free search among exactly 32 arrivals;
//! * its latencies are written 32 wide, whatever its size, and the next batch overwrites the
//!   surplus: no loop whose length a branch predictor would have to guess;
//! * bins come from the exponent and mantissa of the latency as a float, in vectors.

use batchsim::rng::SimRng;
use rand_distr::{Distribution, Exp1};

/// Most requests in a batch.
pub const CAP: usize = 32;
/// Arrivals drawn at once.
const BLOCK: usize = 1024;
/// Latencies kept until they are counted; a batch may write a surplus behind them.
const HELD: usize = 512;
/// Bins of a latency: 1,024 for each of 16 powers of two, from 2^20 ns (1 ms) to 2^36 ns (68 s).
const BINS: usize = 1 << 14;
/// Bits of a float below its 10 leading mantissa bits.
const BELOW: u32 = 52 - 10;

/// The numbers of the job.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Arrivals per second, at least 100 (no gap may reach 2 s).
    pub rate_per_s: f64,
    /// Longest wait of the oldest request, ns.
    pub wait_ns: u64,
    /// Service time of an empty batch, ns.
    pub fixed_ns: u64,
    /// Service time of one more request, ns.
    pub per_item_ns: u64,
    /// Latency limit, ns.
    pub limit_ns: u64,
}

impl Job {
    /// Cost 8 ms + 0.5 ms per request, wait 5 ms.
    #[must_use]
    pub fn running_example(rate_per_s: f64, limit_ns: u64) -> Self {
        let (wait_ns, fixed_ns, per_item_ns) = (5_000_000, 8_000_000, 500_000);
        Self { rate_per_s, wait_ns, fixed_ns, per_item_ns, limit_ns }
    }
}

/// Why a batch left.
#[derive(Clone, Copy, Debug)]
pub enum Why {
    /// It holds 32.
    Full,
    /// Its oldest request had waited long enough.
    Timer,
    /// The arrivals were over.
    Flush,
}

/// What happened.
#[derive(Debug)]
pub struct Tally {
    /// Requests by bin of latency; see [`Tally::bins`].
    counts: Box<[u64; BINS]>,
    /// Batches by size and reason.
    pub batches: [[u64; 3]; CAP + 1],
    /// Requests answered.
    pub completed: u64,
    /// Requests answered later than the limit.
    pub late: u64,
    limit_ns: u64,
    held: [u64; HELD + CAP],
    len: usize,
}

impl Tally {
    fn new(limit_ns: u64) -> Self {
        let counts = vec![0; BINS].into_boxed_slice().try_into();
        Self {
            counts: counts.unwrap_or_else(|_| Box::new([0; BINS])),
            batches: [[0; 3]; CAP + 1],
            completed: 0,
            late: 0,
            limit_ns,
            held: [0; HELD + CAP],
            len: 0,
        }
    }

    /// Smallest latency and count of every bin that is not empty, increasing.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let at = |power: u32, sub: u64| {
            let bin = (u64::from(power + 1023) << 10 | sub) as usize % BINS;
            ((1024 + sub) << (power - 10), self.counts[bin])
        };
        let all = (20..36).flat_map(move |power| (0..1024).map(move |sub| at(power, sub)));
        all.filter(|(_, n)| *n > 0)
    }

    /// Counts a batch of the first `size` of these arrivals.
    #[inline(always)]
    fn batch(&mut self, window: &[u64; CAP], size: usize, done: u64, why: Why) {
        self.batches[size % (CAP + 1)][why as usize] += 1;
        let latencies = &mut self.held[self.len..self.len + CAP];
        for (latency, arrival) in latencies.iter_mut().zip(window) {
            *latency = done.wrapping_sub(*arrival);
        }
        self.len += size;
        if self.len >= HELD {
            self.count();
        }
    }

    /// Counts the block of latencies that has been completed.
    #[inline(never)]
    fn count(&mut self) {
        for chunk in self.held[..HELD].as_chunks::<16>().0 {
            self.late += chunk.map(|v| self.limit_ns.wrapping_sub(v) >> 63).iter().sum::<u64>();
            for bin in chunk.map(bin) {
                self.counts[bin as usize % BINS] += 1;
            }
        }
        self.held.copy_within(HELD.., 0);
        self.len -= HELD;
        self.completed += HELD as u64;
    }

    /// Counts what is left.
    fn finish(&mut self) {
        for at in 0..self.len {
            self.late += u64::from(self.held[at] > self.limit_ns);
            self.counts[bin(self.held[at]) as usize % BINS] += 1;
        }
        self.completed += self.len as u64;
    }
}

/// Exponent and ten bits of mantissa of a number below 2^52, made a float by way of its bits.
#[inline(always)]
fn bin(v: u64) -> u64 {
    const TWO_52: f64 = (1u64 << 52) as f64;
    (f64::from_bits(v | TWO_52.to_bits()) - TWO_52).to_bits() >> BELOW
}

/// Exponential gaps, summed to 2^-32 ns.
struct Draw {
    rng: SimRng,
    scale: f64,
    ns: u64,
    part: u64,
}

impl Draw {
    #[inline(always)]
    fn fill(&mut self, out: &mut [u64]) {
        let (mut rng, mut ns, mut part) = (self.rng.clone(), self.ns, self.part);
        let mut units = [0.0; 128];
        for times in out.chunks_mut(128) {
            let units = &mut units[..times.len()];
            for unit in units.iter_mut() {
                *unit = Exp1.sample(&mut rng);
            }
            for (time, unit) in times.iter_mut().zip(units) {
                part += (*unit * self.scale) as i64 as u64;
                ns += part >> 32;
                part &= 0xffff_ffff;
                *time = ns;
            }
        }
        (self.rng, self.ns, self.part) = (rng, ns, part);
    }
}

/// The batching itself, on a server that is free at `free`.
struct Server {
    job: Job,
    free: u64,
    tally: Tally,
}

impl Server {
    fn new(job: Job) -> Self {
        Self { job, free: 0, tally: Tally::new(job.limit_ns) }
    }

    /// Starts batches while 32 arrivals are known; returns how many have been served.
    #[inline(always)]
    fn serve(&mut self, arrivals: &[u64]) -> usize {
        let Job { wait_ns, fixed_ns, per_item_ns, .. } = self.job;
        let (mut head, mut free) = (0, self.free);
        while let Some(window) = arrivals[head..].first_chunk::<CAP>() {
            let due = window[0] + wait_ns;
            let start = free.max(due.min(window[CAP - 1]));
            let size = up_to(window, start);
            free = start + fixed_ns + per_item_ns * size as u64;
            let why = if size == CAP { Why::Full } else { Why::Timer };
            self.tally.batch(window, size, free, why);
            head += size;
        }
        self.free = free;
        head
    }

    /// Serves the last arrivals, fewer than 32.
    fn drain(mut self, mut arrivals: &[u64], last: u64) -> Tally {
        while let Some(&head) = arrivals.first() {
            let due = head + self.job.wait_ns;
            let start = self.free.max(due.min(last)).max(head);
            let size = arrivals.iter().filter(|t| **t <= start).count();
            self.free = start + self.job.fixed_ns + self.job.per_item_ns * size as u64;
            let why = if due <= start { Why::Timer } else { Why::Flush };
            let mut window = [0; CAP];
            window[..size].copy_from_slice(&arrivals[..size]);
            self.tally.batch(&window, size, self.free, why);
            arrivals = &arrivals[size..];
        }
        self.tally.finish();
        self.tally
    }
}

/// How many of these times are at most `until`.
#[inline(always)]
fn up_to(window: &[u64; CAP], until: u64) -> usize {
    let fours: usize = (3..CAP).step_by(4).map(|i| usize::from(window[i] <= until)).sum();
    let at = fours.min(CAP / 4 - 1) * 4;
    at + (0..4).map(|i| usize::from(window[at + i] <= until)).sum::<usize>()
}

/// Draws and serves `requests` arrivals.
pub fn streaming(job: Job, rng: SimRng, requests: usize) -> Tally {
    let scale = 1e9 / job.rate_per_s * 4_294_967_296.0;
    let mut draw = Draw { rng, scale, ns: 0, part: 0 };
    let mut server = Server::new(job);
    let mut arrivals = [0; BLOCK + CAP];
    let (mut known, mut left) = (0, requests);
    while left > 0 {
        let n = left.min(BLOCK);
        draw.fill(&mut arrivals[known..known + n]);
        (known, left) = (known + n, left - n);
        let served = server.serve(&arrivals[..known]);
        arrivals.copy_within(served..known, 0);
        known -= served;
    }
    server.drain(&arrivals[..known], draw.ns)
}

/// Serves arrivals that are known.
pub fn pre_drawn(job: Job, arrivals: &[u64]) -> Tally {
    let mut server = Server::new(job);
    let served = server.serve(arrivals);
    server.drain(&arrivals[served..], arrivals.last().copied().unwrap_or(0))
}

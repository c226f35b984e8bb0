//! The summary of one replication: integer counts and histograms, merged by addition.

use super::groups::{GroupSource, GroupSummary, Watch};
use super::{BatchRow, Gone, Histogram, LatencyStore, Recorder};
use crate::policy::Reason;

/// What a summary measures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Requests that arrive before this moment are warm-up, ns.
    pub measure_from_ns: u64,
    /// Latency limits to count completions within, ns.
    pub limits_ns: Vec<u64>,
    /// Class of each source (by tag); empty when classes are not told apart.
    pub class_of_tag: Vec<u8>,
    /// Number of classes.
    pub classes: u8,
    /// Fixed delay outside the server, added to every latency, ns.
    pub client_ns: u64,
    /// Limits on group latencies to count groups within, ns.
    pub group_limits_ns: Vec<u64>,
}

/// Counts of measured requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Answered.
    pub completed: u64,
    /// Refused at the door.
    pub rejected: u64,
    /// Found expired.
    pub expired: u64,
    /// Given up by the policy.
    pub shed: u64,
    /// Taken back.
    pub cancelled: u64,
    /// Still in the server at the end.
    pub unfinished: u64,
}

impl Counts {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.completed + self.rejected + self.expired + self.shed + self.cancelled + self.unfinished
    }

    fn gone(&mut self, why: Gone) {
        *match why {
            Gone::Rejected => &mut self.rejected,
            Gone::Expired => &mut self.expired,
            Gone::Shed => &mut self.shed,
            Gone::Cancelled => &mut self.cancelled,
            Gone::Unfinished => &mut self.unfinished,
        } += 1;
    }

    fn merge(&mut self, other: &Self) {
        self.completed += other.completed;
        self.rejected += other.rejected;
        self.expired += other.expired;
        self.shed += other.shed;
        self.cancelled += other.cancelled;
        self.unfinished += other.unfinished;
    }
}

/// Measurements of one class.
#[derive(Clone, Debug, Default)]
pub struct ClassSummary<L> {
    /// Where its requests went.
    pub counts: Counts,
    /// Their latencies, ns.
    pub latency: L,
    /// Sum of those, ns.
    pub latency_sum_ns: u128,
    /// Largest of those, ns.
    pub latency_max_ns: u64,
    /// Completions within each limit of the plan.
    pub within: Vec<u64>,
}

/// Requests counted at once.
const HELD: usize = 256;
/// Requests put by at once.
const WIDE: usize = 32;

/// Requests put by one by one.
const FEW: usize = 4;

/// Completed requests that are not counted yet. They are put by in a fixed width, whatever their
/// number, and the next ones overwrite the surplus: a loop as long as the batch would be one more
/// branch that no processor foresees.
#[derive(Clone, Debug)]
struct Held {
    latency_ns: [u64; HELD + WIDE],
    wait_ns: [u64; HELD + WIDE],
    len: usize,
}

impl Default for Held {
    fn default() -> Self {
        Self { latency_ns: [0; HELD + WIDE], wait_ns: [0; HELD + WIDE], len: 0 }
    }
}

impl Held {
    #[inline(always)]
    fn put_one(&mut self, arrival: u64, start_ns: u64, answered_ns: u64) {
        self.latency_ns[self.len] = answered_ns - arrival;
        self.wait_ns[self.len] = start_ns - arrival;
        self.len += 1;
    }

    /// Puts `n` of these by, at most all; there is room for as many as `WIDE`.
    #[inline(always)]
    fn put(&mut self, arrivals: &[u64; WIDE], n: usize, start_ns: u64, answered_ns: u64) {
        let (latencies, waits) = (&mut self.latency_ns[self.len..], &mut self.wait_ns[self.len..]);
        if let (Some(latencies), Some(waits)) =
            (latencies.first_chunk_mut::<WIDE>(), waits.first_chunk_mut::<WIDE>())
        {
            since(arrivals, answered_ns, latencies);
            since(arrivals, start_ns, waits);
        }
        self.len += n.min(WIDE);
    }
}

/// How long ago each of these moments was.
// Not inlined: only as arguments are the two known not to overlap, which vectors need.
#[inline(never)]
fn since(moments: &[u64; WIDE], now: u64, ago: &mut [u64; WIDE]) {
    for (ago, moment) in ago.iter_mut().zip(moments) {
        *ago = now.wrapping_sub(*moment);
    }
}

/// Measurements of one replication, or of several merged. Complete once the run has ended.
#[derive(Clone, Debug, Default)]
pub struct Summary<L> {
    plan: Plan,
    /// Measured arrivals.
    pub offered: u64,
    /// Where they went.
    pub counts: Counts,
    /// Completion minus arrival of measured requests, client delays included, ns.
    pub latency: L,
    /// Sum of those latencies, ns.
    pub latency_sum_ns: u128,
    /// Largest of them, ns.
    pub latency_max_ns: u64,
    /// Start minus arrival, ns.
    pub wait: Histogram<7>,
    /// Sum of waits, ns.
    pub wait_sum_ns: u128,
    /// Largest wait, ns.
    pub wait_max_ns: u64,
    /// Completions within each limit of the plan.
    pub within: Vec<u64>,
    /// Batches started in the measured part, by size and reason.
    pub batches: Vec<[u64; Reason::COUNT]>,
    /// Busy time of all instances inside the window, ns.
    pub busy_ns: u128,
    /// Completions while arrivals lasted.
    pub done_in_window: u64,
    /// Length of the measured part: while arrivals lasted, ns.
    pub window_ns: u64,
    /// Service time of all batches of the measured part, ns.
    pub busy_all_ns: u128,
    /// From the start of the measured part to the end of the run, ns.
    pub whole_ns: u64,
    /// Requests in the queue when the last one had arrived.
    pub backlog: u64,
    /// Per class: counts and latencies.
    pub classes: Vec<ClassSummary<L>>,
    /// Groups of a fan-out, where some source sends them.
    pub groups: Option<GroupSummary<L>>,
    /// Tells which requests form a group while the run lasts.
    watch: Option<Box<Watch>>,
    /// `u64::MAX` until the last arrival has come.
    last_arrival_ns: u64,
    /// What latencies have more than waits, all added up, ns.
    away_ns: u128,
    /// Boxed, as it is large and summaries are handed about.
    held: Box<Held>,
}

impl<L: LatencyStore> Summary<L> {
    /// An empty summary for one replication.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let within = vec![0; plan.limits_ns.len()];
        let class = ClassSummary { within: within.clone(), ..ClassSummary::default() };
        let classes = vec![class; usize::from(plan.classes)];
        Self { plan, within, classes, last_arrival_ns: u64::MAX, ..Self::default() }
    }

    /// The same, which also follows the groups of these sources.
    #[must_use]
    pub fn following(mut self, sources: Vec<GroupSource>) -> Self {
        if !sources.is_empty() {
            self.groups = Some(GroupSummary::new(self.plan.group_limits_ns.clone()));
            self.watch =
                Some(Box::new(Watch::new(sources, self.plan.measure_from_ns, self.plan.client_ns)));
        }
        self
    }

    fn class_mut(&mut self, tag: u8) -> Option<&mut ClassSummary<L>> {
        let class = self.plan.class_of_tag.get(usize::from(tag))?;
        self.classes.get_mut(usize::from(*class))
    }

    /// Counts the batch itself.
    #[inline(always)]
    fn batch(&mut self, batch: &BatchRow) {
        let from = batch.start_ns.max(self.plan.measure_from_ns);
        let to = batch.done_ns().min(self.last_arrival_ns);
        self.busy_ns += u128::from(to.saturating_sub(from));
        if batch.start_ns < self.plan.measure_from_ns {
            return;
        }
        let size = batch.size as usize;
        if size >= self.batches.len() {
            self.batches.resize(size + 1, [0; Reason::COUNT]);
        }
        self.batches[size][batch.reason as usize] += 1;
        self.busy_all_ns += u128::from(batch.took_ns);
    }

    /// Counts the first `n` of these arrivals; all belong to the measured part.
    #[inline(always)]
    fn members(&mut self, batch: &BatchRow, arrivals: &[u64], n: usize) {
        let start_ns = batch.start_ns;
        let answered_ns = batch.answered_ns() + self.plan.client_ns;
        if let Some(oldest) = arrivals.first() {
            self.latency_max_ns = self.latency_max_ns.max(answered_ns - oldest);
            self.wait_max_ns = self.wait_max_ns.max(start_ns - oldest);
        }
        self.counts.completed += n as u64;
        self.away_ns += n as u128 * u128::from(answered_ns - start_ns);
        if n <= FEW {
            for arrival in &arrivals[..n] {
                self.held.put_one(*arrival, start_ns, answered_ns);
                if self.held.len >= HELD {
                    self.count();
                }
            }
            return;
        }
        let (chunks, rest) = arrivals.as_chunks::<WIDE>();
        let mut left = n;
        for chunk in chunks {
            self.put(chunk, left, start_ns, answered_ns);
            left = left.saturating_sub(WIDE);
            if left == 0 {
                return;
            }
        }
        let mut last = [0; WIDE];
        last[..rest.len()].copy_from_slice(rest);
        self.put(&last, left, start_ns, answered_ns);
    }

    #[inline(always)]
    fn put(&mut self, arrivals: &[u64; WIDE], n: usize, start_ns: u64, answered_ns: u64) {
        self.held.put(arrivals, n, start_ns, answered_ns);
        if self.held.len >= HELD {
            self.count();
        }
    }

    /// Counts a full block of what is held.
    #[inline(never)]
    fn count(&mut self) {
        let held = &mut self.held;
        if let (Some(latencies), Some(waits)) =
            (held.latency_ns.first_chunk::<HELD>(), held.wait_ns.first_chunk::<HELD>())
        {
            self.latency_sum_ns += sum(latencies);
            self.latency.add_all(latencies);
            self.wait.add_all(waits);
            for (limit, within) in self.plan.limits_ns.iter().zip(&mut self.within) {
                *within += HELD as u64 - late(latencies, *limit);
            }
        }
        held.latency_ns.copy_within(HELD.., 0);
        held.wait_ns.copy_within(HELD.., 0);
        held.len -= HELD;
    }

    /// Counts what is held, less than a block.
    fn count_rest(&mut self) {
        let n = std::mem::take(&mut self.held.len);
        let (latencies, waits) = (&self.held.latency_ns[..n], &self.held.wait_ns[..n]);
        self.latency_sum_ns += sum(latencies);
        self.wait_sum_ns = self.latency_sum_ns - self.away_ns;
        latencies.iter().for_each(|&latency| self.latency.add(latency));
        waits.iter().for_each(|&wait| self.wait.add(wait));
        for (limit, within) in self.plan.limits_ns.iter().zip(&mut self.within) {
            *within += n as u64 - late(latencies, *limit);
        }
    }

    fn class_members(&mut self, batch: &BatchRow, arrivals: &[u64], tags: &[u8]) {
        let answered = batch.answered_ns() + self.plan.client_ns;
        let limits = self.plan.limits_ns.clone();
        for (&arrival, &tag) in arrivals.iter().zip(tags) {
            if arrival < self.plan.measure_from_ns {
                continue;
            }
            if let Some(class) = self.class_mut(tag) {
                class.counts.completed += 1;
                class.latency.add(answered - arrival);
                class.latency_sum_ns += u128::from(answered - arrival);
                class.latency_max_ns = class.latency_max_ns.max(answered - arrival);
                for (within, limit) in class.within.iter_mut().zip(&limits) {
                    *within += u64::from(answered - arrival <= *limit);
                }
            }
        }
    }

    /// Adds another replication's measurements.
    pub fn merge(&mut self, other: &Self) {
        self.offered += other.offered;
        self.counts.merge(&other.counts);
        self.latency.merge(&other.latency);
        self.latency_sum_ns += other.latency_sum_ns;
        self.latency_max_ns = self.latency_max_ns.max(other.latency_max_ns);
        self.wait.merge(&other.wait);
        self.wait_sum_ns += other.wait_sum_ns;
        self.away_ns += other.away_ns;
        self.wait_max_ns = self.wait_max_ns.max(other.wait_max_ns);
        add_each(&mut self.within, &other.within, |a, b| *a += b);
        add_each(&mut self.batches, &other.batches, |a, b| {
            a.iter_mut().zip(b).for_each(|(x, y)| *x += y);
        });
        self.busy_ns += other.busy_ns;
        self.done_in_window += other.done_in_window;
        self.window_ns += other.window_ns;
        self.busy_all_ns += other.busy_all_ns;
        self.whole_ns += other.whole_ns;
        self.backlog += other.backlog;
        add_each(&mut self.classes, &other.classes, |a, b| {
            a.counts.merge(&b.counts);
            a.latency.merge(&b.latency);
            a.latency_sum_ns += b.latency_sum_ns;
            a.latency_max_ns = a.latency_max_ns.max(b.latency_max_ns);
            add_each(&mut a.within, &b.within, |x, y| *x += y);
        });
        if let Some(theirs) = &other.groups {
            let none = || GroupSummary::new(theirs.limits_ns.clone());
            self.groups.get_or_insert_with(none).merge(theirs);
        }
    }
}

impl<L: LatencyStore> Recorder for Summary<L> {
    #[inline(always)]
    fn arrived(&mut self, times: &[u64]) {
        let from = self.plan.measure_from_ns;
        self.offered += match times.first() {
            Some(&first) if first >= from => times.len() as u64,
            _ => (times.len() - times.partition_point(|&t| t < from)) as u64,
        };
    }

    #[inline(always)]
    fn completed(&mut self, batch: &BatchRow, arrivals: &[u64], tags: &[u8], first: bool) {
        self.completed_ahead(batch, arrivals, tags, arrivals.len(), first);
    }

    #[inline(always)]
    fn completed_ahead(
        &mut self,
        batch: &BatchRow,
        arrivals: &[u64],
        tags: &[u8],
        n: usize,
        first: bool,
    ) {
        if first {
            self.batch(batch);
        }
        let from = self.plan.measure_from_ns;
        let done = batch.answered_ns();
        if done >= from && done <= self.last_arrival_ns {
            self.done_in_window += n as u64;
        }
        if batch.start_ns >= self.last_arrival_ns {
            self.backlog += n as u64;
        }
        // Arrivals come in order.
        if arrivals.first().is_none_or(|&a| a >= from) {
            self.members(batch, arrivals, n);
        } else {
            let early = arrivals[..n].partition_point(|&a| a < from);
            self.members(batch, &arrivals[early..n], n - early);
        }
        if self.plan.classes > 0 {
            self.class_members(batch, &arrivals[..n], &tags[..n]);
        }
        if let (Some(watch), Some(groups)) = (&mut self.watch, &mut self.groups) {
            watch.answered(batch.answered_ns(), &arrivals[..n], &tags[..n], groups);
        }
    }

    fn gone(&mut self, arrival_ns: u64, tag: u8, at_ns: u64, why: Gone) {
        if let (Some(watch), Some(groups)) = (&mut self.watch, &mut self.groups) {
            watch.lost(arrival_ns, tag, groups);
        }
        if arrival_ns < self.plan.measure_from_ns {
            return;
        }
        self.counts.gone(why);
        if why == Gone::Unfinished && at_ns >= self.last_arrival_ns {
            self.backlog += 1;
        }
        if let Some(class) = self.class_mut(tag) {
            class.counts.gone(why);
        }
    }

    fn arrivals_ended(&mut self, at_ns: u64) {
        self.last_arrival_ns = at_ns;
        self.window_ns = at_ns.saturating_sub(self.plan.measure_from_ns);
    }

    fn ended(&mut self, at_ns: u64) {
        self.count_rest();
        self.watch = None;
        self.whole_ns = at_ns.saturating_sub(self.plan.measure_from_ns);
    }
}

/// Above this a time is treated with care: a block of smaller ones can be added and compared
/// without a thought of overflow.
const LONG_NS: u64 = 1 << 52;

/// The sum of at most [`HELD`] times.
#[inline(always)]
fn sum(times_ns: &[u64]) -> u128 {
    let (all, sum) =
        times_ns.iter().fold((0, 0u64), |(all, sum), t| (all | t, sum.wrapping_add(*t)));
    if all < LONG_NS { u128::from(sum) } else { times_ns.iter().map(|&t| u128::from(t)).sum() }
}

/// How many times exceed a limit.
#[inline(always)]
fn late(times_ns: &[u64], limit_ns: u64) -> u64 {
    // The sign of the difference: vectors of the plainest x86-64 can shift but not compare.
    let (all, late) = times_ns
        .iter()
        .fold((limit_ns, 0), |(all, late), t| (all | t, late + (limit_ns.wrapping_sub(*t) >> 63)));
    if all >> 63 == 0 { late } else { times_ns.iter().map(|t| u64::from(*t > limit_ns)).sum() }
}

/// Adds `b` to `a` element by element, lengthening `a` where needed.
fn add_each<T: Default + Clone>(a: &mut Vec<T>, b: &[T], add: impl Fn(&mut T, &T)) {
    if a.len() < b.len() {
        a.resize(b.len(), T::default());
    }
    a.iter_mut().zip(b).for_each(|(x, y)| add(x, y));
}

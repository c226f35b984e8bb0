//! The invariants of docs/INVARIANTS.md, by number: whatever the scenario and whatever the policy.
//!
//! Scenarios are random over every policy and every arrival process, with queue limits, timeouts,
//! cuts, several sources, closed loops and recordings on a coarse grid where ties are the rule.
//! Each policy is held to what it promises.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, unreachable_pub)]

#[path = "common/any.rs"]
mod any;
#[path = "common/journal.rs"]
mod journal;
#[path = "common/worlds.rs"]
mod worlds;

use any::{Any, scenario};
use batchsim::arrivals::Process;
use batchsim::cost::Cost;
use batchsim::engine::Ending;
use batchsim::policy::{Anchor, MaxWait, Policy, Reason};
use batchsim::record::{Gone, Histogram, Summary};
use batchsim::scenario::Source;
use batchsim::study::Engine;
use batchsim::time::Nanos;
use journal::{Batch, Both, Journal, Left};
use proptest::prelude::*;

struct Story {
    any: Any,
    journal: Journal,
    ending: Ending,
    summary: Summary<Histogram<10>>,
}

fn play(any: Any) -> Story {
    let mut journal = Journal::default();
    let bench = any.bench(Engine::Auto);
    let mut summary = Summary::new(bench.plan(&[], Nanos::ZERO));
    let ending = bench.run(any.portion(), &mut Both(&mut journal, &mut summary));
    Story { any, journal, ending, summary }
}

impl Story {
    fn cost(&self) -> &Cost {
        &self.any.scenario.servers[0].cost
    }

    fn instances(&self) -> u32 {
        self.any.scenario.servers[0].instances
    }

    /// The rule of a textbook policy.
    fn law(&self) -> Option<batchsim::policy::Law> {
        self.any.policy().textbook()
    }

    /// Until when every batch is known: what a cut leaves running is not told as a batch, and may
    /// hold nobody any more where clients give up during the pass.
    fn known_until(&self) -> u64 {
        let gives_up = self.any.cut() && matches!(self.any.policy(), Policy::Mosec(_));
        let unknown = |why| why == Gone::Unfinished || (gives_up && why == Gone::Expired);
        let left = self.journal.left.iter().filter(|l| unknown(l.why));
        left.map(|l| l.request.0).min().unwrap_or(u64::MAX)
    }

    /// Busy instances from a moment on, until the next event.
    fn busy_at(&self, at: u64) -> u32 {
        let running = |b: &&Batch| b.start() <= at && at < b.done();
        self.journal.batches.iter().filter(running).count() as u32
    }

    /// The latest moment up to `until` at which all instances were busy just before it: from
    /// there to `until` one was idle. Zero when one always was.
    fn idle_since(&self, until: u64) -> u64 {
        let mut ends: Vec<u64> =
            self.journal.batches.iter().map(Batch::done).filter(|t| *t <= until).collect();
        ends.sort_unstable();
        let all_busy_before = |t: &&u64| {
            let running = |b: &&Batch| b.start() < **t && **t <= b.done();
            self.journal.batches.iter().filter(running).count() as u32 == self.instances()
        };
        ends.iter().rev().find(all_busy_before).copied().unwrap_or(0)
    }
}

fn cases(n: u32) -> ProptestConfig {
    ProptestConfig { cases: n, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(2_000))]

    /// offered = completed + rejected + expired + shed + cancelled + unfinished, request by
    /// request and in the counts.
    #[test]
    fn invariant_01_conservation(any in scenario()) {
        let s = play(any);
        let mut arrived = s.journal.arrivals.clone();
        let mut ended: Vec<u64> = s.journal.batches.iter().flat_map(|b| &b.members)
            .chain(s.journal.left.iter().map(|l| &l.request)).map(|r| r.0).collect();
        arrived.sort_unstable();
        ended.sort_unstable();
        prop_assert_eq!(&arrived, &ended);
        prop_assert_eq!(s.summary.offered, arrived.len() as u64);
        prop_assert_eq!(s.summary.counts.total(), s.summary.offered);
        // A pass is paid for as it began, also for clients that gave up meanwhile.
        let gave_up: u64 = s.journal.batches.iter()
            .map(|b| u64::from(b.row.size) - b.members.len() as u64).sum();
        prop_assert!(gave_up <= s.summary.counts.expired);
        prop_assert!(gave_up == 0 || matches!(s.any.policy(), Policy::Mosec(_)));
        // Nothing is left behind in silence, except where the rule can never be met again.
        let unfinished = s.summary.counts.unfinished;
        prop_assert!(s.any.cut() || s.ending.stalled.unwrap_or(0) == unfinished);
    }

    /// Nothing starts before it arrives, ends before it starts, or leaves before it came.
    #[test]
    fn invariant_02_causality(any in scenario()) {
        let s = play(any);
        for pair in s.journal.arrivals.windows(2) {
            prop_assert!(pair[0] <= pair[1], "arrivals in order");
        }
        for b in &s.journal.batches {
            prop_assert!(b.newest() <= b.start() && b.start() < b.done());
            prop_assert!(b.done() <= s.journal.ended);
            prop_assert!(b.row.ran_as >= b.row.size);
            prop_assert!(
                s.any.jittered() || b.row.took_ns == s.cost().service_ns(b.row.ran_as)
            );
        }
        let sources = s.any.sources();
        // Triton has timeouts of its own, and may not honour those of its clients.
        for l in &s.journal.left {
            prop_assert!(l.request.0 <= l.at && l.at <= s.journal.ended);
            let timeout = sources[usize::from(l.request.1)].timeout;
            match l.why {
                Gone::Rejected => prop_assert_eq!(l.request.0, l.at),
                Gone::Expired if !matches!(s.any.policy(), Policy::Triton(_)) => {
                    let own = s.any.patience().is_some_and(|p| l.at >= l.request.0 + p.0);
                    prop_assert!(own || l.at > l.request.0 + timeout.unwrap().0);
                }
                _ => {}
            }
        }
        // What had expired never starts; who takes requests before that looks when they are taken.
        let takes_at_start = s.any.policy().textbook().is_some();
        for b in s.journal.batches.iter().filter(|_| takes_at_start) {
            for (arrival, source) in &b.members {
                let timeout = sources[usize::from(*source)].timeout;
                prop_assert!(timeout.is_none_or(|t| b.start() <= arrival + t.0));
            }
        }
    }

    /// No batch is larger than the policy allows, and none is empty.
    #[test]
    fn invariant_03_cap(any in scenario()) {
        let s = play(any);
        let cap = s.any.policy().cap().unwrap_or(u32::MAX);
        if s.any.policy().promises().cap {
            for b in &s.journal.batches {
                prop_assert!((1..=cap).contains(&b.row.size), "{b:?}");
            }
        }
    }

    /// Within a class requests start in order of arrival.
    #[test]
    fn invariant_04_first_come_first_served(any in scenario()) {
        let s = play(any);
        if s.any.policy().promises().fifo {
            for b in &s.journal.batches {
                prop_assert!(b.members.windows(2).all(|m| m[0].0 <= m[1].0), "{b:?}");
            }
            for source in 0..=2 {
                let of_source = |b: &Batch| -> Vec<u64> {
                    b.members.iter().filter(|m| m.1 == source).map(|m| m.0).collect()
                };
                // The newest of all that started strictly earlier.
                let mut newest = 0;
                let mut rest = s.journal.batches.as_slice();
                while let Some(first) = rest.first() {
                    let n = rest.partition_point(|b| b.start() == first.start());
                    let together: Vec<u64> = rest[..n].iter().flat_map(of_source).collect();
                    prop_assert!(together.iter().all(|a| *a >= newest), "{rest:?}");
                    newest = together.into_iter().max().unwrap_or(newest).max(newest);
                    rest = &rest[n..];
                }
            }
        }
    }

    /// Σ sojourn = ∫ N dt and busy time = Σ service, to the nanosecond.
    #[test]
    fn invariant_05_little(any in scenario()) {
        let s = play(any);
        // The number in the server over time, from what arrived and left alone.
        let mut steps: Vec<(u64, i64)> = s.journal.arrivals.iter().map(|t| (*t, 1)).collect();
        for b in &s.journal.batches {
            steps.push((b.answered(), -(b.members.len() as i64)));
        }
        steps.extend(s.journal.left.iter().map(|l| (l.at, -1)));
        steps.sort_unstable();
        let (mut area, mut present, mut before) = (0i128, 0i64, 0u64);
        for (at, step) in steps {
            area += i128::from(present) * i128::from(at - before);
            (present, before) = (present + step, at);
        }
        prop_assert_eq!(present, 0);
        let left: u128 = s.journal.left.iter().map(|l| u128::from(l.at - l.request.0)).sum();
        prop_assert_eq!(s.summary.latency_sum_ns + left, area as u128);
        // Every instance, moment by moment.
        let mut edges: Vec<u64> =
            s.journal.batches.iter().flat_map(|b| [b.start(), b.done()]).collect();
        edges.sort_unstable();
        let busy: u128 = edges
            .windows(2)
            .map(|w| u128::from(s.busy_at(w[0])) * u128::from(w[1] - w[0]))
            .sum();
        prop_assert_eq!(s.summary.busy_all_ns, busy);
        // And as far as arrivals lasted, where their end is known in time.
        let open = |a: &Source| !matches!(a.process, Process::ClosedLoop(_));
        if s.any.scenario.arrivals.iter().all(open) {
            let end = s.journal.last_arrival.unwrap();
            let inside = |b: &Batch| u128::from(b.done().min(end).saturating_sub(b.start()));
            prop_assert_eq!(s.summary.window_ns, end);
            prop_assert_eq!(s.summary.busy_ns, s.journal.batches.iter().map(inside).sum::<u128>());
        }
        let waits: u128 = s.journal.batches.iter()
            .flat_map(|b| b.members.iter().map(|m| u128::from(b.start() - m.0)))
            .sum();
        prop_assert_eq!(s.summary.wait_sum_ns, waits);
    }

    /// An instance runs one batch at a time.
    #[test]
    fn invariant_06_one_batch_per_instance(any in scenario()) {
        let s = play(any);
        if s.any.policy().promises().one_batch_per_slot {
            let mut free = vec![0; s.instances() as usize];
            for b in &s.journal.batches {
                let slot = b.row.slot as usize;
                prop_assert!(slot < free.len() && free[slot] <= b.start(), "{b:?}");
                free[slot] = b.done();
            }
        }
    }

    /// No instance is idle while a request waits, where the policy promises it.
    #[test]
    fn invariant_07_work_conservation(any in scenario()) {
        let s = play(any);
        if s.any.policy().promises().work_conserving {
            let mut moments: Vec<u64> = s.journal.arrivals.clone();
            moments.extend(s.journal.batches.iter().map(Batch::done));
            // Clients of mosec also give up during the pass.
            let running = |l: &&Left| {
                l.why == Gone::Expired && matches!(s.any.policy(), Policy::Mosec(_))
            };
            let waits = s.journal.batches.iter().map(|b| (b.oldest(), b.start()))
                .chain(s.journal.left.iter().filter(|l| !running(l)).map(|l| (l.request.0, l.at)));
            for (from, to) in waits {
                for at in moments.iter().filter(|t| from <= **t && **t < to) {
                    prop_assert!(
                        *at >= s.known_until() || s.busy_at(*at) == s.instances(),
                        "idle at {at} while a request waits from {from} to {to}",
                    );
                }
            }
        }
    }

    /// While an instance is idle no request waits longer than the wait after the policy's own
    /// anchor.
    #[test]
    fn invariant_08_wait_bound(any in scenario()) {
        let s = play(any);
        let Some(law) = s.law() else { return Ok(()) };
        if s.any.policy().promises().wait_bound && law.wait < Nanos::MAX {
            let mut previous = 0;
            for b in s.journal.batches.iter().filter(|b| b.start() < s.known_until()) {
                let idle = s.idle_since(b.start());
                let latest = match law.anchor {
                    Anchor::OldestArrival => idle.max(b.oldest() + law.wait.0),
                    // A batch that leaves while another instance is idle restarts the pickup.
                    Anchor::Pickup => idle.max(b.oldest()).max(previous) + law.wait.0,
                };
                prop_assert!(b.start() <= latest, "{b:?} later than {latest}");
                previous = b.start();
            }
        }
    }

    /// A batch says truly why it left.
    #[test]
    fn reasons_are_true(any in scenario()) {
        let s = play(any);
        let policy = s.any.policy();
        if let Some(cap) = policy.cap() {
            let full = |b: &Batch| b.row.reason == Reason::Full;
            prop_assert!(s.journal.batches.iter().all(|b| full(b) == (b.row.size >= cap)));
        }
        let Some(law) = s.law() else { return Ok(()) };
        let timeouts = s.any.scenario.arrivals.iter().any(|a| a.timeout.is_some());
        for b in &s.journal.batches {
            let (size, reason) = (b.row.size, b.row.reason);
            prop_assert_eq!(reason == Reason::Full, size >= law.cap);
            match reason {
                Reason::Timer => {
                    let young = b.start() < b.oldest() + law.wait.0;
                    let oldest = law.anchor == Anchor::OldestArrival;
                    // A head that has expired is refused and takes its age with it.
                    prop_assert!(law.wait > Nanos::ZERO && (timeouts || !oldest || !young));
                }
                Reason::Idle => prop_assert!(timeouts || size >= law.target || law.wait.0 == 0),
                Reason::Flush => prop_assert!(!s.any.cut() && size < law.target),
                Reason::Preferred => {
                    let Policy::Dynamic(d) = policy else { panic!("{policy:?}") };
                    prop_assert!(d.preferred_batch_sizes.contains(&size));
                }
                Reason::Full | Reason::Shape | Reason::Budget => {}
            }
            if let Policy::Dynamic(d) = policy
                && d.max_wait == MaxWait::Never
            {
                prop_assert!(reason != Reason::Timer);
            }
        }
    }
}

/// docs/INVARIANTS.md and the tests name each other.
#[test]
fn every_invariant_has_its_test() {
    let root = env!("CARGO_MANIFEST_DIR");
    let doc = std::fs::read_to_string(format!("{root}/docs/INVARIANTS.md")).unwrap();
    let mut tests = String::new();
    let mut folders = vec![std::path::PathBuf::from(format!("{root}/tests"))];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                tests += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    let named: Vec<&str> = doc
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("invariant_"))
        .collect();
    for name in &named {
        assert!(tests.contains(&format!("fn {name}(")), "no test is called {name}");
    }
    for line in tests.lines() {
        if let Some(rest) = line.trim().strip_prefix("fn invariant_") {
            let name = format!("invariant_{}", rest.split('(').next().unwrap());
            assert!(named.contains(&name.as_str()), "docs/INVARIANTS.md does not know {name}");
        }
    }
    for number in [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12] {
        let prefix = format!("invariant_{number:02}_");
        assert!(named.iter().any(|n| n.starts_with(&prefix)), "{prefix}");
    }
}

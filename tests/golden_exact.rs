//! The numbers everyone quotes: the running example, exact and simulated, and two small scenarios
//! that can be followed by hand.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, unreachable_pub)]

#[path = "common/worlds.rs"]
mod worlds;

use batchsim::arrivals::{Process, Replay, Trace};
use batchsim::exact::{Anchor as ExactAnchor, Input, Rule, solve};
use batchsim::policy::{Anchor, Policy, Reason};
use batchsim::record::{Gone, Histogram, Ledger};
use batchsim::scenario::{End, Scenario, Warmup};
use batchsim::study::{Options, Portion, run};
use batchsim::time::Nanos;
use std::sync::Arc;
use worlds::{MS, bench, dynamic, fixed, greedy, linear, measure, ms, none, poisson, world};

/// Running example, cap 32, wait 5 ms, Poisson at 1,000/s.
#[test]
fn running_example_by_simulation() {
    let world = world(poisson(1000.0), linear(), dynamic(32, 5.0, Anchor::OldestArrival));
    let m = measure::<Histogram<10>>(&world, 8_000_000, &[]);
    let s = &m.pooled;
    let quantiles = s.latency.quantiles(&[0.5, 0.99]).unwrap();
    let batches: u64 = s.batches.iter().flatten().sum();
    let items: u64 = (0..).zip(&s.batches).map(|(n, by)| n * by.iter().sum::<u64>()).sum();
    let got = [
        ("mean", s.latency_sum_ns as f64 / s.counts.completed as f64 / 1e6, 24.835),
        ("p50", quantiles[0] / 1e6, 24.511),
        ("p99", quantiles[1] / 1e6, 38.562),
        ("mean batch", items as f64 / batches as f64, 16.000),
    ];
    for (name, got, want) in got {
        println!("{name}: {got:.4}, exactly {want}");
        assert!((got / want - 1.0).abs() < 0.003, "{name}: {got} instead of {want}");
    }
}

#[test]
fn running_example_by_the_exact_solution() {
    let rule = Rule::Timer { cap: 32, wait_ms: 5.0, anchor: ExactAnchor::Oldest };
    let cost = |n: u32| 8.0 + 0.5 * f64::from(n);
    let s = solve(&Input::Poisson { rate_per_s: 1000.0 }, &rule, &cost).unwrap();
    let got = [s.mean_ms(), s.quantile_ms(0.5), s.quantile_ms(0.99), s.mean_batch()];
    for (got, want) in got.into_iter().zip([24.835, 24.511, 38.562, 16.000]) {
        assert!((got - want).abs() <= 0.0005, "{got} instead of {want}");
    }
}

/// Quantiles on a point mass are that latency to the nanosecond when every latency is kept: 8.5 ms
/// for who finds the instance idle, `max_wait` + s(3) = 19.5 ms for the first of a timed-out batch.
#[test]
fn point_masses_are_exact() {
    let capacity = |cap: u32| linear().capacity_per_s(Some(cap), 1).unwrap();
    for (load, policy, want) in [
        (0.4, none(), [Some(8.5), None, None]),
        (0.05, none(), [Some(8.5), Some(8.5), None]),
        (0.1, greedy(Some(4)), [Some(8.5), None, None]),
        (0.3, dynamic(4, 10.0, Anchor::OldestArrival), [None, Some(19.5), Some(19.5)]),
    ] {
        let cap = policy.cap().unwrap();
        let mut world = world(poisson(load * capacity(cap)), linear(), policy);
        world.run.exact_latencies = true;
        world.run.requests = Some(200_000);
        let (outcome, ..) = run(&world, &Options::default(), &Default::default());
        let latency = outcome.cells[0].latency_ms.as_ref().unwrap();
        for (got, want) in [latency.p50, latency.p90, latency.p99].into_iter().zip(want) {
            if let Some(want) = want {
                assert_eq!(got, want, "{load} {:?}", outcome.cells[0].policy);
            }
        }
    }
}

/// Batches of 1, 8 and 32 take 8.5, 12 and 24 ms: 118, 667 and 1,333 requests a second, towards
/// 2,000; a factor of 11.3.
#[test]
fn running_example_by_hand() {
    let cost = linear();
    assert_eq!([1, 8, 32].map(|n| cost.service_ns(n)), [8_500_000, 12 * MS, 24 * MS]);
    let capacity = |cap| cost.capacity_per_s(cap, 1).unwrap();
    let rounded = [Some(1), Some(8), Some(32), None].map(|cap| capacity(cap).round());
    assert_eq!(rounded, [118.0, 667.0, 1333.0, 2000.0]);
    let gain = capacity(Some(32)) / capacity(Some(1));
    assert_eq!((gain * 10.0).round(), 113.0);
}

/// A queue that never empties runs at capacity: 400 requests at once.
#[test]
fn a_backlog_is_worked_off_at_capacity() {
    for (policy, batch, time_ms) in [(none(), 1, 8.5), (greedy(Some(8)), 8, 12.0)] {
        let ledger = replay(&[0.0; 400], policy, End::Flush);
        for (k, entry) in (0..).zip(&ledger.batches) {
            assert_eq!((entry.row.size, entry.row.took_ns), (batch, ms(time_ms).0));
            assert_eq!(entry.row.start_ns, k * ms(time_ms).0);
        }
        assert_eq!(ledger.ended_ns, u64::from(400 / batch) * ms(time_ms).0);
    }
}

fn trace_world(arrivals_ms: &[f64], policy: Policy, end: End) -> Scenario {
    let replay = Replay { file: "by-hand".into(), format: None, columns: None, scale: None };
    let mut world = world(Process::Trace(replay), linear(), policy);
    let arrivals: Vec<Nanos> = arrivals_ms.iter().map(|t| ms(*t)).collect();
    world.arrivals[0].trace = Some(Arc::new(Trace { arrivals, ..Trace::default() }));
    world.run.end = end;
    world.run.duration = Some(ms(1000.0));
    world.run.warmup = Warmup::Time(Nanos::ZERO);
    world
}

fn replay(arrivals_ms: &[f64], policy: Policy, end: End) -> Ledger {
    let world = trace_world(arrivals_ms, policy, end);
    let mut ledger = Ledger::default();
    let portion = Portion { replication: 0, measured: None, measure_from: Nanos::ZERO };
    bench(&world).run(portion, &mut ledger);
    ledger
}

const FOUR: [f64; 4] = [0.0, 3.0, 6.0, 9.0];

/// Cap 8, requests at 0, 3, 6 and 9 ms, the clock stopped after a second: a fixed batch of eight
/// is never full.
#[test]
fn four_requests_never_fill_a_batch_of_eight() {
    let ledger = replay(&FOUR, fixed(8), End::Cut);
    assert_eq!(ledger.batches, []);
    assert_eq!(ledger.refusals.len(), 4);
    assert!(ledger.refusals.iter().all(|r| r.why == Gone::Unfinished && r.at_ns == 1000 * MS));
    let (outcome, files, _) =
        run(&trace_world(&FOUR, fixed(8), End::Cut), &Options::default(), &Default::default());
    let cell = &outcome.cells[0];
    assert_eq!((cell.requests.offered, cell.requests.unfinished), (4, 4));
    assert_eq!((cell.latency_ms.as_ref(), files.len()), (None, 0));
    assert_eq!(cell.batch_size.histogram, []);
}

/// The same with a wait of 10 ms: all four leave when the first is 10 ms old, and are done ten
/// milliseconds later.
#[test]
fn four_requests_leave_when_the_first_has_waited() {
    for anchor in [Anchor::OldestArrival, Anchor::Pickup] {
        let ledger = replay(&FOUR, dynamic(8, 10.0, anchor), End::Cut);
        let [entry] = ledger.batches.as_slice() else { panic!("{:?}", ledger.batches) };
        assert_eq!((entry.row.start_ns, entry.row.took_ns), (10 * MS, 10 * MS));
        assert_eq!((entry.row.size, entry.row.reason), (4, Reason::Timer));
        assert_eq!(entry.arrivals, [0, 3 * MS, 6 * MS, 9 * MS]);
    }
    let world = trace_world(&FOUR, dynamic(8, 10.0, Anchor::OldestArrival), End::Cut);
    let (outcome, ..) = run(&world, &Options::default(), &Default::default());
    let cell = &outcome.cells[0];
    let latency = cell.latency_ms.as_ref().unwrap();
    assert_eq!((cell.requests.completed, cell.requests.unfinished), (4, 0));
    assert!((latency.mean - 15.5).abs() < 1e-12, "{}", latency.mean);
    assert_eq!(latency.max, Some(20.0));
    assert_eq!(cell.dispatch_reasons, [("timer".to_owned(), 1)].into());
}

/// Without the cut the last arrival lets the partial batch go at once, and says so.
#[test]
fn the_last_arrival_flushes_a_partial_batch() {
    for policy in [fixed(8), dynamic(8, 10.0, Anchor::OldestArrival)] {
        let ledger = replay(&FOUR, policy, End::Flush);
        let [entry] = ledger.batches.as_slice() else { panic!("{:?}", ledger.batches) };
        assert_eq!((entry.row.start_ns, entry.row.reason), (9 * MS, Reason::Flush));
    }
}

/// One request alone waits its full time, as long as others may come.
#[test]
fn a_single_request_waits_its_time() {
    let ledger = replay(&[0.0], dynamic(8, 5.0, Anchor::OldestArrival), End::Cut);
    assert_eq!(ledger.batches[0].row.start_ns + ledger.batches[0].row.took_ns, 13_500_000);
    let ledger = replay(&[0.0; 8], dynamic(8, 5.0, Anchor::OldestArrival), End::Cut);
    assert_eq!((ledger.batches[0].row.start_ns, ledger.batches[0].row.took_ns), (0, 12 * MS));
}

/// Equal gaps: alone or greedy every latency is 8.5 ms; a fixed batch of `b` makes its k-th member
/// wait for the others.
#[test]
fn equal_gaps_leave_nothing_to_chance() {
    let every_10_ms: Vec<f64> = (0..40).map(|i| 10.0 * f64::from(i)).collect();
    for policy in [none(), greedy(Some(8)), dynamic(8, 0.0, Anchor::Pickup)] {
        let ledger = replay(&every_10_ms, policy, End::Flush);
        let latency = |e: &batchsim::record::BatchEntry| {
            e.arrivals.iter().map(|a| e.row.start_ns + e.row.took_ns - a).collect::<Vec<_>>()
        };
        assert!(ledger.batches.iter().all(|e| latency(e) == [8_500_000]));
    }
    let ledger = replay(&every_10_ms, fixed(4), End::Flush);
    for entry in &ledger.batches {
        let done = entry.row.start_ns + entry.row.took_ns;
        let latency: Vec<u64> = entry.arrivals.iter().map(|a| done - a).collect();
        assert_eq!(latency, [40 * MS, 30 * MS, 20 * MS, 10 * MS]);
    }
}

//! Closed loops: what a fixed number of callers must see, by hand and by the textbook.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, unreachable_pub)]

#[path = "common/journal.rs"]
mod journal;
#[path = "common/worlds.rs"]
mod worlds;

use batchsim::arrivals::{ClosedLoop, Process, Think, ThinkKind, ThinkLaw};
use batchsim::engine::Ending;
use batchsim::policy::{Anchor, Policy, Reason};
use batchsim::record::{Gone, Histogram};
use batchsim::scenario::{End, Scenario, Warmup};
use batchsim::study::{Control, Options, Portion, run};
use batchsim::time::Nanos;
use journal::Journal;
use worlds::{MS, at_least, bench, dynamic, fixed, greedy, linear, measure, ms, none, world};

fn callers(clients: u32, think: Think) -> Process {
    Process::ClosedLoop(ClosedLoop { clients, think })
}

fn impatient(clients: u32, policy: Policy) -> Scenario {
    world(callers(clients, Think::default()), linear(), policy)
}

fn play(world: &Scenario, requests: u64) -> (Journal, Ending) {
    let mut journal = Journal::default();
    let portion = Portion { replication: 0, measured: Some(requests), measure_from: Nanos::ZERO };
    let ending = bench(world).run(portion, &mut journal);
    (journal, ending)
}

/// Service time of the running example in ns.
fn s(n: u32) -> u64 {
    linear().service_ns(n)
}

/// N callers without think time and N <= cap: every latency is s(N), for ever.
#[test]
fn callers_that_fit_one_batch_see_its_time() {
    for clients in 1..=8 {
        for policy in [greedy(Some(8)), greedy(None), dynamic(8, 0.0, Anchor::Pickup)] {
            let (journal, ending) = play(&impatient(clients, policy), 1000);
            assert_eq!(ending.stalled, None);
            let full = 1000 / clients as usize;
            for (k, batch) in journal.batches.iter().take(full).enumerate() {
                assert_eq!((batch.start(), batch.row.size), (k as u64 * s(clients), clients));
                assert_eq!(batch.done() - batch.oldest(), s(clients));
                assert_eq!(batch.oldest(), batch.newest());
            }
        }
    }
}

/// N = 3 caps: after the first round every latency is 3 s(b), and b leave every s(b).
#[test]
fn three_batches_of_callers_wait_for_each_other() {
    for cap in [1, 4, 8] {
        let (journal, _) = play(&impatient(3 * cap, greedy(Some(cap))), 3000);
        for (k, batch) in journal.batches.iter().enumerate().take(3000 / cap as usize) {
            assert_eq!((batch.start(), batch.row.size), (k as u64 * s(cap), cap));
            assert_eq!(batch.row.reason, Reason::Full);
            let latency = (k as u64 + 1).min(3) * s(cap);
            assert!(batch.members.iter().all(|m| batch.done() - m.0 == latency), "{batch:?}");
        }
    }
}

/// The same as a study sees it: throughput b / s(b), latency 3 s(b).
#[test]
fn three_batches_of_callers_run_the_server_at_capacity() {
    let mut world = impatient(24, greedy(Some(8)));
    world.run.exact_latencies = true;
    world.run.requests = Some(100_000);
    let (outcome, _, stalled) = run(&world, &Options::default(), &Control::default());
    assert_eq!(stalled, []);
    let cell = &outcome.cells[0];
    let latency = cell.latency_ms.as_ref().unwrap();
    assert_eq!((latency.p50, latency.p99, latency.max), (36.0, 36.0, Some(36.0)));
    assert!((cell.throughput_per_s / (8000.0 / 12.0) - 1.0).abs() < 2e-3, "{cell:?}");
    assert!(cell.utilization > 0.999, "{}", cell.utilization);
}

/// throughput = clients / (latency + think), whatever the policy.
#[test]
fn interactive_law() {
    let exponential = Think::Law(ThinkLaw { mean: ms(40.0), kind: ThinkKind::Exponential });
    for policy in
        [none(), greedy(Some(8)), dynamic(16, 5.0, Anchor::OldestArrival), at_least(4, 16)]
    {
        for think in [exponential, Think::Constant(ms(40.0))] {
            let world = world(callers(32, think), linear(), policy.clone());
            // Think times that are random must be many before their mean is 40 ms.
            let random = think == exponential;
            let requests = if random { 4_000_000 } else { 400_000 };
            let m = measure::<Histogram<10>>(&world, requests, &[]);
            let latency_s = m.pooled.latency_sum_ns as f64 / m.pooled.counts.completed as f64 / 1e9;
            let throughput = m.pooled.done_in_window as f64 * 1e9 / m.pooled.window_ns as f64;
            let law = 32.0 / (latency_s + 0.040);
            let off = throughput / law - 1.0;
            println!("{} {think:?}: {throughput:.3}/s, {off:+.1e} off", world.policies[0].label);
            assert!(off.abs() < 2e-3, "{throughput} instead of {law}");
        }
    }
}

/// Exponential think and service, batches of one: the machine-repair model. With `a` = service
/// over think time, P(n in the server) is proportional to N! / (N − n)! aⁿ.
#[test]
fn machine_repair() {
    for (clients, think_ms) in [(1u32, 20.0), (5, 40.0), (20, 100.0)] {
        let think = Think::Law(ThinkLaw { mean: ms(think_ms), kind: ThinkKind::Exponential });
        let mut world = world(callers(clients, think), worlds::affine(8.5, 0.0), none());
        world.servers[0].jitter = worlds::exponential();
        let m = measure::<Histogram<10>>(&world, 4_000_000, &[]);
        let (mut weight, mut total) = (1.0, 1.0);
        for n in 0..clients {
            weight *= f64::from(clients - n) * 8.5 / think_ms;
            total += weight;
        }
        let throughput = (1.0 - 1.0 / total) / 8.5;
        let latency_ms = f64::from(clients) / throughput - think_ms;
        let section = |s: &batchsim::record::Summary<Histogram<10>>| {
            s.latency_sum_ns as f64 / s.counts.completed as f64 / 1e6
        };
        let mean = section(&m.pooled);
        let parts: Vec<f64> = m.sections.iter().map(section).collect();
        let half = batchsim::stats::half_width(mean, &parts).unwrap();
        println!("{clients} callers: {mean:.4} ± {half:.4} ms, exactly {latency_ms:.4}");
        assert!(half < 0.004 * mean, "too imprecise to tell");
        // Three half-widths are six standard errors.
        assert!((mean - latency_ms).abs() < 3.0 * half, "{mean} ± {half} is not {latency_ms}");
    }
}

/// A fixed batch larger than the number of callers can never fill: named, never averaged.
#[test]
fn static_with_too_few_callers_stalls() {
    for policy in [fixed(8), at_least(8, 32)] {
        let (journal, ending) = play(&impatient(5, policy.clone()), 100);
        assert_eq!(ending.stalled, Some(5));
        assert_eq!((journal.batches.len(), journal.left.len()), (0, 5));
        assert!(journal.left.iter().all(|l| l.why == Gone::Unfinished));
        let (outcome, _, stalled) =
            run(&impatient(5, policy), &Options::default(), &Control::default());
        assert_eq!(stalled.len(), 1);
        assert_eq!(stalled[0].label, outcome.cells[0].policy.label);
        assert_eq!(stalled[0].waiting, 5);
        assert_eq!(outcome.cells[0].latency_ms, None);
    }
    // With exactly as many as it needs it runs for ever.
    let (journal, ending) = play(&impatient(8, fixed(8)), 800);
    assert_eq!((ending.stalled, journal.batches.len()), (None, 100));
}

/// Open sources and callers beside each other: `requests` counts them together.
#[test]
fn callers_and_strangers_are_counted_together() {
    let mut world = world(callers(3, Think::Constant(ms(5.0))), linear(), greedy(Some(8)));
    world.arrivals.push(worlds::source(worlds::poisson(200.0)));
    world.run.warmup = Warmup::Time(ms(50.0));
    for requests in [1, 7, 1000] {
        let m = measure::<Histogram<10>>(&world, requests, &[]);
        assert_eq!((m.pooled.offered, m.pooled.counts.completed), (requests, requests));
    }
    let (journal, ending) = play(&world, 2_000);
    assert_eq!((ending.stalled, journal.arrivals.len()), (None, 2_000));
    let members = journal.batches.iter().flat_map(|b| &b.members);
    let strangers = members.filter(|m| m.1 == 0).count();
    // Some 200 a second of them, and three callers every 5 ms and a batch.
    assert!((1_000..1_200).contains(&strangers), "{strangers}");
}

/// A stop of the clock is no stall: the requests are unfinished.
#[test]
fn a_cut_is_no_stall() {
    let mut world = impatient(5, fixed(8));
    world.run.end = End::Cut;
    world.run.duration = Some(ms(100.0));
    world.run.warmup = Warmup::Time(Nanos::ZERO);
    let mut journal = Journal::default();
    let portion = Portion { replication: 0, measured: None, measure_from: Nanos::ZERO };
    let ending = bench(&world).run(portion, &mut journal);
    assert_eq!(ending, Ending { at_ns: 100 * MS, stalled: None });
    assert_eq!(journal.left.len(), 5);
}

/// A caller that is refused thinks and comes back; it is not lost.
#[test]
fn refused_callers_come_back() {
    let mut world = world(callers(4, Think::Constant(ms(3.0))), linear(), none());
    world.servers[0].queue_limit = Some(1);
    let (journal, ending) = play(&world, 200);
    assert_eq!(ending.stalled, None);
    let rejected = journal.left.iter().filter(|l| l.why == Gone::Rejected).count();
    assert_eq!(rejected + journal.batches.len(), 200);
    // At time zero one request is seen by the idle instance only after all four have come: the
    // queue holds one, three are turned away.
    assert_eq!(journal.left.iter().filter(|l| l.at == 0).count(), 3);
    assert!(journal.arrivals.iter().filter(|t| **t == 3 * MS).count() == 3);
}

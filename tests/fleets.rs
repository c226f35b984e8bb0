//! Replicas behind a balancer: orders that are known, and laws that are exact.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(clippy::print_stdout, unreachable_pub, dead_code, reason = "a test")]

#[path = "common/worlds.rs"]
mod worlds;

use batchsim::cost::Jitter;
use batchsim::engine::Balancer;
use batchsim::outcome::Cell;
use batchsim::policy::{Anchor, Policy};
use batchsim::scenario::Scenario;
use batchsim::stats::t_quantile;
use batchsim::study::{Control, Options, exact, run};
use worlds::{affine, dynamic, exponential, greedy, linear, none, poisson, world};

/// How sixteen executors are fed.
#[derive(Clone, Copy)]
enum Fed {
    Shared,
    By(Balancer),
}

fn sixteen(mut world: Scenario, fed: Fed, jitter: Jitter) -> Scenario {
    world.run.requests = Some(1_600_000);
    let server = &mut world.servers[0];
    server.jitter = jitter;
    match fed {
        Fed::Shared => server.instances = 16,
        Fed::By(balancer) => (server.replicas, server.balancer) = (16, balancer),
    }
    world
}

fn cell(world: &Scenario) -> Cell {
    let (mut outcome, _, stalled) = run(world, &Options::default(), &Control::default());
    assert_eq!(stalled, []);
    outcome.cells.remove(0)
}

fn mean(cell: &Cell) -> f64 {
    cell.latency_ms.clone().unwrap().mean
}

/// With constant service times the turns come round exactly when a shared queue would serve them:
/// the k-th arrival waits for the (k − 16)-th in both. Two random choices come short of that, and
/// one far more.
#[test]
fn constant_service_times_order_the_balancers() {
    let base = world(poisson(0.85 * 16.0 * 125.0), affine(8.0, 0.0), none());
    let of = |fed| cell(&sixteen(base.clone(), fed, Jitter::default()));
    let (shared, turns) = (of(Fed::Shared), of(Fed::By(Balancer::RoundRobin)));
    assert_eq!(shared.latency_ms, turns.latency_ms);
    assert_eq!(shared.requests, turns.requests);
    let least = mean(&of(Fed::By(Balancer::LeastOutstanding)));
    let two = mean(&of(Fed::By(Balancer::PowerOfTwo)));
    let random = mean(&of(Fed::By(Balancer::Random)));
    let all = [mean(&turns), least, two, random];
    println!("turns, least, two, random: {all:?} ms");
    assert!(all[0] <= all[1] && all[1] < 0.9 * all[2] && all[2] < 0.7 * all[3], "{all:?}");
}

#[test]
fn exponential_service_times_order_the_balancers() {
    let base = world(poisson(0.9 * 16.0 * 125.0), affine(8.0, 0.0), none());
    let of = |fed| mean(&cell(&sixteen(base.clone(), fed, exponential())));
    let all = [
        of(Fed::Shared),
        of(Fed::By(Balancer::LeastOutstanding)),
        of(Fed::By(Balancer::PowerOfTwo)),
        of(Fed::By(Balancer::RoundRobin)),
        of(Fed::By(Balancer::Random)),
    ];
    println!("shared, least, two, turns, random: {all:?} ms");
    assert!(all.windows(2).all(|w| w[0] < 0.95 * w[1]), "{all:?}");
    // M/M/16 at a load of 0.9 has a mean of 8 · (1 + C / (16 · 0.1)) with Erlang's C; a random
    // share is M/M/1.
    assert!((all[0] / (8.0 * (1.0 + erlang_c(16, 14.4) / 1.6)) - 1.0).abs() < 0.02, "{all:?}");
    assert!((all[4] / 80.0 - 1.0).abs() < 0.05, "{all:?}");
}

/// Probability of waiting with `n` servers and an offered load of `a`.
fn erlang_c(n: u32, a: f64) -> f64 {
    let blocked = (1..=n).fold(1.0, |b, k| a * b / (f64::from(k) + a * b));
    let n = f64::from(n);
    n * blocked / (n - a * (1.0 - blocked))
}

/// A random share of Poisson arrivals is Poisson: each replica is the one server of the exact
/// solution at a sixteenth of the rate, whatever its policy.
#[test]
fn a_random_share_is_exact_at_its_part_of_the_rate() {
    let policies: [(Policy, f64); 4] = [
        (none(), 80.0),
        (greedy(Some(8)), 400.0),
        (dynamic(16, 5.0, Anchor::OldestArrival), 500.0),
        (dynamic(16, 5.0, Anchor::Pickup), 500.0),
    ];
    let limit = t_quantile(1.0 - 0.0005 / 12.0, 19);
    for (policy, rate) in policies {
        let one = world(poisson(rate), linear(), policy.clone());
        let (truth, _) = exact(&one, &Control::default());
        let truth = truth.cells[0].latency_ms.clone().unwrap();
        let base = world(poisson(16.0 * rate), linear(), policy);
        let found = cell(&sixteen(base, Fed::By(Balancer::Random), Jitter::default()));
        assert!((found.capacity_per_s.unwrap() / 16.0 * found.load.unwrap() - rate).abs() < 1e-6);
        let latency = found.latency_ms.unwrap();
        let half = latency.ci95.unwrap();
        for (what, value, half, truth) in [
            ("mean", latency.mean, half.mean, truth.mean),
            ("p50", latency.p50, half.p50, truth.p50),
            ("p99", latency.p99, half.p99, truth.p99),
        ] {
            let error = (half / t_quantile(0.975, 19)).hypot(truth / 2048.0);
            let t = (value - truth) / error;
            println!("{} {what}: {value:.4}, exactly {truth:.4}, t {t:.2}", found.policy.label);
            assert!(t.abs() < limit && error < 0.01 * truth, "{what}: {value} not {truth}");
        }
    }
}

/// The same bytes at any number of threads, random choices included.
#[test]
fn invariant_10_holds_for_fleets() {
    let base = world(poisson(1600.0), linear(), dynamic(8, 5.0, Anchor::OldestArrival));
    let mut world = sixteen(base, Fed::By(Balancer::PowerOfTwo), exponential());
    world.run.requests = Some(100_000);
    let bytes = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let done = pool.install(|| run(&world, &Options::default(), &Control::default()));
        serde_json::to_vec(&done.0).unwrap()
    };
    let one = bytes(1);
    assert!(bytes(2) == one && bytes(7) == one);
}

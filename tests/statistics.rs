//! The default procedure as a whole: do its intervals cover the truth, does it delete a start-up,
//! does it name an overload?
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, unreachable_pub)]

#[path = "common/worlds.rs"]
mod worlds;

use batchsim::arrivals::{ClosedLoop, Process, Think, ThinkKind, ThinkLaw};
use batchsim::exact::{Anchor as ExactAnchor, Input, Rule, solve};
use batchsim::policy::Anchor;
use batchsim::record::{Histogram, Summary};
use batchsim::scenario::{Scenario, Warmup};
use batchsim::stats::half_width;
use batchsim::study::{Budget, Control, Measured, Options, run, simulate};
use batchsim::time::Nanos;
use rayon::prelude::*;
use statrs::distribution::{Binomial, DiscreteCDF};
use worlds::{bench, dynamic, fixed, greedy, linear, measure, ms, none, poisson, world};

type H = Histogram<10>;

fn p99(s: &Summary<H>) -> f64 {
    s.latency.quantiles(&[0.99]).unwrap()[0] / 1e6
}

fn mean(s: &Summary<H>) -> f64 {
    s.latency_sum_ns as f64 / s.counts.completed as f64 / 1e6
}

fn interval(m: &Measured<H>, of: impl Fn(&Summary<H>) -> f64) -> (f64, f64) {
    let parts: Vec<f64> = m.sections.iter().map(&of).collect();
    (of(&m.pooled), half_width(of(&m.pooled), &parts).unwrap())
}

/// Small studies of one scenario with different seeds: how many intervals of mean and p99 cover
/// the exact values.
fn coverage(name: &str, base: &Scenario, budget: Budget, rule: &Rule, rate: f64) -> [Covered; 2] {
    let full = std::env::var("BATCHSIM_THEORY").is_ok_and(|v| v == "full");
    let studies: u64 = if full { 10_000 } else { 1_000 };
    let cost = |n: u32| 8.0 + 0.5 * f64::from(n);
    let law = solve(&Input::Poisson { rate_per_s: rate }, rule, &cost).unwrap();
    let (exact_mean, exact_p99) = (law.mean_ms(), law.quantile_ms(0.99));
    let covered: Vec<(bool, bool, f64)> = (0..studies)
        .into_par_iter()
        .map(|seed| {
            let mut world = base.clone();
            world.seed = 90_000 + seed;
            let control = Control::default();
            let m: Measured<H> = simulate(&bench(&world), &[], &budget, false, &control).unwrap();
            let covers = |(value, half): (f64, f64), exact: f64| (value - exact).abs() <= half;
            let requests = m.pooled.counts.completed as f64;
            (covers(interval(&m, mean), exact_mean), covers(interval(&m, p99), exact_p99), requests)
        })
        .collect();
    let share = |count: usize| count as f64 / studies as f64;
    let of_mean = share(covered.iter().filter(|c| c.0).count());
    let of_p99 = share(covered.iter().filter(|c| c.1).count());
    let requests = covered.iter().map(|c| c.2).sum::<f64>() / studies as f64;
    println!(
        "{name}: {studies} studies of {requests:.0} requests, 95 % intervals cover the mean in \
         {:.1} % and p99 in {:.1} %",
        100.0 * of_mean,
        100.0 * of_p99
    );
    [(of_mean, studies), (of_p99, studies)].map(Covered::from)
}

/// A share of studies whose interval covered.
struct Covered {
    count: u64,
    studies: u64,
}

impl From<(f64, u64)> for Covered {
    fn from((share, studies): (f64, u64)) -> Self {
        Self { count: (share * studies as f64).round() as u64, studies }
    }
}

impl Covered {
    /// A binomial test at 0.001 against each end of a range: neither "below `low`" nor "above
    /// `high`" is shown.
    fn lies_in(&self, low: f64, high: f64) {
        let law = |p: f64| Binomial::new(p, self.studies).unwrap();
        let this_few = law(low).cdf(self.count);
        let this_many = law(high).sf(self.count.saturating_sub(1));
        let shown = format!("{} of {} cover", self.count, self.studies);
        assert!(this_few > 0.001, "{shown}: fewer than {low}, p = {this_few}");
        assert!(this_many > 0.001, "{shown}: more than {high}, p = {this_many}");
    }
}

#[test]
fn intervals_of_fixed_length_cover_the_truth() {
    let budget = Budget { precision: 0.0, first_wave: 10_000, cap: 200_000 };
    let base = world(poisson(330.0), linear(), greedy(Some(8)));
    let rule = Rule::AtLeast { min: 1, cap: Some(8) };
    for covered in coverage("greedy, load 0.5", &base, budget, &rule, 330.0) {
        covered.lies_in(0.93, 0.97);
    }
    let base = world(poisson(80.0), linear(), none());
    let rule = Rule::AtLeast { min: 1, cap: Some(1) };
    for covered in coverage("none, load 0.68", &base, budget, &rule, 80.0) {
        covered.lies_in(0.93, 0.97);
    }
    let base = world(poisson(700.0), linear(), dynamic(16, 5.0, Anchor::OldestArrival));
    let rule = Rule::Timer { cap: 16, wait_ms: 5.0, anchor: ExactAnchor::Oldest };
    for covered in coverage("dynamic, load 0.7", &base, budget, &rule, 700.0) {
        covered.lies_in(0.93, 0.97);
    }
}

/// Stopping once the interval is narrow enough keeps most of its coverage: the rule prefers to stop
/// where the interval happens to be too narrow.
#[test]
fn intervals_that_stop_at_a_precision_cover_the_truth() {
    let budget = Budget { precision: 0.03, first_wave: 500, cap: 2_000_000 };
    let base = world(poisson(330.0), linear(), greedy(Some(8)));
    let rule = Rule::AtLeast { min: 1, cap: Some(8) };
    for covered in coverage("greedy, load 0.5, to 3 %", &base, budget, &rule, 330.0) {
        covered.lies_in(0.91, 0.97);
    }
    let base = world(poisson(80.0), linear(), none());
    let rule = Rule::AtLeast { min: 1, cap: Some(1) };
    for covered in coverage("none, load 0.68, to 3 %", &base, budget, &rule, 80.0) {
        covered.lies_in(0.91, 0.97);
    }
}

/// 64 callers that all ask at time zero queue up to half a second, then never again: the automatic
/// warm-up deletes that, and without one the mean is far off. Exponential think and service, so
/// that the truth is known (machine repair).
#[test]
fn a_start_up_is_deleted() {
    let think = Think::Law(ThinkLaw { mean: ms(1000.0), kind: ThinkKind::Exponential });
    let callers = Process::ClosedLoop(ClosedLoop { clients: 64, think });
    let mut scenario = world(callers, worlds::affine(8.5, 0.0), none());
    scenario.servers[0].jitter = worlds::exponential();
    let exact = machine_repair_ms(64, 8.5, 1000.0);
    let automatic = measure::<H>(&scenario, 20 * 5_000, &[]);
    scenario.run.warmup = Warmup::Time(Nanos::ZERO);
    let cold = measure::<H>(&scenario, 20 * 5_000, &[]);
    let (warm_mean, warm_half) = interval(&automatic, mean);
    let (cold_mean, cold_half) = interval(&cold, mean);
    println!(
        "exact mean {exact:.2} ms; warm-up {} gives {warm_mean:.2} ± {warm_half:.2}, none gives \
         {cold_mean:.2} ± {cold_half:.2}",
        automatic.warmup,
    );
    assert!(automatic.warnings.is_empty(), "{:?}", automatic.warnings);
    let burst = Nanos(64 * 8_500_000);
    assert!(automatic.warmup > burst, "{}", automatic.warmup);
    assert!(automatic.warmup < Nanos(20 * burst.0), "{}: far too much", automatic.warmup);
    assert!(cold_mean > 1.15 * exact, "a cold start is off");
    assert!((warm_mean - exact).abs() < 1.5 * warm_half, "a warm one is not");
    assert!(warm_half < 0.02 * exact, "too imprecise to tell");
}

/// Mean latency of exponential callers at one exponential instance: with `a` = service over think
/// time, P(n there) is proportional to N! / (N − n)! aⁿ.
fn machine_repair_ms(clients: u32, service_ms: f64, think_ms: f64) -> f64 {
    let (mut weight, mut total) = (1.0, 1.0);
    for n in 0..clients {
        weight *= f64::from(clients - n) * service_ms / think_ms;
        total += weight;
    }
    let per_ms = (1.0 - 1.0 / total) / service_ms;
    f64::from(clients) / per_ms - think_ms
}

/// Requests of the warm-up are simulated and not counted.
#[test]
fn the_warm_up_is_not_counted() {
    let mut scenario = world(poisson(400.0), linear(), greedy(Some(8)));
    scenario.run.warmup = Warmup::Time(Nanos(2_000_000_000));
    scenario.run.replications = 4;
    let m = measure::<H>(&scenario, 10_001, &[]);
    assert_eq!((m.pooled.offered, m.pooled.counts.total()), (10_001, 10_001));
    let each: Vec<u64> = m.sections.iter().map(|s| s.offered).collect();
    assert_eq!(each, [2_501, 2_500, 2_500, 2_500]);
    assert_eq!(m.warmup, Nanos(2_000_000_000));
}

#[test]
fn an_overload_is_named_and_never_averaged() {
    let mut scenario = world(poisson(900.0), linear(), none());
    scenario.policies.push(scenario.policies[0].clone());
    scenario.policies[1].label = "enough".into();
    scenario.policies[1].policy = greedy(Some(32));
    scenario.run.max_requests = Some(400_000);
    let (outcome, files, _) = run(&scenario, &Options::default(), &Control::default());
    let [over, enough] = outcome.cells.as_slice() else { panic!("two cells") };
    assert!(!over.stable && enough.stable);
    assert_eq!(over.latency_ms, None);
    assert_eq!(over.queue_ms, None);
    assert!(
        over.warnings.iter().any(|w| w.starts_with("OVERLOADED: 900/s offered, capacity 118/s")),
        "{:?}",
        over.warnings
    );
    assert!((over.throughput_per_s / 117.647 - 1.0).abs() < 0.01, "{}", over.throughput_per_s);
    assert!(over.utilization > 0.99, "{}", over.utilization);
    assert!(enough.latency_ms.is_some() && enough.warnings.iter().all(|w| !w.contains("OVER")));
    assert_eq!(files.len(), 1, "only what is stable has a distribution");
}

/// At exactly the capacity nothing settles either; just below it, it does.
#[test]
fn capacity_itself_is_an_overload() {
    let capacity = 8.0 / 0.012;
    for (rate, stable) in [(capacity, false), (1.02 * capacity, false), (0.9 * capacity, true)] {
        for policy in [greedy(Some(8)), fixed(8), dynamic(8, 5.0, Anchor::OldestArrival)] {
            let mut scenario = world(poisson(rate), linear(), policy);
            scenario.run.max_requests = Some(200_000);
            let (outcome, ..) = run(&scenario, &Options::default(), &Control::default());
            assert_eq!(outcome.cells[0].stable, stable, "{rate}: {:?}", outcome.cells[0].warnings);
        }
    }
}

/// A recording that offers more than the server can do grows without end, whatever its mean rate
/// is called; a limit on the queue makes that bearable and counts what it costs.
#[test]
fn a_queue_limit_bounds_an_overload() {
    let mut scenario = world(poisson(900.0), linear(), none());
    scenario.servers[0].queue_limit = Some(10);
    scenario.run.requests = Some(100_000);
    let (outcome, ..) = run(&scenario, &Options::default(), &Control::default());
    let cell = &outcome.cells[0];
    let requests = cell.requests;
    assert!(cell.stable && cell.latency_ms.is_some());
    assert_eq!(requests.offered, requests.completed + requests.rejected);
    // One in service and ten waiting: nobody stays longer than 11 services.
    assert!(cell.latency_ms.as_ref().unwrap().max.unwrap() <= 11.0 * 8.5 + 1e-9);
    let share = requests.completed as f64 / requests.offered as f64;
    assert!((share / (117.647 / 900.0) - 1.0).abs() < 0.02, "{share}");
}

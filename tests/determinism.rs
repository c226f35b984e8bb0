//! Invariant 10: the same scenario and seed give the same bytes, at any number of threads; and
//! what arrives depends on nothing but seed, replication and source.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, unreachable_pub)]

#[path = "common/any.rs"]
mod any;
#[path = "common/journal.rs"]
mod journal;
#[path = "common/worlds.rs"]
mod worlds;

use any::scenario;
use batchsim::arrivals::{Process, Replay, Trace};
use batchsim::interop::trace::for_scenario;
use batchsim::outcome::Method;
use batchsim::policy::{Anchor, Policy};
use batchsim::scenario::{Disk, Input, Loaded, Scenario, TraceProblem, load};
use batchsim::study::{
    Bench, CellDone, Control, Engine, Options, Portion, SweepCell, plan_sweep, run,
};
use batchsim::time::Nanos;
use journal::Journal;
use proptest::prelude::*;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use std::path::Path;
use worlds::{bench, dynamic, fixed, gamma, greedy, linear, none, poisson, source, world};

const STUDY: &str = r#"
schema = 1
[run]
requests = 30_000
[[arrivals]]
name = "web"
class = "interactive"
kind = "poisson"
rate = "400/s"
[[arrivals]]
name = "batch"
class = "bulk"
kind = "mmpp"
rate = "200/s"
idc = 5.0
timescale = "50ms"
[server]
instances = 2
cost = { kind = "affine", fixed = "8ms", per_item = "0.5ms" }
jitter = { kind = "lognormal", cv = 0.2 }
[[policy]]
kind = "none"
[[policy]]
kind = "static"
max_batch_size = 8
[[policy]]
kind = "greedy"
max_batch_size = 32
[[policy]]
kind = "dynamic"
max_batch_size = 16
max_wait = "4ms"
wait_anchor = "pickup"
[[threshold]]
expr = "p(99) < 50ms"
[[threshold]]
expr = "attainment(30ms) >= 95%"
[curve]
loads = [0.3, 0.7]
[sweep]
"dynamic.max_wait" = { values = ["0ms", "2ms", "5ms"] }
"arrivals.rate" = { values = ["300/s", "600/s"] }
"#;

fn no_trace(_: &Replay, _: Vec<u8>) -> Result<Trace, TraceProblem> {
    panic!("no trace here");
}

fn loaded(text: &str, sets: &[&str]) -> Loaded {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    load(&Input::from_text("study.toml", text), &sets, &Disk::beside(Path::new("x"), no_trace))
        .unwrap_or_else(|e| panic!("{e:?}"))
}

/// Everything a run says, as bytes.
fn run_bytes(scenario: &Scenario) -> Vec<u8> {
    let (outcome, cdfs, stalled) = run(scenario, &Options::default(), &Control::default());
    assert_eq!(stalled, []);
    serde_json::to_vec(&(&outcome, &cdfs)).unwrap()
}

/// Everything a sweep says, as bytes.
fn sweep_bytes(loaded: &Loaded) -> Vec<u8> {
    let plan = plan_sweep(&loaded.scenario);
    let cell = |cell: &SweepCell| -> CellDone {
        cell.simulate(loaded, &Options::default(), &Control::default()).unwrap().unwrap()
    };
    let done: Vec<CellDone> = plan.par_iter().map(cell).collect();
    assert!(done.len() >= 12, "{}", done.len());
    let parts: Vec<_> = done.iter().map(|d| (&d.cell, &d.cdf)).collect();
    serde_json::to_vec(&parts).unwrap()
}

fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn invariant_10_same_bytes_at_any_thread_count() {
    let study = loaded(STUDY, &[]);
    let bytes = || (run_bytes(&study.scenario), sweep_bytes(&study));
    let one = with_threads(1, bytes);
    println!("run: {} bytes, sweep: {} bytes", one.0.len(), one.1.len());
    for threads in [2, 7, 1] {
        assert!(with_threads(threads, bytes) == one, "{threads} threads");
    }
}

/// Precision decides the length here, wave by wave.
#[test]
fn invariant_10_same_bytes_when_waves_are_added() {
    let world = world(poisson(400.0), linear(), greedy(Some(8)));
    let options = Options { precision: Some(0.02), ..Options::default() };
    let bytes = || {
        let mut task_world = world.clone();
        task_world.run.max_requests = Some(3_000_000);
        serde_json::to_vec(&run(&task_world, &options, &Control::default()).0).unwrap()
    };
    let one = with_threads(1, bytes);
    assert!(with_threads(7, bytes) == one);
}

#[test]
fn another_seed_gives_other_bytes() {
    let base = run_bytes(&loaded(STUDY, &[]).scenario);
    let other = loaded(STUDY, &["seed=43"]);
    assert_ne!(run_bytes(&other.scenario), base);
    // Not only where the seed itself is written.
    let p99 = |loaded: &Loaded| {
        let (outcome, ..) = run(&loaded.scenario, &Options::default(), &Control::default());
        outcome.cells[2].latency_ms.as_ref().unwrap().p99
    };
    assert!((p99(&other) - p99(&loaded(STUDY, &[]))).abs() > 0.0);
}

/// A policy's cell is the same whatever else the scenario compares it with.
#[test]
fn a_cell_does_not_depend_on_its_neighbours() {
    let mut scenario = loaded(STUDY, &[]).scenario;
    let (together, ..) = run(&scenario, &Options::default(), &Control::default());
    for (i, cell) in together.cells.iter().enumerate() {
        scenario.policies = vec![loaded(STUDY, &[]).scenario.policies[i].clone()];
        let (alone, ..) = run(&scenario, &Options::default(), &Control::default());
        assert_eq!(&alone.cells[0], cell);
    }
}

/// The shipped scenarios, twice; all but the one whose recording does not come with them.
#[test]
fn shipped_scenarios_repeat() {
    let generic = ["bursty", "closed-loop", "cut", "overload", "two-instances"];
    for name in generic.into_iter().chain(["torchserve", "mosec", "litserve"]) {
        let path = format!("{}/scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let path = Path::new(&path);
        let disk = Disk::beside(path, for_scenario);
        let mut loaded = load(&Input::open(path).unwrap(), &[], &disk).unwrap();
        loaded.scenario.run.max_requests = Some(100_000);
        let bytes = || {
            let (outcome, cdfs, _) =
                run(&loaded.scenario, &Options::default(), &Control::default());
            serde_json::to_vec(&(outcome, cdfs)).unwrap()
        };
        assert!(with_threads(3, bytes) == with_threads(1, bytes), "{name}");
    }
}

// --- the fast path ---

fn by_engine(scenario: &Scenario, engine: Engine) -> (Vec<u8>, bool) {
    let options = Options { engine, precision: None };
    let (mut outcome, cdfs, _) = run(scenario, &options, &Control::default());
    let fast = outcome.cells.iter().all(|c| c.method == Method::Recurrence);
    for cell in outcome.cells.iter_mut().chain(&mut outcome.curve) {
        cell.method = Method::Simulation;
    }
    (serde_json::to_vec(&(outcome, cdfs)).unwrap(), fast)
}

/// The whole outcome but the name of the method: every policy with a law, jitter and instances.
#[test]
fn invariant_11_same_outcome_by_either_engine() {
    let policies = [
        none(),
        fixed(8),
        greedy(Some(8)),
        greedy(None),
        dynamic(8, 4.0, Anchor::OldestArrival),
        dynamic(8, 4.0, Anchor::Pickup),
        worlds::at_least(3, 8),
    ];
    let jitters = [Default::default(), worlds::exponential(), worlds::lognormal(0.5)];
    let mut cells = 0;
    for policy in &policies {
        for jitter in &jitters {
            for instances in 1..=4 {
                let capacity = linear().capacity_per_s(Some(policy.cap().unwrap_or(8)), instances);
                let process = poisson(0.7 * capacity.unwrap());
                let mut world = world(process, linear(), policy.clone());
                world.arrivals.push(source(gamma(5.0, 2.0)));
                world.servers[0].instances = instances;
                world.servers[0].jitter = jitter.clone();
                world.run.requests = Some(4_000);
                world.run.replications = 3;
                let (fast, by_recurrence) = by_engine(&world, Engine::Auto);
                let (slow, _) = by_engine(&world, Engine::Event);
                assert!(by_recurrence, "{policy:?} has a law");
                let unequal = format!("{policy:?}, {jitter:?}, {instances} instances");
                if fast != slow {
                    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
                    panic!("{unequal}\n{}\n{}", text(&fast), text(&slow));
                }
                cells += 1;
            }
        }
    }
    println!("{cells} cells by both engines");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// Any scenario at all, with the arrival processes as they are: both ways agree on every batch.
    #[test]
    fn invariant_11_any_scenario_by_either_engine(any in scenario()) {
        let journal = |engine| {
            let mut journal = Journal::default();
            let ending = any.bench(engine).run(any.portion(), &mut journal);
            let mut left = journal.left.clone();
            left.sort_by_key(|l| (l.request, l.at));
            let batches: Vec<_> =
                journal.batches.iter().map(|b| (b.row, b.members.clone())).collect();
            (journal.arrivals, batches, left, journal.last_arrival, journal.ended, ending)
        };
        prop_assert_eq!(journal(Engine::Auto), journal(Engine::Event));
    }
}

// --- common random numbers ---

fn arrivals(bench: &Bench<'_>, replication: u32, n: u64) -> Journal {
    let mut journal = Journal::default();
    let portion = Portion { replication, measured: Some(n), measure_from: Nanos::ZERO };
    bench.run(portion, &mut journal);
    journal
}

/// Same seed and replication: the same arrivals under every policy, cost, jitter, limit and number
/// of instances.
#[test]
fn arrivals_do_not_depend_on_the_server() {
    let processes: [Process; 3] =
        [poisson(300.0), gamma(300.0, 2.5), worlds::mmpp([900.0, 100.0], [20.0, 60.0])];
    for process in processes {
        let base_world = world(process.clone(), linear(), none());
        let base = arrivals(&bench(&base_world), 7, 5_000).arrivals;
        assert_eq!(base.len(), 5_000);
        let policies: [Policy; 4] =
            [fixed(4), greedy(None), dynamic(8, 3.0, Anchor::Pickup), none()];
        for (policy, instances) in policies.into_iter().zip(1..) {
            let mut other = world(process.clone(), worlds::affine(1.0, 0.1), policy);
            other.servers[0].instances = instances;
            other.servers[0].jitter = worlds::exponential();
            other.servers[0].queue_limit = (instances > 2).then_some(3);
            assert_eq!(arrivals(&bench(&other), 7, 5_000).arrivals, base);
        }
        assert_ne!(arrivals(&bench(&base_world), 8, 5_000).arrivals, base);
    }
}

/// A source's stream does not depend on what the other sources do.
#[test]
fn a_source_does_not_depend_on_its_neighbours() {
    let second = |first: Process| -> Vec<u64> {
        let mut world = world(first, worlds::affine(0.01, 0.0), none());
        world.arrivals.push(source(gamma(200.0, 2.0)));
        let journal = arrivals(&bench(&world), 0, 20_000);
        let members = journal.batches.iter().flat_map(|b| &b.members);
        members.filter(|m| m.1 == 1).map(|m| m.0).take(2_000).collect()
    };
    let base = second(poisson(100.0));
    assert_eq!(base.len(), 2_000);
    assert_eq!(second(poisson(700.0)), base);
    assert_eq!(second(worlds::mmpp([900.0, 100.0], [20.0, 60.0])), base);
}

/// Poisson and renewal arrivals at two rates are scaled copies of each other.
#[test]
fn rates_scale_the_same_gaps() {
    for make in [(|r| poisson(r)) as fn(f64) -> Process, |r| gamma(r, 3.0), |r| gamma(r, 0.4)] {
        let times = |per_s: f64| {
            let world = world(make(per_s), worlds::affine(0.001, 0.0), none());
            arrivals(&bench(&world), 5, 50_000).arrivals
        };
        let slow = times(70.0);
        for factor in [2.0, 3.0, 7.3] {
            let fast = times(70.0 * factor);
            for (slow, fast) in slow.iter().zip(&fast) {
                let off = *slow as f64 / factor - *fast as f64;
                assert!(off.abs() <= 1.0 + 1e-3, "{slow} / {factor} is not {fast}");
            }
        }
    }
}

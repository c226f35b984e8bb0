#![allow(unreachable_pub, dead_code, reason = "a module of test binaries")]
//! Scenarios built in code: one source, one server, one policy, and what differs from that.

use batchsim::arrivals::{Gamma, Items, Mmpp, OnOff, Poisson, Process};
use batchsim::cost::{
    Affine, Beyond, Cost, Exponential, Jitter, Lognormal, NoJitter, Point, Table,
};
use batchsim::policy::{Anchor, Dynamic, Greedy, MaxWait, Policy, Static, Unbatched};
use batchsim::scenario::{Client, End, Labelled, Overhead, Run, Scenario, Server, Source, Warmup};
use batchsim::study::{Bench, Budget, Control, Engine, Measured, simulate};
use batchsim::time::Nanos;
use batchsim::units::Rate;

pub const MS: u64 = 1_000_000;

/// `ms` milliseconds.
pub fn ms(ms: f64) -> Nanos {
    Nanos::from_ms(ms)
}

pub fn rate(per_s: f64) -> Rate {
    Rate::per_second(per_s).unwrap()
}

// --- arrivals ---

pub fn poisson(per_s: f64) -> Process {
    Process::Poisson(Poisson { rate: rate(per_s) })
}

pub fn gamma(per_s: f64, cv: f64) -> Process {
    Process::Gamma(Gamma { rate: rate(per_s), cv })
}

pub fn mmpp(rates: [f64; 2], dwells_ms: [f64; 2]) -> Process {
    let (rates, dwells) = (Some(rates.map(rate)), Some(dwells_ms.map(ms)));
    Process::Mmpp(Mmpp { rates, dwells, ..Mmpp::default() })
}

/// Poisson at a rate for exponential times, silent between.
pub fn on_off(rate_on: f64, dwells_ms: [f64; 2]) -> Process {
    let [on, off] = dwells_ms.map(ms);
    Process::OnOff(OnOff { rate_on: rate(rate_on), rate_off: None, on, off })
}

pub fn source(process: Process) -> Source {
    Source {
        name: None,
        class: None,
        timeout: None,
        priority: 0,
        items: Items::default(),
        shape: None,
        process,
        trace: None,
    }
}

// --- costs ---

pub fn affine(fixed_ms: f64, per_item_ms: f64) -> Cost {
    Cost::Affine(Affine { fixed: ms(fixed_ms), per_item: ms(per_item_ms) })
}

/// The running example: 8 ms and 0.5 ms per item.
pub fn linear() -> Cost {
    affine(8.0, 0.5)
}

/// Any cost up to a size, as a table.
pub fn tabulated(up_to: u32, time_ms: impl Fn(u32) -> f64) -> Cost {
    let points = (1..=up_to).map(|n| Point { n, time: ms(time_ms(n)) }).collect();
    Cost::Table(Table { points, beyond: Beyond::Extend })
}

pub fn exponential() -> Jitter {
    Jitter::Exponential(Exponential {})
}

pub fn lognormal(cv: f64) -> Jitter {
    Jitter::Lognormal(Lognormal { cv })
}

// --- policies ---

pub fn none() -> Policy {
    Policy::None(Unbatched {})
}

pub fn greedy(cap: Option<u32>) -> Policy {
    Policy::Greedy(Greedy { max_batch_size: cap })
}

pub fn fixed(cap: u32) -> Policy {
    Policy::Static(Static { max_batch_size: cap })
}

pub fn dynamic(cap: u32, wait_ms: f64, anchor: Anchor) -> Policy {
    Policy::Dynamic(Dynamic {
        max_batch_size: cap,
        max_wait: MaxWait::After(ms(wait_ms)),
        wait_anchor: anchor,
        min_batch_size: None,
        preferred_batch_sizes: Vec::new(),
    })
}

/// Start at `min` queued requests, take at most `cap`, no timer.
pub fn at_least(min: u32, cap: u32) -> Policy {
    Policy::Dynamic(Dynamic {
        max_batch_size: cap,
        max_wait: MaxWait::Never,
        wait_anchor: Anchor::OldestArrival,
        min_batch_size: Some(min),
        preferred_batch_sizes: Vec::new(),
    })
}

// --- scenarios ---

pub fn server(cost: Cost) -> Server {
    Server {
        label: None,
        instances: 1,
        replicas: 1,
        balancer: Default::default(),
        queue_limit: None,
        cost,
        jitter: Jitter::None(NoJitter {}),
        overhead: Overhead::default(),
    }
}

pub fn world(process: Process, cost: Cost, policy: Policy) -> Scenario {
    Scenario {
        name: "test".into(),
        seed: 42,
        run: Run {
            precision: 0.01,
            precision_given: false,
            requests: None,
            duration: None,
            replications: 20,
            warmup: Warmup::Auto,
            max_requests: None,
            end: End::Flush,
            exact_latencies: false,
        },
        curve: None,
        arrivals: vec![source(process)],
        servers: vec![server(cost)],
        client: Client::default(),
        policies: vec![Labelled { label: policy.kind().into(), guard: false, policy }],
        thresholds: Vec::new(),
        sweep: Vec::new(),
        tune: None,
    }
}

/// The first policy of a scenario on its first server.
pub fn bench(world: &Scenario) -> Bench<'_> {
    Bench {
        scenario: world,
        server: &world.servers[0],
        policy: &world.policies[0].policy,
        engine: Engine::Auto,
    }
}

/// `requests` measured requests over all replications of the first policy, by the default
/// procedure (warm-up included).
pub fn measure<L>(world: &Scenario, requests: u64, limits_ns: &[u64]) -> Measured<L>
where
    L: batchsim::record::LatencyStore + Send + Sync,
{
    let mut world = world.clone();
    world.run.requests = Some(requests);
    let budget = Budget { precision: 0.01, first_wave: requests, cap: requests };
    simulate(&bench(&world), limits_ns, &budget, false, &Control::default()).unwrap()
}

//! Every policy on both engines next to the limit loop: `cargo bench --bench engines`; only the
//! table of ratios: `cargo bench --bench engines -- ratios`.

#[allow(unreachable_pub, reason = "a module of this bench")]
mod jobs;
#[allow(unreachable_pub, reason = "a module of this bench")]
mod limit;
#[allow(unreachable_pub, reason = "a module of this bench")]
mod ratios;

use criterion::{Criterion, Throughput};
use jobs::{Engine, Job, Known};
use ratios::Case;
use std::time::Duration;

const REQUESTS: u64 = 200_000;
const SHORT: u64 = 5_000;
const RATE: f64 = 1000.0;

fn limit_job() -> limit::Job {
    limit::Job::running_example(RATE, jobs::LIMIT_NS)
}

fn cases(known: &'static [u64]) -> Vec<Case<'static>> {
    let n = REQUESTS;
    let mut cases = vec![Case::new("limit loop", n, move || {
        limit::streaming(limit_job(), jobs::rng(), n as usize)
    })];
    for engine in [Engine::Recurrence, Engine::Event] {
        let job = Job::limit(engine, RATE);
        cases.push(Case::new(job.name, n, move || job.run(n)));
    }
    let pre_drawn = move || limit::pre_drawn(limit_job(), known);
    cases.push(Case::new("limit loop, pre-drawn", n, pre_drawn));
    for engine in [Engine::Recurrence, Engine::Event] {
        let job = Job::limit(engine, RATE);
        let name = format!("{}, pre-drawn", job.name);
        cases.push(Case::new(&name, n, move || job.run_on(Known::stream(known), n)));
    }
    for engine in [Engine::Recurrence, Engine::Event] {
        let job = Job::limit(engine, RATE);
        let name = format!("{}, runs of {SHORT}", job.name);
        cases.push(Case::new(&name, SHORT * 40, move || {
            (0..40).map(|_| job.run(SHORT).counts.completed).sum::<u64>()
        }));
    }
    cases
}

fn policies() -> Vec<Case<'static>> {
    let limit = || limit::streaming(limit_job(), jobs::rng(), REQUESTS as usize);
    let mut cases = vec![Case::new("limit loop", REQUESTS, limit)];
    for job in jobs::all() {
        let name = format!("{} ({:?})", job.name, job.engine);
        cases.push(Case::new(&name, REQUESTS, move || job.run(REQUESTS)));
    }
    cases
}

fn main() {
    let known: &'static [u64] = jobs::arrivals(RATE, REQUESTS as usize).leak();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let only_ratios = words.iter().any(|w| w == "ratios");
    if !only_ratios {
        let mut criterion = Criterion::default()
            .sample_size(20)
            .warm_up_time(Duration::from_millis(300))
            .measurement_time(Duration::from_secs(2))
            .configure_from_args();
        for (name, cases) in [("dynamic", cases(known)), ("policies", policies())] {
            let mut group = criterion.benchmark_group(name);
            for mut case in cases {
                group.throughput(Throughput::Elements(case.requests));
                group.bench_function(&case.name, |b| b.iter(|| (case.run)()));
            }
            group.finish();
        }
        criterion.final_summary();
    }
    if only_ratios || words.iter().all(|w| w.starts_with("--bench")) {
        ratios::print(&mut cases(known), 41);
        ratios::print(&mut policies(), 21);
    }
}

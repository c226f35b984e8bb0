//! Times of several pieces of code next to each other: every round runs all of them in turn, so
//! that what else the machine does falls on all alike, and the fastest round of each counts.

use super::jobs::{self, Engine, Job, Known};
use super::limit;
use std::time::Instant;

/// Few, so that many rounds are not interrupted.
const REQUESTS: u64 = 50_000;
const FEW: u64 = 20_000;
const SHORT: u64 = 5_000;
const RATE: f64 = 1000.0;

/// One piece of code that handles so many requests.
pub struct Case<'a> {
    /// For the table.
    pub name: String,
    /// Requests a call handles.
    pub requests: u64,
    /// The code.
    pub run: Box<dyn FnMut() + 'a>,
}

impl<'a> Case<'a> {
    /// A case whose result is kept from the optimiser.
    pub fn new<T>(name: &str, requests: u64, mut run: impl FnMut() -> T + 'a) -> Self {
        let run = Box::new(move || drop(std::hint::black_box(run())));
        Self { name: name.to_owned(), requests, run }
    }
}

/// Nanoseconds per request of each case: least, and median of `rounds`.
pub fn measure(cases: &mut [Case<'_>], rounds: usize) -> Vec<(f64, f64)> {
    let mut times = vec![Vec::with_capacity(rounds); cases.len()];
    for _ in 0..rounds {
        for (case, times) in cases.iter_mut().zip(&mut times) {
            let start = Instant::now();
            (case.run)();
            times.push(start.elapsed().as_secs_f64() * 1e9 / case.requests as f64);
        }
    }
    let summary = times.into_iter().map(|mut times| {
        times.sort_by(f64::total_cmp);
        (times[0], times[times.len() / 2])
    });
    summary.collect()
}

/// Prints each case against the first.
pub fn print(cases: &mut [Case<'_>], rounds: usize) {
    let times = measure(cases, rounds);
    println!("{:34} {:>8} {:>8} {:>10} {:>7}", "", "ns min", "median", "M req/s", "ratio");
    for (case, (least, median)) in cases.iter().zip(&times) {
        let (rate, ratio) = (1e3 / least, least / times[0].0);
        println!("{:34} {least:8.2} {median:8.2} {rate:10.1} {ratio:7.2}", case.name);
    }
}

fn limit_job() -> limit::Job {
    limit::Job::running_example(RATE, jobs::LIMIT_NS)
}

/// The job of the limit loop, and the same of the engines.
pub fn dynamic() -> Vec<Case<'static>> {
    let known: &'static [u64] = jobs::arrivals(RATE, REQUESTS as usize).leak();
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
        cases.push(Case::new(&name, SHORT * 10, move || {
            (0..10).map(|_| job.run(SHORT).counts.completed).sum::<u64>()
        }));
    }
    cases
}

/// The limit loop, and every policy on every engine.
pub fn policies() -> Vec<Case<'static>> {
    let limit = || limit::streaming(limit_job(), jobs::rng(), FEW as usize);
    let mut cases = vec![Case::new("limit loop", FEW, limit)];
    for job in jobs::all() {
        let name = format!("{} ({:?})", job.name, job.engine);
        cases.push(Case::new(&name, FEW, move || job.run(FEW)));
    }
    cases
}

/// The limit loop and the policies of real servers, all on known arrivals.
pub fn servers() -> Vec<Case<'static>> {
    let known = |rate| -> &'static [u64] { jobs::arrivals(rate, FEW as usize).leak() };
    let (one, four) = (known(RATE), known(4.0 * RATE));
    let limit = move || limit::pre_drawn(limit_job(), one);
    let mut cases = vec![Case::new("limit loop, pre-drawn", FEW, limit)];
    for job in jobs::servers() {
        let known = if job.instances == 1 { one } else { four };
        cases.push(Case::new(job.name, FEW, move || job.run_on(Known::stream(known), FEW)));
    }
    cases
}

/// Prints all tables.
pub fn print_all() {
    print(&mut dynamic(), 201);
    print(&mut policies(), 101);
    print(&mut servers(), 101);
}

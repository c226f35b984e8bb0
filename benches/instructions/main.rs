//! Fixed work for callgrind: `instructions limit|recurrence|event REQUESTS`; without arguments
//! it does nothing. `benches/instructions.sh` counts.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench speaks to people and stops where it is misused"
)]

#[allow(dead_code, unreachable_pub, reason = "a module of this bench")]
#[path = "../jobs/mod.rs"]
mod jobs;
#[allow(dead_code, unreachable_pub, reason = "a module of this bench")]
#[path = "../limit/mod.rs"]
mod limit;

use jobs::{Engine, Job};

const RATE: f64 = 1000.0;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [what, requests] = words.as_slice() else { return };
    let requests: u64 = requests.parse().expect("REQUESTS is a number");
    let done = match what.as_str() {
        "limit" => {
            let job = limit::Job::running_example(RATE, jobs::LIMIT_NS);
            limit::streaming(job, jobs::rng(), requests as usize).completed
        }
        "recurrence" => Job::limit(Engine::Recurrence, RATE).run(requests).counts.completed,
        "event" => Job::limit(Engine::Event, RATE).run(requests).counts.completed,
        other => panic!("{other} is not limit, recurrence or event"),
    };
    println!("{done}");
}

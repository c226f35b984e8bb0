//! The queue of the peers on our engines, and the memory it takes:
//! `cargo bench --bench queue -- [recurrence|event] [REQUESTS]`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench speaks to people and stops where it is misused"
)]

#[allow(dead_code, unreachable_pub, reason = "a module of this bench")]
#[path = "../jobs/mod.rs"]
mod jobs;

use jobs::{Engine, Job};
use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|w| !w.starts_with("--")).collect();
    let requests = words.iter().find_map(|w| w.parse().ok()).unwrap_or(20_000_000);
    for (name, engine) in [("recurrence", Engine::Recurrence), ("event", Engine::Event)] {
        let other = |w: &String| (w == "recurrence" || w == "event") && w != name;
        if !words.iter().any(other) {
            run(name, engine, requests);
        }
    }
}

fn run(name: &str, engine: Engine, requests: u64) {
    let start = cpu_s();
    let summary = Job::limit(engine, 1000.0).run(requests);
    let took = cpu_s() - start;
    let n = summary.counts.completed as f64;
    let batches: u64 = summary.batches.iter().flatten().sum();
    let quantiles = summary.latency.quantiles(&[0.5, 0.99]).expect("requests were answered");
    let mean = summary.latency_sum_ns as f64 / n / 1e6;
    let (p50, p99) = (quantiles[0] / 1e6, quantiles[1] / 1e6);
    println!("batchsim, {name}: {n} requests");
    let batch = n / batches as f64;
    println!("mean {mean:.3} ms, p50 {p50:.3} ms, p99 {p99:.3} ms, batch {batch:.3}");
    println!("{:.0} requests/s of CPU time", n / took);
    if let Some(peak) = peak_memory() {
        println!("peak resident memory so far {peak}");
    }
}

/// The most memory this process has held, where the system tells.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.trim_start_matches("VmHWM:").trim().to_owned())
}

/// Seconds this thread has computed, as the Linux scheduler counts them; elsewhere the time of
/// day.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let on_cpu_ns = text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    let of_day = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64());
    on_cpu_ns.map_or_else(of_day, |ns| ns / 1e9)
}

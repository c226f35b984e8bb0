//! Every policy on both engines next to the limit loop, by criterion and then as ratios.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench speaks to people and stops where it is misused"
)]

#[allow(unreachable_pub, reason = "a module of this bench")]
mod jobs;
#[allow(dead_code, unreachable_pub, reason = "a module of this bench")]
mod limit;
#[allow(unreachable_pub, reason = "a module of this bench")]
mod ratios;

use criterion::{Criterion, Throughput};
use std::time::Duration;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    for (name, cases) in [("dynamic", ratios::dynamic()), ("policies", ratios::policies())] {
        let mut group = criterion.benchmark_group(name);
        for mut case in cases {
            group.throughput(Throughput::Elements(case.requests));
            group.bench_function(&case.name, |b| b.iter(|| (case.run)()));
        }
        group.finish();
    }
    criterion.final_summary();
    let filtered = std::env::args().skip(1).any(|word| !word.starts_with("--"));
    if !filtered {
        ratios::print_all();
    }
}

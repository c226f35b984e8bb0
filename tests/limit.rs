//! The limit loop of the benches does the whole job: it agrees with the engines bin by bin.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

#[path = "../benches/jobs/mod.rs"]
#[allow(clippy::expect_used, dead_code, unreachable_pub, reason = "a module of benches")]
mod jobs;
#[path = "../benches/limit/mod.rs"]
#[allow(unreachable_pub, reason = "a module of benches")]
mod limit;

use batchsim::policy::Reason;
use batchsim::record::{Histogram, Summary};
use jobs::{Engine, Job};
use limit::Tally;

const REQUESTS: usize = 100_003;

fn same(tally: &Tally, summary: &Summary<Histogram<10>>) {
    assert_eq!(tally.completed, summary.counts.completed);
    assert_eq!(tally.completed - tally.late, summary.within[0]);
    let bins = summary.latency.bins().map(|(low, _, n)| (low, n));
    assert!(tally.bins().eq(bins), "bins of latency");
    for (size, row) in tally.batches.iter().enumerate() {
        let other = summary.batches.get(size).copied().unwrap_or_default();
        let reasons = [Reason::Full, Reason::Timer, Reason::Flush];
        assert_eq!(*row, reasons.map(|r| other[r as usize]), "batches of {size}");
        assert_eq!(row.iter().sum::<u64>(), other.iter().sum::<u64>(), "batches of {size}");
    }
}

#[test]
fn the_limit_loop_does_the_whole_job() {
    for rate_per_s in [150.0, 900.0, 1000.0, 1300.0, 5_000.0] {
        let job = limit::Job::running_example(rate_per_s, jobs::LIMIT_NS);
        let drawn = limit::streaming(job, jobs::rng(), REQUESTS);
        let known = limit::pre_drawn(job, &jobs::arrivals(rate_per_s, REQUESTS));
        for engine in [Engine::Recurrence, Engine::Event] {
            let summary = Job::limit(engine, rate_per_s).run(REQUESTS as u64);
            same(&drawn, &summary);
            same(&known, &summary);
        }
    }
}

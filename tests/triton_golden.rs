//! Triton's batches on the hand-made traces of its specification, exactly: no overhead, the
//! instance wins the race, no stall.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, unreachable_pub, reason = "tests")]

#[path = "common/journal.rs"]
mod journal;
#[path = "common/worlds.rs"]
mod worlds;

use batchsim::arrivals::{Process, Replay, Trace};
use batchsim::policy::{Policy, QueuePolicy, Triton};
use batchsim::scenario::Source;
use batchsim::study::{Engine, Portion};
use batchsim::time::Nanos;
use journal::Journal;
use std::sync::Arc;

/// `n` arrivals, one every `every_us`.
fn batches(n: u64, every_us: u64, policy: Triton) -> Vec<(f64, u32)> {
    let arrivals = (0..n).map(|i| Nanos(i * every_us * 1_000)).collect();
    let replay = Replay { file: "hand".into(), format: None, columns: None, scale: None };
    let source = Source {
        trace: Some(Arc::new(Trace { arrivals, ..Trace::default() })),
        ..worlds::source(Process::Trace(replay))
    };
    let mut world = worlds::world(worlds::poisson(1.0), worlds::linear(), Policy::Triton(policy));
    world.arrivals = vec![source];
    let bench = batchsim::study::Bench { engine: Engine::Event, ..worlds::bench(&world) };
    let mut journal = Journal::default();
    let portion = Portion { replication: 0, measured: None, measure_from: Nanos::ZERO };
    let ending = bench.run(portion, &mut journal);
    assert_eq!(ending.stalled, None);
    journal.batches.iter().map(|b| (b.start() as f64 / 1e6, b.row.size)).collect()
}

fn triton(max_batch_size: u32, delay_us: u64, preferred: &[u32]) -> Triton {
    Triton {
        max_batch_size,
        max_queue_delay_microseconds: delay_us,
        preferred_batch_size: preferred.to_vec(),
        ..Triton::default()
    }
}

fn limited(p: Triton) -> Triton {
    let policy = QueuePolicy { max_queue_size: 10_000, ..QueuePolicy::default() };
    Triton { default_queue_policy: Some(policy), ..p }
}

fn shaped(p: Triton) -> Triton {
    Triton { enforce_shapes: true, ..p }
}

#[test]
fn a_short_overload() {
    let a = |p| batches(30, 1_100, p);
    assert_eq!(a(triton(8, 0, &[])), [(0.0, 1), (8.5, 7), (20.0, 8), (32.0, 8), (44.0, 6)]);
    let frozen = [(5.0, 5), (15.5, 5), (26.0, 8), (38.0, 5), (48.5, 7)];
    assert_eq!(a(triton(8, 5_000, &[])), frozen);
    let late = [(5.0, 5), (15.5, 8), (27.5, 8), (39.5, 8), (51.5, 1)];
    assert_eq!(a(shaped(triton(8, 5_000, &[]))), late);
    assert_eq!(a(limited(triton(8, 5_000, &[]))), late);
}

#[test]
fn a_light_load() {
    let b = |p| batches(12, 4_100, p);
    let eager = [(0.0, 1), (8.5, 2), (17.5, 2), (26.5, 2), (35.5, 2), (44.5, 2), (53.5, 1)];
    assert_eq!(b(triton(8, 0, &[])), eager);
    let held = [(5.0, 2), (14.0, 2), (23.0, 2), (32.0, 2), (41.0, 3), (50.5, 1)];
    assert_eq!(b(limited(triton(8, 5_000, &[]))), held);
    let ahead = [(5.0, 2), (14.0, 2), (23.0, 2), (32.0, 2), (41.0, 2), (50.0, 2)];
    assert_eq!(b(triton(8, 5_000, &[])), ahead);
}

#[test]
fn preferred_sizes() {
    let four = batches(30, 1_100, triton(16, 0, &[4]));
    assert_eq!(four[..3], [(0.0, 1), (8.5, 4), (18.5, 4)]);
    assert_eq!(*four.last().unwrap(), (78.5, 1));
    assert!(four[1..four.len() - 1].iter().all(|b| b.1 == 4));
    let both = [(0.0, 1), (8.5, 4), (18.5, 4), (28.5, 8), (40.5, 8), (52.5, 4), (62.5, 1)];
    assert_eq!(batches(30, 1_100, triton(8, 0, &[4, 8])), both);
    // The largest preferred size and one more.
    let plus_one = [(2.1, 4), (12.1, 5), (22.6, 5), (33.1, 5), (43.6, 9), (56.1, 12)];
    assert_eq!(batches(40, 700, triton(16, 20_000, &[4])), plus_one);
}

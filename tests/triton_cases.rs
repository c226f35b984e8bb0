//! Triton's batcher against an independent model of the same source, written in another language
//! from the specification: 400 random configurations and arrival scripts, batch by batch.
//!
//! Times are in nanoseconds and never coincide with a pass, so that the order at one instant has
//! no part in it.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::print_stdout, unreachable_pub, reason = "tests")]

#[path = "common/journal.rs"]
mod journal;
#[path = "common/worlds.rs"]
mod worlds;

use batchsim::arrivals::{Items, Process, Replay, Trace};
use batchsim::cost::{Affine, Cost};
use batchsim::policy::{LevelPolicy, Policy, QueuePolicy, Triton, WakeRace};
use batchsim::record::Gone;
use batchsim::scenario::{Overhead, Scenario, Source};
use batchsim::study::{Engine, Portion};
use batchsim::time::Nanos;
use journal::Journal;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Deserialize)]
struct Case {
    max_batch_size: u32,
    preferred_batch_size: Vec<u32>,
    max_queue_delay_microseconds: u64,
    priority_levels: u32,
    default_queue_policy: Option<QueuePolicy>,
    priority_queue_policy: Vec<LevelPolicy>,
    enforce_shapes: bool,
    instances: u32,
    race: WakeRace,
    fixed_ns: u64,
    per_item_ns: u64,
    release_ns: u64,
    release_per_request_ns: u64,
    /// Time, items, priority, shape, timeout.
    arrivals: Vec<(u64, u32, u32, u32, u64)>,
    /// Start, instance, items, members.
    batches: Vec<(u64, u32, u32, Vec<usize>)>,
    /// When, who, why.
    gone: Vec<(u64, usize, String)>,
}

impl Case {
    fn scenario(&self) -> Scenario {
        let policy = Triton {
            max_batch_size: self.max_batch_size,
            preferred_batch_size: self.preferred_batch_size.clone(),
            max_queue_delay_microseconds: self.max_queue_delay_microseconds,
            priority_levels: self.priority_levels,
            default_priority_level: self.priority_levels.min(1),
            default_queue_policy: self.default_queue_policy,
            priority_queue_policy: self.priority_queue_policy.clone(),
            enforce_shapes: self.enforce_shapes,
            wake_race: self.race,
            ..Triton::default()
        };
        let cost =
            Cost::Affine(Affine { fixed: Nanos(self.fixed_ns), per_item: Nanos(self.per_item_ns) });
        let mut world = worlds::world(worlds::poisson(1.0), cost, Policy::Triton(policy));
        world.servers[0].instances = self.instances;
        world.servers[0].overhead = Overhead {
            release: Nanos(self.release_ns),
            release_per_request: Nanos(self.release_per_request_ns),
            ..Overhead::default()
        };
        // One source for each kind of request.
        let mut kinds: BTreeMap<(u32, u32, u32, u64), Vec<Nanos>> = BTreeMap::new();
        for &(at, items, priority, shape, timeout) in &self.arrivals {
            kinds.entry((items, priority, shape, timeout)).or_default().push(Nanos(at));
        }
        world.arrivals = kinds
            .into_iter()
            .map(|((items, priority, shape, timeout), arrivals)| Source {
                items: Items::Constant(items),
                priority,
                shape: Some(shape.to_string()),
                timeout: (timeout > 0).then_some(Nanos(timeout)),
                trace: Some(Arc::new(Trace { arrivals, ..Trace::default() })),
                ..worlds::source(Process::Trace(Replay {
                    file: "case".into(),
                    format: None,
                    columns: None,
                    scale: None,
                }))
            })
            .collect();
        world
    }

    fn who(&self, at: u64) -> usize {
        self.arrivals.iter().position(|a| a.0 == at).unwrap()
    }
}

#[test]
fn batch_by_batch_as_the_reference_model() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/triton/cases.json");
    let cases: Vec<Case> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(cases.len(), 400);
    let mut wrong = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let world = case.scenario();
        let bench = batchsim::study::Bench { engine: Engine::Event, ..worlds::bench(&world) };
        let mut journal = Journal::default();
        let portion = Portion { replication: 0, measured: None, measure_from: Nanos::ZERO };
        bench.run(portion, &mut journal);
        let batches: Vec<(u64, u32, u32, Vec<usize>)> = journal
            .batches
            .iter()
            .map(|b| {
                let members = b.members.iter().map(|m| case.who(m.0)).collect();
                (b.start(), b.row.slot, b.row.size, members)
            })
            .collect();
        let word = |why| match why {
            Gone::Rejected => "rejected".to_owned(),
            Gone::Expired => "expired".to_owned(),
            other => format!("{other:?}"),
        };
        let mut gone: Vec<(u64, usize, String)> =
            journal.left.iter().map(|l| (l.at, case.who(l.request.0), word(l.why))).collect();
        gone.sort();
        if batches != case.batches || gone != case.gone {
            wrong.push(number);
            if wrong.len() <= 2 {
                println!("case {number}: {:?}", world.policies[0].policy);
                println!("arrivals {:?}", case.arrivals);
                let differ = batches.iter().zip(&case.batches).position(|(a, b)| a != b);
                let at = differ.unwrap_or(0);
                println!("from {at}: got  {:?}", &batches[at..batches.len().min(at + 3)]);
                println!("want {:?}", &case.batches[at..case.batches.len().min(at + 3)]);
                println!("gone {gone:?}\nwant {:?}", case.gone);
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases differ: {wrong:?}", wrong.len(), cases.len());
}

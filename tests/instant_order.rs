//! What happens at one instant, and in which order: all arrivals, then completions, then arrivals
//! those caused, then timers; then the policy settles. Ties made by hand.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub)]

#[path = "common/journal.rs"]
mod journal;
#[path = "common/worlds.rs"]
mod worlds;

use batchsim::arrivals::{ClosedLoop, Feed, Limits, Process, Replay, Stream, Tags, Think, Trace};
use batchsim::cost::CostModel;
use batchsim::engine::{Callers, Cx, Inflow, Kinds, Loops, Rules, event};
use batchsim::policy::{Anchor, Batcher, Event, Interest, Policy, Promises, Reason};
use batchsim::record::{Gone, Ledger};
use batchsim::rng::{Purpose, substream};
use batchsim::scenario::{End, Scenario, Source};
use batchsim::study::{Bench, Engine, Portion};
use batchsim::time::Nanos;
use journal::Journal;
use std::sync::Arc;
use worlds::{MS, affine, bench, dynamic, fixed, greedy, ms, none, source, world};

fn recorded(arrivals_ms: &[u64]) -> Source {
    let replay = Replay { file: "hand".into(), format: None, columns: None, scale: None };
    let arrivals = arrivals_ms.iter().map(|t| Nanos(t * MS)).collect();
    Source {
        trace: Some(Arc::new(Trace { arrivals, ..Trace::default() })),
        ..source(Process::Trace(replay))
    }
}

fn callers(clients: u32) -> Source {
    source(Process::ClosedLoop(ClosedLoop { clients, think: Think::default() }))
}

/// Every batch takes 10 ms; time stops at a second.
fn scenario(sources: Vec<Source>, policy: Policy) -> Scenario {
    let mut world = world(worlds::poisson(1.0), affine(10.0, 0.0), policy);
    world.arrivals = sources;
    world.run.end = End::Cut;
    world.run.duration = Some(ms(1000.0));
    world
}

/// Batches as (start in ms, size, reason), by both engines where both apply.
fn batches(world: &Scenario) -> Vec<(u64, u32, Reason)> {
    let by = |engine| {
        let mut journal = Journal::default();
        let portion = Portion { replication: 0, measured: None, measure_from: Nanos::ZERO };
        let mut bench = bench(world);
        bench.engine = engine;
        bench.run(portion, &mut journal);
        let all = journal.batches.iter();
        all.map(|b| (b.start() / MS, b.row.size, b.row.reason)).collect::<Vec<_>>()
    };
    let events = by(Engine::Event);
    assert_eq!(by(Engine::Auto), events);
    events
}

#[test]
fn an_arrival_at_a_completion_joins_the_next_batch() {
    let world = scenario(vec![recorded(&[0, 4, 10])], greedy(Some(8)));
    assert_eq!(batches(&world), [(0, 1, Reason::Idle), (10, 2, Reason::Idle)]);
}

#[test]
fn all_arrivals_of_an_instant_count_before_a_batch_leaves() {
    let world = scenario(vec![recorded(&[5, 5, 5]), recorded(&[0, 5])], greedy(Some(8)));
    // The first recording starts at its own first arrival, 5 ms, as it is written.
    assert_eq!(batches(&world), [(0, 1, Reason::Idle), (10, 4, Reason::Idle)]);
    let world = scenario(vec![recorded(&[0, 0, 0])], greedy(Some(8)));
    assert_eq!(batches(&world), [(0, 3, Reason::Idle)]);
}

#[test]
fn an_arrival_when_the_timer_is_due_goes_along() {
    for anchor in [Anchor::OldestArrival, Anchor::Pickup] {
        let world = scenario(vec![recorded(&[0, 5])], dynamic(8, 5.0, anchor));
        assert_eq!(batches(&world), [(5, 2, Reason::Timer)]);
        // The one that fills the batch at that moment makes it a full one.
        let world = scenario(vec![recorded(&[0, 5])], dynamic(2, 5.0, anchor));
        assert_eq!(batches(&world), [(5, 2, Reason::Full)]);
        // A nanosecond is enough to miss it; so is a millisecond.
        let world = scenario(vec![recorded(&[0, 6])], dynamic(8, 5.0, anchor));
        let second = if anchor == Anchor::OldestArrival { 15 } else { 20 };
        let expected = [(5, 1, Reason::Timer), (second, 1, Reason::Timer)];
        assert_eq!(batches(&world), expected);
    }
}

#[test]
fn a_timer_due_at_a_completion_sends_the_batch() {
    let world = scenario(vec![recorded(&[0, 10])], dynamic(8, 5.0, Anchor::OldestArrival));
    assert_eq!(batches(&world), [(5, 1, Reason::Timer), (15, 1, Reason::Timer)]);
}

#[test]
fn callers_come_back_before_the_next_batch_leaves() {
    let world = scenario(vec![callers(2)], greedy(Some(8)));
    let seen = batches(&world);
    assert!(seen.iter().enumerate().all(|(k, b)| *b == (10 * k as u64, 2, Reason::Idle)));
    // And with them whoever else arrives at that moment. (Callers stop when a recording ends.)
    let world = scenario(vec![callers(2), recorded(&[10, 99])], greedy(Some(8)));
    assert_eq!(
        batches(&world)[..3],
        [(0, 2, Reason::Idle), (10, 3, Reason::Idle), (20, 2, Reason::Idle)]
    );
}

#[test]
fn a_caused_arrival_is_there_when_a_timer_fires() {
    // The caller's batch runs from 5 to 15 ms on one instance; the recorded request is due at
    // 15 ms, when the caller is back.
    let mut world =
        scenario(vec![callers(1), recorded(&[10, 99])], dynamic(8, 5.0, Anchor::OldestArrival));
    world.servers[0].instances = 2;
    assert_eq!(batches(&world)[..2], [(5, 1, Reason::Timer), (15, 2, Reason::Timer)]);
}

#[test]
fn a_full_queue_counts_arrivals_before_completions() {
    // At 10 ms the instance becomes free, but the arrivals of that moment come first: the queue
    // of two is full, the third of them is turned away.
    let mut world = scenario(vec![recorded(&[0, 4, 10, 10])], none());
    world.servers[0].queue_limit = Some(2);
    let mut ledger = Ledger::default();
    let portion = Portion { replication: 0, measured: None, measure_from: Nanos::ZERO };
    bench(&world).run(portion, &mut ledger);
    let rejected: Vec<u64> = ledger.refusals.iter().map(|r| r.at_ns / MS).collect();
    assert_eq!(rejected, [10]);
    assert_eq!(ledger.refusals[0].why, Gone::Rejected);
}

#[test]
fn a_request_as_old_as_its_timeout_is_still_served() {
    for (timeout, expired) in [(6, 0), (5, 1)] {
        let mut patient = recorded(&[0, 4]);
        patient.timeout = Some(Nanos(timeout * MS));
        let mut ledger = Ledger::default();
        let portion = Portion { replication: 0, measured: None, measure_from: Nanos::ZERO };
        bench(&scenario(vec![patient], none())).run(portion, &mut ledger);
        let gone: Vec<Gone> = ledger.refusals.iter().map(|r| r.why).collect();
        assert_eq!(gone, vec![Gone::Expired; expired]);
    }
}

#[test]
fn the_instance_idle_longest_runs_first() {
    let mut world = scenario(vec![recorded(&[0, 0, 0, 30, 31, 32])], none());
    world.servers[0].instances = 3;
    world.servers[0].cost = affine(1.0, 0.0);
    for engine in [Engine::Auto, Engine::Event] {
        let mut journal = Journal::default();
        let portion = Portion { replication: 0, measured: None, measure_from: Nanos::ZERO };
        Bench { engine, ..bench(&world) }.run(portion, &mut journal);
        let slots: Vec<u32> = journal.batches.iter().map(|b| b.row.slot).collect();
        // The lowest number among equals.
        assert_eq!(slots, [0, 1, 2, 0, 1, 2]);
    }
}

#[test]
fn the_last_arrival_flushes_and_a_cut_does_not() {
    let mut world = scenario(vec![recorded(&[0, 5, 7])], fixed(8));
    assert_eq!(batches(&world), []);
    world.run.end = End::Flush;
    assert_eq!(batches(&world), [(7, 3, Reason::Flush)]);
}

#[test]
fn what_is_done_when_time_stops_is_done() {
    for (cut, done) in [(9.999, 0), (10.0, 1), (10.001, 1)] {
        let mut world = scenario(vec![recorded(&[0])], none());
        world.run.duration = Some(ms(cut));
        assert_eq!(batches(&world).len(), done, "{cut}");
    }
}

// --- what a policy hears ---

/// Takes whatever is queued, and writes down what it hears.
#[derive(Default)]
struct Listener {
    heard: Vec<(u64, String)>,
    alarm: Option<u64>,
}

impl Batcher for Listener {
    fn promises(&self) -> Promises {
        Promises {
            cap: false,
            fifo: true,
            work_conserving: true,
            one_batch_per_slot: true,
            wait_bound: true,
        }
    }

    fn hears_arrivals(&self) -> bool {
        true
    }

    fn on(&mut self, event: Event, cx: &mut Cx) {
        let what = match event {
            Event::Arrived { rid, .. } => format!("arrival of {}", cx.tag(rid)),
            Event::Done { slot, took, .. } => format!("done on {slot} after {} ms", took.0 / MS),
            Event::Timer(key) => format!("timer {key}"),
            Event::Cancelled(rid) => format!("cancelled {rid}"),
        };
        self.heard.push((cx.now().0 / MS, what));
    }

    fn settle(&mut self, cx: &mut Cx) -> Interest {
        if let Some(at) = self.alarm.take() {
            cx.timer(7, Nanos(at));
        }
        let Some(slot) = cx.idle_slot() else { return Interest::NONE };
        if cx.queued(0) == 0 {
            return Interest::queue(1);
        }
        let batch = cx.open();
        let size = cx.take(batch, 0, u32::MAX);
        self.heard.push((cx.now().0 / MS, format!("starts {size} on {slot}")));
        cx.start(batch, slot, size, Reason::Idle);
        Interest::queue(1)
    }
}

struct TenMs;

impl CostModel for TenMs {
    fn took_ns(&mut self, _: u32, _: u32) -> u64 {
        10 * MS
    }
}

#[test]
fn a_policy_hears_an_instant_in_order() {
    struct Listed(Vec<u64>);
    impl Stream for Listed {
        fn fill(&mut self, out: &mut [u64]) -> usize {
            let n = out.len().min(self.0.len());
            out[..n].copy_from_slice(&self.0.drain(..n).collect::<Vec<_>>());
            n
        }
    }
    let limits = Limits { measure_from_ns: 0, measured: None, until_ns: None };
    let feed = Feed::new(vec![Box::new(Listed(vec![0, 10 * MS]))], limits);
    let rng = substream(0, 0, 1, Purpose::Think);
    let callers =
        Callers { tags: Tags::same(1), clients: 1, think: Think::default(), away_ns: 0, rng };
    let loops = Loops::new(vec![callers], 0, None, Some(15 * MS));
    let rules = Rules {
        instances: 2,
        queue_limit: u32::MAX,
        kinds: Kinds::plain(),
        dispatch: Nanos::ZERO,
        release: [Nanos::ZERO; 2],
        cut_ns: None,
        policy_rng: substream(0, 0, 0, Purpose::Policy),
    };
    let mut policy = Listener { alarm: Some(10 * MS), ..Listener::default() };
    let inflow = Inflow { feed, loops: Some(loops) };
    let mut ledger = Ledger::default();
    event::run(&mut policy, &mut TenMs, inflow, &rules, &mut ledger);
    let heard: Vec<(u64, &str)> = policy.heard.iter().map(|(t, w)| (*t, w.as_str())).collect();
    assert_eq!(
        heard,
        [
            (0, "arrival of 0"),
            (0, "arrival of 1"),
            (0, "starts 2 on 0"),
            (10, "arrival of 0"),
            (10, "done on 0 after 10 ms"),
            (10, "arrival of 1"),
            (10, "timer 7"),
            (10, "starts 2 on 1"),
            (20, "done on 1 after 10 ms"),
        ]
    );
}

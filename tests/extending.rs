//! A policy of your own, outside the crate: implement [`Batcher`], run it on the event engine.
#![allow(clippy::unwrap_used, unreachable_pub, reason = "tests")]

use batchsim::arrivals::{Feed, Limits, Stream};
use batchsim::cost::{Affine, Cost, FixedCost};
use batchsim::engine::{Cx, Inflow, Kind, Kinds, Rules, event};
use batchsim::policy::{Batcher, Interest, Promises, Reason};
use batchsim::record::Ledger;
use batchsim::rng::{Purpose, substream};
use batchsim::time::Nanos;

const MS: u64 = 1_000_000;

/// Runs only even batches, as kernels that work on pairs want them; at most `cap`.
struct Pairs {
    cap: u32,
}

impl Batcher for Pairs {
    // What the invariant tests may hold it to: an odd request waits while the instance idles, and
    // nothing bounds for how long.
    fn promises(&self) -> Promises {
        Promises {
            cap: true,
            fifo: true,
            work_conserving: false,
            one_batch_per_slot: true,
            wait_bound: false,
        }
    }

    fn settle(&mut self, cx: &mut Cx) -> Interest {
        let Some(slot) = cx.idle_slot() else {
            return Interest::NONE; // nothing to do before a batch is done
        };
        let waiting = cx.queued(0).min(self.cap);
        // When no one will come any more, the odd one need not wait for a partner.
        let size = if cx.draining() { waiting } else { waiting / 2 * 2 };
        if size == 0 {
            return Interest::queue(2); // sleep until two are there
        }
        let batch = cx.open();
        cx.take(batch, 0, size);
        let reason = match size {
            n if n == self.cap => Reason::Full,
            n if n % 2 == 0 => Reason::Idle,
            _ => Reason::Flush,
        };
        cx.start(batch, slot, size, reason);
        Interest::NONE // a command was given: the engine asks again
    }
}

/// Serves the queue whose head has waited longest; one queue per priority.
struct LongestWait<const QUEUES: u8> {
    cap: u32,
}

impl<const QUEUES: u8> Batcher for LongestWait<QUEUES> {
    fn promises(&self) -> Promises {
        Promises {
            cap: true,
            fifo: true,
            work_conserving: true,
            one_batch_per_slot: true,
            wait_bound: true,
        }
    }

    fn lanes(&self) -> u8 {
        QUEUES
    }

    fn lane(&self, kind: Kind) -> u8 {
        (kind.priority % u32::from(QUEUES)) as u8
    }

    fn settle(&mut self, cx: &mut Cx) -> Interest {
        let Some(slot) = cx.idle_slot() else {
            return Interest::NONE;
        };
        let heads = (0..QUEUES).filter_map(|lane| Some((cx.oldest_arrival(lane)?, lane)));
        let Some((_, lane)) = heads.min() else {
            return Interest::any(1); // whichever queue it joins
        };
        let batch = cx.open();
        let size = cx.take(batch, lane, self.cap);
        cx.start(batch, slot, size, if size == self.cap { Reason::Full } else { Reason::Idle });
        Interest::NONE
    }
}

/// Arrivals at given times.
struct At(Vec<u64>);

impl Stream for At {
    fn fill(&mut self, out: &mut [u64]) -> usize {
        let n = out.len().min(self.0.len());
        for (slot, time) in out.iter_mut().zip(self.0.drain(..n)) {
            *slot = time;
        }
        n
    }
}

/// Runs a policy on one instance of the running example (8 ms + 0.5 ms per request) and returns
/// its batches: start in ms, members by arrival in ms, reason.
fn batches<P: Batcher>(mut policy: P, sources: &[&[u64]]) -> Vec<(f64, Vec<u64>, Reason)> {
    let streams = sources.iter().map(|times| {
        Box::new(At(times.iter().map(|t| t * MS).collect())) as Box<dyn Stream + Send>
    });
    let limits = Limits { measure_from_ns: 0, measured: None, until_ns: None };
    let inflow = Inflow { feed: Feed::new(streams.collect(), limits), loops: None };
    let cost = Cost::Affine(Affine { fixed: Nanos(8 * MS), per_item: Nanos(MS / 2) });
    // Each source asks for a priority of its own.
    let kind = |priority| Kind { priority, ..Kind::default() };
    let kinds = (0..).take(sources.len()).map(kind);
    let rules = Rules {
        instances: 1,
        queue_limit: u32::MAX,
        kinds: Kinds::new(kinds.collect()),
        dispatch: Nanos::ZERO,
        release: [Nanos::ZERO; 2],
        cut_ns: None,
        policy_rng: substream(42, 0, 0, Purpose::Policy),
    };
    let mut ledger = Ledger::default();
    let ending =
        event::run(&mut policy, &mut FixedCost::new(&cost, None), inflow, &rules, &mut ledger);
    assert_eq!(ending.stalled, None);
    let in_ms = |ns: &u64| ns / MS;
    let row = |b: &batchsim::record::BatchEntry| {
        (Nanos(b.row.start_ns).as_ms(), b.arrivals.iter().map(in_ms).collect(), b.row.reason)
    };
    ledger.batches.iter().map(row).collect()
}

#[test]
fn pairs_leave_in_even_batches() {
    let seen = batches(Pairs { cap: 4 }, &[&[0, 1, 2, 3, 4, 5, 6, 7, 30, 40]]);
    let expected = [
        (1.0, vec![0, 1], Reason::Idle),        // done at 10 ms
        (10.0, vec![2, 3, 4, 5], Reason::Full), // done at 20 ms
        (20.0, vec![6, 7], Reason::Idle),       // done at 29 ms
        (40.0, vec![30, 40], Reason::Idle),
    ];
    assert_eq!(seen, expected);
    // The last one alone leaves when no partner can come.
    let seen = batches(Pairs { cap: 4 }, &[&[0, 0, 3]]);
    assert_eq!(seen, [(0.0, vec![0, 0], Reason::Idle), (9.0, vec![3], Reason::Flush)]);
}

#[test]
fn the_longest_wait_goes_first() {
    let seen = batches(LongestWait::<2> { cap: 2 }, &[&[0, 1, 2, 3, 50], &[1, 2, 20]]);
    let expected = [
        (0.0, vec![0], Reason::Idle),     // done at 8.5 ms
        (8.5, vec![1, 2], Reason::Full),  // both queues' heads came at 1 ms: the first one
        (17.5, vec![1, 2], Reason::Full), // of the second queue, done at 26.5 ms
        (26.5, vec![3], Reason::Idle),    // done at 35 ms
        (35.0, vec![20], Reason::Idle),
        (50.0, vec![50], Reason::Idle),
    ];
    assert_eq!(seen, expected);
    // An idle instance hears either queue.
    let seen = batches(LongestWait::<2> { cap: 2 }, &[&[30], &[0, 15]]);
    assert_eq!(seen.iter().map(|b| b.0).collect::<Vec<_>>(), [0.0, 15.0, 30.0]);
}

//! Policies sleep through arrivals that change nothing. Woken by each of them instead, and asked
//! about each at the door, a server does the same to the nanosecond.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[path = "common/journal.rs"]
mod journal;

use batchsim::arrivals::{Feed, Limits, Stream};
use batchsim::cost::CostModel;
use batchsim::engine::{Cx, Inflow, Kind, Kinds, Rules, event};
use batchsim::policy::{
    Batcher, Event, Interest, LitServe, Mosec, Policy, Promises, QueuePolicy, TorchServe, Triton,
    Visit,
};
use batchsim::rng::{Purpose, SimRng, substream};
use batchsim::time::Nanos;
use journal::Journal;
use rand::Rng;

const MS: u64 = 1_000_000;

/// A policy that is woken by every arrival, and asked about each.
struct Awake<B>(B);

impl<B: Batcher> Batcher for Awake<B> {
    fn promises(&self) -> Promises {
        self.0.promises()
    }

    fn lanes(&self) -> u8 {
        self.0.lanes()
    }

    fn lane(&self, kind: Kind) -> u8 {
        self.0.lane(kind)
    }

    fn largest_request(&self) -> u32 {
        self.0.largest_request()
    }

    fn room(&self, lane: u8, cx: &Cx) -> u32 {
        self.0.room(lane, cx)
    }

    fn room_varies(&self) -> bool {
        true
    }

    fn places(&self, cx: &Cx) -> u32 {
        self.0.places(cx)
    }

    fn hears_arrivals(&self) -> bool {
        self.0.hears_arrivals()
    }

    fn answers_in_order(&self) -> bool {
        self.0.answers_in_order()
    }

    fn on(&mut self, event: Event, cx: &mut Cx) {
        self.0.on(event, cx);
    }

    fn settle(&mut self, cx: &mut Cx) -> Interest {
        let _ = self.0.settle(cx);
        Interest::any((0..self.0.lanes()).map(|lane| cx.queued(lane)).sum::<u32>() + 1)
    }
}

struct Listed(Vec<u64>, usize);

impl Stream for Listed {
    fn fill(&mut self, out: &mut [u64]) -> usize {
        let n = out.len().min(self.0.len() - self.1);
        out[..n].copy_from_slice(&self.0[self.1..self.1 + n]);
        self.1 += n;
        n
    }
}

struct Linear(u64, u64);

impl CostModel for Linear {
    fn took_ns(&mut self, _: u32, items: u32) -> u64 {
        self.0 + self.1 * u64::from(items)
    }
}

/// Arrivals and a server, with times on a grid so that ties are the rule.
struct World {
    arrivals: Vec<u64>,
    instances: u32,
    queue_limit: u32,
    cost: (u64, u64),
}

fn below(rng: &mut SimRng, n: u64) -> u64 {
    rng.next_u64() % n
}

impl World {
    fn random(rng: &mut SimRng) -> Self {
        let grid = [MS, MS / 4, 1_000][below(rng, 3) as usize];
        let mean = [MS / 8, MS, 3 * MS, 12 * MS][below(rng, 4) as usize];
        let mut now = 0;
        let arrivals = (0..250)
            .map(|_| {
                if below(rng, 3) > 0 {
                    now += below(rng, 3 * mean) / grid * grid;
                }
                now
            })
            .collect();
        Self {
            arrivals,
            instances: [1, 1, 2, 3, 4][below(rng, 5) as usize],
            queue_limit: [u32::MAX, u32::MAX, 7, 20][below(rng, 4) as usize],
            cost: ((1 + below(rng, 10)) * MS / 2, below(rng, 4) * MS / 4),
        }
    }

    fn run<B: Batcher>(&self, mut policy: B) -> Journal {
        let limits = Limits { measure_from_ns: 0, measured: None, until_ns: None };
        let stream = Box::new(Listed(self.arrivals.clone(), 0)) as Box<dyn Stream + Send>;
        let inflow = Inflow { feed: Feed::new(vec![stream], limits), loops: None };
        let rules = Rules {
            instances: self.instances,
            queue_limit: self.queue_limit,
            kinds: Kinds::new(vec![Kind { timeout: Nanos::MAX, ..Kind::default() }]),
            dispatch: Nanos::ZERO,
            release: [Nanos::ZERO; 2],
            cut_ns: None,
            policy_rng: substream(0, 0, 0, Purpose::Policy),
        };
        let (mut cost, mut journal) = (Linear(self.cost.0, self.cost.1), Journal::default());
        let _ = event::run(&mut policy, &mut cost, inflow, &rules, &mut journal);
        journal
    }
}

struct Both<'a>(&'a World);

impl Visit for Both<'_> {
    type Out = Journal;

    fn visit<B: Batcher>(self, batcher: B) -> Journal {
        self.0.run(batcher)
    }
}

struct Woken<'a>(&'a World);

impl Visit for Woken<'_> {
    type Out = Journal;

    fn visit<B: Batcher>(self, batcher: B) -> Journal {
        self.0.run(Awake(batcher))
    }
}

/// What was answered when in which batch, and what was not; in one order.
fn all(journal: &Journal) -> (Vec<String>, Vec<String>) {
    let batch = |b: &journal::Batch| {
        let members: Vec<u64> = b.members.iter().map(|m| m.0).collect();
        format!("{:?} {members:?}", b.row)
    };
    let mut left: Vec<String> = journal.left.iter().map(|l| format!("{l:?}")).collect();
    left.sort();
    (journal.batches.iter().map(batch).collect(), left)
}

/// Runs many worlds both ways; returns how many batches of more than one left in them.
fn compare(seed: u64, policy: impl Fn(&mut SimRng) -> Policy) -> usize {
    let mut together = 0;
    for number in 0..400 {
        let rng = &mut substream(seed, number, 0, Purpose::Policy);
        let (world, policy) = (World::random(rng), policy(rng));
        let lazy = policy.visit(Both(&world));
        let woken = policy.visit(Woken(&world));
        let (lazy_all, woken_all) = (all(&lazy), all(&woken));
        let pairs = lazy_all.0.iter().zip(&woken_all.0);
        if let Some((lazy, woken)) = pairs.clone().find(|(lazy, woken)| lazy != woken) {
            panic!("world {number} of {seed}: {policy:?}\n{lazy}\n{woken}");
        }
        assert_eq!(lazy_all.0.len(), woken_all.0.len(), "world {number} of {seed}: {policy:?}");
        assert_eq!(lazy_all.1, woken_all.1, "world {number} of {seed}: {policy:?}");
        together += lazy.batches.iter().filter(|b| b.members.len() > 1).count();
    }
    together
}

#[test]
fn torchserve_sleeps_well() {
    let together = compare(1, |rng| {
        Policy::TorchServe(TorchServe {
            batch_size: 1 + below(rng, 9) as u32,
            max_batch_delay: below(rng, 12) as u32,
            job_queue_size: [1, 3, 10, 100][below(rng, 4) as usize],
            client_timeout_in_mills: [0, 0, 9][below(rng, 3) as usize],
            clock_phase: Nanos(below(rng, MS)),
            ..TorchServe::default()
        })
    });
    assert!(together > 5_000, "{together}");
}

#[test]
fn mosec_sleeps_well() {
    let together = compare(2, |rng| {
        Policy::Mosec(Mosec {
            max_batch_size: 1 + below(rng, 9) as u32,
            max_wait_time: below(rng, 12) as u32,
            capacity: [1, 3, 10, 1024][below(rng, 4) as usize],
            timeout: [3000, 3000, 15, 4][below(rng, 4) as usize],
            timer_extra: Nanos(below(rng, 3) * MS / 2),
            ..Mosec::default()
        })
    });
    assert!(together > 5_000, "{together}");
}

#[test]
fn litserve_sleeps_well() {
    let together = compare(3, |rng| {
        Policy::LitServe(LitServe {
            max_batch_size: 1 + below(rng, 9) as u32,
            batch_timeout: [0.0, 0.001, 0.003, 0.01][below(rng, 4) as usize],
            timeout: [30.0, 30.0, 0.02][below(rng, 3) as usize],
            window_phase: Nanos(below(rng, 4) * MS / 2),
            ..LitServe::default()
        })
    });
    assert!(together > 5_000, "{together}");
}

#[test]
fn triton_sleeps_well() {
    let together = compare(4, |rng| {
        let max = 1 + below(rng, 12) as u32;
        let some = |rng: &mut SimRng| 1 + (below(rng, u64::from(max)) as u32);
        let preferred_batch_size = match below(rng, 3) {
            0 => Vec::new(),
            1 => vec![some(rng)],
            _ => vec![some(rng), some(rng)],
        };
        let limited = QueuePolicy { max_queue_size: 5, ..QueuePolicy::default() };
        Policy::Triton(Triton {
            max_batch_size: max,
            preferred_batch_size,
            max_queue_delay_microseconds: [0, 0, 1_000, 6_000][below(rng, 4) as usize],
            default_queue_policy: (below(rng, 3) == 0).then_some(limited),
            enforce_shapes: below(rng, 4) == 0,
            ..Triton::default()
        })
    });
    assert!(together > 5_000, "{together}");
}

#[test]
fn triton_sleeps_well_with_one_shape() {
    let mut together = 0;
    for seed in 5..15 {
        together += compare(seed, |rng| {
            let max = 4 + below(rng, 8) as u32;
            let some = |rng: &mut SimRng| 1 + (below(rng, u64::from(max)) as u32);
            Policy::Triton(Triton {
                max_batch_size: max,
                preferred_batch_size: match below(rng, 2) {
                    0 => Vec::new(),
                    _ => vec![some(rng), some(rng)],
                },
                max_queue_delay_microseconds: [500, 1_000, 2_000][below(rng, 3) as usize],
                enforce_shapes: true,
                ..Triton::default()
            })
        });
    }
    assert!(together > 50_000, "{together}");
}

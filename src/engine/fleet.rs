//! A fleet: replicas of a server, each with its own queue, behind a balancer.
//!
//! Every replica is the event engine with its own policy; the balancer sends each arrival to one of
//! them and knows nothing of batches. Order at one instant is that of one server: an arrival is
//! routed before anything completes at its moment.

use super::event::{Core, Run};
use super::{Ending, Inflow, Rules};
use crate::arrivals::Feed;
use crate::cost::CostModel;
use crate::policy::{Batcher, Interest};
use crate::record::{BatchRow, Gone, Recorder};
use crate::rng::SimRng;
use rand::RngExt;
use std::cell::RefCell;

/// How arrivals are spread over replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "schema",
    derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum Balancer {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Any of them, with equal chances.
    Random,
    /// The one with the fewest requests sent to it and not answered; among equals the next one
    /// after the last that was chosen.
    LeastOutstanding,
    /// The one with fewer such requests of two different ones drawn at random; the first drawn
    /// among equals (Mitzenmacher 2001; Envoy's `LEAST_REQUEST`).
    PowerOfTwo,
}

impl Balancer {
    /// Whether it looks at what the replicas have answered.
    fn looks(self) -> bool {
        matches!(self, Self::LeastOutstanding | Self::PowerOfTwo)
    }
}

/// A cost model as one replica sees it: its instances are part of the fleet's.
struct Part<C> {
    cost: C,
    first_slot: u32,
}

impl<C: CostModel> CostModel for Part<C> {
    fn took_ns(&mut self, slot: u32, items: u32) -> u64 {
        self.cost.took_ns(self.first_slot + slot, items)
    }
}

/// The recorder as one replica sees it. The fleet itself tells of arrivals and of the end.
struct Share<'a, 'r, R> {
    of: &'a RefCell<&'r mut R>,
    first_slot: u32,
    /// Requests that are answered or gone.
    left: u64,
}

impl<R: Recorder> Recorder for Share<'_, '_, R> {
    fn completed(&mut self, batch: &BatchRow, arrivals: &[u64], tags: &[u8], first: bool) {
        self.completed_ahead(batch, arrivals, tags, arrivals.len(), first);
    }

    fn completed_ahead(
        &mut self,
        batch: &BatchRow,
        arrivals: &[u64],
        tags: &[u8],
        n: usize,
        first: bool,
    ) {
        self.left += n as u64;
        let row = BatchRow { slot: self.first_slot + batch.slot, ..*batch };
        self.of.borrow_mut().completed_ahead(&row, arrivals, tags, n, first);
    }

    fn gone(&mut self, arrival_ns: u64, tag: u8, at_ns: u64, why: Gone) {
        self.left += 1;
        self.of.borrow_mut().gone(arrival_ns, tag, at_ns, why);
    }
}

/// A replica and what the fleet knows of it.
struct Replica<'a, P, C, R> {
    run: Run<'a, P, C, R>,
    /// Requests sent to it.
    sent: u64,
    /// Of those, how many it has not looked at.
    unseen: u64,
    /// How many of them its policy wants to be woken by.
    wanted: u64,
    /// The next moment at which something happens there.
    due_ns: u64,
}

impl<'r, P: Batcher, C: CostModel, R: Recorder> Replica<'_, P, C, Share<'_, 'r, R>> {
    /// Lets it act before a moment, which has not come for the fleet yet.
    fn before(&mut self, moment_ns: u64) {
        let Some(until) = moment_ns.checked_sub(1) else { return };
        self.run.until(until);
        self.look(until);
    }

    fn look(&mut self, until_ns: u64) {
        let Interest { lane, at_least } = self.run.interest;
        self.wanted = u64::from(at_least.saturating_sub(self.run.core.cx.watched(lane))).max(1);
        self.due_ns = self.run.core.next_ns();
        // What came after the last look is still to be taken.
        let left = self.run.inflow.feed.waiting();
        self.unseen = left.len() as u64;
        if let Some(&wakes) = left.get(self.wanted as usize - 1) {
            self.due_ns = self.due_ns.min(wakes.max(until_ns));
        }
    }

    #[inline(always)]
    fn send(&mut self, time: u64, tag: u8, watchful: bool) {
        self.run.inflow.feed.push(time, tag);
        self.sent += 1;
        self.unseen += 1;
        if watchful || self.unseen >= self.wanted {
            self.due_ns = self.due_ns.min(time);
        }
    }

    /// Requests sent to it and not answered.
    fn outstanding(&self) -> u64 {
        self.sent - self.run.core.recorder.left
    }
}

/// Chooses replicas.
struct Router {
    balancer: Balancer,
    rng: SimRng,
    replicas: usize,
    /// The one after the last that was chosen.
    next: usize,
}

impl Router {
    fn choose(&mut self, outstanding: impl Fn(usize) -> u64) -> usize {
        let all = self.replicas;
        let chosen = match self.balancer {
            Balancer::RoundRobin => self.next,
            Balancer::Random => self.rng.random_range(0..all),
            Balancer::LeastOutstanding => {
                let (mut best, mut fewest) = (self.next, outstanding(self.next));
                for at in (self.next + 1..all).chain(0..self.next) {
                    let here = outstanding(at);
                    if here < fewest {
                        (best, fewest) = (at, here);
                    }
                }
                best
            }
            Balancer::PowerOfTwo => {
                let first = self.rng.random_range(0..all);
                let other = self.rng.random_range(0..all - 1);
                let second = other + usize::from(other >= first);
                if outstanding(second) < outstanding(first) { second } else { first }
            }
        };
        self.next = if chosen + 1 == all { 0 } else { chosen + 1 };
        chosen
    }
}

/// Runs one replication to its end: one replica for each of `rules`, two or more. Closed loops are
/// not fed.
pub fn run<P: Batcher + Clone, C: CostModel + Clone, R: Recorder>(
    policy: &P,
    cost: &C,
    mut feed: Feed,
    (balancer, rng): (Balancer, SimRng),
    rules: &[Rules],
    recorder: &mut R,
) -> Ending {
    let mut policies = vec![policy.clone(); rules.len()];
    let recorder = RefCell::new(recorder);
    let slots =
        || rules.iter().scan(0, |next, r| Some(std::mem::replace(next, *next + r.instances)));
    let mut costs: Vec<Part<C>> =
        slots().map(|first_slot| Part { cost: cost.clone(), first_slot }).collect();
    let mut shares: Vec<Share<'_, '_, R>> =
        slots().map(|first_slot| Share { of: &recorder, first_slot, left: 0 }).collect();
    let parts = policies.iter_mut().zip(&mut costs).zip(&mut shares).zip(rules);
    let mut replicas: Vec<Replica<'_, P, Part<C>, Share<'_, '_, R>>> = parts
        .map(|(((policy, cost), share), rules)| {
            let inflow = Inflow { feed: Feed::mailbox(), loops: None };
            let mut run = Run::new(Core::new(policy, cost, share, rules), inflow);
            run.begin();
            let mut replica = Replica { run, sent: 0, unseen: 0, wanted: 1, due_ns: 0 };
            replica.look(0);
            replica
        })
        .collect();
    let router = Router { balancer, rng, replicas: replicas.len(), next: 0 };
    let last_ns = route(&mut feed, router, &mut replicas, &recorder);
    finish(replicas, last_ns, rules.first().and_then(|r| r.cut_ns), &recorder)
}

/// Sends every arrival to its replica; returns the moment of the last one.
fn route<P: Batcher, C: CostModel, R: Recorder>(
    feed: &mut Feed,
    mut router: Router,
    replicas: &mut [Replica<'_, P, C, Share<'_, '_, R>>],
    recorder: &RefCell<&mut R>,
) -> Option<u64> {
    let looks = router.balancer.looks();
    // A request that is turned away is not outstanding, so whoever may turn one away is asked at
    // once.
    let watchful = looks && replicas.iter().any(|r| r.run.core.may_reject());
    let mut last_ns = None;
    loop {
        let (times, tags) = feed.ready();
        let n = times.len();
        let Some(&last) = times.last() else { return last_ns };
        last_ns = Some(last);
        recorder.borrow_mut().arrived(times);
        for (&time, &tag) in times.iter().zip(tags) {
            if looks {
                for replica in replicas.iter_mut().filter(|r| r.due_ns < time) {
                    replica.before(time);
                }
            }
            let chosen = router.choose(|at| replicas[at].outstanding());
            replicas[chosen].send(time, tag, watchful);
        }
        if !looks {
            replicas.iter_mut().for_each(|r| r.before(last));
        }
        feed.consume(n);
    }
}

/// Nothing more arrives: lets every replica come to its end.
fn finish<P: Batcher, C: CostModel, R: Recorder>(
    mut replicas: Vec<Replica<'_, P, C, Share<'_, '_, R>>>,
    last_ns: Option<u64>,
    cut_ns: Option<u64>,
    recorder: &RefCell<&mut R>,
) -> Ending {
    let last = last_ns.unwrap_or(0);
    replicas.iter_mut().for_each(|r| r.before(last));
    recorder.borrow_mut().arrivals_ended(cut_ns.unwrap_or(last));
    let mut all = Ending { at_ns: 0, stalled: None };
    for replica in replicas {
        let mut run = replica.run;
        run.inflow.feed.close();
        // The moment of the last arrival is one for all: what only a rule holds back leaves now.
        if cut_ns.is_none_or(|cut| last <= cut) {
            run.instant(last);
        }
        run.until(u64::MAX);
        let ending = run.finish();
        all.at_ns = all.at_ns.max(ending.at_ns);
        all.stalled = match (all.stalled, ending.stalled) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
    }
    recorder.borrow_mut().ended(all.at_ns);
    all
}

//! Invariant 11: recurrence = event engine wherever the law admits; and both equal an O(n²)
//! oracle that shares no code with them; a fleet equals its servers, one by one. Times are coarse
//! integers, so that ties are the rule.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

#[path = "common/oracle.rs"]
mod oracle;

use batchsim::arrivals::{Feed, Limits, Stream};
use batchsim::cost::CostModel;
use batchsim::engine::{Balancer, Inflow, Kind, Kinds, Rules, event, fleet, recurrence};
use batchsim::policy::{Anchor, Law, SizeOrTimeout};
use batchsim::record::{Gone, Ledger};
use batchsim::rng::{Purpose, substream};
use batchsim::time::Nanos;
use oracle::{Log, Setup};
use proptest::prelude::*;

struct Listed(Vec<u64>, usize);

impl Stream for Listed {
    fn fill(&mut self, out: &mut [u64]) -> usize {
        let n = out.len().min(self.0.len() - self.1);
        out[..n].copy_from_slice(&self.0[self.1..self.1 + n]);
        self.1 += n;
        n
    }
}

#[derive(Clone)]
struct Costs(Vec<u64>);

impl CostModel for Costs {
    fn took_ns(&mut self, _: u32, items: u32) -> u64 {
        self.0[items as usize]
    }
}

fn feed(s: &Setup) -> Feed {
    let limits = Limits { measure_from_ns: 0, measured: None, until_ns: s.cut };
    let sources = (0..s.timeouts.len())
        .map(|source| {
            let of_source = |a: &&(u64, u8)| usize::from(a.1) == source;
            let times = s.arrivals.iter().filter(of_source).map(|a| a.0).collect();
            Box::new(Listed(times, 0)) as Box<dyn Stream + Send>
        })
        .collect();
    Feed::new(sources, limits)
}

fn rules(s: &Setup) -> Rules {
    let timeouts = s.timeouts.iter().map(|t| t.map_or(Nanos::MAX, Nanos));
    let kinds = timeouts.map(|timeout| Kind { timeout, ..Kind::default() }).collect();
    Rules {
        instances: s.instances as u32,
        queue_limit: s.queue_limit.map_or(u32::MAX, |l| l as u32),
        kinds: Kinds::new(kinds),
        dispatch: Nanos::ZERO,
        release: [Nanos::ZERO; 2],
        cut_ns: s.cut,
        policy_rng: substream(0, 0, 0, Purpose::Policy),
    }
}

fn law(s: &Setup) -> Law {
    Law {
        cap: s.cap as u32,
        target: s.target as u32,
        wait: s.wait.map_or(Nanos::MAX, Nanos),
        anchor: s.anchor,
    }
}

fn log(ledger: &Ledger) -> Log {
    let mut log = Log::default();
    for entry in &ledger.batches {
        assert_eq!(entry.arrivals.len(), entry.row.size as usize);
        log.batches.push(oracle::Batch {
            start: entry.row.start_ns,
            slot: entry.row.slot,
            took: entry.row.took_ns,
            arrivals: entry.arrivals.clone(),
            reason: entry.row.reason.name(),
        });
    }
    for gone in &ledger.refusals {
        let why = match gone.why {
            Gone::Rejected => "rejected",
            Gone::Expired => "expired",
            Gone::Unfinished => "unfinished",
            Gone::Shed => "shed",
            Gone::Cancelled => "cancelled",
        };
        log.gone.push((gone.arrival_ns, gone.at_ns, why));
    }
    log.batches.sort();
    log.gone.sort();
    log
}

fn by_events(s: &Setup) -> Ledger {
    let mut ledger = Ledger::default();
    let preferred: Vec<u32> = s.preferred.iter().map(|&p| p as u32).collect();
    let mut policy = SizeOrTimeout::new(law(s), &preferred);
    let inflow = Inflow { feed: feed(s), loops: None };
    let ending =
        event::run(&mut policy, &mut Costs(s.cost.clone()), inflow, &rules(s), &mut ledger);
    assert_eq!(ending.stalled, None);
    ledger
}

fn by_recurrence(s: &Setup) -> Ledger {
    let mut ledger = Ledger::default();
    recurrence::run(law(s), &mut Costs(s.cost.clone()), feed(s), &rules(s), &mut ledger);
    ledger
}

fn by_fleet(s: &Setup, replicas: usize, balancer: Balancer) -> Ledger {
    let mut ledger = Ledger::default();
    let preferred: Vec<u32> = s.preferred.iter().map(|&p| p as u32).collect();
    let policy = SizeOrTimeout::new(law(s), &preferred);
    let rules = vec![rules(s); replicas];
    let balancer = (balancer, substream(1, 0, 0, Purpose::Balancer));
    let costs = Costs(s.cost.clone());
    let ending = fleet::run(&policy, &costs, feed(s), balancer, &rules, &mut ledger);
    assert_eq!(ending.stalled, None);
    ledger
}

/// The arrivals of one replica, alone.
fn alone(s: &Setup, arrivals: Vec<(u64, u8)>) -> Log {
    oracle::run(&Setup { arrivals, ..s.clone() })
}

/// Requests that have been answered or are gone before a moment.
fn left_before(log: &Log, moment: u64) -> usize {
    let answered = log.batches.iter().filter(|b| b.start + b.took < moment);
    answered.map(|b| b.arrivals.len()).sum::<usize>()
        + log.gone.iter().filter(|(_, at, _)| *at < moment).count()
}

/// A fleet in slow motion: every arrival is routed by what each replica, alone, has done with its
/// own arrivals until then.
fn slow_fleet(s: &Setup, replicas: usize, least: bool) -> Log {
    let mut own: Vec<Vec<(u64, u8)>> = vec![Vec::new(); replicas];
    let mut next = 0;
    for arrival in &s.arrivals {
        let mut chosen = next;
        if least {
            let outstanding =
                |r: usize| own[r].len() - left_before(&alone(s, own[r].clone()), arrival.0);
            let order = (0..replicas).map(|i| (next + i) % replicas);
            chosen = order.min_by_key(|r| outstanding(*r)).unwrap();
        }
        own[chosen].push(*arrival);
        next = (chosen + 1) % replicas;
    }
    let mut all = Log::default();
    for (number, arrivals) in own.into_iter().enumerate() {
        let mut log = alone(s, arrivals);
        log.batches.iter_mut().for_each(|b| b.slot += (number * s.instances) as u32);
        all.batches.append(&mut log.batches);
        all.gone.append(&mut log.gone);
    }
    all.batches.sort();
    all.gone.sort();
    all
}

fn setup(inside_law: bool) -> impl Strategy<Value = Setup> {
    let arrivals = prop::collection::vec((0u64..6, 0u8..3), 0..60);
    let server = (1usize..=4, prop::option::of(1usize..8), prop::option::of(0u64..200));
    let rule = (1usize..=8, 1usize..=8, prop::option::of(0u64..40), any::<bool>());
    let extra = (
        prop::collection::vec(1usize..8, 0..3),
        prop::array::uniform3(prop::option::of(0u64..60)),
        prop::collection::vec(1u64..30, 8),
    );
    (arrivals, server, rule, extra).prop_map(move |(gaps, server, rule, extra)| {
        let (instances, queue_limit, cut) = server;
        let (cap, target, wait, oldest) = rule;
        let (preferred, timeouts, mut cost) = extra;
        cost.insert(0, 0);
        let mut now = 0;
        let arrivals = gaps.iter().map(|(gap, source)| {
            // Mostly ties and short gaps, now and then a long pause.
            now += if *gap == 5 { 25 } else { gap / 2 };
            (now, *source)
        });
        let mut arrivals: Vec<(u64, u8)> = arrivals.collect();
        if let Some(cut) = cut {
            arrivals.retain(|a| a.0 < cut);
        }
        // At one instant the lower source comes first.
        arrivals.sort();
        Setup {
            arrivals,
            timeouts: if inside_law { vec![None; 3] } else { timeouts.to_vec() },
            cost,
            instances,
            queue_limit: if inside_law { None } else { queue_limit },
            cap,
            target: target.min(cap),
            wait,
            anchor: if oldest { Anchor::OldestArrival } else { Anchor::Pickup },
            preferred: if inside_law { vec![] } else { preferred },
            cut,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn invariant_11_recurrence_is_event_engine_is_oracle(s in setup(true)) {
        let truth = oracle::run(&s);
        let events = by_events(&s);
        prop_assert_eq!(&log(&events), &truth);
        let fast = by_recurrence(&s);
        prop_assert_eq!(&log(&fast), &truth);
        prop_assert_eq!(events.ended_ns, fast.ended_ns);
        prop_assert_eq!(events.offered, fast.offered);
    }

    #[test]
    fn event_engine_is_oracle_outside_the_law(s in setup(false)) {
        prop_assert_eq!(log(&by_events(&s)), oracle::run(&s));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    /// Time is cut, late: the moment of the last arrival is one for the whole fleet, and each
    /// server alone would let go of what it holds at its own.
    #[test]
    fn a_fleet_is_its_servers(s in setup(false), replicas in 2usize..=4, least in any::<bool>()) {
        let last = s.arrivals.last().map_or(0, |a| a.0);
        let s = Setup { cut: Some(s.cut.unwrap_or(last + 500)), ..s };
        let balancer = if least { Balancer::LeastOutstanding } else { Balancer::RoundRobin };
        let found = by_fleet(&s, replicas, balancer);
        prop_assert_eq!(found.offered as usize, s.arrivals.len());
        prop_assert_eq!(log(&found), slow_fleet(&s, replicas, least));
    }

    /// Whatever the balancer: every request is accounted for, and without a cut none is left.
    #[test]
    fn invariant_01_holds_for_fleets(s in setup(false), replicas in 2usize..=4) {
        for balancer in [
            Balancer::RoundRobin,
            Balancer::Random,
            Balancer::LeastOutstanding,
            Balancer::PowerOfTwo,
        ] {
            let found = by_fleet(&s, replicas, balancer);
            let answered: usize = found.batches.iter().map(|b| b.arrivals.len()).sum();
            prop_assert_eq!(answered + found.refusals.len(), s.arrivals.len());
            let unfinished = found.refusals.iter().filter(|r| r.why == Gone::Unfinished).count();
            prop_assert!(s.cut.is_some() || unfinished == 0);
            let slots = (replicas * s.instances) as u32;
            prop_assert!(found.batches.iter().all(|b| b.row.slot < slots));
        }
    }
}

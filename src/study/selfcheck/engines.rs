//! The engines against each other, and against batches worked out by hand.

use super::Row;
use crate::arrivals::{Feed, Limits, Stream};
use crate::cost::CostModel;
use crate::engine::{Inflow, Kinds, Rules, event, recurrence};
use crate::policy::{Anchor, Law, SizeOrTimeout};
use crate::record::{BatchEntry, Ledger};
use crate::rng::{Purpose, SimRng, substream};
use crate::time::Nanos;
use rand::RngExt;

const GROUP: &str = "engines";

/// Random cases.
const CASES: usize = 4_000;

/// Arrivals that are known.
struct Listed {
    times: Vec<u64>,
    at: usize,
}

impl Stream for Listed {
    fn fill(&mut self, out: &mut [u64]) -> usize {
        let rest = &self.times[self.at..];
        let n = out.len().min(rest.len());
        out[..n].copy_from_slice(&rest[..n]);
        self.at += n;
        n
    }
}

/// Service times by size.
struct Costs(Vec<u64>);

impl CostModel for Costs {
    fn took_ns(&mut self, _: u32, items: u32) -> u64 {
        self.0.get(items as usize).or(self.0.last()).copied().unwrap_or(1)
    }
}

/// A server, a rule, and when requests come; times are small integers, so that many coincide.
struct Case {
    arrivals: Vec<u64>,
    costs: Vec<u64>,
    instances: u32,
    law: Law,
    cut: Option<u64>,
}

impl Case {
    fn random(rng: &mut SimRng) -> Self {
        let mut now = 0;
        let count = rng.random_range(0..60);
        let arrivals = (0..count).map(|_| {
            // Mostly ties and short gaps, now and then a long pause.
            now += [0, 0, 1, 1, 2, 25][rng.random_range(0..6)];
            now
        });
        let arrivals = arrivals.collect();
        let cap = rng.random_range(1..=8);
        let anchors = [Anchor::OldestArrival, Anchor::Pickup];
        let wait = rng.random_range(0..50u64);
        Self {
            arrivals,
            costs: (0..=8).map(|_| rng.random_range(1..30)).collect(),
            instances: rng.random_range(1..=4),
            law: Law {
                cap,
                target: rng.random_range(1..=cap),
                wait: if wait < 40 { Nanos(wait) } else { Nanos::MAX },
                anchor: anchors[rng.random_range(0..2)],
            },
            cut: rng.random::<bool>().then(|| rng.random_range(0..200)),
        }
    }

    fn feed(&self) -> Feed {
        let stream = Box::new(Listed { times: self.arrivals.clone(), at: 0 });
        let limits = Limits { measure_from_ns: 0, measured: None, until_ns: self.cut };
        Feed::new(vec![stream], limits)
    }

    fn rules(&self) -> Rules {
        Rules {
            instances: self.instances,
            queue_limit: u32::MAX,
            kinds: Kinds::plain(),
            dispatch: Nanos::ZERO,
            release: [Nanos::ZERO; 2],
            cut_ns: self.cut,
            policy_rng: substream(0, 0, 0, Purpose::Policy),
        }
    }

    fn by_events(&self) -> Ledger {
        let mut ledger = Ledger::default();
        let mut policy = SizeOrTimeout::new(self.law, &[]);
        let inflow = Inflow { feed: self.feed(), loops: None };
        let mut costs = Costs(self.costs.clone());
        event::run(&mut policy, &mut costs, inflow, &self.rules(), &mut ledger);
        in_order(ledger)
    }

    fn by_recurrence(&self) -> Ledger {
        let mut ledger = Ledger::default();
        let mut costs = Costs(self.costs.clone());
        recurrence::run(self.law, &mut costs, self.feed(), &self.rules(), &mut ledger);
        in_order(ledger)
    }
}

/// Several instances complete in another order than they start; requests are lost in any.
fn in_order(mut ledger: Ledger) -> Ledger {
    ledger.batches.sort_by_key(|b| (b.row.start_ns, b.row.slot));
    ledger.refusals.sort_by_key(|r| (r.arrival_ns, r.at_ns));
    ledger
}

/// Cap and wait of a rule that takes all that is queued when the timer ends.
const fn law(cap: u32, wait: u64, anchor: Anchor) -> Law {
    let target = if wait == 0 { 1 } else { cap };
    Law { cap, target, wait: Nanos(wait), anchor }
}

/// What happens at one instant, by hand: arrivals, rule, and batches as (start, size). A batch
/// takes 10.
type ByHand = (&'static [u64], Law, &'static [(u64, usize)]);

const OLDEST: Anchor = Anchor::OldestArrival;
const BY_HAND: [ByHand; 7] = [
    // An arrival at a completion joins the next batch.
    (&[0, 4, 10], law(8, 0, OLDEST), &[(0, 1), (10, 2)]),
    // All arrivals of an instant count before a batch leaves.
    (&[5, 5, 5], law(8, 0, OLDEST), &[(5, 3)]),
    // An arrival when the timer is due goes along; a moment later it does not.
    (&[0, 5, 60], law(8, 5, OLDEST), &[(5, 2), (60, 1)]),
    (&[0, 6, 60], law(8, 5, OLDEST), &[(5, 1), (15, 1), (60, 1)]),
    // From pickup the wait starts when the instance is free again.
    (&[0, 6, 60], law(8, 5, Anchor::Pickup), &[(5, 1), (20, 1), (60, 1)]),
    // The one that fills the batch sends it at once; the rest waits for the instance.
    (&[0, 1, 2, 3], law(3, 5, OLDEST), &[(2, 3), (12, 1)]),
    // The last arrival lets go of what only the rule held.
    (&[0, 1, 2], law(8, 50, OLDEST), &[(2, 3)]),
];

fn differs(by_hand: &ByHand) -> bool {
    let (arrivals, law, expected) = *by_hand;
    let case = Case { arrivals: arrivals.to_vec(), costs: vec![10], instances: 1, law, cut: None };
    let seen = |ledger: Ledger| -> Vec<(u64, usize)> {
        let batch = |b: &BatchEntry| (b.row.start_ns, b.arrivals.len());
        ledger.batches.iter().map(batch).collect()
    };
    seen(case.by_events()) != expected || seen(case.by_recurrence()) != expected
}

pub(super) fn rows() -> Vec<Row> {
    let mut rng = substream(1, 0, 0, Purpose::Arrivals);
    let random = |_: &usize| {
        let case = Case::random(&mut rng);
        case.by_events() != case.by_recurrence()
    };
    let different = (0..CASES).filter(random).count();
    let wrong = BY_HAND.iter().filter(|case| differs(case)).count();
    vec![
        Row::none(
            GROUP,
            format!("of {CASES} random runs, recurrence and event engine differ in"),
            "runs",
            different,
        ),
        Row::none(
            GROUP,
            format!("of {} instants by hand, either engine differs in", BY_HAND.len()),
            "runs",
            wrong,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_more_or_less_is_noticed() {
        for (arrivals, law, batches) in BY_HAND {
            assert!(!differs(&(arrivals, law, batches)));
            assert!(differs(&(arrivals, law, &batches[1..])));
        }
        // Half of the random cases have more than one instance, a timer, and a cut.
        let mut rng = substream(1, 0, 0, Purpose::Arrivals);
        let cases: Vec<Case> = (0..CASES).map(|_| Case::random(&mut rng)).collect();
        let batches: usize = cases.iter().map(|c| c.by_events().batches.len()).sum();
        assert!(batches > 5 * CASES, "{batches}");
        let lost = cases.iter().filter(|c| !c.by_events().refusals.is_empty()).count();
        assert!(lost > CASES / 10, "{lost}");
    }
}

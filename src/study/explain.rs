//! `explain`: one run with everything kept, and what its slowest requests waited for.

use super::blame::{Blamed, Parts, Surroundings, blame};
use super::observe::must_grow;
use super::run::{policy_info, tool};
use super::setup::{Bench, Engine, Portion};
use crate::engine::Flight;
use crate::outcome::{
    Blame, BlameRow, Burst, BurstBatch, ExplainedRequests, Explanation, ReasonRow, SCHEMA,
    TrapNote, Trial,
};
use crate::policy::Reason;
use crate::record::{BatchRow, Gone, Recorder, rank};
use crate::scenario::{Labelled, Scenario, Server, Warmup};
use crate::time::Nanos;
use crate::traps::{Trap, traps};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// Requests to simulate, start-up included.
    pub requests: u64,
    /// Blame is for requests at this quantile of the latency and above, 0.99 for p99.
    pub quantile: f64,
    /// How many of the slowest requests to show.
    pub slowest: usize,
}

/// The answer, and what it rests on.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The answer.
    pub explanation: Explanation,
    /// Everything that happened.
    pub flight: Flight,
    /// Where the latency of each answered request goes, start-up included.
    pub blamed: Vec<Blamed>,
    /// From the arrival to the answer of each slow request that is shown, ns.
    pub spells: Vec<(u64, u64)>,
    /// Requests left in a server in which nothing will happen any more.
    pub stalled: Option<u64>,
}

/// Share of the requests that is start-up, unless the scenario says how long that is.
const START_UP: u64 = 100;

/// Counts requests that left without an answer.
#[derive(Default)]
struct Lost {
    arrived: Vec<u64>,
    gone: Vec<(u64, Gone)>,
}

impl Recorder for Lost {
    fn arrived(&mut self, times: &[u64]) {
        self.arrived.extend_from_slice(times);
    }

    fn completed(&mut self, _: &BatchRow, _: &[u64], _: &[u8], _: bool) {}

    fn gone(&mut self, arrival_ns: u64, _: u8, _: u64, why: Gone) {
        self.gone.push((arrival_ns, why));
    }
}

/// Runs one policy of a scenario and explains it; `None` where no request was answered.
#[must_use]
pub fn explain(
    scenario: &Scenario,
    server: &Server,
    labelled: &Labelled,
    question: &Question,
) -> Option<Explained> {
    let bench = Bench { scenario, server, policy: &labelled.policy, engine: Engine::Event };
    let run = Run::of(&bench, question);
    let latencies = run.latencies();
    let quantile_ns = at_quantile(&latencies, question.quantile)?;
    let judged = || run.judged();
    let above: Vec<&Blamed> = judged().filter(|b| b.parts.total() >= quantile_ns).collect();
    let (bursts, spells) = bursts(&run, question.slowest);
    let explanation = Explanation {
        schema: SCHEMA,
        tool: tool(),
        study: "explain".to_owned(),
        scenario: scenario.name.clone(),
        seed: scenario.seed,
        policy: policy_info(scenario.cell_label(server, labelled), labelled),
        rate_per_s: scenario.total_rate_per_s(),
        capacity_per_s: scenario.capacity_per_s(server, &labelled.policy),
        stable: !must_grow(&bench),
        requests: run.requests(),
        quantile: question.quantile,
        latency_ms: Nanos(quantile_ns).as_ms(),
        above: row(&above),
        all: row(&judged().collect::<Vec<_>>()),
        reasons: reasons(&run),
        bursts,
        traps: traps(scenario, server, labelled)
            .into_iter()
            .map(|trap| note(trap, scenario, server, question))
            .collect(),
    };
    let Run { flight, blamed, stalled, .. } = run;
    Some(Explained { explanation, flight, blamed, spells, stalled })
}

/// One run with everything kept.
struct Run {
    flight: Flight,
    blamed: Vec<Blamed>,
    lost: Lost,
    /// Requests that arrived before are start-up.
    from_ns: u64,
    /// Between the leaving of a batch and the start of its pass.
    dispatch_ns: u64,
    stalled: Option<u64>,
}

impl Run {
    fn of(bench: &Bench<'_>, question: &Question) -> Self {
        let portion = Portion {
            replication: 0,
            measured: Some(question.requests),
            measure_from: Nanos::ZERO,
        };
        let mut lost = Lost::default();
        let (ending, flight) = bench.fly(portion, &mut lost);
        let blamed = blame(&flight, &surroundings(bench));
        let from_ns = match bench.scenario.run.warmup {
            Warmup::Time(time) => time.0,
            Warmup::Auto if bench.replays_trace() => 0,
            Warmup::Auto => {
                let skipped = lost.arrived.len() / usize::try_from(START_UP).unwrap_or(1);
                lost.arrived.get(skipped).copied().unwrap_or(0)
            }
        };
        let dispatch_ns = bench.server.overhead.dispatch.0;
        Self { flight, blamed, lost, from_ns, dispatch_ns, stalled: ending.stalled }
    }

    fn judged(&self) -> impl Iterator<Item = &Blamed> {
        self.blamed.iter().filter(|b| b.arrival_ns >= self.from_ns)
    }

    /// Latencies in ascending order, ns.
    fn latencies(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.judged().map(|b| b.parts.total()).collect();
        all.sort_unstable();
        all
    }

    fn requests(&self) -> ExplainedRequests {
        let mut counts = ExplainedRequests {
            offered: self.lost.arrived.iter().filter(|t| **t >= self.from_ns).count() as u64,
            completed: self.judged().count() as u64,
            ..ExplainedRequests::default()
        };
        for (_, why) in self.lost.gone.iter().filter(|(t, _)| *t >= self.from_ns) {
            match why {
                Gone::Rejected => counts.rejected += 1,
                Gone::Expired => counts.expired += 1,
                Gone::Shed | Gone::Cancelled | Gone::Unfinished => counts.other += 1,
            }
        }
        counts
    }

    /// Items in a batch, on average.
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    fn mean_batch(&self) -> f64 {
        let passes: Vec<u32> = self.passes().map(|(_, p)| p.size).collect();
        passes.iter().map(|n| f64::from(*n)).sum::<f64>() / passes.len().max(1) as f64
    }

    /// Batches that left after the start-up, numbered.
    fn passes(&self) -> impl Iterator<Item = (usize, &crate::engine::Pass)> {
        self.flight.passes.iter().enumerate().filter(|(_, p)| p.left_ns >= self.from_ns)
    }
}

fn at_quantile(sorted: &[u64], quantile: f64) -> Option<u64> {
    let rank = rank(quantile, sorted.len() as u64);
    sorted.get(usize::try_from(rank).ok()?.checked_sub(1)?).copied()
}

fn surroundings<'a>(bench: &Bench<'a>) -> Surroundings<'a> {
    let overhead = &bench.server.overhead;
    let client = &bench.scenario.client;
    Surroundings {
        cost: &bench.server.cost,
        instances: bench.server.instances,
        cap: bench.policy.cap().unwrap_or(u32::MAX),
        inbound: client.before.plus(overhead.inbound),
        dispatch: overhead.dispatch,
        release: [overhead.release, overhead.release_per_request],
        response: overhead.response.plus(client.after),
    }
}

/// The parts of a latency, each multiplied by a factor.
#[expect(clippy::cast_precision_loss, reason = "for display")]
fn scaled(parts: &[&Parts], factor: f64) -> Blame {
    let sum = |part: fn(&Parts) -> u64| {
        parts.iter().map(|p| u128::from(part(p))).sum::<u128>() as f64 * factor
    };
    Blame {
        forming: sum(|p| p.forming),
        queue: sum(|p| p.queue),
        passed_over: sum(|p| p.passed_over),
        formed: sum(|p| p.formed),
        service: sum(|p| p.service),
        others: sum(|p| p.others),
        padding: sum(|p| p.padding),
        overhead: sum(Parts::overhead),
    }
}

#[expect(clippy::cast_precision_loss, reason = "means and shares")]
fn row(group: &[&Blamed]) -> BlameRow {
    let parts: Vec<&Parts> = group.iter().map(|b| &b.parts).collect();
    let all = parts.iter().map(|p| u128::from(p.total())).sum::<u128>() as f64;
    let n = group.len().max(1) as f64;
    BlameRow {
        requests: group.len() as u64,
        latency_ms: all / n / 1e6,
        mean_ms: scaled(&parts, 1.0 / n / 1e6),
        share: scaled(&parts, 1.0 / all.max(1.0)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "means and shares")]
fn reasons(run: &Run) -> Vec<ReasonRow> {
    let mut all = 0u64;
    let mut sums = [(0u64, 0u64, 0u128); Reason::COUNT];
    for (_, pass) in run.passes() {
        let oldest = run.flight.of(pass).iter().map(|m| m.arrival_ns).min();
        let (batches, items, ages) = &mut sums[pass.reason as usize];
        *batches += 1;
        *items += u64::from(pass.size);
        *ages += u128::from(pass.left_ns - oldest.unwrap_or(pass.left_ns));
        all += 1;
    }
    let named = Reason::ALL.iter().zip(sums).filter(|(_, (batches, ..))| *batches > 0);
    let mut rows: Vec<ReasonRow> = named
        .map(|(reason, (batches, items, ages))| ReasonRow {
            reason: reason.name().to_owned(),
            batches,
            share: batches as f64 / all as f64,
            mean_size: items as f64 / batches as f64,
            oldest_ms: ages as f64 / batches as f64 / 1e6,
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.batches));
    rows
}

/// The slowest requests without a moment in common, and when they were in the server.
fn bursts(run: &Run, most: usize) -> (Vec<Burst>, Vec<(u64, u64)>) {
    let mut slowest: Vec<&Blamed> = run.judged().collect();
    slowest.sort_by_key(|b| (std::cmp::Reverse(b.parts.total()), b.arrival_ns));
    let mut arrivals: Vec<u64> = run.flight.members.iter().map(|m| m.arrival_ns).collect();
    arrivals.sort_unstable();
    let (mut bursts, mut spells): (Vec<Burst>, Vec<(u64, u64)>) = (Vec::new(), Vec::new());
    for blamed in slowest {
        if bursts.len() >= most {
            break;
        }
        let (from, to) = (blamed.arrival_ns, blamed.arrival_ns + blamed.parts.total());
        if spells.iter().all(|(begin, end)| to < *begin || from > *end) {
            bursts.push(burst(run, blamed, &arrivals));
            spells.push((from, to));
        }
    }
    (bursts, spells)
}

fn burst(run: &Run, blamed: &Blamed, arrivals: &[u64]) -> Burst {
    let passes = &run.flight.passes;
    let zero = blamed.arrival_ns;
    // From the batches that ran when it came: one for each instance at the most.
    let after = passes.partition_point(|p| p.left_ns < zero);
    let done = |p: &crate::engine::Pass| {
        p.left_ns.saturating_add(run.dispatch_ns).saturating_add(p.took_ns.unwrap_or(0))
    };
    let running = |p: &crate::engine::Pass| done(p) > zero;
    let first = (after.saturating_sub(64)..after).find(|i| running(&passes[*i])).unwrap_or(after);
    let mut before = zero;
    let mut batches = Vec::new();
    for (number, pass) in passes.iter().enumerate().take(blamed.pass + 1).skip(first) {
        if number < after && !running(pass) {
            continue;
        }
        let came = |until: u64| arrivals.partition_point(|t| *t <= until) as u64;
        let at = pass.left_ns;
        batches.push(BurstBatch {
            at_ms: after_ms(at, zero),
            done_ms: after_ms(done(pass), zero),
            instance: pass.slot,
            size: pass.size,
            reason: pass.reason.name().to_owned(),
            arrived: came(at).saturating_sub(came(before)),
            waiting: came(at).saturating_sub(pass.members.end as u64),
            own: number == blamed.pass,
        });
        before = before.max(at);
    }
    Burst {
        latency_ms: Nanos(blamed.parts.total()).as_ms(),
        arrival_s: Nanos(zero).as_s(),
        blame_ms: scaled(&[&blamed.parts], 1e-6),
        batches,
    }
}

/// Milliseconds from `zero` to a moment, negative before it.
fn after_ms(at: u64, zero: u64) -> f64 {
    if at >= zero { Nanos(at - zero).as_ms() } else { -Nanos(zero - at).as_ms() }
}

/// A trap with what its ways out come to, on the same arrivals.
fn note(trap: Trap, scenario: &Scenario, server: &Server, question: &Question) -> TrapNote {
    let Trap { id, key, what, help, ways_out } = trap;
    let trials = ways_out.into_iter().map(|(change, policy)| {
        let bench = Bench { scenario, server, policy: &policy, engine: Engine::Event };
        let run = Run::of(&bench, question);
        let latencies = run.latencies();
        let at = |q| at_quantile(&latencies, q).map(|ns| Nanos(ns).as_ms());
        Trial { change, p50_ms: at(0.5), p99_ms: at(0.99), mean_batch: run.mean_batch() }
    });
    TrapNote { id: id.to_owned(), key: key.to_owned(), what, help, trials: trials.collect() }
}

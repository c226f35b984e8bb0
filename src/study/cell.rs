//! One cell: replications in waves until the interval of p99 is narrow enough.
//!
//! Every wave runs fresh replications (numbered on), so that nothing is simulated twice; wave
//! `w` of section `r` is replication `w · R + r`, and section `r` is the sum of its waves.

use super::control::Control;
use super::relax::relaxation;
use super::setup::{Bench, Engine, Portion};
use crate::record::{LatencyStore, Pilot, Summary};
use crate::scenario::Warmup;
use crate::stats::{half_width, mser5};
use crate::time::Nanos;
use rayon::prelude::*;

/// How many requests a cell may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Relative half-width wanted on p99.
    pub precision: f64,
    /// Measured requests of each replication in the first wave.
    pub first_wave: u64,
    /// Cap on the measured requests of the cell.
    pub cap: u64,
}

/// What the replications of a cell came to.
#[derive(Clone, Debug)]
pub struct Measured<L> {
    /// One summary per section, waves added up.
    pub sections: Vec<Summary<L>>,
    /// All of them.
    pub pooled: Summary<L>,
    /// Start-up deleted from every replication.
    pub warmup: Nanos,
    /// Requests left in a server in which nothing can happen any more.
    pub stalled: Option<u64>,
    /// Whether it was stopped from outside before it was precise enough.
    pub interrupted: bool,
    /// What a reader should know.
    pub warnings: Vec<String>,
}

/// Most requests of an overloaded cell.
const OVERLOADED_REQUESTS: u64 = 2_000_000;

/// Simulates a cell; `None` when it was stopped from outside.
pub fn simulate<L: LatencyStore + Send + Sync>(
    bench: &Bench<'_>,
    limits_ns: &[u64],
    budget: &Budget,
    overloaded: bool,
    control: &Control,
) -> Option<Measured<L>> {
    let run = &bench.scenario.run;
    let sections = if bench.replays_trace() { 1 } else { run.replications.max(1) };
    // A queue that grows without end is looked at, not measured: its length is the memory it takes.
    let most = if overloaded { OVERLOADED_REQUESTS } else { u64::MAX };
    let requests = run.requests.map(|n| n.min(most));
    let by_length = run.requests.is_none() && run.duration.is_none() && !bench.replays_trace();
    let most_each = budget.cap / u64::from(sections);
    let first_wave = match requests {
        _ if bench.replays_trace() => requests,
        Some(n) => Some(n.div_ceil(u64::from(sections))),
        None if by_length && overloaded => Some(budget.first_wave.min(most_each).max(1)),
        None if by_length => Some(first_length(bench, budget.first_wave, most_each)),
        None => None,
    };
    let (warmup, warnings) = warmup(bench, sections, first_wave, overloaded, control);
    let mut state = Waves {
        bench,
        limits_ns,
        control,
        warmup,
        sections,
        total: requests.filter(|_| !bench.replays_trace()),
        measured: Measured {
            sections: Vec::new(),
            pooled: Summary::default(),
            warmup,
            stalled: None,
            interrupted: false,
            warnings,
        },
        next_replication: 0,
    };
    state.wave(first_wave)?;
    if by_length && sections > 1 && !overloaded {
        let mut each = first_wave.unwrap_or(0);
        while !state.precise(budget.precision) && state.measured.stalled.is_none() {
            let left = (budget.cap / u64::from(sections)).saturating_sub(each);
            if left == 0 {
                break;
            }
            // The total doubles with every wave.
            let next = each.min(left);
            if state.wave(Some(next)).is_none() {
                state.measured.interrupted = true;
                break;
            }
            each += next;
        }
    }
    if !overloaded && by_length {
        let few = few_swings(bench, state.measured.pooled.offered);
        state.measured.warnings.extend(few);
    }
    Some(state.measured)
}

struct Waves<'a, L> {
    bench: &'a Bench<'a>,
    limits_ns: &'a [u64],
    control: &'a Control,
    warmup: Nanos,
    sections: u32,
    /// Measured requests of the cell, when the scenario counts them exactly.
    total: Option<u64>,
    measured: Measured<L>,
    next_replication: u32,
}

impl<L: LatencyStore + Send + Sync> Waves<'_, L> {
    /// Runs one more replication in every section.
    fn wave(&mut self, each: Option<u64>) -> Option<()> {
        let sections = self.sections;
        let first = self.next_replication;
        self.next_replication += sections;
        let parts: Vec<Option<(Summary<L>, Option<u64>)>> = (0..sections)
            .into_par_iter()
            .map(|section| self.replicate(first + section, self.share(section, each)))
            .collect();
        // All of a wave or nothing of it: sections must stay equally long.
        let parts: Vec<(Summary<L>, Option<u64>)> = parts.into_iter().collect::<Option<_>>()?;
        for (number, (summary, stalled)) in parts.into_iter().enumerate() {
            self.measured.pooled.merge(&summary);
            self.measured.stalled = self.measured.stalled.or(stalled);
            match self.measured.sections.get_mut(number) {
                Some(section) => section.merge(&summary),
                None => self.measured.sections.push(summary),
            }
        }
        Some(())
    }

    /// Requests of one section; an exact total is dealt out as evenly as it goes.
    fn share(&self, section: u32, each: Option<u64>) -> Option<u64> {
        let Some(total) = self.total else { return each };
        let sections = u64::from(self.sections);
        Some(total / sections + u64::from(u64::from(section) < total % sections))
    }

    fn replicate(&self, replication: u32, n: Option<u64>) -> Option<(Summary<L>, Option<u64>)> {
        if self.control.stopped() {
            return None;
        }
        let mut summary = Summary::new(self.bench.plan(self.limits_ns, self.warmup))
            .following(self.bench.group_sources(replication));
        let portion = Portion { replication, measured: n, measure_from: self.warmup };
        let ending = self.bench.run_under(portion, &mut summary, Some(self.control));
        self.control.add_requests(summary.offered);
        if self.control.stopped() {
            return None;
        }
        Some((summary, ending.stalled))
    }

    fn precise(&self, target: f64) -> bool {
        relative_half_width(&self.measured.pooled, &self.measured.sections, 0.99)
            .is_none_or(|reached| reached <= target)
    }
}

/// Half-width of the interval of a quantile, relative to it.
pub(super) fn relative_half_width<L: LatencyStore>(
    pooled: &Summary<L>,
    sections: &[Summary<L>],
    q: f64,
) -> Option<f64> {
    let at = |s: &Summary<L>| s.latency.quantiles(&[q]).map(|v| v[0]);
    let value = at(pooled)?;
    let parts: Vec<f64> = sections.iter().filter_map(at).collect();
    (parts.len() == sections.len())
        .then(|| half_width(value, &parts))
        .flatten()
        .map(|half| half / value)
}

/// How much of the start of every replication is deleted.
fn warmup(
    bench: &Bench<'_>,
    sections: u32,
    each: Option<u64>,
    overloaded: bool,
    control: &Control,
) -> (Nanos, Vec<String>) {
    if let Warmup::Time(time) = bench.scenario.run.warmup {
        return (time, Vec::new());
    }
    // A recorded stream is counted whole; an overloaded queue has nothing to settle into.
    if bench.replays_trace() || overloaded {
        return (Nanos::ZERO, Vec::new());
    }
    // No start-up is over before a few of the longest batches are.
    let cap = bench.policy.cap().unwrap_or(64).min(1024);
    let floor = Nanos(bench.server.cost.service_ns(cap).saturating_mul(10));
    // A run of a given duration keeps at least half of it.
    let half = bench.scenario.run.duration.map_or(Nanos::MAX, |d| Nanos(d.0 / 2));
    let (found, mut warnings) = settled(bench, sections, each, floor, control);
    let memory = relaxation(bench).unwrap_or(Nanos::MAX);
    let measured = each.map_or(Nanos::MAX, |n| lasting(bench, n));
    // What a pilot shows, and at least what the diffusion limit of the queue asks for.
    let found = found.max(Nanos(memory.0.saturating_mul(MEMORIES)).min(measured));
    if found > half {
        warnings.push(format!(
            "the start-up takes about {found}, more than half of the run: only {half} are \
             deleted; lengthen the run, or set warmup yourself"
        ));
    }
    (found.min(half), warnings)
}

/// Memories of the start that are deleted, in units of [`relaxation`].
const MEMORIES: u64 = 6;
/// Fewer independent swings of the queue beyond p99 than this say too little about each other:
/// three for each of twenty sections.
const FEW_SWINGS: f64 = 60.0;

/// Length of the first wave of each replication: near capacity at least what is deleted before it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
fn first_length(bench: &Bench<'_>, usual: u64, most: u64) -> u64 {
    let memory_s = relaxation(bench).unwrap_or(Nanos::MAX).as_ms() / 1e3;
    let rate = bench.scenario.open_rate_per_s().unwrap_or(0.0);
    let needed = (MEMORIES as f64 * memory_s * rate) as u64;
    usual.max(needed).min(most).max(1)
}

/// How long so many requests take to arrive; for ever where they have no rate.
fn lasting(bench: &Bench<'_>, requests: u64) -> Nanos {
    let rate = bench.scenario.open_rate_per_s().unwrap_or(0.0);
    let seconds = requests as f64 / rate;
    if seconds < 1e9 { Nanos::from_ms(seconds * 1e3) } else { Nanos::MAX }
}

/// Close to capacity the time beyond p99 comes in swings of the queue as long as its memory: by the
/// diffusion limit the share of that time has the relative variance of memory ÷ (1 % of the run).
fn few_swings(bench: &Bench<'_>, requests: u64) -> Option<String> {
    let memory = relaxation(bench)?;
    let swings = 0.01 * lasting(bench, requests).0 as f64 / memory.0 as f64;
    (swings < FEW_SWINGS).then(|| {
        let memory = rounded(memory);
        format!(
            "close to capacity: the queue forgets in about {memory}, so p99 rests on about \
             {swings:.0} of its swings and may be less certain than its interval; raise \
             max_requests"
        )
    })
}

/// Two digits of it.
fn rounded(time: Nanos) -> Nanos {
    let unit = 10_u64.pow(time.0.max(1).ilog10().saturating_sub(1));
    Nanos(time.0 / unit * unit)
}

/// When the start-up is over, and what is uncertain about it.
fn settled(
    bench: &Bench<'_>,
    sections: u32,
    each: Option<u64>,
    floor: Nanos,
    control: &Control,
) -> (Nanos, Vec<String>) {
    let mut pilot = (each.unwrap_or(20_000) / 10).clamp(500, 20_000);
    for _ in 0..3 {
        if let Some(found) = pilot_warmup(bench, sections, pilot, control) {
            return (found.max(floor), Vec::new());
        }
        pilot *= 4;
    }
    let warning = format!(
        "no stationary part found in the first {} requests of a replication; the warm-up is {floor}",
        pilot / 4
    );
    (floor, vec![warning])
}

/// MSER-5 on latencies averaged over replications; the deleted part as the latest time at which
/// any of them reaches it.
fn pilot_warmup(
    bench: &Bench<'_>,
    sections: u32,
    requests: u64,
    control: &Control,
) -> Option<Nanos> {
    // The event engine completes batches in order of time on several instances too.
    let engine = if bench.server.slots() == 1 { bench.engine } else { Engine::Event };
    let bench = Bench { engine, ..*bench };
    let pilots: Vec<Pilot> = (0..sections)
        .into_par_iter()
        .map(|replication| {
            let mut pilot = Pilot::default();
            let portion =
                Portion { replication, measured: Some(requests), measure_from: Nanos::ZERO };
            if !control.stopped() {
                bench.run_under(portion, &mut pilot, Some(control));
                control.add_requests(requests);
            }
            pilot
        })
        .collect();
    let length = pilots.iter().map(|p| p.means.len()).min()?;
    let averaged: Vec<f64> =
        (0..length).map(|i| pilots.iter().map(|p| p.means[i]).sum::<f64>()).collect();
    let deleted = mser5(&averaged)?;
    pilots.iter().filter_map(|p| p.arrivals.get(deleted)).max().map(|at| Nanos(*at))
}

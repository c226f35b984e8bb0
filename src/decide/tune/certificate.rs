//! The recommended setting, simulated afresh.

use super::NoTune;
use super::contest::Candidate;
use super::score::Judge;
use crate::outcome::tune::{Certificate, Violation};
use crate::scenario::{Metric, Objective, Op, Scenario, Threshold};
use crate::study::{Options, must_grow, run};

/// The scenario of a certificate: one policy on one server, thresholds that apply to it, a seed
/// that the search has not used. Running it gives the certificate again.
#[derive(Clone, Debug)]
pub(super) struct Certified {
    pub(super) scenario: Scenario,
    pub(super) at_highest_rate: bool,
}

pub(super) fn certified(
    candidate: &Candidate,
    objective: Objective,
    value: Option<f64>,
) -> Certified {
    let mut server = candidate.server.clone();
    if let (Objective::MinInstances, Some(n)) = (objective, value) {
        server.instances = whole(n);
    }
    let thresholds = candidate.setting().thresholds().into_iter().cloned();
    let mut scenario = Scenario {
        // Fresh streams: a setting that won by luck must not bring its luck along.
        seed: candidate.scenario.seed.wrapping_add(1) & (u64::MAX >> 1),
        servers: vec![server],
        policies: vec![candidate.policy.clone()],
        thresholds: thresholds.collect(),
        curve: None,
        sweep: Vec::new(),
        tune: None,
        ..candidate.scenario.clone()
    };
    let offered = scenario.total_rate_per_s();
    let highest = value.filter(|_| objective == Objective::MaxRate);
    let above = offered.zip(highest).is_some_and(|(offered, highest)| offered > highest);
    if let Some(scaled) = highest.filter(|_| above).and_then(|rate| scenario.with_total_rate(rate))
    {
        scenario = scaled;
    }
    Certified { scenario, at_highest_rate: above }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
fn whole(n: f64) -> u32 {
    n as u32
}

/// The scenario behind the certificate of a result: what `tuned.toml` holds.
///
/// # Errors
/// The search cannot be planned again.
pub fn tuned_scenario(
    loaded: &crate::scenario::Loaded,
    outcome: &crate::outcome::tune::TuneOutcome,
) -> Result<Option<Scenario>, NoTune> {
    let (Some(tune), Some(number)) = (&loaded.scenario.tune, outcome.recommended) else {
        return Ok(None);
    };
    let candidates = super::contest::candidates(loaded, tune)?;
    let value = outcome.settings.get(number).and_then(|s| s.value);
    Ok(candidates.get(number).map(|c| certified(c, tune.objective, value).scenario))
}

/// Simulates the certificate, exactly as `run` would run its scenario.
pub(super) fn certify(
    candidate: &Candidate,
    objective: Objective,
    value: Option<f64>,
    judge: &Judge<'_>,
) -> Result<Certificate, NoTune> {
    let certified = certified(candidate, objective, value);
    let scenario = &certified.scenario;
    let (outcome, ..) = run(scenario, &Options::default(), judge.control);
    if judge.control.stopped() {
        return Err(NoTune::Stopped);
    }
    let Some(cell) = outcome.cells.into_iter().next() else { return Err(NoTune::Stopped) };
    let alone = Candidate {
        coords: candidate.coords.clone(),
        server: scenario.servers[0].clone(),
        policy: scenario.policies[0].clone(),
        scenario: scenario.clone(),
    };
    let setting = alone.setting();
    let exact = !must_grow(&setting.bench()) && judge.exact(&setting).unwrap_or(false);
    let rate = scenario.total_rate_per_s();
    let exact_p99_ms =
        rate.filter(|_| exact).and_then(|rate| setting.exact_latency(rate)).map(|l| l.p99);
    let violation = |t: &Threshold| {
        let (within, allowed) = match (t.metric, t.op) {
            (Metric::Quantile(q), Op::Below | Op::AtMost) => (t.limit, 1.0 - q),
            (Metric::Attainment(ms), Op::Above | Op::AtLeast) => (ms, 1.0 - t.limit),
            _ => return None,
        };
        if t.class.is_some() {
            return None;
        }
        let found = cell.attainment.iter().find(|a| a.within_ms == within)?;
        Some(Violation {
            expr: t.expr.clone(),
            share: 1.0 - found.share,
            ci95: found.ci95.map(|[low, high]| [1.0 - high, 1.0 - low]),
            allowed,
        })
    };
    Ok(Certificate {
        rate_per_s: rate,
        at_highest_rate: certified.at_highest_rate,
        seed: scenario.seed,
        requests: cell.requests.offered,
        replications: cell.replications,
        violations: scenario.thresholds.iter().filter_map(violation).collect(),
        latency_ms: cell.latency_ms,
        exact_p99_ms,
        utilization: cell.utilization,
        mean_batch: cell.batch_size.mean,
    })
}

//! `exact`: the same policies solved numerically instead of simulated.

use super::control::Control;
use super::measure::chart_quantiles;
use super::run::{outcome_frame, policy_info};
use crate::arrivals::{Items, Process};
use crate::exact::{self, Input, NotCovered, Rule, Solution};
use crate::number;
use crate::outcome::{
    Attainment, BatchSize, CdfFile, Cell, HalfWidths, Judgement, Latency, Method, Outcome,
    Requests, SizeCount, Verdict,
};
use crate::policy::{Anchor, Policy};
use crate::scenario::{Labelled, Metric, Op, Scenario, Server, Threshold};
use crate::time::Nanos;
use std::collections::BTreeMap;

/// Solves every policy of a scenario that has an exact solution; what has none is left out with
/// a warning that says why.
#[must_use]
pub fn exact(scenario: &Scenario, control: &Control) -> (Outcome, Vec<CdfFile>) {
    let mut outcome = outcome_frame("exact", scenario);
    let mut files = Vec::new();
    for server in &scenario.servers {
        for policy in &scenario.policies {
            match solved(scenario, server, policy) {
                Ok((cell, solution)) => {
                    let outside = scenario.outside(server).as_ms();
                    files.extend(solution.map(|s| cdf(&cell.policy.label, &s, outside)));
                    outcome.cells.push(cell);
                }
                Err(why) => {
                    let label = scenario.cell_label(server, policy);
                    outcome.warnings.push(format!("{label}: no exact solution: {why}"));
                }
            }
            control.add_cell();
        }
    }
    (outcome, files)
}

/// One policy on one server as a cell, with its solution unless it is overloaded.
///
/// # Errors
/// Why there is no exact solution, in words.
pub fn solved(
    scenario: &Scenario,
    server: &Server,
    policy: &Labelled,
) -> Result<(Cell, Option<Solution>), String> {
    let label = scenario.cell_label(server, policy);
    match solve(scenario, server, &policy.policy) {
        Ok(solution) => Ok((cell(scenario, server, policy, label, &solution), Some(solution))),
        Err(Unsolved::Overloaded(why)) => {
            Ok((overloaded(scenario, server, policy, label, &why), None))
        }
        Err(Unsolved::Uncovered(why) | Unsolved::TooLarge(why)) => Err(why),
    }
}

/// Why a policy has no exact solution.
#[derive(Clone, Debug, PartialEq)]
pub enum Unsolved {
    /// There is no steady state.
    Overloaded(String),
    /// There may be one; it is not covered.
    Uncovered(String),
    /// There is one, with more states than are solved for: the load is too close to capacity.
    TooLarge(String),
}

impl From<String> for Unsolved {
    fn from(why: String) -> Self {
        Self::Uncovered(why)
    }
}

impl From<&str> for Unsolved {
    fn from(why: &str) -> Self {
        Self::Uncovered(why.to_owned())
    }
}

/// The exact steady state of a policy on a server, client delays aside.
///
/// # Errors
/// Why there is none.
pub fn solve(scenario: &Scenario, server: &Server, policy: &Policy) -> Result<Solution, Unsolved> {
    let input = input(scenario)?;
    if server.instances != 1 {
        return Err(format!("it covers one instance, this server has {}", server.instances).into());
    }
    if server.replicas != 1 {
        let what = format!("it covers one server, here are {} behind a balancer", server.replicas);
        return Err(what.into());
    }
    if server.queue_limit.is_some() {
        return Err("it covers an unlimited queue, this server has a queue_limit".into());
    }
    if !server.overhead.holds_nothing() {
        return Err("it covers instances that are held by passes alone".into());
    }
    if server.jitter.kind() != "none" {
        return Err("it covers fixed service times, this server has jitter".into());
    }
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a service time")]
    let service_ms = |n: u32| server.cost.service_ns(n) as f64 / 1e6;
    exact::solve(&input, &rule(policy)?, &service_ms).map_err(|e| match e {
        NotCovered::Overloaded { offered_per_s, capacity_per_s } => Unsolved::Overloaded(format!(
            "OVERLOADED: {}/s offered, capacity {}/s",
            number::rate(offered_per_s),
            number::rate(capacity_per_s)
        )),
        other @ NotCovered::TooLarge { .. } => Unsolved::TooLarge(other.to_string()),
        other => Unsolved::Uncovered(other.to_string()),
    })
}

fn input(scenario: &Scenario) -> Result<Input, String> {
    let [source] = scenario.arrivals.as_slice() else {
        return Err("it covers one source of arrivals".into());
    };
    if source.items != Items::Constant(1) {
        return Err("it covers requests of one item".into());
    }
    if source.timeout.is_some() {
        return Err("it covers patient requests, these have a timeout".into());
    }
    let law = match &source.process {
        Process::Poisson(p) => return Ok(Input::Poisson { rate_per_s: p.rate.per_s() }),
        Process::Mmpp(p) => p.law(),
        Process::OnOff(p) => p.law(),
        other => {
            let kind = other.kind();
            return Err(format!("it covers poisson, mmpp and on-off arrivals, not {kind}"));
        }
    };
    let law = law.map_err(|e| e.what)?;
    let dwells_ms = law.dwells_s.map(|s| s * 1e3);
    Ok(Input::Mmpp2 { rates_per_s: law.rates_per_s, dwells_ms })
}

fn rule(policy: &Policy) -> Result<Rule, String> {
    let Some(law) = policy.law() else {
        return Err(match policy {
            Policy::Dynamic(_) => "preferred_batch_sizes have no exact solution".into(),
            other => format!("it covers the textbook policies, not {}", other.kind()),
        });
    };
    let cap = (law.cap != u32::MAX).then_some(law.cap);
    if law.wait == Nanos::ZERO || law.wait == Nanos::MAX || law.target == 1 {
        let min = if law.wait == Nanos::ZERO { 1 } else { law.target };
        return Ok(Rule::AtLeast { min, cap });
    }
    if law.target < law.cap {
        return Err("min_batch_size together with a timer has none; set max_wait = \"none\"".into());
    }
    let anchor = match law.anchor {
        Anchor::OldestArrival => exact::Anchor::Oldest,
        Anchor::Pickup => exact::Anchor::Pickup,
    };
    Ok(Rule::Timer { cap: law.cap, wait_ms: law.wait.as_ms(), anchor })
}

/// The latency of a solution; client delays are fixed, so they shift the whole law.
#[must_use]
pub fn latency_of(s: &Solution, outside_ms: f64) -> Latency {
    let at = |q: f64| s.quantile_ms(q) + outside_ms;
    let zero = HalfWidths { p999: Some(0.0), ..HalfWidths::default() };
    Latency {
        mean: s.mean_ms() + outside_ms,
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: Some(at(0.999)),
        max: None,
        ci95: Some(zero),
    }
}

fn cell(
    scenario: &Scenario,
    server: &Server,
    policy: &Labelled,
    label: String,
    s: &Solution,
) -> Cell {
    let outside = scenario.outside(server).as_ms();
    let latency = latency_of(s, outside);
    let share = |op: Op, ms: f64| {
        let (below, at_most) = s.cdf(ms - outside);
        if matches!(op, Op::Below | Op::AtLeast) { below } else { at_most }
    };
    let attainment = scenario.thresholds.iter().filter_map(|t| {
        let (within_ms, op) = match t.metric {
            Metric::Quantile(_) => (t.limit, t.op),
            Metric::Attainment(ms) => (ms, Op::AtMost),
            _ => return None,
        };
        Some(Attainment { within_ms, share: share(op, within_ms), ci95: None })
    });
    let thresholds = scenario.applicable(policy);
    Cell {
        coords: BTreeMap::new(),
        policy: policy_info(label, policy),
        method: Method::Exact,
        replications: 1,
        requests: Requests::default(),
        rate_per_s: s.throughput_per_s(),
        capacity_per_s: scenario.capacity_per_s(server, &policy.policy),
        load: Some(s.load()).filter(|l| l.is_finite()),
        stable: true,
        throughput_per_s: s.throughput_per_s(),
        utilization: s.utilization(),
        latency_ms: Some(latency),
        group_latency_ms: None,
        queue_ms: None,
        batch_size: batches(s),
        dispatch_reasons: BTreeMap::new(),
        attainment: attainment.collect(),
        precision: None,
        warmup_ms: 0.0,
        classes: Vec::new(),
        warnings: Vec::new(),
        verdicts: thresholds.into_iter().map(|t| verdict(t, s, outside)).collect(),
        cdf_file: None,
    }
}

/// A policy without a steady state: its latency is named, not averaged, and misses every limit.
fn overloaded(
    scenario: &Scenario,
    server: &Server,
    policy: &Labelled,
    label: String,
    why: &str,
) -> Cell {
    let capacity = scenario.capacity_per_s(server, &policy.policy);
    let offered = scenario.total_rate_per_s().unwrap_or(0.0);
    let about_latency = |t: &&Threshold| t.metric.about_latency();
    let failed = scenario.applicable(policy).into_iter().filter(about_latency).map(|t| Verdict {
        expr: t.expr.clone(),
        judgement: Judgement::Fail,
        evidence: why.to_owned(),
    });
    Cell {
        coords: BTreeMap::new(),
        policy: policy_info(label, policy),
        method: Method::Exact,
        replications: 1,
        requests: Requests::default(),
        rate_per_s: offered,
        capacity_per_s: capacity,
        load: capacity.map(|c| offered / c),
        stable: false,
        throughput_per_s: capacity.unwrap_or(0.0),
        utilization: 1.0,
        latency_ms: None,
        group_latency_ms: None,
        queue_ms: None,
        batch_size: BatchSize {
            mean: f64::from(policy.policy.cap().unwrap_or(0)),
            histogram: vec![],
        },
        dispatch_reasons: BTreeMap::new(),
        attainment: Vec::new(),
        precision: None,
        warmup_ms: 0.0,
        classes: Vec::new(),
        warnings: vec![why.to_owned()],
        verdicts: failed.collect(),
        cdf_file: None,
    }
}

/// Batch sizes in millionths of the batches; the solution does not tell reasons apart.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to a million")]
fn batches(s: &Solution) -> BatchSize {
    let histogram = (1u32..).zip(s.batch_pmf().iter().skip(1)).filter_map(|(size, p)| {
        let millionths = (p * 1e6).round() as u64;
        let by_reason = BTreeMap::from([("all".to_owned(), millionths)]);
        (millionths > 0).then_some(SizeCount { size, by_reason })
    });
    BatchSize { mean: s.mean_batch(), histogram: histogram.collect() }
}

fn verdict(t: &Threshold, s: &Solution, outside: f64) -> Verdict {
    let (value, unit) = match t.metric {
        Metric::Quantile(q) => (s.quantile_ms(q) + outside, " ms"),
        Metric::Mean => (s.mean_ms() + outside, " ms"),
        Metric::Attainment(ms) => (s.cdf(ms - outside).1, ""),
        Metric::Throughput => (s.throughput_per_s(), "/s"),
        Metric::Rejected | Metric::Expired => (0.0, ""),
        // Groups have no exact solution, and thresholds about them need a source of them.
        Metric::GroupQuantile(_) | Metric::GroupMean => (f64::NAN, " ms"),
    };
    let met = match t.op {
        Op::Below => value < t.limit,
        Op::AtMost => value <= t.limit,
        Op::Above => value > t.limit,
        Op::AtLeast => value >= t.limit,
    };
    Verdict {
        expr: t.expr.clone(),
        judgement: if met { Judgement::Pass } else { Judgement::Fail },
        evidence: format!("exactly {value:.6}{unit}"),
    }
}

fn cdf(label: &str, s: &Solution, outside: f64) -> CdfFile {
    let quantiles: Vec<f64> = chart_quantiles().collect();
    CdfFile {
        label: label.to_owned(),
        latency_ms: quantiles.iter().map(|q| s.quantile_ms(q.max(1e-9)) + outside).collect(),
        quantiles,
        half_width_ms: Vec::new(),
    }
}

//! Thresholds against what was measured.

use super::cell::Measured;
use super::measure::rates;
use crate::outcome::{Judgement, Verdict};
use crate::record::{LatencyStore, Summary};
use crate::scenario::{Labelled, Metric, Op, Scenario, Threshold};
use crate::stats::{Evidence, half_width, holm};

/// Level at which a verdict is given.
const LEVEL: f64 = 0.05;

/// The thresholds that apply to a policy: those that name it, and those that name none, which
/// are for policies with `guard = true` where there are any, else for all.
pub(super) fn applicable<'a>(scenario: &'a Scenario, policy: &Labelled) -> Vec<&'a Threshold> {
    let any_guard = scenario.policies.iter().any(|p| p.guard);
    scenario
        .thresholds
        .iter()
        .filter(|t| match &t.policy {
            Some(label) => *label == policy.label,
            None => policy.guard || !any_guard,
        })
        .collect()
}

/// Latency limits of all thresholds in nanoseconds, increasing. A strict limit is met by the
/// nanosecond before it.
#[must_use]
pub fn limits_ns(thresholds: &[Threshold]) -> Vec<u64> {
    let mut limits: Vec<u64> = thresholds.iter().filter_map(limit_ns).collect();
    limits.sort_unstable();
    limits.dedup();
    limits
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn limit_ns(threshold: &Threshold) -> Option<u64> {
    let ns = |ms: f64| (ms * 1e6).round() as u64;
    match (threshold.metric, threshold.op) {
        (Metric::Quantile(_), Op::Below | Op::AtLeast) => Some(ns(threshold.limit).max(1) - 1),
        (Metric::Quantile(_), Op::AtMost | Op::Above) => Some(ns(threshold.limit)),
        (Metric::Attainment(within), _) => Some(ns(within)),
        _ => None,
    }
}

/// What one threshold is judged on.
struct Case {
    evidence: Evidence,
    words: String,
}

/// Judges thresholds together (Holm); an overloaded cell fails every latency threshold.
pub(super) fn judge<L: LatencyStore>(
    thresholds: &[&Threshold],
    limits_ns: &[u64],
    measured: &Measured<L>,
    instances: u32,
    overload: Option<&str>,
) -> Vec<Verdict> {
    let cases: Vec<Case> =
        thresholds.iter().map(|t| case(t, limits_ns, measured, instances)).collect();
    let p_values: Vec<Option<f64>> = cases.iter().map(|c| c.evidence.p_value()).collect();
    let known: Vec<f64> = p_values.iter().map(|p| p.unwrap_or(0.0)).collect();
    let clear = holm(&known, LEVEL);
    thresholds
        .iter()
        .zip(&cases)
        .enumerate()
        .map(|(i, (threshold, case))| {
            let about_latency = matches!(
                threshold.metric,
                Metric::Quantile(_) | Metric::Mean | Metric::Attainment(_)
            );
            if let Some(overload) = overload
                && about_latency
            {
                return Verdict {
                    expr: threshold.expr.clone(),
                    judgement: Judgement::Fail,
                    evidence: overload.to_owned(),
                };
            }
            let judgement = match (clear[i], case.evidence.met) {
                (false, _) => Judgement::Inconclusive,
                (true, true) => Judgement::Pass,
                (true, false) => Judgement::Fail,
            };
            let alone = if p_values[i].is_none() { " (one replay, no ±)" } else { "" };
            let evidence = format!("{}{alone}", case.words);
            Verdict { expr: threshold.expr.clone(), judgement, evidence }
        })
        .collect()
}

fn case<L: LatencyStore>(
    threshold: &Threshold,
    limits_ns: &[u64],
    measured: &Measured<L>,
    instances: u32,
) -> Case {
    let at = limit_ns(threshold).and_then(|ns| limits_ns.binary_search(&ns).ok());
    let offered = Some(measured.pooled.offered);
    match threshold.metric {
        // "p(q) is below t" is the statement "at most 1 − q of the offered requests miss t".
        Metric::Quantile(q) => {
            let missed = |s: &Summary<L>| 1.0 - share(within(s, at), s.offered);
            let low_wanted = matches!(threshold.op, Op::Below | Op::AtMost);
            let op = if low_wanted { Op::AtMost } else { Op::Above };
            let evidence = evidence(measured, missed, op, 1.0 - q, offered);
            let words = format!(
                "{} of the offered requests miss {}, allowed {}",
                percent(&evidence),
                trim(threshold.limit, "ms"),
                trim((1.0 - q) * 100.0, "%"),
            );
            Case { evidence, words }
        }
        Metric::Attainment(_) => {
            let met = |s: &Summary<L>| share(within(s, at), s.offered);
            let evidence = evidence(measured, met, threshold.op, threshold.limit, offered);
            let words = format!("attainment {}", percent(&evidence));
            Case { evidence, words }
        }
        Metric::Mean => {
            let mean = |s: &Summary<L>| s.latency_sum_ns as f64 / s.counts.completed as f64 / 1e6;
            let evidence = evidence(measured, mean, threshold.op, threshold.limit, None);
            let words = format!("mean {}", plus_minus(&evidence, 1.0, " ms"));
            Case { evidence, words }
        }
        Metric::Throughput => {
            let rate = |s: &Summary<L>| rates(s, instances).0;
            let evidence = evidence(measured, rate, threshold.op, threshold.limit, None);
            let words = format!("throughput {}", plus_minus(&evidence, 1.0, "/s"));
            Case { evidence, words }
        }
        Metric::Rejected => share_case(threshold, measured, "rejected", |s| s.counts.rejected),
        Metric::Expired => share_case(threshold, measured, "expired", |s| s.counts.expired),
    }
}

fn share_case<L: LatencyStore>(
    threshold: &Threshold,
    measured: &Measured<L>,
    name: &str,
    count: impl Fn(&Summary<L>) -> u64,
) -> Case {
    let value = |s: &Summary<L>| share(count(s), s.offered);
    let offered = Some(measured.pooled.offered);
    let evidence = evidence(measured, value, threshold.op, threshold.limit, offered);
    let words = format!("{name} {}", percent(&evidence));
    Case { evidence, words }
}

fn within<L>(s: &Summary<L>, at: Option<usize>) -> u64 {
    at.and_then(|i| s.within.get(i).copied()).unwrap_or(0)
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn evidence<L>(
    measured: &Measured<L>,
    value: impl Fn(&Summary<L>) -> f64,
    op: Op,
    limit: f64,
    counted: Option<u64>,
) -> Evidence {
    let pooled = value(&measured.pooled);
    // Shares are ratios of counts: a difference in the last bits is none.
    let close = (pooled - limit).abs() <= 1e-12 * limit.abs().max(1e-3);
    let met = match op {
        Op::Below => pooled < limit && !close,
        Op::AtMost => pooled < limit || close,
        Op::Above => pooled > limit && !close,
        Op::AtLeast => pooled > limit || close,
    };
    let sections = measured.sections.iter().map(value).collect();
    Evidence { value: pooled, limit, met, sections, counted }
}

fn plus_minus(e: &Evidence, scale: f64, unit: &str) -> String {
    let value = e.value * scale;
    match half_width(e.value, &e.sections) {
        Some(half) => format!("{value:.4} ± {:.2}{unit}", half * scale),
        None => format!("{value:.4}{unit}"),
    }
}

fn percent(e: &Evidence) -> String {
    match half_width(e.value, &e.sections) {
        Some(half) => {
            let (low, high) = ((e.value - half).max(0.0), (e.value + half).min(1.0));
            format!(
                "{:.3} % (95 % interval {:.3}–{:.3} %)",
                e.value * 100.0,
                low * 100.0,
                high * 100.0
            )
        }
        None => format!("{:.3} %", e.value * 100.0),
    }
}

/// A number without trailing zeros, and its unit.
fn trim(value: f64, unit: &str) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    format!("{rounded} {unit}")
}

/// The limits of [`limits_ns`] in milliseconds as the thresholds write them.
pub(super) fn limits_ms(thresholds: &[Threshold]) -> Vec<f64> {
    let written = |ns: u64| {
        let of = |t: &&Threshold| limit_ns(t) == Some(ns);
        thresholds.iter().find(of).map(|t| match t.metric {
            Metric::Attainment(within) => within,
            _ => t.limit,
        })
    };
    limits_ns(thresholds).into_iter().filter_map(written).collect()
}

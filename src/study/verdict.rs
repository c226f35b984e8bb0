//! Thresholds against what was measured.

use super::cell::Measured;
use super::measure::rates;
use crate::outcome::{Judgement, Verdict};
use crate::record::{Counts, GroupSummary, LatencyStore, Summary};
use crate::scenario::{Metric, Op, Threshold};
use crate::stats::{Evidence, half_width, holm};

/// Level at which a verdict is given.
const LEVEL: f64 = 0.05;

/// Latency limits of all thresholds in nanoseconds, increasing. A strict limit is met by the
/// nanosecond before it.
#[must_use]
pub fn limits_ns(thresholds: &[Threshold]) -> Vec<u64> {
    let mut limits: Vec<u64> = thresholds.iter().filter_map(limit_ns).collect();
    limits.sort_unstable();
    limits.dedup();
    limits
}

/// The same for the thresholds about groups.
pub(super) fn group_limits_ns(thresholds: &[Threshold]) -> Vec<u64> {
    let about = |t: &&Threshold| matches!(t.metric, Metric::GroupQuantile(_));
    let mut limits: Vec<u64> = thresholds.iter().filter(about).map(time_limit_ns).collect();
    limits.sort_unstable();
    limits.dedup();
    limits
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn ns(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}

/// The longest time in nanoseconds that is on the low side of a threshold about a time.
fn time_limit_ns(threshold: &Threshold) -> u64 {
    match threshold.op {
        Op::Below | Op::AtLeast => ns(threshold.limit).max(1) - 1,
        Op::AtMost | Op::Above => ns(threshold.limit),
    }
}

fn limit_ns(threshold: &Threshold) -> Option<u64> {
    match threshold.metric {
        Metric::Quantile(_) => Some(time_limit_ns(threshold)),
        Metric::Attainment(within) => Some(ns(within)),
        _ => None,
    }
}

/// What thresholds refer to.
pub(super) struct Context<'a> {
    /// The limits of [`limits_ns`].
    pub(super) limits_ns: &'a [u64],
    /// Names of the classes, in order.
    pub(super) classes: &'a [String],
    /// Instances of the server.
    pub(super) instances: u32,
}

/// What one threshold is judged on.
struct Case {
    evidence: Evidence,
    words: String,
}

/// Judges thresholds together (Holm); an overloaded cell fails every latency threshold.
pub(super) fn judge<L: LatencyStore>(
    thresholds: &[&Threshold],
    context: &Context<'_>,
    measured: &Measured<L>,
    overload: Option<&str>,
) -> Vec<Verdict> {
    let cases: Vec<Case> = thresholds.iter().map(|t| case(t, context, measured)).collect();
    let p_values: Vec<Option<f64>> = cases.iter().map(|c| c.evidence.p_value()).collect();
    let known: Vec<f64> = p_values.iter().map(|p| p.unwrap_or(0.0)).collect();
    let clear = holm(&known, LEVEL);
    thresholds
        .iter()
        .zip(&cases)
        .enumerate()
        .map(|(i, (threshold, case))| {
            if let Some(overload) = overload
                && threshold.metric.about_latency()
            {
                return Verdict {
                    expr: threshold.expr.clone(),
                    judgement: Judgement::Fail,
                    evidence: overload.to_owned(),
                };
            }
            let nothing = measured.pooled.offered == 0;
            let judgement = match (clear[i] && !nothing, case.evidence.met) {
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

/// The requests a threshold is about: all, or those of one class.
struct View<'a> {
    counts: &'a Counts,
    offered: u64,
    latency_sum_ns: u128,
    within: &'a [u64],
    throughput_per_s: f64,
}

/// The requests of the class numbered `class` in a summary, all of them without one.
#[expect(clippy::cast_precision_loss, reason = "a share of a rate")]
fn view<L>(s: &Summary<L>, class: Option<usize>, instances: u32) -> View<'_> {
    let all = View {
        counts: &s.counts,
        offered: s.offered,
        latency_sum_ns: s.latency_sum_ns,
        within: &s.within,
        throughput_per_s: rates(s, instances).0,
    };
    let Some(c) = class.and_then(|i| s.classes.get(i)) else { return all };
    let part = c.counts.completed as f64 / s.counts.completed.max(1) as f64;
    View {
        counts: &c.counts,
        offered: c.counts.total(),
        latency_sum_ns: c.latency_sum_ns,
        within: &c.within,
        throughput_per_s: all.throughput_per_s * part,
    }
}

/// What a threshold is judged on: for a latency quantile the share of requests that miss it.
pub(super) fn evidence_of<L: LatencyStore>(
    threshold: &Threshold,
    context: &Context<'_>,
    measured: &Measured<L>,
) -> Evidence {
    case(threshold, context, measured).evidence
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn case<L: LatencyStore>(
    threshold: &Threshold,
    context: &Context<'_>,
    measured: &Measured<L>,
) -> Case {
    let class = threshold.class.as_ref();
    let class = class.and_then(|name| context.classes.iter().position(|c| c == name));
    let at = limit_ns(threshold).and_then(|ns| context.limits_ns.binary_search(&ns).ok());
    let within = |v: &View<'_>| at.and_then(|i| v.within.get(i).copied()).unwrap_or(0);
    let offered = Some(view(&measured.pooled, class, context.instances).offered);
    let known = |value: &dyn Fn(&View<'_>) -> f64, op, limit, counted| {
        let value = |s: &Summary<L>| value(&view(s, class, context.instances));
        evidence(measured, value, op, limit, counted)
    };
    let simple = |name: &str, count: &dyn Fn(&Counts) -> u64| {
        let value = |v: &View<'_>| share(count(v.counts), v.offered);
        let evidence = known(&value, threshold.op, threshold.limit, offered);
        let words = format!("{name} {}", percent(&evidence));
        Case { evidence, words }
    };
    match threshold.metric {
        // "p(q) is below t" is the statement "at most 1 − q of the offered requests miss t".
        Metric::Quantile(q) => {
            let missed = |v: &View<'_>| 1.0 - share(within(v), v.offered);
            let evidence = known(&missed, missing(threshold.op), 1.0 - q, offered);
            let words = missed_words(&evidence, threshold, q, "requests");
            Case { evidence, words }
        }
        Metric::Attainment(_) => {
            let met = |v: &View<'_>| share(within(v), v.offered);
            let evidence = known(&met, threshold.op, threshold.limit, offered);
            let words = format!("attainment {}", percent(&evidence));
            Case { evidence, words }
        }
        Metric::Mean => {
            let mean = |v: &View<'_>| v.latency_sum_ns as f64 / v.counts.completed as f64 / 1e6;
            let evidence = known(&mean, threshold.op, threshold.limit, None);
            let words = format!("mean {}", plus_minus(&evidence, 1.0, " ms"));
            Case { evidence, words }
        }
        Metric::Throughput => {
            let rate = |v: &View<'_>| v.throughput_per_s;
            let evidence = known(&rate, threshold.op, threshold.limit, None);
            let words = format!("throughput {}", plus_minus(&evidence, 1.0, "/s"));
            Case { evidence, words }
        }
        Metric::Rejected => simple("rejected", &|c| c.rejected),
        Metric::Expired => simple("expired", &|c| c.expired),
        Metric::GroupQuantile(_) | Metric::GroupMean => group_case(threshold, measured),
    }
}

/// The same for a threshold about groups; an incomplete group misses every limit.
#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn group_case<L: LatencyStore>(threshold: &Threshold, measured: &Measured<L>) -> Case {
    let Metric::GroupQuantile(q) = threshold.metric else {
        let mean = |s: &Summary<L>| {
            let Some(g) = &s.groups else { return f64::NAN };
            g.latency_sum_ns as f64 / g.completed as f64 / 1e6
        };
        let evidence = evidence(measured, mean, threshold.op, threshold.limit, None);
        let words = format!("mean group latency {}", plus_minus(&evidence, 1.0, " ms"));
        return Case { evidence, words };
    };
    let limit = time_limit_ns(threshold);
    let missed = |s: &Summary<L>| {
        let Some(g) = &s.groups else { return f64::NAN };
        let at = g.limits_ns.binary_search(&limit).ok();
        let within = at.and_then(|i| g.within.get(i).copied()).unwrap_or(0);
        1.0 - share(within, g.offered())
    };
    let offered = measured.pooled.groups.as_ref().map_or(0, GroupSummary::offered);
    let evidence = evidence(measured, missed, missing(threshold.op), 1.0 - q, Some(offered));
    let words = missed_words(&evidence, threshold, q, "groups");
    Case { evidence, words }
}

/// How the share that misses the limit of a quantile compares: "p(q) is below t" is the statement
/// "at most 1 − q miss t".
fn missing(op: Op) -> Op {
    if matches!(op, Op::Below | Op::AtMost) { Op::AtMost } else { Op::Above }
}

fn missed_words(e: &Evidence, threshold: &Threshold, q: f64, who: &str) -> String {
    format!(
        "{} of the offered {who} miss {}, allowed {}",
        percent(e),
        trim(threshold.limit, "ms"),
        trim((1.0 - q) * 100.0, "%"),
    )
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

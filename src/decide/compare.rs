//! `compare`: two results, number by number.

use super::baseline::{digest, key_changes};
use super::change::{difference, estimate, is_judged, pair_up, shifts, steady};
use crate::number::{points_or_percent, quantity};
use crate::outcome::{
    Baseline, Better, Cell, CellComparison, Change, Comparison, Finding, Judgement, LimitCheck,
    Method, Outcome, RecordedCell, SCHEMA, Sections, Series, Side, StandardError,
};
use crate::scenario::{ChangeLimit, Metric, Op};
use crate::stats::{Difference, Measure, holm, t_quantile};
use crate::study::tool;
use std::collections::BTreeMap;

/// Level at which conditions are judged, all together.
const LEVEL: f64 = 0.05;

/// A stored result as a baseline. Without its sections only the numbers that it gives an interval
/// for can be compared, and nothing can be paired.
#[must_use]
pub fn from_outcome(outcome: &Outcome, sections: Option<&Sections>) -> Baseline {
    let kept = sections.map(|s| s.cells.as_slice()).unwrap_or_default();
    // Cells of a sweep share labels; only runs keep sections, in the order of their cells.
    let fits = kept.len() == outcome.cells.len()
        && kept.iter().zip(&outcome.cells).all(|(k, c)| k.label == c.policy.label);
    let cells = outcome.cells.iter().enumerate().map(|(i, cell)| RecordedCell {
        cell: cell.clone(),
        series: if fits { kept[i].series.clone() } else { stated(cell) },
    });
    Baseline {
        schema: SCHEMA,
        study: "baseline".into(),
        tool: outcome.tool.clone(),
        scenario_sha256: digest(&outcome.scenario),
        scenario: outcome.scenario.clone(),
        seed: outcome.seed,
        rng: outcome.rng.clone(),
        cells: cells.collect(),
    }
}

/// The numbers that a cell itself states with their intervals.
fn stated(cell: &Cell) -> Vec<Series> {
    let mut all = Vec::new();
    let t = t_quantile(0.975, u64::from(cell.replications.saturating_sub(1)));
    let mut put = |metric: String, unit: &str, better, value: f64, half: Option<f64>| {
        let replications = cell.replications;
        let error = half.map(|half| if half == 0.0 { 0.0 } else { half / t });
        let error = error.map(|value| StandardError { value, replications });
        all.push(Series { metric, unit: unit.into(), better, value, sections: vec![], error });
    };
    let groups = cell.group_latency_ms.as_ref().map(|g| ("group.", &g.latency));
    for (of, l) in cell.latency_ms.iter().map(|l| ("", l)).chain(groups) {
        let ci = l.ci95.as_ref();
        let rows = [
            ("mean", Some(l.mean), ci.map(|c| c.mean)),
            ("p(50)", Some(l.p50), ci.map(|c| c.p50)),
            ("p(90)", Some(l.p90), ci.map(|c| c.p90)),
            ("p(95)", Some(l.p95), ci.map(|c| c.p95)),
            ("p(99)", Some(l.p99), ci.map(|c| c.p99)),
            ("p(99.9)", l.p999, ci.and_then(|c| c.p999)),
        ];
        for (metric, value, half) in rows {
            if let Some(value) = value {
                put(format!("{of}{metric}"), "ms", Better::Lower, value, half);
            }
        }
    }
    let surely = matches!(cell.method, Method::Exact | Method::Trace);
    let none = (cell.method == Method::Exact).then_some(0.0);
    for a in &cell.attainment {
        // A side that ends at 0 or 1 is cut off.
        let half = a.ci95.map(|[low, high]| (a.share - low).max(high - a.share)).or(none);
        if half.is_some() || surely {
            let metric = format!("attainment({}ms)", a.within_ms);
            put(metric, "share", Better::Higher, a.share, half);
        }
    }
    // A sampled result states these without an interval.
    if surely {
        put("throughput".into(), "/s", Better::Higher, cell.throughput_per_s, none);
        put("busy".into(), "share", Better::Neither, cell.utilization, none);
        put("mean batch".into(), "", Better::Neither, cell.batch_size.mean, none);
    }
    all
}

/// Two cells that are held against each other.
struct Match<'a> {
    label: String,
    coords: BTreeMap<String, String>,
    a: &'a RecordedCell,
    b: &'a RecordedCell,
}

/// Compares two results; `a` and `b` are their files as they were given.
///
/// # Errors
/// No cell is in both, or a condition is about a number that neither has; in words.
pub fn compare(
    (file_a, a): (&str, &Baseline),
    (file_b, b): (&str, &Baseline),
    margin: f64,
    limits: &[ChangeLimit],
) -> Result<Comparison, String> {
    let (matches, mut warnings) = matched(a, b);
    if matches.is_empty() {
        let labels = |r: &Baseline| {
            r.cells.iter().map(|c| c.cell.policy.label.as_str()).collect::<Vec<_>>().join(", ")
        };
        return Err(format!("no policy is in both: {} and {}", labels(a), labels(b)));
    }
    let paired = super::baseline::is_paired(a, b);
    if [a, b].iter().any(|r| r.cells.iter().any(|c| c.series.iter().all(|s| s.sections.is_empty())))
    {
        warnings.push(
            "a result without sections.json is compared by its intervals, unpaired; throughput \
             and batch sizes have none"
                .into(),
        );
    }
    let cells = changes(&matches, paired, margin);
    let limits = judge(&matches, paired, limits)?;
    let finding = limits.iter().map(|l| match l.judgement {
        Judgement::Pass => Finding::Pass,
        Judgement::Inconclusive => Finding::Inconclusive,
        Judgement::Fail => Finding::Regression,
    });
    let finding = finding.max().unwrap_or(Finding::Pass);
    let side = |file: &str, r: &Baseline| Side {
        file: file.to_owned(),
        tool: r.tool.clone(),
        seed: r.seed,
    };
    Ok(Comparison {
        schema: SCHEMA,
        tool: tool(),
        a: side(file_a, a),
        b: side(file_b, b),
        paired,
        margin,
        scenario_changes: key_changes(&a.scenario, &b.scenario),
        cells,
        limits,
        warnings,
        finding,
    })
}

/// The cells that both have; where each has one only, these two whatever they are called.
fn matched<'a>(a: &'a Baseline, b: &'a Baseline) -> (Vec<Match<'a>>, Vec<String>) {
    if let ([one], [other]) = (a.cells.as_slice(), b.cells.as_slice()) {
        let (was, is) = (&one.cell.policy.label, &other.cell.policy.label);
        let label = if was == is { was.clone() } else { format!("{was} → {is}") };
        let coords = one.cell.coords.clone();
        return (vec![Match { label, coords, a: one, b: other }], Vec::new());
    }
    let mut matches = Vec::new();
    let mut warnings = Vec::new();
    for one in &a.cells {
        let label = one.cell.policy.label.clone();
        match b.cells.iter().find(|other| other.cell.key() == one.cell.key()) {
            Some(other) => {
                let coords = one.cell.coords.clone();
                matches.push(Match { label, coords, a: one, b: other });
            }
            None => warnings.push(format!("{label} is in the first result only")),
        }
    }
    for other in &b.cells {
        if !a.cells.iter().any(|one| one.cell.key() == other.cell.key()) {
            warnings.push(format!("{} is in the second result only", other.cell.policy.label));
        }
    }
    (matches, warnings)
}

/// All changes, judged together.
fn changes(matches: &[Match<'_>], paired: bool, margin: f64) -> Vec<CellComparison> {
    let mut pairs = Vec::new();
    let mut spans = Vec::new();
    for m in matches {
        let start = pairs.len();
        let both = pair_up(&m.a.series, &m.b.series).into_iter();
        pairs.extend(both.filter(|(_, new)| is_judged(&new.metric)));
        spans.push(start..pairs.len());
    }
    let judged = shifts(&pairs, paired, margin);
    let cells = matches.iter().zip(spans).map(|(m, span)| {
        let steady = steady(&m.a.cell, &m.b.cell, margin);
        let changes: Vec<Change> = steady.into_iter().chain(judged[span].to_vec()).collect();
        CellComparison { label: m.label.clone(), coords: m.coords.clone(), changes }
    });
    cells.collect()
}

/// A condition on one cell before it is judged.
struct Case<'a> {
    limit: &'a ChangeLimit,
    label: &'a str,
    /// Absent where one of the two overloads: then the words say it all.
    found: Option<(Difference, String)>,
    overloaded: Option<Judgement>,
}

/// Judges all conditions together (Holm), like thresholds.
fn judge(
    matches: &[Match<'_>],
    paired: bool,
    limits: &[ChangeLimit],
) -> Result<Vec<LimitCheck>, String> {
    let mut cases = Vec::new();
    for limit in limits {
        let start = cases.len();
        cases.extend(matches.iter().filter_map(|m| case(limit, m, paired)));
        // An overloaded cell has no latency, whatever it is called.
        let stable = matches.iter().any(|m| m.a.cell.stable && m.b.cell.stable);
        let none = cases[start..].iter().all(|c: &Case<'_>| c.found.is_none());
        if cases.len() == start || (none && stable) {
            return Err(missing(limit, matches));
        }
    }
    let p = |c: &Case<'_>| {
        let Some((d, _)) = &c.found else { return 0.0 };
        2.0 * d.p_above(c.limit.limit).min(d.p_below(c.limit.limit))
    };
    let p_values: Vec<f64> = cases.iter().map(p).collect();
    let clear = holm(&p_values, LEVEL);
    let judged = cases.into_iter().zip(clear).map(|(case, clear)| {
        let holds = case.found.as_ref().is_some_and(|(d, _)| holds(d, case.limit));
        let judgement = match (case.overloaded, clear, holds) {
            (Some(judgement), ..) => judgement,
            (None, false, _) => Judgement::Inconclusive,
            (None, true, true) => Judgement::Fail,
            (None, true, false) => Judgement::Pass,
        };
        let evidence = case.found.map_or_else(|| "overloaded".to_owned(), |(_, words)| words);
        let (expr, label) = (case.limit.expr.clone(), case.label.to_owned());
        LimitCheck { expr, label, judgement, evidence }
    });
    Ok(judged.collect())
}

fn holds(d: &Difference, limit: &ChangeLimit) -> bool {
    match limit.op {
        Op::Above => d.value > limit.limit,
        Op::AtLeast => d.value >= limit.limit,
        Op::Below => d.value < limit.limit,
        Op::AtMost => d.value <= limit.limit,
    }
}

fn case<'a>(limit: &'a ChangeLimit, m: &'a Match<'_>, paired: bool) -> Option<Case<'a>> {
    let about_latency =
        limit.metric.about_latency() && !matches!(limit.metric, Metric::Attainment(_));
    let (a, b) = (m.a.cell.stable, m.b.cell.stable);
    let label = m.label.as_str();
    if about_latency && !(a && b) {
        let upwards = matches!(limit.op, Op::Above | Op::AtLeast);
        // A queue without end is above every limit.
        let judgement = match (a, b) {
            (true, false) if upwards => Judgement::Fail,
            (false, true) if !upwards => Judgement::Fail,
            (false, false) => Judgement::Inconclusive,
            _ => Judgement::Pass,
        };
        return Some(Case { limit, label, found: None, overloaded: Some(judgement) });
    }
    let name = limit.name();
    let find = |cell: &'a RecordedCell| cell.series.iter().find(|s| s.metric == name);
    let (old, new) = (find(m.a)?, find(m.b)?);
    let d = if limit.relative {
        difference(old, new, paired)
    } else {
        Difference::between(estimate(old), estimate(new), Measure::Absolute, paired)
    };
    let scaled = |v: f64, signed: bool| {
        if limit.relative || old.unit == "share" {
            return points_or_percent(v, &old.unit, signed);
        }
        let sign = if signed && v >= 0.0 { "+" } else { "" };
        format!("{sign}{}", quantity(v, &old.unit))
    };
    let half = d.half_width().map_or_else(String::new, |h| format!(" ±{}", scaled(h, false)));
    let words = format!(
        "{} → {}, {}{half}",
        quantity(old.value, &old.unit),
        quantity(new.value, &new.unit),
        scaled(d.value, true)
    );
    Some(Case { limit, label, found: Some((d, words)), overloaded: None })
}

fn missing(limit: &ChangeLimit, matches: &[Match<'_>]) -> String {
    let mut known: Vec<&str> = matches
        .iter()
        .flat_map(|m| &m.a.series)
        .map(|s| s.metric.as_str())
        .filter(|m| !m.starts_with("reason ") && !m.contains(" of "))
        .collect();
    known.sort_unstable();
    known.dedup();
    let name = limit.name();
    format!("{name} is not in both results; they have {}", known.join(", "))
}

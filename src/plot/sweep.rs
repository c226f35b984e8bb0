//! A metric along one axis of a sweep, for all policies that vary along it; the others are
//! reference lines.

use super::Chart;
use super::figure::{Axis, Figure, Ink, LegendAt, LegendEntry, Mark, Panel, Sample, Scale, Unit};
use super::grid::{SweepAxis, axes_of, table};
use super::heatmap::Metric;
use super::palette::{INK, SHORT, SOLID};
use super::policies::{
    Policies, Standing, details, footer, intervals, joined, objective, objectives, offered, shown,
    standing, titled,
};
use crate::outcome::{Cell, Outcome, Slo};

/// One policy along the axis: its cells by position.
struct Along<'a> {
    label: &'a str,
    axis: SweepAxis<'a>,
    cells: Vec<(usize, &'a Cell)>,
}

/// The chart along the axis `path`.
pub(super) fn chart(outcome: &Outcome, metric: Metric, path: &str, policies: &Policies) -> Chart {
    let mut varying = Vec::new();
    let mut fixed = Vec::new();
    for label in policies.labels() {
        let mut axes = axes_of(outcome, label);
        if axes.is_empty() {
            fixed.extend(outcome.cells.iter().find(|c| c.policy.label == *label));
        } else if axes.len() == 1 && axes[0].path == path {
            let axis = axes.remove(0);
            let cells = table(outcome, label, (&axis, None), None);
            let cells = cells.into_iter().map(|((column, _), cell)| (column, cell)).collect();
            varying.push(Along { label, axis, cells });
        }
    }
    let slos = objectives(outcome);
    let used = || varying.iter().flat_map(|a| a.cells.iter().map(|c| c.1)).chain(fixed.clone());
    let panel = panel(metric, &varying, &fixed, policies, &slos);
    let label = if let [only] = &varying[..] { only.label } else { "" };
    let across = varying.first().map_or(path, |a| a.axis.name(label));
    let figure = Figure {
        title: titled(outcome, &format!("{} over {across}", metric.title())),
        subtitle: vec![joined(&[offered(used()), intervals("bars", used())])],
        panels: vec![panel],
        columns: 1,
        legend: legend(&varying, &fixed, policies, &slos),
        legend_at: LegendAt::Right,
        footer: footer(outcome, used()),
        width: 900,
        height: 560,
    };
    Chart { name: format!("sweep-{}", super::slug(path)), figure }
}

/// The horizontal axis, and where the values are on it.
#[expect(clippy::cast_precision_loss, reason = "a handful of values")]
fn across(axis: &SweepAxis<'_>, label: &str) -> (Axis, Vec<f64>) {
    let n = axis.written.len();
    if !axis.numeric {
        let names = (0..n).map(|i| axis.value(i)).collect();
        let places = (0..n).map(|i| i as f64 + 0.5).collect();
        return (Axis::of_categories(&axis.caption(label), names), places);
    }
    let lo = axis.numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let hi = axis.numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let scale = if lo > 0.0 && hi > 30.0 * lo { Scale::Log } else { Scale::Linear };
    let unit = match axis.unit {
        "ms" => Unit::Ms,
        "/s" => Unit::PerS,
        "%" => Unit::Percent,
        _ => Unit::None,
    };
    let mut fitted = Axis::fit(axis.name(label), unit, scale, axis.numbers.iter().copied());
    // From zero only where zero is near.
    if scale == Scale::Linear && lo < hi && lo > 0.3 * hi {
        let pad = 0.04 * (hi - lo);
        (fitted.lo, fitted.hi) = (lo - pad, hi + pad);
    }
    (fitted, axis.numbers.clone())
}

fn panel(
    metric: Metric,
    varying: &[Along<'_>],
    fixed: &[&Cell],
    policies: &Policies,
    slos: &[&Slo],
) -> Panel {
    let label = if let [only] = varying { only.label } else { "" };
    let (x, places) = varying.first().map_or_else(
        || (Axis::fit("", Unit::None, Scale::Linear, std::iter::empty()), Vec::new()),
        |a| across(&a.axis, label),
    );
    let read = |cell: &Cell| if cell.stable { metric.of(cell) } else { None };
    let swept = || varying.iter().flat_map(|a| a.cells.iter()).filter_map(|c| read(c.1));
    let still = || fixed.iter().filter_map(|c| read(c));
    let drawn_slos: Vec<&&Slo> = slos
        .iter()
        .filter(|s| match metric {
            Metric::P99 => (s.quantile - 0.99).abs() < 1e-9,
            Metric::P50 => (s.quantile - 0.5).abs() < 1e-9,
            Metric::Throughput | Metric::MeanBatch => false,
        })
        .collect();
    let limits = drawn_slos.iter().map(|s| s.latency_ms);
    let scale = if metric.unit() == Unit::Ms { Scale::Log } else { Scale::Linear };
    let y = Axis::fit(metric.title(), metric.unit(), scale, swept().chain(still()).chain(limits));
    if swept().next().is_none() {
        let message = "Overloaded at every value: there is nothing to draw.";
        return Panel::with_message(x, y, message.to_owned());
    }
    let mut panel = Panel::new(x, y);
    panel.marks.extend(drawn_slos.iter().map(|slo| Mark::Horizontal {
        y: slo.latency_ms,
        label: format!("SLO {}", objective(slo)),
        ink: Ink { color: INK, width: 1.4, dash: SOLID },
    }));
    for cell in fixed {
        let (Some(y), (color, ..)) = (read(cell), policies.look(&cell.policy.label)) else {
            continue;
        };
        let ink = Ink { color, width: 1.6, dash: SHORT };
        panel.marks.push(Mark::Horizontal { y, label: String::new(), ink });
    }
    for along in varying {
        let (color, _, marker) = policies.look(along.label);
        let at = |i: usize| places.get(i).copied();
        let cells = || along.cells.iter().filter_map(|(i, c)| Some((at(*i)?, *c, read(c)?)));
        let bars = cells().filter_map(|(x, c, y)| {
            let half = metric.half_width(c)?;
            (half > 0.0).then(|| (x, (y - half).max(1e-9), y + half))
        });
        panel.marks.push(Mark::ErrorBars { points: bars.collect(), color });
        let points: Vec<(f64, f64)> = cells().map(|(x, _, y)| (x, y)).collect();
        let ink = Ink { color, width: 2.2, dash: SOLID };
        panel.marks.push(Mark::Line { points: points.clone(), ink });
        panel.marks.push(Mark::Dots { points, marker, color });
    }
    panel
}

fn legend(
    varying: &[Along<'_>],
    fixed: &[&Cell],
    policies: &Policies,
    slos: &[&Slo],
) -> Vec<LegendEntry> {
    let mut entries = Vec::new();
    for along in varying {
        let (color, _, marker) = policies.look(along.label);
        let ink = Ink { color, width: 2.2, dash: SOLID };
        let n = along.cells.len();
        let over = along.cells.iter().filter(|c| !c.1.stable).count();
        let met = along.cells.iter().filter(|c| standing(c.1, slos) == Standing::Meets).count();
        let judged = along.cells.iter().any(|c| standing(c.1, slos) != Standing::Unknown);
        let mut detail = Vec::new();
        if judged {
            let sign = if met > 0 { "✓" } else { "✗" };
            detail.push(format!("{sign} SLO at {met} of {n} values"));
        }
        if over > 0 {
            detail.push(format!("overloaded at {over} of {n}"));
        }
        let sample = if over < n { Sample::Line(ink, Some(marker)) } else { Sample::Absent };
        entries.push(LegendEntry { sample, label: shown(along.label), detail });
    }
    for cell in fixed {
        let ink = Ink { color: policies.look(&cell.policy.label).0, width: 1.6, dash: SHORT };
        let sample = if cell.stable { Sample::Line(ink, None) } else { Sample::Absent };
        entries.push(LegendEntry {
            sample,
            label: shown(&cell.policy.label),
            detail: details(cell),
        });
    }
    entries
}

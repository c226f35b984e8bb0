//! Latency by percentile: a distribution function turned so that every further nine of the tail
//! takes the same space, and latency stands on the axis where the objectives are.

use super::figure::{Axis, Figure, Ink, LegendAt, LegendEntry, Mark, Panel, Sample, Scale, Unit};
use super::policies::{
    Policies, details, footer, intervals, joined, objective, objectives, offered, one_cell_each,
    shown, titled,
};
use super::{Chart, ChartKind};
use crate::outcome::{CdfFile, Cell, Outcome};

/// Quantile, latency in ms, half-width in ms.
type Point = (f64, f64, f64);

const MARKED: [f64; 4] = [0.5, 0.9, 0.99, 0.999];
/// Nothing beyond five nines: no simulation supports it.
const DEEPEST: f64 = 0.99999;

/// The chart, or why there is none.
pub(super) fn chart(outcome: &Outcome, cdfs: &[CdfFile]) -> Result<Vec<Chart>, String> {
    let cells = one_cell_each(outcome)?;
    let drawn: Vec<(&Cell, Vec<Point>)> =
        cells.iter().map(|cell| (*cell, points(cell, cdfs))).collect();
    let nothing = drawn.iter().all(|d| d.1.is_empty());
    if nothing && cells.iter().any(|c| c.stable) {
        return Err("no request was answered, so there are no latencies".into());
    }
    let policies = Policies::of(outcome);
    let panel = panel(outcome, &drawn, &policies);
    let legend = drawn.iter().map(|(cell, points)| {
        let (color, dash, marker) = policies.look(&cell.policy.label);
        let ink = Ink { color, width: 2.2, dash };
        let sample =
            if points.is_empty() { Sample::Absent } else { Sample::Line(ink, Some(marker)) };
        LegendEntry { sample, label: shown(&cell.policy.label), detail: details(cell) }
    });
    let all = || cells.iter().copied();
    let markers = if nothing { "" } else { "markers at p50, p90, p99, p99.9" };
    let any_band = drawn.iter().any(|d| d.1.iter().any(|p| p.2 > 0.0));
    let band = if any_band { intervals("band", all()) } else { String::new() };
    let figure = Figure {
        title: titled(outcome, "latency by percentile"),
        subtitle: vec![joined(&[offered(all()), markers.to_owned(), band])],
        panels: vec![panel],
        columns: 1,
        legend: legend.collect(),
        legend_at: LegendAt::Right,
        footer: footer(outcome, all()),
        width: 900,
        height: 560,
    };
    Ok(vec![Chart { name: ChartKind::Cdf.name().to_owned(), figure }])
}

/// The points of a cell from its side file, or from its quantiles; none when overloaded.
fn points(cell: &Cell, cdfs: &[CdfFile]) -> Vec<Point> {
    let (true, Some(latency)) = (cell.stable, &cell.latency_ms) else { return Vec::new() };
    let from_file = cdfs.iter().find(|f| f.label == cell.policy.label).map(|file| {
        let half = |i: usize| file.half_width_ms.get(i).copied().unwrap_or(0.0);
        let pairs = file.quantiles.iter().zip(&file.latency_ms).enumerate();
        pairs.map(|(i, (q, ms))| (*q, *ms, half(i))).collect::<Vec<_>>()
    });
    let mut points = from_file.unwrap_or_else(|| {
        let half = latency.ci95.clone().unwrap_or_default();
        let mut points = vec![
            (0.5, latency.p50, half.p50),
            (0.9, latency.p90, half.p90),
            (0.95, latency.p95, half.p95),
            (0.99, latency.p99, half.p99),
        ];
        points.extend(latency.p999.map(|p999| (0.999, p999, half.p999.unwrap_or(0.0))));
        points
    });
    points.retain(|(q, ms, _)| (0.0..=DEEPEST).contains(q) && ms.is_finite() && *ms >= 0.0);
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn panel(outcome: &Outcome, drawn: &[(&Cell, Vec<Point>)], policies: &Policies) -> Panel {
    let slos = objectives(outcome);
    let all = || drawn.iter().flat_map(|d| d.1.iter());
    let least = all().map(|p| p.1).filter(|ms| *ms > 0.0).fold(f64::INFINITY, f64::min);
    // A wide band may not press the curves together.
    let highs = all().map(|p| (p.1 + p.2.max(0.0)).min(1.5 * p.1));
    let limits = slos.iter().map(|s| s.latency_ms);
    let y =
        Axis::fit("latency", Unit::Ms, Scale::Log, all().map(|p| p.1).chain(highs).chain(limits));
    let deepest = all().map(|p| p.0).chain(slos.iter().map(|s| s.quantile)).fold(0.99, f64::max);
    let x = Axis {
        lo: 0.0,
        hi: deepest.min(DEEPEST),
        ..Axis::fit(
            "share of requests answered within that latency",
            Unit::None,
            Scale::Tail,
            [0.0].into_iter(),
        )
    };
    if all().next().is_none() {
        let rate = offered(drawn.iter().map(|d| d.0));
        let message = format!(
            "Every policy is overloaded{}{rate}: queues grow without end, \
             and there is no latency to draw.",
            if rate.is_empty() { "" } else { " at " }
        );
        return Panel::with_message(x, y, message.replace(" offered", ""));
    }
    let mut marks: Vec<Mark> = slos
        .iter()
        .map(|slo| Mark::Corner {
            x: slo.quantile,
            y: slo.latency_ms,
            label: format!("SLO {}", objective(slo)),
        })
        .collect();
    let floor = |ms: f64| if ms > 0.0 { ms } else { least.min(1e300) };
    let mut lines = Vec::new();
    for (cell, points) in drawn.iter().filter(|d| !d.1.is_empty()) {
        let (color, dash, marker) = policies.look(&cell.policy.label);
        if points.iter().any(|p| p.2 > 0.0) {
            let band = |p: &Point| (p.0, floor(p.1 - p.2), p.1 + p.2);
            marks.push(Mark::Band { points: points.iter().map(band).collect(), color });
        }
        let curve = points.iter().map(|p| (p.0, floor(p.1))).collect();
        lines.push(Mark::Line { points: curve, ink: Ink { color, width: 2.2, dash } });
        let at = |q: f64| Some((q, floor(interpolated(points, q)?)));
        let dots = MARKED.into_iter().filter_map(at).collect();
        lines.push(Mark::Dots { points: dots, marker, color });
    }
    marks.extend(lines);
    let mut panel = Panel::new(x, y);
    panel.marks = marks;
    panel
}

/// Latency at a quantile between the points.
fn interpolated(points: &[Point], q: f64) -> Option<f64> {
    let after = points.iter().position(|p| p.0 >= q - 1e-12)?;
    let (q1, y1, _) = points[after];
    if after == 0 || q1 <= q + 1e-12 {
        return ((q1 - q).abs() < 1e-9 || after > 0).then_some(y1);
    }
    let (q0, y0, _) = points[after - 1];
    Some(y0 + (y1 - y0) * (q - q0) / (q1 - q0))
}

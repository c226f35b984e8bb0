//! A recording beside its prediction: latency by percentile, and batch sizes.

use super::Chart;
use super::figure::{
    Axis, Figure, Fill, Ink, LegendAt, LegendEntry, Mark, Panel, Sample, Scale, Unit,
};
use super::number::time;
use super::palette::{Color, Dash, INK, SERIES, SHORT, SOLID};
use crate::outcome::{Observation, Validation};
use crate::report::{count, decimals};

/// Most sizes that get bars of their own.
const MOST_SIZES: u32 = 64;

/// A column of the comparison and how it looks.
struct Column<'a> {
    name: String,
    of: &'a Observation,
    color: Color,
    dash: Dash,
    width: f64,
}

/// The chart of a comparison: the three distributions of the latency over each other, and the
/// three laws of the batch size side by side.
#[must_use]
pub fn validation_chart(v: &Validation) -> Chart {
    let column = |name: &str, of, color, dash, width| Column {
        name: name.to_owned(),
        of,
        color,
        dash,
        width,
    };
    let predicted = format!("predicted: {}", v.policy.kind);
    let columns = [
        column("measured", &v.measured, INK, SOLID, 3.4),
        column(&predicted, &v.predicted, SERIES[1], SOLID, 1.8),
        column("textbook: size or timeout", &v.textbook, SERIES[0], SHORT, 1.8),
    ];
    let legend = columns.iter().map(|c| LegendEntry {
        sample: Sample::Line(Ink { color: c.color, width: c.width, dash: c.dash }, None),
        label: c.name.clone(),
        detail: Vec::new(),
    });
    let mut panels = vec![latency(&columns)];
    if !v.measured.batch_sizes.is_empty() {
        panels.push(sizes(&columns));
    }
    let r = &v.recording;
    let server = match (&r.server, &r.version) {
        (Some(server), Some(version)) => format!("{server} {version}"),
        _ => String::new(),
    };
    let about: Vec<String> = [server, r.description.clone().unwrap_or_default()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .chain([format!("{} requests sent", count(r.requests))])
        .collect();
    let figure = Figure {
        title: format!("{}: recorded and predicted", r.name),
        subtitle: vec![about.join(" · ")],
        columns: panels.len(),
        panels,
        legend: legend.collect(),
        legend_at: LegendAt::Top,
        footer: format!(
            "{} {} · replay of recorded arrivals, no intervals · overheads: {}",
            v.tool.name, v.tool.version, v.overhead_ms.source
        ),
        width: 1100,
        height: 520,
    };
    Chart { name: "validate".into(), figure }
}

#[expect(clippy::cast_precision_loss, reason = "a place among 200")]
fn latency(columns: &[Column]) -> Panel {
    let all = || columns.iter().flat_map(|c| c.of.quantiles_ms.iter().copied());
    let (lo, hi) = all().fold((f64::INFINITY, 0.0_f64), |(lo, hi), v| (lo.min(v), hi.max(v)));
    let scale = if hi > 20.0 * lo { Scale::Log } else { Scale::Linear };
    let y = Axis::fit("latency", Unit::Ms, scale, all());
    let x = Axis {
        lo: 0.0,
        hi: 0.9975,
        ..Axis::fit(
            "share of requests answered within that latency",
            Unit::None,
            Scale::Tail,
            [0.0].into_iter(),
        )
    };
    let mut panel = Panel { title: "latency by percentile".into(), ..Panel::new(x, y) };
    for c in columns {
        let n = c.of.quantiles_ms.len() as f64;
        let level = |i: usize| (i as f64 + 0.5) / n;
        let points = c.of.quantiles_ms.iter().enumerate().map(|(i, ms)| (level(i), *ms)).collect();
        let ink = Ink { color: c.color, width: c.width, dash: c.dash };
        panel.marks.push(Mark::Line { points, ink });
    }
    let p50 = |c: &Column| c.of.latency_ms.map_or_else(|| "–".into(), |l| time(l.p50));
    panel.note = format!("p50 {}", columns.iter().map(p50).collect::<Vec<_>>().join(" / "));
    panel
}

fn sizes(columns: &[Column]) -> Panel {
    let all = || columns.iter().flat_map(|c| &c.of.batch_sizes);
    let largest = all().map(|s| s.size).max().unwrap_or(1);
    let end = largest.min(MOST_SIZES);
    let x = Axis {
        hi: f64::from(end) + 0.75,
        ..Axis::fit("batch size (items)", Unit::None, Scale::Linear, [f64::from(end)].into_iter())
    };
    let highest = all().map(|s| s.share * 100.0).fold(0.0, f64::max);
    let y = Axis::fit("share of batches", Unit::Percent, Scale::Linear, [highest].into_iter());
    let mut panel = Panel { title: "batch sizes".into(), ..Panel::new(x, y) };
    // Three bars and a gap to each size.
    let width = 0.27;
    for (shift, c) in [-1.5, -0.5, 0.5].into_iter().zip(columns) {
        for s in c.of.batch_sizes.iter().filter(|s| s.size <= end) {
            let left = f64::from(s.size) + shift * width;
            let fill = Fill::Solid(c.color);
            let (x, y) = ((left, left + 0.92 * width), (0.0, s.share * 100.0));
            panel.marks.push(Mark::Bar { x, y, fill });
        }
    }
    let mean = |c: &Column| c.of.mean_batch.map_or_else(|| "–".into(), |m| decimals(m, 2));
    panel.note = format!("mean {}", columns.iter().map(mean).collect::<Vec<_>>().join(" / "));
    panel
}

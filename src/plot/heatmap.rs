//! A metric over two axes of a sweep as a heat map, with the feasible region and the best cell.

use super::contour::outline;
use super::figure::{
    Axis, ColorBar, Figure, Fill, LegendAt, LegendEntry, Mark, Panel, Sample, Scale, Unit,
};
use super::grid::{SweepAxis, axes_of, table};
use super::number::{plural, short, time};
use super::palette::{INK, Marker, sequential};
use super::policies::{
    Policies, Standing, footer, joined, objective, objectives, offered, standing, titled,
};
use super::{Chart, numbered, slug, sweep};
use crate::outcome::{Cell, Outcome, Slo};
use crate::report::decimals;
use std::collections::BTreeMap;

/// What a heat map shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// 99th percentile of the latency, ms; less is better.
    P99,
    /// Median of the latency, ms; less is better.
    P50,
    /// Completions per second; more is better.
    Throughput,
    /// Mean batch size; neither better nor worse.
    MeanBatch,
}

/// More heat maps than anyone looks at.
const MOST_CHARTS: usize = 24;
/// Columns and rows up to which numbers are printed.
const PRINTED: (usize, usize) = (20, 12);

impl Metric {
    pub(super) fn of(self, cell: &Cell) -> Option<f64> {
        let value = match self {
            Self::P99 => cell.latency_ms.as_ref()?.p99,
            Self::P50 => cell.latency_ms.as_ref()?.p50,
            Self::Throughput => cell.throughput_per_s,
            Self::MeanBatch => cell.batch_size.mean,
        };
        (value.is_finite() && value >= 0.0).then_some(value)
    }

    pub(super) fn half_width(self, cell: &Cell) -> Option<f64> {
        let ci = cell.latency_ms.as_ref()?.ci95.as_ref()?;
        match self {
            Self::P99 => Some(ci.p99),
            Self::P50 => Some(ci.p50),
            Self::Throughput | Self::MeanBatch => None,
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::P99 => "p99 latency",
            Self::P50 => "p50 latency",
            Self::Throughput => "throughput",
            Self::MeanBatch => "mean batch size",
        }
    }

    pub(super) fn unit(self) -> Unit {
        match self {
            Self::P99 | Self::P50 => Unit::Ms,
            Self::Throughput => Unit::PerS,
            Self::MeanBatch => Unit::None,
        }
    }

    fn file(self) -> &'static str {
        match self {
            Self::P99 => "heatmap",
            Self::P50 => "heatmap-p50",
            Self::Throughput => "heatmap-throughput",
            Self::MeanBatch => "heatmap-mean-batch",
        }
    }

    /// A value with its unit.
    fn with_unit(self, value: f64) -> String {
        match self {
            Self::P99 | Self::P50 => time(value),
            Self::Throughput => format!("{}/s", short(value)),
            Self::MeanBatch => short(value),
        }
    }

    /// Smaller is better; absent where nothing is.
    fn rank(self, value: f64) -> Option<f64> {
        match self {
            Self::P99 | Self::P50 => Some(value),
            Self::Throughput => Some(-value),
            Self::MeanBatch => None,
        }
    }
}

/// A metric over the axes of a sweep: for every policy one heat map over two axes, one for each
/// value of a third; policies with one axis share a line chart.
///
/// # Errors
/// In words, why this result has no such chart: it is no sweep, or has too many axes.
pub fn heatmaps(outcome: &Outcome, metric: Metric) -> Result<Vec<Chart>, String> {
    if outcome.axes.iter().all(|a| a.values.len() < 2) {
        return Err("the result is no sweep over at least one axis".into());
    }
    let policies = Policies::of(outcome);
    let mut maps: Vec<Map<'_>> = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    for label in policies.labels() {
        let axes = axes_of(outcome, label);
        match &axes[..] {
            [] => {}
            [x] => lines.push(x.path.to_owned()),
            [x, y] => maps.push(Map::new(outcome, label, (x, y), None)),
            [x, y, third] => maps.extend(
                (0..third.written.len())
                    .map(|at| Map::new(outcome, label, (x, y), Some((third, at)))),
            ),
            more => {
                return Err(format!(
                    "`{label}` varies along {} axes; heat maps show two, and a third as one map \
                     for each of its values",
                    more.len()
                ));
            }
        }
    }
    if maps.len() > MOST_CHARTS {
        return Err(format!(
            "this sweep would take {} heat maps, more than {MOST_CHARTS}; sweep fewer values",
            maps.len()
        ));
    }
    lines.dedup();
    lines.sort();
    lines.dedup();
    let many = maps.len() > 1;
    let mut charts: Vec<Chart> = maps.iter().map(|m| m.chart(outcome, metric, many)).collect();
    for path in lines {
        charts.push(sweep::chart(outcome, metric, &path, &policies));
    }
    if charts.is_empty() {
        Err("no policy varies along an axis".into())
    } else {
        Ok(numbered(charts))
    }
}

/// One heat map.
struct Map<'a> {
    label: &'a str,
    x: SweepAxis<'a>,
    y: SweepAxis<'a>,
    /// The value of the third axis, in words.
    third: Option<String>,
    cells: BTreeMap<(usize, usize), &'a Cell>,
}

impl<'a> Map<'a> {
    fn new(
        outcome: &'a Outcome,
        label: &'a str,
        (x, y): (&SweepAxis<'a>, &SweepAxis<'a>),
        third: Option<(&SweepAxis<'a>, usize)>,
    ) -> Self {
        Self {
            label,
            x: x.clone(),
            y: y.clone(),
            third: third.map(|(axis, at)| axis.setting(at, label)),
            cells: table(outcome, label, (x, Some(y)), third),
        }
    }

    fn chart(&self, outcome: &Outcome, metric: Metric, many: bool) -> Chart {
        let slos = objectives(outcome);
        let read = Reading::of(self, metric, &slos);
        let mut name = metric.file().to_owned();
        if many {
            name = format!("{name}-{}", slug(self.label));
            if let Some(third) = &self.third {
                name = format!("{name}-{}", slug(third));
            }
        }
        let across = self.x.name(self.label);
        let up = self.y.name(self.label);
        let what = format!("{} of {} over {across} and {up}", metric.title(), self.label);
        let all = || self.cells.values().copied();
        let unsure = self.cells.values().any(|c| standing(c, &slos) == Standing::Unsure);
        let figure = Figure {
            title: titled(outcome, &what),
            subtitle: vec![joined(&[
                self.third.clone().unwrap_or_default(),
                offered(all()),
                if unsure {
                    "?: whether the SLO is met is inconclusive".into()
                } else {
                    String::new()
                },
            ])],
            panels: vec![self.panel(metric, &read)],
            columns: 1,
            legend: self.legend(metric, &read, &slos),
            legend_at: LegendAt::Top,
            footer: footer(outcome, all()),
            width: 900,
            height: 560,
        };
        Chart { name, figure }
    }

    fn panel(&self, metric: Metric, read: &Reading) -> Panel {
        let names = |axis: &SweepAxis<'_>| (0..axis.written.len()).map(|i| axis.value(i)).collect();
        let x = Axis::of_categories(&self.x.caption(self.label), names(&self.x));
        let y = Axis::of_categories(&self.y.caption(self.label), names(&self.y));
        let (columns, rows) = (self.x.written.len(), self.y.written.len());
        let scale = read.scale(metric);
        let print = columns <= PRINTED.0 && rows <= PRINTED.1;
        let mut panel = Panel::new(x, y);
        for at in (0..columns).flat_map(|i| (0..rows).map(move |j| (i, j))) {
            let cell = self.cells.get(&at);
            let (fill, text) = match (cell, read.values.get(&at)) {
                (_, Some(value)) => {
                    let mark = if read.unsure.contains(&at) { "?" } else { "" };
                    let fill = Fill::Solid(sequential(scale.fraction(*value)));
                    (Some(fill), format!("{}{mark}", decimals(*value, read.places())))
                }
                (Some(cell), None) if !cell.stable => (Some(Fill::Hatched), "over".to_owned()),
                (Some(_), None) => (Some(Fill::Hatched), "none".to_owned()),
                (None, _) => (None, "–".to_owned()),
            };
            let text = if print { text } else { String::new() };
            panel.marks.push(Mark::Cell { at, fill, text });
        }
        if read.feasible.len() < columns * rows || read.judged {
            let inside = |i, j| read.feasible.contains(&(i, j));
            let loops = outline(columns, rows, &inside);
            if !loops.is_empty() {
                panel.marks.push(Mark::Outline { loops });
            }
        }
        panel.marks.extend(read.best.map(|at| Mark::Star { at }));
        if !read.values.is_empty() {
            panel.color_bar = Some(ColorBar { axis: scale });
        }
        panel
    }

    fn legend(&self, metric: Metric, read: &Reading, slos: &[&Slo]) -> Vec<LegendEntry> {
        let entry = |sample, label: String| LegendEntry { sample, label, detail: Vec::new() };
        let mut entries = Vec::new();
        if read.judged {
            let names: Vec<String> = slos.iter().take(3).map(|s| objective(s)).collect();
            let exprs: std::collections::BTreeSet<&str> = self
                .cells
                .values()
                .flat_map(|c| c.verdicts.iter().map(|v| v.expr.as_str()))
                .collect();
            // Thresholds on other things than latency were judged too.
            let names = if names.is_empty() || exprs.len() > slos.len() {
                "every threshold".to_owned()
            } else {
                format!("SLO {}", names.join(", "))
            };
            entries.push(if read.feasible.is_empty() {
                entry(Sample::Absent, format!("no cell meets {names}"))
            } else {
                let cells = plural(read.feasible.len(), "cell", "cells");
                entry(Sample::Outline, format!("meets {names} ({cells})"))
            });
        }
        if let Some((at, value)) = read.best.and_then(|at| Some((at, read.values.get(&at)?))) {
            let best = match metric {
                Metric::Throughput => "simplest within 1 % of the most throughput",
                _ => "simplest within 1 % of the best",
            };
            entries.push(entry(
                Sample::Dot(Marker::Star, INK),
                format!(
                    "{best}: {} at {}, {}",
                    metric.with_unit(*value),
                    self.x.setting(at.0, self.label),
                    self.y.setting(at.1, self.label)
                ),
            ));
        }
        if self.cells.values().any(|c| !c.stable) {
            entries.push(entry(Sample::Fill(Fill::Hatched), "overloaded".to_owned()));
        }
        entries
    }
}

/// Relative difference below which two cells are as good as each other.
const INDIFFERENCE: f64 = 0.01;

/// What a map says, read once.
struct Reading {
    values: BTreeMap<(usize, usize), f64>,
    feasible: Vec<(usize, usize)>,
    unsure: Vec<(usize, usize)>,
    /// Whether any cell stands against an objective.
    judged: bool,
    best: Option<(usize, usize)>,
}

impl Reading {
    fn of(map: &Map<'_>, metric: Metric, slos: &[&Slo]) -> Self {
        let stable = map.cells.iter().filter(|(_, cell)| cell.stable);
        let values: BTreeMap<_, _> =
            stable.filter_map(|(at, cell)| Some((*at, metric.of(cell)?))).collect();
        let which = |wanted: Standing| -> Vec<(usize, usize)> {
            let cells = map.cells.iter().filter(|(_, cell)| standing(cell, slos) == wanted);
            cells.map(|(at, _)| *at).collect()
        };
        let feasible = which(Standing::Meets);
        let judged = map.cells.values().any(|c| standing(c, slos) != Standing::Unknown);
        let candidates = || {
            let allowed = values.iter().filter(|(at, _)| !judged || feasible.contains(at));
            allowed.filter_map(|(at, value)| Some((*at, metric.rank(*value)?)))
        };
        // Cells within 1 % of the best are as good as it; of those the simplest is shown, in order
        // of column, then row: the smallest wait, then the smallest batch.
        let least = candidates().map(|(_, rank)| rank).fold(f64::INFINITY, f64::min);
        let best = candidates()
            .find(|(_, rank)| *rank <= least + INDIFFERENCE * least.abs())
            .map(|(at, _)| at);
        Self { values, feasible, unsure: which(Standing::Unsure), judged, best }
    }

    /// Decimals that show three digits of the largest value.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 3")]
    fn places(&self) -> usize {
        let largest = self.values.values().copied().fold(0.0, f64::max);
        if largest > 0.0 { (2.0 - largest.log10().floor()).clamp(0.0, 3.0) as usize } else { 0 }
    }

    /// The scale of the colours: logarithmic where values differ much.
    fn scale(&self, metric: Metric) -> Axis {
        let lo = self.values.values().copied().fold(f64::INFINITY, f64::min);
        let hi = self.values.values().copied().fold(0.0, f64::max);
        let log = lo > 0.0 && hi > 6.0 * lo;
        let scale = if log { Scale::Log } else { Scale::Linear };
        let values = self.values.values().copied();
        let mut axis = Axis::fit(metric.title(), metric.unit(), scale, values);
        // The ends of the colours are values that occur.
        if lo < hi {
            (axis.lo, axis.hi) = (lo, hi);
        }
        axis
    }
}

//! Latency against offered rate, up to the capacity of every policy.

use super::figure::{Axis, Figure, Ink, LegendAt, LegendEntry, Mark, Panel, Sample, Scale, Unit};
use super::number::plural;
use super::palette::{Color, DOTTED, GREY, INK, LONG, SHORT, SOLID};
use super::policies::{
    Policies, Standing, footer, intervals, joined, objective, objectives, shown, standing, titled,
};
use super::{Chart, ChartKind};
use crate::cost::Cost;
use crate::outcome::{Cell, Latency, Outcome, Slo};
use crate::report::rate;

/// The points of one policy in order of rate.
struct Series<'a> {
    label: &'a str,
    cells: Vec<&'a Cell>,
}

impl<'a> Series<'a> {
    /// Points that can be drawn.
    fn drawn(&self) -> impl Iterator<Item = (&'a Cell, &'a Latency)> + '_ {
        let usable = |c: &&Cell| c.stable && c.rate_per_s.is_finite() && c.rate_per_s > 0.0;
        let cells = self.cells.iter().copied().filter(usable);
        cells.filter_map(|c| Some((c, c.latency_ms.as_ref()?)))
    }

    fn capacity(&self) -> Option<f64> {
        let capacities = self.cells.iter().filter_map(|c| c.capacity_per_s);
        capacities.filter(|c| c.is_finite() && *c > 0.0).reduce(f64::max)
    }

    fn line(&self, value: impl Fn(&Latency) -> f64) -> Vec<(f64, f64)> {
        let points = self.drawn().map(|(c, l)| (c.rate_per_s, value(l)));
        points.filter(|p| p.1.is_finite() && p.1 > 0.0).collect()
    }
}

/// The chart, or why there is none.
pub(super) fn chart(outcome: &Outcome) -> Result<Vec<Chart>, String> {
    if outcome.curve.is_empty() {
        return Err("the result has no curve; give the scenario a [curve] table".into());
    }
    let policies = Policies::of(outcome);
    let series: Vec<Series<'_>> = policies
        .labels()
        .iter()
        .map(|label| {
            let mut cells: Vec<&Cell> =
                outcome.curve.iter().filter(|c| c.policy.label == *label).collect();
            cells.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
            Series { label, cells }
        })
        .filter(|s| !s.cells.is_empty())
        .collect();
    let slos = objectives(outcome);
    let mut legend: Vec<LegendEntry> = series.iter().map(|s| entry(s, &policies, &slos)).collect();
    let key = |label: &str, ink| LegendEntry {
        sample: Sample::Line(ink, None),
        label: label.to_owned(),
        detail: Vec::new(),
    };
    legend.push(key("p99", Ink { color: GREY, width: 2.2, dash: SOLID }));
    legend.push(key("p50", Ink { color: GREY, width: 1.2, dash: SHORT }));
    let figure = Figure {
        title: titled(outcome, "latency against offered rate"),
        subtitle: vec![joined(&[
            "dotted: capacity of a policy, where its latency has no bound".to_owned(),
            intervals("bars", outcome.curve.iter()),
        ])],
        panels: vec![panel(&series, &policies, &slos, ceiling(outcome))],
        columns: 1,
        legend,
        legend_at: LegendAt::Right,
        footer: footer(outcome, outcome.curve.iter()),
        width: 900,
        height: 560,
    };
    Ok(vec![Chart { name: ChartKind::Curve.name().to_owned(), figure }])
}

fn entry(series: &Series<'_>, policies: &Policies, slos: &[&Slo]) -> LegendEntry {
    let (color, _, marker) = policies.look(series.label);
    let any = series.drawn().next().is_some();
    let ink = Ink { color, width: 2.2, dash: SOLID };
    let capacity = series.capacity().map(|c| format!("capacity {}/s", rate(c)));
    let range = if any { met(series, slos) } else { "overloaded at every rate".to_owned() };
    LegendEntry {
        sample: if any { Sample::Line(ink, Some(marker)) } else { Sample::Absent },
        label: shown(series.label),
        detail: vec![capacity.unwrap_or_default(), range],
    }
}

/// At which of the rates the objectives are met.
fn met(series: &Series<'_>, slos: &[&Slo]) -> String {
    if slos.is_empty() {
        return String::new();
    }
    let meets: Vec<bool> =
        series.drawn().map(|(cell, _)| standing(cell, slos) == Standing::Meets).collect();
    let rates: Vec<f64> = series.drawn().map(|(cell, _)| cell.rate_per_s).collect();
    let (Some(first), Some(last)) = (meets.iter().position(|m| *m), meets.iter().rposition(|m| *m))
    else {
        return "✗ SLO at no rate".to_owned();
    };
    if meets[first..=last].iter().all(|m| *m) {
        if first == last {
            return format!("✓ SLO at {}/s only", rate(rates[first]));
        }
        return format!("✓ SLO {}–{}/s", rate(rates[first]), rate(rates[last]));
    }
    let held = meets.iter().filter(|m| **m).count();
    format!("✓ SLO at {held} of {}", plural(meets.len(), "rate", "rates"))
}

fn panel(series: &[Series<'_>], policies: &Policies, slos: &[&Slo], ceiling: Option<f64>) -> Panel {
    let rates = || series.iter().flat_map(Series::drawn).map(|(c, _)| c.rate_per_s);
    let capacities = || series.iter().filter_map(Series::capacity);
    let least = rates().chain(capacities()).fold(f64::INFINITY, f64::min);
    let most = rates().chain(capacities()).fold(0.0, f64::max);
    let ceiling = ceiling.filter(|c| *c > 1.005 * most && *c < 50.0 * most);
    let scale = if most > 1000.0 * least { Scale::Log } else { Scale::Linear };
    let shown = rates().chain(capacities()).chain(ceiling);
    let x = Axis::fit("offered rate", Unit::PerS, scale, shown);
    let latencies = || series.iter().flat_map(Series::drawn).flat_map(|(_, l)| [l.p50, l.p99]);
    let limits = slos.iter().map(|s| s.latency_ms);
    let y = Axis::fit("latency", Unit::Ms, Scale::Log, latencies().chain(limits));
    if latencies().next().is_none() {
        let message = "Every policy is overloaded at every rate: there is no latency to draw.";
        return Panel::with_message(x, y, message.to_owned());
    }
    let mut marks = capacity_marks(series, policies);
    if let Some(c) = ceiling {
        let ink = Ink { color: INK, width: 1.0, dash: LONG };
        let label = format!("ceiling {}/s", rate(c));
        marks.push(Mark::Vertical { x: c, label, ink });
    }
    marks.extend(slos.iter().map(|slo| Mark::Horizontal {
        y: slo.latency_ms,
        label: format!("SLO {}", objective(slo)),
        ink: Ink { color: INK, width: 1.4, dash: SOLID },
    }));
    for s in series {
        let (color, _, marker) = policies.look(s.label);
        let median = Ink { color, width: 1.2, dash: SHORT };
        let mut p50 = s.line(|l| l.p50);
        if let [(at, ms)] = p50[..] {
            // A single point is no line yet: a short stroke in its place.
            let half = 0.012 * (x.hi - x.lo);
            p50 = vec![(at - half, ms), (at + half, ms)];
        }
        marks.push(Mark::Line { points: p50, ink: median });
        let bars = s.drawn().filter_map(|(c, l)| {
            let half = l.ci95.as_ref()?.p99;
            (half > 0.0).then(|| (c.rate_per_s, (l.p99 - half).max(1e-9), l.p99 + half))
        });
        marks.push(Mark::ErrorBars { points: bars.collect(), color });
        let p99 = s.line(|l| l.p99);
        let ink = Ink { color, width: 2.2, dash: SOLID };
        marks.push(Mark::Line { points: p99.clone(), ink });
        marks.push(Mark::Dots { points: p99, marker, color });
    }
    let mut panel = Panel::new(x, y);
    panel.marks = marks;
    panel
}

/// One line for each capacity; policies that share one share the line.
fn capacity_marks(series: &[Series<'_>], policies: &Policies) -> Vec<Mark> {
    let mut groups: Vec<(f64, Vec<Color>)> = Vec::new();
    for s in series {
        let Some(capacity) = s.capacity() else { continue };
        let color = policies.look(s.label).0;
        match groups.iter_mut().find(|(c, _)| (capacity - *c).abs() <= 0.005 * c.abs()) {
            Some((_, colors)) => colors.push(color),
            None => groups.push((capacity, vec![color])),
        }
    }
    let few = groups.len() <= 8;
    let mark = |(x, colors): (f64, Vec<Color>)| {
        let color = if let [color] = colors[..] { color } else { GREY };
        let label = if few { format!("capacity {}/s", rate(x)) } else { String::new() };
        Mark::Vertical { x, label, ink: Ink { color, width: 1.6, dash: DOTTED } }
    };
    groups.into_iter().map(mark).collect()
}

/// Throughput as batches grow without bound, where the scenario has one server and its cost
/// model has such a limit.
fn ceiling(outcome: &Outcome) -> Option<f64> {
    let servers = outcome.scenario.get("server")?;
    let server = match servers.as_array() {
        Some(list) if list.len() == 1 => list.first()?,
        Some(_) => return None,
        None => servers,
    };
    // Written as a table with a `kind`; read as the kind with its parameters.
    let mut params = server.get("cost")?.as_object()?.clone();
    let kind = params.remove("kind")?.as_str()?.to_owned();
    let tagged = serde_json::Map::from_iter([(kind, serde_json::Value::Object(params))]);
    let cost: Cost = serde_json::from_value(tagged.into()).ok()?;
    let instances = server.get("instances").and_then(serde_json::Value::as_u64).unwrap_or(1);
    let instances = u32::try_from(instances).ok()?;
    cost.capacity_per_s(None, instances).filter(|c| c.is_finite() && *c > 0.0)
}

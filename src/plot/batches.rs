//! Batch sizes by the reason their batch left, one panel for each policy.

use super::figure::{
    Axis, Figure, Fill, Ink, LegendAt, LegendEntry, Mark, Panel, Sample, Scale, Unit,
};
use super::number::{percent, short};
use super::palette::{Color, INK, SERIES, SHORT};
use super::policies::{footer, joined, offered, one_cell_each, shown, titled};
use super::{Chart, ChartKind};
use crate::outcome::{Cell, Outcome};

/// Reasons in the order in which they are tried, which is the order of the stack from below.
const REASONS: [(&str, Color, &str); 7] = [
    ("full", SERIES[0], "full"),
    ("preferred", SERIES[5], "preferred size"),
    ("shape", SERIES[3], "shape changed"),
    ("budget", SERIES[6], "budget used up"),
    ("timer", SERIES[4], "timer ran out"),
    ("idle", SERIES[2], "idle: nothing to wait for"),
    ("flush", Color(0x9A, 0x9A, 0x9A), "flushed at the end"),
];

/// Bars beyond this number are put together.
const MOST_BARS: u32 = 64;

/// The chart, or why there is none.
pub(super) fn chart(outcome: &Outcome) -> Result<Vec<Chart>, String> {
    let cells = one_cell_each(outcome)?;
    if cells.iter().all(|c| c.batch_size.histogram.is_empty()) {
        return Err("the result has no batch sizes".into());
    }
    let largest = cells.iter().map(|c| most(c)).max().unwrap_or(1);
    let panels: Vec<Panel> = cells.iter().map(|cell| panel(cell, largest)).collect();
    let columns = match panels.len() {
        1 => 1,
        2..=4 => 2,
        5..=9 => 3,
        _ => 4,
    };
    let rows = u32::try_from(panels.len().div_ceil(columns)).unwrap_or(1);
    let legend = reasons(&cells).into_iter().map(|name| LegendEntry {
        sample: Sample::Fill(Fill::Solid(color(&name))),
        label: REASONS.iter().find(|r| r.0 == name).map_or(name.clone(), |r| r.2.to_owned()),
        detail: Vec::new(),
    });
    let all = || cells.iter().copied();
    let figure = Figure {
        title: titled(outcome, "batch sizes, and why batches left"),
        subtitle: vec![joined(&[offered(all()), "share of batches of each size".to_owned()])],
        panels,
        columns,
        legend: legend.collect(),
        legend_at: LegendAt::Top,
        footer: footer(outcome, all()),
        width: 900,
        height: 560.max(120 + 220 * rows),
    };
    Ok(vec![Chart { name: ChartKind::Batches.name().to_owned(), figure }])
}

fn most(cell: &Cell) -> u32 {
    cell.batch_size.histogram.iter().map(|s| s.size).max().unwrap_or(1)
}

/// Reasons that occur, known ones first.
fn reasons(cells: &[&Cell]) -> Vec<String> {
    let sizes = cells.iter().flat_map(|c| &c.batch_size.histogram);
    let found: std::collections::BTreeSet<&String> = sizes
        .flat_map(|s| s.by_reason.iter().filter(|(_, n)| **n > 0).map(|(name, _)| name))
        .collect();
    let known = REASONS.iter().map(|r| r.0.to_owned()).filter(|name| found.contains(name));
    let other = found.iter().filter(|name| !REASONS.iter().any(|r| r.0 == **name));
    known.chain(other.map(|name| (*name).clone())).collect()
}

fn color(reason: &str) -> Color {
    REASONS.iter().find(|r| r.0 == reason).map_or(SERIES[1], |r| r.1)
}

#[expect(clippy::cast_precision_loss, reason = "shares of batches")]
fn panel(cell: &Cell, largest: u32) -> Panel {
    let own = most(cell);
    // The same axis for all, unless that would leave nothing to see.
    let end = if largest > 64 && own.saturating_mul(8) < largest { own } else { largest };
    let x = Axis {
        hi: f64::from(end) + 0.75,
        ..Axis::fit("batch size (items)", Unit::None, Scale::Linear, [f64::from(end)].into_iter())
    };
    let order = reasons(&[cell]);
    let total: u128 = cell.batch_size.histogram.iter().map(|s| count(s.by_reason.values())).sum();
    let name = shown(&cell.policy.label);
    let title = if cell.stable { name } else { format!("{name} (overloaded)") };
    if total == 0 {
        let y = Axis::fit("share of batches", Unit::Percent, Scale::Linear, [1.0].into_iter());
        let empty = Panel::with_message(x, y, "No batch was dispatched.".to_owned());
        return Panel { title, ..empty };
    }
    let width = bin_width(end);
    let bins = bins(cell, width, &order);
    let share = |n: u128| n as f64 * 100.0 / total as f64;
    let highest = bins.iter().map(|(_, counts)| share(counts.iter().sum())).fold(0.0, f64::max);
    let y = Axis::fit("share of batches", Unit::Percent, Scale::Linear, [highest].into_iter());
    let mut panel = Panel { title, note: note(cell, &order, total), ..Panel::new(x, y) };
    for (first, counts) in &bins {
        let gap = if width == 1 { 0.1 } else { 0.06 * f64::from(width) };
        let left = f64::from(*first) - 0.5 + gap;
        let right = f64::from(*first) - 0.5 + f64::from(width) - gap;
        let mut base = 0.0;
        for (name, n) in order.iter().zip(counts).filter(|(_, n)| **n > 0) {
            let top = base + share(*n);
            let fill = Fill::Solid(color(name));
            panel.marks.push(Mark::Bar { x: (left, right), y: (base, top), fill });
            base = top;
        }
    }
    let mean = cell.batch_size.mean;
    if mean.is_finite() && mean > 0.0 {
        let ink = Ink { color: INK, width: 1.4, dash: SHORT };
        panel.marks.push(Mark::Vertical { x: mean, label: format!("mean {}", short(mean)), ink });
    }
    panel
}

fn count<'a>(counts: impl Iterator<Item = &'a u64>) -> u128 {
    counts.map(|n| u128::from(*n)).sum()
}

/// Share of batches by reason.
#[expect(clippy::cast_precision_loss, reason = "shares of batches")]
fn note(cell: &Cell, order: &[String], total: u128) -> String {
    let shares = order.iter().map(|name| {
        let sizes = cell.batch_size.histogram.iter();
        let n = count(sizes.filter_map(|s| s.by_reason.get(name)));
        format!("{name} {}", percent(n as f64 / total as f64))
    });
    shares.collect::<Vec<_>>().join(", ")
}

/// Sizes in one bar.
fn bin_width(largest: u32) -> u32 {
    let needed = largest.div_ceil(MOST_BARS).max(1);
    let steps = (0..9).flat_map(|power| [1, 2, 5].map(|m| m * 10_u32.pow(power)));
    steps.into_iter().find(|step| *step >= needed).unwrap_or(needed)
}

/// First size of each bar and its batches by reason.
fn bins(cell: &Cell, width: u32, order: &[String]) -> Vec<(u32, Vec<u128>)> {
    let mut bins = std::collections::BTreeMap::new();
    for size in &cell.batch_size.histogram {
        let first = size.size.saturating_sub(1) / width * width + 1;
        let counts: &mut Vec<u128> = bins.entry(first).or_insert_with(|| vec![0; order.len()]);
        for (slot, name) in counts.iter_mut().zip(order) {
            *slot += u128::from(size.by_reason.get(name).copied().unwrap_or(0));
        }
    }
    bins.into_iter().collect()
}

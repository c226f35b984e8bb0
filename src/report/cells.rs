//! The cells of an Outcome as rows.

use super::grid::Grid;
use crate::number::{count, decimals, plus_minus, rate};
use crate::outcome::{Cell, HalfWidths, Judgement, Latency, Method, Outcome};
use std::collections::BTreeMap;

/// The table people see: one row per cell.
#[must_use]
pub fn summary_table(outcome: &Outcome) -> Grid {
    let axes: Vec<&str> = outcome.axes.iter().map(|a| a.path.as_str()).collect();
    let mut titles: Vec<String> = vec!["<policy".into()];
    titles.extend(axes.iter().map(|path| (*path).to_owned()));
    let judged = outcome.study == "sweep" && outcome.cells.iter().any(|c| !c.verdicts.is_empty());
    if judged {
        titles.push("<thresholds".into());
    }
    let exact = outcome.study == "exact";
    // What a wait does to a fan-out shows in means first.
    let means = outcome.cells.iter().any(|c| c.group_latency_ms.is_some());
    titles.extend(means.then(|| "mean ms".to_owned()));
    let numbers = [
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "p99.9 ms",
        "throughput /s",
        "mean batch",
        "busy",
        "<why batches left",
    ];
    // The exact solution does not tell reasons apart.
    titles.extend(numbers.iter().take(if exact { 7 } else { 8 }).map(|t| (*t).to_owned()));
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut grid = Grid::new(&titles);
    for cell in &outcome.cells {
        let intervals = cell.method != Method::Exact;
        let latencies = |latency| {
            let columns = latency_columns(latency, cell.stable, intervals);
            columns.into_iter().skip(usize::from(!means))
        };
        let mut row = vec![cell.policy.label.clone()];
        row.extend(axes.iter().map(|path| {
            cell.coords.get(*path).map_or_else(|| "–".into(), |v| v.trim_matches('"').to_owned())
        }));
        if judged {
            row.push(together(cell).to_owned());
        }
        row.extend(latencies(cell.latency_ms.as_ref()));
        row.push(rate(cell.throughput_per_s));
        row.push(decimals(cell.batch_size.mean, 2));
        row.push(format!("{:.1}%", cell.utilization * 100.0));
        if !exact {
            row.push(reasons(cell));
        }
        let columns = row.len();
        grid.row(row);
        let classes = cell.classes.iter().map(|c| (c.class.as_str(), c.latency_ms.as_ref()));
        let groups = cell.group_latency_ms.as_ref().map(|g| ("groups", Some(&g.latency)));
        for (name, latency) in classes.chain(groups) {
            let mut row = vec![format!("  {name}")];
            row.resize(1 + axes.len() + usize::from(judged), String::new());
            row.extend(latencies(latency));
            row.resize(columns, String::new());
            grid.row(row);
        }
    }
    grid
}

/// What the thresholds of a cell come to together.
fn together(cell: &Cell) -> &'static str {
    let any = |j| cell.verdicts.iter().any(|v| v.judgement == j);
    if cell.verdicts.is_empty() {
        "–"
    } else if any(Judgement::Fail) {
        "miss"
    } else if any(Judgement::Inconclusive) {
        "open"
    } else {
        "meet"
    }
}

/// Mean, p50, p90, p99 and p99.9; an exact solution has no intervals and more digits.
fn latency_columns(latency: Option<&Latency>, stable: bool, intervals: bool) -> [String; 5] {
    let Some(l) = latency else {
        let word = if stable { "–" } else { "overloaded" };
        return std::array::from_fn(|_| word.to_owned());
    };
    let ci = l.ci95.as_ref().filter(|_| intervals);
    let half = |f: &dyn Fn(&HalfWidths) -> Option<f64>| ci.and_then(f);
    let places = |value: f64, half: Option<f64>| {
        if intervals { plus_minus(value, half) } else { decimals(value, 3) }
    };
    [
        places(l.mean, half(&|h| Some(h.mean))),
        places(l.p50, half(&|h| Some(h.p50))),
        places(l.p90, half(&|h| Some(h.p90))),
        places(l.p99, half(&|h| Some(h.p99))),
        l.p999.map_or_else(|| "–".into(), |v| places(v, half(&|h| h.p999))),
    ]
}

/// `full 62%, timer 38%`, the most frequent first.
#[expect(clippy::cast_precision_loss, reason = "shares")]
fn reasons(cell: &Cell) -> String {
    let total: u64 = cell.dispatch_reasons.values().sum();
    let mut sorted: Vec<(&String, &u64)> = cell.dispatch_reasons.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let words = sorted.iter().map(|(name, n)| {
        let share = **n as f64 / total as f64 * 100.0;
        let share = if share >= 99.95 && total != **n { 99.9 } else { share };
        match share {
            s if s < 0.05 => format!("{name} <0.1%"),
            s if s < 9.95 || (s > 90.0 && s < 100.0) => format!("{name} {s:.1}%"),
            s => format!("{name} {s:.0}%"),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

/// One line per judged threshold; none for a sweep, whose table says it cell by cell.
#[must_use]
pub fn verdict_lines(outcome: &Outcome) -> Vec<String> {
    let mut lines = Vec::new();
    if outcome.study == "sweep" {
        return lines;
    }
    for cell in &outcome.cells {
        for verdict in &cell.verdicts {
            let word = match verdict.judgement {
                Judgement::Pass => "pass",
                Judgement::Fail => "FAIL",
                Judgement::Inconclusive => "inconclusive",
            };
            let place = place(cell);
            lines.push(format!("{word}  {place}  {}: {}", verdict.expr, verdict.evidence));
        }
    }
    lines
}

/// One line per warning; for a sweep, how many cells share each kind.
#[must_use]
pub fn warning_lines(outcome: &Outcome) -> Vec<String> {
    if outcome.study == "sweep" {
        let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
        for warning in outcome.cells.iter().flat_map(|c| &c.warnings) {
            *kinds.entry(warning.split(':').next().unwrap_or(warning)).or_default() += 1;
        }
        let all = count(outcome.cells.len() as u64);
        let shared = kinds.iter().map(|(kind, n)| format!("{} of {all} cells: {kind}", count(*n)));
        return outcome.warnings.iter().cloned().chain(shared).collect();
    }
    let of_cells = outcome
        .cells
        .iter()
        .flat_map(|cell| cell.warnings.iter().map(move |w| format!("{}: {w}", place(cell))));
    outcome.warnings.iter().cloned().chain(of_cells).collect()
}

/// The label and coordinates of a cell.
fn place(cell: &Cell) -> String {
    let mut text = cell.policy.label.clone();
    for (path, value) in &cell.coords {
        text += &format!(" {path}={}", value.trim_matches('"'));
    }
    text
}

/// Every number of every cell, for spreadsheets: names with units, no rounding.
#[must_use]
pub fn csv_cells(outcome: &Outcome) -> Grid {
    let axes: Vec<&str> = outcome.axes.iter().map(|a| a.path.as_str()).collect();
    let mut titles = vec!["policy", "kind", "method"];
    titles.extend(&axes);
    titles.extend([
        "rate_per_s",
        "capacity_per_s",
        "load",
        "stable",
        "replications",
        "offered",
        "completed",
        "rejected",
        "expired",
        "shed",
        "cancelled",
        "unfinished",
        "throughput_per_s",
        "utilization",
        "mean_batch",
        "mean_ms",
        "mean_ci95_ms",
        "p50_ms",
        "p50_ci95_ms",
        "p90_ms",
        "p90_ci95_ms",
        "p95_ms",
        "p95_ci95_ms",
        "p99_ms",
        "p99_ci95_ms",
        "p999_ms",
        "p999_ci95_ms",
        "max_ms",
        "queue_mean_ms",
        "queue_p99_ms",
        "warmup_ms",
        "verdicts",
    ]);
    let mut all = outcome.cells.iter().chain(&outcome.curve);
    let grouped = all.any(|c| c.group_latency_ms.is_some());
    if grouped {
        titles.extend(["groups", "incomplete_groups"]);
        titles.extend(GROUP_TITLES);
    }
    let mut grid = Grid::new(&titles);
    for cell in outcome.cells.iter().chain(&outcome.curve) {
        let mut row = csv_row(cell, &axes);
        if grouped {
            let groups = cell.group_latency_ms.as_ref();
            let counts = groups.map(|g| [g.n.to_string(), g.incomplete.to_string()]);
            row.extend(counts.unwrap_or_default());
            row.extend(csv_latency(groups.map(|g| &g.latency)));
        }
        grid.row(row);
    }
    grid
}

/// Columns of the latency of groups, where there are any.
const GROUP_TITLES: [&str; 13] = [
    "group_mean_ms",
    "group_mean_ci95_ms",
    "group_p50_ms",
    "group_p50_ci95_ms",
    "group_p90_ms",
    "group_p90_ci95_ms",
    "group_p95_ms",
    "group_p95_ci95_ms",
    "group_p99_ms",
    "group_p99_ci95_ms",
    "group_p999_ms",
    "group_p999_ci95_ms",
    "group_max_ms",
];

fn csv_row(cell: &Cell, axes: &[&str]) -> Vec<String> {
    let optional = |v: Option<f64>| v.map(|v| v.to_string()).unwrap_or_default();
    let method = serde_json::to_value(cell.method).unwrap_or_default();
    let mut row = vec![
        cell.policy.label.clone(),
        cell.policy.kind.clone(),
        method.as_str().unwrap_or_default().to_owned(),
    ];
    row.extend(axes.iter().map(|path| {
        cell.coords.get(*path).map(|v| v.trim_matches('"').to_owned()).unwrap_or_default()
    }));
    let r = &cell.requests;
    row.extend([
        cell.rate_per_s.to_string(),
        optional(cell.capacity_per_s),
        optional(cell.load),
        cell.stable.to_string(),
        cell.replications.to_string(),
    ]);
    let counts = [r.offered, r.completed, r.rejected, r.expired, r.shed, r.cancelled, r.unfinished];
    row.extend(counts.map(|n| n.to_string()));
    row.extend(
        [cell.throughput_per_s, cell.utilization, cell.batch_size.mean].map(|v| v.to_string()),
    );
    row.extend(csv_latency(cell.latency_ms.as_ref()));
    let queue = cell.queue_ms.as_ref();
    row.extend([optional(queue.map(|q| q.mean)), optional(queue.map(|q| q.p99))]);
    row.push(cell.warmup_ms.to_string());
    let verdicts: Vec<String> = cell
        .verdicts
        .iter()
        .map(|v| format!("{}={}", v.expr, format!("{:?}", v.judgement).to_lowercase()))
        .collect();
    row.push(verdicts.join("; "));
    row
}

fn csv_latency(latency: Option<&Latency>) -> Vec<String> {
    let Some(l) = latency else { return vec![String::new(); 13] };
    let ci = l.ci95.as_ref();
    let mut row = Vec::with_capacity(13);
    let pairs = [
        (Some(l.mean), ci.map(|c| c.mean)),
        (Some(l.p50), ci.map(|c| c.p50)),
        (Some(l.p90), ci.map(|c| c.p90)),
        (Some(l.p95), ci.map(|c| c.p95)),
        (Some(l.p99), ci.map(|c| c.p99)),
        (l.p999, ci.and_then(|c| c.p999)),
    ];
    for value in pairs.into_iter().flat_map(|(value, half)| [value, half]).chain([l.max]) {
        row.push(value.map(|v| v.to_string()).unwrap_or_default());
    }
    row
}

/// Requests simulated, for a closing line.
#[must_use]
pub fn simulated(outcome: &Outcome) -> String {
    count(outcome.cells.iter().chain(&outcome.curve).map(|c| c.requests.offered).sum())
}

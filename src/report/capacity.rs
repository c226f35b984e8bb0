//! The answer of `capacity` as a table and in words.

use super::grid::Grid;
use crate::number::{count, decimals, plus_minus, rate};
use crate::outcome::capacity::{CapacityCell, CapacityOutcome, Closest, Fewest, RateEnd, Staffed};
use crate::outcome::{Method, PolicyInfo};
use std::collections::BTreeMap;

/// The table people see: one row per entry, what it can take.
#[must_use]
pub fn capacity_table(outcome: &CapacityOutcome) -> Grid {
    let paths = paths(outcome);
    let needed = outcome.cells.iter().any(|c| c.fewest.is_some());
    let rates = outcome.cells.iter().any(|c| c.feasible.is_some());
    let traced = outcome.cells.iter().any(|c| c.max_speed_factor.is_some());
    let mut titles = vec!["<policy"];
    titles.extend(&paths);
    if rates {
        titles.extend(["highest rate /s", "from /s", "load", "headroom"]);
    }
    if traced {
        titles.push("speed");
    }
    if needed {
        titles.push("instances needed");
    }
    titles.extend(["<binds", "<method"]);
    let mut grid = Grid::new(&titles);
    for cell in &outcome.cells {
        let mut row = vec![cell.policy.label.clone()];
        row.extend(paths.iter().map(|p| coordinate(cell, p)));
        if rates {
            row.extend(rate_columns(cell));
        }
        if traced {
            row.push(cell.max_speed_factor.map_or_else(dash, |f| format!("× {}", decimals(f, 2))));
        }
        if needed {
            row.push(cell.fewest.as_ref().map_or_else(dash, needed_words));
        }
        row.push(binds(cell));
        row.push(method(cell.method).to_owned());
        grid.row(row);
    }
    grid
}

fn dash() -> String {
    "–".into()
}

/// Paths of the sweep, in order.
fn paths(outcome: &CapacityOutcome) -> Vec<&str> {
    let mut paths: Vec<&str> = Vec::new();
    for path in outcome.cells.iter().flat_map(|c| c.coords.keys()) {
        if !paths.contains(&path.as_str()) {
            paths.push(path);
        }
    }
    paths
}

fn coordinate(cell: &CapacityCell, path: &str) -> String {
    cell.coords.get(path).map_or_else(dash, |v| v.trim_matches('"').to_owned())
}

fn rate_columns(cell: &CapacityCell) -> [String; 4] {
    match cell.window() {
        Some(window) => [
            end(&window.high),
            window.low.as_ref().map_or_else(|| "0".into(), end),
            window.high.load.map_or_else(dash, |load| decimals(load, 3)),
            cell.headroom.map_or_else(dash, percent),
        ],
        None if cell.feasible == Some(false) => ["none".into(), dash(), dash(), dash()],
        None => [dash(), dash(), dash(), dash()],
    }
}

/// A rate with its half-width; an exact one with two decimals.
fn end(end: &RateEnd) -> String {
    match end.ci95 {
        Some([low, high]) => plus_minus(end.rate_per_s, Some(0.5 * (high - low))),
        None => decimals(end.rate_per_s, 2),
    }
}

/// `+18.7%`.
fn percent(share: f64) -> String {
    format!("{:+.1}%", share * 100.0)
}

fn needed_words(fewest: &Fewest) -> String {
    match fewest.instances {
        Some(n) => format!("{}{}", count(u64::from(n)), if fewest.certain { "" } else { "?" }),
        None => "none".into(),
    }
}

fn binds(cell: &CapacityCell) -> String {
    match (cell.window(), &cell.best) {
        (Some(window), _) => window.high.binds.clone(),
        (None, Some(best)) => best.binds.clone(),
        (None, None) => dash(),
    }
}

fn method(method: Method) -> &'static str {
    match method {
        Method::Exact => "exact",
        Method::Trace => "one replay, no ±",
        Method::Simulation | Method::Recurrence => "simulation",
    }
}

/// What the table cannot say: windows, what misses by how much, instances one below.
#[must_use]
pub fn capacity_lines(outcome: &CapacityOutcome) -> Vec<String> {
    let mut lines = Vec::new();
    for cell in &outcome.cells {
        let place = place(&cell.policy, &cell.coords);
        lines.extend(rate_lines(cell).into_iter().map(|line| format!("{place}: {line}")));
        if let Some(fewest) = &cell.fewest {
            lines.push(format!("{place}: {}", fewest_line(fewest, &cell.policy)));
        }
    }
    lines
}

fn place(policy: &PolicyInfo, coords: &BTreeMap<String, String>) -> String {
    let mut text = policy.label.clone();
    for (path, value) in coords {
        text += &format!(" {path}={}", value.trim_matches('"'));
    }
    text
}

fn rate_lines(cell: &CapacityCell) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(window) = cell.window() {
        if let Some(low) = &window.low {
            lines.push(format!(
                "feasible from {}/s to {}/s only; below, {} is missed while requests wait for \
                 company",
                end(low),
                end(&window.high),
                low.binds
            ));
        }
        if window.high.binds == "search" {
            lines.push(format!(
                "still holds at {}/s, the highest rate that was examined",
                rate(window.high.rate_per_s)
            ));
        }
        for other in &cell.windows[1..] {
            let low = other.low.as_ref().map_or_else(|| "0".into(), end);
            lines.push(format!("also feasible from {low}/s to {}/s", end(&other.high)));
        }
    } else if let Some(best) = &cell.best {
        lines.push(closest_line(best, cell.examined_per_s));
    }
    lines
}

fn closest_line(best: &Closest, examined: Option<[f64; 2]>) -> String {
    let range = examined
        .map_or_else(String::new, |[a, b]| format!(" ({}/s to {}/s examined)", rate(a), rate(b)));
    format!(
        "infeasible at every rate{range}: at best, at {}/s, {} comes to {}",
        rate(best.rate_per_s),
        best.binds,
        amount(best.value, best.ci95, &best.unit)
    )
}

fn amount(value: f64, half: Option<f64>, unit: &str) -> String {
    match (unit, half) {
        ("", Some(half)) => format!("{:.3} ±{:.3} %", value * 100.0, half * 100.0),
        ("", None) => format!("{:.3} %", value * 100.0),
        (unit, half) => {
            let space = if unit.starts_with('/') { "" } else { " " };
            format!("{}{space}{unit}", plus_minus(value, half))
        }
    }
}

fn fewest_line(fewest: &Fewest, policy: &PolicyInfo) -> String {
    let load = match fewest.rate_per_s {
        Some(per_s) => format!("{}/s", rate(per_s)),
        None => "this load".into(),
    };
    let at = |n: u32| fewest.examined.iter().find(|s| s.instances == n);
    let Some(n) = fewest.instances else {
        let last = fewest.examined.last().map(|s| format!("; with {}", staffed(s)));
        return format!(
            "no number of instances holds {load} with {}{}",
            policy.label,
            last.unwrap_or_default()
        );
    };
    let mut line = format!("{load} needs {}", instances(n));
    if let Some(one) = at(n) {
        line += &format!(": {}", staffed(one));
    }
    if let Some(less) = at(n - 1) {
        line += &format!("; with {}", staffed(less));
    } else if n > 1 {
        line += &format!("; {} cannot keep up", instances(n - 1));
    }
    if !fewest.certain {
        line += "; not certain, an interval straddles its limit";
    }
    line
}

fn instances(n: u32) -> String {
    format!("{} instance{}", count(u64::from(n)), if n == 1 { "" } else { "s" })
}

fn staffed(one: &Staffed) -> String {
    let load = one.load.map_or_else(String::new, |l| format!(" at load {}", decimals(l, 2)));
    let n = instances(one.instances);
    match one.value {
        Some(value) => {
            let word = if one.holds { "holds" } else { "is missed" };
            let unit = unit(&one.binds);
            let value = amount(value, one.ci95, unit);
            format!("{n}{load} {} {word} ({value})", one.binds)
        }
        None => format!("{n}{load} the queue grows without end"),
    }
}

/// Unit of what a threshold names, from its first word.
fn unit(expr: &str) -> &'static str {
    let name = expr.trim_start();
    if name.starts_with('p') || name.starts_with("mean") {
        "ms"
    } else if name.starts_with("throughput") {
        "/s"
    } else {
        ""
    }
}

/// One line per warning.
#[must_use]
pub fn capacity_warnings(outcome: &CapacityOutcome) -> Vec<String> {
    let of_cells = outcome.cells.iter().flat_map(|cell| {
        let place = place(&cell.policy, &cell.coords);
        cell.warnings.iter().map(move |w| format!("{place}: {w}"))
    });
    outcome.warnings.iter().cloned().chain(of_cells).collect()
}

/// Every number, for spreadsheets: names with units, no rounding.
#[must_use]
pub fn capacity_csv(outcome: &CapacityOutcome) -> Grid {
    let paths = paths(outcome);
    let mut titles = vec!["policy", "kind", "method"];
    titles.extend(&paths);
    titles.extend([
        "instances",
        "offered_per_s",
        "capacity_per_s",
        "feasible",
        "max_rate_per_s",
        "max_rate_low_per_s",
        "max_rate_high_per_s",
        "min_rate_per_s",
        "load_at_max",
        "headroom",
        "max_speed_factor",
        "binds",
        "instances_needed",
        "p99_ms",
        "requests",
    ]);
    let mut grid = Grid::new(&titles);
    for cell in &outcome.cells {
        let mut row =
            vec![cell.policy.label.clone(), cell.policy.kind.clone(), method_name(cell.method)];
        row.extend(paths.iter().map(|p| {
            cell.coords.get(*p).map(|v| v.trim_matches('"').to_owned()).unwrap_or_default()
        }));
        row.extend(csv_numbers(cell));
        grid.row(row);
    }
    grid
}

fn method_name(method: Method) -> String {
    let name = serde_json::to_value(method).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

fn csv_numbers(cell: &CapacityCell) -> Vec<String> {
    let text = |v: Option<f64>| v.map(|v| v.to_string()).unwrap_or_default();
    let window = cell.window();
    let ends = window.and_then(|w| w.high.ci95);
    let low = window.and_then(|w| w.low.as_ref()).map(|low| low.rate_per_s);
    let needed = cell.fewest.as_ref().and_then(|f| f.instances);
    vec![
        cell.instances.to_string(),
        text(cell.offered_per_s),
        text(cell.capacity_per_s),
        cell.feasible.map(|f| f.to_string()).unwrap_or_default(),
        text(cell.max_rate_per_s),
        text(ends.map(|e| e[0])),
        text(ends.map(|e| e[1])),
        text(low),
        text(window.and_then(|w| w.high.load)),
        text(cell.headroom),
        text(cell.max_speed_factor),
        binds(cell),
        needed.map(|n| n.to_string()).unwrap_or_default(),
        text(cell.latency_ms.as_ref().map(|l| l.p99)),
        cell.requests.to_string(),
    ]
}

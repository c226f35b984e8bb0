//! What `validate` found, as a table, Markdown, CSV.

use super::Grid;
use crate::number::{count, decimals, rate};
use crate::outcome::{
    FittedOverheads, FourMs, LoadNumbers, LoadValidation, Observation, OverheadMs, Validation,
};

/// A number that one side may not have.
fn or_dash(value: Option<f64>, places: usize) -> String {
    value.map_or_else(|| "–".into(), |v| decimals(v, places))
}

/// A relative error in per cent.
fn percent(error: Option<f64>) -> String {
    match error {
        Some(e) if e.is_finite() => {
            let text = decimals(e * 100.0, if e.abs() < 0.1 { 2 } else { 1 });
            // Rounded to nothing: neither above nor below.
            let nothing = text.trim_matches(['-', '0', '.']).is_empty();
            let sign = if e < 0.0 || nothing { "" } else { "+" };
            let text = if nothing { text.trim_start_matches('-') } else { text.as_str() };
            format!("{sign}{text} %")
        }
        _ => "–".into(),
    }
}

/// One line of the comparison: what it is called, and its number in a column.
type Figure = (&'static str, &'static str, fn(&Observation) -> Option<f64>);

fn latency(o: &Observation, of: fn(&FourMs) -> f64) -> Option<f64> {
    o.latency_ms.as_ref().map(of)
}

#[expect(clippy::cast_precision_loss, reason = "a count")]
fn accepted(o: &Observation) -> f64 {
    o.accepted as f64
}

const FIGURES: [Figure; 6] = [
    ("mean latency", "mean", |o| latency(o, |l| l.mean)),
    ("p50", "p50", |o| latency(o, |l| l.p50)),
    ("p90", "p90", |o| latency(o, |l| l.p90)),
    ("p99", "p99", |o| latency(o, |l| l.p99)),
    ("mean batch", "mean_batch", |o| o.mean_batch),
    ("accepted", "accepted", |o| Some(accepted(o))),
];

fn relative(measured: Option<f64>, predicted: Option<f64>) -> Option<f64> {
    measured.zip(predicted).map(|(m, p)| (p - m) / m)
}

/// How large an error of a number may be.
fn allowed(v: &Validation, key: &str) -> Option<f64> {
    let t = &v.tolerance;
    match key {
        "p50" => Some(t.p50),
        "p90" => Some(t.p90),
        "p99" => Some(t.p99),
        "mean_batch" => Some(t.mean_batch),
        "accepted" => Some(t.accepted),
        _ => None,
    }
}

/// The three columns side by side.
#[must_use]
pub fn validation_table(v: &Validation) -> Grid {
    let mut grid =
        Grid::new(&["<figure", "measured", "predicted", "error", "allowed", "textbook", "error"]);
    for (title, key, of) in FIGURES {
        let (m, p, t) = (of(&v.measured), of(&v.predicted), of(&v.textbook));
        let unit = if matches!(key, "mean_batch" | "accepted") { "" } else { " ms" };
        let show = |value: Option<f64>| match (key, value) {
            (_, None) => "–".to_owned(),
            ("accepted", Some(n)) => decimals(n, 0),
            (_, Some(n)) => format!("{}{unit}", decimals(n, 2)),
        };
        let missed = v.misses.iter().any(|name| name == key);
        let mark = if missed { " !" } else { "" };
        let allowed = allowed(v, key).filter(|_| m.is_some());
        grid.row(vec![
            title.to_owned(),
            show(m),
            show(p),
            percent(relative(m, p)) + mark,
            allowed.map_or_else(String::new, |a| format!("±{} %", decimals(a * 100.0, 1))),
            show(t),
            percent(relative(m, t)),
        ]);
    }
    let mut apart = |title: &str, p: Option<f64>, t: Option<f64>, places: usize, unit: &str| {
        let show = |v: Option<f64>| match v {
            Some(_) => format!("{}{unit}", or_dash(v, places)),
            None => "–".to_owned(),
        };
        let none = String::new;
        grid.row(vec![title.to_owned(), none(), show(p), none(), none(), show(t), none()]);
    };
    let (p, t) = (&v.distance, &v.textbook_distance);
    apart("quantile distance", p.quantile_ms, t.quantile_ms, 2, " ms");
    apart("batch sizes, total variation", p.batch_tv, t.batch_tv, 3, "");
    grid
}

/// The share of batches of each size, side by side; `None` where the recording has no batches.
#[must_use]
pub fn batch_law_table(v: &Validation) -> Option<Grid> {
    if v.measured.batch_sizes.is_empty() {
        return None;
    }
    let columns = [&v.measured, &v.predicted, &v.textbook];
    let sizes = || columns.iter().flat_map(|c| c.batch_sizes.iter().map(|s| s.size));
    let all: std::collections::BTreeSet<u32> = sizes().collect();
    let mut grid = Grid::new(&["batch of", "measured", "predicted", "textbook"]);
    for size in all {
        let share = |o: &&Observation| {
            let found = o.batch_sizes.iter().find(|s| s.size == size);
            format!("{} %", decimals(found.map_or(0.0, |s| s.share) * 100.0, 1))
        };
        let mut row = vec![count(u64::from(size))];
        row.extend(columns.iter().map(share));
        grid.row(row);
    }
    Some(grid)
}

/// The line above the table: what was recorded, and who predicts.
#[must_use]
pub fn validation_title(v: &Validation) -> String {
    let r = &v.recording;
    let mut parts = vec![r.name.clone()];
    if let (Some(server), Some(version)) = (&r.server, &r.version) {
        parts.push(format!("{server} {version}"));
    }
    parts.extend(r.description.clone());
    let sent = format!("{} requests in {} s", count(r.requests), decimals(r.span_s, 1));
    parts.push(sent);
    parts.push(format!("policy {}", v.policy.label));
    parts.join(" · ")
}

/// The overheads, by name.
#[must_use]
pub fn overhead_lines(o: &OverheadMs) -> Vec<String> {
    let ms = |v: f64| format!("{} ms", decimals(v, 4));
    vec![format!(
        "overhead: inbound {}, dispatch {}, release {} + {} per request, response {} ({})",
        ms(o.inbound),
        ms(o.dispatch),
        ms(o.release),
        ms(o.release_per_request),
        ms(o.response),
        o.source,
    )]
}

/// What to say about misses.
#[must_use]
pub fn miss_lines(v: &Validation) -> Vec<String> {
    if v.misses.is_empty() {
        return vec!["every number is within what is allowed".into()];
    }
    vec![format!("outside what is allowed: {}", v.misses.join(", "))]
}

/// The comparison as CSV: one line per figure, unrounded.
#[must_use]
pub fn validation_csv(all: &[Validation]) -> String {
    let mut grid = Grid::new(&[
        "recording",
        "server",
        "version",
        "policy",
        "figure",
        "unit",
        "measured",
        "predicted",
        "relative_error",
        "allowed",
        "textbook",
        "textbook_relative_error",
    ]);
    let text = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
    for v in all {
        for (_, key, of) in FIGURES {
            let (m, p, t) = (of(&v.measured), of(&v.predicted), of(&v.textbook));
            let unit = match key {
                "accepted" => "requests",
                "mean_batch" => "items",
                _ => "ms",
            };
            grid.row(vec![
                v.recording.name.clone(),
                v.recording.server.clone().unwrap_or_default(),
                v.recording.version.clone().unwrap_or_default(),
                v.policy.label.clone(),
                key.to_owned(),
                unit.to_owned(),
                text(m),
                text(p),
                text(relative(m, p)),
                text(allowed(v, key)),
                text(t),
                text(relative(m, t)),
            ]);
        }
        let mut apart = |key: &str, unit: &str, p: Option<f64>, t: Option<f64>| {
            let (name, label) = (v.recording.name.clone(), v.policy.label.clone());
            let server = v.recording.server.clone().unwrap_or_default();
            let version = v.recording.version.clone().unwrap_or_default();
            let (key, unit, none) = (key.to_owned(), unit.to_owned(), String::new);
            let mut row = vec![name, server, version, label, key, unit, none(), text(p)];
            row.extend([none(), none(), text(t), none()]);
            grid.row(row);
        };
        let (p, t) = (&v.distance, &v.textbook_distance);
        apart("quantile_distance", "ms", p.quantile_ms, t.quantile_ms);
        apart("batch_total_variation", "", p.batch_tv, t.batch_tv);
    }
    grid.to_csv()
}

/// One line per recording and number: what the page about validation shows.
#[must_use]
pub fn validation_overview(all: &[Validation]) -> Grid {
    let mut grid = Grid::new(&[
        "<recording",
        "<server",
        "<scenario",
        "<number",
        "measured",
        "predicted",
        "error",
        "allowed",
        "textbook",
        "textbook error",
    ]);
    for v in all {
        let r = &v.recording;
        let server = match (&r.server, &r.version) {
            (Some(server), Some(version)) => format!("{server} {version}"),
            _ => v.policy.label.clone(),
        };
        for (n, (_, key, of)) in FIGURES.into_iter().filter(|f| f.1 != "mean").enumerate() {
            let (m, p, t) = (of(&v.measured), of(&v.predicted), of(&v.textbook));
            let show = |v: Option<f64>| match key {
                "accepted" => or_dash(v, 0),
                _ => or_dash(v, 2),
            };
            let once = |text: String| if n == 0 { text } else { String::new() };
            let mark = if v.misses.iter().any(|m| m == key) { " ✗" } else { "" };
            let name = match key {
                "mean_batch" => "mean batch".to_owned(),
                "accepted" => key.to_owned(),
                other => format!("{other} ms"),
            };
            grid.row(vec![
                once(r.name.clone()),
                once(server.clone()),
                once(r.description.clone().unwrap_or_default()),
                name,
                show(m),
                show(p),
                percent(relative(m, p)) + mark,
                allowed(v, key)
                    .map_or_else(String::new, |a| format!("±{} %", decimals(a * 100.0, 1))),
                show(t),
                percent(relative(m, t)),
            ]);
        }
    }
    grid
}

/// One line per recording: how far the prediction is off, and how far the textbook.
#[must_use]
pub fn validation_glance(all: &[Validation]) -> Grid {
    let mut grid = Grid::new(&[
        "<recording",
        "<scenario",
        "p50",
        "p90",
        "p99",
        "mean batch",
        "accepted",
        "textbook p50",
        "textbook p99",
    ]);
    for v in all {
        let mut row =
            vec![v.recording.name.clone(), v.recording.description.clone().unwrap_or_default()];
        for key in ["p50", "p90", "p99", "mean_batch", "accepted"] {
            let figure = FIGURES.iter().find(|f| f.1 == key);
            let error = figure.and_then(|f| relative((f.2)(&v.measured), (f.2)(&v.predicted)));
            let missed = v.misses.iter().any(|name| name == key);
            row.push(percent(error) + if missed { " ✗" } else { "" });
        }
        let textbook = v.textbook_relative_error.latency_ms.as_ref();
        row.push(percent(textbook.map(|l| l.p50)));
        row.push(percent(textbook.map(|l| l.p99)));
        grid.row(row);
    }
    grid
}

/// Measured and simulated loads side by side.
#[must_use]
pub fn loads_table(v: &LoadValidation) -> Grid {
    let mut grid =
        Grid::new(&["<load", "<figure", "measured", "predicted", "error", "textbook", "error"]);
    for point in &v.points {
        let columns = [&point.measured, &point.predicted, &point.textbook];
        let [m, p, t] = columns.map(|n| Some(n.throughput_per_s));
        let show = |v: Option<f64>| v.map_or_else(|| "–".into(), |v| format!("{}/s", rate(v)));
        let row = |figure: &str, texts: [String; 3], p: Option<f64>, t: Option<f64>| {
            let [m, predicted, textbook] = texts;
            let load = point.load.clone();
            vec![load, figure.to_owned(), m, predicted, percent(p), textbook, percent(t)]
        };
        let texts = [show(m), show(p), show(t)];
        grid.row(row("throughput", texts, relative(m, p), relative(m, t)));
        for name in point.measured.latency_ms.keys() {
            let value = |n: &LoadNumbers| n.latency_ms.get(name).copied();
            let [m, p, t] = columns.map(value);
            let texts = [m, p, t].map(|v| format!("{} ms", or_dash(v, 2)));
            grid.row(row(name, texts, relative(m, p), relative(m, t)));
        }
    }
    grid
}

/// How overheads were fitted.
#[must_use]
pub fn fit_table(fitted: &FittedOverheads) -> Grid {
    let mut grid = Grid::new(&["<overhead", "ms", "<fitted on", "samples", "<what was taken"]);
    for step in &fitted.steps {
        let on = step.recording.clone().unwrap_or_else(|| "–".into());
        let samples = if step.samples == 0 { "–".into() } else { count(step.samples) };
        let ms = decimals(step.ms, 4);
        grid.row(vec![step.name.clone(), ms, on, samples, step.method.clone()]);
    }
    grid
}

/// The fitted overheads as a line of a scenario.
#[must_use]
pub fn fit_fragment(fitted: &FittedOverheads) -> String {
    let o = &fitted.overhead_ms;
    let ms = |v: f64| format!("\"{v}ms\"");
    format!(
        "[server]\noverhead = {{ inbound = {}, dispatch = {}, release = {}, \
         release_per_request = {}, response = {} }}\n",
        ms(o.inbound),
        ms(o.dispatch),
        ms(o.release),
        ms(o.release_per_request),
        ms(o.response),
    )
}

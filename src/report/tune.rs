//! The answer of `tune`: a table of settings, and the certificate in words.

use super::grid::Grid;
use crate::number::{count, decimals, plus_minus, rate};
use crate::outcome::capacity::Closest;
use crate::outcome::tune::{
    Certificate, Change, Fate, Ladder, Rung, TuneOutcome, TunedSetting, Violation, Waiting,
};
use std::collections::BTreeMap;

/// Rows of the table before it is cut.
const ROWS: usize = 24;

/// The table people see: the settings, the best first.
#[must_use]
pub fn tune_table(outcome: &TuneOutcome) -> Grid {
    let mut titles: Vec<String> = vec!["<".into(), "<policy".into()];
    titles.extend(outcome.over.iter().cloned());
    titles.push(measure(outcome));
    titles.extend(["<fate".into(), "<binds".into()]);
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut grid = Grid::new(&titles);
    for number in order(outcome).into_iter().take(ROWS) {
        let setting = &outcome.settings[number];
        let mark = if outcome.recommended == Some(number) { "→" } else { "" };
        let mut row = vec![mark.to_owned(), setting.policy.label.clone()];
        row.extend(outcome.over.iter().map(|path| coordinate(&setting.coords, path)));
        row.push(value_words(outcome, setting));
        row.push(fate(setting));
        row.push(setting.binds.clone().unwrap_or_else(|| "–".into()));
        grid.row(row);
    }
    grid
}

/// Settings as they are shown: recommended first, then ties, then by value.
fn order(outcome: &TuneOutcome) -> Vec<usize> {
    let rank = |fate: Fate| match fate {
        Fate::Tied => 0,
        Fate::Worse => 1,
        Fate::Infeasible => 2,
        Fate::Pruned => 3,
    };
    let simple = |i: &usize| outcome.ties.iter().position(|t| t == i).unwrap_or(usize::MAX);
    let signed = |i: &usize| {
        let value = outcome.settings[*i].value.unwrap_or(f64::INFINITY);
        if outcome.maximise { -value } else { value }
    };
    let mut all: Vec<usize> = (0..outcome.settings.len()).collect();
    all.sort_by(|a, b| {
        let fates = rank(outcome.settings[*a].fate).cmp(&rank(outcome.settings[*b].fate));
        fates.then(simple(a).cmp(&simple(b))).then(signed(a).total_cmp(&signed(b))).then(a.cmp(b))
    });
    all
}

fn coordinate(coords: &BTreeMap<String, String>, path: &str) -> String {
    coords.get(path).map_or_else(|| "–".into(), |v| v.trim_matches('"').to_owned())
}

fn fate(setting: &TunedSetting) -> String {
    let word = match setting.fate {
        Fate::Tied => "tied",
        Fate::Worse => "worse",
        Fate::Infeasible => "infeasible",
        Fate::Pruned => "capacity too low",
    };
    if setting.open { format!("{word}, open") } else { word.into() }
}

fn value_words(outcome: &TuneOutcome, setting: &TunedSetting) -> String {
    match setting.value {
        Some(value) => amount(outcome, value, setting.ci95),
        None => "–".into(),
    }
}

/// A value of the objective; an exact one without ±.
fn amount(outcome: &TuneOutcome, value: f64, ci95: Option<[f64; 2]>) -> String {
    match ci95 {
        Some([low, high]) => plus_minus(value, Some(0.5 * (high - low))),
        None if outcome.unit == "instances" => decimals(value, 0),
        None => decimals(value, 3),
    }
}

/// What is measured, with its unit: `p99 ms`.
fn measure(outcome: &TuneOutcome) -> String {
    if outcome.unit == outcome.measure {
        outcome.unit.clone()
    } else {
        format!("{} {}", outcome.measure, outcome.unit)
    }
}

/// A value with its name and unit: `p99 38.6 ms`, `highest rate 1,214.481/s`.
fn measured(outcome: &TuneOutcome, value: &str) -> String {
    if outcome.unit == outcome.measure {
        return format!("{value} {}", outcome.unit);
    }
    let space = if outcome.unit.starts_with('/') { "" } else { " " };
    format!("{} {value}{space}{}", outcome.measure, outcome.unit)
}

/// A setting in a line: `dynamic, max_batch_size 64, max_wait 0ms`.
fn name(outcome: &TuneOutcome, number: usize) -> String {
    let Some(setting) = outcome.settings.get(number) else { return String::new() };
    let mut text = setting.policy.label.clone();
    for (path, value) in &setting.coords {
        let key = path.rsplit('.').next().unwrap_or(path);
        text += &format!(", {key} {}", value.trim_matches('"'));
    }
    text
}

/// How many rows the table leaves out.
#[must_use]
pub fn tune_rest(outcome: &TuneOutcome) -> Option<String> {
    let rest = outcome.settings.len().saturating_sub(ROWS);
    (rest > 0).then(|| format!("… {} more settings in tune.json", count(rest as u64)))
}

/// The answer in words.
#[must_use]
pub fn tune_lines(outcome: &TuneOutcome) -> Vec<String> {
    let mut lines = Vec::new();
    let Some(recommended) = outcome.recommended else {
        lines.push(infeasible(outcome));
        lines.extend(ladder_lines(outcome));
        return lines;
    };
    lines.push(recommended_line(outcome, recommended));
    if let Some(certificate) = &outcome.certificate {
        lines.push(certificate_line(certificate));
    }
    lines.push(tie_line(outcome));
    if let Some(waiting) = &outcome.waiting {
        lines.push(waiting_line(outcome, waiting));
    }
    let rest = count(outcome.requests - outcome.search_requests);
    lines.push(match outcome.search_requests {
        0 => format!(
            "the search rests on exact solutions; certificate and changes took {rest} simulated \
             requests"
        ),
        n => format!(
            "the search rests on {} simulated requests; certificate and changes took {rest} more",
            count(n)
        ),
    });
    lines.extend(ladder_lines(outcome));
    lines
}

fn recommended_line(outcome: &TuneOutcome, number: usize) -> String {
    let setting = &outcome.settings[number];
    let name = name(outcome, number);
    let Some(value) = setting.value else { return format!("recommended: {name}") };
    let value = amount(outcome, value, setting.ci95);
    format!("recommended: {name} ({})", measured(outcome, &value))
}

fn tie_line(outcome: &TuneOutcome) -> String {
    let percent = outcome.indifference * 100.0;
    let ties = outcome.ties.len() as u64;
    let value = |i: usize| {
        let setting = outcome.settings.get(i)?;
        Some(amount(outcome, setting.value?, setting.ci95))
    };
    let best = outcome.best.and_then(value).unwrap_or_default();
    let of = outcome.settings.len() as u64;
    let first = if ties == 1 {
        format!("of {} settings this one is the best ({})", count(of), measured(outcome, &best))
    } else {
        format!(
            "of {} settings {} are within {percent} % of the best ({}) or not to be told from it; \
             recommended is the simplest",
            count(of),
            count(ties),
            measured(outcome, &best)
        )
    };
    format!("{first}; {}", outcome.guarantee)
}

fn certificate_line(c: &Certificate) -> String {
    let load = match c.rate_per_s {
        Some(per_s) if c.at_highest_rate => {
            format!("at the highest rate found, {}/s", decimals(per_s, 2))
        }
        Some(per_s) => format!("at {}/s", rate(per_s)),
        None => "under this load".into(),
    };
    let mut parts = Vec::new();
    if let Some(latency) = &c.latency_ms {
        let half = latency.ci95.as_ref().map(|h| h.p99);
        let exact = c.exact_p99_ms.map(|e| format!(" (exactly {})", decimals(e, 3)));
        parts.push(format!(
            "p99 = {} ms{}",
            plus_minus(latency.p99, half),
            exact.unwrap_or_default()
        ));
    } else {
        parts.push("overloaded".into());
    }
    parts.extend(c.violations.iter().map(violation));
    let seed = if c.replications > 1 {
        format!("{} fresh requests, seed {}", count(c.requests), c.seed)
    } else {
        format!("one replay of {} requests, no ±", count(c.requests))
    };
    format!("{load}: {} ({seed})", parts.join("; "))
}

fn violation(v: &Violation) -> String {
    let interval = v.ci95.map_or_else(String::new, |[low, high]| {
        format!(" (95 % interval {:.3}–{:.3} %)", low.max(0.0) * 100.0, high.min(1.0) * 100.0)
    });
    format!(
        "{}: violation fraction {:.3} %{interval}, limit {} %",
        v.expr,
        v.share * 100.0,
        trim(v.allowed * 100.0)
    )
}

fn trim(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn waiting_line(outcome: &TuneOutcome, w: &Waiting) -> String {
    let value = |i: usize| {
        let setting = &outcome.settings[i];
        setting.value.map_or_else(String::new, |v| amount(outcome, v, setting.ci95))
    };
    let (without, with) = (value(w.without), value(w.with));
    let (unit, percent) = (&outcome.unit, (w.gain * 100.0).abs());
    let p99 = match (w.p99_without_ms, w.p99_with_ms) {
        (Some(a), Some(b)) => {
            format!("; p99 at the offered load goes from {a:.1} to {b:.1} ms")
        }
        _ => String::new(),
    };
    if w.pays {
        let word = if outcome.maximise { "gains" } else { "saves" };
        return format!(
            "waiting pays: {} {word} {percent:.1} % against the best setting that never waits \
             ({without} → {with} {unit}){p99}",
            name(outcome, w.with)
        );
    }
    let compared = if percent < 0.005 {
        "exactly as much".to_owned()
    } else if w.gain > 0.0 {
        format!("{percent:.2} % better, which is inside the indifference zone")
    } else {
        format!("{percent:.2} % worse")
    };
    format!(
        "max_wait buys nothing here: the best setting that waits ({}) is {compared} \
         ({without} without, {with} with, {unit})",
        name(outcome, w.with)
    )
}

fn infeasible(outcome: &TuneOutcome) -> String {
    let all = count(outcome.settings.len() as u64);
    let Some(Closest { rate_per_s, binds, value, ci95, limit, unit }) = &outcome.closest else {
        let most = outcome.settings.iter().filter_map(|s| s.capacity_per_s);
        let most = most.max_by(f64::total_cmp).map_or_else(String::new, |c| {
            format!(": the largest capacity among them is {}/s", rate(c))
        });
        return format!("infeasible: none of {all} settings keeps up with the load{most}");
    };
    let by = (value / limit - 1.0).abs() * 100.0;
    let (shown, shown_limit) = match unit.as_str() {
        "" => (format!("{:.3} %", value * 100.0), format!("{} %", trim(limit * 100.0))),
        unit => {
            let space = if unit.starts_with('/') { "" } else { " " };
            (format!("{}{space}{unit}", plus_minus(*value, *ci95)), format!("{limit}{space}{unit}"))
        }
    };
    let closest = outcome.closest_setting.map_or_else(String::new, |i| name(outcome, i));
    format!(
        "infeasible: none of {all} settings holds the thresholds. {binds} binds: the closest \
         ({closest}, at {}/s) comes to {shown}, {by:.1} % off the limit of {shown_limit}",
        rate(*rate_per_s)
    )
}

fn ladder_lines(outcome: &TuneOutcome) -> Vec<String> {
    let Some(ladder) = &outcome.ladder else { return Vec::new() };
    let mut lines =
        vec!["the common advice (raise cap and wait while the thresholds hold):".to_owned()];
    lines.extend(ladder.rungs.iter().map(|rung| format!("  {}", rung_line(rung))));
    lines.push(format!("  {}", verdict(outcome, ladder)));
    lines
}

fn rung_line(rung: &Rung) -> String {
    let place: Vec<String> = rung
        .coords
        .iter()
        .map(|(path, value)| {
            let key = path.rsplit('.').next().unwrap_or(path);
            format!("{key} {}", value.trim_matches('"'))
        })
        .collect();
    let p99 = rung.p99_ms.map_or_else(|| "overloaded".into(), |p| format!("p99 {p:.2} ms"));
    let holds = if rung.holds { "holds" } else { "does not hold" };
    format!("{}: {}/s, {p99}, {holds}", place.join(", "), rate(rung.throughput_per_s))
}

fn verdict(outcome: &TuneOutcome, ladder: &Ladder) -> String {
    let Some(chosen) = ladder.chosen.and_then(|i| ladder.rungs.get(i)) else {
        return format!("it finds nothing: {}", ladder.ended);
    };
    let place: Vec<String> = chosen
        .coords
        .iter()
        .map(|(path, v)| {
            format!("{} {}", path.rsplit('.').next().unwrap_or(path), v.trim_matches('"'))
        })
        .collect();
    let found = ladder
        .value
        .map_or_else(|| "no value".to_owned(), |v| measured(outcome, &amount(outcome, v, None)));
    let best = outcome.best.and_then(|i| outcome.settings.get(i)?.value);
    let against = match (ladder.worse, best) {
        (Some(worse), Some(best)) if worse > outcome.indifference => format!(
            ", {:.1} % worse than the optimum ({} {})",
            worse * 100.0,
            amount(outcome, best, None),
            outcome.unit
        ),
        (Some(_), Some(_)) => ", as good as the optimum".into(),
        _ => String::new(),
    };
    format!("it stops at {} because {}: {found}{against}", place.join(", "), ladder.ended)
}

/// What one more of each knob buys, and what ±10 % of the conditions does.
#[must_use]
pub fn tune_changes(outcome: &TuneOutcome) -> Option<Grid> {
    if outcome.marginal.is_empty() && outcome.sensitivity.is_empty() {
        return None;
    }
    let value = measure(outcome);
    let p99 = "p99 ms as offered";
    let mut grid = Grid::new(&["<changed", &value, "change", p99, "<thresholds"]);
    for change in outcome.marginal.iter().chain(&outcome.sensitivity) {
        grid.row(change_row(outcome, change));
    }
    Some(grid)
}

fn change_row(outcome: &TuneOutcome, change: &Change) -> Vec<String> {
    vec![
        change.what.clone(),
        change.value.map_or_else(|| "–".into(), |v| amount(outcome, v, change.ci95)),
        change.relative.map_or_else(|| "–".into(), percent),
        change.p99_ms.map_or_else(|| "overloaded".into(), |p| decimals(p, 2)),
        if change.holds { "hold" } else { "missed" }.into(),
    ]
}

/// `+1.23%`; what rounds to nothing has no sign.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() < 0.005 { "0.00%".into() } else { format!("{percent:+.2}%") }
}

/// Every number, for spreadsheets: names with units, no rounding.
#[must_use]
pub fn tune_csv(outcome: &TuneOutcome) -> Grid {
    let mut titles = vec!["policy", "kind", "instances"];
    titles.extend(outcome.over.iter().map(String::as_str));
    titles.extend(["capacity_per_s", "value", "value_low", "value_high", "unit", "fate"]);
    titles.extend(["open", "binds", "recommended", "requests"]);
    let mut grid = Grid::new(&titles);
    let text = |v: Option<f64>| v.map(|v| v.to_string()).unwrap_or_default();
    for (number, s) in outcome.settings.iter().enumerate() {
        let mut row = vec![s.policy.label.clone(), s.policy.kind.clone(), s.instances.to_string()];
        row.extend(outcome.over.iter().map(|path| {
            s.coords.get(path).map(|v| v.trim_matches('"').to_owned()).unwrap_or_default()
        }));
        row.extend([
            text(s.capacity_per_s),
            text(s.value),
            text(s.ci95.map(|c| c[0])),
            text(s.ci95.map(|c| c[1])),
            outcome.unit.clone(),
            format!("{:?}", s.fate).to_lowercase(),
            s.open.to_string(),
            s.binds.clone().unwrap_or_default(),
            (outcome.recommended == Some(number)).to_string(),
            s.requests.to_string(),
        ]);
        grid.row(row);
    }
    grid
}

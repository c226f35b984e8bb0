//! What `check` found, as rows: for a terminal, a pull request, a spreadsheet.

use super::grid::Grid;
use crate::number::{points_or_percent, quantity};
use crate::outcome::{
    Against, CellCheck, Change, Check, ExactCheck, Finding, Judgement, KeyChange, ScenarioCheck,
    Shift, Spot, ThresholdCheck,
};

/// How much a row weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// All is well.
    Fine,
    /// Worth knowing.
    Note,
    /// Open: a longer run would tell.
    Open,
    /// It fails the check.
    Bad,
}

/// One judged thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<'a> {
    /// `threshold`, `exact` or `baseline`.
    pub kind: &'static str,
    /// Label of the policy.
    pub policy: &'a str,
    /// What is judged: a threshold as written, or a number.
    pub what: String,
    /// One word.
    pub verdict: &'static str,
    /// The numbers behind it.
    pub evidence: String,
    /// How much it weighs.
    pub weight: Weight,
    /// Where it is written.
    pub spot: Option<&'a Spot>,
}

/// Everything that was judged in a scenario.
#[must_use]
pub fn rows(scenario: &ScenarioCheck) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for cell in &scenario.cells {
        rows.extend(cell.thresholds.iter().map(|t| threshold(cell, t)));
        rows.extend(exact(cell));
        if let Some(against) = &scenario.against {
            rows.extend(baseline(cell, against));
        }
    }
    if let Some(against) = &scenario.against {
        rows.extend(against.missing.iter().map(|label| Row {
            kind: "baseline",
            policy: label,
            what: "all".into(),
            verdict: "gone",
            evidence: "the baseline has this policy, the scenario no longer does".into(),
            weight: Weight::Bad,
            spot: None,
        }));
    }
    rows
}

fn threshold<'a>(cell: &'a CellCheck, t: &'a ThresholdCheck) -> Row<'a> {
    let (verdict, weight) = match t.judgement {
        Judgement::Pass => ("pass", Weight::Fine),
        Judgement::Inconclusive => ("inconclusive", Weight::Open),
        Judgement::Fail => ("FAIL", Weight::Bad),
    };
    let of = t.class.as_ref().map_or_else(String::new, |class| format!(" of {class}"));
    Row {
        kind: "threshold",
        policy: &cell.label,
        what: format!("{}{of}", t.expr),
        verdict,
        evidence: t.evidence.clone(),
        weight,
        spot: t.spot.as_ref(),
    }
}

fn exact(cell: &CellCheck) -> Vec<Row<'_>> {
    let row = |what: String, verdict, evidence, weight| Row {
        kind: "exact",
        policy: &cell.label,
        what,
        verdict,
        evidence,
        weight,
        spot: None,
    };
    let words = |e: &ExactCheck| {
        format!(
            "{} simulated, {} exact, allowed ±{}",
            quantity(e.simulated, &e.unit),
            quantity(e.exact, &e.unit),
            quantity(e.allowed, &e.unit)
        )
    };
    let agree = cell.exact.iter().filter(|e| e.agrees).count();
    let mut rows: Vec<Row<'_>> = cell
        .exact
        .iter()
        .filter(|e| !e.agrees)
        .map(|e| row(e.metric.clone(), "DIFFERS", words(e), Weight::Bad))
        .collect();
    if agree > 0 {
        let shown = cell.exact.iter().find(|e| e.metric == "p(99)" && e.agrees);
        let evidence = shown.map_or_else(String::new, |e| format!("{} {}", e.metric, words(e)));
        rows.push(row(numbers(agree), "agree", evidence, Weight::Fine));
    }
    rows
}

/// `12 numbers`.
pub(super) fn numbers(n: usize) -> String {
    if n == 1 { "1 number".into() } else { format!("{n} numbers") }
}

fn baseline<'a>(cell: &'a CellCheck, against: &'a Against) -> Vec<Row<'a>> {
    let row = |what: String, verdict, evidence: String, weight| Row {
        kind: "baseline",
        policy: &cell.label,
        what,
        verdict,
        evidence,
        weight,
        spot: None,
    };
    let all = cell.changes.len();
    match cell.identical {
        None => {
            let evidence = "the baseline does not have this policy; --bless records it";
            return vec![row("all".into(), "new", evidence.into(), Weight::Note)];
        }
        Some(true) => {
            return vec![row(numbers(all), "identical", String::new(), Weight::Fine)];
        }
        Some(false) => {}
    }
    let mut rows: Vec<Row<'_>> = Vec::new();
    for change in &cell.changes {
        let bad = against.counts(change.shift);
        let weight = match change.shift {
            _ if bad => Weight::Bad,
            Shift::Undecided => Weight::Open,
            _ => Weight::Note,
        };
        if bad || change.shift.is_different() || change.shift == Shift::Undecided {
            rows.push(row(change.metric.clone(), change.shift.word(), moved(change), weight));
        }
    }
    let same = cell
        .changes
        .iter()
        .filter(|c| matches!(c.shift, Shift::Identical | Shift::Equivalent))
        .collect::<Vec<_>>();
    if let Some(first) = same.first() {
        let largest = same
            .iter()
            .copied()
            .fold(*first, |a, b| if b.change.abs() > a.change.abs() { b } else { a });
        let evidence = format!("the largest: {} {}", largest.metric, moved(largest));
        rows.push(row(numbers(same.len()), "equivalent", evidence, Weight::Fine));
    }
    rows
}

/// `38.56 → 40.10 ms, +3.99 % ±0.31 %`.
#[must_use]
pub fn moved(c: &Change) -> String {
    let half = match c.half_width {
        Some(half) => format!(" ±{}", points_or_percent(half, &c.unit, false)),
        None => " (one replay, no ±)".to_owned(),
    };
    format!(
        "{} → {}, {}{half}, margin {}",
        quantity(c.old, &c.unit),
        quantity(c.new, &c.unit),
        points_or_percent(c.change, &c.unit, true),
        points_or_percent(c.margin, &c.unit, false),
    )
}

/// The line above a scenario's rows.
#[must_use]
pub fn check_title(scenario: &ScenarioCheck) -> String {
    format!(
        "{}: {} · {} · seed {}",
        scenario.finding.word(),
        scenario.name,
        scenario.file,
        scenario.seed
    )
}

/// What there is to say of the baseline, line by line.
#[must_use]
pub fn baseline_lines(scenario: &ScenarioCheck) -> Vec<String> {
    let Some(against) = &scenario.against else { return Vec::new() };
    let mut lines = vec![format!("baseline {}: {}", against.file, against.because)];
    lines.extend(against.scenario_changes.iter().map(key_change));
    let any = |wanted: fn(Shift) -> bool| {
        scenario.cells.iter().flat_map(|c| &c.changes).any(|c| wanted(c.shift))
    };
    if any(Shift::is_different) {
        lines.push("--bless makes this the new baseline, if it is meant".into());
    } else if any(|s| s == Shift::Undecided) {
        lines.push("undecided: a longer run ([run] requests or precision) would tell".into());
    }
    lines
}

fn key_change(c: &KeyChange) -> String {
    let side = |v: &Option<String>| v.clone().unwrap_or_else(|| "absent".into());
    format!("changed {}: {} → {}", c.path, side(&c.old), side(&c.new))
}

fn grid(scenario: &ScenarioCheck) -> Grid {
    let mut grid = Grid::new(&["<verdict", "<check", "<policy", "<what", "<evidence"]);
    for row in rows(scenario) {
        grid.row(vec![
            row.verdict.into(),
            row.kind.into(),
            row.policy.into(),
            row.what,
            row.evidence,
        ]);
    }
    grid
}

/// The whole result for a terminal.
#[must_use]
pub fn check_text(check: &Check) -> String {
    let mut text = String::new();
    for scenario in &check.scenarios {
        if !text.is_empty() {
            text.push('\n');
        }
        text += &format!("{}\n\n{}", check_title(scenario), grid(scenario).to_text());
        let lines = baseline_lines(scenario);
        if !lines.is_empty() {
            text.push('\n');
        }
        lines.iter().for_each(|line| text += &format!("{line}\n"));
    }
    text
}

/// The whole result for a pull request or a step summary.
#[must_use]
pub fn check_markdown(check: &Check) -> String {
    let mut text = format!("## batchsim check: {}\n", check.finding.word());
    for scenario in &check.scenarios {
        text += &format!("\n**{}**\n\n{}", check_title(scenario), grid(scenario).to_markdown());
        let lines = baseline_lines(scenario);
        if !lines.is_empty() {
            text.push('\n');
        }
        lines.iter().for_each(|line| text += &format!("- {line}\n"));
    }
    let failed = check.finding >= Finding::Regression;
    let what = if failed { "Failed" } else { "Passed" };
    text + &format!("\n{what} with batchsim {} ({}).\n", check.tool.version, check.tool.commit)
}

/// One line per judged thing, for spreadsheets.
#[must_use]
pub fn check_csv(check: &Check) -> String {
    let titles = ["<scenario", "<check", "<policy", "<what", "<verdict", "<evidence"];
    let mut grid = Grid::new(&titles);
    for scenario in &check.scenarios {
        for row in rows(scenario) {
            grid.row(vec![
                scenario.name.clone(),
                row.kind.into(),
                row.policy.into(),
                row.what,
                row.verdict.into(),
                row.evidence,
            ]);
        }
    }
    grid.to_csv()
}

//! `check`: thresholds, the exact solution and a baseline, in one verdict.

use super::baseline::{is_paired, key_changes, record};
use super::change::{is_judged, pair_up, shifts, steady};
use super::oracle::against_exact;
use crate::number::plus_minus;
use crate::outcome::{
    Against, Baseline, Cause, Cell, CellCheck, Change, Finding, Judgement, RecordedCell,
    ScenarioCheck, Series, Shift, Spot, ThresholdCheck,
};
use crate::scenario::{self, Files, Input, Loaded, Metric, Scenario, Threshold};
use crate::stats::half_width;
use crate::study::{Control, Options, Ran, run_sections};

/// What is asked about one scenario.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The scenario.
    pub loaded: &'a Loaded,
    /// Its file as it was given.
    pub file: &'a str,
    /// How it is simulated.
    pub options: &'a Options,
    /// Relative margin within which numbers count as the same.
    pub margin: f64,
    /// The baseline, and its file.
    pub baseline: Option<(&'a str, &'a Baseline)>,
    /// Files that the scenario of the baseline names.
    pub files: &'a dyn Files,
    /// Whether the result becomes the baseline: differences are told, but count for nothing.
    pub blessing: bool,
}

/// Simulates what is checked: every policy on every server; neither curve nor sweep.
#[must_use]
pub fn simulate(scenario: &Scenario, options: &Options, control: &Control) -> Ran {
    let checked = Scenario { curve: None, sweep: Vec::new(), ..scenario.clone() };
    run_sections(&checked, options, control)
}

/// Judges a complete result.
#[must_use]
pub fn check(question: &Question<'_>, ran: &Ran, control: &Control) -> ScenarioCheck {
    let scenario = &question.loaded.scenario;
    let exact = against_exact(scenario, ran, control);
    let mut cells: Vec<CellCheck> = ran
        .outcome
        .cells
        .iter()
        .zip(exact)
        .zip(thresholds(question, ran))
        .map(|((cell, exact), thresholds)| CellCheck {
            label: cell.policy.label.clone(),
            thresholds,
            exact,
            identical: None,
            changes: Vec::new(),
        })
        .collect();
    let against = question.baseline.map(|(file, baseline)| {
        let now = record(scenario, ran);
        let found = hold(baseline, &now, question.margin);
        for (cell, (identical, changes)) in cells.iter_mut().zip(&found) {
            cell.identical = *identical;
            cell.changes.clone_from(changes);
        }
        against(question, (file, baseline), &now, &found, control)
    });
    let mut warnings = ran.outcome.warnings.clone();
    for cell in &ran.outcome.cells {
        warnings.extend(cell.warnings.iter().map(|w| format!("{}: {w}", cell.policy.label)));
    }
    let mut finding = finding(&cells, against.as_ref(), question.blessing);
    for stall in &ran.stalled {
        warnings.push(format!(
            "{} stalls: {} requests wait and nothing can start them any more",
            stall.label, stall.waiting
        ));
        finding = finding.max(Finding::Regression);
    }
    ScenarioCheck {
        file: question.file.to_owned(),
        name: scenario.name.clone(),
        seed: scenario.seed,
        margin: question.margin,
        against,
        cells,
        warnings,
        finding,
    }
}

/// The judged thresholds of every cell with their places.
fn thresholds(question: &Question<'_>, ran: &Ran) -> Vec<Vec<ThresholdCheck>> {
    let scenario = &question.loaded.scenario;
    let policies = scenario.servers.iter().flat_map(|_| &scenario.policies);
    policies
        .zip(ran.outcome.cells.iter().zip(&ran.sections.cells))
        .map(|(policy, (cell, sections))| {
            let judged = scenario.applicable(policy).into_iter().zip(&cell.verdicts);
            judged
                .map(|(threshold, verdict)| {
                    let index = scenario.thresholds.iter().position(|t| std::ptr::eq(t, threshold));
                    ThresholdCheck {
                        expr: verdict.expr.clone(),
                        class: threshold.class.clone(),
                        judgement: verdict.judgement,
                        evidence: evidence(threshold, &verdict.evidence, &sections.series),
                        spot: index.and_then(|i| spot(question, i)),
                    }
                })
                .collect()
        })
        .collect()
}

/// A quantile is judged on the requests that miss the limit; people also want to see the quantile.
fn evidence(threshold: &Threshold, words: &str, series: &[Series]) -> String {
    if !matches!(threshold.metric, Metric::Quantile(_) | Metric::GroupQuantile(_)) {
        return words.to_owned();
    }
    let name = threshold.expr.split(['<', '>']).next().unwrap_or_default().trim();
    let of = threshold.class.as_ref().map_or_else(String::new, |class| format!(" of {class}"));
    let metric = format!("{name}{of}");
    match series.iter().find(|s| s.metric == metric) {
        Some(s) => {
            let half = half_width(s.value, &s.sections);
            format!("{metric} is {} ms; {words}", plus_minus(s.value, half))
        }
        None => words.to_owned(),
    }
}

fn spot(question: &Question<'_>, threshold: usize) -> Option<Spot> {
    let place = question.loaded.threshold_place(threshold)?;
    let (line, column) = place.line_column()?;
    // What `--set` wrote stands in no file.
    if place.source.name != question.file {
        return None;
    }
    Some(Spot { file: question.file.to_owned(), line, column })
}

type Held = (Option<bool>, Vec<Change>);

/// Holds cells against a baseline: whether each is the same, and what changed, judged together.
fn hold(baseline: &Baseline, now: &Baseline, margin: f64) -> Vec<Held> {
    let found: Vec<Option<&RecordedCell>> = now
        .cells
        .iter()
        .map(|new| baseline.cells.iter().find(|old| old.cell.key() == new.cell.key()))
        .collect();
    let mut pairs: Vec<(Series, Series)> = Vec::new();
    let mut spans = Vec::new();
    for (old, new) in found.iter().zip(&now.cells) {
        let start = pairs.len();
        if let Some(old) = old {
            let both = pair_up(&old.series, &new.series);
            pairs.extend(both.into_iter().filter(|(_, n)| is_judged(&n.metric)));
        }
        spans.push(start..pairs.len());
    }
    let changes = shifts(&pairs, is_paired(baseline, now), margin);
    let rows = found.iter().zip(&now.cells).zip(spans);
    rows.map(|((old, new), span)| {
        let Some(old) = old else { return (None, Vec::new()) };
        let mut changes: Vec<Change> = changes[span].to_vec();
        changes.splice(0..0, steady(&old.cell, &new.cell, margin));
        let same = measured(&old.cell) == measured(&new.cell)
            && pair_up(&old.series, &new.series).iter().all(|(o, n)| o == n);
        (Some(same), changes)
    })
    .collect()
}

/// A cell without what depends on thresholds and files.
fn measured(cell: &Cell) -> Cell {
    Cell {
        attainment: Vec::new(),
        precision: None,
        warnings: Vec::new(),
        verdicts: Vec::new(),
        cdf_file: None,
        ..cell.clone()
    }
}

fn against(
    question: &Question<'_>,
    (file, baseline): (&str, &Baseline),
    now: &Baseline,
    found: &[Held],
    control: &Control,
) -> Against {
    let scenario_changes = key_changes(&baseline.scenario, &now.scenario);
    let scenario_changed = now.scenario_sha256 != baseline.scenario_sha256;
    let (old, new) = (&baseline.tool, &now.tool);
    let build_changed = old != new;
    let labels = |all: &Baseline| -> Vec<String> {
        all.cells.iter().map(|c| c.cell.policy.label.clone()).collect()
    };
    let (was, is) = (labels(baseline), labels(now));
    let without = |some: &[String], others: &[String]| -> Vec<String> {
        some.iter().filter(|l| !others.contains(l)).cloned().collect()
    };
    let same = found.iter().all(|(identical, _)| *identical != Some(false));
    let (cause, because) = match (same, scenario_changed, build_changed) {
        (true, ..) => (Cause::None, "the same numbers to the last digit".to_owned()),
        (_, true, false) => (
            Cause::Scenario,
            format!("the scenario changed; the build is the same ({})", build(new)),
        ),
        (_, false, true) => (
            Cause::Build,
            format!(
                "the build changed: {} then, {} now; the scenario is the same",
                build(old),
                build(new)
            ),
        ),
        (_, true, true) => replay(question, baseline, now, control),
        (_, false, false) => (
            Cause::Neither,
            format!(
                "neither scenario nor commit changed ({}): the build has changes that were never \
                 committed, or it ran on another platform; else results do not repeat, which is \
                 a bug",
                build(new)
            ),
        ),
    };
    Against {
        file: file.to_owned(),
        tool: old.clone(),
        paired: is_paired(baseline, now),
        scenario_changes,
        build_changed,
        cause,
        because,
        missing: without(&was, &is),
        unknown: without(&is, &was),
    }
}

fn build(tool: &crate::outcome::Tool) -> String {
    format!("{} {}", tool.version, tool.commit)
}

/// Both changed: this build runs the old scenario, which tells the two apart.
fn replay(
    question: &Question<'_>,
    baseline: &Baseline,
    now: &Baseline,
    control: &Control,
) -> (Cause, String) {
    let builds = format!("{} then, {} now", build(&baseline.tool), build(&now.tool));
    let input = Input::from_text("baseline.json", baseline.scenario.to_string());
    let Ok(old) = scenario::load(&input, &[], question.files) else {
        let what = "the old scenario cannot be read by this build";
        return (Cause::Both, format!("scenario and build changed ({builds}), and {what}"));
    };
    let again = simulate(&old.scenario, question.options, control);
    let held = hold(baseline, &record(&old.scenario, &again), question.margin);
    let complete = held.len() == baseline.cells.len();
    if complete && held.iter().all(|(identical, _)| *identical == Some(true)) {
        let what = "run with the old scenario this build gives the old numbers";
        return (
            Cause::Scenario,
            format!("the scenario changed. The build did too ({builds}), but {what}"),
        );
    }
    let moved = held.iter().flat_map(|(_, changes)| changes).any(|c| c.shift.is_different());
    let (cause, how) = match moved || !complete {
        true => (Cause::Both, "other numbers beyond the margin"),
        false => (Cause::Scenario, "slightly other numbers, none beyond the margin"),
    };
    let what = format!("run with the old scenario this build gives {how}");
    (cause, format!("scenario and build changed ({builds}); {what}"))
}

/// What the cells of a scenario come to.
fn finding(cells: &[CellCheck], against: Option<&Against>, blessing: bool) -> Finding {
    let mut worst = Finding::Pass;
    let mut say = |finding: Finding| worst = worst.max(finding);
    for cell in cells {
        for threshold in &cell.thresholds {
            match threshold.judgement {
                Judgement::Pass => {}
                Judgement::Inconclusive => say(Finding::Inconclusive),
                Judgement::Fail => say(Finding::Threshold),
            }
        }
        if cell.exact.iter().any(|e| !e.agrees) {
            say(Finding::Regression);
        }
        let Some(against) = against.filter(|_| !blessing) else { continue };
        for change in &cell.changes {
            if against.counts(change.shift) {
                say(Finding::Regression);
            } else if change.shift == Shift::Undecided {
                say(Finding::Inconclusive);
            }
        }
    }
    if against.is_some_and(|a| !a.missing.is_empty()) && !blessing {
        say(Finding::Regression);
    }
    worst
}

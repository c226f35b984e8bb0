//! JUnit XML in the dialect of Jenkins: suite = scenario, case = policy × threshold, and one case
//! per policy for the exact solution and for the baseline.

use super::check::{Row, Weight, baseline_lines, rows};
use crate::outcome::{Check, ScenarioCheck};
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

/// The report; without times and identifiers, so that equal results are equal bytes.
///
/// # Errors
/// The XML cannot be written, in words.
pub fn junit(check: &Check) -> Result<String, String> {
    let mut report = Report::new("batchsim check");
    for scenario in &check.scenarios {
        report.add_test_suite(suite(check, scenario));
    }
    report.to_string().map_err(|e| e.to_string())
}

fn suite(check: &Check, scenario: &ScenarioCheck) -> TestSuite {
    let mut suite = TestSuite::new(scenario.name.as_str());
    suite.add_property(Property::new("file", scenario.file.as_str()));
    suite.add_property(Property::new("seed", scenario.seed.to_string()));
    let tool = format!("{} {} {}", check.tool.name, check.tool.version, check.tool.commit);
    suite.add_property(Property::new("tool", tool));
    let rows = rows(scenario);
    let mut done: Vec<(&str, &str)> = Vec::new();
    for row in &rows {
        if row.kind == "threshold" {
            suite.add_test_case(case(scenario, row, &row.what, &[row]));
            continue;
        }
        // The numbers of one policy belong to one case.
        if !done.contains(&(row.kind, row.policy)) {
            done.push((row.kind, row.policy));
            let same = |r: &&Row<'_>| r.kind == row.kind && r.policy == row.policy;
            let together: Vec<&Row<'_>> = rows.iter().filter(same).collect();
            let name = if row.kind == "exact" { "exact solution" } else { "baseline" };
            suite.add_test_case(case(scenario, row, name, &together));
        }
    }
    suite
}

fn case(scenario: &ScenarioCheck, first: &Row<'_>, name: &str, rows: &[&Row<'_>]) -> TestCase {
    let worst = rows.iter().map(|r| r.weight).max().unwrap_or(Weight::Fine);
    let line = |r: &&&Row<'_>| match r.kind {
        "threshold" => format!("limit: {}\nmeasured: {}", r.what, r.evidence),
        _ if r.evidence.is_empty() => format!("{} {}", r.what, r.verdict),
        _ => format!("{} {}: {}", r.what, r.verdict, r.evidence),
    };
    let of = |weight: Weight| rows.iter().filter(move |r| r.weight == weight);
    let mut status = match worst {
        Weight::Fine => TestCaseStatus::success(),
        Weight::Open if first.kind == "threshold" => TestCaseStatus::skipped(),
        Weight::Note | Weight::Open => TestCaseStatus::success(),
        Weight::Bad => TestCaseStatus::non_success(NonSuccessKind::Failure),
    };
    let mut lines: Vec<String> = of(worst).map(|r| line(&r)).collect();
    if first.kind == "baseline" && worst == Weight::Bad {
        lines.extend(baseline_lines(scenario));
    }
    lines.push(format!("seed: {}", scenario.seed));
    let text = lines.join("\n");
    if !matches!(status, TestCaseStatus::Success { .. }) {
        if let Some(row) = of(worst).next() {
            status.set_message(format!("{} {}: {}", row.what, row.verdict, row.evidence));
        }
        status.set_type(first.kind);
        status.set_description(text.as_str());
    }
    let mut case = TestCase::new(name, status);
    case.set_classname(format!("{}.{}", scenario.name, first.policy));
    if worst != Weight::Bad && first.kind != "threshold" {
        case.set_system_out(rows.iter().map(|r| line(&r)).collect::<Vec<_>>().join("\n"));
    }
    if let Some(spot) = first.spot {
        case.extra.insert("file".into(), spot.file.as_str().into());
        case.extra.insert("line".into(), spot.line.to_string().into());
    }
    case
}

//! `batchsim compare`.

use super::args::{Common, CompareArgs, OnInconclusive, PrecisionArgs, SourceArgs};
use super::exit::{Code, Failure};
use super::progress::Progress;
use super::show::{self, say};
use super::signals::Signals;
use super::{Done, input};
use crate::decide;
use crate::outcome::{Baseline, Finding, Outcome, Sections};
use crate::report::{Format, comparison_csv, comparison_markdown, comparison_text};
use crate::scenario::{ChangeLimit, Loaded, parse_change};
use crate::study::{Control, Options};
use anyhow::Context;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What one of the two arguments is.
enum Subject {
    /// To be simulated.
    Scenario(Box<Loaded>),
    /// A stored result.
    Result(Box<Baseline>),
}

/// Runs the verb.
pub(super) fn run(args: &CompareArgs, common: &Common) -> Done {
    let margin = input::margin(args.margin.as_deref())?;
    let limits = limits(&args.fail_on)?;
    let precision = PrecisionArgs {
        precision: args.precision.clone(),
        exact_latencies: false,
        no_charts: true,
        event_engine: false,
    };
    let options = input::options(&precision)?;
    let a = subject(&args.a, None, args, &precision, common)?;
    // The same streams for both: only then can they be compared request by request.
    let b = subject(&args.b, Some(seed(&a)), args, &precision, common)?;
    input::threads(common)?;
    let control = Arc::new(Control::default());
    let signals = Signals::watch(&control)?;
    let progress = Progress::watch(common.progress, &control, cells(&a) + cells(&b), 0);
    let a = result(a, &options, &control);
    let b = result(b, &options, &control);
    drop(progress);
    if control.stopped() {
        say("interrupted; nothing is compared");
        return Ok(signals.code());
    }
    let name = |path: &Path| path.display().to_string();
    let (name_a, name_b) = (name(&args.a), name(&args.b));
    let found = decide::compare((&name_a, &a), (&name_b, &b), margin, &limits);
    let comparison = found.map_err(Failure::Nothing)?;
    show::print(&match common.format {
        Format::Json => show::json(&comparison)?,
        Format::Csv => comparison_csv(&comparison),
        Format::Markdown => comparison_markdown(&comparison),
        Format::Table => comparison_text(&comparison),
    })?;
    comparison.warnings.iter().for_each(|w| say(&format!("warning: {w}")));
    Ok(match comparison.finding {
        Finding::Pass => Code::Fine,
        Finding::Inconclusive if args.inconclusive == OnInconclusive::Fail => Code::Inconclusive,
        Finding::Inconclusive => Code::Fine,
        Finding::Regression | Finding::Threshold => Code::Regression,
    })
}

fn limits(texts: &[String]) -> Result<Vec<ChangeLimit>, Failure> {
    let read = |text: &String| {
        parse_change(text)
            .map_err(|(what, help)| Failure::usage(format!("--fail-on: {what}"), help))
    };
    texts.iter().map(read).collect()
}

fn seed(subject: &Subject) -> u64 {
    match subject {
        Subject::Scenario(loaded) => loaded.scenario.seed,
        Subject::Result(result) => result.seed,
    }
}

fn cells(subject: &Subject) -> u64 {
    match subject {
        Subject::Scenario(l) => (l.scenario.servers.len() * l.scenario.policies.len()) as u64,
        Subject::Result(_) => 0,
    }
}

fn result(subject: Subject, options: &Options, control: &Control) -> Baseline {
    match subject {
        Subject::Result(result) => *result,
        Subject::Scenario(loaded) => {
            let ran = decide::simulate(&loaded.scenario, options, control);
            decide::record(&loaded.scenario, &ran)
        }
    }
}

/// A folder with an outcome.json, a result file, or a scenario.
fn subject(
    path: &Path,
    seed: Option<u64>,
    args: &CompareArgs,
    precision: &PrecisionArgs,
    common: &Common,
) -> Result<Subject, Failure> {
    let file = if path.is_dir() { path.join("outcome.json") } else { path.to_path_buf() };
    if path.is_dir() && !file.exists() {
        return Err(Failure::usage(
            format!("{} holds no outcome.json", path.display()),
            "give a folder that `batchsim run` wrote, a result file, or a scenario",
        ));
    }
    if file.extension().is_some_and(|e| e == "json")
        && let Some(result) = stored(&file)?
    {
        return Ok(Subject::Result(Box::new(result)));
    }
    let one = SourceArgs { scenario: file, sets: args.sets.clone(), seed: args.seed.or(seed) };
    Ok(Subject::Scenario(Box::new(input::load(&one, Some(precision), common)?)))
}

/// A stored result; `None` where the JSON is a scenario.
fn stored(file: &Path) -> Result<Option<Baseline>, Failure> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let Ok(value) = serde_json::from_str::<Value>(&text) else { return Ok(None) };
    let wrong = |what: String| {
        let what = format!("{} is not a result: {what}", file.display());
        Failure::usage(what, "give an outcome.json, a baseline, or a scenario")
    };
    match value.get("study").and_then(Value::as_str) {
        None => Ok(None),
        Some("baseline") => decide::read_baseline(&text).map(Some).map_err(wrong),
        Some(_) => {
            let outcome: Outcome =
                serde_json::from_value(value).map_err(|e| wrong(e.to_string()))?;
            let sections = sections(&file.with_file_name("sections.json"), &outcome)?;
            Ok(Some(decide::from_outcome(&outcome, sections.as_ref())))
        }
    }
}

/// The sections beside a result, where they are.
fn sections(file: &PathBuf, outcome: &Outcome) -> Result<Option<Sections>, Failure> {
    if outcome.study != "run" || !file.exists() {
        return Ok(None);
    }
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).map(Some).map_err(|e| {
        let what = format!("{} cannot be read: {e}", file.display());
        Failure::usage(what, "run the scenario again, or remove the file to compare without it")
    })
}

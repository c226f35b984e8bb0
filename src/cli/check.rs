//! `batchsim check`.

use super::args::{AnnotationsFor, CheckArgs, Common, OnInconclusive, PrecisionArgs, SourceArgs};
use super::exit::{Code, Failure};
use super::progress::Progress;
use super::show::{self, say};
use super::signals::Signals;
use super::{Done, files, input};
use crate::decide::{self, Question};
use crate::interop;
use crate::outcome::{Baseline, Check, Finding, SCHEMA, ScenarioCheck};
use crate::report::{Format, annotations, check_csv, check_markdown, check_text, count, junit};
use crate::scenario::{Disk, Loaded};
use crate::study::{Control, Options, Ran};
use anyhow::Context;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A scenario to check.
struct Subject {
    path: PathBuf,
    loaded: Loaded,
    /// Where its baseline is, or will be.
    baseline_path: PathBuf,
    baseline: Option<Baseline>,
}

/// Runs the verb.
pub(super) fn run(args: &CheckArgs, common: &Common) -> Done {
    let precision = PrecisionArgs {
        precision: args.precision.clone(),
        exact_latencies: false,
        no_charts: true,
        event_engine: args.event_engine,
    };
    let margin = input::margin(args.margin.as_deref())?;
    let options = input::options(&precision)?;
    let subjects = subjects(args, &precision, common)?;
    input::threads(common)?;
    if let Some(folder) = &args.output {
        files::folder(folder)?;
    }
    let control = Arc::new(Control::default());
    let signals = Signals::watch(&control)?;
    let cells = |s: &Subject| s.loaded.scenario.servers.len() * s.loaded.scenario.policies.len();
    let cells: usize = subjects.iter().map(cells).sum();
    let progress = Progress::watch(common.progress, &control, cells as u64, 0);
    let mut found = Vec::new();
    let mut stalled = Vec::new();
    let mut blessed = Vec::new();
    for subject in &subjects {
        let scenario = &subject.loaded.scenario;
        let ran = decide::simulate(scenario, &options, &control);
        stalled.extend(ran.stalled.clone());
        let checked = judge(subject, args, &options, margin, &ran, &control);
        if control.stopped() {
            drop(progress);
            say("interrupted; nothing is judged and no baseline is written");
            return Ok(signals.code());
        }
        if let Some(folder) = &args.output {
            let folder = folder.join(files::slug(&scenario.name));
            files::folder(&folder)?;
            files::write(&folder.join("outcome.json"), show::json(&ran.outcome)?.as_bytes())?;
            let sections = show::compact_json(&ran.sections)?;
            files::write(&folder.join("sections.json"), sections.as_bytes())?;
        }
        let sound = checked.cells.iter().flat_map(|c| &c.exact).all(|e| e.agrees);
        if args.bless && sound && ran.stalled.is_empty() {
            let baseline = decide::record(scenario, &ran);
            blessed.push((&subject.baseline_path, show::json(&baseline)?));
        }
        found.push(checked);
    }
    drop(progress);
    let check = whole(found);
    deliver(&check, args, common)?;
    for (path, text) in &blessed {
        if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            files::folder(folder)?;
        }
        files::write(path, text.as_bytes())?;
        say(&format!("baseline written: {}", path.display()));
    }
    if args.bless && blessed.len() < subjects.len() {
        say("no baseline is written of what stalls or differs from the exact solution");
    }
    Ok(code(&check, &stalled, args.inconclusive))
}

fn subjects(
    args: &CheckArgs,
    precision: &PrecisionArgs,
    common: &Common,
) -> Result<Vec<Subject>, Failure> {
    let mut subjects: Vec<Subject> = Vec::new();
    for path in &args.scenarios {
        let one = SourceArgs { scenario: path.clone(), sets: args.sets.clone(), seed: args.seed };
        let loaded = input::load(&one, Some(precision), common)?;
        let baseline_path = baseline_path(path, args)?;
        if subjects.iter().any(|s| s.baseline_path == baseline_path) {
            return Err(Failure::usage(
                format!("two scenarios would share the baseline {}", baseline_path.display()),
                "give them different names, or check them one by one",
            ));
        }
        let baseline = read(&baseline_path, args)?;
        let nothing = loaded.scenario.thresholds.is_empty() && baseline.is_none();
        if nothing && !args.bless && args.scenarios.len() > 1 {
            say(&format!("warning: {}: no threshold and no baseline", path.display()));
        }
        subjects.push(Subject { path: path.clone(), loaded, baseline_path, baseline });
    }
    let nothing = |s: &Subject| s.loaded.scenario.thresholds.is_empty() && s.baseline.is_none();
    if !args.bless && subjects.iter().all(nothing) {
        return Err(Failure::Nothing(
            "nothing to check: no [[threshold]] and no baseline; write a threshold, or record a \
             baseline with --bless"
                .into(),
        ));
    }
    Ok(subjects)
}

/// `<scenario>.baseline.json` beside the scenario or in the folder of `--baseline`, or the file
/// of `--baseline`.
fn baseline_path(scenario: &Path, args: &CheckArgs) -> Result<PathBuf, Failure> {
    let stem = scenario.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{stem}.baseline.json");
    match &args.baseline {
        Some(path) => {
            let is_file = path.extension().is_some_and(|e| e == "json") && !path.is_dir();
            match (is_file, args.scenarios.len()) {
                (true, 1) => Ok(path.clone()),
                (true, _) => Err(Failure::usage(
                    format!("--baseline {} is one file for several scenarios", path.display()),
                    "give a folder; it holds <scenario>.baseline.json for each",
                )),
                (false, _) if scenario == Path::new("-") => Err(no_name()),
                (false, _) => Ok(path.join(name)),
            }
        }
        None if scenario == Path::new("-") && args.bless => Err(no_name()),
        None => Ok(scenario.with_file_name(name)),
    }
}

fn no_name() -> Failure {
    Failure::usage(
        "a scenario from standard input has no name for its baseline",
        "give the file: --baseline name.baseline.json",
    )
}

fn read(path: &Path, args: &CheckArgs) -> Result<Option<Baseline>, Failure> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            if args.baseline.is_some() && !args.bless {
                return Err(Failure::usage(
                    format!("there is no baseline {}", path.display()),
                    "record one with --bless",
                ));
            }
            return Ok(None);
        }
        Err(e) => return Err(anyhow::Error::new(e).context(path.display().to_string()).into()),
    };
    match decide::read_baseline(&text) {
        Ok(baseline) => Ok(Some(baseline)),
        // What cannot be read is replaced when that is asked for.
        Err(_) if args.bless => Ok(None),
        Err(what) => Err(Failure::usage(
            format!("{} is not a baseline: {what}", path.display()),
            "restore it, or record a new one with --bless",
        )),
    }
}

fn judge(
    subject: &Subject,
    args: &CheckArgs,
    options: &Options,
    margin: f64,
    ran: &Ran,
    control: &Control,
) -> ScenarioCheck {
    let file = subject.path.display().to_string();
    let baseline_file = subject.baseline_path.display().to_string();
    let files = Disk::beside(&subject.path, interop::trace::for_scenario);
    let question = Question {
        loaded: &subject.loaded,
        file: if file == "-" { "<stdin>" } else { &file },
        options,
        margin,
        baseline: subject.baseline.as_ref().map(|b| (baseline_file.as_str(), b)),
        files: &files,
        blessing: args.bless,
    };
    decide::check(&question, ran, control)
}

fn whole(scenarios: Vec<ScenarioCheck>) -> Check {
    let finding = scenarios.iter().map(|s| s.finding).max().unwrap_or(Finding::Pass);
    Check { schema: SCHEMA, tool: crate::study::tool(), scenarios, finding }
}

/// Prints the result and writes the files that were asked for.
fn deliver(check: &Check, args: &CheckArgs, common: &Common) -> Result<(), Failure> {
    let mut text = match common.format {
        Format::Json => show::json(check)?,
        Format::Csv => check_csv(check),
        Format::Markdown => check_markdown(check),
        Format::Table => check_text(check),
    };
    let on_github = std::env::var("GITHUB_ACTIONS").is_ok_and(|v| v == "true");
    let wanted = args.annotations == AnnotationsFor::Github
        || (args.annotations == AnnotationsFor::Auto && on_github);
    let notes = if wanted { annotations(check, &from_root) } else { String::new() };
    // GitHub's documentation has these commands on standard output. Where that carries a document
    // for programs they go to standard error, which the runner scans just the same.
    if common.format == Format::Table {
        text += &notes;
    } else {
        notes.lines().for_each(say);
    }
    show::print(&text)?;
    for scenario in &check.scenarios {
        let warn = |w: &String| say(&format!("warning: {}: {w}", scenario.name));
        scenario.warnings.iter().for_each(warn);
    }
    if let Some(path) = &args.junit {
        let xml = junit(check).map_err(|e| anyhow::anyhow!("cannot write JUnit: {e}"))?;
        files::write(path, xml.as_bytes())?;
    }
    if let Some(path) = summary_path(args) {
        append(&path, &check_markdown(check))?;
    }
    Ok(())
}

fn summary_path(args: &CheckArgs) -> Option<PathBuf> {
    let from_github = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|v| !v.is_empty());
    args.summary.clone().or_else(|| from_github.map(PathBuf::from))
}

/// Largest step summary that GitHub takes, with room for what others write.
const SUMMARY: usize = 900_000;

/// Adds to a file that others write to as well.
fn append(path: &Path, text: &str) -> Result<(), Failure> {
    let mut end = text.len().min(SUMMARY);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let short = if end < text.len() { "\n\n(cut: too long for a summary)\n" } else { "" };
    let written = (|| {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
        file.write_all([&text[..end], short].concat().as_bytes())
    })();
    Ok(written.with_context(|| format!("cannot write {}", path.display()))?)
}

/// A file as the root of the repository sees it, which is where annotations start.
fn from_root(file: &str) -> String {
    let root = std::env::var_os("GITHUB_WORKSPACE").map(PathBuf::from);
    let inside = root.and_then(|root| {
        let (root, file) = (root.canonicalize().ok()?, Path::new(file).canonicalize().ok()?);
        Some(file.strip_prefix(root).ok()?.display().to_string())
    });
    inside.unwrap_or_else(|| file.to_owned())
}

fn code(check: &Check, stalled: &[crate::study::Stalled], open: OnInconclusive) -> Code {
    for stall in stalled {
        say(&format!(
            "error: {} stalls: {} requests wait and nothing can start them any more",
            stall.label,
            count(stall.waiting)
        ));
    }
    if !stalled.is_empty() {
        return Code::Stall;
    }
    match check.finding {
        Finding::Pass => Code::Fine,
        Finding::Inconclusive if open == OnInconclusive::Fail => Code::Inconclusive,
        Finding::Inconclusive => Code::Fine,
        Finding::Regression => Code::Regression,
        Finding::Threshold => Code::Threshold,
    }
}

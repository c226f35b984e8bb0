//! `batchsim tune`.

use super::args::{Common, TuneArgs, TuneMethod};
use super::exit::{Code, Failure};
use super::progress::Progress;
use super::run::RunInfo;
use super::show::{self, say};
use super::signals::Signals;
use super::{Done, files, input};
use crate::arrivals::Process;
use crate::decide::{self, Method, NoTune, TuneAsk};
use crate::outcome::tune::TuneOutcome;
use crate::report::{Format, tune_changes, tune_csv, tune_lines, tune_rest, tune_table};
use crate::scenario::{Loaded, Scenario};
use crate::study::Control;
use anyhow::Context;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Runs the verb.
pub(super) fn run(args: &TuneArgs, common: &Common) -> Done {
    let loaded = input::load(&args.scenario.source, None, common)?;
    let method = match args.method {
        TuneMethod::Auto | TuneMethod::Ladder => Method::Auto,
        TuneMethod::Exact => Method::Exact,
        TuneMethod::Simulation => Method::Simulation,
    };
    let mut ask =
        TuneAsk { method, ladder: args.method == TuneMethod::Ladder, ..TuneAsk::default() };
    ask.most = loaded.scenario.run.max_requests.unwrap_or(ask.most);
    input::threads(common)?;
    let name = &loaded.scenario.name;
    let folder = match &args.scenario.output {
        Some(folder) => folder.clone(),
        None => files::output(None, name).join("tune"),
    };
    files::folder(&folder)?;
    let control = Arc::new(Control::default());
    let signals = Signals::watch(&control)?;
    let start = Instant::now();
    let all = decide::contestants(&loaded) as u64;
    let progress = Progress::watch(common.progress, &control, all, 0);
    let found = decide::tune(&loaded, &ask, &control);
    drop(progress);
    let outcome = match found {
        Ok(outcome) => outcome,
        Err(NoTune::Stopped) => {
            say("interrupted before the search was complete; nothing is saved");
            return Ok(signals.code());
        }
        Err(other) => return Err(failure(other)),
    };
    show(&outcome, common.format, &input::title(&loaded.scenario))?;
    files::write(&folder.join("tune.json"), show::json(&outcome)?.as_bytes())?;
    RunInfo::new(&control, start).save(&folder)?;
    let tuned = tuned(&args.scenario.source.scenario, &loaded, &outcome)?;
    if let Some(text) = &tuned {
        files::write(&folder.join("tuned.toml"), text.as_bytes())?;
    }
    let wrote = if tuned.is_some() { ", the setting as tuned.toml" } else { "" };
    say(&format!("results in {}{wrote}", folder.display()));
    Ok(if outcome.recommended.is_some() { Code::Fine } else { Code::Infeasible })
}

fn failure(why: NoTune) -> Failure {
    match why {
        NoTune::Input(diagnostics) => Failure::Input(diagnostics),
        NoTune::Usage(what, help) => Failure::usage(what, help),
        NoTune::Uncovered(why) => Failure::usage(
            format!("--method exact: no exact solution: {why}"),
            "write --method auto, or --method simulation",
        ),
        NoTune::Stopped => Failure::Nothing("interrupted".into()),
    }
}

fn show(outcome: &TuneOutcome, format: Format, title: &str) -> Result<(), Failure> {
    let lines = tune_lines(outcome);
    let mut text = match format {
        Format::Json => show::json(outcome)?,
        Format::Csv => tune_csv(outcome).to_csv(),
        Format::Markdown => {
            let mut text = format!(
                "{title} · {}\n\n{}\n",
                outcome.objective,
                tune_table(outcome).to_markdown()
            );
            lines.iter().for_each(|line| text += &format!("- {}\n", line.trim()));
            if let Some(changes) = tune_changes(outcome) {
                text += &format!("\n{}", changes.to_markdown());
            }
            text
        }
        Format::Table => {
            let mut text =
                format!("{title} · {}\n\n{}", outcome.objective, tune_table(outcome).to_text());
            text.extend(tune_rest(outcome).map(|rest| rest + "\n"));
            text += "\n";
            lines.iter().for_each(|line| text += &format!("{line}\n"));
            if let Some(changes) = tune_changes(outcome) {
                text += &format!("\n{}", changes.to_text());
            }
            text
        }
    };
    let fence = if format == Format::Markdown { "```\n" } else { "" };
    if matches!(format, Format::Table | Format::Markdown) {
        for snippet in &outcome.snippets {
            let note = snippet.note.trim_end_matches('.');
            text += &format!("\n{} ({note})\n{fence}{}{fence}", snippet.server, snippet.text);
        }
    }
    show::print(&text)?;
    outcome.warnings.iter().for_each(|line| say(&format!("warning: {line}")));
    Ok(())
}

/// The recommended setting as a scenario, with the certificate above it.
fn tuned(path: &Path, loaded: &Loaded, outcome: &TuneOutcome) -> Result<Option<String>, Failure> {
    let Some(mut scenario) = decide::tuned_scenario(loaded, outcome).map_err(failure)? else {
        return Ok(None);
    };
    scenario.name = format!("{}-tuned", scenario.name);
    find_traces(path, &mut scenario);
    let mut text = format!("# Found by `batchsim tune` for \"{}\".\n#\n", outcome.objective);
    for line in tune_lines(outcome) {
        text += &format!("# {line}\n");
    }
    text += "#\n# `batchsim run` on this file gives the certificate again.\n";
    text += &toml::to_string(&scenario.to_value()).context("cannot write the setting as TOML")?;
    Ok(Some(text))
}

/// A trace is looked for beside its scenario, and this one lies elsewhere.
fn find_traces(path: &Path, scenario: &mut Scenario) {
    let beside = path.parent().unwrap_or_else(|| Path::new("")).to_path_buf();
    for source in &mut scenario.arrivals {
        if let Process::Trace(replay) = &mut source.process
            && let Ok(full) = std::path::absolute(beside.join(&replay.file))
        {
            replay.file = full.display().to_string();
        }
    }
}

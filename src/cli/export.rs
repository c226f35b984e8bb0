//! `batchsim export`.

use super::args::{Common, ExportArgs, ExportVerb, FromScenario, SourceArgs};
use super::exit::{Code, Failure};
use super::progress::Progress;
use super::show::{print, say};
use super::signals::Signals;
use super::{Done, files, import, input};
use crate::interop::{torchserve, triton};
use crate::outcome::{Cell, Outcome};
use crate::policy::Policy;
use crate::report::{WATCHED, prometheus};
use crate::scenario::{Labelled, Scenario, Server};
use crate::study::{self, Control, Options};
use anyhow::Context;
use std::path::Path;
use std::sync::Arc;

/// Precision of the means that alerts are made from.
const PRECISION: f64 = 0.03;

/// Runs the verb.
pub(super) fn run(args: &ExportArgs, common: &Common) -> Done {
    match &args.server {
        ExportVerb::Torchserve { from, model, file } => {
            torchserve(from, model.as_deref(), file, common)
        }
        ExportVerb::Triton { from, file } => triton_config(from, file.as_deref(), common),
        ExportVerb::Prometheus { from, policy, model, outcome } => {
            let (policy, model) = (policy.as_deref(), model.as_deref());
            alerts(from.as_deref(), policy, model, outcome.as_deref(), common)
        }
    }
}

/// Writes the settings of a scenario into a file of TorchServe.
fn torchserve(from: &FromScenario, model: Option<&str>, path: &Path, common: &Common) -> Done {
    let scenario = load(&from.from, common)?;
    let (labelled, server) = chosen(&scenario, from.policy.as_deref(), &["torchserve"])?;
    let Policy::TorchServe(policy) = &labelled.policy else {
        return Err(not_of("torchserve", labelled));
    };
    let file = import::config(path)?;
    let setting = torchserve::Setting { policy, workers: server.instances };
    let exported = torchserve::export(&file, model, setting).map_err(Failure::Input)?;
    exported.notes.iter().for_each(|note| say(&format!("note: {note}")));
    changed(path, &exported.diff, &exported.text, from.in_place)
}

/// Writes the settings of a scenario into a config.pbtxt, or prints them.
fn triton_config(from: &FromScenario, path: Option<&Path>, common: &Common) -> Done {
    let scenario = load(&from.from, common)?;
    let (labelled, server) = chosen(&scenario, from.policy.as_deref(), &["triton"])?;
    let Policy::Triton(policy) = &labelled.policy else {
        return Err(not_of("triton", labelled));
    };
    let setting = triton::Setting { policy, instances: server.instances };
    let Some(path) = path else {
        if from.in_place {
            return Err(Failure::usage("--in-place needs the file to change", "name config.pbtxt"));
        }
        print(&triton::fields(setting))?;
        return Ok(Code::Fine);
    };
    let text = import::pbtxt(path)?;
    let exported = match triton::export(&path.display().to_string(), &text, setting) {
        Ok(exported) => exported,
        Err(problems) => return Ok(import::complain(path, &problems)),
    };
    exported.notes.iter().for_each(|note| say(&format!("note: {note}")));
    changed(path, &exported.diff, &exported.text, from.in_place)
}

/// Shows what changes, and writes it when that was asked for.
fn changed(path: &Path, diff: &str, text: &str, in_place: bool) -> Done {
    if diff.is_empty() {
        say(&format!("{}: nothing differs", path.display()));
        return Ok(Code::Fine);
    }
    print(diff)?;
    if in_place {
        files::write(path, text.as_bytes())?;
    } else {
        say(&format!("{} is as it was; --in-place writes this", path.display()));
    }
    Ok(Code::Fine)
}

/// Prints alert rules with the values of a result, or of a simulation.
fn alerts(
    from: Option<&Path>,
    policy: Option<&str>,
    model: Option<&str>,
    outcome: Option<&Path>,
    common: &Common,
) -> Done {
    let (name, cell) = match (outcome, from) {
        (Some(path), _) => stored(path, policy)?,
        (None, Some(from)) => match simulated(from, policy, common)? {
            Ok(found) => found,
            Err(interrupted) => return Ok(interrupted),
        },
        (None, None) => {
            let help = "give --from SCENARIO, or --outcome FILE";
            return Err(Failure::usage("there is nothing to take the values from", help));
        }
    };
    let rules = prometheus(&cell, &name, model.unwrap_or(&name));
    print(&rules.map_err(|(what, help)| Failure::usage(what, help))?)?;
    Ok(Code::Fine)
}

/// The scenario's name and the cell of a policy, simulated; the exit code where that was stopped.
fn simulated(
    from: &Path,
    policy: Option<&str>,
    common: &Common,
) -> Result<Result<(String, Cell), Code>, Failure> {
    let mut scenario = load(from, common)?;
    let (labelled, _) = chosen(&scenario, policy, WATCHED)?;
    scenario.policies = vec![labelled.clone()];
    (scenario.curve, scenario.thresholds) = (None, Vec::new());
    input::threads(common)?;
    let control = Arc::new(Control::default());
    let signals = Signals::watch(&control)?;
    let progress = Progress::watch(common.progress, &control, 1, 0);
    let fixed = scenario.run.precision_given
        || scenario.run.requests.is_some()
        || scenario.run.duration.is_some();
    let precision = if fixed { None } else { Some(PRECISION) };
    let options = Options { precision, ..Options::default() };
    let (mut outcome, ..) = study::run(&scenario, &options, &control);
    drop(progress);
    if control.stopped() || outcome.cells.is_empty() {
        say("interrupted; nothing is exported");
        return Ok(Err(signals.code()));
    }
    Ok(Ok((scenario.name, outcome.cells.swap_remove(0))))
}

/// The same from a stored result.
fn stored(path: &Path, policy: Option<&str>) -> Result<(String, Cell), Failure> {
    let place = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {place}"))?;
    let outcome: Outcome = serde_json::from_str(&text).map_err(|e| {
        let what = format!("{place} is not a result: {e}");
        Failure::usage(what, "give an outcome.json that `batchsim run` wrote")
    })?;
    let name = outcome.scenario.get("name").and_then(serde_json::Value::as_str);
    let name = name.unwrap_or("scenario").to_owned();
    let meant = |cell: &&Cell| match policy {
        Some(label) => cell.policy.label == label,
        None => WATCHED.contains(&cell.policy.kind.as_str()),
    };
    match outcome.cells.iter().filter(meant).collect::<Vec<_>>()[..] {
        [only] => Ok((name, only.clone())),
        [] => Err(Failure::usage(
            format!("{place} has no such policy"),
            format!("give --policy LABEL of one of kind {}", WATCHED.join(" or ")),
        )),
        _ => Err(Failure::usage(
            format!("several cells of {place} are meant"),
            "say which with --policy LABEL; of a sweep no single one can be meant",
        )),
    }
}

fn load(from: &Path, common: &Common) -> Result<Scenario, Failure> {
    let source = SourceArgs { scenario: from.to_owned(), ..SourceArgs::default() };
    Ok(input::load(&source, None, common)?.scenario)
}

/// The policy that is meant, and its server: by label, or the only one of these kinds.
fn chosen<'s>(
    scenario: &'s Scenario,
    label: Option<&str>,
    kinds: &[&str],
) -> Result<(&'s Labelled, &'s Server), Failure> {
    let all: Vec<&Labelled> = scenario.policies.iter().collect();
    let kind = || format!("\"{}\"", kinds.join("\" or \""));
    let fits = |p: &&Labelled| kinds.contains(&p.policy.kind());
    let policy = match label {
        Some(label) => all
            .iter()
            .find(|p| p.label == label)
            .copied()
            .ok_or_else(|| input::no_policy(scenario, label))?,
        None => match all.iter().copied().filter(fits).collect::<Vec<_>>()[..] {
            [only] => only,
            [] => {
                let what = format!("the scenario has no policy of kind {}", kind());
                return Err(Failure::usage(what, format!("it has {}", input::labels(scenario))));
            }
            _ => {
                let what = format!("several policies of the scenario are of kind {}", kind());
                return Err(Failure::usage(what, "say which one with --policy LABEL"));
            }
        },
    };
    match scenario.servers.as_slice() {
        [only] => Ok((policy, only)),
        _ => Err(Failure::usage(
            "the scenario compares several servers",
            "export from a scenario with one, so that its instances are clear",
        )),
    }
}

fn not_of(kind: &str, labelled: &Labelled) -> Failure {
    let what = format!("policy `{}` is of kind \"{}\"", labelled.label, labelled.policy.kind());
    Failure::usage(what, format!("only a policy of kind \"{kind}\" has these settings"))
}

//! `batchsim export`.

use super::args::{Common, ExportArgs, ExportVerb, FromScenario};
use super::exit::{Code, Failure};
use super::show::{colour, print, say};
use super::{Done, files, import};
use crate::interop::{self, torchserve};
use crate::policy::Policy;
use crate::scenario::{self, Disk, Input, Labelled, Scenario, Server};
use std::path::Path;

/// Runs the verb.
pub(super) fn run(args: &ExportArgs, common: &Common) -> Done {
    match &args.server {
        ExportVerb::Torchserve { from, model, file } => {
            torchserve(from, model.as_deref(), file, common)
        }
    }
}

/// Writes the settings of a scenario into a file of TorchServe.
fn torchserve(from: &FromScenario, model: Option<&str>, path: &Path, common: &Common) -> Done {
    let scenario = load(from, common)?;
    let (labelled, server) = chosen(&scenario, from, "torchserve")?;
    let Policy::TorchServe(policy) = &labelled.policy else {
        return Err(not_of("torchserve", labelled));
    };
    let file = import::config(path)?;
    let setting = torchserve::Setting { policy, workers: server.instances };
    let exported = torchserve::export(&file, model, setting).map_err(Failure::Input)?;
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

fn load(from: &FromScenario, common: &Common) -> Result<Scenario, Failure> {
    let source = Input::open(&from.from).map_err(|d| Failure::Input(vec![d]))?;
    let disk = Disk::beside(&from.from, interop::trace::for_scenario);
    let loaded = scenario::load(&source, &[], &disk)?;
    for warning in &loaded.warnings {
        say(warning.render(colour(common.color)).trim_end());
    }
    Ok(loaded.scenario)
}

/// The policy that is meant, and its server: by label, or the only one of that kind.
fn chosen<'s>(
    scenario: &'s Scenario,
    from: &FromScenario,
    kind: &str,
) -> Result<(&'s Labelled, &'s Server), Failure> {
    let labels = |all: &[&Labelled]| {
        all.iter().map(|p| format!("`{}`", p.label)).collect::<Vec<_>>().join(", ")
    };
    let all: Vec<&Labelled> = scenario.policies.iter().collect();
    let policy = match &from.policy {
        Some(label) => all.iter().find(|p| p.label == *label).copied().ok_or_else(|| {
            let what = format!("the scenario has no policy `{label}`");
            Failure::usage(what, format!("it has {}", labels(&all)))
        })?,
        None => match all.iter().filter(|p| p.policy.kind() == kind).collect::<Vec<_>>()[..] {
            [only] => only,
            [] => {
                let what = format!("the scenario has no policy of kind \"{kind}\"");
                return Err(Failure::usage(what, format!("it has {}", labels(&all))));
            }
            _ => {
                let what = format!("several policies of the scenario are of kind \"{kind}\"");
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

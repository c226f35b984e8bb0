//! `batchsim exact`.

use super::args::{Common, ExactArgs, OnInconclusive};
use super::exit::{Code, Failure};
use super::run::{name_side_files, save, verdict_code};
use super::show::{self, say};
use super::{Done, files, input, plot};
use crate::study::{self, Control};

/// Runs the verb.
pub(super) fn run(args: &ExactArgs, common: &Common) -> Done {
    let loaded = input::load(&args.scenario.source, None, common)?;
    let scenario = loaded.scenario;
    let folder = match &args.scenario.output {
        Some(folder) => folder.clone(),
        None => files::output(None, &scenario.name).join("exact"),
    };
    files::folder(&folder)?;
    let (mut outcome, mut cdfs) = study::exact(&scenario, &Control::default());
    if outcome.cells.is_empty() {
        outcome.warnings.iter().for_each(|w| say(&format!("warning: {w}")));
        return Err(Failure::Nothing("no policy of this scenario has an exact solution".into()));
    }
    name_side_files(&mut outcome, &mut cdfs);
    show::outcome(&outcome, common.format, &input::title(&scenario))?;
    save(&folder, &outcome, &cdfs)?;
    if !args.no_charts {
        plot::draw_all(&outcome, &cdfs, &folder)?;
    }
    say(&format!("solved exactly, results in {}", folder.display()));
    Ok(match verdict_code(&outcome, &[], OnInconclusive::Warn) {
        Code::Threshold => Code::Threshold,
        _ => Code::Fine,
    })
}

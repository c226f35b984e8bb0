//! `batchsim capacity`.

use super::args::{CapacityArgs, Common, SearchMethod};
use super::exit::{Code, Failure};
use super::progress::Progress;
use super::run::RunInfo;
use super::show::{self, say};
use super::signals::Signals;
use super::{Done, files, input};
use crate::decide::{self, Ask, Load, Method, NoAnswer};
use crate::outcome::capacity::{CapacityCell, CapacityOutcome};
use crate::report::{
    Format, capacity_csv, capacity_lines, capacity_table, capacity_warnings, count,
};
use crate::scenario::{Loaded, Scenario};
use crate::study::{self, Control, SweepCell};
use crate::units::parse_rate;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

impl From<SearchMethod> for Method {
    fn from(method: SearchMethod) -> Self {
        match method {
            SearchMethod::Auto => Self::Auto,
            SearchMethod::Exact => Self::Exact,
            SearchMethod::Simulation => Self::Simulation,
        }
    }
}

/// Runs the verb.
pub(super) fn run(args: &CapacityArgs, common: &Common) -> Done {
    let loaded = input::load(&args.scenario.source, None, common)?;
    let scenario = &loaded.scenario;
    let ask = ask(args, scenario)?;
    let tasks = tasks(args, &loaded)?;
    input::threads(common)?;
    let folder = match &args.scenario.output {
        Some(folder) => folder.clone(),
        None => files::output(None, &scenario.name).join("capacity"),
    };
    files::folder(&folder)?;
    let control = Arc::new(Control::default());
    let signals = Signals::watch(&control)?;
    let start = Instant::now();
    let progress = Progress::watch(common.progress, &control, tasks.len() as u64, 0);
    let answers: Vec<Result<CapacityCell, Failure>> =
        tasks.par_iter().map(|task| task.answer(&loaded, &ask, &control)).collect();
    drop(progress);
    let mut outcome = frame(scenario);
    outcome.warnings.extend(left_out(scenario));
    for answer in answers {
        match answer {
            Ok(cell) => outcome.cells.push(cell),
            Err(Failure::Nothing(_)) if control.stopped() => {}
            Err(failure) => return Err(failure),
        }
    }
    let missing = outcome.cells.len() < tasks.len();
    if missing {
        outcome.warnings.push("interrupted: what was complete by then is here".into());
    }
    if missing && outcome.cells.is_empty() {
        say("interrupted before any policy was complete; nothing is saved");
        return Ok(signals.code());
    }
    show(&outcome, common.format, &input::title(scenario))?;
    files::write(&folder.join("capacity.json"), show::json(&outcome)?.as_bytes())?;
    RunInfo::new(&control, start).save(&folder)?;
    let requests: u64 = outcome.cells.iter().map(|c| c.requests).sum();
    let work = if requests == 0 {
        "solved exactly".to_owned()
    } else {
        format!("{} requests", count(requests))
    };
    say(&format!("{work}, results in {}", folder.display()));
    if missing {
        return Ok(signals.code());
    }
    Ok(if answered(&outcome) { Code::Fine } else { Code::Infeasible })
}

/// Says which policies no threshold applies to.
fn left_out(scenario: &Scenario) -> Option<String> {
    let held = decide::settings(scenario);
    let unheld = scenario.policies.iter().enumerate();
    let unheld: Vec<&str> = unheld
        .filter(|(i, _)| !held.iter().any(|(_, p)| p == i))
        .map(|(_, p)| p.label.as_str())
        .collect();
    let guard = scenario.policies.iter().find(|p| p.guard);
    let how = guard.map_or_else(String::new, |p| {
        format!("; with --set {}.guard=false they apply to every policy", p.label)
    });
    (!unheld.is_empty()).then(|| format!("no threshold applies to {}{how}", unheld.join(", ")))
}

/// Whether some setting is feasible, for every question that was asked.
fn answered(outcome: &CapacityOutcome) -> bool {
    let any = |asked: &dyn Fn(&CapacityCell) -> Option<bool>| {
        let answers: Vec<bool> = outcome.cells.iter().filter_map(asked).collect();
        answers.is_empty() || answers.contains(&true)
    };
    any(&|c| c.feasible) && any(&|c| c.fewest.as_ref().map(|f| f.instances.is_some()))
}

fn ask(args: &CapacityArgs, scenario: &Scenario) -> Result<Ask, Failure> {
    let traced = scenario.arrivals.iter().any(|s| s.trace.is_some());
    let fewest = match args.instances_for.as_deref() {
        // A recorded load is what it is: how many it needs is always of interest.
        None => traced.then_some(Load::Offered),
        Some("offered") => Some(Load::Offered),
        Some(text) => {
            let rate = parse_rate(text).map_err(|e| {
                Failure::usage(
                    format!("--instances-for: {e}"),
                    format!("{}, or \"offered\" for what the scenario offers", e.help),
                )
            })?;
            if traced {
                return Err(Failure::usage(
                    "--instances-for: recorded arrivals are not set to a rate",
                    "write --instances-for offered for the trace as it is; replay it faster with \
                     --set arrivals.scale.factor=2",
                ));
            }
            Some(Load::Rate(rate.per_s()))
        }
    };
    let rated = scenario.total_rate_per_s().is_some();
    if !rated && fewest != Some(Load::Offered) {
        return Err(Failure::usage(
            "these arrivals have no rate that could be raised",
            "the clients of a closed loop set the pace themselves; ask for the instances they \
             need with --instances-for offered",
        ));
    }
    let mut ask = Ask { method: args.method.into(), fewest, ..Ask::default() };
    if let Some(precision) = input::share("--precision", args.precision.as_deref())? {
        ask.precision = precision;
    } else if scenario.run.precision_given {
        ask.precision = scenario.run.precision;
    }
    ask.most = scenario.run.max_requests.unwrap_or(ask.most);
    Ok(ask)
}

/// One setting to answer for.
struct Task {
    server: usize,
    policy: usize,
    coords: BTreeMap<String, String>,
}

fn tasks(args: &CapacityArgs, loaded: &Loaded) -> Result<Vec<Task>, Failure> {
    let scenario = &loaded.scenario;
    let wanted = decide::settings(scenario);
    if scenario.thresholds.is_empty() || wanted.is_empty() {
        return Err(Failure::Nothing(
            "there is no threshold to hold; add one, as in [[threshold]] expr = \"p(99) < 50ms\""
                .into(),
        ));
    }
    if !args.sweep {
        let task = |(server, policy)| Task { server, policy, coords: BTreeMap::new() };
        return Ok(wanted.into_iter().map(task).collect());
    }
    if scenario.sweep.is_empty() {
        return Err(Failure::usage(
            "--sweep: this scenario has no [sweep]",
            "leave --sweep out, or add axes such as \"dynamic.max_wait\"",
        ));
    }
    let cells: Vec<SweepCell> = study::plan_sweep(scenario);
    let cells = cells.into_iter().filter(|c| wanted.contains(&(c.server, c.policy)));
    let task = |c: SweepCell| Task { server: c.server, policy: c.policy, coords: c.coords };
    Ok(cells.map(task).collect())
}

impl Task {
    fn answer(
        &self,
        loaded: &Loaded,
        ask: &Ask,
        control: &Control,
    ) -> Result<CapacityCell, Failure> {
        if control.stopped() {
            return Err(Failure::Nothing("interrupted".into()));
        }
        let coords: Vec<(&str, &str)> =
            self.coords.iter().map(|(path, value)| (path.as_str(), value.as_str())).collect();
        let point;
        let scenario = if coords.is_empty() {
            &loaded.scenario
        } else {
            point = loaded.cell(&coords)?;
            &point
        };
        let place = (self.server, self.policy);
        decide::capacity(scenario, place, self.coords.clone(), ask, control).map_err(
            |why| match why {
                NoAnswer::Stopped => Failure::Nothing("interrupted".into()),
                NoAnswer::Uncovered(why) => Failure::usage(
                    format!("--method exact: no exact solution of {why}"),
                    "write --method auto, or --method simulation",
                ),
            },
        )
    }
}

fn frame(scenario: &Scenario) -> CapacityOutcome {
    let frame = study::outcome_frame("capacity", scenario);
    CapacityOutcome {
        schema: frame.schema,
        tool: frame.tool,
        study: frame.study,
        scenario: frame.scenario,
        seed: frame.seed,
        rng: frame.rng,
        cells: Vec::new(),
        warnings: Vec::new(),
    }
}

fn show(outcome: &CapacityOutcome, format: Format, title: &str) -> Result<(), Failure> {
    let lines = capacity_lines(outcome);
    let text = match format {
        Format::Json => show::json(outcome)?,
        Format::Csv => capacity_csv(outcome).to_csv(),
        Format::Markdown => {
            let mut text = format!("{title}\n\n{}", capacity_table(outcome).to_markdown());
            if !lines.is_empty() {
                text += "\n";
                lines.iter().for_each(|line| text += &format!("- {line}\n"));
            }
            text
        }
        Format::Table => {
            let mut text = format!("{title}\n\n{}", capacity_table(outcome).to_text());
            if !lines.is_empty() {
                text += "\n";
                lines.iter().for_each(|line| text += &format!("{line}\n"));
            }
            text
        }
    };
    show::print(&text)?;
    capacity_warnings(outcome).iter().for_each(|line| say(&format!("warning: {line}")));
    Ok(())
}

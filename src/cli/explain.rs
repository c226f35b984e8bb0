//! `batchsim explain`.

use super::args::{Common, ExplainArgs};
use super::exit::{Code, Failure};
use super::show::{self, say};
use super::{Done, files, input};
use crate::interop::perfetto;
use crate::outcome::Explanation;
use crate::report::{Format, count, explanation_csv, explanation_markdown, explanation_text, rate};
use crate::scenario::{Labelled, Scenario, Server};
use crate::study::{Explained, Question, explain};
use std::path::Path;

/// Time shown before and after each slow request in a trace, ns.
const AROUND: u64 = 250_000_000;
/// Most requests: everything about each is kept.
const MOST: u64 = 5_000_000;

/// Runs the verb.
pub(super) fn run(args: &ExplainArgs, common: &Common) -> Done {
    let question = Question {
        requests: args.requests,
        quantile: quantile(&args.above)?,
        slowest: args.slowest,
    };
    if !(1..=MOST).contains(&args.requests) {
        let what = format!("--requests {} is not between 1 and {}", args.requests, count(MOST));
        return Err(Failure::usage(what, "everything about each request is kept"));
    }
    let scenario = input::load(&args.source, None, common)?.scenario;
    let cells = chosen(&scenario, args.policy.as_deref())?;
    if cells.iter().any(|(server, _)| server.replicas > 1) {
        let what = "explain follows the requests of one server, not of replicas behind a balancer";
        let help = "add --set server.replicas=1 and the rate of one replica";
        return Err(Failure::usage(what, help));
    }
    if args.perfetto.is_some() && cells.len() > 1 {
        let what = format!("--perfetto writes one policy, the scenario has {}", cells.len());
        return Err(Failure::usage(what, "say which one with --policy LABEL"));
    }
    let (mut answers, mut stalled) = (Vec::new(), false);
    for (server, labelled) in cells {
        let label = scenario.cell_label(server, labelled);
        let Some(found) = explain(&scenario, server, labelled, &question) else {
            say(&format!("{label}: no request was answered"));
            stalled = true;
            continue;
        };
        remarks(&label, &found);
        stalled |= found.stalled.is_some();
        if let Some(path) = &args.perfetto {
            trace(path, &label, server, &found)?;
        }
        answers.push(found.explanation);
    }
    show::print(&printed(&answers, common.format)?)?;
    Ok(if stalled { Code::Stall } else { Code::Fine })
}

/// `p99`, `99`, `p99.9` or `99.9%` as a share.
fn quantile(text: &str) -> Result<f64, Failure> {
    let digits = text.trim().trim_start_matches(['p', 'P']).trim_end_matches('%').trim();
    match digits.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        _ => Err(Failure::usage(
            format!("--above {text} is not a percentile"),
            "write one above 0 and below 100, as in p99 or p99.9",
        )),
    }
}

/// The cells that are meant: all, or those of one policy.
fn chosen<'s>(
    scenario: &'s Scenario,
    label: Option<&str>,
) -> Result<Vec<(&'s Server, &'s Labelled)>, Failure> {
    let all: Vec<(&Server, &Labelled)> = scenario
        .servers
        .iter()
        .flat_map(|s| scenario.policies.iter().map(move |p| (s, p)))
        .collect();
    let Some(label) = label else { return Ok(all) };
    let meant =
        |(s, p): &&(&Server, &Labelled)| p.label == label || scenario.cell_label(s, p) == label;
    let cells: Vec<_> = all.iter().filter(meant).copied().collect();
    if cells.is_empty() { Err(input::no_policy(scenario, label)) } else { Ok(cells) }
}

fn remarks(label: &str, found: &Explained) {
    let e = &found.explanation;
    if let (false, Some(offered), Some(capacity)) = (e.stable, e.rate_per_s, e.capacity_per_s) {
        say(&format!(
            "warning: {label}: OVERLOADED: {}/s offered, capacity {}/s; latencies grow with the \
             length of the run",
            rate(offered),
            rate(capacity)
        ));
    }
    if let Some(n) = found.stalled {
        say(&format!("warning: {label}: the server stalls: {} requests wait for ever", count(n)));
    }
}

fn printed(answers: &[Explanation], format: Format) -> Result<String, Failure> {
    let each = |text: fn(&Explanation) -> String| answers.iter().map(text).collect::<Vec<_>>();
    Ok(match format {
        Format::Json => match answers {
            [only] => show::json(only)?,
            several => show::json(&several)?,
        },
        Format::Table => each(explanation_text).join("\n"),
        Format::Markdown => each(explanation_markdown).join("\n"),
        Format::Csv => {
            let mut texts = each(explanation_csv).into_iter();
            let first = texts.next().unwrap_or_default();
            // One header for all.
            let rest = texts.filter_map(|t| t.split_once('\n').map(|(_, rows)| rows.to_owned()));
            first + &rest.collect::<String>()
        }
    })
}

/// Writes the surroundings of the slow requests for ui.perfetto.dev.
fn trace(path: &Path, label: &str, server: &Server, found: &Explained) -> Result<(), Failure> {
    let around = |(from, to): &(u64, u64)| (from.saturating_sub(AROUND), to.saturating_add(AROUND));
    let spells: Vec<(u64, u64)> = found.spells.iter().map(around).collect();
    let value = perfetto::trace(label, &found.flight, server.overhead.dispatch, &spells);
    files::write(path, show::compact_json(&value)?.as_bytes())?;
    say(&format!(
        "{}: {} spells around the slowest requests, for https://ui.perfetto.dev",
        path.display(),
        spells.len()
    ));
    Ok(())
}

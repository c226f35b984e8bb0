//! The best settings for an objective, with what that rests on.
//!
//! `contest` plans the settings, rules out what capacity alone rules out, and scores the rest:
//! exactly where covered, else by simulation under common random numbers, in rounds that drop
//! what is surely worse (`screen`). `certificate` simulates the recommended one afresh, `whatif`
//! changes it a little, `ladder` follows the common advice.

mod certificate;
mod contest;
mod ladder;
mod score;
mod screen;
mod snippet;
mod whatif;

pub use certificate::tuned_scenario;

use super::capacity::Method;
use super::setting::Blank;
use crate::outcome::tune::{Fate, TuneOutcome, Waiting};
use crate::scenario::{Diagnostic, Loaded, Objective, Tune};
use crate::study::{Control, outcome_frame};
use contest::{Candidate, Contest};
use score::Judge;

/// How a search is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TuneAsk {
    /// How settings are examined.
    pub method: Method,
    /// Most requests of one simulation.
    pub most: u64,
    /// Whether the common advice is followed too.
    pub ladder: bool,
}

impl Default for TuneAsk {
    fn default() -> Self {
        Self { method: Method::Auto, most: 20_000_000, ladder: false }
    }
}

/// Why a search gave no result.
#[derive(Clone, Debug)]
pub enum NoTune {
    /// It was stopped from outside.
    Stopped,
    /// The exact solution was asked for and does not cover a setting; why.
    Uncovered(String),
    /// The scenario does not read at a point of the search.
    Input(Vec<Diagnostic>),
    /// What was asked cannot be meant here; what, and what to do instead.
    Usage(String, String),
}

impl From<Blank> for NoTune {
    fn from(blank: Blank) -> Self {
        match blank {
            Blank::Uncovered(why) => Self::Uncovered(why),
            Blank::Stopped | Blank::TooClose => Self::Stopped,
        }
    }
}

/// How many settings a search has.
#[must_use]
pub fn contestants(loaded: &Loaded) -> usize {
    loaded.scenario.tune.as_ref().map_or(0, |tune| contest::plan(&loaded.scenario, tune).len())
}

/// Searches what the scenario's `[tune]` asks for.
///
/// # Errors
/// There is no result.
pub fn tune(loaded: &Loaded, ask: &TuneAsk, control: &Control) -> Result<TuneOutcome, NoTune> {
    let Some(tune) = &loaded.scenario.tune else {
        return Err(NoTune::Usage(
            "this scenario has no [tune]".into(),
            "add one, as in [tune] objective = \"max rate\", over = { \"dynamic.max_wait\" = \
             [\"0ms\", \"5ms\"] }"
                .into(),
        ));
    };
    let candidates = contest::candidates(loaded, tune)?;
    let judge = Judge { objective: tune.objective, ask: *ask, control };
    check(&candidates, tune)?;
    let contest = Contest::hold(&candidates, tune, &judge)?;
    let mut outcome = frame(loaded, tune, &candidates, &contest);
    if let Some(recommended) = outcome.recommended {
        let chosen = &candidates[recommended];
        let value = contest.scores[recommended].as_ref().and_then(|s| s.value);
        outcome.waiting = waiting(&candidates, &contest, tune, &judge);
        let certificate = certificate::certify(chosen, tune.objective, value, &judge)?;
        outcome.requests += certificate.requests;
        outcome.certificate = Some(certificate);
        let base = judge.probe(chosen)?;
        outcome.requests += base.requests;
        for (changes, list) in [
            (whatif::knobs(loaded, chosen), &mut outcome.marginal),
            (whatif::conditions(chosen), &mut outcome.sensitivity),
        ] {
            for (what, changed) in changes {
                let found = judge.probe(&changed)?;
                outcome.requests += found.requests;
                list.push(found.change(what, base.value));
            }
        }
        outcome.snippets = snippet::snippets(chosen);
        if whatif::replaced_poisson(chosen) {
            outcome.warnings.push(
                "burstiness: Poisson arrivals were replaced by gamma gaps with a CV of 0.9 and 1.1"
                    .into(),
            );
        }
    }
    if ask.ladder {
        let best = contest.best_value();
        let (ladder, requests) = ladder::climb(&candidates, tune, best, &judge)?;
        outcome.ladder = Some(ladder);
        outcome.requests += requests;
    }
    Ok(outcome)
}

/// What cannot be meant with these arrivals.
fn check(candidates: &[Candidate], tune: &Tune) -> Result<(), NoTune> {
    let usage = |what: &str, help: &str| Err(NoTune::Usage(what.into(), help.into()));
    if candidates.is_empty() {
        return usage("no policy competes", "name policies of this scenario in `policy` of `over`");
    }
    let held = candidates.iter().any(|c| !c.setting().thresholds().is_empty());
    if !held && matches!(tune.objective, Objective::MaxRate | Objective::MinInstances) {
        return usage(
            &format!("\"{}\" needs a threshold to hold", tune.objective),
            "add one, as in [[threshold]] expr = \"p(99) < 50ms\"",
        );
    }
    let rated = candidates.iter().all(|c| c.scenario.total_rate_per_s().is_some());
    if !rated && tune.objective == Objective::MaxRate {
        return usage(
            "\"max rate\" needs arrivals whose rate can be raised",
            "the clients of a closed loop set the pace themselves: write \"min p99\"",
        );
    }
    Ok(())
}

fn frame(loaded: &Loaded, tune: &Tune, candidates: &[Candidate], contest: &Contest) -> TuneOutcome {
    let frame = outcome_frame("tune", &loaded.scenario);
    let (closest_setting, closest) = match contest.closest(candidates) {
        Some((number, closest)) if contest.recommended.is_none() => (Some(number), Some(closest)),
        _ => (None, None),
    };
    TuneOutcome {
        schema: frame.schema,
        tool: frame.tool,
        study: frame.study,
        scenario: frame.scenario,
        seed: frame.seed,
        rng: frame.rng,
        objective: tune.objective.to_string(),
        measure: tune.objective.name(),
        unit: tune.objective.unit().into(),
        maximise: tune.objective.maximises(),
        indifference: tune.indifference,
        over: tune.over.iter().map(|a| a.path.clone()).collect(),
        settings: contest.settings(candidates),
        best: contest.best,
        ties: contest.ties.clone(),
        recommended: contest.recommended,
        guarantee: contest.guarantee.clone(),
        waiting: None,
        certificate: None,
        marginal: Vec::new(),
        sensitivity: Vec::new(),
        snippets: Vec::new(),
        ladder: None,
        closest,
        closest_setting,
        search_requests: contest.requests(),
        requests: contest.requests(),
        warnings: contest.warnings.clone(),
    }
}

/// What the best setting that waits gains over the best that does not.
fn waiting(
    candidates: &[Candidate],
    contest: &Contest,
    tune: &Tune,
    judge: &Judge<'_>,
) -> Option<Waiting> {
    let best = |waits: bool| {
        let eligible = (0..candidates.len()).filter(|i| {
            candidates[*i].waits() == waits && matches!(contest.fates[*i], Fate::Tied | Fate::Worse)
        });
        contest.best_of(eligible, tune.objective)
    };
    let (without, with) = (best(false)?, best(true)?);
    // Of equals the recommended one speaks for waiting.
    let with = contest.recommended.filter(|i| candidates[*i].waits()).unwrap_or(with);
    let value = |i: usize| contest.scores[i].as_ref().and_then(|s| s.value);
    let (a, b) = (value(without)?, value(with)?);
    let gain = if tune.objective.maximises() { b / a - 1.0 } else { 1.0 - b / a };
    let p99 = |i: usize| judge.p99(&candidates[i]).ok().flatten();
    Some(Waiting {
        without,
        with,
        gain,
        pays: gain > tune.indifference && !contest.ties.contains(&without),
        p99_without_ms: p99(without),
        p99_with_ms: p99(with),
    })
}

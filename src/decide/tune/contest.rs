//! All settings against each other.

use super::NoTune;
use super::score::{Judge, Score};
use super::screen::{Verdict, screen};
use crate::decide::setting::{Blank, Setting};
use crate::outcome::Method;
use crate::outcome::capacity::Closest;
use crate::outcome::tune::{Fate, TunedSetting};
use crate::scenario::{Labelled, Loaded, Objective, Scenario, Server, Tune};
use crate::study::{SweepCell, must_grow, plan_over, policy_info};
use crate::time::Nanos;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Settings scored together before capacity rules out more of the rest.
const CHUNK: usize = 8;

/// One setting of a search.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) coords: BTreeMap<String, String>,
    pub(super) server: Server,
    pub(super) policy: Labelled,
    pub(super) scenario: Scenario,
}

impl Candidate {
    pub(super) fn setting(&self) -> Setting<'_> {
        Setting { scenario: &self.scenario, server: &self.server, policy: &self.policy }
    }

    /// Whether it ever holds a request back although an instance is free.
    pub(super) fn waits(&self) -> bool {
        self.policy.policy.max_wait() > Nanos::ZERO
    }

    /// Simpler settings come first: the smallest wait, then the smallest cap. A timer that can
    /// never matter counts last.
    pub(super) fn simplicity(&self) -> (Nanos, u32, Nanos) {
        let wait = self.policy.policy.max_wait();
        let written = self.policy.policy.textbook().map_or(wait, |law| law.wait);
        (wait, self.policy.policy.cap().unwrap_or(u32::MAX), written)
    }
}

/// The settings of a search, in index order.
pub(super) fn plan(scenario: &Scenario, tune: &Tune) -> Vec<SweepCell> {
    let competes = |cell: &SweepCell| {
        let label = &scenario.policies[cell.policy].label;
        tune.policies.as_ref().is_none_or(|named| named.contains(label))
    };
    plan_over(scenario, &tune.over).into_iter().filter(competes).collect()
}

/// The settings, each as a scenario of its own.
///
/// Thresholds that name no policy hold for all that compete: a search that compared some with
/// and some without constraints would compare nothing.
pub(super) fn candidates(loaded: &Loaded, tune: &Tune) -> Result<Vec<Candidate>, NoTune> {
    let cells = plan(&loaded.scenario, tune);
    cells
        .par_iter()
        .map(|cell| {
            let coords: Vec<(&str, &str)> =
                cell.coords.iter().map(|(path, value)| (path.as_str(), value.as_str())).collect();
            let mut scenario = loaded.cell(&coords).map_err(NoTune::Input)?;
            scenario.policies.iter_mut().for_each(|p| p.guard = false);
            Ok(Candidate {
                coords: cell.coords.clone(),
                server: scenario.servers[cell.server].clone(),
                policy: scenario.policies[cell.policy].clone(),
                scenario,
            })
        })
        .collect()
}

/// How all settings fared.
pub(super) struct Contest {
    pub(super) scores: Vec<Option<Score>>,
    pub(super) fates: Vec<Fate>,
    pub(super) best: Option<usize>,
    pub(super) ties: Vec<usize>,
    pub(super) recommended: Option<usize>,
    pub(super) guarantee: String,
    pub(super) warnings: Vec<String>,
    spent: u64,
}

impl Contest {
    /// Scores all settings and finds the ties.
    pub(super) fn hold(
        candidates: &[Candidate],
        tune: &Tune,
        judge: &Judge<'_>,
    ) -> Result<Self, NoTune> {
        let mut contest = Self {
            scores: vec![None; candidates.len()],
            fates: vec![Fate::Pruned; candidates.len()],
            best: None,
            ties: Vec::new(),
            recommended: None,
            guarantee: String::new(),
            warnings: Vec::new(),
            spent: 0,
        };
        match judge.objective {
            Objective::MaxRate => contest.by_rate(candidates, tune, judge)?,
            Objective::MinInstances => contest.by_instances(candidates, judge)?,
            _ => contest.at_load(candidates, tune, judge)?,
        }
        contest.conclude(candidates, tune);
        Ok(contest)
    }

    /// Highest rates, by falling capacity: what cannot reach the best found so far is not tried.
    fn by_rate(
        &mut self,
        candidates: &[Candidate],
        tune: &Tune,
        judge: &Judge<'_>,
    ) -> Result<(), NoTune> {
        let capacity = |i: &usize| candidates[*i].setting().capacity().unwrap_or(f64::INFINITY);
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        order.sort_by(|a, b| capacity(b).total_cmp(&capacity(a)).then(a.cmp(b)));
        let comparisons = u32::try_from(candidates.len()).unwrap_or(u32::MAX);
        let mut sure = 0.0f64;
        for chunk in order.chunks(CHUNK) {
            let reach = |i: &&usize| {
                let limited = candidates[**i].setting().limited();
                limited || capacity(i) >= sure * (1.0 - tune.indifference)
            };
            let tried: Vec<usize> = chunk.iter().filter(reach).copied().collect();
            let scores = each(&tried, |i| judge.highest(&candidates[i], 0.02, comparisons));
            for (i, score) in tried.into_iter().zip(scores) {
                let score = score?;
                sure = sure.max(low(&score).unwrap_or(0.0));
                self.spent += score.requests;
                self.scores[i] = Some(score);
            }
            (0..chunk.len()).for_each(|_| judge.control.add_cell());
        }
        for precision in [0.5, 0.2].map(|share| share * tune.indifference) {
            let again: Vec<usize> = (0..candidates.len())
                .filter(|i| {
                    let score = self.scores[*i].as_ref();
                    score.is_some_and(|s| {
                        s.ci95.is_some() && high(s) >= Some(sure * (1.0 - tune.indifference))
                    })
                })
                .collect();
            let scores = each(&again, |i| judge.highest(&candidates[i], precision, comparisons));
            for (i, score) in again.into_iter().zip(scores) {
                let score = score?;
                sure = sure.max(low(&score).unwrap_or(0.0));
                self.spent += score.requests;
                self.scores[i] = Some(score);
            }
        }
        self.tie(|score| high(score) >= Some(sure * (1.0 - tune.indifference)));
        self.guarantee = self.said(tune, "the intervals of all highest rates hold together");
        Ok(())
    }

    fn by_instances(&mut self, candidates: &[Candidate], judge: &Judge<'_>) -> Result<(), NoTune> {
        let comparisons = u32::try_from(candidates.len()).unwrap_or(u32::MAX);
        let all: Vec<usize> = (0..candidates.len()).collect();
        let scores = each(&all, |i| {
            let score = judge.instances(&candidates[i], comparisons);
            judge.control.add_cell();
            score
        });
        for (i, score) in scores.into_iter().enumerate() {
            let score = score?;
            self.spent += score.requests;
            self.scores[i] = Some(score);
        }
        let least = self.scores.iter().flatten().filter_map(|s| s.value).min_by(f64::total_cmp);
        self.tie(|score| score.value == least && least.is_some());
        self.guarantee = "settings that need the same number of instances are equal; every number \
                          holds its thresholds, and one fewer does not, at 95 % together"
            .into();
        Ok(())
    }

    /// Values at the offered load.
    fn at_load(
        &mut self,
        candidates: &[Candidate],
        tune: &Tune,
        judge: &Judge<'_>,
    ) -> Result<(), NoTune> {
        let alive: Vec<usize> = (0..candidates.len())
            .filter(|i| !must_grow(&candidates[*i].setting().bench()))
            .collect();
        let exact = each(&alive, |i| {
            let setting = candidates[i].setting();
            if !judge.exact(&setting)? {
                return Ok(None);
            }
            match judge.exactly(&candidates[i]) {
                Ok(score) => {
                    judge.control.add_cell();
                    Ok(Some(score))
                }
                // Too close to capacity for the solver: simulated like the others.
                Err(Blank::TooClose) => Ok(None),
                Err(other) => Err(other),
            }
        });
        let mut sampled = Vec::new();
        for (i, score) in alive.iter().zip(exact) {
            match score? {
                Some(score) => self.scores[*i] = Some(score),
                None => sampled.push(*i),
            }
        }
        let exact: Vec<&Score> = self.scores.iter().flatten().filter(|s| s.holds).collect();
        let best_exact = exact.iter().filter_map(|s| s.value).min_by(f64::total_cmp);
        let screened = screen(candidates, &sampled, best_exact, tune, judge)?;
        self.spent += screened.spent;
        let tied = |verdict: &Verdict| *verdict == Verdict::Tied;
        let limit = screened.best.map(|best| best * (1.0 + tune.indifference));
        self.tie(|score| score.value.zip(limit).is_some_and(|(v, limit)| v <= limit));
        for (i, (score, verdict)) in screened.found {
            self.fates[i] = match (tied(&verdict), verdict) {
                (true, _) => Fate::Tied,
                (_, Verdict::Infeasible) => Fate::Infeasible,
                _ => Fate::Worse,
            };
            self.scores[i] = Some(score);
        }
        self.guarantee = if sampled.is_empty() { self.said(tune, "") } else { screened.guarantee };
        Ok(())
    }

    /// Settles the fate of everything scored so far.
    fn tie(&mut self, ties: impl Fn(&Score) -> bool) {
        for (fate, score) in self.fates.iter_mut().zip(&self.scores) {
            let Some(score) = score else { continue };
            *fate = match (score.holds, ties(score)) {
                (false, _) => Fate::Infeasible,
                (true, true) => Fate::Tied,
                (true, false) => Fate::Worse,
            };
        }
    }

    fn said(&self, tune: &Tune, sampled: &str) -> String {
        let percent = tune.indifference * 100.0;
        if self.scores.iter().flatten().any(|s| s.method == Method::Trace) {
            return one_replay(tune.indifference);
        }
        if self.scores.iter().flatten().any(|s| s.ci95.is_some()) {
            format!(
                "every setting within {percent} % of the best is among them with 95 % confidence: \
                 {sampled} (Bonferroni)"
            )
        } else {
            format!("solved exactly: these and no others are within {percent} % of the best")
        }
    }

    fn conclude(&mut self, candidates: &[Candidate], tune: &Tune) {
        let feasible = |i: &usize| matches!(self.fates[*i], Fate::Tied | Fate::Worse);
        self.best = self.best_of((0..candidates.len()).filter(feasible), tune.objective);
        let mut ties: Vec<usize> =
            (0..candidates.len()).filter(|i| self.fates[*i] == Fate::Tied).collect();
        ties.sort_by_key(|i| (candidates[*i].simplicity(), *i));
        // A setting whose thresholds are open is recommended only where all are.
        let open = |i: &usize| self.scores[*i].as_ref().is_some_and(|s| s.open);
        self.recommended = ties.iter().find(|i| !open(i)).or(ties.first()).copied();
        if self.recommended.is_some_and(|i| open(&i)) {
            self.warnings.push(
                "not certain: an interval of the recommended setting straddles a limit".into(),
            );
        }
        self.ties = ties;
    }

    /// The best of some settings, at face value; the first of equals.
    pub(super) fn best_of(
        &self,
        among: impl Iterator<Item = usize>,
        objective: Objective,
    ) -> Option<usize> {
        let signed = |i: usize| {
            let value = self.scores[i].as_ref()?.value?;
            Some(if objective.maximises() { -value } else { value })
        };
        let valued = among.filter_map(|i| signed(i).map(|v| (v, i)));
        valued.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))).map(|(_, i)| i)
    }

    /// The best value, at face value.
    pub(super) fn best_value(&self) -> Option<f64> {
        self.best.and_then(|i| self.scores[i].as_ref()?.value)
    }

    /// Requests simulated.
    pub(super) fn requests(&self) -> u64 {
        self.spent
    }

    /// The setting that misses its thresholds by least, relative to the limit.
    pub(super) fn closest(&self, candidates: &[Candidate]) -> Option<(usize, Closest)> {
        let miss = |c: &Closest| (c.value / c.limit.max(1e-9) - 1.0).abs();
        let found = (0..candidates.len()).filter_map(|i| {
            let closest = self.scores[i].as_ref()?.closest.clone()?;
            closest.value.is_finite().then_some((i, closest))
        });
        found.min_by(|a, b| miss(&a.1).total_cmp(&miss(&b.1)).then(a.0.cmp(&b.0)))
    }

    /// All settings as a result states them.
    pub(super) fn settings(&self, candidates: &[Candidate]) -> Vec<TunedSetting> {
        let all = candidates.iter().zip(&self.scores).zip(&self.fates);
        all.map(|((candidate, score), fate)| {
            let setting = candidate.setting();
            TunedSetting {
                coords: candidate.coords.clone(),
                policy: policy_info(setting.label(), &candidate.policy),
                instances: candidate.server.instances,
                capacity_per_s: setting.capacity(),
                method: score.as_ref().map(|s| s.method),
                fate: *fate,
                value: score.as_ref().and_then(|s| s.value),
                ci95: score.as_ref().and_then(|s| s.ci95),
                binds: score.as_ref().and_then(|s| s.binds.clone()),
                open: score.as_ref().is_some_and(|s| s.open),
                requests: score.as_ref().map_or(0, |s| s.requests),
            }
        })
        .collect()
    }
}

/// What a replay of recorded arrivals can claim.
pub(super) fn one_replay(zone: f64) -> String {
    format!(
        "one replay of recorded arrivals has no intervals: these are within {} % of the best in it",
        zone * 100.0
    )
}

/// Something of each of some settings, in order.
pub(super) fn each<T: Send>(
    numbers: &[usize],
    of: impl Fn(usize) -> Result<T, Blank> + Sync,
) -> Vec<Result<T, Blank>> {
    numbers.par_iter().map(|i| of(*i)).collect()
}

fn low(score: &Score) -> Option<f64> {
    score.ci95.map(|c| c[0]).or(score.value)
}

fn high(score: &Score) -> Option<f64> {
    score.ci95.map(|c| c[1]).or(score.value)
}

//! The value of one setting.

use super::TuneAsk;
use super::contest::Candidate;
use crate::decide::capacity::{Ask, Load, answer, covered, unit};
use crate::decide::fewest::fewest;
use crate::decide::setting::{Blank, Length, Mark, Reading, Setting, reading};
use crate::exact::Solution;
use crate::outcome::Method;
use crate::outcome::capacity::Closest;
use crate::outcome::tune::Change;
use crate::scenario::Objective;
use crate::stats::half_width;
use crate::study::{Control, Look, Observed, Section, observe};
use std::collections::BTreeMap;

/// Requests of one simulation of a changed setting.
const GLANCE: u64 = 1_000_000;

/// How settings are valued.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judge<'a> {
    pub(super) objective: Objective,
    pub(super) ask: TuneAsk,
    pub(super) control: &'a Control,
}

/// What one setting came to.
#[derive(Clone, Debug)]
pub(super) struct Score {
    pub(super) method: Method,
    /// Absent where no threshold can be held, or there is no steady state.
    pub(super) value: Option<f64>,
    pub(super) ci95: Option<[f64; 2]>,
    /// Whether all thresholds hold, at face value.
    pub(super) holds: bool,
    /// Whether an interval straddles a limit.
    pub(super) open: bool,
    pub(super) binds: Option<String>,
    pub(super) closest: Option<Closest>,
    pub(super) requests: u64,
}

/// A setting that was changed a little.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    pub(super) value: Option<f64>,
    ci95: Option<[f64; 2]>,
    p99_ms: Option<f64>,
    holds: bool,
    method: Method,
    pub(super) requests: u64,
}

impl Probe {
    /// As an entry of a result, beside the value of what was not changed.
    pub(super) fn change(self, what: String, unchanged: Option<f64>) -> Change {
        Change {
            what,
            relative: self.value.zip(unchanged).map(|(new, old)| new / old - 1.0),
            value: self.value,
            ci95: self.ci95,
            p99_ms: self.p99_ms,
            holds: self.holds,
            method: self.method,
        }
    }
}

impl Judge<'_> {
    /// Whether a setting is answered exactly.
    pub(super) fn exact(&self, setting: &Setting<'_>) -> Result<bool, Blank> {
        covered(setting, self.ask.method)
    }

    /// The value at the offered load, from an exact solution.
    fn exact_value(&self, solution: &Solution, setting: &Setting<'_>) -> f64 {
        let outside = setting.scenario.outside(setting.server).as_ms();
        match self.objective {
            Objective::MinQuantile(q) => solution.quantile_ms(q) + outside,
            Objective::MinGpuTime => solution.utilization() / solution.throughput_per_s() * 1e3,
            Objective::MinMean => solution.mean_ms() + outside,
            // The exact solution covers no groups.
            Objective::MaxRate
            | Objective::MinInstances
            | Objective::MinGroupQuantile(_)
            | Objective::MinGroupMean => f64::NAN,
        }
    }

    /// The quantile levels a simulation must keep.
    pub(super) fn quantiles(&self) -> Vec<f64> {
        match self.objective {
            Objective::MinQuantile(q) | Objective::MinGroupQuantile(q) => vec![q],
            _ => Vec::new(),
        }
    }

    /// The value at the offered load, from a simulation or one of its sections.
    pub(super) fn sampled_value(&self, section: &Section) -> f64 {
        match self.objective {
            Objective::MinQuantile(_) => {
                section.quantiles_ms.first().copied().unwrap_or(f64::INFINITY)
            }
            Objective::MinGpuTime => section.busy_s_per_1000,
            Objective::MinGroupQuantile(_) => {
                section.group_quantiles_ms.first().copied().unwrap_or(f64::INFINITY)
            }
            Objective::MinGroupMean => section.group_mean_ms.unwrap_or(f64::INFINITY),
            _ => section.mean_ms,
        }
    }

    /// The score at the offered load of a setting that has an exact solution.
    pub(super) fn exactly(&self, candidate: &Candidate) -> Result<Score, Blank> {
        let setting = candidate.setting();
        let rate = setting.scenario.total_rate_per_s().unwrap_or(0.0);
        let solution = setting.solution(rate)?;
        let reading = setting.exactly(rate)?;
        let value = self.exact_value(&solution, &setting);
        Ok(of_reading(&setting, &reading, Method::Exact, Some(value), None))
    }

    /// The highest rate of a setting, to within a relative precision where it is simulated.
    pub(super) fn highest(
        &self,
        candidate: &Candidate,
        precision: f64,
        comparisons: u32,
    ) -> Result<Score, Blank> {
        let (method, most) = (self.ask.method, self.ask.most);
        let ask = Ask { method, precision, most, comparisons, fewest: None };
        let cell = answer(candidate.setting(), BTreeMap::new(), &ask, self.control)?;
        let high = cell.window().map(|w| &w.high);
        Ok(Score {
            method: cell.method,
            value: cell.max_rate_per_s,
            ci95: high.and_then(|h| h.ci95),
            holds: high.is_some(),
            open: cell.warnings.iter().any(|w| w.starts_with("not certain")),
            binds: high.map(|h| h.binds.clone()).or(cell.best.as_ref().map(|b| b.binds.clone())),
            closest: cell.best,
            requests: cell.requests,
        })
    }

    /// The fewest instances of a setting.
    pub(super) fn instances(
        &self,
        candidate: &Candidate,
        comparisons: u32,
    ) -> Result<Score, Blank> {
        let (method, most) = (self.ask.method, self.ask.most);
        let ask = Ask { method, precision: 0.01, most, comparisons, fewest: None };
        let found = fewest(candidate.setting(), Load::Offered, &ask, self.control)?;
        let last = found.examined.iter().rev().find(|s| s.value.is_some());
        let thresholds = candidate.setting().thresholds();
        let closest = last.and_then(|s| {
            let threshold = thresholds.iter().find(|t| t.expr == s.binds)?;
            Some(Closest {
                rate_per_s: found.rate_per_s.unwrap_or(0.0),
                binds: s.binds.clone(),
                value: s.value?,
                ci95: s.ci95,
                limit: threshold.limit,
                unit: unit(threshold).into(),
            })
        });
        Ok(Score {
            method: last.map_or(Method::Simulation, |s| s.method),
            value: found.instances.map(f64::from),
            ci95: None,
            holds: found.instances.is_some(),
            open: !found.certain,
            binds: last.map(|s| s.binds.clone()),
            closest,
            requests: found.examined.iter().map(|s| s.requests).sum(),
        })
    }

    /// Simulates a setting at the offered load.
    pub(super) fn look(
        &self,
        setting: &Setting<'_>,
        requests: u64,
        comparisons: u32,
    ) -> Result<(Reading, Observed), Blank> {
        let thresholds = setting.thresholds();
        let quantiles = self.quantiles();
        let look = Look { thresholds: &thresholds, requests, warmup: None, quantiles: &quantiles };
        let seen = observe(&setting.bench(), &look, self.control).ok_or(Blank::Stopped)?;
        let rate = setting.scenario.total_rate_per_s().unwrap_or(0.0);
        let marks = reading(&thresholds, &seen, rate, comparisons);
        Ok((marks, seen))
    }

    /// The score of a simulation at the offered load.
    pub(super) fn of_look(&self, setting: &Setting<'_>, marks: &Reading, seen: &Observed) -> Score {
        let value = self.sampled_value(&seen.pooled);
        let parts: Vec<f64> = seen.sections.iter().map(|s| self.sampled_value(s)).collect();
        let half = half_width(value, &parts).filter(|_| !setting.replays());
        let ci95 = half.map(|half| [value - half, value + half]);
        let method = match (setting.replays(), setting.bench().by_recurrence()) {
            (true, _) => Method::Trace,
            (_, true) => Method::Recurrence,
            _ => Method::Simulation,
        };
        of_reading(setting, marks, method, seen.stable.then_some(value), ci95)
    }

    /// A setting that differs a little from the recommended one.
    pub(super) fn probe(&self, candidate: &Candidate) -> Result<Probe, Blank> {
        let setting = candidate.setting();
        let exact = self.exact(&setting).unwrap_or(false);
        let overloaded = crate::study::must_grow(&setting.bench());
        let mut score = match self.objective {
            Objective::MaxRate => self.highest(candidate, 0.005, 1)?,
            Objective::MinInstances => self.instances(candidate, 1)?,
            _ if overloaded => Score::none(Method::Simulation),
            _ if exact => self.exactly(candidate)?,
            _ => {
                let (marks, seen) = self.look(&setting, GLANCE.min(self.ask.most), 1)?;
                let mut score = self.of_look(&setting, &marks, &seen);
                score.requests = seen.requests;
                score
            }
        };
        if !score.holds && self.objective == Objective::MaxRate {
            score.value = None;
        }
        Ok(Probe {
            value: score.value,
            ci95: score.ci95,
            p99_ms: self.p99(candidate)?,
            holds: score.holds,
            method: score.method,
            requests: score.requests,
        })
    }

    /// p99 at the offered load, ms; `None` where the queue grows.
    pub(super) fn p99(&self, candidate: &Candidate) -> Result<Option<f64>, Blank> {
        let setting = candidate.setting();
        if crate::study::must_grow(&setting.bench()) {
            return Ok(None);
        }
        let rate = setting.scenario.total_rate_per_s();
        if let (true, Some(rate)) = (self.exact(&setting).unwrap_or(false), rate)
            && let Ok(solution) = setting.solution(rate)
        {
            let client = setting.scenario.client;
            let outside = client.before.plus(client.after).as_ms();
            return Ok(Some(solution.quantile_ms(0.99) + outside));
        }
        let length = Length { requests: GLANCE.min(self.ask.most), warmup: None };
        let seen = setting.sampled(None, length, 1, self.control)?;
        Ok(seen.latency.map(|l| l.p99))
    }
}

impl Score {
    /// Of a queue that grows without end.
    pub(super) fn none(method: Method) -> Self {
        Self {
            method,
            value: None,
            ci95: None,
            holds: false,
            open: false,
            binds: Some("capacity".into()),
            closest: None,
            requests: 0,
        }
    }
}

fn of_reading(
    setting: &Setting<'_>,
    reading: &Reading,
    method: Method,
    value: Option<f64>,
    ci95: Option<[f64; 2]>,
) -> Score {
    let index = reading.binding();
    let thresholds = setting.thresholds();
    let threshold = thresholds.get(index).filter(|_| reading.stable);
    let closest = threshold.and_then(|t| {
        let Mark { value, value_half, .. } = *reading.marks.get(index)?;
        Some(Closest {
            rate_per_s: reading.rate,
            binds: t.expr.clone(),
            value,
            ci95: value_half.filter(|_| method != Method::Trace),
            limit: t.limit,
            unit: unit(t).into(),
        })
    });
    let intervals = !matches!(method, Method::Exact | Method::Trace);
    Score {
        method,
        value,
        ci95,
        holds: reading.face() >= 0.0,
        open: intervals && !reading.clear(),
        binds: threshold.map(|t| t.expr.clone()),
        closest,
        requests: reading.requests,
    }
}

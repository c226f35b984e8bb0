//! The fewest instances for a load.

use super::capacity::{Ask, Load, covered};
use super::sampled::FIRST_LOOK;
use super::setting::{Blank, Length, Reading, Setting};
use crate::outcome::Method;
use crate::outcome::capacity::{Fewest, Staffed};
use crate::scenario::{Scenario, Server};
use crate::study::{Control, must_grow};
use std::collections::BTreeMap;

/// So many numbers of instances are tried one by one before larger steps are taken.
const ONE_BY_ONE: u32 = 16;
/// Load below which more instances cannot help: requests hardly meet.
const IDLE: f64 = 0.01;
/// Most instances of a server.
const MOST: u32 = 100_000;

/// Finds the fewest instances that hold all thresholds of a setting under a load.
///
/// Numbers are tried upwards from the fewest that can keep up at all, one by one, later in steps
/// of an eighth; a step that jumped over candidates is then halved back to the first that holds.
///
/// # Errors
/// It was stopped, or is not covered.
pub(crate) fn fewest(
    setting: Setting<'_>,
    load: Load,
    ask: &Ask,
    control: &Control,
) -> Result<Fewest, Blank> {
    let scaled = match load {
        Load::Offered => setting.scenario.clone(),
        Load::Rate(rate) => {
            let none = || Blank::Uncovered("these arrivals have no rate that could be set".into());
            setting.scenario.with_total_rate(rate).ok_or_else(none)?
        }
    };
    let search = Search { setting, scenario: &scaled, ask, control };
    let mut tried: BTreeMap<u32, Staffed> = BTreeMap::new();
    let (mut low, mut n) = (0, search.least());
    let mut step_number = 0;
    let found = loop {
        let one = search.examine(n)?;
        let (holds, load) = (one.holds, one.load);
        tried.insert(n, one);
        if holds {
            break Some(n);
        }
        if n >= MOST || load.is_some_and(|load| load < IDLE) {
            break None;
        }
        low = n;
        step_number += 1;
        n = if step_number < ONE_BY_ONE { n + 1 } else { n + n / 8 + 1 }.min(MOST);
        if load.is_none() && step_number > 2 * ONE_BY_ONE {
            break None;
        }
    };
    let mut answer = found;
    if let Some(mut high) = found {
        while high - low > 1 && low > 0 {
            let middle = low + (high - low) / 2;
            let one = search.examine(middle)?;
            if one.holds {
                high = middle
            } else {
                low = middle
            }
            tried.insert(middle, one);
        }
        answer = Some(high);
    }
    let doubtful = |n: u32| tried.get(&n).is_some_and(|s| !s.certain);
    let certain = match answer {
        Some(n) => !doubtful(n) && !doubtful(n.saturating_sub(1)),
        None => tried.values().all(|s| s.certain),
    };
    Ok(Fewest {
        rate_per_s: scaled.total_rate_per_s(),
        instances: answer,
        certain,
        examined: tried.into_values().collect(),
    })
}

struct Search<'a> {
    setting: Setting<'a>,
    scenario: &'a Scenario,
    ask: &'a Ask,
    control: &'a Control,
}

impl Search<'_> {
    /// The fewest instances whose capacity exceeds the load.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    fn least(&self) -> u32 {
        let one_instance = Server { instances: 1, ..self.setting.server.clone() };
        let one = self.setting.scenario.capacity_per_s(&one_instance, &self.setting.policy.policy);
        let rate = self.scenario.total_rate_per_s().filter(|_| !self.setting.limited());
        match (rate, one) {
            (Some(rate), Some(one)) if !self.setting.replays() => {
                ((rate / one).floor() as u32).saturating_add(1).min(MOST)
            }
            _ => 1,
        }
    }

    fn examine(&self, n: u32) -> Result<Staffed, Blank> {
        let server = Server { instances: n, ..self.setting.server.clone() };
        let setting = Setting { scenario: self.scenario, server: &server, ..self.setting };
        let exact = n == 1 && covered(&setting, self.ask.method).unwrap_or(false);
        let rate = self.scenario.total_rate_per_s();
        let reading = match (exact, rate) {
            _ if must_grow(&setting.bench()) => None,
            (true, Some(rate)) => match setting.exactly(rate) {
                Ok(reading) => Some(reading),
                Err(Blank::TooClose) => Some(self.sampled(&setting)?),
                Err(other) => return Err(other),
            },
            _ => Some(self.sampled(&setting)?),
        };
        Ok(staffed(n, &setting, reading.as_ref(), exact, rate))
    }

    /// Simulated for as long as it takes to tell whether the thresholds hold.
    fn sampled(&self, setting: &Setting<'_>) -> Result<Reading, Blank> {
        let mut requests = FIRST_LOOK.min(self.ask.most);
        loop {
            let length = Length { requests, warmup: None };
            let reading = setting.sampled(None, length, self.ask.comparisons, self.control)?;
            if setting.replays() || reading.clear() || requests >= self.ask.most {
                return Ok(reading);
            }
            requests = requests.saturating_mul(4).min(self.ask.most);
        }
    }
}

fn staffed(
    instances: u32,
    setting: &Setting<'_>,
    reading: Option<&Reading>,
    exact: bool,
    rate: Option<f64>,
) -> Staffed {
    let load = rate.zip(setting.capacity()).map(|(rate, capacity)| rate / capacity);
    let method = match (exact, setting.replays(), setting.bench().by_recurrence()) {
        (true, ..) => Method::Exact,
        (_, true, _) => Method::Trace,
        (_, _, true) => Method::Recurrence,
        _ => Method::Simulation,
    };
    let stable = reading.filter(|r| r.stable);
    let mark = stable.map(|r| (r.binding(), r.marks[r.binding()]));
    let thresholds = setting.thresholds();
    let binds = mark.and_then(|(i, _)| thresholds.get(i)).map(|t| t.expr.clone());
    Staffed {
        instances,
        method,
        holds: stable.is_some_and(|r| r.face() >= 0.0),
        certain: stable.is_none_or(|r| exact || setting.replays() || r.clear()),
        binds: binds.unwrap_or_else(|| "capacity".into()),
        value: mark.map(|(_, m)| m.value),
        ci95: mark.and_then(|(_, m)| m.value_half).filter(|_| !exact && !setting.replays()),
        load,
        requests: reading.map_or(0, |r| r.requests),
    }
}

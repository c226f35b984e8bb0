//! The common advice: raise the cap and the wait while p99 stays under the objective, and stop
//! when throughput stops rising.
//!
//! One rung raises both to their next values (the last of a shorter list is kept). Each is
//! measured at the offered load. While a rung cannot keep up, its throughput is its capacity and
//! the climb goes on; once one meets the thresholds, it ends at the first that misses them, or
//! whose throughput is not more than one percent higher.

use super::NoTune;
use super::contest::Candidate;
use super::score::Judge;
use crate::outcome::tune::{Ladder, Rung};
use crate::scenario::Tune;
use crate::study::must_grow;
use std::collections::BTreeMap;

/// Throughput that rises by less has stopped rising.
const RISES: f64 = 1.01;
/// Requests of one rung that is simulated.
const LOOK: u64 = 1_000_000;

/// Follows the advice over the axes of the first policy that has a cap to raise. The second part
/// counts requests.
pub(super) fn climb(
    candidates: &[Candidate],
    tune: &Tune,
    best: Option<f64>,
    judge: &Judge<'_>,
) -> Result<(Ladder, u64), NoTune> {
    let find_axis = |key: &str| tune.over.iter().find(|axis| axis.path.ends_with(key));
    let Some(caps) = find_axis(".max_batch_size") else {
        return Err(NoTune::Usage(
            "the ladder needs a cap to raise".into(),
            "add \"dynamic.max_batch_size\" to `over` of [tune]".into(),
        ));
    };
    let waits = find_axis(".max_wait");
    let steps = caps.values.len().max(waits.map_or(0, |w| w.values.len()));
    let mut climb = Climb { rungs: Vec::new(), numbers: Vec::new(), chosen: None, spent: 0 };
    let mut ended = "it reached the last value of every list";
    for step in 0..steps {
        let wanted: Vec<(&str, &str)> = std::iter::once(caps)
            .chain(waits)
            .map(|axis| (axis.path.as_str(), axis.values[step.min(axis.values.len() - 1)].as_str()))
            .collect();
        let Some(number) = find(candidates, &wanted) else { continue };
        climb.measure(number, &candidates[number], judge)?;
        let stop = climb.judge();
        if let Some(why) = stop {
            ended = why;
            break;
        }
    }
    let number = climb.chosen.map(|rung| climb.numbers[rung]);
    let value = match number {
        Some(number) => {
            let probe = judge.probe(&candidates[number])?;
            climb.spent += probe.requests;
            probe.value
        }
        None => None,
    };
    let worse = value.zip(best).map(|(value, best)| {
        if tune.objective.maximises() { 1.0 - value / best } else { value / best - 1.0 }
    });
    let ended = ended.to_owned();
    let ladder = Ladder { rungs: climb.rungs, chosen: climb.chosen, ended, value, worse };
    Ok((ladder, climb.spent))
}

/// The setting with these values, other axes at their first.
fn find(candidates: &[Candidate], wanted: &[(&str, &str)]) -> Option<usize> {
    let matches = |coords: &BTreeMap<String, String>| {
        wanted.iter().all(|(path, value)| coords.get(*path).is_some_and(|v| v == value))
    };
    candidates.iter().position(|c| matches(&c.coords))
}

struct Climb {
    rungs: Vec<Rung>,
    numbers: Vec<usize>,
    chosen: Option<usize>,
    spent: u64,
}

impl Climb {
    fn measure(
        &mut self,
        number: usize,
        candidate: &Candidate,
        judge: &Judge<'_>,
    ) -> Result<(), NoTune> {
        let setting = candidate.setting();
        let grows = must_grow(&setting.bench());
        let rate = setting.scenario.total_rate_per_s();
        let exact = !grows && judge.exact(&setting).unwrap_or(false);
        let (throughput_per_s, p99_ms, holds) = match rate.filter(|_| exact) {
            _ if grows => (setting.capacity().unwrap_or(0.0), None, false),
            Some(rate) => {
                let holds = setting.exactly(rate)?.face() >= 0.0;
                (rate, setting.exact_latency(rate).map(|l| l.p99), holds)
            }
            None => {
                let (marks, seen) = judge.look(&setting, LOOK.min(judge.ask.most), 1)?;
                self.spent += seen.requests;
                let p99 = seen.latency_ms.as_ref().map(|l| l.p99);
                (seen.throughput_per_s, p99, marks.face() >= 0.0)
            }
        };
        let coords = candidate.coords.clone();
        self.rungs.push(Rung { coords, throughput_per_s, p99_ms, holds });
        self.numbers.push(number);
        Ok(())
    }

    /// Whether the climb ends at the newest rung, and why.
    fn judge(&mut self) -> Option<&'static str> {
        let newest = self.rungs.len() - 1;
        let rung = &self.rungs[newest];
        let Some(chosen) = self.chosen else {
            if rung.holds {
                self.chosen = Some(newest);
            }
            return None;
        };
        if !rung.holds {
            return Some("the next step misses a threshold");
        }
        if rung.throughput_per_s <= RISES * self.rungs[chosen].throughput_per_s {
            return Some("throughput no longer rises");
        }
        self.chosen = Some(newest);
        None
    }
}

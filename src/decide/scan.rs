//! A look at all rates, from near capacity downwards, before anything is closed in on.
//!
//! Latency need not rise with the rate: a policy that waits for company is slow when little
//! comes. So nothing is bisected that was not seen to change sign.

use super::setting::{Blank, Reading, Setting};
use rayon::prelude::*;

/// Loads at which every setting is examined: 0.02 to 0.97.
const LOADS: u32 = 15;
/// Further loads where a queue limit or timeouts allow more than capacity.
const BEYOND: [f64; 12] = [1.0, 1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0];
/// How often the distance to capacity is halved while everything holds.
const CLOSER: i32 = 8;
/// How often the lowest rate is halved for a policy that may wait for ever.
const LOWER: usize = 24;
/// Steps of the search for the best rate where none is feasible.
const GOLDEN_STEPS: usize = 14;

/// Everything that was read, by rising rate.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) readings: Vec<Reading>,
    /// Whether readings go so near to capacity that only capacity is left as a limit.
    pub(crate) to_capacity: bool,
}

/// A stretch of feasible readings, and the infeasible ones beside it, as indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) below: Option<usize>,
    pub(crate) first: usize,
    pub(crate) last: usize,
    pub(crate) above: Option<usize>,
}

/// How a rate is read.
pub(crate) type Read<'a> = dyn Fn(f64) -> Result<Reading, Blank> + Sync + 'a;

/// Reads a setting over the whole range of rates.
///
/// # Errors
/// It was stopped, or is not covered.
pub(crate) fn scan(setting: &Setting<'_>, read: &Read<'_>) -> Result<Scan, Blank> {
    let mut scan = match setting.capacity() {
        Some(capacity) => below_capacity(setting, capacity, read)?,
        None => without_capacity(setting, read)?,
    };
    if setting.patient() && scan.readings.first().is_some_and(|r| r.face() >= 0.0) {
        for _ in 0..LOWER {
            let lowest = scan.readings.first().map_or(1.0, |r| r.rate);
            scan.add(read(0.5 * lowest))?;
            if scan.readings.first().is_none_or(|r| r.face() < 0.0) {
                break;
            }
        }
    }
    if scan.readings.iter().all(|r| r.face() < 0.0) {
        scan.look_for_best(read)?;
    }
    Ok(scan)
}

fn below_capacity(setting: &Setting<'_>, capacity: f64, read: &Read<'_>) -> Result<Scan, Blank> {
    let mut loads: Vec<f64> =
        (0..LOADS).map(|i| 0.02 + 0.95 * f64::from(i) / f64::from(LOADS - 1)).collect();
    let limited = setting.limited();
    if limited {
        loads.extend(BEYOND);
    }
    let mut rates: Vec<f64> = loads.into_iter().map(|load| load * capacity).collect();
    let most = if limited { f64::INFINITY } else { capacity };
    // What the scenario offers is of interest, however little it is.
    rates.extend(setting.scenario.total_rate_per_s().filter(|rate| *rate < most));
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let read_all: Vec<Result<Reading, Blank>> = rates.par_iter().map(|rate| read(*rate)).collect();
    let mut scan = Scan { readings: Vec::new(), to_capacity: false };
    for reading in read_all {
        scan.add(reading)?;
    }
    let holds = |scan: &Scan| scan.readings.last().is_some_and(|r| r.face() >= 0.0);
    if !limited && holds(&scan) {
        scan.to_capacity = true;
        for k in 1..=CLOSER {
            let count = scan.readings.len();
            scan.add(read(capacity * (1.0 - 0.03 * 0.5f64.powi(k))))?;
            if scan.readings.len() == count {
                scan.to_capacity = false;
                break;
            }
            if !holds(&scan) {
                break;
            }
        }
    }
    Ok(scan)
}

/// Where nothing bounds the throughput: doubled until it no longer holds.
fn without_capacity(setting: &Setting<'_>, read: &Read<'_>) -> Result<Scan, Blank> {
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let one = 1e9 / setting.server.cost.service_ns(1) as f64 * f64::from(setting.server.slots());
    let mut scan = Scan { readings: Vec::new(), to_capacity: false };
    let mut missed = 0;
    for k in -5..40 {
        scan.add(read(one * 2f64.powi(k)))?;
        missed = match scan.readings.last() {
            Some(r) if r.face() < 0.0 => missed + 1,
            _ => 0,
        };
        if k > 2 && missed > 2 {
            break;
        }
    }
    Ok(scan)
}

impl Scan {
    /// Keeps a reading in its place; what is too close to capacity is left out.
    fn add(&mut self, reading: Result<Reading, Blank>) -> Result<(), Blank> {
        match reading {
            Ok(reading) => {
                let place = self.readings.partition_point(|r| r.rate < reading.rate);
                self.readings.insert(place, reading);
                Ok(())
            }
            Err(Blank::TooClose) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// The reading that comes closest to feasible.
    pub(crate) fn best(&self) -> Option<usize> {
        let order = |a: &usize, b: &usize| {
            self.readings[*a].face().total_cmp(&self.readings[*b].face()).then(b.cmp(a))
        };
        (0..self.readings.len()).max_by(order)
    }

    /// Where nothing is feasible: whether something is beside the best reading (golden section).
    fn look_for_best(&mut self, read: &Read<'_>) -> Result<(), Blank> {
        let Some(best) = self.best() else { return Ok(()) };
        let at = |i: usize| self.readings[i].rate;
        let (mut low, mut high) =
            (at(best.saturating_sub(1)), at((best + 1).min(self.readings.len() - 1)));
        for _ in 0..GOLDEN_STEPS {
            let Some(best) = self.best() else { break };
            let middle = self.readings[best].rate;
            if self.readings[best].face() >= 0.0 || high - low < 1e-6 * high {
                break;
            }
            // The longer side of the best rate is examined next.
            let next = if high - middle > middle - low {
                middle + 0.382 * (high - middle)
            } else {
                middle - 0.382 * (middle - low)
            };
            self.add(read(next))?;
            let better = self.best().is_some_and(|b| self.readings[b].rate == next);
            match (better, next > middle) {
                (true, true) => low = middle,
                (true, false) => high = middle,
                (false, true) => high = next,
                (false, false) => low = next,
            }
        }
        Ok(())
    }

    /// The feasible stretches, the highest first.
    pub(crate) fn stretches(&self) -> Vec<Stretch> {
        let mut found: Vec<Stretch> = Vec::new();
        for (i, reading) in self.readings.iter().enumerate() {
            let holds = reading.face() >= 0.0;
            match (holds, found.last_mut().filter(|s| s.above.is_none())) {
                (true, Some(open)) => open.last = i,
                (true, None) => {
                    found.push(Stretch { below: i.checked_sub(1), first: i, last: i, above: None });
                }
                (false, Some(open)) => open.above = Some(i),
                (false, None) => {}
            }
        }
        found.reverse();
        found
    }
}

//! The highest rate at which all thresholds hold.

use super::fewest::fewest;
use super::root::close_in;
use super::sampled::{self, Effort, End, FIRST_LOOK, Place};
use super::scan::{Read, Scan, Stretch, scan};
use super::setting::{Blank, Length, Reading, Setting};
use crate::outcome::capacity::{CapacityCell, Closest, RateEnd, RateWindow};
use crate::outcome::{Latency, Method as Found};
use crate::scenario::{Metric, Scenario, Threshold};
use crate::study::{Control, policy_info};
use std::collections::BTreeMap;

/// How a setting is examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// By the exact solution where there is one, else by simulation.
    #[default]
    Auto,
    /// By the exact solution only.
    Exact,
    /// By simulation only.
    Simulation,
}

/// A load for which the fewest instances are wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// What the scenario offers, recorded arrivals and closed loops included.
    Offered,
    /// A total rate, arrivals per second.
    Rate(f64),
}

/// What is asked of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    /// How it is examined.
    pub method: Method,
    /// Half-width wanted of the interval of a rate, relative to it.
    pub precision: f64,
    /// Most requests of one simulation.
    pub most: u64,
    /// How many intervals must hold together at 95 % (Bonferroni), those of one setting aside.
    pub comparisons: u32,
    /// The load for which the fewest instances are wanted.
    pub fewest: Option<Load>,
}

impl Default for Ask {
    fn default() -> Self {
        Self {
            method: Method::Auto,
            precision: 0.005,
            most: 20_000_000,
            comparisons: 1,
            fewest: None,
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// It was stopped from outside.
    Stopped,
    /// The exact solution was asked for and does not cover the setting; why.
    Uncovered(String),
}

/// The servers and policies of a scenario, as pairs of numbers, that some threshold applies to.
#[must_use]
pub fn settings(scenario: &Scenario) -> Vec<(usize, usize)> {
    let pairs =
        (0..scenario.servers.len()).flat_map(|s| (0..scenario.policies.len()).map(move |p| (s, p)));
    pairs.filter(|(_, p)| !scenario.applicable(&scenario.policies[*p]).is_empty()).collect()
}

/// What one policy on one server can take; `coords` says where in a sweep this is.
///
/// # Errors
/// There is no answer.
pub fn capacity(
    scenario: &Scenario,
    (server, policy): (usize, usize),
    coords: BTreeMap<String, String>,
    ask: &Ask,
    control: &Control,
) -> Result<CapacityCell, NoAnswer> {
    let (server, policy) = (&scenario.servers[server], &scenario.policies[policy]);
    let setting = Setting { scenario, server, policy };
    let cell = answer(setting, coords, ask, control).map_err(|blank| match blank {
        Blank::Uncovered(why) => NoAnswer::Uncovered(format!("{}: {why}", setting.label())),
        Blank::Stopped | Blank::TooClose => NoAnswer::Stopped,
    })?;
    control.add_cell();
    Ok(cell)
}

pub(super) fn answer(
    setting: Setting<'_>,
    coords: BTreeMap<String, String>,
    ask: &Ask,
    control: &Control,
) -> Result<CapacityCell, Blank> {
    let search = Search { setting, ask, control, exact: covered(&setting, ask.method)? };
    let mut cell = frame(&setting, coords);
    cell.method = search.method();
    if setting.scenario.total_rate_per_s().is_some() {
        search.rates(&mut cell)?;
    } else {
        cell.warnings.push("these arrivals have no rate that could be raised".into());
    }
    if let Some(load) = ask.fewest {
        let found = fewest(setting, load, ask, control)?;
        cell.requests += found.examined.iter().map(|s| s.requests).sum::<u64>();
        cell.fewest = Some(found);
    }
    Ok(cell)
}

/// Whether a setting is answered exactly.
///
/// # Errors
/// The exact solution was asked for and there is none.
pub(super) fn covered(setting: &Setting<'_>, method: Method) -> Result<bool, Blank> {
    if method == Method::Simulation {
        return Ok(false);
    }
    let some = setting.capacity().map_or(1.0, |c| 0.5 * c);
    match setting.exactly(some) {
        Ok(_) => Ok(true),
        Err(_) if method == Method::Auto => Ok(false),
        Err(Blank::TooClose) => {
            Err(Blank::Uncovered("the exact solution takes too many states".into()))
        }
        Err(other) => Err(other),
    }
}

fn frame(setting: &Setting<'_>, coords: BTreeMap<String, String>) -> CapacityCell {
    CapacityCell {
        coords,
        policy: policy_info(setting.label(), setting.policy),
        method: Found::Exact,
        thresholds: setting.thresholds().iter().map(|t| t.expr.clone()).collect(),
        instances: setting.server.instances,
        offered_per_s: setting.scenario.total_rate_per_s(),
        capacity_per_s: setting.capacity(),
        feasible: None,
        max_rate_per_s: None,
        headroom: None,
        max_speed_factor: None,
        windows: Vec::new(),
        examined_per_s: None,
        latency_ms: None,
        best: None,
        fewest: None,
        requests: 0,
        warnings: Vec::new(),
    }
}

/// The search over rates of one setting.
struct Search<'a> {
    setting: Setting<'a>,
    ask: &'a Ask,
    control: &'a Control,
    exact: bool,
}

/// Which end of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Low,
    High,
}

impl Search<'_> {
    fn method(&self) -> Found {
        match (self.exact, self.setting.replays(), self.setting.bench().by_recurrence()) {
            (true, ..) => Found::Exact,
            (_, true, _) => Found::Trace,
            (_, _, true) => Found::Recurrence,
            _ => Found::Simulation,
        }
    }

    fn read(&self, rate: f64) -> Result<Reading, Blank> {
        if self.control.stopped() {
            Err(Blank::Stopped)
        } else if self.exact {
            self.setting.exactly(rate)
        } else {
            let length = Length { requests: FIRST_LOOK.min(self.ask.most), warmup: None };
            self.setting.sampled(Some(rate), length, self.ask.comparisons, self.control)
        }
    }

    fn rates(&self, cell: &mut CapacityCell) -> Result<(), Blank> {
        let read: &Read<'_> = &|rate| self.read(rate);
        let scan = scan(&self.setting, read)?;
        cell.requests += scan.readings.iter().map(|r| r.requests).sum::<u64>();
        cell.examined_per_s = match scan.readings.as_slice() {
            [first, .., last] => Some([first.rate, last.rate]),
            _ => None,
        };
        for stretch in scan.stretches() {
            if let Some((window, latency)) = self.window(&scan, stretch, cell)? {
                if cell.windows.is_empty() {
                    cell.latency_ms = latency;
                }
                cell.windows.push(window);
            }
        }
        cell.feasible = Some(!cell.windows.is_empty());
        match cell.window().map(|w| w.high.clone()) {
            Some(high) => self.conclude(cell, &high),
            None => self.closest(&scan, cell),
        }
        Ok(())
    }

    fn conclude(&self, cell: &mut CapacityCell, high: &RateEnd) {
        cell.max_rate_per_s = Some(high.rate_per_s);
        cell.headroom = cell.offered_per_s.map(|offered| high.rate_per_s / offered - 1.0);
        if self.setting.replays() {
            let factor = self.setting.scenario.speed_factor();
            cell.max_speed_factor = cell.headroom.zip(factor).map(|(h, f)| (h + 1.0) * f);
        }
        let reached = high.ci95.map(|[low, up]| 0.5 * (up - low) / high.rate_per_s);
        if let Some(reached) = reached.filter(|r| *r > self.ask.precision) {
            cell.warnings.push(format!(
                "precision not reached: the rate is known to ±{:.2} %, asked for ±{:.2} %",
                reached * 100.0,
                self.ask.precision * 100.0
            ));
        }
    }

    /// Closes in on both ends of a stretch; `None` where a longer look finds nothing there.
    fn window(
        &self,
        scan: &Scan,
        stretch: Stretch,
        cell: &mut CapacityCell,
    ) -> Result<Option<(RateWindow, Option<Latency>)>, Blank> {
        let high = match stretch.above {
            Some(_) => self.end(scan, stretch, Side::High, cell)?,
            None => Some(self.unbounded(scan, stretch)),
        };
        let Some((high, latency)) = high else { return Ok(None) };
        let low = match stretch.below {
            Some(_) => match self.end(scan, stretch, Side::Low, cell)? {
                Some((low, _)) => Some(low),
                None => return Ok(None),
            },
            None => None,
        };
        Ok(Some((RateWindow { low, high }, latency)))
    }

    /// The upper end of a stretch that nothing examined ends.
    fn unbounded(&self, scan: &Scan, stretch: Stretch) -> (RateEnd, Option<Latency>) {
        let reading = &scan.readings[stretch.last];
        let about_latency = |t: &&Threshold| t.metric.about_latency();
        let none_about_latency = !self.setting.thresholds().iter().any(about_latency);
        let (rate, binds) = match self.setting.capacity() {
            Some(capacity) if scan.to_capacity && none_about_latency => (capacity, "capacity"),
            _ => (reading.rate, "search"),
        };
        let latency = if self.exact { self.setting.exact_latency(reading.rate) } else { None };
        (self.rate_end(rate, None, binds.into()), latency.or_else(|| reading.latency.clone()))
    }

    fn rate_end(&self, rate_per_s: f64, ci95: Option<[f64; 2]>, binds: String) -> RateEnd {
        let load = self.setting.capacity().map(|c| rate_per_s / c);
        RateEnd { rate_per_s, ci95, load, binds }
    }

    fn binds(&self, reading: &Reading, index: usize) -> String {
        let thresholds = self.setting.thresholds();
        match thresholds.get(index) {
            Some(threshold) if reading.stable => threshold.expr.clone(),
            _ => "capacity".into(),
        }
    }

    fn end(
        &self,
        scan: &Scan,
        stretch: Stretch,
        side: Side,
        cell: &mut CapacityCell,
    ) -> Result<Option<(RateEnd, Option<Latency>)>, Blank> {
        let (good, bad) = match side {
            Side::High => (stretch.last, stretch.above.unwrap_or(stretch.last)),
            Side::Low => (stretch.first, stretch.below.unwrap_or(stretch.first)),
        };
        let (good, bad) = (&scan.readings[good], &scan.readings[bad]);
        if self.exact {
            return self.exact_end(good, bad).map(Some);
        }
        let place = self.place(scan, stretch, side, good.rate, bad.rate);
        let Ask { precision, most, comparisons, .. } = *self.ask;
        let effort = Effort { precision, most, comparisons };
        let (found, spent) = sampled::end(self.setting, place, effort, self.control)?;
        cell.requests += spent;
        let Some(End { reading, binds, interval, short }) = found else {
            cell.warnings.push(format!(
                "{} looked feasible near {:.1}/s in a short run and is not in a longer one",
                self.setting.label(),
                good.rate
            ));
            return Ok(None);
        };
        if short {
            cell.warnings.push(format!(
                "so near to capacity the queue at {:.1}/s remembers longer than runs of {} \
                 requests last; raise max_requests",
                reading.rate, self.ask.most
            ));
        }
        let end = self.rate_end(reading.rate, interval, self.binds(&reading, binds));
        Ok(Some((end, reading.latency)))
    }

    fn exact_end(
        &self,
        good: &Reading,
        bad: &Reading,
    ) -> Result<(RateEnd, Option<Latency>), Blank> {
        let mut stopped = None;
        let mut read = |rate: f64| match self.read(rate) {
            Ok(reading) => Some(reading.face()),
            Err(blank) => {
                stopped = Some(blank);
                None
            }
        };
        let capacity = self.setting.capacity().unwrap_or(good.rate);
        let ends = ((good.rate, good.face()), (bad.rate, bad.face()));
        let Some((at, beyond)) = close_in(&mut read, ends.0, ends.1, 1e-9 * capacity) else {
            return Err(stopped.unwrap_or(Blank::Stopped));
        };
        let reading = self.read(beyond.0)?;
        let binds = self.binds(&reading, reading.binding());
        Ok((self.rate_end(at.0, None, binds), self.setting.exact_latency(at.0)))
    }

    /// Where a simulated end may be looked for.
    fn place(&self, scan: &Scan, stretch: Stretch, side: Side, good: f64, bad: f64) -> Place {
        let rate = |i: usize| scan.readings[i].rate;
        let middle = |a: f64, b: f64| 0.5 * (a + b);
        let one = stretch.first == stretch.last;
        let inner = match (side, stretch.below, stretch.above) {
            (Side::High, Some(below), _) if one => middle(rate(below), good),
            (Side::Low, _, Some(above)) if one => middle(rate(above), good),
            (Side::High, ..) => rate(stretch.first),
            (Side::Low, ..) => rate(stretch.last),
        };
        let outer = match (side, self.setting.capacity()) {
            (Side::Low, _) => 0.25 * bad,
            (Side::High, Some(capacity)) if !self.setting.limited() => capacity,
            (Side::High, _) => 1.5 * bad,
        };
        Place { good, bad, inner, outer }
    }

    /// What came closest where nothing is feasible.
    fn closest(&self, scan: &Scan, cell: &mut CapacityCell) {
        let Some(best) = scan.best().map(|i| &scan.readings[i]) else { return };
        let thresholds = self.setting.thresholds();
        let index = best.binding();
        let Some(threshold) = thresholds.get(index) else { return };
        if !self.exact && best.hope() >= 0.0 && !self.setting.replays() {
            cell.warnings.push(
                "not certain: at the best rate the interval still straddles the limit".into(),
            );
        }
        let alone = |i: usize| scan.readings.iter().any(|r| r.stable && r.marks[i].margin >= 0.0);
        if thresholds.len() > 1 && (0..thresholds.len()).all(alone) {
            cell.warnings
                .push("each threshold holds at some rate, all of them together at none".into());
        }
        let mark = best.marks[index];
        cell.latency_ms = match self.exact {
            true => self.setting.exact_latency(best.rate),
            false => best.latency.clone(),
        };
        cell.best = Some(Closest {
            rate_per_s: best.rate,
            binds: threshold.expr.clone(),
            value: mark.value,
            ci95: mark.value_half.filter(|_| !self.setting.replays()),
            limit: threshold.limit,
            unit: unit(threshold).into(),
        });
    }
}

/// Unit of what a threshold names.
pub(super) fn unit(threshold: &Threshold) -> &'static str {
    match threshold.metric {
        Metric::Quantile(_) | Metric::Mean | Metric::GroupQuantile(_) | Metric::GroupMean => "ms",
        Metric::Throughput => "/s",
        Metric::Attainment(_) | Metric::Rejected | Metric::Expired => "",
    }
}

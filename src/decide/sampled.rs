//! The end of a feasible stretch of rates by simulation.
//!
//! All rates are simulated with the same random streams, so the share of violations is a nearly
//! smooth function of the rate and its root can be closed in on. The interval of the root is the
//! set of rates that a test at the same level does not reject: those whose interval of the margin
//! contains zero. It covers the true rate exactly as often as that interval covers the true
//! margin there, however curved the function is. The length of the runs grows as the bracket
//! narrows, so that few requests are spent far from the root.

use super::root::close_in;
use super::setting::{Blank, Length, Reading, Setting};
use crate::study::{Control, relaxation};

/// Measured requests at each rate of the first look.
pub(crate) const FIRST_LOOK: u64 = 200_000;
/// Steps outward in search of a sign change at a new length of run.
const STEPS_OUT: i32 = 24;
/// Roots are closed in on to this share of their distance, the interval's own width.
const FINE: f64 = 0.05;

/// How precisely an end is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Effort {
    /// Half-width of the interval over the rate.
    pub(crate) precision: f64,
    /// Most requests at one rate.
    pub(crate) most: u64,
    /// How many intervals must hold together.
    pub(crate) comparisons: u32,
}

/// An end of a stretch.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// At the root, taken at face value.
    pub(crate) reading: Reading,
    /// The threshold that stops holding there.
    pub(crate) binds: usize,
    /// 95 % interval; `None` for one replay.
    pub(crate) interval: Option<[f64; 2]>,
    /// Whether the longest runs allowed are short beside the memory of the queue.
    pub(crate) short: bool,
}

/// Where an end is looked for: it is between `good` and `bad`, surely between the limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) good: f64,
    pub(crate) bad: f64,
    /// The last rate to look at on the feasible side.
    pub(crate) inner: f64,
    /// The last rate to look at on the other side.
    pub(crate) outer: f64,
}

/// All readings at one length of run.
struct Curve<'a> {
    setting: Setting<'a>,
    control: &'a Control,
    place: Place,
    length: Length,
    comparisons: u32,
    readings: Vec<Reading>,
}

impl Curve<'_> {
    fn read(&mut self, rate: f64) -> Result<&Reading, Blank> {
        let place = match self.readings.binary_search_by(|r| r.rate.total_cmp(&rate)) {
            Ok(place) => place,
            Err(place) => {
                let (length, comparisons) = (self.length, self.comparisons);
                let reading =
                    self.setting.sampled(Some(rate), length, comparisons, self.control)?;
                // The start-up found first holds for the rates nearby: a deletion that jumps from
                // rate to rate would be noise.
                if reading.stable {
                    self.length.warmup.get_or_insert(reading.warmup);
                }
                self.readings.insert(place, reading);
                place
            }
        };
        Ok(&self.readings[place])
    }

    /// Closes in on the root of `of` between `good` and `bad`, first outward from there until the
    /// sign changes. `None` where it does not change up to the limits of the place.
    fn root(
        &mut self,
        (good, bad): (f64, f64),
        fine: f64,
        of: fn(&Reading) -> f64,
    ) -> Result<Option<f64>, Blank> {
        let Place { inner, outer, .. } = self.place;
        let (least, most) = (inner.min(outer), inner.max(outer));
        let (mut good, mut bad) = (good.clamp(least, most), bad.clamp(least, most));
        let mut step = 0.5 * (bad - good);
        let mut tries = 0;
        while of(self.read(good)?) < 0.0 {
            if good == inner || tries == STEPS_OUT {
                return Ok(None);
            }
            bad = good;
            good = (good - step).clamp(least, most);
            (step, tries) = (2.0 * step, tries + 1);
        }
        step = 0.5 * (bad - good);
        while of(self.read(bad)?) >= 0.0 {
            if bad == outer || tries == STEPS_OUT {
                return Ok(None);
            }
            good = bad;
            bad = (bad + step).clamp(least, most);
            (step, tries) = (2.0 * step, tries + 1);
        }
        let (a, b) = self.narrowed(good, bad, of);
        let mut value = |rate: f64| self.read(rate).ok().map(of);
        let (a, b) = close_in(&mut value, a, b, fine).ok_or(Blank::Stopped)?;
        let at = a.0 + (b.0 - a.0) * a.1 / (a.1 - b.1);
        Ok(Some(if at.is_finite() { at } else { a.0 }))
    }

    /// The outermost change of sign among what has been read between two rates.
    fn narrowed(&self, good: f64, bad: f64, of: fn(&Reading) -> f64) -> (Pair, Pair) {
        let (low, high) = (good.min(bad), good.max(bad));
        let within = self.readings.iter().filter(|r| r.rate >= low && r.rate <= high);
        let mut points: Vec<Pair> = within.map(|r| (r.rate, of(r))).collect();
        if bad < good {
            points.reverse();
        }
        let last = points.iter().rposition(|p| p.1 >= 0.0).unwrap_or(0);
        (points[last], points[(last + 1).min(points.len() - 1)])
    }

    fn spent(&self) -> u64 {
        self.readings.iter().map(|r| r.requests).sum()
    }

    /// The root and the ends of its interval, each to within `fine`.
    fn interval(&mut self, start: Pair, fine: f64) -> Result<Option<Found>, Blank> {
        let Some(center) = self.root(start, fine, Reading::face)? else { return Ok(None) };
        if self.setting.replays() {
            return Ok(Some(Found { center, sure: center, hope: center }));
        }
        let aside = 0.25 * (start.1 - start.0);
        let sure = self.root((center - aside, center), fine, Reading::sure)?;
        let hope = self.root((center, center + aside), fine, Reading::hope)?;
        let (sure, hope) = (sure.unwrap_or(self.place.inner), hope.unwrap_or(self.place.outer));
        Ok(Some(Found { center, sure, hope }))
    }
}

type Pair = (f64, f64);

/// A root and its interval.
#[derive(Clone, Copy, Debug)]
struct Found {
    center: f64,
    /// The end of the interval on the feasible side.
    sure: f64,
    hope: f64,
}

impl Found {
    fn half(&self) -> f64 {
        0.5 * (self.hope - self.sure).abs()
    }
}

/// Finds the end of a stretch; `Ok(None)` where longer runs show that there is none. The second
/// part counts requests.
///
/// # Errors
/// It was stopped.
pub(crate) fn end(
    setting: Setting<'_>,
    place: Place,
    effort: Effort,
    control: &Control,
) -> Result<(Option<End>, u64), Blank> {
    let mut start = (place.good, place.bad);
    let mut requests = settling(&setting, place.good).max(FIRST_LOOK).min(effort.most);
    let mut spent = 0;
    loop {
        let readings = Vec::new();
        let length = Length { requests, warmup: None };
        let comparisons = effort.comparisons;
        let mut curve = Curve { setting, control, place, length, comparisons, readings };
        let replays = setting.replays();
        let fine = if replays { 1e-7 * start.1 } else { FINE * (start.1 - start.0).abs() };
        let Some(found) = curve.interval(start, fine)? else {
            return Ok((None, spent + curve.spent()));
        };
        let reached = found.half() / found.center;
        let needed = settling(&setting, found.center);
        let long_enough = reached <= effort.precision && requests >= needed;
        if long_enough || requests >= effort.most || replays {
            let start = (found.sure, found.hope);
            let fine = if replays { fine } else { fine.min(0.1 * found.half()) };
            let found = curve.interval(start, fine)?.unwrap_or(found);
            let reading = curve.read(found.center)?.clone();
            let (low, high) = (found.sure.min(found.hope), found.sure.max(found.hope));
            let interval = (!replays).then_some([low, high]);
            let short = requests < needed && !replays;
            let end = End { binds: reading.binding(), reading, interval, short };
            return Ok((Some(end), spent + curve.spent()));
        }
        spent += curve.spent();
        let factor = (1.3 * (reached / effort.precision).powi(2)).clamp(2.0, 16.0);
        requests = grown(requests, factor).max(needed).min(effort.most);
        // The next bracket is this interval and a little more: it holds the next root nearly
        // always, and where it does not, the search goes outward.
        let wider = |end: f64| found.center + 1.2 * (end - found.center);
        start = (wider(found.sure), wider(found.hope));
    }
}

/// Memories of the queue that every replication must hold, in units of its relaxation time.
const MEMORIES: f64 = 20.0;

/// Requests over all replications in which the queue at a rate settles many times over.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn settling(setting: &Setting<'_>, rate: f64) -> u64 {
    let Some(scaled) = setting.scenario.with_total_rate(rate) else { return 0 };
    let at = Setting { scenario: &scaled, ..*setting };
    let memory = relaxation(&at.bench()).map_or(f64::INFINITY, |t| t.as_s());
    let each = MEMORIES * memory * rate;
    (each * f64::from(setting.scenario.run.replications)) as u64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a length of run"
)]
fn grown(requests: u64, factor: f64) -> u64 {
    (requests as f64 * factor) as u64
}

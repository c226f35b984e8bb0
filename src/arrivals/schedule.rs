//! `schedule`: a Poisson process whose rate follows a plan: straight lines between points, or a
//! sine.
//!
//! Given the rate, counts in disjoint windows are independent and Poisson. Arrivals along straight
//! lines come from inverting the integrated rate, along a sine by thinning (Lewis and Shedler
//! 1979) under its largest rate; both are exact.

use super::Stream;
use super::clock::Clock;
use crate::rng::SimRng;
use crate::tagged::{BadParam, params};
use crate::time::Nanos;
use crate::units::{Fraction, Rate};
use rand::RngExt;
use rand_distr::Exp1;
use std::f64::consts::TAU;

params! {
    /// Parameters of `schedule`: either `points` or `sine`.
    #[derive(Default)]
    pub struct Schedule {
        /// Rates at moments, straight lines between them; before the first and after the last the
        /// rate stays.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub points: Option<Vec<SchedulePoint>>,
        /// A rate that swings.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub sine: Option<Sine>,
        /// Whether the points start over after the last one.
        #[cfg_attr(feature = "schema", serde(default))]
        pub repeat: bool,
    }
}

params! {
    /// The rate at a moment.
    #[derive(Copy)]
    pub struct SchedulePoint {
        /// When, from the start.
        pub at: Nanos,
        /// Arrivals per second then.
        pub rate: Rate,
    }
}

params! {
    /// `rate · (1 + swing · sin(2π t / period))`.
    #[derive(Copy)]
    pub struct Sine {
        /// Mean arrivals per second.
        pub rate: Rate,
        /// How far the rate swings from its mean, at most 100%.
        pub swing: Fraction,
        /// Length of one swing, as in "24h".
        pub period: Nanos,
    }
}

const HELP: &str = "give either points = [{ at = \"0s\", rate = \"100/s\" }, …] or sine = { rate, \
                    swing, period }";

impl Schedule {
    pub(super) fn check(&self) -> Result<(), BadParam> {
        match (&self.points, &self.sine) {
            (Some(points), None) => self.check_points(points),
            (None, Some(_)) if self.repeat => Err(BadParam::new(
                "repeat",
                "a sine repeats by itself",
                "leave repeat out; it belongs to points",
            )),
            (None, Some(sine)) if sine.period == Nanos::ZERO => Err(BadParam::new(
                "sine",
                "a period of zero is no swing",
                "write a positive duration, as in period = \"24h\"",
            )),
            (None, Some(_)) => Ok(()),
            (Some(_), Some(_)) => {
                Err(BadParam::new("points", "points and sine exclude each other", HELP))
            }
            (None, None) => Err(BadParam::new("points", "this schedule is not complete", HELP)),
        }
    }

    fn check_points(&self, points: &[SchedulePoint]) -> Result<(), BadParam> {
        let bad = |what: &str, help: &str| Err(BadParam::new("points", what, help));
        if points.is_empty() {
            return bad("a schedule needs at least one point", HELP);
        }
        if points.windows(2).any(|p| p[0].at >= p[1].at) {
            return bad("points must be in order of time, no two at once", "sort them by `at`");
        }
        if self.repeat && (points.len() < 2 || points[0].at != Nanos::ZERO) {
            let help = "write the first at \"0s\" and the last where it starts over";
            return bad("a schedule that repeats goes from 0s to its last point", help);
        }
        Ok(())
    }

    /// Arrivals per second on average: over the points' span, or over the swing.
    #[must_use]
    pub fn mean_rate_per_s(&self) -> f64 {
        if let Some(sine) = &self.sine {
            return sine.rate.per_s();
        }
        let lines = lines(self.points.as_deref().unwrap_or_default());
        let (time, area) =
            lines.iter().fold((0.0, 0.0), |(t, a), l| (t + l.length_s, a + l.area()));
        match lines.last() {
            Some(last) if time <= 0.0 => last.until_per_s,
            _ => area / time,
        }
    }

    /// The largest rate.
    #[must_use]
    pub fn peak_rate_per_s(&self) -> f64 {
        let sine = self.sine.iter().map(|s| s.rate.per_s() * (1.0 + s.swing.get()));
        let points = self.points.iter().flatten().map(|p| p.rate.per_s());
        sine.chain(points).fold(0.0, f64::max)
    }

    /// Multiplies every rate.
    pub(super) fn scale(&mut self, scale: impl Fn(&mut Rate)) {
        self.points.iter_mut().flatten().for_each(|p| scale(&mut p.rate));
        self.sine.iter_mut().for_each(|s| scale(&mut s.rate));
    }

    /// Draws it.
    pub(super) fn stream(&self, rng: SimRng) -> Result<Box<dyn Stream + Send>, BadParam> {
        self.check()?;
        Ok(match (&self.points, &self.sine) {
            (_, Some(sine)) => Box::new(Thinned { rng, clock: Clock::default(), sine: *sine }),
            (points, None) => Box::new(Inverted {
                rng,
                clock: Clock::default(),
                lines: lines(points.as_deref().unwrap_or_default()),
                repeat: self.repeat,
                at: 0,
                into_s: 0.0,
            }),
        })
    }
}

/// A stretch along which the rate is a straight line.
#[derive(Clone, Copy, Debug)]
struct Line {
    length_s: f64,
    from_per_s: f64,
    until_per_s: f64,
}

impl Line {
    fn area(&self) -> f64 {
        0.5 * (self.from_per_s + self.until_per_s) * self.length_s
    }

    /// How far from `into_s` the expected arrivals add up to `wanted`; what is left of `wanted`
    /// where the line ends before.
    fn advance(&self, into_s: f64, wanted: f64) -> Result<f64, f64> {
        let slope = (self.until_per_s - self.from_per_s) / self.length_s;
        let slope = if slope.is_finite() { slope } else { 0.0 };
        let here = self.from_per_s + slope * into_s;
        let rest_s = self.length_s - into_s;
        let rest = (here + 0.5 * slope * rest_s) * rest_s;
        if wanted >= rest {
            return Err(wanted - rest.max(0.0));
        }
        // The root of `here · x + slope · x² / 2 = wanted` that loses no digits.
        let root = (here * here + 2.0 * slope * wanted).max(0.0).sqrt();
        Ok((2.0 * wanted / (here + root)).min(rest_s))
    }
}

/// The lines of a plan; a first point later than the start is reached at its own rate.
fn lines(points: &[SchedulePoint]) -> Vec<Line> {
    let line = |from: (f64, f64), until: (f64, f64)| Line {
        length_s: until.0 - from.0,
        from_per_s: from.1,
        until_per_s: until.1,
    };
    let at = |p: &SchedulePoint| (p.at.as_s(), p.rate.per_s());
    let first = points.first().map(at).map(|(t, rate)| line((0.0, rate), (t, rate)));
    let between = points.windows(2).map(|p| line(at(&p[0]), at(&p[1])));
    first.into_iter().chain(between).collect()
}

/// Inverts the integrated rate.
struct Inverted {
    rng: SimRng,
    clock: Clock,
    lines: Vec<Line>,
    repeat: bool,
    /// The line that time is on, and how far; beyond the last where the last rate stays.
    at: usize,
    into_s: f64,
}

impl Inverted {
    fn next(&mut self) -> u64 {
        let mut wanted = self.rng.sample::<f64, _>(Exp1);
        let mut gap_s = 0.0;
        loop {
            let Some(line) = self.lines.get(self.at) else {
                let stays = self.lines.last().map_or(0.0, |line| line.until_per_s);
                return self.clock.advance((gap_s + wanted / stays) * 1e9);
            };
            match line.advance(self.into_s, wanted) {
                Ok(more) => {
                    self.into_s += more;
                    return self.clock.advance((gap_s + more) * 1e9);
                }
                Err(left) => {
                    gap_s += line.length_s - self.into_s;
                    (wanted, self.into_s) = (left, 0.0);
                    self.at += 1;
                    if self.repeat && self.at == self.lines.len() {
                        self.at = 0;
                    }
                }
            }
        }
    }
}

impl Stream for Inverted {
    fn fill(&mut self, out: &mut [u64]) -> usize {
        out.iter_mut().for_each(|slot| *slot = self.next());
        out.len()
    }
}

/// Keeps each arrival of the largest rate with the share that its moment has.
struct Thinned {
    rng: SimRng,
    clock: Clock,
    sine: Sine,
}

impl Stream for Thinned {
    #[expect(clippy::cast_precision_loss, reason = "a phase within one period")]
    fn fill(&mut self, out: &mut [u64]) -> usize {
        let swing = self.sine.swing.get();
        let most_gap_ns = 1e9 / (self.sine.rate.per_s() * (1.0 + swing));
        for slot in out.iter_mut() {
            *slot = loop {
                let at = self.clock.advance(self.rng.sample::<f64, _>(Exp1) * most_gap_ns);
                let phase = (at % self.sine.period.0) as f64 / self.sine.period.0 as f64;
                let share = (1.0 + swing * (TAU * phase).sin()) / (1.0 + swing);
                if at == u64::MAX || self.rng.random::<f64>() < share {
                    break at;
                }
            };
        }
        out.len()
    }
}

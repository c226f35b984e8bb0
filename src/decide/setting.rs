//! One setting under one load: how far its thresholds are from their limits.

use crate::exact::Solution;
use crate::outcome::Latency;
use crate::scenario::{Labelled, Metric, Op, Scenario, Server, Threshold};
use crate::stats::t_quantile;
use crate::study::{
    Bench, Control, Engine, Look, Observed, Unsolved, latency_of, must_grow, observe,
    queue_is_limited, solve_exactly,
};
use crate::time::Nanos;

/// Margin where there is no steady state: far on the wrong side of any limit.
const HOPELESS: f64 = -1e6;

/// A policy on a server under a scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) server: &'a Server,
    pub(crate) policy: &'a Labelled,
}

/// One threshold at one load. Margins are in units of what is allowed (the permitted share of
/// violations, the limit of a mean), and not negative where the threshold holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mark {
    pub(crate) margin: f64,
    /// How far the 95 % interval of the margin reaches below and above it; 0 where there is none.
    pub(crate) below: f64,
    pub(crate) above: f64,
    /// What the threshold names: ms, a share, or a rate per second.
    pub(crate) value: f64,
    pub(crate) value_half: Option<f64>,
}

/// All thresholds at one load.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// Arrivals per second.
    pub(crate) rate: f64,
    /// In the order of the thresholds.
    pub(crate) marks: Vec<Mark>,
    /// Whether the queue settles.
    pub(crate) stable: bool,
    /// Known for simulations only.
    pub(crate) latency: Option<Latency>,
    pub(crate) requests: u64,
    /// Start-up deleted from every replication.
    pub(crate) warmup: Nanos,
}

impl Reading {
    fn least(&self, of: impl Fn(&Mark) -> f64) -> f64 {
        if self.stable { self.marks.iter().map(of).fold(f64::INFINITY, f64::min) } else { HOPELESS }
    }

    /// The least margin, taken at face value: not negative where all thresholds hold.
    pub(crate) fn face(&self) -> f64 {
        self.least(|m| m.margin)
    }

    /// The least margin that the intervals leave no doubt about.
    pub(crate) fn sure(&self) -> f64 {
        self.least(|m| m.margin - m.below)
    }

    /// The least margin that the intervals do not rule out.
    pub(crate) fn hope(&self) -> f64 {
        self.least(|m| m.margin + m.above)
    }

    /// Whether the intervals clear the limits, one way or the other.
    pub(crate) fn clear(&self) -> bool {
        self.sure() >= 0.0 || self.hope() < 0.0
    }

    /// The threshold with the least margin.
    pub(crate) fn binding(&self) -> usize {
        let order = |a: &(usize, &Mark), b: &(usize, &Mark)| a.1.margin.total_cmp(&b.1.margin);
        self.marks.iter().enumerate().min_by(order).map_or(0, |(i, _)| i)
    }
}

/// How long a simulation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length {
    /// Measured requests over all replications.
    pub(crate) requests: u64,
    /// Start-up to delete; `None` finds it with a pilot.
    pub(crate) warmup: Option<Nanos>,
}

/// Why there is no reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Blank {
    /// Too close to capacity to be examined.
    TooClose,
    /// Stopped from outside.
    Stopped,
    /// The exact solution does not cover it; why.
    Uncovered(String),
}

impl<'a> Setting<'a> {
    /// The thresholds that apply.
    pub(crate) fn thresholds(&self) -> Vec<&'a Threshold> {
        self.scenario.applicable(self.policy)
    }

    /// `label`, or `label@server`.
    pub(crate) fn label(&self) -> String {
        self.scenario.cell_label(self.server, self.policy)
    }

    /// Requests per second of a queue that never empties.
    pub(crate) fn capacity(&self) -> Option<f64> {
        self.scenario.capacity_per_s(self.server, &self.policy.policy)
    }

    pub(crate) fn bench(&self) -> Bench<'a> {
        Bench {
            scenario: self.scenario,
            server: self.server,
            policy: &self.policy.policy,
            engine: Engine::Auto,
        }
    }

    /// Whether something keeps the queue short whatever is offered.
    pub(crate) fn limited(&self) -> bool {
        queue_is_limited(&self.bench())
    }

    /// Whether a batch may wait for ever to fill up, so that low rates are slow.
    pub(crate) fn patient(&self) -> bool {
        let law = self.policy.policy.textbook();
        law.is_some_and(|law| law.wait == Nanos::MAX && law.target > 1)
    }

    /// Whether the arrivals are one recorded stream, which has no intervals.
    pub(crate) fn replays(&self) -> bool {
        self.bench().replays_trace()
    }

    /// The exact steady state at a rate.
    pub(crate) fn solution(&self, rate: f64) -> Result<Solution, Blank> {
        let scaled = self.scenario.with_total_rate(rate);
        let scaled =
            scaled.ok_or_else(|| Blank::Uncovered("these arrivals have no rate".into()))?;
        solve_exactly(&scaled, self.server, &self.policy.policy).map_err(|e| match e {
            Unsolved::TooLarge(_) | Unsolved::Overloaded(_) => Blank::TooClose,
            Unsolved::Uncovered(why) => Blank::Uncovered(why),
        })
    }

    /// The exact reading at a rate below capacity.
    pub(crate) fn exactly(&self, rate: f64) -> Result<Reading, Blank> {
        let solution = self.solution(rate)?;
        let outside = self.outside_ms();
        let mark = |t: &&Threshold| exact_mark(t, &solution, outside);
        Ok(Reading {
            rate,
            marks: self.thresholds().iter().map(mark).collect(),
            stable: true,
            latency: None,
            requests: 0,
            warmup: Nanos::ZERO,
        })
    }

    /// The exact latency at a rate.
    pub(crate) fn exact_latency(&self, rate: f64) -> Option<Latency> {
        self.solution(rate).ok().map(|s| latency_of(&s, self.outside_ms()))
    }

    fn outside_ms(&self) -> f64 {
        self.scenario.outside(self.server).as_ms()
    }

    /// The reading of a simulation at a rate (`None`: as the scenario states it).
    pub(crate) fn sampled(
        &self,
        rate: Option<f64>,
        length: Length,
        comparisons: u32,
        control: &Control,
    ) -> Result<Reading, Blank> {
        let scaled = match rate {
            None => None,
            Some(rate) => Some(self.scenario.with_total_rate(rate).ok_or(Blank::TooClose)?),
        };
        let at = Setting { scenario: scaled.as_ref().unwrap_or(self.scenario), ..*self };
        let thresholds = self.thresholds();
        if must_grow(&at.bench()) {
            // It would be looked at only to see that.
            return Ok(growing(rate.unwrap_or(0.0)));
        }
        let Length { requests, warmup } = length;
        let look = Look { thresholds: &thresholds, requests, warmup, quantiles: &[] };
        let seen = observe(&at.bench(), &look, control).ok_or(Blank::Stopped)?;
        Ok(reading(&thresholds, &seen, rate.unwrap_or(0.0), comparisons))
    }
}

/// The reading of a queue that grows without end.
fn growing(rate: f64) -> Reading {
    let (marks, warmup) = (Vec::new(), Nanos::ZERO);
    Reading { rate, marks, stable: false, latency: None, requests: 0, warmup }
}

/// What an observed cell says of its thresholds.
pub(crate) fn reading(
    thresholds: &[&Threshold],
    seen: &Observed,
    rate: f64,
    comparisons: u32,
) -> Reading {
    let marks = thresholds.iter().zip(&seen.evidence).zip(&seen.values);
    let count = thresholds.len() * comparisons.max(1) as usize;
    let marks = marks.map(|((threshold, e), &(value, value_half))| {
        let (margin, scale) = margin(threshold, e.value);
        let [below, above] = reach(threshold, e.value, joint_half(e, count)).map(|d| d / scale);
        Mark { margin, below, above, value, value_half }
    });
    Reading {
        rate,
        marks: marks.collect(),
        stable: seen.stable,
        latency: seen.latency_ms.clone(),
        requests: seen.requests,
        warmup: seen.warmup,
    }
}

/// Half-width of the 95 % interval of what a threshold is judged on; with several thresholds each
/// at its share of the 5 % (Bonferroni). 0 where there is no interval.
#[expect(clippy::cast_precision_loss, reason = "counts")]
fn joint_half(e: &crate::stats::Evidence, count: usize) -> f64 {
    let df = e.sections.len().saturating_sub(1) as u64;
    let tail = 0.025 / count.max(1) as f64;
    match crate::stats::half_width(e.value, &e.sections) {
        None => 0.0,
        Some(half) if half > 0.0 && count <= 1 => half,
        Some(half) if half > 0.0 => half * t_quantile(1.0 - tail, df) / t_quantile(0.975, df),
        // A share that never varied: what seeing no exception among so many leaves open.
        Some(_) => e.counted.map_or(0.0, |n| -tail.ln() / n.max(1) as f64),
    }
}

/// How far the interval of a margin reaches below and above it.
///
/// Shares of late requests come in lumps (one long busy period makes many late), so a short run
/// that saw few of them also believes that they vary little. Their interval is taken on the
/// logarithm, where the spread does not hang on the value; a symmetric one misses too often.
fn reach(threshold: &Threshold, value: f64, half: f64) -> [f64; 2] {
    let (share, bad_above) = match (threshold.metric, threshold.op) {
        (Metric::Quantile(_) | Metric::GroupQuantile(_), op) => {
            (value, matches!(op, Op::Below | Op::AtMost))
        }
        (Metric::Attainment(_), op) => (1.0 - value, matches!(op, Op::Above | Op::AtLeast)),
        _ => return [half, half],
    };
    if share <= 0.0 || half <= 0.0 {
        return [half, half];
    }
    let (up, down) = (share * (half / share).exp_m1(), -share * (-half / share).exp_m1());
    if bad_above { [up, down] } else { [down, up] }
}

/// How far a number is on the right side of a threshold's limit, and the unit of that. For a
/// quantile the number is the share of requests that miss it.
fn margin(threshold: &Threshold, value: f64) -> (f64, f64) {
    let small = |x: f64| x.max(1e-3);
    let (limit, scale) = match threshold.metric {
        Metric::Quantile(q) | Metric::GroupQuantile(q) => (1.0 - q, 1.0 - q),
        Metric::Mean | Metric::GroupMean | Metric::Throughput => {
            (threshold.limit, threshold.limit.max(1e-9))
        }
        Metric::Attainment(_) => (threshold.limit, small(1.0 - threshold.limit)),
        Metric::Rejected | Metric::Expired => (threshold.limit, small(threshold.limit)),
    };
    let low_wanted = matches!(threshold.op, Op::Below | Op::AtMost);
    let margin = if low_wanted { limit - value } else { value - limit };
    let margin = if margin.is_finite() { margin / scale } else { HOPELESS };
    // A difference in the last bits is none.
    (if margin.abs() < 1e-12 { 0.0 } else { margin.max(HOPELESS) }, scale)
}

fn exact_mark(threshold: &Threshold, s: &Solution, outside: f64) -> Mark {
    let (judged, value) = match threshold.metric {
        Metric::Quantile(q) => {
            let (below, at_most) = s.cdf(threshold.limit - outside);
            let strict = matches!(threshold.op, Op::Below | Op::AtLeast);
            (1.0 - if strict { below } else { at_most }, s.quantile_ms(q) + outside)
        }
        Metric::Mean => (s.mean_ms() + outside, s.mean_ms() + outside),
        Metric::Attainment(ms) => (s.cdf(ms - outside).1, s.cdf(ms - outside).1),
        Metric::Throughput => (s.throughput_per_s(), s.throughput_per_s()),
        Metric::Rejected | Metric::Expired => (0.0, 0.0),
        // Groups have no exact solution.
        Metric::GroupQuantile(_) | Metric::GroupMean => (f64::NAN, f64::NAN),
    };
    Mark { margin: margin(threshold, judged).0, below: 0.0, above: 0.0, value, value_half: None }
}

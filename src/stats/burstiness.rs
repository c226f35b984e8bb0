//! Burstiness of a recorded stream: rate, gaps, dispersion of counts, lengths, and whether the
//! clock that stamped it can be trusted at short scales.
//!
//! The index of dispersion for counts at a window `w` is `Var N / E N` over the counts of
//! consecutive windows `[k·w, (k+1)·w)` that start at the first arrival; a last window that the
//! trace does not fill is left out, and the variance is that of the population (divided by the
//! number of windows). Poisson arrivals have 1 at every window. Fewer than [`MIN_WINDOWS`] full
//! windows give no value: three counts say nothing about a variance.

use crate::arrivals::Trace;
use crate::time::Nanos;
use std::fmt;

/// Full windows needed before an index of dispersion is reported.
pub const MIN_WINDOWS: u64 = 10;

/// Window lengths of the report.
const WINDOWS: [Nanos; 5] = [
    Nanos(100_000_000),
    Nanos(1_000_000_000),
    Nanos(10_000_000_000),
    Nanos(60_000_000_000),
    Nanos(300_000_000_000),
];

/// A window shorter than this many steps of the clock sees the clock, not the arrivals.
const STEPS_PER_WINDOW: u64 = 3;
/// Share of zero gaps above which simultaneous arrivals are pointed out.
const MANY_TIES: f64 = 0.05;
/// Share of zero gaps above which a clock step not far below the mean gap is pointed out.
const SOME_TIES: f64 = 0.01;
/// Arrivals per clock step above which the step is coarse.
const CROWDED_STEP: f64 = 0.1;

/// What is known about a trace without simulating anything.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "schema", derive(serde::Serialize, schemars::JsonSchema))]
pub struct TraceStats {
    /// Requests in the trace.
    pub requests: u64,
    /// From the first arrival to the last, in seconds.
    pub duration_s: f64,
    /// Gaps divided by duration, per second; 0 when every request arrives at once.
    pub rate_per_s: f64,
    /// Standard deviation of the gaps over their mean (Poisson: 1); none when all are zero.
    pub gap_cv: Option<f64>,
    /// Counts in windows of growing length.
    pub counts: Vec<Counts>,
    /// Share of gaps that are exactly zero.
    pub zero_gap_share: f64,
    /// Different arrival times.
    pub distinct_times: u64,
    /// The step of the clock in nanoseconds: the largest step that every arrival is a multiple
    /// of, counted from the first; none when all arrive at once.
    pub grid_ns: Option<u64>,
    /// Input lengths in tokens, when recorded.
    pub input_tokens: Option<Lengths>,
    /// Output lengths in tokens, when recorded.
    pub output_tokens: Option<Lengths>,
    /// What to know before trusting the numbers above.
    pub warnings: Vec<String>,
}

/// Arrivals counted in consecutive windows of one length.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "schema", derive(serde::Serialize, schemars::JsonSchema))]
pub struct Counts {
    /// Length of a window in seconds.
    pub window_s: f64,
    /// Windows that the trace fills.
    pub windows: u64,
    /// Index of dispersion for counts (Poisson: 1); none below ten full windows.
    pub idc: Option<f64>,
    /// The busiest full window, in arrivals per second; none without a full window.
    pub peak_per_s: Option<f64>,
    /// Whether the step of the clock, not the arrivals, makes this value.
    pub artefact: bool,
}

/// A column of token counts.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "schema", derive(serde::Serialize, schemars::JsonSchema))]
pub struct Lengths {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median (nearest rank).
    pub p50: u32,
    /// 99th percentile (nearest rank).
    pub p99: u32,
    /// Largest.
    pub max: u32,
}

/// One line of a table of figures.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "schema", derive(serde::Serialize, schemars::JsonSchema))]
pub struct Row {
    /// What is measured.
    pub name: String,
    /// The figure; none where the trace is too short to tell.
    pub value: Option<f64>,
    /// Its unit; empty for a pure number.
    pub unit: &'static str,
}

/// Measures a trace.
#[must_use]
pub fn inspect(trace: &Trace) -> TraceStats {
    let times = &trace.arrivals;
    let clock = Clock::of(times);
    let duration = times.last().copied().unwrap_or_default();
    let coarse = clock.coarse_step(trace.rate_per_s());
    let counts = WINDOWS
        .iter()
        .map(|&window| {
            let limit = coarse.map_or(0, |step| step.saturating_mul(STEPS_PER_WINDOW));
            count(times, window, window.0 < limit)
        })
        .collect();
    TraceStats {
        requests: times.len() as u64,
        duration_s: duration.as_s(),
        rate_per_s: trace.rate_per_s(),
        gap_cv: gap_cv(times),
        counts,
        zero_gap_share: clock.zero_share(),
        distinct_times: clock.distinct,
        grid_ns: (clock.step > 0).then_some(clock.step),
        input_tokens: lengths(&trace.input_lengths),
        output_tokens: lengths(&trace.output_lengths),
        warnings: clock_warnings(trace),
    }
}

/// Warnings about the clock of a trace: a coarse step, or many simultaneous arrivals.
#[must_use]
pub fn clock_warnings(trace: &Trace) -> Vec<String> {
    let clock = Clock::of(&trace.arrivals);
    let share = 100.0 * clock.zero_share();
    if clock.step == 0 && clock.gaps > 0 {
        return vec![format!("all {} requests arrive at the same instant", clock.gaps + 1)];
    }
    let distinct = clock.distinct;
    if let Some(step) = clock.coarse_step(trace.rate_per_s()) {
        let step = Nanos(step);
        let window = Nanos(step.0.saturating_mul(STEPS_PER_WINDOW));
        return vec![format!(
            "arrival times sit on a grid of {step}: {share:.1} % of gaps are zero, only {distinct} \
             distinct times. Burstiness in windows below {window}, and the gap CV, show the \
             clock, not the arrivals"
        )];
    }
    if clock.zero_share() > MANY_TIES {
        return vec![format!(
            "{share:.1} % of gaps are zero ({distinct} distinct times): requests come in groups, \
             or a rounded clock makes it look so; short windows inherit it"
        )];
    }
    Vec::new()
}

/// What the arrival times say about the clock that stamped them.
struct Clock {
    gaps: u64,
    zero_gaps: u64,
    distinct: u64,
    /// Greatest common divisor of all times since the first, 0 when they are all equal.
    step: u64,
}

impl Clock {
    fn of(times: &[Nanos]) -> Self {
        let mut clock =
            Self { gaps: 0, zero_gaps: 0, distinct: u64::from(!times.is_empty()), step: 0 };
        for gap in gaps(times) {
            clock.gaps += 1;
            if gap == 0 {
                clock.zero_gaps += 1;
            } else {
                clock.distinct += 1;
                clock.step = gcd(clock.step, gap);
            }
        }
        clock
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of requests")]
    fn zero_share(&self) -> f64 {
        if self.gaps == 0 { 0.0 } else { self.zero_gaps as f64 / self.gaps as f64 }
    }

    /// The step, when it is so long that it shapes the short windows: several arrivals would
    /// share a step now and then, and do. Evenly spaced arrivals have a long step and no ties.
    fn coarse_step(&self, rate_per_s: f64) -> Option<u64> {
        let crowded = Nanos(self.step).as_s() * rate_per_s > CROWDED_STEP;
        (crowded && self.zero_share() > SOME_TIES).then_some(self.step)
    }
}

fn gaps(times: &[Nanos]) -> impl Iterator<Item = u64> + '_ {
    times.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0))
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Coefficient of variation of the gaps, as a population; none when every gap is zero.
#[expect(clippy::cast_precision_loss, reason = "statistics")]
fn gap_cv(times: &[Nanos]) -> Option<f64> {
    let n = times.len().checked_sub(1).filter(|&n| n > 0)? as f64;
    let mean = times.last()?.0 as f64 / n;
    if mean <= 0.0 {
        return None;
    }
    let squares: f64 = gaps(times).map(|gap| (gap as f64 / mean - 1.0).powi(2)).sum();
    Some((squares / n).sqrt())
}

/// Counts arrivals in the full windows. Empty windows are never visited, so a trace of any
/// length costs one pass over its arrivals.
#[expect(clippy::cast_precision_loss, reason = "statistics")]
fn count(times: &[Nanos], window: Nanos, artefact: bool) -> Counts {
    let windows = times.last().map_or(0, |last| last.0 / window.0);
    let mut tally = Tally::default();
    let (mut current, mut in_window) = (0, 0_u64);
    for index in times.iter().map(|t| t.0 / window.0).take_while(|&i| i < windows) {
        if index != current {
            tally.close(in_window);
            (current, in_window) = (index, 0);
        }
        in_window += 1;
    }
    tally.close(in_window);
    // Var N / E N = (W·Σc² − (Σc)²) / (W·Σc), exact until the last division.
    let (w, sum) = (u128::from(windows), u128::from(tally.sum));
    let idc = (windows >= MIN_WINDOWS && sum > 0).then(|| {
        let spread = w.saturating_mul(tally.squares).saturating_sub(sum * sum);
        spread as f64 / w.saturating_mul(sum) as f64
    });
    let window_s = window.as_s();
    let peak_per_s = (windows > 0).then(|| tally.max as f64 / window_s);
    Counts { window_s, windows, idc, peak_per_s, artefact }
}

#[derive(Default)]
struct Tally {
    sum: u64,
    squares: u128,
    max: u64,
}

impl Tally {
    fn close(&mut self, count: u64) {
        self.sum += count;
        self.squares += u128::from(count) * u128::from(count);
        self.max = self.max.max(count);
    }
}

#[expect(clippy::cast_precision_loss, reason = "statistics")]
fn lengths(tokens: &[u32]) -> Option<Lengths> {
    let mut sorted = tokens.to_vec();
    sorted.sort_unstable();
    let max = *sorted.last()?;
    let rank = |percent: usize| {
        let at = (sorted.len() as u128 * percent as u128).div_ceil(100);
        let index = usize::try_from(at).unwrap_or(usize::MAX).saturating_sub(1);
        sorted.get(index).copied().unwrap_or(max)
    };
    let sum: u64 = sorted.iter().copied().map(u64::from).sum();
    let mean = sum as f64 / sorted.len() as f64;
    Some(Lengths { mean, p50: rank(50), p99: rank(99), max })
}

impl TraceStats {
    /// The figures as lines of a table, in the order they are read.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for display")]
    pub fn rows(&self) -> Vec<Row> {
        let row = |name: &str, value, unit| Row { name: name.to_owned(), value, unit };
        let mut rows = vec![
            row("requests", Some(self.requests as f64), ""),
            row("duration", Some(self.duration_s), "s"),
            row("mean rate", Some(self.rate_per_s), "1/s"),
            row("gap CV", self.gap_cv, ""),
        ];
        for counts in &self.counts {
            rows.push(row(&format!("IDC at {} s", counts.window_s), counts.idc, ""));
        }
        for counts in &self.counts {
            let name = format!("peak rate over {} s", counts.window_s);
            rows.push(row(&name, counts.peak_per_s, "1/s"));
        }
        rows.push(row("zero gaps", Some(100.0 * self.zero_gap_share), "%"));
        rows.push(row("distinct times", Some(self.distinct_times as f64), ""));
        rows.push(row("clock step", self.grid_ns.map(|ns| ns as f64), "ns"));
        for (what, lengths) in [("input", self.input_tokens), ("output", self.output_tokens)] {
            let Some(l) = lengths else { continue };
            rows.push(row(&format!("{what} mean"), Some(l.mean), "tokens"));
            rows.push(row(&format!("{what} p50"), Some(f64::from(l.p50)), "tokens"));
            rows.push(row(&format!("{what} p99"), Some(f64::from(l.p99)), "tokens"));
            rows.push(row(&format!("{what} max"), Some(f64::from(l.max)), "tokens"));
        }
        rows
    }
}

impl Row {
    /// The figure as text: counts in full, other figures to four digits, `-` for none.
    #[must_use]
    pub fn text(&self) -> String {
        let Some(value) = self.value else { return "-".to_owned() };
        if value.fract() == 0.0 || value.abs() >= 10_000.0 {
            return format!("{value:.0}");
        }
        #[expect(clippy::cast_possible_truncation, reason = "an exponent")]
        let magnitude = value.abs().log10().floor() as i32;
        let places = usize::try_from(3 - magnitude.max(-6)).unwrap_or(0);
        format!("{value:.places$}")
    }
}

impl fmt::Display for TraceStats {
    /// An aligned table, then the warnings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows();
        let name = rows.iter().map(|r| r.name.len()).max().unwrap_or(0);
        let value = rows.iter().map(|r| r.text().len()).max().unwrap_or(0);
        for row in &rows {
            let line = format!("{:<name$}  {:>value$} {}", row.name, row.text(), row.unit);
            writeln!(f, "{}", line.trim_end())?;
        }
        self.warnings.iter().try_for_each(|warning| writeln!(f, "warning: {warning}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(ms: impl IntoIterator<Item = u64>) -> Trace {
        Trace {
            arrivals: ms.into_iter().map(|t| Nanos(t * 1_000_000)).collect(),
            ..Trace::default()
        }
    }

    #[test]
    fn even_arrivals_have_no_dispersion() {
        let stats = inspect(&trace((0..2_000).map(|i| i * 50)));
        assert_eq!(stats.requests, 2_000);
        assert!((stats.rate_per_s - 20.0).abs() < 1e-9);
        assert!(stats.gap_cv.is_some_and(|cv| cv < 1e-9));
        assert!(stats.counts.iter().all(|c| c.idc.is_none_or(|idc| idc.abs() < 1e-12)));
        assert_eq!(stats.grid_ns, Some(50_000_000));
        assert!(stats.warnings.is_empty(), "{:?}", stats.warnings);
    }

    #[test]
    fn pairs_double_the_dispersion_of_their_windows() {
        // Twenty windows of 1 s, alternately 4 and 0 arrivals: mean 2, variance 4.
        let times = (0..10).flat_map(|k| (0..4).map(move |i| k * 2_000 + i * 7)).chain([20_000]);
        let stats = inspect(&trace(times));
        assert_eq!(stats.counts[1].windows, 20);
        assert_eq!(stats.counts[1].idc, Some(2.0));
        assert_eq!(stats.counts[1].peak_per_s, Some(4.0));
        assert_eq!(stats.counts[2].idc, None, "two windows are too few");
    }

    #[test]
    fn coarse_clock_is_named() {
        // Ten requests a step, steps of 3 s.
        let stats = inspect(&trace((0..1_000).map(|i| i / 10 * 3_000)));
        assert_eq!(stats.grid_ns, Some(3_000_000_000));
        assert_eq!(stats.distinct_times, 100);
        assert!(stats.warnings[0].contains("grid of 3s"), "{:?}", stats.warnings);
        let artefacts: Vec<bool> = stats.counts.iter().map(|c| c.artefact).collect();
        assert_eq!(artefacts, [true, true, false, false, false]);
    }

    #[test]
    fn degenerate_traces() {
        for times in [vec![], vec![0], vec![0, 0, 0]] {
            let stats = inspect(&trace(times));
            assert!(stats.gap_cv.is_none() && stats.grid_ns.is_none());
            assert!(stats.counts.iter().all(|c| c.idc.is_none() && c.peak_per_s.is_none()));
            assert!(stats.to_string().contains("gap CV"));
        }
        let end = inspect(&Trace { arrivals: vec![Nanos::ZERO, Nanos::MAX], ..Trace::default() });
        assert_eq!(end.grid_ns, Some(u64::MAX));
    }

    #[test]
    fn lengths_by_nearest_rank() {
        let l = lengths(&(1..=200).collect::<Vec<u32>>());
        assert_eq!(l, Some(Lengths { mean: 100.5, p50: 100, p99: 198, max: 200 }));
        assert_eq!(lengths(&[]), None);
    }
}

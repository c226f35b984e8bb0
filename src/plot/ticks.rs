//! Ticks of an axis: as many as are useful, never so many that labels touch.

use super::figure::{Axis, Scale, Unit};
use super::number::{significant, time_tick, trim};
use crate::report::decimals;

/// A labelled place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Where it is, in the unit of the axis.
    pub(super) value: f64,
    /// What is printed.
    pub(super) label: String,
}

/// What an axis prints.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ticks {
    /// Title with the unit.
    pub(super) caption: String,
    /// Labelled ticks, increasing.
    pub(super) major: Vec<Tick>,
}

/// Room between two labels, in logical pixels.
const GAP: f64 = 8.0;

/// Ticks for an axis of `length` logical pixels; `extent` tells how long a label is along it.
pub(super) fn ticks(axis: &Axis, length: f64, extent: &dyn Fn(&str) -> f64) -> Ticks {
    let display = Display::of(axis);
    let caption = match display.unit {
        "" => axis.title.clone(),
        unit => format!("{} ({unit})", axis.title),
    };
    let fits = |ticks: &[Tick]| fits(axis, ticks, length, extent);
    let major = match axis.scale {
        Scale::Linear => linear(axis, &display, length, &fits),
        Scale::Log => log(axis, &display, length, &fits),
        Scale::Tail => tail(axis, &fits),
        Scale::Category => categories(axis, &fits),
    };
    Ticks { caption, major }
}

/// How values of an axis are printed: multiplied by `factor`, with the unit in the title, or
/// (`each`) every label with a unit of its own where the range spans many.
struct Display {
    factor: f64,
    unit: &'static str,
    each: bool,
}

impl Display {
    fn of(axis: &Axis) -> Self {
        let plain = |unit| Self { factor: 1.0, unit, each: false };
        match axis.unit {
            Unit::None => plain(""),
            Unit::PerS => plain("/s"),
            Unit::Percent => plain("%"),
            Unit::Ms if axis.scale == Scale::Log && axis.hi > 1e5 * axis.lo => {
                Self { factor: 1.0, unit: "", each: true }
            }
            Unit::Ms if axis.hi < 1e-3 => Self { factor: 1e6, unit: "ns", each: false },
            Unit::Ms if axis.hi < 1.0 => Self { factor: 1e3, unit: "µs", each: false },
            Unit::Ms if axis.hi > 30_000.0 && axis.lo > 20.0 => {
                Self { factor: 1e-3, unit: "s", each: false }
            }
            Unit::Ms => plain("ms"),
        }
    }

    /// A tick at a displayed number.
    fn tick(&self, shown: f64) -> Tick {
        let value = shown / self.factor;
        let label = if self.each { time_tick(value) } else { significant(shown, 6) };
        Tick { value, label }
    }
}

/// Whether no two labels touch.
fn fits(axis: &Axis, ticks: &[Tick], length: f64, extent: &dyn Fn(&str) -> f64) -> bool {
    let mut end = f64::NEG_INFINITY;
    ticks.iter().all(|tick| {
        let half = extent(&tick.label) / 2.0;
        let at = axis.fraction(tick.value) * length;
        let free = at - half >= end + GAP;
        end = at + half;
        free
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 12 decimals")]
fn linear(
    axis: &Axis,
    display: &Display,
    length: f64,
    fits: &dyn Fn(&[Tick]) -> bool,
) -> Vec<Tick> {
    let (lo, hi) = (axis.lo * display.factor, axis.hi * display.factor);
    let mut wanted = (length / 26.0).clamp(2.0, 9.0);
    while wanted >= 1.0 {
        let step = nice((hi - lo) / wanted);
        if !step.is_finite() || step <= 0.0 {
            break;
        }
        let places = (-(step.log10() + 1e-9).floor()).clamp(0.0, 12.0) as usize;
        // A step of 2.5 takes one decimal more than its magnitude says.
        let places = places + usize::from(step_of_25(step));
        let first = (lo / step - 1e-9).ceil();
        let ticks: Vec<Tick> = (0..200)
            .map(|i| (first + f64::from(i)) * step)
            .take_while(|v| *v <= hi + 1e-9 * step)
            .map(|v| Tick { value: v / display.factor, label: trim(&decimals(v + 0.0, places)) })
            .collect();
        if fits(&ticks) {
            return ticks;
        }
        wanted -= 1.0;
    }
    Vec::new()
}

fn step_of_25(step: f64) -> bool {
    let mantissa = step / 10f64.powf((step.log10() + 1e-9).floor());
    (mantissa - 2.5).abs() < 1e-6
}

/// The next of 1, 2, 2.5 and 5 times a power of ten.
fn nice(raw: f64) -> f64 {
    let power = 10f64.powf(raw.log10().floor());
    let mantissa = raw / power;
    let nice = [1.0, 2.0, 2.5, 5.0].into_iter().find(|m| mantissa <= m + 1e-9).unwrap_or(10.0);
    nice * power
}

/// 1-2-5 or 1-2-3-…-9 within decades, whole decades, or every so many of them.
#[expect(clippy::cast_possible_truncation, reason = "exponents of ten")]
fn log(axis: &Axis, display: &Display, length: f64, fits: &dyn Fn(&[Tick]) -> bool) -> Vec<Tick> {
    let (lo, hi) = (axis.lo * display.factor, axis.hi * display.factor);
    let (first, last) = (lo.log10().floor() as i32, hi.log10().ceil() as i32);
    let at = |mantissas: &[f64], every: i32| -> Vec<Tick> {
        (first..=last)
            .filter(|exponent| exponent.rem_euclid(every) == 0)
            .flat_map(|exponent| mantissas.iter().map(move |m| m * 10f64.powi(exponent)))
            .filter(|v| *v >= lo * (1.0 - 1e-9) && *v <= hi * (1.0 + 1e-9))
            .map(|v| display.tick(v))
            .collect()
    };
    let most = (length / 24.0).max(2.0);
    #[expect(clippy::cast_precision_loss, reason = "a few ticks")]
    let good = |ticks: &[Tick], least: usize| {
        ticks.len() >= least && ticks.len() as f64 <= most && fits(ticks)
    };
    let fine = at(&[1.0, 2.0, 5.0], 1);
    if good(&fine, 4) {
        return fine;
    }
    // Over a short range even steps read best, although their distances shrink.
    if hi < 4.0 * lo {
        let even = linear(axis, display, length, fits);
        if good(&even, 3) {
            return even;
        }
    }
    let finer = at(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 1);
    if hi < 20.0 * lo && good(&finer, 4) {
        return finer;
    }
    if hi < 10.0 * lo {
        let even = linear(axis, display, length, fits);
        if good(&even, 2) {
            return even;
        }
    }
    if good(&fine, 3) {
        return fine;
    }
    [(&[1.0, 3.0][..], 1), (&[1.0], 1), (&[1.0], 2), (&[1.0], 3), (&[1.0], 6), (&[1.0], 12)]
        .into_iter()
        .map(|(mantissas, every)| at(mantissas, every))
        .find(|ticks| good(ticks, 2))
        .or_else(|| Some(at(&[1.0, 2.0, 5.0], 1)).filter(|ticks| fits(ticks)))
        .unwrap_or_default()
}

fn tail(axis: &Axis, fits: &dyn Fn(&[Tick]) -> bool) -> Vec<Tick> {
    let marks = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999];
    let mut ticks: Vec<Tick> = marks
        .into_iter()
        .map(|p| Tick { value: p / 100.0, label: format!("{} %", trim(&format!("{p:.3}"))) })
        .filter(|t| t.value >= axis.lo - 1e-12 && t.value <= axis.hi + 1e-12)
        .collect();
    while !ticks.is_empty() && !fits(&ticks) {
        ticks.remove(ticks.len() / 2);
    }
    ticks
}

#[expect(clippy::cast_precision_loss, reason = "a handful of categories")]
fn categories(axis: &Axis, fits: &dyn Fn(&[Tick]) -> bool) -> Vec<Tick> {
    for every in 1..=axis.categories.len().max(1) {
        let ticks: Vec<Tick> = axis
            .categories
            .iter()
            .enumerate()
            .step_by(every)
            .map(|(i, label)| Tick { value: i as f64 + 0.5, label: label.clone() })
            .collect();
        if fits(&ticks) {
            return ticks;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, length: f64) -> String {
        let ticks = ticks(axis, length, &|label| 7.0 * label.chars().count() as f64);
        let labels: Vec<String> = ticks.major.into_iter().map(|t| t.label).collect();
        format!("{}: {}", ticks.caption, labels.join(" | "))
    }

    fn axis(unit: Unit, scale: Scale, lo: f64, hi: f64) -> Axis {
        Axis { title: "t".into(), unit, scale, lo, hi, categories: Vec::new() }
    }

    #[test]
    fn ticks_read_well() {
        let log = |lo, hi| labels(&axis(Unit::Ms, Scale::Log, lo, hi), 430.0);
        assert_eq!(log(7.0, 120.0), "t (ms): 10 | 20 | 50 | 100");
        assert_eq!(log(0.01, 0.9), "t (µs): 10 | 20 | 50 | 100 | 200 | 500");
        assert_eq!(log(20.0, 24.0), "t (ms): 20 | 20.5 | 21 | 21.5 | 22 | 22.5 | 23 | 23.5 | 24");
        let linear = |hi| labels(&axis(Unit::PerS, Scale::Linear, 0.0, hi), 600.0);
        assert_eq!(linear(1400.0), "t (/s): 0 | 200 | 400 | 600 | 800 | 1,000 | 1,200 | 1,400");
        assert_eq!(linear(1.0), "t (/s): 0 | 0.2 | 0.4 | 0.6 | 0.8 | 1");
    }

    #[test]
    fn labels_never_touch() {
        for scale in [Scale::Linear, Scale::Log] {
            for exponent in -9..9 {
                for ratio in [1.001, 1.7, 9.0, 300.0, 1e6, 1e12] {
                    for length in [20.0, 60.0, 200.0, 700.0] {
                        let lo = 10f64.powi(exponent);
                        let axis = axis(Unit::Ms, scale, lo, lo * ratio);
                        let extent = |label: &str| 7.0 * label.chars().count() as f64;
                        let major = ticks(&axis, length, &extent).major;
                        assert!(fits(&axis, &major, length, &extent), "{axis:?}");
                    }
                }
            }
        }
    }
}

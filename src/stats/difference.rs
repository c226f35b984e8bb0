//! Differences between two results: paired by section, or not.
//!
//! A relative change `b/a − 1` has the standard error of its linearised sections
//! `(b_r − (b/a) a_r) / a` (the delta method for ratios), an absolute one that of `b_r − a_r`; both
//! taken about the pooled value, as everywhere (see `section`). Under common random numbers the
//! sections of one replication move together and most of the noise cancels.

use super::section::{standard_error, t_quantile};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// One number of a result: pooled, and what is known of its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate<'a> {
    /// Over all sections together.
    pub value: f64,
    /// In each section; may be empty.
    pub sections: &'a [f64],
    /// Standard error where it is known without sections, and from how many replications.
    pub error: Option<(f64, u32)>,
}

/// In which measure a change is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// `b/a − 1`.
    Relative,
    /// `b − a`.
    Absolute,
}

/// A change and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The change from the first to the second, in its measure.
    pub value: f64,
    /// Its standard error; `None` where there are no replications: then the value is all there is.
    pub error: Option<f64>,
    /// Degrees of freedom of the error.
    pub df: f64,
}

impl Difference {
    /// The change from `a` to `b`; with `paired`, section by section.
    #[must_use]
    pub fn between(a: Estimate<'_>, b: Estimate<'_>, measure: Measure, paired: bool) -> Self {
        let (ratio, scale) = match measure {
            Measure::Relative => (b.value / a.value, a.value),
            Measure::Absolute => (1.0, 1.0),
        };
        let value = match measure {
            // Without the noise of a division where nothing changed.
            Measure::Relative if a.value.to_bits() == b.value.to_bits() => 0.0,
            Measure::Relative => ratio - 1.0,
            Measure::Absolute => b.value - a.value,
        };
        if paired && a.sections.len() == b.sections.len() && a.sections.len() > 1 {
            let moved = b.value - ratio * a.value;
            let parts: Vec<f64> =
                a.sections
                    .iter()
                    .zip(b.sections)
                    .map(|(a, b)| {
                        if a.to_bits() == b.to_bits() && value == 0.0 { 0.0 } else { b - ratio * a }
                    })
                    .collect();
            let error = standard_error(moved, &parts).map(|e| e / scale.abs());
            return Self { value, error, df: freedom(parts.len()) };
        }
        let (Some(ea), Some(eb)) = (a.error(), b.error()) else {
            return Self { value, error: None, df: 1.0 };
        };
        let (va, vb) = ((ratio * ea).powi(2), eb.powi(2));
        // Welch and Satterthwaite; an exact number has no error and no say.
        let spread = |v: f64, n: usize| if v > 0.0 { v * v / freedom(n) } else { 0.0 };
        let parts = spread(va, a.count()) + spread(vb, b.count());
        let df = if parts > 0.0 { (va + vb).powi(2) / parts } else { f64::INFINITY };
        Self { value, error: Some((va + vb).sqrt() / scale.abs()), df }
    }

    /// Half-width of the two-sided 95 % interval.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        let error = self.error?;
        Some(if error == 0.0 { 0.0 } else { error * self.t(0.975) })
    }

    /// Two-sided p-value of "there is no change". Without an error the value speaks for itself.
    #[must_use]
    pub fn p_none(&self) -> f64 {
        (2.0 * self.p_above(0.0).min(self.p_below(0.0))).min(1.0)
    }

    /// p-value of "the change is `margin` or more, in either direction" (two one-sided tests,
    /// Schuirmann 1987): small when it is shown to be less.
    #[must_use]
    pub fn p_beyond(&self, margin: f64) -> f64 {
        self.p_below(margin).max(self.p_above(-margin))
    }

    /// p-value of "the change is at most `limit`": small when it is shown to be above.
    #[must_use]
    pub fn p_above(&self, limit: f64) -> f64 {
        self.tail(self.value - limit)
    }

    /// p-value of "the change is at least `limit`": small when it is shown to be below.
    #[must_use]
    pub fn p_below(&self, limit: f64) -> f64 {
        self.tail(limit - self.value)
    }

    /// Upper tail at a distance; a value without error is beyond its limit or it is not.
    fn tail(&self, distance: f64) -> f64 {
        if distance.is_nan() {
            return 1.0;
        }
        match self.error {
            Some(error) if error > 0.0 => {
                StudentsT::new(0.0, 1.0, self.df.min(1e9)).map_or(1.0, |t| t.sf(distance / error))
            }
            _ if distance > 0.0 => 0.0,
            _ => 1.0,
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 1")]
    fn t(&self, p: f64) -> f64 {
        if self.df.fract() == 0.0 && self.df < 1e9 {
            return t_quantile(p, self.df as u64);
        }
        let t = StudentsT::new(0.0, 1.0, self.df.clamp(1.0, 1e9));
        t.map_or(f64::INFINITY, |t| t.inverse_cdf(p))
    }
}

impl Estimate<'_> {
    fn error(&self) -> Option<f64> {
        let known = self.error.map(|(error, _)| error);
        known.or_else(|| standard_error(self.value, self.sections))
    }

    /// Sections behind the error.
    fn count(&self) -> usize {
        self.error.map_or(self.sections.len(), |(_, replications)| replications as usize)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a handful of replications")]
fn freedom(sections: usize) -> f64 {
    sections.saturating_sub(1).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate<'a>(value: f64, sections: &'a [f64]) -> Estimate<'a> {
        Estimate { value, sections, error: None }
    }

    #[test]
    fn a_paired_change_by_hand() {
        // b = 2a in every section: the ratio is known exactly however much a varies.
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0]);
        let d = Difference::between(estimate(2.5, &a), estimate(5.0, &b), Measure::Relative, true);
        assert_eq!((d.value, d.error), (1.0, Some(0.0)));
        assert_eq!((d.p_none(), d.half_width()), (0.0, Some(0.0)));
        // Differences 1, 1, 2, 2 about 1.5: S² = 1/3, S/√4 = 0.288675.
        let b = [2.0, 3.0, 5.0, 6.0];
        let d = Difference::between(estimate(2.5, &a), estimate(4.0, &b), Measure::Absolute, true);
        assert!((d.error.unwrap() - 0.288_675).abs() < 1e-6);
        assert!((d.half_width().unwrap() - 0.288_675 * 3.182_446).abs() < 1e-5);
        // t = 1.5 / 0.288675 = 5.196 with 3 degrees of freedom: two-sided p = 0.01385.
        assert!((d.p_none() - 0.013_85).abs() < 5e-5, "{}", d.p_none());
    }

    #[test]
    fn without_pairing_the_errors_add() {
        let a = Estimate { value: 10.0, sections: &[], error: Some((0.3, 20)) };
        let b = Estimate { value: 11.0, sections: &[], error: Some((0.4, 20)) };
        let d = Difference::between(a, b, Measure::Absolute, false);
        assert!((d.error.unwrap() - 0.5).abs() < 1e-12);
        // Welch: (0.09 + 0.16)² / (0.09²/19 + 0.16²/19) = 35.24.
        assert!((d.df - 35.237).abs() < 1e-2, "{}", d.df);
        let exact = Estimate { value: 10.0, sections: &[], error: Some((0.0, 1)) };
        let d = Difference::between(exact, b, Measure::Absolute, false);
        assert!((d.df - 19.0).abs() < 1e-9);
    }

    #[test]
    fn one_replay_is_its_value() {
        let d =
            Difference::between(estimate(10.0, &[]), estimate(10.2, &[]), Measure::Relative, true);
        assert_eq!((d.error, d.half_width()), (None, None));
        assert_eq!((d.p_none(), d.p_beyond(0.05), d.p_beyond(0.01)), (0.0, 0.0, 1.0));
    }

    #[test]
    fn equivalence_and_difference_exclude_each_other_at_the_margin() {
        let d = Difference { value: 0.005, error: Some(0.001), df: 19.0 };
        assert!((d.p_beyond(0.005) - 0.5).abs() < 1e-9);
        assert!(d.p_beyond(0.01) < 1e-4 && d.p_none() < 1e-3);
    }
}

//! Judgements: does a number clear its limit, with several of them at once?

use super::section::standard_error;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// What is known of one number that is held against a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The pooled estimate.
    pub value: f64,
    /// The limit.
    pub limit: f64,
    /// Whether the value meets the limit, taken at face value.
    pub met: bool,
    /// The same estimate in each replication; one or none means there is no interval.
    pub sections: Vec<f64>,
    /// For a share of requests: how many were counted.
    pub counted: Option<u64>,
}

impl Evidence {
    /// Two-sided p-value of "the true value is the limit"; `None` without an interval.
    ///
    /// A share that never varied (no violation anywhere) has no standard error; its p-value is
    /// that of seeing no exception among `counted` requests.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count in an exponent")]
    pub fn p_value(&self) -> Option<f64> {
        let error = standard_error(self.value, &self.sections)?;
        if !error.is_finite() || !self.value.is_finite() {
            // A section without a single answer: nothing is known.
            return Some(1.0);
        }
        if error > 0.0 {
            let df = (self.sections.len() - 1) as f64;
            let t = StudentsT::new(0.0, 1.0, df).ok()?;
            return Some(2.0 * t.cdf(-((self.value - self.limit) / error).abs()));
        }
        let Some(n) = self.counted else { return Some(0.0) };
        // "At most 0 %" and "at least 100 %" are met by what was seen or they are not.
        if self.met && (self.limit <= 0.0 || self.limit >= 1.0) {
            return Some(0.0);
        }
        let exception = (self.limit - self.value).abs().min(1.0);
        Some((n as f64 * (-exception).ln_1p()).exp())
    }
}

/// Holm's step-down (1979): which of several p-values are significant together at `level`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a handful of thresholds")]
pub fn holm(p_values: &[f64], level: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut significant = vec![false; p_values.len()];
    for (rank, &i) in order.iter().enumerate() {
        if p_values[i] > level / (p_values.len() - rank) as f64 {
            break;
        }
        significant[i] = true;
    }
    significant
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_by_hand() {
        // Ordered: 0.01 <= 0.05/4, 0.013 <= 0.05/3, 0.03 > 0.05/2 stops.
        assert_eq!(holm(&[0.04, 0.01, 0.03, 0.013], 0.05), [false, true, false, true]);
        assert_eq!(holm(&[0.05], 0.05), [true]);
        assert!(holm(&[], 0.05).is_empty());
    }

    #[test]
    fn a_clear_value_is_significant_and_a_close_one_is_not() {
        let evidence = |limit: f64| Evidence {
            value: 1.0,
            limit,
            met: true,
            sections: vec![0.9, 1.1, 1.0, 1.0],
            counted: None,
        };
        assert!(evidence(2.0).p_value().unwrap() < 0.001);
        assert!(evidence(1.05).p_value().unwrap() > 0.3);
    }

    #[test]
    fn a_limit_at_the_boundary_can_be_met() {
        let none = Evidence {
            value: 0.0,
            limit: 0.0,
            met: true,
            sections: vec![0.0; 20],
            counted: Some(100),
        };
        assert_eq!(none.p_value(), Some(0.0));
        assert_eq!(Evidence { met: false, ..none.clone() }.p_value(), Some(1.0));
        let unknown = Evidence { sections: vec![0.0, f64::NAN], ..none };
        assert_eq!(unknown.p_value(), Some(1.0));
    }

    #[test]
    fn no_violation_among_few_proves_little() {
        let evidence = |n| Evidence {
            value: 0.0,
            limit: 0.01,
            met: true,
            sections: vec![0.0; 20],
            counted: Some(n),
        };
        assert!(evidence(100).p_value().unwrap() > 0.3);
        assert!(evidence(1_000).p_value().unwrap() < 1e-4);
    }
}

//! Sectioning: an interval around a pooled estimate from independent sections.

use statrs::distribution::{ContinuousCDF, StudentsT};
use std::sync::OnceLock;

/// The `p`-quantile of Student's t with `df` degrees of freedom.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a handful of replications")]
pub fn t_quantile(p: f64, df: u64) -> f64 {
    StudentsT::new(0.0, 1.0, df.max(1) as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(p))
}

/// Half-width of the two-sided 95 % interval of a pooled estimate, from the estimates of its
/// sections: `t · S / √R` with `S² = Σ (section − pooled)² / (R − 1)`.
///
/// The deviations are taken from the pooled estimate, not from the sections' mean: section
/// quantiles are biased, and this counts their bias in (Asmussen & Glynn, ch. III; Nakayama 2014).
/// `None` for fewer than two sections.
#[must_use]
pub fn half_width(pooled: f64, sections: &[f64]) -> Option<f64> {
    standard_error(pooled, sections).map(|se| se * t_975(sections.len() - 1))
}

/// The 97.5 % quantile of Student's t; solving for it takes longer than everything around it, so
/// the usual ones are kept.
fn t_975(df: usize) -> f64 {
    const KEPT: usize = 64;
    static QUANTILES: [OnceLock<f64>; KEPT] = [const { OnceLock::new() }; KEPT];
    let solve = || t_quantile(0.975, df as u64);
    QUANTILES.get(df).map_or_else(solve, |kept| *kept.get_or_init(solve))
}

/// Standard error of a pooled estimate, from the estimates of its sections.
#[expect(clippy::cast_precision_loss, reason = "a handful of replications")]
pub(crate) fn standard_error(pooled: f64, sections: &[f64]) -> Option<f64> {
    let r = sections.len();
    if r < 2 {
        return None;
    }
    let squares: f64 = sections.iter().map(|s| (s - pooled).powi(2)).sum();
    Some((squares / (r - 1) as f64 / r as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_quantiles_are_the_tabulated_ones() {
        assert!((t_quantile(0.975, 19) - 2.093_024).abs() < 1e-5);
        assert!((t_quantile(0.975, 1) - 12.706_205).abs() < 1e-4);
    }

    #[test]
    fn the_interval_of_four_sections_by_hand() {
        // Deviations 1, -1, 1, -1 from 10: S² = 4/3, S/√4 = 0.57735, t₃ = 3.182446.
        let hw = half_width(10.0, &[11.0, 9.0, 11.0, 9.0]).unwrap();
        assert!((hw - 0.577_350 * 3.182_446).abs() < 1e-5);
        assert_eq!(half_width(10.0, &[10.0]), None);
    }

    /// 95 % intervals of normal sections cover the truth in 95 % of many trials.
    #[test]
    fn coverage_is_nominal() {
        use rand::RngExt;
        use rand_distr::StandardNormal;
        let mut rng = crate::rng::substream(1, 0, 0, crate::rng::Purpose::Policy);
        let trials = 20_000;
        let covered = (0..trials)
            .filter(|_| {
                let sections: Vec<f64> =
                    (0..20).map(|_| rng.sample::<f64, _>(StandardNormal)).collect();
                let pooled = sections.iter().sum::<f64>() / 20.0;
                half_width(pooled, &sections).unwrap() >= pooled.abs()
            })
            .count();
        let share = covered as f64 / f64::from(trials);
        // Standard error of the share: 0.0015.
        assert!((share - 0.95).abs() < 0.006, "{share}");
    }
}

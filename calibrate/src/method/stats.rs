//! Order statistics of samples and the slope of a drift.

/// The value at the share `q` of sorted samples, with straight lines between ranks.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ranks"
)]
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let at = q.clamp(0.0, 1.0) * last as f64;
    let low = (at.floor() as usize).min(last);
    let high = (low + 1).min(last);
    sorted[low] + (sorted[high] - sorted[low]) * (at - at.floor())
}

/// A sorted copy.
#[must_use]
pub fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The median.
#[must_use]
pub fn median(samples: &[f64]) -> f64 {
    quantile(&sorted(samples), 0.5)
}

/// The 95 % interval of the median by order statistics, which asks nothing of the distribution:
/// ranks (n ∓ 1.96 √n) / 2, rounded outwards.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ranks"
)]
pub fn median_interval(sorted: &[f64]) -> (f64, f64) {
    let n = sorted.len();
    if n == 0 {
        return (f64::NAN, f64::NAN);
    }
    let half = 1.96 * (n as f64).sqrt();
    let low = ((n as f64 - half) / 2.0).floor().max(1.0) as usize;
    let high = ((n as f64 + half) / 2.0 + 1.0).ceil().min(n as f64) as usize;
    (sorted[low - 1], sorted[high - 1])
}

/// Median distance from the median.
#[must_use]
pub fn mad(sorted: &[f64]) -> f64 {
    let centre = quantile(sorted, 0.5);
    median(&sorted.iter().map(|x| (x - centre).abs()).collect::<Vec<_>>())
}

/// Median of all pairwise slopes (Theil–Sen) with its 95 % interval by Sen's ranks:
/// (slope, low, high). `None` for fewer than four different times.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ranks"
)]
pub fn theil_sen(points: &[(f64, f64)]) -> Option<(f64, f64, f64)> {
    let n = points.len();
    let mut slopes = Vec::with_capacity(n * n.saturating_sub(1) / 2);
    for (i, a) in points.iter().enumerate() {
        for b in &points[i + 1..] {
            if b.0 != a.0 {
                slopes.push((b.1 - a.1) / (b.0 - a.0));
            }
        }
    }
    if slopes.len() < 6 {
        return None;
    }
    slopes.sort_by(f64::total_cmp);
    let n = n as f64;
    // Variance of Kendall's S without ties.
    let half = 1.96 * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let count = slopes.len() as f64;
    let low = ((count - half) / 2.0).floor().max(0.0) as usize;
    let high = ((count + half) / 2.0).ceil().min(count - 1.0) as usize;
    Some((quantile(&slopes, 0.5), slopes[low], slopes[high]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_statistics() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(quantile(&hundred, 0.5), 50.5);
        assert_eq!(median_interval(&hundred), (40.0, 61.0)); // the exact binomial ranks
        assert_eq!(mad(&hundred), 25.0);
    }

    #[test]
    fn a_slope_survives_outliers() {
        let mut line: Vec<_> = (0..40).map(|i| (f64::from(i), 1.0 + 0.5 * f64::from(i))).collect();
        line[7].1 = 1e6;
        line[20].1 = -1e6;
        let (slope, low, high) = theil_sen(&line).unwrap();
        assert!((slope - 0.5).abs() < 1e-12 && low <= 0.5 && high >= 0.5);
        assert_eq!(theil_sen(&line[..3]), None);
    }
}

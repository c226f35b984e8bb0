//! Small statistics of a sample that is kept whole.

/// The quantile of sorted values, straight lines between them: the smallest at 0, the largest
/// at 1. NaN without values.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to the length")]
#[expect(clippy::cast_precision_loss, reason = "a place in a sample")]
pub fn quantile_of_sorted(values: &[f64], q: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let place = last as f64 * q.clamp(0.0, 1.0);
    let below = place as usize;
    let (low, high) = (values[below], values[(below + 1).min(last)]);
    low + (high - low) * (place - below as f64)
}

/// The mean; NaN without values.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a mean")]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Intercept and slope of the least-squares line through points; a flat line where all `x` are
/// the same, NaN without points.
#[must_use]
pub fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (mx, my) = (mean(&xs), mean(&ys));
    let squares: f64 = xs.iter().map(|x| (x - mx) * (x - mx)).sum();
    let products: f64 = points.iter().map(|(x, y)| (x - mx) * (y - my)).sum();
    let slope = if squares > 0.0 { products / squares } else { 0.0 };
    (my - slope * mx, slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let values = [10.0, 20.0, 40.0];
        assert_eq!(
            [0.0, 0.25, 0.5, 0.9, 1.0].map(|q| quantile_of_sorted(&values, q)),
            [10.0, 15.0, 20.0, 36.0, 40.0]
        );
        assert!(quantile_of_sorted(&[], 0.5).is_nan());
        assert_eq!(line(&[(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]), (1.0, 2.0));
        assert_eq!(line(&[(2.0, 3.0), (2.0, 5.0)]), (4.0, 0.0));
    }
}

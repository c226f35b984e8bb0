//! MSER-5: how much of a start-up to delete (White 1997; Spratt 1998).

/// The number of leading means to delete: the `d` up to half the series that minimises
/// `Σ_{i≥d} (y_i − ȳ_d)² / (m − d)²`, the squared standard error of what is kept.
///
/// `series` holds means of five observations, usually averaged over replications first (Hoad &
/// Robinson 2011), which takes most of the noise out of the choice. `None` when the minimum lies
/// at the half: the series shows no stationary part, or is too short to show one.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "lengths of a pilot")]
pub fn mser5(series: &[f64]) -> Option<usize> {
    let m = series.len();
    if m < 4 {
        return None;
    }
    // From the back, so that every truncation costs one step (Welford's update).
    let (mut mean, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (kept, (d, y)) in series.iter().enumerate().rev().enumerate() {
        let kept = (kept + 1) as f64;
        let delta = y - mean;
        mean += delta / kept;
        squares += delta * (y - mean);
        let mser = squares / (kept * kept);
        if d <= m / 2 && mser <= best.0 {
            best = (mser, d);
        }
    }
    (best.1 < m / 2).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::mser5;

    #[test]
    fn deletes_a_start_up_and_nothing_else() {
        let wobble = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
        let series: Vec<f64> =
            (0..400).map(|i| 100.0 + wobble(i) - if i < 40 { 50.0 } else { 0.0 }).collect();
        assert_eq!(mser5(&series), Some(40));
        let steady: Vec<f64> = (0..400).map(|i| 100.0 + wobble(i)).collect();
        assert!(mser5(&steady).is_some_and(|d| d <= 2));
        assert_eq!(mser5(&vec![8.5; 100]), Some(0));
    }

    #[test]
    fn growth_has_no_stationary_part() {
        let growing: Vec<f64> = (0..400).map(f64::from).collect();
        assert_eq!(mser5(&growing), None);
        assert_eq!(mser5(&[1.0, 2.0]), None);
    }
}

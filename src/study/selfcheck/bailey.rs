//! Static batching with fixed service by the roots of Bailey (1954): a second route to the mean
//! that shares nothing with the embedded chain of the exact solver.

/// Mean latency of static batches of `size`, Poisson arrivals, every batch taking `service_ms`.
///
/// Of the queue just after a completion Bailey's formula gives the mean from the roots inside the
/// unit circle of `z^b = exp(m (z - 1))`, `m` being the mean arrivals of one service. A departing
/// batch of b crosses b levels of the number in system, each as often as arrivals cross it
/// upwards; so arrivals see `(b - 1) / 2` more than that, and Little's law turns what they see
/// into the latency. The integral of the system is stable for `m < b`.
pub(super) fn static_mean_ms(rate_per_s: f64, size: u32, service_ms: f64) -> f64 {
    let rate = rate_per_s / 1000.0;
    let (b, m) = (f64::from(size), rate * service_ms);
    let inverse_sum: f64 = (1..size).map(|k| real_of_inverse(root(k, size, m))).sum();
    let after = (b - (b - m).powi(2)) / (2.0 * (b - m)) + inverse_sum;
    (after + (b - 1.0) / 2.0) / rate
}

/// The k-th root: the fixed point of `z = w exp(m / b (z - 1))`, `w` the k-th b-th root of unity.
/// The right-hand side contracts inside the unit circle, by `m / b` and more.
fn root(k: u32, size: u32, m: f64) -> (f64, f64) {
    let angle = std::f64::consts::TAU * f64::from(k) / f64::from(size);
    let ratio = m / f64::from(size);
    let (mut x, mut y) = (0.0f64, 0.0f64);
    for _ in 0..2_000 {
        let (length, turn) = ((ratio * (x - 1.0)).exp(), angle + ratio * y);
        let next = (length * turn.cos(), length * turn.sin());
        let moved = (next.0 - x).abs() + (next.1 - y).abs();
        (x, y) = next;
        if moved < 1e-16 {
            break;
        }
    }
    (x, y)
}

/// Real part of `1 / (1 - z)`; the imaginary parts of conjugate roots cancel.
fn real_of_inverse((x, y): (f64, f64)) -> f64 {
    let real = 1.0 - x;
    real / (real * real + y * y)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches of one: M/D/1.
    #[test]
    fn batches_of_one_are_a_closed_form() {
        assert!((static_mean_ms(100.0, 1, 8.5) - 32.583_333_333_333_33).abs() < 1e-12);
    }

    #[test]
    fn roots_are_roots() {
        for (size, m) in [(8u32, 6.0), (32, 24.0), (32, 31.0)] {
            for k in 1..size {
                let (x, y) = root(k, size, m);
                let (length, angle) = (x.hypot(y), y.atan2(x));
                assert!(length < 1.0);
                // z^b exp(-m (z - 1)) = 1, by length and by angle.
                let b = f64::from(size);
                assert!((b * length.ln() - m * (x - 1.0)).abs() < 1e-12, "{k} of {size}");
                let turns = (b * angle - m * y) / std::f64::consts::TAU;
                assert!((turns - turns.round()).abs() < 1e-12, "{k} of {size}");
            }
        }
    }
}

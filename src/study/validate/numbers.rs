//! The numbers of one column, and how far columns are apart.

use super::replay::Replayed;
use crate::outcome::{Distance, Errors, FourMs, Observation, SizeShare, Tolerance};
use crate::stats::quantile_of_sorted;
use std::collections::BTreeMap;

/// Levels at which distributions are compared.
const LEVELS: u32 = 200;

/// The numbers of a run; latencies in any order.
#[expect(clippy::cast_precision_loss, reason = "counts and milliseconds")]
pub(super) fn observation(run: Replayed) -> Observation {
    let Replayed { mut latencies_ns, sizes } = run;
    latencies_ns.sort_unstable();
    let n = latencies_ns.len();
    let sorted: Vec<f64> = latencies_ns.iter().map(|ns| *ns as f64).collect();
    let at = |q: f64| quantile_of_sorted(&sorted, q) / 1e6;
    let latency_ms = (n > 0).then(|| {
        let sum: u128 = latencies_ns.iter().map(|ns| u128::from(*ns)).sum();
        FourMs { mean: sum as f64 / n as f64 / 1e6, p50: at(0.5), p90: at(0.9), p99: at(0.99) }
    });
    let level = |i: u32| (f64::from(i) + 0.5) / f64::from(LEVELS);
    let quantiles_ms =
        if n == 0 { Vec::new() } else { (0..LEVELS).map(|i| at(level(i))).collect() };
    let batches: u64 = sizes.values().sum();
    let items: u64 = sizes.iter().map(|(size, n)| u64::from(*size) * n).sum();
    let share = |(size, batches_of): (u32, u64)| SizeShare {
        size,
        batches: batches_of,
        share: batches_of as f64 / batches as f64,
    };
    Observation {
        latency_ms,
        mean_batch: (batches > 0).then(|| items as f64 / batches as f64),
        accepted: n as u64,
        batch_sizes: sizes.into_iter().map(share).collect(),
        quantiles_ms,
    }
}

/// Relative errors of a prediction.
#[expect(clippy::cast_precision_loss, reason = "counts of requests")]
pub(super) fn errors(measured: &Observation, predicted: &Observation) -> Errors {
    let relative = |m: f64, p: f64| (p - m) / m;
    let both = measured.latency_ms.zip(predicted.latency_ms);
    Errors {
        latency_ms: both.map(|(m, p)| FourMs {
            mean: relative(m.mean, p.mean),
            p50: relative(m.p50, p.p50),
            p90: relative(m.p90, p.p90),
            p99: relative(m.p99, p.p99),
        }),
        mean_batch: measured.mean_batch.zip(predicted.mean_batch).map(|(m, p)| relative(m, p)),
        accepted: relative(measured.accepted as f64, predicted.accepted as f64),
    }
}

/// Distances between the distributions of two columns.
#[expect(clippy::cast_precision_loss, reason = "a count of levels")]
pub(super) fn distance(a: &Observation, b: &Observation) -> Distance {
    let both = a.quantiles_ms.iter().zip(&b.quantiles_ms);
    let apart: Vec<f64> = both.map(|(a, b)| (a - b).abs()).collect();
    let mut law: BTreeMap<u32, f64> = BTreeMap::new();
    a.batch_sizes.iter().for_each(|s| *law.entry(s.size).or_default() += s.share);
    b.batch_sizes.iter().for_each(|s| *law.entry(s.size).or_default() -= s.share);
    let known = !a.batch_sizes.is_empty() && !b.batch_sizes.is_empty();
    Distance {
        quantile_ms: (!apart.is_empty()).then(|| apart.iter().sum::<f64>() / apart.len() as f64),
        batch_tv: known.then(|| 0.5 * law.values().map(|d| d.abs()).sum::<f64>()),
    }
}

/// Numbers outside their tolerance.
pub(super) fn misses(errors: &Errors, tolerance: &Tolerance) -> Vec<String> {
    let latency = |of: fn(&FourMs) -> f64| errors.latency_ms.as_ref().map(of);
    [
        ("mean_batch", errors.mean_batch, tolerance.mean_batch),
        ("p50", latency(|l| l.p50), tolerance.p50),
        ("p90", latency(|l| l.p90), tolerance.p90),
        ("p99", latency(|l| l.p99), tolerance.p99),
        ("accepted", Some(errors.accepted), tolerance.accepted),
    ]
    .into_iter()
    .filter(|(_, error, most)| error.is_some_and(|e| e.is_nan() || e.abs() > *most))
    .map(|(name, _, _)| name.to_owned())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(latencies_ms: &[u64], sizes: &[(u32, u64)]) -> Observation {
        observation(Replayed {
            latencies_ns: latencies_ms.iter().map(|ms| ms * 1_000_000).collect(),
            sizes: sizes.iter().copied().collect(),
        })
    }

    #[test]
    fn numbers_by_hand() {
        let a = run(&[30, 10, 20], &[(1, 3), (4, 1)]);
        let latency = a.latency_ms.unwrap();
        assert_eq!((latency.mean, latency.p50, latency.p90), (20.0, 20.0, 28.0));
        assert_eq!((a.mean_batch, a.accepted), (Some(1.75), 3));
        let b = run(&[31, 11, 21], &[(1, 1), (2, 1)]);
        let apart = distance(&a, &b);
        assert!((apart.quantile_ms.unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(apart.batch_tv, Some(0.5));
        let errors = errors(&a, &b);
        assert_eq!((errors.accepted, errors.latency_ms.unwrap().p50), (0.0, 0.05));
        let tolerance =
            Tolerance { mean_batch: 0.02, p50: 0.05, p90: 0.03, p99: 0.1, accepted: 0.0 };
        assert_eq!(misses(&errors, &tolerance), ["mean_batch", "p90"]);
    }

    #[test]
    fn nothing_has_no_numbers() {
        let nothing = run(&[], &[]);
        assert_eq!((nothing.latency_ms, nothing.mean_batch), (None, None));
        let apart = distance(&run(&[1], &[(1, 1)]), &nothing);
        assert_eq!(apart, Distance { quantile_ms: None, batch_tv: None });
    }
}

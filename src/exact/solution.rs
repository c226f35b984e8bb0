//! The answer: latency law, batch sizes and means.

use super::law::Law;
use super::model::Solved;

/// Steady state of one rule at one rate. Times in ms, rates per second unless the name says
/// otherwise; latency runs from arrival to completion.
#[derive(Debug, Clone)]
pub struct Solution {
    law: Law,
    pmf: Vec<f64>,
    rate_per_s: f64,
    capacity_per_s: f64,
    mean_ms: f64,
    mean_service_ms: f64,
    mean_batch: f64,
    utilization: f64,
    total: f64,
    moments: [f64; 3],
}

impl Solution {
    /// From the parts; `s[n]` is the service time of a batch of `n`.
    pub(crate) fn new(solved: Solved, rate_per_ms: f64, capacity_per_ms: f64, s: &[f64]) -> Self {
        let Solved { mut law, pmf, area } = solved;
        let mean = |f: &dyn Fn(usize) -> f64| -> f64 {
            pmf.iter().enumerate().map(|(i, p)| p * f(i + 1)).sum()
        };
        let mean_batch = mean(&|n| n as f64);
        let busy = mean(&|n| s[n]);
        let request_service = mean(&|n| n as f64 * s[n]);
        let total = law.normalise(mean_batch);
        let moments = law.moments();
        Self {
            law,
            rate_per_s: 1000.0 * rate_per_ms,
            capacity_per_s: 1000.0 * capacity_per_ms,
            mean_ms: area / mean_batch,
            mean_service_ms: request_service / mean_batch,
            mean_batch,
            utilization: rate_per_ms * busy / mean_batch,
            total,
            moments,
            pmf,
        }
    }

    /// Mean latency, ms, from the embedded chain alone (area under the number in system).
    pub fn mean_ms(&self) -> f64 {
        self.mean_ms
    }

    /// Mean latency, ms, as the integral of the latency law: a second route to the same number.
    pub fn mean_by_law_ms(&self) -> f64 {
        self.moments[1]
    }

    /// Standard deviation of the latency, ms.
    pub fn sd_ms(&self) -> f64 {
        (self.moments[2] - self.moments[1] * self.moments[1]).max(0.0).sqrt()
    }

    /// Smallest `t` (ms) with `P(latency <= t) >= q`; NaN unless `0 < q < 1`.
    ///
    /// A quantile on a point mass is that point exactly.
    pub fn quantile_ms(&self, q: f64) -> f64 {
        if q > 0.0 && q < 1.0 { self.law.quantile(q).0 } else { f64::NAN }
    }

    /// Whether the quantile sits on a point mass (an estimator of it is then not normal).
    pub fn is_atom(&self, q: f64) -> bool {
        q > 0.0 && q < 1.0 && self.law.quantile(q).1
    }

    /// `(P(latency < t), P(latency <= t))`, `t` in ms.
    pub fn cdf(&self, t_ms: f64) -> (f64, f64) {
        self.law.cdf(t_ms)
    }

    /// Density of the continuous part of the latency law at `t`, from the right, per ms.
    pub fn density_per_ms(&self, t_ms: f64) -> f64 {
        self.law.density(t_ms)
    }

    /// Probability that the latency is `t` exactly.
    pub fn mass_at(&self, t_ms: f64) -> f64 {
        self.law.mass_at(t_ms)
    }

    /// Batch size law per batch: entry `n - 1` is the probability of size `n`.
    pub fn batch_pmf(&self) -> &[f64] {
        &self.pmf
    }

    /// Mean batch size, per batch.
    pub fn mean_batch(&self) -> f64 {
        self.mean_batch
    }

    /// Fraction of time the server is busy.
    pub fn utilization(&self) -> f64 {
        self.utilization
    }

    /// Mean number of requests in system (Little's law).
    pub fn mean_in_system(&self) -> f64 {
        self.rate_per_s / 1000.0 * self.mean_ms
    }

    /// Requests completed per second; equal to the rate offered.
    pub fn throughput_per_s(&self) -> f64 {
        self.rate_per_s
    }

    /// Rate at which full batches leave, requests per second.
    pub fn capacity_per_s(&self) -> f64 {
        self.capacity_per_s
    }

    /// Offered rate over capacity.
    pub fn load(&self) -> f64 {
        self.rate_per_s / self.capacity_per_s
    }

    /// Mean time from arrival to start of service, ms.
    pub fn mean_wait_ms(&self) -> f64 {
        self.mean_ms - self.mean_service_ms
    }

    /// Total probability of the latency law minus 1. Nothing enforces it, so it measures the
    /// error of the computation.
    pub fn mass_error(&self) -> f64 {
        self.total - 1.0
    }
}

//! Where latencies are kept.

use super::Histogram;

/// Where latencies go: a histogram, or every value.
pub trait LatencyStore: Default + Clone {
    /// Keeps one latency in nanoseconds.
    fn add(&mut self, latency_ns: u64);
    /// Keeps many.
    fn add_all(&mut self, latencies_ns: &[u64]) {
        latencies_ns.iter().for_each(|&latency| self.add(latency));
    }
    /// Adds everything another store has kept.
    fn merge(&mut self, other: &Self);
    /// How many were kept.
    fn len(&self) -> u64;
    /// Whether none was kept.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Quantiles at increasing `qs`, in nanoseconds; `None` when empty.
    fn quantiles(&self, qs: &[f64]) -> Option<Vec<f64>>;
}

impl<const BITS: u32> LatencyStore for Histogram<BITS> {
    #[inline(always)]
    fn add(&mut self, latency_ns: u64) {
        Self::add(self, latency_ns);
    }
    #[inline(always)]
    fn add_all(&mut self, latencies_ns: &[u64]) {
        Self::add_all(self, latencies_ns);
    }
    fn merge(&mut self, other: &Self) {
        Self::merge(self, other);
    }
    fn len(&self) -> u64 {
        Self::len(self)
    }
    fn quantiles(&self, qs: &[f64]) -> Option<Vec<f64>> {
        Self::quantiles(self, qs)
    }
}

/// Every latency, for point masses and golden tests.
#[derive(Clone, Debug, Default)]
pub struct ExactLatencies(Vec<u64>);

impl LatencyStore for ExactLatencies {
    fn add(&mut self, latency_ns: u64) {
        self.0.push(latency_ns);
    }
    fn add_all(&mut self, latencies_ns: &[u64]) {
        self.0.extend_from_slice(latencies_ns);
    }
    fn merge(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    #[expect(clippy::cast_precision_loss, reason = "latencies stay below 2^53 ns")]
    #[expect(clippy::cast_possible_truncation, reason = "a rank is at most the length")]
    fn quantiles(&self, qs: &[f64]) -> Option<Vec<f64>> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let n = sorted.len() as u64;
        (n > 0).then(|| qs.iter().map(|&q| sorted[super::rank(q, n) as usize - 1] as f64).collect())
    }
}

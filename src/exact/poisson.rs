//! Poisson probabilities without logarithms of factorials and without subtractions.

/// Terms smaller than this fraction of the largest one are left out at the upper end.
const NEGLIGIBLE: f64 = 1e-26;

/// Probabilities and upper tails of a Poisson count, kept in buffers that are used again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Poisson {
    p: Vec<f64>,
    tail: Vec<f64>,
}

impl Poisson {
    /// The law with mean `mu >= 0`.
    pub(crate) fn new(mu: f64) -> Self {
        let mut out = Self::default();
        out.fill(mu);
        out
    }

    /// Replaces the law by the one with mean `mu >= 0`.
    ///
    /// Ratios of neighbours are multiplied outwards from the mode and the result is scaled to sum
    /// to 1, which keeps full relative accuracy near the mode and about 1e-14 in the tails.
    pub(crate) fn fill(&mut self, mu: f64) {
        let mode = mu.floor() as usize;
        self.p.clear();
        self.p.resize(mode + 1, 0.0);
        self.p[mode] = 1.0;
        for k in (1..=mode).rev() {
            self.p[k - 1] = self.p[k] * (k as f64 / mu);
            if self.p[k - 1] == 0.0 {
                break;
            }
        }
        let mut last = 1.0;
        while last > NEGLIGIBLE && mu > 0.0 {
            last *= mu / self.p.len() as f64;
            self.p.push(last);
        }
        let total: f64 = self.p.iter().sum();
        for v in &mut self.p {
            *v /= total;
        }
        self.tail.clear();
        self.tail.resize(self.p.len() + 1, 0.0);
        for k in (0..self.p.len()).rev() {
            self.tail[k] = self.tail[k + 1] + self.p[k];
        }
    }

    /// `P(N = k)`.
    pub(crate) fn p(&self, k: usize) -> f64 {
        self.p.get(k).copied().unwrap_or(0.0)
    }

    /// `P(N >= k)`.
    pub(crate) fn tail(&self, k: usize) -> f64 {
        self.tail.get(k).copied().unwrap_or(0.0)
    }

    /// `P(N <= k)`, summed from below.
    #[cfg(test)]
    pub(crate) fn cdf(&self, k: usize) -> f64 {
        self.p.iter().take(k + 1).sum()
    }

    /// Probabilities up to the last one that matters.
    pub(crate) fn all(&self) -> &[f64] {
        &self.p
    }
}

/// A mean so large that fewer than `n` arrivals have a probability below 1e-20.
pub(crate) fn surely_at_least(n: u32) -> f64 {
    let n = f64::from(n);
    n + 12.0 * n.sqrt() + 50.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_match_closed_forms() {
        for mu in [0.0, 1e-3, 0.7, 12.5, 240.0] {
            let law = Poisson::new(mu);
            let e = f64::exp(-mu);
            assert!((law.p(0) - e).abs() <= 1e-13 * e, "{mu}");
            assert!((law.p(2) - e * mu * mu / 2.0).abs() <= 1e-13 * law.p(2) + 1e-300);
            assert!((law.tail(0) - 1.0).abs() < 1e-14);
            assert!((law.tail(3) + law.cdf(2) - 1.0).abs() < 1e-14);
        }
        for n in [1, 2, 8, 64, 500] {
            assert!(Poisson::new(surely_at_least(n)).cdf(n as usize - 1) < 1e-20);
        }
    }
}

//! The server as the solvers see it, and what every solver hands back.

use super::chain::decay;
use super::error::NotCovered;
use super::law::Law;

/// States beyond which a solve is refused.
pub(crate) const MOST_STATES: usize = 60_000;

/// Numbers in the table of positions beyond which a solve is refused (200 MB).
const MOST_NUMBERS: usize = 25_000_000;

/// States beyond which a solve with a dense matrix is refused.
const MOST_DENSE: usize = 2_500;

/// Probabilities below this cannot change a digit of any result and cut no grid.
pub(crate) const NO_MASS: f64 = 1e-24;

/// Poisson arrivals at one server with a bounded batch.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    /// Arrivals per ms.
    pub(crate) rate: f64,
    /// Largest batch.
    pub(crate) cap: usize,
    /// `s[n]`: service time of a batch of `n`, ms; `s[0]` is 0 and not used.
    pub(crate) s: Vec<f64>,
}

/// A solved rule: everything per dispatch.
#[derive(Debug)]
pub(crate) struct Solved {
    /// Latency law, not normalised.
    pub(crate) law: Law,
    /// `pmf[n - 1]`: probability that a batch has size `n`.
    pub(crate) pmf: Vec<f64>,
    /// Integral of the number in system over a cycle (dispatch to dispatch), request-ms.
    pub(crate) area: f64,
}

impl Model {
    /// Reads and checks the service times.
    pub(crate) fn new(rate: f64, cap: u32, cost: &dyn Fn(u32) -> f64) -> Result<Self, NotCovered> {
        let mut s = vec![0.0];
        for n in 1..=cap {
            s.push(checked_cost(n, cost(n))?);
        }
        let full = s[cap as usize];
        let capacity = f64::from(cap) / full;
        if rate >= capacity {
            return Err(NotCovered::Overloaded {
                offered_per_s: 1000.0 * rate,
                capacity_per_s: 1000.0 * capacity,
            });
        }
        Ok(Self { rate, cap: cap as usize, s })
    }

    /// Queue lengths up to this one carry all but about 1e-17 of the probability.
    pub(crate) fn states(&self) -> Result<usize, NotCovered> {
        let full = self.rate * self.s[self.cap];
        let longest = self.rate * self.s.iter().copied().fold(0.0, f64::max);
        let slope = decay(self.cap as f64, &|z| full * (z - 1.0));
        let spread = longest + 9.0 * longest.sqrt() + 40.0;
        checked_states(self.cap as f64 + spread + 40.0 / slope, MOST_STATES)
    }

    /// Size of the batch taken from a queue of `x`.
    pub(crate) fn batch(&self, x: usize) -> usize {
        x.min(self.cap)
    }

    /// Service time of the full batch, ms.
    pub(crate) fn full(&self) -> f64 {
        self.s[self.cap]
    }

    /// The lengths of services in use, and 0: where densities of the wait for the server have
    /// jumps, up to multiples of the full service time.
    pub(crate) fn jumps(&self, pi: &[f64]) -> Vec<f64> {
        let used = |n: &usize| match *n {
            n if n == self.cap => pi.len() > n,
            n => pi.get(n).is_some_and(|p| *p > NO_MASS),
        };
        let mut out: Vec<f64> = (1..=self.cap).filter(used).map(|n| self.s[n]).collect();
        out.push(0.0);
        out
    }

    /// Batch size law from the stationary queue at dispatch.
    pub(crate) fn pmf(&self, pi: &[f64]) -> Vec<f64> {
        let mut pmf = vec![0.0; self.cap];
        for (x, p) in pi.iter().enumerate().skip(1) {
            pmf[self.batch(x) - 1] += p;
        }
        pmf
    }

    /// Integral of the number in system over the service phase of a cycle:
    /// `E[X s(n)] + lambda E[s(n)^2] / 2`.
    pub(crate) fn service_area(&self, pi: &[f64]) -> f64 {
        let term = |(x, p): (usize, &f64)| {
            let s = self.s[self.batch(x)];
            p * (x as f64 * s + 0.5 * self.rate * s * s)
        };
        pi.iter().enumerate().skip(1).map(term).sum()
    }
}

/// Cuts off the states at the top that carry no mass: with a large cap and a low rate, most.
pub(crate) fn trimmed(mut pi: Vec<f64>) -> Vec<f64> {
    let used = pi.iter().rposition(|&p| p > 0.01 * NO_MASS).unwrap_or(0);
    pi.truncate(used + 1);
    pi
}

/// Accepts positive finite service times only.
pub(crate) fn checked_cost(n: u32, ms: f64) -> Result<f64, NotCovered> {
    if ms.is_finite() && ms > 0.0 { Ok(ms) } else { Err(NotCovered::Cost { batch: n, ms }) }
}

/// Accepts a number of states that fits in memory.
pub(crate) fn checked_states(states: f64, limit: usize) -> Result<usize, NotCovered> {
    if states <= limit as f64 {
        Ok(states.ceil() as usize)
    } else {
        Err(NotCovered::TooLarge { states, limit })
    }
}

/// Accepts a number of states for which a dense matrix fits.
pub(crate) fn checked_dense(states: usize) -> Result<usize, NotCovered> {
    if states <= MOST_DENSE {
        Ok(states)
    } else {
        Err(NotCovered::TooLarge { states: states as f64, limit: MOST_DENSE })
    }
}

/// Accepts a table of `nodes` x `states` numbers that fits in memory.
pub(crate) fn checked_table(nodes: usize, states: usize) -> Result<(), NotCovered> {
    if nodes.saturating_mul(states) <= MOST_NUMBERS {
        Ok(())
    } else {
        Err(NotCovered::TooLarge { states: states as f64, limit: MOST_NUMBERS / nodes.max(1) })
    }
}

//! The two-state Markov-modulated Poisson process: counts and phases.
//!
//! `C_k(t)` is the 2x2 matrix of probabilities "`k` arrivals within `t`, phase from row to column".
//! Over a short time it comes from uniformisation, over a long one from convolving short ones;
//! nothing is subtracted.

use super::poisson::Poisson;

/// A 2x2 matrix, row by row.
pub(crate) type Pair = [f64; 2];
pub(crate) type Square = [Pair; 2];

/// Expected events (arrivals and changes of phase) in a short step.
const STEP: f64 = 1.5;

/// Arrival rates and rates of leaving each phase, per ms.
#[derive(Debug, Clone)]
pub(crate) struct Phases {
    /// Arrival rate by phase, per ms.
    pub(crate) rates: Pair,
    /// Rate of leaving each phase, per ms.
    pub(crate) leave: Pair,
    /// `table[n][k]`: `k` arrivals among `n` events of the uniformised process.
    table: Vec<Vec<Square>>,
}

impl Phases {
    /// From rates per ms and mean dwell times in ms.
    pub(crate) fn new(rates: Pair, dwells: Pair) -> Self {
        let leave = dwells.map(|d| 1.0 / d);
        let mut out = Self { rates, leave, table: Vec::new() };
        let theta = out.theta();
        let arrive = rates.map(|r| r / theta);
        let quiet: Square = [
            [(theta - rates[0] - leave[0]) / theta, leave[0] / theta],
            [leave[1] / theta, (theta - rates[1] - leave[1]) / theta],
        ];
        let most = Poisson::new(STEP).all().len();
        let mut line: Vec<Square> = vec![[[1.0, 0.0], [0.0, 1.0]]];
        for _ in 0..most {
            let mut next = vec![[[0.0; 2]; 2]; line.len() + 1];
            for (k, c) in line.iter().enumerate() {
                for from in 0..2 {
                    for to in 0..2 {
                        next[k][from][to] += c[from][0] * quiet[0][to] + c[from][1] * quiet[1][to];
                        next[k + 1][from][to] += c[from][to] * arrive[to];
                    }
                }
            }
            out.table.push(std::mem::replace(&mut line, next));
        }
        out
    }

    /// Rate of the uniformised process, per ms.
    pub(crate) fn theta(&self) -> f64 {
        (self.rates[0] + self.leave[0]).max(self.rates[1] + self.leave[1])
    }

    /// Stationary mean arrival rate, per ms.
    pub(crate) fn mean_rate(&self) -> f64 {
        let [a, b] = self.leave;
        (b * self.rates[0] + a * self.rates[1]) / (a + b)
    }

    /// Logarithm, per ms, of the generating function of the counts at `z` (the larger eigenvalue of
    /// generator + rates (z - 1)).
    pub(crate) fn growth(&self, z: f64) -> f64 {
        let [a, b] = self.leave;
        let x = self.rates[0] * (z - 1.0) - a;
        let y = self.rates[1] * (z - 1.0) - b;
        let root = (0.25 * (x - y) * (x - y) + a * b).sqrt();
        0.5 * (x + y) + root
    }

    /// Phase at the next arrival, by phase now.
    pub(crate) fn at_next_arrival(&self) -> Square {
        let ([a, b], [x, y]) = (self.leave, self.rates);
        let det = a * y + x * b + x * y;
        [[(b + y) * x / det, a * y / det], [b * x / det, (a + x) * y / det]]
    }

    /// Integral over `(0, s)` of the expected arrivals so far, by phase at the start.
    pub(crate) fn count_area(&self, s: f64) -> Pair {
        let mean = self.mean_rate();
        let q = self.leave[0] + self.leave[1];
        // (q s - 1 + exp(-q s)) / q^2, by its series where the difference would cancel.
        let x = q * s;
        let excess = if x < 1e-3 {
            s * s * (0.5 - x / 6.0 + x * x / 24.0 - x * x * x / 120.0)
        } else {
            (x + (-x).exp_m1()) / (q * q)
        };
        self.rates.map(|r| 0.5 * mean * s * s + (r - mean) * excess)
    }

    /// `C_0(t), C_1(t), ..` for a time with at most [`STEP`] expected events.
    pub(crate) fn short(&self, t: f64) -> Vec<Square> {
        let events = Poisson::new(self.theta() * t);
        let used = events.all().len().min(self.table.len());
        let mut out = vec![[[0.0; 2]; 2]; used];
        for (p, line) in events.all().iter().zip(&self.table) {
            for (o, c) in out.iter_mut().zip(line) {
                for from in 0..2 {
                    for to in 0..2 {
                        o[from][to] += p * c[from][to];
                    }
                }
            }
        }
        out
    }

    /// Steps of equal length that make up `t`: how many, and `C` of one.
    pub(crate) fn steps(&self, t: f64) -> (usize, Vec<Square>) {
        let steps = (self.theta() * t / STEP).ceil().max(1.0);
        (steps as usize, self.short(t / steps))
    }

    /// `C_0(t), C_1(t), ..` for any time, up to the last count that matters.
    pub(crate) fn counts(&self, t: f64) -> Vec<Square> {
        self.extended(vec![[[1.0, 0.0], [0.0, 1.0]]], t)
    }

    /// The counts of a longer time from those of a shorter one.
    pub(crate) fn extended(&self, mut sum: Vec<Square>, t: f64) -> Vec<Square> {
        let (steps, short) = self.steps(t);
        for _ in 0..steps {
            let mut next = vec![[[0.0; 2]; 2]; sum.len() + short.len() - 1];
            for from in 0..2 {
                let row: Vec<Pair> = sum.iter().map(|c| c[from]).collect();
                let mut out = vec![[0.0; 2]; next.len()];
                push(&row, &short, &mut out);
                for (n, o) in next.iter_mut().zip(out) {
                    n[from] = o;
                }
            }
            while next.last().is_some_and(|c| c.iter().flatten().all(|p| *p < 1e-26)) {
                next.pop();
            }
            sum = next;
        }
        sum
    }
}

/// Adds the arrivals of a step to a distribution over (count, phase); what exceeds `out` is lost.
pub(crate) fn push(y: &[Pair], step: &[Square], out: &mut [Pair]) {
    out.fill([0.0; 2]);
    for (m, c) in step.iter().enumerate().take(out.len()) {
        for (o, y) in out[m..].iter_mut().zip(y) {
            o[0] += y[0] * c[0][0] + y[1] * c[1][0];
            o[1] += y[0] * c[0][1] + y[1] * c[1][1];
        }
    }
}

/// Puts a step in front: `u[k]` is the probability of `k` arrivals by phase at the start.
pub(crate) fn pull(u: &[Pair], step: &[Square], out: &mut [Pair]) {
    out.fill([0.0; 2]);
    for (m, c) in step.iter().enumerate().take(out.len()) {
        for (o, u) in out[m..].iter_mut().zip(u) {
            o[0] += c[0][0] * u[0] + c[0][1] * u[1];
            o[1] += c[1][0] * u[0] + c[1][1] * u[1];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_poisson_when_the_rates_agree() {
        let phases = Phases::new([0.7, 0.7], [30.0, 9.0]);
        let (counts, law) = (phases.counts(20.0), Poisson::new(14.0));
        for (k, c) in counts.iter().enumerate() {
            let p = law.p(k);
            assert!((c[0][0] + c[0][1] - p).abs() < 1e-13 && (c[1][0] + c[1][1] - p).abs() < 1e-13);
        }
    }

    #[test]
    fn expected_counts_match_their_closed_form() {
        let phases = Phases::new([1.2, 0.1], [20.0, 80.0]);
        assert!((phases.mean_rate() - 0.32).abs() < 1e-15);
        assert!(phases.growth(1.0).abs() < 1e-15);
        let step = 1e-3;
        for t in [0.05, 7.0] {
            let area = |t: f64| phases.count_area(t);
            let (up, down) = (area(t + step), area(t - step));
            let counts = phases.counts(t);
            for from in 0..2 {
                let mean: f64 = counts
                    .iter()
                    .enumerate()
                    .map(|(k, c)| k as f64 * (c[from][0] + c[from][1]))
                    .sum();
                let slope = (up[from] - down[from]) / (2.0 * step);
                assert!((mean - slope).abs() < 1e-6 * mean, "{mean} {slope}");
            }
        }
    }
}

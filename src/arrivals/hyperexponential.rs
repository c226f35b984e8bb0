//! `hyperexponential`: independent gaps, each short or long at random, both exponential.
//!
//! Two phases with balanced means (Sauer and Chandy 1975): with `c = cv²`, a gap is exponential
//! of rate `2 p λ` with probability `p = (1 + √((c − 1) / (c + 1))) / 2`, else of rate
//! `2 (1 − p) λ`; the index of dispersion tends to `cv²`.

use super::Stream;
use super::clock::Clock;
use crate::rng::SimRng;
use crate::tagged::{BadParam, params};
use crate::units::Rate;
use rand::RngExt;
use rand_distr::Exp1;

params! {
    /// Parameters of `hyperexponential`.
    pub struct Hyperexponential {
        /// Mean arrivals per second.
        pub rate: Rate,
        /// Coefficient of variation of the gaps, 1 (Poisson) or more.
        pub cv: f64,
    }
}

impl Hyperexponential {
    pub(super) fn check(&self) -> Result<(), BadParam> {
        if self.cv.is_finite() && (1.0..=100.0).contains(&self.cv) {
            return Ok(());
        }
        Err(BadParam::new(
            "cv",
            format!("cv must lie between 1 and 100, it is {}", self.cv),
            "mixing exponential gaps only adds to their spread; for a cv below 1 write kind = \
             \"gamma\"",
        ))
    }
}

/// Draws hyperexponential gaps.
pub(super) struct Draw {
    rng: SimRng,
    clock: Clock,
    /// Share of short gaps, and the mean of a short and of a long one, ns.
    short: f64,
    means_ns: [f64; 2],
    first: bool,
}

impl Draw {
    pub(super) fn new(params: &Hyperexponential, rng: SimRng) -> Result<Self, BadParam> {
        params.check()?;
        let c = params.cv * params.cv;
        let p = 0.5 * (1.0 + ((c - 1.0) / (c + 1.0)).sqrt());
        let mean_ns = 1e9 / params.rate.per_s();
        let means_ns = [mean_ns / (2.0 * p), mean_ns / (2.0 * (1.0 - p))];
        Ok(Self { rng, clock: Clock::default(), short: p, means_ns, first: true })
    }
}

impl Stream for Draw {
    fn fill(&mut self, out: &mut [u64]) -> usize {
        for slot in out.iter_mut() {
            // A stationary start: the two kinds of gaps cover equal shares of time, and what is
            // left of an exponential gap is like a whole one.
            let short = if std::mem::take(&mut self.first) { 0.5 } else { self.short };
            let mean_ns = self.means_ns[usize::from(self.rng.random::<f64>() >= short)];
            *slot = self.clock.advance(self.rng.sample::<f64, _>(Exp1) * mean_ns);
        }
        out.len()
    }
}

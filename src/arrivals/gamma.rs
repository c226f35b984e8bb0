//! `gamma`: independent gamma gaps of a given coefficient of variation (CV).
//!
//! Shape `k = 1 / cv²`, scale `1 / (k · rate)`; the index of dispersion tends to `cv²`. vLLM's
//! "burstiness" and AIPerf's "arrival smoothness" are this shape.

use super::Stream;
use super::clock::Clock;
use crate::rng::SimRng;
use crate::tagged::{BadParam, params};
use crate::units::Rate;
use rand::RngExt;
use rand_distr::Distribution;

params! {
    /// Parameters of `gamma`.
    pub struct Gamma {
        /// Mean arrivals per second.
        pub rate: Rate,
        /// Coefficient of variation of the gaps: 1 is Poisson, above 1 bursty.
        pub cv: f64,
    }
}

impl Gamma {
    pub(super) fn check(&self) -> Result<(), BadParam> {
        if self.cv.is_finite() && (0.01..=100.0).contains(&self.cv) {
            return Ok(());
        }
        Err(BadParam::new(
            "cv",
            format!("cv must lie between 0.01 and 100, it is {}", self.cv),
            "write 1 for Poisson, 2 to 6 for a bursty client; 0 is kind = \"deterministic\"",
        ))
    }
}

/// Draws gamma gaps.
pub(super) struct Draw {
    rng: SimRng,
    clock: Clock,
    unit_gap: rand_distr::Gamma<f64>,
    mean_gap_ns: f64,
    /// Gap before the first arrival, in mean gaps; drawn once.
    first: Option<f64>,
}

impl Draw {
    pub(super) fn new(params: &Gamma, mut rng: SimRng) -> Result<Self, BadParam> {
        let shape = 1.0 / (params.cv * params.cv);
        let law = |k: f64| {
            rand_distr::Gamma::new(k, 1.0 / shape)
                .map_err(|e| BadParam::new("cv", e.to_string(), "write a cv between 0.01 and 100"))
        };
        // A stationary start: the origin falls into a length-biased gap (shape k + 1), uniformly.
        let first = law(shape + 1.0)?.sample(&mut rng) * rng.random::<f64>();
        Ok(Self {
            rng,
            clock: Clock::default(),
            unit_gap: law(shape)?,
            mean_gap_ns: 1e9 / params.rate.per_s(),
            first: Some(first),
        })
    }
}

impl Stream for Draw {
    fn fill(&mut self, out: &mut [u64]) -> usize {
        for slot in out.iter_mut() {
            let unit = self.first.take().unwrap_or_else(|| self.unit_gap.sample(&mut self.rng));
            *slot = self.clock.advance(unit * self.mean_gap_ns);
        }
        out.len()
    }
}

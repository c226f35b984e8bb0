//! `hawkes`: arrivals that bring further arrivals (Hawkes 1971), with an exponential kernel.
//!
//! The intensity is `ν + Σ n/τ · exp(−(t − tᵢ)/τ)` over past arrivals: each brings `n`
//! (`branching`) further ones on average, within a time of the order of `τ` (`decay`). The mean
//! rate is `ν / (1 − n)`. With `κ = (1 − n) / τ` the counts have
//! `IDC(t) = I + (1 − I)(1 − e^(−κt)) / (κt)` and the limit `I = 1 / (1 − n)²`.

use super::Stream;
use super::clock::Clock;
use crate::rng::SimRng;
use crate::tagged::{BadParam, params};
use crate::time::Nanos;
use crate::units::Rate;
use rand::RngExt;
use rand_distr::Exp1;

params! {
    /// Parameters of `hawkes`.
    pub struct Hawkes {
        /// Mean arrivals per second.
        pub rate: Rate,
        /// Further arrivals that each arrival brings on average, 0 (Poisson) to 0.99.
        pub branching: f64,
        /// Time constant of the kernel: mean delay of what an arrival brings.
        pub decay: Nanos,
    }
}

impl Hawkes {
    pub(super) fn check(&self) -> Result<(), BadParam> {
        if !(self.branching.is_finite() && (0.0..=0.99).contains(&self.branching)) {
            return Err(BadParam::new(
                "branching",
                format!("branching must lie between 0 and 0.99, it is {}", self.branching),
                "every arrival brings so many further ones; with 1 or more they never end",
            ));
        }
        if self.decay == Nanos::ZERO {
            return Err(BadParam::new(
                "decay",
                "decay must be longer than zero",
                "write a positive duration, as in \"200ms\"; arrivals at once are kind = \"groups\"",
            ));
        }
        Ok(())
    }

    /// Limit of the index of dispersion for counts.
    #[must_use]
    pub fn idc_limit(&self) -> f64 {
        (1.0 - self.branching).powi(-2)
    }
}

/// Relaxation times that pass before time zero, from an empty past.
const MEMORIES: f64 = 30.0;

/// Draws gaps exactly (Dassios and Zhao 2013): the next arrival comes from the base rate or from
/// what is left of the kernels, whichever is first.
pub(super) struct Draw {
    rng: SimRng,
    clock: Clock,
    /// Mean gap of the base rate, time constant and jump of the intensity: ns and per ns.
    base_gap_ns: f64,
    decay_ns: f64,
    jump: f64,
    /// Intensity beyond the base rate now, per ns.
    excess: f64,
    /// What is left of the gap in which time zero falls.
    first: Option<f64>,
}

impl Draw {
    pub(super) fn new(params: &Hawkes, rng: SimRng) -> Result<Self, BadParam> {
        params.check()?;
        let base_per_s = params.rate.per_s() * (1.0 - params.branching);
        let decay_ns = params.decay.as_ms() * 1e6;
        let mut draw = Self {
            rng,
            clock: Clock::default(),
            base_gap_ns: 1e9 / base_per_s,
            decay_ns,
            jump: params.branching / decay_ns,
            // The mean of the stationary law to begin with; then its own past.
            excess: params.rate.per_s() * params.branching / 1e9,
            first: None,
        };
        let mut left = MEMORIES * decay_ns / (1.0 - params.branching);
        loop {
            let gap = draw.gap();
            if gap > left {
                draw.first = Some(gap - left);
                return Ok(draw);
            }
            left -= gap;
        }
    }

    /// The next gap, ns.
    fn gap(&mut self) -> f64 {
        let base = self.rng.sample::<f64, _>(Exp1) * self.base_gap_ns;
        // The kernels bring `excess · decay` further arrivals at most: perhaps none.
        let most = self.excess * self.decay_ns;
        let brought = self.rng.sample::<f64, _>(Exp1);
        let gap = if brought < most {
            base.min(-self.decay_ns * (-brought / most).ln_1p())
        } else {
            base
        };
        self.excess = self.excess * (-gap / self.decay_ns).exp() + self.jump;
        gap
    }
}

impl Stream for Draw {
    fn fill(&mut self, out: &mut [u64]) -> usize {
        for slot in out.iter_mut() {
            let gap = match self.first.take() {
                Some(rest) => rest,
                None => self.gap(),
            };
            *slot = self.clock.advance(gap);
        }
        out.len()
    }
}

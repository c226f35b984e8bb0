//! `poisson`: independent exponential gaps; the index of dispersion is 1 at every time scale.

use super::Stream;
use super::clock::Clock;
use crate::rng::SimRng;
use crate::tagged::params;
use crate::units::Rate;
use rand_distr::{Distribution, Exp1};

params! {
    /// Parameters of `poisson`.
    pub struct Poisson {
        /// Mean arrivals per second.
        pub rate: Rate,
    }
}

/// Gaps drawn before they are summed.
const AT_ONCE: usize = 128;

/// Draws exponential gaps.
pub(super) struct Draw {
    rng: SimRng,
    clock: Clock,
    mean_gap_ns: f64,
}

impl Draw {
    pub(super) fn new(params: &Poisson, rng: SimRng) -> Self {
        Self { rng, clock: Clock::default(), mean_gap_ns: 1e9 / params.rate.per_s() }
    }
}

impl Stream for Draw {
    fn fill(&mut self, out: &mut [u64]) -> usize {
        // Locals, and one loop for the gaps and one for their sum, so that the state of each
        // stays in registers. The second reference makes an instance of the sampler that has no
        // other caller, so that it is inlined. Together they halve the time of a draw.
        let (mut rng, mean) = (self.rng.clone(), self.mean_gap_ns);
        let mut units = [0.0; AT_ONCE];
        for times in out.chunks_mut(AT_ONCE) {
            let units = &mut units[..times.len()];
            for unit in units.iter_mut() {
                *unit = Exp1.sample(&mut &mut rng);
            }
            self.clock.sum(units, mean, times);
        }
        self.rng = rng;
        out.len()
    }
}

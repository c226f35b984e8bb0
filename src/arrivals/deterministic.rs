//! `deterministic`: one arrival every 1/rate, the k-th at `phase + k / rate` (k = 0, 1, …).

use super::Stream;
use super::clock::Clock;
use crate::tagged::params;
use crate::time::Nanos;
use crate::units::Rate;

params! {
    /// Parameters of `deterministic`.
    pub struct Deterministic {
        /// Arrivals per second.
        pub rate: Rate,
        /// When the first request arrives (default: at the start).
        #[cfg_attr(feature = "schema", serde(default))]
        pub phase: Nanos,
    }
}

/// Counts equal gaps.
pub(super) struct Ticks {
    next_ns: u64,
    clock: Clock,
    gap_ns: f64,
}

impl Ticks {
    pub(super) fn new(params: &Deterministic) -> Self {
        let start = params.phase.0;
        Self { next_ns: start, clock: Clock::at(start), gap_ns: 1e9 / params.rate.per_s() }
    }
}

impl Stream for Ticks {
    fn fill(&mut self, out: &mut [u64]) -> usize {
        for slot in out.iter_mut() {
            *slot = self.next_ns;
            self.next_ns = self.clock.advance(self.gap_ns);
        }
        out.len()
    }
}

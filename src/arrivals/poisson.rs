//! `poisson`: independent exponential gaps; the index of dispersion is 1 at every time scale.

use super::Stream;
use super::clock::Clock;
use super::tape::{Tape, draw};
use crate::rng::SimRng;
use crate::tagged::params;
use crate::units::Rate;
use std::sync::Arc;

params! {
    /// Parameters of `poisson`.
    pub struct Poisson {
        /// Mean arrivals per second.
        pub rate: Rate,
    }
}

/// Gaps drawn before they are summed.
const AT_ONCE: usize = 128;

/// Sums exponential gaps, from a tape while it lasts.
pub(super) struct Draw {
    /// The generator behind the last gap; unused on a tape.
    rng: SimRng,
    tape: Option<Arc<Tape>>,
    /// Block of the tape, and gaps of it that were taken.
    at: (usize, usize),
    clock: Clock,
    mean_gap_ns: f64,
}

impl Draw {
    pub(super) fn new(params: &Poisson, rng: SimRng, tape: Option<Arc<Tape>>) -> Self {
        let mean_gap_ns = 1e9 / params.rate.per_s();
        Self { rng, tape, at: (0, 0), clock: Clock::default(), mean_gap_ns }
    }

    /// Writes the first times while the tape lasts, and returns how many.
    fn play(&mut self, out: &mut [u64]) -> usize {
        let Some(tape) = &self.tape else { return 0 };
        let mut done = 0;
        while done < out.len() {
            let (number, taken) = self.at;
            let Some(block) = tape.block(number) else {
                self.tape = None;
                break;
            };
            let units = &block.units[taken..];
            let n = units.len().min(out.len() - done);
            self.clock.sum(&units[..n], self.mean_gap_ns, &mut out[done..done + n]);
            done += n;
            self.at = (number, taken + n);
            if n == units.len() {
                self.at = (number + 1, 0);
                self.rng = block.rng.clone();
            }
        }
        done
    }
}

impl Stream for Draw {
    fn fill(&mut self, out: &mut [u64]) -> usize {
        let played = self.play(out);
        if played == out.len() {
            return played;
        }
        // One loop for the gaps and one for their sum, so that the state of each stays in
        // registers.
        let mut units = [0.0; AT_ONCE];
        for times in out[played..].chunks_mut(AT_ONCE) {
            let units = &mut units[..times.len()];
            draw(&mut self.rng, units);
            self.clock.sum(units, self.mean_gap_ns, times);
        }
        out.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::Tapes;
    use crate::rng::{Purpose, substream};

    fn times(tape: Option<Arc<Tape>>, per_s: f64, n: usize) -> Vec<u64> {
        let params = Poisson { rate: Rate::per_second(per_s).unwrap() };
        let mut draw = Draw::new(&params, substream(7, 3, 1, Purpose::Arrivals), tape);
        let mut times = vec![0; n];
        // Pieces that no block is a multiple of.
        times.chunks_mut(999).for_each(|piece| assert_eq!(draw.fill(piece), piece.len()));
        times
    }

    #[test]
    fn a_tape_changes_nothing() {
        let tapes = Tapes::default();
        for per_s in [0.3, 70.0, 1000.0] {
            // Behind the end of the tape too.
            let taped = times(tapes.of(7, 3, 1), per_s, 140_000);
            assert!(taped == times(None, per_s, 140_000), "{per_s}/s");
        }
    }
}

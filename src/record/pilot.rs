//! The pilot of a replication: means of five successive latencies, for MSER-5.

use super::{BatchRow, Recorder};

/// Latencies in order of completion, averaged in fives.
#[derive(Clone, Debug, Default)]
pub struct Pilot {
    /// Means of five successive latencies, ns.
    pub means: Vec<f64>,
    /// Arrival of the first request of each five, ns.
    pub arrivals: Vec<u64>,
    sum: u64,
    held: u32,
    first: u64,
}

impl Recorder for Pilot {
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    fn completed(&mut self, batch: &BatchRow, arrivals: &[u64], _: &[u8], _: bool) {
        let done = batch.answered_ns();
        for &arrival in arrivals {
            if self.held == 0 {
                self.first = arrival;
            }
            self.sum += done - arrival;
            self.held += 1;
            if self.held == 5 {
                self.means.push(self.sum as f64 / 5.0);
                self.arrivals.push(self.first);
                (self.sum, self.held) = (0, 0);
            }
        }
    }
}

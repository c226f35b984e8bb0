//! The total rate of a scenario, and its scaling.

use super::Scenario;
use crate::arrivals::Process;
use crate::units::Rate;

impl Scenario {
    /// Arrivals per second of all sources together; `None` with a closed loop, whose clients set
    /// the pace, or where a recorded source has no rate.
    #[must_use]
    pub fn total_rate_per_s(&self) -> Option<f64> {
        let mut total: f64 = 0.0;
        for source in &self.arrivals {
            total += source.rate_per_s()?;
        }
        (total > 0.0 && total.is_finite()).then_some(total)
    }

    /// Arrivals per second of the open sources together; `None` where there is none, or where a
    /// recorded source has no rate.
    #[must_use]
    pub fn open_rate_per_s(&self) -> Option<f64> {
        let closed = |s: &&super::Source| matches!(s.process, Process::ClosedLoop(_));
        let open = self.arrivals.iter().filter(|s| !closed(s)).cloned().collect();
        Self { arrivals: open, ..self.clone() }.total_rate_per_s()
    }

    /// How much faster than recorded the first recorded source is replayed; `None` without one.
    #[must_use]
    pub fn speed_factor(&self) -> Option<f64> {
        self.arrivals.iter().find_map(|s| match &s.process {
            Process::Trace(p) => Some(p.factor()),
            _ => None,
        })
    }

    /// Multiplies the rate of every open source by `factor`, which is positive and finite: more
    /// of the same requests in the same pattern.
    ///
    /// See [`Process::scale_rate`].
    pub fn scale_rates(&mut self, factor: f64) {
        self.arrivals.iter_mut().for_each(|source| source.process.scale_rate(factor));
    }

    /// The same scenario with all sources scaled to `rate_per_s` together; `None` where there is
    /// no total rate (see [`Scenario::total_rate_per_s`]) or the wanted one is not positive.
    #[must_use]
    pub fn with_total_rate(&self, rate_per_s: f64) -> Option<Self> {
        let factor = rate_per_s / self.total_rate_per_s()?;
        if !(factor > 0.0 && factor.is_finite()) {
            return None;
        }
        let mut scaled = self.clone();
        scaled.scale_rates(factor);
        // A single source can take the wanted rate itself, free of rounding.
        if let ([source], Some(rate)) =
            (scaled.arrivals.as_mut_slice(), Rate::per_second(rate_per_s))
        {
            source.process.set_rate(rate);
        }
        Some(scaled)
    }
}

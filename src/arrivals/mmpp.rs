//! `mmpp` and `on-off`: a Poisson process whose rate switches between two states.
//!
//! The state lasts an exponential time with mean `dwells[i]` and has rate `rates[i]`; the start
//! state is drawn from its long-run share. With `q = 1/dwell₁ + 1/dwell₂` the counts have
//! `IDC(t) = 1 + (I − 1)(1 − (1 − e^(−qt)) / (qt))` and limit
//! `I = 1 + 2 (r₁ − r₂)² q₁ q₂ / (q² (r₁ q₂ + r₂ q₁))`.
//! The other parametrisation gives the mean rate, `I` (`idc`), the burst time scale `1/q`
//! (`timescale`) and the share of time in the high state (`high_share`).

use super::Stream;
use super::clock::Clock;
use crate::rng::SimRng;
use crate::tagged::{BadParam, params};
use crate::time::Nanos;
use crate::units::{Fraction, Rate};
use rand::RngExt;
use rand_distr::Exp1;

params! {
    /// Parameters of `mmpp`: either `rates` and `dwells`, or `rate`, `idc`, `timescale` and
    /// `high_share`.
    #[derive(Default)]
    pub struct Mmpp {
        /// Arrival rate in each of the two states.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub rates: Option<[Rate; 2]>,
        /// Mean time spent in each state.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub dwells: Option<[Nanos; 2]>,
        /// Mean arrival rate.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub rate: Option<Rate>,
        /// Limit of the index of dispersion for counts; Poisson is 1.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub idc: Option<f64>,
        /// Burst time scale: relaxation time of the rate.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub timescale: Option<Nanos>,
        /// Long-run share of time in the high-rate state (default 50%).
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub high_share: Option<Fraction>,
    }
}

params! {
    /// Parameters of `on-off`: Poisson at `rate_on` for a while, then at `rate_off`.
    pub struct OnOff {
        /// Arrival rate while on.
        pub rate_on: Rate,
        /// Arrival rate while off (default: none).
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub rate_off: Option<Rate>,
        /// Mean time on.
        pub on: Nanos,
        /// Mean time off.
        pub off: Nanos,
    }
}

/// The two-state law both parametrisations come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MmppLaw {
    /// Arrivals per second in each state; the second may be zero.
    pub rates_per_s: [f64; 2],
    /// Mean seconds in each state.
    pub dwells_s: [f64; 2],
}

impl MmppLaw {
    /// Long-run arrivals per second.
    #[must_use]
    pub fn mean_rate_per_s(&self) -> f64 {
        let [a, b] = self.dwells_s;
        (self.rates_per_s[0] * a + self.rates_per_s[1] * b) / (a + b)
    }

    /// Limit of the index of dispersion for counts.
    #[must_use]
    pub fn idc_limit(&self) -> f64 {
        let [q1, q2] = self.dwells_s.map(f64::recip);
        let [r1, r2] = self.rates_per_s;
        1.0 + 2.0 * (r1 - r2).powi(2) * q1 * q2 / ((q1 + q2).powi(2) * (r1 * q2 + r2 * q1))
    }

    /// Relaxation time of the rate, in seconds.
    #[must_use]
    pub fn timescale_s(&self) -> f64 {
        let [q1, q2] = self.dwells_s.map(f64::recip);
        1.0 / (q1 + q2)
    }

    /// The law of a mean rate, an IDC limit, a time scale and a share of time in the high state:
    /// `σ² = (I − 1) λ / (2 τ)`, `r₁ = λ + σ √((1 − p) / p)`, `r₂ = λ − σ √(p / (1 − p))`.
    ///
    /// # Errors
    /// `r₂` would be negative; the largest feasible `I` is said.
    pub fn from_burstiness(
        rate_per_s: f64,
        idc: f64,
        timescale_s: f64,
        high_share: f64,
    ) -> Result<Self, BadParam> {
        let p = high_share;
        if !(p > 0.0 && p < 1.0) {
            return Err(BadParam::new(
                "high_share",
                "high_share must lie strictly between 0% and 100%",
                "write the share of time in the high-rate state, as in \"20%\"",
            ));
        }
        let idc_max = 1.0 + 2.0 * timescale_s * rate_per_s * (1.0 - p) / p;
        if !idc.is_finite() || idc < 1.0 || idc > idc_max * (1.0 + 1e-12) {
            return Err(BadParam::new(
                "idc",
                format!("idc {idc} cannot be reached by a two-state process at these values"),
                format!(
                    "write 1 to {}; a longer timescale or a smaller high_share allows more",
                    (idc_max * 1e4).floor() / 1e4
                ),
            ));
        }
        let sigma = ((idc - 1.0) * rate_per_s / (2.0 * timescale_s)).sqrt();
        let low = rate_per_s - sigma * (p / (1.0 - p)).sqrt();
        Ok(Self {
            rates_per_s: [rate_per_s + sigma * ((1.0 - p) / p).sqrt(), low.max(0.0)],
            dwells_s: [timescale_s / (1.0 - p), timescale_s / p],
        })
    }
}

fn positive_s(key: &'static str, dwell: Nanos) -> Result<f64, BadParam> {
    if dwell == Nanos::ZERO {
        return Err(BadParam::new(
            key,
            format!("{key} must be longer than zero"),
            "write a positive duration, as in \"200ms\"",
        ));
    }
    Ok(dwell.as_s())
}

impl Mmpp {
    /// The two-state law these parameters mean.
    ///
    /// # Errors
    /// Neither parametrisation is complete, both are mixed, or the burstiness is out of reach.
    pub fn law(&self) -> Result<MmppLaw, BadParam> {
        const HELP: &str = "give either rates and dwells, or rate, idc, timescale and high_share";
        let by_state = self.rates.is_some() || self.dwells.is_some();
        let by_burst = self.rate.is_some()
            || self.idc.is_some()
            || self.timescale.is_some()
            || self.high_share.is_some();
        if by_state && by_burst {
            return Err(BadParam::new("rates", "the two ways to write an mmpp are mixed", HELP));
        }
        if by_state {
            let (Some(rates), Some(dwells)) = (self.rates, self.dwells) else {
                return Err(BadParam::new("rates", "rates and dwells belong together", HELP));
            };
            let dwells_s = [positive_s("dwells", dwells[0])?, positive_s("dwells", dwells[1])?];
            return Ok(MmppLaw { rates_per_s: rates.map(Rate::per_s), dwells_s });
        }
        let (Some(rate), Some(idc), Some(timescale)) = (self.rate, self.idc, self.timescale) else {
            return Err(BadParam::new("rate", "this mmpp is not complete", HELP));
        };
        let share = self.high_share.map_or(0.5, Fraction::get);
        MmppLaw::from_burstiness(rate.per_s(), idc, positive_s("timescale", timescale)?, share)
    }
}

impl OnOff {
    /// The two-state law these parameters mean.
    ///
    /// # Errors
    /// A dwell time of zero.
    pub fn law(&self) -> Result<MmppLaw, BadParam> {
        Ok(MmppLaw {
            rates_per_s: [self.rate_on.per_s(), self.rate_off.map_or(0.0, Rate::per_s)],
            dwells_s: [positive_s("on", self.on)?, positive_s("off", self.off)?],
        })
    }
}

/// Draws phases and, within a phase, exponential gaps.
pub(super) struct Draw {
    rng: SimRng,
    law: MmppLaw,
    state: usize,
    /// Now, and the end of the current phase.
    clock: Clock,
    phase_ends: Clock,
    phase_end_ns: u64,
}

impl Draw {
    pub(super) fn new(law: MmppLaw, mut rng: SimRng) -> Self {
        let [a, b] = law.dwells_s;
        let state = usize::from(rng.random::<f64>() >= a / (a + b));
        let mut draw = Self {
            rng,
            law,
            state,
            clock: Clock::default(),
            phase_ends: Clock::default(),
            phase_end_ns: 0,
        };
        draw.enter(state);
        draw
    }

    /// Starts a phase where the last one ended.
    fn enter(&mut self, state: usize) {
        self.state = state;
        let dwell_ns = self.law.dwells_s[state] * 1e9;
        self.phase_end_ns = self.phase_ends.advance(self.rng.sample::<f64, _>(Exp1) * dwell_ns);
    }

    fn next(&mut self) -> u64 {
        loop {
            let rate = self.law.rates_per_s[self.state];
            if rate > 0.0 {
                let mut ahead = self.clock;
                let at = ahead.advance(self.rng.sample::<f64, _>(Exp1) * (1e9 / rate));
                if at <= self.phase_end_ns {
                    self.clock = ahead;
                    return at;
                }
            }
            // No arrival before the phase ends; exponential gaps have no memory, so draw afresh
            // from the moment the phase ended.
            self.clock = self.phase_ends;
            self.enter(1 - self.state);
        }
    }
}

impl Stream for Draw {
    fn fill(&mut self, out: &mut [u64]) -> usize {
        for (i, slot) in out.iter_mut().enumerate() {
            *slot = self.next();
            if *slot == u64::MAX {
                return i;
            }
        }
        out.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_parametrisations_agree() {
        let by_state = MmppLaw { rates_per_s: [300.0, 40.0], dwells_s: [0.020, 0.180] };
        assert!((by_state.mean_rate_per_s() - 66.0).abs() < 1e-12);
        assert!((by_state.idc_limit() - 4.318_545_5).abs() < 1e-7, "{}", by_state.idc_limit());
        let by_burst = MmppLaw::from_burstiness(
            by_state.mean_rate_per_s(),
            by_state.idc_limit(),
            by_state.timescale_s(),
            0.1,
        );
        let by_burst = by_burst.unwrap();
        for i in 0..2 {
            let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
            assert!(close(by_burst.rates_per_s[i], by_state.rates_per_s[i]), "{by_burst:?}");
            assert!(close(by_burst.dwells_s[i], by_state.dwells_s[i]), "{by_burst:?}");
        }
    }

    #[test]
    fn infeasible_burstiness_names_the_largest() {
        let largest = 1.0 + 2.0 * 0.1 * 100.0 * (0.8 / 0.2);
        assert!(MmppLaw::from_burstiness(100.0, largest, 0.1, 0.2).is_ok());
        let error = MmppLaw::from_burstiness(100.0, largest * 1.01, 0.1, 0.2).unwrap_err();
        assert!(error.help.starts_with("write 1 to 81;"), "{}", error.help);
    }
}

//! What a process says of itself without being drawn: its rate, its burstiness.

use super::{Mmpp, Process, TimeScale, TimeScaleMode};
use crate::units::Rate;

impl Process {
    /// Mean arrivals per second; `None` for a closed loop, whose clients set the pace, and for a
    /// trace, which has to be read.
    #[must_use]
    pub fn rate_per_s(&self) -> Option<f64> {
        match self {
            Self::Poisson(p) => Some(p.rate.per_s()),
            Self::Deterministic(p) => Some(p.rate.per_s()),
            Self::Gamma(p) => Some(p.rate.per_s()),
            Self::Weibull(p) => Some(p.rate.per_s()),
            Self::Hyperexponential(p) => Some(p.rate.per_s()),
            Self::Hawkes(p) => Some(p.rate.per_s()),
            Self::Mmpp(p) => Some(p.law().ok()?.mean_rate_per_s()),
            Self::OnOff(p) => Some(p.law().ok()?.mean_rate_per_s()),
            Self::Groups(p) => Some(p.requests_per_s()),
            Self::Schedule(p) => Some(p.mean_rate_per_s()),
            Self::Clients(p) => Some(p.rate.per_s()),
            Self::ClosedLoop(_) | Self::Trace(_) => None,
        }
    }

    /// Arrivals per second while it is busiest, and the CV of the gaps then; `None` where neither
    /// says how many come together.
    #[must_use]
    pub fn peak(&self) -> Option<(f64, f64)> {
        let busiest = |rates: [f64; 2]| rates[0].max(rates[1]);
        match self {
            Self::Poisson(_) | Self::Deterministic(_) => Some((self.rate_per_s()?, 1.0)),
            Self::Gamma(p) => Some((p.rate.per_s(), p.cv)),
            Self::Weibull(p) => Some((p.rate.per_s(), p.cv)),
            Self::Hyperexponential(p) => Some((p.rate.per_s(), p.cv)),
            Self::Hawkes(p) => Some((p.rate.per_s(), p.idc_limit().sqrt())),
            Self::Clients(p) => Some((p.rate.per_s(), p.cv.max(1.0))),
            Self::Mmpp(p) => p.law().ok().map(|law| (busiest(law.rates_per_s), 1.0)),
            Self::OnOff(p) => p.law().ok().map(|law| (busiest(law.rates_per_s), 1.0)),
            Self::Schedule(p) => Some((p.peak_rate_per_s(), 1.0)),
            // How many come together is a matter of the groups, not of the rate.
            Self::Groups(_) | Self::ClosedLoop(_) | Self::Trace(_) => None,
        }
    }

    /// Limit of the index of dispersion for counts; `None` where it is not known. Of a `schedule`
    /// it is that of a Poisson process, given the rate.
    #[must_use]
    pub fn idc_limit(&self) -> Option<f64> {
        match self {
            Self::Poisson(_) | Self::Schedule(_) => Some(1.0),
            Self::Deterministic(_) => Some(0.0),
            Self::Gamma(p) => Some(p.cv * p.cv),
            Self::Weibull(p) => Some(p.cv * p.cv),
            Self::Hyperexponential(p) => Some(p.cv * p.cv),
            Self::Clients(p) => Some(p.cv * p.cv),
            Self::Hawkes(p) => Some(p.idc_limit()),
            Self::Mmpp(p) => p.law().ok().map(|law| law.idc_limit()),
            Self::OnOff(p) => p.law().ok().map(|law| law.idc_limit()),
            Self::Groups(p) => Some(p.size.idc_limit()),
            Self::ClosedLoop(_) | Self::Trace(_) => None,
        }
    }

    /// Multiplies the rate by `factor`, which is positive and finite: more of the same requests in
    /// the same pattern.
    ///
    /// `groups` come more often and stay as large. Every state of an `mmpp` or `on-off` process
    /// scales and dwells stay as they are (so `idc` moves away from 1 in proportion); a `hawkes`
    /// process keeps its branching and decay; a trace is replayed faster. A closed loop stays.
    pub fn scale_rate(&mut self, factor: f64) {
        let scale = |rate: &mut Rate| {
            if let Some(scaled) = Rate::per_second(rate.per_s() * factor) {
                *rate = scaled;
            }
        };
        match self {
            Self::Poisson(p) => scale(&mut p.rate),
            Self::Deterministic(p) => scale(&mut p.rate),
            Self::Gamma(p) => scale(&mut p.rate),
            Self::Weibull(p) => scale(&mut p.rate),
            Self::Hyperexponential(p) => scale(&mut p.rate),
            Self::Hawkes(p) => scale(&mut p.rate),
            Self::Clients(p) => scale(&mut p.rate),
            Self::Groups(p) => scale(&mut p.rate),
            Self::Schedule(p) => p.scale(scale),
            Self::Mmpp(Mmpp { rates, rate, idc, .. }) => {
                rates.iter_mut().flatten().for_each(scale);
                rate.iter_mut().for_each(scale);
                idc.iter_mut().for_each(|i| *i = 1.0 + (*i - 1.0) * factor);
            }
            Self::OnOff(p) => {
                scale(&mut p.rate_on);
                p.rate_off.iter_mut().for_each(scale);
            }
            Self::ClosedLoop(_) => {}
            Self::Trace(p) => match &mut p.scale {
                Some(scale) => scale.factor *= factor,
                None => p.scale = Some(TimeScale { mode: TimeScaleMode::Time, factor }),
            },
        }
    }

    /// Sets the rate itself where it is the one of the requests, free of rounding.
    pub fn set_rate(&mut self, rate: Rate) {
        match self {
            Self::Poisson(p) => p.rate = rate,
            Self::Deterministic(p) => p.rate = rate,
            Self::Gamma(p) => p.rate = rate,
            Self::Weibull(p) => p.rate = rate,
            Self::Hyperexponential(p) => p.rate = rate,
            Self::Hawkes(p) => p.rate = rate,
            Self::Clients(p) => p.rate = rate,
            _ => {}
        }
    }

    /// Whether two replications of it differ; think times aside.
    #[must_use]
    pub fn is_random(&self) -> bool {
        !matches!(self, Self::Deterministic(_) | Self::Trace(_) | Self::ClosedLoop(_))
    }
}

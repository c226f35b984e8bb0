//! Jitter: the random factor, mean 1, that one pass's time is multiplied by.

use crate::tagged::{BadParam, params, tagged};

params! {
    /// No jitter: the same batch always takes the same time.
    #[derive(Default)]
    pub struct NoJitter {}
}

params! {
    /// Exponential factor (CV 1): with batches of one, the M/M/c queue.
    #[derive(Default)]
    pub struct Exponential {}
}

params! {
    /// Log-normal factor.
    pub struct Lognormal {
        /// Coefficient of variation of the factor.
        pub cv: f64,
    }
}

params! {
    /// Sum of `k` exponential factors (CV 1/√k): a pass of `k` random stages.
    pub struct Erlang {
        /// Stages, 1 or more; 1 is exponential.
        pub k: u32,
    }
}

params! {
    /// Uniform factor; `low` and `high` lie symmetrically about 1.
    pub struct Uniform {
        /// Smallest factor.
        pub low: f64,
        /// Largest factor.
        pub high: f64,
    }
}

params! {
    /// Two exponential phases with balanced means: most passes are quick, some are far longer.
    pub struct TwoPhase {
        /// Coefficient of variation of the factor, 1 (exponential) or more.
        pub cv: f64,
    }
}

tagged! {
    /// The law of the factor, as a scenario gives it.
    pub enum Jitter {
        "none" => None(NoJitter),
        "exponential" => Exponential(Exponential),
        "lognormal" => Lognormal(Lognormal),
        "erlang" => Erlang(Erlang),
        "uniform" => Uniform(Uniform),
        "hyperexponential" => Hyperexponential(TwoPhase),
    }
}

impl Default for Jitter {
    fn default() -> Self {
        Self::None(NoJitter {})
    }
}

impl Jitter {
    /// Whether the parameters can be meant.
    ///
    /// # Errors
    /// The first parameter that cannot.
    pub fn check(&self) -> Result<(), BadParam> {
        match self {
            Self::None(_) | Self::Exponential(_) => Ok(()),
            Self::Lognormal(l) if l.cv.is_finite() && l.cv > 0.0 && l.cv <= 10.0 => Ok(()),
            Self::Lognormal(l) => Err(BadParam::new(
                "cv",
                format!("the cv of jitter lies above 0 and at most 10, it is {}", l.cv),
                "write 0.05 for 5 % jitter, or leave jitter out for none",
            )),
            Self::Erlang(e) if (1..=1_000_000).contains(&e.k) => Ok(()),
            Self::Erlang(e) => Err(BadParam::new(
                "k",
                format!("k lies between 1 and 1,000,000, it is {}", e.k),
                "write the number of stages: 1 is exponential, 16 a CV of 0.25",
            )),
            Self::Uniform(u) => u.check(),
            Self::Hyperexponential(h) if h.cv.is_finite() && (1.0..=100.0).contains(&h.cv) => {
                Ok(())
            }
            Self::Hyperexponential(h) => Err(BadParam::new(
                "cv",
                format!("the cv of hyperexponential jitter lies between 1 and 100, it is {}", h.cv),
                "for a cv below 1 write kind = \"erlang\" or \"lognormal\"",
            )),
        }
    }
}

impl Uniform {
    fn check(&self) -> Result<(), BadParam> {
        if !(self.low.is_finite() && self.high.is_finite() && 0.0 <= self.low) {
            return Err(BadParam::new(
                "low",
                format!("factors lie at or above 0, low is {} and high {}", self.low, self.high),
                "write low = 0.9, high = 1.1 for up to 10 % more or less",
            ));
        }
        let mean = f64::midpoint(self.low, self.high);
        if self.low < self.high && (mean - 1.0).abs() <= 1e-9 {
            return Ok(());
        }
        Err(BadParam::new(
            "high",
            format!("the mean factor must be 1, of {} to {} it is {mean}", self.low, self.high),
            format!("write high = {}, and let the cost say the mean time", 2.0 - self.low),
        ))
    }
}

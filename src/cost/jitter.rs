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

tagged! {
    /// The law of the factor, as a scenario gives it.
    pub enum Jitter {
        "none" => None(NoJitter),
        "exponential" => Exponential(Exponential),
        "lognormal" => Lognormal(Lognormal),
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
        }
    }
}

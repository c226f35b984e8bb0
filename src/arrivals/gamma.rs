//! `gamma`: independent gamma gaps of a given coefficient of variation (CV).
//!
//! Shape `k = 1 / cv²`, scale `1 / (k · rate)`; the index of dispersion tends to `cv²`. vLLM's
//! "burstiness" and AIPerf's "arrival smoothness" are this shape.

use crate::tagged::{BadParam, params};
use crate::units::Rate;

params! {
    /// Parameters of `gamma`.
    pub struct Gamma {
        /// Mean arrivals per second.
        pub rate: Rate,
        /// Coefficient of variation of the gaps: 1 is Poisson, above 1 bursty.
        pub cv: f64,
    }
}

impl Gamma {
    pub(super) fn check(&self) -> Result<(), BadParam> {
        if self.cv.is_finite() && (0.01..=100.0).contains(&self.cv) {
            return Ok(());
        }
        Err(BadParam::new(
            "cv",
            format!("cv must lie between 0.01 and 100, it is {}", self.cv),
            "write 1 for Poisson, 2 to 6 for a bursty client; 0 is kind = \"deterministic\"",
        ))
    }
}

//! `poisson`: independent exponential gaps; the index of dispersion is 1 at every time scale.

use crate::tagged::params;
use crate::units::Rate;

params! {
    /// Parameters of `poisson`.
    pub struct Poisson {
        /// Mean arrivals per second.
        pub rate: Rate,
    }
}

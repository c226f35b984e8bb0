//! `deterministic`: one arrival every 1/rate, the k-th at `phase + k / rate` (k = 0, 1, …).

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

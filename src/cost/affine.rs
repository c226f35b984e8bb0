//! `affine`: `fixed + per_item · n`. The ceiling is `1 / per_item` items per second.

use crate::tagged::{BadParam, params};
use crate::time::Nanos;

params! {
    /// Parameters of `affine`.
    pub struct Affine {
        /// Paid once per batch.
        pub fixed: Nanos,
        /// Paid for every item.
        pub per_item: Nanos,
    }
}

impl Affine {
    pub(super) fn check(&self) -> Result<(), BadParam> {
        if self.fixed == Nanos::ZERO && self.per_item == Nanos::ZERO {
            return Err(BadParam::new(
                "fixed",
                "a pass that takes no time cannot be simulated",
                "give fixed or per_item a positive duration",
            ));
        }
        Ok(())
    }
}

impl Affine {
    /// Service time of a batch of `items`, ns.
    pub(super) fn service_ns(&self, items: u32) -> u64 {
        self.fixed.0.saturating_add(self.per_item.0.saturating_mul(u64::from(items)))
    }
}

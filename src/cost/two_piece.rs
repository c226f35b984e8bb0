//! `two-piece`: `fixed + per_item · n` up to `knee` items, and `per_item_after` for every item
//! above it. Concave (early items dearer) or convex (a cache left behind), as the slopes say.

use crate::tagged::{BadParam, params};
use crate::time::Nanos;

params! {
    /// Parameters of `two-piece`.
    pub struct TwoPiece {
        /// Paid once per batch.
        pub fixed: Nanos,
        /// Paid for every item up to the knee.
        pub per_item: Nanos,
        /// The batch size at which the slope changes.
        pub knee: u32,
        /// Paid for every item above the knee.
        pub per_item_after: Nanos,
    }
}

impl TwoPiece {
    pub(super) fn check(&self) -> Result<(), BadParam> {
        if self.fixed == Nanos::ZERO && self.per_item == Nanos::ZERO {
            return Err(BadParam::new(
                "fixed",
                "a pass that takes no time cannot be simulated",
                "give fixed or per_item a positive duration",
            ));
        }
        if self.knee == 0 {
            return Err(BadParam::new(
                "knee",
                "the knee is a batch size of 1 or more",
                "write the batch size at which the slope changes, or use affine",
            ));
        }
        Ok(())
    }

    /// Service time of a batch of `items`, ns.
    pub(super) fn service_ns(&self, items: u32) -> u64 {
        let before = self.per_item.0.saturating_mul(u64::from(items.min(self.knee)));
        let above = u64::from(items.saturating_sub(self.knee));
        let after = self.per_item_after.0.saturating_mul(above);
        self.fixed.0.saturating_add(before).saturating_add(after)
    }
}

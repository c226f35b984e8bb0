//! `floor-linear`: `max(floor, fixed + per_item · n)`. A pass bound by launches or weight reads
//! until the work of its items takes longer. The ceiling is `1 / per_item` items per second.

use crate::tagged::{BadParam, params};
use crate::time::Nanos;

params! {
    /// Parameters of `floor-linear`.
    pub struct FloorLinear {
        /// No pass is shorter than this.
        pub floor: Nanos,
        /// Where the line starts, at zero items.
        pub fixed: Nanos,
        /// Slope of the line.
        pub per_item: Nanos,
    }
}

impl FloorLinear {
    pub(super) fn check(&self) -> Result<(), BadParam> {
        if [self.floor, self.fixed, self.per_item] == [Nanos::ZERO; 3] {
            return Err(BadParam::new(
                "floor",
                "a pass that takes no time cannot be simulated",
                "give floor, fixed or per_item a positive duration",
            ));
        }
        Ok(())
    }

    /// Service time of a batch of `items`, ns.
    pub(super) fn service_ns(&self, items: u32) -> u64 {
        let work = self.per_item.0.saturating_mul(u64::from(items));
        self.fixed.0.saturating_add(work).max(self.floor.0)
    }
}

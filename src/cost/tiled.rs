//! `tiled`: `fixed + per_tile · ⌈n / tile⌉`. A matrix unit works in whole tiles, so the time jumps
//! where one more is begun. The ceiling is `tile / per_tile` items per second.

use crate::tagged::{BadParam, params};
use crate::time::Nanos;

params! {
    /// Parameters of `tiled`.
    pub struct Tiled {
        /// Paid once per batch.
        pub fixed: Nanos,
        /// Paid for every tile that is begun.
        pub per_tile: Nanos,
        /// Items that fit one tile.
        pub tile: u32,
    }
}

impl Tiled {
    pub(super) fn check(&self) -> Result<(), BadParam> {
        if self.fixed == Nanos::ZERO && self.per_tile == Nanos::ZERO {
            return Err(BadParam::new(
                "fixed",
                "a pass that takes no time cannot be simulated",
                "give fixed or per_tile a positive duration",
            ));
        }
        if self.tile == 0 {
            return Err(BadParam::new(
                "tile",
                "a tile holds 1 item or more",
                "write the number of items in one tile, such as 32",
            ));
        }
        Ok(())
    }

    /// Service time of a batch of `items`, ns.
    pub(super) fn service_ns(&self, items: u32) -> u64 {
        let tiles = u64::from(items.div_ceil(self.tile.max(1)));
        self.fixed.0.saturating_add(self.per_tile.0.saturating_mul(tiles))
    }
}

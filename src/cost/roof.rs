//! `roof`: `(floor^p + (per_item · n)^p)^(1/p)` with `p = sharpness`. A floor and a line through
//! the origin that pass into each other smoothly; a larger `p` makes a sharper knee, which lies at
//! `floor / per_item` items. The ceiling is `1 / per_item` items per second.

use crate::tagged::{BadParam, params};
use crate::time::Nanos;

params! {
    /// Parameters of `roof`.
    pub struct Roof {
        /// What a pass of few items takes.
        pub floor: Nanos,
        /// What every further item adds once the batch is large.
        pub per_item: Nanos,
        /// Sharpness of the knee, 1 (the sum, as `affine`) to 100 (nearly the maximum).
        pub sharpness: f64,
    }
}

impl Roof {
    pub(super) fn check(&self) -> Result<(), BadParam> {
        if self.floor == Nanos::ZERO && self.per_item == Nanos::ZERO {
            return Err(BadParam::new(
                "floor",
                "a pass that takes no time cannot be simulated",
                "give floor or per_item a positive duration",
            ));
        }
        if !(1.0..=100.0).contains(&self.sharpness) {
            return Err(BadParam::new(
                "sharpness",
                format!("sharpness lies between 1 and 100, it is {}", self.sharpness),
                "write 2 for a soft knee, 8 for a sharp one",
            ));
        }
        Ok(())
    }

    /// Service time of a batch of `items`, ns. The larger term is taken out of the root, so that
    /// no power overflows.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    #[expect(clippy::cast_precision_loss, reason = "2^53 ns is 104 days")]
    pub(super) fn service_ns(&self, items: u32) -> u64 {
        let floor = self.floor.0 as f64;
        let work = self.per_item.0 as f64 * f64::from(items);
        let (low, high) = if floor < work { (floor, work) } else { (work, floor) };
        if high == 0.0 {
            return 0;
        }
        let p = self.sharpness;
        (high * ((low / high).powf(p).ln_1p() / p).exp()).round() as u64
    }
}

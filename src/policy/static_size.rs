//! `static`: wait until exactly `max_batch_size` requests are queued, then start them.
//!
//! The textbook fixed batch, Neuts' (b, b) rule: no timer, so a partial batch waits for ever
//! (until the run flushes what its rule still holds). Its p99 is U-shaped in the rate: at a low
//! rate the batch takes long to fill, at a high one the queue is long.

use super::{Anchor, Law, check_cap};
use crate::tagged::{BadParam, params};
use crate::time::Nanos;

params! {
    /// Parameters of `static`.
    pub struct Static {
        /// Items in every batch.
        pub max_batch_size: u32,
    }
}

impl Static {
    pub(super) fn law(&self) -> Law {
        let (cap, target) = (self.max_batch_size, self.max_batch_size);
        Law { cap, target, wait: Nanos::MAX, anchor: Anchor::OldestArrival }
    }

    pub(super) fn check(&self) -> Result<(), BadParam> {
        check_cap(self.max_batch_size)
    }
}

//! `greedy`: whenever an instance is free and the queue is not empty, start
//! `min(queue, max_batch_size)` at once.
//!
//! Batches grow by themselves while the instance is busy. Equals `dynamic` with
//! `max_wait = "0ms"`; Triton's `max_queue_delay_microseconds: 0` without its look-ahead. Without
//! `max_batch_size` every waiting request is taken (Inoue's model, arXiv 1912.06322).

use super::{Law, check_cap};
use crate::tagged::{BadParam, params};

params! {
    /// Parameters of `greedy`.
    #[derive(Default)]
    pub struct Greedy {
        /// Most items in one batch; unbounded when left out.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub max_batch_size: Option<u32>,
    }
}

impl Greedy {
    pub(super) fn law(&self) -> Law {
        Law::greedy(self.max_batch_size.unwrap_or(u32::MAX))
    }

    pub(super) fn check(&self) -> Result<(), BadParam> {
        self.max_batch_size.map_or(Ok(()), check_cap)
    }
}

//! `none`: no batching. Every request runs alone, in order of arrival, as soon as an instance is
//! free. With Poisson arrivals and one instance this is the M/D/1 queue.
//!
//! Mirrors a model without dynamic batching: Triton with no `dynamic_batching` section,
//! TorchServe with `batchSize: 1`.

use super::Law;
use crate::tagged::params;

params! {
    /// Parameters of `none`: there are none.
    #[derive(Default)]
    pub struct Unbatched {}
}

impl Unbatched {
    #[expect(clippy::unused_self, reason = "as every policy with a law has it")]
    pub(super) fn law(&self) -> Law {
        Law::greedy(1)
    }
}

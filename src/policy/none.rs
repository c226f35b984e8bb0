//! `none`: no batching. Every request runs alone, in order of arrival, as soon as an instance is
//! free. With Poisson arrivals and one instance this is the M/D/1 queue.
//!
//! Mirrors a model without dynamic batching: Triton with no `dynamic_batching` section,
//! TorchServe with `batchSize: 1`.

use crate::tagged::params;

params! {
    /// Parameters of `none`: there are none.
    #[derive(Default)]
    pub struct Unbatched {}
}

//! Output analysis: warm-up, intervals, judgements.
//!
//! Quantiles are pooled over replications; their intervals come from sectioning (the replications
//! are the sections), never from order statistics of one autocorrelated run. `docs/MODEL.md` says
//! why.

pub mod burstiness;
mod difference;
mod judge;
mod mser;
mod sample;
mod section;

pub use difference::{Difference, Estimate, Measure};
pub use judge::{Evidence, holm};
pub use mser::mser5;
pub use sample::{line, mean, quantile_of_sorted};
#[cfg(feature = "schema")]
pub(crate) use section::standard_error;
pub use section::{half_width, t_quantile};

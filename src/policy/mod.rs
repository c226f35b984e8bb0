//! Batching policies: which requests leave together, and when.
//!
//! A policy hears events and issues commands through [`Cx`](crate::engine::Cx); it has no clock,
//! no agenda and no metrics of its own. One file per policy: its parameters, its rule in words,
//! its formula, the real server it mirrors. Adding one: `docs/EXTENDING.md`.

mod batcher;
mod dynamic;
mod greedy;
mod none;
mod reason;
mod size_or_timeout;
mod static_size;

use crate::tagged::{BadParam, tagged};
use crate::time::Nanos;
pub use batcher::{Batcher, Event, Interest, Promises};
pub use dynamic::{Anchor, Dynamic, MaxWait};
pub use greedy::Greedy;
pub use none::Unbatched;
pub use reason::{Law, Reason};
pub use size_or_timeout::SizeOrTimeout;
pub use static_size::Static;

tagged! {
    /// The parameters of a policy, as a scenario gives them.
    pub enum Policy {
        "none" => None(Unbatched),
        "static" => Static(Static),
        "greedy" => Greedy(Greedy),
        "dynamic" => Dynamic(Dynamic),
    }
}

impl Policy {
    /// Whether the parameters can be meant.
    ///
    /// # Errors
    /// The first parameter that cannot.
    pub fn check(&self) -> Result<(), BadParam> {
        match self {
            Self::None(_) => Ok(()),
            Self::Static(p) => p.check(),
            Self::Greedy(p) => p.check(),
            Self::Dynamic(p) => p.check(),
        }
    }

    /// The closed form of the rule, preferred sizes aside.
    #[must_use]
    pub fn law(&self) -> Law {
        let law = |cap, target, wait| Law { cap, target, wait, anchor: Anchor::OldestArrival };
        match self {
            Self::None(_) => law(1, 1, Nanos::ZERO),
            Self::Static(p) => law(p.max_batch_size, p.max_batch_size, Nanos::MAX),
            Self::Greedy(p) => law(p.max_batch_size.unwrap_or(u32::MAX), 1, Nanos::ZERO),
            Self::Dynamic(p) => p.law(),
        }
    }

    /// Whether [`law`](Self::law) says all there is to the rule.
    #[must_use]
    pub fn has_law(&self) -> bool {
        match self {
            Self::Dynamic(p) => p.preferred_batch_sizes.iter().all(|&s| s >= p.max_batch_size),
            Self::None(_) | Self::Static(_) | Self::Greedy(_) => true,
        }
    }

    /// The rule as the event engine runs it.
    #[must_use]
    pub fn batcher(&self) -> SizeOrTimeout {
        let preferred: &[u32] = match self {
            Self::Dynamic(p) => &p.preferred_batch_sizes,
            _ => &[],
        };
        SizeOrTimeout::new(self.law(), preferred)
    }

    /// Most requests in one batch; `None` is unbounded.
    #[must_use]
    pub fn cap(&self) -> Option<u32> {
        match self {
            Self::None(_) => Some(1),
            Self::Static(p) => Some(p.max_batch_size),
            Self::Greedy(p) => p.max_batch_size,
            Self::Dynamic(p) => Some(p.max_batch_size),
        }
    }
}

/// `max_batch_size` must be at least one.
fn check_cap(max_batch_size: u32) -> Result<(), BadParam> {
    if max_batch_size == 0 {
        return Err(BadParam::new(
            "max_batch_size",
            "a batch holds at least one item, max_batch_size is 0",
            "write 1 or more; for no batching use kind = \"none\"",
        ));
    }
    Ok(())
}

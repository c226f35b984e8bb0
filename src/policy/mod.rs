//! Batching policies: which requests leave together, and when.
//!
//! A policy hears events and issues commands through [`Cx`]; it has no clock,
//! no agenda and no metrics of its own. One file per policy: its parameters, its rule in words,
//! its formula, the real server it mirrors. Adding one: `docs/EXTENDING.md`.

mod batcher;
mod dynamic;
mod greedy;
mod litserve;
mod mosec;
mod none;
mod reason;
mod size_or_timeout;
mod static_size;
mod torchserve;
mod triton;

use crate::engine::Cx;
use crate::record::Gone;
use crate::tagged::{BadParam, tagged};
use crate::time::Nanos;
pub use batcher::{Batcher, Event, Interest, Promises};
pub use dynamic::{Anchor, Dynamic, MaxWait};
pub use greedy::Greedy;
pub use litserve::{LitServe, LitServeRelease, Windows};
pub use mosec::{Channel, Mosec, MosecRelease};
pub use none::Unbatched;
pub use reason::{Law, Reason};
pub use size_or_timeout::SizeOrTimeout;
pub use static_size::Static;
pub use torchserve::{BatchAggregator, TorchServe, TorchServeRelease};
pub use triton::{LevelPolicy, QueuePolicy, TimeoutAction, Triton, WakeRace};

tagged! {
    /// The parameters of a policy, as a scenario gives them.
    pub enum Policy {
        "none" => None(Unbatched),
        "static" => Static(Static),
        "greedy" => Greedy(Greedy),
        "dynamic" => Dynamic(Dynamic),
        "triton" => Triton(Triton),
        "torchserve" => TorchServe(TorchServe),
        "mosec" => Mosec(Mosec),
        "litserve" => LitServe(LitServe),
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
            Self::Triton(p) => p.check(),
            Self::TorchServe(p) => p.check(),
            Self::Mosec(p) => p.check(),
            Self::LitServe(p) => p.check(),
        }
    }

    /// The closed form of the rule, where that says all there is to it.
    #[must_use]
    pub fn law(&self) -> Option<Law> {
        match self {
            Self::Dynamic(p) if !p.has_no_preference() => None,
            other => other.textbook(),
        }
    }

    /// The size-or-timeout rule of a textbook policy, preferred sizes aside.
    #[must_use]
    pub fn textbook(&self) -> Option<Law> {
        match self {
            Self::None(p) => Some(p.law()),
            Self::Static(p) => Some(p.law()),
            Self::Greedy(p) => Some(p.law()),
            Self::Dynamic(p) => Some(p.law()),
            Self::Triton(_) | Self::TorchServe(_) | Self::Mosec(_) | Self::LitServe(_) => None,
        }
    }

    /// How long the rule may hold a request back although an instance is free; zero where a single
    /// request fills a batch.
    #[must_use]
    pub fn max_wait(&self) -> Nanos {
        match (self.textbook(), self) {
            (Some(law), _) if law.target > 1 => law.wait,
            (_, Self::Triton(p)) if p.max_batch_size > 1 => p.delay(),
            (_, Self::TorchServe(p)) if p.batch_size > 1 => p.delay(),
            (_, Self::Mosec(p)) if p.max_batch_size > 1 => p.wait(),
            (_, Self::LitServe(p)) => p.window(),
            _ => Nanos::ZERO,
        }
    }

    /// What the rule promises.
    #[must_use]
    pub fn promises(&self) -> Promises {
        struct Ask;

        impl Visit for Ask {
            type Out = Promises;

            fn visit<B: Batcher + Clone>(self, batcher: B) -> Promises {
                batcher.promises()
            }
        }

        self.visit(Ask)
    }

    /// Hands the rule, as the event engine runs it, to `visitor`.
    pub fn visit<V: Visit>(&self, visitor: V) -> V::Out {
        match self {
            Self::None(p) => visitor.visit(SizeOrTimeout::new(p.law(), &[])),
            Self::Static(p) => visitor.visit(SizeOrTimeout::new(p.law(), &[])),
            Self::Greedy(p) => visitor.visit(SizeOrTimeout::new(p.law(), &[])),
            Self::Dynamic(p) => {
                visitor.visit(SizeOrTimeout::new(p.law(), &p.preferred_batch_sizes))
            }
            Self::Triton(p) => visitor.visit(triton::Former::new(p)),
            Self::TorchServe(p) => visitor.visit(BatchAggregator::new(p)),
            Self::Mosec(p) => visitor.visit(Channel::new(p)),
            Self::LitServe(p) => visitor.visit(Windows::new(p)),
        }
    }

    /// Whether the policy itself keeps the queue short, whatever is offered.
    #[must_use]
    pub fn limits_queue(&self) -> bool {
        match self {
            Self::Triton(p) => p.limits_queue(),
            Self::TorchServe(_) | Self::Mosec(_) => true,
            _ => false,
        }
    }

    /// Whether `max_batch_size` is of requests, whatever items they carry.
    #[must_use]
    pub fn counts_requests(&self) -> bool {
        matches!(self, Self::TorchServe(_) | Self::Mosec(_) | Self::LitServe(_))
    }

    /// Items of a batch when the queue never empties; `None` is unbounded.
    #[must_use]
    pub fn saturated_batch(&self) -> Option<u32> {
        match self {
            Self::Triton(p) => Some(p.saturated_batch()),
            Self::TorchServe(p) => Some(p.saturated_batch()),
            other => other.cap(),
        }
    }

    /// Most items in one batch; `None` is unbounded.
    #[must_use]
    pub fn cap(&self) -> Option<u32> {
        match self {
            Self::None(_) => Some(1),
            Self::Static(p) => Some(p.max_batch_size),
            Self::Greedy(p) => p.max_batch_size,
            Self::Dynamic(p) => Some(p.max_batch_size),
            Self::Triton(p) => Some(p.max_batch_size),
            Self::TorchServe(p) => Some(p.batch_size),
            Self::Mosec(p) => Some(p.max_batch_size),
            Self::LitServe(p) => Some(p.max_batch_size),
        }
    }
}

/// Something done with a batcher, whatever its type.
pub trait Visit {
    /// What comes of it.
    type Out;

    /// Does it.
    fn visit<B: Batcher + Clone>(self, batcher: B) -> Self::Out;
}

/// The lane of policies that have one.
const LANE: u8 = 0;

/// How many requests in front of the lane came before `moment`.
fn came_before(moment: Nanos, cx: &Cx) -> u32 {
    let mut n = cx.queued(LANE);
    while let Some(rid) = n.checked_sub(1).and_then(|at| cx.waiting(LANE, at))
        && cx.arrival(rid) >= moment
    {
        n -= 1;
    }
    n
}

/// Refuses the requests at the front of the lane that have waited longer than their sources allow.
fn refuse_late(cx: &mut Cx) {
    if !cx.any_timeout() {
        return;
    }
    while let Some(rid) = cx.waiting(LANE, 0)
        && cx.deadline(rid).is_some_and(|deadline| cx.now() > deadline)
    {
        cx.refuse(LANE, 0, Gone::Expired, false);
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

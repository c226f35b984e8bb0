//! Faults on purpose: one-line changes of the dynamic policy that `check` must notice.
//!
//! They exist only under the feature `mutants`, which nothing but `tests/mutations.rs` turns on;
//! without it the macro `mutate!` is its second argument and nothing else is compiled.

#[cfg(feature = "mutants")]
pub use switch::{Mutant, set};

#[cfg(feature = "mutants")]
mod switch {
    use std::sync::atomic::{AtomicU8, Ordering};

    /// A fault.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    pub enum Mutant {
        /// Batches hold one request less than `max_batch_size`.
        CapOffByOne = 1,
        /// `min_batch_size` is not looked at.
        MinIgnored,
        /// `>` instead of `>=` for the size that starts a batch.
        TargetNeedsMore,
        /// The timer counts from the newest request.
        TimerFromNewest,
        /// The timer counts from when an instance finds the queue.
        AnchorPickup,
        /// With `pickup`, the timer starts again at every look.
        PickupMoves,
        /// The timer is set for twice `max_wait`.
        TimerTwice,
        /// The smallest preferred size leaves instead of the largest.
        SmallestPreferred,
        /// `<` instead of `<=` for preferred sizes.
        PreferredNeedsMore,
        /// A partial batch leaves at once, as if nothing more would arrive.
        DrainTooEarly,
        /// A partial batch stays although nothing more will arrive.
        NoDrain,
        /// The request that arrives at the instant a batch starts is not in it.
        TieLeftOut,
        /// The policy sleeps until one request more than it waits for.
        WakeLate,
        /// `<` instead of `<=` for the reason of a batch whose timer is due.
        ReasonTie,
    }

    impl Mutant {
        /// All of them.
        pub const ALL: [Self; 14] = [
            Self::CapOffByOne,
            Self::MinIgnored,
            Self::TargetNeedsMore,
            Self::TimerFromNewest,
            Self::AnchorPickup,
            Self::PickupMoves,
            Self::TimerTwice,
            Self::SmallestPreferred,
            Self::PreferredNeedsMore,
            Self::DrainTooEarly,
            Self::NoDrain,
            Self::TieLeftOut,
            Self::WakeLate,
            Self::ReasonTie,
        ];
    }

    static ACTIVE: AtomicU8 = AtomicU8::new(0);

    /// Turns one fault on, or all off, for the whole process.
    pub fn set(mutant: Option<Mutant>) {
        ACTIVE.store(mutant.map_or(0, |m| m as u8), Ordering::SeqCst);
    }

    pub(crate) fn is(mutant: Mutant) -> bool {
        ACTIVE.load(Ordering::Relaxed) == mutant as u8
    }
}

#[cfg(feature = "mutants")]
pub(crate) use switch::is;

/// `mutate!(Fault, right, wrong)`: right, unless that fault is turned on.
#[cfg(feature = "mutants")]
macro_rules! mutate {
    ($fault:ident, $right:expr, $wrong:expr) => {
        if $crate::mutant::is($crate::mutant::Mutant::$fault) { $wrong } else { $right }
    };
}

/// `mutate!(Fault, right, wrong)`: right.
#[cfg(not(feature = "mutants"))]
macro_rules! mutate {
    ($fault:ident, $right:expr, $wrong:expr) => {
        $right
    };
}

pub(crate) use mutate;

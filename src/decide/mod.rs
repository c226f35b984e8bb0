//! Decisions: a scenario in, an answer with its evidence out.
//!
//! `capacity` finds the highest rate at which all thresholds hold, and the fewest instances for a
//! load. It asks one setting (`setting`) at many rates: by the exact solution where there is one,
//! else by simulation under common random numbers (`sampled`). `scan` looks from capacity
//! downwards, because latency need not rise with the rate, and `root` closes in on the ends.
//!
//! `check` holds a scenario against its thresholds, the exact solution and a stored baseline;
//! `compare` holds two results against each other. `docs/CI.md` says what they claim.

mod baseline;
mod capacity;
mod change;
mod check;
mod compare;
mod fewest;
mod oracle;
mod root;
mod sampled;
mod scan;
mod setting;
mod tune;

pub use baseline::{key_changes, read_baseline, record};
pub use capacity::{Ask, Load, Method, NoAnswer, capacity, settings};
pub use change::{pair_up, shifts};
pub use check::{Question, check, simulate};
pub use compare::{compare, from_outcome};
pub use oracle::against_exact;
pub use tune::{NoTune, TuneAsk, contestants, tune, tuned_scenario};

//! Decisions: a scenario in, an answer with its evidence out.
//!
//! `capacity` finds the highest rate at which all thresholds hold, and the fewest instances for a
//! load. It asks one setting (`setting`) at many rates: by the exact solution where there is one,
//! else by simulation under common random numbers (`sampled`). `scan` looks from capacity
//! downwards, because latency need not rise with the rate, and `root` closes in on the ends.

mod capacity;
mod fewest;
mod root;
mod sampled;
mod scan;
mod setting;
mod tune;

pub use capacity::{Ask, Load, Method, NoAnswer, capacity, settings};
pub use tune::{NoTune, TuneAsk, contestants, tune, tuned_scenario};

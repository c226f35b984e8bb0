//! batchsim: which batching settings meet the latency objective, answered by simulation.
//!
//! ```text
//! scenario.toml ─ scenario ─ Scenario × axes × replications ─ study ─ Vec<Run>
//! Run ─ arrivals ─ engine ─ Summary ─ stats ─ Outcome ─ report | plot
//! ```
//! `time units arrivals cost policy engine record stats exact` form the core: no files, no
//! threads, no serialisation unless the feature `schema` is on. See `docs/ARCHITECTURE.md`.

pub mod arrivals;
pub mod cost;
pub mod engine;
pub mod exact;
#[doc(hidden)]
pub mod mutant;
pub mod number;
pub mod policy;
pub mod record;
pub mod recording;
pub mod rng;
pub mod stats;
mod tagged;
pub mod time;
#[cfg(feature = "schema")]
pub mod traps;
pub mod units;

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "schema")]
pub mod decide;
#[cfg(feature = "schema")]
pub mod interop;
#[cfg(feature = "schema")]
pub mod outcome;
#[cfg(feature = "plot")]
pub mod plot;
#[cfg(feature = "schema")]
pub mod report;
#[cfg(feature = "schema")]
pub mod scenario;
#[cfg(feature = "schema")]
pub mod study;

pub use tagged::BadParam;

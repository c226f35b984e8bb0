//! Decisions: what the numbers of a study come to.
//!
//! `check` holds a scenario against its thresholds, the exact solution and a stored baseline;
//! `compare` holds two results against each other. `docs/CI.md` says what they claim.

mod baseline;
mod change;
mod check;
mod compare;
mod oracle;

pub use baseline::{key_changes, read_baseline, record};
pub use change::{pair_up, shifts};
pub use check::{Question, check, simulate};
pub use compare::{compare, from_outcome};
pub use oracle::against_exact;

//! Studies: a scenario in, an [`Outcome`](crate::outcome::Outcome) out.
//!
//! `setup` turns a cell into what an engine needs, `cell` runs its replications in waves until
//! they are precise enough, `measure` and `verdict` turn summaries into numbers and judgements;
//! `run`, `curve`, `sweep` and `exact` put cells together. Work is spread over threads by cell and
//! replication and collected by index, so that the bytes do not depend on how many there are.

mod blame;
mod cell;
mod control;
mod curve;
mod exact;
mod explain;
mod measure;
mod observe;
mod relax;
mod run;
mod sections;
pub mod selfcheck;
mod setup;
mod shard;
mod sweep;
mod validate;
mod verdict;

pub use blame::{Blamed, Parts, Surroundings, blame};
pub use cell::{Budget, Measured, simulate};
pub use control::Control;
pub use curve::curve_points;
pub use exact::{Unsolved, exact, latency_of, solve as solve_exactly, solved};
pub use explain::{Explained, Question, explain};
pub use observe::{Look, Observed, Section, must_grow, observe, queue_is_limited};
pub use relax::relaxation;
pub use run::{
    CellDone, CellTask, Options, Ran, Stalled, outcome_frame, policy_info, run, run_sections,
    simulate_cell, simulate_sections, tasks, tool,
};
pub use setup::{Bench, Engine, Portion};
pub use shard::Shard;
pub use sweep::{SweepCell, axis_values, plan as plan_sweep, plan_over};
pub use validate::{
    FROZEN, Frozen, LoadTask, Model, Pacing, Path, fit, frozen, policy_of, textbook, validate,
    validate_loads,
};
pub use verdict::limits_ns;

//! Whether this build computes what it should: the exact solver against numbers computed
//! elsewhere and against closed forms, the engines against each other, against conservation laws
//! and against the exact solver, on as many threads as may be.
//!
//! The parts under test are handed in, so that a test can alter one and see that it is noticed.

mod bailey;
mod engines;
mod laws;
mod simulated;
mod theory;
mod worlds;

use super::{Bench, Portion};
use crate::exact::{Input, NotCovered, Rule, Solution};
use crate::scenario::Diagnostic;
pub use laws::Watch;
use serde::Serialize;

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What kind of check it is.
    pub group: &'static str,
    /// What was computed.
    pub what: String,
    /// Unit of the numbers; empty for shares.
    pub unit: &'static str,
    /// What it should be.
    pub expected: f64,
    /// What it is.
    pub got: f64,
    /// Got minus expected.
    pub difference: f64,
    /// Largest difference that is allowed, on either side.
    pub limit: f64,
    /// Whether the difference is within the limit.
    pub ok: bool,
}

impl Row {
    fn new(
        group: &'static str,
        what: impl Into<String>,
        unit: &'static str,
        expected: f64,
        got: f64,
        limit: f64,
    ) -> Self {
        let difference = got - expected;
        // What is not a number is within no limit.
        let ok = difference.abs() <= limit;
        Self { group, what: what.into(), unit, expected, got, difference, limit, ok }
    }

    /// A number of things that must be none.
    #[expect(clippy::cast_precision_loss, reason = "a handful")]
    fn none(group: &'static str, what: impl Into<String>, unit: &'static str, got: usize) -> Self {
        Self::new(group, what, unit, 0.0, got as f64, 0.0)
    }
}

/// A solver of batching rules, as [`crate::exact::solve`].
pub type Solver<'a> =
    &'a dyn Fn(&Input, &Rule, &dyn Fn(u32) -> f64) -> Result<Solution, NotCovered>;

/// Runs a portion of a cell into what watches it, as [`Bench::run`].
pub type Player<'a> = &'a dyn Fn(&Bench<'_>, Portion, &mut Watch);

/// The parts under test.
#[derive(Clone, Copy)]
pub struct Subjects<'a> {
    /// The exact solver.
    pub solve: Solver<'a>,
    /// The engines.
    pub play: Player<'a>,
    /// Changes to every scenario that is simulated to be compared with the solver: none.
    pub sets: &'a [String],
    /// Requests of each simulated cell that is compared with the solver: the more, the narrower
    /// the limits.
    pub requests: u64,
}

impl Default for Subjects<'_> {
    fn default() -> Self {
        let play = &|bench: &Bench<'_>, portion: Portion, watch: &mut Watch| {
            bench.run(portion, watch);
        };
        Self { solve: &crate::exact::solve, play, sets: &[], requests: 10_000_000 }
    }
}

/// Checks all parts.
///
/// # Errors
/// A change of [`Subjects::sets`] cannot be made.
pub fn selfcheck(subjects: &Subjects<'_>) -> Result<Vec<Row>, Vec<Diagnostic>> {
    let mut rows = theory::stored(subjects.solve);
    rows.extend(theory::closed_forms(subjects.solve));
    rows.extend(laws::rows(subjects.play)?);
    rows.extend(engines::rows());
    rows.push(simulated::threads()?);
    rows.extend(simulated::against_exact(subjects)?);
    Ok(rows)
}

//! Invariant 12: simulation agrees with exact results within sampling error.
//!
//! Every row of the reference tables is simulated in 20 independent replications. With the
//! standard error of the sections, half a histogram bin added in quadrature, no cell may be
//! further from the exact value than Student's t with 19 degrees of freedom allows at level
//! 0.001 over all cells together (Bonferroni). Seeds are fixed, so a pass stays a pass; and the
//! relative standard error is bounded (0.3 %; 1 % at load 0.95 and for p99.9), so that a pass
//! means something.
//!
//! A sample runs by default; BATCHSIM_THEORY=full simulates every row. A row that no scenario can
//! say would be counted as left out; there is none.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, unreachable_pub, dead_code)]

#[path = "theory_support/cases.rs"]
mod cases;
mod exact_support;
#[path = "theory_support/judge.rs"]
mod judge;
#[path = "common/worlds.rs"]
mod worlds;

use batchsim::policy::Anchor;
use cases::Which;
use judge::{Finding, Metric, Tally};
use rayon::prelude::*;

/// Rows and numbers of a full run and of the sample: none may go missing in silence.
const FULL: (usize, usize) = (891, 5774);
const SAMPLE: (usize, usize) = (77, 483);

#[test]
fn invariant_12_simulation_is_exact_theory() {
    let which = Which::from_environment();
    let (cases, left_out) = cases::all(which);
    let cells: usize = cases.iter().map(|c| c.cells.len()).sum();
    println!("{} rows with {cells} numbers; {left_out} cannot be said yet", cases.len());
    let expected = if which == Which::Full { FULL } else { SAMPLE };
    assert_eq!((cases.len(), cells), expected, "rows and numbers");
    let findings: Vec<Vec<Finding>> = cases.par_iter().map(judge::simulate).collect();
    let mut tally = Tally::default();
    findings.into_iter().for_each(|f| tally.add(f));
    tally.report("reference tables", cases.len());
}

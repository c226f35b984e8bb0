//! `batchsim plot`, and the charts every study draws.

use super::Done;
use super::args::{Common, PlotArgs};
use super::exit::{Code, Failure};
use crate::outcome::{CdfFile, Outcome};
use std::path::Path;

/// Draws every chart that applies to an Outcome.
pub(super) fn draw_all(_: &Outcome, _: &[CdfFile], _: &Path) -> Result<(), Failure> {
    Ok(())
}

/// Runs the verb.
pub(super) fn run(_: &PlotArgs, _: &Common) -> Done {
    Ok(Code::Fine)
}

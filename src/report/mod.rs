//! Reports: an Outcome as a table, Markdown, CSV or JSON.

mod annotations;
mod capacity;
mod cells;
mod check;
mod compare;
mod explain;
mod grid;
mod junit;
mod prometheus;
mod tune;
mod validate;

pub use crate::number::{count, decimals, plus_minus, points_or_percent, quantity, rate};
pub use annotations::annotations;
pub use capacity::{capacity_csv, capacity_lines, capacity_table, capacity_warnings};
pub use cells::{csv_cells, simulated, summary_table, verdict_lines, warning_lines};
pub use check::{
    Row, Weight, baseline_lines, check_csv, check_markdown, check_text, check_title, moved, rows,
};
pub use compare::{comparison_csv, comparison_markdown, comparison_text};
pub use explain::{explanation_csv, explanation_markdown, explanation_text};
pub use grid::{Align, Column, Grid};
pub use junit::junit;
pub use prometheus::{WATCHED, prometheus};
pub use tune::{tune_changes, tune_csv, tune_lines, tune_rest, tune_table};
pub use validate::{
    batch_law_table, fit_fragment, fit_table, loads_table, miss_lines, overhead_lines,
    validation_csv, validation_glance, validation_overview, validation_table, validation_title,
};

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Format {
    /// Aligned columns for a terminal.
    #[default]
    Table,
    /// The whole result for programs.
    Json,
    /// One line per cell, for spreadsheets.
    Csv,
    /// A table for a pull request or a wiki.
    Markdown,
}

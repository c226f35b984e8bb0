//! Choices that options offer.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Where to write annotations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum AnnotationsFor {
    /// For GitHub where it runs this
    #[default]
    Auto,
    /// For GitHub
    Github,
    /// None
    Never,
}

/// How a setting is examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(super) enum SearchMethod {
    /// Exactly where there is an exact solution, else by simulation
    #[default]
    Auto,
    /// Exactly, or not at all
    Exact,
    /// By simulation
    Simulation,
}

/// How `tune` searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum TuneMethod {
    /// Exactly where there is an exact solution, else by simulation
    #[default]
    Auto,
    /// Exactly, or not at all
    Exact,
    /// By simulation
    Simulation,
    /// As auto, and follow the common advice beside it: raise cap and wait while thresholds hold
    Ladder,
}

//! Exit codes, a public contract, and failures that lead to them.

use super::show::say;
use crate::scenario::Diagnostic;
use std::process::ExitCode;

/// How the program ended. Verdicts keep clear of 1 and 2, which `make` and shells use themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// Everything asked for was done (also overload and inconclusive verdicts, with a warning).
    Fine = 0,
    /// Something unexpected, or the disk.
    Unexpected = 1,
    /// The arguments or the scenario cannot be meant.
    Usage = 2,
    /// There was nothing to do.
    Nothing = 4,
    /// The simulated server can never answer what waits in it.
    Stall = 95,
    /// A verdict is open and `--inconclusive=fail` was given.
    Inconclusive = 96,
    /// No setting holds all thresholds, at any rate or with any number of instances.
    Infeasible = 97,
    /// The behaviour is not the recorded or not the exact one.
    Regression = 98,
    /// A threshold failed.
    Threshold = 99,
    /// Ctrl-C; what was complete is saved.
    Interrupted = 130,
    /// SIGTERM; what was complete is saved.
    Terminated = 143,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// Why a verb could not do what was asked.
#[derive(Debug)]
pub(super) enum Failure {
    /// The scenario, a trace or a configuration file is wrong.
    Input(Vec<Diagnostic>),
    /// The same, in words, for files that are not scenarios and for arguments.
    Usage {
        /// What is wrong, with the place.
        what: String,
        /// What to do instead.
        help: Option<String>,
    },
    /// There was nothing to do.
    Nothing(String),
    /// The disk or something else outside.
    Other(anyhow::Error),
}

impl Failure {
    pub(super) fn usage(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Usage { what: what.into(), help: Some(help.into()) }
    }

    /// Says what went wrong on standard error.
    pub(super) fn report(self, colour: bool) -> Code {
        match self {
            Self::Input(diagnostics) => {
                for diagnostic in diagnostics {
                    say(diagnostic.render(colour).trim_end());
                }
                Code::Usage
            }
            Self::Usage { what, help } => {
                say(&format!("error: {what}"));
                if let Some(help) = help {
                    say(&format!("help: {help}"));
                }
                Code::Usage
            }
            Self::Nothing(what) => {
                say(&format!("error: {what}"));
                Code::Nothing
            }
            Self::Other(error) => {
                say(&format!("error: {error:#}"));
                Code::Unexpected
            }
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

impl From<Vec<Diagnostic>> for Failure {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Self::Input(diagnostics)
    }
}

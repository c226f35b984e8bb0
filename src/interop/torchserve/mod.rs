//! TorchServe's configuration: a model's `model-config.yaml`, the server's `config.properties`.
//!
//! [`import`] writes the scenario of one model; [`export`] changes the values of a file that a
//! scenario sets otherwise, and nothing else.

mod config;
mod edit;
mod fragment;
mod properties;

pub use edit::{Exported, Setting, export};

use crate::scenario::{Diagnostic, Texts};
use config::Config;

/// A configuration file. A name that ends in `.properties` says which of the two it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, for messages.
    pub name: String,
    /// Its contents.
    pub text: String,
}

/// An imported model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The scenario as TOML. It runs as it is; placeholders are marked REPLACE.
    pub toml: String,
    /// What the scenario does not show, one sentence or more each. They also stand as comments in
    /// the scenario.
    pub notes: Vec<String>,
    /// Keys that do not shape the scenario, in the order of the files.
    pub ignored: Vec<Ignored>,
}

/// A key of a configuration that does not shape the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Its path, as in `models.bert.1.0.marName`.
    pub path: String,
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Why it has no effect.
    pub why: &'static str,
}

/// Reads the configuration of a model, from its own file, the server's, or both, and writes the
/// scenario for it. `model` is `NAME` or `NAME:VERSION`, where the server's file has several.
///
/// What both files set counts as TorchServe counts it: the model's own file where that is above 0,
/// then the server's, then the default.
///
/// # Errors
/// Everything that cannot be read, is not a number that TorchServe takes, or asks for a way of
/// batching that is not simulated, with its place.
pub fn import(files: &[File], model: Option<&str>) -> Result<Imported, Vec<Diagnostic>> {
    let mut texts = Texts::default();
    Config::read(files, model, &mut texts)
        .map(|config| fragment::write(&config, &texts))
        .map_err(|problems| problems.into_iter().map(|p| texts.diagnose(p)).collect())
}

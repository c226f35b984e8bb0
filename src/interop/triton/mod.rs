//! Triton's `config.pbtxt`: the batching of a model as a scenario to start from, and back.
//!
//! [`import`] writes the policy `triton` with every setting that decides how batches form, or on
//! demand the textbook policy `dynamic`, with notes on where that and the server part.

mod edit;
mod export;
pub(super) mod fragment;
mod model;
mod notes;
mod reader;
pub mod text;

use std::fmt;

pub use export::{Exported, Setting, export, fields};

/// An imported model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Name of the scenario, from the model's.
    pub name: String,
    /// The scenario as TOML. It runs as it is; placeholders are marked REPLACE.
    pub toml: String,
    /// What Triton does with this configuration and the scenario does not, one sentence or more
    /// each. They also stand as comments in the scenario.
    pub notes: Vec<String>,
    /// Fields that do not shape the scenario, in the order of the file, each path once.
    pub ignored: Vec<Ignored>,
}

/// A field of the configuration that does not shape the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Its path, as in `dynamic_batching.preserve_ordering`.
    pub path: String,
    /// Line where it first stands, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
    /// Why it has no effect.
    pub why: &'static str,
}

/// Something in the configuration that is wrong: where, what, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseProblem {
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
    /// One sentence: what is wrong.
    pub message: String,
    /// What to write or do instead.
    pub help: String,
}

impl ParseProblem {
    fn at(text: &str, byte: usize, message: impl Into<String>, help: &str) -> Self {
        let (line, column) = text::place(text, byte);
        Self { line, column, message: message.into(), help: help.to_owned() }
    }
}

impl fmt::Display for ParseProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseProblem {}

/// Which policy a fragment names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// `triton`: the batcher of the server.
    #[default]
    Triton,
    /// `dynamic`: the rule that its documentation describes.
    Textbook,
}

/// Reads a `config.pbtxt` and writes the scenario for it.
///
/// # Errors
/// The first place that is not protobuf text format, or else every field that Triton would
/// refuse when it loads the model, and schedulers that no policy stands in for, in the order
/// of the file.
pub fn import(text: &str, rule: Rule) -> Result<Imported, Vec<ParseProblem>> {
    let (model, mut ignored) = model_of(text)?;
    ignored.sort_by_key(|field| (field.line, field.column));
    let name = fragment::scenario_name(&model);
    let notes = notes::notes(&model, rule);
    let toml = fragment::toml(&name, &model, rule, &notes, &ignored);
    Ok(Imported { name, toml, notes, ignored })
}

/// The batching of a configuration, and the fields that do not shape it.
fn model_of(text: &str) -> Result<(model::Model, Vec<Ignored>), Vec<ParseProblem>> {
    let root = text::parse(text).map_err(|problem| vec![problem])?;
    if root.fields.is_empty() {
        let help = "a configuration has at least name, backend and max_batch_size";
        return Err(vec![ParseProblem::at(text, 0, "the configuration is empty", help)]);
    }
    let mut reader = reader::Reader::new(text);
    let model = model::read(&mut reader, &root);
    let (mut problems, ignored) = (reader.problems, reader.ignored);
    if !problems.is_empty() {
        problems.sort_by_key(|problem| (problem.line, problem.column));
        return Err(problems);
    }
    Ok((model, ignored))
}

//! What `compare` finds.

use super::{Change, Finding, Judgement, KeyChange, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One of the two results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// The file or folder as it was given.
    pub file: String,
    /// The build that made it.
    pub tool: Tool,
    /// Seed of all random streams.
    pub seed: u64,
}

/// A cell in both results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellComparison {
    /// Label of the policy; `a → b` where the only policy of each has another name.
    pub label: String,
    /// Where in a sweep.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub coords: BTreeMap<String, String>,
    /// Its numbers, from the first to the second.
    pub changes: Vec<Change>,
}

/// A judged `--fail-on`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitCheck {
    /// The condition as written.
    pub expr: String,
    /// Label of the policy.
    pub label: String,
    /// Fail when the change is shown to be beyond the limit, pass when it is shown not to be.
    pub judgement: Judgement,
    /// The change with its interval, in words.
    pub evidence: String,
}

/// What `compare` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Version of the schema, 1.
    pub schema: u32,
    /// What made this comparison.
    pub tool: Tool,
    /// The first result.
    pub a: Side,
    /// The second one.
    pub b: Side,
    /// Whether sections were paired (same seed, generator and replications).
    pub paired: bool,
    /// Relative margin within which numbers count as the same.
    pub margin: f64,
    /// Keys of the scenario that differ.
    pub scenario_changes: Vec<KeyChange>,
    /// Cells that both have.
    pub cells: Vec<CellComparison>,
    /// Judged conditions.
    pub limits: Vec<LimitCheck>,
    /// What a reader should know.
    pub warnings: Vec<String>,
    /// What the conditions come to.
    pub finding: Finding,
}

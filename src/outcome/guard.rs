//! What `check` and `compare` keep and find.

use super::{Cell, Judgement, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which direction of a number is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Latencies and losses.
    Lower,
    /// Throughput and attainment.
    Higher,
    /// Behaviour: sizes of batches, why they left, how busy instances are.
    Neither,
}

/// One number of a cell, pooled and in every section (replication).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// What it is: `mean`, `p(99)`, `throughput`, `attainment(50ms)`, `reason timer`, ….
    pub metric: String,
    /// `ms`, `/s`, `share` or empty.
    pub unit: String,
    /// Which direction is good.
    pub better: Better,
    /// Over all sections together.
    pub value: f64,
    /// In each section. Empty where there is no interval: exact solutions, and results whose
    /// sections were not kept.
    pub sections: Vec<f64>,
    /// Standard error, where it is known without the sections; 0 for an exact solution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StandardError>,
}

/// A standard error and the replications it was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StandardError {
    /// In the unit of the number.
    pub value: f64,
    /// How many replications.
    pub replications: u32,
}

/// The numbers of one cell, section by section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellSections {
    /// Label of the policy, as in the cell.
    pub label: String,
    /// Its numbers.
    pub series: Vec<Series>,
}

/// `sections.json`, a side file of a run: what a paired comparison needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sections {
    /// Version of the schema, 1.
    pub schema: u32,
    /// In the order of the Outcome's cells.
    pub cells: Vec<CellSections>,
}

/// A cell of a baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedCell {
    /// The cell as the Outcome has it.
    pub cell: Cell,
    /// Its numbers, section by section.
    pub series: Vec<Series>,
}

/// A stored result that later ones are held against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    /// Version of the schema, 1.
    pub schema: u32,
    /// Always `baseline`, so that the file is known for what it is.
    pub study: String,
    /// The build that made it.
    pub tool: Tool,
    /// SHA-256 of `scenario` as compact JSON.
    pub scenario_sha256: String,
    /// The scenario as it was understood.
    pub scenario: serde_json::Value,
    /// Seed of all random streams.
    pub seed: u64,
    /// Name of the generator.
    pub rng: String,
    /// One per server and policy.
    pub cells: Vec<RecordedCell>,
}

/// A key of the scenario that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyChange {
    /// Its path, as `--set` writes it where it can.
    pub path: String,
    /// Before, as JSON; absent where the key is new.
    pub old: Option<String>,
    /// Now; absent where the key is gone.
    pub new: Option<String>,
}

/// What a changed number comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shift {
    /// The same in every section.
    Identical,
    /// The interval lies within the margin.
    Equivalent,
    /// Neither: a longer run would tell.
    Undecided,
    /// Beyond the margin, in the good direction.
    Better,
    /// Beyond the margin, in the bad direction.
    Worse,
    /// Beyond the margin, where no direction is good.
    Changed,
}

/// A number then and now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What it is, as in [`Series`].
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Before.
    pub old: f64,
    /// Now.
    pub new: f64,
    /// Now ÷ before − 1; for shares now − before.
    pub change: f64,
    /// Half-width of the two-sided 95 % interval of `change`; absent without replications.
    pub half_width: Option<f64>,
    /// How large a change is too small to matter, in the measure of `change`.
    pub margin: f64,
    /// What it comes to.
    pub shift: Shift,
}

/// Where a difference comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// There is none: the numbers are the same.
    None,
    /// The scenario; this build gives the old numbers for the old scenario.
    Scenario,
    /// The build; the scenario is the same.
    Build,
    /// Both: this build gives other numbers for the old scenario as well.
    Both,
    /// Neither the scenario nor the version nor the commit changed.
    Neither,
}

/// What a scenario was held against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Against {
    /// The file of the baseline.
    pub file: String,
    /// The build that made it.
    pub tool: Tool,
    /// Whether sections were paired (same seed, generator and replications).
    pub paired: bool,
    /// Keys of the scenario that differ.
    pub scenario_changes: Vec<KeyChange>,
    /// Whether version or commit differ.
    pub build_changed: bool,
    /// Where the difference comes from.
    pub cause: Cause,
    /// The same in words.
    pub because: String,
    /// Cells of the baseline that the scenario no longer has.
    pub missing: Vec<String>,
    /// Cells of the scenario that the baseline does not have.
    pub unknown: Vec<String>,
}

/// A place in a file, from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spot {
    /// The file as it was given.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// A judged threshold and where it is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThresholdCheck {
    /// The threshold as written.
    pub expr: String,
    /// The class it is about, when it names one.
    pub class: Option<String>,
    /// What it came to.
    pub judgement: Judgement,
    /// The number behind it, in words with its interval.
    pub evidence: String,
    /// Its place in the scenario.
    pub spot: Option<Spot>,
}

/// A simulated number against the exact one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExactCheck {
    /// What it is.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Simulated.
    pub simulated: f64,
    /// Exact.
    pub exact: f64,
    /// How far apart they may lie, all numbers of the scenario together at level 0.001.
    pub allowed: f64,
    /// Whether they agree.
    pub agrees: bool,
}

/// What `check` found about one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellCheck {
    /// Label of the policy.
    pub label: String,
    /// Judged thresholds.
    pub thresholds: Vec<ThresholdCheck>,
    /// Numbers against the exact solution; empty where it does not cover the cell.
    pub exact: Vec<ExactCheck>,
    /// Whether the cell is the baseline's to the byte; absent without one.
    pub identical: Option<bool>,
    /// Numbers against the baseline; empty without one.
    pub changes: Vec<Change>,
}

/// What a check comes to, the worst last.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// Everything holds.
    Pass,
    /// Something is open.
    Inconclusive,
    /// The behaviour is not the recorded one, or not the exact one.
    Regression,
    /// A threshold failed.
    Threshold,
}

/// What `check` found about one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioCheck {
    /// Its file as it was given.
    pub file: String,
    /// Its name.
    pub name: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Relative margin within which numbers count as the same.
    pub margin: f64,
    /// What it was held against, when there is a baseline.
    pub against: Option<Against>,
    /// One per server and policy.
    pub cells: Vec<CellCheck>,
    /// What a reader should know.
    pub warnings: Vec<String>,
    /// What it comes to.
    pub finding: Finding,
}

/// What `check` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Version of the schema, 1.
    pub schema: u32,
    /// What made this result.
    pub tool: Tool,
    /// One per scenario.
    pub scenarios: Vec<ScenarioCheck>,
    /// What it comes to, the worst of all.
    pub finding: Finding,
}

impl Finding {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Inconclusive => "inconclusive",
            Self::Regression => "REGRESSION",
            Self::Threshold => "FAIL",
        }
    }
}

impl Shift {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Identical => "identical",
            Self::Equivalent => "equivalent",
            Self::Undecided => "undecided",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Changed => "changed",
        }
    }

    /// Whether the number moved beyond the margin.
    #[must_use]
    pub const fn is_different(self) -> bool {
        matches!(self, Self::Better | Self::Worse | Self::Changed)
    }
}

impl Against {
    /// Whether a difference in this direction is a regression. Where the scenario changed, numbers
    /// are meant to move and only the bad direction counts; where it did not, the build simulates
    /// something else, and any direction does.
    #[must_use]
    pub const fn counts(&self, shift: Shift) -> bool {
        match self.cause {
            Cause::None | Cause::Scenario => matches!(shift, Shift::Worse),
            Cause::Build | Cause::Both | Cause::Neither => shift.is_different(),
        }
    }
}

impl Cell {
    /// Label and place in a sweep, what cells are matched by.
    #[must_use]
    pub fn key(&self) -> (&str, &BTreeMap<String, String>) {
        (&self.policy.label, &self.coords)
    }
}

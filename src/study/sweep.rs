//! `sweep`: a grid over any fields.

use super::cell::Budget;
use super::control::Control;
use super::exact::solved;
use super::run::{CellDone, CellTask, Options, SMALL, simulate_cell};
use crate::outcome::{AxisValues, Cell};
use crate::scenario::{Axis, Diagnostic, Loaded, Scenario};
use std::collections::BTreeMap;

/// One cell of a sweep, as pure data: its place, policy and server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepCell {
    /// Path to value, only for the axes that concern this policy.
    pub coords: BTreeMap<String, String>,
    /// Number of the policy.
    pub policy: usize,
    /// Number of the server.
    pub server: usize,
}

/// All cells of a sweep, in index order: servers, policies, then the axes with the last running
/// fastest. An axis that belongs to one policy (`dynamic.max_wait`) leaves the others alone: they
/// appear once for every combination of the axes that do concern them.
#[must_use]
pub fn plan(scenario: &Scenario) -> Vec<SweepCell> {
    plan_over(scenario, &scenario.sweep)
}

/// The same for any axes.
#[must_use]
pub fn plan_over(scenario: &Scenario, axes: &[Axis]) -> Vec<SweepCell> {
    let mut cells = Vec::new();
    for server in 0..scenario.servers.len() {
        for policy in 0..scenario.policies.len() {
            let axes = axes.iter().filter(|a| concerns(scenario, a, policy, server));
            let mut coords: Vec<BTreeMap<String, String>> = vec![BTreeMap::new()];
            for axis in axes {
                coords = coords
                    .iter()
                    .flat_map(|at| {
                        axis.values.iter().map(|value| {
                            let mut at = at.clone();
                            at.insert(axis.path.clone(), value.clone());
                            at
                        })
                    })
                    .collect();
            }
            cells.extend(coords.into_iter().map(|coords| SweepCell { coords, policy, server }));
        }
    }
    cells
}

/// Whether an axis changes a policy on a server: unless it addresses another one by label.
fn concerns(scenario: &Scenario, axis: &Axis, policy: usize, server: usize) -> bool {
    // Labels may hold dots: the longest that the path starts with is meant.
    let addressed =
        |label: &str| axis.path.strip_prefix(label).is_some_and(|rest| rest.starts_with('.'));
    let policies = scenario.policies.iter().enumerate().map(|(i, p)| (Some(i), None, &*p.label));
    let servers = scenario.servers.iter().enumerate();
    let servers = servers.filter_map(|(i, s)| Some((None, Some(i), s.label.as_deref()?)));
    let meant = policies.chain(servers).filter(|(_, _, label)| addressed(label));
    match meant.max_by_key(|(_, _, label)| label.len()) {
        Some((p, s, _)) => p.is_none_or(|p| p == policy) && s.is_none_or(|s| s == server),
        None => true,
    }
}

impl SweepCell {
    /// Simulates this cell; `None` when it was stopped from outside.
    ///
    /// # Errors
    /// The scenario does not read with these coordinates.
    pub fn simulate(
        &self,
        loaded: &Loaded,
        options: &Options,
        control: &Control,
    ) -> Result<Option<CellDone>, Vec<Diagnostic>> {
        let scenario = self.scenario(loaded)?;
        let precision = options.precision.unwrap_or(if scenario.run.precision_given {
            scenario.run.precision
        } else {
            SMALL.precision
        });
        let cap = scenario.run.max_requests.unwrap_or(SMALL.cap);
        let task = CellTask {
            scenario: &scenario,
            server: &scenario.servers[self.server],
            policy: &scenario.policies[self.policy],
            coords: self.coords.clone(),
            budget: Budget { precision, cap, ..SMALL },
            engine: options.engine,
            judged: true,
            distribution: false,
        };
        Ok(simulate_cell(&task, control))
    }

    /// Solves this cell exactly; inside, in words, why there is no exact solution.
    ///
    /// # Errors
    /// The scenario does not read with these coordinates.
    pub fn solve(&self, loaded: &Loaded) -> Result<Result<Cell, String>, Vec<Diagnostic>> {
        let scenario = self.scenario(loaded)?;
        let (server, policy) = (&scenario.servers[self.server], &scenario.policies[self.policy]);
        Ok(solved(&scenario, server, policy)
            .map(|(cell, _)| Cell { coords: self.coords.clone(), ..cell }))
    }

    fn scenario(&self, loaded: &Loaded) -> Result<Scenario, Vec<Diagnostic>> {
        let coords: Vec<(&str, &str)> =
            self.coords.iter().map(|(path, value)| (path.as_str(), value.as_str())).collect();
        loaded.cell(&coords)
    }
}

/// The axes of a sweep with their values as numbers, for charts.
#[must_use]
pub fn axis_values(scenario: &Scenario) -> Vec<AxisValues> {
    scenario
        .sweep
        .iter()
        .map(|axis| {
            let (numbers, unit) = numbers(&axis.values);
            AxisValues { path: axis.path.clone(), values: axis.values.clone(), numbers, unit }
        })
        .collect()
}

/// Values as numbers of one unit; their positions when they are not numbers.
#[expect(clippy::cast_precision_loss, reason = "positions")]
fn numbers(values: &[String]) -> (Vec<f64>, String) {
    use crate::units::{parse_duration, parse_fraction, parse_rate};
    let all = |read: &dyn Fn(&str) -> Option<f64>| -> Option<Vec<f64>> {
        values.iter().map(|v| read(v.trim_matches('"'))).collect()
    };
    let duration = |v: &str| parse_duration(v).ok().map(|t| t.as_ms());
    if let Some(ms) = all(&duration) {
        return (ms, "ms".into());
    }
    if let Some(rates) = all(&|v| parse_rate(v).ok().map(|r| r.per_s())) {
        return (rates, "/s".into());
    }
    if let Some(shares) = all(&|v| parse_fraction(v).ok().map(|f| f.get() * 100.0)) {
        return (shares, "%".into());
    }
    if let Some(plain) = all(&|v| v.parse().ok()) {
        return (plain, String::new());
    }
    ((0..values.len()).map(|i| i as f64).collect(), String::new())
}

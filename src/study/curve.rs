//! The throughput–latency curve: every policy at rising rates.

use super::cell::Budget;
use super::control::Control;
use super::run::{CellTask, Options, SMALL, simulate_cell};
use crate::outcome::Cell;
use crate::scenario::{CurvePoints, Labelled, Scenario, Server};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// The points of the scenario's curve, policy by policy in order of rate; empty without one, and
/// where the arrivals have no rate to vary (a closed loop).
#[must_use]
pub fn curve_points(scenario: &Scenario, options: &Options, control: &Control) -> Vec<Cell> {
    let Some(curve) = &scenario.curve else { return Vec::new() };
    let mut points: Vec<(&Server, &Labelled, Scenario)> = Vec::new();
    for server in &scenario.servers {
        for policy in &scenario.policies {
            for rate in rates(scenario, &curve.points, server, policy) {
                if let Some(mut scaled) = scenario.with_total_rate(rate) {
                    // A point of a curve takes no more than its share of a long run.
                    scaled.run.requests = scaled.run.requests.map(|n| n.min(SMALL.cap));
                    points.push((server, policy, scaled));
                }
            }
        }
    }
    let precision = options.precision.unwrap_or(curve.precision);
    let cap = scenario.run.max_requests.map_or(SMALL.cap, |most| most.min(SMALL.cap));
    let budget = Budget { precision, cap, ..SMALL };
    let cells: Vec<Option<Cell>> = points
        .par_iter()
        .map(|(server, policy, scenario)| {
            let task = CellTask {
                scenario,
                server,
                policy,
                coords: BTreeMap::new(),
                budget,
                engine: options.engine,
                judged: false,
                distribution: false,
            };
            let mut cell = simulate_cell(&task, control)?.cell;
            // A curve shows latencies against rates; sizes are in the cells of the run.
            cell.batch_size.histogram.clear();
            Some(cell)
        })
        .collect();
    cells.into_iter().flatten().collect()
}

/// Offered rates for one policy. A policy without a capacity has no loads.
fn rates(
    scenario: &Scenario,
    points: &CurvePoints,
    server: &Server,
    policy: &Labelled,
) -> Vec<f64> {
    match points {
        CurvePoints::Rates(rates) => rates.clone(),
        CurvePoints::Loads(loads) => {
            let capacity = scenario.capacity_per_s(server, &policy.policy);
            capacity.map_or_else(Vec::new, |c| loads.iter().map(|load| load * c).collect())
        }
    }
}

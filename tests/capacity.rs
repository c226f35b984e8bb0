//! `capacity`: the highest rate with all thresholds met, against the reference table, against brute
//! force, and by what its intervals claim.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, unreachable_pub)]

mod exact_support;
#[path = "common/worlds.rs"]
mod worlds;

use batchsim::decide::{Ask, Load, Method, capacity, settings};
use batchsim::exact::solve;
use batchsim::outcome::capacity::{CapacityCell, RateEnd};
use batchsim::policy::{Anchor, Policy};
use batchsim::scenario::{Metric, Op, Scenario, Threshold};
use batchsim::stats::t_quantile;
use batchsim::study::{Control, Options, run};
use exact_support::Table;
use std::process::Command;
use worlds::{dynamic, fixed, gamma, greedy, linear, none, poisson, world};

fn p99_below(limit: f64) -> Threshold {
    let expr = format!("p(99) <= {limit}ms");
    Threshold { expr, metric: Metric::Quantile(0.99), op: Op::AtMost, limit, class: None, policy: None }
}

fn ask(method: Method) -> Ask {
    Ask { method, ..Ask::default() }
}

fn answer(world: &Scenario, ask: &Ask) -> CapacityCell {
    capacity(world, (0, 0), Default::default(), ask, &Control::default()).unwrap()
}

fn policy(name: &str, cap: u32, wait_ms: f64) -> Policy {
    match name {
        "none" => none(),
        "greedy" => greedy(Some(cap)),
        "static" => fixed(cap),
        "timeout_enqueue" => dynamic(cap, wait_ms, Anchor::OldestArrival),
        "timeout_pickup" => dynamic(cap, wait_ms, Anchor::Pickup),
        other => panic!("{other}"),
    }
}

/// One row of the table as a scenario that offers half the capacity.
fn row_world(table: &Table, row: &[String]) -> Scenario {
    let cap = table.num(row, "max_batch") as u32;
    let policy = policy(table.text(row, "policy"), cap, table.num(row, "max_wait_ms"));
    let offered = 0.5 * linear().capacity_per_s(Some(cap), 1).unwrap();
    let mut world = world(poisson(offered), linear(), policy);
    world.thresholds = vec![p99_below(table.num(row, "slo_p99_ms"))];
    world
}

/// Every row of the table, windows and infeasible rows included.
#[test]
fn every_row_of_the_table_exactly() {
    let table = Table::read("max_rate_slo");
    let mut counts = [0; 3];
    let mut worst: f64 = 0.0;
    let rows = table.sample();
    for row in &rows {
        let at = row[..4].join(",");
        let cell = answer(&row_world(&table, row), &ask(Method::Exact));
        let want = table.text(row, "max_rate_per_s");
        if want.is_empty() {
            assert_eq!((cell.feasible, cell.max_rate_per_s), (Some(false), None), "{at}");
            let best = cell.best.unwrap();
            assert!(best.value > best.limit && best.unit == "ms", "{at}: {best:?}");
            counts[0] += 1;
            continue;
        }
        let window = cell.window().unwrap_or_else(|| panic!("{at}: {cell:?}"));
        assert_eq!((cell.windows.len(), &window.high.binds), (1, &cell.thresholds[0]), "{at}");
        let off = (window.high.rate_per_s / want.parse::<f64>().unwrap() - 1.0).abs();
        // Seven digits are printed.
        assert!(off <= 1e-6, "{at}: {} instead of {want}", window.high.rate_per_s);
        worst = worst.max(off);
        let load: f64 = table.text(row, "load_at_max").parse().unwrap();
        assert!((window.high.load.unwrap() - load).abs() <= 1e-6, "{at}");
        let least = table.text(row, "min_feasible_rate_per_s");
        if least.starts_with("0 ") {
            assert_eq!(window.low, None, "{at}");
            counts[1] += 1;
        } else {
            let low = window.low.as_ref().unwrap_or_else(|| panic!("{at}")).rate_per_s;
            let want: f64 = least.parse().unwrap();
            assert!((low / want - 1.0).abs() <= 1e-5, "{at}: {low} instead of {want}");
            counts[2] += 1;
        }
    }
    println!("{} rows, {counts:?}, largest relative difference {worst:.1e}", rows.len());
    if exact_support::step() == 1 {
        assert_eq!((counts, table.rows.len()), ([17, 100, 6], 123));
    }
}

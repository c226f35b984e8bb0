//! The exact solver against reference tables computed independently (other language, other
//! quadrature, lattice costs only).

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, unreachable_pub)]

mod exact_support;

use batchsim::exact::{Input, Solution, solve};
use exact_support::{Check, Printed, Table, linear, poisson, rule};

/// One row of the two tables of Poisson results.
fn check_row(check: &mut Check, table: &Table, row: &[String], s: &Solution) {
    let at = row[..5].join(",");
    let ten = Printed::Digits(10);
    let mut cell =
        |column: &str, got: f64| check.close(&at, column, got, table.text(row, column), ten);
    cell("mean_ms", s.mean_ms());
    cell("p50_ms", s.quantile_ms(0.5));
    cell("p90_ms", s.quantile_ms(0.9));
    cell("p95_ms", s.quantile_ms(0.95));
    cell("p99_ms", s.quantile_ms(0.99));
    cell("p999_ms", s.quantile_ms(0.999));
    cell("sd_ms", s.sd_ms());
    cell("mean_batch", s.mean_batch());
    cell("utilization", s.utilization());
    cell("mean_in_system", s.mean_in_system());
    for (column, q) in [("pdf50_per_ms", 0.5), ("pdf99_per_ms", 0.99), ("pdf999_per_ms", 0.999)] {
        let want = table.text(row, column);
        if want == "atom" || s.is_atom(q) {
            let got = if s.is_atom(q) { "atom" } else { "density" };
            check.equal(&at, column, got, want);
        } else {
            let density = s.density_per_ms(s.quantile_ms(q));
            check.close(&at, column, density, want, Printed::Digits(6));
        }
    }
    check.within(&at, "mass", s.mass_error(), 0.0, 1e-11);
    check.within(&at, "mean by law", s.mean_by_law_ms(), s.mean_ms(), 1e-10 * s.mean_ms());
}

fn poisson_table(name: &'static str, by_load: bool, full: (usize, usize)) {
    let table = Table::read(name);
    let mut check = Check::default();
    let rows = table.sample();
    for row in &rows {
        let cap = table.num(row, "max_batch") as u32;
        let capacity = 1000.0 * f64::from(cap) / linear(cap);
        let rate =
            if by_load { table.num(row, "load") * capacity } else { table.num(row, "rate_per_s") };
        let rule = rule(table.text(row, "policy"), cap, table.num(row, "max_wait_ms"));
        let solution = solve(&poisson(rate), &rule, &linear).unwrap();
        check_row(&mut check, &table, row, &solution);
    }
    check.finish(&table, rows.len(), full);
}

#[test]
fn batch_poisson_load() {
    poisson_table("batch_poisson_load", true, (320, 320 * 15));
}

#[test]
fn batch_poisson_rate() {
    poisson_table("batch_poisson_rate", false, (219, 219 * 15));
}

#[test]
fn mmpp() {
    let table = Table::read("mmpp");
    let mut check = Check::default();
    for row in &table.rows {
        let at = row[..6].join(",");
        let get = |c: &str| table.num(row, c);
        let input = Input::Mmpp2 {
            rates_per_s: [get("rate_hi_per_s"), get("rate_lo_per_s")],
            dwells_ms: [get("mean_dwell_hi_ms"), get("mean_dwell_lo_ms")],
        };
        let rule = rule(table.text(row, "policy"), get("max_batch") as u32, 0.0);
        let s = solve(&input, &rule, &linear).unwrap();
        let mut cell = |column: &str, got: f64| {
            check.close(&at, column, got, table.text(row, column), Printed::Digits(9));
        };
        cell("mean_rate_per_s", s.throughput_per_s());
        cell("mean_ms", s.mean_ms());
        cell("p50_ms", s.quantile_ms(0.5));
        cell("p90_ms", s.quantile_ms(0.9));
        cell("p95_ms", s.quantile_ms(0.95));
        cell("p99_ms", s.quantile_ms(0.99));
        cell("p999_ms", s.quantile_ms(0.999));
        cell("mean_batch", s.mean_batch());
        cell("utilization", s.utilization());
        check.within(&at, "mass", s.mass_error(), 0.0, 1e-11);
        check.within(&at, "mean by law", s.mean_by_law_ms(), s.mean_ms(), 1e-10 * s.mean_ms());
    }
    check.finish(&table, table.rows.len(), (6, 66));
}

#[test]
fn latency_cdf() {
    let table = Table::read("latency_cdf");
    let mut check = Check::default();
    let rows = table.sample();
    let mut solved = Solved::default();
    for row in &rows {
        let s = solved.get(&table, row);
        let at = row[..5].join(",");
        let (below, upto) = s.cdf(table.num(row, "t_ms"));
        for (column, got) in [("P(latency<t)", below), ("P(latency<=t)", upto)] {
            check.close(&at, column, got, table.text(row, column), Printed::Decimals(10));
        }
    }
    check.finish(&table, rows.len(), (table.rows.len(), 2 * table.rows.len()));
}

#[test]
fn batch_pmf() {
    let table = Table::read("batch_pmf");
    let mut check = Check::default();
    let rows = table.sample();
    let mut solved = Solved::default();
    for row in &rows {
        let s = solved.get(&table, row);
        let at = row[..5].join(",");
        let got = s.batch_pmf()[table.num(row, "batch_size") as usize - 1];
        let want = table.num(row, "prob_per_batch");
        // Below 1e-14 the table holds the rounding error of a complement.
        check.within(&at, "prob_per_batch", got, want, 1e-14 + 2e-9 * want);
    }
    check.finish(&table, rows.len(), (table.rows.len(), table.rows.len()));
}

/// The last configuration solved: consecutive rows of a table share it.
#[derive(Default)]
struct Solved(String, Option<Solution>);

impl Solved {
    fn get(&mut self, table: &Table, row: &[String]) -> &Solution {
        let key = row[..4].join(",");
        if self.0 != key {
            let cap = table.num(row, "max_batch") as u32;
            let rule = rule(table.text(row, "policy"), cap, table.num(row, "max_wait_ms"));
            let input = poisson(table.num(row, "rate_per_s"));
            *self = Self(key, Some(solve(&input, &rule, &linear).unwrap()));
        }
        self.1.as_ref().unwrap()
    }
}

#[test]
fn max_rate_slo() {
    let table = Table::read("max_rate_slo");
    let mut check = Check::default();
    let rows = table.sample();
    for row in &rows {
        let at = row[..4].join(",");
        let cap = table.num(row, "max_batch") as u32;
        let rule = rule(table.text(row, "policy"), cap, table.num(row, "max_wait_ms"));
        let slo = table.num(row, "slo_p99_ms");
        let capacity = 1000.0 * f64::from(cap) / linear(cap);
        let met = |rate: f64| solve(&poisson(rate), &rule, &linear).unwrap().cdf(slo).1 - 0.99;
        let text = table.text(row, "max_rate_per_s");
        if text.is_empty() {
            for i in 0..15 {
                let load = 0.02 + 0.95 * f64::from(i) / 14.0;
                let excess = met(load * capacity);
                check.equal(&at, "infeasible", &(excess < 0.0).to_string(), "true");
            }
            continue;
        }
        let printed = Printed::Digits(7);
        let rate = root(&met, table.num(row, "max_rate_per_s"));
        check.close(&at, "max_rate_per_s", rate, text, printed);
        let load = Printed::Digits(6);
        check.close(&at, "load_at_max", rate / capacity, table.text(row, "load_at_max"), load);
        let above = met((0.5 * (rate + capacity)).min(0.97 * capacity).max(rate * 1.001));
        check.equal(&at, "infeasible above", &(above < 0.0).to_string(), "true");
        let least = table.text(row, "min_feasible_rate_per_s");
        if least.starts_with("0 ") {
            let excess = met(0.02 * capacity);
            check.equal(&at, "feasible at load 0.02", &(excess >= 0.0).to_string(), "true");
        } else {
            let rate = root(&met, least.parse().unwrap());
            check.close(&at, "min_feasible_rate_per_s", rate, least, Printed::Digits(6));
        }
    }
    check.finish(&table, rows.len(), (123, 17 * 15 + 106 * 4));
}

/// Root of a function near a guess: secant steps from 0.01 % on either side.
fn root(f: &dyn Fn(f64) -> f64, guess: f64) -> f64 {
    let (mut a, mut b) = (guess * 0.9999, guess * 1.0001);
    let (mut fa, mut fb) = (f(a), f(b));
    for _ in 0..8 {
        let c = b - fb * (b - a) / (fb - fa);
        (a, fa) = (b, fb);
        (b, fb) = (c, f(c));
        if (b - a).abs() < 1e-9 * b || fb == 0.0 {
            break;
        }
    }
    b
}

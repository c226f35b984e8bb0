//! Reading the reference tables and comparing cells.

use batchsim::exact::{Anchor, Rule};
use std::collections::BTreeMap;

pub const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/theory");

/// A table as text.
pub struct Table {
    pub name: &'static str,
    columns: BTreeMap<String, usize>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub fn read(name: &'static str) -> Self {
        let text = std::fs::read_to_string(format!("{DATA}/{name}.csv")).unwrap();
        let mut lines = text.lines().map(split);
        let header = lines.next().unwrap();
        let columns = header.into_iter().enumerate().map(|(i, c)| (c, i)).collect();
        Self { name, columns, rows: lines.collect() }
    }

    pub fn text<'a>(&self, row: &'a [String], column: &str) -> &'a str {
        &row[self.columns[column]]
    }

    pub fn num(&self, row: &[String], column: &str) -> f64 {
        self.text(row, column).parse().unwrap_or(0.0)
    }

    /// The rows to check: all in release builds and with BATCHSIM_THEORY=full, else a sample.
    pub fn sample(&self) -> Vec<&Vec<String>> {
        self.rows.iter().step_by(step()).collect()
    }
}

pub fn step() -> usize {
    let full = std::env::var("BATCHSIM_THEORY").is_ok_and(|v| v == "full");
    if full || !cfg!(debug_assertions) { 1 } else { 11 }
}

/// Splits a line at commas outside quotes.
fn split(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

/// Agreement asked for beyond the printed digits; 1e-6 is what the solver promises against the
/// tables, this is what it reaches.
pub const RELATIVE: f64 = 1e-8;

/// How a column was printed: significant digits or decimals.
#[derive(Clone, Copy)]
pub enum Printed {
    Digits(i32),
    Decimals(i32),
}

/// Collects comparisons of one table.
#[derive(Default)]
pub struct Check {
    pub cells: usize,
    failures: Vec<String>,
    worst: BTreeMap<String, (f64, String)>,
}

impl Check {
    /// Compares with a printed number: `relative`, or one unit of the last printed digit.
    pub fn close(&mut self, at: &str, column: &str, got: f64, text: &str, printed: Printed) {
        let want: f64 = text.parse().unwrap();
        let unit = match printed {
            Printed::Decimals(d) => 10f64.powi(-d),
            Printed::Digits(_) if want == 0.0 => 1e-12,
            Printed::Digits(d) => 10f64.powi(want.abs().log10().floor() as i32 - d + 1),
        };
        self.within(at, column, got, want, unit.max(RELATIVE * want.abs()));
        let relative = (got - want).abs() / want.abs().max(unit);
        let worst = self.worst.entry(column.to_owned()).or_default();
        if relative > worst.0 {
            *worst = (relative, at.to_owned());
        }
    }

    pub fn within(&mut self, at: &str, column: &str, got: f64, want: f64, limit: f64) {
        self.cells += 1;
        let off = (got - want).abs();
        if off.is_nan() || off > limit {
            self.failures.push(format!("{at} {column}: {got} instead of {want}"));
        }
    }

    pub fn equal(&mut self, at: &str, column: &str, got: &str, want: &str) {
        self.cells += 1;
        if got != want {
            self.failures.push(format!("{at} {column}: {got} instead of {want}"));
        }
    }

    /// Prints what was checked; fails on disagreement or when the counts are not those expected.
    pub fn finish(self, table: &Table, rows: usize, full: (usize, usize)) {
        println!("{}: {rows} of {} rows, {} cells", table.name, table.rows.len(), self.cells);
        for (column, (relative, at)) in &self.worst {
            println!("    {column}: largest relative difference {relative:.1e} ({at})");
        }
        assert!(self.failures.is_empty(), "{:#?}", self.failures);
        if step() == 1 {
            assert_eq!((rows, self.cells), full, "{}: rows and cells checked", table.name);
        } else {
            assert!(rows > 0 && self.cells > 0);
        }
    }
}

/// The running example: 8 ms + 0.5 ms per item.
pub fn linear(n: u32) -> f64 {
    8.0 + 0.5 * f64::from(n)
}

/// A rule by the table's name for it.
pub fn rule(policy: &str, cap: u32, wait_ms: f64) -> Rule {
    match policy {
        "none" | "greedy" => Rule::AtLeast { min: 1, cap: Some(cap) },
        "static" => Rule::AtLeast { min: cap, cap: Some(cap) },
        "timeout_enqueue" => Rule::Timer { cap, wait_ms, anchor: Anchor::Oldest },
        "timeout_pickup" => Rule::Timer { cap, wait_ms, anchor: Anchor::Pickup },
        other => panic!("{other}"),
    }
}

pub fn poisson(rate_per_s: f64) -> batchsim::exact::Input {
    batchsim::exact::Input::Poisson { rate_per_s }
}

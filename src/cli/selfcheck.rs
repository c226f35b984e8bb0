//! `batchsim selfcheck`.

use super::args::Common;
use super::exit::Code;
use super::show::{self, say};
use super::{Done, input};
use crate::report::{Format, Grid, count, decimals};
use crate::study::selfcheck::{Row, Subjects, selfcheck};
use std::time::Instant;

/// Runs the verb.
pub(super) fn run(common: &Common) -> Done {
    input::threads(common)?;
    let start = Instant::now();
    let rows = selfcheck(&Subjects::default())?;
    let text = match common.format {
        Format::Json => show::json(&rows)?,
        Format::Table => grid(&rows).to_text(),
        Format::Csv => unrounded(&rows).to_csv(),
        Format::Markdown => grid(&rows).to_markdown(),
    };
    show::print(&text)?;
    say(&format!("{}, {:.1} s", verdict(&rows), start.elapsed().as_secs_f64()));
    Ok(code(&rows))
}

/// Any row that fails decides; so does none at all.
fn code(rows: &[Row]) -> Code {
    let fine = !rows.is_empty() && rows.iter().all(|r| r.ok);
    if fine { Code::Fine } else { Code::Unexpected }
}

fn verdict(rows: &[Row]) -> String {
    let all = count(rows.len() as u64);
    match rows.iter().filter(|r| !r.ok).count() {
        0 => format!("all {all} checks are ok"),
        failed => format!("error: {failed} of {all} checks FAIL: do not trust this build"),
    }
}

const TITLES: [&str; 8] =
    ["<check", "<what", "expected", "got", "<unit", "difference", "limit", "<result"];

fn result(row: &Row) -> String {
    if row.ok { "ok".into() } else { "FAIL".into() }
}

fn grid(rows: &[Row]) -> Grid {
    let mut grid = Grid::new(&TITLES);
    for row in rows {
        grid.row(vec![
            row.group.to_owned(),
            row.what.clone(),
            number(row.expected, row.limit),
            number(row.got, row.limit),
            row.unit.to_owned(),
            small(row.difference),
            small(row.limit),
            result(row),
        ]);
    }
    grid
}

/// The same for spreadsheets.
fn unrounded(rows: &[Row]) -> Grid {
    let mut grid = Grid::new(&TITLES);
    for row in rows {
        let numbers = [row.expected, row.got, row.difference, row.limit].map(|n| n.to_string());
        let [expected, got, difference, limit] = numbers;
        let (group, what, unit) = (row.group.to_owned(), row.what.clone(), row.unit.to_owned());
        grid.row(vec![group, what, expected, got, unit, difference, limit, result(row)]);
    }
    grid
}

/// A value with the digits that its limit lets matter, ten at most.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 10")]
fn number(value: f64, limit: f64) -> String {
    if limit == 0.0 {
        let whole = value.fract() == 0.0;
        return decimals(value, if whole { 0 } else { 6 });
    }
    let places = (1.0 - limit.log10().floor()).clamp(0.0, 10.0) as usize;
    decimals(value, places)
}

/// A difference or limit: its size matters, not its digits.
fn small(value: f64) -> String {
    if value == 0.0 { "0".into() } else { format!("{value:.1e}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::{Input, NotCovered, Rule, Solution, solve};

    /// One constant of the solver in the seventh digit of a service time: exit code 1.
    #[test]
    fn an_altered_solver_ends_with_1() {
        let altered =
            |input: &Input, rule: &Rule, ms: &dyn Fn(u32) -> f64| -> Result<Solution, NotCovered> {
                solve(input, rule, &|n| ms(n) * (1.0 + 1e-7))
            };
        let subjects = Subjects { solve: &altered, requests: 200_000, ..Subjects::default() };
        let rows = selfcheck(&subjects).unwrap();
        assert_eq!(code(&rows) as u8, 1);
        assert!(verdict(&rows).starts_with("error: "), "{}", verdict(&rows));
        assert!(grid(&rows).to_text().contains("FAIL"));
        assert!(grid(&rows).to_markdown().lines().all(|line| line.starts_with('|')));
        let csv = unrounded(&rows).to_csv();
        assert_eq!(csv.lines().count(), rows.len() + 1);
        assert!(csv.contains(&rows[0].got.to_string()));
        assert_eq!(code(&[]), Code::Unexpected);
    }
}

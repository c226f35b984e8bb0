//! The exact solver against numbers that were computed without it.

use super::bailey::static_mean_ms;
use super::{Row, Solver};
use crate::exact::classic::{MDc, inoue_bounds_ms, pollaczek_khinchine_wait_ms};
use crate::exact::{Anchor, Input, NotCovered, Rule, Solution};

const STORED: &str = "exact solver, stored";
const CLOSED: &str = "exact solver, closed form";

/// Relative difference to a number that was stored with nine digits or more.
const DIGITS: f64 = 1e-8;

pub(super) fn linear_ms(n: u32) -> f64 {
    8.0 + 0.5 * f64::from(n)
}

const fn poisson(rate_per_s: f64) -> Input {
    Input::Poisson { rate_per_s }
}

const fn at_least(min: u32, cap: u32) -> Rule {
    Rule::AtLeast { min, cap: Some(cap) }
}

const fn timer(cap: u32, wait_ms: f64, anchor: Anchor) -> Rule {
    Rule::Timer { cap, wait_ms, anchor }
}

const BURSTS: Input = Input::Mmpp2 { rates_per_s: [1200.0, 100.0], dwells_ms: [20.0, 80.0] };

/// A number of a solution.
#[derive(Clone, Copy)]
enum Of {
    Mean,
    Quantile(f64),
    Batch,
}

impl Of {
    fn value(self, s: &Solution) -> f64 {
        match self {
            Self::Mean => s.mean_ms(),
            Self::Quantile(q) => s.quantile_ms(q),
            Self::Batch => s.mean_batch(),
        }
    }

    fn name(self) -> String {
        match self {
            Self::Mean => "mean".into(),
            Self::Quantile(q) => format!("p{}", (q * 1e4).round() / 100.0),
            Self::Batch => "mean batch".into(),
        }
    }

    fn unit(self) -> &'static str {
        if matches!(self, Self::Batch) { "items" } else { "ms" }
    }
}

/// A solution, or not a number where there is none.
fn of(solved: &Result<Solution, NotCovered>, what: Of) -> f64 {
    solved.as_ref().map_or(f64::NAN, |s| what.value(s))
}

/// A setting, its name, and its stored numbers.
type Stored = (&'static str, Input, Rule, &'static [(Of, f64)]);

/// Computed once with other numerics in another language, for 8 ms + 0.5 ms per item.
const TABLE: [Stored; 7] = [
    (
        "dynamic 32, 5 ms, 1,000/s",
        poisson(1000.0),
        timer(32, 5.0, Anchor::Oldest),
        &[
            (Of::Mean, 24.83523746),
            (Of::Quantile(0.5), 24.51133915),
            (Of::Quantile(0.99), 38.56185442),
            (Of::Batch, 16.0002654),
        ],
    ),
    (
        "dynamic 32, 5 ms from pickup, 1,000/s",
        poisson(1000.0),
        timer(32, 5.0, Anchor::Pickup),
        &[(Of::Mean, 33.76157487), (Of::Quantile(0.99), 49.79563313), (Of::Batch, 25.24318289)],
    ),
    (
        "none, 100/s",
        poisson(100.0),
        at_least(1, 1),
        &[(Of::Mean, 32.58333333), (Of::Quantile(0.99), 129.2731921)],
    ),
    ("(4, 8) rule, 100/s", poisson(100.0), at_least(4, 8), &[(Of::Mean, 25.0320908)]),
    ("static 8, 100/s", poisson(100.0), at_least(8, 8), &[(Of::Mean, 47.000055)]),
    (
        "greedy without cap, 400/s",
        poisson(400.0),
        Rule::AtLeast { min: 1, cap: None },
        &[(Of::Mean, 15.54446481), (Of::Quantile(0.99), 22.51920795), (Of::Batch, 4.0245369)],
    ),
    (
        "greedy 8, bursts of 1,200/s",
        BURSTS,
        at_least(1, 8),
        &[(Of::Mean, 31.7163772), (Of::Quantile(0.99), 114.94191), (Of::Batch, 3.83421658)],
    ),
];

/// Against stored tables.
pub(super) fn stored(solve: Solver<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, input, rule, numbers) in TABLE {
        let solved = solve(&input, &rule, &linear_ms);
        for &(what, expected) in numbers {
            let said = format!("{}, {name}", what.name());
            let got = of(&solved, what);
            rows.push(Row::new(STORED, said, what.unit(), expected, got, DIGITS * expected));
        }
    }
    rows
}

/// Against formulas and second routes.
pub(super) fn closed_forms(solve: Solver<'_>) -> Vec<Row> {
    let close = |what: &str, expected: f64, got: f64, relative: f64| {
        Row::new(CLOSED, what, "ms", expected, got, relative * expected)
    };
    let mut rows = Vec::new();

    // Pollaczek and Khinchine; Erlang's M/D/1 by the positive terms of Franx.
    let one = solve(&poisson(100.0), &at_least(1, 1), &linear_ms);
    let mean = 8.5 + pollaczek_khinchine_wait_ms(100.0, 8.5, 0.0);
    rows.push(close("Pollaczek-Khinchine mean, none, 100/s", mean, of(&one, Of::Mean), 1e-11));
    let p99 = MDc::new(100.0, 8.5, 1).map_or(f64::NAN, |q| q.sojourn_quantile_ms(0.99));
    let got = of(&one, Of::Quantile(0.99));
    rows.push(close("M/D/1 p99, none, 100/s", p99, got, 1e-10));

    // Inoue's phi1 is exact where the server never idles, and never below the mean.
    let free = Rule::AtLeast { min: 1, cap: None };
    for (rate, name) in [(1200.0, "1,200/s"), (1600.0, "1,600/s")] {
        let (_, phi1) = inoue_bounds_ms(rate, 8.0, 0.5);
        let got = of(&solve(&poisson(rate), &free, &linear_ms), Of::Mean);
        rows.push(close(&format!("Inoue's mean, greedy without cap, {name}"), phi1, got, 1e-9));
    }
    for (rate, name) in [(100.0, "100/s"), (400.0, "400/s")] {
        let (phi0, phi1) = inoue_bounds_ms(rate, 8.0, 0.5);
        let got = of(&solve(&poisson(rate), &free, &linear_ms), Of::Mean);
        let above = if got.is_nan() { got } else { (got - phi0.min(phi1)).max(0.0) };
        let what = format!("mean above Inoue's bound, greedy without cap, {name}");
        rows.push(Row::new(CLOSED, what, "ms", 0.0, above, 0.0));
    }

    // Bailey's roots.
    for (size, rate, name) in [(8, 500.0, "static 8, 500/s"), (32, 1000.0, "static 32, 1,000/s")] {
        let mean = static_mean_ms(rate, size, linear_ms(size));
        let got = of(&solve(&poisson(rate), &at_least(size, size), &linear_ms), Of::Mean);
        rows.push(close(&format!("Bailey's mean, {name}"), mean, got, 1e-10));
    }

    // The same law by another route: its integral, its total, and a process of equal states.
    let rule = timer(32, 5.0, Anchor::Oldest);
    let solved = solve(&poisson(1000.0), &rule, &linear_ms);
    let of_law = |f: &dyn Fn(&Solution) -> f64| solved.as_ref().map_or(f64::NAN, f);
    let (mean, by_law) = (of(&solved, Of::Mean), of_law(&Solution::mean_by_law_ms));
    rows.push(close("mean as integral of the law, dynamic, 1,000/s", mean, by_law, 1e-10));
    let total = of_law(&|s| 1.0 + s.mass_error());
    let what = "total probability of the law, dynamic, 1,000/s";
    rows.push(Row::new(CLOSED, what, "", 1.0, total, 1e-11));
    let even = Input::Mmpp2 { rates_per_s: [430.0; 2], dwells_ms: [37.0, 11.0] };
    let plain = of(&solve(&poisson(430.0), &at_least(1, 8), &linear_ms), Of::Mean);
    let got = of(&solve(&even, &at_least(1, 8), &linear_ms), Of::Mean);
    rows.push(close("mean of two equal states, greedy 8, 430/s", plain, got, 1e-11));
    rows
}

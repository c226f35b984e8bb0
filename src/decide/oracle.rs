//! Simulation against the exact solution, where there is one: a build that simulates something
//! else is caught without any baseline.

use crate::outcome::{Cell, ExactCheck, Outcome, Series};
use crate::scenario::{Scenario, Warmup};
use crate::stats::t_quantile;
use crate::study::{Control, Ran, exact};

/// Probability of a false alarm over all numbers of a scenario together.
const LEVEL: f64 = 0.001;

/// Largest error of a quantile read from a histogram, relative: half a bin.
const HALF_BIN: f64 = 0.5 / 1024.0;

/// Requests of a section for each request of a full batch, below which its end is too large a
/// part of it: the last batch leaves early.
const SHORTEST: f64 = 1_000.0;

/// What the exact solution says of a cell, under the names of its series.
const METRICS: [&str; 5] = ["mean", "p(50)", "p(99)", "mean batch", "busy"];

/// Every number that has an exact value, in the order of the Outcome's cells; an empty list for
/// cells that are not covered, are overloaded, or were too short to tell.
#[must_use]
pub fn against_exact(scenario: &Scenario, ran: &Ran, control: &Control) -> Vec<Vec<ExactCheck>> {
    let (solved, _) = exact(scenario, control);
    let covered: Vec<Vec<(&Series, f64, f64)>> = ran
        .outcome
        .cells
        .iter()
        .zip(&ran.sections.cells)
        .map(|(cell, sections)| {
            comparable(scenario, cell, &solved)
                .map(|(exact, end)| numbers(exact, end, &sections.series))
                .unwrap_or_default()
        })
        .collect();
    let count: usize = covered.iter().map(Vec::len).sum();
    #[expect(clippy::cast_precision_loss, reason = "a handful of numbers")]
    let tail = 1.0 - LEVEL / 2.0 / count.max(1) as f64;
    let cells = covered.into_iter().zip(&ran.outcome.cells).map(|(numbers, cell)| {
        let judged = numbers.into_iter().map(|n| judge(n, tail));
        steady(scenario, cell, &solved).into_iter().chain(judged).collect()
    });
    cells.collect()
}

/// A queue that settles by theory and was seen to grow, or the other way round.
fn steady(scenario: &Scenario, cell: &Cell, solved: &Outcome) -> Option<ExactCheck> {
    let exact = solved.cells.iter().find(|c| c.policy.label == cell.policy.label)?;
    let number = |stable: bool| f64::from(u8::from(stable));
    let settled = scenario.run.warmup == Warmup::Auto && cell.replications > 1;
    (settled && exact.stable != cell.stable).then(|| ExactCheck {
        metric: "steady state".into(),
        unit: "share".into(),
        simulated: number(cell.stable),
        exact: number(exact.stable),
        allowed: 0.0,
        agrees: false,
    })
}

/// The exact cell of a simulated one, and what the end of a run may change, relative.
fn comparable<'a>(
    scenario: &Scenario,
    cell: &Cell,
    solved: &'a Outcome,
) -> Option<(&'a Cell, f64)> {
    let exact = solved.cells.iter().find(|c| c.policy.label == cell.policy.label)?;
    // A start-up that was kept on purpose belongs to no steady state.
    let settled = scenario.run.warmup == Warmup::Auto;
    if !(exact.stable && cell.stable && settled && cell.replications > 1) {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a ratio of counts")]
    let each = cell.requests.offered as f64 / f64::from(cell.replications);
    let largest = cell.batch_size.histogram.last().map_or(1, |s| s.size);
    let end = f64::from(largest) / each;
    (end * SHORTEST <= 1.0).then_some((exact, end))
}

fn numbers<'a>(exact: &Cell, end: f64, series: &'a [Series]) -> Vec<(&'a Series, f64, f64)> {
    let latency = exact.latency_ms.as_ref();
    METRICS
        .into_iter()
        .filter_map(|metric| {
            let simulated = series.iter().find(|s| s.metric == metric)?;
            let value = match metric {
                "mean" => latency?.mean,
                "p(50)" => latency?.p50,
                "p(99)" => latency?.p99,
                "mean batch" => exact.batch_size.mean,
                _ => exact.utilization,
            };
            let is_quantile = metric.starts_with("p(");
            let slack = if is_quantile { HALF_BIN.max(end) } else { end };
            // A whole unit in the last place of a nanosecond.
            let rounding = if simulated.unit == "ms" { 1e-6 } else { 0.0 };
            Some((simulated, value, slack * value.abs() + rounding))
        })
        .collect()
}

fn judge((simulated, exact, slack): (&Series, f64, f64), tail: f64) -> ExactCheck {
    let df = simulated.sections.len().saturating_sub(1) as u64;
    let parts: f64 = simulated.sections.iter().map(|s| (s - simulated.value).powi(2)).sum();
    #[expect(clippy::cast_precision_loss, reason = "a handful of replications")]
    let error = (parts / df.max(1) as f64 / simulated.sections.len().max(1) as f64).sqrt();
    let allowed = t_quantile(tail, df) * error + slack;
    ExactCheck {
        metric: simulated.metric.clone(),
        unit: simulated.unit.clone(),
        simulated: simulated.value,
        exact,
        allowed,
        agrees: (simulated.value - exact).abs() <= allowed,
    }
}

//! The (a, b) rule: a free server starts once `a` are queued and takes at most `b`.
//!
//! `a = 1` never waits (none for `b = 1`, else greedy), `a = b` is the static rule.

use super::blocks;
use super::chain::{Row, stationary};
use super::error::NotCovered;
use super::grid::{Curve, Gauss, Grid, PIECE_ARRIVALS};
use super::law::Law;
use super::model::{Model, Solved, trimmed};
use super::poisson::{Poisson, surely_at_least};
use super::positions::Positions;

/// Solves the rule with minimum `1 <= least <= cap`.
pub(crate) fn solve(model: &Model, least: usize) -> Result<Solved, NotCovered> {
    let gauss = Gauss::new();
    let pi = queue_at_dispatch(model, least)?;
    let pos = Positions::new(model, &gauss, &pi, &[], pi.len())?;
    let mut law = Law::default();
    let grid = law.add_grid(pos.grid.clone());
    blocks::immediate(&mut law, grid, model, &gauss, &pos, least, 0.0);
    // The request that brings the queue of an idle server to the minimum starts the batch.
    let idle: f64 = pos.left.iter().take(least).sum();
    law.add_atom(model.s[least], idle);
    if least > 1 {
        waiting(&mut law, model, &gauss, &pi, &pos, least);
    }
    let area = model.service_area(&pi) + waiting_area(model.rate, &pos.left, least);
    Ok(Solved { law, pmf: model.pmf(&pi), area })
}

/// Stationary law of the queue at dispatch, index = queue length.
fn queue_at_dispatch(model: &Model, least: usize) -> Result<Vec<f64>, NotCovered> {
    let top = model.states()?.max(least + 1);
    let mut rows = Vec::with_capacity(top - least + 1);
    let mut arrivals = Poisson::new(0.0);
    for x in least..=top {
        if x <= model.cap {
            arrivals.fill(model.rate * model.s[x]);
        }
        let left = x - model.batch(x);
        let lo = left.max(least);
        let mut row = vec![0.0; (left + arrivals.all().len()).clamp(lo + 1, top + 1) - lo];
        let last = row.len() - 1;
        for (k, p) in arrivals.all().iter().enumerate() {
            row[(left + k).saturating_sub(lo).min(last)] += p;
        }
        rows.push(Row { lo: lo - least, p: row });
    }
    let mut pi = vec![0.0; least];
    pi.extend(stationary(rows));
    Ok(trimmed(pi))
}

/// Integral of the queue over the wait for the minimum: `i / lambda` for each level `i` passed.
pub(crate) fn waiting_area(rate: f64, left: &[f64], least: usize) -> f64 {
    let mut reached = 0.0;
    let mut area = 0.0;
    for (i, p) in left.iter().enumerate().take(least) {
        reached += p;
        area += reached * i as f64 / rate;
    }
    area
}

/// Requests that wait beyond the free server until the minimum is reached, `x` after they came.
///
/// Number `q < a` of the queue waits for `a - q` arrivals. It came while the server was idle
/// (once per dispatch with at most `q - 1` left behind), or while it was busy and `x` exceeds its
/// wait for the server.
pub(crate) fn waiting(
    law: &mut Law,
    model: &Model,
    gauss: &Gauss,
    pi: &[f64],
    pos: &Positions,
    least: usize,
) {
    let end = surely_at_least(least as u32) / model.rate;
    let blocks = pos.width().div_ceil(model.cap).min((end / model.full()) as usize + 1);
    let mut breaks = Vec::new();
    for j in 0..blocks {
        breaks.extend(model.jumps(pi).iter().map(|s| j as f64 * model.full() + s));
    }
    let grid = Grid::new(&breaks, end, PIECE_ARRIVALS / model.rate);
    let mut idle = vec![0.0; least - 1];
    let mut sum = 0.0;
    for (i, p) in idle.iter_mut().zip(&pos.left) {
        sum += p;
        *i = sum;
    }
    let mut arrivals = Poisson::new(0.0);
    let mut values = Vec::with_capacity(grid.pieces());
    let mut reached = idle.clone();
    for x in grid.nodes(gauss) {
        arrivals.fill(model.rate * x);
        reached.copy_from_slice(&idle);
        for j in 0..blocks {
            pos.add_below(gauss, x - j as f64 * model.full(), j * model.cap, 1.0, &mut reached);
        }
        let term = |(i, r): (usize, &f64)| r * arrivals.p(least - 2 - i);
        values.push(model.rate * reached.iter().enumerate().map(term).sum::<f64>());
    }
    let curve = Curve::from_nodes(&grid, gauss, &values);
    let index = law.add_grid(grid);
    law.add_track(model.s[least], index, curve);
}

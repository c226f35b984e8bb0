//! The timer that starts when a free server meets a request (`wait anchor: pickup`).
//!
//! With fewer than `b` requests at a free server the batch leaves after `T`, or as soon as `b` are
//! there. The time spent in the queue before does not count.

use super::blocks;
use super::chain::{Row, stationary};
use super::error::NotCovered;
use super::grid::{Curve, Gauss, Grid, PIECE_ARRIVALS};
use super::law::Law;
use super::model::{Model, Solved, trimmed};
use super::poisson::{Poisson, surely_at_least};
use super::positions::Positions;

/// Solves the rule for `cap >= 2` and `wait > 0`.
pub(crate) fn solve(model: &Model, wait: f64) -> Result<Solved, NotCovered> {
    let gauss = Gauss::new();
    let pi = queue_at_dispatch(model, wait)?;
    let pos = Positions::new(model, &gauss, &pi, &[], pi.len())?;
    let mut law = Law::default();
    let grid = law.add_grid(pos.grid.clone());
    // Full on the moment the server is free, or short when the timer ends; filled in between.
    blocks::immediate(&mut law, grid, model, &gauss, &pos, model.cap, 0.0);
    blocks::delayed(&mut law, grid, model, &gauss, &pos, wait);
    filled(&mut law, model, &gauss, &pi, &pos, wait);
    let start = timer_start(&pos.left, model.cap);
    during_timer(&mut law, model, &gauss, &start, wait);
    first_of_idle(&mut law, model, &gauss, pos.left[0], wait);
    let area = model.service_area(&pi) + timer_area(model, &start, wait);
    Ok(Solved { law, pmf: model.pmf(&pi), area })
}

/// Stationary law of the queue at dispatch, index = queue length.
fn queue_at_dispatch(model: &Model, wait: f64) -> Result<Vec<f64>, NotCovered> {
    let b = model.cap;
    let top = model.states()?;
    let late = Poisson::new(model.rate * wait);
    let mut arrivals = Poisson::new(0.0);
    let mut rows = Vec::with_capacity(top);
    for x in 1..=top {
        if x <= b {
            arrivals.fill(model.rate * model.s[x]);
        }
        let left = x - model.batch(x);
        let lo = left.max(1);
        let direct = left + arrivals.all().len();
        let hi = direct.max(b.min(direct + late.all().len())).clamp(lo, top);
        let mut row = vec![0.0; hi + 1 - lo];
        for (k, p) in arrivals.all().iter().enumerate() {
            let queue = (left + k).min(top);
            if queue >= b {
                row[queue.min(hi) - lo] += p;
                continue;
            }
            let start = queue.max(1);
            for (more, l) in late.all().iter().enumerate().take(b - start) {
                row[start + more - lo] += p * l;
            }
            if late.tail(b - start) > 0.0 {
                row[b - lo] += p * late.tail(b - start);
            }
        }
        rows.push(Row { lo: lo - 1, p: row });
    }
    let mut pi = vec![0.0];
    pi.extend(stationary(rows));
    Ok(trimmed(pi))
}

/// Probability per dispatch that the timer starts with `i` requests, index `i < b`.
fn timer_start(left: &[f64], b: usize) -> Vec<f64> {
    let mut start: Vec<f64> = left.iter().copied().take(b).collect();
    start.resize(b, 0.0);
    start[1] += start[0];
    start[0] = 0.0;
    start
}

/// Queue integrated over the timer: level `m` lasts until the next arrival or the end.
fn timer_area(model: &Model, start: &[f64], wait: f64) -> f64 {
    let late = Poisson::new(model.rate * wait);
    let mut area = 0.0;
    for (i, p) in start.iter().enumerate().skip(1) {
        for m in i..model.cap {
            area += p * m as f64 * late.tail(m - i + 1) / model.rate;
        }
    }
    area
}

/// Requests that came while the server was busy and whose batch fills while the timer runs, `x`
/// after they came: their wait for the server lies in `(x - T, x)`.
fn filled(law: &mut Law, model: &Model, gauss: &Gauss, pi: &[f64], pos: &Positions, wait: f64) {
    let b = model.cap;
    let sure = surely_at_least(b as u32) / model.rate;
    let last = (pos.width().div_ceil(b) as f64) * model.full() + pos.grid.end() + wait;
    let blocks = pos.width().div_ceil(b).min((sure / model.full()) as usize + 1);
    let mut breaks = Vec::new();
    for j in 0..blocks {
        let ahead = j as f64 * model.full();
        breaks.extend(model.jumps(pi).iter().flat_map(|s| [ahead + s, ahead + s + wait]));
    }
    let grid = Grid::new(&breaks, sure.min(last), PIECE_ARRIVALS / model.rate);
    let mut arrivals = Poisson::new(0.0);
    let mut here = vec![0.0; b - 1];
    let mut values = Vec::new();
    for x in grid.nodes(gauss) {
        arrivals.fill(model.rate * x);
        here.fill(0.0);
        for j in 0..blocks {
            let v = x - j as f64 * model.full();
            pos.add_below(gauss, v, j * b, 1.0, &mut here);
            pos.add_below(gauss, v - wait, j * b, -1.0, &mut here);
        }
        let term = |(i, h): (usize, &f64)| h.max(0.0) * arrivals.p(b - 2 - i);
        values.push(model.rate * here.iter().enumerate().map(term).sum::<f64>());
    }
    let curve = Curve::from_nodes(&grid, gauss, &values);
    let index = law.add_grid(grid);
    law.add_track(model.full(), index, curve);
}

/// Requests that arrive while the timer runs (which starts with `i` present).
fn during_timer(law: &mut Law, model: &Model, gauss: &Gauss, start: &[f64], wait: f64) {
    let (b, rate) = (model.cap, model.rate);
    let late = Poisson::new(rate * wait);
    // The one that fills the batch.
    let fills: f64 = start.iter().enumerate().map(|(i, p)| p * late.tail(b - i)).sum();
    law.add_atom(model.full(), fills);
    // Those of a batch that stays short: arrival times are uniform on the timer.
    let whole = law.add_grid(Grid::new(&[], wait, wait));
    for l in 2..b {
        let term = |(i, p): (usize, &f64)| p * late.p(l - 1 - i);
        let density = rate * start.iter().enumerate().take(l).map(term).sum::<f64>();
        let curve = Curve::steps(law.grid(whole), vec![density]);
        law.add_track(model.s[l], whole, curve);
    }
    // Those of a batch that fills `x` after they came, number `p < b` of it.
    let end = wait.min(surely_at_least(b as u32) / rate);
    let grid = Grid::new(&[], end, PIECE_ARRIVALS / rate);
    let (mut before, mut after) = (Poisson::new(0.0), Poisson::new(0.0));
    let mut values = Vec::new();
    for x in grid.nodes(gauss) {
        before.fill(rate * (wait - x));
        after.fill(rate * x);
        let mut density = 0.0;
        for p in 2..b {
            let term = |(i, m): (usize, &f64)| m * before.tail(p - i);
            let came: f64 = start.iter().enumerate().take(p).map(term).sum();
            density += rate * after.p(b - p - 1) * came;
        }
        values.push(density);
    }
    let curve = Curve::from_nodes(&grid, gauss, &values);
    let index = law.add_grid(grid);
    law.add_track(model.full(), index, curve);
}

/// The request that finds the server idle and starts the timer itself.
fn first_of_idle(law: &mut Law, model: &Model, gauss: &Gauss, mass: f64, wait: f64) {
    let (b, rate) = (model.cap, model.rate);
    let mut arrivals = Poisson::new(rate * wait);
    for l in 1..b {
        law.add_atom(wait + model.s[l], mass * arrivals.p(l - 1));
    }
    let end = wait.min(surely_at_least(b as u32) / rate);
    let grid = Grid::new(&[], end, PIECE_ARRIVALS / rate);
    let mut values = Vec::new();
    for x in grid.nodes(gauss) {
        arrivals.fill(rate * x);
        values.push(mass * rate * arrivals.p(b - 2));
    }
    let curve = Curve::from_nodes(&grid, gauss, &values);
    let index = law.add_grid(grid);
    law.add_track(model.full(), index, curve);
}

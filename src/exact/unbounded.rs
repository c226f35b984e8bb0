//! Batches without a cap: a free server takes all requests once at least `a` are queued.
//!
//! The number that comes during a batch of `X` is Poisson with mean `lambda s(X)` whatever the
//! moment a given request comes, so for `l >= a` the density of requests with residual `v` and next
//! batch `l` is `lambda P(N = l - 1)`, constant on `(0, s(X))`.

use super::bulk::{waiting, waiting_area};
use super::chain::{Row, stationary};
use super::error::NotCovered;
use super::grid::{Curve, Gauss, Grid};
use super::law::Law;
use super::model::{Model, NO_MASS, Solved, checked_cost, checked_dense};
use super::poisson::Poisson;
use super::positions::Positions;

/// A batch so large that the fixed part of any sensible cost no longer counts.
const HUGE: u32 = 1 << 20;

/// Requests per ms at the throughput ceiling.
pub(crate) fn ceiling(cost: &dyn Fn(u32) -> f64) -> Result<f64, NotCovered> {
    Ok(f64::from(HUGE) / checked_cost(HUGE, cost(HUGE))?)
}

/// Solves the rule with minimum `least >= 1` and no cap. The model returned holds the service
/// times of all batch sizes that occur.
pub(crate) fn solve(
    rate: f64,
    least: usize,
    cost: &dyn Fn(u32) -> f64,
) -> Result<(Model, Solved), NotCovered> {
    let ceiling = ceiling(cost)?;
    if rate >= ceiling {
        return Err(NotCovered::Overloaded {
            offered_per_s: 1000.0 * rate,
            capacity_per_s: 1000.0 * ceiling,
        });
    }
    let mut top = first_guess(rate, least, cost);
    let (model, pi) = loop {
        let states = checked_dense(top)?;
        let mut s = vec![0.0];
        for n in 1..=states as u32 {
            s.push(checked_cost(n, cost(n))?);
        }
        let model = Model { rate, cap: states, s };
        let pi = queue_at_dispatch(&model, least);
        if pi[states] < 1e-18 {
            break (model, pi);
        }
        top += top / 4 + 1;
    };
    let gauss = Gauss::new();
    let arrivals: Vec<Poisson> = model.s.iter().map(|s| Poisson::new(rate * s)).collect();
    let left: Vec<f64> =
        (0..least).map(|k| pi.iter().zip(&arrivals).map(|(p, n)| p * n.p(k)).sum()).collect();
    let mut law = Law::default();
    law.add_atom(model.s[least], left.iter().sum());
    served_next(&mut law, &model, &pi, &arrivals, least);
    if least > 1 {
        let pos = Positions::new(&model, &gauss, &pi, &[], least)?;
        waiting(&mut law, &model, &gauss, &pi, &pos, least);
    }
    let area = model.service_area(&pi) + waiting_area(rate, &left, least);
    let pmf = model.pmf(&pi);
    Ok((model, Solved { law, pmf, area }))
}

/// Where the queue at dispatch settles, plus ten of its standard deviations.
fn first_guess(rate: f64, least: usize, cost: &dyn Fn(u32) -> f64) -> usize {
    let start = least as f64;
    let mut x = start;
    for _ in 0..200 {
        x = (rate * cost(x as u32)).clamp(start, 1e7);
    }
    let slope = rate * (cost((2.0 * x) as u32 + 1) - cost(x as u32)) / (x + 1.0);
    let spread = (x / (1.0 - slope.clamp(0.0, 0.999).powi(2))).sqrt();
    ((x + 10.0 * spread + 40.0) as usize).max(least + 2)
}

/// Stationary law of the queue at dispatch, index = queue length.
fn queue_at_dispatch(model: &Model, least: usize) -> Vec<f64> {
    let top = model.cap;
    let mut arrivals = Poisson::new(0.0);
    let mut rows = Vec::with_capacity(top);
    for x in least..=top {
        arrivals.fill(model.rate * model.s[x]);
        let mut row = vec![0.0; arrivals.all().len().clamp(least + 1, top + 1) - least];
        let last = row.len() - 1;
        for (k, p) in arrivals.all().iter().enumerate() {
            row[k.saturating_sub(least).min(last)] += p;
        }
        rows.push(Row { lo: 0, p: row });
    }
    let mut pi = vec![0.0; least];
    pi.extend(stationary(rows));
    pi
}

/// Requests that come during a batch and leave with the next, which has `l >= a` of them.
fn served_next(law: &mut Law, model: &Model, pi: &[f64], arrivals: &[Poisson], least: usize) {
    let mut used: Vec<usize> = (1..=model.cap).filter(|&x| pi[x] > NO_MASS).collect();
    used.sort_by(|&x, &y| model.s[x].total_cmp(&model.s[y]));
    let cuts: Vec<f64> = used.iter().map(|&x| model.s[x]).collect();
    let grid = Grid::of_steps(&cuts);
    let pieces = grid.pieces();
    let index = law.add_grid(grid);
    for l in least..=model.cap {
        let mut steps = vec![0.0; pieces];
        let mut height = 0.0;
        let mut next = used.iter().rev().peekable();
        for (piece, step) in steps.iter_mut().enumerate().rev() {
            let end = law.grid(index).edges()[piece + 1];
            while let Some(&&x) = next.peek().filter(|&&&x| model.s[x] >= end) {
                height += model.rate * pi[x] * arrivals[x].p(l - 1);
                next.next();
            }
            *step = height;
        }
        let curve = Curve::steps(law.grid(index), steps);
        law.add_track(model.s[l], index, curve);
    }
}

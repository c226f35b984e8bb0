//! The timer that counts from the arrival of the oldest queued request (`wait anchor:
//! oldest_arrival`).
//!
//! Every batch has a head: the oldest of its requests. Let `a` be the time from the head's arrival
//! until the server is free for it (0 if it finds the server idle). With `N(t)` further arrivals
//! within `t` of the head the batch leaves
//! * at `a` if it is full by then or if `a >= T`,
//! * else when it fills, or at `T` after the head's arrival.
//!
//! What happens after the head's arrival does not depend on `a`, so the law of `a` is all that is
//! needed: `heads(x)`, the expected number of heads per dispatch with `a < x`.

use super::blocks;
use super::chain::{Row, balance, stationary};
use super::error::NotCovered;
use super::grid::{Curve, Gauss, Grid, PIECE_ARRIVALS};
use super::law::Law;
use super::model::{Model, NO_MASS, Solved, checked_dense, trimmed};
use super::poisson::{Poisson, surely_at_least};
use super::positions::Positions;

/// Solves the rule for `cap >= 2` and `wait > 0`.
pub(crate) fn solve(model: &Model, wait: f64) -> Result<Solved, NotCovered> {
    let gauss = Gauss::new();
    let pi = if wait <= model.full() {
        young_leftovers(model, wait)?
    } else {
        old_leftovers(model, &gauss, wait)?
    };
    let breaks: Vec<f64> = (0..=blocks_within(model, pi.len(), wait))
        .map(|j| wait - j as f64 * model.full())
        .collect();
    let pos = Positions::new(model, &gauss, &pi, &breaks, pi.len())?;
    let mut law = Law::default();
    let grid = law.add_grid(pos.grid.clone());
    blocks::immediate(&mut law, grid, model, &gauss, &pos, 1, wait);
    let timer = Timer { model, gauss: &gauss, pi: &pi, pos: &pos, wait };
    timer.short_batches(&mut law);
    let queued = timer.filled(&mut law);
    let area = model.service_area(&pi) + queued;
    Ok(Solved { law, pmf: model.pmf(&pi), area })
}

/// Full services that fit into a time, no more than queues of fewer than `width` can stand before
/// a request.
fn blocks_within(model: &Model, width: usize, time: f64) -> usize {
    ((time / model.full()) as usize).min(width / model.cap)
}

/// Row of the next queue at dispatch after a batch with service time `s` that leaves nothing
/// behind; entry `b` and those above included.
///
/// With `c` the probability that no request came more than `T` before the completion: a short
/// batch of `m` leaves by timer with probability `c P(N(T) = m - 1)`, or at the completion, all
/// `m` having come during the service and the first of them more than `T` before its end.
fn fresh_row(rate: f64, s: f64, wait: f64, b: usize, top: usize) -> Vec<f64> {
    let (during, late) = (Poisson::new(rate * s), Poisson::new(rate * wait));
    let part = wait.min(s);
    let none_early = (-rate * (s - part)).exp();
    let hi = during.all().len().clamp(b + 1, top + 1);
    let mut row = vec![0.0; hi];
    for (m, entry) in row.iter_mut().enumerate().take(b).skip(1) {
        let early = 1.0 - (part / s).powi(m as i32);
        *entry = none_early * late.p(m - 1) + during.p(m) * early;
    }
    for (k, p) in during.all().iter().enumerate().skip(b) {
        row[k.min(hi - 1)] += p;
    }
    // Filled after the completion; the second term needs a timer longer than the service.
    row[b] += none_early * Poisson::new(rate * part).p(b - 1);
    if wait > s {
        let rest = Poisson::new(rate * (wait - s));
        row[b] += (0..b - 1).map(|i| during.p(i) * rest.tail(b - 1 - i)).sum::<f64>();
    }
    row
}

/// Queue at dispatch if requests left behind have always waited `T` when the server is free again:
/// they exist after full batches only, so `T <= s(b)` is enough.
fn young_leftovers(model: &Model, wait: f64) -> Result<Vec<f64>, NotCovered> {
    let b = model.cap;
    let top = model.states()?;
    let arrivals = Poisson::new(model.rate * model.full());
    let mut rows = Vec::with_capacity(top);
    for x in 1..=top {
        if x <= b {
            let mut row = fresh_row(model.rate, model.s[x], wait, b, top);
            row.remove(0);
            let used = row.iter().rposition(|&p| p > 0.0).unwrap_or(0);
            row.truncate(used + 1);
            rows.push(Row { lo: 0, p: row });
            continue;
        }
        let left = x - b;
        let mut row = vec![0.0; arrivals.all().len().min(top + 1 - left)];
        let last = row.len() - 1;
        for (k, p) in arrivals.all().iter().enumerate() {
            row[k.min(last)] += p;
        }
        rows.push(Row { lo: left - 1, p: row });
    }
    let mut pi = vec![0.0];
    pi.extend(stationary(rows));
    Ok(trimmed(pi))
}

/// Queue at dispatch for any `T`: the age of the requests left behind matters, so the balance is
/// written by heads. A request that finds `k b` others while a batch runs becomes the head of the
/// batch after `k` full ones, and is ready after `a = v + k s(b)`; its batch has `y < b` members
/// with probability `P(N(max(a, T)) = y - 1)`.
fn old_leftovers(model: &Model, gauss: &Gauss, wait: f64) -> Result<Vec<f64>, NotCovered> {
    let (b, rate) = (model.cap, model.rate);
    let top = checked_dense(model.states()?)?;
    let full = Poisson::new(rate * model.full());
    let mut flow = vec![vec![0.0; top]; top];
    for (i, line) in flow.iter_mut().enumerate() {
        let x = i + 1;
        if x <= b {
            let row = fresh_row(rate, model.s[x], wait, b, top);
            line[..row.len() - 1].copy_from_slice(&row[1..]);
        } else {
            for (k, p) in full.all().iter().enumerate() {
                let y = (x - b + k).min(top);
                if y > b {
                    line[y - 1] += p;
                }
            }
        }
    }
    let sure = surely_at_least(b as u32);
    for n in 1..=b {
        for k in 1..=top / b {
            if rate * k as f64 * model.full() > sure {
                break;
            }
            later_heads(model, gauss, wait, (n, k), &mut flow);
        }
    }
    let mut pi = vec![0.0];
    pi.extend(balance(flow, b - 1));
    Ok(trimmed(pi))
}

/// Adds to `flow` the short batches whose head arrived during a batch of `n` behind `k` full ones.
fn later_heads(
    model: &Model,
    gauss: &Gauss,
    wait: f64,
    (n, k): (usize, usize),
    flow: &mut [Vec<f64>],
) {
    let (b, rate, s) = (model.cap, model.rate, model.s[n]);
    let ahead = k as f64 * model.full();
    let grid = Grid::new(&[wait - ahead], s, PIECE_ARRIVALS / rate);
    let (mut before, mut after) = (Poisson::new(0.0), Poisson::new(0.0));
    // Found `k b`: `left` from before this service and the rest since it began.
    let most = if n == b { k * b } else { 0 };
    for (v, w) in grid.nodes(gauss).into_iter().zip(grid.weights(gauss)) {
        before.fill(rate * (s - v));
        if before.tail(k * b - most) < NO_MASS {
            continue;
        }
        after.fill(rate * (v + ahead).max(wait));
        for left in 0..=most.min(flow.len() - n) {
            let heads = w * rate * before.p(k * b - left);
            if heads > 0.0 {
                for (y, entry) in flow[n + left - 1].iter_mut().take(b - 1).enumerate() {
                    *entry += heads * after.p(y);
                }
            }
        }
    }
}

/// What is needed for the requests whose head is ready before its timer ends.
struct Timer<'a> {
    model: &'a Model,
    gauss: &'a Gauss,
    pi: &'a [f64],
    pos: &'a Positions,
    wait: f64,
}

impl Timer<'_> {
    /// Expected number of heads per dispatch that are ready within `x`.
    fn heads(&self, x: f64) -> f64 {
        let mut sum = [self.pos.left[0]];
        let (b, full) = (self.model.cap, self.model.full());
        for j in 0..=blocks_within(self.model, self.pos.width(), x) {
            self.pos.add_below(self.gauss, x - j as f64 * full, j * b, 1.0, &mut sum);
        }
        sum[0]
    }

    /// Short batches: the head with its timer run out, and requests that came less than `T` before
    /// the batch left.
    ///
    /// Given its size `l` and the age `t >= T` of the head at dispatch, the other `l - 1` requests
    /// came at uniform times in `(0, t)`, so at each waiting time below `T` their density is
    /// `lambda P(N(t) = l - 2)` per head, a constant.
    fn short_batches(&self, law: &mut Law) {
        let (b, rate) = (self.model.cap, self.model.rate);
        let ready = self.heads(self.wait);
        let mut density = vec![0.0; b];
        let mut arrivals = Poisson::new(rate * self.wait);
        for l in 1..b {
            law.add_atom(self.wait + self.model.s[l], ready * arrivals.p(l - 1));
        }
        for (l, d) in density.iter_mut().enumerate().skip(2) {
            *d = rate * ready * arrivals.p(l - 2);
        }
        for j in 0..self.pos.width().div_ceil(b) {
            let ahead = j as f64 * self.model.full();
            if rate * ahead > surely_at_least(b as u32) {
                break;
            }
            for (node, v) in self.pos.nodes.iter().enumerate() {
                if v + ahead >= self.wait {
                    let heads = self.pos.weights[node] * self.pos.at(node)[j * b];
                    arrivals.fill(rate * (v + ahead));
                    for (l, d) in density.iter_mut().enumerate().skip(2) {
                        *d += rate * heads * arrivals.p(l - 2);
                    }
                }
            }
        }
        let whole = law.add_grid(Grid::new(&[], self.wait, self.wait));
        for (l, d) in density.iter().enumerate().skip(2) {
            let curve = Curve::steps(law.grid(whole), vec![*d]);
            law.add_track(self.model.s[l], whole, curve);
        }
    }

    /// Batches that fill `x < T` after their head came, the server being free: head, last member
    /// and those in between. Returns the integral of the queue over all waits for a batch.
    fn filled(&self, law: &mut Law) -> f64 {
        let (b, rate, full) = (self.model.cap, self.model.rate, self.model.full());
        let end = self.wait.min(surely_at_least(b as u32) / rate);
        let mut breaks = Vec::new();
        for j in 0..=blocks_within(self.model, self.pos.width(), end) {
            breaks.extend(self.model.jumps(self.pi).iter().map(|s| j as f64 * full + s));
        }
        let grid = Grid::new(&breaks, end, PIECE_ARRIVALS / rate);
        let nodes = grid.nodes(self.gauss);
        let (mut head, mut inner) = (Vec::new(), Vec::new());
        let mut queued = 0.0;
        let mut arrivals = Poisson::new(0.0);
        for (x, w) in nodes.iter().zip(grid.weights(self.gauss)) {
            arrivals.fill(rate * x);
            let heads = self.heads(*x);
            head.push(heads * rate * arrivals.p(b - 2));
            inner.push(if b > 2 { heads * rate * rate * arrivals.p(b - 3) } else { 0.0 });
            queued += w * heads * (1..b).map(|m| m as f64 * arrivals.p(m - 1)).sum::<f64>();
        }
        let head = Curve::from_nodes(&grid, self.gauss, &head);
        law.add_atom(full, head.total());
        let inner = Curve::from_nodes(&grid, self.gauss, &inner);
        let later = |y: &f64| inner.total() - inner.below(&grid, *y);
        let inner: Vec<f64> = nodes.iter().map(later).collect();
        let inner = Curve::from_nodes(&grid, self.gauss, &inner);
        let index = law.add_grid(grid);
        law.add_track(full, index, head);
        law.add_track(full, index, inner);
        queued
    }
}

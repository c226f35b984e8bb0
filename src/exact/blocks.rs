//! Requests that leave with the batch that starts when the server becomes free, or a fixed time
//! later.
//!
//! A request that finds `k` others queued with residual service time `v` has `j = k / b` full
//! batches before it (`b` = cap), so the server is free for it after `w = v + j s(b)`; it is then
//! number `q = k - j b + 1` of the queue and `Poisson(lambda w)` requests have joined behind it.

use super::grid::{Curve, Gauss, Grid};
use super::law::Law;
use super::model::Model;
use super::poisson::{Poisson, surely_at_least};
use super::positions::Positions;

/// Adds all requests served at `w`: those of a full batch always, those of a batch of
/// `least <= l < b` where `w >= after` (before that another rule decides).
pub(crate) fn immediate(
    law: &mut Law,
    grid: usize,
    model: &Model,
    gauss: &Gauss,
    pos: &Positions,
    least: usize,
    after: f64,
) {
    let b = model.cap;
    let sure = surely_at_least(b as u32);
    let mut arrivals = Poisson::new(0.0);
    for j in 0..pos.width().div_ceil(b) {
        let ahead = j as f64 * model.full();
        let mut values = BySize::new(b, pos.nodes.len());
        for (node, v) in pos.nodes.iter().enumerate() {
            let block = block(pos.at(node), j, b);
            let mu = model.rate * (v + ahead);
            if mu > sure {
                values.put(b, node, block.iter().sum());
                continue;
            }
            arrivals.fill(mu);
            let full = |(i, h): (usize, &f64)| h * arrivals.tail(b - 1 - i);
            values.put(b, node, block.iter().enumerate().map(full).sum());
            if v + ahead >= after {
                values.short(block, &arrivals, least, node);
            }
        }
        values.add(law, grid, gauss, &pos.grid, |l| ahead + model.s[l]);
    }
}

/// Adds all requests of a batch of `l < b` that leaves `wait` after the server became free.
pub(crate) fn delayed(
    law: &mut Law,
    grid: usize,
    model: &Model,
    gauss: &Gauss,
    pos: &Positions,
    wait: f64,
) {
    let b = model.cap;
    let sure = surely_at_least(b as u32);
    let mut arrivals = Poisson::new(0.0);
    for j in 0..pos.width().div_ceil(b) {
        let until = j as f64 * model.full() + wait;
        if model.rate * until > sure {
            break;
        }
        let mut values = BySize::new(b, pos.nodes.len());
        for (node, v) in pos.nodes.iter().enumerate() {
            arrivals.fill(model.rate * (v + until));
            let block = block(pos.at(node), j, b);
            values.short(block, &arrivals, 1, node);
        }
        values.add(law, grid, gauss, &pos.grid, |l| until + model.s[l]);
    }
}

/// The densities of those with `j` full batches before them.
fn block(h: &[f64], j: usize, b: usize) -> &[f64] {
    &h[(j * b).min(h.len())..((j + 1) * b).min(h.len())]
}

/// Densities on the nodes by batch size; sizes that do not occur take no room.
pub(crate) struct BySize {
    values: Vec<Vec<f64>>,
    nodes: usize,
}

impl BySize {
    /// For batches of 1 to `cap`.
    pub(crate) fn new(cap: usize, nodes: usize) -> Self {
        Self { values: vec![Vec::new(); cap], nodes }
    }

    /// Sets a density.
    pub(crate) fn put(&mut self, size: usize, node: usize, density: f64) {
        if density > 0.0 {
            let values = &mut self.values[size - 1];
            if values.is_empty() {
                values.resize(self.nodes, 0.0);
            }
            values[node] = density;
        }
    }

    /// Sets the densities of batches of `least <= l < b`: place `q` of the batch, and `l - q`
    /// requests behind it.
    fn short(&mut self, block: &[f64], arrivals: &Poisson, least: usize, node: usize) {
        let last = self.values.len() - 1;
        let mut row = vec![0.0; last.min(block.len() + arrivals.all().len())];
        for (i, h) in block.iter().enumerate().take(row.len()) {
            for (r, p) in row[i..].iter_mut().zip(arrivals.all()) {
                *r += h * p;
            }
        }
        for (i, density) in row.iter().enumerate().skip(least - 1) {
            self.put(i + 1, node, *density);
        }
    }

    /// Turns the densities into tracks.
    pub(crate) fn add(
        &self,
        law: &mut Law,
        grid: usize,
        gauss: &Gauss,
        on: &Grid,
        offset: impl Fn(usize) -> f64,
    ) {
        for (i, values) in self.values.iter().enumerate().filter(|(_, v)| !v.is_empty()) {
            law.add_track(offset(i + 1), grid, Curve::from_nodes(on, gauss, values));
        }
    }
}

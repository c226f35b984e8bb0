//! Where arrivals land in the queue.
//!
//! `h(k, v)` is the expected number of requests per dispatch and ms that arrive while a batch runs
//! with residual service time `v` and find `k` requests queued. Per dispatch a batch of `n` with
//! `r` left behind starts with probability `pi`, and `k - r` is Poisson with mean
//! `lambda (s(n) - v)`; so `h` is the solution of a pure birth process that is run from the longest
//! service down to `v = 0` and receives the mass `pi` at `v = s(n)`. Only non-negative numbers are
//! multiplied and added.

use super::error::NotCovered;
use super::grid::{Gauss, Grid, K, PIECE_ARRIVALS};
use super::model::{Model, NO_MASS, checked_table};
use super::poisson::Poisson;

/// The density `h(k, v)` on the nodes of a grid over the residual service time.
#[derive(Debug, Clone)]
pub(crate) struct Positions {
    /// Grid over the residual, cut at every service time in use.
    pub(crate) grid: Grid,
    /// Quadrature nodes.
    pub(crate) nodes: Vec<f64>,
    /// Quadrature weights.
    pub(crate) weights: Vec<f64>,
    /// `P(k queued at a completion)`.
    pub(crate) left: Vec<f64>,
    width: usize,
    h: Vec<f64>,
    /// Integral of `h(k, .)` from 0 to each edge of the grid.
    cum: Vec<f64>,
}

impl Positions {
    /// Runs the birth process for the stationary vector `pi` (index = queue at dispatch), keeping
    /// queue lengths below `width`.
    ///
    /// `breaks` are further points at which the grid must be cut.
    pub(crate) fn new(
        model: &Model,
        gauss: &Gauss,
        pi: &[f64],
        breaks: &[f64],
        width: usize,
    ) -> Result<Self, NotCovered> {
        let mut starts: Vec<(f64, &[f64])> = Vec::new();
        for (n, p) in pi.iter().enumerate().take(model.cap).skip(1) {
            if *p > NO_MASS {
                starts.push((model.s[n], std::slice::from_ref(p)));
            }
        }
        if let Some(full) = pi.get(model.cap..).filter(|full| !full.is_empty()) {
            starts.push((model.full(), full));
        }
        starts.sort_by(|a, b| b.0.total_cmp(&a.0));
        let end = starts.first().map_or(model.full(), |s| s.0);
        let mut cuts: Vec<f64> = starts.iter().map(|s| s.0).collect();
        cuts.extend_from_slice(breaks);
        let grid = Grid::new(&cuts, end, PIECE_ARRIVALS / model.rate);
        let (nodes, weights) = (grid.nodes(gauss), grid.weights(gauss));
        checked_table(nodes.len(), width)?;
        let mut out =
            Self { grid, nodes, weights, left: Vec::new(), width, h: Vec::new(), cum: Vec::new() };
        out.run(model.rate, &starts);
        out.accumulate();
        Ok(out)
    }

    fn run(&mut self, rate: f64, starts: &[(f64, &[f64])]) {
        let width = self.width;
        self.h = vec![0.0; self.nodes.len() * width];
        let mut birth =
            Birth { y: vec![0.0; width], next: vec![0.0; width], law: Poisson::new(0.0) };
        let tiny = 1e-12 * self.grid.end();
        let (mut started, mut v) = (0, self.grid.end());
        for piece in (0..self.grid.pieces()).rev() {
            while started < starts.len() && starts[started].0 >= v - tiny {
                for (y, p) in birth.y.iter_mut().zip(starts[started].1) {
                    *y += p;
                }
                started += 1;
            }
            for node in (piece * K..(piece + 1) * K).rev() {
                birth.advance(rate * (v - self.nodes[node]));
                v = self.nodes[node];
                let row = &mut self.h[node * width..(node + 1) * width];
                for (h, y) in row.iter_mut().zip(&birth.y) {
                    *h = rate * y;
                }
            }
            let edge = self.grid.edges()[piece];
            birth.advance(rate * (v - edge));
            v = edge;
        }
        self.left = birth.y;
    }

    fn accumulate(&mut self) {
        let width = self.width;
        let mut sum = vec![0.0; width];
        self.cum = sum.clone();
        for piece in 0..self.grid.pieces() {
            for node in piece * K..(piece + 1) * K {
                let w = self.weights[node];
                for (s, h) in sum.iter_mut().zip(&self.h[node * width..(node + 1) * width]) {
                    *s += w * h;
                }
            }
            self.cum.extend_from_slice(&sum);
        }
    }

    /// Number of queue lengths kept.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// `h(k, v)` at a node, for `k = 0, 1, ..`.
    pub(crate) fn at(&self, node: usize) -> &[f64] {
        &self.h[node * self.width..(node + 1) * self.width]
    }

    /// Adds `sign` times the integral of `h(from + m, .)` over `[0, v]` to `out[m]`.
    pub(crate) fn add_below(&self, gauss: &Gauss, v: f64, from: usize, sign: f64, out: &mut [f64]) {
        if v <= 0.0 || from >= self.width {
            return;
        }
        let to = (from + out.len()).min(self.width);
        let whole = if v >= self.grid.end() { self.grid.pieces() } else { self.grid.locate(v) };
        let base = &self.cum[whole * self.width..][from..to];
        for (o, c) in out.iter_mut().zip(base) {
            *o += sign * c;
        }
        if whole < self.grid.pieces() {
            let (mid, half) = self.grid.span(whole);
            for (i, w) in gauss.partial((v - mid) / half).into_iter().enumerate() {
                let f = sign * half * w;
                for (o, h) in out.iter_mut().zip(&self.at(whole * K + i)[from..to]) {
                    *o += f * h;
                }
            }
        }
    }
}

/// The state of the birth process and its buffers.
struct Birth {
    y: Vec<f64>,
    next: Vec<f64>,
    law: Poisson,
}

impl Birth {
    /// Lets Poisson(`mu`) arrivals join.
    fn advance(&mut self, mu: f64) {
        self.law.fill(mu);
        self.next.fill(0.0);
        for (i, p) in self.law.all().iter().enumerate().take(self.y.len()) {
            for (n, y) in self.next[i..].iter_mut().zip(&self.y) {
                *n += p * y;
            }
        }
        std::mem::swap(&mut self.y, &mut self.next);
    }
}

//! Piecewise integration: grids split at every breakpoint, Gauss-Legendre nodes, and densities
//! stored as Legendre series so that they can be integrated up to any point of a piece.

/// Nodes per piece, and terms of the Legendre series of a piece.
pub(crate) const K: usize = 12;

/// Largest piece, measured in expected arrivals.
///
/// All integrands are products of Poisson probabilities, hence entire functions whose scale is one
/// arrival; 12 nodes on 1.5 arrivals leave an interpolation error below 1e-12.
pub(crate) const PIECE_ARRIVALS: f64 = 1.5;

/// The Gauss-Legendre rule with `K` nodes and the matrix from node values to Legendre coefficients.
#[derive(Debug, Clone)]
pub(crate) struct Gauss {
    /// Nodes in (-1, 1), ascending.
    pub(crate) x: [f64; K],
    /// Weights; they add up to 2.
    pub(crate) w: [f64; K],
    /// `coef[k][i]`: contribution of the value at node `i` to coefficient `k`.
    coef: [[f64; K]; K],
}

impl Gauss {
    /// Finds the nodes by Newton's method from the usual cosine start.
    pub(crate) fn new() -> Self {
        let n = K as f64;
        let (mut x, mut w, mut coef) = ([0.0; K], [0.0; K], [[0.0; K]; K]);
        for i in 0..K {
            let mut u = -(std::f64::consts::PI * (i as f64 + 0.75) / (n + 0.5)).cos();
            let mut slope = 1.0;
            for _ in 0..50 {
                let (p, before) = legendre_pair(u);
                slope = n * (before - u * p) / (1.0 - u * u);
                let step = p / slope;
                u -= step;
                if step.abs() < 1e-16 {
                    break;
                }
            }
            x[i] = u;
            w[i] = 2.0 / ((1.0 - u * u) * slope * slope);
            let p = legendre(u);
            for k in 0..K {
                coef[k][i] = (2 * k + 1) as f64 / 2.0 * w[i] * p[k];
            }
        }
        Self { x, w, coef }
    }

    /// Weights that turn node values into the integral over `[-1, u]`.
    pub(crate) fn partial(&self, u: f64) -> [f64; K] {
        let part = legendre_integrals(u);
        let mut out = [0.0; K];
        for (row, part) in self.coef.iter().zip(part) {
            for (o, c) in out.iter_mut().zip(row) {
                *o += part * c;
            }
        }
        out
    }
}

/// `P_K(u)` and `P_{K-1}(u)`.
fn legendre_pair(u: f64) -> (f64, f64) {
    let (mut before, mut p) = (1.0, u);
    for k in 1..K {
        let k = k as f64;
        let next = ((2.0 * k + 1.0) * u * p - k * before) / (k + 1.0);
        before = p;
        p = next;
    }
    (p, before)
}

/// `P_0(u) .. P_{K-1}(u)`.
fn legendre(u: f64) -> [f64; K] {
    let mut p = [1.0; K];
    p[1] = u;
    for k in 1..K - 1 {
        let f = k as f64;
        p[k + 1] = ((2.0 * f + 1.0) * u * p[k] - f * p[k - 1]) / (f + 1.0);
    }
    p
}

/// Integrals of `P_0 .. P_{K-1}` over `[-1, u]`.
fn legendre_integrals(u: f64) -> [f64; K] {
    let p = legendre(u);
    let last = legendre_pair(u).0;
    let mut s = [0.0; K];
    s[0] = u + 1.0;
    for k in 1..K {
        let next = if k + 1 < K { p[k + 1] } else { last };
        s[k] = (next - p[k - 1]) / (2 * k + 1) as f64;
    }
    s
}

/// An interval `[0, end]` cut into pieces on which the integrands are analytic.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    edges: Vec<f64>,
}

impl Grid {
    /// Cuts `[0, end]` at `breaks` (any order, those outside are ignored) and then into pieces no
    /// longer than `longest`.
    pub(crate) fn new(breaks: &[f64], end: f64, longest: f64) -> Self {
        let tiny = 1e-13 * end;
        let mut cuts: Vec<f64> =
            breaks.iter().copied().filter(|&c| c > tiny && c < end - tiny).collect();
        cuts.push(end);
        cuts.sort_by(f64::total_cmp);
        cuts.dedup_by(|b, a| *b - *a <= tiny);
        let mut edges = vec![0.0];
        let mut from = 0.0;
        for to in cuts {
            let parts = ((to - from) / longest).ceil().max(1.0);
            let step = (to - from) / parts;
            edges.extend((1..parts as usize).map(|i| from + step * i as f64));
            edges.push(to);
            from = to;
        }
        Self { edges }
    }

    /// A grid whose pieces are exactly those between consecutive `cuts`.
    pub(crate) fn of_steps(cuts: &[f64]) -> Self {
        let mut edges = vec![0.0];
        edges.extend_from_slice(cuts);
        edges.sort_by(f64::total_cmp);
        edges.dedup();
        Self { edges }
    }

    /// Number of pieces.
    pub(crate) fn pieces(&self) -> usize {
        self.edges.len() - 1
    }

    /// Piece boundaries, from 0 to the end.
    pub(crate) fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// Right end.
    pub(crate) fn end(&self) -> f64 {
        self.edges.last().copied().unwrap_or(0.0)
    }

    /// Middle and half length of a piece.
    pub(crate) fn span(&self, piece: usize) -> (f64, f64) {
        let (a, b) = (self.edges[piece], self.edges[piece + 1]);
        (0.5 * (a + b), 0.5 * (b - a))
    }

    /// The piece that holds `v`; a boundary belongs to the piece on its right.
    pub(crate) fn locate(&self, v: f64) -> usize {
        let right = self.edges.partition_point(|&e| e <= v);
        right.clamp(1, self.pieces()) - 1
    }

    /// All nodes, ascending, `K` per piece.
    pub(crate) fn nodes(&self, gauss: &Gauss) -> Vec<f64> {
        let mut out = Vec::with_capacity(self.pieces() * K);
        for piece in 0..self.pieces() {
            let (mid, half) = self.span(piece);
            out.extend(gauss.x.iter().map(|u| mid + half * u));
        }
        out
    }

    /// Quadrature weights that go with [`Grid::nodes`].
    pub(crate) fn weights(&self, gauss: &Gauss) -> Vec<f64> {
        let mut out = Vec::with_capacity(self.pieces() * K);
        for piece in 0..self.pieces() {
            let half = self.span(piece).1;
            out.extend(gauss.w.iter().map(|w| half * w));
        }
        out
    }
}

/// A non-negative density on a grid.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    /// Legendre coefficients per piece (1 for a step function, else `K`).
    order: usize,
    coef: Vec<f64>,
    /// Integral up to each edge.
    cum: Vec<f64>,
}

impl Curve {
    /// From values at the nodes of the grid.
    pub(crate) fn from_nodes(grid: &Grid, gauss: &Gauss, values: &[f64]) -> Self {
        let mut coef = Vec::with_capacity(values.len());
        let mut cum = vec![0.0];
        let mut total = 0.0;
        for (piece, at) in values.chunks_exact(K).enumerate() {
            let half = grid.span(piece).1;
            for row in &gauss.coef {
                coef.push(row.iter().zip(at).map(|(c, v)| c * v).sum());
            }
            total += half * gauss.w.iter().zip(at).map(|(w, v)| w * v).sum::<f64>();
            cum.push(total);
        }
        Self { order: K, coef, cum }
    }

    /// A step function with one value per piece.
    pub(crate) fn steps(grid: &Grid, values: Vec<f64>) -> Self {
        let mut cum = vec![0.0];
        let mut total = 0.0;
        for (piece, v) in values.iter().enumerate() {
            total += 2.0 * grid.span(piece).1 * v;
            cum.push(total);
        }
        Self { order: 1, coef: values, cum }
    }

    /// Total mass.
    pub(crate) fn total(&self) -> f64 {
        self.cum.last().copied().unwrap_or(0.0)
    }

    /// Mass on `[0, v]`.
    pub(crate) fn below(&self, grid: &Grid, v: f64) -> f64 {
        if v <= 0.0 {
            return 0.0;
        }
        if v >= grid.end() {
            return self.total();
        }
        let piece = grid.locate(v);
        let (mid, half) = grid.span(piece);
        let u = (v - mid) / half;
        let c = &self.coef[piece * self.order..(piece + 1) * self.order];
        let part = if self.order == 1 {
            c[0] * (u + 1.0)
        } else {
            c.iter().zip(legendre_integrals(u)).map(|(c, s)| c * s).sum()
        };
        self.cum[piece] + half * part
    }

    /// Density at `v`, from the right.
    pub(crate) fn at(&self, grid: &Grid, v: f64) -> f64 {
        if v < 0.0 || v >= grid.end() {
            return 0.0;
        }
        let piece = grid.locate(v);
        let (mid, half) = grid.span(piece);
        let c = &self.coef[piece * self.order..(piece + 1) * self.order];
        if self.order == 1 {
            return c[0];
        }
        let value: f64 = c.iter().zip(legendre((v - mid) / half)).map(|(c, p)| c * p).sum();
        value.max(0.0)
    }

    /// Integrals of the density times 1, `v` and `v^2`.
    pub(crate) fn moments(&self, grid: &Grid) -> [f64; 3] {
        let mut m = [0.0; 3];
        for piece in 0..grid.pieces() {
            let (mid, half) = grid.span(piece);
            let c = &self.coef[piece * self.order..(piece + 1) * self.order];
            let term = |k: usize| c.get(k).copied().unwrap_or(0.0);
            let (c0, c1, c2) = (term(0), term(1), term(2));
            let m0 = 2.0 * half * c0;
            let first = half * half * c1 * 2.0 / 3.0;
            let second = half.powi(3) * (c0 * 2.0 / 3.0 + c2 * 4.0 / 15.0);
            m[0] += m0;
            m[1] += mid * m0 + first;
            m[2] += mid * mid * m0 + 2.0 * mid * first + second;
        }
        m
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_integrates_polynomials_of_degree_23() {
        let g = Gauss::new();
        assert!((g.w.iter().sum::<f64>() - 2.0).abs() < 1e-14);
        let even: f64 = g.x.iter().zip(g.w).map(|(x, w)| w * x.powi(22)).sum();
        assert!((even - 2.0 / 23.0).abs() < 1e-14, "{even}");
    }

    #[test]
    fn curve_integrates_to_any_point() {
        let (gauss, grid) = (Gauss::new(), Grid::new(&[0.4, 3.0], 2.5, 1.0));
        assert_eq!(grid.edges()[1], 0.4);
        let values: Vec<f64> = grid.nodes(&gauss).iter().map(|v| (-v).exp()).collect();
        let curve = Curve::from_nodes(&grid, &gauss, &values);
        for v in [0.1f64, 0.4, 1.7, 2.5] {
            assert!((curve.below(&grid, v) - (1.0 - (-v).exp())).abs() < 1e-14);
        }
        assert!((curve.at(&grid, 1.3) - (-1.3f64).exp()).abs() < 1e-13);
        let m = curve.moments(&grid);
        let e = (-2.5f64).exp();
        assert!((m[1] - (1.0 - 3.5 * e)).abs() < 1e-13);
        assert!((m[2] - (2.0 - (2.5f64 * 2.5 + 5.0 + 2.0) * e)).abs() < 1e-13);
    }
}

//! Stationary vectors of the embedded chains.

/// One row of a transition matrix: probabilities of the states `lo, lo + 1, ..`.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// First state with an entry.
    pub(crate) lo: usize,
    /// Entries.
    pub(crate) p: Vec<f64>,
}

/// Stationary vector of a finite chain by the elimination of Grassmann, Taksar and Heyman (1985).
///
/// States are removed from the top; the pivot is the probability of moving down, so nothing is
/// ever subtracted and every entry keeps its relative accuracy. `lo` must not decrease from row to
/// row: then the fill-in stays inside the rows and a band of the matrix is all that is stored.
/// Where the way down underflows, the states below have no mass and the search stops there.
pub(crate) fn stationary(mut rows: Vec<Row>) -> Vec<f64> {
    let n = rows.len();
    let mut base = 0;
    // Longest reach of the rows so far: where it ends before `k`, no row above enters `k`.
    let mut reach = Vec::with_capacity(n);
    let mut longest = 0;
    for row in &rows {
        longest = longest.max(row.lo + row.p.len());
        reach.push(longest);
    }
    for k in (1..n).rev() {
        let first = reach.partition_point(|&r| r <= k).min(k);
        let (upper, rest) = rows.split_at_mut(k);
        let from = &rest[0];
        let below = &from.p[..k.saturating_sub(from.lo).min(from.p.len())];
        let down: f64 = below.iter().sum();
        if down <= f64::MIN_POSITIVE {
            base = k;
            break;
        }
        for row in upper.iter_mut().skip(first) {
            let Some(at) = k.checked_sub(row.lo).filter(|&at| at < row.p.len()) else {
                continue;
            };
            let a = row.p[at] / down;
            row.p[at] = a;
            if a > 0.0 {
                let shift = from.lo - row.lo;
                for (t, f) in row.p[shift..].iter_mut().zip(below) {
                    *t += a * f;
                }
            }
        }
    }
    let mut pi = vec![0.0; n];
    pi[base] = 1.0;
    for k in base..n {
        let (row, mass) = (&rows[k], pi[k]);
        for (at, a) in row.p.iter().enumerate().skip((k + 1).saturating_sub(row.lo)) {
            pi[row.lo + at] += mass * a;
        }
    }
    scale(&mut pi);
    pi
}

/// Stationary vector of a flow balance that is not a stochastic matrix.
///
/// `m[x][y]` is the expected number of dispatches in state `y` caused by one in state `x`, for all
/// columns but column `gap`, which is not known and not needed: the states above `gap` are
/// eliminated, and the remaining `gap` equations in `gap + 1` unknowns have a one-dimensional
/// kernel. Rows `x > gap` have entries below column `gap` and from `x - gap - 1` up only.
pub(crate) fn balance(mut m: Vec<Vec<f64>>, gap: usize) -> Vec<f64> {
    let n = m.len();
    for k in (gap + 1..n).rev() {
        let (upper, rest) = m.split_at_mut(k);
        let from = &rest[0];
        let stay = 1.0 - from[k];
        for row in upper.iter_mut() {
            let a = row[k] / stay;
            row[k] = a;
            if a > 0.0 {
                for range in [0..gap, gap.max(k - gap - 1)..k] {
                    for (t, f) in row[range.clone()].iter_mut().zip(&from[range]) {
                        *t += a * f;
                    }
                }
            }
        }
    }
    let mut equations = vec![vec![0.0; gap + 1]; gap];
    for (y, equation) in equations.iter_mut().enumerate() {
        for (x, entry) in equation.iter_mut().enumerate() {
            *entry = m[x][y] - if x == y { 1.0 } else { 0.0 };
        }
    }
    let mut pi = kernel(equations);
    pi.resize(n, 0.0);
    for k in gap + 1..n {
        pi[k] = (0..k).map(|x| pi[x] * m[x][k]).sum();
    }
    scale(&mut pi);
    pi
}

/// The vector that `n` equations in `n + 1` unknowns leave free, by complete pivoting.
fn kernel(mut a: Vec<Vec<f64>>) -> Vec<f64> {
    let n = a.len();
    let mut order: Vec<usize> = (0..=n).collect();
    for k in 0..n {
        let (mut row, mut col, mut best) = (k, k, -1.0);
        for (i, line) in a.iter().enumerate().skip(k) {
            for (j, v) in line.iter().enumerate().skip(k) {
                if v.abs() > best {
                    (row, col, best) = (i, j, v.abs());
                }
            }
        }
        a.swap(k, row);
        order.swap(k, col);
        for line in &mut a {
            line.swap(k, col);
        }
        if a[k][k] == 0.0 {
            continue;
        }
        let (top, bottom) = a.split_at_mut(k + 1);
        for line in bottom {
            let f = line[k] / top[k][k];
            if f != 0.0 {
                for (t, s) in line[k..].iter_mut().zip(&top[k][k..]) {
                    *t -= f * s;
                }
            }
        }
    }
    let mut x = vec![0.0; n + 1];
    x[n] = 1.0;
    for k in (0..n).rev() {
        let rest: f64 = (k + 1..=n).map(|j| a[k][j] * x[j]).sum();
        x[k] = if a[k][k] == 0.0 { 0.0 } else { -rest / a[k][k] };
    }
    let mut out = vec![0.0; n + 1];
    for (k, &place) in order.iter().enumerate() {
        out[place] = x[k];
    }
    out
}

/// Scales to total 1 and removes negative rounding dust.
fn scale(pi: &mut [f64]) {
    let total: f64 = pi.iter().sum();
    for v in pi {
        *v = (*v / total).max(0.0);
    }
}

/// Decay rate per item of the queue when every batch is full: `ln z` with `z > 1` the root of
/// `b ln z = growth(z)`, where `growth` is convex and vanishes at 1.
///
/// `growth(z)` is the logarithm of the generating function of the arrivals during a full service
/// (for Poisson arrivals `lambda s(b) (z - 1)`). The queue's tail falls as `z^-k`.
pub(crate) fn decay(cap: f64, growth: &dyn Fn(f64) -> f64) -> f64 {
    let excess = |u: f64| growth(u.exp()) - cap * u;
    let mut high = 1e-9;
    while excess(high) < 0.0 && high < 40.0 {
        high *= 2.0;
    }
    let mut low = 0.5 * high;
    for _ in 0..60 {
        let mid = 0.5 * (low + high);
        if excess(mid) < 0.0 { low = mid } else { high = mid }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn birth_death_chain_is_geometric() {
        let n = 40;
        let rows = (0..n)
            .map(|k: usize| Row {
                lo: k.saturating_sub(1),
                p: match k {
                    0 => vec![0.7, 0.3],
                    39 => vec![0.7, 0.3],
                    _ => vec![0.7, 0.0, 0.3],
                },
            })
            .collect();
        let pi = stationary(rows);
        for k in 1..n {
            assert!((pi[k] / pi[k - 1] - 3.0 / 7.0).abs() < 1e-14);
        }
    }

    #[test]
    fn balance_equals_stationary_on_a_stochastic_matrix() {
        let m = vec![
            vec![0.5, 0.2, 0.2, 0.1],
            vec![0.3, 0.3, 0.3, 0.1],
            vec![0.1, 0.4, 0.2, 0.3],
            vec![0.0, 0.2, 0.5, 0.3],
        ];
        let rows = m.iter().map(|p| Row { lo: 0, p: p.clone() }).collect();
        let (a, b) = (stationary(rows), balance(m, 2));
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() < 1e-14);
        }
    }

    #[test]
    fn decay_of_the_single_server_queue() {
        let u = decay(1.0, &|z| 0.9 * (z - 1.0));
        assert!((u.exp() * 0.9 - 0.9 - u).abs() < 1e-12);
        assert!((94.48 - 10f64.ln() / (0.9 / 8.5 * (u.exp() - 1.0))).abs() < 0.01);
    }
}

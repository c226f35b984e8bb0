//! Two-state Markov-modulated arrivals under the rules that never wait (none, greedy).
//!
//! The same steps as for Poisson arrivals with the phase carried along: the chain lives on (queue
//! at dispatch, phase), the birth process on (queue, phase), and arrivals are weighted by the rate
//! of their phase because they do not see time averages.

use super::blocks::BySize;
use super::chain::{Row, decay, stationary};
use super::error::NotCovered;
use super::grid::{Gauss, Grid, K, PIECE_ARRIVALS};
use super::law::Law;
use super::model::{NO_MASS, Solved, checked_cost, checked_dense, checked_states, checked_table};
use super::phases::{Pair, Phases, Square, pull, push};

/// Queue lengths beyond which a solve is refused; the phase doubles the states.
const MOST_STATES: usize = 12_000;

/// Largest batch tried for the rule without a cap.
const MOST_UNBOUNDED: u32 = 512;

/// The server and its arrivals.
#[derive(Debug)]
pub(crate) struct Bursty {
    phases: Phases,
    cap: usize,
    s: Vec<f64>,
}

impl Bursty {
    /// Reads the costs.
    fn new(phases: Phases, cap: u32, cost: &dyn Fn(u32) -> f64) -> Result<Self, NotCovered> {
        let mut s = vec![0.0];
        for n in 1..=cap {
            s.push(checked_cost(n, cost(n))?);
        }
        Ok(Self { phases, cap: cap as usize, s })
    }

    /// Service times by batch size.
    pub(crate) fn service(&self) -> &[f64] {
        &self.s
    }

    /// Throughput of full batches, per ms.
    pub(crate) fn capacity(&self) -> f64 {
        self.cap as f64 / self.s[self.cap]
    }

    fn states(&self) -> Result<usize, NotCovered> {
        let peak = self.phases.rates[0].max(self.phases.rates[1]);
        let longest = peak * self.s.iter().copied().fold(0.0, f64::max);
        let full = self.s[self.cap];
        let slope = decay(self.cap as f64, &|z| full * self.phases.growth(z));
        let spread = longest + 9.0 * longest.sqrt() + 40.0;
        checked_states(self.cap as f64 + spread + 42.0 / slope, MOST_STATES)
    }

    /// Stationary law of (queue at dispatch, phase), index = queue.
    fn queue_at_dispatch(&self, top: usize) -> Vec<Pair> {
        let wake = self.phases.at_next_arrival();
        let mut counts = self.phases.counts(0.0);
        let mut rows = Vec::with_capacity(2 * top);
        for x in 1..=top {
            if x <= self.cap {
                // Costs mostly grow with the batch: add the time between two sizes.
                let more = self.s[x] - self.s[x - 1];
                counts = if more >= 0.0 {
                    self.phases.extended(counts, more)
                } else {
                    self.phases.counts(self.s[x])
                };
            }
            let left = x - x.min(self.cap);
            let lo = left.max(1);
            let hi = (left + counts.len()).clamp(lo, top);
            for from in 0..2 {
                let mut p = vec![0.0; 2 * (hi + 1 - lo)];
                for (k, c) in counts.iter().enumerate() {
                    let mut to = c[from];
                    if left + k == 0 {
                        to = times(to, &wake);
                    }
                    let at = 2 * ((left + k).clamp(lo, hi) - lo);
                    p[at] += to[0];
                    p[at + 1] += to[1];
                }
                rows.push(Row { lo: 2 * (lo - 1), p });
            }
        }
        let mut pi = vec![[0.0; 2]];
        pi.extend(stationary(rows).chunks_exact(2).map(|c| [c[0], c[1]]));
        let used = pi.iter().rposition(|p| p[0] + p[1] > 0.01 * NO_MASS).unwrap_or(0);
        pi.truncate(used + 1);
        pi
    }
}

/// Row vector times matrix.
fn times(y: Pair, m: &Square) -> Pair {
    [y[0] * m[0][0] + y[1] * m[1][0], y[0] * m[0][1] + y[1] * m[1][1]]
}

/// Solves the rule that takes at most `cap` at once without waiting.
pub(crate) fn solve(
    phases: Phases,
    cap: Option<u32>,
    cost: &dyn Fn(u32) -> f64,
) -> Result<(Bursty, Solved), NotCovered> {
    let rate = phases.mean_rate();
    let Some(cap) = cap else {
        return unbounded(phases, cost);
    };
    let server = Bursty::new(phases, cap, cost)?;
    if rate >= server.capacity() {
        return Err(NotCovered::Overloaded {
            offered_per_s: 1000.0 * rate,
            capacity_per_s: 1000.0 * server.capacity(),
        });
    }
    let pi = server.queue_at_dispatch(server.states()?);
    let solved = finish(&server, &pi)?;
    Ok((server, solved))
}

/// The rule without a cap equals a cap that is never reached.
fn unbounded(phases: Phases, cost: &dyn Fn(u32) -> f64) -> Result<(Bursty, Solved), NotCovered> {
    let mut cap = 32;
    while cap <= MOST_UNBOUNDED {
        let server = Bursty::new(phases.clone(), cap, cost)?;
        if server.phases.mean_rate() < server.capacity() {
            let top = server.states()?.min(2 * server.cap + 200);
            let pi = server.queue_at_dispatch(checked_dense(top)?);
            let beyond: f64 = pi.iter().skip(server.cap).flatten().sum();
            if beyond < 1e-15 {
                let solved = finish(&server, &pi)?;
                return Ok((server, solved));
            }
        }
        cap *= 2;
    }
    Err(NotCovered::TooLarge { states: f64::from(cap), limit: MOST_UNBOUNDED as usize })
}

fn finish(server: &Bursty, pi: &[Pair]) -> Result<Solved, NotCovered> {
    let gauss = Gauss::new();
    let mut pmf = vec![0.0; server.cap];
    let mut area = 0.0;
    for (x, p) in pi.iter().enumerate().skip(1) {
        let n = x.min(server.cap);
        let (s, mass) = (server.s[n], p[0] + p[1]);
        pmf[n - 1] += mass;
        let arrivals = server.phases.count_area(s);
        area += x as f64 * s * mass + p[0] * arrivals[0] + p[1] * arrivals[1];
    }
    let places = Places::new(server, &gauss, pi)?;
    let mut law = Law::default();
    law.add_atom(server.s[1], places.left[0][0] + places.left[0][1]);
    served(&mut law, server, &gauss, &places);
    Ok(Solved { law, pmf, area })
}

/// Density of arrivals by residual service time, queue found and phase.
struct Places {
    grid: Grid,
    nodes: Vec<f64>,
    h: Vec<Vec<Pair>>,
    left: Vec<Pair>,
}

impl Places {
    fn new(server: &Bursty, gauss: &Gauss, pi: &[Pair]) -> Result<Self, NotCovered> {
        let mut starts: Vec<(f64, &[Pair])> = Vec::new();
        for (n, p) in pi.iter().enumerate().take(server.cap).skip(1) {
            if p[0] + p[1] > NO_MASS {
                starts.push((server.s[n], std::slice::from_ref(p)));
            }
        }
        if let Some(full) = pi.get(server.cap..).filter(|full| !full.is_empty()) {
            starts.push((server.s[server.cap], full));
        }
        starts.sort_by(|a, b| b.0.total_cmp(&a.0));
        let cuts: Vec<f64> = starts.iter().map(|s| s.0).collect();
        let end = cuts.first().copied().unwrap_or(server.s[server.cap]);
        let grid = Grid::new(&cuts, end, PIECE_ARRIVALS / server.phases.theta());
        let nodes = grid.nodes(gauss);
        checked_table(nodes.len(), 2 * pi.len())?;
        let mut h = vec![Vec::new(); nodes.len()];
        let (mut y, mut next) = (vec![[0.0; 2]; pi.len()], vec![[0.0; 2]; pi.len()]);
        let (mut started, mut v) = (0, grid.end());
        for piece in (0..grid.pieces()).rev() {
            while started < starts.len() && starts[started].0 >= v - 1e-12 * grid.end() {
                for (y, p) in y.iter_mut().zip(starts[started].1) {
                    *y = [y[0] + p[0], y[1] + p[1]];
                }
                started += 1;
            }
            for node in (piece * K..(piece + 1) * K).rev() {
                push(&y, &server.phases.short(v - nodes[node]), &mut next);
                std::mem::swap(&mut y, &mut next);
                v = nodes[node];
                let [a, b] = server.phases.rates;
                h[node] = y.iter().map(|y| [a * y[0], b * y[1]]).collect();
            }
            push(&y, &server.phases.short(v - grid.edges()[piece]), &mut next);
            std::mem::swap(&mut y, &mut next);
            v = grid.edges()[piece];
        }
        Ok(Self { grid, nodes, h, left: y })
    }
}

/// Adds the requests that come while the server is busy: `u[k]` is the probability, by phase, that
/// `k < b` others join behind a request before the server is free for it.
fn served(law: &mut Law, server: &Bursty, gauss: &Gauss, places: &Places) {
    let (b, full) = (server.cap, server.s[server.cap]);
    let grid = law.add_grid(places.grid.clone());
    let mut from = 0.0;
    let steps: Vec<Vec<Square>> = places
        .nodes
        .iter()
        .map(|&v| server.phases.short(v - std::mem::replace(&mut from, v)))
        .collect();
    let (count, whole) = server.phases.steps(full);
    let mut start = vec![[0.0; 2]; b];
    start[0] = [1.0, 1.0];
    let width = places.left.len();
    for j in 0..width.div_ceil(b) {
        let mut values = BySize::new(b, places.nodes.len());
        let mut u = start.clone();
        let mut next = u.clone();
        let short = b > 1 && u.iter().flatten().sum::<f64>() > NO_MASS;
        for (node, step) in steps.iter().enumerate() {
            let block = &places.h[node][j * b..((j + 1) * b).min(width)];
            if !short {
                values.put(b, node, block.iter().flatten().sum());
                continue;
            }
            pull(&u, step, &mut next);
            std::mem::swap(&mut u, &mut next);
            sizes(block, &u, |l, density| values.put(l, node, density));
        }
        values.add(law, grid, gauss, &places.grid, |l| j as f64 * full + server.s[l]);
        for _ in 0..if short { count } else { 0 } {
            pull(&start, &whole, &mut next);
            std::mem::swap(&mut start, &mut next);
        }
    }
}

/// Density by batch size of the requests of a block.
fn sizes(block: &[Pair], u: &[Pair], mut put: impl FnMut(usize, f64)) {
    let b = u.len();
    for l in 1..b {
        let term = |(h, u): (&Pair, &Pair)| h[0] * u[0] + h[1] * u[1];
        put(l, block.iter().zip(u[..l].iter().rev()).map(term).sum());
    }
    // Full unless fewer than `b - q` join; `short` is the chance of that.
    let mut short = [0.0; 2];
    let mut full = 0.0;
    let mut tail = vec![[0.0; 2]; b];
    for (m, t) in tail.iter_mut().enumerate() {
        *t = [(1.0f64 - short[0]).max(0.0), (1.0f64 - short[1]).max(0.0)];
        short = [short[0] + u[m][0], short[1] + u[m][1]];
    }
    for (i, h) in block.iter().enumerate() {
        let t = tail[b - 1 - i];
        full += h[0] * t[0] + h[1] * t[1];
    }
    put(b, full);
}

//! A latency law as a sum of point masses and shifted densities.

use super::grid::{Curve, Grid};

/// Latencies this close (relative) are the same point; costs are sums of a few rounded terms.
const SAME: f64 = 1e-12;

/// Tracks with less mass than this cannot change a printed digit.
const LEAST: f64 = 1e-22;

/// Requests whose latency is `offset` plus a quantity with the given density.
#[derive(Debug, Clone)]
pub(crate) struct Track {
    /// Shift, ms.
    pub(crate) offset: f64,
    /// Index of the grid of the curve.
    pub(crate) grid: usize,
    /// Density, requests per dispatch and ms.
    pub(crate) curve: Curve,
}

/// Requests per dispatch by latency; [`Law::normalise`] turns it into a probability law.
#[derive(Debug, Clone, Default)]
pub(crate) struct Law {
    grids: Vec<Grid>,
    tracks: Vec<Track>,
    /// Point masses (latency, mass), sorted and merged by [`Law::normalise`].
    atoms: Vec<(f64, f64)>,
    scale: f64,
}

impl Law {
    /// Adds a grid and returns its index.
    pub(crate) fn add_grid(&mut self, grid: Grid) -> usize {
        self.grids.push(grid);
        self.grids.len() - 1
    }

    /// A grid by index.
    pub(crate) fn grid(&self, index: usize) -> &Grid {
        &self.grids[index]
    }

    /// Adds a density; one without a mass that matters is left out.
    pub(crate) fn add_track(&mut self, offset: f64, grid: usize, curve: Curve) {
        if curve.total() > LEAST {
            self.tracks.push(Track { offset, grid, curve });
        }
    }

    /// Adds a point mass; zero is left out.
    pub(crate) fn add_atom(&mut self, at: f64, mass: f64) {
        if mass > 0.0 {
            self.atoms.push((at, mass));
        }
    }

    /// Divides by the number of requests per dispatch and merges equal atoms. Returns the total
    /// probability, which is 1 up to the error of the computation.
    pub(crate) fn normalise(&mut self, requests_per_dispatch: f64) -> f64 {
        self.scale = 1.0 / requests_per_dispatch;
        self.atoms.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut merged: Vec<(f64, f64)> = Vec::with_capacity(self.atoms.len());
        for &(at, mass) in &self.atoms {
            match merged.last_mut() {
                Some(last) if at - last.0 <= SAME * at => last.1 += mass,
                _ => merged.push((at, mass)),
            }
        }
        self.atoms = merged;
        self.moments()[0]
    }

    /// `P(latency < t)` and `P(latency <= t)`.
    pub(crate) fn cdf(&self, t: f64) -> (f64, f64) {
        let smooth = self.smooth_below(t);
        let (mut below, mut upto) = (0.0, 0.0);
        for &(at, mass) in &self.atoms {
            if at <= t + SAME * t.abs() {
                upto += mass;
                if at < t - SAME * t.abs() {
                    below += mass;
                }
            }
        }
        (self.scale * (smooth + below), self.scale * (smooth + upto))
    }

    fn smooth_below(&self, t: f64) -> f64 {
        self.tracks.iter().map(|k| k.curve.below(&self.grids[k.grid], t - k.offset)).sum()
    }

    /// Density of the continuous part, from the right, per ms.
    pub(crate) fn density(&self, t: f64) -> f64 {
        let nudge = SAME * t.abs();
        let at = |k: &Track| k.curve.at(&self.grids[k.grid], t - k.offset + nudge);
        self.scale * self.tracks.iter().map(at).sum::<f64>()
    }

    /// Probability at the point `t`.
    pub(crate) fn mass_at(&self, t: f64) -> f64 {
        let same = |a: &&(f64, f64)| (a.0 - t).abs() <= SAME * t.abs();
        self.scale * self.atoms.iter().filter(same).map(|a| a.1).sum::<f64>()
    }

    /// Integrals of 1, latency and latency squared.
    pub(crate) fn moments(&self) -> [f64; 3] {
        let mut sum = [0.0; 3];
        for &(at, mass) in &self.atoms {
            sum[0] += mass;
            sum[1] += mass * at;
            sum[2] += mass * at * at;
        }
        for k in &self.tracks {
            let m = k.curve.moments(&self.grids[k.grid]);
            sum[0] += m[0];
            sum[1] += m[1] + k.offset * m[0];
            sum[2] += m[2] + 2.0 * k.offset * m[1] + k.offset * k.offset * m[0];
        }
        sum.map(|v| v * self.scale)
    }

    /// Smallest `t` with `P(latency <= t) >= q`, and whether a point mass sits there.
    ///
    /// Atoms are tried first, in order, and returned as they are; between two atoms the law is
    /// continuous and the root is bracketed.
    pub(crate) fn quantile(&self, q: f64) -> (f64, bool) {
        let mut low = 0.0;
        let mut high = self.end();
        let mut mass = 0.0;
        for &(at, m) in &self.atoms {
            let smooth = self.smooth_below(at);
            if self.scale * (smooth + mass) >= q {
                high = at;
                break;
            }
            mass += m;
            if self.scale * (smooth + mass) >= q {
                return (at, true);
            }
            low = at;
        }
        (self.root(q / self.scale - mass, low, high), false)
    }

    /// Solves "smooth part up to t = target" on a bracket by Newton steps kept inside it.
    fn root(&self, target: f64, mut low: f64, mut high: f64) -> f64 {
        let mut t = 0.5 * (low + high);
        for round in 0..200 {
            let excess = self.smooth_below(t) - target;
            if excess < 0.0 {
                low = t
            } else {
                high = t
            }
            if high - low <= 4.0 * f64::EPSILON * high {
                break;
            }
            let slope = self.density(t) / self.scale;
            let newton = t - excess / slope;
            // Every third step halves the bracket, so a jump of the density cannot stall it.
            let next = if newton > low && newton < high && round % 3 != 2 {
                newton
            } else {
                0.5 * (low + high)
            };
            if (next - t).abs() <= 2.0 * f64::EPSILON * t && round % 3 != 2 {
                t = next;
                break;
            }
            t = next;
        }
        t
    }

    /// Right end of the (truncated) support, ms.
    fn end(&self) -> f64 {
        let smooth = self.tracks.iter().map(|k| k.offset + self.grids[k.grid].end());
        smooth.chain(self.atoms.iter().map(|a| a.0)).fold(0.0, f64::max)
    }
}

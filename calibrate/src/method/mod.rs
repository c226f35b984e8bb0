//! How a device is measured, whatever it is.
//!
//! Warm-up until the times are flat; the largest batch that fits, by doubling and halving; then
//! a sweep in rounds, each of which visits the sizes in a fresh random order between visits to
//! the reference sizes (1 and the largest), so that a drift hits all sizes alike and shows.
//! A size is done when the 95 % interval of its median is narrow enough. Sizes that straight
//! lines through their neighbours miss get further sizes beside them. A second, independent sweep
//! says how well all of it repeats. A sweep that drifted too far is run again.

pub mod grid;
pub mod stats;
mod sweep;

use crate::device::{Device, Fault};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is measured, and how well.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Sizes to measure; empty means those of [`grid::grid`].
    pub batches: Vec<u32>,
    /// Largest batch to try.
    pub max_batch: u32,
    /// Half-width of the median's 95 % interval at which a size is done, relative.
    pub precision: f64,
    /// Fewest samples of a size.
    pub min_samples: usize,
    /// Most samples of a size.
    pub max_samples: usize,
    /// Time of one sweep after which sizes that have the fewest samples are done, ns.
    pub budget_ns: u64,
    /// Longest warm-up, ns.
    pub warm_up_ns: u64,
    /// Passes longer than this end the search for the largest batch, ns.
    pub longest_pass_ns: u64,
    /// Deviation from straight lines above which further sizes are measured, relative.
    pub refine_above: f64,
    /// Most further sizes.
    pub refine_most: usize,
    /// Whether a second sweep is made.
    pub repeat: bool,
    /// Seed of the random order.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            batches: Vec::new(),
            max_batch: 256,
            precision: 0.005,
            min_samples: 30,
            max_samples: 2_000,
            budget_ns: 60_000_000_000,
            warm_up_ns: 5_000_000_000,
            longest_pass_ns: 5_000_000_000,
            refine_above: 0.03,
            refine_most: 12,
            repeat: true,
            seed: 42,
        }
    }
}

/// Drift above which a sweep is flagged.
pub const DRIFT_FLAG: f64 = 0.01;
/// Drift above which a sweep is run again.
pub const DRIFT_RERUN: f64 = 0.03;
/// Most sweeps that are thrown away for their drift.
const RERUNS: u32 = 1;
/// Passes at the start of a visit that are not kept.
const DISCARD: usize = 1;
/// Passes of a visit that are.
const VISIT: usize = 5;

/// Whoever watches: the terminal, a test.
pub trait Watch {
    /// `what` is going on; of it `done` (0 to 1), with about `left_ns` to go.
    fn progress(&mut self, _what: &str, _done: f64, _left_ns: u64) {}
}

/// Nobody.
#[derive(Debug)]
pub struct Silent;

impl Watch for Silent {}

/// Samples of one size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Service times in the order they were taken, ns.
    pub times_ns: Vec<f64>,
    /// Whether the interval of the median never became narrow enough.
    pub noisy: bool,
}

/// How the reference sizes changed during a sweep.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Drift {
    /// Change over the sweep, relative.
    pub change: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
}

impl Drift {
    /// Whether it is worth a warning: above 1 % and told from none.
    #[must_use]
    pub fn flagged(&self) -> bool {
        self.change.abs() > DRIFT_FLAG && self.interval[0] * self.interval[1] > 0.0
    }

    /// Whether the sweep should be run again: above 3 % and told from none.
    #[must_use]
    pub fn too_far(&self) -> bool {
        self.change.abs() > DRIFT_RERUN && self.flagged()
    }
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Samples of the kept sweep, by size.
    pub sizes: BTreeMap<u32, Samples>,
    /// Largest batch that ran, and why no larger one.
    pub largest: u32,
    /// Why there is no larger one.
    pub limit: String,
    /// Passes of the warm-up, and whether the times became flat.
    pub warm_up: (u64, bool),
    /// Drift of the kept sweep; `None` where it was too short to say.
    pub drift: Option<Drift>,
    /// Sweeps that were run again because they drifted.
    pub reruns: u32,
    /// Median and largest difference between two sweeps, relative.
    pub repeatability: Option<(f64, f64)>,
    /// Sizes that were added because straight lines missed their neighbours.
    pub refined: Vec<u32>,
    /// Whether a signal ended it before its time.
    pub interrupted: bool,
    /// Memory of a batch beyond the weights, bytes, by size.
    pub memory_bytes: BTreeMap<u32, u64>,
}

/// Measures `device` by `plan` until it is done or `stop` is set. What was measured by then is in
/// the result either way.
///
/// # Errors
/// A device that fails, or that cannot run a single item.
pub fn measure(
    device: &mut dyn Device,
    plan: &Plan,
    stop: &Arc<AtomicBool>,
    watch: &mut dyn Watch,
) -> Result<Measured, Fault> {
    let mut out = Measured::default();
    find_largest(device, plan, stop, &mut out)?;
    if stop.load(Ordering::Relaxed) {
        out.interrupted = true;
        return Ok(out);
    }
    warm_up(device, plan, stop, &mut out)?;
    let mut sizes = if plan.batches.is_empty() {
        grid::grid(out.largest, &device.tile_edges())
    } else {
        plan.batches.iter().copied().filter(|n| *n <= out.largest).collect()
    };
    sizes.sort_unstable();
    sizes.dedup();
    let mut order = sweep::order(plan.seed);
    loop {
        let name = if out.reruns == 0 { "first sweep" } else { "the sweep again: it drifted" };
        watch.progress(name, 0.0, plan.budget_ns);
        let swept = sweep::sweep(device, plan, &sizes, &mut order, stop, &mut |d, l| {
            watch.progress(name, d, l);
        })?;
        out.sizes = swept.sizes;
        out.drift = swept.drift;
        let again = out.drift.is_some_and(|d| d.too_far()) && out.reruns < RERUNS;
        if !again || stop.load(Ordering::Relaxed) {
            break;
        }
        out.reruns += 1;
    }
    if plan.batches.is_empty() {
        refine(device, plan, stop, watch, &mut out, &mut order)?;
    }
    if plan.repeat && !stop.load(Ordering::Relaxed) {
        let sizes: Vec<u32> = out.sizes.keys().copied().collect();
        let second = sweep::sweep(device, plan, &sizes, &mut order, stop, &mut |d, l| {
            watch.progress("second sweep", d, l);
        })?;
        if !stop.load(Ordering::Relaxed) {
            out.repeatability = grid::repeatability(&medians(&out.sizes), &medians(&second.sizes));
        }
    }
    out.memory_bytes =
        out.sizes.keys().filter_map(|n| Some((*n, device.memory_bytes(*n)?))).collect();
    out.interrupted = stop.load(Ordering::Relaxed);
    Ok(out)
}

/// The median of each size, ns.
#[must_use]
pub fn medians(sizes: &BTreeMap<u32, Samples>) -> Vec<(u32, f64)> {
    let some = sizes.iter().filter(|(_, s)| !s.times_ns.is_empty());
    some.map(|(n, s)| (*n, stats::median(&s.times_ns))).collect()
}

/// Doubles from 1 until a size does not fit or takes too long, then halves the gap.
fn find_largest(
    device: &mut dyn Device,
    plan: &Plan,
    stop: &AtomicBool,
    out: &mut Measured,
) -> Result<(), Fault> {
    let cap = plan.batches.iter().copied().max().unwrap_or(plan.max_batch).max(1);
    let (mut fits, mut fails, mut size) = (0_u32, None::<u32>, 1_u32);
    out.limit = format!("{cap} is the largest size asked for");
    while fits < cap && fails.is_none_or(|f| f - fits > 1) && !stop.load(Ordering::Relaxed) {
        match device.prepare(size).and_then(|()| device.pass(size)) {
            Ok(ns) => {
                fits = size;
                if ns > plan.longest_pass_ns && size < cap {
                    out.limit =
                        format!("a pass of {size} items already takes {} ms", ns / 1_000_000);
                    break;
                }
            }
            Err(Fault::DoesNotFit { why, .. }) if size > 1 => {
                out.limit = format!("a batch of {size} does not fit: {why}");
                fails = Some(size);
            }
            Err(fault) => return Err(fault),
        }
        size = match fails {
            None => fits.saturating_mul(2).min(cap),
            Some(fails) => u32::midpoint(fits, fails),
        };
    }
    out.largest = fits;
    Ok(())
}

/// Runs the largest batch until the medians of three windows in a row agree within 1 %, and for at
/// least half a second: clocks take that long to rise.
fn warm_up(
    device: &mut dyn Device,
    plan: &Plan,
    stop: &AtomicBool,
    out: &mut Measured,
) -> Result<(), Fault> {
    const WINDOW: usize = 10;
    const LEAST_NS: u64 = 500_000_000;
    let begin = device.now_ns();
    device.prepare(out.largest)?;
    let mut windows: Vec<f64> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let mut times = Vec::with_capacity(WINDOW);
        for _ in 0..WINDOW {
            #[expect(clippy::cast_precision_loss, reason = "a time")]
            times.push(device.pass(out.largest)? as f64);
            out.warm_up.0 += 1;
            if device.now_ns() - begin > plan.warm_up_ns || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        windows.push(stats::median(&times));
        let last = stats::sorted(&windows[windows.len().saturating_sub(3)..]);
        let flat = last.len() == 3 && last[2] - last[0] <= 0.01 * last[1];
        if flat && device.now_ns() - begin >= LEAST_NS {
            out.warm_up.1 = true;
            return Ok(());
        }
    }
    Ok(())
}

/// Measures more sizes where the table bends, as long as it pays.
fn refine(
    device: &mut dyn Device,
    plan: &Plan,
    stop: &Arc<AtomicBool>,
    watch: &mut dyn Watch,
    out: &mut Measured,
    order: &mut sweep::Order,
) -> Result<(), Fault> {
    while out.refined.len() < plan.refine_most && !stop.load(Ordering::Relaxed) {
        let mut more = grid::refine(&medians(&out.sizes), plan.refine_above);
        more.truncate(plan.refine_most - out.refined.len());
        if more.is_empty() {
            break;
        }
        let swept = sweep::sweep(device, plan, &more, order, stop, &mut |d, l| {
            watch.progress("further sizes", d, l);
        })?;
        for (size, samples) in swept.sizes {
            // The references of this sweep were measured before.
            if more.contains(&size) && !samples.times_ns.is_empty() {
                out.sizes.insert(size, samples);
                out.refined.push(size);
            }
        }
    }
    Ok(())
}

//! One sweep: rounds of visits in random order between visits to the reference sizes.

use super::stats::{median, median_interval, quantile, sorted, theil_sen};
use super::{DISCARD, Drift, Plan, Samples, VISIT};
use crate::device::{Device, Fault};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// The source of random orders.
pub(super) type Order = Xoshiro256PlusPlus;

/// Passes this short are held to twice the precision: the clock and the host disturb them more.
const SHORT_NS: f64 = 50_000.0;

/// The source of random orders from a seed.
pub(super) fn order(seed: u64) -> Order {
    Order::seed_from_u64(seed)
}

/// Result of a sweep.
#[derive(Debug, Default)]
pub(super) struct Swept {
    pub(super) sizes: BTreeMap<u32, Samples>,
    pub(super) drift: Option<Drift>,
}

/// Visits `sizes` until each is done, the budget is spent or `stop` is set.
pub(super) fn sweep(
    device: &mut dyn Device,
    plan: &Plan,
    sizes: &[u32],
    order: &mut Order,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64, u64),
) -> Result<Swept, Fault> {
    let mut out = Swept::default();
    let mut open: Vec<u32> = sizes.to_vec();
    let references: Vec<u32> = match (sizes.first(), sizes.last()) {
        (Some(first), Some(last)) if first != last => vec![*first, *last],
        (Some(first), _) => vec![*first],
        _ => return Ok(out),
    };
    let begin = device.now_ns();
    let mut seen: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
    while !open.is_empty() && !stop.load(Ordering::Relaxed) {
        open.shuffle(order);
        let round = references.iter().chain(&open).chain(&references);
        for (at, size) in round.enumerate() {
            let taken = visit(device, *size, stop, &mut out)?;
            let outer = at < references.len() || at >= references.len() + open.len();
            if outer && taken > 0 {
                let times = &out.sizes[size].times_ns;
                let now = device.now_ns() - begin;
                let centre = median(&times[times.len() - taken..]);
                #[expect(clippy::cast_precision_loss, reason = "a time")]
                seen.entry(*size).or_default().push((now as f64, centre));
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        let spent = device.now_ns() - begin;
        open.retain(|n| !out.sizes.get_mut(n).is_some_and(|s| done(s, plan, spent)));
        let share = progress_of(&out, sizes, plan);
        progress(share, left_ns(spent, share, plan));
    }
    if stop.load(Ordering::Relaxed) {
        out.sizes.values_mut().for_each(|s| s.noisy = !narrow(&sorted(&s.times_ns), plan));
        out.sizes.retain(|_, s| !s.times_ns.is_empty());
    }
    out.drift = drift(&seen);
    Ok(out)
}

/// A visit: passes that are thrown away, then some that are kept. How many were kept.
fn visit(
    device: &mut dyn Device,
    size: u32,
    stop: &AtomicBool,
    out: &mut Swept,
) -> Result<usize, Fault> {
    device.prepare(size)?;
    for _ in 0..DISCARD {
        device.pass(size)?;
    }
    let samples = out.sizes.entry(size).or_default();
    for taken in 0..VISIT {
        if stop.load(Ordering::Relaxed) {
            return Ok(taken);
        }
        #[expect(clippy::cast_precision_loss, reason = "a time")]
        samples.times_ns.push(device.pass(size)? as f64);
    }
    Ok(VISIT)
}

/// Whether the median is known well enough.
fn narrow(sorted: &[f64], plan: &Plan) -> bool {
    let centre = quantile(sorted, 0.5);
    let (low, high) = median_interval(sorted);
    let precision = if centre < SHORT_NS { 2.0 * plan.precision } else { plan.precision };
    sorted.len() >= plan.min_samples && (high - low) / 2.0 <= precision * centre
}

/// Whether a size needs no further visit; notes whether it stayed noisy.
fn done(samples: &mut Samples, plan: &Plan, spent_ns: u64) -> bool {
    let count = samples.times_ns.len();
    if count < plan.min_samples {
        return false;
    }
    samples.noisy = !narrow(&sorted(&samples.times_ns), plan);
    !samples.noisy || count >= plan.max_samples || spent_ns >= plan.budget_ns
}

/// Share of the work that is done: fewest samples first, then narrow intervals.
#[expect(clippy::cast_precision_loss, reason = "a share")]
fn progress_of(out: &Swept, sizes: &[u32], plan: &Plan) -> f64 {
    let of = |n: &u32| {
        let Some(samples) = out.sizes.get(n) else { return 0.0 };
        let sorted = sorted(&samples.times_ns);
        if narrow(&sorted, plan) {
            return 1.0;
        }
        // An interval narrows with the root of the count.
        let (low, high) = median_interval(&sorted);
        let reached = plan.precision * quantile(&sorted, 0.5) / ((high - low) / 2.0);
        let few = sorted.len() as f64 / plan.min_samples.max(1) as f64;
        reached.powi(2).min(few).clamp(0.0, 0.99)
    };
    sizes.iter().map(of).sum::<f64>() / sizes.len().max(1) as f64
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate"
)]
fn left_ns(spent: u64, share: f64, plan: &Plan) -> u64 {
    let guess = spent as f64 * (1.0 - share) / share.max(1e-3);
    (guess as u64).min(plan.budget_ns.saturating_sub(spent))
}

/// Slope of all reference visits together, each relative to the median of its size, times the
/// time between the first and the last.
fn drift(seen: &BTreeMap<u32, Vec<(f64, f64)>>) -> Option<Drift> {
    let mut all = Vec::new();
    for visits in seen.values() {
        let centre = median(&visits.iter().map(|v| v.1).collect::<Vec<_>>());
        all.extend(visits.iter().map(|(t, y)| (*t, y / centre)));
    }
    let first = all.iter().map(|v| v.0).reduce(f64::min)?;
    let last = all.iter().map(|v| v.0).reduce(f64::max)?;
    let (slope, low, high) = theil_sen(&all)?;
    let span = last - first;
    Some(Drift { change: slope * span, interval: [low * span, high * span] })
}

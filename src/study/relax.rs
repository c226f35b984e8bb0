//! How long a queue remembers, near capacity.

use super::observe::queue_is_limited;
use super::setup::Bench;
use crate::time::Nanos;

/// Time in which the memory of an empty start decays by a factor e, from the diffusion limit of
/// the queue: `2 λ I / (C − λ)²` with the offered rate λ, the capacity C and the limit I of the
/// index of dispersion of the arrivals. Zero where there is no capacity to come close to, or where
/// limits and timeouts keep the queue short; `None` where the rate reaches it.
///
/// A run much shorter than this sees a queue that is still filling, and no rule that looks at the
/// run itself can know.
#[must_use]
pub fn relaxation(bench: &Bench<'_>) -> Option<Nanos> {
    if queue_is_limited(bench) {
        return Some(Nanos::ZERO);
    }
    let (server, policy) = (bench.server, bench.policy);
    let rate = bench.scenario.open_rate_per_s();
    let capacity = bench.scenario.capacity_per_s(server, policy);
    let capacity = policy.cap().and(capacity);
    let (Some(rate), Some(capacity)) = (rate, capacity) else { return Some(Nanos::ZERO) };
    let gap = capacity - rate;
    let seconds = 2.0 * rate * dispersion(bench) / (gap * gap);
    (gap > 0.0 && seconds < 1e6).then(|| Nanos::from_ms(seconds * 1e3))
}

/// The largest limit of the index of dispersion among the sources; 1 where it is not known.
fn dispersion(bench: &Bench<'_>) -> f64 {
    let limits = bench.scenario.arrivals.iter().filter_map(|s| s.process.idc_limit());
    limits.fold(1.0, f64::max)
}

//! What an engine asks of a cost: the service time of a batch.

use super::{Cost, Jitter};
use crate::rng::{Purpose, SimRng, substream};
use rand::RngExt;
use rand_distr::{Distribution, Exp1, Gamma, LogNormal};

/// Service times, asked for once per batch.
pub trait CostModel {
    /// Service time in nanoseconds, at least 1, of the next batch on an instance: `items` of them,
    /// run as a batch of that size.
    fn took_ns(&mut self, slot: u32, items: u32) -> u64;
}

/// Sizes whose times are looked up; larger ones are computed.
const LOOKUP: u32 = 4096;

/// The same batch always takes the same time.
#[derive(Clone, Debug)]
pub struct FixedCost {
    cost: Cost,
    /// By size; entry 0 is unused.
    table: Vec<u64>,
}

impl FixedCost {
    /// Times of batches up to `cap` (`None` is unbounded).
    #[must_use]
    pub fn new(cost: &Cost, cap: Option<u32>) -> Self {
        let sizes = cap.unwrap_or(LOOKUP).min(LOOKUP);
        let table = (0..=sizes).map(|n| cost.service_ns(n.max(1))).collect();
        Self { cost: cost.clone(), table }
    }

    #[inline(always)]
    fn service_ns(&self, items: u32) -> u64 {
        match self.table.get(items as usize) {
            Some(ns) => *ns,
            None => self.cost.service_ns(items),
        }
    }
}

impl CostModel for FixedCost {
    #[inline(always)]
    fn took_ns(&mut self, _: u32, items: u32) -> u64 {
        self.service_ns(items)
    }
}

/// The law of the random factor.
#[derive(Clone, Copy, Debug)]
enum Factor {
    Exponential,
    Lognormal(LogNormal<f64>),
    Erlang(Gamma<f64>),
    Uniform {
        low: f64,
        width: f64,
    },
    /// Share of quick passes, and the mean factor of quick and of slow ones.
    TwoPhase {
        quick: f64,
        means: [f64; 2],
    },
}

/// A time multiplied by a random factor. The k-th batch of an instance always draws the k-th
/// factor of that instance, whatever engine, policy or thread runs it.
#[derive(Clone, Debug)]
pub struct JitteredCost {
    fixed: FixedCost,
    factor: Factor,
    instances: Vec<SimRng>,
}

impl JitteredCost {
    /// The jittered cost, or `None` when `jitter` is none.
    #[must_use]
    pub fn new(
        fixed: FixedCost,
        jitter: &Jitter,
        instances: u32,
        seed: u64,
        replication: u32,
    ) -> Option<Self> {
        let factor = match jitter {
            Jitter::None(_) => return None,
            Jitter::Exponential(_) => Factor::Exponential,
            Jitter::Lognormal(l) => {
                // Mean 1: μ = −σ²/2 with σ² = ln(1 + cv²).
                let variance = (l.cv * l.cv).ln_1p();
                Factor::Lognormal(LogNormal::new(-variance / 2.0, variance.sqrt()).ok()?)
            }
            Jitter::Erlang(e) => {
                let k = f64::from(e.k);
                Factor::Erlang(Gamma::new(k, 1.0 / k).ok()?)
            }
            Jitter::Uniform(u) => Factor::Uniform { low: u.low, width: u.high - u.low },
            Jitter::Hyperexponential(h) => {
                let c = h.cv * h.cv;
                let quick = 0.5 * (1.0 + ((c - 1.0) / (c + 1.0)).sqrt());
                Factor::TwoPhase { quick, means: [0.5 / quick, 0.5 / (1.0 - quick)] }
            }
        };
        let instances =
            (0..instances).map(|i| substream(seed, replication, i, Purpose::Jitter)).collect();
        Some(Self { fixed, factor, instances })
    }
}

impl CostModel for JitteredCost {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    #[expect(clippy::cast_precision_loss, reason = "the factor is random")]
    fn took_ns(&mut self, slot: u32, items: u32) -> u64 {
        let rng = &mut self.instances[slot as usize];
        let factor: f64 = match self.factor {
            Factor::Exponential => rng.sample(Exp1),
            Factor::Lognormal(law) => law.sample(rng),
            Factor::Erlang(law) => law.sample(rng),
            Factor::Uniform { low, width } => low + width * rng.random::<f64>(),
            Factor::TwoPhase { quick, means } => {
                let mean = means[usize::from(rng.random::<f64>() >= quick)];
                rng.sample::<f64, _>(Exp1) * mean
            }
        };
        ((self.fixed.service_ns(items) as f64 * factor).round() as u64).max(1)
    }
}

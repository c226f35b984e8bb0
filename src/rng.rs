//! Random substreams: one generator per (seed, replication, source, purpose).
//!
//! Nothing else enters the seed, so that a cell, a policy or a thread never changes what arrives.
//! The generator is Xoshiro256++, value-stable across releases and platforms.

use rand::SeedableRng;

/// The generator of every random stream.
pub type SimRng = rand_xoshiro::Xoshiro256PlusPlus;

/// Its name, as results state it.
pub const NAME: &str = "xoshiro256++";

/// What a substream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Gaps and phases of an arrival process.
    Arrivals = 1,
    /// Think times of a closed loop.
    Think = 2,
    /// Service-time jitter; the source is the instance.
    Jitter = 3,
    /// Choices of a policy.
    Policy = 4,
    /// Items of the requests of a source.
    Items = 5,
    /// Choices of a balancer.
    Balancer = 6,
}

/// One step of SplitMix64 (Steele, Lea, Flood 2014): mixes all bits of `x`.
const fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The substream of one source in one replication.
#[must_use]
pub fn substream(seed: u64, replication: u32, source: u32, purpose: Purpose) -> SimRng {
    let key = mix(mix(mix(seed) ^ u64::from(replication)) ^ u64::from(source));
    let key = mix(key ^ purpose as u64);
    let mut state = [0u8; 32];
    for (i, word) in state.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&mix(key ^ ((i as u64 + 1) << 56)).to_le_bytes());
    }
    SimRng::from_seed(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn substreams_are_distinct_and_stable() {
        let first = |s, r, o, p| substream(s, r, o, p).next_u64();
        let base = first(42, 0, 0, Purpose::Arrivals);
        assert_eq!(base, first(42, 0, 0, Purpose::Arrivals));
        for other in [
            first(43, 0, 0, Purpose::Arrivals),
            first(42, 1, 0, Purpose::Arrivals),
            first(42, 0, 1, Purpose::Arrivals),
            first(42, 0, 0, Purpose::Jitter),
        ] {
            assert_ne!(base, other);
        }
    }

    /// A changed value would silently change every published result.
    #[test]
    fn first_values_are_pinned() {
        let mut rng = substream(42, 0, 0, Purpose::Arrivals);
        let values: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(values, PINNED);
    }

    const PINNED: [u64; 3] =
        [13_917_346_002_652_788_074, 10_490_718_581_528_257_297, 17_334_223_380_223_105_316];
}

//! Tapes: unit gaps that several runs want, drawn once.
//!
//! The cells of a sweep, the policies of a run and the pilot before it all scale the same unit
//! gaps by their rate. A tape keeps the first of them, and the generator behind each block, so
//! that whoever goes on from its end draws what it would have drawn without it: a tape changes
//! the time a run takes and nothing else.

use crate::rng::{Purpose, SimRng, substream};
use rand_distr::{Distribution, Exp1};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Gaps of a block.
const BLOCK: usize = 2048;
/// Most blocks of one tape: the first 131,072 gaps.
const BLOCKS: usize = 64;
/// Most blocks of all tapes: 16 MiB, half of the last cache of a small server.
const ALL_BLOCKS: usize = 1024;

/// Writes exponential gaps of mean one.
pub(super) fn draw(rng: &mut SimRng, units: &mut [f64]) {
    // A local, so that the generator's state stays in registers. The second reference makes an
    // instance of the sampler that has no other caller, so that it is inlined. Together they halve
    // the time of a draw.
    let mut local = rng.clone();
    for unit in units.iter_mut() {
        *unit = Exp1.sample(&mut &mut local);
    }
    *rng = local;
}

/// Successive gaps, and the generator behind them.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) units: Box<[f64]>,
    pub(super) rng: SimRng,
}

/// The first gaps of one stream, drawn block by block when first wanted.
#[derive(Debug)]
pub struct Tape {
    rng: SimRng,
    blocks: Vec<OnceLock<Block>>,
    /// Blocks that all tapes may still draw.
    left: Arc<AtomicUsize>,
}

impl Tape {
    fn new(rng: SimRng, left: &Arc<AtomicUsize>) -> Self {
        let blocks = (0..BLOCKS).map(|_| OnceLock::new()).collect();
        Self { rng, blocks, left: Arc::clone(left) }
    }

    /// The block numbered `at`, where all before it exist; `None` where the tape ends.
    pub(super) fn block(&self, at: usize) -> Option<&Block> {
        let slot = self.blocks.get(at)?;
        if slot.get().is_none() {
            let before = match at.checked_sub(1) {
                Some(before) => self.blocks.get(before)?.get()?.rng.clone(),
                None => self.rng.clone(),
            };
            let one_less = |left: usize| left.checked_sub(1);
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).ok()?;
            let mut spent = false;
            slot.get_or_init(|| {
                spent = true;
                let (mut units, mut rng) = (vec![0.0; BLOCK].into_boxed_slice(), before);
                draw(&mut rng, &mut units);
                Block { units, rng }
            });
            if !spent {
                // Another thread drew the same block.
                self.left.fetch_add(1, Ordering::Relaxed);
            }
        }
        slot.get()
    }
}

/// The tapes of a study, bounded in number and length.
#[derive(Debug)]
pub struct Tapes {
    tapes: Mutex<BTreeMap<[u64; 3], Arc<Tape>>>,
    left: Arc<AtomicUsize>,
}

impl Default for Tapes {
    fn default() -> Self {
        Self { tapes: Mutex::default(), left: Arc::new(AtomicUsize::new(ALL_BLOCKS)) }
    }
}

impl Tapes {
    /// The tape of a source's arrivals in one replication; `None` where there is no room for it.
    #[must_use]
    pub fn of(&self, seed: u64, replication: u32, source: u32) -> Option<Arc<Tape>> {
        let key = [seed, u64::from(replication), u64::from(source)];
        let mut tapes = self.tapes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tape) = tapes.get(&key) {
            return Some(Arc::clone(tape));
        }
        // Without room for a block a tape says nothing, and is not worth its place.
        if self.left.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let rng = substream(seed, replication, source, Purpose::Arrivals);
        let tape = Arc::new(Tape::new(rng, &self.left));
        tapes.insert(key, Arc::clone(&tape));
        Some(tape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(n: usize) -> Vec<f64> {
        let mut units = vec![0.0; n];
        draw(&mut substream(7, 3, 1, Purpose::Arrivals), &mut units);
        units
    }

    #[test]
    fn a_tape_holds_what_would_be_drawn() {
        let tapes = Tapes::default();
        let tape = tapes.of(7, 3, 1).unwrap();
        let mut units = Vec::new();
        for at in 0..BLOCKS {
            units.extend_from_slice(&tape.block(at).unwrap().units);
        }
        assert!(tape.block(BLOCKS).is_none());
        let mut rng = tape.block(BLOCKS - 1).unwrap().rng.clone();
        let end = units.len();
        units.resize(end + 100, 0.0);
        draw(&mut rng, &mut units[end..]);
        assert_eq!(units, drawn(end + 100));
    }

    #[test]
    fn tapes_end_where_memory_does() {
        let tapes = Tapes::default();
        let all: Vec<_> = (0..20).filter_map(|r| tapes.of(7, r, 0)).collect();
        let blocks = |tape: &Arc<Tape>| (0..).take_while(|at| tape.block(*at).is_some()).count();
        assert_eq!(all.iter().map(blocks).sum::<usize>(), ALL_BLOCKS);
        assert_eq!(all.iter().map(blocks).sum::<usize>(), ALL_BLOCKS, "and stay as they are");
        assert!(tapes.of(7, 20, 0).is_none());
        assert!(Arc::ptr_eq(&tapes.of(7, 0, 0).unwrap(), &all[0]));
    }

    #[test]
    fn threads_draw_a_block_once() {
        let tapes = Tapes::default();
        let tape = tapes.of(7, 3, 1).unwrap();
        std::thread::scope(|s| {
            for _ in 0..8 {
                s.spawn(|| (0..BLOCKS).for_each(|at| assert!(tape.block(at).is_some())));
            }
        });
        assert_eq!(tapes.left.load(Ordering::Relaxed), ALL_BLOCKS - BLOCKS);
    }
}

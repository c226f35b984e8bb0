//! A device for tests: its clock moves only by its own passes, and it misbehaves as told.

use crate::device::{Description, Device, Fault};
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the device does.
#[derive(Clone, Debug)]
pub struct Script {
    /// Time of an empty batch, ns.
    pub fixed_ns: f64,
    /// Time of each item, ns.
    pub per_item_ns: f64,
    /// Items per tile; a started tile costs as a full one. 1 is no tiles.
    pub tile: u32,
    /// Standard deviation of the noise, relative.
    pub noise: f64,
    /// Relative change of speed per second of its clock.
    pub drift_per_s: f64,
    /// Once set, the drift is over and the first speed is back.
    pub steady: Arc<AtomicBool>,
    /// Passes at first that are slower, and by what factor: a cold start.
    pub cold: (u32, f64),
    /// Largest batch that fits.
    pub memory_max_batch: u32,
    /// After this many passes the flag of `interrupt` is set, as a signal would.
    pub interrupt_after: Option<u64>,
    /// Seed of the noise.
    pub seed: u64,
}

impl Default for Script {
    /// The running example, 8 ms + 0.5 ms an item, with 0.1 % noise.
    fn default() -> Self {
        Self {
            fixed_ns: 8e6,
            per_item_ns: 0.5e6,
            tile: 1,
            noise: 0.001,
            drift_per_s: 0.0,
            steady: Arc::default(),
            cold: (0, 1.0),
            memory_max_batch: u32::MAX,
            interrupt_after: None,
            seed: 1,
        }
    }
}

/// The device.
#[derive(Debug)]
pub struct Fake {
    script: Script,
    rng: Xoshiro256PlusPlus,
    clock_ns: u64,
    passes: u64,
    prepared: u32,
    interrupt: Arc<AtomicBool>,
}

impl Fake {
    /// A device that follows `script` and sets `interrupt` when it says so.
    #[must_use]
    pub fn new(script: Script, interrupt: Arc<AtomicBool>) -> Self {
        let rng = Xoshiro256PlusPlus::seed_from_u64(script.seed);
        Self { script, rng, clock_ns: 0, passes: 0, prepared: 0, interrupt }
    }

    /// How many passes ran.
    #[must_use]
    pub fn passes(&self) -> u64 {
        self.passes
    }

    fn speed(&self) -> f64 {
        if self.script.steady.load(Ordering::Relaxed) {
            return 1.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "a factor")]
        let seconds = self.clock_ns as f64 * 1e-9;
        1.0 + self.script.drift_per_s * seconds
    }
}

impl Device for Fake {
    fn describe(&self) -> Description {
        Description {
            backend: "fake".into(),
            device: "a device for tests".into(),
            model: "scripted".into(),
            item: "item".into(),
            dtype: "none".into(),
            mode: "own clock".into(),
            ..Description::default()
        }
    }

    fn prepare(&mut self, batch: u32) -> Result<(), Fault> {
        if batch > self.script.memory_max_batch {
            return Err(Fault::DoesNotFit { batch, why: "the script says so".into() });
        }
        self.prepared = batch;
        Ok(())
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, small")]
    fn pass(&mut self, batch: u32) -> Result<u64, Fault> {
        if batch != self.prepared {
            return Err(Fault::Failed(format!("batch {batch} was not prepared")));
        }
        let s = &self.script;
        let paid = batch.div_ceil(s.tile.max(1)) * s.tile.max(1);
        let normal: f64 = self.rng.sample(StandardNormal);
        let cold = if self.passes < u64::from(s.cold.0) { s.cold.1 } else { 1.0 };
        let noise = (1.0 + s.noise * normal).max(0.1);
        let ns = (s.fixed_ns + s.per_item_ns * f64::from(paid)) * noise * cold * self.speed();
        let ns = (ns.round() as u64).max(1);
        self.clock_ns += ns;
        self.passes += 1;
        if self.script.interrupt_after == Some(self.passes) {
            self.interrupt.store(true, Ordering::Relaxed);
        }
        Ok(ns)
    }

    fn now_ns(&mut self) -> u64 {
        self.clock_ns
    }

    fn tile_edges(&self) -> Vec<u32> {
        let tile = self.script.tile;
        if tile > 1 { (0..4).map(|k| tile << k).collect() } else { Vec::new() }
    }
}

//! Forward passes on this machine's processor.

mod fast;
mod linalg;
pub mod reference;
mod weights;

pub use fast::{Buffers, bytes, forward};
pub use weights::{Cache, DecoderSizes, Shape, Weights};

use crate::device::{Description, Device, Fault};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::time::Instant;

/// Largest relative distance between a fast pass and the reference.
pub const TOLERANCE: f64 = 1e-4;

/// The processor with a model.
pub struct Cpu {
    name: String,
    weights: Weights,
    threads: usize,
    pool: rayon::ThreadPool,
    memory_limit: u64,
    begin: Instant,
    seed: u64,
    batch: u32,
    inputs: Vec<Vec<f32>>,
    turn: usize,
    buffers: Buffers,
    cache: Cache,
}

impl std::fmt::Debug for Cpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cpu").field("name", &self.name).field("batch", &self.batch).finish()
    }
}

impl Cpu {
    /// A model of random weights on `threads` threads; batches that need more than `memory_limit`
    /// bytes beyond the weights do not fit.
    ///
    /// # Errors
    /// Sizes that cannot be meant, or threads that cannot be started.
    pub fn new(
        name: &str,
        shape: Shape,
        threads: usize,
        memory_limit: u64,
        seed: u64,
    ) -> Result<Self, Fault> {
        shape.check().map_err(Fault::Failed)?;
        let threads = threads.max(1);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|e| Fault::Failed(format!("cannot start {threads} threads: {e}")))?;
        Ok(Self {
            name: name.to_owned(),
            weights: Weights::random(shape, seed),
            threads,
            pool,
            memory_limit,
            begin: Instant::now(),
            seed,
            batch: 0,
            inputs: Vec::new(),
            turn: 0,
            buffers: Buffers::default(),
            cache: Cache::default(),
        })
    }

    /// The model and its weights.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Compares the first, a middle and the last item of a pass of `batch` items with the
    /// reference, which computes each alone; the largest relative distance. A cached step is
    /// compared with the last token of a full pass over all of its tokens.
    ///
    /// # Errors
    /// A batch that does not fit.
    pub fn check(&mut self, batch: u32) -> Result<f64, Fault> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ u64::from(batch));
        let n = batch.max(1) as usize;
        let shape = self.weights.shape;
        let (whole, tokens) = match shape {
            Shape::Decoder { sizes, context, .. } if context > 0 => {
                let full = Shape::Decoder { sizes, context: 0, prompt: context + 1 };
                (full, Some((sizes, context)))
            }
            _ => (shape, None),
        };
        let per = whole.input();
        let input = weights::normal(&mut rng, n * per);
        let mut cache = Cache::default();
        self.room(&mut cache, n);
        let out = match tokens {
            None => self.run(&shape, &input, n, &mut cache),
            Some((sizes, context)) => {
                let prompt = Shape::Decoder { sizes, context: 0, prompt: context };
                let part = |from: usize, to: usize| -> Vec<f32> {
                    input
                        .chunks(per)
                        .flat_map(|one| &one[from * sizes.hidden..to * sizes.hidden])
                        .copied()
                        .collect()
                };
                self.run(&prompt, &part(0, context), n, &mut cache);
                self.run(&shape, &part(context, context + 1), n, &mut cache)
            }
        };
        let each = out.len() / n;
        let mut worst = 0.0_f64;
        for item in [0, n / 2, n - 1] {
            let truth = reference::item(&self.weights, &input[item * per..][..per]);
            let got = &out[item * each..][..each];
            let gap = reference::distance(got, &truth[truth.len() - each..]);
            // Not `max`, which would drop what is not a number.
            worst = if gap.is_nan() || gap > worst { gap } else { worst };
        }
        Ok(worst)
    }

    /// A pass outside of the timed path.
    fn run(&self, shape: &Shape, input: &[f32], batch: usize, cache: &mut Cache) -> Vec<f32> {
        let weights = Weights { shape: *shape, matrices: self.weights.matrices.clone() };
        let mut buffers = Buffers::new(shape, batch);
        self.pool
            .install(|| forward(&weights, batch, input, &mut buffers, cache, self.threads).to_vec())
    }

    fn room(&self, cache: &mut Cache, batch: usize) {
        let shape = self.weights.shape;
        if let Shape::Decoder { context, prompt, .. } = shape {
            cache.room = if context == 0 { prompt } else { context + 1 };
            let count = fast::cache_numbers(&shape, batch);
            cache.keys = vec![0.0; count];
            cache.values = vec![0.0; count];
        }
    }
}

impl Device for Cpu {
    fn describe(&self) -> Description {
        let mut facts = BTreeMap::new();
        let mut fact = |key: &str, value: String| facts.insert(key.to_owned(), value);
        fact("threads", self.threads.to_string());
        fact("sizes", format!("{:?}", self.weights.shape));
        fact("weights_bytes", self.weights.bytes().to_string());
        fact("flops_per_item", self.weights.shape.flops().to_string());
        fact("matrix_products", "gemm 0.19".into());
        let item = match self.weights.shape {
            Shape::Mlp { .. } => "row".into(),
            Shape::Encoder { seq, .. } => format!("sequence of {seq} tokens"),
            Shape::Cnn { side, .. } => format!("image of {side} by {side} pixels"),
            Shape::Decoder { context: 0, prompt, .. } => format!("prompt of {prompt} tokens"),
            Shape::Decoder { context, .. } => {
                format!("next token of a sequence with {context} tokens in its cache")
            }
        };
        Description {
            backend: "cpu".into(),
            device: processor(),
            model: self.name.clone(),
            item,
            dtype: "f32".into(),
            mode: "host wall".into(),
            facts,
        }
    }

    fn prepare(&mut self, batch: u32) -> Result<(), Fault> {
        if batch == self.batch {
            return Ok(());
        }
        let (shape, n) = (self.weights.shape, batch as usize);
        let need = bytes(&shape, n);
        if need > self.memory_limit {
            let mib = |b: u64| b >> 20;
            return Err(Fault::DoesNotFit {
                batch,
                why: format!("it needs {} MiB of {} MiB", mib(need), mib(self.memory_limit)),
            });
        }
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ u64::from(batch));
        // Two inputs in turn, so that an item is not in the cache because it just was.
        self.inputs = (0..2).map(|_| weights::normal(&mut rng, n * shape.input())).collect();
        self.buffers = Buffers::new(&shape, n);
        let mut cache = std::mem::take(&mut self.cache);
        self.room(&mut cache, n);
        if let Shape::Decoder { context, .. } = shape
            && context > 0
        {
            cache.keys = weights::normal(&mut rng, cache.keys.len());
            cache.values = weights::normal(&mut rng, cache.values.len());
        }
        self.cache = cache;
        self.batch = batch;
        Ok(())
    }

    fn pass(&mut self, batch: u32) -> Result<u64, Fault> {
        if batch != self.batch {
            return Err(Fault::Failed(format!("batch {batch} was not prepared")));
        }
        self.turn = (self.turn + 1) % self.inputs.len();
        let Self { pool, weights, inputs, buffers, cache, threads, turn, .. } = self;
        let start = Instant::now();
        let out = pool.install(|| {
            let out = forward(weights, batch as usize, &inputs[*turn], buffers, cache, *threads);
            out.first().copied().zip(out.last().copied())
        });
        let took = start.elapsed();
        match out {
            Some((first, last)) if first.is_finite() && last.is_finite() => {
                Ok(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1))
            }
            _ => Err(Fault::Failed(format!("a pass of {batch} items gave no numbers"))),
        }
    }

    fn now_ns(&mut self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn memory_bytes(&self, batch: u32) -> Option<u64> {
        Some(bytes(&self.weights.shape, batch as usize))
    }
}

/// The processor's name as the system gives it.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with("model name"));
    let name = line.and_then(|l| l.split(": ").nth(1)).map(str::to_owned);
    name.unwrap_or_else(|| format!("a processor ({})", std::env::consts::ARCH))
}

//! Models: their sizes, and weights drawn from N(0, 1 / fan-in).

use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Which model, with its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `layers` of x + W₂ gelu(W₁ x), `hidden` → 4 `hidden` → `hidden`; an item is a row.
    Mlp {
        /// Layers.
        layers: usize,
        /// Width of a row.
        hidden: usize,
    },
    /// BERT-like encoder, layer norm after each part; an item is a sequence.
    Encoder {
        /// Layers.
        layers: usize,
        /// Width of a token.
        hidden: usize,
        /// Heads; divide `hidden`.
        heads: usize,
        /// Width of the inner part.
        ffn: usize,
        /// Tokens of a sequence.
        seq: usize,
    },
    /// 3 × 3 convolutions with ReLU, each after the first halving the side and doubling the
    /// channels, then the mean of each channel and a linear layer; an item is an RGB image.
    Cnn {
        /// Convolutions.
        layers: usize,
        /// Channels of the first.
        channels: usize,
        /// Side of the image, pixels.
        side: usize,
        /// Outputs.
        classes: usize,
    },
    /// Decoder with RMS norm, rotary positions, grouped-query attention and SwiGLU.
    Decoder {
        /// Its sizes.
        sizes: DecoderSizes,
        /// Tokens each sequence has in its cache: a pass adds one. 0 is prefill.
        context: usize,
        /// Tokens of a prompt, for prefill.
        prompt: usize,
    },
}

/// Sizes of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderSizes {
    /// Layers.
    pub layers: usize,
    /// Width of a token.
    pub hidden: usize,
    /// Heads of queries; divide `hidden`.
    pub heads: usize,
    /// Heads of keys and values; divide `heads`.
    pub kv_heads: usize,
    /// Width of the inner part.
    pub ffn: usize,
}

impl DecoderSizes {
    /// Width of one head.
    #[must_use]
    pub fn head(&self) -> usize {
        self.hidden / self.heads
    }

    /// Width of the keys (or values) of a token.
    #[must_use]
    pub fn kv(&self) -> usize {
        self.kv_heads * self.head()
    }
}

impl Shape {
    /// Whether the sizes can be meant.
    ///
    /// # Errors
    /// What is wrong, and what to write instead.
    pub fn check(&self) -> Result<(), String> {
        let heads = |hidden: usize, heads: usize| {
            if heads == 0 || !hidden.is_multiple_of(heads) {
                return Err(format!(
                    "{heads} heads do not divide a hidden size of {hidden}; choose --heads so \
                     that they do"
                ));
            }
            Ok(())
        };
        let sizes = match *self {
            Self::Mlp { layers, hidden } => vec![layers, hidden],
            Self::Encoder { layers, hidden, heads: h, ffn, seq } => {
                heads(hidden, h)?;
                vec![layers, hidden, ffn, seq]
            }
            Self::Cnn { layers, channels, side, classes } => vec![layers, channels, side, classes],
            Self::Decoder { sizes: s, context, prompt } => {
                heads(s.hidden, s.heads)?;
                if s.kv_heads == 0 || !s.heads.is_multiple_of(s.kv_heads) || s.head() % 2 != 0 {
                    return Err(format!(
                        "{} key-value heads of width {} do not fit {} heads: they must divide \
                         them, and the width be even",
                        s.kv_heads,
                        s.head(),
                        s.heads
                    ));
                }
                vec![s.layers, s.hidden, s.ffn, context.max(prompt)]
            }
        };
        if sizes.contains(&0) { Err("every size must be 1 or more".into()) } else { Ok(()) }
    }

    /// Numbers that go into a pass, per item.
    #[must_use]
    pub fn input(&self) -> usize {
        match *self {
            Self::Mlp { hidden, .. } => hidden,
            Self::Encoder { hidden, seq, .. } => hidden * seq,
            Self::Cnn { side, .. } => 3 * side * side,
            Self::Decoder { sizes, context: 0, prompt } => sizes.hidden * prompt,
            Self::Decoder { sizes, .. } => sizes.hidden,
        }
    }

    /// Channels that go into convolution `layer` and come out of it, and its side and stride.
    pub(crate) fn convolution(&self, layer: usize) -> (usize, usize, usize, usize) {
        let Self::Cnn { channels, side, .. } = *self else {
            return (0, 0, 0, 1);
        };
        if layer == 0 {
            return (3, channels, side, 1);
        }
        let mut before = side;
        for _ in 1..layer {
            before = before.div_ceil(2);
        }
        (channels << (layer - 1), channels << layer, before, 2)
    }

    /// Rows and columns of each weight matrix; an item's row times the matrix is the product.
    pub(crate) fn matrices(&self) -> Vec<(usize, usize)> {
        match *self {
            Self::Mlp { layers, hidden } => {
                [(hidden, 4 * hidden), (4 * hidden, hidden)].repeat(layers)
            }
            Self::Encoder { layers, hidden, ffn, .. } => {
                [(hidden, 3 * hidden), (hidden, hidden), (hidden, ffn), (ffn, hidden)]
                    .repeat(layers)
            }
            Self::Cnn { layers, classes, .. } => {
                let mut all: Vec<_> = (0..layers)
                    .map(|l| {
                        let (from, to, ..) = self.convolution(l);
                        (9 * from, to)
                    })
                    .collect();
                all.push((self.convolution(layers - 1).1, classes));
                all
            }
            Self::Decoder { sizes: s, .. } => [
                (s.hidden, s.hidden + 2 * s.kv()),
                (s.hidden, s.hidden),
                (s.hidden, 2 * s.ffn),
                (s.ffn, s.hidden),
            ]
            .repeat(s.layers),
        }
    }

    /// Floating-point operations of one item, multiplications and additions of the matrix
    /// products alone.
    #[must_use]
    pub fn flops(&self) -> u64 {
        let weights = |rows: usize| {
            self.matrices().iter().map(|(k, n)| 2 * rows * k * n).sum::<usize>() as u64
        };
        match *self {
            Self::Mlp { .. } => weights(1),
            Self::Encoder { layers, hidden, seq, .. } => {
                weights(seq) + (4 * layers * seq * seq * hidden) as u64
            }
            Self::Cnn { layers, .. } => {
                let conv = (0..layers).map(|l| {
                    let (from, to, side, stride) = self.convolution(l);
                    2 * 9 * from * to * side.div_ceil(stride).pow(2)
                });
                conv.sum::<usize>() as u64
            }
            Self::Decoder { sizes, context: 0, prompt } => {
                weights(prompt) + (4 * sizes.layers * prompt * prompt * sizes.hidden) as u64
            }
            Self::Decoder { sizes, context, .. } => {
                weights(1) + (4 * sizes.layers * (context + 1) * sizes.hidden) as u64
            }
        }
    }
}

/// Weight matrices in the order of [`Shape::matrices`], rows one after the other.
#[derive(Clone, Debug)]
pub struct Weights {
    /// The model.
    pub shape: Shape,
    /// The matrices.
    pub matrices: Vec<Vec<f32>>,
}

impl Weights {
    /// Random weights of a model.
    #[must_use]
    pub fn random(shape: Shape, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        #[expect(clippy::cast_precision_loss, reason = "a scale")]
        let scaled = |(k, n): (usize, usize)| {
            let scale = 1.0 / (k as f32).sqrt();
            normal(&mut rng, k * n).iter().map(|x| x * scale).collect()
        };
        Self { shape, matrices: shape.matrices().into_iter().map(scaled).collect() }
    }

    /// Bytes of all weights.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.matrices.iter().map(|m| 4 * m.len() as u64).sum()
    }
}

/// Numbers drawn from N(0, 1).
pub(crate) fn normal(rng: &mut Xoshiro256PlusPlus, count: usize) -> Vec<f32> {
    (0..count).map(|_| rng.sample(StandardNormal)).collect()
}

/// Keys and values of past tokens: for each layer, sequence and token the keys of all heads, and
/// the same for the values.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    /// Tokens that there is room for, per sequence.
    pub room: usize,
    /// Keys, already turned by their positions.
    pub keys: Vec<f32>,
    /// Values.
    pub values: Vec<f32>,
}

/// Cosine and sine by which the pair `pair` of a head of width `head` is turned at `position`.
pub(crate) fn turn(position: usize, pair: usize, head: usize) -> (f64, f64) {
    #[expect(clippy::cast_precision_loss, reason = "an angle")]
    let angle = position as f64 / 10_000_f64.powf(2.0 * pair as f64 / head as f64);
    (angle.cos(), angle.sin())
}

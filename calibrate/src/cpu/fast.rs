//! Passes of whole batches: matrix products by `gemm`, the rest spread over the threads by rows.

use super::linalg::{View, product};
use super::weights::{Cache, DecoderSizes, Shape, Weights, turn};
use rayon::prelude::*;

/// Buffers of one batch size, allocated before anything is timed.
#[derive(Clone, Debug, Default)]
pub struct Buffers {
    /// The input and, after a pass of `mlp`, `encoder` or `decoder`, the output.
    pub(super) x: Vec<f32>,
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
}

/// Numbers of the buffers x, a, b and c that a batch needs.
fn needs(shape: &Shape, batch: usize) -> [usize; 4] {
    match *shape {
        Shape::Mlp { hidden, .. } => [batch * hidden, batch * 4 * hidden, 0, 0],
        Shape::Encoder { hidden, ffn, seq, .. } => {
            let rows = batch * seq;
            [rows * hidden, rows * (3 * hidden).max(ffn), rows * hidden, 0]
        }
        Shape::Cnn { layers, classes, .. } => {
            let mut need = [batch * shape.input(), 0, batch * shape.input(), batch * classes];
            for layer in 0..layers {
                let (from, to, side, stride) = shape.convolution(layer);
                let pixels = batch * side.div_ceil(stride).pow(2);
                need[1] = need[1].max(pixels * 9 * from);
                need[2] = need[2].max(pixels * to);
            }
            need
        }
        Shape::Decoder { sizes: s, context, prompt } => {
            let rows = batch * if context == 0 { prompt } else { 1 };
            let wide = (s.hidden + 2 * s.kv()).max(2 * s.ffn);
            [rows * s.hidden, rows * wide, rows * s.hidden, rows * s.ffn]
        }
    }
}

/// Bytes that a batch holds beyond the weights: buffers, inputs, keys and values.
#[must_use]
pub fn bytes(shape: &Shape, batch: usize) -> u64 {
    let numbers: usize = needs(shape, batch).iter().sum();
    4 * (numbers + batch * shape.input() + 2 * cache_numbers(shape, batch)) as u64
}

/// Keys (or values) that a batch keeps.
pub(super) fn cache_numbers(shape: &Shape, batch: usize) -> usize {
    let Shape::Decoder { sizes, context, prompt } = *shape else {
        return 0;
    };
    let room = if context == 0 { prompt } else { context + 1 };
    sizes.layers * batch * room * sizes.kv()
}

impl Buffers {
    /// Buffers for a batch, outputs poisoned so that what is not written is seen.
    #[must_use]
    pub fn new(shape: &Shape, batch: usize) -> Self {
        let [x, a, b, c] = needs(shape, batch).map(|n| vec![f32::NAN; n]);
        Self { x, a, b, c }
    }
}

/// Runs a batch of `batch` items with `input`; the output of all items, one after the other.
pub fn forward<'a>(
    weights: &Weights,
    batch: usize,
    input: &[f32],
    buffers: &'a mut Buffers,
    cache: &mut Cache,
    threads: usize,
) -> &'a [f32] {
    match weights.shape {
        Shape::Mlp { hidden, .. } => mlp(weights, batch, hidden, input, buffers, threads),
        Shape::Encoder { .. } => encoder(weights, batch, input, buffers, threads),
        Shape::Cnn { layers, .. } => cnn(weights, batch, layers, input, buffers, threads),
        Shape::Decoder { sizes, context, prompt } => {
            let new = if context == 0 { prompt } else { 1 };
            decoder(weights, &sizes, (batch, context, new), input, buffers, cache, threads)
        }
    }
}

/// Work by rows of `width`, over the threads.
fn rows(data: &mut [f32], width: usize, work: impl Fn(usize, &mut [f32]) + Sync) {
    data.par_chunks_mut(width).enumerate().with_min_len(4).for_each(|(at, row)| work(at, row));
}

/// One function for e^x that the compiler can spread over lanes: 2^k · p(r), |error| < 3e-7
/// relative.
#[inline]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn exp(x: f32) -> f32 {
    let t = x.clamp(-87.0, 87.0) * std::f32::consts::LOG2_E;
    let k = (t + 0.5).floor();
    let r = (t - k) * std::f32::consts::LN_2;
    let p = 1.0
        + r * (1.0
            + r * (0.5
                + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0))))));
    p * f32::from_bits(((k as i32 + 127) as u32) << 23)
}

/// The tanh form, written as x · σ(2u).
#[inline]
fn gelu(x: f32) -> f32 {
    let u = 1.595_769 * (x + 0.044_715 * x * x * x);
    x / (1.0 + exp(-u))
}

fn mlp<'a>(
    w: &Weights,
    batch: usize,
    hidden: usize,
    input: &[f32],
    buffers: &'a mut Buffers,
    threads: usize,
) -> &'a [f32] {
    let Buffers { x, a, .. } = buffers;
    x.copy_from_slice(input);
    let wide = 4 * hidden;
    for m in w.matrices.chunks(2) {
        let by = View::rows(&m[0], wide);
        product((batch, hidden, wide), View::rows(x, hidden), by, (a, wide), false, threads);
        rows(a, wide, |_, row| row.iter_mut().for_each(|v| *v = gelu(*v)));
        let by = View::rows(&m[1], hidden);
        product((batch, wide, hidden), View::rows(a, wide), by, (x, hidden), true, threads);
    }
    x
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn layer_norm(row: &mut [f32]) {
    let count = row.len() as f32;
    let mean = row.iter().sum::<f32>() / count;
    let variance = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>() / count;
    let scale = 1.0 / (variance + 1e-5).sqrt();
    row.iter_mut().for_each(|v| *v = (*v - mean) * scale);
}

/// Scales and turns scores into shares that add up to 1.
fn softmax(scores: &mut [f32], scale: f32) {
    let most = scores.iter().copied().fold(f32::MIN, f32::max);
    scores.iter_mut().for_each(|s| *s = exp((*s - most) * scale));
    let total = 1.0 / scores.iter().sum::<f32>();
    scores.iter_mut().for_each(|s| *s *= total);
}

fn encoder<'a>(
    w: &Weights,
    batch: usize,
    input: &[f32],
    buffers: &'a mut Buffers,
    threads: usize,
) -> &'a [f32] {
    let Shape::Encoder { hidden, heads, ffn, seq, .. } = w.shape else {
        return &[];
    };
    let Buffers { x, a, b, .. } = buffers;
    x.copy_from_slice(input);
    let (count, head) = (batch * seq, hidden / heads);
    for m in w.matrices.chunks(4) {
        let wide = 3 * hidden;
        let by = View::rows(&m[0], wide);
        product((count, hidden, wide), View::rows(x, hidden), by, (a, wide), false, threads);
        // Head by head within a sequence; sequences over the threads.
        let qkv = &a[..count * wide];
        b.par_chunks_mut(seq * hidden).zip(qkv.par_chunks(seq * wide)).for_each(|(out, qkv)| {
            let mut scores = vec![0.0; seq * seq];
            for h in 0..heads {
                let part = |which: usize| View::rows(&qkv[which * hidden + h * head..], wide);
                let keys = part(1).transposed();
                product((seq, head, seq), part(0), keys, (&mut scores, seq), false, 1);
                for row in scores.chunks_mut(seq) {
                    softmax(row, scale_of(head));
                }
                let out = &mut out[h * head..];
                product(
                    (seq, seq, head),
                    View::rows(&scores, seq),
                    part(2),
                    (out, hidden),
                    false,
                    1,
                );
            }
        });
        let by = View::rows(&m[1], hidden);
        product((count, hidden, hidden), View::rows(b, hidden), by, (x, hidden), true, threads);
        rows(x, hidden, |_, row| layer_norm(row));
        let by = View::rows(&m[2], ffn);
        product((count, hidden, ffn), View::rows(x, hidden), by, (a, ffn), false, threads);
        rows(&mut a[..count * ffn], ffn, |_, row| row.iter_mut().for_each(|v| *v = gelu(*v)));
        let by = View::rows(&m[3], hidden);
        product((count, ffn, hidden), View::rows(a, ffn), by, (x, hidden), true, threads);
        rows(x, hidden, |_, row| layer_norm(row));
    }
    x
}

#[expect(clippy::cast_precision_loss, reason = "a scale")]
fn scale_of(head: usize) -> f32 {
    1.0 / (head as f32).sqrt()
}

fn cnn<'a>(
    w: &Weights,
    batch: usize,
    layers: usize,
    input: &[f32],
    buffers: &'a mut Buffers,
    threads: usize,
) -> &'a [f32] {
    let Shape::Cnn { classes, .. } = w.shape else {
        return &[];
    };
    let Buffers { x, a, b, c } = buffers;
    b[..input.len()].copy_from_slice(input);
    for layer in 0..layers {
        let (from, to, side, stride) = w.shape.convolution(layer);
        let small = side.div_ceil(stride);
        let pixels = batch * small * small;
        let images = &b[..batch * side * side * from];
        // What each pixel sees, as a row.
        rows(&mut a[..pixels * 9 * from], 9 * from, |pixel, row| {
            let (item, at) = (pixel / (small * small), pixel % (small * small));
            let image = &images[item * side * side * from..][..side * side * from];
            let (y, x) = (at / small * stride, at % small * stride);
            for (tap, seen) in row.chunks_mut(from).enumerate() {
                let (y, x) = (y + tap / 3, x + tap % 3);
                if y == 0 || x == 0 || y > side || x > side {
                    seen.fill(0.0);
                } else {
                    seen.copy_from_slice(&image[((y - 1) * side + x - 1) * from..][..from]);
                }
            }
        });
        let (seen, by) = (View::rows(a, 9 * from), View::rows(&w.matrices[layer], to));
        product((pixels, 9 * from, to), seen, by, (b, to), false, threads);
        rows(&mut b[..pixels * to], to, |_, row| row.iter_mut().for_each(|v| *v = v.max(0.0)));
    }
    let (from, channels, side, stride) = w.shape.convolution(layers - 1);
    debug_assert!(from > 0);
    let pixels = side.div_ceil(stride).pow(2);
    let means = &mut x[..batch * channels];
    let images = &b[..batch * pixels * channels];
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    rows(means, channels, |item, row| {
        row.fill(0.0);
        for pixel in images[item * pixels * channels..][..pixels * channels].chunks(channels) {
            row.iter_mut().zip(pixel).for_each(|(m, p)| *m += p / pixels as f32);
        }
    });
    let by = View::rows(&w.matrices[layers], classes);
    product((batch, channels, classes), View::rows(x, channels), by, (c, classes), false, threads);
    c
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn rms_norm(from: &[f32], to: &mut [f32]) {
    let square = from.iter().map(|v| v * v).sum::<f32>() / from.len() as f32;
    let scale = 1.0 / (square + 1e-5).sqrt();
    to.iter_mut().zip(from).for_each(|(t, f)| *t = f * scale);
}

#[expect(clippy::cast_possible_truncation, reason = "f32 arithmetic")]
fn turn_heads(x: &mut [f32], head: usize, position: usize) {
    for pair in 0..head / 2 {
        let (cos, sin) = turn(position, pair, head);
        let (cos, sin) = (cos as f32, sin as f32);
        for one in x.chunks_mut(head) {
            let (a, b) = (one[pair], one[pair + head / 2]);
            one[pair] = a * cos - b * sin;
            one[pair + head / 2] = a * sin + b * cos;
        }
    }
}

/// `new` tokens of each sequence after `past` ones that are in the cache.
fn decoder<'a>(
    w: &Weights,
    s: &DecoderSizes,
    (batch, past, new): (usize, usize, usize),
    input: &[f32],
    buffers: &'a mut Buffers,
    cache: &mut Cache,
    threads: usize,
) -> &'a [f32] {
    let Buffers { x, a, b, c } = buffers;
    x.copy_from_slice(input);
    let (count, kv) = (batch * new, s.kv());
    let wide = s.hidden + 2 * kv;
    for (layer, m) in w.matrices.chunks(4).enumerate() {
        let from = &*x;
        rows(b, s.hidden, |at, row| rms_norm(&from[at * s.hidden..][..s.hidden], row));
        let by = View::rows(&m[0], wide);
        product((count, s.hidden, wide), View::rows(b, s.hidden), by, (a, wide), false, threads);
        let one = cache.room * kv;
        let keys = &mut cache.keys[layer * batch * one..(layer + 1) * batch * one];
        let values = &mut cache.values[layer * batch * one..(layer + 1) * batch * one];
        let sequences = (b.par_chunks_mut(new * s.hidden), a.par_chunks_mut(wide * new))
            .into_par_iter()
            .zip(keys.par_chunks_mut(one).zip(values.par_chunks_mut(one)));
        sequences.for_each(|((out, qkv), (keys, values))| {
            for (t, qkv) in qkv.chunks_mut(wide).take(new).enumerate() {
                turn_heads(&mut qkv[..s.hidden + kv], s.head(), past + t);
                let at = (past + t) * kv..(past + t + 1) * kv;
                keys[at.clone()].copy_from_slice(&qkv[s.hidden..s.hidden + kv]);
                values[at].copy_from_slice(&qkv[s.hidden + kv..]);
            }
            attend(s, (past, new), qkv, keys, values, out);
        });
        let by = View::rows(&m[1], s.hidden);
        let seen = View::rows(b, s.hidden);
        product((count, s.hidden, s.hidden), seen, by, (x, s.hidden), true, threads);
        let from = &*x;
        rows(b, s.hidden, |at, row| rms_norm(&from[at * s.hidden..][..s.hidden], row));
        let both = 2 * s.ffn;
        let by = View::rows(&m[2], both);
        product((count, s.hidden, both), View::rows(b, s.hidden), by, (a, both), false, threads);
        let inner = &*a;
        rows(c, s.ffn, |at, row| {
            let (gate, up) = inner[at * both..][..both].split_at(s.ffn);
            for ((o, g), u) in row.iter_mut().zip(gate).zip(up) {
                *o = g / (1.0 + exp(-g)) * u;
            }
        });
        let by = View::rows(&m[3], s.hidden);
        product((count, s.ffn, s.hidden), View::rows(c, s.ffn), by, (x, s.hidden), true, threads);
    }
    x
}

/// Attention of one sequence: each head's new queries over all tokens up to their own.
fn attend(
    s: &DecoderSizes,
    (past, new): (usize, usize),
    qkv: &[f32],
    keys: &[f32],
    values: &[f32],
    out: &mut [f32],
) {
    let (head, kv, all) = (s.head(), s.kv(), past + new);
    let wide = s.hidden + 2 * kv;
    let mut scores = vec![0.0; new * all];
    for h in 0..s.heads {
        let group = h / (s.heads / s.kv_heads) * head;
        let query = View::rows(&qkv[h * head..], wide);
        let key = View::rows(&keys[group..], kv).transposed();
        product((new, head, all), query, key, (&mut scores, all), false, 1);
        for (t, row) in scores.chunks_mut(all).enumerate() {
            let (seen, later) = row.split_at_mut(past + t + 1);
            softmax(seen, scale_of(head));
            later.fill(0.0);
        }
        let value = View::rows(&values[group..], kv);
        let shares = View::rows(&scores, all);
        product((new, all, head), shares, value, (&mut out[h * head..], s.hidden), false, 1);
    }
}

//! The models once more: one item at a time, plain loops, sums in double precision, nothing shared
//! with the fast passes but the weights. What every fast pass, here or on a GPU, is checked
//! against.

use super::weights::{DecoderSizes, Shape, Weights, turn};

/// The output of one item. For a decoder `input` holds the tokens of one sequence one after the
/// other, all of which are computed; a cached step must equal the last of them.
#[must_use]
pub fn item(weights: &Weights, input: &[f32]) -> Vec<f64> {
    let x: Vec<f64> = input.iter().map(|v| f64::from(*v)).collect();
    match weights.shape {
        Shape::Mlp { layers, hidden } => mlp(weights, layers, hidden, x),
        Shape::Encoder { .. } => encoder(weights, x),
        Shape::Cnn { layers, .. } => cnn(weights, layers, x),
        Shape::Decoder { sizes, .. } => decoder(weights, &sizes, x),
    }
}

/// ‖out − reference‖ / ‖reference‖; not a number where a number is missing.
#[must_use]
pub fn distance(out: &[f32], reference: &[f64]) -> f64 {
    if out.len() != reference.len() {
        return f64::NAN;
    }
    let gap: f64 = out.iter().zip(reference).map(|(a, b)| (f64::from(*a) - b).powi(2)).sum();
    (gap / reference.iter().map(|b| b * b).sum::<f64>()).sqrt()
}

/// Row vector times matrix with `n` columns.
fn times(x: &[f64], matrix: &[f32], n: usize) -> Vec<f64> {
    let mut out = vec![0.0; n];
    for (i, xi) in x.iter().enumerate() {
        for (j, o) in out.iter_mut().enumerate() {
            *o += xi * f64::from(matrix[i * n + j]);
        }
    }
    out
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x.powi(3))).tanh())
}

fn mlp(w: &Weights, layers: usize, hidden: usize, mut x: Vec<f64>) -> Vec<f64> {
    for layer in 0..layers {
        let inner = times(&x, &w.matrices[2 * layer], 4 * hidden);
        let inner: Vec<f64> = inner.into_iter().map(gelu).collect();
        let out = times(&inner, &w.matrices[2 * layer + 1], hidden);
        x.iter_mut().zip(out).for_each(|(x, o)| *x += o);
    }
    x
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn layer_norm(x: &mut [f64]) {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    let variance = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / x.len() as f64;
    x.iter_mut().for_each(|v| *v = (*v - mean) / (variance + 1e-5).sqrt());
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn rms_norm(x: &[f64]) -> Vec<f64> {
    let square = x.iter().map(|v| v * v).sum::<f64>() / x.len() as f64;
    x.iter().map(|v| v / (square + 1e-5).sqrt()).collect()
}

/// What a query sees of the keys and values it may look at.
#[expect(clippy::cast_precision_loss, reason = "a scale")]
fn attend(query: &[f64], keys: &[&[f64]], values: &[&[f64]]) -> Vec<f64> {
    let scale = 1.0 / (query.len() as f64).sqrt();
    let score = |k: &&[f64]| query.iter().zip(*k).map(|(a, b)| a * b).sum::<f64>() * scale;
    let scores: Vec<f64> = keys.iter().map(score).collect();
    let most = scores.iter().copied().fold(f64::MIN, f64::max);
    let shares: Vec<f64> = scores.iter().map(|s| (s - most).exp()).collect();
    let sum: f64 = shares.iter().sum();
    let mut out = vec![0.0; query.len()];
    for (share, value) in shares.iter().zip(values) {
        out.iter_mut().zip(*value).for_each(|(o, v)| *o += share / sum * v);
    }
    out
}

fn encoder(w: &Weights, x: Vec<f64>) -> Vec<f64> {
    let Shape::Encoder { layers, hidden, heads, ffn, .. } = w.shape else {
        return Vec::new();
    };
    let head = hidden / heads;
    let mut tokens: Vec<Vec<f64>> = x.chunks(hidden).map(<[f64]>::to_vec).collect();
    for m in w.matrices.chunks(4).take(layers) {
        let qkv: Vec<Vec<f64>> = tokens.iter().map(|t| times(t, &m[0], 3 * hidden)).collect();
        for (at, token) in tokens.iter_mut().enumerate() {
            let mut seen = Vec::with_capacity(hidden);
            for h in 0..heads {
                let part =
                    |which: usize| which * hidden + h * head..which * hidden + (h + 1) * head;
                let keys: Vec<&[f64]> = qkv.iter().map(|t| &t[part(1)]).collect();
                let values: Vec<&[f64]> = qkv.iter().map(|t| &t[part(2)]).collect();
                seen.extend(attend(&qkv[at][part(0)], &keys, &values));
            }
            let out = times(&seen, &m[1], hidden);
            token.iter_mut().zip(out).for_each(|(t, o)| *t += o);
            layer_norm(token);
            let inner: Vec<f64> = times(token, &m[2], ffn).into_iter().map(gelu).collect();
            let out = times(&inner, &m[3], hidden);
            token.iter_mut().zip(out).for_each(|(t, o)| *t += o);
            layer_norm(token);
        }
    }
    tokens.concat()
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn cnn(w: &Weights, layers: usize, x: Vec<f64>) -> Vec<f64> {
    let Shape::Cnn { classes, .. } = w.shape else {
        return Vec::new();
    };
    // Pixels by row, then column, then channel.
    let mut image = x;
    for layer in 0..layers {
        let (from, to, side, stride) = w.shape.convolution(layer);
        let small = side.div_ceil(stride);
        let mut next = vec![0.0; small * small * to];
        for (pixel, out) in next.chunks_mut(to).enumerate() {
            let (row, col) = (pixel / small * stride, pixel % small * stride);
            for dy in 0..3 {
                for dx in 0..3 {
                    let (y, x) = (row + dy, col + dx);
                    // Padded by one pixel of zeros all around.
                    if y == 0 || x == 0 || y > side || x > side {
                        continue;
                    }
                    let seen = &image[((y - 1) * side + x - 1) * from..][..from];
                    let kernel = &w.matrices[layer][(dy * 3 + dx) * from * to..][..from * to];
                    let part = times(seen, kernel, to);
                    out.iter_mut().zip(part).for_each(|(o, p)| *o += p);
                }
            }
            out.iter_mut().for_each(|v| *v = v.max(0.0));
        }
        image = next;
    }
    let channels = w.shape.convolution(layers - 1).1;
    let pixels = image.len() / channels;
    let mut mean = vec![0.0; channels];
    for pixel in image.chunks(channels) {
        mean.iter_mut().zip(pixel).for_each(|(m, p)| *m += p / pixels as f64);
    }
    times(&mean, &w.matrices[layers], classes)
}

fn turned(x: &[f64], head: usize, position: usize) -> Vec<f64> {
    let mut out = x.to_vec();
    for one in out.chunks_mut(head) {
        for pair in 0..head / 2 {
            let (cos, sin) = turn(position, pair, head);
            let (a, b) = (one[pair], one[pair + head / 2]);
            one[pair] = a * cos - b * sin;
            one[pair + head / 2] = a * sin + b * cos;
        }
    }
    out
}

fn decoder(w: &Weights, s: &DecoderSizes, x: Vec<f64>) -> Vec<f64> {
    let (head, kv) = (s.head(), s.kv());
    let mut tokens: Vec<Vec<f64>> = x.chunks(s.hidden).map(<[f64]>::to_vec).collect();
    for m in w.matrices.chunks(4).take(s.layers) {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (at, token) in tokens.iter_mut().enumerate() {
            let qkv = times(&rms_norm(token), &m[0], s.hidden + 2 * kv);
            let query = turned(&qkv[..s.hidden], head, at);
            keys.push(turned(&qkv[s.hidden..s.hidden + kv], head, at));
            values.push(qkv[s.hidden + kv..].to_vec());
            let mut seen = Vec::with_capacity(s.hidden);
            for h in 0..s.heads {
                let group = h / (s.heads / s.kv_heads) * head;
                let k: Vec<&[f64]> = keys.iter().map(|k| &k[group..group + head]).collect();
                let v: Vec<&[f64]> =
                    values.iter().map(|v: &Vec<f64>| &v[group..group + head]).collect();
                seen.extend(attend(&query[h * head..(h + 1) * head], &k, &v));
            }
            let out = times(&seen, &m[1], s.hidden);
            token.iter_mut().zip(out).for_each(|(t, o)| *t += o);
            let inner = times(&rms_norm(token), &m[2], 2 * s.ffn);
            let gated: Vec<f64> = (0..s.ffn)
                .map(|i| inner[i] / (1.0 + (-inner[i]).exp()) * inner[s.ffn + i])
                .collect();
            let out = times(&gated, &m[3], s.hidden);
            token.iter_mut().zip(out).for_each(|(t, o)| *t += o);
        }
    }
    tokens.concat()
}

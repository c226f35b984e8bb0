//! Passes on the processor: true ones, at odd sizes.
#![allow(clippy::unwrap_used, reason = "tests")]

use calibrate::cpu::{Buffers, Cache, Cpu, DecoderSizes, Shape, Weights, forward, reference};
use calibrate::device::{Device, Fault};

const DECODER: DecoderSizes =
    DecoderSizes { layers: 2, hidden: 24, heads: 6, kv_heads: 2, ffn: 40 };

fn shapes() -> Vec<Shape> {
    vec![
        Shape::Mlp { layers: 3, hidden: 17 },
        Shape::Encoder { layers: 2, hidden: 22, heads: 2, ffn: 37, seq: 7 },
        Shape::Encoder { layers: 1, hidden: 15, heads: 3, ffn: 5, seq: 1 },
        Shape::Cnn { layers: 3, channels: 5, side: 13, classes: 7 },
        Shape::Cnn { layers: 1, channels: 3, side: 5, classes: 2 },
        Shape::Decoder { sizes: DECODER, context: 0, prompt: 9 },
        // A cached step against a whole pass over all tokens.
        Shape::Decoder { sizes: DECODER, context: 7, prompt: 0 },
        Shape::Decoder { sizes: DECODER, context: 1, prompt: 0 },
    ]
}

#[test]
fn passes_equal_the_reference_at_odd_sizes() {
    for shape in shapes() {
        for (threads, batch) in [(1, 1), (2, 3), (2, 11)] {
            let mut cpu = Cpu::new("m", shape, threads, 1 << 30, 9).unwrap();
            let gap = cpu.check(batch).unwrap();
            assert!(gap < 1e-5, "{shape:?} at {batch}: {gap:e}"); // NaN fails too
        }
    }
}

#[test]
fn every_number_of_the_output_is_written_and_depends_on_its_item_alone() {
    for shape in shapes().into_iter().take(6) {
        let weights = Weights::random(shape, 3);
        let per = shape.input();
        let input: Vec<f32> = (0..5 * per).map(|i| ((i * 37 % 101) as f32 / 50.0) - 1.0).collect();
        let pass = |batch: usize, input: &[f32]| {
            let mut cache = Cache::default();
            if let Shape::Decoder { sizes, prompt, .. } = shape {
                cache.room = prompt;
                cache.keys = vec![0.0; sizes.layers * batch * prompt * sizes.kv()];
                cache.values = cache.keys.clone();
            }
            forward(&weights, batch, input, &mut Buffers::new(&shape, batch), &mut cache, 1)
                .to_vec()
        };
        let all = pass(5, &input);
        assert!(all.iter().all(|v| v.is_finite()), "{shape:?}");
        let each = all.len() / 5;
        for item in 0..5 {
            let alone: Vec<f64> =
                pass(1, &input[item * per..][..per]).into_iter().map(f64::from).collect();
            let gap = reference::distance(&all[item * each..][..each], &alone);
            assert!(gap < 1e-5, "{shape:?} item {item}: {gap:e}");
        }
    }
}

#[test]
fn the_reference_notices_a_wrong_weight() {
    let shape = Shape::Mlp { layers: 1, hidden: 8 };
    let (weights, mut other) = (Weights::random(shape, 3), Weights::random(shape, 3));
    other.matrices[1][5] += 0.1;
    let input = [0.5; 8];
    let out: Vec<f32> = reference::item(&weights, &input).into_iter().map(|v| v as f32).collect();
    assert!(reference::distance(&out, &reference::item(&weights, &input)) < 1e-6);
    assert!(reference::distance(&out, &reference::item(&other, &input)) > 1e-4);
    assert!(reference::distance(&[f32::NAN; 8], &reference::item(&weights, &input)).is_nan());
}

#[test]
fn memory_is_a_limit_and_sizes_are_checked() {
    let shape = Shape::Mlp { layers: 1, hidden: 64 };
    let mut cpu = Cpu::new("mlp", shape, 1, 100_000, 1).unwrap();
    assert!(cpu.prepare(8).is_ok() && cpu.pass(8).unwrap() > 0);
    assert!(matches!(cpu.prepare(4096), Err(Fault::DoesNotFit { batch: 4096, .. })));
    let odd = Shape::Encoder { layers: 1, hidden: 10, heads: 3, ffn: 4, seq: 2 };
    assert!(Cpu::new("encoder", odd, 1, 1 << 20, 1).is_err());
    assert_eq!(shape.flops(), 2 * 2 * 64 * 256);
}

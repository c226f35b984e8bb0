//! Every cost form against its formula, written out here on its own, and refusals.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use batchsim::cost::{Cost, FloorLinear, Roof, Tiled, TwoPiece};
use batchsim::time::Nanos;

/// Twenty sizes: small ones, both sides of tile edges, large ones.
const SIZES: [u32; 20] =
    [1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000, 65_536];

fn us(us: u64) -> Nanos {
    Nanos(us * 1_000)
}

/// Within half a nanosecond of rounding of a formula in floats.
fn agrees(cost: &Cost, formula: impl Fn(f64) -> f64) {
    cost.check().unwrap();
    for n in SIZES {
        let (have, want) = (cost.service_ns(n) as f64, formula(f64::from(n)));
        assert!((have - want).abs() <= 0.5 + want * 1e-12, "{}({n}): {have} {want}", cost.kind());
    }
}

#[test]
fn floor_linear_is_the_larger_of_floor_and_line() {
    let form = FloorLinear { floor: us(7_000), fixed: us(1_500), per_item: us(230) };
    agrees(&Cost::FloorLinear(form), |n| 7e6_f64.max(1.5e6 + 230e3 * n));
}

#[test]
fn roof_is_the_p_norm_of_floor_and_work() {
    for p in [1.0, 1.7, 2.0, 4.0, 12.5] {
        let form = Roof { floor: us(9_600), per_item: us(688), sharpness: p };
        // In milliseconds, where plain powers do not overflow.
        let formula = |n: f64| (9.6_f64.powf(p) + (0.688 * n).powf(p)).powf(1.0 / p) * 1e6;
        agrees(&Cost::Roof(form), formula);
    }
}

#[test]
fn a_very_sharp_roof_is_the_maximum() {
    let form = Roof { floor: us(9_600), per_item: us(688), sharpness: 100.0 };
    agrees(&Cost::Roof(form.clone()), |n| {
        let (x, y) = (9.6e6_f64, 688e3 * n);
        let high = x.max(y);
        high * (1.0 + (x.min(y) / high).powi(100)).powf(0.01)
    });
    assert_eq!(Cost::Roof(form).service_ns(1), 9_600_000);
}

#[test]
fn two_piece_changes_its_slope_at_the_knee() {
    for (before, after) in [(500, 100), (100, 500), (0, 40)] {
        let form =
            TwoPiece { fixed: us(800), per_item: us(before), knee: 32, per_item_after: us(after) };
        let (b, a) = (before as f64 * 1e3, after as f64 * 1e3);
        agrees(&Cost::TwoPiece(form), |n| {
            if n <= 32.0 { 8e5 + b * n } else { 8e5 + b * 32.0 + a * (n - 32.0) }
        });
    }
}

#[test]
fn tiled_pays_for_every_tile_begun() {
    for tile in [1, 16, 32, 100] {
        let form = Tiled { fixed: us(300), per_tile: us(1_250), tile };
        agrees(&Cost::Tiled(form), |n| 3e5 + 1.25e6 * (n / f64::from(tile)).ceil());
    }
}

#[test]
fn ceilings() {
    let per_s = |cost: Cost| cost.capacity_per_s(None, 1).unwrap();
    let line = FloorLinear { floor: us(7_000), fixed: us(0), per_item: us(500) };
    assert!((per_s(Cost::FloorLinear(line)) - 2000.0).abs() < 1e-6);
    let roof = Roof { floor: us(8_000), per_item: us(500), sharpness: 3.0 };
    assert!((per_s(Cost::Roof(roof)) - 2000.0).abs() < 1e-3);
    let tiled = Tiled { fixed: us(8_000), per_tile: us(16_000), tile: 32 };
    assert!((per_s(Cost::Tiled(tiled)) - 2000.0).abs() < 1e-6);
    let flat = TwoPiece { fixed: us(1), per_item: us(1), knee: 8, per_item_after: us(0) };
    assert_eq!(Cost::TwoPiece(flat).capacity_per_s(None, 1), None, "free items have no ceiling");
}

#[test]
fn what_cannot_be_meant_is_refused_at_its_key() {
    let roof = |sharpness| Cost::Roof(Roof { floor: us(1), per_item: us(1), sharpness });
    for sharpness in [0.99, 100.1, f64::NAN, -2.0] {
        assert_eq!(roof(sharpness).check().unwrap_err().key, "sharpness");
    }
    assert_eq!(roof(1.0).check(), Ok(()));
    let tiled = Cost::Tiled(Tiled { fixed: us(1), per_tile: us(1), tile: 0 });
    assert_eq!(tiled.check().unwrap_err().key, "tile");
    let knee = TwoPiece { fixed: us(1), per_item: us(1), knee: 0, per_item_after: us(1) };
    assert_eq!(Cost::TwoPiece(knee).check().unwrap_err().key, "knee");
    let none = FloorLinear { floor: us(0), fixed: us(0), per_item: us(0) };
    assert_eq!(Cost::FloorLinear(none).check().unwrap_err().key, "floor");
}

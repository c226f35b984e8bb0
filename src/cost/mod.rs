//! Cost models: the shape of a batch in, its service time out.
//!
//! One file per form. A cost is the time one instance is held by one forward pass, including what
//! does not depend on the batch (kernel launches, weight reads).

mod affine;
mod floor_linear;
mod jitter;
mod model;
mod roof;
mod table;
mod tiled;
mod two_piece;

use crate::tagged::{BadParam, params, tagged};
pub use affine::Affine;
pub use floor_linear::FloorLinear;
pub use jitter::{Erlang, Exponential, Jitter, Lognormal, NoJitter, TwoPhase, Uniform};
pub use model::{CostModel, FixedCost, JitteredCost};
pub use roof::Roof;
pub use table::{Beyond, Point, Table};
pub use tiled::Tiled;
pub use two_piece::TwoPiece;

params! {
    /// A cost model kept in a file of its own, written by `calibrate` or by hand.
    pub struct CostFile {
        /// The file, relative to the scenario.
        pub file: String,
    }
}

tagged! {
    /// The parameters of a cost model, as a scenario gives them.
    pub enum Cost {
        "affine" => Affine(Affine),
        "floor-linear" => FloorLinear(FloorLinear),
        "roof" => Roof(Roof),
        "two-piece" => TwoPiece(TwoPiece),
        "tiled" => Tiled(Tiled),
        "table" => Table(Table),
        "file" => File(CostFile),
    }
}

impl Cost {
    /// Whether the parameters can be meant.
    ///
    /// # Errors
    /// The first parameter that cannot.
    pub fn check(&self) -> Result<(), BadParam> {
        match self {
            Self::Affine(c) => c.check(),
            Self::FloorLinear(c) => c.check(),
            Self::Roof(c) => c.check(),
            Self::TwoPiece(c) => c.check(),
            Self::Tiled(c) => c.check(),
            Self::Table(c) => c.check(),
            Self::File(_) => Ok(()),
        }
    }
}

impl Cost {
    /// Service time of a batch of `items` in nanoseconds, at least 1 (jitter aside).
    #[must_use]
    pub fn service_ns(&self, items: u32) -> u64 {
        match self {
            Self::Affine(c) => c.service_ns(items),
            Self::FloorLinear(c) => c.service_ns(items),
            Self::Roof(c) => c.service_ns(items),
            Self::TwoPiece(c) => c.service_ns(items),
            Self::Tiled(c) => c.service_ns(items),
            Self::Table(c) => c.service_ns(items),
            // A resolved scenario holds the file's content instead.
            Self::File(_) => 1,
        }
        .max(1)
    }

    /// Items per second of `instances` whose every batch holds `cap` items; for an unbounded
    /// batch the ceiling as the batch grows, `None` when there is none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    pub fn capacity_per_s(&self, cap: Option<u32>, instances: u32) -> Option<f64> {
        let per_instance = match cap {
            Some(cap) => f64::from(cap) * 1e9 / self.service_ns(cap) as f64,
            None => 1e9 / self.marginal_ns()?,
        };
        Some(per_instance * f64::from(instances))
    }

    /// Time of one more item in a very large batch, ns; `None` when it is free.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    pub fn marginal_ns(&self) -> Option<f64> {
        const LARGE: u32 = 1 << 30;
        let slope = self.service_ns(LARGE).saturating_sub(self.service_ns(LARGE / 2)) as f64
            / f64::from(LARGE - LARGE / 2);
        (slope > 0.0).then_some(slope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Nanos;

    #[test]
    fn running_example() {
        let cost = Cost::Affine(Affine { fixed: Nanos(8_000_000), per_item: Nanos(500_000) });
        assert_eq!([1, 8, 32].map(|n| cost.service_ns(n)), [8_500_000, 12_000_000, 24_000_000]);
        let capacity = |cap| cost.capacity_per_s(cap, 1).unwrap();
        assert!((capacity(Some(1)) - 117.647).abs() < 1e-3);
        assert!((capacity(Some(8)) - 666.667).abs() < 1e-3);
        assert!((capacity(Some(32)) - 1333.333).abs() < 1e-3);
        assert!((capacity(None) - 2000.0).abs() < 1e-6);
        let gain = capacity(Some(32)) / capacity(Some(1));
        assert!((gain - 11.333).abs() < 1e-3, "{gain}");
    }

    #[test]
    fn tables_interpolate_and_extend() {
        let point = |n, ns| Point { n, time: Nanos(ns) };
        let table = Table {
            points: vec![point(2, 100), point(4, 200), point(8, 240)],
            beyond: Beyond::Extend,
        };
        let cost = Cost::Table(table);
        let times = [1, 2, 3, 4, 6, 8, 16].map(|n| cost.service_ns(n));
        assert_eq!(times, [100, 100, 150, 200, 220, 240, 320]);
    }
}

//! `table`: measured batch sizes, straight lines between them.
//!
//! Below the first point the first time holds (a smaller batch is not promised to be faster);
//! beyond the last, `extend` continues the last segment's slope and `refuse` makes sizes above
//! the last point an error of the scenario.

use crate::tagged::{BadParam, params};
use crate::time::Nanos;

params! {
    /// One measured point.
    pub struct Point {
        /// Batch size.
        pub n: u32,
        /// Service time of a batch of this size.
        pub time: Nanos,
    }
}

/// What happens beyond the last point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "schema",
    derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum Beyond {
    /// Continue the slope of the last segment.
    #[default]
    Extend,
    /// A larger batch is an error.
    Refuse,
}

params! {
    /// Parameters of `table`.
    pub struct Table {
        /// Measured points, by increasing batch size.
        pub points: Vec<Point>,
        /// What happens beyond the last point: extend (default) or refuse.
        #[cfg_attr(feature = "schema", serde(default))]
        pub beyond: Beyond,
    }
}

impl Table {
    pub(super) fn check(&self) -> Result<(), BadParam> {
        let bad = |what: String, help: &str| Err(BadParam::new("points", what, help));
        if self.points.is_empty() {
            return bad(
                "a cost table needs at least one point".into(),
                "write points = [{ n = 1, time = \"8.5ms\" }, { n = 8, time = \"12ms\" }]",
            );
        }
        if self.points.iter().any(|p| p.n == 0 || p.time == Nanos::ZERO) {
            return bad(
                "every point has a batch size of 1 or more and a positive time".into(),
                "remove the point or correct it",
            );
        }
        if let Some(w) = self.points.windows(2).find(|w| w[1].n <= w[0].n) {
            return bad(
                format!("batch sizes must increase: {} does not follow {}", w[1].n, w[0].n),
                "sort the points by n and keep one of each size",
            );
        }
        Ok(())
    }
}

impl Table {
    /// Service time of a batch of `items`, ns; straight lines between the points.
    pub(super) fn service_ns(&self, items: u32) -> u64 {
        let after = self.points.partition_point(|p| p.n < items);
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else {
            return 1;
        };
        let (low, high) = match (after, self.points.get(after)) {
            (0, _) => return first.time.0,
            (at, Some(point)) => (&self.points[at - 1], point),
            // Beyond the last point: along the last segment, but never back in time.
            (at, None) if at >= 2 => {
                let (low, high) = (&self.points[at - 2], &self.points[at - 1]);
                return line(low, high, items).max(last.time.0);
            }
            (_, None) => return scaled(last, items),
        };
        line(low, high, items)
    }
}

/// The straight line through two points, rounded to a nanosecond.
fn line(low: &Point, high: &Point, items: u32) -> u64 {
    let (run, rise) =
        (i128::from(high.n - low.n), i128::from(high.time.0) - i128::from(low.time.0));
    let step = (rise * i128::from(items - low.n) + run / 2).div_euclid(run);
    u64::try_from((i128::from(low.time.0) + step).max(1)).unwrap_or(u64::MAX)
}

/// A single point says nothing of the slope: beyond it, every further item costs as much as one
/// of its own.
fn scaled(only: &Point, items: u32) -> u64 {
    let time = u128::from(only.time.0) * u128::from(items) / u128::from(only.n.max(1));
    u64::try_from(time).unwrap_or(u64::MAX)
}

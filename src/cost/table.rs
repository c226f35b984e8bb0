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
        if self
            .points
            .iter()
            .any(|p| p.n == 0 || p.time == Nanos::ZERO)
        {
            return bad(
                "every point has a batch size of 1 or more and a positive time".into(),
                "remove the point or correct it",
            );
        }
        if let Some(w) = self.points.windows(2).find(|w| w[1].n <= w[0].n) {
            return bad(
                format!(
                    "batch sizes must increase: {} does not follow {}",
                    w[1].n, w[0].n
                ),
                "sort the points by n and keep one of each size",
            );
        }
        Ok(())
    }
}

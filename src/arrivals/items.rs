//! Items of a request: how much of a batch one call fills.

use crate::rng::SimRng;
use crate::tagged::BadParam;
use rand::RngExt;

/// `items`: the same for every request, or drawn for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(serde::Serialize, schemars::JsonSchema), serde(untagged))]
pub enum Items {
    /// Every request carries this many.
    Constant(u32),
    /// Drawn for each request on its own.
    Drawn(ItemLaw),
}

/// The law of drawn item counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "schema",
    derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema),
    serde(deny_unknown_fields)
)]
pub struct ItemLaw {
    /// Its kind.
    pub kind: ItemLawKind,
    /// Fewest items.
    pub low: u32,
    /// Most items.
    pub high: u32,
}

/// Kinds of laws of item counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "schema",
    derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum ItemLawKind {
    /// Every whole number from `low` to `high` is as likely as another.
    Uniform,
}

impl Default for Items {
    fn default() -> Self {
        Self::Constant(1)
    }
}

impl Items {
    /// Fewest and most items of a request.
    #[must_use]
    pub const fn range(&self) -> (u32, u32) {
        match self {
            Self::Constant(n) => (*n, *n),
            Self::Drawn(law) => (law.low, law.high),
        }
    }

    /// Items of a request on average.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let (low, high) = self.range();
        f64::midpoint(f64::from(low), f64::from(high))
    }

    /// Whether the counts can be meant.
    ///
    /// # Errors
    /// Zero items, or a range that is empty or too wide.
    pub fn check(&self) -> Result<(), BadParam> {
        let (low, high) = self.range();
        let bad = |what: String, help: &str| Err(BadParam::new("items", what, help));
        if low == 0 {
            return bad("a request carries at least one item".into(), "write 1 or more");
        }
        if high < low {
            return bad(format!("`high` {high} is below `low` {low}"), "exchange the two");
        }
        if high - low >= 200 {
            let what = format!("{} different item counts are more than 200", high - low + 1);
            return bad(what, "write a narrower range");
        }
        Ok(())
    }
}

/// Draws item counts.
#[derive(Clone, Debug)]
pub(crate) struct ItemDraw {
    counts: u32,
    rng: SimRng,
}

impl ItemDraw {
    pub(crate) fn new(counts: u32, rng: SimRng) -> Self {
        Self { counts, rng }
    }

    /// How many different counts there are.
    pub(crate) fn counts(&self) -> u32 {
        self.counts
    }

    /// How many items above the fewest.
    #[inline]
    pub(crate) fn above_low(&mut self) -> u32 {
        self.rng.random_range(0..self.counts)
    }
}

#[cfg(feature = "schema")]
mod text {
    use super::{ItemLaw, Items};
    use serde::de::value::MapAccessDeserializer;
    use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
    use std::fmt;

    struct Reader;

    impl<'de> Visitor<'de> for Reader {
        type Value = Items;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(
                "a number of items such as 4, or a law such as \
                 { kind = \"uniform\", low = 1, high = 4 }",
            )
        }

        fn visit_u64<E: Error>(self, n: u64) -> Result<Items, E> {
            u32::try_from(n).map(Items::Constant).map_err(|_| {
                E::invalid_value(serde::de::Unexpected::Unsigned(n), &"below 4294967296")
            })
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Items, A::Error> {
            ItemLaw::deserialize(MapAccessDeserializer::new(map)).map(Items::Drawn)
        }
    }

    impl<'de> Deserialize<'de> for Items {
        fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            d.deserialize_any(Reader)
        }
    }
}

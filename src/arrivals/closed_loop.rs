//! `closed-loop`: `clients` callers, each sending its next request a think time after the answer
//! to the previous one. All send their first request at time zero.
//!
//! Closed-loop latency is not open-loop latency: a slow server slows its own load down
//! (coordinated omission). The interactive law holds: throughput = clients / (latency + think).

use crate::tagged::{BadParam, params};
use crate::time::Nanos;

/// `think`: a constant duration, or a law with its mean.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "schema", derive(serde::Serialize, schemars::JsonSchema), serde(untagged))]
pub enum Think {
    /// The same think time every time.
    Constant(Nanos),
    /// Random think times.
    Law(ThinkLaw),
}

impl Default for Think {
    fn default() -> Self {
        Self::Constant(Nanos::ZERO)
    }
}

/// The law of random think times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "schema",
    derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum ThinkKind {
    /// Always the mean.
    Constant,
    /// Exponential with the given mean.
    Exponential,
}

/// A think-time law and its mean.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "schema",
    derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema),
    serde(deny_unknown_fields)
)]
pub struct ThinkLaw {
    /// Mean think time.
    pub mean: Nanos,
    /// Its law.
    pub kind: ThinkKind,
}

params! {
    /// Parameters of `closed-loop`.
    pub struct ClosedLoop {
        /// How many callers.
        pub clients: u32,
        /// Time between an answer and the caller's next request (default: none).
        #[cfg_attr(feature = "schema", serde(default))]
        pub think: Think,
    }
}

impl ClosedLoop {
    pub(super) fn check(&self) -> Result<(), BadParam> {
        if (1..=1_000_000).contains(&self.clients) {
            return Ok(());
        }
        Err(BadParam::new(
            "clients",
            format!("a closed loop has 1 to 1,000,000 clients, not {}", self.clients),
            "write how many callers wait for their answers at the same time",
        ))
    }
}

#[cfg(feature = "schema")]
impl<'de> serde::Deserialize<'de> for Think {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        use serde::de::value::MapAccessDeserializer;
        use serde::de::{Error, MapAccess, Visitor};

        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Think;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a duration such as \"100ms\", or { mean = \"100ms\", kind = … }")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Think, E> {
                use crate::units::{HELP_MARK, parse_duration};
                parse_duration(text)
                    .map(Think::Constant)
                    .map_err(|e| E::custom(format!("{}{HELP_MARK}{}", e.what, e.help)))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Think, E> {
                self.visit_str(&value.to_string())
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Think, E> {
                self.visit_str(&value.to_string())
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Think, E> {
                self.visit_str(&value.to_string())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Think, A::Error> {
                serde::Deserialize::deserialize(MapAccessDeserializer::new(map)).map(Think::Law)
            }
        }

        d.deserialize_any(Reader)
    }
}

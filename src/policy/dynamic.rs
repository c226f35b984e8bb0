//! `dynamic`: size or timeout, the rule every batching server is said to follow.
//!
//! A free instance starts a batch as soon as `max_batch_size` requests are queued (or
//! `min_batch_size`, or a preferred size), else when `max_wait` has passed since the anchor. With
//! head arrival `a`, instance free at `F` and the arrival `t` that reaches the target, the start is
//! `max(F, min(t, anchor + max_wait))`, where the anchor is `a` or, for `pickup`, `max(F, a)`.
//!
//! `oldest_arrival` is how Triton (2.51) and TF Serving count, `pickup` how TorchServe (0.12),
//! KServe and mosec do; none of them is exactly this textbook rule (look-ahead, merging, locks,
//! polling), which is why real servers have policies of their own.
//! `min_batch_size = a` with `max_wait = "none"` is Neuts' (a, b) rule.

use super::{Law, check_cap};
use crate::mutant::mutate;
use crate::tagged::{BadParam, params};
use crate::time::Nanos;

/// The moment `max_wait` counts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "schema",
    derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema),
    serde(rename_all = "snake_case")
)]
pub enum Anchor {
    /// The arrival of the oldest queued request (Triton, TF Serving).
    #[default]
    OldestArrival,
    /// The moment a free instance first finds a request (TorchServe, KServe, mosec).
    Pickup,
}

/// `max_wait`: a duration, or `"none"` for a timer that never fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxWait {
    /// A partial batch leaves once its anchor is this old.
    After(Nanos),
    /// A partial batch waits for `min_batch_size` whatever it takes.
    Never,
}

params! {
    /// Parameters of `dynamic`.
    pub struct Dynamic {
        /// Most items in one batch.
        pub max_batch_size: u32,
        /// How long a partial batch is held, counted from `wait_anchor`; "none" never fires.
        pub max_wait: MaxWait,
        /// What `max_wait` counts from: oldest_arrival (default) or pickup.
        #[cfg_attr(feature = "schema", serde(default))]
        pub wait_anchor: Anchor,
        /// A free instance starts once this many items are queued (default: max_batch_size).
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub min_batch_size: Option<u32>,
        /// Sizes that leave as soon as they can be filled, the largest first.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Vec::is_empty"))]
        pub preferred_batch_sizes: Vec<u32>,
    }
}

impl Dynamic {
    /// Queue length at which a free instance starts at once.
    #[must_use]
    pub fn target(&self) -> u32 {
        let min = mutate!(MinIgnored, self.min_batch_size, None);
        min.unwrap_or(self.max_batch_size)
    }

    /// Whether no size below the cap is preferred.
    pub(super) fn has_no_preference(&self) -> bool {
        self.preferred_batch_sizes.iter().all(|&size| size >= self.max_batch_size)
    }

    pub(super) fn law(&self) -> Law {
        Law {
            cap: mutate!(CapOffByOne, self.max_batch_size, (self.max_batch_size - 1).max(1)),
            target: self.target(),
            wait: match self.max_wait {
                MaxWait::After(wait) => wait,
                MaxWait::Never => Nanos::MAX,
            },
            anchor: self.wait_anchor,
        }
    }

    pub(super) fn check(&self) -> Result<(), BadParam> {
        check_cap(self.max_batch_size)?;
        let cap = self.max_batch_size;
        if let Some(min) = self.min_batch_size
            && !(1..=cap).contains(&min)
        {
            return Err(BadParam::new(
                "min_batch_size",
                format!("min_batch_size {min} is not between 1 and max_batch_size {cap}"),
                format!("write a size from 1 to {cap}"),
            ));
        }
        if let Some(size) = self.preferred_batch_sizes.iter().find(|s| !(1..=cap).contains(*s)) {
            return Err(BadParam::new(
                "preferred_batch_sizes",
                format!("preferred size {size} is not between 1 and max_batch_size {cap}"),
                format!("keep sizes from 1 to {cap}"),
            ));
        }
        Ok(())
    }
}

#[cfg(feature = "schema")]
mod text {
    use super::MaxWait;
    use crate::time::Nanos;
    use crate::units::{HELP_MARK, parse_duration};
    use serde::de::{Error, Visitor};
    use std::fmt;

    struct Reader;

    impl Visitor<'_> for Reader {
        type Value = MaxWait;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a duration with its unit, as in \"5ms\", or \"none\"")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<MaxWait, E> {
            if text == "none" {
                return Ok(MaxWait::Never);
            }
            parse_duration(text)
                .map(MaxWait::After)
                .map_err(|e| E::custom(format!("{}{HELP_MARK}{}, or \"none\"", e.what, e.help)))
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<MaxWait, E> {
            self.visit_str(&value.to_string())
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<MaxWait, E> {
            self.visit_str(&value.to_string())
        }

        fn visit_f64<E: Error>(self, value: f64) -> Result<MaxWait, E> {
            self.visit_str(&value.to_string())
        }
    }

    impl<'de> serde::Deserialize<'de> for MaxWait {
        fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            d.deserialize_any(Reader)
        }
    }

    impl serde::Serialize for MaxWait {
        fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
            match self {
                Self::After(wait) => wait.serialize(s),
                Self::Never => s.serialize_str("none"),
            }
        }
    }

    impl schemars::JsonSchema for MaxWait {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "MaxWait".into()
        }

        fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
            let duration = generator.subschema_for::<Nanos>();
            schemars::json_schema!({ "anyOf": [duration, { "const": "none" }] })
        }
    }
}

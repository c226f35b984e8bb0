//! `triton`: the dynamic batcher of NVIDIA Triton Inference Server, as its source has it.
//!
//! Three places hold a request: the scheduler's queue, a payload (a batch under construction that
//! may already wait for an instance), and an instance. One batcher thread forms payloads; each
//! instance thread takes the oldest one when it is free. Limits, priorities and timeouts act on
//! the queue alone: what is in a payload runs.
//!
//! *Prefetch* is what no textbook has. Without priorities and queue policies up to two payloads
//! per instance are formed ahead. With a delay of 0 the last of them grows until it has a
//! preferred size. With a positive delay it is formed once its oldest request is that old, busy
//! instance or not, and is then as good as frozen: an arrival wakes the batcher only when the
//! queue reaches the next preferred size, so what comes during a pass waits for the pass after the
//! next. An instance that takes a payload merges overdue ones behind it while they fit, and even
//! where they do not fit they stop growing. Any queue policy or priority turns prefetch off: then
//! a payload is formed only when an instance waits.
//!
//! Formed at: `min(t(preferred), oldest + max_queue_delay)` while a slot is free, where
//! `oldest` is the arrival of the oldest request in the scheduler's queue and a slot is
//! one of two payloads per instance (prefetch) or an idle instance.
//!
//! Mirrors triton-inference-server/core as of release 2.51 (24.10) and later:
//! `DynamicBatchScheduler`, `PriorityQueue`, `InstanceQueue`. Checked against recordings of 2.51.0
//! and, batch by batch, against an independent model of the same source.
//! Not here: sequence batchers, the rate limiter, custom batching libraries, cancellation.

mod former;
mod plan;
mod scan;

use super::check_cap;
use crate::tagged::{BadParam, params};
use crate::time::Nanos;
pub(super) use former::Former;

/// What happens to a request that has waited for its timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "schema",
    derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema),
    serde(rename_all = "UPPERCASE")
)]
pub enum TimeoutAction {
    /// It is refused once the batcher looks.
    #[default]
    Reject,
    /// It goes behind the others of its level.
    Delay,
}

/// Who is faster when a pass ends and both the batcher and the instance are woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "schema",
    derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema),
    serde(rename_all = "lowercase")
)]
pub enum WakeRace {
    /// The instance takes the next payload as it is (in every recording).
    #[default]
    Instance,
    /// The batcher adds to the payload first.
    Batcher,
}

params! {
    /// A queue policy of one priority level.
    #[derive(Copy, Default)]
    pub struct QueuePolicy {
        /// What happens to a request that has waited for its timeout: REJECT (default) or DELAY.
        #[cfg_attr(feature = "schema", serde(default))]
        pub timeout_action: TimeoutAction,
        /// Timeout in microseconds; 0 (default) is none.
        #[cfg_attr(feature = "schema", serde(default))]
        pub default_timeout_microseconds: u64,
        /// Whether a request's own timeout may shorten it; without a default it changes nothing.
        #[cfg_attr(feature = "schema", serde(default))]
        pub allow_timeout_override: bool,
        /// Most waiting requests of the level; 0 (default) is no limit.
        #[cfg_attr(feature = "schema", serde(default))]
        pub max_queue_size: u32,
    }
}

params! {
    /// The queue policy of a priority level that differs from the default.
    #[derive(Copy)]
    pub struct LevelPolicy {
        /// The priority level, from 1.
        pub level: u32,
        /// What happens to a request that has waited for its timeout: REJECT (default) or DELAY.
        #[cfg_attr(feature = "schema", serde(default))]
        pub timeout_action: TimeoutAction,
        /// Timeout in microseconds; 0 (default) is none.
        #[cfg_attr(feature = "schema", serde(default))]
        pub default_timeout_microseconds: u64,
        /// Whether a request's own timeout may shorten it; without a default it changes nothing.
        #[cfg_attr(feature = "schema", serde(default))]
        pub allow_timeout_override: bool,
        /// Most waiting requests of the level; 0 (default) is no limit.
        #[cfg_attr(feature = "schema", serde(default))]
        pub max_queue_size: u32,
    }
}

params! {
    /// Parameters of `triton`, by the names of its model configuration.
    #[derive(Default)]
    pub struct Triton {
        /// Release of the server, as in "2.51" (default; 24.10). Known from 2.44 on.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub release: Option<String>,
        /// Most items in one batch.
        pub max_batch_size: u32,
        /// Sizes at which a batch leaves before its delay is over (default: max_batch_size).
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Vec::is_empty"))]
        pub preferred_batch_size: Vec<u32>,
        /// How long the oldest queued request may be held, in microseconds (default 0).
        #[cfg_attr(feature = "schema", serde(default))]
        pub max_queue_delay_microseconds: u64,
        /// Answers leave in the order in which batches were formed (up to 2.60; later releases
        /// have the key, and no such order).
        #[cfg_attr(feature = "schema", serde(default))]
        pub preserve_ordering: bool,
        /// Number of priority levels, 1 the highest (default 0: none).
        #[cfg_attr(feature = "schema", serde(default))]
        pub priority_levels: u32,
        /// Level of a request that asks for none; needed with priority_levels.
        #[cfg_attr(feature = "schema", serde(default))]
        pub default_priority_level: u32,
        /// Queue policy of every level without one of its own.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Option::is_none"))]
        pub default_queue_policy: Option<QueuePolicy>,
        /// Queue policies of single levels.
        #[cfg_attr(feature = "schema", serde(default, skip_serializing_if = "Vec::is_empty"))]
        pub priority_queue_policy: Vec<LevelPolicy>,
        /// Whether requests of different shapes cannot share a batch: an input has a variable
        /// dimension and no allow_ragged_batch, or is a shape tensor. Every arrival then wakes the
        /// batcher.
        #[cfg_attr(feature = "schema", serde(default))]
        pub enforce_shapes: bool,
        /// Who is faster at the end of a pass: instance (default, measured) or batcher.
        #[cfg_attr(feature = "schema", serde(default))]
        pub wake_race: WakeRace,
        /// Without prefetch: probability that the wake-up at the end of a pass is lost, so that
        /// the server idles until the next arrival or for up to 500 ms (default 0, measured).
        #[cfg_attr(feature = "schema", serde(default))]
        pub idle_stall: f64,
    }
}

/// The release whose behaviour this is unless another is named.
const RELEASE: u32 = 51;
/// The first release that looks for expired requests every 500 ms while it waits.
const FIRST: u32 = 44;
/// The last release that keeps answers in order.
const LAST_ORDERED: u32 = 60;

impl Triton {
    /// Whether payloads are formed ahead of idle instances.
    #[must_use]
    pub fn prefetches(&self) -> bool {
        let policy = self.default_queue_policy.unwrap_or_default();
        self.priority_levels == 0
            && policy.default_timeout_microseconds == 0
            && !policy.allow_timeout_override
            && policy.max_queue_size == 0
    }

    /// Preferred sizes, increasing; never empty.
    #[must_use]
    pub fn preferred(&self) -> Vec<u32> {
        let mut sizes = self.preferred_batch_size.clone();
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.is_empty() { vec![self.max_batch_size] } else { sizes }
    }

    /// How long the oldest queued request may be held.
    #[must_use]
    pub fn delay(&self) -> Nanos {
        Nanos(self.max_queue_delay_microseconds.saturating_mul(1_000))
    }

    /// Queue policies by level, highest priority first; one without priorities.
    #[must_use]
    pub fn levels(&self) -> Vec<QueuePolicy> {
        let default = self.default_queue_policy.unwrap_or_default();
        let own = |level: u32| {
            let policy = self.priority_queue_policy.iter().find(|p| p.level == level)?;
            let LevelPolicy {
                timeout_action,
                default_timeout_microseconds,
                allow_timeout_override,
                max_queue_size,
                ..
            } = *policy;
            Some(QueuePolicy {
                timeout_action,
                default_timeout_microseconds,
                allow_timeout_override,
                max_queue_size,
            })
        };
        if self.priority_levels == 0 {
            return vec![default];
        }
        (1..=self.priority_levels).map(|level| own(level).unwrap_or(default)).collect()
    }

    /// Whether answers leave in the order in which batches were formed.
    #[must_use]
    pub fn keeps_order(&self) -> bool {
        self.preserve_ordering && self.minor().unwrap_or(RELEASE) <= LAST_ORDERED
    }

    /// Items of a batch when the queue never empties.
    pub(super) fn saturated_batch(&self) -> u32 {
        let largest = self.preferred().last().copied().unwrap_or(self.max_batch_size);
        // With a delay the backlog is overdue, and overdue requests leave with all that fits.
        if self.max_queue_delay_microseconds == 0 { largest } else { self.max_batch_size }
    }

    pub(super) fn limits_queue(&self) -> bool {
        let limited = |p: &QueuePolicy| {
            let rejects = p.timeout_action == TimeoutAction::Reject;
            p.max_queue_size > 0 || (p.default_timeout_microseconds > 0 && rejects)
        };
        self.levels().iter().all(limited)
    }

    /// The minor number of the release.
    fn minor(&self) -> Option<u32> {
        let Some(release) = &self.release else { return Some(RELEASE) };
        let mut parts = release.split('.');
        let major = parts.next()?.parse::<u32>().ok()?;
        let minor = parts.next()?.parse::<u32>().ok()?;
        (major == 2).then_some(minor)
    }

    pub(super) fn check(&self) -> Result<(), BadParam> {
        check_cap(self.max_batch_size)?;
        let cap = self.max_batch_size;
        if let Some(size) = self.preferred_batch_size.iter().find(|s| !(1..=cap).contains(*s)) {
            return Err(BadParam::new(
                "preferred_batch_size",
                format!("preferred size {size} is not between 1 and max_batch_size {cap}"),
                format!("keep sizes from 1 to {cap}, as Triton demands"),
            ));
        }
        if self.minor().is_none_or(|minor| minor < FIRST) {
            let release = self.release.as_deref().unwrap_or_default();
            return Err(BadParam::new(
                "release",
                format!("release {release:?} is not one whose rules are known"),
                "write a server release from \"2.44\" (24.03) on, as in \"2.51\" (24.10)",
            ));
        }
        if !(0.0..=1.0).contains(&self.idle_stall) {
            let what = format!("a probability lies between 0 and 1, not {}", self.idle_stall);
            return Err(BadParam::new("idle_stall", what, "write 0 for none"));
        }
        self.check_levels()
    }

    fn check_levels(&self) -> Result<(), BadParam> {
        let levels = self.priority_levels;
        if levels > 100 {
            let what = format!("{levels} priority levels are more than 100");
            return Err(BadParam::new("priority_levels", what, "write a smaller number"));
        }
        if levels > 0 && !(1..=levels).contains(&self.default_priority_level) {
            return Err(BadParam::new(
                "default_priority_level",
                format!(
                    "default_priority_level {} is not between 1 and priority_levels {levels}",
                    self.default_priority_level
                ),
                format!("write a level from 1 to {levels}: Triton refuses to load the model"),
            ));
        }
        if let Some(policy) =
            self.priority_queue_policy.iter().find(|p| !(1..=levels).contains(&p.level))
        {
            return Err(BadParam::new(
                "priority_queue_policy",
                format!("level {} is not between 1 and priority_levels {levels}", policy.level),
                "raise priority_levels, or leave the policy out",
            ));
        }
        let delays = |p: &QueuePolicy| {
            p.timeout_action == TimeoutAction::Delay && p.default_timeout_microseconds > 0
        };
        if self.preserve_ordering && (levels > 1 || self.levels().iter().any(delays)) {
            return Err(BadParam::new(
                "preserve_ordering",
                "preserve_ordering excludes priorities and delayed requests",
                "leave one of them out: Triton refuses to load the model",
            ));
        }
        Ok(())
    }
}

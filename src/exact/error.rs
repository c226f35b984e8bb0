//! What the exact solver does not cover, in words.

use std::fmt;

/// Why there is no exact solution for a question.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum NotCovered {
    /// The queue grows without bound: the offered rate is at or above capacity.
    Overloaded {
        /// Offered rate, requests per second.
        offered_per_s: f64,
        /// Rate at which full batches leave, requests per second.
        capacity_per_s: f64,
    },
    /// An arrival parameter is not a positive finite number.
    Input {
        /// Name of the parameter.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// A parameter of the rule makes no sense.
    Rule {
        /// What is wrong.
        why: &'static str,
    },
    /// A service time is not a positive finite number.
    Cost {
        /// Batch size.
        batch: u32,
        /// Service time at that size, ms.
        ms: f64,
    },
    /// The truncated state space does not fit: the load is too close to 1 or the batch too large.
    TooLarge {
        /// States needed for the accuracy promised.
        states: f64,
        /// States allowed.
        limit: usize,
    },
    /// Two-state arrivals are solved for the rules that never wait only.
    BurstyRule,
}

impl fmt::Display for NotCovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overloaded { offered_per_s, capacity_per_s } => write!(
                f,
                "overloaded: {offered_per_s:.1}/s offered, capacity {capacity_per_s:.1}/s; \
                 there is no steady state"
            ),
            Self::Input { name, value } => {
                write!(f, "arrivals: {name} must be a positive finite number, not {value}")
            }
            Self::Rule { why } => write!(f, "batching rule: {why}"),
            Self::Cost { batch, ms } => write!(
                f,
                "service time of a batch of {batch} must be a positive finite number of ms, \
                 not {ms}"
            ),
            Self::TooLarge { states, limit } => write!(
                f,
                "the exact solution needs {states:.0} states, more than {limit}: \
                 the load is too close to capacity or the batch too large; simulate instead"
            ),
            Self::BurstyRule => write!(
                f,
                "two-state (MMPP) arrivals have an exact solution here for rules that never wait \
                 only (none, greedy): while a rule waits, the phase of the arrivals changes the \
                 fill time; simulate instead"
            ),
        }
    }
}

impl std::error::Error for NotCovered {}

//! Numerically exact steady state of request batching at one server, without simulation.
//!
//! Poisson (or two-state Markov-modulated) arrivals, one server, first come first served,
//! deterministic service `service_ms(n)` of a batch of `n`, no queue limit. The queue at dispatch
//! is a Markov chain; its stationary vector gives the batch sizes and the mean latency, and the
//! latency law follows from where a request lands in the queue and what the rule then does. The
//! mathematics is in `docs/MODEL.md`.
//!
//! ```
//! use batchsim::exact::{Input, Rule, solve};
//!
//! let cost = |n: u32| 8.0 + 0.5 * f64::from(n);
//! let rule = Rule::AtLeast { min: 1, cap: Some(8) };
//! let solution = solve(&Input::Poisson { rate_per_s: 300.0 }, &rule, &cost)?;
//! assert!((solution.mean_ms() - 14.5675181).abs() < 1e-7);
//! # Ok::<(), batchsim::exact::NotCovered>(())
//! ```

pub mod classic;

mod blocks;
mod bulk;
mod bursty;
mod chain;
mod error;
mod grid;
mod law;
mod model;
mod oldest;
mod phases;
mod pickup;
mod poisson;
mod positions;
mod solution;
mod unbounded;

pub use error::NotCovered;
pub use solution::Solution;

use model::{Model, Solved};
use phases::Phases;
use poisson::surely_at_least;

/// Largest batch a capped rule is solved for: beyond it memory and time are no longer moments.
const LARGEST_CAP: u32 = 10_000;

/// The arrival process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Input {
    /// Independent exponential gaps.
    Poisson {
        /// Mean rate, requests per second.
        rate_per_s: f64,
    },
    /// Poisson arrivals whose rate alternates between two values for exponential times.
    Mmpp2 {
        /// Rate in each state, requests per second; one of them may be 0.
        rates_per_s: [f64; 2],
        /// Mean time in each state, ms.
        dwells_ms: [f64; 2],
    },
}

/// The moment a timer counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Arrival of the oldest queued request.
    Oldest,
    /// The server is free and a request is there.
    Pickup,
}

/// The batching rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// A free server starts once `min` are queued and takes at most `cap` (`None`: all).
    /// `min = 1, cap = 1` is no batching, `min = 1` greedy, `min = cap` static.
    AtLeast {
        /// Requests that must be queued.
        min: u32,
        /// Largest batch.
        cap: Option<u32>,
    },
    /// A free server starts once `cap` are queued, or else when the timer ends.
    Timer {
        /// Largest batch.
        cap: u32,
        /// Length of the timer, ms; 0 never waits, infinity waits for a full batch.
        wait_ms: f64,
        /// What the timer counts from.
        anchor: Anchor,
    },
}

/// Solves a rule for an arrival process. `service_ms(n)` is the service time of a batch of `n >= 1`
/// requests; it need not increase with `n`. Without a cap it is asked for sizes up to 2^20.
///
/// # Errors
/// [`NotCovered`] says what is outside the exact solution, and why.
pub fn solve(
    input: &Input,
    rule: &Rule,
    service_ms: &dyn Fn(u32) -> f64,
) -> Result<Solution, NotCovered> {
    match *input {
        Input::Poisson { rate_per_s } => {
            positive("rate_per_s", rate_per_s)?;
            poisson_input(rate_per_s / 1000.0, rule, service_ms)
        }
        Input::Mmpp2 { rates_per_s, dwells_ms } => {
            bursty_input(rates_per_s, dwells_ms, rule, service_ms)
        }
    }
}

fn poisson_input(
    rate: f64,
    rule: &Rule,
    cost: &dyn Fn(u32) -> f64,
) -> Result<Solution, NotCovered> {
    match simplified(rule, rate)? {
        Rule::AtLeast { cap: Some(cap), .. } | Rule::Timer { cap, .. } if cap > LARGEST_CAP => {
            Err(NotCovered::TooLarge { states: f64::from(cap), limit: LARGEST_CAP as usize })
        }
        Rule::AtLeast { min, .. } if min > LARGEST_CAP => {
            Err(NotCovered::TooLarge { states: f64::from(min), limit: LARGEST_CAP as usize })
        }
        Rule::AtLeast { min, cap: None } => {
            let (model, solved) = unbounded::solve(rate, min as usize, cost)?;
            Ok(Solution::new(solved, rate, unbounded::ceiling(cost)?, &model.s))
        }
        Rule::AtLeast { min, cap: Some(cap) } => {
            let model = Model::new(rate, cap, cost)?;
            let solved = bulk::solve(&model, min as usize)?;
            Ok(finish(solved, &model))
        }
        Rule::Timer { cap, wait_ms, anchor } => {
            let model = Model::new(rate, cap, cost)?;
            let solved = match anchor {
                Anchor::Oldest => oldest::solve(&model, wait_ms)?,
                Anchor::Pickup => pickup::solve(&model, wait_ms)?,
            };
            Ok(finish(solved, &model))
        }
    }
}

fn bursty_input(
    rates_per_s: [f64; 2],
    dwells_ms: [f64; 2],
    rule: &Rule,
    cost: &dyn Fn(u32) -> f64,
) -> Result<Solution, NotCovered> {
    for dwell in dwells_ms {
        positive("dwells_ms", dwell)?;
    }
    for rate in rates_per_s {
        // One of the two may be 0.
        positive("rates_per_s", if rate == 0.0 { rates_per_s[0] + rates_per_s[1] } else { rate })?;
    }
    let phases = Phases::new(rates_per_s.map(|r| r / 1000.0), dwells_ms);
    let rate = phases.mean_rate();
    let Rule::AtLeast { min: 1, cap } = simplified(rule, rate)? else {
        return Err(NotCovered::BurstyRule);
    };
    if let Some(cap) = cap.filter(|cap| *cap > LARGEST_CAP) {
        return Err(NotCovered::TooLarge { states: f64::from(cap), limit: LARGEST_CAP as usize });
    }
    let (server, solved) = bursty::solve(phases, cap, cost)?;
    let capacity = if cap.is_some() { server.capacity() } else { unbounded::ceiling(cost)? };
    Ok(Solution::new(solved, rate, capacity, server.service()))
}

fn finish(solved: Solved, model: &Model) -> Solution {
    Solution::new(solved, model.rate, model.cap as f64 / model.full(), &model.s)
}

/// Checks a rule and writes a timer that never matters, or never ends before the batch is full, as
/// the rule it amounts to.
fn simplified(rule: &Rule, rate: f64) -> Result<Rule, NotCovered> {
    match *rule {
        Rule::AtLeast { min, cap } => {
            if min == 0 {
                return Err(NotCovered::Rule { why: "the minimum must be at least 1" });
            }
            if cap.is_some_and(|cap| cap < min) {
                return Err(NotCovered::Rule { why: "the cap is below the minimum" });
            }
            Ok(*rule)
        }
        Rule::Timer { cap, wait_ms, .. } => {
            if cap == 0 {
                return Err(NotCovered::Rule { why: "the cap must be at least 1" });
            }
            if wait_ms.is_nan() || wait_ms < 0.0 {
                return Err(NotCovered::Rule { why: "the wait must be 0 ms or more" });
            }
            if cap == 1 || wait_ms == 0.0 {
                return Ok(Rule::AtLeast { min: 1, cap: Some(cap) });
            }
            // Beyond this the timer ends first with probability below 1e-200.
            if rate * wait_ms > 4.0 * surely_at_least(cap) + 800.0 {
                return Ok(Rule::AtLeast { min: cap, cap: Some(cap) });
            }
            Ok(*rule)
        }
    }
}

fn positive(name: &'static str, value: f64) -> Result<(), NotCovered> {
    if value.is_finite() && value > 0.0 { Ok(()) } else { Err(NotCovered::Input { name, value }) }
}

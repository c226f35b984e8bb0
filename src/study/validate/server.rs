//! From the setup of a recording to a policy and a server, and from a policy to the textbook.

use crate::cost::{Affine, Cost, Jitter, NoJitter};
use crate::engine::Balancer;
use crate::policy::{
    Anchor, Dynamic, Greedy, LitServe, MaxWait, Mosec, Policy, QueuePolicy, TimeoutAction,
    TorchServe, Triton,
};
use crate::recording::Setup;
use crate::scenario::{Overhead, Server};
use crate::time::Nanos;

/// A queue limit of a server that was told of none: larger than any queue that was recorded.
const NO_LIMIT: u32 = 100_000;

/// The policy of the server that a recording names.
///
/// # Errors
/// No policy mirrors that server, or it has no such setting; in words.
pub fn policy_of(setup: &Setup) -> Result<Policy, String> {
    let limit = if setup.max_queue == 0 { NO_LIMIT } else { setup.max_queue };
    match setup.server.as_str() {
        "triton" => Ok(Policy::Triton(triton(setup))),
        "torchserve" => Ok(Policy::TorchServe(TorchServe {
            batch_size: setup.max_batch,
            max_batch_delay: whole_ms(setup)?,
            job_queue_size: limit,
            ..TorchServe::default()
        })),
        "mosec" => Ok(Policy::Mosec(Mosec {
            max_batch_size: setup.max_batch,
            max_wait_time: whole_ms(setup)?,
            capacity: limit,
            ..Mosec::default()
        })),
        "litserve" => Ok(Policy::LitServe(LitServe {
            max_batch_size: setup.max_batch,
            batch_timeout: setup.delay.as_s(),
            ..LitServe::default()
        })),
        other => Err(format!(
            "no policy mirrors the server {other:?}: give a scenario and one of its policies"
        )),
    }
}

fn triton(setup: &Setup) -> Triton {
    let timeout = setup.queue_timeout.0 / 1_000;
    let action = if setup.delays_expired { TimeoutAction::Delay } else { TimeoutAction::Reject };
    let policy = QueuePolicy {
        timeout_action: action,
        default_timeout_microseconds: timeout,
        max_queue_size: setup.max_queue,
        ..QueuePolicy::default()
    };
    Triton {
        max_batch_size: setup.max_batch,
        preferred_batch_size: setup.preferred.clone(),
        max_queue_delay_microseconds: setup.delay.0 / 1_000,
        priority_levels: setup.priority_levels,
        // Requests without a priority of their own take the lowest.
        default_priority_level: setup.priority_levels,
        default_queue_policy: (setup.max_queue > 0 || timeout > 0).then_some(policy),
        enforce_shapes: setup.varies_shape,
        ..Triton::default()
    }
}

fn whole_ms(setup: &Setup) -> Result<u32, String> {
    const MS: u64 = 1_000_000;
    match (setup.delay.0 % MS, u32::try_from(setup.delay.0 / MS)) {
        (0, Ok(ms)) => Ok(ms),
        _ => Err(format!(
            "{} counts its delay in whole milliseconds, not {}",
            setup.server, setup.delay
        )),
    }
}

/// The server of a recording, without overheads.
pub(super) fn server_of(setup: &Setup) -> Server {
    Server {
        label: None,
        instances: setup.instances,
        replicas: 1,
        balancer: Balancer::default(),
        queue_limit: None,
        cost: Cost::Affine(Affine { fixed: setup.fixed, per_item: setup.per_item }),
        jitter: Jitter::None(NoJitter {}),
        overhead: Overhead::default(),
    }
}

/// Limits that a policy sets on its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// Most waiting requests.
    pub(super) queue: Option<u32>,
    /// How long a request may wait.
    pub(super) timeout: Option<Nanos>,
}

pub(super) fn limits(policy: &Policy) -> Limits {
    let some = |n: u32| (n > 0).then_some(n);
    match policy {
        Policy::Triton(p) => {
            let policy = p.default_queue_policy.unwrap_or_default();
            let us = policy.default_timeout_microseconds;
            let refuses = us > 0 && policy.timeout_action == TimeoutAction::Reject;
            Limits {
                queue: some(policy.max_queue_size),
                timeout: refuses.then(|| Nanos(us.saturating_mul(1_000))),
            }
        }
        Policy::TorchServe(p) => Limits { queue: some(p.job_queue_size), timeout: None },
        Policy::Mosec(p) => Limits { queue: some(p.capacity), timeout: None },
        _ => Limits::default(),
    }
}

/// The textbook rule with a policy's cap and wait: an instance that is free starts with
/// `max_batch_size` requests, or with fewer once the oldest has waited `max_wait`.
#[must_use]
pub fn textbook(policy: &Policy) -> Policy {
    let Some(cap) = policy.cap() else {
        return Policy::Greedy(Greedy { max_batch_size: None });
    };
    Policy::Dynamic(Dynamic {
        max_batch_size: cap,
        max_wait: wait(policy),
        wait_anchor: Anchor::OldestArrival,
        min_batch_size: None,
        preferred_batch_sizes: Vec::new(),
    })
}

fn wait(policy: &Policy) -> MaxWait {
    let ms = |ms: u32| MaxWait::After(Nanos(u64::from(ms) * 1_000_000));
    match policy {
        Policy::None(_) | Policy::Greedy(_) => MaxWait::After(Nanos::ZERO),
        Policy::Static(_) => MaxWait::Never,
        Policy::Dynamic(p) => p.max_wait,
        Policy::Triton(p) => MaxWait::After(p.delay()),
        Policy::TorchServe(p) => ms(p.max_batch_delay),
        Policy::Mosec(p) => ms(if p.max_wait_time == 0 { 10 } else { p.max_wait_time }),
        Policy::LitServe(p) => MaxWait::After(Nanos::from_ms(p.batch_timeout * 1e3)),
    }
}

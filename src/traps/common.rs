//! Traps that every server has.

use super::{Place, Trap, held, ms};
use crate::policy::Policy;
use crate::time::Nanos;

/// Every such trap of a policy.
pub(super) fn traps(policy: &Policy, place: &Place<'_>) -> Vec<Trap> {
    [wait_over_objective, cap_out_of_reach]
        .into_iter()
        .filter_map(|trap| trap(policy, place))
        .collect()
}

/// The key that holds a request, by the policy's own name.
fn wait_key(policy: &Policy) -> &'static str {
    match policy {
        Policy::Triton(_) => "max_queue_delay_microseconds",
        Policy::TorchServe(_) => "maxBatchDelay",
        Policy::Mosec(_) => "max_wait_time",
        Policy::LitServe(_) => "batch_timeout",
        _ => "max_wait",
    }
}

/// The key of the largest batch, by the policy's own name.
fn cap_key(policy: &Policy) -> &'static str {
    match policy {
        Policy::TorchServe(_) => "batchSize",
        _ => "max_batch_size",
    }
}

fn wait_over_objective(policy: &Policy, place: &Place<'_>) -> Option<Trap> {
    let wait = held(policy);
    if wait == Nanos::ZERO || wait == Nanos::MAX || policy.cap() == Some(1) {
        return None;
    }
    let (limit, expr) = place.objective.as_ref()?;
    let alone = wait.as_ms() + place.pass_ms(1) + place.outside.as_ms();
    if alone < *limit {
        return None;
    }
    let key = wait_key(policy);
    // LitServe's windows run whether or not anything is there.
    let up_to = if matches!(policy, Policy::LitServe(_)) { "up to " } else { "" };
    let what = format!(
        "{key} holds a lone request for {up_to}{}; with its pass that makes {}, which misses \
         `{expr}` on an idle server.",
        ms(wait.as_ms()),
        ms(alone),
    );
    let room = limit - place.pass_ms(1) - place.outside.as_ms();
    let help = if room > 0.0 {
        format!("keep it below {}", ms(room))
    } else {
        "no wait at all meets this objective with this cost".to_owned()
    };
    Some(Trap::new("wait-over-objective", key, what, help))
}

fn cap_out_of_reach(policy: &Policy, place: &Place<'_>) -> Option<Trap> {
    let cap = policy.cap()?;
    let (usual, most) = place.together?;
    // A queue that grows without end fills any batch.
    let grows = place.rate_per_s.is_some_and(|rate| rate >= place.capacity(cap));
    if cap < 2 || grows || f64::from(cap) <= most || held(policy) == Nanos::ZERO {
        return None;
    }
    let key = cap_key(policy);
    let what = format!(
        "{key} {cap} is out of reach at this load: about {usual:.1} requests come together during \
         a wait and a pass, hardly ever more than {most:.0}. So batches leave by the timer, and \
         every idle spell pays it in full.",
    );
    let help = format!("set {key} near {}, or the shortest wait", most.ceil());
    Some(Trap::new("cap-out-of-reach", key, what, help))
}

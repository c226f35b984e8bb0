//! Traps of TorchServe's batch aggregator.

use super::{Place, Trap, ms, restarts};
use crate::number::rate;
use crate::policy::{Policy, TorchServe};

/// Every trap of a model's settings.
pub(super) fn traps(policy: &TorchServe, place: &Place<'_>) -> Vec<Trap> {
    [pairs, timer_restarts, silent_expiry]
        .into_iter()
        .filter_map(|trap| trap(policy, place))
        .collect()
}

/// The shortest delay that gathers a batch.
fn shortest(policy: &TorchServe) -> Policy {
    Policy::TorchServe(TorchServe { max_batch_delay: 1, ..policy.clone() })
}

fn pairs(policy: &TorchServe, place: &Place<'_>) -> Option<Trap> {
    if policy.max_batch_delay > 0 || policy.batch_size <= 2 {
        return None;
    }
    let what = format!(
        "maxBatchDelay 0 caps batches at 2: the worker takes one request and one look at the \
         queue, whatever waits. At most {}/s are served; batches of {} would serve {}/s.",
        rate(place.capacity(2)),
        policy.batch_size,
        rate(place.capacity(policy.batch_size)),
    );
    let help = "set maxBatchDelay 1 or more (in a file a 0 counts as 100)";
    let trap = Trap::new("torchserve-delay-zero-pairs", "maxBatchDelay", what, help);
    Some(trap.way_out("maxBatchDelay 1", shortest(policy)))
}

fn timer_restarts(policy: &TorchServe, place: &Place<'_>) -> Option<Trap> {
    let cap = policy.batch_size;
    if !restarts(policy.delay(), cap, place) {
        return None;
    }
    let delay = policy.delay().as_ms();
    let what = format!(
        "maxBatchDelay {} counts from the moment a free worker takes its first request, not from \
         its arrival: after every pass a batch that is not full waits the whole {} again, though \
         its requests may have waited for that pass already. A request can wait for a pass and \
         the delay, here {}.",
        policy.max_batch_delay,
        ms(delay),
        ms(place.held_ms(cap) + delay),
    );
    let help = "keep it well below a pass: under load batches fill by themselves";
    let trap = Trap::new("torchserve-timer-restarts", "maxBatchDelay", what, help);
    let tried = policy.max_batch_delay > 1;
    Some(if tried { trap.way_out("maxBatchDelay 1", shortest(policy)) } else { trap })
}

fn silent_expiry(policy: &TorchServe, _: &Place<'_>) -> Option<Trap> {
    if policy.client_timeout_in_mills == 0 {
        return None;
    }
    let what = format!(
        "clientTimeoutInMills {}: a request that has waited longer is dropped without an answer \
         when it is met, its turn in the batch stays empty, and the first request of a batch is \
         never looked at.",
        policy.client_timeout_in_mills,
    );
    let help = "give clients a timeout that is a little longer, so that they hear of it";
    Some(Trap::new("torchserve-silent-expiry", "clientTimeoutInMills", what, help))
}

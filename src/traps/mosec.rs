//! Traps of mosec's workers.

use super::{Place, Trap, compete, ms, restarts};
use crate::policy::{Mosec, Policy};

/// Every trap of a worker's settings.
pub(super) fn traps(policy: &Mosec, place: &Place<'_>) -> Vec<Trap> {
    [zero_is_ten, timer_restarts, workers_compete]
        .into_iter()
        .filter_map(|trap| trap(policy, place))
        .collect()
}

/// The shortest wait there is.
fn shortest(policy: &Mosec) -> Policy {
    Policy::Mosec(Mosec { max_wait_time: 1, ..policy.clone() })
}

fn zero_is_ten(policy: &Mosec, place: &Place<'_>) -> Option<Trap> {
    if policy.max_wait_time > 0 || policy.max_batch_size <= 1 {
        return None;
    }
    let wait = policy.wait().as_ms();
    let what = format!(
        "max_wait_time 0 means 10 ms: a lone request waits {} on an idle worker{} and takes {} \
         instead of {}.",
        ms(wait),
        match policy.timer_extra.0 {
            0 => String::new(),
            _ => format!(", the {} of its timer included,", policy.timer_extra),
        },
        ms(wait + place.pass_ms(1)),
        ms(place.pass_ms(1)),
    );
    let help = "set max_wait_time 1, the shortest there is";
    let trap = Trap::new("mosec-zero-wait-is-ten", "max_wait_time", what, help);
    Some(trap.way_out("max_wait_time 1", shortest(policy)))
}

fn timer_restarts(policy: &Mosec, place: &Place<'_>) -> Option<Trap> {
    let cap = policy.max_batch_size;
    // A 0 is told of by itself.
    if policy.max_wait_time == 0 || !restarts(policy.wait(), cap, place) {
        return None;
    }
    let wait = policy.wait().as_ms();
    let what = format!(
        "max_wait_time {} counts from the moment an idle worker receives its first request, not \
         from its arrival: after every pass a batch that is not full waits {} again, though its \
         requests may have waited for that pass already. A request can wait for a pass and that, \
         here {}.",
        policy.max_wait_time,
        ms(wait),
        ms(place.held_ms(cap) + wait),
    );
    let help = "keep it well below a pass: under load batches fill by themselves";
    let trap = Trap::new("mosec-timer-restarts", "max_wait_time", what, help);
    let tried = policy.max_wait_time > 1;
    Some(if tried { trap.way_out("max_wait_time 1", shortest(policy)) } else { trap })
}

fn workers_compete(policy: &Mosec, place: &Place<'_>) -> Option<Trap> {
    let what = format!("{} and waits its own timer.", compete(place, policy.max_batch_size)?);
    let help = "use the fewest workers that keep up";
    Some(Trap::new("mosec-workers-compete", "num", what, help))
}

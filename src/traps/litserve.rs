//! Traps of LitServe's batched loop.

use super::{Place, Trap, compete, ms, restarts};
use crate::policy::{LitServe, Policy};

/// Every trap of a server's settings.
pub(super) fn traps(policy: &LitServe, place: &Place<'_>) -> Vec<Trap> {
    [windows_restart, workers_compete].into_iter().filter_map(|trap| trap(policy, place)).collect()
}

fn windows_restart(policy: &LitServe, place: &Place<'_>) -> Option<Trap> {
    let (cap, window) = (policy.max_batch_size, policy.window());
    if !restarts(window, cap, place) {
        return None;
    }
    let what = format!(
        "batch_timeout {} is the length of windows that run whether or not a request is there: on \
         an idle worker a lone request waits for the end of one, {} on average, and after every \
         pass a batch that is not full waits a whole one, {}, though its requests may have waited \
         for that pass already.",
        policy.batch_timeout,
        ms(window.as_ms() / 2.0),
        ms(window.as_ms()),
    );
    let help = "set batch_timeout 0: a worker then takes what is there and never waits";
    let eager = LitServe { batch_timeout: 0.0, ..policy.clone() };
    let trap = Trap::new("litserve-windows-restart", "batch_timeout", what, help);
    Some(trap.way_out("batch_timeout 0", Policy::LitServe(eager)))
}

fn workers_compete(policy: &LitServe, place: &Place<'_>) -> Option<Trap> {
    let what = format!("{} in windows of its own.", compete(place, policy.max_batch_size)?);
    let help = "use the fewest workers that keep up";
    Some(Trap::new("litserve-workers-compete", "workers_per_device", what, help))
}

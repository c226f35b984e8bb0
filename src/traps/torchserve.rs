//! Traps of TorchServe's batch aggregator.

use super::{Place, Trap, ms};
use crate::number::rate;
use serde::Deserialize;

/// The settings that matter here, by TorchServe's names, with its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Setting {
    /// Most requests in one batch.
    #[serde(rename = "batchSize")]
    pub batch_size: u32,
    /// Milliseconds a worker waits for more after its first request.
    #[serde(rename = "maxBatchDelay")]
    pub max_batch_delay: u32,
    /// Milliseconds after which a waiting request is dropped when met; 0 is never.
    #[serde(rename = "clientTimeoutInMills")]
    pub client_timeout_in_mills: u32,
}

impl Default for Setting {
    fn default() -> Self {
        Self { batch_size: 1, max_batch_delay: 100, client_timeout_in_mills: 0 }
    }
}

/// A delay below this share of a pass hardly shows.
const SHORT: f64 = 0.1;

/// Every trap of a model's settings.
#[must_use]
pub fn traps(setting: &Setting, place: &Place<'_>) -> Vec<Trap> {
    [pairs, timer_restarts, silent_expiry]
        .into_iter()
        .filter_map(|trap| trap(setting, place))
        .collect()
}

fn pairs(setting: &Setting, place: &Place<'_>) -> Option<Trap> {
    if setting.max_batch_delay > 0 || setting.batch_size <= 2 {
        return None;
    }
    let what = format!(
        "maxBatchDelay 0 caps batches at 2: the worker takes one request and one look at the \
         queue, whatever waits. At most {}/s are served; batches of {} would serve {}/s.",
        rate(place.capacity(2)),
        setting.batch_size,
        rate(place.capacity(setting.batch_size)),
    );
    let help = "set maxBatchDelay 1 or more (in a file a 0 counts as 100)";
    Some(Trap::new("torchserve-delay-zero-pairs", "maxBatchDelay", what, help))
}

fn timer_restarts(setting: &Setting, place: &Place<'_>) -> Option<Trap> {
    let delay = f64::from(setting.max_batch_delay);
    if setting.batch_size <= 1 || delay < SHORT * place.pass_ms(1) {
        return None;
    }
    // Where the queue always holds a full batch no worker waits.
    if place.rate_per_s.is_some_and(|rate| rate >= place.capacity(setting.batch_size)) {
        return None;
    }
    let what = format!(
        "maxBatchDelay {} counts from the moment a free worker takes its first request, not from \
         its arrival: after every pass a batch that is not full waits the whole {} again, though \
         its requests may have waited for that pass already. The longest wait is a pass and the \
         delay, here {}.",
        setting.max_batch_delay,
        ms(delay),
        ms(place.pass_ms(setting.batch_size) + delay),
    );
    let help = "keep it well below a pass: under load batches fill by themselves";
    Some(Trap::new("torchserve-timer-restarts", "maxBatchDelay", what, help))
}

fn silent_expiry(setting: &Setting, _: &Place<'_>) -> Option<Trap> {
    if setting.client_timeout_in_mills == 0 {
        return None;
    }
    let what = format!(
        "clientTimeoutInMills {}: a request that has waited longer is dropped without an answer \
         when it is met, its turn in the batch stays empty, and the first request of a batch is \
         never looked at.",
        setting.client_timeout_in_mills,
    );
    let help = "give clients a timeout that is a little longer, so that they hear of it";
    Some(Trap::new("torchserve-silent-expiry", "clientTimeoutInMills", what, help))
}

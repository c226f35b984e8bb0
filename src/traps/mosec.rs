//! Traps of mosec's workers.

use super::{Place, Trap, ms};
use serde::Deserialize;

/// The settings that matter here, by mosec's names, with its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Setting {
    /// Most requests in one batch.
    pub max_batch_size: u32,
    /// Milliseconds a worker waits for more after its first request; 0 means 10.
    pub max_wait_time: u32,
}

impl Default for Setting {
    fn default() -> Self {
        Self { max_batch_size: 1, max_wait_time: 0 }
    }
}

/// What mosec waits where it is told 0, ms.
const DEFAULT_WAIT: u32 = 10;
/// Below this share of busy time workers hardly meet.
const LIGHT: f64 = 0.1;

/// Every trap of a worker's settings.
#[must_use]
pub fn traps(setting: &Setting, place: &Place<'_>) -> Vec<Trap> {
    [zero_is_ten, workers_compete].into_iter().filter_map(|trap| trap(setting, place)).collect()
}

fn zero_is_ten(setting: &Setting, place: &Place<'_>) -> Option<Trap> {
    if setting.max_wait_time > 0 || setting.max_batch_size <= 1 {
        return None;
    }
    let what = format!(
        "max_wait_time 0 means {DEFAULT_WAIT} ms: a lone request waits that long on an idle worker \
         and takes {} instead of {}.",
        ms(f64::from(DEFAULT_WAIT) + place.pass_ms(1)),
        ms(place.pass_ms(1)),
    );
    let help = "set max_wait_time 1, the shortest there is";
    Some(Trap::new("mosec-zero-wait-is-ten", "max_wait_time", what, help))
}

fn workers_compete(setting: &Setting, place: &Place<'_>) -> Option<Trap> {
    if place.instances < 2 || setting.max_batch_size <= 1 || place.busy() < LIGHT {
        return None;
    }
    let what = format!(
        "{} workers compete for every request: while several are idle they share a burst, and each \
         fills its own batch of up to {} and waits its own timer.",
        place.instances, setting.max_batch_size,
    );
    let help = "use the fewest workers that keep up";
    Some(Trap::new("mosec-workers-compete", "num", what, help))
}

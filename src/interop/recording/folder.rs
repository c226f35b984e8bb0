//! `folder`: a recording as this repository keeps them, `config.json` beside `requests.csv.gz`.
//!
//! `config.json` names the server and its settings, the cost of the model, and where the same
//! arrivals were recorded twice the numbers of both runs. The table has the columns `send_us`,
//! `done_us`, `status`, `items`, `priority`, `batch_id`, `instance`, `batch_size`, `start_us` and
//! `end_us`, times in microseconds.

use super::builder::Builder;
use super::csv::table;
use super::{Format, Mapping, Recorded, RecordingError, Source};
use crate::recording::{Repeat, Setup};
use crate::time::Nanos;
use serde::Deserialize;
use std::collections::BTreeMap;

pub(super) const FORMAT: Format =
    Format { name: "folder", recognises: |_, source| source.config.is_some(), read };

#[derive(Deserialize)]
struct Config {
    server: String,
    #[serde(default)]
    versions: BTreeMap<String, String>,
    #[serde(default)]
    doc: String,
    fixed_ms: f64,
    per_ms: f64,
    max_batch: u32,
    delay_ms: f64,
    #[serde(default = "one")]
    instances: u32,
    #[serde(default)]
    preferred: Vec<u32>,
    #[serde(default)]
    max_queue: u32,
    #[serde(default)]
    queue_timeout_ms: f64,
    #[serde(default)]
    timeout_action: String,
    #[serde(default)]
    prio_levels: u32,
    #[serde(default)]
    var_dim: bool,
    measured: Option<Measured>,
    measured_repeat: Option<Measured>,
}

const fn one() -> u32 {
    1
}

#[derive(Deserialize)]
struct Measured {
    mean_batch: f64,
    latency_ms: Quantiles,
}

#[derive(Deserialize)]
struct Quantiles {
    p50: f64,
    p90: f64,
    p99: f64,
}

fn read(source: Source) -> Result<Recorded, RecordingError> {
    let Some(config) = source.config else {
        return Err(RecordingError::whole(
            "this format is a folder with config.json and requests.csv.gz",
            "name the folder, or another --recording-format",
        ));
    };
    let config: Config = serde_json::from_slice(config).map_err(|e| {
        let help = "config.json says server, fixed_ms, per_ms, max_batch and delay_ms at least";
        RecordingError::whole(format!("config.json:{}:{}: {e}", e.line(), e.column()), help)
    })?;
    let columns = Mapping {
        columns: [
            ("arrival", "send_us"),
            ("finish", "done_us"),
            ("start", "start_us"),
            ("end", "end_us"),
            ("batch", "batch_id"),
        ]
        .map(|(field, column)| (field, column.to_owned()))
        .into(),
        unit: None,
    };
    let builder = Builder::in_unit(&columns, "us");
    let mut recording = table(source.name, "folder", source.body, &columns, builder)?;
    recording.repeats = match (&config.measured, &config.measured_repeat) {
        (Some(first), Some(second)) => Some([repeat(first), repeat(second)]),
        _ => None,
    };
    recording.setup = Some(setup(config)?);
    Ok(Recorded::Requests(recording))
}

fn repeat(measured: &Measured) -> Repeat {
    let Quantiles { p50, p90, p99 } = measured.latency_ms;
    Repeat { mean_batch: measured.mean_batch, latency_ms: [p50, p90, p99] }
}

fn setup(config: Config) -> Result<Setup, RecordingError> {
    let time = |key: &str, ms: f64| {
        if (0.0..1e12).contains(&ms) {
            return Ok(Nanos::from_ms(ms));
        }
        let what = format!("config.json: {key} is {ms}");
        Err(RecordingError::whole(what, "times are milliseconds, not negative"))
    };
    let version = config.versions.into_values().collect::<Vec<_>>().join(", ");
    Ok(Setup {
        server: config.server,
        version,
        description: config.doc,
        fixed: time("fixed_ms", config.fixed_ms)?,
        per_item: time("per_ms", config.per_ms)?,
        max_batch: config.max_batch,
        delay: time("delay_ms", config.delay_ms)?,
        instances: config.instances,
        preferred: config.preferred,
        max_queue: config.max_queue,
        queue_timeout: time("queue_timeout_ms", config.queue_timeout_ms)?,
        delays_expired: config.timeout_action == "DELAY",
        priority_levels: config.prio_levels,
        varies_shape: config.var_dim,
    })
}

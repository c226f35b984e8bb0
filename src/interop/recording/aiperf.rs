//! `aiperf`: `profile_export.jsonl` of NVIDIA AIPerf, one record per request.
//!
//! Read are `metadata.request_start_ns`, `request_end_ns`, `was_cancelled`, `benchmark_phase`
//! and `error`, as AIPerf 0.14 writes them. Records of the warm-up phase are left out. There are
//! no batches in it.

use super::builder::{Builder, Row};
use super::jsonl::each;
use super::{FIELDS, Format, Recorded, RecordingError, Source};
use serde::Deserialize;
use serde_json::Value;

pub(super) const FORMAT: Format = Format { name: "aiperf", recognises, read };

fn recognises(line: &str, _: &Source) -> bool {
    line.starts_with('{') && line.contains("\"metadata\"") && line.contains("\"request_start_ns\"")
}

#[derive(Deserialize)]
struct Record {
    metadata: Metadata,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Metadata {
    request_start_ns: u64,
    #[serde(default)]
    request_end_ns: Option<u64>,
    #[serde(default)]
    was_cancelled: bool,
    #[serde(default)]
    benchmark_phase: Option<String>,
}

fn read(source: Source) -> Result<Recorded, RecordingError> {
    let mut builder = Builder::in_unit(source.columns, "ns");
    each(source.body, |line, record: Record| {
        let meta = record.metadata;
        if meta.benchmark_phase.as_deref() == Some("warmup") {
            return Ok(());
        }
        let failed = meta.was_cancelled || record.error.is_some_and(|e| !e.is_null());
        let start = meta.request_start_ns.to_string();
        let end = meta.request_end_ns.map(|ns| ns.to_string());
        let mut row: Row = [None; FIELDS.len()];
        (row[0], row[1]) = (Some(start.as_str()), end.as_deref().filter(|_| !failed));
        builder.push(line, &row)
    })?;
    builder.finish(source.name, "aiperf").map(Recorded::Requests)
}

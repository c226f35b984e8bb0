//! `perf-analyzer`: the CSV that `perf_analyzer -f` writes: one line per request rate or
//! concurrency, with throughput and latency quantiles in microseconds. No single request is in it,
//! so quantiles are compared with quantiles.

use super::{Format, Recorded, RecordingError, Source, unreadable};
use crate::interop::trace::cell::clip;
use crate::recording::{Aggregates, Load, Point};

pub(super) const FORMAT: Format = Format { name: "perf-analyzer", recognises, read };

fn recognises(line: &str, _: &Source) -> bool {
    let kind = line.starts_with("Concurrency,") || line.starts_with("Request Rate,");
    kind && line.contains("Inferences/Second")
}

fn read(source: Source) -> Result<Recorded, RecordingError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(source.body);
    let broken = |e: csv::Error| {
        let line = e.position().map_or(0, csv::Position::line);
        unreadable(line, &std::io::Error::other(e.to_string()))
    };
    let header = reader.headers().map_err(broken)?.clone();
    let find = |name: &str| header.iter().position(|h| h.trim() == name);
    let rate = find("Request Rate");
    let (Some(load), Some(throughput)) = (rate.or(find("Concurrency")), find("Inferences/Second"))
    else {
        return Err(RecordingError::at(
            1,
            "no columns `Request Rate` or `Concurrency`, and `Inferences/Second`",
            "give the file that perf_analyzer -f wrote",
        ));
    };
    let mut quantiles: Vec<(f64, usize)> = header
        .iter()
        .enumerate()
        .filter_map(|(at, name)| {
            let level = name.trim().strip_prefix('p')?.strip_suffix(" latency")?;
            Some((level.parse::<f64>().ok()? / 100.0, at))
        })
        .filter(|(level, _)| (0.0..1.0).contains(level))
        .collect();
    quantiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mean = find("Avg latency");
    let mut points = Vec::new();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map_or(0, csv::Position::line);
        let number = |at: usize| {
            let text = record.get(at).unwrap_or("").trim();
            text.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0).ok_or_else(|| {
                let what = format!("{}: `{}` is not a number", &header[at], clip(text));
                RecordingError::at(line, what, "is the line complete?")
            })
        };
        let latency: Result<Vec<f64>, _> =
            quantiles.iter().map(|(_, at)| number(*at).map(|us| us / 1e3)).collect();
        points.push(Point {
            load: load_of(line, rate.is_some(), number(load)?)?,
            throughput_per_s: number(throughput)?,
            latency_ms: latency?,
            mean_ms: mean.map(|at| number(at).map(|us| us / 1e3)).transpose()?,
        });
    }
    if points.is_empty() {
        return Err(RecordingError::whole("there are no measurements", "one line is one load"));
    }
    let levels = quantiles.into_iter().map(|(level, _)| level).collect();
    Ok(Recorded::Aggregates(Aggregates { name: source.name.to_owned(), levels, points }))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
fn load_of(line: u64, is_rate: bool, value: f64) -> Result<Load, RecordingError> {
    match is_rate {
        true if value > 0.0 => Ok(Load::Rate(value)),
        false if (1.0..=1e6).contains(&value) && value.fract() == 0.0 => {
            Ok(Load::Concurrency(value as u32))
        }
        _ => {
            let help = "rates are positive, concurrencies whole numbers from 1";
            Err(RecordingError::at(line, format!("a load of {value}"), help))
        }
    }
}

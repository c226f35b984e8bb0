//! Measurements without single requests: the same loads, simulated.

use super::replay::{run, scenario};
use super::{Model, SCHEMA, tool};
use crate::arrivals::{ClosedLoop, Deterministic, Poisson, Process, Think};
use crate::number::rate;
use crate::outcome::{LoadNumbers, LoadPoint, LoadValidation};
use crate::recording::{Aggregates, Load, Point};
use crate::stats::{mean, quantile_of_sorted};
use crate::study::Portion;
use crate::time::Nanos;
use crate::units::Rate;
use rayon::prelude::*;

/// How a load generator spaces the requests of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// Evenly: perf_analyzer's own default.
    #[default]
    Constant,
    /// At random: `--request-distribution poisson`.
    Poisson,
}

/// Measurements and how they were made.
#[derive(Clone, Copy, Debug)]
pub struct LoadTask<'a> {
    /// The measurements.
    pub aggregates: &'a Aggregates,
    /// How requests were spaced.
    pub pacing: Pacing,
}

/// Requests measured per load, and requests before them.
const MEASURED: u64 = 100_000;
const WARM_UP: f64 = 5_000.0;

/// Simulates every load under a model and under the textbook rule.
///
/// # Errors
/// A load that cannot be simulated; in words.
pub fn validate_loads(task: &LoadTask, model: &Model) -> Result<LoadValidation, String> {
    let textbook = model.textbook();
    let levels = &task.aggregates.levels;
    let point = |point: &Point| -> Result<LoadPoint, String> {
        let process = process(point.load, task.pacing)?;
        let measured = LoadNumbers {
            throughput_per_s: point.throughput_per_s,
            latency_ms: named(levels, &point.latency_ms, point.mean_ms),
        };
        let simulated = |model: &Model| {
            simulate(point, process.clone(), levels, point.mean_ms.is_some(), model)
        };
        Ok(LoadPoint {
            load: match point.load {
                Load::Rate(per_s) => format!("{}/s", rate(per_s)),
                Load::Concurrency(n) => format!("{n} at a time"),
            },
            predicted: simulated(model),
            textbook: simulated(&textbook),
            measured,
        })
    };
    let points: Result<Vec<LoadPoint>, String> =
        task.aggregates.points.par_iter().map(point).collect();
    Ok(LoadValidation {
        schema: SCHEMA,
        tool: tool(),
        study: "validate-loads".into(),
        name: task.aggregates.name.clone(),
        policy: model.info(),
        textbook_policy: textbook.info(),
        overhead_ms: model.overhead_ms(),
        points: points?,
    })
}

fn process(load: Load, pacing: Pacing) -> Result<Process, String> {
    Ok(match load {
        Load::Concurrency(clients) => {
            Process::ClosedLoop(ClosedLoop { clients, think: Think::default() })
        }
        Load::Rate(per_s) => {
            let Some(rate) = Rate::per_second(per_s) else {
                return Err(format!("a rate of {per_s}/s cannot be simulated"));
            };
            match pacing {
                Pacing::Constant => {
                    Process::Deterministic(Deterministic { rate, phase: Nanos::ZERO })
                }
                Pacing::Poisson => Process::Poisson(Poisson { rate }),
            }
        }
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts and milliseconds")]
fn simulate(
    point: &Point,
    process: Process,
    levels: &[f64],
    wants_mean: bool,
    model: &Model,
) -> LoadNumbers {
    let scenario = scenario(model, process, None);
    // As long as the measured throughput takes for the requests of the warm-up.
    let warm_up_ms = WARM_UP / point.throughput_per_s.max(1e-3) * 1e3;
    let measure_from = Nanos::from_ms(warm_up_ms);
    let portion = Portion { replication: 0, measured: Some(MEASURED), measure_from };
    let keeper = run(&scenario, model, portion);
    let mut latencies: Vec<f64> = keeper.kept.latencies_ns.iter().map(|ns| *ns as f64).collect();
    latencies.sort_by(f64::total_cmp);
    let quantiles: Vec<f64> =
        levels.iter().map(|q| quantile_of_sorted(&latencies, *q) / 1e6).collect();
    let span = Nanos(keeper.last_ns.saturating_sub(measure_from.0)).as_s();
    LoadNumbers {
        throughput_per_s: latencies.len() as f64 / span,
        latency_ms: named(levels, &quantiles, wants_mean.then(|| mean(&latencies) / 1e6)),
    }
}

/// `p50`, `p99.9`, `mean`.
fn named(
    levels: &[f64],
    values: &[f64],
    mean: Option<f64>,
) -> std::collections::BTreeMap<String, f64> {
    let quantile = |q: f64| format!("p{}", (q * 1e6).round() / 1e4);
    let quantiles = levels.iter().zip(values).map(|(q, v)| (quantile(*q), *v));
    quantiles.chain(mean.map(|m| ("mean".to_owned(), m))).collect()
}

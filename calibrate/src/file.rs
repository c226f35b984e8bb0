//! The result as a file: `batchsim` reads its `cost`, people and `calibrate fit` the rest.

use crate::device::Description;
use crate::method::{DRIFT_RERUN, Drift, Measured, Plan, stats};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// Shares of the samples that are kept of each size.
const QUANTILES: [f64; 11] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999];

/// Difference between two sweeps above which nothing is concluded from them.
const TOO_UNCERTAIN: f64 = 0.05;

/// The file.
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    /// Version of this form.
    pub schema: u32,
    /// Program and version that wrote it.
    pub tool: String,
    /// What a scenario uses: the medians, straight lines between them.
    pub cost: Table,
    /// What was measured.
    pub provenance: Description,
    /// Seed of inputs and order.
    pub seed: u64,
    /// Measured sizes.
    pub points: Vec<Point>,
    /// What was checked.
    pub checks: Checks,
    /// What it shows, in words.
    pub meaning: Vec<String>,
    /// What to be careful about.
    pub warnings: Vec<String>,
}

/// A cost of kind `table`.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// `table`.
    pub kind: &'static str,
    /// Points by batch size.
    pub points: Vec<TablePoint>,
    /// What holds beyond the last.
    pub beyond: &'static str,
}

/// A point of the table.
#[derive(Clone, Debug, Serialize)]
pub struct TablePoint {
    /// Batch size.
    pub n: u32,
    /// Time with its unit.
    pub time: String,
}

/// A measured size.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// Items.
    pub batch: u32,
    /// Median service time, ns.
    pub median_ns: f64,
    /// Its 95 % interval, ns.
    pub median_ci95_ns: [f64; 2],
    /// Shares and the times below which they lie, ns.
    pub quantiles_ns: Vec<[f64; 2]>,
    /// Least, ns.
    pub min_ns: f64,
    /// Median distance from the median, ns.
    pub mad_ns: f64,
    /// Samples.
    pub samples: usize,
    /// Samples farther than 5 of those from the median; they are kept.
    pub outliers: usize,
    /// The interval never became narrow enough.
    pub noisy: bool,
    /// Memory beyond the weights, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// What was checked.
#[derive(Clone, Debug, Serialize)]
pub struct Checks {
    /// Largest relative distance from the reference, where there is one.
    pub correctness: Option<f64>,
    /// Passes before the first sample.
    pub warm_up_passes: u64,
    /// Whether the times had become flat by then.
    pub warm_up_flat: bool,
    /// Change of the reference sizes over the sweep.
    pub drift: Option<Drift>,
    /// Sweeps run again for their drift.
    pub reruns: u32,
    /// Median difference between two sweeps, relative.
    pub repeatability_median: Option<f64>,
    /// Largest difference between two sweeps, relative.
    pub repeatability_worst: Option<f64>,
    /// Largest batch that ran.
    pub largest_batch: u32,
    /// Why there is no larger one.
    pub largest_batch_limit: String,
    /// Whether a signal ended the measurement.
    pub interrupted: bool,
}

impl Calibration {
    /// The file of what was measured.
    #[must_use]
    pub fn new(of: &Measured, from: Description, plan: &Plan, correctness: Option<f64>) -> Self {
        let some = of.sizes.iter().filter(|(_, s)| !s.times_ns.is_empty());
        let points: Vec<Point> =
            some.map(|(n, s)| point(*n, s, of.memory_bytes.get(n).copied())).collect();
        let table = points
            .iter()
            .map(|p| TablePoint { n: p.batch, time: format!("{:.0}ns", p.median_ns.max(1.0)) });
        let medians: Vec<_> = points.iter().map(|p| (p.batch, p.median_ns)).collect();
        Self {
            schema: 1,
            tool: format!("calibrate {}", env!("CARGO_PKG_VERSION")),
            cost: Table { kind: "table", points: table.collect(), beyond: "extend" },
            meaning: meaning(of, &points, &medians, &from),
            warnings: warnings(of, &points),
            provenance: from,
            seed: plan.seed,
            points,
            checks: Checks {
                correctness,
                warm_up_passes: of.warm_up.0,
                warm_up_flat: of.warm_up.1,
                drift: of.drift,
                reruns: of.reruns,
                repeatability_median: of.repeatability.map(|r| r.0),
                repeatability_worst: of.repeatability.map(|r| r.1),
                largest_batch: of.largest,
                largest_batch_limit: of.limit.clone(),
                interrupted: of.interrupted,
            },
        }
    }
}

fn point(batch: u32, samples: &crate::method::Samples, memory_bytes: Option<u64>) -> Point {
    let sorted = stats::sorted(&samples.times_ns);
    let (median, mad) = (stats::quantile(&sorted, 0.5), stats::mad(&sorted));
    let (low, high) = stats::median_interval(&sorted);
    Point {
        batch,
        median_ns: median,
        median_ci95_ns: [low, high],
        quantiles_ns: QUANTILES.iter().map(|q| [*q, stats::quantile(&sorted, *q)]).collect(),
        min_ns: sorted[0],
        mad_ns: mad,
        samples: sorted.len(),
        outliers: sorted.iter().filter(|x| (**x - median).abs() > 5.0 * mad).count(),
        noisy: samples.noisy,
        memory_bytes,
    }
}

/// What it shows, unless the times do not repeat well enough to show anything.
fn meaning(
    of: &Measured,
    points: &[Point],
    medians: &[(u32, f64)],
    from: &Description,
) -> Vec<String> {
    let noisy = points.iter().filter(|p| p.noisy).count();
    match of.repeatability {
        Some((median, _)) if median > TOO_UNCERTAIN => vec![format!(
            "The times are too uncertain to say what batching gains: a second sweep differs by \
             {:.0} % (median). Measure again on a quiet machine.",
            100.0 * median
        )],
        None if 2 * noisy > points.len() => vec![
            "The times are too uncertain to say what batching gains: most medians never became \
             precise. Measure again on a quiet machine."
                .into(),
        ],
        _ => crate::meaning::meaning(medians, from),
    }
}

/// What to be careful about, in words.
fn warnings(of: &Measured, points: &[Point]) -> Vec<String> {
    let mut out = Vec::new();
    if of.interrupted {
        out.push("interrupted: sizes have fewer samples than asked for, or are missing".into());
    }
    if !of.warm_up.1 && of.warm_up.0 > 0 {
        out.push("the warm-up ended before the times were flat".into());
    }
    if let Some(drift) = of.drift.filter(Drift::flagged) {
        let again = if of.reruns > 0 { ", although it was run again" } else { "" };
        out.push(format!(
            "times changed by {:+.1} % (95 % interval {:+.1} to {:+.1} %) during the sweep{again}",
            100.0 * drift.change,
            100.0 * drift.interval[0],
            100.0 * drift.interval[1],
        ));
    }
    if let Some(drift) = of.drift
        && !drift.flagged()
        && drift.interval[1] - drift.interval[0] > 2.0 * DRIFT_RERUN
    {
        out.push(format!(
            "whether times drifted cannot be told: the 95 % interval is {:+.1} to {:+.1} %",
            100.0 * drift.interval[0],
            100.0 * drift.interval[1],
        ));
    }
    let noisy: Vec<_> = points.iter().filter(|p| p.noisy).map(|p| p.batch.to_string()).collect();
    if !noisy.is_empty() {
        out.push(format!("the median stayed uncertain at batch {}", noisy.join(", ")));
    }
    if let Some((_, worst)) = of.repeatability.filter(|r| r.0 > 0.01) {
        out.push(format!("a second sweep differed by up to {:.1} %", 100.0 * worst));
    }
    out
}

/// Writes `text` to `path` whole or not at all.
///
/// # Errors
/// The disk.
pub fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let written = std::fs::File::create(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let moved = written.and_then(|()| std::fs::rename(&beside, path));
    if moved.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    moved
}

/// All samples as `batch,latency_ms`, which `calibrate fit` and spreadsheets read.
#[must_use]
pub fn csv(of: &Measured) -> String {
    let mut out = String::from("batch,latency_ms\n");
    for (batch, samples) in &of.sizes {
        for ns in &samples.times_ns {
            out.push_str(&format!("{batch},{}\n", ns * 1e-6));
        }
    }
    out
}

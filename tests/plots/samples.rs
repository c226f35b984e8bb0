//! Made-up results that look like those of the running example.

use batchsim::outcome::{
    AxisValues, BatchSize, CdfFile, Cell, HalfWidths, Judgement, Latency, Method, Outcome,
    PolicyInfo, Requests, SCHEMA, SizeCount, Slo, Tool, Verdict,
};
use std::collections::BTreeMap;

/// A latency distribution: `base + scale · (−ln(1 − q))^shape`, in ms.
#[derive(Clone, Copy)]
pub(crate) struct Law(pub(crate) f64, pub(crate) f64, pub(crate) f64);

impl Law {
    pub(crate) fn at(self, q: f64) -> f64 {
        self.0 + self.1 * (-(1.0 - q).ln()).powf(self.2)
    }

    pub(crate) fn latency(self) -> Latency {
        let half = |q: f64| self.at(q) * 0.004 / (1.0 - q).sqrt() / 10.0;
        Latency {
            mean: self.at(0.6),
            p50: self.at(0.5),
            p90: self.at(0.9),
            p95: self.at(0.95),
            p99: self.at(0.99),
            p999: Some(self.at(0.999)),
            max: Some(self.at(0.999_99)),
            ci95: Some(HalfWidths {
                mean: half(0.5),
                p50: half(0.5),
                p90: half(0.9),
                p95: half(0.95),
                p99: half(0.99),
                p999: Some(half(0.999)),
            }),
        }
    }
}

pub(crate) fn outcome() -> Outcome {
    Outcome {
        schema: SCHEMA,
        tool: Tool { name: "batchsim".into(), version: "0.1.0".into(), commit: "unknown".into() },
        study: "run".into(),
        scenario: serde_json::json!({
            "name": "quickstart",
            "server": {
                "instances": 1,
                "cost": { "kind": "affine", "fixed": "8ms", "per_item": "0.5ms" }
            }
        }),
        seed: 42,
        rng: "xoshiro256++".into(),
        slos: vec![slo(0.99, 50.0)],
        axes: Vec::new(),
        cells: Vec::new(),
        curve: Vec::new(),
        warnings: Vec::new(),
    }
}

pub(crate) fn slo(quantile: f64, latency_ms: f64) -> Slo {
    Slo { quantile, latency_ms, expr: format!("p({}) < {latency_ms}ms", quantile * 100.0) }
}

pub(crate) fn cell(label: &str, rate_per_s: f64, capacity: f64, law: Law) -> Cell {
    let stable = rate_per_s < capacity;
    Cell {
        coords: BTreeMap::new(),
        policy: PolicyInfo {
            kind: label.to_owned(),
            label: label.to_owned(),
            release: None,
            params: serde_json::Value::Null,
        },
        method: Method::Simulation,
        replications: 20,
        requests: Requests { offered: 4_000_000, completed: 4_000_000, ..Requests::default() },
        rate_per_s,
        capacity_per_s: Some(capacity),
        load: Some(rate_per_s / capacity),
        stable,
        throughput_per_s: rate_per_s.min(capacity),
        utilization: (rate_per_s / capacity).min(1.0),
        latency_ms: stable.then(|| law.latency()),
        group_latency_ms: None,
        queue_ms: None,
        batch_size: BatchSize::default(),
        dispatch_reasons: BTreeMap::new(),
        attainment: Vec::new(),
        precision: None,
        warmup_ms: 0.0,
        classes: Vec::new(),
        warnings: Vec::new(),
        verdicts: Vec::new(),
        cdf_file: None,
    }
}

pub(crate) fn cdf(label: &str, law: Law) -> CdfFile {
    let body = (0..50).map(|i| f64::from(i) / 100.0);
    let tail =
        (0..=235).map(|i| 1.0 - 10f64.powf(-(std::f64::consts::LOG10_2 + f64::from(i) * 0.02)));
    let quantiles: Vec<f64> = body.chain(tail).collect();
    CdfFile {
        label: label.to_owned(),
        latency_ms: quantiles.iter().map(|q| law.at(*q)).collect(),
        half_width_ms: quantiles.iter().map(|q| law.at(*q) * 0.0004 / (1.0 - q).sqrt()).collect(),
        quantiles,
    }
}

pub(crate) fn verdict(judgement: Judgement) -> Verdict {
    Verdict { expr: "p(99) < 50ms".into(), judgement, evidence: String::new() }
}

/// Sizes around a mean with a cap; the largest are full, small ones left idle or by the timer.
pub(crate) fn sizes(cap: u32, mean: f64) -> BatchSize {
    let mut histogram = Vec::new();
    for size in 1..=cap {
        let d = (f64::from(size) - mean) / (0.3 * mean + 0.5);
        let n = (1e5 * (-d * d / 2.0).exp()).round() as u64;
        let full = if size == cap { n + 30_000 } else { 0 };
        let rest = if size == cap { 0 } else { n };
        let reasons = [("full", full), ("timer", rest * 2 / 3), ("idle", rest / 3)];
        let by_reason: BTreeMap<String, u64> =
            reasons.iter().filter(|r| r.1 > 0).map(|r| (r.0.to_owned(), r.1)).collect();
        if !by_reason.is_empty() {
            histogram.push(SizeCount { size, by_reason });
        }
    }
    BatchSize { mean, histogram }
}

pub(crate) const POLICIES: [(&str, f64, Law, u32, f64); 4] = [
    ("none", 117.6, Law(8.5, 4.0, 1.0), 1, 1.0),
    ("static", 1333.3, Law(26.0, 9.0, 0.7), 32, 32.0),
    ("greedy", 1333.3, Law(18.0, 7.2, 0.8), 32, 14.2),
    ("dynamic", 1333.3, Law(17.0, 6.0, 0.75), 32, 13.1),
];

/// The quickstart: four policies at 900/s, and their curves.
pub(crate) fn quickstart() -> (Outcome, Vec<CdfFile>) {
    let mut result = outcome();
    let mut cdfs = Vec::new();
    for (label, capacity, law, cap, mean) in POLICIES {
        let mut cell = cell(label, 900.0, capacity, law);
        cell.batch_size = sizes(cap, mean);
        if cell.stable {
            cdfs.push(cdf(label, law));
        }
        result.cells.push(cell);
        for load in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95] {
            let spread = law.1 * (0.4 + 0.4 / (1.0 - load));
            let base =
                if label == "static" { law.0 + 12.0 / load } else { law.0 * (0.5 + 0.6 * load) };
            let law = Law(base, spread, law.2);
            result.curve.push(self::cell(label, load * capacity, capacity, law));
        }
    }
    result.cells[3].verdicts = vec![verdict(Judgement::Pass)];
    (result, cdfs)
}

pub(crate) fn axis(path: &str, unit: &str, numbers: &[f64]) -> AxisValues {
    AxisValues {
        path: path.to_owned(),
        values: numbers.iter().map(|n| format!("{n}{unit}")).collect(),
        numbers: numbers.to_vec(),
        unit: unit.to_owned(),
    }
}

/// A sweep of `dynamic` over waits and batch sizes, with overload at small batches.
pub(crate) fn sweep(waits: &[f64], batches: &[f64]) -> Outcome {
    let mut result = outcome();
    result.study = "sweep".into();
    let axes = [axis("dynamic.max_wait", "ms", waits), axis("dynamic.max_batch_size", "", batches)];
    for (i, wait) in waits.iter().enumerate() {
        for (j, batch) in batches.iter().enumerate() {
            let capacity = 1000.0 * batch / (8.0 + 0.5 * batch);
            let slack = (1.0 - 900.0 / capacity).max(0.02);
            let law = Law(12.0 + 0.8 * wait, 3.0 + 1.2 / slack, 0.8);
            let mut cell = cell("dynamic", 900.0, capacity, law);
            cell.batch_size.mean = batch.min(8.0 + wait);
            for (axis, at) in axes.iter().zip([i, j]) {
                cell.coords.insert(axis.path.clone(), axis.values[at].clone());
            }
            result.cells.push(cell);
        }
    }
    result.axes = axes.to_vec();
    result.cells.push(cell("greedy", 900.0, 1333.3, POLICIES[2].2));
    result
}

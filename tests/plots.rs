//! Charts: what they say, that nothing overlaps or leaves the canvas, and that extremes draw.
#![cfg(feature = "plot")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

#[path = "plots/samples.rs"]
mod samples;

use batchsim::outcome::{CdfFile, Judgement, Outcome};
use batchsim::plot::{Chart, ChartKind, Metric, PlotError, charts, heatmaps};
use samples::*;
use std::path::Path;

/// Draws every chart, checks what holds for all, and leaves pictures for people to look at.
fn draw(test: &str, outcome: &Outcome, cdfs: &[CdfFile]) -> Vec<(Chart, String)> {
    let all = charts(outcome, cdfs, &[]).unwrap();
    all.into_iter().map(|chart| check(test, chart)).collect()
}

fn check(test: &str, chart: Chart) -> (Chart, String) {
    let svg = chart.svg().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plots");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{test}-{}.svg", chart.name)), &svg).unwrap();
    let png = chart.png().unwrap();
    std::fs::write(folder.join(format!("{test}-{}.png", chart.name)), png).unwrap();
    (chart, svg)
}

#[test]
fn quickstart_charts() {
    let (outcome, cdfs) = quickstart();
    let drawn = draw("quickstart", &outcome, &cdfs);
    assert_eq!(drawn.len(), 3);
}

#[test]
fn sweep_charts() {
    let outcome =
        sweep(&[0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0], &[8.0, 12.0, 16.0, 24.0, 32.0, 64.0]);
    let drawn = draw("sweep", &outcome, &[]);
    assert_eq!(drawn.len(), 1);
}

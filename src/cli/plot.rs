//! `batchsim plot`, and the charts every study draws.

use super::args::{Common, PlotArgs};
use super::exit::{Code, Failure};
use super::show::say;
use super::{Done, files, trace};
use crate::outcome::{CdfFile, Outcome, SCHEMA, SizeCount};
use crate::plot::{Chart, ChartKind, charts};
use rayon::prelude::*;
use std::path::Path;

/// Draws every chart that applies to an Outcome, as SVG and PNG.
pub(super) fn draw_all(outcome: &Outcome, cdfs: &[CdfFile], folder: &Path) -> Result<(), Failure> {
    let drawn = charts(outcome, cdfs, &[]).map_err(|e| Failure::Other(e.into()))?;
    save(&drawn, folder)
}

/// Writes charts as SVG and PNG.
pub(super) fn save(drawn: &[Chart], folder: &Path) -> Result<(), Failure> {
    let write = |chart: &Chart| -> Result<(), Failure> {
        let svg = chart.svg().map_err(|e| Failure::Other(e.into()))?;
        files::write(&folder.join(format!("{}.svg", chart.name)), svg.as_bytes())?;
        let png = chart.png().map_err(|e| Failure::Other(e.into()))?;
        files::write(&folder.join(format!("{}.png", chart.name)), &png)
    };
    drawn.par_iter().map(write).collect()
}

/// Runs the verb.
pub(super) fn run(args: &PlotArgs, _: &Common) -> Done {
    let mut kinds = Vec::new();
    for name in &args.charts {
        let kind: ChartKind = name.parse().map_err(|e| {
            Failure::usage(format!("{e}"), "name one of them, or leave --chart out")
        })?;
        kinds.push(kind);
    }
    let (outcome, cdfs) = read(&args.outcome)?;
    let drawn = charts(&outcome, &cdfs, &kinds)
        .map_err(|e| Failure::usage(e.to_string(), "leave --chart out to draw what applies"))?;
    if drawn.is_empty() {
        return Err(Failure::Nothing("no chart applies to this result".into()));
    }
    let beside = || args.outcome.parent().map(Path::to_path_buf).unwrap_or_default();
    let output = args.output.clone().unwrap_or_else(beside);
    match output.extension().and_then(|e| e.to_str()) {
        Some("svg" | "png") => one_file(&drawn, &output)?,
        _ => {
            files::folder(&output)?;
            save(&drawn, &output)?;
        }
    }
    let names: Vec<&str> = drawn.iter().map(|c| c.name.as_str()).collect();
    say(&format!("drew {} into {}", names.join(", "), output.display()));
    Ok(Code::Fine)
}

fn one_file(drawn: &[Chart], output: &Path) -> Result<(), Failure> {
    let [chart] = drawn else {
        let names: Vec<&str> = drawn.iter().map(|c| c.name.as_str()).collect();
        return Err(Failure::usage(
            format!("one file cannot hold {} charts ({})", drawn.len(), names.join(", ")),
            "name one with --chart, or give -o a folder",
        ));
    };
    let bytes = if output.extension().is_some_and(|e| e == "png") {
        chart.png().map_err(|e| Failure::Other(e.into()))?
    } else {
        chart.svg().map_err(|e| Failure::Other(e.into()))?.into_bytes()
    };
    files::write(output, &bytes)
}

/// An Outcome and its side files; a side file that is gone leaves its curve out.
fn read(path: &Path) -> Result<(Outcome, Vec<CdfFile>), Failure> {
    let bytes = trace::read(path)?;
    let mut outcome: Outcome = serde_json::from_slice(&bytes).map_err(|e| {
        Failure::usage(
            format!("{} is not a result of batchsim: {e}", path.display()),
            "give the outcome.json of a run, a sweep or an exact solution",
        )
    })?;
    if outcome.schema != SCHEMA {
        return Err(Failure::usage(
            format!(
                "{} has schema {}, this version reads {SCHEMA}",
                path.display(),
                outcome.schema
            ),
            "draw it with the version that made it",
        ));
    }
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let mut cdfs = Vec::new();
    for name in outcome.cells.iter().filter_map(|c| c.cdf_file.as_ref()) {
        // A side file lies beside its result, whatever the result says.
        let name = Path::new(name).file_name().unwrap_or_default();
        let side = trace::read(&folder.join(name)).ok();
        let name = name.to_string_lossy();
        match side.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            Some(cdf) => cdfs.push(cdf),
            None => say(&format!("warning: {name} is missing beside the result, or damaged")),
        }
    }
    if outcome.study == "sweep" {
        restore_sizes(&mut outcome, &folder.join(super::journal::SIZES));
    }
    Ok((outcome, cdfs))
}

/// A sweep keeps its batch-size histograms in a side file.
fn restore_sizes(outcome: &mut Outcome, path: &Path) {
    let Ok(text) = std::fs::read_to_string(path) else { return };
    for (cell, line) in outcome.cells.iter_mut().zip(text.lines()) {
        if let Ok(sizes) = serde_json::from_str::<Vec<SizeCount>>(line) {
            cell.batch_size.histogram = sizes;
        }
    }
}

//! Charts of an Outcome: `Outcome → Figure → SVG → PNG`.
//!
//! A [`Figure`] is pure data in the units of the result; [`Chart::svg`] draws it with an embedded
//! font, and [`Chart::png`] renders that SVG, so that both need nothing of the machine and give
//! the same bytes everywhere.

mod batches;
mod canvas;
mod cdf;
mod contour;
mod curve;
mod figure;
mod grid;
mod heatmap;
mod legend;
mod marks;
mod number;
mod palette;
mod png;
mod policies;
mod render;
mod sweep;
mod ticks;
mod validate;

pub use figure::{
    Axis, ColorBar, Figure, Fill, Ink, LegendAt, LegendEntry, Mark, Panel, Sample, Scale, Unit,
};
pub use heatmap::{Metric, heatmaps};
pub use palette::{Color, Dash, Marker};
pub use png::png;
pub use render::svg;
pub use validate::validation_chart;

use crate::outcome::{CdfFile, Outcome};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The kinds of charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChartKind {
    /// Latency by percentile, with a tail axis.
    Cdf,
    /// Latency against offered rate.
    Curve,
    /// A metric over the axes of a sweep: a heat map over two, lines over one.
    Heatmap,
    /// Batch sizes by dispatch reason.
    Batches,
}

/// Why there is no chart.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlotError {
    /// The result has nothing for this kind of chart.
    #[error("no {kind} chart: {reason}")]
    NotApplicable {
        /// The kind that was asked for.
        kind: ChartKind,
        /// What is missing.
        reason: String,
    },
    /// No kind of chart has this name.
    #[error("no chart is called `{name}` (there are cdf, curve, heatmap, batch-hist)")]
    UnknownKind {
        /// The name.
        name: String,
    },
    /// Drawing failed.
    #[error("drawing failed: {0}")]
    Draw(String),
}

/// A chart with the name its files carry.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Name for files, without extension: lower-case letters, digits and dashes; unique among
    /// the charts of one result.
    pub name: String,
    /// What is drawn.
    pub figure: Figure,
}

impl ChartKind {
    /// Every kind, in the order people read them.
    pub const ALL: [Self; 4] = [Self::Cdf, Self::Curve, Self::Heatmap, Self::Batches];

    /// Its name on the command line and in file names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cdf => "cdf",
            Self::Curve => "curve",
            Self::Heatmap => "heatmap",
            Self::Batches => "batch-hist",
        }
    }

    fn draw(self, outcome: &Outcome, cdfs: &[CdfFile]) -> Result<Vec<Chart>, PlotError> {
        let charts = match self {
            Self::Cdf => cdf::chart(outcome, cdfs),
            Self::Curve => curve::chart(outcome),
            Self::Heatmap => heatmap::heatmaps(outcome, Metric::P99),
            Self::Batches => batches::chart(outcome),
        };
        charts.map_err(|reason| PlotError::NotApplicable { kind: self, reason })
    }
}

impl fmt::Display for ChartKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ChartKind {
    type Err = PlotError;

    fn from_str(name: &str) -> Result<Self, PlotError> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| PlotError::UnknownKind { name: name.to_owned() })
    }
}

/// The charts of a result, kind by kind; with no kinds given, those that apply to it.
///
/// # Errors
/// A kind that was given does not apply; the error says why.
pub fn charts(
    outcome: &Outcome,
    cdfs: &[CdfFile],
    which: &[ChartKind],
) -> Result<Vec<Chart>, PlotError> {
    let mut all = Vec::new();
    if which.is_empty() {
        all.extend(ChartKind::ALL.into_iter().filter_map(|k| k.draw(outcome, cdfs).ok()).flatten());
    } else {
        for kind in which {
            all.extend(kind.draw(outcome, cdfs)?);
        }
    }
    Ok(all)
}

impl Chart {
    /// The chart as SVG. Equal figures give equal bytes.
    ///
    /// # Errors
    /// [`PlotError::Draw`]; no figure is known to cause it.
    pub fn svg(&self) -> Result<String, PlotError> {
        render::svg(&self.figure)
    }

    /// The chart as PNG at twice its logical size. Equal figures give equal bytes.
    ///
    /// # Errors
    /// [`PlotError::Draw`]; no figure is known to cause it.
    pub fn png(&self) -> Result<Vec<u8>, PlotError> {
        png(&self.svg()?, 2.0)
    }
}

/// A name for files: lower-case letters, digits, dashes.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "policy".to_owned() } else { slug.to_owned() }
}

/// Makes the names unique by numbering later ones.
fn numbered(mut charts: Vec<Chart>) -> Vec<Chart> {
    let mut seen = std::collections::BTreeSet::new();
    for chart in &mut charts {
        let base = chart.name.clone();
        let mut number = 2;
        while !seen.insert(chart.name.clone()) {
            chart.name = format!("{base}-{number}");
            number += 1;
        }
    }
    charts
}

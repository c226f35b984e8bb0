//! A figure as pure data: what is drawn, in the units of the data, before any pixel.

use super::palette::{Color, Dash, Marker};

/// One chart: a title, panels, a legend and a line that says where the numbers come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What the chart is about.
    pub title: String,
    /// Lines under the title.
    pub subtitle: Vec<String>,
    /// Panels, laid out in rows from the left.
    pub panels: Vec<Panel>,
    /// Panels side by side.
    pub columns: usize,
    /// What the colours, dashes and markers mean.
    pub legend: Vec<LegendEntry>,
    /// Where the legend stands.
    pub legend_at: LegendAt,
    /// Where the numbers come from.
    pub footer: String,
    /// Width in logical pixels.
    pub width: u32,
    /// Height in logical pixels; drawing may add to it where the legend needs more.
    pub height: u32,
}

/// Where a legend stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegendAt {
    /// A column at the right of the panels, with a line of detail under each entry.
    Right,
    /// Rows above the panels.
    Top,
}

/// One entry of a legend.
#[derive(Clone, Debug, PartialEq)]
pub struct LegendEntry {
    /// What it looks like in the panels.
    pub sample: Sample,
    /// What it is.
    pub label: String,
    /// Numbers or remarks under the label; empty lines are left out.
    pub detail: Vec<String>,
}

/// What a legend entry looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample {
    /// A line, with markers when it has them.
    Line(Ink, Option<Marker>),
    /// A filled square.
    Fill(Fill),
    /// Only a marker.
    Dot(Marker, Color),
    /// An outlined square.
    Outline,
    /// Nothing: the entry is not drawn in the panels.
    Absent,
}

/// One pair of axes and what is drawn on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Title above the panel; may be empty.
    pub title: String,
    /// Beside or under the title; may be empty.
    pub note: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// What is drawn, back to front.
    pub marks: Vec<Mark>,
    /// Shown instead of axes when there is nothing to draw.
    pub message: Option<String>,
    /// Scale of the colours of cells.
    pub color_bar: Option<ColorBar>,
}

/// One axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it measures.
    pub title: String,
    /// Unit of its values.
    pub unit: Unit,
    /// How values become positions.
    pub scale: Scale,
    /// Smallest value shown.
    pub lo: f64,
    /// Largest value shown.
    pub hi: f64,
    /// Names of the categories, for [`Scale::Category`].
    pub categories: Vec<String>,
}

/// Unit of the values of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    None,
    /// Milliseconds; shown in µs, ms or s, whichever suits the range.
    Ms,
    /// Per second.
    PerS,
    /// Per cent; values are already per cent.
    Percent,
}

/// How values become positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Proportional.
    Linear,
    /// Proportional to the logarithm; values are positive.
    Log,
    /// Quantiles q at −log10(1 − q), so that every further nine takes the same space.
    Tail,
    /// Category i fills [i, i + 1].
    Category,
}

/// A stroke.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ink {
    /// Its colour.
    pub color: Color,
    /// Its width in logical pixels.
    pub width: f64,
    /// Its dashes.
    pub dash: Dash,
}

/// The inside of a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// One colour.
    Solid(Color),
    /// Thin diagonal lines over a light ground: a value that cannot be.
    Hatched,
}

/// What is drawn on a pair of axes; coordinates are in the units of the axes.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A curve through points with increasing x.
    Line {
        /// Its points.
        points: Vec<(f64, f64)>,
        /// Its stroke.
        ink: Ink,
    },
    /// An uncertainty band: x, lower and upper y.
    Band {
        /// Its points with increasing x.
        points: Vec<(f64, f64, f64)>,
        /// Its colour, drawn faintly.
        color: Color,
    },
    /// Intervals: x, lower and upper y.
    ErrorBars {
        /// One bar each.
        points: Vec<(f64, f64, f64)>,
        /// Their colour.
        color: Color,
    },
    /// Markers.
    Dots {
        /// Where they are.
        points: Vec<(f64, f64)>,
        /// Their shape.
        marker: Marker,
        /// Their colour.
        color: Color,
    },
    /// A vertical reference line over the whole panel with a label above it.
    Vertical {
        /// Where it is.
        x: f64,
        /// Its label; may be empty.
        label: String,
        /// Its stroke.
        ink: Ink,
    },
    /// A horizontal reference line over the whole panel with a label on it.
    Horizontal {
        /// Where it is.
        y: f64,
        /// Its label; may be empty.
        label: String,
        /// Its stroke.
        ink: Ink,
    },
    /// An objective: up to `x`, values above `y` miss it.
    Corner {
        /// The quantile.
        x: f64,
        /// The limit.
        y: f64,
        /// Its label.
        label: String,
    },
    /// A filled rectangle.
    Bar {
        /// Left and right.
        x: (f64, f64),
        /// Bottom and top.
        y: (f64, f64),
        /// Its inside.
        fill: Fill,
    },
    /// One cell of a grid of categories.
    Cell {
        /// Column and row, counted from the origin of the axes.
        at: (usize, usize),
        /// Its inside; `None` where there is no result.
        fill: Option<Fill>,
        /// Printed in it, when the grid leaves room.
        text: String,
    },
    /// Closed outlines.
    Outline {
        /// One loop each.
        loops: Vec<Vec<(f64, f64)>>,
    },
    /// A star in the upper right corner of a cell.
    Star {
        /// Column and row.
        at: (usize, usize),
    },
}

/// The scale of the colours of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct ColorBar {
    /// What the colours measure, with unit, scale and range.
    pub axis: Axis,
}

impl Axis {
    /// An axis with a range that holds every one of `values`; empty or single-valued ranges are
    /// widened, values that no axis can show are ignored.
    #[must_use]
    pub fn fit(title: &str, unit: Unit, scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let usable = |v: &f64| v.is_finite() && (scale != Scale::Log || *v > 0.0);
        let (mut lo, mut hi) = values
            .filter(usable)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
        if lo > hi {
            (lo, hi) = (1.0, 10.0);
        }
        match scale {
            Scale::Log => {
                let (lo_log, hi_log) = (lo.max(1e-300).log10(), hi.min(1e300).log10());
                // At least a factor of two, so that noise does not fill the height.
                let pad = (0.05 * (hi_log - lo_log)).max((0.301 - (hi_log - lo_log)) / 2.0);
                (lo, hi) = (10f64.powf(lo_log - pad), 10f64.powf(hi_log + pad));
            }
            Scale::Linear if lo >= 0.0 => {
                lo = 0.0;
                hi = if hi > 0.0 { hi * 1.04 } else { 1.0 };
            }
            Scale::Linear => {
                let pad = (0.04 * (hi - lo)).max(1e-9 * hi.abs().max(lo.abs()));
                (lo, hi) = (lo - pad, hi + pad);
            }
            Scale::Tail | Scale::Category => {}
        }
        Self { title: title.to_owned(), unit, scale, lo, hi, categories: Vec::new() }
    }

    /// An axis of categories.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a handful of categories")]
    pub fn of_categories(title: &str, categories: Vec<String>) -> Self {
        Self {
            title: title.to_owned(),
            unit: Unit::None,
            scale: Scale::Category,
            lo: 0.0,
            hi: categories.len().max(1) as f64,
            categories,
        }
    }

    /// Where a value stands between the ends of the axis, from 0 to 1; values beyond the ends
    /// stand at them.
    #[must_use]
    pub fn fraction(&self, value: f64) -> f64 {
        let (v, lo, hi) = (self.warp(value), self.warp(self.lo), self.warp(self.hi));
        let share = (v - lo) / (hi - lo);
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    fn warp(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear | Scale::Category => value,
            Scale::Log => value.max(1e-300).log10(),
            Scale::Tail => -(1.0 - value).max(1e-12).log10(),
        }
    }
}

impl Panel {
    /// A panel that says why it is empty.
    #[must_use]
    pub fn with_message(x: Axis, y: Axis, message: String) -> Self {
        Self { message: Some(message), ..Self::new(x, y) }
    }

    /// A panel with nothing on it yet.
    #[must_use]
    pub fn new(x: Axis, y: Axis) -> Self {
        Self {
            title: String::new(),
            note: String::new(),
            x,
            y,
            marks: Vec::new(),
            message: None,
            color_bar: None,
        }
    }
}

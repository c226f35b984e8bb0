//! Legends: a column with details at the right, or rows above the panels.

use super::PlotError;
use super::canvas::{Align, Canvas, Type, shorten, width};
use super::figure::{Figure, LegendAt, LegendEntry, Sample};
use super::marks::{Rect, draw_marker, fill_rectangle};
use super::palette::{GREY, INK, SOLID};

const LABEL: Type = Type::new(12.0, INK);
/// Entries that are not drawn in the panels.
const ABSENT: Type = Type::new(12.0, GREY);
const DETAIL: Type = Type::new(10.5, GREY);
const SAMPLE: f64 = 30.0;
const INDENT: f64 = SAMPLE + 8.0;
const ROW: f64 = 20.0;
/// Most room for a label in rows above.
const TOP_LABEL: f64 = 560.0;

/// Where everything of a legend goes.
pub(super) struct Layout {
    /// Width of the column at the right, 0 for rows above.
    pub(super) column: f64,
    /// Height of the rows above, 0 for a column.
    pub(super) rows: f64,
    /// Height that the column needs.
    pub(super) height: f64,
    /// Whether details are left out because there are too many entries.
    compact: bool,
}

fn entry_height(entry: &LegendEntry, compact: bool) -> f64 {
    let details = if compact { 0 } else { entry.detail.iter().filter(|d| !d.is_empty()).count() };
    #[expect(clippy::cast_precision_loss, reason = "a few lines")]
    let details = details as f64;
    if compact { 18.0 } else { 22.0 + 14.0 * details }
}

/// Plans the legend of a figure of that much height for the panels.
pub(super) fn layout(figure: &Figure, room: f64) -> Layout {
    let none = Layout { column: 0.0, rows: 0.0, height: 0.0, compact: false };
    if figure.legend.is_empty() {
        return none;
    }
    if figure.legend_at == LegendAt::Top {
        let places = rows(figure);
        let last = places.last().map_or(0.0, |p| p.1);
        return Layout { rows: last + ROW + 6.0, ..none };
    }
    let total = |compact| figure.legend.iter().map(|e| entry_height(e, compact)).sum::<f64>();
    let compact = total(false) > room.max(900.0);
    let widest = figure
        .legend
        .iter()
        .flat_map(|e| {
            let details = e.detail.iter().map(|d| width(d, DETAIL));
            details.chain([width(&e.label, LABEL)])
        })
        .fold(0.0, f64::max);
    Layout {
        column: INDENT + widest.clamp(70.0, 172.0) + 2.0,
        height: total(compact),
        compact,
        ..none
    }
}

/// Left end and top of the entries in rows above the panels, relative to the first.
fn rows(figure: &Figure) -> Vec<(f64, f64)> {
    let room = f64::from(figure.width) - 48.0;
    let (mut x, mut y) = (0.0, 0.0);
    let mut places = Vec::new();
    for entry in &figure.legend {
        let wide = 18.0 + width(&shorten(&entry.label, LABEL, TOP_LABEL), LABEL) + 22.0;
        if x > 0.0 && x + wide > room {
            (x, y) = (0.0, y + ROW);
        }
        places.push((x, y));
        x += wide;
    }
    places
}

/// Draws the legend into its place.
pub(super) fn draw(
    canvas: &Canvas<'_>,
    figure: &Figure,
    layout: &Layout,
    place: Rect,
) -> Result<(), PlotError> {
    if figure.legend_at == LegendAt::Top {
        for (entry, (dx, dy)) in figure.legend.iter().zip(rows(figure)) {
            let (x, y) = (place.left + dx, place.top + dy + 13.0);
            sample(canvas, (x, y - 4.0), 12.0, entry.sample)?;
            canvas.text(
                (x + 18.0, y),
                &shorten(&entry.label, LABEL, TOP_LABEL),
                LABEL,
                Align::Left,
            )?;
        }
        return Ok(());
    }
    let mut y = place.top + 12.0;
    let (left, room) = (place.left, place.right - place.left - INDENT);
    for entry in &figure.legend {
        sample(canvas, (left, y - 4.0), SAMPLE, entry.sample)?;
        let kind = if entry.sample == Sample::Absent { ABSENT } else { LABEL };
        let label = shorten(&entry.label, kind, room);
        canvas.text((left + INDENT, y), &label, kind, Align::Left)?;
        if !layout.compact {
            for (i, detail) in (1..).zip(entry.detail.iter().filter(|d| !d.is_empty())) {
                let at = (left + INDENT, y + 1.0 + 14.0 * f64::from(i));
                canvas.text(at, &shorten(detail, DETAIL, room), DETAIL, Align::Left)?;
            }
        }
        y += entry_height(entry, layout.compact);
    }
    Ok(())
}

fn sample(
    canvas: &Canvas<'_>,
    (x, y): (f64, f64),
    wide: f64,
    sample: Sample,
) -> Result<(), PlotError> {
    match sample {
        Sample::Line(ink, marker) => {
            canvas.line(&[(x, y), (x + wide, y)], ink.color, ink.width, ink.dash, 1.0)?;
            match marker {
                Some(marker) => draw_marker(canvas, (x + wide / 2.0, y), marker, ink.color),
                None => Ok(()),
            }
        }
        Sample::Fill(fill) => {
            let right = x + wide.min(14.0);
            fill_rectangle(canvas, (x, y - 6.0), (right, y + 6.0), fill)
        }
        Sample::Dot(marker, color) => draw_marker(canvas, (x + wide / 2.0, y), marker, color),
        Sample::Outline => {
            let (a, b) = ((x + 1.0, y - 6.0), (x + 13.0, y + 6.0));
            let corners = [a, (b.0, a.1), b, (a.0, b.1), a, (b.0, a.1)];
            canvas.line(&corners, INK, 2.5, SOLID, 1.0)
        }
        Sample::Absent => Ok(()),
    }
}

//! From a figure to an SVG: the layout of title, panels, axes, legend and footer.

use super::PlotError;
use super::canvas::{Align, Canvas, Type, shorten, svg as on_canvas, width, wrap};
use super::figure::{Axis, ColorBar, Figure, Panel, Scale};
use super::legend;
use super::marks::{Frame, Rect, rows_above};
use super::palette::{FRAME, GREY, GRID, INK, SOLID, sequential};
use super::ticks::{Ticks, ticks};

const TITLE: Type = Type::new(17.0, INK).bold();
const SUBTITLE: Type = Type::new(12.5, GREY);
const PANEL_TITLE: Type = Type::new(13.0, INK).bold();
const NOTE: Type = Type::new(10.5, GREY);
const CAPTION: Type = Type::new(12.0, INK);
const TICK: Type = Type::new(11.0, INK);
const FOOTER: Type = Type::new(10.0, GREY);
const MARGIN: f64 = 24.0;
/// Height of a tick label.
const TALL: f64 = 12.0;

/// Draws a figure as SVG.
///
/// # Errors
/// The drawing backend fails, which no figure is known to make it do.
pub fn svg(figure: &Figure) -> Result<String, PlotError> {
    let room = f64::from(figure.width) - 2.0 * MARGIN;
    let subtitle: Vec<String> =
        figure.subtitle.iter().flat_map(|line| wrap(line, SUBTITLE, room)).collect();
    #[expect(clippy::cast_precision_loss, reason = "a few lines")]
    let top = 42.0 + 17.0 * subtitle.len() as f64 + 8.0;
    let below = 34.0;
    let legend = legend::layout(figure, f64::from(figure.height) - top - below);
    let least = top + legend.height + below;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a height")]
    let height = figure.height.max(least.ceil() as u32);
    let size = (figure.width, height);
    on_canvas(size, &figure.title, |canvas| {
        let title = shorten(&figure.title, TITLE, room);
        canvas.text((MARGIN, 32.0), &title, TITLE, Align::Left)?;
        for (y, line) in (0..).map(|i| 52.0 + 17.0 * f64::from(i)).zip(&subtitle) {
            canvas.text((MARGIN, y), line, SUBTITLE, Align::Left)?;
        }
        let bottom = f64::from(height);
        let footer = shorten(&figure.footer, FOOTER, room);
        canvas.text((MARGIN, bottom - 12.0), &footer, FOOTER, Align::Left)?;
        let right = f64::from(figure.width) - MARGIN;
        let body = Rect { left: MARGIN, top, right, bottom: bottom - below };
        let legend_left = if legend.column > 0.0 { right - legend.column } else { MARGIN };
        // Beside the panels the legend starts level with the top of the axes.
        let legend_top = if legend.column > 0.0 { top + 18.0 } else { top };
        let place = Rect { left: legend_left, top: legend_top, ..body };
        legend::draw(canvas, figure, &legend, place)?;
        let gap = if legend.column > 0.0 { legend.column + 22.0 } else { 0.0 };
        let body = Rect { top: top + legend.rows, right: right - gap, ..body };
        panels(canvas, figure, body)
    })
}

#[expect(clippy::cast_precision_loss, reason = "a handful of panels")]
fn panels(canvas: &Canvas<'_>, figure: &Figure, body: Rect) -> Result<(), PlotError> {
    let columns = figure.columns.clamp(1, figure.panels.len().max(1));
    let rows = figure.panels.len().div_ceil(columns).max(1);
    let (gap_x, gap_y) = (22.0, 12.0);
    let wide = (body.right - body.left - gap_x * (columns - 1) as f64) / columns as f64;
    let high = (body.bottom - body.top - gap_y * (rows - 1) as f64) / rows as f64;
    let gutter = figure.panels.iter().map(|p| gutter(p, high)).fold(0.0, f64::max);
    // All notes stand beside the titles, or all below them, so that the panels line up.
    let beside = |p: &Panel| width(&p.title, PANEL_TITLE) + 10.0 + width(&p.note, NOTE) <= wide;
    let below = !figure.panels.iter().all(beside);
    for (i, panel) in figure.panels.iter().enumerate() {
        let left = body.left + (i % columns) as f64 * (wide + gap_x);
        let top = body.top + (i / columns) as f64 * (high + gap_y);
        let rect = Rect { left, top, right: left + wide, bottom: top + high };
        draw_panel(canvas, panel, rect, gutter, below)?;
    }
    Ok(())
}

fn wide(label: &str) -> f64 {
    width(label, TICK)
}

fn y_ticks(axis: &Axis, length: f64) -> Ticks {
    ticks(axis, length, &|_| TALL)
}

/// Room for the labels of the vertical axis.
fn gutter(panel: &Panel, high: f64) -> f64 {
    let labels = y_ticks(&panel.y, (high - 70.0).max(40.0)).major;
    labels.iter().map(|t| wide(&t.label)).fold(16.0, f64::max).min(150.0) + 9.0
}

/// Draws a panel; `gutter` is the room for labels of the vertical axis, and `below` tells whether
/// notes stand under titles.
fn draw_panel(
    canvas: &Canvas<'_>,
    panel: &Panel,
    place: Rect,
    gutter: f64,
    below: bool,
) -> Result<(), PlotError> {
    let mut top = place.top;
    let room = place.right - place.left;
    if !panel.title.is_empty() {
        let text = shorten(&panel.title, PANEL_TITLE, room);
        canvas.text((place.left, top + 13.0), &text, PANEL_TITLE, Align::Left)?;
        top += 20.0;
        let note = shorten(&panel.note, NOTE, room);
        if below {
            canvas.text((place.left, top + 8.0), &note, NOTE, Align::Left)?;
            top += 15.0;
        } else {
            let x = place.left + width(&text, PANEL_TITLE) + 10.0;
            canvas.text((x, top - 7.0), &note, NOTE, Align::Left)?;
        }
    }
    if let Some(message) = &panel.message {
        return say(canvas, message, Rect { top: top + 4.0, ..place });
    }
    let bar_room = if panel.color_bar.is_some() { 88.0 } else { 0.0 };
    let mut rect = Rect {
        left: place.left + gutter,
        top: top + 22.0,
        right: place.right - bar_room,
        bottom: place.bottom - 40.0,
    };
    let (across, right) = x_ticks(&panel.x, rect.left, rect.right, place.right);
    rect.right = right;
    let px = |x: f64| rect.left + panel.x.fraction(x) * (rect.right - rect.left);
    let above = rows_above(&panel.marks, &px, rect).iter().map(|l| l.0 + 1.0).fold(0.0, f64::max);
    rect.top += 13.0 * above;
    let up = y_ticks(&panel.y, rect.bottom - rect.top);
    let frame = Frame { canvas, x: &panel.x, y: &panel.y, rect };
    grid(&frame, &across, &up)?;
    axes(&frame, &across, &up, (place.left, top + 12.0))?;
    frame.draw(&panel.marks)?;
    if let Some(bar) = &panel.color_bar {
        color_bar(canvas, bar, rect, top + 12.0, place.right)?;
    }
    Ok(())
}

/// Ticks of the horizontal axis, and its right end: moved in until the last label fits.
fn x_ticks(axis: &Axis, left: f64, right: f64, limit: f64) -> (Ticks, f64) {
    let at = |right: f64| ticks(axis, right - left, &wide);
    let over = |ticks: &Ticks, right: f64| {
        ticks.major.last().map_or(0.0, |t| {
            left + axis.fraction(t.value) * (right - left) + wide(&t.label) / 2.0 - limit
        })
    };
    let first = at(right);
    let excess = over(&first, right);
    if excess <= 0.0 || right - excess < left + 20.0 {
        return (first, right);
    }
    (at(right - excess - 1.0), right - excess - 1.0)
}

fn grid(frame: &Frame<'_, '_>, across: &Ticks, up: &Ticks) -> Result<(), PlotError> {
    let r = frame.rect;
    if frame.x.scale != Scale::Category {
        for x in across.major.iter().map(|t| frame.px(t.value)) {
            frame.canvas.line(&[(x, r.top), (x, r.bottom)], GRID, 0.8, SOLID, 1.0)?;
        }
    }
    if frame.y.scale != Scale::Category {
        for y in up.major.iter().map(|t| frame.py(t.value)) {
            frame.canvas.line(&[(r.left, y), (r.right, y)], GRID, 0.8, SOLID, 1.0)?;
        }
    }
    Ok(())
}

fn axes(
    frame: &Frame<'_, '_>,
    across: &Ticks,
    up: &Ticks,
    caption: (f64, f64),
) -> Result<(), PlotError> {
    let (r, canvas) = (frame.rect, frame.canvas);
    let corner = [(r.left, r.top), (r.left, r.bottom), (r.right, r.bottom)];
    canvas.line(&corner, FRAME, 1.0, SOLID, 1.0)?;
    for tick in &across.major {
        let x = frame.px(tick.value);
        canvas.line(&[(x, r.bottom), (x, r.bottom + 4.0)], FRAME, 1.0, SOLID, 1.0)?;
        canvas.text((x, r.bottom + 16.0), &tick.label, TICK, Align::Middle)?;
    }
    for tick in &up.major {
        let y = frame.py(tick.value);
        canvas.line(&[(r.left - 4.0, y), (r.left, y)], FRAME, 1.0, SOLID, 1.0)?;
        let label = shorten(&tick.label, TICK, 150.0);
        canvas.text((r.left - 7.0, y + 4.0), &label, TICK, Align::Right)?;
    }
    let room = r.right - caption.0;
    canvas.text(caption, &shorten(&up.caption, CAPTION, room), CAPTION, Align::Left)?;
    let below = shorten(&across.caption, CAPTION, room);
    canvas.text(((r.left + r.right) / 2.0, r.bottom + 34.0), &below, CAPTION, Align::Middle)
}

fn color_bar(
    canvas: &Canvas<'_>,
    bar: &ColorBar,
    beside: Rect,
    caption_y: f64,
    limit: f64,
) -> Result<(), PlotError> {
    let (left, right) = (beside.right + 16.0, beside.right + 28.0);
    let (top, bottom) = (beside.top, beside.bottom);
    let steps = 64;
    let at = |i: i32| bottom - (bottom - top) * f64::from(i) / f64::from(steps);
    for i in 0..steps {
        // Each step reaches under the next, so that no seam shows between them.
        let end = at((i + 2).min(steps));
        let color = sequential((f64::from(i) + 0.5) / f64::from(steps));
        canvas.rectangle((left, at(i)), (right, end), color, 1.0)?;
    }
    let ticks = y_ticks(&bar.axis, bottom - top);
    for tick in &ticks.major {
        let y = bottom - bar.axis.fraction(tick.value) * (bottom - top);
        canvas.line(&[(right, y), (right + 4.0, y)], FRAME, 1.0, SOLID, 1.0)?;
        let label = shorten(&tick.label, TICK, limit - right - 7.0);
        canvas.text((right + 7.0, y + 4.0), &label, TICK, Align::Left)?;
    }
    let caption = shorten(&ticks.caption, CAPTION, 180.0);
    canvas.text((limit, caption_y), &caption, CAPTION, Align::Right)
}

fn say(canvas: &Canvas<'_>, message: &str, rect: Rect) -> Result<(), PlotError> {
    let corners = [
        (rect.left, rect.top),
        (rect.right, rect.top),
        (rect.right, rect.bottom),
        (rect.left, rect.bottom),
        (rect.left, rect.top),
    ];
    canvas.line(&corners, GRID, 1.0, SOLID, 1.0)?;
    let kind = Type::new(13.0, GREY);
    let lines = wrap(message, kind, rect.right - rect.left - 40.0);
    #[expect(clippy::cast_precision_loss, reason = "a few lines")]
    let first = (rect.top + rect.bottom) / 2.0 - 9.0 * (lines.len() as f64 - 1.0);
    let middle = (rect.left + rect.right) / 2.0;
    for (y, line) in (0..).map(|i| first + 18.0 * f64::from(i)).zip(&lines) {
        canvas.text((middle, y), line, kind, Align::Middle)?;
    }
    Ok(())
}

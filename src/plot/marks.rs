//! Drawing the marks of a panel into its frame.

use super::PlotError;
use super::canvas::{Align, Canvas, Type, shorten, width};
use super::figure::{Axis, Fill, Ink, Mark};
use super::palette::{ASH, Color, FRAME, INK, Marker, SOLID, WHITE};
use std::f64::consts::TAU;

/// Labels on lines and corners.
pub(super) const LABEL: Type = Type::new(11.0, INK).bold();
/// Labels of reference lines above a panel.
pub(super) const ABOVE: Type = Type::new(10.5, super::palette::GREY);

/// A rectangle in logical pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rect {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

/// A pair of axes with its place on the canvas.
pub(super) struct Frame<'a, 'c> {
    pub(super) canvas: &'a Canvas<'c>,
    pub(super) x: &'a Axis,
    pub(super) y: &'a Axis,
    pub(super) rect: Rect,
}

impl Rect {
    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

impl Frame<'_, '_> {
    pub(super) fn px(&self, x: f64) -> f64 {
        self.rect.left + self.x.fraction(x) * (self.rect.right - self.rect.left)
    }

    pub(super) fn py(&self, y: f64) -> f64 {
        self.rect.bottom - self.y.fraction(y) * (self.rect.bottom - self.rect.top)
    }

    fn place(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let finite = points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
        finite.map(|&(x, y)| (self.px(x), self.py(y))).collect()
    }

    fn stroke(&self, points: &[(f64, f64)], ink: Ink, alpha: f64) -> Result<(), PlotError> {
        self.canvas.line(points, ink.color, ink.width, ink.dash, alpha)
    }

    /// Draws all marks, then their labels on top.
    pub(super) fn draw(&self, marks: &[Mark]) -> Result<(), PlotError> {
        for mark in marks {
            self.shape(mark)?;
        }
        let mut taken = self.ink(marks);
        for mark in marks {
            match mark {
                Mark::Horizontal { y, label, .. } => {
                    let places = self.beside_line(*y, label);
                    self.label(&places, label, &mut taken)?;
                }
                Mark::Corner { x, y, label } => {
                    let places = self.beside_corner(*x, *y, label);
                    self.label(&places, label, &mut taken)?;
                }
                _ => {}
            }
        }
        self.labels_above(marks)
    }

    /// Where curves and vertical lines run, so that labels can keep off them.
    fn ink(&self, marks: &[Mark]) -> Vec<Rect> {
        let dot =
            |x: f64, y: f64| Rect { left: x - 2.0, right: x + 2.0, top: y - 2.0, bottom: y + 2.0 };
        let mut taken = Vec::new();
        for mark in marks {
            match mark {
                Mark::Vertical { x, .. } => {
                    let x = self.px(*x);
                    taken.push(Rect { left: x - 3.0, right: x + 3.0, ..self.rect });
                }
                Mark::Horizontal { y, .. } => {
                    let y = self.py(*y);
                    taken.push(Rect { top: y - 1.0, bottom: y + 1.0, ..self.rect });
                }
                Mark::Corner { x, y, .. } => {
                    let (x, y) = (self.px(*x), self.py(*y));
                    taken.push(Rect { right: x, top: y - 1.0, bottom: y + 1.0, ..self.rect });
                    taken.push(Rect { left: x - 1.0, right: x + 1.0, bottom: y, ..self.rect });
                }
                Mark::Line { points, .. } => {
                    for pair in self.place(points).windows(2) {
                        let (dx, dy) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
                        let steps = (dx.hypot(dy) / 5.0).ceil().clamp(1.0, 400.0);
                        let mut step = 0.0;
                        while step <= steps {
                            let along = step / steps;
                            taken.push(dot(pair[0].0 + dx * along, pair[0].1 + dy * along));
                            step += 1.0;
                        }
                    }
                }
                Mark::Dots { points, .. } => {
                    taken.extend(self.place(points).into_iter().map(|(x, y)| dot(x, y)));
                }
                _ => {}
            }
        }
        taken
    }

    /// Places for a label on a horizontal line, best first: just above it from the right, then
    /// just below, then further off.
    fn beside_line(&self, y: f64, label: &str) -> Vec<(f64, f64)> {
        let (first, y) = (self.rect.left + 6.0, self.py(y) - 5.0);
        let last = (self.rect.right - 6.0 - width(label, LABEL)).max(first);
        let along = || (0..60).map(|i| last - 18.0 * f64::from(i)).take_while(|x| *x >= first);
        let shifts = [0.0, 18.0, -14.0, 32.0, -28.0, 46.0, -42.0];
        shifts.iter().flat_map(|dy| along().map(move |x| (x, y + dy))).collect()
    }

    /// Places for a label of a corner, best first: on its line, under it, beside its edge.
    fn beside_corner(&self, x: f64, y: f64, label: &str) -> Vec<(f64, f64)> {
        let (first, edge, y) = (self.rect.left + 6.0, self.px(x), self.py(y) - 5.0);
        let last = edge - 6.0 - width(label, LABEL);
        let along = || (0..60).map(|i| first + 18.0 * f64::from(i)).take_while(|x| *x <= last);
        let on_line = [0.0, 18.0].into_iter().flat_map(|dy| along().map(move |x| (x, y + dy)));
        let beside = (0..40).map(|i| (edge + 6.0, y - 14.0 * f64::from(i)));
        let off = [-14.0, 32.0, -28.0].into_iter();
        let off = off.flat_map(|dy| along().map(move |x| (x, y + dy)));
        on_line.chain(beside).chain(off).collect()
    }

    /// Puts a label at the first of the places where it covers nothing.
    fn label(
        &self,
        places: &[(f64, f64)],
        text: &str,
        taken: &mut Vec<Rect>,
    ) -> Result<(), PlotError> {
        let text = shorten(text, LABEL, self.rect.right - self.rect.left - 12.0);
        let wide = width(&text, LABEL);
        let at = |(x, y): (f64, f64)| Rect {
            left: x - 2.0,
            top: y - 10.0,
            right: x + wide + 2.0,
            bottom: y + 3.0,
        };
        let inside = |rect: &Rect| {
            rect.left >= self.rect.left
                && rect.right <= self.rect.right
                && rect.top >= self.rect.top
                && rect.bottom <= self.rect.bottom
        };
        let free = |place: &&(f64, f64)| {
            let rect = at(**place);
            inside(&rect) && !taken.iter().any(|t| t.overlaps(&rect))
        };
        let within = |place: &&(f64, f64)| inside(&at(**place));
        let corner = (self.rect.left + 6.0, self.rect.top + 12.0);
        let place = places.iter().find(free).or_else(|| places.iter().find(within));
        let place = *place.unwrap_or(&corner);
        taken.push(at(place));
        self.canvas.text_on_ground(place, &text, LABEL, Align::Left)
    }

    fn shape(&self, mark: &Mark) -> Result<(), PlotError> {
        match mark {
            Mark::Line { points, ink } => self.stroke(&self.place(points), *ink, 1.0),
            Mark::Band { points, color } => self.band(points, *color),
            Mark::ErrorBars { points, color } => self.error_bars(points, *color),
            Mark::Dots { points, marker, color } => {
                let mut points = self.place(points).into_iter();
                points.try_for_each(|at| draw_marker(self.canvas, at, *marker, *color))
            }
            Mark::Vertical { x, ink, .. } => {
                let x = self.px(*x);
                self.stroke(&[(x, self.rect.top), (x, self.rect.bottom)], *ink, 1.0)
            }
            Mark::Horizontal { y, ink, .. } => {
                let y = self.py(*y);
                self.stroke(&[(self.rect.left, y), (self.rect.right, y)], *ink, 1.0)
            }
            Mark::Corner { x, y, .. } => {
                let (x, y) = (self.px(*x), self.py(*y));
                let (left, top) = (self.rect.left, self.rect.top);
                self.canvas.rectangle((left, top), (x, y), INK, 0.06)?;
                self.canvas.line(&[(left, y), (x, y), (x, top)], INK, 1.4, SOLID, 1.0)
            }
            Mark::Bar { x, y, fill } => {
                let corners = ((self.px(x.0), self.py(y.0)), (self.px(x.1), self.py(y.1)));
                fill_rectangle(self.canvas, corners.0, corners.1, *fill)
            }
            Mark::Cell { at, fill, text } => self.cell(*at, *fill, text),
            Mark::Outline { loops } => self.outline(loops),
            Mark::Star { at } => {
                let cell = self.cell_rect(*at);
                let inset = 9.0_f64.min((cell.right - cell.left) / 2.0);
                let down = 9.0_f64.min((cell.bottom - cell.top) / 2.0);
                let center = (cell.right - inset, cell.top + down);
                self.canvas.polygon(&star(center, 7.5), WHITE, 1.0)?;
                self.canvas.polygon(&star(center, 5.5), INK, 1.0)
            }
        }
    }

    fn band(&self, points: &[(f64, f64, f64)], color: Color) -> Result<(), PlotError> {
        let upper: Vec<_> = points.iter().map(|p| (p.0, p.2)).collect();
        let lower: Vec<_> = points.iter().rev().map(|p| (p.0, p.1)).collect();
        let outline = self.place(&[upper, lower].concat());
        if outline.len() < 3 {
            return Ok(());
        }
        self.canvas.polygon(&outline, color, 0.2)
    }

    fn error_bars(&self, points: &[(f64, f64, f64)], color: Color) -> Result<(), PlotError> {
        for &(x, lo, hi) in points.iter().filter(|p| p.1.is_finite() && p.2.is_finite()) {
            let (x, lo, hi) = (self.px(x), self.py(lo), self.py(hi));
            // Below the size of a marker there is nothing to see.
            if lo - hi < 6.0 {
                continue;
            }
            self.canvas.line(&[(x, lo), (x, hi)], color, 1.2, SOLID, 1.0)?;
            for y in [lo, hi] {
                self.canvas.line(&[(x - 3.5, y), (x + 3.5, y)], color, 1.2, SOLID, 1.0)?;
            }
        }
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "a handful of cells")]
    fn cell_rect(&self, (column, row): (usize, usize)) -> Rect {
        Rect {
            left: self.px(column as f64),
            right: self.px(column as f64 + 1.0),
            top: self.py(row as f64 + 1.0),
            bottom: self.py(row as f64),
        }
    }

    fn cell(&self, at: (usize, usize), fill: Option<Fill>, text: &str) -> Result<(), PlotError> {
        let rect = self.cell_rect(at);
        let ink = match fill {
            Some(fill) => {
                // White lines between cells, but not so many that they take over.
                let small = (rect.right - rect.left).min(rect.bottom - rect.top) < 20.0;
                let gap = if small { -0.2 } else { 0.5 };
                let a = (rect.left + gap, rect.top + gap);
                fill_rectangle(self.canvas, a, (rect.right - gap, rect.bottom - gap), fill)?;
                if let Fill::Solid(color) = fill { color.text() } else { super::palette::GREY }
            }
            None => super::palette::GREY,
        };
        let (wide, high) = (rect.right - rect.left - 4.0, rect.bottom - rect.top - 2.0);
        let sizes = [12.0, 11.0, 10.0, 9.0, 8.0];
        let fitting = sizes
            .into_iter()
            .find(|size| width(text, Type::new(*size, ink)) <= wide && *size <= high);
        let Some(size) = fitting else { return Ok(()) };
        let middle = ((rect.left + rect.right) / 2.0, (rect.top + rect.bottom) / 2.0);
        let kind = Type::new(size, ink);
        if fill == Some(Fill::Hatched) {
            let half = width(text, kind) / 2.0 + 3.0;
            let (a, b) = (
                (middle.0 - half, middle.1 - 0.6 * size),
                (middle.0 + half, middle.1 + 0.6 * size),
            );
            self.canvas.rectangle(a, b, ASH, 1.0)?;
        }
        self.canvas.text((middle.0, middle.1 + 0.36 * size), text, kind, Align::Middle)
    }

    fn outline(&self, loops: &[Vec<(f64, f64)>]) -> Result<(), PlotError> {
        for (color, width) in [(WHITE, 5.5), (INK, 3.0)] {
            for closed in loops {
                let mut points = self.place(closed);
                // Past the first corner, so that it is joined like the others.
                points.extend_from_within(..points.len().min(2));
                self.canvas.line(&points, color, width, SOLID, 1.0)?;
            }
        }
        Ok(())
    }

    fn labels_above(&self, marks: &[Mark]) -> Result<(), PlotError> {
        for (row, x, text) in rows_above(marks, &|x| self.px(x), self.rect) {
            let y = self.rect.top - 5.0 - 13.0 * row;
            self.canvas.text((x, y), text, ABOVE, Align::Left)?;
        }
        Ok(())
    }
}

/// Labels of vertical lines: row above the panel counted from 0, left end, text; in as few rows
/// as keep them apart, each within the width of the panel.
pub(super) fn rows_above<'m>(
    marks: &'m [Mark],
    px: &dyn Fn(f64) -> f64,
    rect: Rect,
) -> Vec<(f64, f64, &'m str)> {
    let mut labels: Vec<(f64, f64, &str)> = marks
        .iter()
        .filter_map(|mark| match mark {
            Mark::Vertical { x, label, .. } if !label.is_empty() => {
                let wide = width(label, ABOVE);
                let most = (rect.right - wide).max(rect.left);
                let left = (px(*x) - wide / 2.0).clamp(rect.left, most);
                Some((left, wide, label.as_str()))
            }
            _ => None,
        })
        .collect();
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut ends: Vec<f64> = Vec::new();
    let mut placed = Vec::new();
    for (left, wide, text) in labels {
        let row = ends.iter().position(|end| *end + 10.0 <= left).unwrap_or(ends.len());
        if row == ends.len() {
            ends.push(0.0);
        }
        ends[row] = left + wide;
        #[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
        placed.push((row as f64, left, text));
    }
    placed
}

/// Fills a rectangle.
pub(super) fn fill_rectangle(
    canvas: &Canvas<'_>,
    a: (f64, f64),
    b: (f64, f64),
    fill: Fill,
) -> Result<(), PlotError> {
    let Fill::Hatched = fill else {
        let Fill::Solid(color) = fill else { return Ok(()) };
        return canvas.rectangle(a, b, color, 1.0);
    };
    canvas.rectangle(a, b, ASH, 1.0)?;
    let (left, right) = (a.0.min(b.0), a.0.max(b.0));
    let (top, bottom) = (a.1.min(b.1), a.1.max(b.1));
    // Lines x + y = c that cross the rectangle, on one lattice for all cells.
    let step = 6.0;
    let mut c = ((left + top) / step).ceil() * step;
    while c < right + bottom {
        let from = if c - left <= bottom { (left, c - left) } else { (c - bottom, bottom) };
        let to = if c - right >= top { (right, c - right) } else { (c - top, top) };
        canvas.line(&[from, to], FRAME, 0.6, SOLID, 0.7)?;
        c += step;
    }
    Ok(())
}

fn star((x, y): (f64, f64), radius: f64) -> Vec<(f64, f64)> {
    (0..10)
        .map(|i| {
            let angle = TAU * f64::from(i) / 10.0;
            let r = if i % 2 == 0 { radius } else { radius * 0.42 };
            (x + r * angle.sin(), y - r * angle.cos())
        })
        .collect()
}

/// Draws a marker.
pub(super) fn draw_marker(
    canvas: &Canvas<'_>,
    (x, y): (f64, f64),
    marker: Marker,
    color: Color,
) -> Result<(), PlotError> {
    let around = |corners: &[(f64, f64)]| -> Vec<(f64, f64)> {
        corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect()
    };
    let fill = |corners: &[(f64, f64)]| canvas.polygon(&around(corners), color, 1.0);
    let stroke = |corners: &[(f64, f64)]| canvas.line(&around(corners), color, 2.0, SOLID, 1.0);
    match marker {
        Marker::Circle => canvas.disc((x, y), 3.6, color),
        Marker::Square => fill(&[(-3.3, -3.3), (3.3, -3.3), (3.3, 3.3), (-3.3, 3.3)]),
        Marker::Diamond => fill(&[(0.0, -4.8), (4.8, 0.0), (0.0, 4.8), (-4.8, 0.0)]),
        Marker::Up => fill(&[(0.0, -4.6), (4.4, 3.4), (-4.4, 3.4)]),
        Marker::Down => fill(&[(0.0, 4.6), (4.4, -3.4), (-4.4, -3.4)]),
        Marker::Plus => {
            stroke(&[(-4.4, 0.0), (4.4, 0.0)])?;
            stroke(&[(0.0, -4.4), (0.0, 4.4)])
        }
        Marker::Cross => {
            stroke(&[(-3.4, -3.4), (3.4, 3.4)])?;
            stroke(&[(-3.4, 3.4), (3.4, -3.4)])
        }
        Marker::Star => canvas.polygon(&star((x, y), 6.0), color, 1.0),
    }
}

//! Primitives on plotters' SVG backend, in logical pixels, with text of known width.

use super::PlotError;
use super::number::clean;
use super::palette::{Color, Dash, WHITE};
use plotters::coord::Shift;
use plotters::prelude::{
    Circle, DrawingArea, FontFamily, FontStyle, IntoDrawingArea, PathElement, Polygon, RGBAColor,
    Rectangle, SVGBackend, ShapeStyle, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontDesc, TextStyle};
use std::fmt::Display;
use std::sync::OnceLock;

/// Canvas units in a logical pixel: plotters draws at whole units, and curves would step.
const FINE: f64 = 10.0;
/// What the SVG asks for; the first is the font that all text is measured with.
const FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";
/// Line height of DejaVu Sans over its size, by which `ab_glyph` scales.
const LINE: f64 = 1.164;
/// The factor by which plotters' SVG backend divides a font size.
const PLOTTERS: f64 = 1.24;

/// Where a text stands relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Middle,
    Right,
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Type {
    pub(super) size: f64,
    pub(super) color: Color,
    pub(super) bold: bool,
}

impl Type {
    pub(super) const fn new(size: f64, color: Color) -> Self {
        Self { size, color, bold: false }
    }

    pub(super) const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }
}

/// A drawing surface.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

fn failed(error: impl Display) -> PlotError {
    PlotError::Draw(error.to_string())
}

fn register_fonts() -> Result<(), PlotError> {
    static DONE: OnceLock<bool> = OnceLock::new();
    let done = *DONE.get_or_init(|| {
        let regular = dejavu::sans::regular();
        let bold = dejavu::sans::bold();
        plotters::style::register_font(FAMILY, FontStyle::Normal, regular).is_ok()
            && plotters::style::register_font(FAMILY, FontStyle::Bold, bold).is_ok()
    });
    if done { Ok(()) } else { Err(PlotError::Draw("the embedded font does not load".into())) }
}

fn font(size: f64, bold: bool) -> FontDesc<'static> {
    let style = if bold { FontStyle::Bold } else { FontStyle::Normal };
    FontDesc::new(FontFamily::Name(FAMILY), size, style)
}

#[expect(clippy::cast_possible_truncation, reason = "clamped")]
fn unit(v: f64) -> i32 {
    (v * FINE).round().clamp(-1e6, 1e6) as i32
}

fn units(&(x, y): &(f64, f64)) -> (i32, i32) {
    (unit(x), unit(y))
}

fn rgba(color: Color, alpha: f64) -> RGBAColor {
    RGBAColor(color.0, color.1, color.2, alpha)
}

/// Draws on a canvas of that many logical pixels and returns the SVG. The first lines of the
/// document carry `title` for screen readers.
pub(super) fn svg(
    (width, height): (u32, u32),
    title: &str,
    draw: impl FnOnce(&Canvas<'_>) -> Result<(), PlotError>,
) -> Result<String, PlotError> {
    register_fonts()?;
    let mut text = String::new();
    let fine = unit(1.0).unsigned_abs();
    let size = (width * fine, height * fine);
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        let canvas = Canvas { area };
        canvas.rectangle((0.0, 0.0), (f64::from(width), f64::from(height)), WHITE, 1.0)?;
        draw(&canvas)?;
        canvas.area.present().map_err(failed)?;
    }
    let old = format!(
        "<svg width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
         xmlns=\"http://www.w3.org/2000/svg\">",
        w = size.0,
        h = size.1
    );
    let new = format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {} {}\" \
         xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" stroke-linejoin=\"round\">\n\
         <title>{}</title>",
        size.0,
        size.1,
        escape(title)
    );
    if !text.starts_with(&old) {
        return Err(PlotError::Draw("the drawing backend wrote an unknown header".into()));
    }
    Ok(text.replacen(&old, &new, 1))
}

fn escape(text: &str) -> String {
    clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Width of a text in logical pixels.
pub(super) fn width(text: &str, kind: Type) -> f64 {
    let size = kind.size * FINE * LINE;
    let measured = match register_fonts() {
        Ok(()) => font(size, kind.bold).box_size(text).ok(),
        Err(_) => None,
    };
    // Without a measure, a width that is rather too large.
    #[expect(clippy::cast_precision_loss, reason = "characters of a label")]
    let guess = || text.chars().count() as f64 * kind.size * 0.7;
    measured.map_or_else(guess, |(width, _)| f64::from(width) / FINE)
}

/// The text, shortened to `room` logical pixels: an ellipsis takes the place of the middle,
/// because long labels often differ only at their end.
pub(super) fn shorten(text: &str, kind: Type, room: f64) -> String {
    let text = clean(text);
    if width(&text, kind) <= room {
        return text;
    }
    let letters: Vec<char> = text.chars().collect();
    // More than this never fits, and measuring it would take long.
    for kept in (1..letters.len().min(300)).rev() {
        let tail = kept * 2 / 5;
        let head: String = letters[..kept - tail].iter().collect();
        let end: String = letters[letters.len() - tail..].iter().collect();
        let trial = format!("{}…{}", head.trim_end(), end.trim_start());
        if width(&trial, kind) <= room {
            return trial;
        }
    }
    String::new()
}

/// The text in lines of at most `room` logical pixels, broken between words.
pub(super) fn wrap(text: &str, kind: Type, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in clean(text).split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), kind) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(shorten(word, kind, room)),
        }
    }
    lines
}

impl Canvas<'_> {
    /// A text whose baseline is at `y`.
    pub(super) fn text(
        &self,
        (x, y): (f64, f64),
        text: &str,
        kind: Type,
        align: Align,
    ) -> Result<(), PlotError> {
        // The backend moves centred text down by half an x-height, a quarter of the size.
        let at = (x, y - 0.25 * kind.size);
        let text = clean(text);
        if text.trim().is_empty() {
            return Ok(());
        }
        let h_pos = match align {
            Align::Left => HPos::Left,
            Align::Middle => HPos::Center,
            Align::Right => HPos::Right,
        };
        let color = rgba(kind.color, 1.0);
        let style = TextStyle::from(font(kind.size * FINE * PLOTTERS, kind.bold))
            .color(&color)
            .pos(Pos::new(h_pos, VPos::Center));
        self.area.draw(&Text::new(text, units(&at), style)).map_err(failed)
    }

    /// A text on a white ground, so that lines under it do not run through it.
    pub(super) fn text_on_ground(
        &self,
        (x, y): (f64, f64),
        text: &str,
        kind: Type,
        align: Align,
    ) -> Result<(), PlotError> {
        let width = width(text, kind);
        let left = match align {
            Align::Left => x,
            Align::Middle => x - width / 2.0,
            Align::Right => x - width,
        };
        let (top, bottom) = (y - 0.85 * kind.size, y + 0.3 * kind.size);
        self.rectangle((left - 2.0, top), (left + width + 2.0, bottom), WHITE, 0.8)?;
        self.text((x, y), text, kind, align)
    }

    /// A stroke through points, broken by the dashes.
    pub(super) fn line(
        &self,
        points: &[(f64, f64)],
        color: Color,
        width: f64,
        dash: Dash,
        alpha: f64,
    ) -> Result<(), PlotError> {
        let style = ShapeStyle {
            color: rgba(color, alpha),
            filled: false,
            stroke_width: unit(width).unsigned_abs().max(1),
        };
        for piece in pieces(points, dash) {
            let points: Vec<(i32, i32)> = piece.iter().map(units).collect();
            if points.len() > 1 {
                self.area.draw(&PathElement::new(points, style)).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// A filled polygon.
    pub(super) fn polygon(
        &self,
        points: &[(f64, f64)],
        color: Color,
        alpha: f64,
    ) -> Result<(), PlotError> {
        let points: Vec<(i32, i32)> = points.iter().map(units).collect();
        self.area.draw(&Polygon::new(points, rgba(color, alpha))).map_err(failed)
    }

    /// A filled rectangle between two corners.
    pub(super) fn rectangle(
        &self,
        a: (f64, f64),
        b: (f64, f64),
        color: Color,
        alpha: f64,
    ) -> Result<(), PlotError> {
        let style = ShapeStyle { color: rgba(color, alpha), filled: true, stroke_width: 0 };
        let corners = [(a.0.min(b.0), a.1.min(b.1)), (a.0.max(b.0), a.1.max(b.1))];
        self.area.draw(&Rectangle::new(corners.map(|c| units(&c)), style)).map_err(failed)
    }

    /// A disc.
    pub(super) fn disc(&self, at: (f64, f64), radius: f64, color: Color) -> Result<(), PlotError> {
        let style = ShapeStyle { color: rgba(color, 1.0), filled: true, stroke_width: 0 };
        self.area.draw(&Circle::new(units(&at), unit(radius), style)).map_err(failed)
    }
}

/// The visible pieces of a dashed path.
fn pieces(points: &[(f64, f64)], dash: Dash) -> Vec<Vec<(f64, f64)>> {
    if dash.0.is_empty() || dash.0.iter().any(|d| *d <= 0.0) {
        return vec![points.to_vec()];
    }
    let mut done = Vec::new();
    let Some(&first) = points.first() else { return done };
    let mut piece = vec![first];
    let (mut index, mut left) = (0, dash.0[0]);
    for pair in points.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let length = (x1 - x0).hypot(y1 - y0);
        let mut gone = 0.0;
        while length - gone > left {
            gone += left;
            let at = (x0 + (x1 - x0) * gone / length, y0 + (y1 - y0) * gone / length);
            if index % 2 == 0 {
                piece.push(at);
                done.push(std::mem::take(&mut piece));
            } else {
                piece = vec![at];
            }
            index = (index + 1) % (dash.0.len() + dash.0.len() % 2);
            left = dash.0[index % dash.0.len()];
        }
        left -= length - gone;
        if index % 2 == 0 {
            piece.push((x1, y1));
        }
    }
    if index % 2 == 0 && piece.len() > 1 {
        done.push(piece);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_keep_their_lengths_around_corners() {
        let dash = Dash(&[3.0, 1.0]);
        let path = [(0.0, 0.0), (2.0, 0.0), (2.0, 6.0)];
        let got = pieces(&path, dash);
        assert_eq!(
            got,
            vec![vec![(0.0, 0.0), (2.0, 0.0), (2.0, 1.0)], vec![(2.0, 2.0), (2.0, 5.0)],]
        );
    }
}

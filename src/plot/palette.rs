//! Colours, dashes and markers that people with any colour vision can tell apart.

/// A colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color(pub u8, pub u8, pub u8);

/// Text and objectives.
pub(super) const INK: Color = Color(0x22, 0x22, 0x22);
/// Secondary text.
pub(super) const GREY: Color = Color(0x5F, 0x5F, 0x5F);
/// Axes and frames.
pub(super) const FRAME: Color = Color(0x9A, 0x9A, 0x9A);
/// Grid lines.
pub(super) const GRID: Color = Color(0xE4, 0xE4, 0xE4);
/// Ground of hatched cells.
pub(super) const ASH: Color = Color(0xEC, 0xEC, 0xEC);
/// Background.
pub(super) const WHITE: Color = Color(0xFF, 0xFF, 0xFF);

/// Okabe and Ito, "Color Universal Design" (2008), most readable on white first. Their yellow is
/// left out: lines in it vanish on white.
pub(super) const SERIES: [Color; 7] = [
    Color(0x00, 0x72, 0xB2),
    Color(0xD5, 0x5E, 0x00),
    Color(0x00, 0x9E, 0x73),
    Color(0xCC, 0x79, 0xA7),
    Color(0xE6, 0x9F, 0x00),
    Color(0x56, 0xB4, 0xE9),
    Color(0x00, 0x00, 0x00),
];

/// Viridis at ten even steps (N. Smith and S. van der Walt for matplotlib, CC0).
const VIRIDIS: [Color; 10] = [
    Color(0x44, 0x01, 0x54),
    Color(0x48, 0x28, 0x78),
    Color(0x3E, 0x4A, 0x89),
    Color(0x31, 0x68, 0x8E),
    Color(0x26, 0x82, 0x8E),
    Color(0x1F, 0x9E, 0x89),
    Color(0x35, 0xB7, 0x79),
    Color(0x6D, 0xCD, 0x59),
    Color(0xB4, 0xDE, 0x2C),
    Color(0xFD, 0xE7, 0x25),
];

/// Dashes of a stroke: lengths on and off in logical pixels, none for an unbroken line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dash(pub &'static [f64]);

/// An unbroken line.
pub(super) const SOLID: Dash = Dash(&[]);
/// Short dashes, for medians and reference lines.
pub(super) const SHORT: Dash = Dash(&[4.0, 3.0]);
/// Long dashes, for ceilings.
pub(super) const LONG: Dash = Dash(&[9.0, 4.0]);
/// Dots, for capacities.
pub(super) const DOTTED: Dash = Dash(&[1.5, 3.0]);

const DASHES: [Dash; 7] = [
    SOLID,
    Dash(&[9.0, 4.0]),
    Dash(&[4.0, 3.0]),
    Dash(&[10.0, 3.0, 2.0, 3.0]),
    Dash(&[14.0, 4.0]),
    Dash(&[2.0, 2.5]),
    Dash(&[7.0, 3.0, 2.0, 3.0, 2.0, 3.0]),
];

/// Shape of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A disc.
    Circle,
    /// A square.
    Square,
    /// A triangle that points up.
    Up,
    /// A square on its corner.
    Diamond,
    /// A triangle that points down.
    Down,
    /// An upright cross.
    Plus,
    /// A diagonal cross.
    Cross,
    /// A five-pointed star.
    Star,
}

const MARKERS: [Marker; 7] = [
    Marker::Circle,
    Marker::Square,
    Marker::Up,
    Marker::Diamond,
    Marker::Down,
    Marker::Plus,
    Marker::Cross,
];

/// How series number `index` looks: after seven, colours come again with other markers and
/// dashes, so that the first 49 differ.
pub(super) fn series(index: usize) -> (Color, Dash, Marker) {
    let turn = index / SERIES.len();
    let shifted = (index + 3 * turn) % MARKERS.len();
    (SERIES[index % SERIES.len()], DASHES[shifted], MARKERS[shifted])
}

/// The colour of a share from 0 (lightest) to 1 (darkest): viridis from its light end, so that
/// more is darker.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
pub(super) fn sequential(share: f64) -> Color {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let at = (1.0 - share) * 9.0;
    let below = at.floor().min(8.0);
    let (a, b) = (VIRIDIS[below as usize], VIRIDIS[below as usize + 1]);
    let mix =
        |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * (at - below)).round() as u8;
    Color(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

impl Color {
    /// Black or white, whichever is easier to read on this colour (WCAG relative luminance).
    pub(super) fn text(self) -> Self {
        let linear = |c: u8| {
            let c = f64::from(c) / 255.0;
            if c <= 0.03928 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        let luminance = 0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2);
        if luminance > 0.179 { Self(0, 0, 0) } else { WHITE }
    }
}

//! Numbers of several units in one column.

use crate::number::{decimals, rate};

/// A number with its unit; shares in per cent.
#[must_use]
pub fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "ms" => format!("{} ms", decimals(value, places(value))),
        "/s" => format!("{}/s", if value < 10.0 { decimals(value, 3) } else { rate(value) }),
        "share" => format!("{} %", decimals(value * 100.0, places(value * 100.0))),
        _ => decimals(value, places(value)),
    }
}

/// A change: of shares in points, of everything else in per cent.
#[must_use]
pub fn points_or_percent(change: f64, unit: &str, signed: bool) -> String {
    let text = decimals(change * 100.0, 2);
    let sign = if signed && change >= 0.0 { "+" } else { "" };
    let points = if unit == "share" { " points" } else { " %" };
    format!("{sign}{text}{points}")
}

/// Decimals that show four digits or so.
fn places(value: f64) -> usize {
    match value.abs() {
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        v if v >= 0.1 || v == 0.0 => 3,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_said() {
        assert_eq!(quantity(38.5619, "ms"), "38.56 ms");
        assert_eq!(quantity(900.2, "/s"), "900/s");
        assert_eq!(quantity(0.0062, "share"), "0.620 %");
        assert_eq!(quantity(15.97, ""), "15.97");
        assert_eq!(points_or_percent(0.0399, "ms", true), "+3.99 %");
        assert_eq!(points_or_percent(-0.0399, "share", true), "-3.99 points");
    }
}

//! Numbers for people.

/// `n` with thousands separators: `1,234,567`.
#[must_use]
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    text
}

/// A rate per second: whole above 100, else to three significant digits.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "for display")]
pub fn rate(per_s: f64) -> String {
    if per_s >= 99.95 {
        return count(per_s.round() as u64);
    }
    decimals(per_s, if per_s >= 9.995 { 1 } else { 2 })
}

/// A number with that many decimals, and a thousands separator before them.
#[must_use]
pub fn decimals(value: f64, places: usize) -> String {
    let text = format!("{value:.places$}");
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.as_str()),
    };
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), count);
    if rest.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{rest}") }
}

/// A value and its half-width: as many decimals as show two digits of the half-width, between
/// two and four.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "2 to 4")]
pub fn plus_minus(value: f64, half_width: Option<f64>) -> String {
    match half_width {
        None => decimals(value, 2),
        Some(half) if half > 0.0 => {
            let places = (1.0 - half.log10().floor()).clamp(2.0, 4.0) as usize;
            format!("{} ±{half:.places$}", decimals(value, places))
        }
        Some(_) => format!("{} ±0", decimals(value, 2)),
    }
}

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
    fn numbers_read_well() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(999), "999");
        assert_eq!(rate(1333.333), "1,333");
        assert_eq!(rate(117.647), "118");
        assert_eq!(rate(5.5309), "5.53");
        assert_eq!(decimals(1234.567, 2), "1,234.57");
        assert_eq!(decimals(-0.5, 1), "-0.5");
        assert_eq!(plus_minus(38.5619, Some(0.1234)), "38.56 ±0.12");
        assert_eq!(plus_minus(38.5619, Some(0.0083)), "38.5619 ±0.0083");
        assert_eq!(plus_minus(194.6, Some(2.6)), "194.60 ±2.60");
        assert_eq!(plus_minus(8.5, Some(0.0)), "8.50 ±0");
        assert_eq!(plus_minus(8.5, None), "8.50");
    }

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

//! Numbers and words as charts print them.

use crate::report::{count, decimals};

/// A number to three significant digits, thousands separated, without needless zeros.
pub(super) fn short(value: f64) -> String {
    significant(value, 3)
}

/// A number to that many significant digits, thousands separated, without needless zeros;
/// whole numbers below a million keep all their digits.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 12")]
pub(super) fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value.is_finite() { "0".to_owned() } else { "–".to_owned() };
    }
    let magnitude = value.abs().log10().floor();
    if !(-9.0..12.0).contains(&magnitude) {
        return format!("{value:.1e}");
    }
    let places = (f64::from(digits) - 1.0 - magnitude).clamp(0.0, 12.0) as usize;
    trim(&decimals(value, places))
}

/// Drops zeros after the last digit that says something.
pub(super) fn trim(text: &str) -> String {
    if !text.contains('.') {
        return text.to_owned();
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A time in the unit that suits it: `850 µs`, `38.6 ms`, `2.5 s`.
pub(super) fn time(ms: f64) -> String {
    time_below(ms, 9_999.5)
}

/// A time in seconds from a whole second on, as ticks have it: `100 ms`, `1 s`.
pub(super) fn time_tick(ms: f64) -> String {
    time_below(ms, 999.5)
}

/// A time in milliseconds at the most up to `most_ms`.
fn time_below(ms: f64, most_ms: f64) -> String {
    if !ms.is_finite() {
        return "–".to_owned();
    }
    let (factor, unit) = if ms == 0.0 {
        (1.0, "ms")
    } else if ms.abs() < 0.9995e-3 {
        (1e6, "ns")
    } else if ms.abs() < 0.9995 {
        (1e3, "µs")
    } else if ms.abs() < most_ms {
        (1.0, "ms")
    } else {
        (1e-3, "s")
    };
    format!("{} {unit}", significant(ms * factor, 3))
}

/// A time with the half-width of its interval in the same unit: `38.56 ± 0.12 ms`.
pub(super) fn time_within(ms: f64, half_width_ms: Option<f64>) -> String {
    let half = half_width_ms.filter(|h| h.is_finite() && *h > 0.0);
    let Some(half) = half else { return time(ms) };
    let (factor, unit) = match ms.abs() {
        v if v < 0.9995 => (1e3, "µs"),
        v if v < 9_999.5 => (1.0, "ms"),
        _ => (1e-3, "s"),
    };
    let places = places(ms * factor, half * factor);
    format!("{} ± {} {unit}", decimals(ms * factor, places), decimals(half * factor, places))
}

/// Decimals that show two digits of a half-width, or one where two would be more than four
/// digits of the value.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 6")]
fn places(value: f64, half: f64) -> usize {
    let half = -half.log10().floor();
    let value = 3.0 - value.abs().max(1e-9).log10().floor();
    (half + 1.0).min(value).max(half).clamp(0.0, 6.0) as usize
}

/// A share in per cent, with the digits that tell it from 0 and 100.
pub(super) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value > 0.0 && value < 0.5 {
        return "< 1 %".to_owned();
    }
    if (99.5..100.0).contains(&value) {
        return "> 99 %".to_owned();
    }
    format!("{value:.0} %")
}

/// The usual name of a quantile: 0.999 is `p99.9`.
pub(super) fn quantile(q: f64) -> String {
    format!("p{}", trim(&format!("{:.4}", q * 100.0)))
}

/// `1 policy`, `2 policies` and the like.
pub(super) fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(n as u64), if n == 1 { one } else { many })
}

/// Text without characters that XML cannot hold or that would break a line.
pub(super) fn clean(text: &str) -> String {
    let allowed = |c: char| {
        !c.is_control() && !matches!(c, '\u{FFFE}' | '\u{FFFF}' | '\u{2028}' | '\u{2029}')
    };
    text.chars().map(|c| if allowed(c) { c } else { ' ' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(short(1333.333), "1,333");
        assert_eq!(short(41.249), "41.2");
        assert_eq!(short(0.000_25), "0.00025");
        assert_eq!(short(100.0), "100");
        assert_eq!(time(0.85), "850 µs");
        assert_eq!(time(38.5619), "38.6 ms");
        assert_eq!(time(0.0), "0 ms");
        assert_eq!(time(3_600_000.0), "3,600 s");
        assert_eq!(time_within(38.5619, Some(0.12)), "38.56 ± 0.12 ms");
        assert_eq!(time_within(194.6, Some(26.0)), "195 ± 26 ms");
        assert_eq!(time_within(20.0, Some(0.08)), "20.00 ± 0.08 ms");
        assert_eq!(time_within(8.5, None), "8.5 ms");
        assert_eq!(
            [0.0, 0.001, 0.5, 0.999, 1.0].map(percent).join(" "),
            "0 % < 1 % 50 % > 99 % 100 %"
        );
        assert_eq!(quantile(0.999), "p99.9");
        assert_eq!(quantile(0.99), "p99");
        assert_eq!(clean("a\u{0}b\nc"), "a b c");
    }
}

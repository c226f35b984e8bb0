//! Quantities a person writes with a unit: `"5ms"`, `"900/s"`, `"1%"`.
//!
//! A bare number is never accepted: `5` could be Triton's microseconds, TorchServe's milliseconds
//! or Ray's seconds. Time is an exact integer of nanoseconds from the moment it is read; rates
//! and fractions only feed statistics and random draws and stay floating point.

use crate::time::Nanos;
use std::fmt;

/// Why a text is not a quantity: what is wrong, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct UnitError {
    /// One sentence: what is wrong.
    pub what: String,
    /// What to write instead.
    pub help: String,
}

impl UnitError {
    fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), help: help.into() }
    }
}

/// Arrivals per second, positive and finite. Written `"900/s"`, `"5.5/s"`, `"120/min"`, `"30/h"`,
/// `"2/ms"`, `"1.5k/s"`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// `per_s` events per second; `None` unless positive and finite.
    #[must_use]
    pub fn per_second(per_s: f64) -> Option<Self> {
        (per_s.is_finite() && per_s > 0.0).then_some(Self(per_s))
    }

    /// Events per second.
    #[must_use]
    pub fn per_s(self) -> f64 {
        self.0
    }
}

/// A share in [0, 1], written `"1%"`, `"0.5%"`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Fraction(f64);

impl Fraction {
    /// `value` as a share of one; `None` outside [0, 1].
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// The share, in [0, 1].
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// Splits `"12.5ms"` into its decimal digits and its unit.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|&(i, c)| {
            let exponent_sign =
                (c == '+' || c == '-') && i > 0 && matches!(text.as_bytes()[i - 1], b'e' | b'E');
            let exponent = (c == 'e' || c == 'E')
                && text[i + 1..].starts_with(|d: char| d.is_ascii_digit() || "+-".contains(d));
            let sign = (c == '+' || c == '-') && i == 0;
            !(c.is_ascii_digit() || c == '.' || c == '_' || exponent || exponent_sign || sign)
        })
        .map_or(text.len(), |(i, _)| i);
    (&text[..end], text[end..].trim())
}

/// Nanoseconds in one unit of time, by its written name.
fn time_unit_ns(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Digits of an unsigned decimal as an exact multiple of `unit`, rounded half up at one
/// nanosecond.
fn exact_scaled(digits: &str, unit: u64) -> Option<u64> {
    let (mantissa, exponent) = match digits.find(['e', 'E']) {
        Some(i) => (&digits[..i], digits[i + 1..].parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, frac) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && frac.is_empty() {
        return None;
    }
    let mut value: u128 = 0;
    for c in whole.chars().chain(frac.chars()) {
        if c == '_' {
            continue;
        }
        value = value.checked_mul(10)?.checked_add(u128::from(c.to_digit(10)?))?;
    }
    let places = i32::try_from(frac.chars().filter(|&c| c != '_').count()).ok()?;
    let shift = exponent.checked_sub(places)?;
    let mut scaled = value.checked_mul(u128::from(unit))?;
    if shift >= 0 {
        scaled = scaled.checked_mul(10u128.checked_pow(shift.unsigned_abs())?)?;
    } else {
        let divisor = match 10u128.checked_pow(shift.unsigned_abs()) {
            Some(d) => d,
            None => return Some(0),
        };
        scaled = (scaled + divisor / 2) / divisor;
    }
    u64::try_from(scaled).ok()
}

/// Reads a duration such as `"5ms"`.
///
/// # Errors
/// Missing or unknown unit, sign, or a value beyond 100 years.
pub fn parse_duration(text: &str) -> Result<Nanos, UnitError> {
    // Far below the end of time, so that sums of a few durations cannot pass it.
    const LONGEST: Nanos = Nanos(100 * 366 * 24 * 3_600_000_000_000);
    parse_time(text).and_then(|time| {
        if time <= LONGEST {
            return Ok(time);
        }
        let what = format!("`{text}` is longer than 100 years");
        Err(UnitError::new(what, "write a shorter duration, as in \"5ms\""))
    })
}

/// Reads a moment or a duration, up to the end of time.
pub(crate) fn parse_time(text: &str) -> Result<Nanos, UnitError> {
    const HELP: &str = "write a number and a unit: ns, us, ms, s, min or h, as in \"5ms\"";
    let (digits, unit) = split(text);
    if digits.starts_with('-') {
        return Err(UnitError::new(
            format!("a duration cannot be negative, `{text}`"),
            "write zero or a positive duration, as in \"5ms\"",
        ));
    }
    if digits.is_empty() {
        return Err(UnitError::new(format!("`{text}` is not a duration"), HELP));
    }
    if unit.is_empty() {
        return Err(UnitError::new(
            format!("`{text}` needs a unit: a bare number is ambiguous"),
            format!("write \"{digits}ms\", \"{digits}us\" or \"{digits}s\""),
        ));
    }
    let Some(unit_ns) = time_unit_ns(unit) else {
        return Err(UnitError::new(format!("unknown unit of time `{unit}` in `{text}`"), HELP));
    };
    let digits = digits.trim_start_matches('+');
    exact_scaled(digits, unit_ns).map(Nanos).ok_or_else(|| {
        UnitError::new(format!("`{text}` is not a duration between 0 and 584 years"), HELP)
    })
}

fn finite(digits: &str) -> Option<f64> {
    digits.replace('_', "").parse::<f64>().ok().filter(|v| v.is_finite())
}

/// Reads a rate such as `"900/s"`.
///
/// # Errors
/// Missing unit, or a value that is not positive and finite.
pub fn parse_rate(text: &str) -> Result<Rate, UnitError> {
    const HELP: &str = "write a positive number per unit of time, as in \"900/s\" or \"30/min\"";
    let (digits, rest) = split(text);
    let (factor, unit) = match rest.strip_prefix('k') {
        Some(rest) => (1e3, rest),
        None => (1.0, rest),
    };
    let unit = unit.trim_start_matches("req").trim_start_matches("rps");
    let wrong = |what: String| Err(UnitError::new(what, HELP));
    let Some(value) = finite(digits) else {
        return wrong(format!("`{text}` is not a rate"));
    };
    let Some(per) = unit.trim().strip_prefix('/') else {
        return wrong(format!("`{text}` needs a unit: a rate is per something"));
    };
    let Some(unit_ns) = time_unit_ns(per.trim()) else {
        return wrong(format!("unknown unit of time `{}` in `{text}`", per.trim()));
    };
    #[expect(clippy::cast_precision_loss, reason = "units are below 2^52")]
    let per_s = value * factor * (1e9 / unit_ns as f64);
    match Rate::per_second(per_s) {
        Some(rate) => Ok(rate),
        None => wrong(format!("a rate must be above zero and finite, `{text}`")),
    }
}

/// Reads a share such as `"1%"`.
///
/// # Errors
/// Missing `%`, or a value outside 0 % to 100 %.
pub fn parse_fraction(text: &str) -> Result<Fraction, UnitError> {
    const HELP: &str = "write a percentage between 0% and 100%, as in \"1%\"";
    let (digits, unit) = split(text);
    let value = finite(digits);
    match (value, unit) {
        (Some(v), "%") => Fraction::new(v / 100.0)
            .ok_or_else(|| UnitError::new(format!("`{text}` is not between 0% and 100%"), HELP)),
        (Some(_), "") => {
            Err(UnitError::new(format!("`{text}` needs a unit: a share is in %"), HELP))
        }
        _ => Err(UnitError::new(format!("`{text}` is not a percentage"), HELP)),
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Round away the binary noise of `value / 100 * 100`.
        write!(f, "{}%", (self.0 * 1e12).round() / 1e10)
    }
}

#[cfg(feature = "schema")]
mod text {
    //! Every quantity is a string in a scenario file, and the schema says which strings.
    use super::{Fraction, Rate, UnitError, parse_duration, parse_fraction, parse_rate};
    use crate::time::Nanos;
    use serde::de::{Error, Visitor};
    use std::fmt;

    /// Marks the help text inside an error message on its way through serde.
    pub(crate) const HELP_MARK: &str = "\u{1}help: ";

    struct Quantity<T> {
        what: &'static str,
        parse: fn(&str) -> Result<T, UnitError>,
    }

    impl<T> Visitor<'_> for Quantity<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.what)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            (self.parse)(text).map_err(|e| E::custom(format!("{}{HELP_MARK}{}", e.what, e.help)))
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
            self.visit_str(&value.to_string())
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
            self.visit_str(&value.to_string())
        }

        fn visit_f64<E: Error>(self, value: f64) -> Result<T, E> {
            self.visit_str(&value.to_string())
        }
    }

    macro_rules! quantity {
        ($type:ty, $name:literal, $what:literal, $parse:path, $pattern:literal) => {
            impl<'de> serde::Deserialize<'de> for $type {
                fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                    d.deserialize_any(Quantity { what: $what, parse: $parse })
                }
            }

            impl serde::Serialize for $type {
                fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                    s.collect_str(self)
                }
            }

            impl schemars::JsonSchema for $type {
                fn schema_name() -> std::borrow::Cow<'static, str> {
                    $name.into()
                }

                fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                    schemars::json_schema!({
                        "type": "string", "description": $what, "pattern": $pattern
                    })
                }
            }
        };
    }

    quantity!(
        Nanos,
        "Duration",
        "a duration with its unit, as in \"5ms\" (ns, us, ms, s, min, h)",
        parse_duration,
        r"^\+?[0-9._]+([eE][+-]?[0-9]+)?\s*(ns|us|µs|μs|ms|s|sec|min|h)$"
    );
    quantity!(
        Rate,
        "Rate",
        "a rate with its unit, as in \"900/s\"",
        parse_rate,
        r"^\+?[0-9._]+([eE][+-]?[0-9]+)?\s*k?(req|rps)?\s*/\s*(ns|us|µs|μs|ms|s|sec|min|h)$"
    );
    quantity!(
        Fraction,
        "Fraction",
        "a percentage, as in \"1%\"",
        parse_fraction,
        r"^\+?[0-9._]+([eE][+-]?[0-9]+)?\s*%$"
    );
}
#[cfg(feature = "schema")]
pub(crate) use text::HELP_MARK;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact() {
        for (text, ns) in [
            ("5ms", 5_000_000),
            ("0.5ms", 500_000),
            ("0.000001ms", 1),
            ("1.5us", 1_500),
            ("2 s", 2_000_000_000),
            ("1e3ns", 1_000),
            ("1h", 3_600_000_000_000),
            ("0ms", 0),
            ("123456789.123456789s", 123_456_789_123_456_789),
        ] {
            assert_eq!(parse_duration(text), Ok(Nanos(ns)), "{text}");
        }
    }

    #[test]
    fn durations_refused() {
        for text in [
            "",
            "5",
            "ms",
            "-5ms",
            "5 parsecs",
            "nan ms",
            "1e40s",
            "101000h00",
            "900000h",
            ".ms",
            "5m",
            "inf",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_and_fractions() {
        assert_eq!(parse_rate("900/s").map(Rate::per_s), Ok(900.0));
        assert_eq!(parse_rate("1.5k/s").map(Rate::per_s), Ok(1500.0));
        assert_eq!(parse_rate("60/min").map(Rate::per_s), Ok(1.0));
        for text in ["900", "0/s", "-1/s", "nan/s", "900/fortnight", "inf/s", "1e999/s"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        assert_eq!(parse_fraction("1%").map(Fraction::get), Ok(0.01));
        assert_eq!(Fraction::new(0.005).map(|f| f.to_string()), Some("0.5%".into()));
        for text in ["1", "101%", "-1%", "x%"] {
            assert!(parse_fraction(text).is_err(), "{text}");
        }
    }

    #[test]
    fn printed_durations_read_back() {
        for ns in [0, 1, 999, 1_000, 1_500, 5_000_000, 8_500_000, 60_000_000_000, 1 << 61] {
            assert_eq!(parse_duration(&Nanos(ns).to_string()), Ok(Nanos(ns)));
        }
    }
}

//! Times as traces write them: date-times, or numbers in a stated unit. Both are exact.

use crate::units::parse_time;

/// How the times of a trace are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::interop) enum Clock {
    /// `2023-11-16 18:15:46.6805900`, with or without a zone.
    DateTime,
    /// A number of `ns`, `us`, `ms` or `s`.
    Number(&'static str),
}

/// The units that a column of numeric times may have.
pub(in crate::interop) const UNITS: [&str; 4] = ["ns", "us", "ms", "s"];

impl Clock {
    /// Nanoseconds since the origin of the clock, or what is wrong and what to write instead.
    pub(in crate::interop) fn parse(self, text: &str) -> Result<i128, (String, String)> {
        let shown = super::cell::clip(text);
        match self {
            Self::DateTime => date_time(text).ok_or_else(|| {
                (
                    format!("`{shown}` is not a date-time"),
                    "write YYYY-MM-DD HH:MM:SS with up to nine decimals".to_owned(),
                )
            }),
            Self::Number(unit) => number(text, unit)
                .map_err(|(what, help)| (format!("`{shown}` {what}"), help.to_owned())),
        }
    }
}

/// Whether a text is meant as a date-time, right or wrong.
pub(in crate::interop) fn looks_like_date(text: &str) -> bool {
    let b = text.as_bytes();
    b.len() >= 10
        && b[4] == b'-'
        && b[7] == b'-'
        && b[..4].iter().chain(&b[5..7]).chain(&b[8..10]).all(u8::is_ascii_digit)
}

fn number(text: &str, unit: &str) -> Result<i128, (&'static str, &'static str)> {
    const HELP: &str = "write a number of the column's unit, with a point for decimals";
    if looks_like_date(text) {
        return Err(("is a date-time where the others are numbers", HELP));
    }
    let Ok(value) = text.parse::<f64>() else {
        return Err(("is not a number", HELP));
    };
    let spelled = text.chars().any(|c| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E'));
    if value.is_nan() || spelled {
        return Err(("is not a time", "drop the request, or give its time"));
    }
    if value < 0.0 {
        return Err(("is before zero", "shift the times so that none is negative"));
    }
    let digits = text.trim_start_matches(['+', '-']);
    parse_time(&format!("{digits}{unit}"))
        .map(|time| i128::from(time.0))
        .map_err(|_| ("is beyond 584 years", "check the unit of the column"))
}

/// A date-time as nanoseconds since 1970-01-01 UTC; one without a zone counts as UTC. Decimals
/// beyond the ninth are cut off.
fn date_time(text: &str) -> Option<i128> {
    if !text.is_ascii() || text.len() < 19 || !looks_like_date(text) {
        return None;
    }
    let b = text.as_bytes();
    if !matches!(b[10], b' ' | b'T' | b't') || b[13] != b':' || b[16] != b':' {
        return None;
    }
    let two = |at: usize| digits(&text[at..at + 2]);
    let (year, month, day) = (digits(&text[..4])?, two(5)?, two(8)?);
    let (hour, minute, second) = (two(11)?, two(14)?, two(17)?);
    let days = days_since_1970(year, month, day)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (nanos, rest) = fraction(&text[19..])?;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - zone(rest)?;
    Some(i128::from(seconds) * 1_000_000_000 + i128::from(nanos))
}

fn digits(text: &str) -> Option<i64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Nanoseconds of a decimal fraction, and what follows it.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(tail) = text.strip_prefix(['.', ',']) else { return Some((0, text)) };
    let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
    let nine = format!("{:0<9.9}", &tail[..end]);
    (end > 0).then_some(())?;
    Some((digits(&nine)?, &tail[end..]))
}

/// Seconds east of UTC.
fn zone(text: &str) -> Option<i64> {
    let text = text.trim_start();
    if matches!(text, "" | "Z" | "z" | "UTC" | "GMT") {
        return Some(0);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest.len() {
        2 => (digits(rest)?, 0),
        4 => (digits(&rest[..2])?, digits(&rest[2..])?),
        5 if rest.as_bytes()[2] == b':' => (digits(&rest[..2])?, digits(&rest[3..])?),
        _ => return None,
    };
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// Days from 1970-01-01 in the Gregorian calendar; `None` for a day that does not exist.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let length = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // Years that start in March put the leap day last, so months have closed lengths.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * m + 2) / 5 + day - 1;
    let days = 365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + of_year;
    Some(days - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_times_are_exact() {
        for (text, ns) in [
            ("1970-01-01 00:00:00", 0),
            ("1970-01-01T00:00:00.5Z", 500_000_000),
            ("2000-02-29 00:00:00", 951_782_400_000_000_000),
            ("2023-11-16 18:15:46.6805900", 1_700_158_546_680_590_000),
            ("2024-05-10 00:00:00.009930+00:00", 1_715_299_200_009_930_000),
            ("2024-05-10 02:00:00.00993 +0200", 1_715_299_200_009_930_000),
            ("1969-12-31 23:59:59.123456789999", -876_543_211),
        ] {
            assert_eq!(date_time(text), Some(ns), "{text}");
        }
        for text in [
            "2023-02-29 00:00:00",
            "2023-13-01 00:00:00",
            "2023-11-16 24:00:00",
            "2023-11-16",
            "2023-11-16 18:15:46.",
            "2023-11-16 18:15:46 CET",
            "2023-11-16 18:15:4é",
        ] {
            assert_eq!(date_time(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_exact() {
        for (text, unit, ns) in [
            ("1700158546.680590001", "s", 1_700_158_546_680_590_001),
            ("+12.5", "us", 12_500),
            ("-0.0", "s", 0),
            ("1e3", "ms", 1_000_000_000),
            ("18446744073709551615", "ns", i128::from(u64::MAX)),
        ] {
            assert_eq!(number(text, unit), Ok(ns), "{text}");
        }
        for text in ["", "nan", "inf", "-1", "1e99", "1e99999999999", "1_0", "0x1", "1,5"] {
            assert!(number(text, "s").is_err(), "{text}");
        }
    }
}

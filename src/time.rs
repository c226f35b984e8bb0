//! Simulated time: an integer number of nanoseconds.

use std::fmt;

/// A moment since the start of a run, or a length of time, in nanoseconds (584 years in all).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time at all; also the start of a run.
    pub const ZERO: Self = Self(0);
    /// Never: later than every event.
    pub const MAX: Self = Self(u64::MAX);

    /// `ms` milliseconds, rounded to the nearest nanosecond; negative values become zero.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    pub fn from_ms(ms: f64) -> Self {
        Self((ms * 1e6).round() as u64)
    }

    /// In milliseconds, for people and statistics.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for display and statistics")]
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// In seconds, for people and statistics.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for display and statistics")]
    pub fn as_s(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self + other`, or [`Nanos::MAX`] past the end of time.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Nanos {
    /// The largest unit up to seconds that needs no rounding: `5ms`, `8.5ms`, `999ns`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0 => return f.write_str("0ms"),
            n if n >= 1_000_000_000 => (1_000_000_000, "s"),
            n if n >= 1_000_000 => (1_000_000, "ms"),
            n if n >= 1_000 => (1_000, "us"),
            _ => (1, "ns"),
        };
        let (whole, rest) = (self.0 / unit, self.0 % unit);
        if rest == 0 {
            return write!(f, "{whole}{name}");
        }
        let width = unit.ilog10() as usize;
        let digits = format!("{rest:0width$}");
        write!(f, "{whole}.{}{name}", digits.trim_end_matches('0'))
    }
}

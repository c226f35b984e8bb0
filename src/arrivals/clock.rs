//! A running sum of gaps, exact to 2⁻³² ns.

/// Adds floating-point gaps into integer nanoseconds without drift: the fraction of a nanosecond
/// is kept as an integer too, so that long sums neither round nor depend on their order of
/// magnitude, and the serial part of a draw is two integer additions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    ns: u64,
    /// In units of 2⁻³² ns.
    fraction: u64,
}

impl Clock {
    /// A clock that stands at `ns`.
    pub(super) fn at(ns: u64) -> Self {
        Self { ns, fraction: 0 }
    }

    /// Advances by `gap_ns` (not negative) and returns the time; saturates at the end of time.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    pub(super) fn advance(&mut self, gap_ns: f64) -> u64 {
        // Exact where it fits, and cheaper than to split the gap first.
        let gap = (gap_ns * UNITS_PER_NS) as i64 as u64;
        if gap >= i64::MAX as u64 {
            return self.leap(gap_ns);
        }
        self.fraction += gap;
        self.ns = self.ns.saturating_add(self.fraction >> 32);
        self.fraction &= 0xffff_ffff;
        self.ns
    }

    /// Advances by a gap of 2^31 ns or more.
    #[cold]
    #[inline(never)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    #[expect(clippy::cast_precision_loss, reason = "gaps above 2^53 ns have no fraction")]
    fn leap(&mut self, gap_ns: f64) -> u64 {
        let whole = gap_ns as u64;
        self.fraction += u64::from(((gap_ns - whole as f64) * UNITS_PER_NS) as u32);
        self.ns = self.ns.saturating_add(whole).saturating_add(self.fraction >> 32);
        self.fraction &= 0xffff_ffff;
        self.ns
    }
}

/// The clock's resolution.
const UNITS_PER_NS: f64 = 4_294_967_296.0;

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn fractions_add_up_exactly() {
        let mut clock = Clock::default();
        for _ in 0..1_000_000 {
            clock.advance(0.25);
        }
        assert_eq!(clock.advance(0.0), 250_000);
    }

    #[test]
    fn long_gaps_are_as_exact() {
        let mut clock = Clock::default();
        for _ in 0..1_000 {
            clock.advance(3e9 + 0.5);
            clock.advance(2e9 + 0.25);
        }
        assert_eq!(clock.advance(0.0), 5_000_000_000_750);
    }

    #[test]
    fn the_end_of_time_holds() {
        let mut clock = Clock::at(u64::MAX - 1);
        assert_eq!(clock.advance(1e30), u64::MAX);
        assert_eq!(clock.advance(1e30), u64::MAX);
    }
}

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
        if gap >= i64::MAX as u64 || self.ns > u64::MAX / 2 {
            // By value, so that a clock that is not asked to leap stays in registers.
            *self = self.leap(gap_ns);
            return self.ns;
        }
        self.fraction += gap;
        self.ns += self.fraction >> 32;
        self.fraction &= 0xffff_ffff;
        self.ns
    }

    /// Writes the times after each of these gaps, `mean_ns` times a unit each.
    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    pub(super) fn sum(&mut self, units: &[f64], mean_ns: f64, times: &mut [u64]) {
        /// Gaps whose sum has to fit into 2^31 ns.
        const FEW: usize = 8;
        const SHORT_NS: f64 = (1u64 << 31) as f64;
        let scale = mean_ns * UNITS_PER_NS;
        if longest(units) * mean_ns * FEW as f64 >= SHORT_NS || self.ns > u64::MAX / 2 {
            for (time, unit) in times.iter_mut().zip(units) {
                *time = self.advance(unit * mean_ns);
            }
            return;
        }
        let Self { mut ns, mut fraction } = *self;
        let (few_times, last_times) = times.as_chunks_mut::<FEW>();
        let (few_units, last_units) = units.as_chunks::<FEW>();
        for (times, units) in few_times.iter_mut().zip(few_units) {
            // One addition from gap to gap.
            for (time, unit) in times.iter_mut().zip(units) {
                fraction += (unit * scale) as i64 as u64;
                *time = ns + (fraction >> 32);
            }
            ns += fraction >> 32;
            fraction &= 0xffff_ffff;
        }
        *self = Self { ns, fraction };
        for (time, unit) in last_times.iter_mut().zip(last_units) {
            *time = self.advance(unit * mean_ns);
        }
    }

    /// Advances by a gap of 2^31 ns or more, or near the end of time.
    #[cold]
    #[inline(never)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    #[expect(clippy::cast_precision_loss, reason = "gaps above 2^53 ns have no fraction")]
    fn leap(self, gap_ns: f64) -> Self {
        let whole = gap_ns as u64;
        let part = u64::from(((gap_ns - whole as f64) * UNITS_PER_NS) as u32);
        let fraction = self.fraction + part;
        let ns = self.ns.saturating_add(whole).saturating_add(fraction >> 32);
        Self { ns, fraction: fraction & 0xffff_ffff }
    }
}

/// The longest of these gaps, in vectors.
#[inline]
fn longest(units: &[f64]) -> f64 {
    let max = |a: f64, b: f64| if b > a { b } else { a };
    let (eights, rest) = units.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for eight in eights {
        lanes = std::array::from_fn(|i| max(lanes[i], eight[i]));
    }
    lanes.iter().chain(rest).fold(0.0, |a, b| max(a, *b))
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

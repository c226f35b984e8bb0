//! Log-linear histogram of nanoseconds: integer counts, merged by addition.

/// Counts values in bins whose width is at most `2^-BITS` of the value; every value below
/// `2^(BITS + 1)` has a bin of its own. Only the span of bins that has been touched is kept.
///
/// In the manner of HdrHistogram and DDSketch. The bin of `v` is the exponent and the leading
/// `BITS` bits of the mantissa of `2 v + 1` as a float: zero needs no special care then, and
/// [`add_all`](Self::add_all) finds bins with vector instructions. Merging is addition of
/// integers, so the result does not depend on the order of the parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram<const BITS: u32> {
    /// Bin number of `counts[0]`.
    base: usize,
    counts: Vec<u64>,
}

/// Integers below this become floats by way of their bits.
const EXACT: u64 = 1 << 52;
/// Exponent field of a float from 1 to 2.
const BIAS: usize = 1023;
/// Values whose bins are found together.
const CHUNK: usize = 64;
/// Bins added up before a quantile is looked for among them.
const GROUP: usize = 64;
/// A span of so many bins is cheaper to keep from zero than to lengthen downwards.
const SHORT: usize = 4096;

impl<const BITS: u32> Histogram<BITS> {
    const SUB: u64 = 1 << BITS;

    /// An empty histogram.
    #[must_use]
    pub const fn new() -> Self {
        Self { base: 0, counts: Vec::new() }
    }

    /// The bin of `value`.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a bin number is below 65 << BITS")]
    fn bin(value: u64) -> usize {
        let (exponent, sub) = if value >= Self::SUB {
            let exponent = value.ilog2();
            (exponent + 1, value >> (exponent - BITS))
        } else {
            let odd = 2 * value + 1;
            (odd.ilog2(), odd << (BITS - odd.ilog2()))
        };
        ((u64::from(exponent) << BITS) + sub - Self::SUB) as usize
    }

    /// Smallest value of a bin and the bin's width.
    fn span(bin: usize) -> (u64, u64) {
        let (exponent, sub) = (bin as u64 >> BITS, bin as u64 & (Self::SUB - 1));
        match exponent.checked_sub(u64::from(BITS) + 1) {
            Some(shift) => ((Self::SUB + sub) << shift, 1 << shift),
            None => ((Self::SUB + sub) >> (u64::from(BITS) - exponent) >> 1, 1),
        }
    }

    /// Counts one value.
    #[inline(always)]
    pub fn add(&mut self, value: u64) {
        let at = Self::bin(value).wrapping_sub(self.base);
        match self.counts.get_mut(at) {
            Some(count) => *count += 1,
            None => self.grow_and_add(value),
        }
    }

    /// Counts many values, faster than one by one.
    #[inline]
    pub fn add_all(&mut self, values: &[u64]) {
        let (chunks, rest) = values.as_chunks::<CHUNK>();
        for chunk in chunks {
            self.add_chunk(chunk);
        }
        rest.iter().for_each(|&value| self.add(value));
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a bin number is below 65 << BITS")]
    fn add_chunk(&mut self, values: &[u64; CHUNK]) {
        const MAGIC: f64 = EXACT as f64;
        // Hidden from the optimiser as one number, else it subtracts the two one by one.
        let base = std::hint::black_box((self.base + (BIAS << BITS)) as u64);
        let all = values.iter().fold(0, |all, value| all | value);
        let places: [u64; CHUNK] = std::array::from_fn(|i| {
            let odd = values[i].wrapping_add(values[i]) | MAGIC.to_bits() | 1;
            let float = f64::from_bits(odd) - MAGIC;
            (float.to_bits() >> (f64::MANTISSA_DIGITS - 1 - BITS)).wrapping_sub(base)
        });
        if all >= EXACT / 2 {
            return self.add_rest(values);
        }
        let counts = self.counts.as_mut_slice();
        for (i, place) in places.iter().enumerate() {
            let Some(count) = counts.get_mut(*place as usize) else {
                // Growth moves the places of the others.
                return self.add_rest(&values[i..]);
            };
            *count += 1;
        }
    }

    #[cold]
    #[inline(never)]
    fn add_rest(&mut self, values: &[u64]) {
        values.iter().for_each(|&value| self.add(value));
    }

    #[cold]
    #[inline(never)]
    fn grow_and_add(&mut self, value: u64) {
        let bin = Self::bin(value);
        self.cover(bin, bin + 1);
        self.counts[bin - self.base] += 1;
    }

    /// Makes room for the bins `from..to`, in whole octaves so that growth is rare.
    fn cover(&mut self, from: usize, to: usize) {
        let octave = 1usize << BITS;
        let to = to.div_ceil(octave) * octave;
        let from = if to <= SHORT { 0 } else { from / octave * octave };
        if self.counts.is_empty() {
            self.base = from;
            self.counts = spare::take();
            self.counts.resize(to - from, 0);
            return;
        }
        let old_to = self.base + self.counts.len();
        if from < self.base {
            let (more, old) = (self.base - from, self.counts.len());
            self.counts.resize(old + more, 0);
            self.counts.copy_within(..old, more);
            self.counts[..more].fill(0);
            self.base = from;
        }
        if to > old_to {
            self.counts.resize(to - self.base, 0);
        }
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.is_empty() {
            return;
        }
        self.cover(other.base, other.base + other.counts.len());
        let at = other.base - self.base;
        for (mine, theirs) in self.counts[at..].iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
    }

    /// Values counted.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|&c| c == 0)
    }

    /// The smallest `t` with `P(value <= t) >= q` for each of these `q`, interpolated inside its
    /// bin; `None` when empty.
    #[must_use]
    pub fn quantiles(&self, qs: &[f64]) -> Option<Vec<f64>> {
        // Bins are gone over once, in vectors; each quantile then looks into one group of them.
        let groups: Vec<u64> = self.counts.chunks(GROUP).map(|g| g.iter().sum()).collect();
        let total = groups.iter().sum();
        if total == 0 {
            return None;
        }
        let at = |q: &f64| {
            let (rank, mut below) = (rank(*q, total), 0);
            let mut reaches = |count: &u64| {
                below += count;
                below >= rank
            };
            let group = groups.iter().position(&mut reaches)?;
            below -= groups[group];
            let first = group * GROUP;
            let mut reaches = |count: &u64| {
                below += count;
                below >= rank
            };
            let bin = first + self.counts[first..].iter().position(&mut reaches)?;
            let count = self.counts[bin];
            Some(Self::inside(self.base + bin, rank + count - below, count))
        };
        qs.iter().map(at).collect()
    }

    /// Value of the `rank`-th of `count` values spread over a bin.
    #[expect(clippy::cast_precision_loss, reason = "a bin is known to 1e-3 only")]
    fn inside(bin: usize, rank: u64, count: u64) -> f64 {
        let (low, width) = Self::span(bin);
        if width == 1 {
            return low as f64;
        }
        low as f64 + (rank as f64 - 0.5) / count as f64 * width as f64
    }

    /// How many values lie at or below `limit`, counting the bin of `limit` in full.
    #[must_use]
    pub fn count_to(&self, limit: u64) -> u64 {
        let end = (Self::bin(limit) + 1).saturating_sub(self.base).min(self.counts.len());
        self.counts[..end].iter().sum()
    }

    /// Non-empty bins: smallest value, width and count, increasing.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, c)| **c > 0).map(|(at, &count)| {
            let (low, width) = Self::span(self.base + at);
            (low, width, count)
        })
    }
}

impl<const BITS: u32> Drop for Histogram<BITS> {
    fn drop(&mut self) {
        spare::put(std::mem::take(&mut self.counts));
    }
}

/// Memory of histograms that are gone, for those to come: the cells of a sweep need some forty
/// each, and to get them from the allocator takes longer than to fill them.
mod spare {
    use std::cell::RefCell;

    /// Most pieces kept by a thread.
    const PIECES: usize = 64;
    /// Longest piece worth keeping; with so many pieces at most 4 MiB.
    const LONGEST: usize = 8192;

    thread_local! {
        static PIECES_LEFT: RefCell<Vec<Vec<u64>>> = const { RefCell::new(Vec::new()) };
    }

    /// An empty vector, with room in it where there is a piece.
    pub(super) fn take() -> Vec<u64> {
        PIECES_LEFT.with_borrow_mut(Vec::pop).unwrap_or_default()
    }

    pub(super) fn put(mut piece: Vec<u64>) {
        if piece.capacity() == 0 || piece.capacity() > LONGEST {
            return;
        }
        piece.clear();
        // A thread that ends has no place for it any more.
        let _ = PIECES_LEFT.try_with(|pieces| {
            let mut pieces = pieces.borrow_mut();
            if pieces.len() < PIECES {
                pieces.push(piece);
            }
        });
    }
}

/// Rank of the `q`-quantile among `n` values: the smallest `k` with `k / n >= q`, at least 1.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 <= q <= 1")]
#[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
pub fn rank(q: f64, n: u64) -> u64 {
    // A q such as 0.99 is a hair above or below 99/100: the rank must not jump for it.
    let exact = q * n as f64;
    let nearest = exact.round();
    let k = if (exact - nearest).abs() <= 1e-9 * exact { nearest } else { exact.ceil() };
    (k as u64).clamp(1, n.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type H = Histogram<10>;

    #[test]
    fn bins_tile_the_integers() {
        for v in (0..5_000).chain([1 << 20, (1 << 20) + 1, u64::MAX / 2, u64::MAX]) {
            let (low, width) = H::span(H::bin(v));
            assert!(low <= v && v - low < width, "{v}: {low} + {width}");
            assert!(width == 1 || (width as f64) / (low as f64) <= 1.0 / 1024.0, "{v}");
        }
        for bin in (11 << 10)..(65 << 10) {
            assert_eq!(H::bin(H::span(bin).0), bin);
        }
    }

    #[test]
    fn small_values_are_exact() {
        let mut h = H::new();
        (1..=1000).for_each(|v| h.add(v));
        assert_eq!(
            h.quantiles(&[0.0, 0.5, 0.99, 0.999, 1.0]),
            Some(vec![1., 500., 990., 999., 1000.])
        );
    }

    #[test]
    fn ranks_do_not_jump() {
        assert_eq!(rank(0.99, 100), 99);
        assert_eq!(rank(0.99, 200_000), 198_000);
        assert_eq!(rank(0.999, 1_000_000), 999_000);
        assert_eq!(rank(0.5, 3), 2);
        assert_eq!(rank(0.0, 3), 1);
        assert_eq!(rank(1.0, 3), 3);
    }

    proptest! {
        #[test]
        fn quantiles_are_within_a_bin(mut values in prop::collection::vec(0u64..1 << 40, 1..300),
                                      q in 0.0..1.0f64) {
            let mut h = H::new();
            values.iter().for_each(|&v| h.add(v));
            values.sort_unstable();
            let exact = values[rank(q, values.len() as u64) as usize - 1] as f64;
            let got = h.quantiles(&[q]).unwrap()[0];
            prop_assert!((got - exact).abs() <= exact / 1024.0 + 1e-9, "{got} {exact}");
        }

        #[test]
        fn all_at_once_is_one_by_one(small in prop::collection::vec(0u64..3000, 0..100),
                                     large in prop::collection::vec(any::<u64>(), 0..3),
                                     shift in 0u32..40) {
            let (mut ha, mut hb) = (H::new(), H::new());
            let mut values: Vec<u64> = small.iter().map(|v| v << shift).collect();
            values.extend(large);
            ha.add_all(&values);
            values.iter().for_each(|&v| hb.add(v));
            prop_assert!(ha.bins().eq(hb.bins()));
            prop_assert_eq!(ha.len(), values.len() as u64);
        }

        #[test]
        fn merging_is_counting_together(a in prop::collection::vec(any::<u64>(), 0..50),
                                        b in prop::collection::vec(any::<u64>(), 0..50)) {
            let (mut ha, mut hb, mut all) = (H::new(), H::new(), H::new());
            a.iter().for_each(|&v| ha.add(v));
            b.iter().for_each(|&v| hb.add(v));
            a.iter().chain(&b).for_each(|&v| all.add(v));
            ha.merge(&hb);
            prop_assert!(ha.bins().eq(all.bins()));
        }
    }
}

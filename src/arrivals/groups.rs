//! `groups`: fan-out. Groups come as a Poisson process, and each brings several requests.
//!
//! A group's members come at its moment, or at independent uniform offsets from it within
//! `spread`. With group size `X` the index of dispersion for counts tends to `E[X²] / E[X]`: the
//! size itself for a constant one, `2m − 1` for a geometric one of mean `m`. Over a window `t` no
//! shorter than the spread `w` it is `1 + (E[X²] / E[X] − 1) · (1 − w / (3t))`.
//!
//! No two groups of a source share a nanosecond: where they would, the later one yields by one.
//! So the moment of an arrival says which group it belongs to, and whoever draws the same stream
//! again ([`Members`]) can tell.

use super::Stream;
use super::clock::Clock;
use crate::rng::SimRng;
use crate::tagged::{BadParam, params};
use crate::time::Nanos;
use crate::units::Rate;
use rand::RngExt;
use rand_distr::Exp1;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

params! {
    /// Parameters of `groups`.
    pub struct Groups {
        /// Mean groups per second; requests per second are this times the mean size.
        pub rate: Rate,
        /// Requests of a group: a number, or `{ kind = "geometric", mean }`.
        pub size: GroupSize,
        /// Width of the window over which a group's requests come (default: all at once).
        #[cfg_attr(feature = "schema", serde(default))]
        pub spread: Nanos,
    }
}

/// `size`: the same for every group, or drawn for each.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "schema", derive(serde::Serialize, schemars::JsonSchema), serde(untagged))]
pub enum GroupSize {
    /// Every group has this many requests.
    Constant(u32),
    /// Drawn for each group on its own.
    Drawn(GroupSizeLaw),
}

/// The law of drawn group sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "schema",
    derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema),
    serde(deny_unknown_fields)
)]
pub struct GroupSizeLaw {
    /// Its kind.
    pub kind: GroupSizeKind,
    /// Mean size, 1 or more.
    pub mean: f64,
}

/// Kinds of laws of group sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "schema",
    derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum GroupSizeKind {
    /// 1, 2, 3, …: after each request another one follows with probability `1 − 1 / mean`.
    Geometric,
}

/// Largest size, and largest mean of a drawn one.
const LARGEST: u32 = 10_000;

/// Most requests within one spread, on average: so many are held until their moment.
const MOST_AT_ONCE: f64 = 1e6;

impl GroupSize {
    /// Requests of a group on average.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Constant(n) => f64::from(*n),
            Self::Drawn(law) => law.mean,
        }
    }

    /// Limit of the index of dispersion for counts: `E[X²] / E[X]`.
    #[must_use]
    pub fn idc_limit(&self) -> f64 {
        match self {
            Self::Constant(n) => f64::from(*n),
            Self::Drawn(law) => 2.0 * law.mean - 1.0,
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^20")]
    fn draw(&self, rng: &mut SimRng) -> u32 {
        match self {
            Self::Constant(n) => *n,
            // By inversion, from one number a group: P(X > n) = (1 − 1 / mean)ⁿ.
            Self::Drawn(law) => {
                let survives = (1.0 - rng.random::<f64>()).ln();
                1 + (survives / (-1.0 / law.mean).ln_1p()).floor() as u32
            }
        }
    }
}

impl Groups {
    /// Requests per second.
    #[must_use]
    pub fn requests_per_s(&self) -> f64 {
        self.rate.per_s() * self.size.mean()
    }

    pub(super) fn check(&self) -> Result<(), BadParam> {
        let bad = |what: String, help: &str| Err(BadParam::new("size", what, help));
        match &self.size {
            GroupSize::Constant(n) if !(1..=LARGEST).contains(n) => {
                let what = format!("a group has 1 to {LARGEST} requests, not {n}");
                bad(what, "write how many requests one fan-out sends, as in size = 8")
            }
            GroupSize::Drawn(law) if !(1.0..=f64::from(LARGEST)).contains(&law.mean) => {
                let what = format!("the mean size lies between 1 and {LARGEST}, not {}", law.mean);
                bad(what, "write for example { kind = \"geometric\", mean = 4 }")
            }
            _ if self.requests_per_s() * self.spread.as_s() > MOST_AT_ONCE => Err(BadParam::new(
                "spread",
                "groups of this rate, size and spread overlap by the millions",
                "write a shorter spread, or kind = \"poisson\", which this comes to",
            )),
            _ => Ok(()),
        }
    }
}

/// Arrivals of one moment that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// When, ns.
    pub at_ns: u64,
    /// Number of the group, by its moment.
    pub group: u64,
    /// Requests of the group in all.
    pub size: u32,
    /// How many of them come now.
    pub count: u32,
}

/// The members of all groups in the order of their arrival.
#[derive(Clone, Debug)]
pub struct Members {
    mean_gap_ns: f64,
    size: GroupSize,
    spread_ns: f64,
    /// Gaps, sizes and offsets have a stream each, so that none changes with another's law.
    gaps: SimRng,
    sizes: SimRng,
    offsets: SimRng,
    clock: Clock,
    /// Moment of the next group.
    next_ns: u64,
    next_group: u64,
    /// Members of groups whose moment has come: time, group, size, count.
    pending: BinaryHeap<Reverse<(u64, u64, u32, u32)>>,
    /// The last arrival, and the group it was of.
    last: (u64, u64),
}

impl Members {
    /// The members of a source whose arrivals are drawn from `rng`.
    #[must_use]
    pub fn new(params: &Groups, rng: SimRng) -> Self {
        let (mut sizes, mut offsets) = (rng.clone(), rng.clone());
        sizes.jump();
        offsets.long_jump();
        let mut members = Self {
            mean_gap_ns: 1e9 / params.rate.per_s(),
            size: params.size,
            spread_ns: params.spread.as_ms() * 1e6,
            gaps: rng,
            sizes,
            offsets,
            clock: Clock::default(),
            next_ns: 0,
            next_group: 0,
            pending: BinaryHeap::new(),
            last: (0, u64::MAX),
        };
        members.next_ns = members.moment();
        members
    }

    fn moment(&mut self) -> u64 {
        self.clock.advance(self.gaps.sample::<f64, _>(Exp1) * self.mean_gap_ns)
    }

    /// Lets the next group come.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    fn expand(&mut self) {
        let (at, group) = (self.next_ns, self.next_group);
        let size = self.size.draw(&mut self.sizes);
        if self.spread_ns > 0.0 {
            for _ in 0..size {
                let offset = (self.offsets.random::<f64>() * self.spread_ns).round() as u64;
                self.pending.push(Reverse((at.saturating_add(offset), group, size, 1)));
            }
        } else {
            self.pending.push(Reverse((at, group, size, size)));
        }
        self.next_group += 1;
        self.next_ns = self.moment();
    }
}

/// Ends only with time itself.
impl Iterator for Members {
    type Item = Member;

    fn next(&mut self) -> Option<Member> {
        // A member is next once no group can still come before it.
        while self.pending.peek().is_none_or(|Reverse((at, ..))| *at > self.next_ns) {
            if self.next_ns == u64::MAX {
                return None;
            }
            self.expand();
        }
        let Reverse((at, group, size, count)) = self.pending.pop()?;
        let (last, of) = self.last;
        let at_ns = if group == of { at.max(last) } else { at.max(last.saturating_add(1)) };
        self.last = (at_ns, group);
        (at_ns < u64::MAX).then_some(Member { at_ns, group, size, count })
    }
}

/// The arrivals of [`Members`].
pub(super) struct Draw {
    members: Members,
    /// The last arrival, and how many more come with it.
    left: (u64, u32),
}

impl Draw {
    pub(super) fn new(params: &Groups, rng: SimRng) -> Self {
        Self { members: Members::new(params, rng), left: (0, 0) }
    }
}

impl Stream for Draw {
    fn fill(&mut self, out: &mut [u64]) -> usize {
        for (i, slot) in out.iter_mut().enumerate() {
            if self.left.1 == 0 {
                let Some(member) = self.members.next() else { return i };
                self.left = (member.at_ns, member.count);
            }
            self.left.1 -= 1;
            *slot = self.left.0;
        }
        out.len()
    }
}

#[cfg(feature = "schema")]
mod text {
    use super::{GroupSize, GroupSizeLaw};
    use serde::de::value::MapAccessDeserializer;
    use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
    use std::fmt;

    struct Reader;

    impl<'de> Visitor<'de> for Reader {
        type Value = GroupSize;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(
                "a number of requests such as 8, or a law such as \
                 { kind = \"geometric\", mean = 4 }",
            )
        }

        fn visit_u64<E: Error>(self, n: u64) -> Result<GroupSize, E> {
            u32::try_from(n)
                .map(GroupSize::Constant)
                .map_err(|_| E::invalid_value(serde::de::Unexpected::Unsigned(n), &"at most 10000"))
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<GroupSize, A::Error> {
            GroupSizeLaw::deserialize(MapAccessDeserializer::new(map)).map(GroupSize::Drawn)
        }
    }

    impl<'de> Deserialize<'de> for GroupSize {
        fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            d.deserialize_any(Reader)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, substream};

    fn groups(per_s: f64, size: u32, spread: u64) -> Groups {
        let rate = Rate::per_second(per_s).unwrap();
        Groups { rate, size: GroupSize::Constant(size), spread: Nanos(spread) }
    }

    fn members(params: &Groups) -> Members {
        Members::new(params, substream(3, 0, 0, Purpose::Arrivals))
    }

    #[test]
    fn groups_share_no_nanosecond_however_dense() {
        // Ten groups a nanosecond before any yields.
        let crowded = groups(1e10, 3, 20);
        let mut last: Option<Member> = None;
        for member in members(&crowded).take(3_000) {
            if let Some(last) = last {
                let apart = member.at_ns > last.at_ns;
                assert!(apart || member.at_ns == last.at_ns && member.group == last.group);
            }
            last = Some(member);
        }
    }

    #[test]
    fn overlapping_groups_come_in_order_and_complete() {
        // About ten groups at a time.
        let wide = groups(1_000.0, 4, 10_000_000);
        let all: Vec<Member> = members(&wide).take(4_000).collect();
        assert!(all.windows(2).all(|w| w[0].at_ns <= w[1].at_ns));
        let moment = |g: u64| all.iter().filter(move |m| m.group == g).map(|m| m.at_ns);
        for group in 0..900 {
            assert_eq!(moment(group).count(), 4);
            let (first, last) = (moment(group).min().unwrap(), moment(group).max().unwrap());
            assert!(last - first <= 10_000_001, "within the spread");
        }
        assert!((0..900).any(|g| moment(g).max() > moment(g + 5).min()), "they overlap");
    }

    #[test]
    fn only_what_is_asked_for_changes() {
        let moments = |params: &Groups| -> Vec<u64> {
            members(params).filter(|m| m.count == m.size).map(|m| m.at_ns).take(500).collect()
        };
        let plain = moments(&groups(20.0, 8, 0));
        assert_eq!(plain, moments(&groups(20.0, 3, 0)), "another size, the same moments");
        for (slow, fast) in plain.iter().zip(moments(&groups(40.0, 8, 0))) {
            assert!((*slow as f64 / 2.0 - fast as f64).abs() <= 1.0, "the same gaps, halved");
        }
        // Half the spread, half of every offset.
        let offsets = |spread: u64| -> Vec<Vec<u64>> {
            let mut all = vec![Vec::new(); 100];
            for m in members(&groups(20.0, 8, spread)).take(2_000) {
                if let Some(of) = all.get_mut(m.group as usize) {
                    of.push(m.at_ns - plain[m.group as usize]);
                }
            }
            all
        };
        for (wide, narrow) in offsets(2_000_000).iter().flatten().zip(offsets(1_000_000).concat()) {
            assert!((*wide as f64 / 2.0 - narrow as f64).abs() <= 1.0);
        }
    }

    #[test]
    fn a_geometric_size_of_mean_one_is_one() {
        let law = GroupSizeLaw { kind: GroupSizeKind::Geometric, mean: 1.0 };
        let params = Groups { size: GroupSize::Drawn(law), ..groups(20.0, 1, 0) };
        assert!(members(&params).take(1_000).all(|m| m.size == 1));
    }
}

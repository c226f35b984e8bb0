//! Group latency: of a fan-out, the largest latency among its requests.
//!
//! An engine knows no groups. A watch draws the stream of a source once more, a little behind the
//! engine, and so learns which arrival belongs to which group; what it holds is as long as the
//! queue. A group is told of once all its requests have an end. Groups that the run did not send
//! whole, at its very end, were never offered and are left out.

use super::LatencyStore;
use crate::arrivals::{Groups, Members};
use crate::rng::SimRng;
use std::collections::VecDeque;

/// A source whose requests come in groups.
#[derive(Clone, Debug)]
pub struct GroupSource {
    first_tag: u8,
    tags: u8,
    members: Members,
}

impl GroupSource {
    /// The source with `tags` tags from `first_tag` on, whose arrivals are drawn from `rng`.
    #[must_use]
    pub fn new(params: &Groups, rng: SimRng, first_tag: u8, tags: u8) -> Self {
        Self { first_tag, tags, members: Members::new(params, rng) }
    }
}

/// Measurements of the groups of one replication, or of several merged.
#[derive(Clone, Debug, Default)]
pub struct GroupSummary<L> {
    /// Measured groups of which every request was answered.
    pub completed: u64,
    /// Measured groups of which some request was not.
    pub incomplete: u64,
    /// Largest latency among the requests of each completed group, ns.
    pub latency: L,
    /// Sum of those, ns.
    pub latency_sum_ns: u128,
    /// Largest of those, ns.
    pub latency_max_ns: u64,
    /// Limits to count groups within, ns, increasing.
    pub limits_ns: Vec<u64>,
    /// Completed groups within each limit.
    pub within: Vec<u64>,
}

impl<L: LatencyStore> GroupSummary<L> {
    /// Without a group yet.
    #[must_use]
    pub fn new(limits_ns: Vec<u64>) -> Self {
        Self { within: vec![0; limits_ns.len()], limits_ns, ..Self::default() }
    }

    fn add(&mut self, latency_ns: u64) {
        self.completed += 1;
        self.latency.add(latency_ns);
        self.latency_sum_ns += u128::from(latency_ns);
        self.latency_max_ns = self.latency_max_ns.max(latency_ns);
        for (within, limit) in self.within.iter_mut().zip(&self.limits_ns) {
            *within += u64::from(latency_ns <= *limit);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.completed += other.completed;
        self.incomplete += other.incomplete;
        self.latency.merge(&other.latency);
        self.latency_sum_ns += other.latency_sum_ns;
        self.latency_max_ns = self.latency_max_ns.max(other.latency_max_ns);
        for (a, b) in self.within.iter_mut().zip(&other.within) {
            *a += b;
        }
    }
}

impl<L> GroupSummary<L> {
    /// Measured groups.
    #[must_use]
    pub fn offered(&self) -> u64 {
        self.completed + self.incomplete
    }
}

/// A group some of whose requests have no end yet.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    first_ns: u64,
    size: u32,
    /// Requests that have had their end.
    ended: u32,
    /// Whether one of them was not answered.
    lost: bool,
    latency_ns: u64,
}

/// Follows the groups of one source.
#[derive(Clone, Debug)]
struct Follow {
    members: Members,
    /// Moments at which members came, and the number of the group, in order: from the first that
    /// may still be asked for to the last that was.
    moments: VecDeque<(u64, u64)>,
    /// Groups from the oldest that is open.
    open: VecDeque<Open>,
    /// Number of the first of those.
    oldest: u64,
}

impl Follow {
    /// Draws on until `at_ns` is known; the group that came then.
    fn group_of(&mut self, at_ns: u64) -> Option<u64> {
        while self.moments.back().is_none_or(|(known, _)| *known < at_ns) {
            let member = self.members.next()?;
            self.moments.push_back((member.at_ns, member.group));
            let place = usize::try_from(member.group.checked_sub(self.oldest)?).ok()?;
            if place >= self.open.len() {
                self.open.resize(place + 1, Open::default());
            }
            let group = &mut self.open[place];
            if group.size == 0 {
                (group.first_ns, group.size) = (member.at_ns, member.size);
            }
        }
        let at = self.moments.partition_point(|(known, _)| *known < at_ns);
        self.moments.get(at).filter(|(known, _)| *known == at_ns).map(|(_, group)| *group)
    }

    /// A request has had its end: with this latency, or without an answer. Returns its group if
    /// that was the last of it.
    fn end(&mut self, arrival_ns: u64, latency_ns: Option<u64>) -> Option<Open> {
        let number = self.group_of(arrival_ns)?;
        let place = usize::try_from(number.checked_sub(self.oldest)?).ok()?;
        let group = self.open.get_mut(place)?;
        group.ended += 1;
        match latency_ns {
            Some(latency) => group.latency_ns = group.latency_ns.max(latency),
            None => group.lost = true,
        }
        let complete = (group.ended == group.size).then_some(*group);
        if complete.is_some() && place == 0 {
            self.forget();
        }
        complete
    }

    /// Drops what no request will be asked for any more.
    fn forget(&mut self) {
        while self.open.front().is_some_and(|g| g.size > 0 && g.ended == g.size) {
            self.open.pop_front();
            self.oldest += 1;
        }
        while self.moments.front().is_some_and(|(_, group)| *group < self.oldest) {
            self.moments.pop_front();
        }
    }
}

/// Follows the groups of all sources that send them.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    follows: Vec<Follow>,
    /// Which of them a tag belongs to.
    of_tag: Vec<Option<u8>>,
    measure_from_ns: u64,
    client_ns: u64,
}

impl Watch {
    pub(super) fn new(sources: Vec<GroupSource>, measure_from_ns: u64, client_ns: u64) -> Self {
        let mut of_tag = vec![None; 256];
        let mut follows = Vec::new();
        for (number, source) in (0u8..).zip(sources) {
            let first = usize::from(source.first_tag);
            of_tag.iter_mut().skip(first).take(source.tags.into()).for_each(|w| *w = Some(number));
            follows.push(Follow {
                members: source.members,
                moments: VecDeque::new(),
                open: VecDeque::new(),
                oldest: 0,
            });
        }
        Self { follows, of_tag, measure_from_ns, client_ns }
    }

    /// These requests were answered.
    pub(super) fn answered<L: LatencyStore>(
        &mut self,
        at_ns: u64,
        arrivals: &[u64],
        tags: &[u8],
        into: &mut GroupSummary<L>,
    ) {
        for (&arrival, &tag) in arrivals.iter().zip(tags) {
            self.end(arrival, tag, Some(at_ns + self.client_ns - arrival), into);
        }
    }

    /// This request left without an answer.
    pub(super) fn lost<L: LatencyStore>(
        &mut self,
        arrival_ns: u64,
        tag: u8,
        into: &mut GroupSummary<L>,
    ) {
        self.end(arrival_ns, tag, None, into);
    }

    fn end<L: LatencyStore>(
        &mut self,
        arrival_ns: u64,
        tag: u8,
        latency_ns: Option<u64>,
        into: &mut GroupSummary<L>,
    ) {
        let follow = self.of_tag[usize::from(tag)].map(usize::from);
        let Some(follow) = follow.and_then(|number| self.follows.get_mut(number)) else { return };
        let Some(group) = follow.end(arrival_ns, latency_ns) else { return };
        // The first arrival decides whether a group is measured.
        if group.first_ns < self.measure_from_ns {
            return;
        }
        if group.lost { into.incomplete += 1 } else { into.add(group.latency_ns) }
    }
}

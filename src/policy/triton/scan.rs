//! The scan of the scheduler's queue: what could leave now, and when to look again.

use super::{QueuePolicy, TimeoutAction};
use crate::engine::{Cx, Rid};
use crate::record::Gone;
use crate::time::Nanos;

/// The queue as the scan reads it: levels of priority, each with live and delayed requests.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    policies: Vec<QueuePolicy>,
    /// Whether requests can be delayed: then each level has a second lane for them.
    delays: bool,
    /// Whether any request can expire.
    pub(super) expire: bool,
}

impl Levels {
    pub(super) fn new(policies: Vec<QueuePolicy>) -> Self {
        let expire = policies.iter().any(|p| p.default_timeout_microseconds > 0);
        let delays = policies.iter().any(|p| {
            p.timeout_action == TimeoutAction::Delay && p.default_timeout_microseconds > 0
        });
        Self { policies, delays, expire }
    }

    fn count(&self) -> usize {
        self.policies.len()
    }

    /// Lanes in order of service.
    pub(super) fn lanes(&self) -> u8 {
        let lanes = self.count() * if self.delays { 2 } else { 1 };
        u8::try_from(lanes).unwrap_or(u8::MAX)
    }

    /// The lane of live requests of a level.
    pub(super) fn live(&self, level: usize) -> u8 {
        u8::try_from(level * if self.delays { 2 } else { 1 }).unwrap_or(u8::MAX)
    }

    /// Requests of a level that are delayed.
    fn delayed(&self, level: usize, cx: &Cx) -> u32 {
        if self.delays { cx.queued(self.live(level) + 1) } else { 0 }
    }

    /// Requests of a level.
    fn len(&self, level: usize, cx: &Cx) -> u32 {
        cx.queued(self.live(level)) + self.delayed(level, cx)
    }

    /// How many more requests may join the level of a lane.
    pub(super) fn room(&self, lane: u8, cx: &Cx) -> u32 {
        let level = usize::from(lane) / if self.delays { 2 } else { 1 };
        match self.policies[level].max_queue_size {
            0 => u32::MAX,
            most => most.saturating_sub(self.len(level, cx)),
        }
    }

    /// When a request expires.
    fn deadline(&self, level: usize, rid: Rid, cx: &Cx) -> Option<Nanos> {
        let policy = &self.policies[level];
        if policy.default_timeout_microseconds == 0 {
            return None;
        }
        let default = Nanos(policy.default_timeout_microseconds.saturating_mul(1_000));
        let own = cx.kind(rid).timeout;
        let timeout = if policy.allow_timeout_override { own.min(default) } else { default };
        Some(cx.arrival(rid).plus(timeout))
    }

    /// Refuses every expired request of the levels that reject; says whether there was one.
    pub(super) fn refuse_expired(&self, cx: &mut Cx) -> bool {
        let mut any = false;
        for level in 0..self.count() {
            if self.policies[level].timeout_action != TimeoutAction::Reject {
                continue;
            }
            let (lane, mut at) = (self.live(level), 0);
            while let Some(rid) = cx.waiting(lane, at) {
                if self.deadline(level, rid, cx).is_some_and(|deadline| cx.now() > deadline) {
                    cx.refuse(lane, at, Gone::Expired, false);
                    any = true;
                } else {
                    at += 1;
                }
            }
        }
        any
    }
}

/// Where a scan stands. Without timeouts each scan begins anew; with them it goes on from here
/// as long as nothing has expired, so that only new requests are examined.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    level: usize,
    at: u32,
    /// Requests scanned.
    pub(super) count: u32,
    /// Items of those.
    pub(super) pending: u32,
    /// Arrival of the oldest of them.
    pub(super) oldest: Nanos,
    /// The earliest deadline among them.
    pub(super) closest: Option<Nanos>,
    at_delayed: bool,
    valid: bool,
}

impl Cursor {
    /// Whether the scan can go on from here.
    pub(super) fn holds(&self, now: Nanos) -> bool {
        self.valid && self.closest.is_some_and(|closest| now < closest)
    }

    pub(super) fn reset(&mut self) {
        *self = Self { valid: true, ..Self::default() };
    }

    /// This scan after `n` requests of one item each, the oldest of which came at `oldest`.
    pub(super) fn ahead(&self, n: u32, oldest: Nanos) -> Self {
        Self { at: n, count: n, pending: n, oldest, ..*self }
    }

    pub(super) fn forget(&mut self) {
        self.valid = false;
    }

    /// A request joined a level: a scan that has passed it is void.
    pub(super) fn joined(&mut self, level: usize) {
        if level < self.level || (level == self.level && self.at_delayed) {
            self.valid = false;
        }
    }

    /// The request here.
    #[inline]
    fn lane_and_place(&self, levels: &Levels, cx: &Cx) -> (u8, u32, bool) {
        let live = levels.live(self.level);
        let n = cx.queued(live);
        if self.at < n { (live, self.at, true) } else { (live + 1, self.at - n, false) }
    }

    #[inline]
    pub(super) fn request(&self, levels: &Levels, cx: &Cx) -> Option<Rid> {
        let (lane, place, live) = self.lane_and_place(levels, cx);
        if !live && !levels.delays {
            return None;
        }
        cx.waiting(lane, place)
    }

    /// Steps over the request here.
    #[inline]
    pub(super) fn advance(&mut self, rid: Rid, levels: &Levels, cx: &Cx) {
        let arrival = cx.arrival(rid);
        if levels.expire {
            let live = cx.queued(levels.live(self.level));
            if self.at < live
                && let Some(deadline) = levels.deadline(self.level, rid, cx)
            {
                self.closest = Some(self.closest.map_or(deadline, |c| c.min(deadline)));
            }
            self.at_delayed = self.at + 1 > live;
        }
        self.oldest = if self.count == 0 { arrival } else { self.oldest.min(arrival) };
        self.at += 1;
        self.count += 1;
    }

    /// Takes what has expired out of the way, and goes to the next level where this one is done.
    #[inline]
    pub(super) fn apply_policy(&mut self, levels: &Levels, total: u32, cx: &mut Cx) {
        if !levels.expire && levels.count() == 1 {
            return;
        }
        self.apply_policies(levels, total, cx);
    }

    fn apply_policies(&mut self, levels: &Levels, total: u32, cx: &mut Cx) {
        let mut gone = 0;
        while self.level < levels.count() {
            let lane = levels.live(self.level);
            while let Some(rid) = cx.waiting(lane, self.at)
                && levels.deadline(self.level, rid, cx).is_some_and(|d| cx.now() > d)
            {
                match levels.policies[self.level].timeout_action {
                    TimeoutAction::Delay => cx.shift(lane, self.at, lane + 1),
                    TimeoutAction::Reject => {
                        cx.refuse(lane, self.at, Gone::Expired, false);
                        gone += 1;
                    }
                }
            }
            let here = self.at < levels.len(self.level, cx);
            if here || total <= self.count + gone {
                return;
            }
            self.level += 1;
            self.at = 0;
        }
    }
}

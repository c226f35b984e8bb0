//! What the batcher thread decides when it looks at the queue.

use super::former::Former;
use super::scan::Cursor;
use crate::engine::Cx;
use crate::time::Nanos;

impl Former {
    /// What leaves now: `None` with the cursor behind it; or how long to wait.
    pub(super) fn plan(&mut self, cx: &mut Cx) -> Option<Nanos> {
        if self.simple && cx.unit_items() {
            return self.plan_by_count(cx);
        }
        if !self.cursor.holds(cx.now()) {
            self.cursor.reset();
        }
        let base = self.base(cx);
        let largest = self.preferred.last().copied().unwrap_or(self.max);
        let (mut best, mut mark, mut send_now) = (0, self.cursor, false);
        let total = self.waiting(cx);
        self.cursor.apply_policy(&self.levels, total, cx);
        while self.cursor.count < self.waiting(cx)
            && let Some(rid) = self.cursor.request(&self.levels, cx)
        {
            let kind = cx.kind(rid);
            let sum = base + self.cursor.pending + kind.items;
            if base + self.cursor.count == 0 {
                self.shape = kind.shape;
            } else {
                if sum > largest && best == 0 {
                    (best, mark, self.saturated) = (self.cursor.pending, self.cursor, true);
                }
                if sum > self.max {
                    send_now = true;
                    break;
                }
                if self.enforce_shapes && kind.shape != self.shape {
                    (send_now, self.closed) = (true, true);
                    break;
                }
            }
            self.cursor.pending += kind.items;
            self.cursor.advance(rid, &self.levels, cx);
            let total = self.waiting(cx);
            self.cursor.apply_policy(&self.levels, total, cx);
            if self.preferred.binary_search(&sum).is_ok() {
                (best, mark) = (self.cursor.pending, self.cursor);
            }
        }
        self.decide(base, largest, best, mark, send_now, cx)
    }

    /// The same where requests are told apart by nothing but their number: no look at each.
    fn plan_by_count(&mut self, cx: &Cx) -> Option<Nanos> {
        let queued = cx.queued(0);
        let base = self.base(cx);
        let largest = self.preferred.last().copied().unwrap_or(self.max);
        let room = self.max - base;
        let taken = queued.min(room);
        let send_now = queued > room;
        let best = if base >= largest {
            // Nothing preferred can be reached: the scan stops at the second request.
            self.saturated |= queued > 0;
            u32::from(queued > 1 && room > 0)
        } else {
            let reached = |&&size: &&u32| size > base && size <= base + taken;
            self.preferred.iter().rev().find(reached).map_or(0, |size| size - base)
        };
        let oldest = cx.oldest_arrival(0).unwrap_or(Nanos::ZERO);
        self.cursor.reset();
        let mark = self.cursor.ahead(best, oldest);
        self.cursor = self.cursor.ahead(taken, oldest);
        self.decide(base, largest, best, mark, send_now, cx)
    }

    fn decide(
        &mut self,
        base: u32,
        largest: u32,
        best: u32,
        mark: Cursor,
        send_now: bool,
        cx: &Cx,
    ) -> Option<Nanos> {
        let held = self.delay > Nanos::ZERO;
        let age = Nanos(cx.now().0 - self.cursor.oldest.0);
        let exceeded = held && (self.cursor.count == 0 || age >= self.delay);
        if best > 0 && !exceeded {
            self.saturated |= !held;
            self.cursor = mark;
            return None;
        }
        if self.cursor.count == 0 {
            return None;
        }
        let sum = base + self.cursor.pending;
        if send_now || sum >= largest {
            self.full = send_now && !self.closed;
            self.saturated = true;
            return None;
        }
        if exceeded || !held {
            return None;
        }
        let next = self.preferred.iter().copied().find(|&size| size > sum);
        let next = next.or(self.preferred.first().copied()).unwrap_or(self.max);
        self.next_preferred = next.saturating_sub(base);
        if !self.saturated && base > 0 && self.preferred.binary_search(&base).is_err() {
            return None;
        }
        let wait = Nanos(self.delay.0 - age.0);
        let wait = match self.cursor.closest {
            Some(closest) if cx.now() <= closest => wait.min(Nanos(closest.0 - cx.now().0)),
            Some(_) => Nanos(1_000),
            None => wait,
        };
        Some(wait.max(Nanos(1)))
    }
}

//! What a policy sees of the server.

use super::cx::{Bid, Cx, Slot};
use super::kind::Kind;
use super::requests::{Rid, Span};
use crate::time::Nanos;
use rand::Rng;

impl Cx {
    /// The present moment.
    #[inline(always)]
    #[must_use]
    pub fn now(&self) -> Nanos {
        Nanos(self.now_ns)
    }

    /// Whether the last request has arrived: nothing a rule waits for will come any more.
    #[inline(always)]
    #[must_use]
    pub fn draining(&self) -> bool {
        self.draining
    }

    /// Requests waiting in a lane.
    #[inline(always)]
    #[must_use]
    pub fn queued(&self, lane: u8) -> u32 {
        self.lanes[usize::from(lane)].len()
    }

    /// When the oldest request of a lane arrived.
    #[inline(always)]
    #[must_use]
    pub fn oldest_arrival(&self, lane: u8) -> Option<Nanos> {
        let rid = self.lanes[usize::from(lane)].front()?;
        Some(Nanos(self.requests.arrived_ns(rid)))
    }

    /// The `at`-th waiting request of a lane, from the front.
    #[must_use]
    pub fn waiting(&self, lane: u8, at: u32) -> Option<Rid> {
        self.lanes[usize::from(lane)].get(at)
    }

    /// When a live request arrived.
    #[must_use]
    pub fn arrival(&self, rid: Rid) -> Nanos {
        Nanos(self.requests.arrived_ns(rid))
    }

    /// The tag of a live request.
    #[must_use]
    pub fn tag(&self, rid: Rid) -> u8 {
        self.requests.tag(rid)
    }

    /// What a live request says of itself.
    #[inline(always)]
    #[must_use]
    pub fn kind(&self, rid: Rid) -> Kind {
        self.kinds.of(self.requests.tag(rid))
    }

    /// Whether every request carries one item.
    #[inline(always)]
    #[must_use]
    pub fn unit_items(&self) -> bool {
        self.kinds.unit()
    }

    /// Whether all requests have the same shape.
    #[must_use]
    pub fn one_shape(&self) -> bool {
        self.kinds.one_shape()
    }

    /// Whether any request can expire.
    #[inline(always)]
    #[must_use]
    pub fn any_timeout(&self) -> bool {
        self.kinds.expire()
    }

    /// When a live request has waited as long as its source allows, if it is limited.
    #[must_use]
    pub fn deadline(&self, rid: Rid) -> Option<Nanos> {
        let timeout = self.kind(rid).timeout;
        (timeout < Nanos::MAX).then(|| self.arrival(rid).plus(timeout))
    }

    /// How many requests at the front of a lane fit into `room` items, none skipped, and how many
    /// items they are.
    #[inline(always)]
    #[must_use]
    pub fn fitting(&self, lane: u8, room: u32) -> (u32, u32) {
        if self.kinds.unit() {
            let n = self.queued(lane).min(room);
            return (n, n);
        }
        let (mut n, mut items) = (0, 0);
        for rid in self.lanes[usize::from(lane)].spans().flat_map(Span::rids) {
            let more = self.kind(rid).items;
            if items + more > room {
                break;
            }
            (n, items) = (n + 1, items + more);
        }
        (n, items)
    }

    /// The instance that has been idle longest (the lowest number among equals).
    #[inline(always)]
    #[must_use]
    pub fn idle_slot(&self) -> Option<Slot> {
        if self.idle == 0 {
            return None;
        }
        let mut best: Option<(u64, Slot)> = None;
        for (slot, instance) in (0..).zip(&self.slots) {
            if instance.running.is_none() && best.is_none_or(|(t, _)| instance.free_since_ns < t) {
                best = Some((instance.free_since_ns, slot));
            }
        }
        best.map(|(_, slot)| slot)
    }

    /// How many instances are idle.
    #[inline(always)]
    #[must_use]
    pub fn idle_slots(&self) -> u32 {
        self.idle
    }

    /// How many instances there are.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Whether an instance is idle.
    #[must_use]
    pub fn is_idle(&self, slot: Slot) -> bool {
        self.slots[slot as usize].running.is_none()
    }

    /// Requests in a batch.
    #[must_use]
    pub fn size(&self, batch: Bid) -> u32 {
        self.batches[batch.0 as usize].size
    }

    /// Items in a batch.
    #[inline(always)]
    #[must_use]
    pub fn items(&self, batch: Bid) -> u32 {
        self.batches[batch.0 as usize].items
    }

    /// The members of a batch, in order.
    pub fn members(&self, batch: Bid) -> impl Iterator<Item = Rid> + '_ {
        self.batches[batch.0 as usize].spans.iter().flat_map(|s| s.rids())
    }

    /// A random number from the policy's own substream.
    pub fn random(&mut self) -> u64 {
        self.rng.next_u64()
    }
}

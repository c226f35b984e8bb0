//! A flight recorder: what a run did with every request, for explanations.

use super::{Bid, Cx, Kind, Rid, Slot};
use crate::policy::{Batcher, Event, Interest, Law, Promises, Reason};
use crate::time::Nanos;
use std::collections::BTreeMap;
use std::ops::Range;

/// A request that left in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its arrival at the server, ns.
    pub arrival_ns: u64,
    /// When it was put into a batch, its own or one that was merged into that, ns; the batch may
    /// have waited for an instance since.
    pub formed_ns: u64,
    /// Items it carries.
    pub items: u32,
}

/// A batch that left for an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// When it left, ns; the pass itself begins one dispatch later.
    pub left_ns: u64,
    /// How long the pass took, ns; `None` where time was cut before its end.
    pub took_ns: Option<u64>,
    /// The instance.
    pub slot: Slot,
    /// Items in it.
    pub size: u32,
    /// The padded size that was paid for.
    pub ran_as: u32,
    /// Why it left.
    pub reason: Reason,
    /// Its members, as a range of [`Flight::members`].
    pub members: Range<usize>,
}

/// What a run did, batch by batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flight {
    /// Batches in the order in which they left.
    pub passes: Vec<Pass>,
    /// Members of the first batch, then of the second, ….
    pub members: Vec<Member>,
    /// Whether answers leave in the order of the batches.
    pub in_order: bool,
}

impl Flight {
    /// The members of a batch.
    #[must_use]
    pub fn of(&self, pass: &Pass) -> &[Member] {
        self.members.get(pass.members.clone()).unwrap_or_default()
    }
}

/// A policy that is watched while it works, and not changed by that.
#[derive(Debug)]
pub struct Watched<B> {
    inner: B,
    flight: Flight,
    /// The pass of each busy instance.
    running: BTreeMap<Slot, usize>,
    /// Since when requests have been in batches that have not left.
    formed: BTreeMap<Rid, u64>,
}

impl<B: Batcher> Watched<B> {
    /// Watches a policy.
    pub fn new(inner: B) -> Self {
        let flight = Flight { in_order: inner.answers_in_order(), ..Flight::default() };
        Self { inner, flight, running: BTreeMap::new(), formed: BTreeMap::new() }
    }

    /// What happened.
    pub fn flight(self) -> Flight {
        self.flight
    }

    /// Notes what the policy has just commanded.
    fn look(&mut self, cx: &Cx) {
        for at in 0..cx.started.len() {
            let (bid, slot) = cx.started[at];
            self.left(bid, slot, cx);
        }
        let mut formed = BTreeMap::new();
        for rid in cx.unstarted() {
            let since = self.formed.get(&rid).copied().unwrap_or(cx.now_ns);
            formed.insert(rid, since);
        }
        self.formed = formed;
    }

    fn left(&mut self, bid: Bid, slot: Slot, cx: &Cx) {
        let from = self.flight.members.len();
        for rid in cx.members(bid) {
            self.flight.members.push(Member {
                arrival_ns: cx.arrival(rid).0,
                formed_ns: self.formed.get(&rid).copied().unwrap_or(cx.now_ns),
                items: cx.kind(rid).items,
            });
        }
        let batch = cx.batch(bid);
        self.running.insert(slot, self.flight.passes.len());
        self.flight.passes.push(Pass {
            left_ns: cx.now_ns,
            took_ns: None,
            slot,
            size: batch.items,
            ran_as: batch.ran_as,
            reason: batch.reason,
            members: from..self.flight.members.len(),
        });
    }

    fn done(&mut self, slot: Slot, took: Nanos) {
        let pass = self.running.remove(&slot).and_then(|at| self.flight.passes.get_mut(at));
        if let Some(pass) = pass {
            pass.took_ns = Some(took.0);
        }
    }
}

impl<B: Batcher> Batcher for Watched<B> {
    fn promises(&self) -> Promises {
        self.inner.promises()
    }

    fn lanes(&self) -> u8 {
        self.inner.lanes()
    }

    fn lane(&self, kind: Kind) -> u8 {
        self.inner.lane(kind)
    }

    fn largest_request(&self) -> u32 {
        self.inner.largest_request()
    }

    fn room(&self, lane: u8, cx: &Cx) -> u32 {
        self.inner.room(lane, cx)
    }

    fn room_varies(&self) -> bool {
        self.inner.room_varies()
    }

    fn places(&self, cx: &Cx) -> u32 {
        self.inner.places(cx)
    }

    fn hears_arrivals(&self) -> bool {
        self.inner.hears_arrivals()
    }

    fn answers_in_order(&self) -> bool {
        self.inner.answers_in_order()
    }

    fn on(&mut self, event: Event, cx: &mut Cx) {
        if let Event::Done { slot, took, .. } = event {
            self.done(slot, took);
        }
        self.inner.on(event, cx);
    }

    fn settle(&mut self, cx: &mut Cx) -> Interest {
        let interest = self.inner.settle(cx);
        self.look(cx);
        interest
    }

    fn law(&self) -> Option<Law> {
        self.inner.law()
    }
}

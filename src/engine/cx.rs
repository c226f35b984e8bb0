//! What a policy sees and commands.

use super::kind::Kinds;
use super::requests::{Columns, Queue, Rid, Span};
use crate::policy::Reason;
use crate::record::Gone;
use crate::rng::SimRng;
use crate::time::Nanos;

/// A batch that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bid(pub(super) u32);

/// Number of an instance, from 0.
pub type Slot = u32;

/// Name a policy gives a timer.
pub type Key = u32;

/// Where requests go back into a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Before everything that waits.
    Front,
    /// Behind everything that waits.
    Back,
    /// In order of arrival.
    ByArrival,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Open,
    Sealed,
    Running,
}

#[derive(Debug)]
pub(crate) struct Batch {
    state: State,
    pub(crate) spans: Vec<Span>,
    /// Requests in it.
    pub(crate) size: u32,
    /// Items in it.
    pub(crate) items: u32,
    pub(crate) ran_as: u32,
    pub(crate) reason: Reason,
    pub(crate) start_ns: u64,
    pub(crate) took_ns: u64,
    /// When its pass was over, while its answers are held back.
    pub(crate) done_ns: u64,
    pub(crate) slot: Slot,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Instance {
    /// The batch that runs.
    pub(crate) running: Option<Bid>,
    /// Since when it has been idle.
    pub(crate) free_since_ns: u64,
}

/// The server as a policy sees it, and the commands it understands.
///
/// The engine checks each command: taking from a batch that runs, starting on a busy instance or
/// starting an empty batch are programming errors of the policy and stop the run.
#[derive(Debug)]
pub struct Cx {
    pub(crate) now_ns: u64,
    pub(crate) draining: bool,
    pub(crate) requests: Columns,
    pub(crate) lanes: Vec<Queue>,
    pub(crate) batches: Vec<Batch>,
    spare: Vec<Bid>,
    pub(crate) slots: Vec<Instance>,
    pub(super) idle: u32,
    pub(crate) timers: Vec<(u64, Key)>,
    /// Batches started since the engine last looked.
    pub(crate) started: Vec<(Bid, Slot)>,
    /// Requests refused since the engine last looked.
    pub(crate) refused: Vec<(Rid, Gone, bool)>,
    pub(crate) commands: u64,
    pub(super) kinds: Kinds,
    pub(super) rng: SimRng,
}

impl Cx {
    pub(crate) fn new(lanes: u8, instances: u32, kinds: Kinds, rng: SimRng) -> Self {
        let idle = Instance { running: None, free_since_ns: 0 };
        Self {
            now_ns: 0,
            draining: false,
            requests: Columns::new(),
            lanes: (0..lanes.max(1)).map(|_| Queue::default()).collect(),
            batches: Vec::new(),
            spare: Vec::new(),
            slots: vec![idle; instances as usize],
            idle: instances,
            timers: Vec::new(),
            started: Vec::new(),
            refused: Vec::new(),
            commands: 0,
            kinds,
            rng,
        }
    }

    // --- commands ---

    /// Opens an empty batch.
    #[inline(always)]
    pub fn open(&mut self) -> Bid {
        self.commands += 1;
        if let Some(bid) = self.spare.pop() {
            self.batches[bid.0 as usize].state = State::Open;
            return bid;
        }
        let bid = Bid(u32::try_from(self.batches.len()).unwrap_or(u32::MAX));
        self.batches.push(Batch {
            state: State::Open,
            spans: Vec::new(),
            size: 0,
            items: 0,
            ran_as: 0,
            reason: Reason::Idle,
            start_ns: 0,
            took_ns: 0,
            done_ns: 0,
            slot: 0,
        });
        bid
    }

    /// Moves the `n` oldest requests of a lane into an open batch; returns how many there were.
    #[inline(always)]
    pub fn take(&mut self, batch: Bid, lane: u8, n: u32) -> u32 {
        self.commands += 1;
        let batch = &mut self.batches[batch.0 as usize];
        assert!(batch.state == State::Open, "take into a batch that is not open");
        let before = batch.spans.len();
        let taken = self.lanes[usize::from(lane)].take(n, &mut batch.spans);
        batch.size += taken;
        batch.items += if self.kinds.unit() {
            taken
        } else {
            items(&self.kinds, &self.requests, &batch.spans[before..])
        };
        taken
    }

    /// Takes requests that have not expired while they fit into `room` items, refusing the expired
    /// ones it meets on the way, as servers do that notice a timeout when they take a request from
    /// the queue; returns how many there were.
    #[inline(always)]
    pub fn take_live(&mut self, batch: Bid, lane: u8, room: u32) -> u32 {
        if self.kinds.unit() && !self.kinds.expire() {
            return self.take(batch, lane, room);
        }
        let (mut taken, mut room) = (0, room);
        while room > 0 {
            let Some(rid) = self.lanes[usize::from(lane)].front() else {
                break;
            };
            if self.deadline(rid).is_some_and(|deadline| self.now() > deadline) {
                self.refuse(lane, 0, Gone::Expired, false);
                continue;
            }
            let items = self.kind(rid).items;
            if items > room {
                break;
            }
            room -= items;
            taken += self.take(batch, lane, 1);
        }
        taken
    }

    /// Moves all but the first `keep` members of an unstarted batch into a new open one.
    pub fn split(&mut self, batch: Bid, keep: u32) -> Bid {
        let rest = self.open();
        let moved = self.cut(batch, keep);
        self.append(rest, moved);
        rest
    }

    /// Puts all but the first `keep` members of an unstarted batch back at the front of a lane.
    pub fn trim(&mut self, batch: Bid, keep: u32, lane: u8) {
        self.commands += 1;
        for span in self.cut(batch, keep).into_iter().rev() {
            self.lanes[usize::from(lane)].push_front(span);
        }
    }

    /// Appends an unstarted batch to another; it no longer exists.
    pub fn merge(&mut self, into: Bid, from: Bid) {
        self.commands += 1;
        let moved = self.cut(from, 0);
        self.release(from);
        let state = self.batches[into.0 as usize].state;
        assert!(matches!(state, State::Open | State::Sealed), "merge into a started batch");
        self.append(into, moved);
    }

    /// Closes an open batch: nothing more can be taken into it.
    pub fn seal(&mut self, batch: Bid) {
        self.commands += 1;
        let batch = &mut self.batches[batch.0 as usize];
        assert!(batch.state == State::Open, "seal of a batch that is not open");
        batch.state = State::Sealed;
    }

    /// Starts a batch on an idle instance, paying for `ran_as` items.
    #[inline(always)]
    pub fn start(&mut self, bid: Bid, slot: Slot, ran_as: u32, reason: Reason) {
        self.commands += 1;
        let instance = &mut self.slots[slot as usize];
        assert!(instance.running.is_none(), "start on a busy instance");
        let batch = &mut self.batches[bid.0 as usize];
        assert!(matches!(batch.state, State::Open | State::Sealed), "start of a started batch");
        assert!(batch.size > 0 && ran_as >= batch.items, "start of an empty or oversized batch");
        batch.state = State::Running;
        batch.ran_as = ran_as;
        batch.reason = reason;
        batch.slot = slot;
        instance.running = Some(bid);
        self.idle -= 1;
        self.started.push((bid, slot));
    }

    /// Gives up an unstarted batch: its members go back into a lane.
    pub fn requeue(&mut self, batch: Bid, lane: u8, position: Position) {
        self.commands += 1;
        let spans = self.cut(batch, 0);
        self.release(batch);
        let lane = &mut self.lanes[usize::from(lane)];
        match position {
            Position::Back => spans.into_iter().for_each(|s| lane.push_back(s)),
            Position::Front => spans.into_iter().rev().for_each(|s| lane.push_front(s)),
            Position::ByArrival => {
                let mut all: Vec<Rid> = lane.spans().chain(spans).flat_map(Span::rids).collect();
                // Numbers run in order of arrival; the wrapped difference keeps that order.
                let next = self.requests.next;
                all.sort_by_key(|rid| std::cmp::Reverse(next.wrapping_sub(*rid)));
                *lane = Queue::default();
                all.into_iter().for_each(|first| lane.push_back(Span { first, len: 1 }));
            }
        }
    }

    /// Refuses the `at`-th waiting request of a lane, from the front; `silent` tells its client
    /// nothing.
    pub fn refuse(&mut self, lane: u8, at: u32, why: Gone, silent: bool) {
        self.commands += 1;
        if let Some(rid) = self.lanes[usize::from(lane)].remove(at) {
            self.refused.push((rid, why, silent));
        }
    }

    /// Tells the client of a member of a batch that it will get no answer. An unstarted batch
    /// loses the member; a pass that has begun is paid for as it is.
    pub fn give_up(&mut self, batch: Bid, rid: Rid, why: Gone) {
        let items = self.kind(rid).items;
        let batch = &mut self.batches[batch.0 as usize];
        let offset = |span: &Span| rid.wrapping_sub(span.first);
        let Some(at) = batch.spans.iter().position(|span| offset(span) < span.len) else {
            return;
        };
        self.commands += 1;
        let Span { first, len } = batch.spans[at];
        let before = rid.wrapping_sub(first);
        let around = [
            Span { first, len: before },
            Span { first: rid.wrapping_add(1), len: len - before - 1 },
        ];
        batch.spans.splice(at..=at, around.into_iter().filter(|span| span.len > 0));
        if batch.state != State::Running {
            batch.size -= 1;
            batch.items -= items;
        }
        self.refused.push((rid, why, false));
    }

    /// Moves the `at`-th waiting request of a lane to the back of another.
    pub fn shift(&mut self, lane: u8, at: u32, to: u8) {
        self.commands += 1;
        if let Some(first) = self.lanes[usize::from(lane)].remove(at) {
            self.lanes[usize::from(to)].push_back(Span { first, len: 1 });
        }
    }

    /// Sets a timer, replacing the one of the same key; the policy hears it at that moment.
    #[inline(always)]
    pub fn timer(&mut self, key: Key, at: Nanos) {
        self.commands += 1;
        match self.timers.iter_mut().find(|(_, k)| *k == key) {
            Some(timer) => timer.0 = at.0,
            None => self.timers.push((at.0, key)),
        }
    }

    /// Cancels a timer, if it is set.
    #[inline(always)]
    pub fn cancel(&mut self, key: Key) {
        if let Some(at) = self.timers.iter().position(|(_, k)| *k == key) {
            self.commands += 1;
            self.timers.swap_remove(at);
        }
    }

    // --- for the engine ---

    /// Members of an unstarted batch beyond the first `keep`.
    fn cut(&mut self, bid: Bid, keep: u32) -> Vec<Span> {
        let batch = &mut self.batches[bid.0 as usize];
        assert!(matches!(batch.state, State::Open | State::Sealed), "change of a started batch");
        let mut all = Queue::default();
        batch.spans.drain(..).for_each(|span| all.push_back(span));
        batch.size = all.take(keep, &mut batch.spans);
        batch.items = items(&self.kinds, &self.requests, &batch.spans);
        all.spans().collect()
    }

    /// Adds members to a batch.
    fn append(&mut self, batch: Bid, spans: Vec<Span>) {
        let batch = &mut self.batches[batch.0 as usize];
        batch.size += spans.iter().map(|s| s.len).sum::<u32>();
        batch.items += items(&self.kinds, &self.requests, &spans);
        batch.spans.extend(spans);
    }

    /// The timer that fires next, and where it is kept; at one moment the lowest key comes first.
    #[inline(always)]
    pub(crate) fn next_timer(&self) -> Option<(usize, (u64, Key))> {
        self.timers.iter().copied().enumerate().min_by_key(|(_, timer)| *timer)
    }

    /// Frees a batch for reuse.
    #[inline(always)]
    pub(crate) fn release(&mut self, bid: Bid) {
        let batch = &mut self.batches[bid.0 as usize];
        batch.state = State::Free;
        batch.spans.clear();
        batch.done_ns = 0;
        batch.size = 0;
        batch.items = 0;
        self.spare.push(bid);
    }

    #[inline(always)]
    pub(crate) fn batch(&self, bid: Bid) -> &Batch {
        &self.batches[bid.0 as usize]
    }

    #[inline(always)]
    pub(crate) fn batch_mut(&mut self, bid: Bid) -> &mut Batch {
        &mut self.batches[bid.0 as usize]
    }

    #[inline(always)]
    pub(crate) fn set_idle(&mut self, slot: Slot) {
        self.slots[slot as usize] = Instance { running: None, free_since_ns: self.now_ns };
        self.idle += 1;
    }

    /// Requests waiting where an interest looks.
    #[inline(always)]
    pub(crate) fn watched(&self, lane: u8) -> u32 {
        // No queue has the number of `Interest::ANY_LANE`.
        match self.lanes.get(usize::from(lane)) {
            Some(queue) => queue.len(),
            None => self.lanes.iter().map(Queue::len).sum(),
        }
    }

    /// Requests waiting in any lane.
    pub(crate) fn waiting_total(&self) -> u64 {
        self.lanes.iter().map(|lane| u64::from(lane.len())).sum()
    }

    /// Every request that waits or is in a batch, started or not.
    pub(crate) fn live(&self) -> impl Iterator<Item = Span> + '_ {
        let batches = self.batches.iter().filter(|b| b.state != State::Free);
        self.lanes.iter().flat_map(Queue::spans).chain(batches.flat_map(|b| b.spans.clone()))
    }

    /// Every request in a batch that has not started.
    pub(super) fn unstarted(&self) -> impl Iterator<Item = Rid> + '_ {
        let waits = |b: &&Batch| matches!(b.state, State::Open | State::Sealed);
        self.batches.iter().filter(waits).flat_map(|b| b.spans.iter().flat_map(|s| s.rids()))
    }

    /// Adds arrivals to a lane, in order.
    #[inline(always)]
    pub(crate) fn admit(&mut self, lane: u8, times: &[u64], tags: &[u8]) {
        if self.requests.room() < times.len() {
            self.make_room(times.len());
        }
        let span = Span { first: self.requests.next, len: times.len() as u32 };
        self.requests.push(times, tags);
        self.lanes[usize::from(lane)].push_back(span);
    }

    #[cold]
    fn make_room(&mut self, n: usize) {
        while self.requests.room() < n {
            let next = self.requests.next;
            // The longest distance back from the next number is the oldest live request.
            let oldest = self.live().map(|s| next.wrapping_sub(s.first)).max().unwrap_or(0);
            self.requests.reclaim(next.wrapping_sub(oldest));
        }
    }
}

/// Items of all requests in some spans.
fn items(kinds: &Kinds, requests: &Columns, spans: &[Span]) -> u32 {
    if kinds.unit() {
        return spans.iter().map(|s| s.len).sum();
    }
    spans.iter().flat_map(|s| s.rids()).map(|rid| kinds.of(requests.tag(rid)).items).sum()
}

impl Span {
    pub(crate) fn rids(self) -> impl Iterator<Item = Rid> {
        (0..self.len).map(move |i| self.first.wrapping_add(i))
    }
}

//! The event engine: any policy, any mix of sources.
//!
//! Arrivals are a sorted stream and never enter an agenda; the agenda holds one completion per
//! busy instance and a few timers. While the policy is deaf to arrivals they are absorbed in
//! blocks, so that the cost per request is that of copying it and of recording its latency.
//!
//! Order at one instant, a contract: all arrivals, then completions, then arrivals caused by
//! them, then timers; then the policy settles.

use super::inflow::{Inflow, Taker};
use super::requests::Span;
use super::{Bid, Cx, Ending, Rules, Slot, completion_ns};
use crate::cost::CostModel;
use crate::policy::{Batcher, Event, Interest};
use crate::record::{BatchRow, Gone, Recorder};
use crate::time::Nanos;
use std::collections::VecDeque;

/// Runs one replication to its end.
pub fn run<P: Batcher, C: CostModel, R: Recorder>(
    policy: &mut P,
    cost: &mut C,
    inflow: Inflow,
    rules: &Rules,
    recorder: &mut R,
) -> Ending {
    let rng = rules.policy_rng.clone();
    let cx = Cx::new(policy.lanes(), rules.instances, rules.kinds.clone(), rng);
    let wide_door = policy.lanes() == 1
        && !policy.hears_arrivals()
        && rules.kinds.most_items() <= policy.largest_request();
    let core = Core {
        wide_door,
        policy,
        cost,
        recorder,
        cx,
        agenda: Vec::new(),
        in_order: VecDeque::new(),
        rules,
        last_arrival_ns: 0,
        turned_away: Vec::new(),
    };
    Run { core, inflow, interest: Interest::NONE }.go()
}

/// Everything but the inflow, so that arrivals can be handed over without copying.
struct Core<'a, P, C, R> {
    policy: &'a mut P,
    cost: &'a mut C,
    recorder: &'a mut R,
    cx: Cx,
    /// Ends of passes and releases of instances, latest first.
    agenda: Vec<(u64, Step, Slot)>,
    /// Started batches that are not answered, where answers keep that order.
    in_order: VecDeque<Bid>,
    rules: &'a Rules,
    /// Whether arrivals go straight into the one queue, unheard.
    wide_door: bool,
    last_arrival_ns: u64,
    /// Tags of requests rejected since their callers were told.
    turned_away: Vec<u8>,
}

/// What happens to an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// It can take the next batch.
    Free,
    /// Its pass is over, and it is not free yet.
    Done,
    /// Its pass is over and it is free.
    DoneAndFree,
}

struct Run<'a, P, C, R> {
    core: Core<'a, P, C, R>,
    inflow: Inflow,
    interest: Interest,
}

impl<P: Batcher, C: CostModel, R: Recorder> Taker for Core<'_, P, C, R> {
    #[inline(always)]
    fn take(&mut self, times: &[u64], tags: &[u8]) {
        self.recorder.arrived(times);
        if let Some(&last) = times.last() {
            self.last_arrival_ns = last;
        }
        if self.wide_door {
            if self.policy.room_varies() {
                self.cx.now_ns = self.last_arrival_ns;
            }
            let room = self.room(0) as usize;
            if room < times.len() && self.policy.room_varies() {
                return self.one_by_one(times, tags);
            }
            let n = times.len().min(room);
            self.cx.admit(0, &times[..n], &tags[..n]);
            for (time, tag) in times[n..].iter().zip(&tags[n..]) {
                self.reject(*time, *tag);
            }
            return;
        }
        self.one_by_one(times, tags);
    }
}

impl<P: Batcher, C: CostModel, R: Recorder> Core<'_, P, C, R> {
    /// How many more requests may join a queue.
    #[inline(always)]
    fn room(&self, lane: u8) -> u32 {
        let here = self.policy.room(lane, &self.cx);
        if self.rules.queue_limit == u32::MAX {
            return here;
        }
        let waiting = u32::try_from(self.cx.waiting_total()).unwrap_or(u32::MAX);
        let limit = self.rules.queue_limit.saturating_add(self.policy.places(&self.cx));
        here.min(limit.saturating_sub(waiting))
    }

    /// Lets in, or rejects, each request at its own moment.
    fn one_by_one(&mut self, times: &[u64], tags: &[u8]) {
        for (time, tag) in times.iter().zip(tags) {
            self.cx.now_ns = *time;
            self.door(*time, *tag);
        }
    }

    #[cold]
    fn reject(&mut self, time: u64, tag: u8) {
        self.recorder.gone(time, tag, time, Gone::Rejected);
        self.turned_away.push(tag);
    }

    /// Lets one request in, or rejects it.
    fn door(&mut self, time: u64, tag: u8) {
        let kind = self.cx.kinds.of(tag);
        let lane = self.policy.lane(kind);
        if self.room(lane) == 0 || kind.items > self.policy.largest_request() {
            return self.reject(time, tag);
        }
        let rid = self.cx.requests.next;
        self.cx.admit(lane, &[time], &[tag]);
        if self.policy.hears_arrivals() {
            self.policy.on(Event::Arrived { rid, lane }, &mut self.cx);
        }
    }

    /// Earliest completion or timer.
    #[inline(always)]
    fn next_ns(&self) -> u64 {
        let completion = self.agenda.last().map_or(u64::MAX, |(at, ..)| *at);
        self.cx.timers.iter().fold(completion, |next, (at, _)| next.min(*at))
    }

    /// Pays for the batches the policy has started.
    #[inline(always)]
    fn launch(&mut self) {
        for at in 0..self.cx.started.len() {
            let (bid, slot) = self.cx.started[at];
            let took = self.cost.took_ns(slot, self.cx.batch(bid).ran_as);
            let now_ns = self.cx.now_ns;
            let batch = self.cx.batch_mut(bid);
            batch.took_ns = took;
            batch.start_ns = now_ns.saturating_add(self.rules.dispatch.0);
            let done = completion_ns(batch.start_ns, took);
            let held = self.rules.release != [Nanos::ZERO; 2];
            self.schedule(done, if held { Step::Done } else { Step::DoneAndFree }, slot);
            if self.policy.answers_in_order() {
                self.in_order.push_back(bid);
            }
        }
        self.cx.started.clear();
    }

    #[inline(always)]
    fn schedule(&mut self, at_ns: u64, step: Step, slot: Slot) {
        let at = self.agenda.partition_point(|entry| *entry > (at_ns, step, slot));
        self.agenda.insert(at, (at_ns, step, slot));
    }

    /// The next thing of this moment on the agenda.
    #[inline(always)]
    fn due(&mut self, now: u64) -> Option<(Step, Slot)> {
        let &(at, step, slot) = self.agenda.last().filter(|(at, ..)| *at == now)?;
        debug_assert_eq!(at, now);
        self.agenda.pop();
        Some((step, slot))
    }

    /// Takes an instance one step on.
    #[inline(always)]
    fn step(&mut self, step: Step, slot: Slot, inflow: &mut Inflow) {
        let Some(bid) = self.cx.slots[slot as usize].running else {
            return;
        };
        if step != Step::Free {
            self.done(bid, slot, inflow);
        }
        if step == Step::Done {
            let [fixed, each] = self.rules.release;
            let answers = u64::from(self.cx.batch(bid).size).saturating_mul(each.0);
            let free = completion_ns(self.cx.now_ns, fixed.0.saturating_add(answers));
            return self.schedule(free, Step::Free, slot);
        }
        let took = Nanos(self.cx.batch(bid).took_ns);
        self.cx.set_idle(slot);
        self.policy.on(Event::Done { slot, batch: bid, took }, &mut self.cx);
        if !self.in_order.contains(&bid) {
            self.cx.release(bid);
        }
    }

    /// The pass of a batch is over: its requests are answered, in their turn where that is kept.
    #[inline(always)]
    fn done(&mut self, bid: Bid, slot: Slot, inflow: &mut Inflow) {
        if !self.policy.answers_in_order() {
            return self.answer(bid, slot, 0, inflow);
        }
        self.cx.batch_mut(bid).done_ns = self.cx.now_ns;
        while let Some(&first) = self.in_order.front() {
            let batch = self.cx.batch(first);
            if batch.done_ns == 0 {
                return;
            }
            let (held, slot) = (self.cx.now_ns - batch.done_ns, batch.slot);
            self.in_order.pop_front();
            self.answer(first, slot, held, inflow);
            if self.cx.slots[slot as usize].running != Some(first) {
                self.cx.release(first);
            }
        }
    }

    /// Lets the policy act until it has nothing more to command.
    #[inline(always)]
    fn settle(&mut self, inflow: &mut Inflow) -> Interest {
        loop {
            let before = self.cx.commands;
            let interest = self.policy.settle(&mut self.cx);
            self.launch();
            if !self.cx.refused.is_empty() {
                self.tell_refused(inflow);
            }
            if self.cx.commands == before {
                return interest;
            }
        }
    }

    #[cold]
    fn tell_refused(&mut self, inflow: &mut Inflow) {
        let now = self.cx.now_ns;
        for (rid, why, silent) in std::mem::take(&mut self.cx.refused) {
            let tag = self.cx.requests.tag(rid);
            self.recorder.gone(self.cx.requests.arrived_ns(rid), tag, now, why);
            if !silent {
                inflow.answered(tag, now, true);
            }
        }
    }

    /// Tells of a batch whose requests are answered now.
    #[inline(always)]
    fn answer(&mut self, bid: Bid, slot: Slot, held_ns: u64, inflow: &mut Inflow) {
        let batch = self.cx.batch(bid);
        let row = BatchRow {
            size: batch.items,
            ran_as: batch.ran_as,
            slot,
            start_ns: batch.start_ns,
            took_ns: batch.took_ns,
            held_ns,
            reason: batch.reason,
        };
        let mut first = true;
        for span in &batch.spans {
            for (times, tags, n) in self.cx.requests.ahead(*span) {
                if n > 0 {
                    self.recorder.completed_ahead(&row, times, tags, n, first);
                    first = false;
                }
            }
        }
        if first {
            // Everybody in it has given up.
            self.recorder.completed(&row, &[], &[], true);
        }
        if inflow.loops.is_some() {
            for rid in self.cx.batch(bid).spans.iter().flat_map(|s| s.rids()) {
                inflow.answered(self.cx.requests.tag(rid), self.cx.now_ns, false);
            }
        }
        // Its instance may be held for longer; the requests are gone.
        self.cx.batch_mut(bid).spans.clear();
    }

    /// Reports everything still in the server.
    fn unfinished(&mut self) {
        let now = self.cx.now_ns;
        for span in self.cx.live().collect::<Vec<Span>>() {
            for (times, tags) in self.cx.requests.pieces(span) {
                for (time, tag) in times.iter().zip(tags) {
                    self.recorder.gone(*time, *tag, now, Gone::Unfinished);
                }
            }
        }
    }
}

impl<P: Batcher, C: CostModel, R: Recorder> Run<'_, P, C, R> {
    fn go(mut self) -> Ending {
        let stop = self.core.rules.cut_ns.unwrap_or(u64::MAX);
        self.notice_last_arrival();
        self.interest = self.core.settle(&mut self.inflow);
        loop {
            let agenda = self.core.next_ns();
            let now = self.absorb(agenda.min(stop)).unwrap_or(agenda);
            if now > stop || now == u64::MAX {
                return self.finish();
            }
            self.instant(now);
        }
    }

    /// Absorbs arrivals up to `until`, but stops where the policy wants to be woken or where
    /// the last one came; returns that moment.
    #[inline(always)]
    fn absorb(&mut self, until: u64) -> Option<u64> {
        let Interest { lane, at_least } = self.interest;
        loop {
            let wanted = at_least.saturating_sub(self.core.cx.watched(lane));
            if wanted == 0 {
                // It has what it asked for and still waits: the next arrival wakes it.
                let next = self.inflow.next_ns();
                return (next <= until && next < u64::MAX).then_some(next);
            }
            if self.take(until, wanted as usize) == 0 {
                return None;
            }
            let woken = self.core.cx.watched(lane) >= at_least;
            if woken || (!self.core.cx.draining && self.inflow.over()) {
                return Some(self.core.last_arrival_ns);
            }
        }
    }

    #[inline(always)]
    fn take(&mut self, until: u64, most: usize) -> usize {
        let n = self.inflow.take(until, most, &mut self.core);
        if !self.core.turned_away.is_empty() {
            let now = self.core.last_arrival_ns;
            for tag in std::mem::take(&mut self.core.turned_away) {
                self.inflow.answered(tag, now, true);
            }
        }
        n
    }

    /// One instant, in the order of the contract.
    #[inline(always)]
    fn instant(&mut self, now: u64) {
        while self.take(now, usize::MAX) > 0 {}
        self.core.cx.now_ns = now;
        while let Some((step, slot)) = self.core.due(now) {
            self.core.step(step, slot, &mut self.inflow);
        }
        if !self.core.cx.refused.is_empty() {
            // Before further arrivals can take their places.
            self.core.tell_refused(&mut self.inflow);
        }
        if self.inflow.loops.is_some() {
            while self.take(now, usize::MAX) > 0 {}
            self.core.cx.now_ns = now;
        }
        while let Some((at, timer)) = self.core.cx.next_timer()
            && timer.0 <= now
        {
            self.core.cx.timers.swap_remove(at);
            self.core.policy.on(Event::Timer(timer.1), &mut self.core.cx);
        }
        self.notice_last_arrival();
        self.interest = self.core.settle(&mut self.inflow);
    }

    /// Lets the policy know when nothing more will arrive.
    #[inline(always)]
    fn notice_last_arrival(&mut self) {
        let cut = self.core.rules.cut_ns.is_some();
        if !cut && !self.core.cx.draining && self.inflow.over() {
            self.core.cx.draining = true;
            self.core.recorder.arrivals_ended(self.core.last_arrival_ns);
        }
    }

    fn finish(mut self) -> Ending {
        let core = &mut self.core;
        if let Some(cut) = core.rules.cut_ns {
            core.cx.now_ns = cut;
            core.recorder.arrivals_ended(cut);
        } else {
            // The policy may have slept through the last arrivals.
            core.cx.now_ns = core.cx.now_ns.max(core.last_arrival_ns);
            if !core.cx.draining {
                core.recorder.arrivals_ended(core.last_arrival_ns);
            }
        }
        let waiting = core.cx.live().map(|s| u64::from(s.len)).sum();
        core.unfinished();
        core.recorder.ended(core.cx.now_ns);
        let stalled = core.rules.cut_ns.is_none() && waiting > 0;
        Ending { at_ns: core.cx.now_ns, stalled: stalled.then_some(waiting) }
    }
}

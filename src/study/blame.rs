//! Where the latency of every request goes, to the nanosecond.

use crate::cost::Cost;
use crate::engine::{Flight, Member, Pass};
use crate::time::Nanos;

/// The parts of one latency, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// On its way to the server.
    pub inbound: u64,
    /// It waited while an instance was idle: the rule held it.
    pub forming: u64,
    /// It waited in the queue while all instances were busy.
    pub queue: u64,
    /// The same, after a batch had left with room for it and without it.
    pub passed_over: u64,
    /// It waited in a formed batch while all instances were busy.
    pub formed: u64,
    /// Between the leaving of its batch and the start of the pass.
    pub dispatch: u64,
    /// Its pass, as long as it would have taken alone.
    pub service: u64,
    /// What its pass took longer because of the others in the batch.
    pub others: u64,
    /// What its pass took longer because it was padded to a larger size.
    pub padding: u64,
    /// Its answer was held back to keep an order.
    pub held: u64,
    /// On the way back.
    pub response: u64,
}

impl Parts {
    /// The latency.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.inbound
            + self.forming
            + self.queue
            + self.passed_over
            + self.formed
            + self.dispatch
            + self.service
            + self.others
            + self.padding
            + self.held
            + self.response
    }

    /// Everything that is neither waiting nor service.
    #[must_use]
    pub const fn overhead(&self) -> u64 {
        self.inbound + self.dispatch + self.held + self.response
    }
}

/// An answered request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blamed {
    /// Its arrival at the server, ns.
    pub arrival_ns: u64,
    /// Number of its batch, in the order in which they left.
    pub pass: usize,
    /// Where its latency goes.
    pub parts: Parts,
}

/// The server as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// Cost of a pass.
    pub cost: &'a Cost,
    /// Instances that share the queue.
    pub instances: u32,
    /// Most items of a batch.
    pub cap: u32,
    /// Fixed time before a request joins the queue.
    pub inbound: Nanos,
    /// Time between a batch's leaving and its pass.
    pub dispatch: Nanos,
    /// Time after a pass in which its instance is held: per batch, per request.
    pub release: [Nanos; 2],
    /// Fixed time after the end of the pass.
    pub response: Nanos,
}

/// When at least one instance was idle.
struct Idle {
    /// Begins and ends of the spells, and the idle time before each.
    spells: Vec<(u64, u64, u64)>,
}

impl Idle {
    fn of(flight: &Flight, around: &Surroundings<'_>) -> Self {
        // An instance that is freed and taken at one instant was not idle: ends come first.
        let mut changes: Vec<(u64, bool)> = Vec::with_capacity(flight.passes.len() * 2);
        for pass in &flight.passes {
            changes.push((pass.left_ns, true));
            changes.push((free_ns(pass, around), false));
        }
        changes.sort_unstable();
        let (mut spells, mut busy, mut since, mut before) = (Vec::new(), 0u32, Some(0), 0);
        for (at, starts) in changes {
            busy = if starts { busy + 1 } else { busy.saturating_sub(1) };
            match since {
                Some(from) if busy >= around.instances => {
                    if at > from {
                        spells.push((from, at, before));
                        before += at - from;
                    }
                    since = None;
                }
                None if busy < around.instances => since = Some(at),
                _ => {}
            }
        }
        if let Some(from) = since {
            spells.push((from, u64::MAX, before));
        }
        Self { spells }
    }

    /// Idle time before a moment.
    fn before(&self, at: u64) -> u64 {
        let n = self.spells.partition_point(|(from, ..)| *from < at);
        match n.checked_sub(1).and_then(|i| self.spells.get(i)) {
            Some((from, to, before)) => before + (at.min(*to) - from),
            None => 0,
        }
    }

    fn between(&self, from: u64, to: u64) -> u64 {
        self.before(to.max(from)) - self.before(from)
    }
}

fn done_ns(pass: &Pass, around: &Surroundings<'_>) -> u64 {
    let took = pass.took_ns.unwrap_or(u64::MAX);
    pass.left_ns.saturating_add(around.dispatch.0).saturating_add(took)
}

/// When the instance of a batch can take the next.
fn free_ns(pass: &Pass, around: &Surroundings<'_>) -> u64 {
    let [each, per_request] = around.release;
    let answers = (pass.members.len() as u64).saturating_mul(per_request.0);
    done_ns(pass, around).saturating_add(each.0).saturating_add(answers)
}

/// Takes the latency of every answered request apart, in the order in which batches left.
#[must_use]
pub fn blame(flight: &Flight, around: &Surroundings<'_>) -> Vec<Blamed> {
    let idle = Idle::of(flight, around);
    let lefts: Vec<u64> = flight.passes.iter().map(|p| p.left_ns).collect();
    let mut all = Vec::with_capacity(flight.members.len());
    let mut answered = 0;
    for (number, pass) in flight.passes.iter().enumerate() {
        let done = done_ns(pass, around);
        answered = if flight.in_order { done.max(answered) } else { done };
        if answered == u64::MAX {
            continue;
        }
        for member in flight.of(pass) {
            let waits = Waits::of(member, number, flight, around, &lefts, &idle);
            let took = pass.took_ns.unwrap_or(0);
            // Jitter keeps its factor.
            let share = |items| share_ns(items, pass.ran_as, took, around.cost);
            let (alone, unpadded) = (share(member.items), share(pass.size));
            let parts = Parts {
                inbound: around.inbound.0,
                forming: waits.forming,
                queue: waits.queue,
                passed_over: waits.passed_over,
                formed: waits.formed,
                dispatch: around.dispatch.0,
                service: alone,
                others: unpadded.saturating_sub(alone),
                padding: took - unpadded.max(alone),
                held: answered - done,
                response: around.response.0,
            };
            all.push(Blamed { arrival_ns: member.arrival_ns, pass: number, parts });
        }
    }
    all
}

/// What a pass would have taken with so many items.
fn share_ns(items: u32, ran_as: u32, took: u64, cost: &Cost) -> u64 {
    let (own, whole) = (cost.service_ns(items), cost.service_ns(ran_as));
    let scaled = u128::from(took) * u128::from(own) / u128::from(whole.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX).min(took)
}

/// How the wait of a request divides.
#[derive(Default)]
struct Waits {
    forming: u64,
    queue: u64,
    passed_over: u64,
    formed: u64,
}

impl Waits {
    fn of(
        member: &Member,
        own: usize,
        flight: &Flight,
        around: &Surroundings<'_>,
        lefts: &[u64],
        idle: &Idle,
    ) -> Self {
        let (from, to) = (member.arrival_ns, lefts[own]);
        let formed = member.formed_ns.clamp(from, to);
        // The first batch that left without it and had room for it.
        let first = lefts.partition_point(|left| *left < from);
        let room = |pass: &Pass| pass.size.saturating_add(member.items) <= around.cap;
        let earlier = flight.passes.get(first..own).unwrap_or_default();
        let passed = earlier.iter().find(|pass| room(pass)).map_or(to, |pass| pass.left_ns);
        let passed = passed.clamp(from, formed);
        let busy = |from, to| (to - from) - idle.between(from, to);
        Self {
            forming: idle.between(from, to),
            queue: busy(from, passed),
            passed_over: busy(passed, formed),
            formed: busy(formed, to),
        }
    }
}

#![allow(unreachable_pub, reason = "a module of test binaries")]
//! A third implementation of the textbook rules: slow, naive, and sharing nothing with the
//! engines. Every step looks through all requests again.

use batchsim::policy::{Anchor, Reason};

#[derive(Clone, Debug)]
pub struct Setup {
    /// Arrival time and source, sorted by time.
    pub arrivals: Vec<(u64, u8)>,
    /// Timeout by source.
    pub timeouts: Vec<Option<u64>>,
    /// Service time by batch size (index 0 unused).
    pub cost: Vec<u64>,
    pub instances: usize,
    pub queue_limit: Option<usize>,
    pub cap: usize,
    pub target: usize,
    pub wait: Option<u64>,
    pub anchor: Anchor,
    pub preferred: Vec<usize>,
    pub cut: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Batch {
    pub start: u64,
    pub slot: u32,
    pub took: u64,
    pub arrivals: Vec<u64>,
    pub reason: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    pub batches: Vec<Batch>,
    /// (arrival, when, why)
    pub gone: Vec<(u64, u64, &'static str)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Unseen,
    Waiting,
    Running(usize),
    Left,
}

struct World<'a> {
    s: &'a Setup,
    state: Vec<State>,
    busy_until: Vec<Option<u64>>,
    free_since: Vec<u64>,
    picked_up: Option<u64>,
    log: Log,
}

/// Runs the setup by looking at every interesting instant in turn.
pub fn run(s: &Setup) -> Log {
    let mut w = World {
        s,
        state: vec![State::Unseen; s.arrivals.len()],
        busy_until: vec![None; s.instances],
        free_since: vec![0; s.instances],
        picked_up: None,
        log: Log::default(),
    };
    let last = s.arrivals.last().map_or(0, |a| a.0);
    let mut now = 0;
    loop {
        w.instant(now, now >= last && s.cut.is_none());
        let Some(next) = w.next_instant(now) else { break };
        if s.cut.is_some_and(|cut| next > cut) {
            break;
        }
        now = next;
    }
    if let Some(cut) = s.cut {
        for i in 0..w.state.len() {
            if !matches!(w.state[i], State::Left) {
                w.log.gone.push((s.arrivals[i].0, cut, "unfinished"));
            }
        }
        w.log.batches.retain(|b| b.start + b.took <= cut);
    }
    w.log.batches.sort();
    w.log.gone.sort();
    w.log
}

impl World<'_> {
    fn waiting(&self) -> Vec<usize> {
        (0..self.state.len()).filter(|&i| self.state[i] == State::Waiting).collect()
    }

    fn instant(&mut self, now: u64, over: bool) {
        for i in 0..self.s.arrivals.len() {
            if self.s.arrivals[i].0 == now && self.state[i] == State::Unseen {
                let full = self.s.queue_limit.is_some_and(|l| self.waiting().len() >= l);
                self.state[i] = if full { State::Left } else { State::Waiting };
                if full {
                    self.log.gone.push((now, now, "rejected"));
                }
            }
        }
        for slot in 0..self.s.instances {
            if self.busy_until[slot] == Some(now) {
                self.busy_until[slot] = None;
                self.free_since[slot] = now;
                for state in &mut self.state {
                    if *state == State::Running(slot) {
                        *state = State::Left;
                    }
                }
            }
        }
        while self.act(now, over) {}
    }

    /// One decision; false when there is nothing to do.
    fn act(&mut self, now: u64, over: bool) -> bool {
        let idle = (0..self.s.instances).filter(|&k| self.busy_until[k].is_none());
        let slot = idle.min_by_key(|&k| (self.free_since[k], k));
        let queue = self.waiting();
        let (Some(slot), Some(&oldest)) = (slot, queue.first()) else {
            self.picked_up = None;
            return false;
        };
        let anchor = match self.s.anchor {
            Anchor::OldestArrival => self.s.arrivals[oldest].0,
            Anchor::Pickup => *self.picked_up.get_or_insert(now),
        };
        let timed_out = self.s.wait.is_some_and(|w| now >= anchor + w);
        let preferred =
            self.s.preferred.iter().copied().filter(|&p| p <= queue.len() && p < self.s.cap).max();
        let want = if queue.len() >= self.s.cap {
            self.s.cap
        } else if let Some(size) = preferred {
            size
        } else if queue.len() >= self.s.target || timed_out || over {
            queue.len()
        } else {
            return false;
        };
        self.picked_up = None;
        let mut members = Vec::new();
        for i in queue.iter().copied() {
            if members.len() == want {
                break;
            }
            let (arrival, source) = self.s.arrivals[i];
            if self.s.timeouts[source as usize].is_some_and(|t| now > arrival + t) {
                self.state[i] = State::Left;
                self.log.gone.push((arrival, now, "expired"));
            } else {
                members.push(i);
            }
        }
        if members.is_empty() {
            return true;
        }
        let reason = if members.len() == self.s.cap {
            Reason::Full
        } else if self.s.preferred.contains(&members.len()) {
            Reason::Preferred
        } else if timed_out && self.s.wait != Some(0) {
            Reason::Timer
        } else if queue.len() >= self.s.target || preferred.is_some() || self.s.wait == Some(0) {
            Reason::Idle
        } else {
            Reason::Flush
        };
        let took = self.s.cost[members.len()];
        for &i in &members {
            self.state[i] = State::Running(slot);
        }
        self.busy_until[slot] = Some(now + took);
        self.log.batches.push(Batch {
            start: now,
            slot: slot as u32,
            took,
            arrivals: members.iter().map(|&i| self.s.arrivals[i].0).collect(),
            reason: reason.name(),
        });
        true
    }

    fn next_instant(&self, now: u64) -> Option<u64> {
        let arrivals = self.s.arrivals.iter().map(|a| a.0);
        let completions = self.busy_until.iter().flatten().copied();
        let oldest = self.waiting().first().map(|&i| self.s.arrivals[i].0);
        let anchor = match self.s.anchor {
            Anchor::OldestArrival => oldest,
            Anchor::Pickup => self.picked_up,
        };
        let timer = anchor.zip(self.s.wait).map(|(a, w)| a + w);
        arrivals.chain(completions).chain(timer).filter(|&t| t > now).min()
    }
}

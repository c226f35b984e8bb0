#![allow(unreachable_pub, dead_code, reason = "a module of test binaries")]
//! Everything a run told its recorder, with the source of every request.

use batchsim::record::{BatchRow, Gone, Recorder};

/// A request: arrival and source.
pub type Request = (u64, u8);

#[derive(Clone, Debug)]
pub struct Batch {
    pub row: BatchRow,
    pub members: Vec<Request>,
}

impl Batch {
    pub fn start(&self) -> u64 {
        self.row.start_ns
    }

    pub fn done(&self) -> u64 {
        self.row.start_ns + self.row.took_ns
    }

    /// When its requests are answered: later than done where answers keep an order.
    pub fn answered(&self) -> u64 {
        self.row.answered_ns()
    }

    /// Arrival of its oldest member; its start where all have given up.
    pub fn oldest(&self) -> u64 {
        self.members.iter().map(|m| m.0).min().unwrap_or(self.start())
    }

    pub fn newest(&self) -> u64 {
        self.members.iter().map(|m| m.0).max().unwrap_or(self.start())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    pub request: Request,
    pub at: u64,
    pub why: Gone,
}

/// Batches in order of start, and everything else in the order it was told.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    pub arrivals: Vec<u64>,
    pub batches: Vec<Batch>,
    pub left: Vec<Left>,
    pub last_arrival: Option<u64>,
    pub ended: u64,
}

impl Recorder for Journal {
    fn arrived(&mut self, times: &[u64]) {
        self.arrivals.extend_from_slice(times);
    }

    fn completed(&mut self, row: &BatchRow, arrivals: &[u64], tags: &[u8], first: bool) {
        assert_eq!(arrivals.len(), tags.len());
        if first {
            self.batches.push(Batch { row: *row, members: Vec::new() });
        }
        let batch = self.batches.last_mut().unwrap();
        assert_eq!(batch.row, *row);
        batch.members.extend(arrivals.iter().copied().zip(tags.iter().copied()));
    }

    fn gone(&mut self, arrival_ns: u64, tag: u8, at: u64, why: Gone) {
        self.left.push(Left { request: (arrival_ns, tag), at, why });
    }

    fn arrivals_ended(&mut self, at_ns: u64) {
        assert_eq!(self.last_arrival, None, "told twice");
        self.last_arrival = Some(at_ns);
    }

    fn ended(&mut self, at_ns: u64) {
        self.ended = at_ns;
        self.batches.sort_by_key(|b| (b.row.start_ns, b.row.slot));
    }
}

/// Tells two recorders the same.
pub struct Both<'a, A, B>(pub &'a mut A, pub &'a mut B);

impl<A: Recorder, B: Recorder> Recorder for Both<'_, A, B> {
    fn arrived(&mut self, times: &[u64]) {
        self.0.arrived(times);
        self.1.arrived(times);
    }

    fn completed(&mut self, row: &BatchRow, arrivals: &[u64], tags: &[u8], first: bool) {
        self.0.completed(row, arrivals, tags, first);
        self.1.completed(row, arrivals, tags, first);
    }

    fn gone(&mut self, arrival_ns: u64, tag: u8, at_ns: u64, why: Gone) {
        self.0.gone(arrival_ns, tag, at_ns, why);
        self.1.gone(arrival_ns, tag, at_ns, why);
    }

    fn arrivals_ended(&mut self, at_ns: u64) {
        self.0.arrivals_ended(at_ns);
        self.1.arrivals_ended(at_ns);
    }

    fn ended(&mut self, at_ns: u64) {
        self.0.ended(at_ns);
        self.1.ended(at_ns);
    }
}

//! Live requests and the queues they wait in.
//!
//! Requests are columns in a ring, addressed by a running number; queues and batches hold runs of
//! consecutive numbers. With one first-in-first-out queue there is one run, so that moving any
//! number of requests costs the same.

use std::collections::VecDeque;

/// Running number of a request in its replication (wraps; live ones never collide).
pub type Rid = u32;

/// Consecutive requests `first, first + 1, …`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: Rid,
    pub(crate) len: u32,
}

/// Arrival time and source of every live request.
#[derive(Debug)]
pub(crate) struct Columns {
    arrived_ns: Vec<u64>,
    tags: Vec<u8>,
    mask: u32,
    /// Oldest number that may still be live.
    oldest: Rid,
    pub(crate) next: Rid,
}

impl Columns {
    pub(crate) fn new() -> Self {
        const START: usize = 4096;
        Self {
            arrived_ns: vec![0; START],
            tags: vec![0; START],
            mask: START as u32 - 1,
            oldest: 0,
            next: 0,
        }
    }

    /// Room for further requests without looking at what is live.
    #[inline(always)]
    pub(crate) fn room(&self) -> usize {
        (self.mask + 1 - self.next.wrapping_sub(self.oldest)) as usize
    }

    /// Forgets everything before `oldest_live`; grows when that leaves too little room.
    #[cold]
    pub(crate) fn reclaim(&mut self, oldest_live: Rid) {
        self.oldest = oldest_live;
        let capacity = self.arrived_ns.len();
        if self.room() > capacity / 2 {
            return;
        }
        let mut wider = Self {
            arrived_ns: vec![0; capacity * 2],
            tags: vec![0; capacity * 2],
            mask: self.mask * 2 + 1,
            ..*self
        };
        for i in 0..self.next.wrapping_sub(self.oldest) {
            let rid = self.oldest.wrapping_add(i);
            let (from, to) = ((rid & self.mask) as usize, (rid & wider.mask) as usize);
            wider.arrived_ns[to] = self.arrived_ns[from];
            wider.tags[to] = self.tags[from];
        }
        *self = wider;
    }

    /// Adds requests; the caller has made room.
    #[inline(always)]
    pub(crate) fn push(&mut self, times: &[u64], tags: &[u8]) {
        let at = (self.next & self.mask) as usize;
        let head = times.len().min(self.arrived_ns.len() - at);
        self.arrived_ns[at..at + head].copy_from_slice(&times[..head]);
        self.arrived_ns[..times.len() - head].copy_from_slice(&times[head..]);
        self.tags[at..at + head].copy_from_slice(&tags[..head]);
        self.tags[..times.len() - head].copy_from_slice(&tags[head..]);
        self.next = self.next.wrapping_add(times.len() as u32);
    }

    #[inline(always)]
    pub(crate) fn arrived_ns(&self, rid: Rid) -> u64 {
        self.arrived_ns[(rid & self.mask) as usize]
    }

    #[inline(always)]
    pub(crate) fn tag(&self, rid: Rid) -> u8 {
        self.tags[(rid & self.mask) as usize]
    }

    /// The columns of a span, in at most two pieces, each with all that lies behind it and with
    /// how much of it belongs to the span.
    #[inline(always)]
    pub(crate) fn ahead(&self, span: Span) -> [(&[u64], &[u8], usize); 2] {
        let at = (span.first & self.mask) as usize;
        let len = span.len as usize;
        let head = len.min(self.arrived_ns.len() - at);
        [
            (&self.arrived_ns[at..], &self.tags[at..], head),
            (&self.arrived_ns, &self.tags, len - head),
        ]
    }

    /// The columns of a span, in at most two contiguous pieces.
    #[inline(always)]
    pub(crate) fn pieces(&self, span: Span) -> [(&[u64], &[u8]); 2] {
        let at = (span.first & self.mask) as usize;
        let len = span.len as usize;
        let head = len.min(self.arrived_ns.len() - at);
        [
            (&self.arrived_ns[at..at + head], &self.tags[at..at + head]),
            (&self.arrived_ns[..len - head], &self.tags[..len - head]),
        ]
    }
}

/// How many leading times, which never decrease, are at most `until`.
#[inline(always)]
pub(super) fn leading(times: &[u64], until: u64) -> usize {
    let mut n = 0;
    // Usually a few, so no binary search over the block; and eight at a time and then one sum,
    // because each step of a plain scan is a branch, and its end one that nobody foresees.
    while let Some(eight) = times[n..].first_chunk::<8>() {
        if eight[7] > until {
            return n + eight.iter().map(|&t| usize::from(t <= until)).sum::<usize>();
        }
        n += 8;
    }
    n + times[n..].iter().take_while(|&&t| t <= until).count()
}

/// A queue of requests as spans, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    spans: VecDeque<Span>,
    len: u32,
}

impl Queue {
    #[inline(always)]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    #[inline(always)]
    pub(crate) fn front(&self) -> Option<Rid> {
        self.spans.front().map(|s| s.first)
    }

    pub(crate) fn spans(&self) -> impl Iterator<Item = Span> + '_ {
        self.spans.iter().copied()
    }

    /// The `at`-th request from the front.
    pub(crate) fn get(&self, mut at: u32) -> Option<Rid> {
        for span in &self.spans {
            if at < span.len {
                return Some(span.first.wrapping_add(at));
            }
            at -= span.len;
        }
        None
    }

    #[inline(always)]
    pub(crate) fn push_back(&mut self, span: Span) {
        self.len += span.len;
        match self.spans.back_mut() {
            Some(last) if last.first.wrapping_add(last.len) == span.first => last.len += span.len,
            _ => self.spans.push_back(span),
        }
    }

    pub(crate) fn push_front(&mut self, span: Span) {
        self.len += span.len;
        self.spans.push_front(span);
    }

    /// Takes the `at`-th request from the front out of the queue.
    pub(crate) fn remove(&mut self, mut at: u32) -> Option<Rid> {
        for i in 0..self.spans.len() {
            let span = self.spans[i];
            if at >= span.len {
                at -= span.len;
                continue;
            }
            let rid = span.first.wrapping_add(at);
            let behind = Span { first: rid.wrapping_add(1), len: span.len - at - 1 };
            self.len -= 1;
            match (at, behind.len) {
                (0, 0) => _ = self.spans.remove(i),
                (0, _) => self.spans[i] = behind,
                (_, 0) => self.spans[i].len = at,
                _ => {
                    self.spans[i].len = at;
                    self.spans.insert(i + 1, behind);
                }
            }
            return Some(rid);
        }
        None
    }

    /// Moves up to `n` requests from the front to `out`.
    #[inline(always)]
    pub(crate) fn take(&mut self, mut n: u32, out: &mut Vec<Span>) -> u32 {
        let before = self.len;
        while n > 0 {
            let Some(front) = self.spans.front_mut() else {
                break;
            };
            let taken = front.len.min(n);
            out.push(Span { first: front.first, len: taken });
            if taken == front.len {
                self.spans.pop_front();
            } else {
                front.first = front.first.wrapping_add(taken);
                front.len -= taken;
            }
            self.len -= taken;
            n -= taken;
        }
        before - self.len
    }
}

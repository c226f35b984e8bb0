//! `clients`: many independent clients, some of them far busier than others.
//!
//! Client `i` of `count` sends with independent gamma gaps of the given CV and has the share
//! `i^(−s) / Σ j^(−s)` of the rate (Zipf, `share_zipf = s`). Together they look smoother than each
//! alone at short times; the index of dispersion tends to `cv²` as for one of them. Production
//! traffic has a few dominant clients with CVs of 2 to 6 (ServeGen, 2025: the ten busiest of 43 to
//! 162 clients send 63 % to 93 %).

use super::Stream;
use super::gamma::{self, Gamma};
use crate::rng::SimRng;
use crate::tagged::{BadParam, params};
use crate::units::Rate;
use rand::{RngExt, SeedableRng};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

params! {
    /// Parameters of `clients`.
    pub struct Clients {
        /// How many there are.
        pub count: u32,
        /// Mean arrivals per second of all together.
        pub rate: Rate,
        /// Coefficient of variation of each client's gaps.
        pub cv: f64,
        /// Exponent of their shares (default 0: all alike).
        #[cfg_attr(feature = "schema", serde(default))]
        pub share_zipf: f64,
    }
}

/// Most clients of one source.
const MOST: u32 = 100_000;

impl Clients {
    pub(super) fn check(&self) -> Result<(), BadParam> {
        if self.count == 0 || self.count > MOST {
            let what = format!("count must lie between 1 and 100,000, it is {}", self.count);
            return Err(BadParam::new("count", what, "write how many clients send requests"));
        }
        if !(self.share_zipf.is_finite() && (0.0..=10.0).contains(&self.share_zipf)) {
            let what = format!("share_zipf must lie between 0 and 10, it is {}", self.share_zipf);
            let help = "write 0 for equal shares, about 1 to 2 for a few dominant clients";
            return Err(BadParam::new("share_zipf", what, help));
        }
        Gamma { rate: self.rate, cv: self.cv }.check()
    }

    /// Share of the rate of each client, the busiest first; they add up to 1.
    #[must_use]
    pub fn shares(&self) -> Vec<f64> {
        let weights: Vec<f64> =
            (1..=self.count).map(|i| f64::from(i).powf(-self.share_zipf)).collect();
        let all: f64 = weights.iter().sum();
        weights.into_iter().map(|w| w / all).collect()
    }
}

/// Times drawn for one client at once.
const AHEAD: usize = 16;

/// Merges the streams of the clients.
pub(super) struct Draw {
    streams: Vec<Client>,
    /// The next arrival of each.
    next: BinaryHeap<Reverse<(u64, u32)>>,
}

struct Client {
    draw: gamma::Draw,
    times: [u64; AHEAD],
    at: usize,
}

impl Client {
    fn next(&mut self) -> u64 {
        if self.at == AHEAD {
            self.draw.fill(&mut self.times);
            self.at = 0;
        }
        self.at += 1;
        self.times[self.at - 1]
    }
}

impl Draw {
    pub(super) fn new(params: &Clients, mut rng: SimRng) -> Result<Self, BadParam> {
        params.check()?;
        let (mut streams, mut next) = (Vec::new(), BinaryHeap::new());
        for (number, share) in (0u32..).zip(params.shares()) {
            let help = "write fewer clients, or a smaller share_zipf";
            let rate = Rate::per_second(params.rate.per_s() * share)
                .ok_or_else(|| BadParam::new("share_zipf", "a client would never send", help))?;
            // Each from a generator of its own, so that the others do not change its stream.
            let own = SimRng::seed_from_u64(rng.random());
            let draw = gamma::Draw::new(&Gamma { rate, cv: params.cv }, own)?;
            let mut client = Client { draw, times: [0; AHEAD], at: AHEAD };
            next.push(Reverse((client.next(), number)));
            streams.push(client);
        }
        Ok(Self { streams, next })
    }
}

impl Stream for Draw {
    fn fill(&mut self, out: &mut [u64]) -> usize {
        for (i, slot) in out.iter_mut().enumerate() {
            let Some(mut first) = self.next.peek_mut() else { return i };
            let Reverse((at, number)) = *first;
            *slot = at;
            if let Some(client) = self.streams.get_mut(number as usize) {
                *first = Reverse((client.next(), number));
            }
        }
        out.len()
    }
}

//! What a policy on a server can do at most: throughput with a queue that never empties.

use super::{Scenario, Server};
use crate::arrivals::Process;
use crate::policy::Policy;
use crate::time::Nanos;

impl Scenario {
    /// Requests per second of a policy on a server whose queue never empties; `None` where there
    /// is no limit.
    ///
    /// Requests of several items leave unused room in a batch, because none is skipped; the share
    /// is that of the long run, for item counts as these sources mix them.
    #[must_use]
    pub fn capacity_per_s(&self, server: &Server, policy: &Policy) -> Option<f64> {
        let pass_s = |n: u32| Nanos(server.cost.service_ns(n)).as_s();
        let instances = f64::from(server.instances);
        let items = self.item_law();
        let Some(cap) = policy.saturated_batch() else {
            let mean: f64 = items.iter().map(|(n, share)| f64::from(*n) * share).sum();
            let per_request_s = server.cost.marginal_ns().unwrap_or(0.0) / 1e9 * mean
                + server.overhead.release_per_request.as_s();
            return (per_request_s > 0.0).then(|| instances / per_request_s);
        };
        let full = match items.as_slice() {
            [(1, _)] => Packed { requests: f64::from(cap), time_s: pass_s(cap) },
            _ if policy.counts_requests() => whole(&items, cap, &pass_s),
            _ => packed(&items, cap, &pass_s)?,
        };
        let held_s = full.time_s + server.overhead.between(full.requests);
        Some(full.requests / held_s * instances)
    }

    /// Item counts of requests and their shares; sources count by their rates.
    fn item_law(&self) -> Vec<(u32, f64)> {
        let mut shares = std::collections::BTreeMap::new();
        let mut add = |items: u32, share: f64| *shares.entry(items).or_insert(0.0) += share;
        for source in &self.arrivals {
            let weight = source.rate_per_s().unwrap_or(1.0);
            match &source.trace {
                Some(trace) if !trace.marks.is_empty() => {
                    for mark in trace.marks.iter().map(|m| trace.mark_table[usize::from(*m)]) {
                        add(mark.items, weight / count(trace.marks.len()));
                    }
                }
                _ => {
                    let (low, high) = source.items.range();
                    for items in low..=high {
                        add(items, weight / f64::from(high - low + 1));
                    }
                }
            }
        }
        let all: f64 = shares.values().sum();
        shares.into_iter().map(|(items, share)| (items, share / all)).collect()
    }
}

impl super::Source {
    /// Arrivals per second; `None` for a closed loop or a trace without a rate.
    #[must_use]
    pub fn rate_per_s(&self) -> Option<f64> {
        match &self.process {
            Process::Poisson(p) => Some(p.rate.per_s()),
            Process::Deterministic(p) => Some(p.rate.per_s()),
            Process::Gamma(p) => Some(p.rate.per_s()),
            Process::Mmpp(p) => Some(p.law().ok()?.mean_rate_per_s()),
            Process::OnOff(p) => Some(p.law().ok()?.mean_rate_per_s()),
            Process::Groups(p) => Some(p.requests_per_s()),
            Process::ClosedLoop(_) => None,
            Process::Trace(p) => Some(self.trace.as_ref()?.rate_per_s() * p.factor()),
        }
    }
}

/// A batch of the long run.
struct Packed {
    requests: f64,
    time_s: f64,
}

/// Batches of `cap` requests, whatever items they carry; their mean number, rounded, is paid for.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn whole(items: &[(u32, f64)], cap: u32, per_pass: &dyn Fn(u32) -> f64) -> Packed {
    let mean: f64 = items.iter().map(|(n, share)| f64::from(*n) * share).sum();
    let requests = f64::from(cap);
    Packed { requests, time_s: per_pass((mean * requests).round().max(1.0) as u32) }
}

/// Batches of at most `cap` items filled in order from an endless queue; `None` where nothing
/// fits. The request that does not fit opens the next batch, so the sizes of the openers are a
/// Markov chain; its stationary law weighs the batches.
fn packed(items: &[(u32, f64)], cap: u32, per_pass: &dyn Fn(u32) -> f64) -> Option<Packed> {
    let fitting: Vec<(u32, f64)> = items.iter().copied().filter(|(n, _)| *n <= cap).collect();
    let share: f64 = fitting.iter().map(|(_, p)| p).sum();
    if fitting.is_empty() || cap > 100_000 {
        return None;
    }
    let law: Vec<(u32, f64)> = fitting.iter().map(|(n, p)| (*n, p / share)).collect();
    let runs: Vec<(Packed, Vec<f64>)> =
        law.iter().map(|(first, _)| one_batch(&law, *first, cap, per_pass)).collect();
    let mut openers: Vec<f64> = law.iter().map(|(_, p)| *p).collect();
    for _ in 0..200 {
        let mut next = vec![0.0; law.len()];
        for (weight, (_, to)) in openers.iter().zip(&runs) {
            next.iter_mut().zip(to).for_each(|(n, t)| *n += weight * t);
        }
        openers = next;
    }
    let mut mean = Packed { requests: 0.0, time_s: 0.0 };
    for (weight, (batch, _)) in openers.iter().zip(&runs) {
        mean.requests += weight * batch.requests;
        mean.time_s += weight * batch.time_s;
    }
    Some(mean)
}

/// The batch that a request of `first` items opens: its mean, and the law of the next opener.
fn one_batch(
    law: &[(u32, f64)],
    first: u32,
    cap: u32,
    per_pass: &dyn Fn(u32) -> f64,
) -> (Packed, Vec<f64>) {
    let mut reached = vec![0.0; cap as usize + 1];
    reached[first as usize] = 1.0;
    let mut batch = Packed { requests: 0.0, time_s: 0.0 };
    let mut opener = vec![0.0; law.len()];
    for total in first..=cap {
        let here = reached[total as usize];
        if here == 0.0 {
            continue;
        }
        batch.requests += here;
        for (i, (items, p)) in law.iter().enumerate() {
            if total + items <= cap {
                reached[(total + items) as usize] += here * p;
            } else {
                opener[i] += here * p;
                batch.time_s += here * p * per_pass(total);
            }
        }
    }
    (batch, opener)
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::{packed, whole};

    /// Items 1 or 2 with equal shares, room for 2: a pair of ones, or a two alone. An opener of
    /// one closes with a two (half of the time) after one request, else with another one.
    #[test]
    fn room_left_unused_by_larger_requests() {
        let full = packed(&[(1, 0.5), (2, 0.5)], 2, &|n| f64::from(n)).unwrap();
        // Opener 1: next fits with 1/2 (batch 1+1, next opener either), else batch of 1 and the
        // next opener is 2. Opener 2: batch of 2, next opener either. P(opener 1) = p solves
        // p = p/4 + (1 − p)/2, so 2/5.
        let requests = 0.4 * 1.5 + 0.6;
        let time = 0.4 * (0.5 * 2.0 + 0.5) + 0.6 * 2.0;
        assert!((full.requests - requests).abs() < 1e-12);
        assert!((full.time_s - time).abs() < 1e-12);
    }

    #[test]
    fn where_requests_count_their_items_only_cost() {
        let full = whole(&[(1, 0.5), (3, 0.5)], 4, &|n| f64::from(n));
        assert!((full.requests - 4.0).abs() < 1e-12 && (full.time_s - 8.0).abs() < 1e-12);
    }

    #[test]
    fn requests_of_one_size_leave_the_remainder() {
        let full = packed(&[(3, 1.0)], 8, &|n| f64::from(n)).unwrap();
        assert!((full.requests - 2.0).abs() < 1e-12 && (full.time_s - 6.0).abs() < 1e-12);
    }
}

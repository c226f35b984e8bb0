#![allow(unreachable_pub, dead_code, reason = "a module of test binaries")]
//! Random scenarios over every policy and every arrival process. A new kind of either fails here
//! until it has a line of its own.

use super::worlds::{self, MS, rate, world};
use batchsim::arrivals::{
    Clients, ClosedLoop, Deterministic, Gamma, GroupSize, GroupSizeKind, GroupSizeLaw, Groups,
    Hawkes, Hyperexponential, Mmpp, OnOff, Process, Replay, Schedule, SchedulePoint, Think,
    ThinkKind, ThinkLaw, Trace, Weibull,
};
use batchsim::cost::Jitter;
use batchsim::policy::{
    Anchor, Dynamic, LitServe, MaxWait, Mosec, Policy, QueuePolicy, TimeoutAction, TorchServe,
    Triton,
};
use batchsim::scenario::{End, Scenario, Source};
use batchsim::study::{Bench, Engine, Portion};
use batchsim::time::Nanos;
use proptest::prelude::*;
use std::sync::Arc;

/// Numbers a policy is made from.
type Knobs = (u32, u32, Option<u64>, bool, Vec<u32>);

fn policy_of(kind: &str, (cap, min, wait_ms, oldest, preferred): Knobs) -> Policy {
    match kind {
        "none" => worlds::none(),
        "static" => worlds::fixed(cap),
        // Every third is unbounded.
        "greedy" => worlds::greedy((min % 3 != 0).then_some(cap)),
        "dynamic" => Policy::Dynamic(Dynamic {
            max_batch_size: cap,
            max_wait: wait_ms.map_or(MaxWait::Never, |w| MaxWait::After(Nanos(w * MS))),
            wait_anchor: if oldest { Anchor::OldestArrival } else { Anchor::Pickup },
            min_batch_size: (min <= cap).then_some(min),
            preferred_batch_sizes: preferred.into_iter().filter(|p| *p <= cap).collect(),
        }),
        "triton" => Policy::Triton(Triton {
            max_batch_size: cap,
            preferred_batch_size: preferred.into_iter().filter(|p| *p <= cap).collect(),
            max_queue_delay_microseconds: wait_ms.unwrap_or(0) * 1000,
            priority_levels: if oldest { 0 } else { min % 4 },
            default_priority_level: (min % 4).min(1),
            default_queue_policy: (min % 3 == 0).then(|| QueuePolicy {
                timeout_action: if oldest { TimeoutAction::Reject } else { TimeoutAction::Delay },
                default_timeout_microseconds: u64::from(min % 2) * 30_000,
                allow_timeout_override: min == 3,
                max_queue_size: if min == 6 { 5 } else { 0 },
            }),
            enforce_shapes: min == 5,
            preserve_ordering: oldest && min % 4 == 1,
            ..Triton::default()
        }),
        "torchserve" => Policy::TorchServe(TorchServe {
            batch_size: cap,
            max_batch_delay: wait_ms.unwrap_or(100) as u32,
            job_queue_size: if oldest { 100 } else { 2 * min },
            // Every third drops what has waited for long.
            client_timeout_in_mills: if min % 3 == 0 { 5 * min } else { 0 },
            clock_phase: Nanos(u64::from(min % 2) * 400_000),
            ..TorchServe::default()
        }),
        "mosec" => Policy::Mosec(Mosec {
            max_batch_size: cap,
            max_wait_time: wait_ms.unwrap_or(0) as u32,
            capacity: if oldest { 1024 } else { 2 * min },
            timeout: if min % 3 == 0 { 5 * min } else { 3000 },
            timer_extra: Nanos(u64::from(min % 2) * MS),
            ..Mosec::default()
        }),
        "litserve" => Policy::LitServe(LitServe {
            max_batch_size: cap,
            batch_timeout: wait_ms.unwrap_or(0) as f64 / 1e3,
            timeout: if min % 3 == 0 { 0.005 * f64::from(min) } else { 30.0 },
            window_phase: Nanos(if oldest { 0 } else { u64::from(min) * MS }),
            ..LitServe::default()
        }),
        other => panic!("tests/common/any.rs does not know the policy {other}"),
    }
}

/// Any policy.
pub fn policy() -> impl Strategy<Value = Policy> {
    let knobs = (
        1u32..=8,
        1u32..=8,
        prop::option::of(0u64..30),
        any::<bool>(),
        prop::collection::vec(1u32..8, 0..3),
    );
    (prop::sample::select(Policy::KINDS), knobs).prop_map(|(kind, knobs)| policy_of(kind, knobs))
}

fn process_of(kind: &str, a: f64, b: f64, clients: u32) -> Process {
    let per_s = rate(50.0 + 400.0 * a);
    let think = match clients % 3 {
        0 => Think::Constant(Nanos::ZERO),
        1 => Think::Constant(Nanos((10.0 * a) as u64 * MS)),
        _ => Think::Law(ThinkLaw { mean: worlds::ms(20.0 * a), kind: ThinkKind::Exponential }),
    };
    match kind {
        "poisson" => worlds::poisson(per_s.per_s()),
        "deterministic" => {
            let phase = Nanos((10.0 * b) as u64 * MS);
            Process::Deterministic(Deterministic { rate: rate(200.0), phase })
        }
        "gamma" => Process::Gamma(Gamma { rate: per_s, cv: 0.2 + 3.0 * b }),
        "weibull" => Process::Weibull(Weibull { rate: per_s, cv: 0.3 + 3.0 * b }),
        "hyperexponential" => {
            Process::Hyperexponential(Hyperexponential { rate: per_s, cv: 1.0 + 3.0 * b })
        }
        "hawkes" => Process::Hawkes(Hawkes {
            rate: per_s,
            branching: 0.8 * b,
            decay: worlds::ms(1.0 + 40.0 * a),
        }),
        "schedule" => {
            let point = |at_ms, per_s| SchedulePoint { at: worlds::ms(at_ms), rate: rate(per_s) };
            let points = vec![point(0.0, 20.0), point(1.0 + 100.0 * b, 50.0 + 400.0 * a)];
            let repeat = clients.is_multiple_of(2);
            Process::Schedule(Schedule { points: Some(points), sine: None, repeat })
        }
        "clients" => Process::Clients(Clients {
            count: clients,
            rate: per_s,
            cv: 0.5 + 2.0 * b,
            share_zipf: 2.0 * a,
        }),
        "mmpp" => Process::Mmpp(Mmpp {
            rate: Some(per_s),
            idc: Some(1.0 + b),
            timescale: Some(worlds::ms(20.0)),
            ..Mmpp::default()
        }),
        "on-off" => Process::OnOff(OnOff {
            rate_on: per_s,
            rate_off: None,
            on: worlds::ms(30.0),
            off: worlds::ms(1.0 + 30.0 * b),
        }),
        "groups" => {
            let (kind, mean) = (GroupSizeKind::Geometric, f64::from(clients).sqrt());
            let law = GroupSize::Drawn(GroupSizeLaw { kind, mean });
            Process::Groups(Groups {
                rate: rate(10.0 + 90.0 * a),
                size: if clients.is_multiple_of(2) {
                    GroupSize::Constant(clients / 2)
                } else {
                    law
                },
                spread: if clients.is_multiple_of(3) { Nanos::ZERO } else { worlds::ms(20.0 * b) },
            })
        }
        "closed-loop" => Process::ClosedLoop(ClosedLoop { clients, think }),
        "trace" => {
            Process::Trace(Replay { file: "any".into(), format: None, columns: None, scale: None })
        }
        other => panic!("tests/common/any.rs does not know the process {other}"),
    }
}

/// Recorded arrivals on a grid of milliseconds: ties are the rule.
fn trace() -> impl Strategy<Value = Trace> {
    prop::collection::vec(prop::sample::select(&[0u64, 0, 0, 1, 1, 2, 5, 40][..]), 1..60).prop_map(
        |gaps| {
            let mut now = 0;
            let times = gaps.iter().enumerate().map(|(i, gap)| {
                now += if i == 0 { 0 } else { gap * MS };
                Nanos(now)
            });
            Trace { arrivals: times.collect(), ..Trace::default() }
        },
    )
}

fn source(kinds: &'static [&'static str]) -> impl Strategy<Value = Source> {
    let timeout = prop::option::weighted(0.3, 0u64..60);
    let kind = prop::sample::select(kinds);
    (kind, 0.0..1.0f64, 0.0..1.0f64, 1u32..12, trace(), timeout).prop_map(
        |(kind, a, b, clients, trace, timeout)| Source {
            timeout: timeout.map(|t| Nanos(t * MS)),
            trace: (kind == "trace").then(|| Arc::new(trace)),
            ..worlds::source(process_of(kind, a, b, clients))
        },
    )
}

/// A scenario and how many measured requests to run (recordings and cuts run to their own end).
#[derive(Clone, Debug)]
pub struct Any {
    pub scenario: Scenario,
    pub requests: u64,
}

/// Any scenario: one to three sources of any kind, limits, timeouts, instances, a cut.
pub fn scenario() -> impl Strategy<Value = Any> {
    let sources = prop::collection::vec(source(Process::KINDS), 1..=3);
    let server = (1u32..=4, prop::option::weighted(0.3, 1u32..12), 0usize..5, 0usize..6);
    (policy(), sources, server, prop::option::weighted(0.3, 1u64..300), 1u64..150, any::<u64>())
        .prop_map(
            |(policy, arrivals, (instances, queue_limit, cost, jitter), cut, requests, seed)| {
                // Whole milliseconds meet the grid of the recordings; the others do not.
                let cost = match cost {
                    0 => worlds::affine(10.0, 0.0),
                    1 => worlds::affine(5.0, 1.0),
                    2 => worlds::affine(0.0, 3.0),
                    3 => worlds::tabulated(8, |n| if n < 4 { 7.0 } else { 20.0 }),
                    _ => worlds::linear(),
                };
                let mut scenario = world(worlds::poisson(1.0), cost, policy);
                scenario.seed = seed;
                scenario.arrivals = arrivals;
                scenario.servers[0].instances = instances;
                scenario.servers[0].queue_limit = queue_limit;
                scenario.servers[0].jitter = match jitter {
                    0 => worlds::exponential(),
                    1 => worlds::lognormal(0.5),
                    _ => Jitter::default(),
                };
                if let Some(cut) = cut {
                    scenario.run.end = End::Cut;
                    scenario.run.duration = Some(Nanos(cut * MS));
                }
                Any { scenario, requests }
            },
        )
}

impl Any {
    pub fn policy(&self) -> &Policy {
        &self.scenario.policies[0].policy
    }

    /// How long a request may wait for the policy itself, whatever its source allows.
    pub fn patience(&self) -> Option<Nanos> {
        match self.policy() {
            Policy::TorchServe(p) if p.client_timeout_in_mills > 0 => {
                Some(Nanos(u64::from(p.client_timeout_in_mills) * MS))
            }
            Policy::Mosec(p) => Some(Nanos(u64::from(p.timeout) * MS)),
            Policy::LitServe(p) if p.timeout > 0.0 => Some(Nanos::from_ms(p.timeout * 1e3)),
            _ => None,
        }
    }

    pub fn cut(&self) -> bool {
        self.scenario.run.end == End::Cut
    }

    pub fn jittered(&self) -> bool {
        !matches!(self.scenario.servers[0].jitter, Jitter::None(_))
    }

    /// Sources in the order of their numbers: open ones first.
    pub fn sources(&self) -> Vec<&Source> {
        let closed = |s: &&Source| matches!(s.process, Process::ClosedLoop(_));
        let (closed, open): (Vec<&Source>, Vec<&Source>) =
            self.scenario.arrivals.iter().partition(closed);
        open.into_iter().chain(closed).collect()
    }

    pub fn bench(&self, engine: Engine) -> Bench<'_> {
        Bench { engine, ..worlds::bench(&self.scenario) }
    }

    /// A portion that ends: by count, unless a recording or a cut ends it.
    pub fn portion(&self) -> Portion {
        // A caller that is refused at once asks again at once: only a count ends that soon.
        let open = |s: &Source| !matches!(s.process, Process::ClosedLoop(_));
        let ends = self.cut() && self.scenario.arrivals.iter().all(open)
            || self.scenario.arrivals.iter().all(|s| s.trace.is_some());
        Portion {
            replication: 3,
            measured: (!ends).then_some(self.requests),
            measure_from: Nanos::ZERO,
        }
    }
}

//! From a resolved scenario to what an engine needs.

use super::control::Control;
use crate::arrivals::{Feed, Limits, Process};
use crate::cost::{CostModel, FixedCost, JitteredCost};
use crate::engine::{Callers, Ending, Inflow, Loops, Rules, event, recurrence};
use crate::policy::Policy;
use crate::record::{Plan, Recorder};
use crate::rng::{Purpose, substream};
use crate::scenario::{End, Scenario, Server, Source};
use crate::time::Nanos;

/// One policy on one server under one scenario.
#[derive(Clone, Copy, Debug)]
pub struct Bench<'a> {
    /// Arrivals, run length, seed.
    pub scenario: &'a Scenario,
    /// The server.
    pub server: &'a Server,
    /// The policy.
    pub policy: &'a Policy,
    /// Which engine.
    pub engine: Engine,
}

/// Which engine runs a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// The recurrence where it holds, else the event engine.
    #[default]
    Auto,
    /// Always the event engine.
    Event,
}

/// How much of which replication to run.
#[derive(Clone, Copy, Debug)]
pub struct Portion {
    /// Number of the replication; decides all random streams.
    pub replication: u32,
    /// Measured requests; `None` runs for the scenario's duration or trace.
    pub measured: Option<u64>,
    /// What is warm-up.
    pub measure_from: Nanos,
}

impl<'a> Bench<'a> {
    /// Sources in the order of their tags: open ones first, then closed loops.
    fn sources(&self) -> impl Iterator<Item = &'a Source> {
        let closed = |s: &&Source| matches!(s.process, Process::ClosedLoop(_));
        let open = self.scenario.arrivals.iter().filter(move |s| !closed(s));
        open.chain(self.scenario.arrivals.iter().filter(closed))
    }

    /// Names of the classes, in order of first appearance; empty when none is named.
    #[must_use]
    pub fn classes(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        if self.scenario.arrivals.iter().any(|s| s.class.is_some()) {
            for source in self.sources() {
                let name = class_name(source);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// What the recorder measures, for latency limits in nanoseconds.
    #[must_use]
    pub fn plan(&self, limits_ns: &[u64], measure_from: Nanos) -> Plan {
        let classes = self.classes();
        let class_of = |s| classes.iter().position(|c| *c == class_name(s));
        let class_of_tag = self.sources().filter_map(class_of).map(narrow).collect();
        let client = self.scenario.client;
        Plan {
            measure_from_ns: measure_from.0,
            limits_ns: limits_ns.to_vec(),
            class_of_tag,
            classes: narrow(classes.len()),
            client_ns: client.before.plus(client.after).0,
        }
    }

    /// Whether the closed recurrence gives exactly what the event engine would.
    #[must_use]
    pub fn by_recurrence(&self) -> bool {
        let open = |s: &Source| !matches!(s.process, Process::ClosedLoop(_)) && s.timeout.is_none();
        self.engine == Engine::Auto
            && self.policy.has_law()
            && self.server.queue_limit.is_none()
            && self.scenario.arrivals.iter().all(open)
    }

    /// Whether the stream of arrivals is recorded: then there is one replay and no interval.
    #[must_use]
    pub fn replays_trace(&self) -> bool {
        self.scenario.arrivals.iter().any(|s| s.trace.is_some())
    }

    /// Runs a portion into a recorder.
    pub fn run<R: Recorder>(&self, portion: Portion, recorder: &mut R) -> Ending {
        self.run_under(portion, recorder, None)
    }

    /// Runs a portion into a recorder. Once the study stops no more requests arrive, so that what
    /// was recorded is part of what was asked for; gaps that others drew are taken from its tapes.
    pub fn run_under<R: Recorder>(
        &self,
        portion: Portion,
        recorder: &mut R,
        control: Option<&Control>,
    ) -> Ending {
        let fixed = FixedCost::new(&self.server.cost, self.policy.cap());
        let (instances, seed) = (self.server.instances, self.scenario.seed);
        let jittered = JitteredCost::new(
            fixed.clone(),
            &self.server.jitter,
            instances,
            seed,
            portion.replication,
        );
        match jittered {
            None => self.run_with(portion, fixed, recorder, control),
            Some(cost) => self.run_with(portion, cost, recorder, control),
        }
    }

    fn run_with<C: CostModel, R: Recorder>(
        &self,
        portion: Portion,
        mut cost: C,
        recorder: &mut R,
        control: Option<&Control>,
    ) -> Ending {
        let stop = control.map(Control::flag);
        let rules = self.rules(portion.replication);
        if self.by_recurrence() {
            let feed = self.feed(&portion, control).unless(stop);
            return recurrence::run(self.policy.law(), &mut cost, feed, &rules, recorder);
        }
        let feed = self.feed(&portion, control).unless(stop.clone());
        let loops = self.loops(&portion).map(|loops| loops.unless(stop));
        let inflow = Inflow { feed, loops };
        event::run(&mut self.policy.batcher(), &mut cost, inflow, &rules, recorder)
    }

    fn rules(&self, replication: u32) -> Rules {
        let any_timeout = self.scenario.arrivals.iter().any(|s| s.timeout.is_some());
        let timeout = |s: &Source| s.timeout.map_or(u64::MAX, |t| t.0);
        let cut = self.scenario.run.end == End::Cut;
        Rules {
            instances: self.server.instances,
            queue_limit: self.server.queue_limit.unwrap_or(u32::MAX),
            timeouts_ns: if any_timeout { self.sources().map(timeout).collect() } else { vec![] },
            cut_ns: if cut { self.scenario.run.duration.map(|d| d.0) } else { None },
            policy_rng: substream(self.scenario.seed, replication, 0, Purpose::Policy),
        }
    }

    /// When the last recorded arrival of the longest trace comes: other sources stop with it.
    fn trace_end(&self) -> Option<u64> {
        let end = |s: &Source| {
            let last = s.trace.as_ref()?.arrivals.last()?;
            let Process::Trace(replay) = &s.process else { return None };
            Some(Nanos::from_ms(last.as_ms() / replay.factor()).0.saturating_add(1))
        };
        self.scenario.arrivals.iter().filter_map(end).max()
    }

    fn limits(&self, portion: &Portion) -> Limits {
        let only_traces = self.scenario.arrivals.iter().all(|s| s.trace.is_some());
        let duration = self.scenario.run.duration.map(|d| d.0);
        let trace_end = if only_traces { None } else { self.trace_end() };
        Limits {
            measure_from_ns: portion.measure_from.0,
            measured: portion.measured,
            until_ns: duration.into_iter().chain(trace_end).min(),
        }
    }

    fn feed(&self, portion: &Portion, control: Option<&Control>) -> Feed {
        let (seed, replication) = (self.scenario.seed, portion.replication);
        let streams = (0..).zip(self.sources()).filter_map(|(number, source)| {
            let rng = substream(seed, replication, number, Purpose::Arrivals);
            let tape = match &source.process {
                Process::Poisson(_) => {
                    control.and_then(|c| c.tapes().of(seed, replication, number))
                }
                _ => None,
            };
            // A resolved scenario holds only processes that can be meant.
            source.process.stream_on(tape, source.trace.as_ref(), rng).ok().flatten()
        });
        let closed = |s: &Source| matches!(s.process, Process::ClosedLoop(_));
        let mut limits = self.limits(portion);
        if self.scenario.arrivals.iter().any(closed) {
            // The loops count the requests of both.
            limits.measured = None;
        }
        Feed::new(streams.collect(), limits)
    }

    fn loops(&self, portion: &Portion) -> Option<Loops> {
        let client = self.scenario.client;
        let callers: Vec<Callers> = (0..)
            .zip(self.sources())
            .filter_map(|(number, source)| {
                let Process::ClosedLoop(p) = &source.process else { return None };
                let (seed, replication) = (self.scenario.seed, portion.replication);
                Some(Callers {
                    tag: narrow(number as usize),
                    clients: p.clients,
                    think: p.think,
                    away_ns: client.before.plus(client.after).0,
                    rng: substream(seed, replication, number, Purpose::Think),
                })
            })
            .collect();
        let Limits { measure_from_ns, measured, until_ns } = self.limits(portion);
        (!callers.is_empty()).then(|| Loops::new(callers, measure_from_ns, measured, until_ns))
    }
}

fn class_name(source: &Source) -> String {
    source.class.clone().unwrap_or_else(|| "unnamed".into())
}

/// Sources and classes number at most 256; the scenario reader sees to it.
fn narrow(n: usize) -> u8 {
    u8::try_from(n).unwrap_or(u8::MAX)
}

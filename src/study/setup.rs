//! From a resolved scenario to what an engine needs.

use super::control::Control;
use super::verdict::group_limits_ns;
use crate::arrivals::{Feed, Limits, Process, Tags};
use crate::cost::{CostModel, FixedCost, JitteredCost};
use crate::engine::{
    Balancer, Callers, Ending, Flight, Inflow, Kind, Kinds, Loops, Rules, Watched, event, fleet,
    recurrence,
};
use crate::policy::{Batcher, Policy, Visit};
use crate::record::{GroupSource, Plan, Recorder};
use crate::rng::{Purpose, SimRng, substream};
use crate::scenario::{End, Scenario, Server, Source};
use crate::time::Nanos;
use std::sync::Arc;

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

    /// What requests say of themselves, by tag.
    fn kinds(&self) -> Kinds {
        Kinds::new(self.sources().flat_map(|s| self.kinds_of(s)).collect())
    }

    /// What the requests of each source say of themselves, in the order of their tags: an item
    /// count or a recorded mark each.
    fn kinds_of(&self, source: &Source) -> Vec<Kind> {
        let shapes: Vec<&Option<String>> = self.sources().map(|s| &s.shape).collect();
        let shape = shapes.iter().position(|s| **s == source.shape).map_or(0, narrow);
        let timeout = source.timeout.unwrap_or(Nanos::MAX);
        let plain = Kind { timeout, shape: u16::from(shape), priority: source.priority, items: 1 };
        match &source.trace {
            Some(trace) if !trace.mark_table.is_empty() => trace
                .mark_table
                .iter()
                .map(|mark| Kind { items: mark.items, priority: mark.priority, ..plain })
                .collect(),
            _ => {
                let (low, high) = source.items.range();
                (low..=high).map(|items| Kind { items, ..plain }).collect()
            }
        }
    }

    /// Every source with the first of its tags.
    fn tagged_sources(&self) -> impl Iterator<Item = (u8, &'a Source)> {
        let kinds = |s: &Source| self.kinds_of(s).len();
        self.sources().scan(0, move |next, source| {
            let first = *next;
            *next += kinds(source);
            Some((narrow(first), source))
        })
    }

    /// The tags of the requests of a source.
    fn tags(&self, number: u32, first: u8, source: &Source, replication: u32) -> Tags {
        let (low, high) = source.items.range();
        match &source.trace {
            Some(trace) if !trace.mark_table.is_empty() => Tags::recorded(first, Arc::clone(trace)),
            _ if low == high => Tags::same(first),
            _ => {
                let rng = substream(self.scenario.seed, replication, number, Purpose::Items);
                Tags::drawn(first, high - low + 1, rng)
            }
        }
    }

    /// What the recorder measures, for latency limits in nanoseconds.
    #[must_use]
    pub fn plan(&self, limits_ns: &[u64], measure_from: Nanos) -> Plan {
        let classes = self.classes();
        let class_of = |s| classes.iter().position(|c| *c == class_name(s));
        let tags = |s: &'a Source| std::iter::repeat_n(s, self.kinds_of(s).len());
        let class_of_tag = self.sources().flat_map(tags).filter_map(class_of).map(narrow).collect();
        Plan {
            measure_from_ns: measure_from.0,
            limits_ns: limits_ns.to_vec(),
            class_of_tag,
            classes: narrow(classes.len()),
            client_ns: self.scenario.outside(self.server).0,
            group_limits_ns: group_limits_ns(&self.scenario.thresholds),
        }
    }

    /// The sources whose requests come in groups, as a replication draws them.
    #[must_use]
    pub fn group_sources(&self, replication: u32) -> Vec<GroupSource> {
        let numbered = (0..).zip(self.tagged_sources());
        numbered
            .filter_map(|(number, (first, source))| {
                let Process::Groups(params) = &source.process else { return None };
                let seed = self.scenario.seed;
                let rng = substream(seed, replication, number, Purpose::Arrivals);
                Some(GroupSource::new(params, rng, first, narrow(self.kinds_of(source).len())))
            })
            .collect()
    }

    /// Whether the closed recurrence gives exactly what the event engine would.
    #[must_use]
    pub fn by_recurrence(&self) -> bool {
        let open = |s: &Source| !matches!(s.process, Process::ClosedLoop(_)) && s.timeout.is_none();
        self.engine == Engine::Auto
            && self.policy.law().is_some()
            && self.server.queue_limit.is_none()
            && self.server.replicas == 1
            && self.scenario.arrivals.iter().all(open)
            && self.server.overhead.holds_nothing()
            && self.kinds().is_plain()
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
        let (instances, seed) = (self.server.slots(), self.scenario.seed);
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

    fn run_with<C: CostModel + Clone, R: Recorder>(
        &self,
        portion: Portion,
        mut cost: C,
        recorder: &mut R,
        control: Option<&Control>,
    ) -> Ending {
        let stop = control.map(Control::flag);
        let rules = self.rules(portion.replication);
        if let Some(law) = self.policy.law().filter(|_| self.by_recurrence()) {
            let feed = self.feed(&portion, control).unless(stop);
            return recurrence::run(law, &mut cost, feed, &rules, recorder);
        }
        let feed = self.feed(&portion, control).unless(stop.clone());
        if self.server.replicas > 1 {
            return self.run_fleet(portion.replication, &cost, feed, recorder);
        }
        let loops = self.loops(&portion).map(|loops| loops.unless(stop));
        let inflow = Inflow { feed, loops };
        self.policy.visit(OnEvents { cost: &mut cost, inflow, rules: &rules, recorder })
    }

    /// Runs a portion on the event engine and keeps what happened to every request: memory grows
    /// with the length of the run.
    pub fn fly<R: Recorder>(&self, portion: Portion, recorder: &mut R) -> (Ending, Flight) {
        let fixed = FixedCost::new(&self.server.cost, self.policy.cap());
        let (instances, seed) = (self.server.instances, self.scenario.seed);
        let (jitter, number) = (&self.server.jitter, portion.replication);
        let jittered = JitteredCost::new(fixed.clone(), jitter, instances, seed, number);
        let inflow = Inflow { feed: self.feed(&portion, None), loops: self.loops(&portion) };
        let rules = self.rules(portion.replication);
        let mut cost = EitherCost { fixed, jittered };
        self.policy.visit(Recorded(OnEvents { cost: &mut cost, inflow, rules: &rules, recorder }))
    }

    /// Every replica makes its own choices; closed loops do not reach a fleet.
    fn run_fleet<C: CostModel + Clone, R: Recorder>(
        &self,
        replication: u32,
        cost: &C,
        feed: Feed,
        recorder: &mut R,
    ) -> Ending {
        let seed = self.scenario.seed;
        let rules: Vec<Rules> = (0..self.server.replicas)
            .map(|replica| Rules {
                policy_rng: substream(seed, replication, replica, Purpose::Policy),
                ..self.rules(replication)
            })
            .collect();
        let rng = substream(seed, replication, 0, Purpose::Balancer);
        let balancer = (self.server.balancer, rng);
        self.policy.visit(OnFleet { cost, feed, balancer, rules: &rules, recorder })
    }

    fn rules(&self, replication: u32) -> Rules {
        let cut = self.scenario.run.end == End::Cut;
        Rules {
            instances: self.server.instances,
            queue_limit: self.server.queue_limit.unwrap_or(u32::MAX),
            kinds: self.kinds(),
            dispatch: self.server.overhead.dispatch,
            release: [self.server.overhead.release, self.server.overhead.release_per_request],
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
        let sources = (0..).zip(self.tagged_sources()).filter_map(|(number, (first, source))| {
            let rng = substream(seed, replication, number, Purpose::Arrivals);
            let tape = match &source.process {
                Process::Poisson(_) => {
                    control.and_then(|c| c.tapes().of(seed, replication, number))
                }
                _ => None,
            };
            // A resolved scenario holds only processes that can be meant.
            let stream =
                source.process.stream_on(tape, source.trace.as_ref(), rng).ok().flatten()?;
            Some((stream, self.tags(number, first, source, replication)))
        });
        let (streams, tags) = sources.unzip();
        let closed = |s: &Source| matches!(s.process, Process::ClosedLoop(_));
        let mut limits = self.limits(portion);
        if self.scenario.arrivals.iter().any(closed) {
            // The loops count the requests of both.
            limits.measured = None;
        }
        Feed::tagged(streams, tags, limits)
    }

    fn loops(&self, portion: &Portion) -> Option<Loops> {
        let callers: Vec<Callers> = (0..)
            .zip(self.tagged_sources())
            .filter_map(|(number, (first, source))| {
                let Process::ClosedLoop(p) = &source.process else { return None };
                let (seed, replication) = (self.scenario.seed, portion.replication);
                Some(Callers {
                    tags: self.tags(number, first, source, replication),
                    clients: p.clients,
                    think: p.think,
                    away_ns: self.scenario.outside(self.server).0,
                    rng: substream(seed, replication, number, Purpose::Think),
                })
            })
            .collect();
        let Limits { measure_from_ns, measured, until_ns } = self.limits(portion);
        (!callers.is_empty()).then(|| Loops::new(callers, measure_from_ns, measured, until_ns))
    }
}

/// Runs whatever batcher it is given on the event engine.
struct OnEvents<'a, C, R> {
    cost: &'a mut C,
    inflow: Inflow,
    rules: &'a Rules,
    recorder: &'a mut R,
}

impl<C: CostModel, R: Recorder> Visit for OnEvents<'_, C, R> {
    type Out = Ending;

    fn visit<B: Batcher + Clone>(self, mut batcher: B) -> Ending {
        event::run(&mut batcher, self.cost, self.inflow, self.rules, self.recorder)
    }
}

/// Runs whatever batcher it is given on every replica of a fleet.
struct OnFleet<'a, C, R> {
    cost: &'a C,
    feed: Feed,
    balancer: (Balancer, SimRng),
    rules: &'a [Rules],
    recorder: &'a mut R,
}

impl<C: CostModel + Clone, R: Recorder> Visit for OnFleet<'_, C, R> {
    type Out = Ending;

    fn visit<B: Batcher + Clone>(self, batcher: B) -> Ending {
        fleet::run(&batcher, self.cost, self.feed, self.balancer, self.rules, self.recorder)
    }
}

/// The same, watched.
struct Recorded<'a, C, R>(OnEvents<'a, C, R>);

impl<C: CostModel, R: Recorder> Visit for Recorded<'_, C, R> {
    type Out = (Ending, Flight);

    fn visit<B: Batcher + Clone>(self, batcher: B) -> (Ending, Flight) {
        let OnEvents { cost, inflow, rules, recorder } = self.0;
        let mut watched = Watched::new(batcher);
        let ending = event::run(&mut watched, cost, inflow, rules, recorder);
        (ending, watched.flight())
    }
}

/// A cost with or without jitter, where speed matters less than one engine more.
struct EitherCost {
    fixed: FixedCost,
    jittered: Option<JitteredCost>,
}

impl CostModel for EitherCost {
    fn took_ns(&mut self, slot: u32, items: u32) -> u64 {
        match &mut self.jittered {
            None => self.fixed.took_ns(slot, items),
            Some(jittered) => jittered.took_ns(slot, items),
        }
    }
}

fn class_name(source: &Source) -> String {
    source.class.clone().unwrap_or_else(|| "unnamed".into())
}

/// Sources and classes number at most 256; the scenario reader sees to it.
fn narrow(n: usize) -> u8 {
    u8::try_from(n).unwrap_or(u8::MAX)
}

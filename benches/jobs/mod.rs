//! What the benches run: every policy on both engines, in the running example.

use batchsim::arrivals::{Feed, Limits, Poisson, Process, Stream};
use batchsim::cost::{Affine, Cost, CostModel, Exponential, FixedCost, Jitter, JitteredCost};
use batchsim::engine::{Ending, Inflow, Kind, Kinds, Rules, event, recurrence};
use batchsim::policy::{
    Anchor, Batcher, Dynamic, Greedy, LitServe, MaxWait, Mosec, Policy, QueuePolicy, Static,
    TorchServe, Triton, Unbatched, Visit,
};
use batchsim::record::{Histogram, Plan, Recorder, Summary};
use batchsim::rng::{Purpose, SimRng, substream};
use batchsim::time::Nanos;
use batchsim::units::Rate;

/// The latency limit whose attainment is counted, ns.
pub const LIMIT_NS: u64 = 30_000_000;
const SEED: u64 = 1;

/// The generator of the arrivals of every job.
#[must_use]
pub fn rng() -> SimRng {
    substream(SEED, 0, 0, Purpose::Arrivals)
}

/// Which engine runs a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// `recurrence::run`.
    Recurrence,
    /// `event::run`.
    Event,
}

/// One policy on one engine.
#[derive(Clone, Debug)]
pub struct Job {
    /// For tables.
    pub name: &'static str,
    /// Which engine.
    pub engine: Engine,
    /// The policy.
    pub policy: Policy,
    /// Poisson arrivals per second.
    pub rate_per_s: f64,
    /// Instances that share the queue.
    pub instances: u32,
    /// Exponential service times?
    pub jitter: bool,
    /// Most waiting requests.
    pub queue_limit: u32,
    /// Timeout of every request, ns.
    pub timeout_ns: Option<u64>,
}

/// `dynamic` with cap 32 and wait 5 ms.
#[must_use]
pub fn dynamic(wait_anchor: Anchor, preferred: &[u32]) -> Policy {
    Policy::Dynamic(Dynamic {
        max_batch_size: 32,
        max_wait: MaxWait::After(Nanos(5_000_000)),
        wait_anchor,
        min_batch_size: None,
        preferred_batch_sizes: preferred.to_vec(),
    })
}

impl Job {
    /// A job at `rate_per_s` with one instance and nothing else.
    #[must_use]
    pub fn new(name: &'static str, engine: Engine, policy: Policy, rate_per_s: f64) -> Self {
        Self {
            name,
            engine,
            policy,
            rate_per_s,
            instances: 1,
            jitter: false,
            queue_limit: u32::MAX,
            timeout_ns: None,
        }
    }

    /// The job that the limit loop also does.
    #[must_use]
    pub fn limit(engine: Engine, rate_per_s: f64) -> Self {
        let name = match engine {
            Engine::Recurrence => "dynamic/recurrence",
            Engine::Event => "dynamic/event",
        };
        Self::new(name, engine, dynamic(Anchor::OldestArrival, &[]), rate_per_s)
    }

    /// Draws, simulates and summarises `requests` arrivals.
    #[must_use]
    pub fn run(&self, requests: u64) -> Summary<Histogram<10>> {
        self.run_on(poisson(self.rate_per_s), requests)
    }

    /// The same on other arrivals.
    #[must_use]
    pub fn run_on(&self, stream: Box<dyn Stream + Send>, requests: u64) -> Summary<Histogram<10>> {
        let plan = Plan { limits_ns: vec![LIMIT_NS], ..Plan::default() };
        let mut summary = Summary::new(plan);
        let cost = Cost::Affine(Affine { fixed: Nanos(8_000_000), per_item: Nanos(500_000) });
        let mut fixed = FixedCost::new(&cost, self.policy.cap());
        let limits = Limits { measure_from_ns: 0, measured: Some(requests), until_ns: None };
        let feed = Feed::new(vec![stream], limits);
        let jitter =
            if self.jitter { Jitter::Exponential(Exponential {}) } else { Jitter::default() };
        match JitteredCost::new(fixed.clone(), &jitter, self.instances, SEED, 0) {
            Some(mut cost) => self.run_with(&mut cost, feed, &mut summary),
            None => self.run_with(&mut fixed, feed, &mut summary),
        };
        summary
    }

    fn run_with(&self, cost: &mut impl CostModel, feed: Feed, to: &mut impl Recorder) -> Ending {
        let rules = Rules {
            instances: self.instances,
            queue_limit: self.queue_limit,
            kinds: Kinds::new(
                self.timeout_ns
                    .map(|t| Kind { timeout: Nanos(t), ..Kind::default() })
                    .into_iter()
                    .collect(),
            ),
            dispatch: Nanos::ZERO,
            release: [Nanos::ZERO; 2],
            cut_ns: None,
            policy_rng: substream(SEED, 0, 0, Purpose::Policy),
        };
        match self.engine {
            Engine::Recurrence => {
                let law = self.policy.law().expect("jobs of the recurrence have a law");
                recurrence::run(law, cost, feed, &rules, to)
            }
            Engine::Event => {
                let inflow = Inflow { feed, loops: None };
                self.policy.visit(OnEvents { cost, inflow, rules: &rules, to })
            }
        }
    }
}

/// Runs whatever batcher it is given.
struct OnEvents<'a, C, R> {
    cost: &'a mut C,
    inflow: Inflow,
    rules: &'a Rules,
    to: &'a mut R,
}

impl<C: CostModel, R: Recorder> Visit for OnEvents<'_, C, R> {
    type Out = Ending;

    fn visit<B: Batcher>(self, mut batcher: B) -> Ending {
        event::run(&mut batcher, self.cost, self.inflow, self.rules, self.to)
    }
}

/// Poisson arrivals of the benches.
#[must_use]
pub fn poisson(rate_per_s: f64) -> Box<dyn Stream + Send> {
    let rate = Rate::per_second(rate_per_s).expect("rates are positive");
    let process = Process::Poisson(Poisson { rate });
    process.stream(None, rng()).ok().flatten().expect("poisson is open loop")
}

/// Arrivals that are known.
pub struct Known<'a> {
    times: &'a [u64],
}

/// The first `n` Poisson arrivals.
#[must_use]
pub fn arrivals(rate_per_s: f64, n: usize) -> Vec<u64> {
    let mut times = vec![0; n];
    poisson(rate_per_s).fill(&mut times);
    times
}

impl Known<'static> {
    /// A stream of these arrivals.
    #[must_use]
    pub fn stream(times: &'static [u64]) -> Box<dyn Stream + Send> {
        Box::new(Self { times })
    }
}

impl Stream for Known<'_> {
    fn fill(&mut self, out: &mut [u64]) -> usize {
        let n = out.len().min(self.times.len());
        out[..n].copy_from_slice(&self.times[..n]);
        self.times = &self.times[n..];
        n
    }
}

/// Every policy on every engine that can run it.
#[must_use]
pub fn all() -> Vec<Job> {
    use Engine::{Event, Recurrence};
    let both = |name: [&'static str; 2], policy: &Policy, rate: f64| {
        [
            Job::new(name[0], Recurrence, policy.clone(), rate),
            Job::new(name[1], Event, policy.clone(), rate),
        ]
    };
    let oldest = dynamic(Anchor::OldestArrival, &[]);
    let fixed = Policy::Static(Static { max_batch_size: 32 });
    let greedy = Policy::Greedy(Greedy { max_batch_size: Some(32) });
    let pickup = dynamic(Anchor::Pickup, &[]);
    let mut jobs = Vec::new();
    jobs.extend(both(["none", "none"], &Policy::None(Unbatched {}), 100.0));
    jobs.extend(both(["static", "static"], &fixed, 1000.0));
    jobs.extend(both(["greedy", "greedy"], &greedy, 1000.0));
    jobs.extend(both(["dynamic", "dynamic"], &oldest, 1000.0));
    jobs.extend(both(["dynamic, pickup", "dynamic, pickup"], &pickup, 1000.0));
    let four = both(["4 instances", "4 instances"], &oldest, 4000.0);
    jobs.extend(four.map(|job| Job { instances: 4, ..job }));
    let jitter = both(["jitter", "jitter"], &oldest, 1000.0);
    jobs.extend(jitter.map(|job| Job { jitter: true, ..job }));
    let preferred = dynamic(Anchor::OldestArrival, &[8, 16]);
    jobs.push(Job::new("preferred sizes", Event, preferred, 1000.0));
    let limited = Job::new("queue limit", Event, oldest.clone(), 1300.0);
    jobs.push(Job { queue_limit: 64, ..limited });
    let timed = Job::new("timeouts", Event, oldest, 1300.0);
    jobs.push(Job { timeout_ns: Some(50_000_000), ..timed });
    jobs
}

/// The policies of real servers, with cap 32 and wait 5 ms, on one worker and on four.
#[must_use]
pub fn servers() -> Vec<Job> {
    let torchserve = Policy::TorchServe(TorchServe {
        batch_size: 32,
        max_batch_delay: 5,
        ..TorchServe::default()
    });
    let mosec = Policy::Mosec(Mosec { max_batch_size: 32, max_wait_time: 5, ..Mosec::default() });
    let litserve = Policy::LitServe(LitServe {
        max_batch_size: 32,
        batch_timeout: 0.005,
        ..LitServe::default()
    });
    let triton = Triton { max_batch_size: 32, ..Triton::default() };
    let delay = Triton { max_queue_delay_microseconds: 5_000, ..triton.clone() };
    let policy = QueuePolicy { max_queue_size: 10_000, ..QueuePolicy::default() };
    let limited = Triton { default_queue_policy: Some(policy), ..delay.clone() };
    let sizes = Triton { preferred_batch_size: vec![8, 16], ..delay.clone() };
    let shapes = Triton { enforce_shapes: true, ..delay.clone() };
    let tritons = [
        ("triton, no delay", triton),
        ("triton, delay", delay),
        ("triton, queue policy", limited),
        ("triton, preferred sizes", sizes),
        ("triton, shapes", shapes),
    ]
    .map(|(name, p)| Job::new(name, Engine::Event, Policy::Triton(p), 1000.0));
    let one = [("torchserve", &torchserve), ("mosec", &mosec), ("litserve", &litserve)];
    let four = [("torchserve, 4", &torchserve), ("mosec, 4", &mosec), ("litserve, 4", &litserve)];
    let on_one = one.map(|(name, p)| Job::new(name, Engine::Event, p.clone(), 1000.0));
    let on_four = four
        .map(|(name, p)| Job { instances: 4, ..Job::new(name, Engine::Event, p.clone(), 4000.0) });
    tritons.into_iter().chain(on_one).chain(on_four).collect()
}

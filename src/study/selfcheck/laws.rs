//! Laws that hold in every run, whatever its numbers: nothing is lost, and the latencies add up to
//! the number of requests in the system integrated over time.

use super::worlds::{policy, world};
use super::{Player, Row};
use crate::record::{BatchRow, Gone, Histogram, Recorder, Summary};
use crate::scenario::{Diagnostic, Scenario};
use crate::study::{Bench, Engine, Portion};
use crate::time::Nanos;

/// Hears a run twice: as a summary, which is what results are made of, and step by step.
pub struct Watch {
    /// The summary under test.
    pub summary: Summary<Histogram<10>>,
    /// Moments at which the number in the system changes, ns, and by how much.
    pub steps: Vec<(u64, i64)>,
    /// Arrivals heard.
    pub arrived: u64,
    /// Time in the system of requests that left without an answer, ns.
    pub lost_ns: u128,
    /// Service time of all batches, ns.
    pub busy_ns: u128,
}

impl Watch {
    fn new(bench: &Bench<'_>) -> Self {
        let summary = Summary::new(bench.plan(&[], Nanos::ZERO));
        Self { summary, steps: Vec::new(), arrived: 0, lost_ns: 0, busy_ns: 0 }
    }

    /// Requests in the system, integrated over time, ns.
    fn area_ns(&mut self) -> i128 {
        self.steps.sort_unstable();
        let (mut area, mut present, mut before) = (0, 0i64, 0);
        for (at, step) in &self.steps {
            area += i128::from(present) * i128::from(at - before);
            (present, before) = (present + step, *at);
        }
        area
    }
}

impl Recorder for Watch {
    fn arrived(&mut self, times: &[u64]) {
        self.arrived += times.len() as u64;
        self.steps.extend(times.iter().map(|at| (*at, 1)));
        self.summary.arrived(times);
    }

    fn completed(&mut self, batch: &BatchRow, arrivals: &[u64], tags: &[u8], first: bool) {
        let done = batch.start_ns + batch.took_ns;
        self.steps.extend(arrivals.iter().map(|_| (done, -1)));
        self.busy_ns += if first { u128::from(batch.took_ns) } else { 0 };
        self.summary.completed(batch, arrivals, tags, first);
    }

    fn gone(&mut self, arrival_ns: u64, tag: u8, at_ns: u64, why: Gone) {
        self.steps.push((at_ns, -1));
        self.lost_ns += u128::from(at_ns - arrival_ns);
        self.summary.gone(arrival_ns, tag, at_ns, why);
    }

    fn arrivals_ended(&mut self, at_ns: u64) {
        self.summary.arrivals_ended(at_ns);
    }

    fn ended(&mut self, at_ns: u64) {
        self.summary.ended(at_ns);
    }
}

/// Requests of each run.
const REQUESTS: u64 = 50_000;

/// Name, arrivals, what else the server has, policy, engine.
const CASES: [(&str, &str, &str, &str, Engine); 6] = [
    ("dynamic, recurrence", POISSON, "", "dynamic", Engine::Auto),
    ("dynamic, event engine", POISSON, "", "dynamic", Engine::Event),
    ("static, two instances", POISSON, "instances = 2", "static", Engine::Auto),
    ("greedy, bursts, jitter", BURSTS, "jitter = \"exponential\"", "greedy", Engine::Auto),
    ("pickup, queue limit, timeouts", TIMED, "queue_limit = 40", "pickup", Engine::Auto),
    ("greedy, closed loop", LOOP, "", "greedy", Engine::Auto),
];

const POISSON: &str = "kind = \"poisson\"\nrate = \"1000/s\"";
const BURSTS: &str =
    "kind = \"mmpp\"\nrates = [\"1500/s\", \"300/s\"]\ndwells = [\"80ms\", \"80ms\"]";
const TIMED: &str = "kind = \"poisson\"\nrate = \"1500/s\"\ntimeout = \"40ms\"";
const LOOP: &str = "kind = \"closed-loop\"\nclients = 50\n\
                    think = { mean = \"20ms\", kind = \"exponential\" }";

pub(super) fn rows(play: Player<'_>) -> Result<Vec<Row>, Vec<Diagnostic>> {
    let mut rows = Vec::new();
    for (name, arrivals, server, label, engine) in CASES {
        let world = world(arrivals, server, REQUESTS, &[])?;
        rows.extend(case(play, name, &world, label, engine));
    }
    Ok(rows)
}

#[expect(clippy::cast_precision_loss, reason = "differences are taken before")]
fn case(play: Player<'_>, name: &str, world: &Scenario, label: &str, engine: Engine) -> Vec<Row> {
    let Some((server, policy)) = world.servers.first().zip(policy(world, label)) else {
        return vec![Row::none("laws", format!("{name}: no such case"), "cases", 1)];
    };
    let bench = Bench { scenario: world, server, policy: &policy.policy, engine };
    let mut watch = Watch::new(&bench);
    let portion = Portion { replication: 0, measured: Some(REQUESTS), measure_from: Nanos::ZERO };
    play(&bench, portion, &mut watch);

    let ms = |ns: i128| ns as f64 / 1e6;
    let area = watch.area_ns();
    let sum = (watch.summary.latency_sum_ns + watch.lost_ns) as i128;
    let row = |what: &str, unit: &'static str, expected: f64, got: f64, difference: f64| {
        let ok = difference == 0.0;
        let what = format!("{what}, {name}");
        Row { group: "laws", what, unit, expected, got, difference, limit: 0.0, ok }
    };
    // Integers are compared as such: none of them is off by one.
    let little = row("Little: sum of latencies", "ms", ms(area), ms(sum), ms(sum - area));
    let (heard, kept) = (watch.busy_ns as i128, watch.summary.busy_all_ns as i128);
    let busy = row("busy time", "ms", ms(heard), ms(kept), ms(kept - heard));
    let (arrived, accounted) = (watch.arrived, watch.summary.counts.total());
    let difference = accounted as f64 - arrived as f64;
    let kept = row("nothing is lost", "requests", arrived as f64, accounted as f64, difference);
    vec![little, busy, kept]
}

//! Whole studies: the same bytes on any number of threads, and the numbers of the exact solver.

use super::theory::linear_ms;
use super::worlds::{policy, world};
use super::{Row, Subjects};
use crate::exact::classic::{MMc, pollaczek_khinchine_wait_ms};
use crate::exact::{Anchor, Input, Rule};
use crate::policy::Reason;
use crate::record::{Histogram, Summary};
use crate::scenario::Diagnostic;
use crate::stats::{standard_error, t_quantile};
use crate::study::{Bench, Budget, Control, Engine, Measured, Options, run, simulate};

/// Probability that a correct build fails, were the seed drawn at random.
const LEVEL: f64 = 0.001;

/// One study at 1, 2 and 7 threads.
pub(super) fn threads() -> Result<Row, Vec<Diagnostic>> {
    let world = world("kind = \"poisson\"\nrate = \"900/s\"", "", 40_000, &[])?;
    let bytes = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok()?;
        let study = || run(&world, &Options::default(), &Control::default()).0;
        serde_json::to_vec(&pool.install(study)).ok()
    };
    let results = [1, 2, 7].map(bytes);
    // Threads that cannot be started are none that agree.
    let mut different: Vec<_> = results.iter().flatten().collect();
    let missing = results.len() - different.len();
    different.sort();
    different.dedup();
    let what = "results that differ at 1, 2 and 7 threads";
    Ok(Row::none("threads", what, "results", different.len().saturating_sub(1) + missing))
}

/// A number that is simulated and known.
#[derive(Clone, Copy)]
enum Metric {
    Mean,
    Quantile(f64),
    Batch,
}

impl Metric {
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    fn of(self, s: &Summary<Histogram<10>>) -> f64 {
        match self {
            Self::Mean => s.latency_sum_ns as f64 / s.counts.completed as f64 / 1e6,
            Self::Quantile(q) => s.latency.quantiles(&[q]).map_or(f64::NAN, |v| v[0] / 1e6),
            Self::Batch => {
                // What the end of the run let go is no part of the steady state.
                let flushed = Reason::Flush as usize;
                let steady = |by: &[u64; Reason::COUNT]| by.iter().sum::<u64>() - by[flushed];
                let batches: u64 = s.batches.iter().map(steady).sum();
                let items: u64 = (0..).zip(&s.batches).map(|(n, by)| n * steady(by)).sum();
                items as f64 / batches as f64
            }
        }
    }

    fn name(self) -> (&'static str, &'static str) {
        match self {
            Self::Mean => ("mean", "ms"),
            Self::Quantile(q) if q < 0.9 => ("p50", "ms"),
            Self::Quantile(_) => ("p99", "ms"),
            Self::Batch => ("mean batch", "items"),
        }
    }
}

/// A cell that is simulated, and what it should come to.
struct Point {
    name: &'static str,
    arrivals: String,
    server: &'static str,
    policy: &'static str,
    expected: Vec<(Metric, f64)>,
}

impl Point {
    fn solved(
        subjects: &Subjects<'_>,
        name: &'static str,
        arrivals: String,
        policy: &'static str,
        input: &Input,
        rule: &Rule,
    ) -> Self {
        let solution = (subjects.solve)(input, rule, &linear_ms).ok();
        let number =
            |f: &dyn Fn(&crate::exact::Solution) -> f64| solution.as_ref().map_or(f64::NAN, f);
        let expected = vec![
            (Metric::Mean, number(&|s| s.mean_ms())),
            (Metric::Quantile(0.5), number(&|s| s.quantile_ms(0.5))),
            (Metric::Quantile(0.99), number(&|s| s.quantile_ms(0.99))),
            (Metric::Batch, number(&|s| s.mean_batch())),
        ];
        Self { name, arrivals, server: "", policy, expected }
    }
}

/// Batching rules, and their exact solutions.
fn batching(subjects: &Subjects<'_>) -> Vec<Point> {
    let poisson = |rate_per_s| Input::Poisson { rate_per_s };
    let timer = |anchor| Rule::Timer { cap: 32, wait_ms: 5.0, anchor };
    let at_least = |min, cap| Rule::AtLeast { min, cap: Some(cap) };
    let bursts = Input::Mmpp2 { rates_per_s: [1500.0, 300.0], dwells_ms: [100.0, 300.0] };
    let phases =
        "kind = \"mmpp\"\nrates = [\"1500/s\", \"300/s\"]\ndwells = [\"100ms\", \"300ms\"]";
    let (oldest, pickup) = (timer(Anchor::Oldest), timer(Anchor::Pickup));
    [
        ("dynamic 32, 5 ms, 1,000/s", "1000/s", "dynamic", poisson(1000.0), oldest),
        ("dynamic 32, 5 ms from pickup, 800/s", "800/s", "pickup", poisson(800.0), pickup),
        ("greedy 32, 1,200/s", "1200/s", "greedy", poisson(1200.0), at_least(1, 32)),
        ("static 32, 900/s", "900/s", "static", poisson(900.0), at_least(32, 32)),
        ("none, 80/s", "80/s", "none", poisson(80.0), at_least(1, 1)),
        ("greedy 32, bursts of 1,500/s", "", "greedy", bursts, at_least(1, 32)),
    ]
    .into_iter()
    .map(|(name, rate, policy, input, rule)| {
        let arrivals = if rate.is_empty() { phases.to_owned() } else { poisson_at(rate) };
        Point::solved(subjects, name, arrivals, policy, &input, &rule)
    })
    .collect()
}

/// Single servers with random service, and their closed forms.
fn classic() -> Vec<Point> {
    let erlang = |rate, servers| MMc::new(rate, 8.5, servers);
    let mean = |queue: Result<MMc, _>| queue.map_or(f64::NAN, |q| q.mean_sojourn_ms());
    let lognormal = 8.5 + pollaczek_khinchine_wait_ms(80.0, 8.5, 0.25);
    let exponential = "jitter = \"exponential\"";
    let four = "instances = 4\njitter = \"exponential\"";
    let skewed = "jitter = { kind = \"lognormal\", cv = 0.5 }";
    [
        ("M/M/1 (Erlang), 80/s", "80/s", exponential, mean(erlang(80.0, 1))),
        ("M/M/4 (Erlang), 320/s", "320/s", four, mean(erlang(320.0, 4))),
        ("M/G/1 (Pollaczek-Khinchine), 80/s", "80/s", skewed, lognormal),
    ]
    .into_iter()
    .map(|(name, rate, server, mean_ms)| Point {
        name,
        arrivals: poisson_at(rate),
        server,
        policy: "none",
        expected: vec![(Metric::Mean, mean_ms)],
    })
    .collect()
}

fn poisson_at(rate: &str) -> String {
    format!("kind = \"poisson\"\nrate = \"{rate}\"")
}

/// Simulated numbers within the joint limit of their standard errors.
pub(super) fn against_exact(subjects: &Subjects<'_>) -> Result<Vec<Row>, Vec<Diagnostic>> {
    let points: Vec<Point> = batching(subjects).into_iter().chain(classic()).collect();
    let numbers: usize = points.iter().map(|p| p.expected.len()).sum();
    let mut rows = Vec::with_capacity(numbers);
    for point in &points {
        let measured = measure(point, subjects)?;
        for &(metric, expected) in &point.expected {
            let (number, unit) = metric.name();
            let what = format!("{number}, {}", point.name);
            let (got, limit) = measured
                .as_ref()
                .map_or((f64::NAN, 0.0), |m| (metric.of(&m.pooled), allowed(metric, m, numbers)));
            rows.push(Row::new("simulation, exact", what, unit, expected, got, limit));
        }
    }
    Ok(rows)
}

fn measure(
    point: &Point,
    subjects: &Subjects<'_>,
) -> Result<Option<Measured<Histogram<10>>>, Vec<Diagnostic>> {
    let world = world(&point.arrivals, point.server, subjects.requests, subjects.sets)?;
    let Some((server, policy)) = world.servers.first().zip(policy(&world, point.policy)) else {
        return Ok(None);
    };
    let bench = Bench { scenario: &world, server, policy: &policy.policy, engine: Engine::Auto };
    let budget = Budget { precision: 1.0, first_wave: subjects.requests, cap: subjects.requests };
    Ok(simulate(&bench, &[], &budget, false, &Control::default()))
}

/// Bonferroni: all numbers together leave their limits with probability [`LEVEL`].
#[expect(clippy::cast_precision_loss, reason = "a handful")]
fn allowed(metric: Metric, m: &Measured<Histogram<10>>, numbers: usize) -> f64 {
    let sections: Vec<f64> = m.sections.iter().map(|s| metric.of(s)).collect();
    let pooled = metric.of(&m.pooled);
    // A histogram knows a quantile to half a bin.
    let bin = if matches!(metric, Metric::Quantile(_)) { pooled / 2048.0 } else { 0.0 };
    let error = standard_error(pooled, &sections).unwrap_or(f64::NAN).hypot(bin);
    let df = sections.len().saturating_sub(1) as u64;
    let limit = t_quantile(1.0 - LEVEL / 2.0 / numbers as f64, df) * error;
    // A number that does not vary is right to the digits of a float.
    limit.max(1e-12 * pooled)
}

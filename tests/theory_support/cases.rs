//! The rows of the reference tables as scenarios and the numbers they must give.

use super::exact_support::{self, Table};
use super::worlds::{self, world};
use super::{Anchor, Metric};
use batchsim::arrivals::{GroupSize, GroupSizeKind, GroupSizeLaw, Groups, Process};
use batchsim::cost::{Erlang, Jitter, TwoPhase, Uniform};
use batchsim::exact::{Rule, Solution, solve};
use batchsim::policy::Policy;
use batchsim::scenario::Scenario;
use batchsim::time::Nanos;

/// Which rows are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All of them: `BATCHSIM_THEORY=full`.
    Full,
    /// Rows over all policies and loads, and few heavy ones.
    Sample,
}

impl Which {
    pub fn from_environment() -> Self {
        let full = std::env::var("BATCHSIM_THEORY").is_ok_and(|v| v == "full");
        if full { Self::Full } else { Self::Sample }
    }
}

/// One number of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    pub metric: Metric,
    pub want: f64,
}

/// One row: a scenario and what it must give.
pub struct Case {
    pub at: String,
    /// Offered rate over capacity; decides how precise a simulation of some length can be.
    pub load: f64,
    pub world: Scenario,
    pub cells: Vec<Cell>,
    /// The whole law, where it is known: it says which quantiles are point masses.
    pub law: Option<Solution>,
}

/// Rows of all tables, and how many no scenario can say.
pub fn all(which: Which) -> (Vec<Case>, usize) {
    let mut cases = Vec::new();
    cases.extend(batch_poisson("batch_poisson_load", which));
    cases.extend(batch_poisson("batch_poisson_rate", which));
    cases.extend(timeout_longer_than_service(which));
    cases.extend(mmpp(which));
    cases.extend(min_batch_rule(which));
    cases.extend(regimes(which));
    cases.extend(greedy_unbounded(which));
    let (classic, left_out) = classic_queues(which);
    cases.extend(classic);
    for (seed, case) in (1000..).zip(&mut cases) {
        // Streams of their own, or an unlucky one would push many rows the same way.
        case.world.seed = seed;
    }
    (cases, left_out)
}

/// Picks rows: light ones every `step`, heavy ones much more rarely.
struct Picker {
    which: Which,
    step: usize,
    light: usize,
    heavy: usize,
}

impl Picker {
    fn new(which: Which, step: usize) -> Self {
        Self { which, step, light: 0, heavy: 0 }
    }

    fn takes(&mut self, load: f64) -> bool {
        let (count, step) = if load > 0.75 {
            (&mut self.heavy, self.step * 8)
        } else {
            (&mut self.light, self.step)
        };
        *count += 1;
        self.which == Which::Full || *count % step == step / 2
    }
}

fn capacity(cap: u32) -> f64 {
    1000.0 * f64::from(cap) / exact_support::linear(cap)
}

fn policy(name: &str, cap: u32, wait_ms: f64) -> Policy {
    match name {
        "none" => worlds::none(),
        "greedy" => worlds::greedy(Some(cap)),
        "static" => worlds::fixed(cap),
        "timeout_enqueue" => worlds::dynamic(cap, wait_ms, Anchor::OldestArrival),
        "timeout_pickup" => worlds::dynamic(cap, wait_ms, Anchor::Pickup),
        other => panic!("{other}"),
    }
}

/// Columns of a table that hold metrics.
const COLUMNS: [(&str, Metric); 8] = [
    ("mean_ms", Metric::Mean),
    ("p50_ms", Metric::Quantile(0.5)),
    ("p90_ms", Metric::Quantile(0.9)),
    ("p95_ms", Metric::Quantile(0.95)),
    ("p99_ms", Metric::Quantile(0.99)),
    ("p999_ms", Metric::Quantile(0.999)),
    ("mean_batch", Metric::MeanBatch),
    ("utilization", Metric::Utilization),
];

fn cells(table: &Table, row: &[String], columns: &[(&str, Metric)]) -> Vec<Cell> {
    columns.iter().map(|&(c, metric)| Cell { metric, want: table.num(row, c) }).collect()
}

fn batch_poisson(name: &'static str, which: Which) -> Vec<Case> {
    let table = Table::read(name);
    let mut picker = Picker::new(which, if name.ends_with("load") { 9 } else { 13 });
    let mut cases = Vec::new();
    for row in &table.rows {
        let cap = table.num(row, "max_batch") as u32;
        let by_load = name.ends_with("load");
        let rate_per_s = if by_load {
            table.num(row, "load") * capacity(cap)
        } else {
            table.num(row, "rate_per_s")
        };
        let load = rate_per_s / capacity(cap);
        if !picker.takes(load) {
            continue;
        }
        let (rule_name, wait) = (table.text(row, "policy"), table.num(row, "max_wait_ms"));
        let rule = exact_support::rule(rule_name, cap, wait);
        let law = solve(&exact_support::poisson(rate_per_s), &rule, &exact_support::linear);
        cases.push(Case {
            at: format!("{name}: {}", row[..5].join(",")),
            load,
            world: world(
                worlds::poisson(rate_per_s),
                worlds::linear(),
                policy(rule_name, cap, wait),
            ),
            cells: cells(&table, row, &COLUMNS),
            law: Some(law.unwrap()),
        });
    }
    cases
}

/// The corner that the tables only know from simulation; the exact solver covers it.
fn timeout_longer_than_service(which: Which) -> Vec<Case> {
    let table = Table::read("sim_only");
    let mut picker = Picker::new(which, 3);
    let mut cases = Vec::new();
    for row in &table.rows {
        let (load, wait) = (table.num(row, "load"), table.num(row, "max_wait_ms"));
        if !picker.takes(load) {
            continue;
        }
        let rate_per_s = load * capacity(2);
        let rule = exact_support::rule("timeout_enqueue", 2, wait);
        let law = solve(&exact_support::poisson(rate_per_s), &rule, &exact_support::linear);
        let law = law.unwrap();
        let cells = COLUMNS.map(|(_, metric)| Cell { metric, want: of_law(&law, metric) });
        cases.push(Case {
            at: format!("sim_only: {}", row[..4].join(",")),
            load,
            world: world(
                worlds::poisson(rate_per_s),
                worlds::linear(),
                policy("timeout_enqueue", 2, wait),
            ),
            cells: cells.to_vec(),
            law: Some(law),
        });
    }
    cases
}

fn of_law(law: &Solution, metric: Metric) -> f64 {
    match metric {
        Metric::Mean => law.mean_ms(),
        Metric::Quantile(q) => law.quantile_ms(q),
        Metric::MeanBatch => law.mean_batch(),
        Metric::Utilization => law.utilization(),
        other => panic!("{other:?}"),
    }
}

fn mmpp(which: Which) -> Vec<Case> {
    let table = Table::read("mmpp");
    let mut cases = Vec::new();
    for (i, row) in table.rows.iter().enumerate() {
        if which == Which::Sample && i != 0 && i != 3 {
            continue;
        }
        let get = |c: &str| table.num(row, c);
        let rates = [get("rate_hi_per_s"), get("rate_lo_per_s")];
        let dwells = [get("mean_dwell_hi_ms"), get("mean_dwell_lo_ms")];
        let process = if rates[1] == 0.0 {
            worlds::on_off(rates[0], dwells)
        } else {
            worlds::mmpp(rates, dwells)
        };
        let cap = get("max_batch") as u32;
        cases.push(Case {
            at: format!("mmpp: {}", row[..6].join(",")),
            load: get("mean_rate_per_s") / capacity(cap),
            world: world(process, worlds::linear(), policy(table.text(row, "policy"), cap, 0.0)),
            cells: cells(&table, row, &COLUMNS),
            law: None,
        });
    }
    cases
}

fn min_batch_rule(which: Which) -> Vec<Case> {
    let table = Table::read("min_batch_rule");
    let mut picker = Picker::new(which, 13);
    let mut cases = Vec::new();
    for row in &table.rows {
        let cap = table.num(row, "max_batch") as u32;
        let rate_per_s = table.num(row, "rate_per_s");
        let load = rate_per_s / capacity(cap);
        for min in [1, 2, 4, 8] {
            if !picker.takes(load) {
                continue;
            }
            let want = table.num(row, &format!("mean_a{min}_ms"));
            let mut cells = vec![Cell { metric: Metric::Mean, want }];
            if min == 1 {
                let want = table.num(row, "util_greedy");
                cells.push(Cell { metric: Metric::Utilization, want });
            }
            let process = worlds::poisson(rate_per_s);
            cases.push(Case {
                at: format!("min_batch_rule: {cap},{rate_per_s}, at least {min}"),
                load,
                world: world(process, worlds::linear(), worlds::at_least(min, cap)),
                cells,
                law: None,
            });
        }
    }
    cases
}

fn regimes(which: Which) -> Vec<Case> {
    let table = Table::read("regimes_wait_vs_greedy");
    let mut picker = Picker::new(which, 13);
    let linear = exact_support::linear;
    let mut cases = Vec::new();
    for row in &table.rows {
        let cap = table.num(row, "max_batch") as u32;
        let time: fn(u32) -> f64 = match table.text(row, "cost_model") {
            "linear 8+0.5n" => linear,
            "constant 16 ms" => |_| 16.0,
            "padded to full batch (8+0.5*b always)" => |_| exact_support::linear(16),
            "pow2-padded 8+0.5*2^ceil(log2 n)" => |n| exact_support::linear(n.next_power_of_two()),
            other => panic!("{other}"),
        };
        let rate_per_s = table.num(row, "rate_per_s");
        let load = rate_per_s * time(cap) / (1000.0 * f64::from(cap));
        if !picker.takes(load) {
            continue;
        }
        let wait = table.num(row, "max_wait_ms");
        let rule = exact_support::rule("timeout_enqueue", cap, wait);
        let law = solve(&exact_support::poisson(rate_per_s), &rule, &time).unwrap();
        let columns: Vec<_> = COLUMNS.into_iter().filter(|(c, _)| REGIME.contains(c)).collect();
        cases.push(Case {
            at: format!("regimes_wait_vs_greedy: {}", row[..4].join(",")),
            load,
            world: world(
                worlds::poisson(rate_per_s),
                worlds::tabulated(cap, time),
                policy("timeout_enqueue", cap, wait),
            ),
            cells: cells(&table, row, &columns),
            law: Some(law),
        });
    }
    cases
}

const REGIME: [&str; 5] = ["mean_ms", "p50_ms", "p99_ms", "mean_batch", "utilization"];

fn greedy_unbounded(which: Which) -> Vec<Case> {
    let table = Table::read("greedy_unbounded_inoue");
    let mut picker = Picker::new(which, 7);
    let mut cases = Vec::new();
    for row in &table.rows {
        let (alpha, tau) = (table.num(row, "alpha_ms"), table.num(row, "tau0_ms"));
        let load = table.num(row, "rho");
        if !picker.takes(load) {
            continue;
        }
        let rate_per_s = 1000.0 * load / alpha;
        let cost = |n: u32| tau + alpha * f64::from(n);
        let rule = Rule::AtLeast { min: 1, cap: None };
        let law = solve(&exact_support::poisson(rate_per_s), &rule, &cost).unwrap();
        let columns: Vec<_> =
            COLUMNS.into_iter().filter(|(c, _)| REGIME.contains(c) || *c == "p999_ms").collect();
        cases.push(Case {
            at: format!("greedy_unbounded_inoue: {}", row[..4].join(",")),
            load,
            world: world(
                worlds::poisson(rate_per_s),
                worlds::affine(tau, alpha),
                worlds::greedy(None),
            ),
            cells: cells(&table, row, &columns),
            law: Some(law),
        });
    }
    cases
}

/// Textbook queues: batches of one, instances and jitter as the model says. Rows of one model and
/// load are one simulation.
fn classic_queues(which: Which) -> (Vec<Case>, usize) {
    let table = Table::read("classic_queues");
    let mut cases: Vec<Case> = Vec::new();
    let mut left_out = 0;
    let mut picker = Picker::new(which, 4);
    let mut last = (String::new(), false);
    for row in &table.rows {
        let (model, params) = (table.text(row, "model"), table.text(row, "params"));
        let param = |name: &str| {
            let found = params.split(';').find_map(|p| p.strip_prefix(name)?.strip_prefix('='));
            found.map(|v| v.parse::<f64>().unwrap())
        };
        let mut size = GroupSize::Constant(1);
        let (jitter, instances) = match model {
            "M/G/1 (deterministic)" => (None, 1),
            "M/G/1 (exponential)" => (Some(worlds::exponential()), 1),
            "M/G/1 (lognormal_scv=2)" => (Some(worlds::lognormal(2f64.sqrt())), 1),
            _ if model.starts_with("M/D/") => (None, model[4..].parse().unwrap()),
            _ if model.starts_with("M/M/") => {
                (Some(worlds::exponential()), model[4..].parse().unwrap())
            }
            "M[X]/D/1 (fixed_k=4)" => {
                size = GroupSize::Constant(4);
                (None, 1)
            }
            "M[X]/D/1 (geometric_mean=4)" => {
                let kind = GroupSizeKind::Geometric;
                size = GroupSize::Drawn(GroupSizeLaw { kind, mean: 4.0 });
                (None, 1)
            }
            "M/G/1 (erlang_k=4)" => (Some(Jitter::Erlang(Erlang { k: 4 })), 1),
            "M/G/1 (hyperexp2_balanced_scv=4)" => {
                (Some(Jitter::Hyperexponential(TwoPhase { cv: 2.0 })), 1)
            }
            "M/G/1 (uniform[0,2m])" => (Some(Jitter::Uniform(Uniform { low: 0.0, high: 2.0 })), 1),
            _ => {
                left_out += 1;
                continue;
            }
        };
        let service = param("service_ms").or_else(|| param("mean_service_ms")).unwrap();
        let load = param("rho").unwrap();
        let at = format!("classic_queues: {model} {params}");
        if last.0 != at {
            // The only rows of this law; the lightest is enough.
            let only = model.contains("lognormal") && load < 0.5;
            last = (at.clone(), picker.takes(load) || only);
            if last.1 {
                let rate_per_s = 1000.0 * load * f64::from(instances) / service;
                let groups = Groups {
                    rate: worlds::rate(rate_per_s / size.mean()),
                    size,
                    spread: Nanos::ZERO,
                };
                let process = match size {
                    GroupSize::Constant(1) => worlds::poisson(rate_per_s),
                    _ => Process::Groups(groups),
                };
                let mut world = world(process, worlds::affine(service, 0.0), worlds::none());
                world.servers[0].instances = instances;
                world.servers[0].jitter = jitter.unwrap_or_default();
                cases.push(Case { at, load, world, cells: Vec::new(), law: None });
            }
        }
        if last.1 {
            let metric = classic_metric(table.text(row, "metric"), service);
            cases.last_mut().unwrap().cells.push(Cell { metric, want: table.num(row, "value") });
        }
    }
    (cases, left_out)
}

fn classic_metric(name: &str, service_ms: f64) -> Metric {
    let quantile = |q: &str| match q {
        "p5_ms" => 0.5,
        "p9_ms" => 0.9,
        "p99_ms" => 0.99,
        "p999_ms" => 0.999,
        other => panic!("{other}"),
    };
    match name {
        "mean_sojourn_ms" => Metric::Mean,
        "mean_wait_ms" => Metric::MeanWait,
        "erlang_c" => Metric::Waits,
        "p_wait_zero" => Metric::NoWait,
        _ => {
            if let Some(q) = name.strip_prefix("sojourn_") {
                Metric::Quantile(quantile(q))
            } else if let Some(t) = name.strip_prefix("wait_cdf_at_") {
                let wait: f64 = t.strip_suffix("_ms").unwrap().parse().unwrap();
                // Service is constant, so the wait's law is the latency's, moved.
                Metric::Within(worlds::ms(wait + service_ms).0)
            } else {
                Metric::WaitQuantile(quantile(name.strip_prefix("wait_").unwrap()))
            }
        }
    }
}

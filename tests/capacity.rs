//! `capacity`: the highest rate with all thresholds met, against the reference table, against brute
//! force, and by what its intervals claim.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, unreachable_pub)]

#[allow(dead_code, reason = "this binary uses a part of it")]
mod exact_support;
#[path = "common/worlds.rs"]
mod worlds;

use batchsim::decide::{Ask, Load, Method, capacity, settings};
use batchsim::exact::solve;
use batchsim::outcome::capacity::{CapacityCell, RateEnd};
use batchsim::policy::{Anchor, Policy};
use batchsim::scenario::{Metric, Op, Scenario, Threshold};
use batchsim::stats::t_quantile;
use batchsim::study::{Control, Options, run};
use exact_support::Table;
use std::process::Command;
use worlds::{dynamic, fixed, gamma, greedy, linear, none, poisson, world};

fn p99_below(limit: f64) -> Threshold {
    let expr = format!("p(99) <= {limit}ms");
    Threshold {
        expr,
        metric: Metric::Quantile(0.99),
        op: Op::AtMost,
        limit,
        class: None,
        policy: None,
    }
}

fn ask(method: Method) -> Ask {
    Ask { method, ..Ask::default() }
}

fn answer(world: &Scenario, ask: &Ask) -> CapacityCell {
    capacity(world, (0, 0), Default::default(), ask, &Control::default()).unwrap()
}

fn policy(name: &str, cap: u32, wait_ms: f64) -> Policy {
    match name {
        "none" => none(),
        "greedy" => greedy(Some(cap)),
        "static" => fixed(cap),
        "timeout_enqueue" => dynamic(cap, wait_ms, Anchor::OldestArrival),
        "timeout_pickup" => dynamic(cap, wait_ms, Anchor::Pickup),
        other => panic!("{other}"),
    }
}

/// One row of the table as a scenario that offers half the capacity.
fn row_world(table: &Table, row: &[String]) -> Scenario {
    let cap = table.num(row, "max_batch") as u32;
    let policy = policy(table.text(row, "policy"), cap, table.num(row, "max_wait_ms"));
    let offered = 0.5 * linear().capacity_per_s(Some(cap), 1).unwrap();
    let mut world = world(poisson(offered), linear(), policy);
    world.thresholds = vec![p99_below(table.num(row, "slo_p99_ms"))];
    world
}

/// Every row of the table, windows and infeasible rows included.
#[test]
fn every_row_of_the_table_exactly() {
    let table = Table::read("max_rate_slo");
    let mut counts = [0; 3];
    let mut worst: f64 = 0.0;
    let rows = table.sample();
    for row in &rows {
        let at = row[..4].join(",");
        let cell = answer(&row_world(&table, row), &ask(Method::Exact));
        let want = table.text(row, "max_rate_per_s");
        if want.is_empty() {
            assert_eq!((cell.feasible, cell.max_rate_per_s), (Some(false), None), "{at}");
            let best = cell.best.unwrap();
            assert!(best.value > best.limit && best.unit == "ms", "{at}: {best:?}");
            counts[0] += 1;
            continue;
        }
        let window = cell.window().unwrap_or_else(|| panic!("{at}: {cell:?}"));
        assert_eq!((cell.windows.len(), &window.high.binds), (1, &cell.thresholds[0]), "{at}");
        let off = (window.high.rate_per_s / want.parse::<f64>().unwrap() - 1.0).abs();
        // Seven digits are printed.
        assert!(off <= 1e-6, "{at}: {} instead of {want}", window.high.rate_per_s);
        worst = worst.max(off);
        let load: f64 = table.text(row, "load_at_max").parse().unwrap();
        assert!((window.high.load.unwrap() - load).abs() <= 1e-6, "{at}");
        let least = table.text(row, "min_feasible_rate_per_s");
        if least.starts_with("0 ") {
            assert_eq!(window.low, None, "{at}");
            counts[1] += 1;
        } else {
            let low = window.low.as_ref().unwrap_or_else(|| panic!("{at}")).rate_per_s;
            let want: f64 = least.parse().unwrap();
            assert!((low / want - 1.0).abs() <= 1e-5, "{at}: {low} instead of {want}");
            counts[2] += 1;
        }
    }
    println!("{} rows, {counts:?}, largest relative difference {worst:.1e}", rows.len());
    if exact_support::step() == 1 {
        assert_eq!((counts, table.rows.len()), ([17, 100, 6], 123));
    }
}

/// How many standard errors an end is from the truth, by the half of its interval on that side.
fn z(end: &RateEnd, truth: f64) -> f64 {
    let [low, high] = end.ci95.unwrap();
    let side = if truth < end.rate_per_s { end.rate_per_s - low } else { high - end.rate_per_s };
    (end.rate_per_s - truth) / (side / t_quantile(0.975, 19))
}

/// Simulation against the table: all ends within intervals that hold jointly at 99 % (Bonferroni).
/// A sample of the rows; `BATCHSIM_THEORY=full` takes all of them.
#[test]
fn rows_of_the_table_by_simulation() {
    let table = Table::read("max_rate_slo");
    let full = std::env::var("BATCHSIM_THEORY").is_ok_and(|v| v == "full");
    let mut scores: Vec<(f64, String)> = Vec::new();
    let mut windows = 0;
    for (i, row) in table.rows.iter().enumerate() {
        let windowed = table.text(row, "min_feasible_rate_per_s").parse::<f64>().is_ok();
        if !(full || i % 11 == 5 || (windowed && i % 2 == 0)) {
            continue;
        }
        let at = row[..4].join(",");
        let mut world = row_world(&table, row);
        world.seed = 7000 + i as u64;
        let cell = answer(&world, &ask(Method::Simulation));
        let text = table.text(row, "max_rate_per_s");
        let Ok(truth) = text.parse::<f64>() else {
            assert_eq!(cell.feasible, Some(false), "{at}");
            continue;
        };
        let window = cell.window().unwrap_or_else(|| panic!("{at}: {cell:?}"));
        let [low, high] = window.high.ci95.unwrap();
        assert!(high - low <= 0.0101 * window.high.rate_per_s, "{at}: {low} to {high}");
        scores.push((z(&window.high, truth), format!("{at}: {window:?} instead of {truth}")));
        if windowed {
            let truth = table.num(row, "min_feasible_rate_per_s");
            let low = window.low.as_ref().unwrap();
            scores.push((z(low, truth), format!("{at}: {low:?} instead of {truth}")));
            windows += 1;
        } else {
            assert_eq!(window.low, None, "{at}");
        }
    }
    assert!(scores.len() >= 10 && windows >= 2, "{} {windows}", scores.len());
    let limit = t_quantile(1.0 - 0.005 / scores.len() as f64, 19);
    let worst = scores.iter().max_by(|a, b| a.0.abs().total_cmp(&b.0.abs())).unwrap();
    println!("{} ends, |z| at most {:.2} (limit {limit:.2})", scores.len(), worst.0.abs());
    assert!(worst.0.abs() <= limit, "{}", worst.1);
    // Intervals that were far too wide would pass all of the above.
    let spread = (scores.iter().map(|s| s.0 * s.0).sum::<f64>() / scores.len() as f64).sqrt();
    assert!((0.4..2.0).contains(&spread), "{spread}");
}

/// Nominal 95 % intervals of the rate cover the exact rate in 95 % of many repeats: the share lies
/// within the binomial band at level 0.001 around 93 % to 97 %, even for searches that are fifty
/// times shorter than what the default precision takes.
#[test]
fn intervals_of_the_rate_cover() {
    let full = std::env::var("BATCHSIM_THEORY").is_ok_and(|v| v == "full");
    let (repeats, length) = if full { (1500, 200_000) } else { (200, 60_000) };
    let cases = [
        (none(), 60.0, 60.0, true),
        (greedy(Some(32)), 50.0, 900.0, true),
        (fixed(4), 100.0, 200.0, false),
    ];
    for (policy, slo, offered, high) in cases {
        let name = policy.kind();
        let mut world = world(poisson(offered), linear(), policy);
        world.thresholds = vec![p99_below(slo)];
        let end = |cell: &CapacityCell| {
            let window = cell.window().unwrap();
            if high { window.high.clone() } else { window.low.clone().unwrap() }
        };
        let truth = end(&answer(&world, &ask(Method::Exact))).rate_per_s;
        let short = Ask { method: Method::Simulation, most: length, ..Ask::default() };
        let mut covered = 0;
        for seed in 0..repeats {
            world.seed = 50_000 + seed;
            let [low, up] = end(&answer(&world, &short)).ci95.unwrap();
            covered += u32::from((low..=up).contains(&truth));
        }
        let share = f64::from(covered) / repeats as f64;
        let band = 3.29 * (0.95f64 * 0.05 / repeats as f64).sqrt();
        println!("{name}: {:.1} % of {repeats} intervals cover {truth:.2}/s", share * 100.0);
        assert!((0.93 - band..=0.97 + band).contains(&share), "{name}: {share}");
    }
}

/// Several thresholds: the rate is the smallest of their rates, and the one that binds is named.
#[test]
fn the_threshold_that_binds_is_named() {
    let mut world = world(poisson(500.0), linear(), greedy(Some(32)));
    let mean = Threshold {
        metric: Metric::Mean,
        expr: "mean < 20ms".into(),
        op: Op::Below,
        limit: 20.0,
        ..p99_below(1.0)
    };
    let rate = |world: &Scenario| answer(world, &ask(Method::Exact)).max_rate_per_s.unwrap();
    world.thresholds = vec![p99_below(50.0)];
    let by_tail = rate(&world);
    world.thresholds = vec![mean.clone()];
    let by_mean = rate(&world);
    // The mean at that rate, by the solution itself.
    let rule = batchsim::exact::Rule::AtLeast { min: 1, cap: Some(32) };
    let solution = solve(&exact_support::poisson(by_mean), &rule, &exact_support::linear).unwrap();
    assert!((solution.mean_ms() - 20.0).abs() < 1e-6, "{}", solution.mean_ms());
    world.thresholds = vec![p99_below(50.0), mean];
    for method in [Method::Exact, Method::Simulation] {
        let cell = answer(&world, &ask(method));
        let high = &cell.window().unwrap().high;
        assert!(by_mean < by_tail && (high.rate_per_s / by_mean - 1.0).abs() < 0.01, "{high:?}");
        assert_eq!(high.binds, "mean < 20ms");
    }
}

/// A throughput to reach is a lower end.
#[test]
fn a_throughput_threshold_is_a_lower_end() {
    let mut world = world(poisson(500.0), linear(), greedy(Some(32)));
    let throughput = Threshold {
        metric: Metric::Throughput,
        expr: "throughput >= 880/s".into(),
        op: Op::AtLeast,
        limit: 880.0,
        ..p99_below(1.0)
    };
    world.thresholds = vec![p99_below(50.0), throughput];
    let cell = answer(&world, &ask(Method::Exact));
    let window = cell.window().unwrap();
    let low = window.low.as_ref().unwrap();
    assert!((low.rate_per_s - 880.0).abs() < 1e-5 && low.binds == "throughput >= 880/s", "{low:?}");
    assert!((window.high.rate_per_s - 1186.723).abs() < 1e-3);
}

#[test]
fn headroom_is_what_is_left_of_the_rate() {
    for offered in [300.0, 900.0, 1300.0] {
        let mut world = world(poisson(offered), linear(), greedy(Some(32)));
        world.thresholds = vec![p99_below(50.0)];
        let cell = answer(&world, &ask(Method::Auto));
        let (rate, headroom) = (cell.max_rate_per_s.unwrap(), cell.headroom.unwrap());
        assert!((headroom - (rate / offered - 1.0)).abs() < 1e-12);
        assert!((rate - 1186.723).abs() < 1e-3, "{rate}: no matter what is offered");
    }
}

/// Fewest instances against brute force: the full procedure of `run` for every number of them.
#[test]
fn fewest_instances_equal_brute_force() {
    for (rate, limit, policy) in [
        (3000.0, 50.0, dynamic(32, 5.0, Anchor::OldestArrival)),
        (3000.0, 25.0, greedy(Some(32))),
        (900.0, 20.0, none()),
    ] {
        let mut world = world(poisson(500.0), linear(), policy);
        world.thresholds = vec![p99_below(limit)];
        let cell = answer(&world, &Ask { fewest: Some(Load::Rate(rate)), ..Ask::default() });
        let found = cell.fewest.unwrap();
        assert!(found.certain, "{found:?}");
        world.arrivals[0].process = poisson(rate);
        world.run.requests = Some(400_000);
        let brute = (1..40).find(|&n| {
            world.servers[0].instances = n;
            let (outcome, ..) = run(&world, &Options::default(), &Control::default());
            outcome.cells[0].latency_ms.as_ref().is_some_and(|l| l.p99 <= limit)
        });
        assert_eq!(found.instances, brute, "{rate} {limit}");
    }
}

/// No number of instances helps where a lone request is too slow already.
#[test]
fn no_number_of_instances_beats_the_lone_request() {
    let mut world = world(poisson(500.0), linear(), dynamic(32, 5.0, Anchor::OldestArrival));
    world.thresholds = vec![p99_below(10.0)];
    let most = Ask { fewest: Some(Load::Rate(500.0)), most: 100_000, ..Ask::default() };
    let cell = answer(&world, &most);
    assert_eq!((cell.feasible, cell.fewest.unwrap().instances), (Some(false), None));
}

/// A replay of recorded arrivals: as fast as the point value allows, and not a bit faster.
#[test]
fn a_trace_has_a_highest_speed() {
    use batchsim::arrivals::{Process, Replay, Trace};
    let times: Vec<_> = (0..4000).map(|i| worlds::ms(f64::from(i * 20 + (i * i) % 17))).collect();
    let replay = Replay { file: "made-up".into(), format: None, columns: None, scale: None };
    let mut world = world(Process::Trace(replay), linear(), greedy(Some(8)));
    world.arrivals[0].trace =
        Some(std::sync::Arc::new(Trace { arrivals: times, ..Trace::default() }));
    world.thresholds = vec![p99_below(20.0)];
    let cell = answer(&world, &Ask { fewest: Some(Load::Offered), ..Ask::default() });
    let speed = cell.max_speed_factor.unwrap();
    assert_eq!((cell.window().unwrap().high.ci95, cell.fewest.unwrap().instances), (None, Some(1)));
    let missed = |factor: f64| {
        let mut world = world.clone();
        world.scale_rates(factor);
        let limits = [20_000_000];
        let measured: batchsim::study::Measured<batchsim::record::Histogram<10>> =
            worlds::measure(&world, 4000, &limits);
        1.0 - measured.pooled.within[0] as f64 / measured.pooled.offered as f64
    };
    // 40 of 4,000 may be late.
    assert!(missed(speed) <= 0.01 + 1e-9, "{speed}: {}", missed(speed));
    assert!(missed(speed * 1.001) > 0.0101, "{speed}: {}", missed(speed * 1.001));
}

/// Policies that thresholds are not about are left out.
#[test]
fn only_what_thresholds_apply_to_is_answered() {
    let mut world = world(gamma(300.0, 2.0), linear(), greedy(Some(32)));
    let mut other = world.policies[0].clone();
    (other.label, other.guard) = ("other".into(), true);
    world.policies.push(other);
    assert_eq!(settings(&world), []);
    world.thresholds = vec![p99_below(50.0)];
    assert_eq!(settings(&world), [(0, 1)]);
}

fn batchsim(args: &[&str]) -> std::process::Output {
    let out = concat!(env!("CARGO_TARGET_TMPDIR"), "/capacity");
    Command::new(env!("CARGO_BIN_EXE_batchsim"))
        .args(["capacity", "scenarios/quickstart.toml", "-o", out])
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

#[test]
fn exit_codes_and_words() {
    let fine = batchsim(&[]);
    let text = String::from_utf8(fine.stdout).unwrap();
    assert_eq!(fine.status.code(), Some(0));
    assert!(text.contains("1,186.72") && text.contains("+31.9%"), "{text}");
    let tight = ["--set", "dynamic.max_wait=30ms", "--set", "dynamic.max_batch_size=64"];
    let infeasible = batchsim(&[&tight[..], &["--set", "server.cost.fixed=30ms"]].concat());
    let text = String::from_utf8(infeasible.stdout).unwrap();
    assert_eq!(infeasible.status.code(), Some(97), "{text}");
    assert!(text.contains("infeasible at every rate") && text.contains("p(99) < 50ms"), "{text}");
    for wrong in [
        &["--instances-for", "3000"][..],
        &["--precision", "0%"],
        &["--sweep"],
        &["--method", "exact", "--set", "server.instances=2"],
    ] {
        assert_eq!(batchsim(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

/// The same bytes at any number of threads, by simulation too.
#[test]
fn same_bytes_at_any_thread_count() {
    let json = |jobs: &str| {
        let simulated = ["--method", "simulation", "--instances-for", "3000/s", "--format", "json"];
        let output = batchsim(&[&simulated[..], &["--jobs", jobs]].concat());
        assert_eq!(output.status.code(), Some(0));
        output.stdout
    };
    let one = json("1");
    assert!(one.len() > 1000 && one == json("3"));
}

//! `tune`: the best settings against the reference table, against brute force, and by what the
//! certificate and the tie set claim.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, unreachable_pub)]

#[allow(dead_code, reason = "this binary uses a part of it")]
mod exact_support;

use batchsim::decide::{Ask, Method, TuneAsk, capacity, tune, tuned_scenario};
use batchsim::outcome::tune::{Fate, TuneOutcome, TunedSetting};
use batchsim::report::tune_lines;
use batchsim::scenario::{Disk, Input, Loaded, load};
use batchsim::study::{Control, Options, run};
use exact_support::Table;
use std::path::Path;
use std::process::{Command, Output};

/// The running example with a search over caps and waits.
fn example(rate: &str, threshold: &str, objective: &str, over: &str, more: &str) -> String {
    let mut text = format!(
        "schema = 1\nname = \"search\"\n[[arrivals]]\nkind = \"poisson\"\nrate = \"{rate}\"\n\
         [server]\ncost = {{ kind = \"affine\", fixed = \"8ms\", per_item = \"0.5ms\" }}\n\
         [[policy]]\nkind = \"dynamic\"\nmax_batch_size = 32\nmax_wait = \"5ms\"\n{more}\n\
         [tune]\nobjective = \"{objective}\"\n[tune.over]\n{over}\n"
    );
    if !threshold.is_empty() {
        text += &format!("[[threshold]]\nexpr = \"{threshold}\"\n");
    }
    text
}

const CAPS: &str = "\"dynamic.max_batch_size\" = { values = [1, 2, 4, 8, 16, 32, 64] }\n";
const WAITS: &str = "\"dynamic.max_wait\" = { values = [\"0ms\", \"2ms\", \"5ms\", \"10ms\"] }\n";

fn read(text: &str) -> Loaded {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tune-search.toml");
    let input = Input {
        name: path.display().to_string(),
        stem: "search".into(),
        bytes: text.as_bytes().to_vec(),
        format: None,
    };
    let disk = Disk::beside(&path, batchsim::interop::trace::for_scenario);
    match load(&input, &[], &disk) {
        Ok(loaded) => loaded,
        Err(all) => panic!("{}", all[0].render(false)),
    }
}

fn search(text: &str, ask: &TuneAsk) -> TuneOutcome {
    tune(&read(text), ask, &Control::default()).unwrap()
}

fn words(outcome: &TuneOutcome) -> String {
    tune_lines(outcome).join("\n")
}

fn knob<'a>(setting: &'a TunedSetting, key: &str) -> &'a str {
    setting.coords.iter().find(|(path, _)| path.ends_with(key)).unwrap().1
}

fn wait_ms(setting: &TunedSetting) -> f64 {
    knob(setting, "max_wait").trim_end_matches("ms").parse().unwrap()
}

/// What the table says of a setting, if it has the row.
fn tabulated(table: &Table, setting: &TunedSetting, slo: f64) -> Option<f64> {
    let (cap, wait) = (knob(setting, "max_batch_size"), wait_ms(setting));
    let name = match (cap, wait) {
        ("1", _) => "none",
        (_, 0.0) => "greedy",
        _ => "timeout_enqueue",
    };
    let row = table.rows.iter().find(|row| {
        table.text(row, "policy") == name
            && table.text(row, "max_batch") == cap
            && table.num(row, "slo_p99_ms") == slo
            && (name != "timeout_enqueue" || table.num(row, "max_wait_ms") == wait)
    })?;
    Some(table.num(row, "max_rate_per_s"))
}

/// The running example at four objectives: the optimum and the ties are those of the exact highest
/// rates of all 28 settings, they agree with every row of the table, waiting buys nothing.
#[test]
fn the_highest_rate_over_caps_and_waits() {
    let table = Table::read("max_rate_slo");
    let mut rows = 0;
    for slo in [20.0, 30.0, 50.0, 100.0] {
        let threshold = format!("p(99) <= {slo}ms");
        let text = example("200/s", &threshold, "max rate", &format!("{CAPS}{WAITS}"), "");
        let loaded = read(&text);
        let outcome = tune(&loaded, &TuneAsk::default(), &Control::default()).unwrap();
        let ask = Ask { method: Method::Exact, ..Ask::default() };
        let brute: Vec<f64> = outcome
            .settings
            .iter()
            .map(|s| {
                let coords: Vec<(&str, &str)> =
                    s.coords.iter().map(|(p, v)| (p.as_str(), v.as_str())).collect();
                let scenario = loaded.cell(&coords).unwrap();
                let control = Control::default();
                let cell = capacity(&scenario, (0, 0), Default::default(), &ask, &control).unwrap();
                cell.max_rate_per_s.unwrap_or(0.0)
            })
            .collect();
        let best = brute.iter().copied().fold(0.0, f64::max);
        for (i, (setting, rate)) in outcome.settings.iter().zip(&brute).enumerate() {
            if let Some(want) = tabulated(&table, setting, slo) {
                rows += 1;
                assert!((rate / want - 1.0).abs() < 1e-5, "{slo} {:?}: {rate}", setting.coords);
            }
            match setting.fate {
                Fate::Pruned => assert!(*rate < 0.99 * best, "{slo} {:?}", setting.coords),
                _ => assert!(
                    (setting.value.unwrap_or(0.0) / rate - 1.0).abs() < 1e-8 || *rate == 0.0
                ),
            }
            let tied = *rate >= 0.99 * best;
            assert_eq!(outcome.ties.contains(&i), tied, "{slo} {:?}", setting.coords);
        }
        assert!((brute[outcome.best.unwrap()] / best - 1.0).abs() < 1e-8);
        let recommended = &outcome.settings[outcome.recommended.unwrap()];
        assert_eq!(wait_ms(recommended), 0.0, "{slo}");
        let waiting = outcome.waiting.as_ref().unwrap();
        assert!(!waiting.pays && waiting.gain.abs() < 0.01, "{waiting:?}");
        assert!(words(&outcome).contains("max_wait buys nothing here"), "{}", words(&outcome));
        assert_eq!(outcome.search_requests, 0);
        // The smallest cap among the ties that never wait.
        let cap = |s: &TunedSetting| knob(s, "max_batch_size").parse::<u32>().unwrap();
        let ties = outcome.ties.iter().map(|i| &outcome.settings[*i]);
        let least = ties.filter(|s| wait_ms(s) == 0.0).map(cap).min().unwrap();
        assert_eq!(cap(recommended), least, "{slo}");
        println!("{slo} ms: best {best:.3}/s, {} ties, cap {least}", outcome.ties.len());
    }
    // 3 rows without batching (at every wait), 13 greedy, 40 with a wait.
    assert_eq!(rows, 65);
}

/// Cap 2 with a wait of 10 ms, longer than its service: the exact rate lies in the simulated
/// interval (at 99.9 %).
#[test]
fn the_corner_where_the_wait_outlasts_the_service() {
    let over = "\"dynamic.max_batch_size\" = [2]\n\"dynamic.max_wait\" = [\"10ms\"]\n";
    let text = example("100/s", "p(99) <= 50ms", "max rate", over, "");
    let exact = search(&text, &TuneAsk::default()).settings[0].value.unwrap();
    let simulated =
        search(&text, &TuneAsk { method: Method::Simulation, most: 2_000_000, ladder: false });
    let [low, high] = simulated.settings[0].ci95.unwrap();
    let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
    assert!((exact - middle).abs() < 1.9 * half && half < 0.01 * exact, "{exact} {low} {high}");
}

/// GPU time at 100/s: waiting pays, and the words say how much. By hand from the batch sizes:
/// 0.5 s per 1,000 requests and 8 s per 1,000 batches.
#[test]
fn gpu_time_is_saved_by_waiting() {
    let text = example("100/s", "p(99) < 50ms", "min gpu-time", &format!("{CAPS}{WAITS}"), "");
    let outcome = search(&text, &TuneAsk::default());
    let recommended = &outcome.settings[outcome.recommended.unwrap()];
    assert_eq!(wait_ms(recommended), 10.0);
    let certificate = outcome.certificate.as_ref().unwrap();
    let by_hand = 0.5 + 8.0 / certificate.mean_batch;
    assert!((recommended.value.unwrap() / by_hand - 1.0).abs() < 0.005, "{by_hand}");
    let waiting = outcome.waiting.as_ref().unwrap();
    let value = |i: usize| outcome.settings[i].value.unwrap();
    assert!((waiting.gain - (1.0 - value(waiting.with) / value(waiting.without))).abs() < 1e-12);
    assert!(waiting.pays && waiting.gain > 0.3, "{waiting:?}");
    assert!(words(&outcome).contains("waiting pays"), "{}", words(&outcome));
    assert!(words(&outcome).contains("saves 33.1 %"), "{}", words(&outcome));
    // One more millisecond saves more still, and its price in p99 is shown.
    let more = outcome.marginal.iter().find(|c| c.what == "max_wait + 1 ms").unwrap();
    assert!(more.relative.unwrap() < -0.02 && more.p99_ms.unwrap() > 20.5, "{more:?}");
}

/// The common advice stops at the first cap that keeps up, and loses a quarter of the rate.
#[test]
fn the_ladder_loses() {
    let text = example("900/s", "p(99) < 50ms", "max rate", &format!("{CAPS}{WAITS}"), "");
    let outcome = search(&text, &TuneAsk { ladder: true, ..TuneAsk::default() });
    let ladder = outcome.ladder.as_ref().unwrap();
    let chosen = &ladder.rungs[ladder.chosen.unwrap()].coords;
    assert_eq!(chosen["dynamic.max_batch_size"], "16");
    // The table: 920.8098/s at cap 16 and 10 ms, 1,214.481/s at best.
    assert!((ladder.value.unwrap() - 920.8098).abs() < 1e-3, "{ladder:?}");
    assert!((ladder.worse.unwrap() - (1.0 - 920.8098 / 1214.481)).abs() < 1e-5);
    assert!(words(&outcome).contains("24.2 % worse than the optimum"), "{}", words(&outcome));
}

/// Rate and burstiness, cost by its parts: more of each is worse, and the baseline lies between.
#[test]
fn sensitivity_has_the_right_signs() {
    let over = "\"dynamic.max_batch_size\" = [16, 32]\n";
    let text = example("800/s", "p(99) < 50ms", "min p99", over, "");
    let outcome = search(&text, &TuneAsk::default());
    let names: Vec<&str> = outcome.sensitivity.iter().map(|c| c.what.as_str()).collect();
    for what in ["fixed cost", "per-item cost", "rate", "burstiness"] {
        let of = |sign: &str| {
            let wanted = format!("{what} {sign}10 %");
            let at = names.iter().position(|n| *n == wanted).unwrap_or_else(|| panic!("{wanted}"));
            outcome.sensitivity[at].relative.unwrap()
        };
        assert!(of("+") > 0.0 && of("−") < 0.0, "{what}: {} {}", of("+"), of("−"));
    }
}

/// Settings that compete by simulation: those within the indifference zone of the best, by the
/// exact solution, are all among the ties, and what is far outside is not.
#[test]
fn simulated_ties_hold_the_exact_ones() {
    let over = "\"dynamic.max_batch_size\" = [8, 16, 24, 32, 64]\n\"dynamic.max_wait\" = \
                [\"0ms\", \"5ms\", \"10ms\", \"20ms\"]\n";
    for (objective, rate) in
        [("min p99", "500/s"), ("min mean", "500/s"), ("min gpu-time", "200/s")]
    {
        let text = example(rate, "p(99) < 60ms", objective, over, "");
        let exact = search(&text, &TuneAsk::default());
        let best = exact.settings[exact.best.unwrap()].value.unwrap();
        let mut extra = 0;
        for seed in 0..5 {
            let text = text.replace("schema = 1", &format!("schema = 1\nseed = {}", 900 + seed));
            let ask = TuneAsk { method: Method::Simulation, ..TuneAsk::default() };
            let found = search(&text, &ask);
            for tie in &exact.ties {
                assert!(found.ties.contains(tie), "{objective} {seed}: {tie}");
            }
            for tie in &found.ties {
                let value = exact.settings[*tie].value.unwrap();
                assert!(value < 1.03 * best, "{objective} {seed}: {tie} at {value}, best {best}");
                extra += usize::from(!exact.ties.contains(tie));
            }
            let certified = found.certificate.unwrap();
            assert!(certified.exact_p99_ms.is_none() && certified.requests > 0);
            assert!(found.search_requests > 0 && found.guarantee.contains("95 %"));
        }
        println!("{objective}: {} exact ties, {extra} more in 5 searches", exact.ties.len());
    }
}

/// Kinds of policy compete, each with the axes that are its own.
#[test]
fn policies_compete() {
    let more = "[[policy]]\nkind = \"none\"\n[[policy]]\nkind = \"greedy\"\nmax_batch_size = 32\n\
                [[policy]]\nkind = \"static\"\nmax_batch_size = 16\n";
    let over = format!("policy = [\"none\", \"greedy\", \"dynamic\"]\n{WAITS}");
    let outcome =
        search(&example("600/s", "p(99) < 50ms", "min mean", &over, more), &TuneAsk::default());
    let kinds: Vec<&str> = outcome.settings.iter().map(|s| s.policy.kind.as_str()).collect();
    assert_eq!(kinds, ["dynamic", "dynamic", "dynamic", "dynamic", "none", "greedy"]);
    // None cannot keep up with 600/s; greedy is dynamic without a wait.
    assert_eq!(outcome.settings[4].fate, Fate::Pruned);
    assert_eq!(outcome.settings[0].value, outcome.settings[5].value);
    assert!(outcome.ties.contains(&0) && outcome.ties.contains(&5), "{:?}", outcome.ties);
}

#[test]
fn the_fewest_instances() {
    let over = "\"dynamic.max_batch_size\" = [8, 32]\n";
    let outcome =
        search(&example("3000/s", "p(99) < 50ms", "min instances", over, ""), &TuneAsk::default());
    let values: Vec<f64> = outcome.settings.iter().map(|s| s.value.unwrap()).collect();
    // 3,000 over 666.7 and 1,333.3 per instance.
    assert_eq!(values, [5.0, 3.0]);
    let loaded = read(&example("3000/s", "p(99) < 50ms", "min instances", over, ""));
    let tuned = tuned_scenario(&loaded, &outcome).unwrap().unwrap();
    assert_eq!((outcome.recommended, tuned.servers[0].instances), (Some(1), 3));
}

/// A search whose best setting cannot carry what is offered is certified at the rate it carries.
#[test]
fn a_certificate_at_the_highest_rate() {
    let over = "\"dynamic.max_batch_size\" = [4, 8]\n";
    let text = example("900/s", "p(99) < 50ms", "max rate", over, "");
    let outcome = search(&text, &TuneAsk::default());
    let certificate = outcome.certificate.as_ref().unwrap();
    assert!(certificate.at_highest_rate);
    assert_eq!(certificate.rate_per_s, outcome.settings[outcome.recommended.unwrap()].value);
    assert!((certificate.exact_p99_ms.unwrap() - 50.0).abs() < 1e-4, "{certificate:?}");
    let tuned = tuned_scenario(&read(&text), &outcome).unwrap().unwrap();
    assert_eq!(tuned.total_rate_per_s(), certificate.rate_per_s);
}

/// The scenario behind a certificate gives it again, interval and all.
#[test]
fn the_tuned_scenario_is_the_certificate() {
    let text = example("400/s", "p(99) < 50ms", "min p99", CAPS, "");
    let loaded = read(&text);
    let outcome = tune(&loaded, &TuneAsk::default(), &Control::default()).unwrap();
    let tuned = tuned_scenario(&loaded, &outcome).unwrap().unwrap();
    let (again, ..) = run(&tuned, &Options::default(), &Control::default());
    let certificate = outcome.certificate.unwrap();
    assert_eq!(again.cells[0].latency_ms, certificate.latency_ms);
    let latency = certificate.latency_ms.unwrap();
    let off = (latency.p99 - certificate.exact_p99_ms.unwrap()).abs();
    // Half a histogram bin beside the interval.
    assert!(off <= 1.5 * latency.ci95.unwrap().p99 + 5e-4 * latency.p99, "{off}");
    assert_ne!(certificate.seed, loaded.scenario.seed);
}

fn batchsim(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_batchsim"))
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

/// `tuned.toml` runs, and its p99 is the certificate's within its interval.
#[test]
fn tuned_toml_runs() {
    let out = concat!(env!("CARGO_TARGET_TMPDIR"), "/tuned");
    let found = batchsim(&["tune", "scenarios/tune.toml", "-o", out, "--format", "json"]);
    assert_eq!(found.status.code(), Some(0), "{}", String::from_utf8_lossy(&found.stderr));
    let answer: TuneOutcome = serde_json::from_slice(&found.stdout).unwrap();
    let file = format!("{out}/tuned.toml");
    let run = ["run", &file, "--no-charts", "--format", "json", "-o", out];
    let run = batchsim(&run);
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    let outcome: batchsim::outcome::Outcome = serde_json::from_slice(&run.stdout).unwrap();
    let latency = outcome.cells[0].latency_ms.as_ref().unwrap();
    let certified = answer.certificate.unwrap().latency_ms.unwrap();
    assert!((latency.p99 - certified.p99).abs() <= certified.ci95.as_ref().unwrap().p99);
    assert_eq!(latency, &certified);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("# recommended: dynamic, max_batch_size 64, max_wait 0ms"), "{text}");
}

/// Nothing feasible: 97, the threshold that binds, and by how much.
#[test]
fn nothing_feasible_exits_97() {
    let out = concat!(env!("CARGO_TARGET_TMPDIR"), "/infeasible");
    let tight = ["--set", "server.cost.fixed=60ms"];
    for objective in ["max rate", "min p99", "min gpu-time"] {
        let objective = format!("tune.objective=\"{objective}\"");
        let args = [
            "tune",
            "scenarios/tune.toml",
            "-o",
            out,
            "--set",
            &objective,
            "--set",
            "arrivals.rate=100/s",
        ];
        let found = batchsim(&[&args[..], &tight[..]].concat());
        let text = String::from_utf8(found.stdout).unwrap();
        assert_eq!(found.status.code(), Some(97), "{text}");
        assert!(
            text.contains("p(99) < 50ms binds") && text.contains("% off the limit of 50 ms"),
            "{text}"
        );
    }
    let wrong = ["tune", "scenarios/quickstart.toml", "-o", out];
    assert_eq!(batchsim(&wrong).status.code(), Some(2));
}

/// The same bytes at any number of threads.
#[test]
fn same_bytes_at_any_thread_count() {
    let json = |jobs: &str| {
        let out = concat!(env!("CARGO_TARGET_TMPDIR"), "/tune-threads");
        let args = ["tune", "scenarios/tune.toml", "-o", out, "--format", "json", "--jobs", jobs];
        let quick = [
            "--method",
            "simulation",
            "--set",
            "tune.objective=\"min p99\"",
            "--set",
            "run.max_requests=400000",
        ];
        let found = batchsim(&[&args[..], &quick[..]].concat());
        assert_eq!(found.status.code(), Some(0), "{}", String::from_utf8_lossy(&found.stderr));
        found.stdout
    };
    let one = json("1");
    assert!(one.len() > 1000 && one == json("3"));
}

//! `compare`: false alarms at the nominal level, power, pairing, conditions, exit codes.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use batchsim::decide;
use batchsim::interop;
use batchsim::outcome::{Baseline, Better, Change, Series, Shift};
use batchsim::rng::{Purpose, substream};
use batchsim::scenario::{Disk, Input, load, parse_change};
use batchsim::study::{Control, Options};
use rand::RngExt;
use rand_distr::StandardNormal;
use statrs::distribution::{Binomial, DiscreteCDF};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_batchsim");

/// Whether `hits` of `n` are what a probability `p` gives: neither tail below one in a thousand.
fn is_nominal(hits: u64, n: u64, p: f64) -> bool {
    let law = Binomial::new(p, n).unwrap();
    law.cdf(hits) > 0.001 && (hits == 0 || law.sf(hits - 1) > 0.001)
}

#[test]
fn the_binomial_test_can_fail() {
    assert!(is_nominal(50, 1_000, 0.05) && is_nominal(30, 1_000, 0.05));
    assert!(!is_nominal(80, 1_000, 0.05) && !is_nominal(25, 1_000, 0.05));
}

// --- made-up sections, whose truth is known exactly ---

/// Twenty sections around `truth`; `shared` of their variance is common to both sides.
fn sections(repeat: u32, truth: [f64; 2], shared: f64) -> [Series; 2] {
    let mut rng = substream(7, repeat, 0, Purpose::Policy);
    let mut parts = [Vec::new(), Vec::new()];
    for _ in 0..20 {
        let common: f64 = rng.sample(StandardNormal);
        for (side, truth) in parts.iter_mut().zip(truth) {
            let own: f64 = rng.sample(StandardNormal);
            let noise = shared.sqrt() * common + (1.0 - shared).sqrt() * own;
            side.push(truth * (1.0 + 0.01 * noise));
        }
    }
    parts.map(|sections| Series {
        metric: "mean".into(),
        unit: "ms".into(),
        better: Better::Lower,
        value: sections.iter().sum::<f64>() / 20.0,
        sections,
        error: None,
    })
}

fn judge(pair: [Series; 2], paired: bool, margin: f64) -> Change {
    let [old, new] = pair;
    decide::shifts(&[(old, new)], paired, margin).remove(0)
}

const REPEATS: u64 = 4_000;

fn count(truth: [f64; 2], shared: f64, paired: bool, margin: f64, shift: fn(Shift) -> bool) -> u64 {
    let hit = |r: &u32| shift(judge(sections(*r, truth, shared), paired, margin).shift);
    (0..u32::try_from(REPEATS).unwrap()).filter(hit).count() as u64
}

#[test]
fn false_alarms_of_a_single_number_are_nominal() {
    // Without a margin "different" is the two-sided test alone.
    for (shared, paired) in [(0.9, true), (0.0, true), (0.0, false)] {
        let alarms = count([10.0, 10.0], shared, paired, 0.0, Shift::is_different);
        assert!(is_nominal(alarms, REPEATS, 0.05), "{shared} {paired}: {alarms}");
    }
    // Unpaired although the sections move together: true, but wasteful.
    let alarms = count([10.0, 10.0], 0.9, false, 0.0, Shift::is_different);
    assert!(alarms < REPEATS / 1_000, "{alarms}");
    // With the usual margin there are fewer: the change must also exceed it.
    let alarms = count([10.0, 10.0], 0.9, true, 0.005, Shift::is_different);
    assert!(alarms < REPEATS / 20, "{alarms}");
}

#[test]
fn false_claims_of_equivalence_are_nominal() {
    // Where the truth lies on the margin, "equivalent" is wrong, and said in one of twenty.
    let is_equivalent = |s| s == Shift::Equivalent;
    for truth in [[10.0, 10.05], [10.0, 9.95]] {
        let claims = count(truth, 0.95, true, 0.005, is_equivalent);
        assert!(is_nominal(claims, REPEATS, 0.05), "{truth:?}: {claims}");
    }
    let claims = count([10.0, 10.1], 0.95, true, 0.005, is_equivalent);
    assert!(claims == 0, "{claims}");
}

#[test]
fn several_numbers_alarm_no_more_than_one() {
    let alarm = |r: &u32| {
        let pair = |i: u32| {
            let [old, new] = sections(r * 12 + i, [10.0, 10.0], 0.5);
            (old, new)
        };
        let pairs: Vec<(Series, Series)> = (0..12).map(pair).collect();
        decide::shifts(&pairs, true, 0.0).iter().any(|c| c.shift.is_different())
    };
    let alarms = (0..2_000).filter(alarm).count() as u64;
    assert!(is_nominal(alarms, 2_000, 1.0 - (1.0f64 - 0.05 / 12.0).powi(12)), "{alarms}");
}

#[test]
fn power_grows_with_pairing() {
    // One per cent of change; one per cent of noise in a section. Paired at a correlation of 0.9
    // the standard error is 0.1 %: found ten errors away. Independent it is 0.316 %, and 2.02 of
    // them are exceeded with probability P(z > −1.14) = 0.87.
    let different = Shift::is_different;
    let paired = count([10.0, 10.1], 0.9, true, 0.005, different);
    let alone = count([10.0, 10.1], 0.0, false, 0.005, different);
    assert!(paired > REPEATS * 99 / 100, "{paired}");
    assert!((REPEATS * 84 / 100..REPEATS * 90 / 100).contains(&alone), "{alone}");
    let same = count([10.0, 10.0], 0.95, true, 0.005, |s| s == Shift::Equivalent);
    assert!(same > REPEATS * 99 / 100, "{same}");
}

// --- small simulations ---

const MODEL: &str = "schema = 1\n[run]\nrequests = 8000\nwarmup = \"500ms\"\n[server]\ncost = { \
                     kind = \"affine\", fixed = \"8ms\", per_item = \"0.5ms\" }\n[[policy]]\n\
                     kind = \"dynamic\"\nmax_batch_size = 8\nmax_wait = \"5ms\"\n";

fn result(seed: u64, extra: &str, sets: &[String]) -> Baseline {
    let text = format!("seed = {seed}\n{MODEL}{extra}");
    let files = Disk::beside(Path::new("."), interop::trace::for_scenario);
    let scenario = load(&Input::from_text("s.toml", text), sets, &files).unwrap().scenario;
    let ran = decide::simulate(&scenario, &Options::default(), &Control::default());
    decide::record(&scenario, &ran)
}

fn changes(a: &Baseline, b: &Baseline, margin: f64) -> (bool, Vec<Change>) {
    let found = decide::compare(("a", a), ("b", b), margin, &[]).unwrap();
    (found.paired, found.cells[0].changes.clone())
}

/// The same two sources in another order get each other's random streams: other numbers of the
/// same law, so that every difference is a false alarm.
const ORDERS: [&str; 2] = [
    "[[arrivals]]\nkind = \"poisson\"\nrate = \"120/s\"\n[[arrivals]]\nkind = \"gamma\"\n\
     rate = \"80/s\"\ncv = 1.5\n",
    "[[arrivals]]\nkind = \"gamma\"\nrate = \"80/s\"\ncv = 1.5\n[[arrivals]]\nkind = \
     \"poisson\"\nrate = \"120/s\"\n",
];

#[test]
fn simulations_of_the_same_law_alarm_at_the_nominal_level() {
    let repeats = 600;
    let (mut single, mut family) = (0, 0);
    for seed in 0..repeats {
        let (a, b) = (result(seed, ORDERS[0], &[]), result(seed, ORDERS[1], &[]));
        let (paired, all) = changes(&a, &b, 1e-9);
        assert!(paired);
        family += u64::from(all.iter().any(|c| c.shift.is_different()));
        // The mean alone, from the same sections.
        let mean = |r: &Baseline| r.cells[0].series[0].clone();
        let pair = [mean(&a), mean(&b)];
        single += u64::from(judge(pair, true, 1e-9).shift.is_different());
    }
    assert!(is_nominal(single, repeats, 0.05), "{single} of {repeats}");
    // Holm promises at most 5 %; the numbers depend on each other, so there are fewer.
    let law = Binomial::new(0.05, repeats).unwrap();
    assert!(family > 0 && law.sf(family - 1) > 0.001, "{family} of {repeats}");
}

#[test]
fn a_real_change_is_found_and_pairing_helps() {
    let poisson = "[arrivals]\nkind = \"poisson\"\nrate = \"550/s\"\n";
    let longer = ["server.cost.fixed=8.2ms".to_owned()];
    let (mut found, mut wider) = (0, 0.0);
    let repeats = 40;
    for seed in 0..repeats {
        let (a, b) = (result(seed, poisson, &[]), result(seed, poisson, &longer));
        let (paired, all) = changes(&a, &b, 0.005);
        assert!(paired);
        let mean = all.iter().find(|c| c.metric == "mean").unwrap();
        found += u64::from(mean.shift == Shift::Worse);
        let far = result(seed + 1_000, poisson, &longer);
        let (paired, all) = changes(&a, &far, 0.005);
        assert!(!paired);
        let alone = all.iter().find(|c| c.metric == "mean").unwrap();
        wider += alone.half_width.unwrap() / mean.half_width.unwrap() / repeats as f64;
    }
    // At load 0.8 2 % of service time are 4 % of latency.
    assert!(found >= repeats * 95 / 100, "{found} of {repeats}");
    assert!(wider > 3.0, "pairing narrows the interval {wider:.1}-fold");
}

#[test]
fn a_condition_is_judged_with_its_interval() {
    let poisson = "[arrivals]\nkind = \"poisson\"\nrate = \"200/s\"\n";
    let (a, b) = (result(1, poisson, &[]), result(1, poisson, &["dynamic.max_wait=7ms".into()]));
    let verdict = |condition: &str| {
        let limits = [parse_change(condition).unwrap()];
        let found = decide::compare(("a", &a), ("b", &b), 0.005, &limits);
        found.map(|c| format!("{:?}", c.limits[0].judgement))
    };
    // The mean grows from 14.1 to 14.8 ms: by 5 %.
    assert_eq!(verdict("mean > +1%").unwrap(), "Fail");
    assert_eq!(verdict("mean > +0.2ms").unwrap(), "Fail");
    assert_eq!(verdict("mean > +15%").unwrap(), "Pass");
    assert_eq!(verdict("mean < -1%").unwrap(), "Pass");
    assert_eq!(verdict("rejected > +0.1%").unwrap(), "Pass");
    let exact = changes(&a, &b, 0.005).1.into_iter().find(|c| c.metric == "mean").unwrap();
    let near = format!("mean > +{:.3}%", exact.change * 100.0);
    assert_eq!(verdict(&near).unwrap(), "Inconclusive");
    assert!(verdict("p(97) > +1%").unwrap_err().contains("p(99)"));
    assert!(verdict("attainment(9ms) < -1%").is_err());
}

// --- the command line ---

fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compare").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn batchsim(dir: &Path, args: &[&str]) -> Output {
    Command::new(BINARY).args(args).current_dir(dir).stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn expect(output: &Output, code: i32) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "stdout:\n{out}\nstderr:\n{err}");
    (out, err)
}

/// Two scenarios that differ in a wait, and their results in folders `a` and `b`.
fn two(test: &str) -> PathBuf {
    let dir = folder(test);
    let poisson = "[arrivals]\nkind = \"poisson\"\nrate = \"200/s\"\n";
    let text = format!("{MODEL}{poisson}").replace("8000", "200000");
    fs::write(dir.join("a.toml"), &text).unwrap();
    fs::write(dir.join("b.toml"), text.replace("5ms\"\n[", "7ms\"\n[")).unwrap();
    for name in ["a", "b"] {
        let file = format!("{name}.toml");
        expect(&batchsim(&dir, &["run", &file, "-o", name, "--no-charts"]), 0);
    }
    dir
}

#[test]
fn exit_codes_are_the_documented_ones() {
    let dir = two("codes");
    expect(&batchsim(&dir, &["compare", "a.toml", "b.toml"]), 0);
    let fail = ["compare", "a.toml", "b.toml", "--fail-on", "mean > +1%"];
    let (out, _) = expect(&batchsim(&dir, &fail), 98);
    assert!(out.contains("FAIL  dynamic  mean > +1%"), "{out}");
    expect(&batchsim(&dir, &["compare", "b.toml", "a.toml", "--fail-on", "mean > +1%"]), 0);
    expect(&batchsim(&dir, &["compare", "a.toml", "b.toml", "--fail-on", "p99 > 1%"]), 2);
    expect(&batchsim(&dir, &["compare", "a.toml", "b.toml", "--fail-on", "p(97) > 1%"]), 4);
    expect(&batchsim(&dir, &["compare", "a.toml"]), 2);
    expect(&batchsim(&dir, &["compare", "a.toml", "missing"]), 2);
    fs::create_dir_all(dir.join("empty")).unwrap();
    expect(&batchsim(&dir, &["compare", "a.toml", "empty"]), 2);
    // Half of requests is close to no limit: what is open exits 96 only when asked to.
    let json = batchsim(&dir, &["compare", "a", "b", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let all = json["cells"][0]["changes"].as_array().unwrap();
    let mean = all.iter().find(|c| c["metric"] == "mean").unwrap();
    let near = format!("mean > +{:.4}%", mean["change"].as_f64().unwrap() * 100.0);
    let open = ["compare", "a", "b", "--fail-on", &near];
    expect(&batchsim(&dir, &open), 0);
    expect(&batchsim(&dir, &[&open[..], &["--inconclusive=fail"]].concat()), 96);
}

#[test]
fn results_compare_as_their_scenarios_do() {
    let dir = two("results");
    let cells = |args: &[&str]| {
        let output = batchsim(&dir, &[&["compare", "--format", "json"], args].concat());
        let (out, err) = expect(&output, 0);
        let json: serde_json::Value = serde_json::from_str(&out).unwrap();
        (json["paired"] == true, json["cells"].clone(), err)
    };
    let (paired, live, _) = cells(&["a.toml", "b.toml"]);
    let (stored_paired, stored, _) = cells(&["a", "b/outcome.json"]);
    assert!(paired && stored_paired && live == stored);
    let (_, mixed, _) = cells(&["a.toml", "b"]);
    assert_eq!(mixed, live);
    let (_, same, _) = cells(&["a", "a.toml"]);
    let all = same[0]["changes"].as_array().unwrap();
    assert!(all.iter().all(|c| c["shift"] == "identical"), "{all:?}");
    // Without the sections there are only the intervals, and that is said.
    fs::remove_file(dir.join("b/sections.json")).unwrap();
    let (paired, bare, err) = cells(&["a", "b"]);
    assert!(!paired && err.contains("sections.json"), "{err}");
    let mean = |cells: &serde_json::Value| {
        let all = cells[0]["changes"].as_array().unwrap();
        all.iter().find(|c| c["metric"] == "mean").unwrap().clone()
    };
    assert_eq!(mean(&bare)["change"], mean(&live)["change"]);
    let metrics = bare[0]["changes"].as_array().unwrap();
    assert!(!metrics.iter().any(|c| c["metric"] == "throughput"));
    // An exact result has no error of its own.
    expect(&batchsim(&dir, &["exact", "a.toml", "-o", "exact", "--no-charts"]), 0);
    let (_, exact, _) = cells(&["exact", "a"]);
    let all = exact[0]["changes"].as_array().unwrap();
    assert!(all.iter().all(|c| c["shift"] != "worse" && c["shift"] != "better"), "{all:?}");
}

#[test]
fn every_format_prints_the_changes() {
    let dir = two("formats");
    let print =
        |format: &str| expect(&batchsim(&dir, &["compare", "a", "b", "--format", format]), 0).0;
    assert!(print("table").contains("changed dynamic.max_wait: \"5ms\" → \"7ms\""));
    assert!(print("markdown").contains("| dynamic | mean | different, worse |"));
    let csv = print("csv");
    let columns = |line: &str| line.split(',').count();
    assert!(csv.lines().all(|l| columns(l) == columns(csv.lines().next().unwrap())), "{csv}");
}

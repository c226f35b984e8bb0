//! `check`: what it says, where it says it, and what it exits with.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use batchsim::decide;
use batchsim::interop;
use batchsim::scenario::{Disk, Input, Scenario, load};
use batchsim::study::{Control, Options};
use quick_junit::{NonSuccessKind, Report, TestCaseStatus};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_batchsim");

/// A folder of its own for one test, emptied first.
fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn batchsim_with(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(args).current_dir(dir).stdin(Stdio::null());
    for name in ["GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"] {
        command.env_remove(name);
    }
    command.envs(env.iter().copied()).output().unwrap()
}

fn batchsim(dir: &Path, args: &[&str]) -> Output {
    batchsim_with(dir, args, &[])
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn expect(output: &Output, code: i32) -> String {
    let both = format!("stdout:\n{}\nstderr:\n{}", stdout(output), stderr(output));
    assert_eq!(output.status.code(), Some(code), "{both}");
    both
}

const MODEL: &str = "schema = 1\n[run]\nrequests = 400000\n[arrivals]\nkind = \"poisson\"\n\
                     rate = \"200/s\"\n[server]\ncost = { kind = \"affine\", fixed = \"8ms\", \
                     per_item = \"0.5ms\" }\n[[policy]]\nkind = \"dynamic\"\n\
                     max_batch_size = 8\nmax_wait = \"5ms\"\n";

/// A scenario `name`.toml of a moment: `extra` goes behind the model.
fn scenario(dir: &Path, name: &str, extra: &str) -> String {
    let file = format!("{name}.toml");
    fs::write(dir.join(&file), format!("{MODEL}{extra}")).unwrap();
    file
}

fn threshold(expr: &str) -> String {
    format!("[[threshold]]\nexpr = \"{expr}\"\n")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn exit_codes_are_the_documented_ones() {
    let dir = folder("codes");
    let plain = scenario(&dir, "plain", "");
    expect(&batchsim(&dir, &["check", &plain]), 4);
    let good = scenario(&dir, "good", &threshold("p(99) < 25ms"));
    expect(&batchsim(&dir, &["check", &good]), 0);
    let bad = scenario(&dir, "bad", &threshold("p(99) < 15ms"));
    expect(&batchsim(&dir, &["check", &bad]), 99);
    expect(&batchsim(&dir, &["check", &plain, "--bless"]), 0);
    expect(&batchsim(&dir, &["check", &plain]), 0);
    let worse = ["--set", "dynamic.max_wait=7ms"];
    expect(&batchsim(&dir, &[&["check", &plain], &worse[..]].concat()), 98);
    // A failed threshold outweighs a regression, and the worst scenario counts.
    expect(&batchsim(&dir, &["check", &plain, &bad, &good]), 99);
    expect(&batchsim(&dir, &[&["check", &plain, &good], &worse[..]].concat()), 98);
    for wrong in [
        &["check", &plain, "--margin", "0%"][..],
        &["check", &plain, "--margin", "5"],
        &["check", &plain, "--baseline", "missing.json"],
        &["check", &plain, &good, "--baseline", "one.json"],
        &["check"],
        &["check", "no-such.toml"],
    ] {
        expect(&batchsim(&dir, wrong), 2);
    }
}

#[test]
fn an_open_threshold_or_change_is_inconclusive() {
    let dir = folder("open");
    let file = scenario(&dir, "open", "");
    expect(&batchsim(&dir, &["check", &file, "--bless"]), 0);
    let few = ["check", &file, "--set", "run.requests=4000", "--seed", "5"];
    let output = batchsim(&dir, &few);
    let both = expect(&output, 0);
    assert!(both.contains("undecided"), "{both}");
    expect(&batchsim(&dir, &[&few[..], &["--inconclusive=fail"]].concat()), 96);
}

#[test]
fn what_is_no_baseline_says_why() {
    let dir = folder("broken");
    let file = scenario(&dir, "s", "");
    expect(&batchsim(&dir, &["check", &file, "--bless"]), 0);
    let path = dir.join("s.baseline.json");
    let text = fs::read_to_string(&path).unwrap();
    for (broken, why) in [
        ("{".to_owned(), "not JSON"),
        ("{}".to_owned(), "not a baseline"),
        (text.replacen("\"schema\": 1", "\"schema\": 2", 1), "version 2"),
        (text.replacen("\"5ms\"", "\"6ms\"", 1), "edited"),
        (text.replacen("\"rng\"", "\"rgn\"", 1), "not complete"),
    ] {
        assert_ne!(broken, text, "{why}");
        fs::write(&path, broken).unwrap();
        let both = expect(&batchsim(&dir, &["check", &file]), 2);
        assert!(both.contains(why), "{why}: {both}");
    }
    expect(&batchsim(&dir, &["check", &file, "--bless"]), 0);
    assert!(fs::read_to_string(&path).unwrap() == text, "the same bytes as before");
}

#[test]
fn a_difference_is_explained_by_the_scenario_or_by_the_build() {
    let dir = folder("cause");
    let file = scenario(&dir, "s", "");
    let bless = |file: &str, set: &str| {
        expect(
            &batchsim(&dir, &["check", "s.toml", "--bless", "--baseline", file, "--set", set]),
            0,
        );
        serde_json::from_str::<Value>(&fs::read_to_string(dir.join(file)).unwrap()).unwrap()
    };
    let right = bless("right.json", "seed=42");
    // What another build would have recorded: other numbers for the same scenario.
    let mut other = bless("other.json", "dynamic.max_wait=6ms");
    for key in ["scenario", "scenario_sha256"] {
        other[key] = right[key].clone();
    }
    fs::write(dir.join("neither.json"), other.to_string()).unwrap();
    other["tool"]["commit"] = "0123456789ab".into();
    fs::write(dir.join("build.json"), other.to_string()).unwrap();
    let mut moved = right.clone();
    moved["tool"]["commit"] = "0123456789ab".into();
    fs::write(dir.join("moved.json"), moved.to_string()).unwrap();
    let check = |baseline: &str, set: &str, code: i32| {
        let args = ["check", &file, "--baseline", baseline, "--format", "json", "--set", set];
        let output = batchsim(&dir, &args);
        expect(&output, code);
        json(&output)["scenarios"][0]["against"].clone()
    };
    let (same, wait) = ("seed=42", "dynamic.max_wait=7ms");
    let found = check("moved.json", same, 0);
    assert_eq!((&found["cause"], &found["build_changed"]), (&"none".into(), &true.into()));
    let found = check("right.json", wait, 98);
    assert_eq!(found["cause"], "scenario");
    let change = &found["scenario_changes"][0];
    assert_eq!(change["path"], "dynamic.max_wait");
    assert_eq!((&change["old"], &change["new"]), (&"\"5ms\"".into(), &"\"7ms\"".into()));
    // Faster than recorded is no regression of a scenario, but a build has no business there.
    assert_eq!(check("build.json", same, 98)["cause"], "build");
    assert_eq!(check("neither.json", same, 98)["cause"], "neither");
    assert_eq!(check("build.json", wait, 98)["cause"], "both");
    // Both changed, but this build gives the old numbers for the old scenario.
    let found = check("moved.json", wait, 98);
    assert_eq!(found["cause"], "scenario");
    assert!(found["because"].as_str().unwrap().contains("gives the old numbers"));
}

#[test]
fn an_improvement_is_told_and_blessed() {
    let dir = folder("better");
    let file = scenario(&dir, "s", "");
    expect(&batchsim(&dir, &["check", &file, "--bless"]), 0);
    let set = ["--set", "dynamic.max_wait=3ms"];
    let both = expect(&batchsim(&dir, &[&["check", &file], &set[..]].concat()), 0);
    assert!(both.contains("better") && both.contains("--bless"), "{both}");
    assert!(!both.contains("worse"), "{both}");
    let blessed = [&["check", &file, "--bless"], &set[..]].concat();
    expect(&batchsim(&dir, &blessed), 0);
    let both = expect(&batchsim(&dir, &[&["check", &file], &set[..]].concat()), 0);
    assert!(both.contains("identical"), "{both}");
    // Blessing something worse is allowed, too; that is what it is for.
    let worse = ["--set", "dynamic.max_wait=9ms", "--bless"];
    expect(&batchsim(&dir, &[&["check", &file], &worse[..]].concat()), 0);
}

#[test]
fn a_policy_that_is_gone_is_a_regression() {
    let dir = folder("gone");
    let greedy = "[[policy]]\nkind = \"greedy\"\nmax_batch_size = 32\n";
    let file = scenario(&dir, "s", greedy);
    expect(&batchsim(&dir, &["check", &file, "--bless"]), 0);
    scenario(&dir, "s", "");
    let both = expect(&batchsim(&dir, &["check", &file]), 98);
    assert!(both.contains("gone"), "{both}");
    scenario(&dir, "s", &format!("{greedy}[[policy]]\nkind = \"none\"\n"));
    let both = expect(&batchsim(&dir, &["check", &file]), 0);
    let new = |l: &str| l.starts_with("new ") && l.contains(" none ");
    assert!(both.lines().any(new), "{both}");
}

#[test]
fn annotations_stand_at_the_line_of_the_threshold() {
    let dir = folder("lines");
    let extra = format!("{}# a remark\n{}", threshold("p(99) < 25ms"), threshold("mean < 10ms"));
    let file = scenario(&dir, "s", &extra);
    let text = fs::read_to_string(dir.join(&file)).unwrap();
    let line = text.lines().position(|l| l.contains("mean <")).unwrap() + 1;
    let output = batchsim(&dir, &["check", &file, "--annotations", "github"]);
    expect(&output, 99);
    let lines = stdout(&output);
    let notes: Vec<&str> = lines.lines().filter(|l| l.starts_with("::")).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    let start = format!("::error file=s.toml,line={line},col=8,title=batchsim threshold%3A");
    assert!(notes[0].starts_with(&start), "{}", notes[0]);
    assert!(notes[0].contains("mean < 10ms") && notes[0].contains("±"), "{}", notes[0]);

    // On GitHub by themselves, from the root of the checkout; a document stays a document.
    let inner = dir.join("deep");
    fs::create_dir_all(&inner).unwrap();
    fs::copy(dir.join(&file), inner.join(&file)).unwrap();
    let root = dir.display().to_string();
    let env = [("GITHUB_ACTIONS", "true"), ("GITHUB_WORKSPACE", root.as_str())];
    let output = batchsim_with(&inner, &["check", &file, "--format", "json"], &env);
    expect(&output, 99);
    assert_eq!(json(&output)["finding"], "threshold");
    let start = format!("::error file=deep/s.toml,line={line},col=8,");
    assert!(stderr(&output).lines().any(|l| l.starts_with(&start)), "{}", stderr(&output));
    let args = ["check", &file, "--annotations", "never"];
    assert!(!stdout(&batchsim_with(&inner, &args, &env)).contains("::error"));
}

#[test]
fn annotations_are_at_most_ten() {
    let dir = folder("ten");
    let extra: String = (1..=13).map(|ms| threshold(&format!("mean < {ms}ms"))).collect();
    let file = scenario(&dir, "s", &extra);
    let output = batchsim(&dir, &["check", &file, "--annotations", "github"]);
    expect(&output, 99);
    let text = stdout(&output);
    let errors: Vec<&str> = text.lines().filter(|l| l.starts_with("::error")).collect();
    assert_eq!(errors.len(), 10);
    assert!(errors[9].contains("4 more"), "{}", errors[9]);
}

#[test]
fn a_step_summary_is_added_to() {
    let dir = folder("summary");
    let file = scenario(&dir, "s", &threshold("p(99) < 25ms"));
    fs::write(dir.join("summary.md"), "# before\n").unwrap();
    let env = [("GITHUB_STEP_SUMMARY", "summary.md")];
    expect(&batchsim_with(&dir, &["check", &file], &env), 0);
    expect(&batchsim(&dir, &["check", &file, "--summary", "summary.md"]), 0);
    let text = fs::read_to_string(dir.join("summary.md")).unwrap();
    assert!(text.starts_with("# before\n"));
    assert_eq!(text.matches("| pass | threshold | dynamic | p(99) < 25ms |").count(), 2, "{text}");
}

/// The structure that Jenkins and GitLab read: counts that add up, a class and a name for each
/// case, a message and a type for each failure.
#[test]
fn the_junit_file_is_valid() {
    let dir = folder("junit");
    let extra = format!(
        "{}{}{}",
        threshold("p(99) < 25ms"),
        threshold("p(99) < 15ms"),
        "[[policy]]\nkind = \"greedy\"\nlabel = \"a<b & \\\"c\\\"\"\nmax_batch_size = 32\n"
    );
    let file = scenario(&dir, "s", &extra);
    let args = ["check", &file, "--junit", "junit.xml"];
    expect(&batchsim(&dir, &[&args[..], &["--bless"]].concat()), 99);
    expect(&batchsim(&dir, &args), 99);
    let xml = fs::read_to_string(dir.join("junit.xml")).unwrap();
    let report = Report::deserialize_from_str(&xml).unwrap();
    assert_eq!((report.tests, report.failures, report.errors), (8, 2, 0));
    let [suite] = report.test_suites.as_slice() else { panic!("one suite a scenario") };
    assert_eq!(suite.name.as_str(), "s");
    assert_eq!((suite.tests, suite.failures, suite.errors), (8, 2, 0));
    assert_eq!(suite.test_cases.len(), 8);
    let mut seen = Vec::new();
    for case in &suite.test_cases {
        let class = case.classname.as_ref().unwrap().as_str().to_owned();
        assert!(["s.dynamic", "s.a<b & \"c\""].contains(&class.as_str()), "{class}");
        let id = (class, case.name.as_str().to_owned());
        assert!(!seen.contains(&id), "{id:?} twice");
        seen.push(id);
        if let TestCaseStatus::NonSuccess { kind, message, ty, description, .. } = &case.status {
            assert_eq!(*kind, NonSuccessKind::Failure);
            assert_eq!(ty.as_ref().unwrap().as_str(), "threshold");
            assert!(message.as_ref().unwrap().as_str().contains("p(99) < 15ms"));
            let text = description.as_ref().unwrap().as_str();
            for part in ["limit: p(99) < 15ms", "measured: p(99) is ", "±", "seed: 42"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }
    // Nothing of the moment: the same result is the same file.
    let first = xml;
    expect(&batchsim(&dir, &args), 99);
    assert!(fs::read_to_string(dir.join("junit.xml")).unwrap() == first);
}

#[test]
fn documents_follow_their_schemas() {
    let dir = folder("schema");
    let file = scenario(&dir, "s", &threshold("p(99) < 25ms"));
    expect(&batchsim(&dir, &["check", &file, "--bless"]), 0);
    let output = batchsim(&dir, &["check", &file, "--format", "json", "-o", "out"]);
    let compared = batchsim(&dir, &["compare", "out/s", "out/s", "--format", "json"]);
    expect(&compared, 0);
    let baseline = fs::read_to_string(dir.join("s.baseline.json")).unwrap();
    for (what, document) in [
        ("check", json(&output)),
        ("comparison", json(&compared)),
        ("baseline", serde_json::from_str(&baseline).unwrap()),
    ] {
        let schema = json(&batchsim(&dir, &["schema", what]));
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{what}: {errors:?}");
    }
}

#[test]
fn a_folder_holds_the_baselines_of_many() {
    let dir = folder("many");
    let (a, b) = (scenario(&dir, "a", ""), scenario(&dir, "b", ""));
    fs::create_dir_all(dir.join("kept")).unwrap();
    let args = ["check", &a, &b, "--baseline", "kept"];
    expect(&batchsim(&dir, &[&args[..], &["--bless"]].concat()), 0);
    assert!(dir.join("kept/a.baseline.json").exists() && dir.join("kept/b.baseline.json").exists());
    let both = expect(&batchsim(&dir, &args), 0);
    assert_eq!(both.matches("the same numbers to the last digit").count(), 2, "{both}");
    expect(&batchsim(&dir, &["check", &a, &a]), 2);
}

#[test]
fn a_stall_is_no_baseline() {
    let dir = folder("stall");
    let text = "schema = 1\n[run]\nrequests = 100\n[arrivals]\nkind = \"closed-loop\"\n\
                clients = 3\n[server]\ncost = { kind = \"affine\", fixed = \"8ms\", per_item = \
                \"0.5ms\" }\n[[policy]]\nkind = \"static\"\nmax_batch_size = 8\n";
    fs::write(dir.join("s.toml"), text).unwrap();
    expect(&batchsim(&dir, &["check", "s.toml", "--bless"]), 95);
    assert!(!dir.join("s.baseline.json").exists());
}

fn loaded(text: &str) -> Scenario {
    let files = Disk::beside(Path::new("."), interop::trace::for_scenario);
    load(&Input::from_text("s.toml", text), &[], &files).unwrap().scenario
}

/// Layer 2 without a baseline: the right engine passes at many seeds, a wrong one does not.
#[test]
fn the_exact_solution_is_a_baseline_of_its_own() {
    let more = "[[policy]]\nkind = \"greedy\"\nmax_batch_size = 32\n[[policy]]\nkind = \"static\"\n\
                max_batch_size = 16\n[[policy]]\nkind = \"dynamic\"\nlabel = \"pickup\"\n\
                max_batch_size = 8\nmax_wait = \"5ms\"\nwait_anchor = \"pickup\"\n";
    let text = format!("{MODEL}{more}").replace("400000", "1000000");
    let (options, control) = (Options::default(), Control::default());
    let mut judged = 0;
    for seed in 1..=12 {
        let scenario = loaded(&format!("seed = {seed}\n{text}"));
        let ran = decide::simulate(&scenario, &options, &control);
        for checks in decide::against_exact(&scenario, &ran, &control) {
            judged += checks.len();
            assert!(checks.iter().all(|c| c.agrees), "seed {seed}: {checks:?}");
        }
    }
    assert_eq!(judged, 12 * 4 * 5);
    // An engine that waits 2 % longer than it should.
    let scenario = loaded(&text);
    let wrong = loaded(&text.replace("\"5ms\"", "\"5.1ms\""));
    let mut ran = decide::simulate(&wrong, &options, &control);
    ran.outcome.scenario = scenario.to_value();
    // One that overloads where the queue settles.
    let mut grown = ran.clone();
    grown.outcome.cells[1].stable = false;
    let found = decide::against_exact(&scenario, &grown, &control);
    assert!(found[1].iter().any(|c| c.metric == "steady state" && !c.agrees), "{:?}", found[1]);
    let found = decide::against_exact(&scenario, &ran, &control);
    for (number, waits) in [(0, true), (1, false), (2, false), (3, true)] {
        assert_eq!(found[number].iter().any(|c| !c.agrees), waits, "{:?}", found[number]);
    }
}

//! The command line as people and scripts use it: exit codes, bytes, interrupts, full disks.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_batchsim");

/// A folder of its own for one test, emptied first.
fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn batchsim(args: &[&str]) -> Output {
    let root = env!("CARGO_MANIFEST_DIR");
    Command::new(BINARY).args(args).current_dir(root).stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn expect(output: &Output, code: i32) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(
        output.status.code(),
        Some(code),
        "stdout:\n{}\nstderr:\n{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A scenario of a moment: `extra` goes behind it.
fn scenario(folder: &Path, extra: &str) -> String {
    let text = format!(
        "schema = 1\nname = \"small\"\n[run]\nrequests = 20000\n[arrivals]\nkind = \"poisson\"\n\
         rate = \"600/s\"\n[server]\ncost = {{ kind = \"affine\", fixed = \"8ms\", per_item = \
         \"0.5ms\" }}\n[[policy]]\nkind = \"dynamic\"\nmax_batch_size = 32\nmax_wait = \"5ms\"\n\
         {extra}\n"
    );
    let path = folder.join("small.toml");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn exit_codes_are_the_documented_ones() {
    let dir = folder("codes");
    let out = dir.join("out").display().to_string();
    let run = |extra: &str, more: &[&str]| {
        let file = scenario(&dir, extra);
        batchsim(&[&["run", &file, "-o", &out, "--no-charts"], more].concat())
    };
    let threshold = |expr: &str| format!("[[threshold]]\nexpr = \"{expr}\"");
    expect(&run(&threshold("p(99) < 60ms"), &[]), 0);
    expect(&run(&threshold("p(99) < 10ms"), &[]), 99);
    // The exact p50 at 600/s; nothing that can be told from 20,000 requests.
    let open = "attainment(17.7ms) >= 51.4%";
    let unclear = run(&threshold(open), &["--inconclusive=fail"]);
    assert!([96, 0, 99].contains(&unclear.status.code().unwrap()), "{}", stderr(&unclear));
    expect(&run("", &["--set", "dynamic.max_wiat=3ms"]), 2);
    expect(&run("", &["--no-such-flag"]), 2);
    expect(&batchsim(&["run", "no-such-file.toml"]), 2);
    expect(&batchsim(&["run", "scenarios"]), 2);
    expect(&run("", &["--jobs", "0"]), 2);
    expect(&run("", &["--precision", "0%"]), 2);
    expect(&batchsim(&["sweep", &scenario(&dir, ""), "-o", &out]), 2);
}

#[test]
fn an_open_threshold_is_inconclusive() {
    let dir = folder("open");
    let out = dir.join("out").display().to_string();
    let file = scenario(&dir, "");
    let json = batchsim(&["run", &file, "-o", &out, "--no-charts", "--format", "json"]);
    expect(&json, 0);
    let outcome: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let mean = outcome["cells"][0]["latency_ms"]["mean"].as_f64().unwrap();
    let file = scenario(&dir, &format!("[[threshold]]\nexpr = \"mean < {mean:.4}ms\""));
    let args = ["run", &file, "-o", &out, "--no-charts"];
    expect(&batchsim(&args), 0);
    expect(&batchsim(&[&args[..], &["--inconclusive=fail"]].concat()), 96);
}

#[test]
fn a_stall_is_named() {
    let dir = folder("stall");
    let file = dir.join("stall.toml");
    let text = "schema = 1\n[run]\nrequests = 100\n[arrivals]\nkind = \"closed-loop\"\n\
                clients = 3\n[server]\ncost = { kind = \"affine\", fixed = \"8ms\", per_item = \
                \"0.5ms\" }\n[[policy]]\nkind = \"static\"\nmax_batch_size = 8\n";
    fs::write(&file, text).unwrap();
    let out = dir.join("out").display().to_string();
    let output = batchsim(&["run", &file.display().to_string(), "-o", &out, "--no-charts"]);
    expect(&output, 95);
    assert!(stderr(&output).contains("stalls"), "{}", stderr(&output));
}

#[test]
fn nothing_to_solve_exits_4() {
    let out = folder("nothing").join("out").display().to_string();
    let output = batchsim(&["exact", "scenarios/closed-loop.toml", "-o", &out]);
    expect(&output, 4);
    assert!(stderr(&output).contains("closed-loop"), "{}", stderr(&output));
}

/// Invariant 10: the bytes do not depend on the number of threads.
#[test]
fn invariant_10_outcome_bytes_at_1_2_and_7_threads() {
    let dir = folder("threads");
    let run = |jobs: &str| {
        let out = dir.join(jobs);
        let out_text = out.display().to_string();
        let quick = ["--set", "run.requests=200000", "--set", "curve.precision=20%"];
        let args = ["run", "scenarios/quickstart.toml", "-o", &out_text, "--jobs", jobs];
        expect(&batchsim(&[&args[..], &quick[..]].concat()), 0);
        let mut files: Vec<PathBuf> =
            fs::read_dir(&out).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        let names = files.iter().map(|f| f.file_name().unwrap().to_owned());
        let bytes = files.iter().map(|f| fs::read(f).unwrap());
        names.zip(bytes).filter(|(name, _)| name != "run-info.json").collect::<Vec<_>>()
    };
    let one = run("1");
    assert!(one.iter().any(|(name, _)| name == "outcome.json"));
    assert!(one.iter().any(|(name, _)| name == "cdf.png"));
    assert_eq!(one, run("2"));
    assert_eq!(one, run("7"));
}

#[test]
fn toml_yaml_and_json_give_the_same_bytes() {
    let dir = folder("formats");
    let run = |ending: &str| {
        let out = dir.join(ending);
        let file = format!("scenarios/quickstart.{ending}");
        let out_text = out.display().to_string();
        let args = ["run", &file, "-o", &out_text, "--no-charts", "--set", "run.requests=100000"];
        expect(&batchsim(&args), 0);
        fs::read(out.join("outcome.json")).unwrap()
    };
    let toml = run("toml");
    assert_eq!(toml, run("yaml"));
    assert_eq!(toml, run("json"));
}

const SWEEP: &str = "[sweep]\n\"dynamic.max_batch_size\" = { values = [16, 24, 32, 48, 64, 96] }\n\
                     \"dynamic.max_wait\" = { from = \"0ms\", to = \"19ms\", step = \"1ms\" }";

#[test]
fn an_interrupted_sweep_goes_on_and_ends_with_the_same_bytes() {
    let dir = folder("interrupt");
    let file = scenario(&dir, SWEEP);
    let sweep = |out: &Path| {
        let mut command = Command::new(BINARY);
        command.args(["sweep", &file, "--no-charts", "--jobs", "1", "-o"]).arg(out);
        command.args(["--set", "run.requests=1000000"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    };
    let (whole, parts) = (dir.join("whole"), dir.join("parts"));
    expect(&sweep(&whole).output().unwrap(), 0);

    let mut child = sweep(&parts).spawn().unwrap();
    let journal = parts.join("cells.partial.jsonl");
    let lines = || fs::read_to_string(&journal).map_or(0, |t| t.lines().count());
    // The heading and a few cells.
    while lines() < 4 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        std::thread::sleep(Duration::from_millis(5));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let saved = lines() - 1;
    assert!((3..120).contains(&saved), "{saved} of 120 cells were saved");
    assert!(!parts.join("outcome.json").exists());

    let again = sweep(&parts).output().unwrap();
    expect(&again, 0);
    assert!(stderr(&again).contains(&format!("going on: {saved} of 120")), "{}", stderr(&again));
    for name in ["outcome.json", "cells.jsonl", "batch-sizes.jsonl"] {
        assert!(
            fs::read(whole.join(name)).unwrap() == fs::read(parts.join(name)).unwrap(),
            "{name}"
        );
    }
    assert!(!journal.exists());
}

#[test]
fn a_journal_of_another_scenario_is_not_gone_on_with() {
    let dir = folder("foreign");
    let file = scenario(&dir, SWEEP);
    let out = dir.join("out");
    fs::create_dir_all(&out).unwrap();
    fs::write(out.join("cells.partial.jsonl"), "{\"outcome\":1}\ngarbage\n").unwrap();
    let out_text = out.display().to_string();
    let args = ["sweep", &file, "--no-charts", "-o", &out_text, "--set", "run.requests=2000"];
    let output = batchsim(&args);
    expect(&output, 0);
    assert!(!stderr(&output).contains("going on"), "{}", stderr(&output));
}

#[test]
fn an_interrupted_run_keeps_what_is_complete() {
    let dir = folder("interrupt-run");
    let mut child = Command::new(BINARY)
        .args(["run", "scenarios/quickstart.toml", "--precision", "0.01%", "--no-charts", "-o"])
        .arg(&dir)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(3000));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let text = fs::read_to_string(dir.join("outcome.json")).unwrap();
    let outcome: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(text.contains("interrupted"));
    assert!(!outcome["cells"].as_array().unwrap().is_empty());
}

/// A full disk, acted by a limit on file size: exit 1, a message, and no partial file.
#[test]
fn a_full_disk_leaves_no_partial_file() {
    let dir = folder("disk");
    let file = scenario(&dir, "");
    let out = dir.join("out");
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" run \"$1\" -o \"$2\" --no-charts";
    let mut command = Command::new("sh");
    command.args(["-c", script, BINARY, &file]).arg(&out).stdin(Stdio::null());
    let output = command.output().unwrap();
    expect(&output, 1);
    assert!(stderr(&output).contains("cannot write"), "{}", stderr(&output));
    let left: Vec<_> = fs::read_dir(&out).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_output_folder_that_cannot_be_fails_before_the_work() {
    let dir = folder("output");
    let file = scenario(&dir, "");
    let output = batchsim(&["run", &file, "-o", "/dev/null/results"]);
    expect(&output, 1);
    assert!(output.stdout.is_empty());
    assert!(stderr(&output).contains("/dev/null/results"), "{}", stderr(&output));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let dir = folder("pipe");
    let file = scenario(&dir, "");
    let script = "\"$0\" run \"$1\" -o \"$2\" --no-charts --format json | head -1; exit 0";
    let out = dir.join("out");
    let mut command = Command::new("sh");
    let output = command.args(["-c", script, BINARY, &file]).arg(out).output().unwrap();
    expect(&output, 0);
    assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
}

#[test]
fn old_results_can_be_drawn_again() {
    let dir = folder("plot");
    let file = scenario(&dir, "[[threshold]]\nexpr = \"p(99) < 50ms\"");
    let out = dir.join("out").display().to_string();
    expect(&batchsim(&["run", &file, "-o", &out]), 0);
    let again = dir.join("again").display().to_string();
    expect(&batchsim(&["plot", &format!("{out}/outcome.json"), "-o", &again]), 0);
    for name in ["cdf.svg", "cdf.png", "batch-hist.svg"] {
        let read = |folder: &str| fs::read(Path::new(folder).join(name)).unwrap();
        assert!(read(&out) == read(&again), "{name}");
    }
    let one = dir.join("one.svg").display().to_string();
    let source = format!("{out}/outcome.json");
    expect(&batchsim(&["plot", &source, "--chart", "cdf", "-o", &one]), 0);
    expect(&batchsim(&["plot", &source, "--chart", "heatmap", "-o", &one]), 2);
    expect(&batchsim(&["plot", &source, "--chart", "pie"]), 2);
    expect(&batchsim(&["plot", &file]), 2);
}

#[test]
fn a_triton_configuration_becomes_a_scenario_that_runs() {
    let dir = folder("triton");
    let file = dir.join("imported.toml").display().to_string();
    let config = dir.join("config.pbtxt").display().to_string();
    let text = "name: \"encoder\"\nmax_batch_size: 8\ndynamic_batching {\n  \
                preferred_batch_size: [4, 8]\n  max_queue_delay_microseconds: 4000\n}\n\
                instance_group [{ count: 2 kind: KIND_GPU }]\n";
    fs::write(&config, text).unwrap();
    let output = batchsim(&["import", "triton", &config, "-o", &file]);
    expect(&output, 0);
    assert!(stderr(&output).contains("note:"), "{}", stderr(&output));
    let fragment = fs::read_to_string(&file).unwrap();
    let (sizes, delay) = ("preferred_batch_size = [4", "max_queue_delay_microseconds = 4000");
    for part in ["kind = \"triton\"", "max_batch_size = 8", sizes, delay, "instances = 2"] {
        assert!(fragment.contains(part), "{part} is not in\n{fragment}");
    }
    let textbook = batchsim(&["import", "triton", &config, "--textbook"]);
    let fragment = String::from_utf8_lossy(&textbook.stdout).into_owned();
    for part in ["kind = \"dynamic\"", "preferred_batch_sizes = [4", "4000us", "instances = 2"] {
        assert!(fragment.contains(part), "{part} is not in\n{fragment}");
    }
    let out = dir.join("out").display().to_string();
    let quick = ["--set", "run.requests=20000", "--no-charts"];
    expect(&batchsim(&[&["run", &file, "-o", &out], &quick[..]].concat()), 0);
}

#[test]
fn a_torchserve_file_is_read_shown_and_changed() {
    let dir = folder("torchserve");
    let config = dir.join("model-config.yaml").display().to_string();
    let file = dir.join("imported.toml").display().to_string();
    let text = "# mine\nminWorkers: 1\nbatchSize: 4   # small\nmaxBatchDelay: 20\n";
    fs::write(&config, text).unwrap();
    let output = batchsim(&["import", "torchserve", &config, "-o", &file]);
    expect(&output, 0);
    assert!(stderr(&output).contains("note:"), "{}", stderr(&output));
    let scenario = fs::read_to_string(&file).unwrap();
    let tuned = scenario.replace("batchSize = 4", "batchSize = 16");
    assert_ne!(scenario, tuned);
    fs::write(&file, tuned).unwrap();
    let shown = "@@ -3 +3 @@\n-batchSize: 4   # small\n+batchSize: 16   # small\n";
    for (flag, after) in [(None, text.to_owned()), (Some("--in-place"), text.replace("4 ", "16 "))]
    {
        let verb = ["export", "torchserve", "--from", &file];
        let output = batchsim(&[&verb[..], flag.as_slice(), &[config.as_str()]].concat());
        expect(&output, 0);
        assert!(String::from_utf8(output.stdout).unwrap().ends_with(shown));
        assert_eq!(fs::read_to_string(&config).unwrap(), after);
    }
    let verb = ["export", "torchserve", "--from", &file];
    let output = batchsim(&[&verb[..], &["--policy", "other", &config]].concat());
    expect(&output, 2);
    assert!(stderr(&output).contains("has no policy `other`"), "{}", stderr(&output));
    let triton = ["export", "torchserve", "--from", "scenarios/quickstart.toml", &config];
    expect(&batchsim(&triton), 2);
}

#[test]
fn results_follow_their_schema() {
    let dir = folder("schema");
    let schema: serde_json::Value =
        serde_json::from_slice(&batchsim(&["schema", "outcome"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (verb, scenario) in
        [("run", "cut"), ("run", "two-instances"), ("exact", "quickstart"), ("run", "overload")]
    {
        let out = dir.join(scenario).display().to_string();
        let file = format!("scenarios/{scenario}.toml");
        let output = batchsim(&[verb, &file, "-o", &out, "--no-charts", "--format", "json"]);
        let outcome: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let errors: Vec<String> = validator.iter_errors(&outcome).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{verb} {scenario}: {errors:?}");
    }
}

#[test]
fn every_format_prints_only_results_to_standard_output() {
    let dir = folder("formats-out");
    let file = scenario(&dir, "");
    let out = dir.join("out").display().to_string();
    let print = |format: &str| {
        let output = batchsim(&["run", &file, "-o", &out, "--no-charts", "--format", format]);
        expect(&output, 0);
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(print("table").contains("p99 ms"));
    assert!(print("markdown").contains("| --- |"));
    let csv = print("csv");
    let mut lines = csv.lines();
    let columns = lines.next().unwrap().split(',').count();
    assert_eq!(lines.next().unwrap().split(',').count(), columns);
    assert!(serde_json::from_str::<serde_json::Value>(&print("json")).is_ok());
}

#[test]
fn init_schema_and_completions() {
    let dir = folder("init");
    let file = dir.join("scenario.toml").display().to_string();
    expect(&batchsim(&["init", &file]), 0);
    expect(&batchsim(&["init", &file]), 2);
    expect(&batchsim(&["init", &file, "--force"]), 0);
    let out = dir.join("out").display().to_string();
    let quick = ["--precision", "20%", "--no-charts"];
    expect(&batchsim(&[&["run", &file, "-o", &out], &quick[..]].concat()), 0);
    expect(&batchsim(&["schema"]), 0);
    for shell in ["bash", "zsh", "fish"] {
        let output = batchsim(&["completions", shell]);
        expect(&output, 0);
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("max_wait")
                || !output.stdout.is_empty()
        );
    }
    expect(&batchsim(&[]), 0);
}

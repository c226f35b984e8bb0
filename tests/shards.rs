//! Sweeps in parts: shards put together are the single run to the byte; what does not belong
//! together is refused, and the message names it.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_batchsim");

/// Files of a sweep that must not depend on how it was divided.
const RESULTS: [&str; 5] =
    ["outcome.json", "cells.jsonl", "batch-sizes.jsonl", "heatmap.svg", "heatmap.png"];

/// A folder of its own for one test, emptied first.
fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shards").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn batchsim(args: &[&str]) -> Output {
    Command::new(BINARY).args(args).stdin(Stdio::null()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn expect(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
}

/// Sixteen cells: two policies, one with two axes of three and five values.
fn scenario(folder: &Path) -> String {
    let text = r#"schema = 1
name = "grid"
[run]
requests = 4000
[arrivals]
kind = "poisson"
rate = "600/s"
[server]
cost = { kind = "affine", fixed = "8ms", per_item = "0.5ms" }
[[policy]]
kind = "greedy"
max_batch_size = 32
[[policy]]
kind = "dynamic"
max_batch_size = 32
max_wait = "5ms"
[[threshold]]
expr = "p(99) < 30ms"
[sweep]
"dynamic.max_batch_size" = [16, 24, 32]
"dynamic.max_wait" = { from = "0ms", to = "8ms", step = "2ms" }
"#;
    let path = folder.join("grid.toml");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn shard(file: &str, part: &str, out: &Path, more: &[&str]) -> Output {
    batchsim(&[&["sweep", file, "--shard", part, "-o", text(out)], more].concat())
}

/// All three shards of the small sweep.
fn three(file: &str, out: &Path) {
    for part in ["1/3", "2/3", "3/3"] {
        let done = shard(file, part, out, &[]);
        expect(&done, 0);
        assert!(done.stdout.is_empty(), "a part of a result is no result");
    }
}

#[track_caller]
fn same_results(a: &Path, b: &Path) {
    for name in RESULTS {
        assert!(fs::read(a.join(name)).unwrap() == fs::read(b.join(name)).unwrap(), "{name}");
    }
}

#[test]
fn three_shards_are_the_single_run() {
    let dir = folder("three");
    let file = scenario(&dir);
    let (whole, parts, merged) = (dir.join("whole"), dir.join("parts"), dir.join("merged"));
    let single = batchsim(&["sweep", &file, "-o", text(&whole)]);
    expect(&single, 0);
    three(&file, &parts);
    let cells = |n: u32| {
        let path = parts.join(format!("shard-{n}-of-3/shard.jsonl"));
        fs::read_to_string(path).unwrap().lines().count() - 2
    };
    assert_eq!([1, 2, 3].map(cells), [6, 5, 5]);

    // The folder that holds them.
    let output = batchsim(&["merge", text(&parts), "-o", text(&merged)]);
    expect(&output, 0);
    assert_eq!(output.stdout, single.stdout, "the same table");
    same_results(&whole, &merged);

    // Each by name, in any order, as folders and as a file.
    let of = |n: u32| parts.join(format!("shard-{n}-of-3"));
    let (one, two, three) = (of(1), of(2).join("shard.jsonl"), of(3));
    let again = dir.join("again");
    let args = ["merge", text(&three), text(&one), text(&two), "-o", text(&again)];
    expect(&batchsim(&args), 0);
    same_results(&whole, &again);
}

/// More shards than cells: some are empty, and belong to the whole all the same.
#[test]
fn empty_shards_count_too() {
    let dir = folder("empty");
    let file = scenario(&dir);
    let (whole, parts, merged) = (dir.join("whole"), dir.join("parts"), dir.join("merged"));
    expect(&batchsim(&["sweep", &file, "-o", text(&whole)]), 0);
    for n in 1..=18 {
        expect(&shard(&file, &format!("{n}/18"), &parts, &[]), 0);
    }
    expect(&batchsim(&["merge", text(&parts), "-o", text(&merged)]), 0);
    same_results(&whole, &merged);
}

#[test]
fn an_interrupted_shard_goes_on() {
    let dir = folder("interrupted");
    let file = scenario(&dir);
    let (whole, parts, merged) = (dir.join("whole"), dir.join("parts"), dir.join("merged"));
    // Long enough to be interrupted between its first and its last cell.
    let long = ["--set", "run.requests=3000000", "--jobs", "1"];
    expect(&batchsim(&[&["sweep", &file, "-o", text(&whole)], &long[..]].concat()), 0);
    for part in ["1/3", "3/3"] {
        expect(&shard(&file, part, &parts, &long), 0);
    }
    let mut command = Command::new(BINARY);
    command.args(["sweep", &file, "--shard", "2/3", "-o", text(&parts)]).args(long);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let journal = parts.join("shard-2-of-3/cells.partial.jsonl");
    let lines = || fs::read_to_string(&journal).map_or(0, |t| t.lines().count());
    while lines() < 2 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        std::thread::sleep(Duration::from_millis(2));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));

    let early = batchsim(&["merge", text(&parts), "-o", text(&merged)]);
    expect(&early, 2);
    assert!(stderr(&early).contains("shard-2-of-3/shard.jsonl is missing"), "{}", stderr(&early));
    assert!(!merged.exists());

    let again = shard(&file, "2/3", &parts, &long);
    expect(&again, 0);
    assert!(stderr(&again).contains("going on: "), "{}", stderr(&again));
    assert!(!journal.exists());
    expect(&batchsim(&["merge", text(&parts), "-o", text(&merged)]), 0);
    same_results(&whole, &merged);
}

/// A journal of one shard is of no use to another.
#[test]
fn a_shard_does_not_go_on_from_another() {
    let dir = folder("other");
    let file = scenario(&dir);
    let out = dir.join("out");
    expect(&shard(&file, "1/2", &out, &[]), 0);
    let (one, two) = (out.join("shard-1-of-2/shard.jsonl"), out.join("shard-2-of-2"));
    fs::create_dir_all(&two).unwrap();
    // As a journal it would be well-formed: a heading and cells.
    let lines = fs::read_to_string(one).unwrap();
    let head: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    let cells: Vec<&str> = lines.lines().skip(1).collect();
    let journal = format!("{}\n{}\n", head["sweep"], cells.join("\n"));
    fs::write(two.join("cells.partial.jsonl"), journal).unwrap();
    let done = shard(&file, "2/2", &out, &[]);
    expect(&done, 0);
    assert!(stderr(&done).contains("starting over"), "{}", stderr(&done));
}

#[track_caller]
fn refused(arguments: &[&Path], parts: &[&str]) {
    let out = arguments[0].with_file_name("refused");
    let mut args = vec!["merge"];
    args.extend(arguments.iter().map(|p| text(p)));
    args.extend(["-o", text(&out)]);
    let output = batchsim(&args);
    expect(&output, 2);
    for part in parts {
        assert!(stderr(&output).contains(part), "no {part:?} in\n{}", stderr(&output));
    }
    assert!(stderr(&output).contains("\nhelp: "), "{}", stderr(&output));
    assert!(output.stdout.is_empty() && !out.exists());
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let dir = folder("refused");
    let file = scenario(&dir);
    let (parts, other) = (dir.join("parts"), dir.join("other"));
    three(&file, &parts);
    let of = |n: u32| parts.join(format!("shard-{n}-of-3"));
    let (one, two, three) = (of(1), of(2), of(3));

    refused(&[&one, &three], &["shard 2/3 is missing", "--shard 2/3"]);
    refused(&[&two], &["shards 1/3, 3/3 are missing", "shard-2-of-3"]);
    refused(&[&one, &two, &three, &two], &["shard 2/3 is there twice", "shard-2-of-3"]);

    let foreign = other.join("shard-2-of-3");
    expect(&shard(&file, "2/3", &other, &["--seed", "7"]), 0);
    refused(&[&one, &foreign, &three], &["two seeds: 42 in", "7 in", "other/shard-2-of-3"]);
    expect(&shard(&file, "2/3", &other, &["--set", "server.cost.fixed=9ms"]), 0);
    let place = "differ in server.0.cost.fixed: \"8ms\" and \"9ms\"";
    refused(&[&one, &foreign, &three], &["two scenarios: ", place, "other/shard-2-of-3"]);
    expect(&shard(&file, "2/3", &other, &["--event-engine"]), 0);
    refused(&[&one, &foreign, &three], &["two scenarios: ", "options", "other/shard-2-of-3"]);
    expect(&shard(&file, "2/4", &other, &[]), 0);
    let fourth = other.join("shard-2-of-4");
    refused(&[&one, &fourth, &three], &["two divisions: ", "shard 1/3", "shard 2/4"]);

    let nothing = dir.join("nothing");
    fs::create_dir_all(&nothing).unwrap();
    refused(&[&nothing], &["nothing holds no shard"]);
    let plain = dir.join("grid.toml");
    refused(&[&plain], &["grid.toml is no shard"]);
}

#[test]
fn damaged_files_are_refused() {
    let dir = folder("damaged");
    let file = scenario(&dir);
    let parts = dir.join("parts");
    three(&file, &parts);
    let path = parts.join("shard-2-of-3/shard.jsonl");
    let whole = fs::read(&path).unwrap();
    let line_ends: Vec<usize> =
        (0..whole.len()).filter(|i| whole[*i] == b'\n').map(|i| i + 1).collect();
    let named = ["shard-2-of-3/shard.jsonl is cut short or damaged", "--shard 2/3"];
    // At every end of a line but the last, inside the trailer and inside a cell.
    let inside = [whole.len() - 1, whole.len() - 20, line_ends[2] - 100];
    for end in line_ends[..line_ends.len() - 1].iter().chain(&inside) {
        fs::write(&path, &whole[..*end]).unwrap();
        refused(&[&parts], &named);
    }
    fs::write(&path, &whole[..30]).unwrap();
    refused(&[&parts], &["shard-2-of-3/shard.jsonl is no shard"]);
    // A line is gone, though the trailer is there; a digit is another.
    let gone = [&whole[..line_ends[1]], &whole[line_ends[2]..]].concat();
    fs::write(&path, gone).unwrap();
    refused(&[&parts], &named);
    let mut changed = whole.clone();
    let digit = (line_ends[0]..).find(|i| changed[*i] == b'5').unwrap();
    changed[digit] = b'6';
    fs::write(&path, changed).unwrap();
    refused(&[&parts], &named);
    fs::write(&path, &whole).unwrap();
    let merged = dir.join("merged");
    expect(&batchsim(&["merge", text(&parts), "-o", text(&merged), "--no-charts"]), 0);
}

/// Gives a shard file another commit, trailer and all, as another build would.
fn rebuilt(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let mut lines: Vec<serde_json::Value> =
        text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    lines[0]["commit"] = "0123456789ab".into();
    lines[0]["sweep"]["outcome"]["tool"]["commit"] = "0123456789ab".into();
    let mut trailer = lines.pop().unwrap();
    let body: String = lines.iter().map(|l| format!("{l}\n")).collect();
    let digest = Sha256::digest(body.as_bytes());
    trailer["sha256"] = digest.iter().map(|b| format!("{b:02x}")).collect::<String>().into();
    fs::write(path, format!("{body}{trailer}\n")).unwrap();
}

#[test]
fn other_builds_are_refused() {
    let dir = folder("builds");
    let file = scenario(&dir);
    let parts = dir.join("parts");
    three(&file, &parts);
    let of = |n: u32| parts.join(format!("shard-{n}-of-3/shard.jsonl"));
    rebuilt(&of(2));
    let named = ["two builds: ", "shard-2-of-3/shard.jsonl was made by", "(0123456789ab), this is"];
    refused(&[&parts], &named);
    // All of one build, but not of the one that would write the result.
    rebuilt(&of(1));
    rebuilt(&of(3));
    refused(&[&parts], &["two builds: ", "shard-1-of-3/shard.jsonl was made by"]);
}

#[test]
fn a_shard_is_written_as_a_fraction() {
    let dir = folder("fraction");
    let file = scenario(&dir);
    for bad in ["0/3", "4/3", "1", "x/y"] {
        let output = shard(&file, bad, &dir.join("out"), &[]);
        expect(&output, 2);
        assert!(stderr(&output).contains("as in 2/3"), "{}", stderr(&output));
    }
}

/// Runs `script` once for each of three shards, merges, and compares with the single run.
fn by_script(test: &str, script: impl Fn(u32, &str, &str) -> Command) {
    let dir = folder(test);
    let file = scenario(&dir);
    let (whole, parts, merged) = (dir.join("whole"), dir.join("parts"), dir.join("merged"));
    expect(&batchsim(&["sweep", &file, "-o", text(&whole)]), 0);
    for n in 1..=3 {
        let mut command = script(n, &file, text(&parts));
        expect(&command.env("BATCHSIM", BINARY).stdin(Stdio::null()).output().unwrap(), 0);
    }
    expect(&batchsim(&["merge", text(&parts), "-o", text(&merged)]), 0);
    same_results(&whole, &merged);
}

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/scale");

#[test]
fn the_slurm_file_computes_shards() {
    by_script("slurm", |n, file, out| {
        let mut command = Command::new("bash");
        command.args([&format!("{DOCS}/slurm.sh"), file, out]);
        command.env("SLURM_ARRAY_TASK_ID", n.to_string()).env("SLURM_ARRAY_TASK_COUNT", "3");
        command
    });
}

#[test]
fn the_kubernetes_file_computes_shards() {
    let text = fs::read_to_string(format!("{DOCS}/kubernetes.yaml")).unwrap();
    let job: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(job["spec"]["completionMode"], "Indexed");
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    let env = |name: &str| {
        let all = container["env"].as_array().unwrap();
        all.iter().find(|e| e["name"] == name).unwrap()["value"].as_str().unwrap().to_owned()
    };
    assert_eq!(env("SHARDS"), job["spec"]["completions"].to_string());
    assert!(env("SCENARIO").starts_with("/data/") && env("OUTPUT").starts_with("/data/"));
    let shell: Vec<&str> =
        container["command"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    let script = container["args"][0].as_str().unwrap();
    by_script("kubernetes", |n, file, out| {
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).arg(script);
        command.env("SHARDS", "3").env("SCENARIO", file).env("OUTPUT", out);
        command.env("JOB_COMPLETION_INDEX", (n - 1).to_string());
        command
    });
}

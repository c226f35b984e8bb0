//! What the documentation states: outputs, numbers, keys and codes are compared with the program.
//!
//! With `BATCHSIM_BLESS=1` the outputs and the table of accuracy in README.md are written anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![cfg(feature = "cli")]

use batchsim::outcome::Outcome;
use batchsim::scenario::{CODES, schema};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The point of the table of accuracy.
const GOLDEN: &str = r#"
schema = 1
name = "golden"
[arrivals]
kind = "poisson"
rate = "1000/s"
[server]
cost = { kind = "affine", fixed = "8ms", per_item = "0.5ms" }
[[policy]]
kind = "dynamic"
max_batch_size = 32
max_wait = "5ms"
"#;

fn bless() -> bool {
    std::env::var_os("BATCHSIM_BLESS").is_some()
}

fn page(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// A folder of its own for the results of a test.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme").join(name)
}

/// Runs the program in the repository; studies write their results to `out` and draw nothing.
fn batchsim(arguments: &[&str], out: &Path, input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_batchsim"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    if ["run", "sweep", "exact"].contains(&arguments[0]) {
        command.arg("--no-charts").arg("--output").arg(out);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A page whose parts between `<!-- NAME -->` and `<!-- end -->` are computed.
fn check_blocks(path: &str, name: &str, compute: impl Fn(&str) -> String) -> usize {
    let text = page(path);
    let opening = format!("<!-- {name}");
    let (mut written, mut rest, mut blocks) = (String::new(), text.as_str(), 0);
    while let Some(at) = rest.find(&opening) {
        let argument_at = at + opening.len();
        let argument_end = argument_at + rest[argument_at..].find("-->").unwrap();
        let start = argument_end + "-->\n".len();
        let end = start + rest[start..].find("<!-- end -->").unwrap();
        let wanted = compute(rest[argument_at..argument_end].trim());
        if !bless() {
            assert_eq!(&rest[start..end], wanted, "{path}: {}", &rest[at..argument_end]);
        }
        written += &rest[..start];
        written += &wanted;
        rest = &rest[end..];
        blocks += 1;
    }
    written += rest;
    if bless() && written != text {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(path), written).unwrap();
    }
    blocks
}

/// `<!-- stdout: run scenarios/quickstart.toml -->` stands before what that command prints.
#[test]
fn printed_outputs_are_what_the_program_prints() {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return;
    }
    let blocks = check_blocks("README.md", "stdout:", |command| {
        let arguments: Vec<&str> = command.split_whitespace().collect();
        let output = batchsim(&arguments, &folder(&command.replace([' ', '/'], "-")), "");
        assert!(output.status.success(), "{command}: {output:?}");
        format!("```text\n{}```\n", stdout(&output))
    });
    assert!(blocks >= 1);
}

/// The value of a column in the only line of a CSV.
fn number(csv: &str, column: &str) -> f64 {
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let at = rows[0].iter().position(|name| *name == column).unwrap();
    rows[1][at].parse().unwrap()
}

#[test]
fn the_table_of_accuracy_is_measured() {
    let study = |verb: &str| {
        let output =
            batchsim(&[verb, "-", "--format", "csv"], &folder(&format!("golden-{verb}")), GOLDEN);
        assert!(output.status.success(), "{output:?}");
        stdout(&output)
    };
    let (solved, ran) = (study("exact"), study("run"));
    let exact = |column: &str| number(&solved, column);
    let simulated = |column: &str| number(&ran, column);
    let rows =
        [("mean", "mean"), ("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p99.9", "p999")];
    let mut table = "| latency, ms | exact | simulated, ± half of the 95 % interval |\n\
                     | --- | ---: | ---: |\n"
        .to_owned();
    for (name, column) in rows {
        let [ms, ci] = [format!("{column}_ms"), format!("{column}_ci95_ms")];
        let (truth, value, half) = (exact(&ms), simulated(&ms), simulated(&ci));
        // Five independent 95 % intervals; half a histogram bin, 0.05 %, comes on top.
        assert!(
            (value - truth).abs() < 2.0 * half + 5e-4 * truth,
            "{name}: {value} ± {half}, {truth}"
        );
        table += &format!("| {name} | {truth:.3} | {value:.3} ± {half:.3} |\n");
    }
    let (truth, value) = (exact("mean_batch"), simulated("mean_batch"));
    assert!((truth - 16.000).abs() < 5e-4 && (value - truth).abs() < 0.02);
    table += &format!("| mean batch size (items) | {truth:.3} | {value:.3} |\n");
    assert_eq!(
        format!("{:.3} {:.3} {:.3}", exact("mean_ms"), exact("p50_ms"), exact("p99_ms")),
        "24.835 24.511 38.562"
    );
    if cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        assert_eq!(check_blocks("README.md", "accuracy", |_| table.clone()), 1);
    }
}

/// `<!-- from FILE -->` stands before a block that is part of that file.
#[test]
fn quoted_code_is_in_its_file() {
    let mut blocks = 0;
    for page in ["README.md", "docs/EXTENDING.md", "docs/ARCHITECTURE.md"].map(page) {
        for part in page.split("<!-- from ").skip(1) {
            let (file, rest) = part.split_once(" -->\n```rust\n").unwrap();
            let (quoted, _) = rest.split_once("```").unwrap();
            let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
            assert!(source.unwrap().contains(quoted), "{file} has changed");
            blocks += 1;
        }
    }
    assert!(blocks >= 1);
}

/// Names of all properties in a JSON Schema.
fn properties(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                found.extend(properties.keys().cloned());
            }
            object.values().for_each(|v| properties(v, found));
        }
        Value::Array(items) => items.iter().for_each(|v| properties(v, found)),
        _ => {}
    }
}

fn undocumented(schema: &Value, page: &str) -> Vec<String> {
    let mut names = BTreeSet::new();
    properties(schema, &mut names);
    assert!(!names.is_empty());
    // In code marks, alone or in an example such as `{ n = 1, time = "8.5ms" }`.
    let code: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let words: BTreeSet<&str> = code.iter().flat_map(|c| c.split(|c| !is_word(c))).collect();
    names.into_iter().filter(|name| !words.contains(name.as_str())).collect()
}

#[test]
fn every_key_of_a_scenario_is_documented() {
    let bad: Value = serde_json::from_str(r#"{"properties": {"a": {}, "b": {}}}"#).unwrap();
    assert_eq!(undocumented(&bad, "`a = 1` b"), ["b"]);
    assert_eq!(undocumented(&schema(), &page("docs/SCENARIO.md")), [""; 0]);
}

#[test]
fn every_key_of_a_result_is_documented() {
    let schema = schemars::schema_for!(Outcome).to_value();
    assert_eq!(undocumented(&schema, &page("docs/OUTCOME.md")), [""; 0]);
}

#[test]
fn every_diagnostic_has_a_row() {
    let page = page("docs/SCENARIO.md");
    for (code, meaning) in CODES {
        assert!(page.contains(&format!("| {code} | {meaning} |\n")), "{code} {meaning}");
    }
}

/// The codes of `enum Code`, each on a line `Name = number,`.
#[test]
fn every_exit_code_has_a_row() {
    let source = page("src/cli/exit.rs");
    let list = source.split("enum Code {").nth(1).unwrap().split('}').next().unwrap();
    let codes: Vec<u8> = list
        .lines()
        .filter_map(|l| l.split_once(" = ")?.1.strip_suffix(',')?.parse().ok())
        .collect();
    assert!(codes.len() >= 8, "{codes:?}");
    let page = page("docs/SCENARIO.md");
    for code in codes {
        assert!(page.contains(&format!("\n| {code} | ")), "{code}");
    }
}

/// Every `batchsim VERB` in the pages is a verb of the program.
#[test]
fn every_verb_in_the_pages_exists() {
    let help = stdout(&batchsim(&["--help"], Path::new(""), ""));
    let names = ["README.md", "CONTRIBUTING.md", "docs/SCENARIO.md", "docs/OUTCOME.md"];
    let mut seen = BTreeSet::new();
    for page in names.map(page) {
        for part in page.split('`').skip(1).step_by(2) {
            for line in part.lines() {
                let words: Vec<&str> = line.split_whitespace().collect();
                let mut after = words.iter().skip_while(|w| **w != "batchsim" && **w != "--");
                if let (Some(_), Some(verb)) = (after.next(), after.next())
                    && verb.chars().all(|c| c.is_ascii_lowercase())
                {
                    seen.insert((*verb).to_owned());
                }
            }
        }
    }
    for verb in &seen {
        assert!(help.contains(&format!("\n  {verb} ")), "{verb}");
    }
    assert!(seen.contains("run") && seen.contains("exact"), "{seen:?}");
}

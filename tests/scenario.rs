//! Scenarios: what is read, what is refused and in which words, and the published schema.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use batchsim::arrivals::{Replay, Trace};
use batchsim::interop::trace::for_scenario;
use batchsim::scenario::{
    CODES, Diagnostic, Disk, Files, Input, Loaded, Scenario, Severity, TraceProblem, load, starter,
};
use serde_json::Value;
use std::path::{Path, PathBuf};

#[path = "scenario/schema.rs"]
mod published;
#[path = "scenario/robust.rs"]
mod robust;

/// Whether golden files are written instead of compared.
fn bless() -> bool {
    std::env::var_os("BATCHSIM_BLESS").is_some()
}

/// Files beside a scenario; a recording that is not part of the repository is stood in for.
struct Beside(Disk);

impl Beside {
    fn new(path: &Path) -> Self {
        Self(Disk::beside(path, for_scenario))
    }
}

impl Files for Beside {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        match self.0.read(path) {
            Err(_) if path.starts_with("AzureLLMInferenceTrace_conv.csv") => {
                Ok(b"TIMESTAMP,ContextTokens,GeneratedTokens\n\
                    2023-11-16 18:15:46.6805900,374,44\n\
                    2023-11-16 18:15:50.9951690,396,109\n"
                    .to_vec())
            }
            other => other,
        }
    }

    fn trace(&self, replay: &Replay, bytes: Vec<u8>) -> Result<Trace, TraceProblem> {
        self.0.trace(replay, bytes)
    }
}

fn read(path: &Path, sets: &[&str]) -> Result<Loaded, Vec<Diagnostic>> {
    let source = Input::open(path).map_err(|d| vec![d])?;
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    load(&source, &sets, &Beside::new(path))
}

fn read_text(name: &str, text: &str, sets: &[&str]) -> Result<Loaded, String> {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let files = Beside::new(Path::new("scenarios/x"));
    load(&Input::from_text(name, text), &sets, &files).map_err(|all| render(&all))
}

fn render(all: &[Diagnostic]) -> String {
    all.iter().map(|d| d.render(false)).collect::<Vec<_>>().join("\n")
}

fn files_in(folder: &str) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| {
            p.extension().is_some_and(|e| e == "toml" || e == "yaml" || e == "yml" || e == "json")
        })
        .collect();
    paths.sort();
    paths
}

fn scenarios() -> Vec<(PathBuf, Scenario)> {
    files_in("scenarios")
        .into_iter()
        .map(|path| {
            let loaded = read(&path, &[]).unwrap_or_else(|all| panic!("{}", render(&all)));
            (path, loaded.scenario)
        })
        .collect()
}

const QUICKSTART: &str = include_str!("../scenarios/quickstart.toml");

fn quickstart(sets: &[&str]) -> Result<Scenario, String> {
    read_text("quickstart.toml", QUICKSTART, sets).map(|l| l.scenario)
}

#[test]
fn three_formats_mean_the_same() {
    let all: Vec<Scenario> = ["toml", "yaml", "json"]
        .iter()
        .map(|e| {
            let path = PathBuf::from(format!("scenarios/quickstart.{e}"));
            read(&path, &[]).unwrap_or_else(|all| panic!("{}", render(&all))).scenario
        })
        .collect();
    assert_eq!(all[0], all[1]);
    assert_eq!(all[0], all[2]);
}

#[test]
fn resolved_scenarios_read_back() {
    for (path, scenario) in scenarios() {
        let json = serde_json::to_string_pretty(&scenario.to_value()).unwrap();
        let again = read_text("again.json", &json, &[]).unwrap_or_else(|e| panic!("{e}\n{json}"));
        assert_eq!(again.scenario, scenario, "{}", path.display());
    }
}

#[test]
fn the_starter_reads_without_a_word() {
    let loaded = read_text("starter.toml", starter(), &[]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(render(&loaded.warnings), "");
}

/// Every commented-out key of the starter is one that exists.
#[test]
fn the_starter_is_true_where_it_is_commented_out() {
    let on = |line: &str| {
        let code = line.strip_prefix("# ")?.split("  #").next()?.trim();
        let key = code.split(" = ").next()?;
        let plain = key.chars().all(|c| c.is_ascii_lowercase() || "_.\"".contains(c));
        (code.starts_with('[') || (plain && code.contains(" = "))).then(|| code.to_owned())
    };
    let skip = [
        "kind = \"gamma\"",
        "kind = \"mmpp\"",
        "kind = \"closed-loop\"",
        "kind = \"trace\"",
        "cost = ",
        "requests",
        "duration",
    ];
    let text: String = starter()
        .lines()
        .map(|line| match on(line) {
            Some(code) if !skip.iter().any(|s| code.starts_with(s)) => code + "\n",
            _ => format!("{line}\n"),
        })
        .collect();
    let loaded = read_text("starter.toml", &text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(loaded.scenario.sweep.len(), 2);
    assert_eq!(loaded.scenario.policies.len(), 3);
    assert_eq!(loaded.scenario.servers[0].queue_limit, Some(4096));
}

#[test]
fn warnings_of_the_shipped_scenarios() {
    let mut out = String::new();
    for path in files_in("scenarios") {
        let loaded = read(&path, &[]).unwrap_or_else(|all| panic!("{}", render(&all)));
        out.push_str(&render(&loaded.warnings));
    }
    golden(Path::new("tests/data/bad/shipped-warnings.stderr"), &out);
}

fn golden(path: &Path, found: &str) {
    if bless() {
        std::fs::write(path, found).unwrap();
        return;
    }
    let wanted = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, wanted, "{} differs; BATCHSIM_BLESS=1 writes it", path.display());
}

/// Every bad scenario is refused in the words of its golden file.
#[test]
fn bad_scenarios_are_refused_in_words() {
    let paths = files_in("tests/data/bad/scenario");
    assert!(paths.len() >= 40);
    for path in paths {
        let all = match read(&path, &[]) {
            Err(all) => all,
            Ok(_) => panic!("{} reads", path.display()),
        };
        assert!(all.iter().all(|d| d.severity == Severity::Error), "{}", path.display());
        assert!(all.iter().all(|d| CODES.iter().any(|(code, _)| *code == d.code)));
        golden(&path.with_extension("stderr"), &render(&all));
    }
}

/// Every warning is given in the words of its golden file.
#[test]
fn doubtful_scenarios_are_named() {
    for path in files_in("tests/data/bad/warning") {
        let loaded = read(&path, &[]).unwrap_or_else(|all| panic!("{}", render(&all)));
        assert!(!loaded.warnings.is_empty(), "{}", path.display());
        golden(&path.with_extension("stderr"), &render(&loaded.warnings));
    }
}

/// Every bad `--set` is refused in the words of its golden file.
#[test]
fn bad_sets_are_refused_in_words() {
    let mut out = String::new();
    for set in [
        "dynamic.max_wait",
        "dynamic.max_wait=5",
        "dynamic.max_wiat=5ms",
        "dynamo.max_wait=5ms",
        "dynamic=5ms",
        "policy.dynamic.max_wait=5ms",
        "dynamic.max_batch_size=0",
        "dynamic.max_batch_size=lots",
        "run.precison=1%",
        "arrivals.rate=900",
        "arrivals.web.rate=9/s",
        "server.cost.fixd=8ms",
        "server.instances.count=2",
        "speed=5",
        "=",
        "",
        "dynamic..max_wait=1ms",
        "server.cost={kind=\"affine\",fixed=\"8ms\"}",
        "arrivals.kind=hawkes",
        "threshold.expr=x",
    ] {
        let words = quickstart(&[set]).expect_err(set);
        out.push_str(&format!("$ --set '{set}'\n{words}\n"));
    }
    golden(Path::new("tests/data/bad/set.stderr"), &out);
}

#[test]
fn sets_change_what_they_say() {
    let base = quickstart(&[]).unwrap();
    let wait = |s: &Scenario| s.policies[3].policy.clone();
    let set = quickstart(&["dynamic.max_wait=3ms"]).unwrap();
    assert_ne!(wait(&base), wait(&set));
    assert_eq!(set, quickstart(&["dynamic.max_wait=\"3ms\""]).unwrap());
    assert_eq!(quickstart(&["seed=7", "name=other"]).unwrap().seed, 7);
    assert_eq!(quickstart(&["run.replications=3"]).unwrap().run.replications, 3);
    let jitter = quickstart(&["server.jitter={kind=\"lognormal\",cv=0.1}"]).unwrap();
    assert_eq!(jitter.servers[0].jitter.kind(), "lognormal");
    assert_eq!(
        quickstart(&["server.jitter=exponential"]).unwrap().servers[0].jitter.kind(),
        "exponential"
    );
    let rate = quickstart(&["arrivals.rate=1.2k/s"]).unwrap();
    assert_eq!(rate.total_rate_per_s(), Some(1200.0));
    assert_eq!(rate, base.with_total_rate(1200.0).unwrap());
}

#[test]
fn a_total_rate_keeps_proportions() {
    let text = QUICKSTART.replace(
        "[arrivals]\nkind = \"poisson\"            # independent users\nrate = \"900/s\"",
        "[[arrivals]]\nname = \"web\"\nkind = \"poisson\"\nrate = \"300/s\"\n\
         [[arrivals]]\nname = \"bulk\"\nkind = \"mmpp\"\nrates = [\"200/s\", \"1000/s\"]\n\
         dwells = [\"1s\", \"1s\"]",
    );
    let sets = ["arrivals.rate=1800/s", "arrivals.web.timeout=1s"];
    let s = read_text("x.toml", &text, &sets).unwrap().scenario;
    assert_eq!(s.total_rate_per_s(), Some(1800.0));
    let written = s.to_value();
    assert_eq!(written.pointer("/arrivals/0/rate"), Some(&Value::from("600/s")));
    assert_eq!(written.pointer("/arrivals/1/rates/1"), Some(&Value::from("2000/s")));
    assert_eq!(written.pointer("/arrivals/0/timeout"), Some(&Value::from("1s")));
}

#[test]
fn axes_expand() {
    let axis = |text: &str| {
        let text = format!("{QUICKSTART}\n[sweep]\n{text}\n");
        let s = read_text("x.toml", &text, &[]).unwrap_or_else(|e| panic!("{e}")).scenario;
        s.sweep[0].values.clone()
    };
    for (text, wanted) in [
        ("\"dynamic.max_wait\" = { values = [\"1ms\", \"2500us\"] }", vec!["1ms", "2500us"]),
        ("\"dynamic.max_wait\" = [\"1ms\"]", vec!["1ms"]),
        (
            "dynamic.max_wait = { from = \"0ms\", to = \"1ms\", step = \"500us\" }",
            vec!["0ms", "500us", "1ms"],
        ),
        (
            "\"arrivals.rate\" = { from = \"100/s\", to = \"400/s\", points = 4 }",
            vec!["100/s", "200/s", "300/s", "400/s"],
        ),
        (
            "\"dynamic.max_batch_size\" = { from = 1, to = 64, points = 4 }",
            vec!["1", "22", "43", "64"],
        ),
        ("\"dynamic.max_batch_size\" = { from = 8, to = 32, step = 12 }", vec!["8", "20", "32"]),
        (
            "\"run.precision\" = { from = \"1%\", to = \"2%\", step = \"0.5%\" }",
            vec!["1%", "1.5%", "2%"],
        ),
    ] {
        assert_eq!(axis(text), wanted, "{text}");
    }
}

#[test]
fn cells_of_a_sweep_are_scenarios() {
    let loaded = read(Path::new("scenarios/heatmap.toml"), &[]).unwrap();
    let cell =
        loaded.cell(&[("dynamic.max_wait", "4ms"), ("dynamic.max_batch_size", "64")]).unwrap();
    assert!(cell.sweep.is_empty());
    let written = cell.to_value();
    assert_eq!(written.pointer("/policy/0/max_wait"), Some(&Value::from("4ms")));
    assert_eq!(written.pointer("/policy/0/max_batch_size"), Some(&Value::from(64)));
    let wrong = loaded.cell(&[("dynamic.max_wait", "4")]).unwrap_err();
    assert!(render(&wrong).contains("needs a unit"), "{}", render(&wrong));
}

#[test]
fn ten_thousand_cells_take_no_time() {
    let loaded = read(Path::new("scenarios/heatmap.toml"), &[]).unwrap();
    let start = std::time::Instant::now();
    for n in 0..10_000u32 {
        let cap = (n % 64 + 1).to_string();
        let wait = format!("{n}us");
        loaded.cell(&[("dynamic.max_wait", &wait), ("dynamic.max_batch_size", &cap)]).unwrap();
    }
    let each = start.elapsed() / 10_000;
    assert!(each.as_micros() < 500, "{each:?} a cell");
}

/// A table that falls has no ceiling; nothing may overflow on the way to saying so.
#[test]
fn falling_costs_are_survived() {
    for last in ["1ns", "999999999ns", "1s", "584h"] {
        let written = "{ kind = \"affine\", fixed = \"8ms\", per_item = \"0.5ms\" }";
        let points = format!("[{{ n = 1, time = \"1s\" }}, {{ n = 2, time = \"{last}\" }}]");
        let text = QUICKSTART
            .replace(written, &format!("{{ kind = \"table\", points = {points} }}"))
            .replace("kind = \"greedy\"\nmax_batch_size = 32", "kind = \"greedy\"");
        assert!(read_text("x.toml", &text, &[]).is_ok(), "{last}");
    }
}

#[test]
fn standard_input_is_recognised() {
    for (text, name) in [
        (QUICKSTART, "toml"),
        (include_str!("../scenarios/quickstart.yaml"), "yaml"),
        (include_str!("../scenarios/quickstart.json"), "json"),
    ] {
        assert!(read_text("stdin", text, &[]).is_ok(), "{name}");
    }
}

/// Files in memory: what a scenario names need not lie on a disk.
struct Held(&'static [(&'static str, &'static str)]);

impl Files for Held {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        let name = path.to_str().unwrap();
        let held = self.0.iter().find(|(n, _)| *n == name);
        held.map(|(_, text)| text.as_bytes().to_vec())
            .ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotFound))
    }

    fn trace(&self, replay: &Replay, bytes: Vec<u8>) -> Result<Trace, TraceProblem> {
        if replay.file == "broken.csv" {
            return Err(TraceProblem {
                what: "the time goes backwards".into(),
                line: Some(7),
                help: Some("sort the file by time".into()),
            });
        }
        for_scenario(replay, bytes)
    }
}

#[test]
fn cost_files_are_read_in() {
    let files = Held(&[
        ("plain.json", r#"{"kind": "affine", "fixed": "8ms", "per_item": "0.5ms"}"#),
        (
            "calibration.json",
            r#"{"schema": 1, "gpu": "x",
                "cost": {"kind": "affine", "fixed": "8ms", "per_item": "500us"}}"#,
        ),
        ("cost.toml", "kind = \"affine\"\nfixed = \"8ms\"\nper_item = \"0.5ms\"\n"),
        ("loop.json", r#"{"file": "loop.json"}"#),
    ]);
    let with = |file: &str| {
        let written = "{ kind = \"affine\", fixed = \"8ms\", per_item = \"0.5ms\" }";
        let text = QUICKSTART.replace(written, &format!("{{ file = \"{file}\" }}"));
        load(&Input::from_text("x.toml", text), &[], &files).map_err(|all| render(&all))
    };
    let wanted = quickstart(&[]).unwrap().servers;
    for file in ["plain.json", "calibration.json", "cost.toml"] {
        assert_eq!(with(file).unwrap().scenario.servers, wanted, "{file}");
    }
    assert!(with("loop.json").unwrap_err().contains("yet another file"));
    let swept = with("plain.json").unwrap();
    assert!(swept.cell(&[("dynamic.max_batch_size", "8")]).is_ok(), "files are kept for cells");
}

#[test]
fn a_broken_trace_is_named_with_its_line() {
    let files = Held(&[("broken.csv", "t\n1\n")]);
    let text = QUICKSTART
        .replace("kind = \"poisson\" ", "kind = \"trace\" ")
        .replace("rate = \"900/s\"", "file = \"broken.csv\"");
    let words = load(&Input::from_text("x.toml", text), &[], &files)
        .map_err(|all| render(&all))
        .unwrap_err();
    assert!(words.contains("broken.csv, line 7: the time goes backwards"), "{words}");
    assert!(words.contains("sort the file by time"), "{words}");
}

#[test]
fn thresholds_know_their_line() {
    let loaded = read_text("quickstart.toml", QUICKSTART, &[]).unwrap();
    let place = loaded.threshold_place(0).unwrap();
    assert_eq!(&place.source.text[place.range], "\"p(99) < 50ms\"");
    assert!(loaded.threshold_place(1).is_none());
}

#[test]
fn scaling_keeps_the_pattern() {
    for (path, scenario) in scenarios() {
        let Some(rate) = scenario.total_rate_per_s() else {
            assert!(scenario.with_total_rate(10.0).is_none(), "{}", path.display());
            continue;
        };
        let half = scenario.with_total_rate(rate / 2.0).unwrap();
        let found = half.total_rate_per_s().unwrap();
        assert!((found / rate - 0.5).abs() < 1e-9, "{}", path.display());
        assert!(scenario.with_total_rate(0.0).is_none());
        assert!(scenario.with_total_rate(f64::NAN).is_none());
        half.arrivals.iter().for_each(|s| s.process.check().unwrap());
    }
}

//! Triton's `config.pbtxt`: the scenarios written for it, what is refused, and that no text
//! breaks the parser.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use batchsim::arrivals::{Replay, Trace};
use batchsim::interop::triton::{self, Imported, Rule, text};
use batchsim::policy::{
    Anchor, Dynamic, LevelPolicy, MaxWait, Policy, QueuePolicy, TimeoutAction, Triton,
};
use batchsim::scenario::{self, Files, Input, TraceProblem};
use batchsim::time::Nanos;
use proptest::prelude::*;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn configs(folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(data(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "pbtxt"));
    files.sort();
    files
}

fn golden(path: &Path, extension: &str, text: &str) {
    let expected = path.with_extension(extension);
    if std::env::var_os("BATCHSIM_BLESS").is_some() {
        fs::write(&expected, text).unwrap();
    }
    let wanted = fs::read_to_string(&expected).unwrap_or_default().replace("\r\n", "\n");
    assert_eq!(text, wanted, "{} (BATCHSIM_BLESS=1 rewrites it)", expected.display());
}

fn import(text: &str) -> Imported {
    triton::import(text, Rule::Triton).unwrap_or_else(|problems| panic!("{text}\n{problems:?}"))
}

fn textbook(text: &str) -> Imported {
    triton::import(text, Rule::Textbook).unwrap_or_else(|problems| panic!("{text}\n{problems:?}"))
}

/// A fragment as the scenario reader understands it.
fn loaded(imported: &Imported) -> scenario::Scenario {
    let source = Input::from_text("fragment.toml", imported.toml.as_bytes());
    let loaded = scenario::load(&source, &[], &NoFiles);
    let loaded = loaded.unwrap_or_else(|errors| {
        let errors: String = errors.iter().map(|e| e.render(false)).collect();
        panic!("{}\n{errors}", imported.toml)
    });
    loaded.scenario
}

/// The policy table of a fragment: its kind, and the parameters of `dynamic` where it is that.
fn policy(imported: &Imported) -> (String, Option<Dynamic>) {
    let scenario: toml::Table = toml::from_str(&imported.toml).unwrap();
    let mut policy = scenario["policy"][0].as_table().unwrap().clone();
    let kind = policy.remove("kind").unwrap().as_str().unwrap().to_owned();
    policy.remove("label").unwrap();
    let dynamic = (kind == "dynamic").then(|| policy.try_into().unwrap());
    (kind, dynamic)
}

#[test]
fn fragments() {
    for path in configs("triton") {
        let text = fs::read_to_string(&path).unwrap();
        for (extension, imported) in [("toml", import(&text)), ("textbook.toml", textbook(&text))] {
            let scenario: toml::Table = toml::from_str(&imported.toml).unwrap();
            assert_eq!(scenario["schema"].as_integer(), Some(1));
            let mut lines = imported.toml.lines();
            assert!(lines.all(|line| line.chars().count() <= 100), "{}", imported.toml);
            golden(&path, extension, &imported.toml);
        }
    }
}

/// A fragment names no files.
struct NoFiles;

impl Files for NoFiles {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        Err(std::io::Error::other(format!("{} is not needed", path.display())))
    }

    fn trace(&self, _: &Replay, _: Vec<u8>) -> Result<Trace, TraceProblem> {
        Ok(Trace::default())
    }
}

#[test]
fn fragments_are_scenarios() {
    for path in configs("triton") {
        let text = fs::read_to_string(&path).unwrap();
        for imported in [import(&text), textbook(&text)] {
            let scenario = loaded(&imported);
            assert_eq!(scenario.name, imported.name);
            assert_eq!(scenario.policies[0].label, "triton");
        }
    }
}

#[test]
fn every_setting_of_the_batcher_is_imported() {
    let imported = import(
        "max_batch_size: 16 input { dims: [ -1 ] } instance_group { count: 3 kind: KIND_CPU }
         dynamic_batching {
           preferred_batch_size: [ 8, 4 ] max_queue_delay_microseconds: 2500
           priority_levels: 3 default_priority_level: 2
           default_queue_policy {
             timeout_action: DELAY default_timeout_microseconds: 70000
             allow_timeout_override: true max_queue_size: 64
           }
           priority_queue_policy { key: 3 value { max_queue_size: 5 } }
           priority_queue_policy: { key: 1, value: { default_timeout_microseconds: 900 } }
         }",
    );
    let scenario = loaded(&imported);
    let level = |level, default_timeout_microseconds, max_queue_size| LevelPolicy {
        level,
        timeout_action: TimeoutAction::Reject,
        default_timeout_microseconds,
        allow_timeout_override: false,
        max_queue_size,
    };
    let wanted = Triton {
        max_batch_size: 16,
        preferred_batch_size: vec![4, 8],
        max_queue_delay_microseconds: 2500,
        priority_levels: 3,
        default_priority_level: 2,
        default_queue_policy: Some(QueuePolicy {
            timeout_action: TimeoutAction::Delay,
            default_timeout_microseconds: 70_000,
            allow_timeout_override: true,
            max_queue_size: 64,
        }),
        priority_queue_policy: vec![level(1, 900, 0), level(3, 0, 5)],
        enforce_shapes: true,
        ..Triton::default()
    };
    assert_eq!(scenario.policies[0].policy, Policy::Triton(wanted));
    assert_eq!(scenario.servers[0].instances, 3);
    assert!(imported.ignored.iter().all(|field| !field.path.starts_with("dynamic_batching")));
}

#[test]
fn shapes_are_enforced_where_triton_enforces_them() {
    let enforced = |inputs: &str| {
        let text = format!("max_batch_size: 8 dynamic_batching {{ }} {inputs}");
        match &loaded(&import(&text)).policies[0].policy {
            Policy::Triton(p) => p.enforce_shapes,
            other => panic!("{other:?}"),
        }
    };
    assert!(!enforced("input { dims: [ 3, 4 ] }"));
    assert!(enforced("input { dims: [ 3, 4 ] } input { dims: [ 3, -1 ] }"));
    assert!(!enforced("input { dims: [ -1 ] allow_ragged_batch: true }"));
    assert!(enforced("input { dims: [ 2 ] is_shape_tensor: true }"));
    assert!(!enforced("input { dims: [ 3 ] optional: true }"));
}

#[test]
fn preferred_sizes_delay_and_instances() {
    let imported = textbook(&fs::read_to_string(data("triton/resnet50.pbtxt")).unwrap());
    let (_, dynamic) = policy(&imported);
    let wanted = Dynamic {
        max_batch_size: 32,
        max_wait: MaxWait::After(Nanos(5_000_000)),
        wait_anchor: Anchor::OldestArrival,
        min_batch_size: None,
        preferred_batch_sizes: vec![8, 16],
    };
    assert_eq!(dynamic, Some(wanted));
    let scenario: toml::Table = toml::from_str(&imported.toml).unwrap();
    assert_eq!(scenario["server"]["instances"].as_integer(), Some(2));
    assert!(imported.notes.iter().any(|note| note.contains("Look-ahead")));
    let ignored: Vec<&str> = imported.ignored.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(ignored, ["platform", "input", "output", "version_policy"]);
    assert_eq!((imported.ignored[1].line, imported.ignored[1].column), (5, 1));
}

#[test]
fn sections_that_are_absent_or_empty() {
    let kind = |text: &str| policy(&textbook(text)).0;
    assert_eq!(kind("max_batch_size: 8"), "none");
    assert_eq!(kind("dynamic_batching {}"), "none");
    assert_eq!(kind("max_batch_size: 1 dynamic_batching {}"), "none");
    let (kind, dynamic) = policy(&textbook("max_batch_size: 8 dynamic_batching {}"));
    assert_eq!(kind, "dynamic");
    assert_eq!(dynamic.unwrap().max_wait, MaxWait::After(Nanos::ZERO));
    let real = |text: &str| loaded(&import(text)).policies[0].policy.clone();
    assert_eq!(real("max_batch_size: 8").kind(), "none");
    let triton = |max_batch_size| Policy::Triton(Triton { max_batch_size, ..Triton::default() });
    assert_eq!(real("max_batch_size: 8 dynamic_batching {}"), triton(8));
    assert_eq!(real("dynamic_batching {}"), triton(1));
}

#[test]
fn queue_policies() {
    let with = |policy: &str| {
        let text =
            format!("max_batch_size: 8 dynamic_batching {{ default_queue_policy {{ {policy} }} }}");
        let imported = textbook(&text);
        let scenario: toml::Table = toml::from_str(&imported.toml).unwrap();
        (scenario, imported.notes.join("\n"))
    };
    let (reject, notes) = with("default_timeout_microseconds: 20000 max_queue_size: 7");
    assert_eq!(reject["arrivals"][0]["timeout"].as_str(), Some("20000us"));
    assert_eq!(reject["server"]["queue_limit"]["count"].as_integer(), Some(7));
    assert!(notes.contains("Idle stall") && !notes.contains("Look-ahead"));
    let (delay, notes) = with("timeout_action: DELAY default_timeout_microseconds: 20000");
    assert!(delay["arrivals"][0].get("timeout").is_none());
    assert!(notes.contains("DELAY serves expired requests last"));
}

#[test]
fn names_cannot_escape() {
    let imported = import("name: \"../a b\\n[run]\\\"\" max_batch_size: 1");
    assert_eq!(imported.name, "a-b--run");
    let _: toml::Table = toml::from_str(&imported.toml).unwrap();
}

#[test]
fn recorded_configurations() {
    let folder = std::env::var_os("BATCHSIM_DATA").map(|d| PathBuf::from(d).join("recordings"));
    let entries = folder.and_then(|folder| fs::read_dir(folder).ok());
    let mut ran = 0;
    for entry in entries.into_iter().flatten() {
        let path = entry.unwrap().path().join("config.pbtxt");
        if let Ok(text) = fs::read_to_string(&path) {
            let policy = loaded(&import(&text)).policies[0].policy.clone();
            assert_eq!(policy.kind(), "triton", "{}", path.display());
            assert!(policy.cap() >= Some(8));
            ran += 1;
        }
    }
    println!("recorded configurations: {ran} ran (BATCHSIM_DATA)");
}

/// What a person is told about every file in `tests/data/bad/triton`.
#[test]
fn refusals() {
    let files = configs("bad/triton");
    assert!(files.len() >= 8);
    for path in files {
        let problems = triton::import(&fs::read_to_string(&path).unwrap(), Rule::Triton)
            .expect_err(&path.display().to_string());
        let mut text = String::new();
        for problem in problems {
            let _ = writeln!(text, "error: {problem}\nhelp: {}", problem.help);
        }
        golden(&path, "txt", &text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_mutation_breaks_the_importer(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), ".{0,3}", 0..12_usize), 0..6),
    ) {
        let files = configs("triton");
        let mut text = fs::read_to_string(&files[which.index(files.len())]).unwrap();
        for (at, insert, drop) in edits {
            let starts: Vec<usize> = text.char_indices().map(|(i, _)| i).collect();
            let from = at.index(starts.len());
            let to = (from + drop).min(starts.len() - 1);
            text.replace_range(starts[from]..starts[to], &insert);
        }
        match triton::import(&text, Rule::Triton) {
            Ok(imported) => {
                let scenario: Result<toml::Table, _> = toml::from_str(&imported.toml);
                prop_assert!(scenario.is_ok(), "{}", imported.toml);
            }
            Err(problems) => prop_assert!(!problems.is_empty()),
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(?s)[{}<>\\[\\]:,;#\"'\\\\a-f0-9x._ \n-]{0,60}") {
        if let Ok(message) = text::parse(&text) {
            for field in &message.fields {
                prop_assert!(text.get(field.value.span.clone()).is_some());
            }
        }
    }
}

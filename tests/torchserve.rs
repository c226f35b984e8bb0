//! TorchServe's configuration: what it comes to, what is refused, and changes that leave every
//! other byte alone.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use batchsim::interop::torchserve::{Exported, File, Imported, Setting, export, import};
use batchsim::interop::trace;
use batchsim::policy::{Policy, TorchServe};
use batchsim::scenario::{self, Diagnostic, Disk, Input};
use std::path::Path;

const YAML: &str = include_str!("data/torchserve/bert.yaml");
const PROPERTIES: &str = include_str!("data/torchserve/config.properties");

fn file(name: &str, text: &str) -> File {
    File { name: name.into(), text: text.into() }
}

fn yaml(text: &str) -> File {
    file("model-config.yaml", text)
}

fn properties(text: &str) -> File {
    file("config.properties", text)
}

fn read(files: &[File], model: Option<&str>) -> Imported {
    import(files, model).unwrap_or_else(|e| panic!("{files:?}\n{}", shown(&e)))
}

fn shown(all: &[Diagnostic]) -> String {
    all.iter().map(|d| d.render(false)).collect()
}

fn refused(files: &[File], model: Option<&str>) -> String {
    shown(&import(files, model).expect_err("this is wrong"))
}

/// The policy and the instances of a fragment, read as a scenario.
fn fragment(imported: &Imported) -> (TorchServe, u32) {
    let input = Input::from_text("fragment.toml", imported.toml.as_bytes());
    let disk = Disk::beside(Path::new("fragment.toml"), trace::for_scenario);
    let loaded = scenario::load(&input, &[], &disk).unwrap_or_else(|e| panic!("{}", shown(&e)));
    assert!(loaded.warnings.is_empty(), "{}", shown(&loaded.warnings));
    let Policy::TorchServe(policy) = loaded.scenario.policies[0].policy.clone() else {
        panic!("{}", imported.toml)
    };
    (policy, loaded.scenario.servers[0].instances)
}

/// batchSize, maxBatchDelay, job_queue_size, clientTimeoutInMills, workers.
fn numbers(imported: &Imported) -> [u32; 5] {
    let (p, workers) = fragment(imported);
    [p.batch_size, p.max_batch_delay, p.job_queue_size, p.client_timeout_in_mills, workers]
}

#[test]
fn fragments_run_as_they_are() {
    let both = [yaml(YAML), properties(PROPERTIES)];
    for (name, files) in [("bert", &both[..1]), ("both", &both[..])] {
        let imported = read(files, Some("bert"));
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("tests/data/torchserve/{name}.toml"));
        if std::env::var_os("BATCHSIM_BLESS").is_some() {
            std::fs::write(&path, &imported.toml).unwrap();
        }
        let wanted = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
        assert_eq!(imported.toml, wanted, "{} (BATCHSIM_BLESS=1 rewrites it)", path.display());
        assert!(imported.toml.lines().all(|line| line.chars().count() <= 100));
        fragment(&imported);
    }
}

#[test]
fn what_counts_is_what_torchserve_counts() {
    assert_eq!(numbers(&read(&[yaml("")], None)), [1, 100, 100, 0, 1], "defaults");
    assert_eq!(numbers(&read(&[yaml(YAML)], None)), [4, 50, 100, 0, 2]);
    // 0 in a file is unset, also for the delay.
    let server = properties(PROPERTIES);
    let of = |text: &str| numbers(&read(&[yaml(text), server.clone()], Some("bert")));
    assert_eq!(of(""), [16, 100, 200, 0, 2]);
    assert_eq!(of("batchSize: 0\nmaxBatchDelay: 0"), [16, 100, 200, 0, 2]);
    // The model's own file before the server's, key by key.
    assert_eq!(of("batchSize: 5\njobQueueSize: 7"), [5, 100, 7, 0, 2]);
    assert_eq!(of("clientTimeoutInMills: 30\nminWorkers: \"3\""), [16, 100, 200, 30, 3]);
    assert_eq!(numbers(&read(&[server], Some("noop:2.0"))), [3, 200, 200, 0, 1]);
    let alone = properties("default_workers_per_model: 4\njob_queue_size 9");
    assert_eq!(numbers(&read(&[alone], None)), [1, 100, 9, 0, 4]);
}

#[test]
fn notes_and_ignored_keys() {
    let imported = read(&[yaml(YAML), properties(PROPERTIES)], Some("bert"));
    let has = |part: &str| imported.notes.iter().any(|n| n.contains(part));
    assert!(has("waits 50 ms") && has("maxBatchDelay 0 in a file counts as unset"));
    let ignored: Vec<(&str, usize, usize)> =
        imported.ignored.iter().map(|i| (i.path.as_str(), i.line, i.column)).collect();
    for wanted in [
        ("responseTimeout", 6, 1),
        ("handler", 10, 1),
        ("inference_address", 2, 1),
        ("models.bert.1.0.marName", 10, 9),
    ] {
        assert!(ignored.contains(&wanted), "{wanted:?} of {ignored:?}");
    }
    let bare = read(&[yaml("batchSize: 1")], None);
    assert!(bare.notes.iter().any(|n| n.contains("No file says minWorkers")));
}

#[test]
fn wrong_files_are_refused_with_their_place() {
    for (files, model, place, words) in [
        (vec![yaml("batchSize: 4\nmaxBatchDelay: 5ms\n")], None, ":2:16", "whole number"),
        (vec![yaml("batchSize: -1")], None, ":1:12", "whole number"),
        (vec![yaml("a: [")], None, "model-config.yaml", "error"),
        (vec![yaml("x: 1\nuseJobTicket: true")], None, ":2:15", "useJobTicket is not simulated"),
        (vec![yaml("continuousBatching: true")], None, ":1:21", "not simulated"),
        (vec![properties("job_queue_size=many")], None, ":1:16", "whole number"),
        (vec![properties(PROPERTIES)], None, ":6:8", "has 2 models"),
        (vec![properties(PROPERTIES)], Some("gpt"), ":6:8", "no model `gpt`"),
        (vec![properties(PROPERTIES)], Some("bert:3"), ":7:11", "which version"),
        (vec![properties("models={\\\n\"a\": {\\\n\"1\": {]}}")], None, ":3:7", "error"),
    ] {
        let message = refused(&files, model);
        assert!(message.contains(place) && message.contains(words), "{place} {words}\n{message}");
    }
    // What is false is not asked for.
    read(&[yaml("useJobTicket: false\nasyncCommunication: false")], None);
}

fn setting(policy: &TorchServe, workers: u32) -> Setting<'_> {
    Setting { policy, workers }
}

fn tuned() -> TorchServe {
    TorchServe { batch_size: 32, max_batch_delay: 7, job_queue_size: 100, ..TorchServe::default() }
}

fn exported(file: &File, model: Option<&str>, policy: &TorchServe, workers: u32) -> Exported {
    export(file, model, setting(policy, workers)).unwrap_or_else(|e| panic!("{}", shown(&e)))
}

/// The text with some words replaced, each of which stands there once.
fn with(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (old, new)| {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        text.replacen(old, new, 1)
    })
}

#[test]
fn yaml_keeps_every_other_byte() {
    let out = exported(&yaml(YAML), None, &tuned(), 3);
    let changes = [
        ("minWorkers: 2", "minWorkers: 3"),
        ("maxWorkers: 2", "maxWorkers: 3"),
        ("\nbatchSize: 4", "\nbatchSize: 32"),
        ("maxBatchDelay: 50", "maxBatchDelay: 7"),
    ];
    assert_eq!(out.text, with(YAML, &changes));
    assert!(out.diff.starts_with("--- model-config.yaml\n+++ model-config.yaml\n@@ -2 +2 @@\n"));
    assert!(out.diff.contains("-maxBatchDelay: 50  # ms\n+maxBatchDelay: 7  # ms\n"));
    assert_eq!(out.diff.matches("@@ -").count(), 4);
    // Other line ends, quotes, flow style, no last line end.
    let odd = "{minWorkers: 1,\r\n 'batchSize': \"4\", maxBatchDelay: '50'}";
    let out = exported(&yaml(odd), None, &tuned(), 1);
    assert_eq!(out.text, "{minWorkers: 1,\r\n 'batchSize': \"32\", maxBatchDelay: '7'}");
}

#[test]
fn properties_keep_every_other_byte() {
    let policy = TorchServe { max_batch_delay: 7, ..tuned() };
    let out = exported(&properties(PROPERTIES), Some("bert"), &policy, 2);
    let changes = [
        ("job_queue_size = 200", "job_queue_size = 100"),
        ("\"batchSize\": 16", "\"batchSize\": 32"),
        ("\"maxBatchDelay\": 0", "\"maxBatchDelay\": 7"),
    ];
    assert_eq!(out.text, with(PROPERTIES, &changes));
    let out = exported(&properties(PROPERTIES), Some("noop"), &tuned(), 2);
    assert!(out.text.contains("{\"batchSize\": 32, \"maxBatchDelay\": 7}"), "{}", out.text);
    assert!(out.text.contains("default_workers_per_model=2"));
    let windows = PROPERTIES.replace('\n', "\r\n");
    let out = exported(&properties(&windows), Some("bert"), &policy, 2);
    assert_eq!(out.text, with(&windows, &changes));
}

#[test]
fn what_is_meant_already_is_left_alone() {
    for (file, model) in [(yaml(YAML), None), (properties(PROPERTIES), Some("bert"))] {
        let (policy, workers) = fragment(&read(std::slice::from_ref(&file), model));
        let out = exported(&file, model, &policy, workers);
        assert_eq!((out.text.as_str(), out.diff.as_str()), (file.text.as_str(), ""));
        // And what was exported is what is imported.
        let out = exported(&file, model, &TorchServe { batch_size: 11, ..policy }, workers + 1);
        let again = File { text: out.text, ..file };
        let (policy, now) = fragment(&read(&[again], model));
        assert_eq!((policy.batch_size, now), (11, workers + 1));
    }
}

#[test]
fn what_no_file_can_say_is_refused() {
    let failure = |file: &File, policy: &TorchServe| {
        shown(&export(file, None, setting(policy, 2)).expect_err("this cannot be written"))
    };
    let zero = TorchServe { max_batch_delay: 0, ..tuned() };
    assert!(failure(&yaml(YAML), &zero).contains("management API"));
    // A missing key is named, with the line to add.
    let message = failure(&yaml("batchSize: 4\nminWorkers: 2\n"), &tuned());
    assert!(message.contains("add the line maxBatchDelay: 7"), "{message}");
    let timeout = TorchServe { client_timeout_in_mills: 9, ..tuned() };
    assert!(failure(&yaml(YAML), &timeout).contains("add the line clientTimeoutInMills: 9"));
    // One place that means two things.
    let alias = "batchSize: &n 4\nmaxBatchDelay: *n\nminWorkers: 2\n";
    let message = failure(&yaml(alias), &tuned());
    assert!(message.contains("error"), "{message}");
}

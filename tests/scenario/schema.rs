//! The published schema is current, and as strict as the reader.

use super::{files_in, golden, scenarios};
use batchsim::scenario::{schema, starter};
use serde_json::Value;
use std::path::Path;

fn as_json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    match path.extension().and_then(|e| e.to_str()) {
        Some("toml") => toml::from_str(&text).unwrap(),
        Some("json") => serde_json::from_str(&text).unwrap(),
        _ => serde_saphyr::from_str(&text).unwrap(),
    }
}

#[test]
fn the_published_schema_is_current() {
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    golden(Path::new("schema/scenario-v1.json"), &text);
}

#[test]
fn the_schema_accepts_what_is_read() {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    for (path, scenario) in scenarios() {
        for value in [as_json(&path), scenario.to_value()] {
            let wrong: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
            assert!(wrong.is_empty(), "{}: {wrong:?}", path.display());
        }
    }
    assert!(validator.is_valid(&toml::from_str(starter()).unwrap()));
}

#[test]
fn the_schema_refuses_unknown_keys() {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    let mut seen = 0;
    for path in files_in("tests/data/bad/scenario") {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let judged = [
            "unknown-k",
            "not-yet-h",
            "not-yet-v",
            "not-yet-g",
            "tune-no-",
            "tune-unknown-k",
            "not-yet-re",
            "not-yet-ro",
            "missing-k",
            "bare-",
            "rate-w",
            "wrong-type-l",
            "yaml-unk",
            "json-unk",
        ];
        if judged.iter().any(|j| name.starts_with(j)) {
            seen += 1;
            assert!(!validator.is_valid(&as_json(&path)), "{name} is valid");
        }
    }
    assert!(seen > 20);
}

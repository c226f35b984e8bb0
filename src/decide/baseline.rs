//! Baselines: what is kept of a result, and how the scenario behind it differs from today's.

use crate::outcome::{Baseline, KeyChange, RecordedCell, SCHEMA};
use crate::scenario::Scenario;
use crate::study::Ran;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The record of a result, to hold later ones against.
#[must_use]
pub fn record(scenario: &Scenario, ran: &Ran) -> Baseline {
    let scenario = checked_value(scenario);
    let cells = ran.outcome.cells.iter().zip(&ran.sections.cells);
    Baseline {
        schema: SCHEMA,
        study: "baseline".into(),
        tool: ran.outcome.tool.clone(),
        scenario_sha256: digest(&scenario),
        scenario,
        seed: ran.outcome.seed,
        rng: ran.outcome.rng.clone(),
        cells: cells
            .map(|(cell, sections)| RecordedCell {
                cell: cell.clone(),
                series: sections.series.clone(),
            })
            .collect(),
    }
}

/// Whether two results can be compared section by section: the same streams ran in as many
/// replications.
pub(super) fn is_paired(a: &Baseline, b: &Baseline) -> bool {
    let replications = |r: &Baseline| r.cells.iter().map(|c| c.cell.replications).max();
    let kept =
        |r: &Baseline| r.cells.iter().any(|c| c.series.iter().any(|s| !s.sections.is_empty()));
    a.seed == b.seed && a.rng == b.rng && replications(a) == replications(b) && kept(a) && kept(b)
}

/// The part of a scenario that is checked: neither curve nor sweep is run.
pub(super) fn checked_value(scenario: &Scenario) -> Value {
    Scenario { curve: None, sweep: Vec::new(), ..scenario.clone() }.to_value()
}

/// SHA-256 of a value as compact JSON, in hexadecimal. Keys of maps are in order.
pub(super) fn digest(value: &Value) -> String {
    let hash = Sha256::digest(value.to_string().as_bytes());
    hash.iter().fold(String::new(), |mut text, byte| {
        // Writing to memory cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads a baseline.
///
/// # Errors
/// It is none, or one of a later version; in words.
pub fn read_baseline(text: &str) -> Result<Baseline, String> {
    let value: Value = serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
    if value.get("study").and_then(Value::as_str) != Some("baseline") {
        return Err("it is JSON, but not a baseline".into());
    }
    match value.get("schema").and_then(Value::as_u64) {
        Some(version) if version == u64::from(SCHEMA) => {}
        Some(version) => return Err(format!("it has version {version}, this build knows 1")),
        None => return Err("it does not say its version".into()),
    }
    let baseline: Baseline =
        serde_json::from_value(value).map_err(|e| format!("it is not complete: {e}"))?;
    if digest(&baseline.scenario) != baseline.scenario_sha256 {
        return Err("its scenario is not the one it was made from: it was edited".into());
    }
    Ok(baseline)
}

/// The keys in which two resolved scenarios differ, in order.
#[must_use]
pub fn key_changes(old: &Value, new: &Value) -> Vec<KeyChange> {
    let mut found = Vec::new();
    walk("", Some(old), Some(new), &mut found);
    found
}

fn walk(path: &str, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<KeyChange>) {
    match (old, new) {
        (Some(a), Some(b)) if a == b => {}
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                walk(&path, a.get(key), b.get(key), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if tables(a) && tables(b) => {
            lists(path, a, b, found);
        }
        (None, None) => {}
        _ => found.push(KeyChange {
            path: path.to_owned(),
            old: old.map(Value::to_string),
            new: new.map(Value::to_string),
        }),
    }
}

fn tables(list: &[Value]) -> bool {
    list.iter().all(Value::is_object)
}

/// Lists of tables: those with labels or names are matched by them, the others by number.
fn lists(path: &str, old: &[Value], new: &[Value], found: &mut Vec<KeyChange>) {
    let name = |table: &Value| {
        let text = |key| table.get(key).and_then(Value::as_str).map(str::to_owned);
        text("label").or_else(|| text("name"))
    };
    let names = |list: &[Value]| list.iter().map(name).collect::<Option<Vec<String>>>();
    let (Some(old_names), Some(new_names)) = (names(old), names(new)) else {
        for i in 0..old.len().max(new.len()) {
            // As `--set` writes it: the only source, the only server.
            let alone = old.len() == 1 && new.len() == 1;
            let path = if alone { path.to_owned() } else { format!("{path}[{}]", i + 1) };
            walk(&path, old.get(i), new.get(i), found);
        }
        return;
    };
    let all: Vec<&String> =
        old_names.iter().chain(new_names.iter().filter(|n| !old_names.contains(n))).collect();
    for name in all {
        let at = |names: &[String], list: &'_ [Value]| {
            names.iter().position(|n| n == name).and_then(|i| list.get(i).cloned())
        };
        let path = if path == "policy" { name.clone() } else { format!("{path}.{name}") };
        walk(&path, at(&old_names, old).as_ref(), at(&new_names, new).as_ref(), found);
    }
    let kept = |names: &[String], others: &[String]| -> Vec<String> {
        names.iter().filter(|n| others.contains(n)).cloned().collect()
    };
    let (was, is) = (kept(&old_names, &new_names), kept(&new_names, &old_names));
    if was != is {
        let text = |names: &[String]| Some(format!("in the order {}", names.join(", ")));
        found.push(KeyChange { path: path.to_owned(), old: text(&was), new: text(&is) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(old: &Value, new: &Value) -> Vec<String> {
        key_changes(old, new)
            .into_iter()
            .map(|c| {
                let or = |v: Option<String>| v.unwrap_or_else(|| "–".into());
                format!("{}: {} to {}", c.path, or(c.old), or(c.new))
            })
            .collect()
    }

    #[test]
    fn keys_are_named_as_set_names_them() {
        let old = json!({"seed": 1, "policy": [{"label": "a", "max_wait": "5ms"}, {"label": "b"}],
                         "server": [{"instances": 1}], "threshold": [{"expr": "x"}]});
        let new = json!({"seed": 1, "policy": [{"label": "b"}, {"label": "a", "max_wait": "6ms"}],
                         "server": [{"instances": 2}],
                         "threshold": [{"expr": "x"}, {"expr": "y"}]});
        assert_eq!(
            told(&old, &new),
            [
                "a.max_wait: \"5ms\" to \"6ms\"",
                "policy: in the order a, b to in the order b, a",
                "server.instances: 1 to 2",
                "threshold[2]: – to {\"expr\":\"y\"}",
            ]
        );
        assert!(told(&old, &old).is_empty());
    }

    #[test]
    fn a_digest_is_the_known_one() {
        // SHA-256 of `{}`.
        let known = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(digest(&json!({})), known);
    }
}

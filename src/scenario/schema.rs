//! The published JSON Schema of scenario files, and a scenario to start from.

use super::file::{ClientTable, CurveTable, RunTable, ServerTable, ThresholdTable};
use crate::arrivals::{Items, Process};
use crate::policy::Policy;
use crate::time::Nanos;
use crate::units::Fraction;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// A commented scenario to start from, as `batchsim init` writes it.
#[must_use]
pub fn starter() -> &'static str {
    include_str!("starter.toml")
}

/// The JSON Schema (draft 2020-12) of a scenario, for editors and other checkers.
///
/// It is as strict about keys as the reader; what only shows across keys is left to the reader.
#[must_use]
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let properties = sections(&mut generator);
    let duration = one::<Nanos>(&mut generator);
    let items = one::<Items>(&mut generator);
    let mut definitions = generator.take_definitions(true);
    adapt(&mut definitions, duration, items);
    let mut root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "batchsim scenario",
        "description": "Arrivals, servers, policies, and what to find out about them.",
        "type": "object",
        "properties": properties,
        "required": ["arrivals", "server", "policy"],
        "additionalProperties": false,
        "$defs": definitions,
    });
    tidy(&mut root);
    root
}

/// The keys at the top.
fn sections(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut add = |key: &str, what: &str, schema: Value| {
        let mut schema = schema;
        if let Value::Object(object) = &mut schema {
            object.insert("description".into(), what.into());
        }
        properties.insert(key.into(), schema);
    };
    add("$schema", "Where this schema is, for editors; ignored.", json!({ "type": "string" }));
    add("schema", "Version of this format.", json!({ "const": 1 }));
    add(
        "name",
        "Name of the scenario, also of its output folder (default: the file's name).",
        json!({ "type": "string", "minLength": 1 }),
    );
    add(
        "seed",
        "Seed of all random streams (default 42).",
        json!({ "type": "integer", "minimum": 0 }),
    );
    add("run", "How long and how precisely to simulate.", one::<RunTable>(generator));
    add("curve", "Asks for a throughput-latency curve.", one::<CurveTable>(generator));
    add("arrivals", "Sources of requests, superposed.", many::<Process>(generator));
    add("server", "Servers to compare, usually one.", many::<ServerTable>(generator));
    add("client", "Fixed delays outside the server.", one::<ClientTable>(generator));
    add("policy", "Policies to compare.", many::<Policy>(generator));
    add("threshold", "Objectives to judge.", many::<ThresholdTable>(generator));
    add("sweep", "Axes of a sweep: paths such as \"dynamic.max_wait\".", sweep());
    add("tune", "What to seek, and over which settings.", tune(generator));
    properties
}

/// What the reader does around the plain types: common keys, and kinds that can be left out.
fn adapt(definitions: &mut Map<String, Value>, duration: Value, mut items: Value) {
    if let Value::Object(object) = &mut items {
        object.insert("description".into(), "Items a request carries (default 1).".into());
    }
    let mut timeout = duration;
    if let Value::Object(object) = &mut timeout {
        let what = "A request older than this when it is taken from the queue has expired.";
        object.insert("description".into(), what.into());
    }
    let text = |what: &str| json!({ "type": "string", "minLength": 1, "description": what });
    let arrivals = json!({
        "name": text("Name, for paths such as `arrivals.web.rate`."),
        "class": text("Class of its requests: rows of their own, and a target of thresholds."),
        "timeout": timeout,
        "priority": {
            "type": "integer",
            "minimum": 0,
            "description": "Priority level its requests ask for, 1 the highest.",
        },
        "items": items,
        "shape": text("Different shapes share no batch where a server enforces shapes."),
    });
    let what = "Thresholds apply to policies with guard = true, or to all if there are none.";
    let policy = json!({
        "label": text("What results and paths call it (default: its kind)."),
        "guard": { "type": "boolean", "description": what },
    });
    for (family, common) in [("Process", arrivals), ("Policy", policy)] {
        for branch in branches(definitions, family) {
            if let (Some(Value::Object(keys)), Value::Object(common)) =
                (branch.get_mut("properties"), &common)
            {
                keys.extend(common.clone());
            }
        }
    }
    // `cost = { file = "…" }` needs no kind.
    for branch in branches(definitions, "Cost") {
        if branch.pointer("/properties/kind/const") == Some(&json!("file"))
            && let Some(Value::Array(required)) = branch.get_mut("required")
        {
            required.retain(|key| key != "kind");
        }
    }
    // `jitter = "none"`: kinds without parameters can be a text.
    let bare: Vec<Value> = branches(definitions, "Jitter")
        .iter()
        .filter(|b| b.get("required").and_then(Value::as_array).is_some_and(|r| r.len() == 1))
        .filter_map(|b| b.pointer("/properties/kind/const").cloned())
        .collect();
    if let Some(jitter) = definitions.get_mut("Jitter") {
        let table = jitter.take();
        let what = "A kind without parameters.";
        *jitter = json!({ "anyOf": [table, { "enum": bare, "description": what }] });
    }
}

/// The variants of a family, one schema each.
fn branches<'d>(definitions: &'d mut Map<String, Value>, family: &str) -> &'d mut [Value] {
    match definitions.get_mut(family).and_then(|d| d.get_mut("oneOf")) {
        Some(Value::Array(branches)) => branches,
        _ => &mut [],
    }
}

/// Leaves out what only generators of code use.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.get("format").is_some_and(Value::is_string) {
                object.remove("format");
            }
            object.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

fn one<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

/// `[key]` or `[[key]]`.
fn many<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    let item = one::<T>(generator);
    json!({ "anyOf": [item, { "type": "array", "items": item, "minItems": 1 }] })
}

fn tune(generator: &mut SchemaGenerator) -> Value {
    let objective = "\"max rate\", \"min p99\" (or another percentile, as in \"min p(95)\"), \
                     \"min mean\", \"min instances\" or \"min gpu-time\"; thresholds are \
                     constraints.";
    let mut over = sweep();
    let mut indifference = one::<Fraction>(generator);
    for (schema, what) in [
        (&mut over, "What varies: axes as in [sweep], and `policy`, a list of labels."),
        (&mut indifference, "Settings within this share of the best count as equal (default 1%)."),
    ] {
        if let Value::Object(object) = schema {
            object.insert("description".into(), what.into());
        }
    }
    json!({
        "type": "object",
        "properties": {
            "objective": { "type": "string", "description": objective },
            "over": over,
            "indifference": indifference,
        },
        "required": ["objective"],
        "additionalProperties": false,
    })
}

fn sweep() -> Value {
    let scalar = json!({ "type": ["string", "number", "boolean"] });
    let values = json!({ "type": "array", "items": scalar, "minItems": 1 });
    let shape = json!({
        "values": values,
        "from": scalar,
        "to": scalar,
        "step": scalar,
        "points": { "type": "integer", "minimum": 2 },
    });
    let choice = json!([
        { "required": ["values"], "maxProperties": 1 },
        { "required": ["from", "to", "step"], "maxProperties": 3 },
        { "required": ["from", "to", "points"], "maxProperties": 3 },
    ]);
    let axis = json!({ "anyOf": [
        values,
        {
            "type": "object",
            "properties": shape,
            "additionalProperties": false,
            "oneOf": choice,
        },
    ] });
    let mut listed = shape;
    if let Value::Object(keys) = &mut listed {
        keys.insert("path".into(), json!({ "type": "string" }));
    }
    json!({ "anyOf": [
        { "type": "object", "additionalProperties": axis },
        { "type": "array", "items": {
            "type": "object",
            "properties": listed,
            "required": ["path"],
            "additionalProperties": false,
        } },
    ] })
}

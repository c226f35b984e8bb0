//! What the files say of a model, and what counts.

use super::File;
use super::properties::{self, Property};
use crate::scenario::{
    BAD_PARAM, Format, INPUT, MISSING_KEY, Node, Problem, Span, Texts, Value, parse_tree,
};

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A whole number that shapes the scenario.
    Number,
    /// A way of batching that is not simulated, when it is true.
    Refused(&'static str),
    /// It has no effect, for this reason.
    Ignored(&'static str),
}

const NO_EFFECT: Role = Role::Ignored("no effect on batching");
const COST: Role = Role::Ignored("belongs in the measured cost");

/// Keys of a model.
const MODEL: &[(&str, Role)] = &[
    ("batchSize", Role::Number),
    ("maxBatchDelay", Role::Number),
    ("jobQueueSize", Role::Number),
    ("clientTimeoutInMills", Role::Number),
    ("minWorkers", Role::Number),
    ("maxWorkers", Role::Number),
    ("useJobTicket", Role::Refused("accepts a request only while a worker waits for one")),
    ("continuousBatching", Role::Refused("joins requests to a batch between its steps")),
    ("sequenceBatching", Role::Refused("batches by sequence")),
    ("sequenceBatch", Role::Refused("batches by sequence")),
    ("asyncCommunication", Role::Refused("sends batches without waiting for the one before")),
    ("handler", COST),
    ("micro_batching", COST),
    ("deviceType", COST),
    ("deviceIds", COST),
    ("parallelType", COST),
    ("parallelLevel", COST),
    ("torchrun", COST),
    ("pt2", COST),
];

/// Keys of the server.
const SERVER: &[(&str, Role)] =
    &[("job_queue_size", Role::Number), ("default_workers_per_model", Role::Number)];

/// Where a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// In the model's own file.
    Yaml,
    /// Under `models` in the server's file.
    Models,
    /// At the top of the server's file.
    Server,
}

/// A number that stands in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) scope: Scope,
    pub(super) key: &'static str,
    pub(super) value: u32,
    /// Its place: the digits, and quotes around them.
    pub(super) span: Span,
}

/// A key without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unused {
    pub(super) path: String,
    pub(super) span: Span,
    pub(super) why: &'static str,
}

/// One model as the files have it.
#[derive(Clone, Debug, Default)]
pub(super) struct Config {
    /// Name of the model, where a file says it.
    pub(super) model: Option<String>,
    pub(super) numbers: Vec<Number>,
    pub(super) unused: Vec<Unused>,
    problems: Vec<Problem>,
}

impl Config {
    /// Reads all files.
    pub(super) fn read(
        files: &[File],
        model: Option<&str>,
        texts: &mut Texts,
    ) -> Result<Self, Vec<Problem>> {
        let mut config = Self::default();
        for file in files {
            let number = texts.add(file.name.as_str(), file.text.as_str());
            if is_properties(&file.name) {
                config.server(&file.text, number, model);
            } else {
                match parse_tree(&file.text, Format::Yaml, number) {
                    Ok(root) => config.model_keys(&root, Scope::Yaml, "", &|span| span),
                    Err(problem) => config.problems.push(problem),
                }
            }
        }
        if config.problems.is_empty() { Ok(config) } else { Err(config.problems) }
    }

    /// The value of a key, where it stands and counts: 0 counts as unset.
    pub(super) fn set(&self, key: &str, scope: Scope) -> Option<u32> {
        let of_key = |n: &&Number| n.key == key && n.scope == scope;
        self.numbers.iter().rfind(of_key).map(|n| n.value).filter(|value| *value > 0)
    }

    /// The value of a model's key that counts: its own file before the server's.
    pub(super) fn model_value(&self, key: &str) -> Option<u32> {
        self.set(key, Scope::Yaml).or_else(|| self.set(key, Scope::Models))
    }

    pub(super) fn batch_size(&self) -> u32 {
        self.model_value("batchSize").unwrap_or(1)
    }

    pub(super) fn max_batch_delay(&self) -> u32 {
        self.model_value("maxBatchDelay").unwrap_or(100)
    }

    pub(super) fn job_queue_size(&self) -> u32 {
        let server = || self.set("job_queue_size", Scope::Server);
        self.model_value("jobQueueSize").or_else(server).unwrap_or(100)
    }

    pub(super) fn client_timeout(&self) -> u32 {
        self.model_value("clientTimeoutInMills").unwrap_or(0)
    }

    /// How many workers start; `None` where TorchServe decides by the machine.
    pub(super) fn workers(&self) -> Option<u32> {
        let server = || self.set("default_workers_per_model", Scope::Server);
        self.model_value("minWorkers").or_else(server)
    }

    /// The server's file: its own keys, and the model's under `models`.
    fn server(&mut self, text: &str, number: u32, wanted: Option<&str>) {
        let all = properties::parse(text);
        let last = |p: &Property| all.iter().rfind(|other| other.key == p.key) == Some(p);
        for property in all.iter().filter(|p| last(p)) {
            let at = property.at;
            let key_span = Span::new(number, at..at + property.key.len());
            if property.key == "models" {
                self.models(property, number, wanted);
                continue;
            }
            let trimmed = property.value.trim();
            let from = property.value.find(trimmed).unwrap_or(0);
            let span = Span::new(number, property.place(from..from + trimmed.len()));
            let value = Value::Text(trimmed.to_owned());
            let place = Place { scope: Scope::Server, path: &property.key, key_span, span };
            self.key(SERVER, &property.key, &value, &place);
        }
    }

    fn models(&mut self, property: &Property, number: u32, wanted: Option<&str>) {
        let source = |span: Span| Span::new(number, property.place(span.range()));
        let root = match parse_tree(&property.value, Format::Json, number) {
            Ok(root) => root,
            Err(mut problem) => {
                problem.span = source(problem.span);
                return self.problems.push(problem);
            }
        };
        match choose(&root, wanted) {
            Ok((name, version, node)) => {
                self.model = Some(name.clone());
                self.model_keys(node, Scope::Models, &format!("models.{name}.{version}."), &source);
            }
            Err((span, what, help)) => {
                let place = Span::new(number, property.place(span.range()));
                self.problems.push(Problem::new(INPUT, place, what).help(help));
            }
        }
    }

    fn model_keys(
        &mut self,
        node: &Node,
        scope: Scope,
        prefix: &str,
        source: &dyn Fn(Span) -> Span,
    ) {
        for entry in node.entries().unwrap_or(&[]) {
            let path = format!("{prefix}{}", entry.key);
            let (key_span, span) = (source(entry.key_span), source(entry.node.span));
            let place = Place { scope, path: &path, key_span, span };
            self.key(MODEL, &entry.key, &entry.node.value, &place);
        }
    }

    fn key(
        &mut self,
        known: &'static [(&'static str, Role)],
        key: &str,
        value: &Value,
        place: &Place<'_>,
    ) {
        let role = known.iter().find(|(name, _)| *name == key);
        match role.map_or((key, NO_EFFECT), |(name, role)| (*name, *role)) {
            (_, Role::Number) => {
                let Some((key, _)) = role else { return };
                match whole(value) {
                    Some(value) => {
                        let (scope, span) = (place.scope, place.span);
                        self.numbers.push(Number { scope, key, value, span });
                    }
                    None => {
                        let what = format!("{key} is a whole number from 0 to {}", i32::MAX);
                        let help = "write one, or leave it out for the default";
                        self.problems.push(Problem::new(BAD_PARAM, place.span, what).help(help));
                    }
                }
            }
            (_, Role::Refused(what)) if is_true(value) => {
                let what = format!("{key} is not simulated: it {what}");
                let help = format!("set {key} to false, or leave it out");
                self.problems.push(Problem::new(BAD_PARAM, place.span, what).help(help));
            }
            (_, Role::Refused(_)) => {}
            (_, Role::Ignored(why)) => {
                let (path, span) = (place.path.to_owned(), place.key_span);
                self.unused.push(Unused { path, span, why });
            }
        }
    }
}

/// Where a key and its value stand.
struct Place<'a> {
    scope: Scope,
    path: &'a str,
    key_span: Span,
    span: Span,
}

/// Whether a file is the server's.
pub(super) fn is_properties(name: &str) -> bool {
    std::path::Path::new(name).extension().is_some_and(|e| e.eq_ignore_ascii_case("properties"))
}

/// A whole number, also as a text.
fn whole(value: &Value) -> Option<u32> {
    let number = match value {
        Value::Int(n) => *n,
        Value::Text(text) if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok()?,
        _ => return None,
    };
    i32::try_from(number).ok().and_then(|n| u32::try_from(n).ok())
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(b) => *b,
        Value::Text(text) => text.eq_ignore_ascii_case("true"),
        Value::Null => false,
        // `sequenceBatching` and others may also be tables of settings.
        _ => true,
    }
}

/// The name, version and settings of the model that is meant, of those under `models`.
fn choose<'n>(
    root: &'n Node,
    wanted: Option<&str>,
) -> Result<(String, String, &'n Node), (Span, String, String)> {
    let (name, version) = match wanted {
        Some(wanted) => {
            let (name, version) = wanted.split_once(':').unwrap_or((wanted, ""));
            (Some(name), Some(version).filter(|v| !v.is_empty()))
        }
        None => (None, None),
    };
    let models = root.entries().unwrap_or(&[]);
    let listed = |entries: &[crate::scenario::Entry]| {
        entries.iter().map(|e| e.key.clone()).collect::<Vec<_>>().join(", ")
    };
    let model = match (name, models) {
        (Some(name), _) => models.iter().find(|m| m.key == name).ok_or_else(|| {
            let what = format!("`models` has no model `{name}`");
            (root.span, what, format!("it has {}", listed(models)))
        })?,
        (None, [only]) => only,
        (None, _) => {
            let what = format!("`models` has {} models", models.len());
            return Err((root.span, what, format!("say --model with one of {}", listed(models))));
        }
    };
    let versions = model.node.entries().unwrap_or(&[]);
    let default = |v: &&crate::scenario::Entry| {
        v.node.get("defaultVersion").is_some_and(|d| is_true(&d.value))
    };
    let chosen = match (version, versions) {
        (Some(version), _) => versions.iter().find(|v| v.key == version),
        (None, [only]) => Some(only),
        (None, _) => versions.iter().find(default),
    };
    let chosen = chosen.ok_or_else(|| {
        let what = format!("which version of `{}` is meant?", model.key);
        let help = format!("say --model {}:VERSION with one of {}", model.key, listed(versions));
        (model.node.span, what, help)
    })?;
    Ok((model.key.clone(), chosen.key.clone(), &chosen.node))
}

/// A key that a file would need.
pub(super) fn missing(key: &str, value: u32, file: &str) -> Problem {
    let what = format!("{file} has no {key}, the scenario sets it to {value}");
    let line = match (is_properties(file), key) {
        (true, "job_queue_size") => format!("add the line job_queue_size={value}"),
        (true, _) => format!("add \"{key}\": {value} to the model's settings under `models`"),
        (false, _) => format!("add the line {key}: {value}"),
    };
    Problem::new(MISSING_KEY, Span::NONE, what).help(format!("{line}, and export again"))
}

//! Settings of a scenario, written into a file that TorchServe reads.

use super::File;
use super::config::{Config, Number, Scope, is_properties, missing};
use crate::policy::TorchServe;
use crate::scenario::{BAD_PARAM, Diagnostic, INPUT, Problem, Span, Texts};
use std::fmt::Write as _;

/// What a scenario says of a model.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// Its policy.
    pub policy: &'a TorchServe,
    /// The instances of its server.
    pub workers: u32,
}

/// A file with other values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The whole text; equal to the old one where nothing differs.
    pub text: String,
    /// What changed, as a unified diff without context; empty where nothing differs.
    pub diff: String,
    /// What the file does not say and the scenario does, without effect on batches.
    pub notes: Vec<String>,
}

/// Writes the values of a setting over those of a file, where TorchServe would take the file to
/// mean others; everything else stays byte for byte.
///
/// # Errors
/// A file that cannot be read; a key that it lacks; a value that no file can set.
pub fn export(
    file: &File,
    model: Option<&str>,
    setting: Setting<'_>,
) -> Result<Exported, Vec<Diagnostic>> {
    let mut texts = Texts::default();
    change(file, model, setting, &mut texts)
        .map_err(|problems| problems.into_iter().map(|p| texts.diagnose(p)).collect())
}

fn change(
    file: &File,
    model: Option<&str>,
    setting: Setting<'_>,
    texts: &mut Texts,
) -> Result<Exported, Vec<Problem>> {
    let config = Config::read(std::slice::from_ref(file), model, texts)?;
    let mut plan = Plan { file, config: &config, edits: Vec::new(), problems: Vec::new() };
    let notes = plan.all(setting);
    let Plan { mut edits, problems, .. } = plan;
    if !problems.is_empty() {
        return Err(problems);
    }
    edits.sort_by_key(|(number, _)| number.span.order());
    let mut text = file.text.clone();
    for (number, value) in edits.iter().rev() {
        let range = digits(number.span, &file.text).map_err(|problem| vec![problem])?;
        text.replace_range(range, &value.to_string());
    }
    verify(file, model, &config, &edits, &text)?;
    let diff = diff(&file.name, &file.text, &text);
    Ok(Exported { text, diff, notes })
}

/// The values to change.
struct Plan<'a> {
    file: &'a File,
    config: &'a Config,
    edits: Vec<(Number, u32)>,
    problems: Vec<Problem>,
}

impl Plan<'_> {
    /// All keys; returns what is left as it is.
    fn all(&mut self, setting: Setting<'_>) -> Vec<String> {
        let Setting { policy: p, workers } = setting;
        let config = self.config;
        let properties = is_properties(&self.file.name);
        let scope = if properties { Scope::Models } else { Scope::Yaml };
        self.key(scope, "batchSize", config.batch_size(), p.batch_size);
        if p.max_batch_delay == 0 && config.max_batch_delay() != 0 {
            let what = "maxBatchDelay 0 cannot be set by a file: there it counts as 100";
            let help = "set it by the management API: \
                        POST /models?url=…&batch_size=…&max_batch_delay=0";
            self.problems.push(Problem::new(BAD_PARAM, Span::NONE, what).help(help));
        } else {
            self.key(scope, "maxBatchDelay", config.max_batch_delay(), p.max_batch_delay);
        }
        // A model's own size counts before the server's.
        if config.set("jobQueueSize", scope).is_some() || !properties {
            self.key(scope, "jobQueueSize", config.job_queue_size(), p.job_queue_size);
        } else {
            let size = config.job_queue_size();
            self.key(Scope::Server, "job_queue_size", size, p.job_queue_size);
        }
        let timeout = p.client_timeout_in_mills;
        self.key(scope, "clientTimeoutInMills", config.client_timeout(), timeout);
        let mut notes = Vec::new();
        match config.workers() {
            Some(now) if config.set("minWorkers", scope).is_none() && now != workers => {
                self.key(Scope::Server, "default_workers_per_model", now, workers);
            }
            Some(now) => self.key(scope, "minWorkers", now, workers),
            None => notes.push(format!(
                "{} says no minWorkers, the scenario has {workers}; TorchServe decides by the \
                 machine",
                self.file.name
            )),
        }
        // Never fewer than the least.
        if let Some(most) = config.set("maxWorkers", scope).filter(|most| *most < workers) {
            self.key(scope, "maxWorkers", most, workers);
        }
        notes
    }

    fn key(&mut self, scope: Scope, key: &str, now: u32, wanted: u32) {
        if now == wanted {
            return;
        }
        let of_key = |n: &&Number| n.key == key && n.scope == scope;
        match self.config.numbers.iter().rfind(of_key) {
            Some(number) => self.edits.push((number.clone(), wanted)),
            None => self.problems.push(missing(key, wanted, &self.file.name)),
        }
    }
}

/// The digits of a number in a text.
fn digits(span: Span, text: &str) -> Result<std::ops::Range<usize>, Problem> {
    let range = span.range();
    let written = text.get(range.clone()).unwrap_or_default();
    let inner = written.trim_matches(['"', '\'']);
    if inner.is_empty() || !inner.bytes().all(|b| b.is_ascii_digit()) {
        let what = format!("`{written}` is not written in plain digits");
        let help = "write the number itself, and export again";
        return Err(Problem::new(BAD_PARAM, span, what).help(help));
    }
    let start = range.start + written.find(inner).unwrap_or(0);
    Ok(start..start + inner.len())
}

/// The new text says what was meant, and nothing else differently: an alias or an escape may make
/// one place mean two things.
fn verify(
    file: &File,
    model: Option<&str>,
    before: &Config,
    edits: &[(Number, u32)],
    text: &str,
) -> Result<(), Vec<Problem>> {
    let new = File { name: file.name.clone(), text: text.to_owned() };
    let after = Config::read(std::slice::from_ref(&new), model, &mut Texts::default())
        .map(|config| config.numbers)
        .unwrap_or_default();
    let edited = |n: &Number| edits.iter().find(|(e, _)| e == n).map_or(n.value, |(_, v)| *v);
    let wanted = before.numbers.iter().map(|n| (n.scope, n.key, edited(n)));
    if after.iter().map(|n| (n.scope, n.key, n.value)).eq(wanted) {
        return Ok(());
    }
    let what = format!("{} cannot be changed in place: one value stands for several", file.name);
    Err(vec![Problem::new(INPUT, Span::NONE, what).help("write each value out, and export again")])
}

/// Lines that differ; changes never add or remove any.
fn diff(name: &str, old: &str, new: &str) -> String {
    let mut out = String::new();
    for (n, (old, new)) in (1..).zip(old.split('\n').zip(new.split('\n'))) {
        if old != new {
            if out.is_empty() {
                let _ = writeln!(out, "--- {name}\n+++ {name}");
            }
            let _ = writeln!(out, "@@ -{n} +{n} @@\n-{old}\n+{new}");
        }
    }
    out
}

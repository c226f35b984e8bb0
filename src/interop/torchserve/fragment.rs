//! The scenario text for an imported model.

use super::config::Config;
use super::{Ignored, Imported};
use crate::interop::triton::fragment::{FIXED_MS, PER_ITEM_MS, comment, placeholder_rate};
use crate::scenario::{Span, Texts};
use std::fmt::Write as _;

/// Writes the scenario, with notes and ignored keys as comments on top.
pub(super) fn write(config: &Config, texts: &Texts) -> Imported {
    let notes = notes(config);
    let ignored: Vec<Ignored> = config
        .unused
        .iter()
        .map(|unused| {
            let (file, line, column) = place(unused.span, texts);
            Ignored { path: unused.path.clone(), file, line, column, why: unused.why }
        })
        .collect();
    let toml = toml(config, &notes, &ignored);
    Imported { toml, notes, ignored }
}

/// File, line and column of a place.
fn place(span: Span, texts: &Texts) -> (String, usize, usize) {
    let Some(place) = texts.place(span) else { return (String::new(), 1, 1) };
    let before = place.source.text.get(..span.range().start).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (place.source.name.clone(), line, column)
}

fn notes(config: &Config) -> Vec<String> {
    let mut notes = Vec::new();
    let (batch, delay) = (config.batch_size(), config.max_batch_delay());
    if batch > 1 {
        notes.push(format!(
            "A worker waits {delay} ms for more from the moment it takes its first request, also \
             when that has waited for the worker. Only a backlog of {batch} leaves at once."
        ));
    }
    let zero = |n: &&super::config::Number| n.key == "maxBatchDelay" && n.value == 0;
    if config.numbers.iter().any(|n| zero(&n)) {
        notes.push(
            "maxBatchDelay 0 in a file counts as unset. Only the management API sets 0, and then \
             no batch holds more than two requests."
                .to_owned(),
        );
    }
    if config.workers().is_none() {
        notes.push(
            "No file says minWorkers: TorchServe starts one worker per GPU, or per CPU core \
             without one. The scenario has one."
                .to_owned(),
        );
    }
    if let (Some(least), Some(most)) = (config.workers(), config.model_value("maxWorkers"))
        && most > least
    {
        notes.push(format!(
            "TorchServe starts minWorkers, {least}, and scales to maxWorkers, {most}, only when \
             its management API is asked to."
        ));
    }
    notes.push(
        "Times that TorchServe itself adds are not in the files: measure them and write them as \
         overhead in [server]. On one recorded host they were inbound 0.6 ms, dispatch 1.2 ms, \
         release 1.3 ms and response 1.2 ms."
            .to_owned(),
    );
    notes
}

/// Letters, digits, `.`, `_` and `-` of the model's name: it also names an output folder.
fn scenario_name(config: &Config) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name = config.model.as_deref().unwrap_or_default().chars().take(60);
    let name: String = name.map(|c| if plain(c) { c } else { '-' }).collect();
    let name = name.trim_matches(['.', '-']);
    if name.is_empty() { "torchserve-model".to_owned() } else { name.to_owned() }
}

fn toml(config: &Config, notes: &[String], ignored: &[Ignored]) -> String {
    let mut out = String::new();
    let name = scenario_name(config);
    comment(&mut out, "", "Imported from the configuration of a TorchServe model.");
    comment(
        &mut out,
        "",
        "It runs as it is. Lines marked REPLACE hold what a configuration cannot know: the load \
         and the cost of a forward pass.",
    );
    out.push_str("#\n# To know:\n");
    for note in notes {
        comment(&mut out, "* ", note);
    }
    if !ignored.is_empty() {
        out.push_str("#\n# Keys without effect here:\n");
        for key in ignored {
            let text = format!("{} ({}, line {}): {}", key.path, key.file, key.line, key.why);
            comment(&mut out, "* ", &text);
        }
    }
    let (batch, workers) = (config.batch_size(), config.workers().unwrap_or(1));
    let rate = placeholder_rate(workers, batch);
    let _ = write!(
        out,
        "\nschema = 1\nname = \"{name}\"\n\n[[arrivals]]\nkind = \"poisson\"\n\
         rate = \"{rate}/s\"  # REPLACE: your arrival rate\n\n[server]\ninstances = {workers}\n\
         # REPLACE: the cost you measured\n\
         cost = {{ kind = \"affine\", fixed = \"{FIXED_MS}ms\", per_item = \"{PER_ITEM_MS}ms\" }}\n\
         \n[[policy]]\nkind = \"torchserve\"\nrelease = \"0.12.0\"\nbatchSize = {batch}\n\
         maxBatchDelay = {}\njob_queue_size = {}\n",
        config.max_batch_delay(),
        config.job_queue_size(),
    );
    if config.client_timeout() > 0 {
        let _ = writeln!(out, "clientTimeoutInMills = {}", config.client_timeout());
    }
    out
}

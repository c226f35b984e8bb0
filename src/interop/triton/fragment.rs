//! The scenario text for an imported model.

use super::model::Model;
use super::{Ignored, Rule};
use crate::policy::{LevelPolicy, QueuePolicy, TimeoutAction, Triton};
use std::fmt::Write as _;

/// Widest comment line.
const WIDTH: usize = 96;
/// The placeholder cost, ms: the running example of the documentation.
pub(in crate::interop) const FIXED_MS: f64 = 8.0;
pub(in crate::interop) const PER_ITEM_MS: f64 = 0.5;

/// Letters, digits, `.`, `_` and `-` of the model's name: it also names an output folder.
pub(super) fn scenario_name(model: &Model) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String =
        model.name.chars().take(60).map(|c| if plain(c) { c } else { '-' }).collect();
    let name = name.trim_matches(['.', '-']);
    if name.is_empty() { "triton-model".to_owned() } else { name.to_owned() }
}

/// A scenario that runs as it is, with notes and ignored fields as comments on top.
pub(super) fn toml(
    name: &str,
    model: &Model,
    rule: Rule,
    notes: &[String],
    ignored: &[Ignored],
) -> String {
    let mut out = String::new();
    let of = if model.name.is_empty() { "a model without a name" } else { name };
    comment(&mut out, "", &format!("Imported from the Triton configuration of {of}."));
    comment(
        &mut out,
        "",
        "It runs as it is. Lines marked REPLACE hold what a configuration cannot know: the load \
         and the cost of a forward pass.",
    );
    out.push_str(match rule {
        Rule::Triton => "#\n# To know:\n",
        Rule::Textbook => "#\n# Where the real server differs:\n",
    });
    for note in notes {
        comment(&mut out, "* ", note);
    }
    if !ignored.is_empty() {
        out.push_str("#\n# Fields without effect here:\n");
        for field in ignored {
            let text = format!("{} (line {}): {}", field.path, field.line, field.why);
            comment(&mut out, "* ", &text);
        }
    }
    let cap = model.cap();
    let _ = write!(out, "\nschema = 1\nname = \"{name}\"\n\n[[arrivals]]\nkind = \"poisson\"\n");
    let rate = placeholder_rate(model.instances.count, cap);
    let _ = writeln!(out, "rate = \"{rate}/s\"  # REPLACE: your arrival rate");
    let limits = model.batching.as_ref().filter(|_| rule == Rule::Textbook).map(|b| b.policy);
    if let Some(us) = limits.and_then(|p| timeout(&p)) {
        let _ = writeln!(out, "timeout = \"{us}us\"");
    }
    let _ = writeln!(out, "\n[server]\ninstances = {}", model.instances.count);
    if let Some(policy) = limits.filter(|policy| policy.max_queue_size > 0) {
        let count = policy.max_queue_size;
        let _ = writeln!(out, "queue_limit = {{ unit = \"requests\", count = {count} }}");
    }
    let _ = writeln!(out, "# REPLACE: the cost you measured");
    let _ = writeln!(
        out,
        "cost = {{ kind = \"affine\", fixed = \"{FIXED_MS}ms\", per_item = \"{PER_ITEM_MS}ms\" }}"
    );
    if let Some(batching) = model.batching.as_ref().filter(|_| rule == Rule::Triton) {
        out.push_str(overhead(batching.prefetches()));
    }
    out.push_str("\n[[policy]]\n");
    match (rule, model.triton()) {
        (Rule::Triton, Some(policy)) => triton_lines(&mut out, &policy),
        _ => out.push_str(&textbook_lines(model, cap)),
    }
    out
}

/// The timeout after which a request is refused, µs.
fn timeout(policy: &QueuePolicy) -> Option<u64> {
    let us = policy.default_timeout_microseconds;
    (us > 0 && policy.timeout_action == TimeoutAction::Reject).then_some(us)
}

/// What release 2.51.0 with a C backend adds, as recorded; a backend of one's own adds more.
fn overhead(prefetches: bool) -> &'static str {
    if prefetches {
        "# What the server itself added on one machine (2.51.0, C backend):\n\
         # overhead = {inbound=\"357us\", release=\"90us\", release_per_request=\"6.7us\", \
         response=\"258us\"}\n"
    } else {
        "# What the server itself added on one machine (2.51.0, C backend):\n\
         # overhead = {inbound=\"357us\", release=\"113us\", release_per_request=\"14.8us\", \
         response=\"258us\"}\n"
    }
}

fn triton_lines(out: &mut String, policy: &Triton) {
    let _ = write!(out, "kind = \"triton\"\nlabel = \"triton\"\n");
    let _ = writeln!(out, "max_batch_size = {}", policy.max_batch_size);
    if !policy.preferred_batch_size.is_empty() {
        let sizes: Vec<String> = policy.preferred_batch_size.iter().map(u32::to_string).collect();
        let _ = writeln!(out, "preferred_batch_size = [{}]", sizes.join(", "));
    }
    let _ = writeln!(out, "max_queue_delay_microseconds = {}", policy.max_queue_delay_microseconds);
    for (key, on) in
        [("preserve_ordering", policy.preserve_ordering), ("enforce_shapes", policy.enforce_shapes)]
    {
        if on {
            let _ = writeln!(out, "{key} = true");
        }
    }
    if policy.priority_levels > 0 {
        let _ = writeln!(out, "priority_levels = {}", policy.priority_levels);
        let _ = writeln!(out, "default_priority_level = {}", policy.default_priority_level);
    }
    if let Some(limits) = &policy.default_queue_policy {
        out.push_str("\n[policy.default_queue_policy]\n");
        queue_lines(out, limits);
    }
    for level in &policy.priority_queue_policy {
        let LevelPolicy {
            level,
            timeout_action,
            default_timeout_microseconds,
            allow_timeout_override,
            max_queue_size,
        } = *level;
        let _ = write!(out, "\n[[policy.priority_queue_policy]]\nlevel = {level}\n");
        let limits = QueuePolicy {
            timeout_action,
            default_timeout_microseconds,
            allow_timeout_override,
            max_queue_size,
        };
        queue_lines(out, &limits);
    }
}

/// The keys of a queue policy that are not at their defaults.
fn queue_lines(out: &mut String, policy: &QueuePolicy) {
    if policy.timeout_action == TimeoutAction::Delay {
        out.push_str("timeout_action = \"DELAY\"\n");
    }
    if policy.default_timeout_microseconds > 0 {
        let us = policy.default_timeout_microseconds;
        let _ = writeln!(out, "default_timeout_microseconds = {us}");
    }
    if policy.allow_timeout_override {
        out.push_str("allow_timeout_override = true\n");
    }
    if policy.max_queue_size > 0 {
        let _ = writeln!(out, "max_queue_size = {}", policy.max_queue_size);
    }
}

fn textbook_lines(model: &Model, cap: u32) -> String {
    let Some(batching) = model.batching.as_ref().filter(|_| cap > 1) else {
        return "kind = \"none\"\nlabel = \"triton\"\n".to_owned();
    };
    let wait = match batching.delay_us {
        0 => "0ms".to_owned(),
        us => format!("{us}us"),
    };
    let mut lines = format!(
        "kind = \"dynamic\"\nlabel = \"triton\"\nmax_batch_size = {cap}\nmax_wait = \"{wait}\"\n\
         wait_anchor = \"oldest_arrival\"\n"
    );
    if !batching.preferred.is_empty() {
        let sizes: Vec<String> = batching.preferred.iter().map(u32::to_string).collect();
        let _ = writeln!(lines, "preferred_batch_sizes = [{}]", sizes.join(", "));
    }
    lines
}

/// About half of what the placeholder cost can serve, so that the fragment is not overloaded.
pub(in crate::interop) fn placeholder_rate(instances: u32, cap: u32) -> String {
    let service_s = (FIXED_MS + PER_ITEM_MS * f64::from(cap)) / 1e3;
    let half = 0.5 * f64::from(instances) * f64::from(cap) / service_s;
    let digit = 10_f64.powf(half.log10().floor() - 1.0);
    format!("{:.0}", (half / digit).floor() * digit)
}

/// One remark as comment lines; `bullet` starts the first, spaces the others.
pub(in crate::interop) fn comment(out: &mut String, bullet: &str, text: &str) {
    let mut line = format!("# {bullet}");
    let indent = format!("# {}", " ".repeat(bullet.len()));
    let mut fresh = true;
    for word in text.split_whitespace() {
        if !fresh && line.len() + 1 + word.len() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line.clone_from(&indent);
            fresh = true;
        }
        if !fresh {
            line.push(' ');
        }
        line.push_str(word);
        fresh = false;
    }
    out.push_str(&line);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_round() {
        assert_eq!(placeholder_rate(1, 1), "58");
        assert_eq!(placeholder_rate(1, 32), "660");
        assert_eq!(placeholder_rate(2, 8), "660");
    }
}

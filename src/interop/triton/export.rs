//! Settings of a scenario, written into a `config.pbtxt`.

use super::edit::{self, Step};
use super::text::{self, Kind};
use super::{ParseProblem, model::Model, model_of};
use crate::policy::{LevelPolicy, QueuePolicy, TimeoutAction, Triton};
use similar::TextDiff;
use std::fmt::Write as _;

/// What a scenario says of a model.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// Its policy.
    pub policy: &'a Triton,
    /// The instances of its server.
    pub instances: u32,
}

/// A configuration with other values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The whole text; equal to the old one where nothing differs.
    pub text: String,
    /// What changed, as a unified diff; empty where nothing differs.
    pub diff: String,
    /// What the scenario says and the file cannot take.
    pub notes: Vec<String>,
}

const BATCHING: Step<'static> = Step::Name("dynamic_batching");
const QUEUE: &str = "default_queue_policy";

/// The fields of a setting, for a configuration that is still to be written.
#[must_use]
pub fn fields(setting: Setting<'_>) -> String {
    let p = setting.policy;
    let mut out = format!("max_batch_size: {}\n", p.max_batch_size);
    if setting.instances > 1 {
        let _ = writeln!(out, "instance_group [ {{ count: {} }} ]", setting.instances);
    }
    out += "dynamic_batching {\n";
    let sizes = &p.preferred_batch_size;
    if !sizes.is_empty() {
        let _ = writeln!(out, "  preferred_batch_size: {}", edit::list_like(None, sizes));
    }
    let us = p.max_queue_delay_microseconds;
    let _ = writeln!(out, "  max_queue_delay_microseconds: {us}");
    if p.preserve_ordering {
        out += "  preserve_ordering: true\n";
    }
    if p.priority_levels > 0 {
        let _ = writeln!(out, "  priority_levels: {}", p.priority_levels);
        let _ = writeln!(out, "  default_priority_level: {}", p.default_priority_level);
    }
    let policy = p.default_queue_policy.unwrap_or_default();
    if policy != QueuePolicy::default() {
        let _ = writeln!(out, "  {QUEUE} {{\n{}  }}", queue_fields(&policy, "    "));
    }
    for level in &p.priority_queue_policy {
        let inner = queue_fields(&of_level(level), "      ");
        let _ = writeln!(
            out,
            "  priority_queue_policy {{\n    key: {}\n    value {{\n{inner}    }}\n  }}",
            level.level
        );
    }
    out + "}\n"
}

fn queue_fields(policy: &QueuePolicy, indent: &str) -> String {
    let changed = queue_values(policy).into_iter().zip(queue_values(&QueuePolicy::default()));
    changed
        .filter(|(wanted, default)| wanted != default)
        .map(|((name, value), _)| format!("{indent}{name}: {value}\n"))
        .collect()
}

fn queue_values(policy: &QueuePolicy) -> [(&'static str, String); 4] {
    let action = match policy.timeout_action {
        TimeoutAction::Reject => "REJECT",
        TimeoutAction::Delay => "DELAY",
    };
    [
        ("timeout_action", action.to_owned()),
        ("default_timeout_microseconds", policy.default_timeout_microseconds.to_string()),
        ("allow_timeout_override", policy.allow_timeout_override.to_string()),
        ("max_queue_size", policy.max_queue_size.to_string()),
    ]
}

fn of_level(level: &LevelPolicy) -> QueuePolicy {
    let LevelPolicy {
        timeout_action,
        default_timeout_microseconds,
        allow_timeout_override,
        max_queue_size,
        ..
    } = *level;
    QueuePolicy {
        timeout_action,
        default_timeout_microseconds,
        allow_timeout_override,
        max_queue_size,
    }
}

/// Writes a setting into a configuration: only values that Triton would take for others are
/// changed, and everything else stays byte for byte. `name` is that of the file, for the diff.
///
/// # Errors
/// A configuration that [`import`](super::import) refuses, with the places; settings that it
/// cannot take.
pub fn export(name: &str, text: &str, setting: Setting<'_>) -> Result<Exported, Vec<ParseProblem>> {
    let (before, _) = model_of(text)?;
    let wanted = comparable(setting.policy.clone(), &before);
    let mut plan = Plan { text: text.to_owned(), notes: Vec::new() };
    plan.all(&before, &wanted, setting.instances).map_err(|problem| vec![problem])?;
    if setting.policy.enforce_shapes != before.same_shapes {
        plan.notes.push(format!(
            "enforce_shapes is {}, and the inputs of the file make it {}: it follows from dims, \
             allow_ragged_batch and is_shape_tensor, which are left as they are",
            setting.policy.enforce_shapes, before.same_shapes
        ));
    }
    let (after, _) = model_of(&plan.text)?;
    if after.triton().map(|policy| comparable(policy, &after)) != Some(wanted) {
        let what = "these settings cannot be written into this file";
        let help = "bring its dynamic_batching into the usual form, one field a line";
        return Err(vec![ParseProblem::at(text, 0, what, help)]);
    }
    let mut diff = String::new();
    if plan.text != text {
        let lines = TextDiff::from_lines(text, &plan.text);
        diff = lines.unified_diff().context_radius(3).header(name, name).to_string();
    }
    Ok(Exported { text: plan.text, diff, notes: plan.notes })
}

/// A policy as far as a configuration of these inputs can say it, in one form.
fn comparable(policy: Triton, model: &Model) -> Triton {
    let mut policy = Triton {
        max_batch_size: policy.max_batch_size,
        preferred_batch_size: policy.preferred_batch_size,
        max_queue_delay_microseconds: policy.max_queue_delay_microseconds,
        preserve_ordering: policy.preserve_ordering,
        priority_levels: policy.priority_levels,
        default_priority_level: policy.default_priority_level,
        default_queue_policy: Some(policy.default_queue_policy.unwrap_or_default()),
        priority_queue_policy: policy.priority_queue_policy,
        enforce_shapes: model.same_shapes,
        ..Triton::default()
    };
    policy.preferred_batch_size.sort_unstable();
    policy.preferred_batch_size.dedup();
    policy.priority_queue_policy.sort_by_key(|level| level.level);
    if policy.priority_levels == 0 {
        policy.default_priority_level = 0;
        policy.priority_queue_policy.clear();
    }
    policy
}

/// The text as far as it is changed.
struct Plan {
    text: String,
    notes: Vec<String>,
}

impl Plan {
    fn all(&mut self, before: &Model, wanted: &Triton, instances: u32) -> Result<(), ParseProblem> {
        let old = before.triton();
        if before.max_batch_size.unwrap_or(0).max(1) != wanted.max_batch_size {
            self.set(&[], "max_batch_size", &wanted.max_batch_size.to_string())?;
        }
        self.instances(before, instances)?;
        if old.is_none() {
            self.text = edit::add_message(&self.text, "dynamic_batching")?;
        }
        let plain = Triton { max_batch_size: wanted.max_batch_size, ..Triton::default() };
        let old = comparable(old.unwrap_or(plain), before);
        self.preferred(&old, wanted)?;
        let values = |p: &Triton| {
            [
                ("max_queue_delay_microseconds", p.max_queue_delay_microseconds.to_string()),
                ("preserve_ordering", p.preserve_ordering.to_string()),
                ("priority_levels", p.priority_levels.to_string()),
            ]
        };
        for ((name, now), (_, value)) in values(&old).into_iter().zip(values(wanted)) {
            if now != value {
                self.set(&[BATCHING], name, &value)?;
            }
        }
        let level = wanted.default_priority_level;
        if wanted.priority_levels > 0 && old.default_priority_level != level {
            self.set(&[BATCHING], "default_priority_level", &level.to_string())?;
        }
        let queue = |p: &Triton| p.default_queue_policy.unwrap_or_default();
        self.queue(&[BATCHING, Step::Name(QUEUE)], &queue(&old), &queue(wanted))?;
        self.levels(&old, wanted)
    }

    fn set(&mut self, path: &[Step<'_>], name: &str, value: &str) -> Result<(), ParseProblem> {
        self.text = edit::set(&self.text, path, name, value)?;
        Ok(())
    }

    fn queue(
        &mut self,
        path: &[Step<'_>],
        now: &QueuePolicy,
        wanted: &QueuePolicy,
    ) -> Result<(), ParseProblem> {
        for ((name, now), (_, value)) in queue_values(now).into_iter().zip(queue_values(wanted)) {
            if now != value {
                self.set(path, name, &value)?;
            }
        }
        Ok(())
    }

    fn levels(&mut self, old: &Triton, wanted: &Triton) -> Result<(), ParseProblem> {
        let levels = |p: &Triton| p.priority_queue_policy.clone();
        for level in levels(old) {
            if wanted.priority_queue_policy.iter().all(|other| other.level != level.level) {
                self.text = edit::remove_level(&self.text, level.level)?;
            }
        }
        for level in levels(wanted) {
            let path = [BATCHING, Step::Level(level.level), Step::Name("value")];
            let found = old.priority_queue_policy.iter().find(|o| o.level == level.level);
            let now = found.map(of_level).unwrap_or_default();
            let wanted = of_level(&level);
            if found.is_none() && wanted == QueuePolicy::default() {
                // The entry counts even where it says nothing.
                self.set(&path, "max_queue_size", "0")?;
            }
            self.queue(&path, &now, &wanted)?;
        }
        Ok(())
    }

    fn preferred(&mut self, old: &Triton, wanted: &Triton) -> Result<(), ParseProblem> {
        let name = "preferred_batch_size";
        let sizes = &wanted.preferred_batch_size;
        if old.preferred_batch_size == *sizes {
            return Ok(());
        }
        if sizes.is_empty() {
            self.text = edit::remove(&self.text, &[BATCHING], name, 0)?;
            return Ok(());
        }
        self.text = edit::remove(&self.text, &[BATCHING], name, 1)?;
        let root = text::parse(&self.text)?;
        let batching = root.all("dynamic_batching").into_iter().next().map(|value| &value.kind);
        let written = match batching {
            Some(Kind::Message(message)) => message.fields.iter().find(|f| f.name == name),
            _ => None,
        };
        let written = written.map(|field| &self.text[field.value.span.clone()]);
        let value = match (sizes.as_slice(), written) {
            ([only], Some(old)) if !old.starts_with('[') => only.to_string(),
            _ => edit::list_like(written, sizes),
        };
        self.set(&[BATCHING], name, &value)
    }

    fn instances(&mut self, before: &Model, wanted: u32) -> Result<(), ParseProblem> {
        if before.instances.count == wanted {
            return Ok(());
        }
        let root = text::parse(&self.text)?;
        let groups = root.all("instance_group");
        let gpus = match groups.as_slice() {
            [] => 1,
            [one] => match &one.kind {
                Kind::Message(group) => group.all("gpus").len().max(1),
                _ => 0,
            },
            _ => 0,
        };
        let gpus = u32::try_from(gpus).unwrap_or(0);
        if gpus == 0 || !wanted.is_multiple_of(gpus) {
            self.notes.push(format!(
                "the scenario has {wanted} instances and the file {}; instance_group is left as it \
                 is, because {}",
                before.instances.count,
                if gpus == 0 {
                    "several groups share them".to_owned()
                } else {
                    format!("its count is for each of {gpus} GPUs")
                }
            ));
            return Ok(());
        }
        let count = (wanted / gpus).to_string();
        self.set(&[Step::Name("instance_group")], "count", &count)
    }
}

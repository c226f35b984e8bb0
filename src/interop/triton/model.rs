//! The part of a model configuration that decides how requests are batched, checked as Triton
//! checks it when it loads the model.

use super::reader::{Fields, Reader, Role};
use super::text::{Kind, Message, Value};
use crate::policy::{LevelPolicy, QueuePolicy, TimeoutAction, Triton};

/// The batching of a model.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) name: String,
    /// `max_batch_size`; `None` when the file does not say.
    pub(super) max_batch_size: Option<u32>,
    pub(super) batching: Option<Batching>,
    pub(super) instances: Instances,
    /// An input has a dimension of -1 without allow_ragged_batch, or is a shape tensor: requests
    /// of different shapes do not mix.
    pub(super) same_shapes: bool,
    /// An input may be left out: requests with other inputs do not mix.
    pub(super) optional: bool,
    pub(super) ragged: bool,
    pub(super) cache: bool,
    pub(super) decoupled: bool,
}

/// `dynamic_batching`.
#[derive(Debug, Default)]
pub(super) struct Batching {
    /// Ascending, without repeats.
    pub(super) preferred: Vec<u32>,
    pub(super) delay_us: u64,
    pub(super) policy: QueuePolicy,
    pub(super) priority_levels: u32,
    pub(super) default_priority_level: u32,
    /// By level, ascending.
    pub(super) levels: Vec<LevelPolicy>,
    pub(super) preserve_ordering: bool,
}

/// The instance groups, added up.
#[derive(Debug)]
pub(super) struct Instances {
    pub(super) count: u32,
    /// No group stands in the file.
    pub(super) implied: bool,
    /// A group runs once per GPU of the machine.
    pub(super) per_gpu: bool,
    /// A group has a count below 1, which Triton takes as 1.
    pub(super) raised: bool,
    pub(super) passive: bool,
}

impl Default for Instances {
    fn default() -> Self {
        Self { count: 1, implied: true, per_gpu: true, raised: false, passive: false }
    }
}

impl Model {
    /// The largest batch that forms: one request without dynamic batching, the largest preferred
    /// size where a delay of 0 closes a batch at it, else `max_batch_size`.
    pub(super) fn cap(&self) -> u32 {
        let Some(batching) = &self.batching else { return 1 };
        let most = self.max_batch_size.unwrap_or(0).max(1);
        match batching.preferred.last() {
            Some(&largest) if batching.delay_us == 0 => largest.min(most),
            _ => most,
        }
    }
}

impl Model {
    /// The dynamic batcher of the model, where it has one.
    pub(super) fn triton(&self) -> Option<Triton> {
        let batching = self.batching.as_ref()?;
        Some(Triton {
            // Without a batch dimension the scheduler takes one request at a time.
            max_batch_size: self.max_batch_size.unwrap_or(0).max(1),
            preferred_batch_size: batching.preferred.clone(),
            max_queue_delay_microseconds: batching.delay_us,
            preserve_ordering: batching.preserve_ordering,
            priority_levels: batching.priority_levels,
            default_priority_level: batching.default_priority_level,
            default_queue_policy: (batching.policy != QueuePolicy::default())
                .then_some(batching.policy),
            priority_queue_policy: batching.levels.clone(),
            enforce_shapes: self.same_shapes,
            ..Triton::default()
        })
    }
}

impl Batching {
    /// Whether Triton forms batches before an instance is free.
    pub(super) fn prefetches(&self) -> bool {
        let policy = &self.policy;
        self.priority_levels == 0
            && policy.default_timeout_microseconds == 0
            && !policy.allow_timeout_override
            && policy.max_queue_size == 0
    }
}

const NO_EFFECT: Role = Role::Ignored("no effect on batching");
const COST: Role = Role::Ignored("belongs in the measured cost");
const NOTED: Role = Role::Ignored("not simulated, see the notes");

const ROOT: Fields = &[
    ("name", Role::Used),
    ("max_batch_size", Role::Used),
    ("dynamic_batching", Role::Used),
    ("instance_group", Role::Used),
    ("sequence_batching", Role::Used),
    ("ensemble_scheduling", Role::Used),
    ("platform", COST),
    ("backend", COST),
    ("runtime", COST),
    ("optimization", COST),
    ("parameters", COST),
    ("default_model_filename", NO_EFFECT),
    ("cc_model_filenames", NO_EFFECT),
    ("version_policy", NO_EFFECT),
    ("metric_tags", NO_EFFECT),
    ("model_metrics", NO_EFFECT),
    ("model_operations", NO_EFFECT),
    ("model_repository_agents", NO_EFFECT),
    ("input", Role::Ignored("only whether its dimensions vary counts")),
    ("output", NO_EFFECT),
    ("batch_input", COST),
    ("batch_output", COST),
    ("model_warmup", Role::Ignored("a run starts warm")),
    ("response_cache", NOTED),
    ("model_transaction_policy", NOTED),
];

const DYNAMIC: Fields = &[
    ("preferred_batch_size", Role::Used),
    ("max_queue_delay_microseconds", Role::Used),
    ("default_queue_policy", Role::Used),
    ("preserve_ordering", Role::Used),
    ("priority_levels", Role::Used),
    ("default_priority_level", Role::Used),
    ("priority_queue_policy", Role::Used),
];

const QUEUE: Fields = &[
    ("max_queue_size", Role::Used),
    ("default_timeout_microseconds", Role::Used),
    ("timeout_action", Role::Used),
    ("allow_timeout_override", Role::Used),
];

const LEVEL: Fields = &[("key", Role::Used), ("value", Role::Used)];

const GROUP: Fields = &[
    ("count", Role::Used),
    ("kind", Role::Used),
    ("gpus", Role::Used),
    ("passive", Role::Used),
    ("name", NO_EFFECT),
    ("profile", COST),
    ("secondary_devices", COST),
    ("host_policy", COST),
    ("rate_limiter", Role::Used),
];

/// Most priority levels that are simulated.
const MOST_LEVELS: i128 = 100;

const KINDS: [&str; 4] = ["KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL"];

/// The longest time in microseconds that fits the simulator's clock.
const MOST_US: i128 = (u64::MAX / 1_000) as i128;

/// Reads a model configuration.
pub(super) fn read(reader: &mut Reader, root: &Message) -> Model {
    reader.survey(root, "", ROOT);
    other_schedulers(reader, root);
    let max_batch_size = match reader.number(root, "max_batch_size", 0..=i128::from(i32::MAX)) {
        Some(size) => u32::try_from(size).ok(),
        None => None,
    };
    let name = match reader.one(root, "name").map(|value| (&value.kind, value.span.start)) {
        Some((Kind::Text(name), _)) => name.clone(),
        Some((_, at)) => {
            reader.problem(at, "`name` is not a string", "put the name in quotes");
            String::new()
        }
        None => String::new(),
    };
    let batching = reader
        .nested(root, "dynamic_batching")
        .map(|message| dynamic(reader, message, max_batch_size.unwrap_or(0)));
    let mut model = Model { name, max_batch_size, batching, ..Model::default() };
    model.instances = instances(reader, root);
    inputs(&mut model, reader, root);
    model.cache = nested_flag(reader, root, "response_cache", "enable");
    model.decoupled = nested_flag(reader, root, "model_transaction_policy", "decoupled");
    model
}

fn nested_flag(reader: &mut Reader, root: &Message, name: &str, flag: &str) -> bool {
    match reader.nested(root, name) {
        Some(message) => reader.flag(message, flag),
        None => false,
    }
}

/// Schedulers that the dynamic policy cannot stand in for.
fn other_schedulers(reader: &mut Reader, root: &Message) {
    for (name, message, help) in [
        (
            "sequence_batching",
            "the sequence batcher is not simulated: it batches by sequence, not by queue",
            "import a model with dynamic_batching, or remove the section to simulate without it",
        ),
        (
            "ensemble_scheduling",
            "an ensemble batches nothing itself",
            "import the configurations of the models it calls",
        ),
    ] {
        if let Some(field) = root.fields.iter().find(|field| field.name == name) {
            reader.problem(field.span.start, message, help);
        }
    }
}

fn dynamic(reader: &mut Reader, message: &Message, max_batch_size: u32) -> Batching {
    reader.survey(message, "dynamic_batching.", DYNAMIC);
    let mut preferred: Vec<u32> = message
        .all("preferred_batch_size")
        .into_iter()
        .filter_map(|value| preferred_size(reader, value, max_batch_size))
        .collect();
    preferred.sort_unstable();
    preferred.dedup();
    let policy = match reader.nested(message, "default_queue_policy") {
        Some(policy) => queue_policy(reader, policy, "default_queue_policy."),
        None => QueuePolicy::default(),
    };
    let mut batching = Batching {
        preferred,
        delay_us: reader.count(message, "max_queue_delay_microseconds", MOST_US),
        policy,
        priority_levels: reader.count(message, "priority_levels", MOST_LEVELS),
        preserve_ordering: reader.flag(message, "preserve_ordering"),
        ..Batching::default()
    };
    priorities(reader, message, &mut batching);
    ordering(reader, message, &batching);
    batching
}

fn preferred_size(reader: &mut Reader, value: &Value, max_batch_size: u32) -> Option<u32> {
    let name = "preferred_batch_size";
    let size = reader.integer(value, name, 1..=i128::from(i32::MAX))?;
    if size <= i128::from(max_batch_size) {
        return u32::try_from(size).ok();
    }
    reader.problem(
        value.span.start,
        format!("preferred batch size {size} is above max_batch_size {max_batch_size}"),
        "keep preferred sizes up to max_batch_size: Triton does not load such a file",
    );
    None
}

fn queue_policy(reader: &mut Reader, message: &Message, prefix: &str) -> QueuePolicy {
    reader.survey(message, &format!("dynamic_batching.{prefix}"), QUEUE);
    let action = reader.choice(message, "timeout_action", &["REJECT", "DELAY"]);
    QueuePolicy {
        timeout_action: match action {
            Some("DELAY") => TimeoutAction::Delay,
            _ => TimeoutAction::Reject,
        },
        default_timeout_microseconds: reader.count(
            message,
            "default_timeout_microseconds",
            MOST_US,
        ),
        allow_timeout_override: reader.flag(message, "allow_timeout_override"),
        max_queue_size: reader.count(message, "max_queue_size", i128::from(u32::MAX)),
    }
}

/// Levels must exist: 1 is the highest, `priority_levels` the lowest.
fn priorities(reader: &mut Reader, message: &Message, batching: &mut Batching) {
    let levels = i128::from(batching.priority_levels);
    if levels > 0 {
        match reader.one(message, "default_priority_level") {
            Some(value) => {
                let level = reader.integer(value, "default_priority_level", 1..=levels);
                batching.default_priority_level =
                    level.and_then(|v| u32::try_from(v).ok()).unwrap_or_default();
            }
            None => {
                let at = message.fields.iter().find(|field| field.name == "priority_levels");
                reader.problem(
                    at.map_or(0, |field| field.span.start),
                    "priority_levels without default_priority_level",
                    &format!("add default_priority_level, from 1 to {levels}"),
                );
            }
        }
    }
    for value in message.all("priority_queue_policy") {
        let Some(entry) = reader.as_message(value, "priority_queue_policy") else { continue };
        if levels == 0 {
            reader.problem(
                value.span.start,
                "priority_queue_policy without priority_levels",
                "set priority_levels and default_priority_level, or remove the policy",
            );
            continue;
        }
        if let Some(level) = level_policy(reader, entry, levels) {
            // The last entry of a key counts, as in any protobuf map.
            batching.levels.retain(|other| other.level != level.level);
            batching.levels.push(level);
        }
    }
    batching.levels.sort_by_key(|level| level.level);
}

fn level_policy(reader: &mut Reader, entry: &Message, levels: i128) -> Option<LevelPolicy> {
    reader.survey(entry, "dynamic_batching.priority_queue_policy.", LEVEL);
    let level = reader.number(entry, "key", 1..=levels);
    let policy = match reader.nested(entry, "value") {
        Some(policy) => queue_policy(reader, policy, "priority_queue_policy.value."),
        None => QueuePolicy::default(),
    };
    Some(LevelPolicy {
        level: u32::try_from(level?).ok()?,
        timeout_action: policy.timeout_action,
        default_timeout_microseconds: policy.default_timeout_microseconds,
        allow_timeout_override: policy.allow_timeout_override,
        max_queue_size: policy.max_queue_size,
    })
}

/// `preserve_ordering` excludes what would reorder requests.
fn ordering(reader: &mut Reader, message: &Message, batching: &Batching) {
    let Some(field) = message.fields.iter().find(|field| field.name == "preserve_ordering") else {
        return;
    };
    let help = "remove one of them: Triton does not load such a file";
    if batching.preserve_ordering && batching.priority_levels > 1 {
        let what = "preserve_ordering excludes more than one priority level";
        reader.problem(field.span.start, what, help);
    }
    let levels = batching.levels.iter().map(|p| (p.timeout_action, p.default_timeout_microseconds));
    let default = (batching.policy.timeout_action, batching.policy.default_timeout_microseconds);
    let mut all = levels.chain([default]);
    let delays = all.any(|(action, timeout)| action == TimeoutAction::Delay && timeout > 0);
    if batching.preserve_ordering && delays {
        let what = "preserve_ordering excludes a timeout whose action is DELAY";
        reader.problem(field.span.start, what, help);
    }
}

fn instances(reader: &mut Reader, root: &Message) -> Instances {
    let groups = root.all("instance_group");
    let Some(first) = groups.first() else { return Instances::default() };
    let mut sum = Instances { count: 0, implied: false, per_gpu: false, ..Instances::default() };
    for value in &groups {
        if let Some(message) = reader.as_message(value, "instance_group") {
            group(reader, message, &mut sum);
        }
    }
    if sum.count == 0 && sum.passive {
        reader.problem(
            first.span.start,
            "every instance group is passive, so nothing runs",
            "import a configuration with an active group",
        );
    }
    sum.count = sum.count.max(1);
    sum
}

fn group(reader: &mut Reader, message: &Message, sum: &mut Instances) {
    reader.survey(message, "instance_group.", GROUP);
    let range = i128::from(i32::MIN)..=i128::from(i32::MAX);
    let count = reader.number(message, "count", range).unwrap_or(1);
    let kind = reader.choice(message, "kind", &KINDS).unwrap_or("KIND_AUTO");
    let gpus = message.all("gpus");
    if let (Some(gpu), "KIND_CPU" | "KIND_MODEL") = (gpus.first(), kind) {
        let what = format!("a group of {kind} names GPUs");
        reader.problem(gpu.span.start, what, "remove gpus: Triton does not load such a file");
    }
    for gpu in &gpus {
        reader.integer(gpu, "gpus", 0..=i128::from(i32::MAX));
    }
    if let Some(field) = message.fields.iter().find(|field| field.name == "rate_limiter") {
        reader.problem(
            field.span.start,
            "the rate limiter is not simulated: it holds batches back for named resources",
            "remove rate_limiter to simulate the server without it, as it runs by default \
             (--rate-limit=off)",
        );
    }
    if reader.flag(message, "passive") {
        sum.passive = true;
        return;
    }
    sum.raised |= count < 1;
    sum.per_gpu |= gpus.is_empty() && matches!(kind, "KIND_AUTO" | "KIND_GPU");
    let count = u32::try_from(count.max(1)).unwrap_or(1);
    let gpus = u32::try_from(gpus.len().max(1)).unwrap_or(u32::MAX);
    sum.count = sum.count.saturating_add(count.saturating_mul(gpus));
}

/// Whether requests of different shapes can meet, and what then happens.
fn inputs(model: &mut Model, reader: &mut Reader, root: &Message) {
    for value in root.all("input") {
        let Some(input) = reader.as_message(value, "input") else { continue };
        let ragged = reader.flag(input, "allow_ragged_batch");
        let variable = input.all("dims").iter().any(|dim| dim.kind == Kind::Integer(-1));
        model.ragged |= ragged;
        model.same_shapes |= (variable && !ragged) || reader.flag(input, "is_shape_tensor");
        model.optional |= reader.flag(input, "optional");
    }
}

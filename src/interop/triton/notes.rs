//! What a person should know about one configuration: what the server makes of it, and what the
//! scenario cannot show or, with the textbook policy, does otherwise.

use super::Rule;
use super::model::{Batching, Model};
use crate::policy::TimeoutAction;

/// The notes on a model, the most important first.
pub(super) fn notes(model: &Model, rule: Rule) -> Vec<String> {
    let mut notes = Vec::new();
    match (&model.batching, model.max_batch_size.unwrap_or(0)) {
        (Some(batching), 0..) if rule == Rule::Triton => simulated(&mut notes, model, batching),
        (Some(batching), 2..) => batches(&mut notes, model, batching),
        (Some(batching), _) => {
            notes.push(
                "max_batch_size is 0 or 1, so dynamic_batching holds one item a batch; the \
                 policy is `none`."
                    .to_owned(),
            );
            queue(&mut notes, batching);
        }
        (None, _) => notes.push(
            "Without dynamic_batching every request goes to an instance by itself; the policy \
             is `none`. A dynamic_batching section, even an empty one, turns batching on."
                .to_owned(),
        ),
    }
    if model.max_batch_size.is_none() {
        notes.push(
            "max_batch_size is absent, which means 0, no batching. A server that completes \
             configurations by itself may set it (and turn dynamic batching on); import the \
             configuration that the running server reports."
                .to_owned(),
        );
    }
    instances(&mut notes, model);
    shapes(&mut notes, model, rule);
    notes
}

/// What the policy `triton` does, and what it needs to be told.
fn simulated(notes: &mut Vec<String>, model: &Model, batching: &Batching) {
    let cap = model.max_batch_size.unwrap_or(0).max(1);
    if batching.prefetches() {
        let ahead = u64::from(model.instances.count).saturating_mul(2);
        notes.push(format!(
            "Look-ahead: Triton forms up to {ahead} batches (2 per instance) before an instance \
             is free. {}",
            if batching.delay_us == 0 {
                "With delay 0 the last of them grows until it has a preferred size."
            } else {
                "With a delay such a batch is as good as frozen: what arrives during a pass waits \
                 for the pass after the next. Delay 0 or any queue policy ends that."
            }
        ));
    } else {
        notes.push(
            "With a timeout, a queue limit or priorities Triton forms nothing ahead. After a \
             completion its batcher can then sleep with work queued and an instance idle, until \
             the next arrival or for up to 500 ms; how often depends on the host. Set idle_stall \
             to simulate it (default 0)."
                .to_owned(),
        );
    }
    if batching.delay_us == 0 {
        delay_zero(notes, batching, Rule::Triton);
    } else if let Some(largest) = batching.preferred.last() {
        several_preferred(notes, batching);
        if *largest < cap && batching.prefetches() {
            notes.push(format!(
                "Preferred size plus one: under load a batch that waits at {largest} takes \
                 exactly one more request, so sizes of {} are common.",
                largest.saturating_add(1)
            ));
        }
    }
    notes.push(
        "Batches count items; a request here carries one unless `items` of its source says \
         otherwise."
            .to_owned(),
    );
    let policy = &batching.policy;
    if policy.max_queue_size > 0 {
        notes.push(
            "max_queue_size counts requests that no batch has taken, not those in execution, and \
             applies to each priority level by itself."
                .to_owned(),
        );
    }
    if policy.allow_timeout_override {
        notes.push(
            "allow_timeout_override: give sources the `timeout` their requests ask for. It can \
             only shorten the default timeout, and without one it only switches look-ahead off."
                .to_owned(),
        );
    }
    if batching.priority_levels > 0 {
        notes.push(format!(
            "{} priority levels: give sources the `priority` their requests ask for; all are at \
             the default level otherwise. A higher level is served strictly first.",
            batching.priority_levels
        ));
    }
    if batching.preserve_ordering {
        notes.push(
            "preserve_ordering holds answers back until earlier ones are out, up to release \
             2.60; later releases have the key and no such order."
                .to_owned(),
        );
    }
}

fn batches(notes: &mut Vec<String>, model: &Model, batching: &Batching) {
    let cap = model.max_batch_size.unwrap_or(0);
    if batching.prefetches() {
        let ahead = u64::from(model.instances.count).saturating_mul(2);
        notes.push(format!(
            "Look-ahead: Triton forms up to {ahead} batches (2 per instance) before an instance \
             is free; the policy here forms one when an instance is free, and fills it better."
        ));
    } else {
        notes.push(
            "Idle stall: with a timeout, a queue limit or priorities Triton forms nothing ahead, \
             and after a completion its batcher can sleep with work queued and an instance idle, \
             until the next arrival or for up to 500 ms (2.51; p99 21 ms became 90 ms at a low \
             rate). Not simulated: real tails can be far longer."
                .to_owned(),
        );
    }
    if batching.delay_us == 0 {
        delay_zero(notes, batching, Rule::Textbook);
    } else {
        notes.push(
            "Growth and merging: a batch that its delay formed while all instances were busy \
             usually grows no further until the next preferred size is queued (the wake gate); \
             an instance that picks it up merges the batches behind it that are older than the \
             delay. The policy here takes what is queued when the instance is free."
                .to_owned(),
        );
        preferred(notes, batching, cap);
    }
    notes.push(
        "Batches count items: a request that carries several items fills several places. Here \
         every request carries one."
            .to_owned(),
    );
    queue(notes, batching);
}

fn delay_zero(notes: &mut Vec<String>, batching: &Batching, rule: Rule) {
    notes.push(
        "Delay 0 is greedy, not unbatched: a free instance starts at once, even with one \
         request. While all are busy Triton fills one batch after another, and merges none."
            .to_owned(),
    );
    if let Some(largest) = batching.preferred.last() {
        notes.push(format!(
            "Delay 0 with preferred sizes: a batch that reaches a preferred size is closed, so \
             none exceeds {largest}, whatever max_batch_size says{}.",
            if rule == Rule::Textbook { "; the policy is capped there" } else { "" }
        ));
    }
    several_preferred(notes, batching);
}

/// Which of several preferred sizes leaves.
fn several_preferred(notes: &mut Vec<String>, batching: &Batching) {
    if batching.preferred.len() > 1 {
        notes.push(
            "Several preferred sizes: Triton looks at every arrival, so on a trickle it leaves at \
             the smallest; with a backlog, at the largest it can fill."
                .to_owned(),
        );
    }
}

fn preferred(notes: &mut Vec<String>, batching: &Batching, cap: u32) {
    let Some(largest) = batching.preferred.last() else { return };
    several_preferred(notes, batching);
    notes.push(
        "Preferred sizes hold only until the delay is over: then Triton takes everything that \
         fits, where the policy here still takes the largest preferred size it can fill."
            .to_owned(),
    );
    if *largest < cap {
        notes.push(format!(
            "Preferred size plus one: under overload a batch waiting at {largest} takes exactly \
             one more request, so sizes of {} are common; not simulated.",
            largest.saturating_add(1)
        ));
    }
}

/// Limits, timeouts, priorities, order.
fn queue(notes: &mut Vec<String>, batching: &Batching) {
    let policy = &batching.policy;
    if policy.max_queue_size > 0 {
        notes.push(
            "max_queue_size counts requests that no batch has taken, not those in execution, and \
             applies to each priority level by itself."
                .to_owned(),
        );
    }
    if policy.default_timeout_microseconds > 0 && policy.timeout_action == TimeoutAction::Delay {
        notes.push(
            "timeout_action DELAY serves expired requests last instead of refusing them. Not \
             simulated: no timeout is written."
                .to_owned(),
        );
    } else if policy.default_timeout_microseconds > 0 {
        notes.push(
            "Triton notices an expired request only when it looks through its queue, or every \
             500 ms while no instance is free, so refusals come late; a request already in a \
             batch always runs. Here a request that is too old when its turn comes has expired."
                .to_owned(),
        );
    }
    if policy.allow_timeout_override {
        notes.push(
            "allow_timeout_override lets a request shorten the default timeout and does nothing \
             without one, except that it switches look-ahead off. Not simulated."
                .to_owned(),
        );
    }
    if batching.priority_levels > 0 {
        notes.push(format!(
            "The {} priority levels are not simulated: requests are served in order of arrival. \
             Triton serves a higher level strictly first, and low levels can starve.",
            batching.priority_levels
        ));
    }
    if batching.preserve_ordering {
        notes.push(
            "preserve_ordering holds responses back until earlier ones are out; with several \
             instances that adds latency. Not simulated."
                .to_owned(),
        );
    }
}

fn instances(notes: &mut Vec<String>, model: &Model) {
    let instances = &model.instances;
    if instances.implied {
        notes.push(
            "No instance_group: Triton runs one instance per GPU. One GPU is assumed; set \
             server.instances."
                .to_owned(),
        );
    } else if instances.per_gpu {
        notes.push(
            "An instance_group without gpus applies its count to every GPU of the machine. One \
             GPU is assumed; multiply server.instances."
                .to_owned(),
        );
    }
    if instances.raised {
        notes.push("A count below 1 runs one instance.".to_owned());
    }
    if instances.passive {
        notes.push("Passive instance groups take no requests and are left out.".to_owned());
    }
    if instances.count > 1 {
        notes.push(
            "Instances that share a GPU slow each other down; here each has the device for \
             itself. Measure the cost with all of them busy."
                .to_owned(),
        );
    }
}

fn shapes(notes: &mut Vec<String>, model: &Model, rule: Rule) {
    if model.same_shapes {
        notes.push(format!(
            "Requests of different shapes never share a batch: a mismatch closes it, so mixed \
             lengths give small batches at any load. {}",
            match rule {
                Rule::Triton => "Give sources the `shape` of their requests.",
                Rule::Textbook => "Here all requests are alike.",
            }
        ));
    }
    if model.optional {
        notes.push(
            "Optional inputs: requests with other inputs never share a batch. Here all requests \
             have the same inputs."
                .to_owned(),
        );
    }
    if model.ragged {
        notes.push(
            "Ragged inputs: a batch costs by its total length, not only by its items. The cost \
             here counts items."
                .to_owned(),
        );
    }
    if model.cache {
        notes.push(
            "response_cache: a hit never reaches the queue. Lower the arrival rate by the hit \
             rate."
                .to_owned(),
        );
    }
    if model.decoupled {
        notes.push(
            "Decoupled model: a request may have many responses over time; here it ends with its \
             batch."
                .to_owned(),
        );
    }
}

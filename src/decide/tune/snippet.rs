//! The recommended setting in the words of servers.

use super::contest::Candidate;
use crate::outcome::tune::Snippet;
use crate::policy::{Anchor, Policy};
use crate::time::Nanos;

/// Fragments that say what the setting says; empty where no server is known to do the same.
pub(super) fn snippets(chosen: &Candidate) -> Vec<Snippet> {
    let policy = &chosen.policy.policy;
    match (policy, policy.textbook(), policy.cap()) {
        (Policy::None(_), ..) => vec![triton(chosen, 0, None)],
        (Policy::Triton(p), _, Some(cap)) => vec![triton(chosen, cap, Some(p.delay()))],
        // Greedy batching is a timer that never waits; TorchServe reads a delay of 0 in a file as
        // its default of 100 ms.
        (Policy::Greedy(_), _, Some(cap)) => {
            vec![triton(chosen, cap, Some(Nanos::ZERO)), torchserve(cap, Nanos(1_000_000))]
        }
        (Policy::Dynamic(_), Some(law), Some(cap)) if law.wait < Nanos::MAX => match law.anchor {
            Anchor::OldestArrival => vec![triton(chosen, cap, Some(law.wait))],
            Anchor::Pickup => vec![torchserve(cap, law.wait.max(Nanos(1_000_000)))],
        },
        _ => Vec::new(),
    }
}

fn triton(chosen: &Candidate, cap: u32, wait: Option<Nanos>) -> Snippet {
    let mut text = format!("max_batch_size: {cap}\n");
    if let Some(wait) = wait {
        let us = wait.0.div_ceil(1000);
        text += &format!("dynamic_batching {{\n  max_queue_delay_microseconds: {us}\n}}\n");
    }
    if chosen.server.instances > 1 {
        text += &format!("instance_group [ {{ count: {} }} ]\n", chosen.server.instances);
    }
    Snippet {
        server: "Triton, config.pbtxt".into(),
        text,
        note: if matches!(chosen.policy.policy, Policy::Triton(_)) {
            "Fields that are not shown stay as they are.".into()
        } else {
            "Triton forms the next batch before an instance is free, which the textbook rule does \
             not; kind = \"triton\" does."
                .into()
        },
    }
}

#[expect(clippy::cast_precision_loss, reason = "a setting in whole milliseconds")]
fn torchserve(cap: u32, wait: Nanos) -> Snippet {
    let ms = wait.0.div_ceil(1_000_000);
    let exact = wait.0 as f64 / 1e6;
    let rounded = if exact == ms as f64 {
        String::new()
    } else {
        format!(" Whole milliseconds only: {exact} ms became {ms}.")
    };
    Snippet {
        server: "TorchServe, model-config.yaml".into(),
        text: format!("batchSize: {cap}\nmaxBatchDelay: {ms}\n"),
        note: format!("maxBatchDelay counts in milliseconds from the pickup.{rounded}"),
    }
}

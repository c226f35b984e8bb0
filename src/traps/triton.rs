//! Traps of Triton's dynamic batcher.

use super::{LIGHT, Place, Trap, list, ms};
use crate::number::{count, rate};
use crate::policy::{Policy, QueuePolicy, TimeoutAction, Triton};

/// A limit that is never reached.
const NEVER_REACHED: u32 = 10_000;
/// The last release that keeps answers in order.
const LAST_ORDERED: u32 = 60;

/// Every trap of a configuration.
pub(super) fn traps(policy: &Triton, place: &Place<'_>) -> Vec<Trap> {
    [preferred_caps, delay_costs_a_pass, preferred_plus_one, override_void, limit_counts_waiting]
        .into_iter()
        .chain([late_expiry, shapes_split, idle_stall, ordering_void])
        .filter_map(|trap| trap(policy, place))
        .collect()
}

/// The largest preferred size, where that is below `max_batch_size`.
fn largest_preferred(policy: &Triton) -> Option<u32> {
    let largest = policy.preferred_batch_size.iter().max().copied()?;
    (largest < policy.max_batch_size).then_some(largest)
}

fn preferred_caps(policy: &Triton, place: &Place<'_>) -> Option<Trap> {
    let largest = largest_preferred(policy).filter(|_| policy.max_queue_delay_microseconds == 0)?;
    let cap = policy.max_batch_size;
    let what = format!(
        "preferred_batch_size {} with delay 0 never runs more than {largest}: a batch that reaches \
         a preferred size is closed, whatever max_batch_size {cap} says. At most {}/s are served; \
         batches of {cap} would serve {}/s.",
        list(&policy.preferred()),
        rate(place.capacity(largest)),
        rate(place.capacity(cap)),
    );
    let help = format!("leave preferred_batch_size out, or add {cap}");
    let free = Triton { preferred_batch_size: Vec::new(), ..policy.clone() };
    let trap = Trap::new("triton-preferred-caps", "preferred_batch_size", what, help);
    Some(trap.way_out("without preferred_batch_size", Policy::Triton(free)))
}

fn delay_costs_a_pass(policy: &Triton, place: &Place<'_>) -> Option<Trap> {
    let us = policy.max_queue_delay_microseconds;
    // Where shapes are enforced every arrival wakes the batcher, and what waits grows.
    let frozen = policy.prefetches() && !policy.enforce_shapes && policy.max_batch_size > 1;
    if us == 0 || !frozen || place.busy() < LIGHT {
        return None;
    }
    let cap = policy.max_batch_size;
    let what = format!(
        "max_queue_delay_microseconds {us} on the default path costs a whole service time under \
         load, here {} to {}: a batch is formed as soon as its oldest request is {} old, busy \
         instance or not, and does not grow after that; what arrives during a pass waits for the \
         pass after the next.",
        ms(place.pass_ms(1)),
        ms(place.pass_ms(cap)),
        ms(us_ms(us)),
    );
    let help = "a delay of 0 or a default_queue_policy with max_queue_size (even one that is never \
                reached) removes it; the latter with rare stalls of up to 500 ms";
    let eager = Triton { max_queue_delay_microseconds: 0, ..policy.clone() };
    let queue = QueuePolicy { max_queue_size: NEVER_REACHED, ..QueuePolicy::default() };
    let late = Triton { default_queue_policy: Some(queue), ..policy.clone() };
    let trap = Trap::new("triton-delay-costs-a-pass", "max_queue_delay_microseconds", what, help);
    Some(
        trap.way_out("max_queue_delay_microseconds 0", Policy::Triton(eager)).way_out(
            format!("max_queue_size {}", count(NEVER_REACHED.into())),
            Policy::Triton(late),
        ),
    )
}

fn preferred_plus_one(policy: &Triton, _: &Place<'_>) -> Option<Trap> {
    let largest = largest_preferred(policy)?;
    let applies =
        policy.max_queue_delay_microseconds > 0 && policy.prefetches() && !policy.enforce_shapes;
    if !applies {
        return None;
    }
    let what = format!(
        "preferred_batch_size {} below max_batch_size {}: under load a batch that waits at \
         {largest} takes exactly one more request, so that {} run together, a size that no engine \
         profile was made for.",
        list(&policy.preferred()),
        policy.max_batch_size,
        largest + 1,
    );
    let help = format!("set max_batch_size {largest}, or leave preferred_batch_size out");
    Some(Trap::new("triton-preferred-plus-one", "preferred_batch_size", what, help))
}

fn override_void(policy: &Triton, _: &Place<'_>) -> Option<Trap> {
    let void = |p: &QueuePolicy| p.allow_timeout_override && p.default_timeout_microseconds == 0;
    if !policy.levels().iter().any(void) {
        return None;
    }
    let what = "allow_timeout_override without default_timeout_microseconds is void: the timeout \
                of a request counts only where it is below the default, and there is none. All it \
                does is to turn look-ahead off.";
    let help = "set default_timeout_microseconds to the longest timeout that requests may ask for";
    Some(Trap::new("triton-override-void", "allow_timeout_override", what, help))
}

fn limit_counts_waiting(policy: &Triton, place: &Place<'_>) -> Option<Trap> {
    let running = policy.max_batch_size.saturating_mul(place.instances);
    let limits = policy.levels().into_iter().map(|p| p.max_queue_size);
    let limit = limits.filter(|limit| (1..=running).contains(limit)).min()?;
    let what = format!(
        "max_queue_size {limit} counts only waiting requests: up to {running} more are in \
         execution, and each priority level has its own count. So {} can be in the server at once.",
        u64::from(limit) * u64::from(policy.priority_levels.max(1)) + u64::from(running),
    );
    let help = "choose it by the wait that is bearable: requests ahead ÷ max_batch_size passes";
    Some(Trap::new("triton-limit-counts-waiting", "max_queue_size", what, help))
}

fn late_expiry(policy: &Triton, place: &Place<'_>) -> Option<Trap> {
    let rejects = |p: &QueuePolicy| {
        (p.timeout_action == TimeoutAction::Reject).then_some(p.default_timeout_microseconds)
    };
    let us = policy.levels().iter().filter_map(rejects).filter(|us| *us > 0).min()?;
    let pass = place.pass_ms(policy.max_batch_size);
    if us_ms(us) > 4.0 * pass {
        return None;
    }
    let what = format!(
        "default_timeout_microseconds {us}: Triton notices that a request has expired only when it \
         forms a batch, or every 500 ms while it cannot. A client hears of it up to a pass late, \
         here after up to {}, and a request that leaves the queue in time is always run.",
        ms(us_ms(us) + pass.min(500.0)),
    );
    let help = "give clients a timeout of their own, or limit the queue with max_queue_size";
    Some(Trap::new("triton-late-expiry", "default_timeout_microseconds", what, help))
}

fn shapes_split(policy: &Triton, place: &Place<'_>) -> Option<Trap> {
    let alike: f64 = place.shapes.iter().map(|share| share * share).sum();
    // Requests in a row of one shape, where shapes follow each other at random.
    let run = 1.0 / (1.0 - alike).max(1e-9);
    if !policy.enforce_shapes
        || place.shapes.len() < 2
        || run * 2.0 > f64::from(policy.max_batch_size)
    {
        return None;
    }
    let what = format!(
        "enforce_shapes with {} shapes: a batch ends where the shape changes, and order is kept, \
         so that runs of equal shapes are {run:.1} requests long on average at any load; most \
         batches are of 1 or 2, whatever max_batch_size {} says.",
        place.shapes.len(),
        policy.max_batch_size,
    );
    let help = "set allow_ragged_batch, pad requests to one shape, or serve each shape by a model \
                of its own";
    Some(Trap::new("triton-shapes-split", "enforce_shapes", what, help))
}

fn idle_stall(policy: &Triton, _: &Place<'_>) -> Option<Trap> {
    if policy.prefetches() || policy.idle_stall > 0.0 {
        return None;
    }
    let cause =
        if policy.priority_levels > 0 { "priority_levels" } else { "a default_queue_policy" };
    let what = format!(
        "{cause} turns look-ahead off, and then a wake-up can be lost when a pass ends: the server \
         idles with work queued until the next request, or for up to 500 ms. How often depends on \
         the host; idle_stall 0 simulates none."
    );
    let help =
        "measure it (the longest gap between batches while requests wait), and set idle_stall";
    Some(Trap::new("triton-idle-stall", "idle_stall", what, help))
}

fn ordering_void(policy: &Triton, _: &Place<'_>) -> Option<Trap> {
    if !policy.preserve_ordering || policy.keeps_order() {
        return None;
    }
    let what = format!(
        "preserve_ordering keeps no order in release {}: since 2.{} answers leave as batches end.",
        policy.release.as_deref().unwrap_or("2.51"),
        LAST_ORDERED + 1,
    );
    let help = "leave it out, and order answers in the client";
    Some(Trap::new("triton-ordering-void", "preserve_ordering", what, help))
}

#[expect(clippy::cast_precision_loss, reason = "for display")]
fn us_ms(us: u64) -> f64 {
    us as f64 / 1e3
}

//! Traces for ui.perfetto.dev and chrome://tracing: the JSON "Trace Event Format".
//!
//! One track for each instance with its batches as slices, one for arrivals, a counter of waiting
//! requests, and an arrow from each arrival to the batch that took it.

use crate::engine::{Flight, Pass};
use crate::time::Nanos;
use serde_json::{Value, json};

/// The one process of a trace.
const PID: u32 = 1;
/// The track of arrivals; instances follow.
const ARRIVALS: u32 = 0;
/// How long an arrival is shown, µs: arrows need a slice to begin in.
const TICK_US: f64 = 1.0;

/// Writes what happened within some spells of time (ns, from and to).
#[must_use]
pub fn trace(name: &str, flight: &Flight, dispatch: Nanos, spells: &[(u64, u64)]) -> Value {
    let spells = merged(spells);
    let within = |at: u64| spells.iter().any(|(from, to)| (*from..=*to).contains(&at));
    let mut events = vec![meta("process_name", ARRIVALS, name)];
    events.push(meta("thread_name", ARRIVALS, "arrivals"));
    let instances = flight.passes.iter().map(|p| p.slot + 1).max().unwrap_or(0);
    for slot in 0..instances {
        events.push(meta("thread_name", slot + 1, &format!("instance {slot}")));
    }
    let mut arrow = 0u64;
    for pass in &flight.passes {
        let end = pass.left_ns.saturating_add(pass.took_ns.unwrap_or(0));
        if within(pass.left_ns) || within(end) {
            events.push(slice(flight, pass, dispatch));
        }
        for member in flight.of(pass) {
            if within(member.arrival_ns) && within(pass.left_ns) {
                arrow += 1;
                events.extend(arrival(member.arrival_ns, pass, dispatch, arrow));
            }
        }
    }
    events.extend(depth(flight, within));
    json!({ "displayTimeUnit": "ms", "traceEvents": events })
}

/// Spells without overlaps, in order.
fn merged(spells: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut sorted = spells.to_vec();
    sorted.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (from, to) in sorted {
        match out.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => out.push((from, to)),
        }
    }
    out
}

#[expect(clippy::cast_precision_loss, reason = "the format's unit")]
fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn meta(what: &str, tid: u32, name: &str) -> Value {
    json!({ "ph": "M", "name": what, "pid": PID, "tid": tid, "args": { "name": name } })
}

fn begin_ns(pass: &Pass, dispatch: Nanos) -> u64 {
    pass.left_ns.saturating_add(dispatch.0)
}

fn slice(flight: &Flight, pass: &Pass, dispatch: Nanos) -> Value {
    let members = flight.of(pass);
    let oldest = members.iter().map(|m| m.arrival_ns).min().unwrap_or(pass.left_ns);
    json!({
        "ph": "X",
        "name": format!("{} ({})", pass.size, pass.reason.name()),
        "cat": "batch",
        "pid": PID,
        "tid": pass.slot + 1,
        "ts": us(begin_ns(pass, dispatch)),
        "dur": us(pass.took_ns.unwrap_or(0)),
        "args": {
            "size": pass.size,
            "requests": members.len(),
            "ran_as": pass.ran_as,
            "reason": pass.reason.name(),
            "oldest_waited_ms": Nanos(pass.left_ns - oldest).as_ms(),
        },
    })
}

/// An arrival, and the arrow to its batch.
fn arrival(at: u64, pass: &Pass, dispatch: Nanos, id: u64) -> [Value; 3] {
    let at = us(at);
    [
        json!({
            "ph": "X", "name": "arrival", "cat": "request", "pid": PID, "tid": ARRIVALS,
            "ts": at, "dur": TICK_US,
        }),
        json!({
            "ph": "s", "name": "request", "cat": "request", "id": id, "pid": PID, "tid": ARRIVALS,
            "ts": at,
        }),
        json!({
            "ph": "f", "bp": "e", "name": "request", "cat": "request", "id": id, "pid": PID,
            "tid": pass.slot + 1, "ts": us(begin_ns(pass, dispatch)),
        }),
    ]
}

/// How many requests wait, whenever that changes. Requests that were never run are not counted.
fn depth(flight: &Flight, within: impl Fn(u64) -> bool) -> Vec<Value> {
    let mut changes: Vec<(u64, i64)> = flight.members.iter().map(|m| (m.arrival_ns, 1)).collect();
    changes.extend(
        flight
            .passes
            .iter()
            .map(|p| (p.left_ns, -i64::try_from(p.members.len()).unwrap_or(i64::MAX))),
    );
    // What arrives at the instant at which a batch leaves is in it or waits.
    changes.sort_by_key(|(at, change)| (*at, -change.signum()));
    let (mut waiting, mut events) = (0, Vec::new());
    for (number, (at, change)) in changes.iter().enumerate() {
        waiting += change;
        let last_of_instant = changes.get(number + 1).is_none_or(|next| next.0 != *at);
        if last_of_instant && within(*at) {
            events.push(json!({
                "ph": "C", "name": "waiting", "pid": PID, "tid": ARRIVALS, "ts": us(*at),
                "args": { "requests": waiting },
            }));
        }
    }
    events
}

//! Server policies against scripts whose batches were derived by hand from the servers' rules, and
//! against the golden rows that all servers share. Everything is compared exactly.
//!
//! `tests/conformance/KIND.json` holds the scripts of a policy: parameters by the product's names,
//! a server, arrivals in milliseconds, and the batches that must come of them, with the reason in
//! a sentence. Members are numbers of arrivals.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_precision_loss, unreachable_pub)]

#[path = "common/journal.rs"]
mod journal;
#[path = "common/worlds.rs"]
mod worlds;

use batchsim::arrivals::{Items, Mark, Process, Replay, Trace};
use batchsim::policy::Policy;
use batchsim::record::Gone;
use batchsim::scenario::{Overhead, Scenario, Source};
use batchsim::study::Portion;
use batchsim::time::Nanos;
use journal::{Journal, Request};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Kinds whose scripts are here before their policy is.
const TO_COME: &[&str] = &[];

const SCRIPTS: &[(&str, &str)] = &[
    ("triton", include_str!("conformance/triton.json")),
    ("torchserve", include_str!("conformance/torchserve.json")),
    ("mosec", include_str!("conformance/mosec.json")),
    ("litserve", include_str!("conformance/litserve.json")),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    name: String,
    /// What it pins.
    axis: String,
    /// How its batches follow from the rules.
    why: String,
    policy: Value,
    server: ServerOf,
    arrivals: Vec<Arrival>,
    batches: Vec<Batch>,
    refused: Vec<usize>,
    expired: Vec<Expired>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerOf {
    instances: u32,
    fixed: Nanos,
    per_item: Nanos,
    #[serde(default)]
    overhead: OverheadOf,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct OverheadOf {
    inbound: Nanos,
    dispatch: Nanos,
    release: Nanos,
    release_per_request: Nanos,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
struct Arrival {
    t: f64,
    #[serde(flatten)]
    kind: Kind,
}

/// What a request says of itself.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
struct Kind {
    items: Option<u32>,
    priority: u32,
    shape: u32,
    timeout_ms: Option<f64>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Batch {
    start_ms: f64,
    size: u32,
    members: Vec<usize>,
    instance: Option<u32>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Expired {
    index: usize,
    at_ms: f64,
}

fn policy(kind: &str, params: &Value) -> Policy {
    let policy: Policy = serde_json::from_value(json!({ kind: params })).unwrap();
    policy.check().unwrap();
    policy
}

/// One recorded source for each kind of request, in order of appearance.
fn sources(arrivals: &[Arrival], inbound: Nanos) -> Vec<Source> {
    let mut kinds: Vec<Kind> = Vec::new();
    for arrival in arrivals {
        if !kinds.contains(&arrival.kind) {
            kinds.push(arrival.kind);
        }
    }
    let source = |kind: &Kind| {
        let of_kind = arrivals.iter().filter(|a| a.kind == *kind);
        // The servers' clocks start when the first client sends, not when its request is there.
        let times: Vec<Nanos> = of_kind.map(|a| Nanos::from_ms(a.t).plus(inbound)).collect();
        let mark = Mark { items: kind.items.unwrap_or(1), priority: kind.priority };
        let marks = vec![0; times.len()];
        let trace = Trace { arrivals: times, mark_table: vec![mark], marks, ..Trace::default() };
        let replay = Replay { file: "script".into(), format: None, columns: None, scale: None };
        Source {
            trace: Some(Arc::new(trace)),
            timeout: kind.timeout_ms.map(Nanos::from_ms),
            priority: kind.priority,
            items: Items::default(),
            shape: (kind.shape > 0).then(|| kind.shape.to_string()),
            ..worlds::source(Process::Trace(replay))
        }
    };
    kinds.iter().map(source).collect()
}

fn world(script: &Script, policy: Policy) -> Scenario {
    let cost = worlds::affine(script.server.fixed.as_ms(), script.server.per_item.as_ms());
    let mut world = worlds::world(worlds::poisson(1.0), cost, policy);
    let OverheadOf { inbound, dispatch, release, release_per_request } = script.server.overhead;
    world.arrivals = sources(&script.arrivals, inbound);
    world.servers[0].instances = script.server.instances;
    world.servers[0].overhead =
        Overhead { dispatch, release, release_per_request, ..Overhead::default() };
    world
}

fn run(world: &Scenario) -> Journal {
    let mut journal = Journal::default();
    let portion = Portion { replication: 0, measured: None, measure_from: Nanos::ZERO };
    let ending = worlds::bench(world).run(portion, &mut journal);
    assert_eq!(ending.stalled, None, "nothing may stall");
    journal
}

/// Numbers of the arrivals that a journal knows by time and source.
struct Numbers(BTreeMap<Request, Vec<usize>>);

impl Numbers {
    fn of(script: &Script) -> Self {
        let mut kinds: Vec<Kind> = Vec::new();
        let mut by_request: BTreeMap<Request, Vec<usize>> = BTreeMap::new();
        for (number, arrival) in script.arrivals.iter().enumerate() {
            let tag = kinds.iter().position(|k| *k == arrival.kind).unwrap_or_else(|| {
                kinds.push(arrival.kind);
                kinds.len() - 1
            });
            let at = Nanos::from_ms(arrival.t).plus(script.server.overhead.inbound);
            by_request.entry((at.0, tag as u8)).or_default().push(number);
        }
        Self(by_request)
    }

    /// The first of those alike that has not been asked for.
    fn take(&mut self, request: Request) -> usize {
        self.0.get_mut(&request).unwrap().remove(0)
    }
}

/// What happened, in the words of a script.
fn seen(script: &Script, journal: &Journal) -> (Vec<Batch>, Vec<usize>, Vec<Expired>) {
    let mut numbers = Numbers::of(script);
    let mut batches: Vec<Batch> = Vec::new();
    for b in &journal.batches {
        batches.push(Batch {
            start_ms: Nanos(b.start()).as_ms(),
            size: b.row.size,
            members: b.members.iter().map(|m| numbers.take(*m)).collect(),
            instance: Some(b.row.slot),
        });
    }
    let (mut refused, mut expired) = (Vec::new(), Vec::new());
    for left in &journal.left {
        let index = numbers.take(left.request);
        match left.why {
            Gone::Rejected => refused.push(index),
            Gone::Expired => expired.push(Expired { index, at_ms: Nanos(left.at).as_ms() }),
            why => panic!("{}: request {index} is {why:?}", script.name),
        }
    }
    expired.sort_by_key(|e| e.index);
    (batches, refused, expired)
}

fn scripts(kind: &str, text: &str) -> Vec<Script> {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{kind}.json: {e}"))
}

#[test]
fn every_script_comes_out_as_derived() {
    let mut wrong = Vec::new();
    for (kind, text) in SCRIPTS.iter().filter(|(kind, _)| !TO_COME.contains(kind)) {
        for script in scripts(kind, text) {
            let world = world(&script, policy(kind, &script.policy));
            let (batches, refused, expired) = seen(&script, &run(&world));
            let mut wanted = script.batches.clone();
            for (wanted, seen) in wanted.iter_mut().zip(&batches) {
                wanted.instance = wanted.instance.or(seen.instance);
                // Who gave up during the pass is paid for, and not answered by it.
                wanted.members.retain(|m| {
                    seen.members.contains(m) || !script.expired.iter().any(|e| e.index == *m)
                });
            }
            if (&batches, &refused, &expired) != (&wanted, &script.refused, &script.expired) {
                wrong.push(format!(
                    "{}\n  seen   {batches:?} {refused:?} {expired:?}\n  wanted {wanted:?} {:?} {:?}",
                    script.name, script.refused, script.expired
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn scripts_are_many_distinct_and_reasoned() {
    for (kind, text) in SCRIPTS {
        let scripts = scripts(kind, text);
        assert!(scripts.len() >= 8, "{kind}");
        let mut names: Vec<&str> = scripts.iter().map(|s| s.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), scripts.len(), "{kind}");
        for s in &scripts {
            assert!(s.why.len() > 20 && !s.axis.is_empty(), "{}", s.name);
            // Every request is in one batch or refused; one that expires may be in a batch too.
            let mut all: Vec<usize> = s.batches.iter().flat_map(|b| b.members.clone()).collect();
            all.extend(&s.refused);
            let outside = |e: &&Expired| !all.contains(&e.index);
            let late: Vec<usize> = s.expired.iter().filter(outside).map(|e| e.index).collect();
            all.extend(late);
            all.sort_unstable();
            assert!(all.iter().copied().eq(0..s.arrivals.len()), "{}", s.name);
        }
        let known = Policy::KINDS.contains(kind);
        assert_ne!(known, TO_COME.contains(kind), "take {kind} off the list of those to come");
    }
}

// --- the golden rows ---

/// 30 arrivals every 1.1 ms, 12 every 4.1 ms, one at 3.3 ms.
const TRACES: &[(&str, usize, f64, f64)] =
    &[("A", 30, 0.0, 1.1), ("B", 12, 0.0, 4.1), ("C", 1, 3.3, 0.0), ("D", 40, 0.0, 0.7)];

#[derive(Clone, Copy)]
struct Row {
    kind: &'static str,
    trace: &'static str,
    params: &'static str,
    /// Start in ms and size of each batch.
    batches: &'static str,
    /// Mean latency, greatest latency, end of the last pass; ms.
    mean: Option<f64>,
    greatest: Option<f64>,
    end: Option<f64>,
}

const PAIRS: &str = "(0,1) (8.5,2) (17.5,2) (26.5,2) (35.5,2) (44.5,2) (53.5,1)";
const TS: &str = r#"{"batchSize": 8, "maxBatchDelay": 5}"#;
const TS0: &str = r#"{"batchSize": 8, "maxBatchDelay": 0}"#;
const MO: &str = r#"{"max_batch_size": 8, "max_wait_time": 5, "timer_extra": "0ms"}"#;
const LI: &str = r#"{"max_batch_size": 8, "batch_timeout": 0.005}"#;
const LI0: &str = r#"{"max_batch_size": 8}"#;
const TR0: &str = r#"{"max_batch_size": 8}"#;
const TR: &str = r#"{"max_batch_size": 8, "max_queue_delay_microseconds": 5000}"#;
const TR_SHAPES: &str = r#"{"max_batch_size": 8, "max_queue_delay_microseconds": 5000,
    "enforce_shapes": true}"#;
const TR_LIMIT: &str = r#"{"max_batch_size": 8, "max_queue_delay_microseconds": 5000,
    "default_queue_policy": {"max_queue_size": 100000}}"#;

const fn row(
    kind: &'static str,
    trace: &'static str,
    params: &'static str,
    batches: &'static str,
    [mean, greatest, end]: [Option<f64>; 3],
) -> Row {
    Row { kind, trace, params, batches, mean, greatest, end }
}

const fn all(mean: f64, greatest: f64, end: f64) -> [Option<f64>; 3] {
    [Some(mean), Some(greatest), Some(end)]
}

const fn mean(mean: f64) -> [Option<f64>; 3] {
    [Some(mean), None, None]
}

const NO: [Option<f64>; 3] = [None; 3];

const LATE: &str = "(5,5) (15.5,8) (27.5,8) (39.5,8) (51.5,1)";
const AGAIN: &str = "(5,5) (15.5,8) (27.5,8) (39.5,8) (56.5,1)";
const THREES: &str = "(5,2) (19,3) (33.5,4) (48.5,3)";

const GOLDEN: &[Row] = &[
    row("triton", "A", TR0, "(0,1) (8.5,7) (20,8) (32,8) (44,6)", all(20.27, 28.6, 55.0)),
    row("triton", "A", TR, "(5,5) (15.5,5) (26,8) (38,5) (48.5,7)", all(23.18, 34.7, 60.0)),
    row("triton", "A", TR_SHAPES, LATE, all(20.23, 28.4, 60.0)),
    row("triton", "A", TR_LIMIT, LATE, all(20.23, 28.4, 60.0)),
    row("triton", "B", TR0, PAIRS, mean(12.91)),
    row("triton", "B", TR_LIMIT, "(5,2) (14,2) (23,2) (32,2) (41,3) (50.5,1)", mean(13.33)),
    row("triton", "B", TR, "(5,2) (14,2) (23,2) (32,2) (41,2) (50,2)", mean(13.95)),
    row("triton", "C", TR, "(8.3,1)", NO),
    row("triton", "C", TR0, "(3.3,1)", NO),
    row(
        "triton",
        "A",
        r#"{"max_batch_size": 16, "preferred_batch_size": [4]}"#,
        "(0,1) (8.5,4) (18.5,4) (28.5,4) (38.5,4) (48.5,4) (58.5,4) (68.5,4) (78.5,1)",
        NO,
    ),
    row(
        "triton",
        "A",
        r#"{"max_batch_size": 8, "preferred_batch_size": [4, 8]}"#,
        "(0,1) (8.5,4) (18.5,4) (28.5,8) (40.5,8) (52.5,4) (62.5,1)",
        NO,
    ),
    row(
        "triton",
        "D",
        r#"{"max_batch_size": 16, "preferred_batch_size": [4],
            "max_queue_delay_microseconds": 20000}"#,
        "(2.1,4) (12.1,5) (22.6,5) (33.1,5) (43.6,9) (56.1,12)",
        NO,
    ),
    row(
        "torchserve",
        "A",
        TS,
        "(5.4,5) (15.9,8) (27.9,8) (39.9,8) (56.9,1)",
        all(20.80, 33.5, 65.4),
    ),
    row(
        "torchserve",
        "A",
        TS0,
        "(0,1) (8.5,2) (17.5,2) (26.5,2) (35.5,2) (44.5,2) (53.5,2) (62.5,2) (71.5,2) (80.5,2) \
         (89.5,2) (98.5,2) (107.5,2) (116.5,2) (125.5,2) (134.5,1)",
        all(60.03, 111.1, 143.0),
    ),
    row("torchserve", "B", TS0, PAIRS, mean(12.91)),
    row("torchserve", "B", TS, "(5.1,2) (19.4,3) (33.8,4) (48.1,3)", mean(16.02)),
    row("torchserve", "C", TS, "(8.3,1)", NO),
    row("torchserve", "C", TS0, "(3.3,1)", NO),
    row("mosec", "A", MO, AGAIN, all(20.40, 33.1, 65.0)),
    row("mosec", "B", MO, THREES, mean(15.91)),
    row("mosec", "C", MO, "(8.3,1)", NO),
    row("litserve", "A", LI, AGAIN, all(20.40, 33.1, 65.0)),
    row("litserve", "B", LI, THREES, mean(15.91)),
    row("litserve", "B", LI0, PAIRS, mean(12.91)),
    row("litserve", "C", LI, "(5,1)", NO),
    row("litserve", "C", LI0, "(3.3,1)", NO),
];

/// Batches, mean latency, greatest latency and end of a golden row, in its own roundings.
fn golden(row: &Row) -> (String, [f64; 3]) {
    let (_, n, first, gap) = *TRACES.iter().find(|t| t.0 == row.trace).unwrap();
    let plain = |i: usize| Arrival { t: first + gap * i as f64, kind: Kind::default() };
    let params: Value = serde_json::from_str(row.params).unwrap();
    let mut world =
        worlds::world(worlds::poisson(1.0), worlds::affine(8.0, 0.5), policy(row.kind, &params));
    world.arrivals = sources(&(0..n).map(plain).collect::<Vec<_>>(), Nanos::ZERO);
    let journal = run(&world);
    let tenth = |ms: f64| (ms * 10.0).round() / 10.0;
    let batches: Vec<String> = journal
        .batches
        .iter()
        .map(|b| format!("({},{})", tenth(Nanos(b.start()).as_ms()), b.row.size))
        .collect();
    let latencies: Vec<f64> = journal
        .batches
        .iter()
        .flat_map(|b| b.members.iter().map(|m| Nanos(b.done() - m.0).as_ms()))
        .collect();
    assert_eq!(latencies.len(), n);
    let mean = latencies.iter().sum::<f64>() / n as f64;
    let greatest = latencies.iter().copied().fold(0.0, f64::max);
    (batches.join(" "), [mean, greatest, Nanos(journal.ended).as_ms()])
}

#[test]
fn golden_rows() {
    let mut wrong = Vec::new();
    for row in GOLDEN.iter().filter(|row| !TO_COME.contains(&row.kind)) {
        let (batches, seen) = golden(row);
        let wanted = [row.mean, row.greatest, row.end];
        let digits = [0.005, 0.05, 0.05];
        let close = (0..3)
            .all(|i| wanted[i].is_none_or(|wanted| (seen[i] - wanted).abs() <= digits[i] + 1e-9));
        if batches != row.batches || !close {
            let Row { kind, trace, params, batches: wanted, .. } = *row;
            wrong.push(format!("{kind} {trace} {params}\n  {batches} {seen:?}\n  {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

//! Recorded requests through a policy, every latency kept.

use super::Model;
use crate::arrivals::{Items, Mark, Process, Replay, Trace};
use crate::record::{BatchRow, Recorder};
use crate::recording::Recording;
use crate::scenario::{End, Labelled, Run, Scenario, Source, Warmup};
use crate::study::{Bench, Engine, Portion};
use crate::time::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Replayed {
    /// Latencies of answered requests.
    pub(super) latencies_ns: Vec<u64>,
    /// Batches by size.
    pub(super) sizes: BTreeMap<u32, u64>,
}

impl Replayed {
    /// What was recorded.
    pub(super) fn recorded(recording: &Recording) -> Self {
        let mut sizes = BTreeMap::new();
        for batch in recording.batches() {
            *sizes.entry(batch.size).or_default() += 1;
        }
        let latencies_ns = recording.exchanges.iter().filter_map(|e| e.latency_ns()).collect();
        Self { latencies_ns, sizes }
    }
}

/// Keeps latencies and batch sizes; requests before `from_ns` are not measured.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    pub(super) kept: Replayed,
    pub(super) outside_ns: u64,
    pub(super) from_ns: u64,
    /// When the last answer left the server.
    pub(super) last_ns: u64,
}

impl Recorder for Keeper {
    fn completed(&mut self, batch: &BatchRow, arrivals: &[u64], _: &[u8], first: bool) {
        let answered = batch.answered_ns();
        self.last_ns = self.last_ns.max(answered);
        if first {
            *self.kept.sizes.entry(batch.size).or_default() += 1;
        }
        let measured = arrivals.iter().filter(|arrival| **arrival >= self.from_ns);
        self.kept.latencies_ns.extend(measured.map(|arrival| answered - arrival + self.outside_ns));
    }
}

/// The requests of a recording as arrivals.
pub(super) fn trace_of(recording: &Recording) -> Result<Trace, String> {
    let mark = |e: &crate::recording::Exchange| Mark { items: e.items, priority: e.priority };
    let mut table: Vec<Mark> = recording.exchanges.iter().map(mark).collect();
    table.sort_unstable();
    table.dedup();
    if table.len() > 256 {
        return Err(format!(
            "requests carry {} different item counts and priorities, and 256 can be told apart",
            table.len()
        ));
    }
    let number = |e| u8::try_from(table.binary_search(&mark(e)).unwrap_or(0)).unwrap_or(u8::MAX);
    let plain = table == [Mark { items: 1, priority: 0 }];
    let marks = if plain { Vec::new() } else { recording.exchanges.iter().map(number).collect() };
    Ok(Trace {
        arrivals: recording.exchanges.iter().map(|e| Nanos(e.send_ns)).collect(),
        mark_table: if plain { Vec::new() } else { table },
        marks,
        ..Trace::default()
    })
}

/// A scenario of one source, for one model.
pub(super) fn scenario(model: &Model, process: Process, trace: Option<Arc<Trace>>) -> Scenario {
    Scenario {
        name: "validate".into(),
        seed: 42,
        run: Run {
            precision: 0.01,
            precision_given: false,
            requests: None,
            duration: None,
            replications: 1,
            warmup: Warmup::Time(Nanos::ZERO),
            max_requests: None,
            end: End::Flush,
            exact_latencies: true,
        },
        curve: None,
        arrivals: vec![Source {
            name: None,
            class: None,
            timeout: model.timeout,
            priority: 0,
            items: Items::default(),
            shape: None,
            process,
            trace,
        }],
        servers: vec![model.server.clone()],
        client: model.client,
        policies: vec![Labelled {
            label: model.label.clone(),
            guard: false,
            policy: model.policy.clone(),
        }],
        thresholds: Vec::new(),
        sweep: Vec::new(),
        tune: None,
    }
}

/// The recorded requests through a model.
pub(super) fn replay(trace: &Arc<Trace>, model: &Model) -> Replayed {
    let file = String::new();
    let process = Process::Trace(Replay { file, format: None, columns: None, scale: None });
    let scenario = scenario(model, process, Some(Arc::clone(trace)));
    let portion = Portion { replication: 0, measured: None, measure_from: Nanos::ZERO };
    run(&scenario, model, portion).kept
}

/// One run, into a keeper.
pub(super) fn run(scenario: &Scenario, model: &Model, portion: Portion) -> Keeper {
    let bench =
        Bench { scenario, server: &model.server, policy: &model.policy, engine: Engine::Auto };
    let outside_ns = scenario.outside(&model.server).0;
    let mut keeper = Keeper { outside_ns, from_ns: portion.measure_from.0, ..Keeper::default() };
    bench.run(portion, &mut keeper);
    keeper
}

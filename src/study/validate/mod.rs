//! `validate`: what a server was sent goes through a policy once more, and what comes of it is
//! held against what was recorded, beside the textbook rule with the same cap, wait and
//! overheads.

mod fit;
mod frozen;
mod loads;
mod numbers;
mod replay;
mod server;

pub use fit::fit;
pub use frozen::{FROZEN, Frozen, Path, frozen};
pub use loads::{LoadTask, Pacing, validate_loads};
pub use server::{policy_of, textbook};

use super::run::{policy_info, tool};
use crate::outcome::{OverheadMs, RecordingInfo, SCHEMA, Tolerance, Validation};
use crate::policy::Policy;
use crate::recording::{Recording, Repeat};
use crate::scenario::{Client, Labelled, Overhead, Server};
use crate::time::Nanos;
use numbers::{distance, errors, misses, observation};
use replay::{Replayed, replay, trace_of};
use std::sync::Arc;

/// What predicts, and where its overheads come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Its label.
    pub label: String,
    /// The policy.
    pub policy: Policy,
    /// Instances, cost, overheads, queue limit.
    pub server: Server,
    /// Delays outside the server.
    pub client: Client,
    /// A request older than this when it is taken has expired.
    pub timeout: Option<Nanos>,
    /// Where the overheads come from, in words.
    pub source: String,
}

impl Model {
    /// The model of the server that a recording names, with the frozen overheads of its path.
    ///
    /// # Errors
    /// The recording names no server, or one that no policy mirrors, or settings that the policy
    /// does not have; in words.
    pub fn of_recording(recording: &Recording) -> Result<Self, String> {
        let Some(setup) = &recording.setup else {
            return Err(format!("the recording {} says nothing of its server", recording.name));
        };
        let policy = policy_of(setup)?;
        policy.check().map_err(|bad| format!("{}: {}", bad.key, bad.what))?;
        let mut server = server::server_of(setup);
        let mut source = "none".to_owned();
        if let Some(found) = frozen(&policy) {
            server.overhead = found.overhead;
            source = found.source();
        }
        let client = Client::default();
        Ok(Self { label: setup.server.clone(), policy, server, client, timeout: None, source })
    }

    /// The same server under the textbook rule, with the limits that the policy sets itself.
    #[must_use]
    pub fn textbook(&self) -> Self {
        let limits = server::limits(&self.policy);
        let mut server = self.server.clone();
        server.queue_limit = server.queue_limit.or(limits.queue);
        Self {
            label: "textbook".into(),
            policy: textbook(&self.policy),
            server,
            timeout: self.timeout.or(limits.timeout),
            ..self.clone()
        }
    }

    fn info(&self) -> crate::outcome::PolicyInfo {
        let policy =
            Labelled { label: self.label.clone(), guard: false, policy: self.policy.clone() };
        policy_info(self.label.clone(), &policy)
    }

    /// The overheads in milliseconds.
    #[must_use]
    pub fn overhead_ms(&self) -> OverheadMs {
        overhead_ms(&self.server.overhead, self.source.clone())
    }
}

/// Overheads in milliseconds.
fn overhead_ms(overhead: &Overhead, source: String) -> OverheadMs {
    OverheadMs {
        inbound: overhead.inbound.as_ms(),
        dispatch: overhead.dispatch.as_ms(),
        release: overhead.release.as_ms(),
        release_per_request: overhead.release_per_request.as_ms(),
        response: overhead.response.as_ms(),
        source,
    }
}

/// Replays a recording through a model and through the textbook rule.
///
/// # Errors
/// Nothing was answered, or requests carry more than 256 different item counts and priorities,
/// or an item count that no batch holds; in words.
pub fn validate(recording: &Recording, model: &Model) -> Result<Validation, String> {
    let trace = Arc::new(trace_of(recording)?);
    let textbook = model.textbook();
    let recorded = Replayed::recorded(recording);
    if recorded.latencies_ns.is_empty() {
        return Err(format!("no request of {} was answered", recording.name));
    }
    let measured = observation(recorded);
    let (predicted, simple) = rayon::join(|| replay(&trace, model), || replay(&trace, &textbook));
    let (predicted, simple) = (observation(predicted), observation(simple));
    let relative_error = errors(&measured, &predicted);
    let tolerance = tolerance(recording, &model.policy);
    let setup = recording.setup.as_ref();
    let last = recording.exchanges.last().map_or(0, |e| e.send_ns);
    Ok(Validation {
        schema: SCHEMA,
        tool: tool(),
        study: "validate".into(),
        recording: RecordingInfo {
            name: recording.name.clone(),
            format: recording.format.to_owned(),
            server: setup.map(|s| s.server.clone()),
            version: setup.map(|s| s.version.clone()),
            description: setup.map(|s| s.description.clone()),
            requests: recording.exchanges.len() as u64,
            span_s: Nanos(last).as_s(),
        },
        policy: model.info(),
        textbook_policy: textbook.info(),
        overhead_ms: model.overhead_ms(),
        misses: misses(&relative_error, &tolerance),
        textbook_relative_error: errors(&measured, &simple),
        distance: distance(&measured, &predicted),
        textbook_distance: distance(&measured, &simple),
        relative_error,
        tolerance,
        measured,
        predicted,
        textbook: simple,
    })
}

/// How large an error may be: Triton, whose server process adds next to no noise, 2 % of the
/// median and the mean batch and 4 % of the tail, others twice that, and in any case twice the
/// difference of two recordings of the same arrivals.
fn tolerance(recording: &Recording, policy: &Policy) -> Tolerance {
    let scale = if matches!(policy, Policy::Triton(_)) { 1.0 } else { 2.0 };
    let spread = |of: fn(&Repeat) -> f64| match &recording.repeats {
        Some([first, second]) => 2.0 * ((of(first) - of(second)) / of(first)).abs(),
        None => 0.0,
    };
    Tolerance {
        mean_batch: spread(|r| r.mean_batch).max(0.02 * scale),
        p50: spread(|r| r.latency_ms[0]).max(0.02 * scale),
        p90: spread(|r| r.latency_ms[1]).max(0.04 * scale),
        p99: spread(|r| r.latency_ms[2]).max(0.04 * scale),
        accepted: 0.005,
    }
}

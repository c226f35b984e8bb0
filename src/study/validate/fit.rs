//! Overheads from recordings: inbound and response from a server that is nearly idle, the time
//! between two passes from one that is busy.
//!
//! *Lone* batches start on an idle server: their first request was sent after the last pass was
//! over (for servers whose workers look for work by themselves, 2 ms after). What their oldest
//! request took beyond the rule's delay is inbound and dispatch. *Back to back* are batches all
//! of whose requests were sent 0.5 ms before the last pass was over: what lies between the two
//! passes is release and dispatch. How dispatch shares these sums cannot be seen and is a
//! convention.

use super::frozen::{Path, path};
use super::{Model, overhead_ms};
use crate::outcome::{FitStep, FittedOverheads};
use crate::policy::Policy;
use crate::recording::{RecordedBatch, Recording, Setup};
use crate::scenario::Overhead;
use crate::stats::{line, mean, quantile_of_sorted};
use crate::time::Nanos;

/// Requests that were sent this long before a pass was over were surely waiting, ns.
const CLEAR_NS: u64 = 500_000;
/// Fewest observations behind a number.
const FEWEST: usize = 20;

/// How the overheads of a server are fitted.
struct Method {
    /// How long after a pass a lone request was sent at least, ns.
    idle_ns: u64,
    /// Share of the delay that a lone request waits.
    wait_share: f64,
    /// What the server's own timer adds to it, ns.
    timer_extra_ns: u64,
    /// Dispatch, ns: a convention.
    dispatch_ns: u64,
    /// Whether the response is the median of what was seen, else its mean.
    median_response: bool,
    /// What is taken of the time between passes.
    gap: Gap,
}

/// What is taken of the time between passes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gap {
    /// A line over the requests of the batch that ended, overdue batches, the top 1 % cut.
    PerRequest,
    /// The mean before full batches. Means, because they decide how much is served.
    Full,
    /// The mean before batches that are not full, less the delay that those wait.
    Partial,
}

fn method(policy: &Policy) -> Option<Method> {
    let worker = Method {
        idle_ns: 2_000_000,
        wait_share: 1.0,
        timer_extra_ns: 0,
        dispatch_ns: 0,
        median_response: true,
        gap: Gap::Full,
    };
    match policy {
        Policy::Triton(_) => Some(Method { idle_ns: 0, gap: Gap::PerRequest, ..worker }),
        Policy::TorchServe(_) => Some(Method { dispatch_ns: 1_200_000, ..worker }),
        Policy::Mosec(p) => Some(Method {
            timer_extra_ns: p.timer_extra.0,
            dispatch_ns: 450_000,
            median_response: false,
            ..worker
        }),
        Policy::LitServe(_) => Some(Method {
            // A lone request comes at any moment of a window.
            wait_share: 0.5,
            dispatch_ns: 500_000,
            median_response: false,
            gap: Gap::Partial,
            ..worker
        }),
        _ => None,
    }
}

/// A batch with the times that a fit needs, ns.
struct Timed {
    batch: RecordedBatch,
    start: u64,
    end: u64,
    first_sent: u64,
    last_sent: u64,
}

/// Batches with the one before them on their instance.
fn pairs(recording: &Recording) -> Result<Vec<(Timed, usize, u64)>, String> {
    let mut last: std::collections::BTreeMap<u32, (usize, u64)> = std::collections::BTreeMap::new();
    let mut found = Vec::new();
    for batch in recording.batches() {
        let (Some(start), Some(end)) = (batch.start_ns, batch.end_ns) else {
            return Err(format!(
                "{} does not say when passes start and end, and a fit needs that",
                recording.name
            ));
        };
        let sent = || batch.members.iter().map(|m| recording.exchanges[*m].send_ns);
        let (first_sent, last_sent) =
            (sent().min().unwrap_or_default(), sent().max().unwrap_or_default());
        let before = last.insert(batch.instance, (batch.members.len(), end));
        if let Some((requests, ended)) = before {
            found.push((Timed { batch, start, end, first_sent, last_sent }, requests, ended));
        }
    }
    if found.is_empty() {
        return Err(format!("{} has no batches, and a fit needs them", recording.name));
    }
    Ok(found)
}

/// Share of time that instances run passes.
#[expect(clippy::cast_precision_loss, reason = "a share")]
fn busy(recording: &Recording) -> Result<f64, String> {
    let pairs = pairs(recording)?;
    let run: u64 = pairs.iter().map(|(t, ..)| t.end.saturating_sub(t.start)).sum();
    let span = pairs.iter().map(|(t, ..)| t.end).max().unwrap_or(1);
    let instances = recording.setup.as_ref().map_or(1, |s| s.instances);
    Ok(run as f64 / span as f64 / f64::from(instances))
}

/// Fits the overheads of a server to recordings of it: the least busy gives inbound and response,
/// the busiest the time between passes.
///
/// # Errors
/// A recording says too little of server, batches or passes, or has too few batches of the kind
/// that is needed, or the recordings are of different servers; in words.
pub fn fit(recordings: &[Recording]) -> Result<FittedOverheads, String> {
    let mut ranked = Vec::new();
    for recording in recordings {
        ranked.push((busy(recording)?, recording));
    }
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some((_, light)), Some((_, full))) = (ranked.first(), ranked.last()) else {
        return Err("there are no recordings to fit to".into());
    };
    let (policy, light_policy) =
        (Model::of_recording(full)?.policy, Model::of_recording(light)?.policy);
    if policy.kind() != light_policy.kind() {
        let kinds = (light_policy.kind(), policy.kind());
        return Err(format!("these recordings are of two servers, {} and {}", kinds.0, kinds.1));
    }
    let Some(method) = method(&policy) else {
        return Err(format!("there is no way to fit {}", policy.kind()));
    };
    let setup = |r: &Recording| r.setup.clone().ok_or("no setup".to_owned());
    let mut steps = Vec::new();
    let inbound = lone(light, &setup(light)?, &method, &mut steps)?;
    dispatch(&method, &mut steps);
    let (release, per_request) = gaps(full, &setup(full)?, &method, &mut steps)?;
    let response = response(light, &method, &mut steps)?;
    let overhead = Overhead {
        inbound: rounded(inbound),
        dispatch: Nanos(method.dispatch_ns),
        release: rounded(release),
        release_per_request: rounded(per_request),
        response: rounded(response),
    };
    let path = match path(&policy) {
        Path::Only => "the only one",
        Path::Prefetch => "prefetch",
        Path::NoPrefetch => "no prefetch",
    };
    Ok(FittedOverheads {
        server: policy.kind().to_owned(),
        path: path.into(),
        overhead_ms: overhead_ms(&overhead, format!("{} and {}", light.name, full.name)),
        steps,
    })
}

/// To tenths of a microsecond.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn rounded(ns: f64) -> Nanos {
    Nanos(((ns.max(0.0) / 100.0).round() as u64) * 100)
}

fn enough(found: &[f64], what: &str, recording: &Recording) -> Result<(), String> {
    if found.len() >= FEWEST {
        return Ok(());
    }
    Err(format!("{} has {} {what}, and a fit needs {FEWEST}", recording.name, found.len()))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile_of_sorted(values, 0.5)
}

fn step(steps: &mut Vec<FitStep>, name: &str, ns: f64, of: (&Recording, usize), method: &str) {
    steps.push(FitStep {
        name: name.into(),
        ms: rounded(ns).as_ms(),
        recording: Some(of.0.name.clone()),
        samples: of.1 as u64,
        method: method.into(),
    });
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a run")]
fn since(later: u64, earlier: u64) -> f64 {
    later as f64 - earlier as f64
}

/// Inbound: what lone batches took beyond the delay, less dispatch.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a delay")]
fn lone(
    recording: &Recording,
    setup: &Setup,
    method: &Method,
    steps: &mut Vec<FitStep>,
) -> Result<f64, String> {
    let wait = setup.delay.0 as f64 * method.wait_share + method.timer_extra_ns as f64;
    let mut found: Vec<f64> = pairs(recording)?
        .iter()
        .filter(|(t, _, ended)| {
            t.first_sent > ended + method.idle_ns && t.batch.size < setup.max_batch
        })
        .map(|(t, ..)| since(t.start, t.first_sent) - wait)
        .collect();
    enough(&found, "batches that started on an idle server", recording)?;
    let n = found.len();
    let inbound = median(&mut found) - method.dispatch_ns as f64;
    let how = "median over lone batches of start − send of the oldest − delay − dispatch";
    step(steps, "inbound", inbound, (recording, n), how);
    Ok(inbound)
}

fn dispatch(method: &Method, steps: &mut Vec<FitStep>) {
    steps.push(FitStep {
        name: "dispatch".into(),
        ms: Nanos(method.dispatch_ns).as_ms(),
        recording: None,
        samples: 0,
        method: "a convention: only its sums with inbound and with release can be seen".into(),
    });
}

/// Release, and release per request.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds and counts of requests")]
fn gaps(
    recording: &Recording,
    setup: &Setup,
    method: &Method,
    steps: &mut Vec<FitStep>,
) -> Result<(f64, f64), String> {
    let delay = setup.delay.0;
    let waited = |t: &Timed, ended: u64| t.last_sent + CLEAR_NS < ended;
    let is_full = |t: &Timed| t.batch.size == setup.max_batch;
    let used = |(t, _, ended): &&(Timed, usize, u64)| {
        waited(t, *ended)
            && match method.gap {
                Gap::PerRequest => t.first_sent + delay + CLEAR_NS < *ended,
                Gap::Full => is_full(t),
                Gap::Partial => !is_full(t),
            }
    };
    let waits = if method.gap == Gap::Partial { delay as f64 } else { 0.0 };
    let pairs = pairs(recording)?;
    let point = |(t, requests, ended): &(Timed, usize, u64)| {
        (*requests as f64, since(t.start, *ended) - waits)
    };
    let mut points: Vec<(f64, f64)> = pairs.iter().filter(used).map(point).collect();
    let mut sorted: Vec<f64> = points.iter().map(|p| p.1).collect();
    enough(&sorted, "batches back to back", recording)?;
    let dispatch = method.dispatch_ns as f64;
    if method.gap == Gap::PerRequest {
        sorted.sort_by(f64::total_cmp);
        let most = quantile_of_sorted(&sorted, 0.99);
        points.retain(|p| p.1 <= most);
        let (base, slope) = line(&points);
        let of = (recording, points.len());
        let how = "least squares over the requests of the batch that ended, overdue batches back \
                   to back, top 1 % cut";
        step(steps, "release", base - dispatch, of, how);
        step(steps, "release_per_request", slope, of, how);
        return Ok((base - dispatch, slope));
    }
    let how = match method.gap {
        Gap::Full => "mean before full batches back to back, less dispatch",
        _ => "mean before batches back to back that are not full, less delay and dispatch",
    };
    let release = mean(&sorted) - dispatch;
    step(steps, "release", release, (recording, sorted.len()), how);
    Ok((release, 0.0))
}

/// Response: from the end of a pass to the answer.
fn response(
    recording: &Recording,
    method: &Method,
    steps: &mut Vec<FitStep>,
) -> Result<f64, String> {
    let mut found: Vec<f64> = recording
        .exchanges
        .iter()
        .filter_map(|e| Some(since(e.done_ns?, e.pass?.end_ns?)))
        .collect();
    enough(&found, "answers", recording)?;
    let n = found.len();
    let (value, how) = if method.median_response {
        (median(&mut found), "median of answer − end of pass")
    } else {
        (mean(&found), "mean of answer − end of pass")
    };
    step(steps, "response", value, (recording, n), how);
    Ok(value)
}

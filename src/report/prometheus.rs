//! Alert rules for Prometheus: what to watch for a setting, by the server's own metrics, with the
//! values that were simulated.

use super::{decimals, rate};
use crate::outcome::{Cell, Latency};
use std::fmt::Write as _;

/// Servers whose metrics are known, by kind of policy.
pub const WATCHED: &[&str] = &["triton", "torchserve", "mosec"];

/// Window of all rates.
const WINDOW: &str = "5m";
/// How long a condition must hold.
const FOR: &str = "10m";
/// A mean this much above what is expected is worth a look.
const ABOVE: f64 = 1.25;
/// A batch this much smaller than expected is.
const BELOW: f64 = 0.8;
/// Refused requests beyond those expected, as a share.
const REFUSED: f64 = 0.005;

/// One alert.
struct Rule {
    name: &'static str,
    expr: String,
    summary: String,
    expected: String,
}

/// What the rules are made from.
struct Facts<'a> {
    cell: &'a Cell,
    latency: &'a Latency,
    queue_ms: f64,
    /// Requests that wait, on average.
    waiting: f64,
    refused: f64,
}

/// The rules for one cell, as YAML; `model` is the model's name in the server's metrics.
///
/// # Errors
/// What is missing, and what to do: the server is not known, or nothing is expected of it.
pub fn prometheus(cell: &Cell, scenario: &str, model: &str) -> Result<String, (String, String)> {
    let label = &cell.policy.label;
    let (Some(latency), Some(queue)) = (&cell.latency_ms, &cell.queue_ms) else {
        return Err((
            format!("`{label}` has no latencies that could be expected: it is overloaded"),
            "lower the rate or raise the capacity, and watch that".to_owned(),
        ));
    };
    let offered = cell.requests.offered.max(1);
    let facts = Facts {
        cell,
        latency,
        queue_ms: queue.mean,
        waiting: cell.throughput_per_s * queue.mean / 1e3,
        refused: share(cell.requests.rejected + cell.requests.expired, offered),
    };
    let rules = match cell.policy.kind.as_str() {
        "triton" => triton(&facts, model),
        "torchserve" => torchserve(&facts, model),
        "mosec" => mosec(&facts),
        kind => {
            return Err((
                format!("the metrics of kind \"{kind}\" are not known"),
                format!("choose a policy of kind {}", WATCHED.join(" or ")),
            ));
        }
    };
    Ok(yaml(&facts, &rules, scenario, model))
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
fn share(part: u64, all: u64) -> f64 {
    part as f64 / all as f64
}

/// A text as YAML and PromQL both take it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out += "\\n",
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out + "\""
}

/// Four digits or so, without a separator.
fn number(value: f64) -> String {
    let places = match value.abs() {
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        v if v >= 1.0 => 3,
        _ => 5,
    };
    let text = format!("{value:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn ms(value: f64) -> String {
    format!("{} ms", decimals(value, 2))
}

/// Mean latency, load and capacity: rules that every server has.
fn shared(facts: &Facts<'_>, requests: &str, mean_ms: &str) -> Vec<Rule> {
    let Facts { cell, latency, .. } = facts;
    let per_s = cell.rate_per_s;
    let mut rules = vec![
        Rule {
            name: "LatencyAboveSimulated",
            expr: format!("{mean_ms} > {}", number(latency.mean * ABOVE)),
            summary: "the mean latency is 25 % above the simulated one".to_owned(),
            expected: format!(
                "mean {}; p50 {}, p99 {}",
                ms(latency.mean),
                ms(latency.p50),
                ms(latency.p99)
            ),
        },
        Rule {
            name: "LoadBeyondSimulated",
            expr: format!("{} > {}", rate_of(requests), number(per_s * 1.1)),
            summary: "more requests come than this setting was simulated for".to_owned(),
            expected: format!("{}/s", rate(per_s)),
        },
    ];
    if let Some(capacity) = cell.capacity_per_s {
        rules.push(Rule {
            name: "NearCapacity",
            expr: format!("{} > {}", rate_of(requests), number(capacity * 0.9)),
            summary: "the load is at 90 % of what this setting can serve".to_owned(),
            expected: format!("capacity {}/s", rate(capacity)),
        });
    }
    rules
}

fn rate_of(selector: &str) -> String {
    format!("sum(rate({selector}[{WINDOW}]))")
}

/// A mean per request from two counters, the first in microseconds.
fn mean_ms(sum_us: &str, count: &str) -> String {
    format!("{} / {} / 1000", rate_of(sum_us), rate_of(count))
}

fn queue_rule(facts: &Facts<'_>, queue: &str, requests: &str) -> Rule {
    // A queue of next to nothing doubles by chance.
    let limit = (facts.queue_ms * 1.5).max(facts.queue_ms + 1.0);
    Rule {
        name: "QueueTimeAboveSimulated",
        expr: format!("{} > {}", mean_ms(queue, requests), number(limit)),
        summary: "requests wait half as long again as simulated".to_owned(),
        expected: format!("mean {}", ms(facts.queue_ms)),
    }
}

fn triton(facts: &Facts<'_>, model: &str) -> Vec<Rule> {
    let of = |metric: &str| format!("nv_inference_{metric}{{model={}}}", quoted(model));
    let (success, failure) = (of("request_success"), of("request_failure"));
    let (items, passes) = (of("count"), of("exec_count"));
    let cell = facts.cell;
    let mut rules = shared(facts, &success, &mean_ms(&of("request_duration_us"), &success));
    rules.push(queue_rule(facts, &of("queue_duration_us"), &success));
    let batch = cell.batch_size.mean;
    rules.push(Rule {
        name: "BatchesSmallerThanSimulated",
        expr: format!(
            "{} / {} < {} and {} > {}",
            rate_of(&items),
            rate_of(&passes),
            number((batch * BELOW).max(1.0)),
            rate_of(&success),
            number(cell.rate_per_s * 0.9)
        ),
        summary: "batches are smaller than simulated at this load".to_owned(),
        expected: format!("{} items in a batch", decimals(batch, 2)),
    });
    let pass_ms = (facts.latency.mean - facts.queue_ms).max(0.0);
    rules.push(Rule {
        name: "PassSlowerThanCost",
        expr: format!(
            "{} > {}",
            mean_ms(&of("compute_infer_duration_us"), &success),
            number(pass_ms * ABOVE)
        ),
        summary: "a forward pass takes longer than the cost that was simulated".to_owned(),
        expected: format!("mean {} a request, ways included", ms(pass_ms)),
    });
    let waiting = facts.waiting;
    rules.push(Rule {
        name: "QueueLongerThanSimulated",
        expr: format!(
            "sum({}) > {}",
            of("pending_request_count"),
            number((waiting * 4.0).max(waiting + 10.0).ceil())
        ),
        summary: "far more requests wait than simulated".to_owned(),
        expected: format!("{} on average", decimals(waiting, 1)),
    });
    rules.push(Rule {
        name: "RequestsRefused",
        expr: format!(
            "{} / ({} + {}) > {}",
            rate_of(&failure),
            rate_of(&failure),
            rate_of(&success),
            number(facts.refused + REFUSED)
        ),
        summary: "more requests fail than simulated (queue full, timeout, errors)".to_owned(),
        expected: format!("{} %", decimals(facts.refused * 100.0, 3)),
    });
    rules
}

fn torchserve(facts: &Facts<'_>, model: &str) -> Vec<Rule> {
    let of = |metric: &str| format!("ts_{metric}{{model_name={}}}", quoted(model));
    let requests = of("inference_requests_total");
    let latency = mean_ms(&of("inference_latency_microseconds"), &requests);
    let mut rules = shared(facts, &requests, &latency);
    rules.push(queue_rule(facts, &of("queue_latency_microseconds"), &requests));
    let longest = facts.cell.queue_ms.as_ref().map_or(facts.queue_ms, |q| q.p99);
    rules.push(Rule {
        name: "QueueTimeLong",
        expr: format!("avg_over_time(QueueTime[{WINDOW}]) > {}", number(longest.max(1.0))),
        summary: "the mean wait on a host reaches the simulated 99th percentile".to_owned(),
        expected: format!("mean {}, p99 {}", ms(facts.queue_ms), ms(longest)),
    });
    let (bad, good) = ("Requests5XX", "Requests2XX");
    rules.push(Rule {
        name: "RequestsRefused",
        expr: format!(
            "{} / ({} + {}) > {}",
            rate_of(bad),
            rate_of(bad),
            rate_of(good),
            number(facts.refused + REFUSED)
        ),
        summary: "more requests get a 5XX than simulated (503: the queue is full)".to_owned(),
        expected: format!("{} %", decimals(facts.refused * 100.0, 3)),
    });
    rules
}

/// mosec counts per stage and worker, and for the whole service as stage `total`; it names no
/// model.
fn mosec(facts: &Facts<'_>) -> Vec<Rule> {
    let requests = "mosec_service_throughput_total";
    let total =
        |what| rate_of(&format!("mosec_service_process_duration_second_{what}{{stage=\"total\"}}"));
    let latency = format!("{} / {} * 1000", total("sum"), total("count"));
    let mut rules = shared(facts, requests, &latency);
    let batch = facts.cell.batch_size.mean;
    rules.push(Rule {
        name: "BatchesSmallerThanSimulated",
        expr: format!(
            "{} / {} < {} and {} > {}",
            rate_of("mosec_service_batch_size_sum"),
            rate_of("mosec_service_batch_size_count"),
            number((batch * BELOW).max(1.0)),
            rate_of(requests),
            number(facts.cell.rate_per_s * 0.9)
        ),
        summary: "batches are smaller than simulated at this load".to_owned(),
        expected: format!("{} requests in a batch", decimals(batch, 2)),
    });
    let here = facts.cell.throughput_per_s * facts.latency.mean / 1e3;
    rules.push(Rule {
        name: "MoreInServiceThanSimulated",
        expr: format!(
            "sum(mosec_service_remaining_task) > {}",
            number((here * 4.0).max(here + 10.0).ceil())
        ),
        summary: "far more requests are in the server than simulated".to_owned(),
        expected: format!("{} on average", decimals(here, 1)),
    });
    rules.push(Rule {
        name: "RequestsRefused",
        expr: format!(
            "{} / {} > {}",
            rate_of(&format!("{requests}{{code!=\"200\"}}")),
            rate_of(requests),
            number(facts.refused + REFUSED)
        ),
        summary: "more requests fail than simulated (429: queue full, 408: timeout)".to_owned(),
        expected: format!("{} %", decimals(facts.refused * 100.0, 3)),
    });
    rules
}

fn yaml(facts: &Facts<'_>, rules: &[Rule], scenario: &str, model: &str) -> String {
    let Facts { cell, latency, .. } = facts;
    let policy = &cell.policy;
    let printed = |c: char| if c.is_control() { ' ' } else { c };
    let one_line = |text: &str| -> String { text.chars().map(printed).collect() };
    let mut out = format!(
        "# {}: {} ({}) at {}/s, simulated: p50 {}, p99 {}, mean batch {},\n\
         # utilisation {} %. Limits are 25 % above and 20 % below, waits half as long again.\n\
         groups:\n  - name: {}\n    rules:\n",
        one_line(scenario),
        one_line(&policy.label),
        policy.kind,
        rate(cell.rate_per_s),
        ms(latency.p50),
        ms(latency.p99),
        decimals(cell.batch_size.mean, 2),
        decimals(cell.utilization * 100.0, 1),
        quoted(&format!("batchsim {scenario} {}", policy.label)),
    );
    for rule in rules {
        let _ = write!(
            out,
            "      - alert: {}\n        expr: {}\n        for: {FOR}\n        labels:\n          \
             severity: warning\n          model: {}\n        annotations:\n          \
             summary: {}\n          expected: {}\n          now: {}\n",
            rule.name,
            quoted(&rule.expr),
            quoted(model),
            quoted(&rule.summary),
            quoted(&rule.expected),
            quoted("{{ $value }}"),
        );
    }
    out
}

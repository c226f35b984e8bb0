//! Names that are not keys or kinds of this version: those of the scenario language that are
//! still to come, and other servers' spellings of ours.

/// Kinds of a family, by the name of its type, that later versions know.
pub(crate) fn later_kinds(family: &str) -> (&'static str, &'static [&'static str]) {
    match family {
        "Policy" => {
            ("policies", &["length-bucket", "vllm", "tf-serving", "ray-serve", "kserve", "bentoml"])
        }
        "Cost" => ("costs", &["padded", "length", "step-linear", "step-table", "roofline"]),
        "Jitter" => ("jitter", &["quantiles"]),
        "TimeScaleMode" => ("trace scales", &["thin", "superpose"]),
        _ => ("", &[]),
    }
}

/// Keys that later versions know, by the table they belong to.
pub(crate) fn later_keys(table: Table) -> &'static [&'static str] {
    match table {
        Table::Root => &["model", "gpu", "kv"],
        Table::Arrivals => &[
            "lengths",
            "retries",
            "grid",
            "bootstrap",
            "prompt",
            "output",
            "max_tokens",
            "prefix",
            "session",
        ],
        Table::Server => {
            &["memory_max_batch", "usd_per_hour", "watts", "start_up", "down", "sharing"]
        }
        Table::Policy => &[],
        Table::Other => &[],
    }
}

/// Which table a key is read in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Table {
    Root,
    Arrivals,
    Server,
    Policy,
    #[default]
    Other,
}

/// What servers and load tools call our keys.
const SPELLINGS: &[(&str, &[&str])] = &[
    (
        "max_batch_size",
        &["batch_size", "batchsize", "batchSize", "maxBatchSize", "max_batch", "batch", "cap"],
    ),
    (
        "max_wait",
        &[
            "max_queue_delay",
            "max_queue_delay_microseconds",
            "maxBatchDelay",
            "max_batch_delay",
            "batch_timeout",
            "batch_timeout_micros",
            "batch_wait_timeout_s",
            "timeout",
            "max_delay",
            "max_latency",
            "max_latency_ms",
            "maxLatency",
            "wait",
            "delay",
        ],
    ),
    ("preferred_batch_sizes", &["preferred_batch_size", "preferred"]),
    ("balancer", &["load_balancer", "lb", "routing"]),
    (
        "queue_limit",
        &["max_queue", "max_queue_size", "queue_size", "queue_capacity", "max_pending"],
    ),
    (
        "instances",
        &[
            "instance_group",
            "instance_count",
            "workers",
            "minWorkers",
            "maxWorkers",
            "workers_per_device",
            "num",
            "servers",
            "gpus",
        ],
    ),
    ("threshold", &["thresholds", "slo", "slos", "objectives"]),
    ("policy", &["policies", "batching", "batcher"]),
    ("server", &["servers"]),
    ("arrivals", &["arrival", "source", "sources", "workload", "traffic", "load"]),
    ("rate", &["qps", "rps", "request_rate", "lambda"]),
    ("clients", &["concurrency", "users"]),
    ("think", &["think_time"]),
    ("warmup", &["warm_up"]),
    ("replications", &["replicas", "reps", "repetitions"]),
    ("kind", &["type", "name", "form", "model"]),
    ("fixed", &["base", "overhead", "intercept"]),
    ("per_item", &["slope", "per_request"]),
    ("expr", &["threshold", "rule"]),
    ("cost", &["service_time", "latency"]),
];

/// The best of `valid` for what somebody wrote, if any comes close.
pub(crate) fn closest<'a>(written: &str, valid: &[&'a str]) -> Option<&'a str> {
    let plain = |s: &str| s.to_lowercase().replace(['-', ' '], "_");
    let wanted = plain(written);
    if let Some(same) = valid.iter().find(|v| plain(v) == wanted) {
        return Some(same);
    }
    let spelt = SPELLINGS
        .iter()
        .filter(|(_, others)| others.contains(&written))
        .find_map(|(ours, _)| valid.iter().find(|v| *v == ours));
    if let Some(ours) = spelt {
        return Some(ours);
    }
    let mut best: Option<(f64, &str)> = None;
    for candidate in valid {
        let score = strsim::normalized_damerau_levenshtein(&wanted, &plain(candidate));
        if score >= 0.6 && best.is_none_or(|(b, _)| score > b) {
            best = Some((score, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// `a`, `b` or `c`, in code marks.
pub(crate) fn listed(names: &[&str], last: &str) -> String {
    let marked: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    match marked.split_last() {
        None => "nothing".into(),
        Some((only, [])) => only.clone(),
        Some((end, rest)) => format!("{} {last} {end}", rest.join(", ")),
    }
}

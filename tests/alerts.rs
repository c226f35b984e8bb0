//! Alert rules: valid YAML of Prometheus' structure, with expressions that parse and metrics that
//! the servers have.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use batchsim::outcome::Cell;
use batchsim::report::prometheus;
use batchsim::scenario::{self, Disk, Input};
use batchsim::study::{self, Control, Options};
use serde_json::Value;
use std::path::Path;

fn cell() -> Cell {
    let text = "schema = 1\nname = \"watch\"\n[run]\nrequests = 20000\n[arrivals]\n\
                kind = \"poisson\"\nrate = \"300/s\"\n[server]\ncost = { kind = \"affine\", \
                fixed = \"8ms\", per_item = \"0.5ms\" }\n[[policy]]\nkind = \"triton\"\n\
                max_batch_size = 8\nmax_queue_delay_microseconds = 4000\n";
    let disk = Disk::beside(Path::new("x.toml"), batchsim::interop::trace::for_scenario);
    let loaded = scenario::load(&Input::from_text("x.toml", text.as_bytes()), &[], &disk).unwrap();
    let (outcome, ..) = study::run(&loaded.scenario, &Options::default(), &Control::default());
    outcome.cells[0].clone()
}

/// The metrics of both servers, by their documentation.
const METRICS: &[&str] = &[
    "nv_inference_request_success",
    "nv_inference_request_failure",
    "nv_inference_count",
    "nv_inference_exec_count",
    "nv_inference_request_duration_us",
    "nv_inference_queue_duration_us",
    "nv_inference_compute_infer_duration_us",
    "nv_inference_pending_request_count",
    "ts_inference_requests_total",
    "ts_inference_latency_microseconds",
    "ts_queue_latency_microseconds",
    "QueueTime",
    "Requests2XX",
    "Requests5XX",
    // As mosec 0.9.8 prints them.
    "mosec_service_throughput_total",
    "mosec_service_process_duration_second_sum",
    "mosec_service_process_duration_second_count",
    "mosec_service_batch_size_sum",
    "mosec_service_batch_size_count",
    "mosec_service_remaining_task",
];

/// As much of PromQL as the rules use.
struct Promql<'a> {
    rest: &'a str,
    metrics: Vec<String>,
    numbers: Vec<f64>,
}

impl Promql<'_> {
    fn read(text: &str) -> Promql<'_> {
        let mut parser = Promql { rest: text, metrics: Vec::new(), numbers: Vec::new() };
        parser.binary();
        assert_eq!(parser.rest.trim(), "", "{text}");
        parser
    }

    fn eat(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let hit = self.rest.starts_with(token);
        if hit {
            self.rest = &self.rest[token.len()..];
        }
        hit
    }

    #[track_caller]
    fn need(&mut self, token: &str) {
        assert!(self.eat(token), "expected {token} at {}", self.rest);
    }

    fn binary(&mut self) {
        self.operand();
        while ["and ", "+", "-", "*", "/", ">", "<"].iter().any(|op| self.eat(op)) {
            self.operand();
        }
    }

    fn word(&mut self) -> String {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !(c.is_alphanumeric() || "_.:".contains(c)));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word.to_owned()
    }

    fn operand(&mut self) {
        if self.eat("(") {
            self.binary();
            return self.need(")");
        }
        let word = self.word();
        if let Ok(number) = word.parse::<f64>() {
            return self.numbers.push(number);
        }
        match word.as_str() {
            "sum" => {
                self.need("(");
                self.binary();
                self.need(")");
            }
            "rate" | "avg_over_time" => {
                self.need("(");
                let metric = self.word();
                self.selector(metric);
                self.need("[5m]");
                self.need(")");
            }
            _ => self.selector(word),
        }
    }

    fn selector(&mut self, metric: String) {
        assert!(METRICS.contains(&metric.as_str()), "{metric} is no metric of these servers");
        self.metrics.push(metric);
        if self.eat("{") {
            let label = self.word();
            assert!(["model", "model_name", "stage", "code"].contains(&label.as_str()), "{label}");
            let _ = self.eat("!");
            self.need("=\"");
            let mut escaped = false;
            let end = self.rest.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            self.rest = &self.rest[end.expect("a closing quote") + 1..];
            self.need("}");
        }
    }
}

/// The rules by name, with the parsed expressions.
fn rules(yaml: &str) -> Vec<(String, String)> {
    let file: Value = serde_saphyr::from_str(yaml).expect(yaml);
    assert_eq!(file.as_object().unwrap().keys().collect::<Vec<_>>(), ["groups"]);
    let groups = file["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 1);
    assert!(!groups[0]["name"].as_str().unwrap().is_empty());
    let rules = groups[0]["rules"].as_array().unwrap();
    rules
        .iter()
        .map(|rule| {
            let mut keys: Vec<&str> =
                rule.as_object().unwrap().keys().map(String::as_str).collect();
            keys.sort_unstable();
            assert_eq!(keys, ["alert", "annotations", "expr", "for", "labels"]);
            let name = rule["alert"].as_str().unwrap();
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{name}");
            assert_eq!(rule["for"], "10m");
            assert_eq!(rule["labels"]["severity"], "warning");
            for text in rule["annotations"].as_object().unwrap().values() {
                assert!(!text.as_str().unwrap().is_empty());
            }
            let expr = rule["expr"].as_str().unwrap();
            assert!(!Promql::read(expr).metrics.is_empty());
            (name.to_owned(), expr.to_owned())
        })
        .collect()
}

#[test]
fn triton_is_watched_by_its_own_metrics() {
    let cell = cell();
    let yaml = prometheus(&cell, "watch", "resnet").unwrap();
    let rules = rules(&yaml);
    let expr = |name: &str| &rules.iter().find(|(n, _)| n == name).expect(name).1;
    let batches = Promql::read(expr("BatchesSmallerThanSimulated"));
    assert_eq!(batches.metrics[..2], ["nv_inference_count", "nv_inference_exec_count"]);
    let limit = batches.numbers[0] / cell.batch_size.mean;
    assert!((limit - 0.8).abs() < 1e-3, "{limit}");
    let latency = Promql::read(expr("LatencyAboveSimulated"));
    let limit = latency.numbers[1] / cell.latency_ms.as_ref().unwrap().mean;
    assert!((limit - 1.25).abs() < 1e-3, "{limit}");
    let used: Vec<String> = rules.iter().flat_map(|(_, e)| Promql::read(e).metrics).collect();
    for metric in METRICS.iter().filter(|m| m.starts_with("nv_")) {
        assert!(used.iter().any(|u| u == metric), "{metric}");
    }
    let names: std::collections::BTreeSet<&String> = rules.iter().map(|(n, _)| n).collect();
    assert_eq!(names.len(), rules.len(), "alerts have distinct names");
}

#[test]
fn torchserve_is_watched_by_its_own_metrics() {
    let mut cell = cell();
    cell.policy.kind = "torchserve".into();
    let rules = rules(&prometheus(&cell, "watch", "bert").unwrap());
    let used: Vec<String> = rules.iter().flat_map(|(_, e)| Promql::read(e).metrics).collect();
    let own = |m: &&&str| !m.starts_with("nv_") && !m.starts_with("mosec_");
    for metric in METRICS.iter().filter(own) {
        assert!(used.iter().any(|u| u == metric), "{metric}");
    }
}

#[test]
fn mosec_is_watched_by_its_own_metrics() {
    let mut cell = cell();
    cell.policy.kind = "mosec".into();
    let rules = rules(&prometheus(&cell, "watch", "bert").unwrap());
    let used: Vec<String> = rules.iter().flat_map(|(_, e)| Promql::read(e).metrics).collect();
    for metric in METRICS.iter().filter(|m| m.starts_with("mosec_")) {
        assert!(used.iter().any(|u| u == metric), "{metric}");
    }
    assert!(used.iter().all(|u| u.starts_with("mosec_")), "{used:?}");
    // Seconds are said as milliseconds.
    let latency = &rules.iter().find(|(n, _)| n == "LatencyAboveSimulated").unwrap().1;
    let numbers = Promql::read(latency).numbers;
    let limit = numbers[1] / cell.latency_ms.as_ref().unwrap().mean;
    assert!((numbers[0] - 1000.0).abs() < 1e-9 && (limit - 1.25).abs() < 1e-3, "{latency}");
}

#[test]
fn names_cannot_break_the_rules() {
    let mut cell = cell();
    cell.policy.label = "a \"b\"\n: - {".into();
    let name = "m\"}\\ or vector(1) #\n\t\u{7}x";
    assert!(rules(&prometheus(&cell, name, name).unwrap()).len() >= 8);
}

#[test]
fn what_cannot_be_expected_is_refused() {
    let mut other = cell();
    other.policy.kind = "greedy".into();
    assert!(prometheus(&other, "x", "x").unwrap_err().0.contains("greedy"));
    let mut overloaded = cell();
    overloaded.latency_ms = None;
    assert!(prometheus(&overloaded, "x", "x").unwrap_err().0.contains("overloaded"));
}

#[test]
#[should_panic(expected = "no metric")]
fn the_parser_refuses_other_metrics() {
    let _ = Promql::read("rate(nv_no_such_thing[5m]) > 1");
}

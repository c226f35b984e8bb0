//! `[run]`, `[curve]` and `[client]`: how long, how precisely, and what lies outside the server.

use super::de::View;
use super::diag::{BAD_PARAM, CONFLICT, Problem};
use super::file::{ClientTable, CurveTable, EndText, RunTable, WarmupText};
use super::resolve::{Resolver, place};
use super::tree::Node;
use super::{Client, Curve, CurvePoints, End, Run, Warmup};
use crate::time::Nanos;

/// Loads of a curve unless the scenario gives some.
const CURVE_LOADS: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95];
const REPLICATIONS: u32 = 20;
const PRECISION: f64 = 0.01;
const CURVE_PRECISION: f64 = 0.03;
/// Most requests whose latencies can all be kept.
const MAX_EXACT: u64 = 10_000_000;

impl Resolver<'_> {
    pub(crate) fn run(&mut self, root: &Node) -> Run {
        let empty = Node::table(root.span);
        let node = root.get("run").unwrap_or(&empty);
        let table: RunTable = self.taken(View::of("run", node).read()).unwrap_or_default();
        let run = Run {
            precision: table.precision.map_or(PRECISION, |p| p.get()),
            precision_given: table.precision.is_some(),
            requests: table.requests,
            duration: table.duration,
            replications: table.replications.unwrap_or(REPLICATIONS),
            warmup: match table.warmup {
                None | Some(WarmupText::Auto) => Warmup::Auto,
                Some(WarmupText::Time(time)) => Warmup::Time(time),
            },
            max_requests: table.max_requests,
            end: match table.end {
                None | Some(EndText::Flush) => End::Flush,
                Some(EndText::Cut) => End::Cut,
            },
            exact_latencies: table.exact_latencies.unwrap_or(false),
        };
        self.check_run(node, &run);
        run
    }

    fn check_run(&mut self, node: &Node, run: &Run) {
        let mut bad = |code, key, what: String, help: &str| {
            self.problems.push(Problem::new(code, place(node, key), what).help(help));
        };
        if !(0.0001..=0.5).contains(&run.precision) {
            let what =
                format!("a precision lies between 0.01% and 50%, not {}%", run.precision * 1e2);
            bad(BAD_PARAM, "precision", what, "write precision = \"1%\"");
        }
        if !(1..=10_000).contains(&run.replications) {
            let what = format!("replications lie between 1 and 10,000, not {}", run.replications);
            bad(BAD_PARAM, "replications", what, "20 is the default; 2 or more give intervals");
        }
        if run.duration == Some(Nanos::ZERO) {
            let help = "write a positive duration, as in \"10min\"";
            bad(BAD_PARAM, "duration", "a run that takes no time has no requests".into(), help);
        }
        if run.requests.is_some() && run.duration.is_some() {
            let help = "`requests` counts the measured requests of a cell, `duration` is the \
                        simulated time of each replication";
            bad(CONFLICT, "duration", "give either `requests` or `duration`".into(), help);
        }
        if run.precision_given && (run.requests.is_some() || run.duration.is_some()) {
            let what = "a precision is sought only where the length is free".to_owned();
            let help = "leave out `precision`, or `requests` and `duration`";
            bad(CONFLICT, "precision", what, help);
        }
        if let Some(requests) = run.requests
            && requests < u64::from(run.replications)
        {
            let n = run.replications;
            let what = format!("{requests} requests cannot be shared by {n} replications");
            bad(CONFLICT, "requests", what, "write more requests, or fewer replications");
        }
        if run.max_requests == Some(0) {
            bad(BAD_PARAM, "max_requests", "`max_requests` is 0".into(), "leave it out for no cap");
        }
        if run.max_requests.is_some() && (run.requests.is_some() || run.duration.is_some()) {
            let what = "`max_requests` bounds the search for a precision".to_owned();
            bad(CONFLICT, "max_requests", what, "leave it out: the length is fixed already");
        }
        if run.end == End::Cut && run.duration.is_none() {
            let what = "`end = \"cut\"` needs a `duration` to cut at".to_owned();
            bad(CONFLICT, "end", what, "add duration = \"10s\", or leave `end` out");
        }
        if run.exact_latencies && run.requests.is_some_and(|n| n > MAX_EXACT) {
            let what = "at most 10,000,000 latencies can be kept".to_owned();
            let help = "lower `requests`, or leave `exact_latencies` out: its histogram is \
                        accurate to 0.1 %";
            bad(CONFLICT, "exact_latencies", what, help);
        }
        if let (Warmup::Time(warmup), Some(duration)) = (run.warmup, run.duration)
            && warmup >= duration
            && duration > Nanos::ZERO
        {
            let what = format!("the warm-up of {warmup} leaves nothing of {duration}");
            bad(CONFLICT, "warmup", what, "shorten the warm-up or lengthen the run");
        }
    }

    pub(crate) fn curve(&mut self, root: &Node) -> Option<Curve> {
        let node = root.get("curve")?;
        let table: CurveTable = self.taken(View::of("curve", node).read())?;
        let mut bad = |code, key, what: &str, help: &str| {
            self.problems.push(Problem::new(code, place(node, key), what).help(help));
        };
        if table.loads.is_some() && table.rates.is_some() {
            let help = "loads are shares of each policy's own capacity, rates are common to all";
            bad(CONFLICT, "rates", "give either `loads` or `rates`", help);
        }
        if table.loads.as_ref().is_some_and(|l| {
            l.is_empty() || l.iter().any(|x| !(0.0..=2.0).contains(x) || *x == 0.0)
        }) {
            let what = "loads lie above 0 and at most 2";
            bad(BAD_PARAM, "loads", what, "write shares of capacity, as in [0.1, 0.5, 0.9]");
        }
        if table.rates.as_ref().is_some_and(Vec::is_empty) {
            bad(BAD_PARAM, "rates", "a curve needs points", "write rates such as [\"100/s\"]");
        }
        let precision = table.precision.map_or(CURVE_PRECISION, |p| p.get());
        if !(0.0001..=0.5).contains(&precision) {
            let what = "a precision lies between 0.01% and 50%";
            bad(BAD_PARAM, "precision", what, "write precision = \"3%\"");
        }
        let points = match (table.rates, table.loads) {
            (Some(rates), _) => CurvePoints::Rates(rates.iter().map(|r| r.per_s()).collect()),
            (None, Some(loads)) => CurvePoints::Loads(loads),
            (None, None) => CurvePoints::Loads(CURVE_LOADS.to_vec()),
        };
        Some(Curve { points, precision })
    }

    pub(crate) fn client(&mut self, root: &Node) -> Client {
        let Some(node) = root.get("client") else {
            return Client::default();
        };
        let table: ClientTable = self.taken(View::of("client", node).read()).unwrap_or_default();
        Client { before: table.before, after: table.after }
    }
}

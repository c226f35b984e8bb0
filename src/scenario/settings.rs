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

impl Default for Curve {
    /// 10 % to 95 % of each policy's own capacity.
    fn default() -> Self {
        Self { points: CurvePoints::Loads(CURVE_LOADS.to_vec()), precision: CURVE_PRECISION }
    }
}

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

    fn complain(&mut self, code: &'static str, at: (&Node, &str), what: &str, help: &str) {
        let span = place(at.0, at.1);
        self.problems.push(Problem::new(code, span, what).help(help));
    }

    fn check_run(&mut self, node: &Node, run: &Run) {
        if !(0.0001..=0.5).contains(&run.precision) {
            let what =
                format!("a precision lies between 0.01% and 50%, not {}%", run.precision * 1e2);
            self.complain(BAD_PARAM, (node, "precision"), &what, "write precision = \"1%\"");
        }
        if !(1..=10_000).contains(&run.replications) {
            let n = run.replications;
            let what = format!("replications lie between 1 and 10,000, not {n}");
            let help = "20 is the default; 2 or more give intervals";
            self.complain(BAD_PARAM, (node, "replications"), &what, help);
        }
        if run.duration == Some(Nanos::ZERO) {
            let what = "a run that takes no time has no requests";
            let help = "write a positive duration, as in \"10min\"";
            self.complain(BAD_PARAM, (node, "duration"), what, help);
        }
        if run.max_requests == Some(0) {
            let help = "leave it out for no cap";
            self.complain(BAD_PARAM, (node, "max_requests"), "`max_requests` is 0", help);
        }
        if let Some(requests) = run.requests
            && requests < u64::from(run.replications)
        {
            let n = run.replications;
            let what = format!("{requests} requests cannot be shared by {n} replications");
            let help = "write more requests, or fewer replications";
            self.complain(CONFLICT, (node, "requests"), &what, help);
        }
        self.check_length(node, run);
    }

    /// Keys of which only some can say how long a run is.
    fn check_length(&mut self, node: &Node, run: &Run) {
        let fixed = run.requests.is_some() || run.duration.is_some();
        if run.requests.is_some() && run.duration.is_some() {
            let what = "give either `requests` or `duration`";
            let help = "`requests` counts the measured requests of a cell, `duration` is the \
                        simulated time of each replication";
            self.complain(CONFLICT, (node, "duration"), what, help);
        }
        if run.precision_given && fixed {
            let what = "a precision is sought only where the length is free";
            let help = "leave out `precision`, or `requests` and `duration`";
            self.complain(CONFLICT, (node, "precision"), what, help);
        }
        if run.max_requests.is_some() && fixed {
            let what = "`max_requests` bounds the search for a precision";
            let help = "leave it out: the length is fixed already";
            self.complain(CONFLICT, (node, "max_requests"), what, help);
        }
        if run.end == End::Cut && run.duration.is_none() {
            let what = "`end = \"cut\"` needs a `duration` to cut at";
            let help = "add duration = \"10s\", or leave `end` out";
            self.complain(CONFLICT, (node, "end"), what, help);
        }
        if let (Warmup::Time(warmup), Some(duration)) = (run.warmup, run.duration)
            && warmup >= duration
            && duration > Nanos::ZERO
        {
            let what = format!("the warm-up of {warmup} leaves nothing of {duration}");
            let help = "shorten the warm-up or lengthen the run";
            self.complain(CONFLICT, (node, "warmup"), &what, help);
        }
    }

    pub(crate) fn curve(&mut self, root: &Node) -> Option<Curve> {
        let node = root.get("curve")?;
        let table: CurveTable = self.taken(View::of("curve", node).read())?;
        if table.loads.is_some() && table.rates.is_some() {
            let what = "give either `loads` or `rates`";
            let help = "loads are shares of each policy's own capacity, rates are common to all";
            self.complain(CONFLICT, (node, "rates"), what, help);
        }
        let fits =
            |loads: &Vec<f64>| !loads.is_empty() && loads.iter().all(|x| *x > 0.0 && *x <= 2.0);
        if !table.loads.as_ref().is_none_or(fits) {
            let help = "write shares of capacity, as in [0.1, 0.5, 0.9]";
            self.complain(BAD_PARAM, (node, "loads"), "loads lie above 0 and at most 2", help);
        }
        if table.rates.as_ref().is_some_and(Vec::is_empty) {
            let help = "write rates such as [\"100/s\"]";
            self.complain(BAD_PARAM, (node, "rates"), "a curve needs points", help);
        }
        let precision = table.precision.map_or(CURVE_PRECISION, |p| p.get());
        if !(0.0001..=0.5).contains(&precision) {
            let what = "a precision lies between 0.01% and 50%";
            self.complain(BAD_PARAM, (node, "precision"), what, "write precision = \"3%\"");
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

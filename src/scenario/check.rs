//! What is legal but hardly meant, and what only shows once everything is read.

use super::diag::{
    ALL_EXPIRE, CAP_UNREACHED, CONFLICT, COST_NOT_MONOTONE, EXTRAPOLATED, NO_EFFECT, ONE_REPLAY,
    OVERLOAD, Problem, QUEUE_BELOW_CAP, REVERSED, RUN_TOO_SHORT, STATIC_STALL, Span,
    TABLE_TOO_SHORT, WAIT_OVER_SLO,
};
use super::estimate::{Load, cost_s, people_count, people_rate, people_time, thinks_randomly};
use super::resolve::place;
use super::tree::Node;
use super::{Labelled, Metric, Op, Scenario, Server};
use crate::arrivals::{Process, Think};
use crate::cost::{Beyond, Cost, Jitter};
use crate::policy::{Anchor, Dynamic, MaxWait, Policy};
use crate::time::Nanos;

/// Exceedances that a judged quantile needs for an interval worth having.
const EXCEEDANCES: f64 = 50.0;

/// Most requests whose latencies can all be kept.
const MAX_EXACT: f64 = 1e7;

/// Callers that do not think before they repeat a rejected request.
fn rejected_for_ever(scenario: &Scenario, tree: &Node) -> Option<Problem> {
    let impatient = scenario.arrivals.iter().filter_map(|s| match &s.process {
        Process::ClosedLoop(p) if p.think == Think::Constant(Nanos::ZERO) => Some(p.clients),
        _ => None,
    });
    let clients: u64 = impatient.map(u64::from).sum();
    let limit = scenario.servers.iter().filter_map(|s| s.queue_limit).min()?;
    if clients <= u64::from(limit) {
        return None;
    }
    let what = format!(
        "{clients} clients that do not think and a queue of {limit}: a rejected client would try \
         again at once, for ever"
    );
    let node = tree.get("server").map(Node::one_or_many).and_then(<[Node]>::first).unwrap_or(tree);
    let help = "give the clients a think time, or raise queue_limit to their number";
    Some(Problem::new(CONFLICT, place(node, "queue_limit"), what).help(help))
}

/// Errors that concern several sections at once.
pub(crate) fn errors(scenario: &Scenario, tree: &Node) -> Vec<Problem> {
    let mut found = Vec::new();
    found.extend(too_many_to_keep(scenario, tree));
    found.extend(rejected_for_ever(scenario, tree));
    for server in &scenario.servers {
        let Cost::Table(table) = &server.cost else {
            continue;
        };
        let Some(last) = table.points.last().filter(|_| table.beyond == Beyond::Refuse) else {
            continue;
        };
        for (j, labelled) in scenario.policies.iter().enumerate() {
            if labelled.policy.cap().is_some_and(|cap| cap <= last.n) {
                continue;
            }
            let cap = labelled.policy.cap().map_or("unbounded".into(), |cap| cap.to_string());
            let label = &labelled.label;
            let what = format!(
                "batches of `{label}` are {cap}, the cost table ends at {} and refuses more",
                last.n
            );
            let at = nth(tree, "policy", j).unwrap_or(tree);
            let mut problem = Problem::new(TABLE_TOO_SHORT, place(at, "max_batch_size"), what);
            if let Some(label) = &server.label {
                problem = problem.help(format!("this is the cost table of server `{label}`"));
            }
            found.push(problem.help(format!(
                "write max_batch_size = {}, add a point, or beyond = \"extend\"",
                last.n
            )));
        }
    }
    if let Some(curve) = tree.get("curve")
        && scenario.curve.is_some()
        && scenario.total_rate_per_s().is_none()
    {
        let what = "a curve varies the rate, and these arrivals have none";
        let help = "leave out [curve]; for a closed loop, sweep `arrivals.clients` instead";
        found.push(Problem::new(CONFLICT, curve.span, what).help(help));
    }
    found
}

/// Every latency can be kept of a bounded number of requests.
#[expect(clippy::cast_precision_loss, reason = "a comparison with a round number")]
fn too_many_to_keep(scenario: &Scenario, tree: &Node) -> Option<Problem> {
    let run = &scenario.run;
    if !run.exact_latencies {
        return None;
    }
    let most = Load::of(scenario).requests.or(run.max_requests.map(|n| n as f64))?;
    if most <= MAX_EXACT {
        return None;
    }
    let node = tree.get("run").unwrap_or(tree);
    let what = format!(
        "at most {} latencies can be kept, this run has about {}",
        people_count(MAX_EXACT),
        people_count(most)
    );
    let help =
        "shorten the run, or leave `exact_latencies` out: its histogram is accurate to 0.1 %";
    Some(Problem::new(CONFLICT, place(node, "exact_latencies"), what).help(help))
}

/// What is legal but hardly meant.
pub(crate) fn warnings(scenario: &Scenario, tree: &Node) -> Vec<Problem> {
    let mut checker = Checker { scenario, tree, load: Load::of(scenario), found: Vec::new() };
    checker.overload();
    checker.costs();
    checker.run();
    checker.thresholds();
    for server in &scenario.servers {
        for (i, labelled) in scenario.policies.iter().enumerate() {
            let node = nth(tree, "policy", i).unwrap_or(tree);
            if !checker.swept(&labelled.label) {
                checker.policy(server, labelled, node);
            }
        }
    }
    checker.found
}

fn nth<'n>(tree: &'n Node, section: &str, index: usize) -> Option<&'n Node> {
    tree.get(section)?.one_or_many().get(index)
}

struct Checker<'a> {
    scenario: &'a Scenario,
    tree: &'a Node,
    load: Load,
    found: Vec<Problem>,
}

impl Checker<'_> {
    fn warn(&mut self, code: &'static str, span: Span, what: String, help: impl Into<String>) {
        self.found.push(Problem::new(code, span, what).help(help));
    }

    /// Whether a sweep varies something below this head, so that what is written is not run.
    fn swept(&self, head: &str) -> bool {
        let below = |path: &str| path.strip_prefix(head).is_some_and(|rest| rest.starts_with('.'));
        self.scenario.sweep.iter().any(|axis| below(&axis.path))
    }

    /// Where the rate is written: its key if there is one source, else the first source.
    fn rate_span(&self) -> Span {
        let at = nth(self.tree, "arrivals", 0).unwrap_or(self.tree);
        match at.one_or_many() {
            [one] => place(one, "rate"),
            _ => at.span,
        }
    }

    fn overload(&mut self) {
        let Some(rate) = self.scenario.total_rate_per_s().filter(|_| !self.swept("arrivals"))
        else {
            return;
        };
        let mut over = Vec::new();
        for server in &self.scenario.servers {
            for labelled in &self.scenario.policies {
                if self.swept(&labelled.label) {
                    continue;
                }
                if let Some(capacity) = self.scenario.capacity_per_s(server, &labelled.policy)
                    && rate >= capacity
                {
                    let on = server.label.as_ref().map(|l| format!(" on `{l}`"));
                    over.push(format!(
                        "`{}`{} has a capacity of {}",
                        labelled.label,
                        on.unwrap_or_default(),
                        people_rate(capacity)
                    ));
                }
            }
        }
        if over.is_empty() {
            return;
        }
        let bounded = self.scenario.servers.iter().all(|s| s.queue_limit.is_some())
            || self.scenario.policies.iter().all(|p| p.policy.limits_queue())
            || self.scenario.arrivals.iter().all(|s| s.timeout.is_some());
        let help = if bounded {
            "what the server cannot do is rejected or expires"
        } else {
            "an overloaded queue grows without end, so its latency is named, not averaged; lower \
             the rate, or raise max_batch_size or instances"
        };
        let what = format!("{} is offered, but {}", people_rate(rate), over.join("; "));
        self.warn(OVERLOAD, self.rate_span(), what, help);
    }

    fn costs(&mut self) {
        for (i, server) in self.scenario.servers.iter().enumerate() {
            let Cost::Table(table) = &server.cost else {
                continue;
            };
            let node = nth(self.tree, "server", i).unwrap_or(self.tree);
            let cost = node.get("cost").unwrap_or(node);
            let span = place(cost, "points");
            if let Some(w) = table.points.windows(2).find(|w| w[1].time < w[0].time) {
                let what = format!(
                    "a batch of {} takes {}, less than one of {} with {}",
                    w[1].n, w[1].time, w[0].n, w[0].time
                );
                let help = "check the measurement; a server would rather run the larger batch";
                self.warn(COST_NOT_MONOTONE, span, what, help);
            }
            let Some(last) = table.points.last().filter(|_| table.beyond == Beyond::Extend) else {
                continue;
            };
            for labelled in &self.scenario.policies {
                let beyond = labelled.policy.cap().is_none_or(|cap| cap > last.n.saturating_mul(2));
                if beyond && !self.swept(&labelled.label) {
                    let what = format!(
                        "`{}` runs batches of {}, the cost table ends at {}",
                        labelled.label,
                        labelled.policy.cap().map_or("any size".into(), |cap| cap.to_string()),
                        last.n
                    );
                    let help = "times beyond the last point continue its slope; measure a larger \
                                batch, or write beyond = \"refuse\"";
                    self.warn(EXTRAPOLATED, span, what, help);
                }
            }
        }
    }

    fn run(&mut self) {
        let run = self.tree.get("run");
        let random = |p: &Process| match p {
            Process::Poisson(_)
            | Process::Gamma(_)
            | Process::Mmpp(_)
            | Process::OnOff(_)
            | Process::Groups(_) => true,
            Process::ClosedLoop(p) => thinks_randomly(&p.think),
            Process::Deterministic(_) | Process::Trace(_) => false,
        };
        let fixed = !self.scenario.arrivals.iter().any(|s| random(&s.process))
            && self.scenario.servers.iter().all(|s| matches!(s.jitter, Jitter::None(_)));
        if let Some(node) = run.filter(|run| run.get("replications").is_some())
            && fixed
            && self.scenario.run.replications > 1
        {
            let what = "nothing here is random, so all replications are alike".to_owned();
            let help = "write replications = 1, or add jitter";
            self.warn(ONE_REPLAY, place(node, "replications"), what, help);
        }
        if self.scenario.thresholds.is_empty()
            && let Some(i) = self.scenario.policies.iter().position(|p| p.guard)
        {
            let node = nth(self.tree, "policy", i).unwrap_or(self.tree);
            let what = "`guard` says whom thresholds are about, and there are none".to_owned();
            let help = "add [[threshold]] with expr = \"p(99) < 50ms\"";
            self.warn(NO_EFFECT, place(node, "guard"), what, help);
        }
    }

    fn thresholds(&mut self) {
        for (i, threshold) in self.scenario.thresholds.iter().enumerate() {
            let node = nth(self.tree, "threshold", i).unwrap_or(self.tree);
            let span = place(node, "expr");
            let above = matches!(threshold.op, Op::Above | Op::AtLeast);
            let good_above = matches!(threshold.metric, Metric::Attainment(_) | Metric::Throughput);
            if above != good_above {
                let what = "this threshold is met when things go badly".to_owned();
                let turned = if good_above { ">=" } else { "<" };
                self.warn(REVERSED, span, what, format!("turn it around with {turned}"));
            }
            let Metric::Quantile(q) = threshold.metric else {
                continue;
            };
            let needed = EXCEEDANCES / (1.0 - q);
            if let Some(n) = self.load.requests
                && n < needed
                && !self.swept("run")
                && !self.swept("arrivals")
            {
                let what = format!(
                    "about {} requests are too few to judge p({}): {:.0} of them lie beyond it",
                    people_count(n),
                    (q * 1e9).round() / 1e7,
                    n * (1.0 - q)
                );
                let help = format!("simulate {} requests or more", people_count(needed));
                self.warn(RUN_TOO_SHORT, span, what, help);
            }
        }
    }

    fn policy(&mut self, server: &Server, labelled: &Labelled, node: &Node) {
        self.objective(server, labelled, node);
        self.stall(server, labelled, node);
        self.expiry(labelled, node);
        if let Policy::Dynamic(dynamic) = &labelled.policy {
            self.dynamic(server, dynamic, node);
        }
    }

    fn objective(&mut self, server: &Server, labelled: &Labelled, node: &Node) {
        for threshold in self.scenario.applicable(labelled) {
            let limit = match threshold.metric {
                Metric::Quantile(_) => threshold.limit,
                Metric::Attainment(within) => within,
                _ => continue,
            };
            let least = match &labelled.policy {
                Policy::Static(p) => p.max_batch_size,
                _ => 1,
            };
            let pass = cost_s(&server.cost, least) * 1e3;
            if pass >= limit {
                let what = format!(
                    "a batch of {least} takes {} already, the objective is {}",
                    people_time(pass),
                    people_time(limit)
                );
                let help = "no setting of the policy can meet it: check the cost and the objective";
                return self.warn(WAIT_OVER_SLO, node_span(node), what, help);
            }
            if let Policy::Dynamic(Dynamic { max_wait: MaxWait::After(wait), .. }) = labelled.policy
                && wait.as_ms() + pass >= limit
            {
                let what = format!(
                    "a request that waits out max_wait, {wait}, and runs for {} has missed the \
                     objective of {}",
                    people_time(pass),
                    people_time(limit)
                );
                let help = "write a shorter max_wait";
                return self.warn(WAIT_OVER_SLO, place(node, "max_wait"), what, help);
            }
        }
    }

    /// Batches that only leave full, and cannot fill.
    fn stall(&mut self, server: &Server, labelled: &Labelled, node: &Node) {
        let needs = match &labelled.policy {
            Policy::Static(p) => p.max_batch_size,
            Policy::Dynamic(p) if p.max_wait == MaxWait::Never => p.target(),
            _ => 1,
        };
        let span = place(node, "max_batch_size");
        if let Some(clients) = self.load.clients
            && clients < u64::from(needs)
        {
            let what = format!(
                "a batch of {needs} never fills: the {clients} clients of the closed loop all wait \
                 in it"
            );
            let help = format!("write max_batch_size = {clients} or less, or more clients");
            self.warn(STATIC_STALL, span, what, help);
        }
        let Some(limit) = server.queue_limit else {
            return;
        };
        let cap = labelled.policy.cap().unwrap_or(1);
        if limit < needs {
            let what = format!("a batch of {needs} never fills: the queue holds {limit}");
            self.warn(STATIC_STALL, span, what, "raise queue_limit to the batch size or above");
        } else if limit < cap {
            let what = format!("the queue holds {limit}, so no batch reaches {cap}");
            let help = "raise queue_limit to the batch size or above";
            self.warn(QUEUE_BELOW_CAP, span, what, help);
        }
    }

    fn expiry(&mut self, labelled: &Labelled, node: &Node) {
        let Some(timeout) = self.scenario.arrivals.iter().filter_map(|s| s.timeout).min() else {
            return;
        };
        match (&labelled.policy, self.load.mean_per_s) {
            (Policy::Static(p), Some(rate)) => {
                let fill = f64::from(p.max_batch_size.saturating_sub(1)) / rate;
                if fill >= timeout.as_s() {
                    let what = format!(
                        "a batch of {} takes about {} to fill, requests expire after {timeout}",
                        p.max_batch_size,
                        people_time(fill * 1e3)
                    );
                    let help = "a static batch has no timer: write a smaller one, a longer \
                                timeout, or kind = \"dynamic\"";
                    self.warn(ALL_EXPIRE, place(node, "max_batch_size"), what, help);
                }
            }
            (Policy::Dynamic(Dynamic { max_wait: MaxWait::After(wait), .. }), _)
                if *wait >= timeout =>
            {
                let what = format!("requests expire after {timeout}, before max_wait of {wait}");
                let help = "write a max_wait well below the timeout";
                self.warn(ALL_EXPIRE, place(node, "max_wait"), what, help);
            }
            _ => {}
        }
    }

    fn dynamic(&mut self, server: &Server, dynamic: &Dynamic, node: &Node) {
        let MaxWait::After(wait) = dynamic.max_wait else {
            return;
        };
        if wait.0 == 0 {
            if dynamic.wait_anchor == Anchor::Pickup {
                let what = "`wait_anchor` changes nothing while max_wait is zero".to_owned();
                let help = "write a max_wait, or leave wait_anchor out";
                self.warn(NO_EFFECT, place(node, "wait_anchor"), what, help);
            }
            return;
        }
        if dynamic.target() <= 1 {
            let what = "max_wait changes nothing: a free instance starts at one request".to_owned();
            let help = "raise max_batch_size or min_batch_size, or write kind = \"greedy\"";
            return self.warn(NO_EFFECT, place(node, "max_wait"), what, help);
        }
        let Some((expected, most)) = self.load.batch(server, wait) else {
            return;
        };
        let target = dynamic.target();
        if dynamic.preferred_batch_sizes.is_empty()
            && !self.swept("arrivals")
            && most < f64::from(target)
        {
            let key =
                if dynamic.min_batch_size.is_some() { "min_batch_size" } else { "max_batch_size" };
            let what = format!(
                "{key} {target} is out of reach at this load: about {} requests come together",
                expected.round().max(1.0)
            );
            let help = format!(
                "an instance that is free then waits out max_wait of {wait} every time; write a \
                 size near {:.0}, or a shorter wait",
                expected.ceil().max(1.0)
            );
            self.warn(CAP_UNREACHED, place(node, key), what, help);
        }
    }
}

/// The place of a policy: its kind.
fn node_span(node: &Node) -> Span {
    place(node, "kind")
}

//! From the tree to the [`Scenario`] that is meant; every independent error is collected.

use super::axes::{self, AxisNode};
use super::de::View;
use super::diag::{
    BAD_PARAM, CONFLICT, DUPLICATE_LABEL, MISSING_KEY, NOTHING, Problem, Span, Texts, UNKNOWN_REF,
    WRONG_TYPE,
};
use super::fault::unknown_key;
use super::file::{ARRIVALS_KEYS, POLICY_KEYS, ROOT_KEYS, ServerTable, ThresholdTable};
use super::known::{self, Table};
use super::set::RESERVED;
use super::supply::{Cache, Files};
use super::tree::{Node, Value};
use super::{Axis, Labelled, Scenario, Server, Source, Threshold, threshold};
use crate::BadParam;
use crate::arrivals::{Items, Process};
use crate::policy::Policy;
use crate::time::Nanos;

const SEED: u64 = 42;

/// Sources are told apart by one byte, and so are classes.
const MOST_SOURCES: usize = 255;

/// The axes of a scenario, with their places.
#[derive(Debug)]
pub(crate) struct Axes {
    /// Of `[sweep]`.
    pub(crate) sweep: Vec<AxisNode>,
    /// Of `[tune]`.
    pub(crate) over: Vec<AxisNode>,
}

/// One reading of a tree.
pub(crate) struct Resolver<'a> {
    pub(crate) files: Option<&'a dyn Files>,
    pub(crate) cache: &'a mut Cache,
    pub(crate) texts: &'a mut Texts,
    pub(crate) problems: Vec<Problem>,
}

/// The place of `key` in a table, or of the table.
pub(crate) fn place(node: &Node, key: &str) -> Span {
    node.get(key).map_or(node.span, |n| n.span)
}

impl Resolver<'_> {
    /// Reads the whole tree; `stem` names the scenario unless it does so itself.
    ///
    /// The second part holds the axes with their places. Problems are left in `problems`; the
    /// scenario is `None` if there are any.
    pub(crate) fn read(&mut self, root: &Node, stem: &str) -> Option<(Scenario, Axes)> {
        self.root_keys(root);
        let name = self.name(root, stem);
        let seed = self.optional(root, "seed").unwrap_or(SEED);
        let run = self.run(root);
        let curve = self.curve(root);
        let arrivals = self.section(root, "arrivals", Self::source);
        let servers = self.section(root, "server", Self::server);
        let client = self.client(root);
        let policies = self.section(root, "policy", Self::policy);
        let thresholds = self.thresholds(root, &arrivals, &policies);
        let axes = match root.get("sweep") {
            Some(sweep) => axes::read(sweep, &mut self.problems),
            None => Vec::new(),
        };
        let (tune, over) = match self.tune(root, &arrivals, &policies) {
            Some((tune, over)) => (Some(tune), over),
            None => (None, Vec::new()),
        };
        self.distinct(root, &arrivals, &servers, &policies);
        if !self.problems.is_empty() {
            return None;
        }
        let sweep = axes
            .iter()
            .map(|axis| Axis {
                path: axis.path.clone(),
                values: axis.values.iter().map(|(text, _)| text.clone()).collect(),
            })
            .collect();
        let scenario = Scenario {
            name,
            seed,
            run,
            curve,
            arrivals,
            servers,
            client,
            policies,
            thresholds,
            sweep,
            tune,
        };
        Some((scenario, Axes { sweep: axes, over }))
    }

    fn push(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Keeps the problem of a failed reading.
    pub(crate) fn taken<T>(&mut self, read: Result<T, Box<Problem>>) -> Option<T> {
        read.map_err(|problem| self.push(*problem)).ok()
    }

    fn optional<'n, T: serde::Deserialize<'n>>(
        &mut self,
        node: &'n Node,
        key: &'n str,
    ) -> Option<T> {
        let value = node.get(key)?;
        self.taken(View::of(key, value).read::<Option<T>>())?
    }

    fn bad(&mut self, node: &Node, bad: &BadParam) {
        let span = place(node, bad.key);
        self.push(Problem::new(BAD_PARAM, span, bad.what.clone()).help(bad.help.clone()));
    }

    fn root_keys(&mut self, root: &Node) {
        for entry in root.entries().unwrap_or(&[]) {
            // Editors find the schema of a JSON file by `$schema`.
            if !ROOT_KEYS.contains(&entry.key.as_str()) && entry.key != "$schema" {
                let key = &entry.key;
                self.push(unknown_key(Table::Root, None, key, ROOT_KEYS, root, entry.key_span));
            }
        }
        if let Some(schema) = self.optional::<u64>(root, "schema")
            && schema != 1
        {
            let what = format!("schema {schema} is not known to this version, which reads 1");
            let help = "write schema = 1, or use a version that reads this schema";
            self.push(Problem::new(BAD_PARAM, place(root, "schema"), what).help(help));
        }
    }

    fn name(&mut self, root: &Node, stem: &str) -> String {
        let name = self.optional::<String>(root, "name").unwrap_or_else(|| stem.to_owned());
        let plain = !name.trim().is_empty()
            && name.len() <= 200
            && !name.contains(['/', '\\', ':'])
            && !name.contains(char::is_control)
            && !name.starts_with('.');
        if !plain {
            let what = format!("the name {name:?} cannot be the name of a folder");
            let help = "results are written to a folder of this name: use letters, digits, - and _";
            self.push(Problem::new(BAD_PARAM, place(root, "name"), what).help(help));
        }
        name
    }

    /// The tables of a section, which must not be empty.
    fn section<T>(
        &mut self,
        root: &Node,
        key: &'static str,
        read: fn(&mut Self, &Node) -> Option<T>,
    ) -> Vec<T> {
        let (what, example) = match key {
            "arrivals" => (
                "where requests come from",
                "[[arrivals]] with kind = \"poisson\" and rate = \"900/s\"",
            ),
            "server" => (
                "what executes them",
                "[server] with cost = { kind = \"affine\", fixed = \"8ms\", per_item = \"0.5ms\" }",
            ),
            _ => (
                "how they are batched",
                "[[policy]] with kind = \"dynamic\", max_batch_size = 32 and max_wait = \"5ms\"",
            ),
        };
        let Some(node) = root.get(key) else {
            let message = format!("a scenario says {what}: `{key}` is missing");
            self.push(
                Problem::new(NOTHING, Span::SCENARIO, message).help(format!("add {example}")),
            );
            return Vec::new();
        };
        let tables = node.one_or_many();
        if tables.is_empty() {
            let message = format!("`{key}` is empty: a scenario says {what}");
            self.push(Problem::new(NOTHING, node.span, message).help(format!("add {example}")));
        }
        let mut items = Vec::with_capacity(tables.len());
        for table in tables {
            if matches!(table.value, Value::Table(_)) {
                items.extend(read(self, table));
            } else {
                let message = format!("`{key}` holds tables, not {}", table.what());
                self.push(
                    Problem::new(WRONG_TYPE, table.span, message).help(format!("write {example}")),
                );
            }
        }
        items
    }

    fn source(&mut self, node: &Node) -> Option<Source> {
        let name = self.optional::<String>(node, "name");
        let class = self.optional::<String>(node, "class");
        let timeout = self.optional::<Nanos>(node, "timeout");
        if timeout == Some(Nanos::ZERO) {
            let help = "write a positive duration, or leave it out for no timeout";
            let what = "a timeout of zero expires every request";
            self.push(Problem::new(BAD_PARAM, place(node, "timeout"), what).help(help));
        }
        if let Some(name) = &name {
            self.label(node, "name", name);
            if name == "rate" {
                let what = "a source cannot be called `rate`: `arrivals.rate` is the total";
                self.push(
                    Problem::new(BAD_PARAM, place(node, "name"), what).help("choose another name"),
                );
            }
        }
        let priority = self.optional::<u32>(node, "priority").unwrap_or(0);
        let items = self.optional::<Items>(node, "items").unwrap_or_default();
        if let Err(bad) = items.check() {
            self.bad(node, &bad);
        }
        let shape = self.optional::<String>(node, "shape");
        let view = View::new(node).without(ARRIVALS_KEYS).as_table(Table::Arrivals);
        let process: Process = self.taken(view.read())?;
        if let Err(bad) = process.check() {
            self.bad(node, &bad);
            return None;
        }
        let trace = match &process {
            Process::Trace(replay) => Some(self.trace(node, replay)?),
            _ => None,
        };
        Some(Source { name, class, timeout, priority, items, shape, process, trace })
    }

    fn server(&mut self, node: &Node) -> Option<Server> {
        let view = View::of("server", node).as_table(Table::Server);
        let table: ServerTable = self.taken(view.read())?;
        if let Some(label) = &table.label {
            self.label(node, "label", label);
        }
        let instances = table.instances.unwrap_or(1);
        if !(1..=100_000).contains(&instances) {
            let what = format!("a server has 1 to 100,000 instances, not {instances}");
            let help = "write how many executors share the queue";
            self.push(Problem::new(BAD_PARAM, place(node, "instances"), what).help(help));
        }
        let replicas = table.replicas.unwrap_or(1);
        if !(1..=10_000).contains(&replicas) || instances.saturating_mul(replicas) > 100_000 {
            let what = format!(
                "a fleet has 1 to 10,000 replicas and at most 100,000 instances in all, not \
                 {replicas} replicas of {instances}"
            );
            let help = "write how many copies of the server stand behind the balancer";
            self.push(Problem::new(BAD_PARAM, place(node, "replicas"), what).help(help));
        }
        let queue_limit = table.queue_limit.map(super::file::QueueLimit::requests);
        if queue_limit == Some(0) {
            let help = "write how many requests may wait, or leave it out for no limit";
            let what = "a queue that holds nothing rejects every request";
            self.push(Problem::new(BAD_PARAM, place(node, "queue_limit"), what).help(help));
        }
        let jitter = table.jitter.unwrap_or_default();
        if let Err(bad) = jitter.check() {
            self.bad(node.get("jitter").unwrap_or(node), &bad);
        }
        let cost_node = node.get("cost").unwrap_or(node);
        let cost = self.cost(cost_node, table.cost)?;
        if let Err(bad) = cost.check() {
            self.bad(cost_node, &bad);
            return None;
        }
        let overhead = table.overhead.unwrap_or_default().into();
        Some(Server {
            label: table.label,
            instances,
            replicas,
            balancer: table.balancer.unwrap_or_default(),
            queue_limit,
            cost,
            jitter,
            overhead,
        })
    }

    fn policy(&mut self, node: &Node) -> Option<Labelled> {
        let label = self.optional::<String>(node, "label");
        let guard = self.optional::<bool>(node, "guard").unwrap_or(false);
        if let Some(label) = &label {
            self.label(node, "label", label);
        }
        let view = View::new(node).without(POLICY_KEYS).as_table(Table::Policy);
        let policy: Policy = self.taken(view.read())?;
        if let Err(bad) = policy.check() {
            self.bad(node, &bad);
            return None;
        }
        Some(Labelled { label: label.unwrap_or_else(|| policy.kind().into()), guard, policy })
    }

    /// A label must be printable and must not begin a path of its own.
    fn label(&mut self, node: &Node, key: &str, label: &str) {
        let span = place(node, key);
        if label.trim().is_empty() || label.len() > 200 || label.contains(char::is_control) {
            let what = format!("the {key} {label:?} cannot be printed");
            self.push(Problem::new(BAD_PARAM, span, what).help("write a short text"));
        } else if RESERVED.contains(&label) {
            let what = format!("`{label}` begins a path of its own");
            self.push(Problem::new(BAD_PARAM, span, what).help(format!("choose another {key}")));
        }
    }

    fn distinct(
        &mut self,
        root: &Node,
        sources: &[Source],
        servers: &[Server],
        policies: &[Labelled],
    ) {
        if sources.len() > MOST_SOURCES {
            let span = root.get("arrivals").map_or(root.span, |n| n.span);
            let what = format!("{} sources are more than {MOST_SOURCES}", sources.len());
            let help = "sources of one class and process can be joined: add their rates";
            self.push(Problem::new(BAD_PARAM, span, what).help(help));
        }
        let names = sources.iter().map(|s| s.name.as_deref()).collect::<Vec<_>>();
        self.no_twins(root, "arrivals", "name", &names, "two sources are called");
        if servers.len() > 1 && servers.iter().any(|s| s.label.is_none()) {
            let at = root.get("server").map(Node::one_or_many).unwrap_or(&[]);
            let bare = at.iter().find(|n| n.get("label").is_none());
            let span = bare.map_or(root.span, |n| n.span);
            let what = "servers that are compared need a `label` each";
            self.push(Problem::new(MISSING_KEY, span, what).help("write label = \"l4\""));
        }
        let labels = servers.iter().map(|s| s.label.as_deref()).collect::<Vec<_>>();
        self.no_twins(root, "server", "label", &labels, "two servers are called");
        let taken = policies.iter().map(|p| Some(p.label.as_str())).collect::<Vec<_>>();
        self.no_twins(root, "policy", "label", &taken, "two policies are called");
        for label in labels.iter().flatten() {
            if taken.contains(&Some(*label)) {
                let what = format!("a server and a policy are both called `{label}`");
                let span = root.get("server").map_or(root.span, |n| n.span);
                self.push(Problem::new(DUPLICATE_LABEL, span, what).help("rename one of them"));
            }
        }
    }

    fn no_twins(
        &mut self,
        root: &Node,
        section: &str,
        key: &str,
        names: &[Option<&str>],
        what: &str,
    ) {
        let tables = root.get(section).map_or(&[][..], Node::one_or_many);
        for (i, name) in names.iter().enumerate() {
            if let Some(name) = name
                && names[..i].contains(&Some(name))
            {
                // Tables that could not be read are left out of `names`: find by content.
                let kind = |n: &&Node| n.text(key).or(n.text("kind")) == Some(name);
                let span =
                    tables.iter().filter(kind).nth(1).map_or(root.span, |n| {
                        n.get(key).or(n.get("kind")).map_or(n.span, |n| n.span)
                    });
                let help = format!("give each a `{key}` of its own");
                self.push(
                    Problem::new(DUPLICATE_LABEL, span, format!("{what} `{name}`")).help(help),
                );
            }
        }
    }

    fn thresholds(
        &mut self,
        root: &Node,
        sources: &[Source],
        policies: &[Labelled],
    ) -> Vec<Threshold> {
        let Some(node) = root.get("threshold") else {
            return Vec::new();
        };
        let mut all = Vec::new();
        let labels: Vec<&str> = policies.iter().map(|p| p.label.as_str()).collect();
        let classes: Vec<&str> = sources.iter().filter_map(|s| s.class.as_deref()).collect();
        for table in node.one_or_many() {
            let Some(read) = self.taken(View::of("threshold", table).read::<ThresholdTable>())
            else {
                continue;
            };
            // With broken policies or arrivals the lists are not complete.
            if self.problems.is_empty() {
                self.reference(table, "policy", read.policy.as_deref(), &labels);
                self.reference(table, "class", read.class.as_deref(), &classes);
            }
            let whole = self.problems.is_empty();
            let span = place(table, "expr");
            let quoted = span.len() == read.expr.len() + 2;
            let at = |range: std::ops::Range<usize>| {
                let shift = usize::from(quoted);
                if quoted || span.len() == read.expr.len() {
                    span.within(range.start + shift..range.end + shift)
                } else {
                    span
                }
            };
            match threshold::parse(&read.expr, &at) {
                Ok((metric, op, limit)) => {
                    if metric.about_groups() && whole {
                        self.about_groups(table, sources);
                    }
                    let (expr, class, policy) = (read.expr.clone(), read.class, read.policy);
                    all.push(Threshold { expr, metric, op, limit, class, policy });
                }
                Err(problem) => self.push(problem),
            }
        }
        all
    }

    /// A threshold about groups needs some, and is about all of them.
    fn about_groups(&mut self, table: &Node, sources: &[Source]) {
        if !sources.iter().any(|s| matches!(s.process, Process::Groups(_))) {
            let what = "no source of arrivals sends groups, so there is no group latency";
            let help = "write kind = \"groups\" for a fan-out, or p(99) for single requests";
            self.push(Problem::new(CONFLICT, place(table, "expr"), what).help(help));
        }
        if table.get("class").is_some() {
            let what = "a threshold about groups is about all of them, not about a class";
            self.push(
                Problem::new(CONFLICT, place(table, "class"), what).help("leave `class` out"),
            );
        }
    }

    fn reference(&mut self, table: &Node, key: &str, name: Option<&str>, valid: &[&str]) {
        let Some(name) = name.filter(|n| !valid.contains(n)) else {
            return;
        };
        let what = format!("there is no {key} `{name}`");
        let mut problem = Problem::new(UNKNOWN_REF, place(table, key), what);
        if let Some(near) = known::closest(name, valid) {
            problem = problem.label(format!("did you mean `{near}`?"));
        }
        self.push(problem.help(match valid {
            [] => format!("no source has a `{key}`"),
            _ => format!("there is {}", known::listed(valid, "and")),
        }));
    }
}

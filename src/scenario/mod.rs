//! Scenarios: what a person writes, read strictly and resolved into what is meant.
//!
//! `tree` parses TOML, YAML or JSON into one tree with spans; `set` changes it by path; `de` reads
//! it through serde into the types of `file`, so every error points at its place; `resolve` turns
//! those into a [`Scenario`]; `check` warns about what is legal but hardly meant.

mod axes;
mod capacity;
mod change;
mod check;
mod de;
mod diag;
mod estimate;
mod external;
mod fault;
mod file;
mod json;
mod known;
mod load;
mod objective;
mod rates;
mod resolve;
mod schema;
mod set;
mod settings;
mod source;
mod supply;
mod threshold;
mod tree;
mod tune;
mod write;
mod yaml;

pub use change::{ChangeLimit, parse_change};
pub(crate) use estimate::Load;

pub use diag::{CODES, Diagnostic, Place, Severity, Text};
pub use load::{Loaded, load};
pub use objective::Objective;
pub use schema::{schema, starter};
pub use source::{Format, Input};
pub use supply::{Disk, Files, TraceParser, TraceProblem};

pub(crate) use diag::{BAD_PARAM, INPUT, MISSING_KEY, Problem, Span, Texts};
pub(crate) use tree::{Entry, Node, Value, parse as parse_tree};

use crate::arrivals::{Items, Process, Trace};
use crate::cost::{Cost, Jitter};
use crate::engine::Balancer;
use crate::policy::Policy;
use crate::time::Nanos;
use std::sync::Arc;

/// A scenario as it is meant: every default filled in, every file loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Name of the scenario, also of its output folder.
    pub name: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// How long and how precisely to simulate.
    pub run: Run,
    /// The throughput–latency curve, when one is asked for.
    pub curve: Option<Curve>,
    /// Sources of requests, superposed. Never empty.
    pub arrivals: Vec<Source>,
    /// Servers to compare, usually one. Never empty.
    pub servers: Vec<Server>,
    /// Delays outside the server, added to every latency.
    pub client: Client,
    /// Policies to compare. Never empty; labels are distinct.
    pub policies: Vec<Labelled>,
    /// Thresholds to judge.
    pub thresholds: Vec<Threshold>,
    /// Axes of a sweep, in order of the file.
    pub sweep: Vec<Axis>,
    /// What `tune` seeks, when the scenario says so.
    pub tune: Option<Tune>,
}

/// How long and how precisely to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Relative half-width wanted on p99, 0.01 for 1 %.
    pub precision: f64,
    /// Whether the scenario (not the default) asked for that precision.
    pub precision_given: bool,
    /// Measured requests of a cell over all replications; no cap and no precision loop apply.
    pub requests: Option<u64>,
    /// Simulated time of each replication.
    pub duration: Option<Nanos>,
    /// Independent replications.
    pub replications: u32,
    /// What is deleted at the start.
    pub warmup: Warmup,
    /// Cap on the requests of a cell; `None` is the study's default.
    pub max_requests: Option<u64>,
    /// What happens to requests still waiting after the last arrival.
    pub end: End,
    /// Keep every latency instead of a histogram (at most 10⁷ requests).
    pub exact_latencies: bool,
}

/// What is deleted at the start of a replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warmup {
    /// MSER-5 on a pilot.
    Auto,
    /// A fixed simulated time; zero deletes nothing.
    Time(Nanos),
}

/// What happens after the last arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Every batch held only by its rule leaves, reason `flush`.
    Flush,
    /// Time stops at `duration`; what is left is unfinished.
    Cut,
}

/// The points of a throughput–latency curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Shares of each policy's own capacity, or common rates per second.
    pub points: CurvePoints,
    /// Relative half-width wanted on p99.
    pub precision: f64,
}

/// Where a curve is sampled.
#[derive(Clone, Debug, PartialEq)]
pub enum CurvePoints {
    /// Shares of each policy's own capacity.
    Loads(Vec<f64>),
    /// Offered rates per second, the same for every policy.
    Rates(Vec<f64>),
}

/// One source of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Name, for paths such as `arrivals.web.rate`.
    pub name: Option<String>,
    /// Class of its requests.
    pub class: Option<String>,
    /// A request older than this when it is taken from the queue has expired.
    pub timeout: Option<Nanos>,
    /// Priority level its requests ask for, 1 the highest; 0 leaves it to the server.
    pub priority: u32,
    /// Items each request carries.
    pub items: Items,
    /// Shape of its requests; where a server enforces shapes, different ones share no batch.
    pub shape: Option<String>,
    /// When they come.
    pub process: Process,
    /// Recorded arrivals of a `trace` process (unscaled).
    pub trace: Option<Arc<Trace>>,
}

/// One server.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Label, when servers are compared.
    pub label: Option<String>,
    /// Instances sharing one queue.
    pub instances: u32,
    /// Copies of the whole server, each with its own queue.
    pub replicas: u32,
    /// How arrivals are spread over them.
    pub balancer: Balancer,
    /// Most waiting requests; the next one is rejected.
    pub queue_limit: Option<u32>,
    /// Cost of one forward pass; files are already read in.
    pub cost: Cost,
    /// Random factor on it.
    pub jitter: Jitter,
    /// What it adds to every request and every batch.
    pub overhead: Overhead,
}

impl Server {
    /// Instances of all replicas.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.instances.saturating_mul(self.replicas)
    }
}

/// What a server adds to every request and every batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    /// From the client's sending to the request's joining the queue.
    pub inbound: Nanos,
    /// From a batch's leaving to the start of its forward pass.
    pub dispatch: Nanos,
    /// From the end of a pass until its instance can take the next batch.
    pub release: Nanos,
    /// The same for each request of the batch that ended: a server sends answers one by one.
    pub release_per_request: Nanos,
    /// From the end of the pass to the answer's arrival at the client.
    pub response: Nanos,
}

impl Overhead {
    /// Time an instance is held by a batch of `requests` beyond its pass.
    #[must_use]
    pub fn between(&self, requests: f64) -> f64 {
        self.dispatch.as_s() + self.release.as_s() + self.release_per_request.as_s() * requests
    }

    /// Whether an instance is held by nothing but passes.
    #[must_use]
    pub fn holds_nothing(&self) -> bool {
        [self.dispatch, self.release, self.release_per_request] == [Nanos::ZERO; 3]
    }
}

/// Fixed delays outside the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// Before the request reaches the server.
    pub before: Nanos,
    /// After the answer leaves it.
    pub after: Nanos,
}

/// A policy and how the scenario calls it.
#[derive(Clone, Debug, PartialEq)]
pub struct Labelled {
    /// Distinct label (default: the kind).
    pub label: String,
    /// Whether thresholds apply to it first.
    pub guard: bool,
    /// The policy.
    pub policy: Policy,
}

/// A threshold, parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// As written.
    pub expr: String,
    /// What is compared.
    pub metric: Metric,
    /// How.
    pub op: Op,
    /// With what: milliseconds, a share, or a rate per second, by metric.
    pub limit: f64,
    /// Only this class.
    pub class: Option<String>,
    /// Only this policy; default: policies with `guard = true`, else all.
    pub policy: Option<String>,
}

/// What a threshold compares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// Latency quantile `p(q)`, as a share (0.99); limit in ms.
    Quantile(f64),
    /// Mean latency `mean`; limit in ms.
    Mean,
    /// Share of offered requests completed within a time in ms; limit is a share.
    Attainment(f64),
    /// Completions per second.
    Throughput,
    /// Rejected share of offered requests.
    Rejected,
    /// Expired share of offered requests.
    Expired,
    /// Quantile of the group latency, `group.p(q)`, as a share; limit in ms.
    GroupQuantile(f64),
    /// Mean group latency, `group.mean`; limit in ms.
    GroupMean,
}

impl Metric {
    /// Whether it is about how long requests take, which a queue without end makes hopeless.
    #[must_use]
    pub const fn about_latency(self) -> bool {
        match self {
            Self::Quantile(_) | Self::Mean | Self::Attainment(_) => true,
            Self::GroupQuantile(_) | Self::GroupMean => true,
            Self::Throughput | Self::Rejected | Self::Expired => false,
        }
    }

    /// Whether it is about groups of requests.
    #[must_use]
    pub const fn about_groups(self) -> bool {
        matches!(self, Self::GroupQuantile(_) | Self::GroupMean)
    }
}

/// How a threshold compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

/// What `tune` seeks, and over which settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Tune {
    /// What makes one setting better than another.
    pub objective: Objective,
    /// Labels of the policies that compete; `None` for all.
    pub policies: Option<Vec<String>>,
    /// What varies.
    pub over: Vec<Axis>,
    /// Settings within this share of the best count as equal to it.
    pub indifference: f64,
}

/// One axis of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What varies: `label.key`, `arrivals.rate`, `arrivals.NAME.rate`, `server.instances`, ….
    pub path: String,
    /// Its values, as they would be written after `--set path=`.
    pub values: Vec<String>,
}

impl Scenario {
    /// Fixed delays around the server, part of every latency: the client's and the server's own.
    #[must_use]
    pub fn outside(&self, server: &Server) -> Nanos {
        let Overhead { inbound, response, .. } = server.overhead;
        let Client { before, after } = self.client;
        before.plus(after).plus(inbound).plus(response)
    }

    /// The thresholds that apply to a policy: those that name it, and those that name none, which
    /// are for policies with `guard = true` where there are any, else for all.
    #[must_use]
    pub fn applicable(&self, policy: &Labelled) -> Vec<&Threshold> {
        let any_guard = self.policies.iter().any(|p| p.guard);
        let applies = |t: &&Threshold| match &t.policy {
            Some(label) => *label == policy.label,
            None => policy.guard || !any_guard,
        };
        self.thresholds.iter().filter(applies).collect()
    }

    /// What results call a policy on a server: its label, `label@server` when servers are compared.
    #[must_use]
    pub fn cell_label(&self, server: &Server, policy: &Labelled) -> String {
        match &server.label {
            Some(server) if self.servers.len() > 1 => format!("{}@{server}", policy.label),
            _ => policy.label.clone(),
        }
    }
}

//! A scenario as it is written: the types behind the keys, for reading, writing and the schema.
//!
//! Reading goes section by section (see `resolve`), so that independent errors are reported
//! together; these types say what each section holds.

use crate::arrivals::{Items, Process};
use crate::cost::{Cost, Jitter};
use crate::engine::Balancer;
use crate::policy::Policy;
use crate::time::Nanos;
use crate::units::{Fraction, HELP_MARK, Rate, parse_duration};
use schemars::JsonSchema;
use serde::de::{Error, IgnoredAny, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A scenario of batchsim: arrivals, servers, policies, and what to find out about them.
#[derive(Serialize)]
pub(crate) struct File {
    /// Version of this format, 1.
    pub(crate) schema: u32,
    /// Name of the scenario, also of its output folder (default: the file's name).
    pub(crate) name: String,
    /// Seed of all random streams (default 42).
    pub(crate) seed: u64,
    /// How long and how precisely to simulate.
    pub(crate) run: RunTable,
    /// Asks for a throughput-latency curve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) curve: Option<CurveTable>,
    /// Sources of requests, superposed.
    pub(crate) arrivals: Vec<ArrivalsTable>,
    /// Servers to compare, usually one.
    pub(crate) server: Vec<ServerTable>,
    /// Fixed delays outside the server.
    pub(crate) client: ClientTable,
    /// Policies to compare.
    pub(crate) policy: Vec<PolicyTable>,
    /// Objectives to judge.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) threshold: Vec<ThresholdTable>,
    /// Axes of a sweep; the list form is for writers whose tables have no order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) sweep: Vec<AxisTable>,
    /// What to seek, over which settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tune: Option<WrittenTune>,
}

/// The keys at the top of a scenario.
pub(crate) const ROOT_KEYS: &[&str] = &[
    "schema",
    "name",
    "seed",
    "run",
    "curve",
    "arrivals",
    "server",
    "client",
    "policy",
    "threshold",
    "sweep",
    "tune",
];

/// `[run]`: how long and how precisely to simulate.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunTable {
    /// Relative half-width of the interval of p99 to reach (default 1%; 3% in a sweep).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) precision: Option<Fraction>,
    /// Measured requests of a cell over all replications, instead of a precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) requests: Option<u64>,
    /// Simulated time of each replication, instead of a precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) duration: Option<Nanos>,
    /// Independent replications (default 20).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replications: Option<u32>,
    /// What is deleted at the start: "auto" (default) or a duration, "0s" for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) warmup: Option<WarmupText>,
    /// Most requests of a cell while a precision is sought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_requests: Option<u64>,
    /// What happens to requests still waiting at the end: flush (default) or cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<EndText>,
    /// Keep every latency instead of a histogram (at most 10,000,000 requests).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exact_latencies: Option<bool>,
}

/// What happens after the last arrival.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EndText {
    /// At the last arrival, every batch held only by its rule leaves.
    Flush,
    /// Time stops at `duration`; what is left counts as unfinished.
    Cut,
}

/// `warmup`: "auto" or a duration.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WarmupText {
    Auto,
    Time(Nanos),
}

impl<'de> Deserialize<'de> for WarmupText {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = WarmupText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"auto\" or a duration such as \"10s\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<WarmupText, E> {
                if text == "auto" {
                    return Ok(WarmupText::Auto);
                }
                parse_duration(text)
                    .map(WarmupText::Time)
                    .map_err(|e| E::custom(format!("{}{HELP_MARK}{}, or \"auto\"", e.what, e.help)))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<WarmupText, E> {
                self.visit_str(&value.to_string())
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<WarmupText, E> {
                self.visit_str(&value.to_string())
            }
        }

        d.deserialize_any(Reader)
    }
}

impl Serialize for WarmupText {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => s.serialize_str("auto"),
            Self::Time(time) => time.serialize(s),
        }
    }
}

impl JsonSchema for WarmupText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Warmup".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let duration = generator.subschema_for::<Nanos>();
        schemars::json_schema!({ "anyOf": [{ "const": "auto" }, duration] })
    }
}

/// `[curve]`: a throughput-latency curve.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CurveTable {
    /// Points as shares of each policy's own capacity (default 0.1 to 0.95).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) loads: Option<Vec<f64>>,
    /// Points as rates, the same for every policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rates: Option<Vec<Rate>>,
    /// Relative half-width of the interval of p99 to reach at each point (default 3%).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) precision: Option<Fraction>,
}

/// `[[arrivals]]`: one source of requests.
#[derive(Serialize)]
pub(crate) struct ArrivalsTable {
    /// Name, for paths such as `arrivals.web.rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// Class of its requests: a row of its own in results, and a target of thresholds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) class: Option<String>,
    /// A request older than this when it is taken from the queue has expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<Nanos>,
    /// Priority level its requests ask for, 1 the highest (default: the server's choice).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<u32>,
    /// Items a request carries (default 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) items: Option<Items>,
    /// Shape of its requests: different ones share no batch where a server enforces shapes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shape: Option<String>,
    /// When requests come.
    #[serde(flatten)]
    pub(crate) process: Process,
}

/// Keys of every source, whatever its kind.
pub(crate) const ARRIVALS_KEYS: &[&str] =
    &["name", "class", "timeout", "priority", "items", "shape"];

/// `[server]`: what executes batches.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerTable {
    /// Label, when servers are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    /// Instances sharing one queue (default 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instances: Option<u32>,
    /// Copies of the whole server, each with its own queue (default 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replicas: Option<u32>,
    /// How arrivals are spread over the replicas (default round-robin).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) balancer: Option<Balancer>,
    /// Most waiting requests; the next one is rejected (default: no limit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) queue_limit: Option<QueueLimit>,
    /// Cost of one forward pass.
    pub(crate) cost: Cost,
    /// Random factor on the cost, mean 1 (default none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) jitter: Option<Jitter>,
    /// What a server adds to every request and every batch (default nothing).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) overhead: Option<OverheadTable>,
}

impl From<OverheadTable> for super::Overhead {
    fn from(table: OverheadTable) -> Self {
        let OverheadTable { inbound, dispatch, release, release_per_request, response } = table;
        Self { inbound, dispatch, release, release_per_request, response }
    }
}

/// `overhead`: what a server adds to every request and every batch.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverheadTable {
    /// From the client's sending to the request's joining the queue (default 0).
    #[serde(default)]
    pub(crate) inbound: Nanos,
    /// From a batch's leaving to the start of its forward pass (default 0).
    #[serde(default)]
    pub(crate) dispatch: Nanos,
    /// From the end of a pass until its instance can take the next batch (default 0).
    #[serde(default)]
    pub(crate) release: Nanos,
    /// The same for each request of the batch that ended (default 0).
    #[serde(default)]
    pub(crate) release_per_request: Nanos,
    /// From the end of the pass to the answer's arrival at the client (default 0).
    #[serde(default)]
    pub(crate) response: Nanos,
}

/// `queue_limit`: a number of requests, or a table that says its unit.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum QueueLimit {
    /// Requests.
    Requests(u32),
    /// With its unit.
    Table(QueueLimitTable),
}

/// `queue_limit` with its unit.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueLimitTable {
    /// How many may wait.
    pub(crate) count: u32,
    /// What is counted.
    pub(crate) unit: QueueUnit,
}

/// What a queue limit counts.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum QueueUnit {
    /// Requests.
    Requests,
}

impl QueueLimit {
    /// Most waiting requests.
    pub(crate) fn requests(self) -> u32 {
        match self {
            Self::Requests(count) | Self::Table(QueueLimitTable { count, .. }) => count,
        }
    }
}

impl<'de> Deserialize<'de> for QueueLimit {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        use serde::de::value::MapAccessDeserializer;

        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = QueueLimit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of requests such as 4096")
            }

            fn visit_u64<E: Error>(self, count: u64) -> Result<QueueLimit, E> {
                u32::try_from(count).map(QueueLimit::Requests).map_err(|_| {
                    E::invalid_value(serde::de::Unexpected::Unsigned(count), &"below 4294967296")
                })
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                map: A,
            ) -> Result<QueueLimit, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(map)).map(QueueLimit::Table)
            }
        }

        d.deserialize_any(Reader)
    }
}

/// `[client]`: fixed delays outside the server, part of every latency.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientTable {
    /// Before the request reaches the server (default 0).
    #[serde(default)]
    pub(crate) before: Nanos,
    /// After the answer leaves it (default 0).
    #[serde(default)]
    pub(crate) after: Nanos,
}

/// `[[policy]]`: one policy to compare.
#[derive(Serialize)]
pub(crate) struct PolicyTable {
    /// What results and paths call it (default: its kind).
    pub(crate) label: String,
    /// Thresholds apply to policies with guard = true, or to all if there are none.
    pub(crate) guard: bool,
    /// The rule.
    #[serde(flatten)]
    pub(crate) policy: Policy,
}

/// Keys of every policy, whatever its kind.
pub(crate) const POLICY_KEYS: &[&str] = &["label", "guard"];

/// `[[threshold]]`: an objective to judge.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThresholdTable {
    /// Such as "p(99) < 50ms", "mean < 20ms", "attainment(50ms) >= 99%", "throughput >= 880/s",
    /// "rejected <= 0.1%" or "expired <= 1%".
    pub(crate) expr: String,
    /// Only requests of this class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) class: Option<String>,
    /// Only the policy of this label (default: policies with guard = true, else all).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<String>,
}

/// `[tune]`: what to seek, over which settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TuneTable {
    /// "max rate", "min p99" (or another percentile, as in "min p(95)"), "min mean",
    /// "min group p99", "min group mean", "min instances" or "min gpu-time"; thresholds are
    /// constraints.
    #[serde(default)]
    pub(crate) objective: Option<String>,
    /// Read apart: axes as in `[sweep]`, and `policy`, a list of labels.
    #[serde(default, rename = "over")]
    pub(crate) _over: Option<IgnoredAny>,
    /// Settings within this share of the best count as equal to it (default 1%).
    #[serde(default)]
    pub(crate) indifference: Option<Fraction>,
}

/// `[tune]` as it is written back.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WrittenTune {
    /// What is sought.
    pub(crate) objective: String,
    /// The axes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) over: Vec<AxisTable>,
    /// The indifference zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) indifference: Option<Fraction>,
}

/// One axis of a sweep: its values, or where they start, end, and how far apart they are.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct AxisTable {
    /// What varies, as in `dynamic.max_wait`; only in the list form, elsewhere it is the key.
    pub(crate) path: String,
    /// The values.
    pub(crate) values: Vec<String>,
}

//! The arguments of every verb.

pub(super) use super::args_servers::{
    ExplainArgs, ExportArgs, ExportVerb, FromScenario, ImportArgs, ImportVerb,
};
pub(super) use super::choices::{AnnotationsFor, SearchMethod, TuneMethod};
use super::validate::ValidateArgs;
use crate::report::Format;
use crate::study::Shard;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Which max_batch_size and max_wait meet your latency objective, on how many GPUs.
///
/// A simulator of request batching for GPU inference. Results go to standard output, everything
/// else to standard error.
#[derive(Debug, Parser)]
#[command(
    name = "batchsim",
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0 done, 1 unexpected or I/O, 2 wrong usage or input, 4 nothing to \
                  do, 95 the simulated server stalls, 96 inconclusive (with --inconclusive=fail), \
                  97 infeasible, 98 a regression, 99 a threshold failed, 130/143 interrupted (what is \
                  complete is saved)."
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) verb: Option<Verb>,
    #[command(flatten)]
    pub(super) common: Common,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Simulate every policy of a scenario: table, charts, verdicts
    #[command(visible_alias = "simulate")]
    Run(RunArgs),
    /// Simulate a grid over any fields of a scenario; resumes where it was interrupted
    Sweep(SweepArgs),
    /// Find the highest rate at which all thresholds hold, or the instances a load needs
    Capacity(CapacityArgs),
    /// Judge thresholds and compare with a stored baseline, for CI: JUnit, annotations, exit code
    Check(CheckArgs),
    /// Hold two scenarios or two results against each other, number by number
    Compare(CompareArgs),
    /// Find the best settings for an objective, with a certificate
    Tune(TuneArgs),
    /// Put the shards of a sweep together: the same bytes as the single run
    Merge(MergeArgs),
    /// Say what the slowest requests waited for, why batches left, and what to beware of
    Explain(ExplainArgs),
    /// Solve the same policies exactly, at once (Poisson or two-state MMPP, one instance)
    Exact(ExactArgs),
    /// Hold a recording of a real server against what is predicted for it, and the textbook
    Validate(Box<ValidateArgs>),
    /// Check this build: exact solver, engines and statistics against known results
    Selfcheck,
    /// Look at recorded arrivals
    Trace(TraceArgs),
    /// Draw the charts of a result again
    Plot(PlotArgs),
    /// Read a server's own configuration into a scenario
    Import(ImportArgs),
    /// Write a scenario's settings into a server's own configuration, or rules to watch it by
    Export(ExportArgs),
    /// Write a commented scenario to start from
    Init(InitArgs),
    /// Print the JSON Schema of scenarios, results or verdicts
    Schema(SchemaArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

/// Options of every verb.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// How to print results
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub(super) format: Format,
    /// Threads to use (default: all cores)
    #[arg(long, short, global = true, value_name = "N")]
    pub(super) jobs: Option<usize>,
    /// Progress on standard error
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(super) progress: When,
    /// Colours on standard error
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(super) color: When,
}

/// When to do something that suits terminals only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum When {
    /// On a terminal
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// A scenario and what is changed in it before it runs.
#[derive(Debug, Default, Args)]
pub(super) struct SourceArgs {
    /// The scenario: TOML, YAML or JSON; `-` reads standard input
    #[arg(value_name = "SCENARIO")]
    pub(super) scenario: PathBuf,
    /// Change a key before running: label.key=value, as in dynamic.max_wait=3ms (repeatable)
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(super) sets: Vec<String>,
    /// Seed of all random streams (default: the scenario's)
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
}

/// A scenario and changes to it.
#[derive(Debug, Args)]
pub(super) struct ScenarioArgs {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// Folder for results and charts (default: batchsim-out/<scenario>/)
    #[arg(long, short, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
}

/// What to do about an open verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum OnInconclusive {
    /// Say so and exit 0
    #[default]
    Warn,
    /// Exit 96
    Fail,
}

/// How precisely to simulate.
#[derive(Debug, Args)]
pub(super) struct PrecisionArgs {
    /// Relative half-width wanted on p99, as in 1%
    #[arg(long, value_name = "PERCENT")]
    pub(super) precision: Option<String>,
    /// Keep every latency instead of a histogram (at most 10 million requests)
    #[arg(long)]
    pub(super) exact_latencies: bool,
    /// Draw no charts
    #[arg(long)]
    pub(super) no_charts: bool,
    /// Run everything on the event engine
    #[arg(long, hide = true)]
    pub(super) event_engine: bool,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) scenario: ScenarioArgs,
    #[command(flatten)]
    pub(super) precision: PrecisionArgs,
    /// Draw the throughput–latency curve, also where the scenario has no [curve]
    #[arg(long)]
    pub(super) curve: bool,
    /// What an inconclusive threshold does to the exit code
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub(super) inconclusive: OnInconclusive,
}

/// Arguments of `sweep`.
#[derive(Debug, Args)]
pub(super) struct SweepArgs {
    #[command(flatten)]
    pub(super) scenario: ScenarioArgs,
    #[command(flatten)]
    pub(super) precision: PrecisionArgs,
    /// How cells are examined
    #[arg(long, value_enum, default_value_t = SearchMethod::Simulation, value_name = "METHOD")]
    pub(super) method: SearchMethod,
    /// Start over instead of going on where an interrupted sweep stopped
    #[arg(long)]
    pub(super) fresh: bool,
    /// Only part i of n, for many machines: every n-th cell, from the i-th; goes to
    /// DIR/shard-i-of-n/
    #[arg(long, value_name = "I/N")]
    pub(super) shard: Option<Shard>,
}

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub(super) struct MergeArgs {
    /// Folders of all shards, or the folder that holds them
    #[arg(value_name = "SHARD", required = true)]
    pub(super) shards: Vec<PathBuf>,
    /// Folder for results and charts (default: batchsim-out/<scenario>/)
    #[arg(long, short, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// Draw no charts
    #[arg(long)]
    pub(super) no_charts: bool,
}

/// Arguments of `capacity`.
#[derive(Debug, Args)]
pub(super) struct CapacityArgs {
    #[command(flatten)]
    pub(super) scenario: ScenarioArgs,
    /// Also find the fewest instances for a load: a total rate such as 3000/s, or `offered` for
    /// what the scenario offers (always done for recorded arrivals)
    #[arg(long, value_name = "LOAD")]
    pub(super) instances_for: Option<String>,
    /// Answer at every point of the scenario's [sweep]
    #[arg(long)]
    pub(super) sweep: bool,
    /// How settings are examined
    #[arg(long, value_enum, default_value_t, value_name = "METHOD")]
    pub(super) method: SearchMethod,
    /// Relative half-width wanted on a simulated rate (default: the scenario's precision, or 0.5%)
    #[arg(long, value_name = "PERCENT")]
    pub(super) precision: Option<String>,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Scenarios: TOML, YAML or JSON; `-` reads standard input
    #[arg(value_name = "SCENARIO", required = true)]
    pub(super) scenarios: Vec<PathBuf>,
    /// Change a key before running: label.key=value, as in dynamic.max_wait=3ms (repeatable)
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(super) sets: Vec<String>,
    /// Seed of all random streams (default: the scenario's)
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Relative half-width wanted on p99, as in 1%
    #[arg(long, value_name = "PERCENT")]
    pub(super) precision: Option<String>,
    /// Record the result as the new baseline; differences are told and count for nothing
    #[arg(long)]
    pub(super) bless: bool,
    /// The baseline, or the folder of baselines (default: <scenario>.baseline.json beside it)
    #[arg(long, value_name = "PATH")]
    pub(super) baseline: Option<PathBuf>,
    /// Changes below this count as none (of shares: in points)
    #[arg(long, value_name = "PERCENT")]
    pub(super) margin: Option<String>,
    /// Write the verdicts as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,
    /// Append the verdicts as Markdown (default: $GITHUB_STEP_SUMMARY where it is set)
    #[arg(long, value_name = "FILE")]
    pub(super) summary: Option<PathBuf>,
    /// Annotations at the place of what failed
    #[arg(long, value_enum, default_value_t, value_name = "WHERE")]
    pub(super) annotations: AnnotationsFor,
    /// Also write each result to DIR/<name>/outcome.json
    #[arg(long, short, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// What an inconclusive verdict does to the exit code
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub(super) inconclusive: OnInconclusive,
    /// Run everything on the event engine
    #[arg(long, hide = true)]
    pub(super) event_engine: bool,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// The first: a scenario, an outcome.json or its folder, or a baseline
    #[arg(value_name = "A")]
    pub(super) a: PathBuf,
    /// The second; a scenario runs with the seed of the first
    #[arg(value_name = "B")]
    pub(super) b: PathBuf,
    /// Exit 98 when a change is shown: 'p(99) > +5%', 'throughput < -1%' (repeatable)
    #[arg(long, value_name = "CONDITION")]
    pub(super) fail_on: Vec<String>,
    /// Changes below this count as none (of shares: in points)
    #[arg(long, value_name = "PERCENT")]
    pub(super) margin: Option<String>,
    /// Change a key of both scenarios: label.key=value (repeatable)
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(super) sets: Vec<String>,
    /// Seed of both scenarios
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Relative half-width wanted on p99, as in 1%
    #[arg(long, value_name = "PERCENT")]
    pub(super) precision: Option<String>,
    /// What an inconclusive condition does to the exit code
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub(super) inconclusive: OnInconclusive,
}

/// Arguments of `tune`.
#[derive(Debug, Args)]
pub(super) struct TuneArgs {
    #[command(flatten)]
    pub(super) scenario: ScenarioArgs,
    /// How settings are examined
    #[arg(long, value_enum, default_value_t, value_name = "METHOD")]
    pub(super) method: TuneMethod,
}

/// Arguments of `exact`.
#[derive(Debug, Args)]
pub(super) struct ExactArgs {
    #[command(flatten)]
    pub(super) scenario: ScenarioArgs,
    /// Draw no charts
    #[arg(long)]
    pub(super) no_charts: bool,
}

/// Arguments of `trace`.
#[derive(Debug, Args)]
pub(super) struct TraceArgs {
    #[command(subcommand)]
    pub(super) verb: TraceVerb,
}

/// What to do with a trace.
#[derive(Debug, Subcommand)]
pub(super) enum TraceVerb {
    /// Print its rate, burstiness, lengths, and what is odd about its times
    Inspect(InspectArgs),
}

/// Arguments of `trace inspect`.
#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// The trace; its format is recognised from the first line
    #[arg(value_name = "TRACE")]
    pub(super) trace: PathBuf,
    /// Its format: azure-llm-2023, csv or jsonl
    #[arg(long = "trace-format", value_name = "FORMAT")]
    pub(super) trace_format: Option<String>,
    /// Column (key) of arrival times, for csv and jsonl
    #[arg(long, value_name = "NAME")]
    pub(super) arrival: Option<String>,
    /// Unit of numeric arrival times: ns, us, ms or s
    #[arg(long, value_name = "UNIT")]
    pub(super) unit: Option<String>,
    /// Column of input lengths
    #[arg(long, value_name = "NAME")]
    pub(super) input_length: Option<String>,
    /// Column of output lengths
    #[arg(long, value_name = "NAME")]
    pub(super) output_length: Option<String>,
}

/// Arguments of `plot`.
#[derive(Debug, Args)]
pub(super) struct PlotArgs {
    /// An outcome.json, with its side files beside it
    #[arg(value_name = "OUTCOME")]
    pub(super) outcome: PathBuf,
    /// Only these charts: cdf, curve, heatmap, batch-hist (default: all that apply)
    #[arg(long = "chart", value_name = "CHART")]
    pub(super) charts: Vec<String>,
    /// A folder for all charts, or one file ending in .svg or .png (default: beside the outcome)
    #[arg(long, short, value_name = "PATH")]
    pub(super) output: Option<PathBuf>,
}

/// Arguments of `init`.
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Where to write it; `-` prints it
    #[arg(value_name = "FILE", default_value = "scenario.toml")]
    pub(super) file: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub(super) force: bool,
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// Of what
    #[arg(value_enum, default_value_t, value_name = "WHAT")]
    pub(super) what: SchemaOf,
}

/// What a schema describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaOf {
    /// Scenario files
    #[default]
    Scenario,
    /// outcome.json
    Outcome,
    /// capacity.json
    Capacity,
    /// What `check --format json` prints
    Check,
    /// What `compare --format json` prints
    Comparison,
    /// validation.json
    Validation,
    /// Files of `check --bless`
    Baseline,
    /// tune.json
    Tune,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(super) shell: clap_complete::Shell,
}

//! Arguments of the verbs about servers: explain, import, export.

use super::args::SourceArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    #[command(subcommand)]
    pub(super) server: ImportVerb,
}

/// Whose configuration to read.
#[derive(Debug, Subcommand)]
pub(super) enum ImportVerb {
    /// Triton's config.pbtxt; prints a scenario, what Triton makes of it and what is ignored
    Triton {
        /// The file; `-` reads standard input
        #[arg(value_name = "CONFIG")]
        file: PathBuf,
        /// Write the scenario here instead of printing it
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Use the textbook policy `dynamic` instead of Triton's own batcher
        #[arg(long)]
        textbook: bool,
    },
    /// A TorchServe model's model-config.yaml, the server's config.properties, or both
    Torchserve {
        /// The files; one that ends in .properties is the server's
        #[arg(value_name = "CONFIG", required = true, num_args = 1..=2)]
        files: Vec<PathBuf>,
        /// The model, as NAME or NAME:VERSION, where config.properties has several
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
        /// Write the scenario here instead of printing it
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// Only the policy with this label (default: all)
    #[arg(long, value_name = "LABEL")]
    pub(super) policy: Option<String>,
    /// Blame the requests at this percentile and above
    #[arg(long, value_name = "PERCENTILE", default_value = "p99")]
    pub(super) above: String,
    /// Show so many of the slowest requests
    #[arg(long, value_name = "K", default_value_t = 3)]
    pub(super) slowest: usize,
    /// Requests to simulate
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    pub(super) requests: u64,
    /// Write the surroundings of the slowest requests as a trace for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub(super) perfetto: Option<PathBuf>,
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    #[command(subcommand)]
    pub(super) server: ExportVerb,
}

/// Whose configuration to change.
#[derive(Debug, Subcommand)]
pub(super) enum ExportVerb {
    /// Triton's config.pbtxt; without a file, prints the fields
    Triton {
        #[command(flatten)]
        from: FromScenario,
        /// The file to change
        #[arg(value_name = "CONFIG")]
        file: Option<PathBuf>,
    },
    /// A TorchServe model's model-config.yaml, or the server's config.properties
    Torchserve {
        #[command(flatten)]
        from: FromScenario,
        /// The model, as NAME or NAME:VERSION, where config.properties has several
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
        /// The file to change
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Prometheus alert rules: what to watch for this setting, with the values expected
    Prometheus {
        /// The scenario whose settings are meant; it is simulated
        #[arg(long, value_name = "SCENARIO", required_unless_present = "outcome")]
        from: Option<PathBuf>,
        /// Its policy, by label (default: the only one of a server that is known)
        #[arg(long, value_name = "LABEL")]
        policy: Option<String>,
        /// Name of the model in the server's metrics (default: the scenario's name)
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
        /// Take the expected values from this outcome.json instead
        #[arg(long, value_name = "OUTCOME", conflicts_with = "from")]
        outcome: Option<PathBuf>,
    },
}

/// What to write where.
#[derive(Debug, Args)]
pub(super) struct FromScenario {
    /// The scenario whose settings are meant
    #[arg(long, value_name = "SCENARIO")]
    pub(super) from: PathBuf,
    /// Its policy, by label (default: the only one of this server's kind)
    #[arg(long, value_name = "LABEL")]
    pub(super) policy: Option<String>,
    /// Change the file; without it the changes are only shown
    #[arg(long)]
    pub(super) in_place: bool,
}

//! The command line: one file per verb.

mod args;
mod args_servers;
mod capacity;
mod check;
mod choices;
mod compare;
mod completions;
mod exact;
mod exit;
mod explain;
mod export;
mod files;
mod import;
mod init;
mod input;
mod journal;
mod merge;
mod plot;
mod progress;
mod recordings;
mod run;
mod selfcheck;
mod shard;
mod show;
mod signals;
mod sweep;
mod trace;
mod tune;
mod validate;

use args::{Cli, Verb};
use clap::Parser;
use exit::{Code, Failure};
use std::process::ExitCode;

/// Parses the arguments, runs the verb and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let colour = show::colour(cli.common.color);
    let done = match &cli.verb {
        None => init::greet(),
        Some(Verb::Run(args)) => run::run(args, &cli.common),
        Some(Verb::Sweep(args)) => sweep::run(args, &cli.common),
        Some(Verb::Capacity(args)) => capacity::run(args, &cli.common),
        Some(Verb::Check(args)) => check::run(args, &cli.common),
        Some(Verb::Compare(args)) => compare::run(args, &cli.common),
        Some(Verb::Tune(args)) => tune::run(args, &cli.common),
        Some(Verb::Merge(args)) => merge::run(args, &cli.common),
        Some(Verb::Explain(args)) => explain::run(args, &cli.common),
        Some(Verb::Exact(args)) => exact::run(args, &cli.common),
        Some(Verb::Validate(args)) => validate::run(args, &cli.common),
        Some(Verb::Selfcheck) => selfcheck::run(&cli.common),
        Some(Verb::Trace(args)) => trace::run(args, &cli.common),
        Some(Verb::Plot(args)) => plot::run(args, &cli.common),
        Some(Verb::Import(args)) => import::run(args, &cli.common),
        Some(Verb::Export(args)) => export::run(args, &cli.common),
        Some(Verb::Init(args)) => init::run(args),
        Some(Verb::Schema(args)) => init::schema(args),
        Some(Verb::Completions(args)) => completions::run(args),
    };
    match done {
        Ok(code) => code.into(),
        Err(failure) => failure.report(colour).into(),
    }
}

/// What a verb returns.
type Done = Result<Code, Failure>;

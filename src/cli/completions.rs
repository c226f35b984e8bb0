//! `batchsim completions`.

use super::Done;
use super::args::{Cli, CompletionsArgs};
use super::exit::Code;
use super::show::print;
use clap::CommandFactory;

/// Runs the verb.
pub(super) fn run(args: &CompletionsArgs) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "batchsim", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Code::Fine)
}

//! `batchsim import`.

use super::Done;
use super::args::{Common, ImportArgs, ImportVerb};
use super::exit::Code;

/// Runs the verb.
pub(super) fn run(args: &ImportArgs, _: &Common) -> Done {
    match &args.server {
        ImportVerb::Triton { .. } => Ok(Code::Fine),
    }
}

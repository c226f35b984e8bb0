//! The scenarios that are simulated, written as anyone would write them.

use crate::arrivals::{Replay, Trace};
use crate::scenario::{Diagnostic, Files, Input, Labelled, Scenario, TraceProblem, load};
use std::io;
use std::path::Path;

/// A scenario needs no files here.
struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn trace(&self, _: &Replay, _: Vec<u8>) -> Result<Trace, TraceProblem> {
        Err(TraceProblem { what: "no recordings here".into(), line: None, help: None })
    }
}

/// All policies on one server: 8 ms + 0.5 ms per item unless `server` says otherwise.
pub(super) fn world(
    arrivals: &str,
    server: &str,
    requests: u64,
    sets: &[String],
) -> Result<Scenario, Vec<Diagnostic>> {
    let text = format!(
        r#"
schema = 1
[run]
requests = {requests}
[arrivals]
{arrivals}
[server]
cost = {{ kind = "affine", fixed = "8ms", per_item = "0.5ms" }}
{server}
[[policy]]
kind = "none"
[[policy]]
kind = "static"
max_batch_size = 32
[[policy]]
kind = "greedy"
max_batch_size = 32
[[policy]]
kind = "dynamic"
max_batch_size = 32
max_wait = "5ms"
[[policy]]
label = "pickup"
kind = "dynamic"
max_batch_size = 32
max_wait = "5ms"
wait_anchor = "pickup"
"#
    );
    Ok(load(&Input::from_text("selfcheck.toml", text), sets, &NoFiles)?.scenario)
}

/// The policy with this label.
pub(super) fn policy<'a>(world: &'a Scenario, label: &str) -> Option<&'a Labelled> {
    world.policies.iter().find(|p| p.label == label)
}

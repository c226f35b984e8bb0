//! `batchsim merge`: the shards of a sweep become the result of the whole.

use super::args::{Common, MergeArgs};
use super::journal::write_results;
use super::sweep::{present, stall_code};
use super::{Done, files, input, shard};

/// Runs the verb.
pub(super) fn run(args: &MergeArgs, common: &Common) -> Done {
    input::threads(common)?;
    let paths = shard::named_by(&args.shards)?;
    let pieces = paths.iter().map(|path| shard::read(path)).collect::<Result<Vec<_>, _>>()?;
    let whole = shard::join(pieces)?;
    let mut outcome = whole.heading.outcome;
    let name = outcome.scenario.get("name").and_then(|n| n.as_str()).unwrap_or_default().to_owned();
    let folder = files::output(args.output.as_ref(), &name);
    files::folder(&folder)?;
    let stalled = write_results(&folder, &mut outcome, whole.entries)?;
    present(&outcome, common, &whole.title, args.no_charts, &folder)?;
    Ok(stall_code(stalled, outcome.cells.len()))
}

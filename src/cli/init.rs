//! `batchsim init`, `batchsim schema`, and `batchsim` alone.

use super::args::{InitArgs, SchemaArgs, SchemaOf};
use super::exit::{Code, Failure};
use super::show::{json, print, say};
use super::{Done, files};
use crate::scenario;
use std::path::Path;

/// What someone who only types the name should see.
pub(super) fn greet() -> Done {
    print(
        "batchsim: which batching settings meet your latency objective?\n\n  \
         batchsim init                 write a commented scenario.toml\n  \
         batchsim run scenario.toml    simulate it: table, charts, verdicts\n  \
         batchsim --help               everything else\n",
    )?;
    Ok(Code::Fine)
}

/// Writes a scenario to start from.
pub(super) fn run(args: &InitArgs) -> Done {
    if args.file == Path::new("-") {
        print(scenario::starter())?;
        return Ok(Code::Fine);
    }
    if args.file.exists() && !args.force {
        return Err(Failure::usage(
            format!("{} exists already", args.file.display()),
            "name another file, or replace it with --force",
        ));
    }
    files::write(&args.file, scenario::starter().as_bytes())?;
    let file = args.file.display();
    say(&format!("wrote {file}; now: batchsim run {file}"));
    Ok(Code::Fine)
}

/// Prints a schema.
pub(super) fn schema(args: &SchemaArgs) -> Done {
    let schema = match args.what {
        SchemaOf::Scenario => scenario::schema(),
        SchemaOf::Capacity => {
            schemars::schema_for!(crate::outcome::capacity::CapacityOutcome).to_value()
        }
        SchemaOf::Tune => schemars::schema_for!(crate::outcome::tune::TuneOutcome).to_value(),
        SchemaOf::Outcome => schemars::schema_for!(crate::outcome::Outcome).to_value(),
        SchemaOf::Check => schemars::schema_for!(crate::outcome::Check).to_value(),
        SchemaOf::Comparison => schemars::schema_for!(crate::outcome::Comparison).to_value(),
        SchemaOf::Validation => schemars::schema_for!(crate::outcome::Validation).to_value(),
        SchemaOf::Baseline => schemars::schema_for!(crate::outcome::Baseline).to_value(),
    };
    print(&json(&schema)?)?;
    Ok(Code::Fine)
}

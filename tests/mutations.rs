//! `check` with a baseline notices every one-line fault of the dynamic policy.
//!
//! The faults are compiled in by the feature `mutants` and turned on one at a time:
//! `cargo test --release --features mutants --test mutations`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use batchsim::decide::{self, Question};
use batchsim::interop;
use batchsim::mutant::{Mutant, set};
use batchsim::outcome::{Baseline, Cause, Finding, ScenarioCheck};
use batchsim::scenario::{Disk, Input, Loaded, load};
use batchsim::study::{Control, Options};
use std::path::Path;

fn guard() -> (Loaded, Disk) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/guard/guard.toml");
    let disk = Disk::beside(&path, interop::trace::for_scenario);
    (load(&Input::open(&path).unwrap(), &[], &disk).unwrap(), disk)
}

fn check(loaded: &Loaded, disk: &Disk, baseline: &Baseline) -> ScenarioCheck {
    let (options, control) = (Options::default(), Control::default());
    let ran = decide::simulate(&loaded.scenario, &options, &control);
    let question = Question {
        loaded,
        file: "guard.toml",
        options: &options,
        margin: 0.005,
        baseline: Some(("guard.baseline.json", baseline)),
        files: disk,
        blessing: false,
    };
    decide::check(&question, &ran, &control)
}

/// One test: the switch is one for the whole process.
#[test]
fn every_fault_is_noticed() {
    let (loaded, disk) = guard();
    set(None);
    let ran = decide::simulate(&loaded.scenario, &Options::default(), &Control::default());
    assert!(ran.stalled.is_empty());
    let baseline = decide::record(&loaded.scenario, &ran);
    let sound = check(&loaded, &disk, &baseline);
    assert_eq!(sound.finding, Finding::Pass);
    assert_eq!(sound.against.as_ref().unwrap().cause, Cause::None);
    assert!(sound.cells.iter().all(|c| c.identical == Some(true)));

    assert!(Mutant::ALL.len() >= 12);
    let mut missed = Vec::new();
    for mutant in Mutant::ALL {
        set(Some(mutant));
        let found = check(&loaded, &disk, &baseline);
        let against = found.against.as_ref().unwrap();
        let changed = |label: &str| {
            let cell = found.cells.iter().find(|c| c.label == label).unwrap();
            cell.changes.iter().filter(|c| against.counts(c.shift)).count()
        };
        let cells: Vec<String> =
            found.cells.iter().map(|c| format!("{} {}", c.label, changed(&c.label))).collect();
        println!(
            "{mutant:?}: {:?}, numbers beyond the margin: {}",
            found.finding,
            cells.join(", ")
        );
        if found.finding != Finding::Regression {
            missed.push(mutant);
        }
    }
    set(None);
    assert!(missed.is_empty(), "not noticed: {missed:?}");
    assert_eq!(check(&loaded, &disk, &baseline).finding, Finding::Pass);
}

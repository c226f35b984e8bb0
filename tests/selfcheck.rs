//! `selfcheck` finds nothing in this build, and finds what is altered.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use batchsim::exact::{Input, NotCovered, Rule, Solution, solve};
use batchsim::study::selfcheck::{Row, Subjects, Watch, selfcheck};
use batchsim::study::{Bench, Portion};
use std::collections::BTreeSet;
use std::process::{Command, Output, Stdio};

fn batchsim(args: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_batchsim");
    Command::new(binary).args(args).stdin(Stdio::null()).output().unwrap()
}

const GROUPS: [&str; 6] = [
    "engines",
    "exact solver, closed form",
    "exact solver, stored",
    "laws",
    "simulation, exact",
    "threads",
];

#[test]
fn this_build_passes() {
    let print = |format: &str| {
        let output = batchsim(&["selfcheck", "--format", format]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.starts_with("all ") && said.contains(" checks are ok, "), "{said}");
        String::from_utf8(output.stdout).unwrap()
    };
    let rows: serde_json::Value = serde_json::from_str(&print("json")).unwrap();
    let rows = rows.as_array().unwrap();
    let groups: BTreeSet<&str> = rows.iter().map(|r| r["group"].as_str().unwrap()).collect();
    assert!(groups.iter().eq(&GROUPS), "{groups:?}");
    for row in rows {
        let number = |key: &str| row[key].as_f64().unwrap();
        assert!(number("difference").abs() <= number("limit") && row["ok"] == true, "{row}");
    }

    let table = print("table");
    assert_eq!(table.lines().count(), rows.len() + 1);
    assert!(table.lines().skip(1).all(|line| line.ends_with("  ok")), "{table}");
    // The numbers everyone quotes.
    for (what, digits) in [
        ("mean,", "24.83523"),
        ("p50,", "24.51133"),
        ("p99,", "38.56185"),
        ("mean batch,", "16.00026"),
    ] {
        let row = |l: &&str| l.contains(what) && l.contains("dynamic 32, 5 ms, 1,000/s");
        let line = table.lines().find(row).unwrap();
        assert_eq!(line.matches(digits).count(), 2, "{line}");
    }
}

/// The groups with a row that fails.
fn failing(rows: &[Row]) -> BTreeSet<&'static str> {
    rows.iter().filter(|r| !r.ok).map(|r| r.group).collect()
}

/// With few requests, where the simulated numbers are not what is altered.
fn short() -> Subjects<'static> {
    Subjects { requests: 200_000, ..Subjects::default() }
}

fn found_by(subjects: &Subjects<'_>) -> BTreeSet<&'static str> {
    failing(&selfcheck(subjects).unwrap())
}

type Service<'a> = &'a dyn Fn(u32) -> f64;

#[test]
fn an_altered_solver_is_found() {
    // One constant in the seventh digit: stored tables and closed forms, not the noisy runs.
    let slow = |input: &Input, rule: &Rule, ms: Service<'_>| -> Result<Solution, NotCovered> {
        solve(input, rule, &|n| ms(n) + 1e-6)
    };
    let found = found_by(&Subjects { solve: &slow, ..short() });
    assert_eq!(found, BTreeSet::from(["exact solver, stored", "exact solver, closed form"]));

    // A cap that is one too large, as a wrong comparison makes it.
    let wide = |input: &Input, rule: &Rule, ms: Service<'_>| match *rule {
        Rule::AtLeast { min, cap: Some(cap) } if min == cap => {
            solve(input, &Rule::AtLeast { min: cap + 1, cap: Some(cap + 1) }, ms)
        }
        _ => solve(input, rule, ms),
    };
    let found = found_by(&Subjects { solve: &wide, ..short() });
    let all = ["exact solver, stored", "exact solver, closed form", "simulation, exact"];
    assert_eq!(found, BTreeSet::from(all));

    // No answer is none that is right.
    let silent = |_: &Input, _: &Rule, _: Service<'_>| Err(NotCovered::BurstyRule);
    assert_eq!(found_by(&Subjects { solve: &silent, ..short() }), BTreeSet::from(all));
}

#[test]
fn an_altered_simulation_is_found() {
    // A twentieth of a millisecond in the fixed cost.
    let sets = ["server.cost.fixed=8.05ms".to_owned()];
    let rows = selfcheck(&Subjects { sets: &sets, ..Subjects::default() }).unwrap();
    assert_eq!(failing(&rows), BTreeSet::from(["simulation, exact"]));
    assert!(selfcheck(&Subjects { sets: &["no.such=1".into()], ..short() }).is_err());
}

#[test]
fn a_lost_request_is_found() {
    let loses = |bench: &Bench<'_>, portion: Portion, watch: &mut Watch| {
        bench.run(portion, watch);
        watch.summary.counts.completed -= 1;
    };
    let rows = selfcheck(&Subjects { play: &loses, ..short() }).unwrap();
    assert_eq!(failing(&rows), BTreeSet::from(["laws"]));
    let lost = |r: &&Row| r.what.starts_with("nothing is lost");
    assert!(rows.iter().filter(lost).all(|r| !r.ok));

    // One nanosecond in the sum of all latencies.
    let drifts = |bench: &Bench<'_>, portion: Portion, watch: &mut Watch| {
        bench.run(portion, watch);
        watch.summary.latency_sum_ns += 1;
    };
    let rows = selfcheck(&Subjects { play: &drifts, ..short() }).unwrap();
    let little = |r: &Row| r.what.starts_with("Little");
    assert!(rows.iter().all(|r| r.ok != little(r)));
}

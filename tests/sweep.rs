//! Sweeps: cells solved exactly where that is possible, and the same grid by simulation.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use batchsim::outcome::{Cell, Method, Outcome};
use batchsim::stats::t_quantile;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sweep").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// The running example, with what is swept and measured.
fn scenario(folder: &Path, run: &str, rest: &str) -> String {
    let text = format!(
        "schema = 1\nname = \"grid\"\n[run]\n{run}\n[arrivals]\nkind = \"poisson\"\nrate = \
         \"900/s\"\n[server]\ncost = {{ kind = \"affine\", fixed = \"8ms\", per_item = \"0.5ms\" \
         }}\n[[policy]]\nkind = \"dynamic\"\nmax_batch_size = 32\nmax_wait = \"5ms\"\n{rest}\n"
    );
    let path = folder.join("grid.toml");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn sweep(file: &str, out: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_batchsim"));
    command.args(["sweep", file, "--no-charts", "-o"]).arg(out).args(more);
    command.stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn cells(output: &Output, out: &Path) -> Vec<Cell> {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read(out.join("outcome.json")).unwrap();
    serde_json::from_slice::<Outcome>(&text).unwrap().cells
}

fn by_place(cells: Vec<Cell>) -> BTreeMap<BTreeMap<String, String>, Cell> {
    cells.into_iter().map(|c| (c.coords.clone(), c)).collect()
}

/// Every number of the simulated grid is within its joint 99 % limit of the exact one, from an
/// empty queue to a load of 0.997, and overload is named in the same cells.
#[test]
fn a_grid_by_simulation_agrees_with_the_exact_one() {
    let dir = folder("agrees");
    let file = scenario(
        &dir,
        "precision = \"2%\"\nmax_requests = 20000000",
        "[sweep]\n\"dynamic.max_batch_size\" = { values = [1, 3, 8, 14, 22, 30, 31, 48] }\n\
         \"dynamic.max_wait\" = { values = [\"0ms\", \"1.5ms\", \"4ms\", \"9ms\", \"20ms\"] }\n\
         \"arrivals.rate\" = { values = [\"100/s\", \"400/s\", \"700/s\", \"1000/s\", \
         \"1300/s\"] }",
    );
    let (out, exact) = (dir.join("simulated"), dir.join("exact"));
    let simulated = cells(&sweep(&file, &out, &[]), &out);
    let solved = by_place(cells(&sweep(&file, &exact, &["--method", "auto"]), &exact));
    assert_eq!(simulated.len(), 200);
    let compared: Vec<(&Cell, &Cell)> = simulated.iter().map(|c| (c, &solved[&c.coords])).collect();
    let known = |e: &Cell| e.method == Method::Exact && e.stable;
    let numbers = 3 * compared.iter().filter(|(_, e)| known(e)).count();
    let (limit, usual) = (t_quantile(1.0 - 0.005 / numbers as f64, 19), t_quantile(0.975, 19));
    let mut widest = 0.0_f64;
    for (cell, exact) in compared {
        assert_eq!(cell.stable, exact.stable, "{:?}", cell.coords);
        if !known(exact) {
            continue;
        }
        let (found, truth) = (cell.latency_ms.clone().unwrap(), exact.latency_ms.clone().unwrap());
        let half = found.ci95.unwrap();
        for (what, value, half, truth) in [
            ("mean", found.mean, half.mean, truth.mean),
            ("p50", found.p50, half.p50, truth.p50),
            ("p99", found.p99, half.p99, truth.p99),
        ] {
            // Half a bin of the histogram in quadrature.
            let error = (half / usual).hypot(truth / 2048.0);
            let t = (value - truth) / error;
            assert!(t.abs() < limit, "{:?} {what}: {value} not {truth}, t = {t}", cell.coords);
        }
        let reached = cell.precision.as_ref().unwrap().reached;
        if exact.load.unwrap() <= 0.7 {
            widest = widest.max(reached);
        } else if reached > 0.02 {
            assert!(cell.warnings.iter().any(|w| w.starts_with("precision not reached")));
        }
    }
    println!("{numbers} numbers, limit {limit:.2}; widest at loads to 0.7: {widest:.4}");
    assert!(numbers >= 390 && widest <= 0.02, "{numbers} numbers, widest {widest}");
}

#[test]
fn close_to_capacity_a_short_run_says_so() {
    let dir = folder("close");
    let file = scenario(
        &dir,
        "max_requests = 400000",
        "[sweep]\n\"dynamic.max_batch_size\" = { values = [28, 20] }",
    );
    let cells = cells(&sweep(&file, &dir, &["--set", "arrivals.rate=1260/s"]), &dir);
    // 28 items in 22 ms are 1,272.7/s; the queue forgets in 2 · 1,260 / 12.7² = 15.6 s.
    let warned = |c: &Cell| {
        c.warnings
            .iter()
            .any(|w| w.contains("the queue forgets in about 15s, so p99 rests on about 0 of"))
    };
    assert!(warned(&cells[0]), "{:?}", cells[0].warnings);
    // 20 items in 18 ms are fewer: overloaded, which is another matter.
    assert!(!cells[1].stable && cells[1].warnings.iter().all(|w| !w.contains("forgets")));
}

#[test]
fn each_cell_is_solved_where_it_can_be() {
    let dir = folder("auto");
    let file = scenario(
        &dir,
        "requests = 20000",
        "[[policy]]\nkind = \"dynamic\"\nlabel = \"preferred\"\nmax_batch_size = 32\nmax_wait = \
         \"5ms\"\npreferred_batch_sizes = [8]\n[sweep]\n\"arrivals.rate\" = { values = \
         [\"300/s\", \"900/s\"] }",
    );
    let auto = cells(&sweep(&file, &dir.join("auto"), &["--method", "auto"]), &dir.join("auto"));
    let methods: Vec<Method> = auto.iter().map(|c| c.method).collect();
    assert_eq!(methods, [Method::Exact, Method::Exact, Method::Simulation, Method::Simulation],);
    let refused = sweep(&file, &dir.join("no"), &["--method", "exact"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("preferred_batch_sizes have no exact solution"), "{said}");
    assert!(said.contains("write --method auto"), "{said}");
    assert!(!dir.join("no/outcome.json").exists());
    // The other policy has a solution everywhere: the same as `exact` prints.
    let alone = fs::read_to_string(&file).unwrap();
    let from = alone.find("[[policy]]\nkind = \"dynamic\"\nlabel").unwrap();
    let until = alone.find("[sweep]").unwrap();
    let one = dir.join("one.toml");
    fs::write(&one, format!("{}{}", &alone[..from], &alone[until..])).unwrap();
    let exact = cells(
        &sweep(&one.display().to_string(), &dir.join("exact"), &["--method", "exact"]),
        &dir.join("exact"),
    );
    assert_eq!(exact[..], auto[..2]);
    assert!((exact[1].latency_ms.clone().unwrap().p99 - 34.728).abs() < 5e-4);
}

/// Cells saved by one method are no part of a sweep by another.
#[test]
fn another_method_is_another_sweep() {
    let dir = folder("mixed");
    let file = scenario(
        &dir,
        "requests = 20000",
        "[sweep]\n\"arrivals.rate\" = { values = [\"300/s\", \"600/s\", \"900/s\"] }",
    );
    let first = sweep(&file, &dir, &["--shard", "1/2"]);
    let second = sweep(&file, &dir, &["--shard", "2/2", "--method", "auto"]);
    assert!(first.status.success() && second.status.success());
    let mut merge = Command::new(env!("CARGO_BIN_EXE_batchsim"));
    let merged = merge.arg("merge").arg(&dir).args(["-o"]).arg(dir.join("all")).output().unwrap();
    assert_eq!(merged.status.code(), Some(2), "{}", String::from_utf8_lossy(&merged.stderr));
}

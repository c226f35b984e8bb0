//! The ready-made CI files: their own steps run in a scratch repository, green where nothing
//! changed and red where a change is bad.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const BINARY: &str = env!("CARGO_BIN_EXE_batchsim");

const SCENARIO: &str = r#"schema = 1
name = "encoder"

[run]
requests = 400000

[arrivals]
kind = "poisson"
rate = "200/s"

[server]
cost = { kind = "affine", fixed = "8ms", per_item = "0.5ms" }

[[policy]]
kind = "dynamic"
max_batch_size = 8
max_wait = "5ms"

[[threshold]]
expr = "p(99) < 25ms"
"#;

/// A repository with a checked scenario and its baseline.
struct Scratch {
    root: PathBuf,
}

impl Scratch {
    fn new(test: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("scenarios")).unwrap();
        fs::write(root.join("scenarios/encoder.toml"), SCENARIO).unwrap();
        let scratch = Self { root };
        scratch.git(&["init", "-q"]);
        let blessed = scratch.bash("batchsim check scenarios/encoder.toml --bless", &[]);
        assert!(blessed.status.success(), "{}", text(&blessed));
        scratch.commit("a scenario and its baseline");
        scratch
    }

    fn git(&self, args: &[&str]) {
        let who = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let status = Command::new("git").args(who).args(args).current_dir(&self.root).status();
        assert!(status.unwrap().success());
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    fn change(&self, from: &str, to: &str) {
        let file = self.root.join("scenarios/encoder.toml");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(from));
        fs::write(&file, text.replace(from, to)).unwrap();
        self.commit("a change");
    }

    /// As a runner does it: `bash -e -o pipefail`, with the tool on the path.
    fn bash(&self, script: &str, env: &[(String, String)]) -> Output {
        let tool = Path::new(BINARY).parent().unwrap().display().to_string();
        let path = format!("{tool}:{}", std::env::var("PATH").unwrap());
        Command::new("bash")
            .args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script])
            .current_dir(&self.root)
            .env_remove("GITHUB_ACTIONS")
            .env_remove("GITHUB_STEP_SUMMARY")
            .env("PATH", path)
            .envs(env.iter().cloned())
            .output()
            .unwrap()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap_or_default()
    }
}

fn text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}

fn yaml(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ci").join(name);
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Variables of a `variables:` or `env:` table.
fn variables(table: &Value) -> Vec<(String, String)> {
    let known = |v: &Value| v.as_str().unwrap().replace("$CI_PROJECT_DIR", ".");
    table.as_object().unwrap().iter().map(|(k, v)| (k.clone(), known(v))).collect()
}

/// Runs the steps of the GitHub workflow; stops at the first that fails, as a job does.
fn github(scratch: &Scratch) -> (bool, String) {
    let file = yaml("github.yml");
    let mut env = variables(&file["env"]);
    let root = scratch.root.display().to_string();
    env.extend([
        ("GITHUB_ACTIONS".to_owned(), "true".to_owned()),
        ("GITHUB_WORKSPACE".to_owned(), root.clone()),
        ("GITHUB_STEP_SUMMARY".to_owned(), format!("{root}/summary.md")),
    ]);
    let steps = file["jobs"]["check"]["steps"].as_array().unwrap();
    let (mut log, mut ran) = (String::new(), 0);
    for step in steps {
        let Some(script) = step["run"].as_str() else {
            assert!(step["uses"].is_string(), "a step runs something or uses an action");
            continue;
        };
        ran += 1;
        let output = scratch.bash(script, &env);
        log += &text(&output);
        if !output.status.success() {
            return (false, log);
        }
    }
    assert_eq!(ran, 2, "the installation and the check");
    (true, log)
}

/// Runs the script of the GitLab job in one shell, as its runner does.
fn gitlab(scratch: &Scratch) -> (bool, String) {
    let job = &yaml("gitlab.yml")["batchsim"];
    let lines = ["before_script", "script"].iter().flat_map(|part| job[*part].as_array().unwrap());
    let script: Vec<&str> = lines.map(|line| line.as_str().unwrap()).collect();
    assert_eq!(script.len(), 4);
    let output = scratch.bash(&script.join("\n"), &variables(&job["variables"]));
    (output.status.success(), text(&output))
}

#[test]
fn the_github_workflow_is_green_where_nothing_changed() {
    let scratch = Scratch::new("ci-github");
    let (green, log) = github(&scratch);
    assert!(green, "{log}");
    assert!(!log.contains("::error"), "{log}");
}

#[test]
fn the_github_workflow_is_red_on_a_bad_change() {
    let scratch = Scratch::new("ci-github-red");
    scratch.change("max_wait = \"5ms\"", "max_wait = \"40ms\"");
    let (green, log) = github(&scratch);
    assert!(!green, "{log}");
    let line = SCENARIO.lines().position(|l| l.starts_with("expr")).unwrap() + 1;
    let place = format!("::error file=scenarios/encoder.toml,line={line},col=8,");
    assert!(log.contains(&place), "{log}");
    assert!(scratch.read("summary.md").contains("| FAIL | threshold | dynamic | p(99) < 25ms |"));
    assert!(scratch.read("batchsim-junit.xml").contains("<failure"));
}

#[test]
fn the_gitlab_job_is_green_and_red() {
    let scratch = Scratch::new("ci-gitlab");
    let (green, log) = gitlab(&scratch);
    assert!(green, "{log}");
    assert!(scratch.read("batchsim.md").contains("check: pass"));
    // Within the threshold, but not what was recorded.
    scratch.change("max_wait = \"5ms\"", "max_wait = \"7ms\"");
    let (green, log) = gitlab(&scratch);
    assert!(!green, "{log}");
    assert!(log.contains("REGRESSION") && log.contains("changed dynamic.max_wait"), "{log}");
    let junit = scratch.read("batchsim-junit.xml");
    assert!(junit.contains("failures=\"1\"") && junit.contains("worse"), "{junit}");
}

/// A change that moves no number, here a remark, is green with the recorded baseline.
#[test]
fn a_harmless_change_stays_green() {
    let scratch = Scratch::new("ci-harmless");
    scratch.change("[run]", "# how long\n[run]");
    let (green, log) = github(&scratch);
    assert!(green, "{log}");
    assert!(log.contains("the same numbers to the last digit"), "{log}");
    let (green, log) = gitlab(&scratch);
    assert!(green, "{log}");
}

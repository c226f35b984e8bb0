//! A server's own file: read, tuned and given back, as a user does it.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tuned").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Runs the program in a folder; returns what it printed.
#[track_caller]
fn batchsim(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_batchsim"));
    let output = command.args(args).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn add(path: &Path, text: &str) {
    let before = fs::read_to_string(path).unwrap();
    fs::write(path, before + text).unwrap();
}

/// A delay costs Triton a whole pass under load, and a larger cap carries more: the tuner finds
/// both, and only the two values change in the file.
#[test]
fn a_triton_file_comes_back_tuned() {
    let dir = folder("triton");
    let before = "name: \"encoder\"\nmax_batch_size: 8   # small\ndynamic_batching {\n  \
                  max_queue_delay_microseconds: 4000\n}\ninstance_group [{ count: 1 gpus: [0] }]\n";
    fs::write(dir.join("config.pbtxt"), before).unwrap();
    batchsim(&dir, &["import", "triton", "config.pbtxt", "-o", "encoder.toml"]);
    add(
        &dir.join("encoder.toml"),
        "\n[[threshold]]\nexpr = \"p(99) < 50ms\"\n[tune]\nobjective = \"max rate\"\n\
         [tune.over]\n\"triton.max_batch_size\" = { values = [8, 32] }\n\
         \"triton.max_queue_delay_microseconds\" = { values = [\"0\", \"4000\"] }\n",
    );
    let most = "run.max_requests=400000";
    let said = batchsim(&dir, &["tune", "encoder.toml", "--set", most, "-o", "tuned"]);
    assert!(said.contains("max_wait buys nothing here"), "{said}");
    let export = ["export", "triton", "--from", "tuned/tuned.toml", "config.pbtxt"];
    let shown = batchsim(&dir, &export);
    assert!(shown.contains("-max_batch_size: 8   # small\n+max_batch_size: 32   # small\n"));
    assert_eq!(fs::read_to_string(dir.join("config.pbtxt")).unwrap(), before, "only shown");
    batchsim(&dir, &[&export[..], &["--in-place"]].concat());
    let after = fs::read_to_string(dir.join("config.pbtxt")).unwrap();
    let expected = before.replace("size: 8", "size: 32").replace(": 4000", ": 0");
    assert_eq!(after, expected);
}

/// `maxBatchDelay` 0 caps batches at 2, so here a wait pays.
#[test]
fn a_torchserve_file_comes_back_tuned() {
    let dir = folder("torchserve");
    let before = "# mine\nminWorkers: 1\nmaxWorkers: 1\nbatchSize: 8   # small\nmaxBatchDelay: 0\n";
    fs::write(dir.join("model-config.yaml"), before).unwrap();
    batchsim(&dir, &["import", "torchserve", "model-config.yaml", "-o", "bert.toml"]);
    add(
        &dir.join("bert.toml"),
        "\n[[threshold]]\nexpr = \"p(99) < 80ms\"\n[tune]\nobjective = \"max rate\"\n\
         [tune.over]\n\"torchserve.batchSize\" = { values = [8, 32] }\n\
         \"torchserve.maxBatchDelay\" = { values = [0, 5] }\n",
    );
    let most = "run.max_requests=400000";
    batchsim(&dir, &["tune", "bert.toml", "--set", most, "-o", "tuned"]);
    let export = ["export", "torchserve", "--from", "tuned/tuned.toml", "model-config.yaml"];
    batchsim(&dir, &[&export[..], &["--in-place"]].concat());
    let after = fs::read_to_string(dir.join("model-config.yaml")).unwrap();
    let expected = before.replace("batchSize: 8", "batchSize: 32").replace("Delay: 0", "Delay: 5");
    assert_eq!(after, expected);
}

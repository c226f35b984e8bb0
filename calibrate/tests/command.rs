//! The program.
#![allow(clippy::unwrap_used, reason = "tests")]

use calibrate::probe::{Places, Status, probe};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    command.args(arguments);
    command
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn text(output: &Output) -> (String, String) {
    let of = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (of(&output.stdout), of(&output.stderr))
}

#[test]
fn probe_is_one_sentence_and_fine() {
    let output = program(&["probe"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let (out, err) = text(&output);
    assert!(out.lines().next().unwrap().ends_with('.') && err.is_empty());
    let output = program(&["probe", "--json"]).output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["status"].is_string());
}

#[test]
fn an_empty_place_has_no_driver_and_every_state_a_sentence() {
    let nowhere = Places { folders: vec![folder("empty")], only: true };
    assert_eq!(probe(&nowhere), Status::NoDriver);
    let which = vec!["cuBLAS".to_owned()];
    let states = [
        (Status::NoDriver, "No NVIDIA driver"),
        (Status::DriverTooOld { have: 12_040 }, "CUDA 12.4, and 12.8"),
        (Status::DriverFails { code: 803 }, "error 803"),
        (Status::NoDevice, "no device"),
        (Status::MissingLibrary { which, driver: 13_000, gpus: Vec::new() }, "cuBLAS is missing"),
    ];
    for (state, part) in states {
        let sentence = state.sentence();
        assert!(sentence.contains(part) && !sentence.contains('\n'), "{sentence}");
    }
}

#[test]
fn a_gpu_run_without_one_is_three() {
    if !matches!(probe(&Places::of_environment()), Status::NoDriver) {
        println!("skipped: this machine has a driver");
        return;
    }
    let file = folder("gpu").join("x.json");
    let output = program(&["run", "--device", "gpu", "-o", file.to_str().unwrap()]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output).1.contains("No NVIDIA driver") && !file.exists());
}

#[test]
fn wrong_sizes_are_two() {
    let file = folder("wrong").join("x.json");
    for model in [&["--model", "resnet"][..], &["--model", "encoder", "--heads", "7"]] {
        let output = program(&["run", "-o", file.to_str().unwrap()]).args(model).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{:?}", text(&output));
        assert!(!file.exists());
    }
}

const SMALL: &[&str] = &[
    "--layers",
    "1",
    "--hidden",
    "32",
    "--heads",
    "4",
    "--seq",
    "5",
    "--side",
    "9",
    "--channels",
    "4",
    "--context",
    "6",
    "--threads",
    "1",
];

#[test]
fn every_model_is_measured_and_written() {
    for model in ["mlp", "encoder", "cnn", "prefill", "decode"] {
        let file = folder("models").join(format!("{model}.json"));
        let output = program(&["run", "--model", model, "--batches", "1,2,3", "--once"])
            .args(["--budget-s", "1", "--precision", "20", "-o", file.to_str().unwrap()])
            .args(SMALL)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{:?}", text(&output));
        let json: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(json["cost"]["kind"], "table");
        assert_eq!(json["cost"]["points"].as_array().unwrap().len(), 3);
        assert!(json["checks"]["correctness"].as_f64().unwrap() < 1e-5);
        assert_eq!(json["provenance"]["model"], model);
        let samples = std::fs::read_to_string(file.with_extension("csv")).unwrap();
        assert!(samples.starts_with("batch,latency_ms\n1,") && samples.lines().count() >= 91);
    }
}

#[cfg(unix)]
#[test]
fn a_signal_keeps_a_valid_file() {
    let file = folder("signal").join("x.json");
    let _ = std::fs::remove_file(&file);
    let child = program(&["run", "--max-batch", "16", "--precision", "0.0001"])
        .args(["--budget-s", "600", "-o", file.to_str().unwrap()])
        .args(["--model", "mlp", "--layers", "4", "--hidden", "256", "--threads", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The warm-up takes at most 5 s; the sweep never becomes this precise, and thousands of passes
    // of every size take far longer.
    std::thread::sleep(std::time::Duration::from_secs(8));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{:?}", text(&output));
    let json: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(json["checks"]["interrupted"], true);
    assert!(!json["cost"]["points"].as_array().unwrap().is_empty());
    assert!(text(&output).1.contains("interrupted"));
}

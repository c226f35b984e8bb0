//! Recordings of real servers: read, replayed with frozen overheads, and held to tolerances.
//!
//! With `BATCHSIM_BLESS=1` the tables of docs/VALIDATION.md are written anew.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use batchsim::interop::recording::{Input, Mapping, Recorded, RecordingError, read};
use batchsim::outcome::{OverheadMs, Validation};
use batchsim::recording::{Load, Recording};
use batchsim::scenario::Overhead;
use batchsim::study::{FROZEN, Model, fit, validate};
use batchsim::time::Nanos;
use flate2::read::GzDecoder;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings")
}

fn names() -> Vec<String> {
    let folders = fs::read_dir(root()).unwrap().map(|e| e.unwrap().path());
    let mut names: Vec<String> = folders
        .filter(|p| p.is_dir())
        .map(|p| p.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn recording(name: &str) -> Recording {
    let folder = root().join(name);
    let config = fs::read(folder.join("config.json")).unwrap();
    let input = Input {
        name,
        config: Some(&config),
        body: Box::new(File::open(folder.join("requests.csv.gz")).unwrap()),
        format: None,
        columns: &Mapping::default(),
    };
    requests(read(input).unwrap())
}

fn requests(recorded: Recorded) -> Recording {
    match recorded {
        Recorded::Requests(recording) => recording,
        Recorded::Aggregates(_) => panic!("these are aggregates"),
    }
}

fn validated(name: &str) -> Validation {
    let recording = recording(name);
    validate(&recording, &Model::of_recording(&recording).unwrap()).unwrap()
}

/// Recording and number of every miss that is known, from the table beside the recordings.
fn known_misses() -> BTreeSet<(String, String)> {
    let mut reader = csv::Reader::from_path(root().join("known-misses.csv")).unwrap();
    let rows = reader.deserialize::<[String; 3]>().map(|row| row.unwrap());
    rows.map(|[recording, number, cause]| {
        assert!(cause.len() > 20, "{recording} {number}: say the cause");
        (recording, number)
    })
    .collect()
}

/// The names of what is held to tolerances are few, and each says why it misses.
#[test]
fn every_recording_is_predicted_within_its_tolerance() {
    let names = names();
    assert_eq!(names.len(), 21);
    let mut missed = BTreeSet::new();
    for name in &names {
        let v = validated(name);
        missed.extend(v.misses.iter().map(|number| (name.clone(), number.clone())));
    }
    // Both ways: a miss that is not known, and a known one that no longer misses.
    assert_eq!(missed, known_misses());
}

/// The tolerances that the table is judged by, as they were agreed on.
#[test]
fn tolerances_are_what_was_agreed() {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
    let plain = validated("triton-K").tolerance;
    assert!(near(plain.p50, 0.02) && near(plain.mean_batch, 0.02));
    assert!(near(plain.p90, 0.04) && near(plain.p99, 0.04) && near(plain.accepted, 0.005));
    let other = validated("mosec-P").tolerance;
    assert!(near(other.p50, 0.04) && near(other.p99, 0.08) && near(other.accepted, 0.005));
    // Recorded twice: 25.386 ms and 24.5 ms, 54.893 and 52.331, 88.322 and 85.639.
    let twice = validated("triton-H").tolerance;
    assert!(near(twice.p50, 2.0 * (25.386 - 24.5) / 25.386));
    assert!(near(twice.p90, 2.0 * (54.893 - 52.331) / 54.893));
    assert!(near(twice.p99, 2.0 * (88.322 - 85.639) / 88.322));
    assert!(near(twice.mean_batch, 0.02));
}

/// What is measured is what whoever recorded it wrote down.
#[test]
fn measured_numbers_are_those_of_the_recording() {
    for name in names() {
        let v = validated(&name);
        let text = fs::read_to_string(root().join(&name).join("config.json")).unwrap();
        let config: serde_json::Value = serde_json::from_str(&text).unwrap();
        let said = &config["measured"];
        let number = |value: &serde_json::Value| value.as_f64().unwrap();
        assert_eq!(Some(v.recording.requests), said["requests"].as_u64(), "{name}");
        assert_eq!(Some(v.measured.accepted), said["accepted"].as_u64(), "{name}");
        let mean = v.measured.mean_batch.unwrap();
        assert!((mean - number(&said["mean_batch"])).abs() < 0.0006, "{name}");
        // It counts latency from the planned moment, and the client sends a little later.
        let (lag, most) =
            (number(&said["send_lag_ms"]["p99"]), number(&said["send_lag_ms"]["max"]));
        let latency = v.measured.latency_ms.unwrap();
        for (q, ours, late) in
            [("p50", latency.p50, lag), ("p90", latency.p90, lag), ("p99", latency.p99, most)]
        {
            let more = number(&said["latency_ms"][q]) - ours;
            assert!((-0.001..late + 0.001).contains(&more), "{name} {q}: {ours} + {more}");
        }
        for size in &v.measured.batch_sizes {
            let n = said["batch_hist"][size.size.to_string()].as_u64();
            assert_eq!(Some(size.batches), n, "{name}: batches of {}", size.size);
        }
    }
}

/// The frozen table is what `fit` finds in the recordings that it names.
#[test]
fn the_frozen_overheads_are_fitted() {
    for frozen in FROZEN {
        let mut of = vec![recording(frozen.light)];
        if frozen.busy != frozen.light {
            // The order does not matter: the less busy one is found.
            of.insert(0, recording(frozen.busy));
        }
        let fitted = fit(&of).unwrap();
        assert_eq!(fitted.server, frozen.server);
        let OverheadMs { inbound, dispatch, release, release_per_request, response, .. } =
            fitted.overhead_ms;
        let ns = |ms: f64| Nanos::from_ms(ms);
        let found = Overhead {
            inbound: if frozen.inbound_fitted { ns(inbound) } else { frozen.overhead.inbound },
            dispatch: ns(dispatch),
            release: ns(release),
            release_per_request: ns(release_per_request),
            response: ns(response),
        };
        assert_eq!(found, frozen.overhead, "{} {:?}", frozen.server, frozen.path);
        if !frozen.inbound_fitted {
            // Too few lone requests to decide; what they say is not far off.
            assert!((inbound - frozen.overhead.inbound.as_ms()).abs() < 0.5, "{inbound}");
        }
    }
}

/// Why the path without prefetch keeps the law of its named recording: one pooled over two
/// recordings trades the misses of H for one of E.
#[test]
fn a_pooled_law_without_prefetch_does_not_pass_everywhere() {
    let misses = |name: &str, release: u64, per_request: u64| {
        let recording = recording(name);
        let mut model = Model::of_recording(&recording).unwrap();
        model.server.overhead.release = Nanos(release);
        model.server.overhead.release_per_request = Nanos(per_request);
        validate(&recording, &model).unwrap().misses
    };
    let all = ["triton-BQ", "triton-E", "triton-H"];
    let pooled = all.map(|name| misses(name, 68_000, 33_000));
    assert_eq!(pooled, [vec![], vec!["accepted".to_owned()], vec![]]);
    let own = misses("triton-H", 133_200, 25_900);
    assert!(own.is_empty(), "{own:?}");
}

/// What the textbook rule says of a recording is far off where the server forms batches ahead.
#[test]
fn the_textbook_is_told_apart() {
    let v = validated("triton-B");
    let (textbook, error) = (v.textbook.latency_ms.unwrap(), v.textbook_relative_error);
    assert!((textbook.p50 - 15.0).abs() < 0.3 && (textbook.p99 - 21.6).abs() < 0.3);
    assert!(error.latency_ms.unwrap().p50 < -0.25);
    assert!(v.textbook_distance.quantile_ms.unwrap() > 20.0 * v.distance.quantile_ms.unwrap());
    assert!(v.textbook_distance.batch_tv.unwrap() > 5.0 * v.distance.batch_tv.unwrap());
}

// --- the same data in other formats ---

/// The table of a recording as text.
fn table(name: &str) -> Vec<BTreeMap<String, String>> {
    let file = File::open(root().join(name).join("requests.csv.gz")).unwrap();
    let mut reader = csv::Reader::from_reader(GzDecoder::new(file));
    reader.deserialize().map(|row| row.unwrap()).collect()
}

/// A time in tenths of a microsecond on a clock that started long ago; empty for none.
fn shifted(us: &str) -> Option<u128> {
    const LONG_AGO: u128 = 17_598_132_075_329_003;
    if us.is_empty() {
        return None;
    }
    let (whole, tenth) = us.split_once('.').unwrap_or((us, "0"));
    assert_eq!(tenth.len(), 1, "{us}");
    Some(LONG_AGO + whole.parse::<u128>().unwrap() * 10 + tenth.parse::<u128>().unwrap())
}

fn seconds(us: &str) -> String {
    let point = |t: u128| format!("{}.{:07}", t / 10_000_000, t % 10_000_000);
    shifted(us).map_or_else(String::new, point)
}

fn nanos(us: &str) -> String {
    shifted(us).map_or_else(|| "null".to_owned(), |t| (t * 100).to_string())
}

fn parsed(body: &str, columns: &Mapping) -> Result<Recorded, RecordingError> {
    let body = Box::new(body.as_bytes());
    read(Input { name: "log", config: None, body, format: None, columns })
}

fn csv_log(name: &str) -> (String, Mapping) {
    let mut text = "done;sent;slot;began;ended;code;batch;n;level;batch_size\n".to_owned();
    // Logs are written when answers come, not in the order of sending.
    let mut rows = table(name);
    rows.sort_by_key(|r| shifted(&r["done_us"]));
    for r in &rows {
        let code = if r["status"] == "200" { "ok" } else { "refused" };
        let times = ["done_us", "send_us", "start_us", "end_us"].map(|c| seconds(&r[c]));
        let [done, sent, began, ended] = times;
        let (slot, batch, size) = (&r["instance"], &r["batch_id"], &r["batch_size"]);
        let (n, level) = (&r["items"], &r["priority"]);
        writeln!(text, "{done};{sent};{slot};{began};{ended};{code};{batch};{n};{level};{size}")
            .unwrap();
    }
    let columns = [
        ("arrival", "sent"),
        ("finish", "done"),
        ("instance", "slot"),
        ("start", "began"),
        ("end", "ended"),
        ("status", "code"),
        ("items", "n"),
        ("priority", "level"),
    ];
    let columns = columns.map(|(field, name)| (field, name.to_owned())).into();
    (text, Mapping { columns, unit: Some("s".into()) })
}

fn jsonl_log(name: &str) -> (String, Mapping) {
    let mut text = String::new();
    for r in table(name) {
        let times = ["send_us", "done_us", "start_us", "end_us"].map(|c| nanos(&r[c]));
        let [arrival, finish, start, end] = times;
        let (instance, batch, size) = (&r["instance"], &r["batch_id"], &r["batch_size"]);
        let (status, items, priority) = (&r["status"], &r["items"], &r["priority"]);
        writeln!(
            text,
            "{{\"arrival\":{arrival},\"finish\":{finish},\"start\":{start},\"end\":{end},\
             \"batch\":\"{batch}\",\"instance\":{instance},\"batch_size\":{size},\
             \"status\":{status},\"items\":{items},\"priority\":{priority},\"user\":\"a\"}}"
        )
        .unwrap();
    }
    (text, Mapping { columns: Vec::new(), unit: Some("ns".into()) })
}

fn aiperf_log(name: &str) -> String {
    let mut text = String::new();
    for (n, r) in table(name).iter().enumerate() {
        let (start, end) = (nanos(&r["send_us"]), nanos(&r["done_us"]));
        let error = match r["status"].as_str() {
            "200" => "null".to_owned(),
            code => format!("{{\"code\":{code},\"type\":\"HTTPError\",\"message\":\"full\"}}"),
        };
        writeln!(
            text,
            "{{\"metadata\":{{\"session_num\":{n},\"request_start_ns\":{start},\
             \"request_ack_ns\":null,\"request_end_ns\":{end},\"worker_id\":\"w\",\
             \"benchmark_phase\":\"profiling\",\"was_cancelled\":false}},\
             \"metrics\":{{\"request_latency\":{{\"value\":1.0,\"unit\":\"ms\"}}}},\
             \"error\":{error}}}"
        )
        .unwrap();
    }
    text
}

#[test]
fn every_format_gives_the_same_numbers() {
    for name in ["triton-I", "triton-H", "triton-E", "triton-F", "torchserve-P"] {
        let folder = recording(name);
        let model = Model::of_recording(&folder).unwrap();
        let expected = validate(&folder, &model).unwrap();
        for (text, columns) in [csv_log(name), jsonl_log(name)] {
            let log = requests(parsed(&text, &columns).unwrap());
            let found = validate(&log, &model).unwrap();
            let format = &found.recording.format;
            assert_eq!(found.measured, expected.measured, "{name} as {format}");
            assert_eq!(found.predicted, expected.predicted, "{name} as {format}");
            assert_eq!(found.textbook, expected.textbook, "{name} as {format}");
            assert_eq!(found.distance, expected.distance, "{name} as {format}");
        }
        if ["triton-I", "triton-H"].contains(&name) {
            continue; // AIPerf knows neither items nor priorities.
        }
        let log = requests(parsed(&aiperf_log(name), &Mapping::default()).unwrap());
        let found = validate(&log, &model).unwrap();
        assert_eq!(found.recording.format, "aiperf");
        assert_eq!(found.measured.latency_ms, expected.measured.latency_ms, "{name}");
        assert_eq!(found.measured.accepted, expected.measured.accepted, "{name}");
        assert_eq!(found.measured.mean_batch, None, "AIPerf knows no batches");
        assert_eq!(found.predicted, expected.predicted, "{name}");
        assert_eq!(found.distance.quantile_ms, expected.distance.quantile_ms, "{name}");
    }
}

#[test]
fn compressed_or_not_is_the_same() {
    let name = "triton-A";
    let config = fs::read(root().join(name).join("config.json")).unwrap();
    let packed = recording(name);
    let mut text = String::new();
    let file = File::open(root().join(name).join("requests.csv.gz")).unwrap();
    std::io::Read::read_to_string(&mut GzDecoder::new(file), &mut text).unwrap();
    let input = Input {
        name,
        config: Some(&config),
        body: Box::new(text.as_bytes()),
        format: None,
        columns: &Mapping::default(),
    };
    assert_eq!(requests(read(input).unwrap()), packed);
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_line() {
    let unit = |unit: &str| Mapping { columns: Vec::new(), unit: Some(unit.into()) };
    let fails = |text: &str, columns: &Mapping| match parsed(text, columns) {
        Err(e) => format!("{e} | {}", e.help),
        Ok(_) => panic!("read: {text}"),
    };
    let cases = [
        ("arrival,finish\n1,5\n\n2,1\n", "4: finish: it lies before the moment"),
        ("arrival,finish\n1,5\n\n2,1", "4: finish: it lies before the moment"),
        ("arrival,finish\r\n1,5\r\n\r\n2,1\r\n", "4: finish: it lies before the moment"),
        ("\narrival,finish\n1,5\n2,1\n", "4: finish: it lies before the moment"),
        ("arrival,finish,note\n1,5,\"a\nb\"\n2,1,\"c\nd\"\n", "4: finish: it lies before"),
        ("arrival,finish\n1,5\n2,x\n", "3: finish: `x` is not a number"),
        ("arrival,finish\n1,5\n2\n", "3: this line has 1 fields, the header has 2"),
        ("arrival,finish,items\n1,5,0\n", "2: items: `0` is not a count"),
        ("arrival,finish\n,5\n", "2: arrival: there is no time"),
        ("arrival,finish\n-1,5\n", "2: arrival: `-1` is before zero"),
        ("arrival,finish\n", "the recording has no requests"),
        (" \n\n", "the recording is empty"),
        ("when,finish\n1,2\n", "1: no column `arrival`; there are `when`, `finish` | say which"),
        ("{\"arrival\":1,\"finish\":2}\n{\"arrival\":1,\n", "2: column"),
        ("{\"finish\":2}\n", "1: no column `arrival`"),
        ("{\"arrival\":\"a\",\"finish\":2}\n", "1: arrival: `a` is not a number"),
    ];
    for (text, expected) in cases {
        let found = fails(text, &unit("ms"));
        assert!(found.starts_with(expected), "{text:?}: {found}");
    }
    let found = fails("arrival,finish\n1,5\n", &Mapping::default());
    assert!(found.starts_with("2: arrival: `1` is a number without a unit"), "{found}");
    let found = fails("arrival,finish\n1,5\n", &unit("min"));
    assert!(found.starts_with("unknown unit of time `min`"), "{found}");
    let record = "{\"metadata\":{\"request_start_ns\":5,\"request_end_ns\":9}}\n";
    let found = fails(&format!("{record}{{\"metadata\":{{}}}}\n"), &Mapping::default());
    assert!(found.starts_with("2: column"), "{found}");
}

#[test]
fn odd_logs_are_read_as_they_are_meant() {
    let columns = Mapping { columns: Vec::new(), unit: None };
    let dates = "\u{feff}arrival\tfinish\tstatus\n\
                 2024-05-10 00:00:01.5\t2024-05-10 00:00:01.75\t200.0\n\
                 2024-05-10 00:00:01\t\t504\n";
    let log = requests(parsed(dates, &columns).unwrap());
    let seen: Vec<_> = log.exchanges.iter().map(|e| (e.send_ns, e.done_ns)).collect();
    assert_eq!(seen, [(0, None), (500_000_000, Some(750_000_000))]);
    let warm = "{\"metadata\":{\"request_start_ns\":5,\"request_end_ns\":9,\
                \"benchmark_phase\":\"warmup\"}}\n\
                {\"metadata\":{\"request_start_ns\":15,\"request_end_ns\":19}}\n\
                {\"metadata\":{\"request_start_ns\":25,\"request_end_ns\":26,\
                \"was_cancelled\":true}}\n";
    let log = requests(parsed(warm, &Mapping::default()).unwrap());
    let seen: Vec<_> = log.exchanges.iter().map(|e| (e.send_ns, e.done_ns)).collect();
    assert_eq!(seen, [(0, Some(4)), (10, None)]);
}

// --- the program ---

fn batchsim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_batchsim"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recordings").join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

const SCENARIO: &str = r#"
schema = 1
[arrivals]
kind = "poisson"
rate = "50/s"
[server]
cost = { kind = "affine", fixed = "8ms", per_item = "0.5ms" }
[[policy]]
kind = "none"
[[policy]]
kind = "triton"
max_batch_size = 8
max_queue_delay_microseconds = 4000
"#;

#[test]
fn the_program_prints_and_saves_the_comparison() {
    let folder = scratch("cli");
    let out = folder.join("out");
    let place = root().join("triton-B");
    let arguments = ["validate", place.to_str().unwrap(), "-o", out.to_str().unwrap()];
    let text = stdout(&batchsim(&[&arguments[..], &["--format", "json"]].concat()));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    for column in ["measured", "predicted", "textbook"] {
        for q in ["mean", "p50", "p90", "p99"] {
            assert!(value[column]["latency_ms"][q].is_f64(), "{column} {q}");
        }
        assert!(value[column]["mean_batch"].is_f64() && value[column]["accepted"].is_u64());
    }
    assert!(value["relative_error"]["latency_ms"]["p50"].as_f64().unwrap().abs() < 0.01);
    let saved: Validation =
        serde_json::from_slice(&fs::read(out.join("validation.json")).unwrap()).unwrap();
    assert_eq!(saved, validated("triton-B"));
    assert!(fs::read(out.join("validate.png")).unwrap().starts_with(b"\x89PNG"));
    let svg = fs::read_to_string(out.join("validate.svg")).unwrap();
    assert!(svg.contains("measured") && svg.contains("textbook"));
    let schema = stdout(&batchsim(&["schema", "validation"]));
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert!(jsonschema::is_valid(&schema, &value));
}

/// A log of its own: the scenario says who predicts, overheads are named and can be set.
#[test]
fn a_log_is_held_against_a_scenario() {
    let folder = scratch("log");
    let (scenario, log) = (folder.join("own.toml"), folder.join("log.csv"));
    fs::write(&scenario, SCENARIO).unwrap();
    // Two requests a second apart, 8.7 ms each; the second comes while the first is served.
    fs::write(&log, "arrival,finish\n0,8.7\n1,17.2\n1000,1008.7\n").unwrap();
    let out = folder.join("out");
    let common = ["--scenario", scenario.to_str().unwrap(), "-o", out.to_str().unwrap()];
    let run = |more: &[&str]| {
        let log = ["validate", log.to_str().unwrap(), "--unit", "ms", "--format", "json"];
        batchsim(&[&log[..], &common[..], more].concat())
    };
    let several = run(&[]);
    assert_eq!(several.status.code(), Some(2));
    let said = String::from_utf8_lossy(&several.stderr).into_owned();
    assert!(said.contains("--policy none or triton"), "{said}");
    let plain = ["--policy", "none", "--set"];
    let text = stdout(&run(&[&plain[..], &["server.overhead.response=0.2ms"]].concat()));
    let v: Validation = serde_json::from_str(&text).unwrap();
    // 8.5 ms of service and 0.2 ms of response; the second waits 7.5 ms more.
    let latency = v.predicted.latency_ms.unwrap();
    assert!((latency.p50 - 8.7).abs() < 1e-9 && (latency.mean - 11.2).abs() < 1e-9);
    assert_eq!(v.predicted.accepted, 3);
    assert_eq!((v.overhead_ms.response, v.overhead_ms.source.as_str()), (0.2, "the scenario"));
    assert!((v.measured.latency_ms.unwrap().p50 - 8.7).abs() < 1e-9);
    // Without overheads of its own a real server has the frozen ones, and they can be left out.
    let frozen: Validation = serde_json::from_str(&stdout(&run(&["--policy", "triton"]))).unwrap();
    assert_eq!(frozen.overhead_ms.inbound, 0.3565);
    let none = run(&["--policy", "triton", "--overhead", "scenario"]);
    let none: Validation = serde_json::from_str(&stdout(&none)).unwrap();
    // Alone: 4 ms of delay and 8.5 ms of service.
    assert!((none.predicted.latency_ms.unwrap().p50 - 13.0).abs() < 0.51);
    assert_eq!(none.overhead_ms.inbound, 0.0);
    let unknown = batchsim(&["validate", log.to_str().unwrap(), "--unit", "ms"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("says nothing of its server"));
}

/// perf_analyzer's file has no single request: the same loads are simulated.
#[test]
fn aggregates_are_held_against_simulated_loads() {
    let rates = "Request Rate,Inferences/Second,Client Send,Network+Server Send/Recv,\
                 Server Queue,Server Compute Input,Server Compute Infer,Server Compute Output,\
                 Client Recv,p50 latency,p90 latency,p95 latency,p99 latency\n\
                 20,20.0,50,300,10,2,8500,3,5,8700,8800,8900,9100\n";
    let Recorded::Aggregates(read) = parsed(rates, &Mapping::default()).unwrap() else {
        panic!("these are loads");
    };
    assert_eq!(
        (read.levels.as_slice(), read.points[0].load),
        ([0.5, 0.9, 0.95, 0.99].as_slice(), Load::Rate(20.0))
    );
    let folder = scratch("loads");
    let (scenario, file) = (folder.join("own.toml"), folder.join("perf.csv"));
    fs::write(&scenario, SCENARIO).unwrap();
    let out = folder.join("out");
    let run = |text: &str| -> serde_json::Value {
        fs::write(&file, text).unwrap();
        let common = ["--policy", "none", "-o", out.to_str().unwrap(), "--format", "json"];
        let given = ["validate", file.to_str().unwrap(), "--scenario", scenario.to_str().unwrap()];
        serde_json::from_str(&stdout(&batchsim(&[&given[..], &common[..]].concat()))).unwrap()
    };
    let v = run(rates);
    let point = &v["points"][0];
    assert_eq!(point["load"], "20.0/s");
    assert_eq!(point["measured"]["latency_ms"]["p99"], 9.1);
    // Evenly spaced, 50 ms apart: nobody ever waits.
    assert_eq!(point["predicted"]["latency_ms"]["p99"], 8.5);
    assert!((point["predicted"]["throughput_per_s"].as_f64().unwrap() - 20.0).abs() < 0.01);
    let v = run(&rates.replace("Request Rate", "Concurrency").replace("\n20,", "\n2,"));
    let point = &v["points"][0];
    assert_eq!(point["load"], "2 at a time");
    // Two callers take turns at a server that takes 8.5 ms.
    assert_eq!(point["predicted"]["latency_ms"]["p50"], 17.0);
    let per_s = point["predicted"]["throughput_per_s"].as_f64().unwrap();
    assert!((per_s - 1e3 / 8.5).abs() < 0.1, "{per_s}");
}

/// `<!-- stdout: … -->` stands before what that command prints.
#[test]
fn the_page_shows_what_the_program_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/VALIDATION.md");
    let text = fs::read_to_string(&path).unwrap();
    let (mut written, mut rest, mut blocks) = (String::new(), text.as_str(), 0);
    while let Some(at) = rest.find("<!-- stdout: ") {
        let command_at = at + "<!-- stdout: ".len();
        let command_end = command_at + rest[command_at..].find(" -->").unwrap();
        let command: Vec<&str> = rest[command_at..command_end].split_whitespace().collect();
        let start = command_end + " -->\n".len();
        let end = start + rest[start..].find("<!-- end -->").unwrap();
        let out = scratch(&format!("page-{blocks}"));
        let verb: &[&str] =
            if command.contains(&"--fit") { &[] } else { &["-o", out.to_str().unwrap()] };
        written += &rest[..start];
        let printed = stdout(&batchsim(&[&command[..], verb].concat()));
        let fenced = command.contains(&"markdown");
        written += &if fenced { printed } else { format!("```text\n{printed}```\n") };
        rest = &rest[end..];
        blocks += 1;
    }
    written += rest;
    assert!(blocks >= 2, "{blocks}");
    if std::env::var_os("BATCHSIM_BLESS").is_some() {
        fs::write(&path, written).unwrap();
    } else {
        assert!(written == text, "docs/VALIDATION.md is out of date: BATCHSIM_BLESS=1");
    }
}

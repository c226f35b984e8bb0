//! Trace files: what is read, what is refused and how, and the burstiness of published traces.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use batchsim::arrivals::{Columns, Replay, Trace};
use batchsim::interop::trace::{self, TraceFile};
use batchsim::stats::burstiness::{TraceStats, inspect};
use batchsim::time::Nanos;
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn replay(file: &str, columns: Option<[&str; 4]>) -> Replay {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let columns = columns.map(|[arrival, unit, input, output]| Columns {
        arrival: arrival.to_owned(),
        unit: some(unit),
        input_length: some(input),
        output_length: some(output),
        ..Columns::default()
    });
    Replay { file: file.to_owned(), format: None, columns, scale: None }
}

fn read(name: &str, columns: Option<[&str; 4]>) -> TraceFile {
    let bytes = fs::read(data("traces").join(name)).unwrap();
    trace::read(&bytes, &replay(name, columns)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn times(trace: &Trace) -> Vec<u64> {
    trace.arrivals.iter().map(|t| t.0).collect()
}

#[test]
fn azure_with_mark_crlf_and_quotes() {
    let file = read("azure.csv", None);
    assert_eq!(file.format, "azure-llm-2023");
    assert_eq!(times(&file.trace), [0, 200, 200], "across midnight, to the last digit");
    assert_eq!(file.trace.input_lengths, [374, 396, 879]);
    assert_eq!(file.trace.output_lengths, [44, 109, 55]);
}

#[test]
fn semicolons_quotes_and_line_breaks_in_fields() {
    let file = read("semicolon.csv", Some(["when", "s", "in", ""]));
    assert_eq!(file.format, "csv");
    assert_eq!(times(&file.trace), [0, 250_000_000, 750_000_000]);
    assert_eq!(file.trace.input_lengths, [10, 20, 30]);
    assert!(file.trace.output_lengths.is_empty());
}

#[test]
fn tabs_and_zones() {
    let file = read("tab.csv", Some(["t", "", "n", ""]));
    assert_eq!(times(&file.trace), [0, 1_000_000]);
    assert_eq!(file.trace.input_lengths, [5, 6]);
}

#[test]
fn json_lines() {
    let columns = ["timestamp", "ms", "input_length", "output_length"];
    let file = read("mooncake.jsonl", Some(columns));
    assert_eq!(file.format, "jsonl");
    assert_eq!(times(&file.trace), [0, 500_000, 1_000_000]);
    assert_eq!(file.trace.input_lengths, [40_160, 36_640, 7]);
    assert_eq!(file.columns.arrival, "timestamp");
}

#[test]
fn coarse_clock_is_a_warning() {
    let mut text = String::from("t\n");
    for i in 0..300 {
        text += &format!("{}\n", i / 10 * 3);
    }
    let file = trace::read(text.as_bytes(), &replay("t.csv", Some(["t", "s", "", ""]))).unwrap();
    assert_eq!(file.warnings.len(), 1);
    assert!(file.warnings[0].contains("grid of 3s"), "{:?}", file.warnings);
    assert!(inspect(&file.trace).counts[0].artefact);
}

/// What a person is told about every file in `tests/data/bad/trace`. A TOML file beside it holds
/// the `format` and `columns` of the scenario. `BATCHSIM_BLESS=1` writes the expected texts.
#[test]
fn refusals() {
    let mut count = 0;
    let mut files: Vec<PathBuf> =
        fs::read_dir(data("bad/trace")).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.ends_with(".csv") && !name.ends_with(".jsonl") {
            continue;
        }
        let options = fs::read_to_string(data("bad/trace").join(format!("{name}.toml")));
        let written = format!("file = \"{name}\"\n{}", options.unwrap_or_default());
        let replay: Replay = toml::from_str(&written).unwrap();
        let bytes = fs::read(&path).unwrap();
        let error = trace::read(&bytes, &replay).expect_err(&name);
        golden(&path, &format!("error: {error}\nhelp: {}\n", error.help));
        count += 1;
    }
    assert!(count >= 12, "{count} bad traces");
}

fn golden(path: &Path, text: &str) {
    let expected = PathBuf::from(format!("{}.txt", path.display()));
    if std::env::var_os("BATCHSIM_BLESS").is_some() {
        fs::write(&expected, text).unwrap();
    }
    let wanted = fs::read_to_string(&expected).unwrap_or_default().replace("\r\n", "\n");
    assert_eq!(text, wanted, "{} (BATCHSIM_BLESS=1 rewrites it)", expected.display());
}

/// Published figures: gaps CV, then the index of dispersion at 0.1, 1, 10, 60 and 300 s.
struct Published {
    file: &'static str,
    columns: Option<[&'static str; 4]>,
    requests: u64,
    duration_s: f64,
    rate_per_s: f64,
    gap_cv: f64,
    idc: [Option<f64>; 5],
    output_p99: Option<f64>,
}

const PUBLISHED: [Published; 3] = [
    Published {
        file: "AzureLLMInferenceTrace_code.csv",
        columns: None,
        requests: 8_819,
        duration_s: 3_436.0,
        rate_per_s: 2.57,
        gap_cv: 13.2,
        idc: [Some(2.538), Some(13.19), Some(71.64), Some(163.97), Some(137.84)],
        output_p99: Some(251.5),
    },
    Published {
        file: "AzureLLMInferenceTrace_conv.csv",
        columns: None,
        requests: 19_366,
        duration_s: 3_502.0,
        rate_per_s: 5.53,
        gap_cv: 1.094,
        idc: [Some(1.059), Some(1.385), Some(3.857), Some(16.13), Some(56.1)],
        output_p99: Some(601.0),
    },
    Published {
        file: "mooncake_synthetic_trace.jsonl",
        columns: Some(["timestamp", "ms", "input_length", "output_length"]),
        requests: 3_993,
        duration_s: 1_022.0,
        rate_per_s: 3.91,
        gap_cv: 1.011,
        idc: [Some(0.994), Some(1.089), Some(1.178), Some(1.192), None],
        output_p99: None,
    },
];

fn close(what: &str, got: f64, wanted: f64) {
    assert!((got / wanted - 1.0).abs() < 0.01, "{what}: {got}, published {wanted}");
}

#[test]
fn published_traces() {
    let folder = std::env::var_os("BATCHSIM_DATA").map(|d| PathBuf::from(d).join("traces"));
    let (mut ran, mut skipped) = (0, 0);
    for known in &PUBLISHED {
        let bytes = folder.as_ref().and_then(|folder| fs::read(folder.join(known.file)).ok());
        let Some(bytes) = bytes else {
            skipped += 1;
            continue;
        };
        ran += 1;
        let file = trace::read(&bytes, &replay(known.file, known.columns)).unwrap();
        let stats = inspect(&file.trace);
        println!("{} as {}\n{stats}", known.file, file.format);
        compare(known, &stats);
    }
    println!("published traces: {ran} ran, {skipped} skipped (BATCHSIM_DATA)");
}

fn compare(known: &Published, stats: &TraceStats) {
    assert_eq!(stats.requests, known.requests);
    close("duration", stats.duration_s, known.duration_s);
    close("rate", stats.rate_per_s, known.rate_per_s);
    close("gap CV", stats.gap_cv.unwrap(), known.gap_cv);
    for (counts, idc) in stats.counts.iter().zip(known.idc) {
        assert_eq!(counts.idc.is_some(), idc.is_some(), "{counts:?}");
        if let (Some(got), Some(wanted)) = (counts.idc, idc) {
            close(&format!("IDC at {} s", counts.window_s), got, wanted);
        }
    }
    assert!(stats.warnings.is_empty(), "{:?}", stats.warnings);
    if let Some(p99) = known.output_p99 {
        close("output p99", f64::from(stats.output_tokens.unwrap().p99), p99);
    }
}

/// `scenarios/azure.toml` needs a file that is not in the repository; its keys are checked here.
#[test]
fn azure_scenario_reads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/azure.toml");
    let scenario: toml::Table = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let mut arrivals = scenario["arrivals"][0].as_table().unwrap().clone();
    assert_eq!(arrivals.remove("kind").unwrap().as_str(), Some("trace"));
    let replay: Replay = arrivals.try_into().unwrap();
    assert!(trace::formats().contains(&replay.format.as_deref().unwrap()));
    assert_eq!(replay.factor(), 1.0);
    let folder = std::env::var_os("BATCHSIM_DATA").map(|d| PathBuf::from(d).join("traces"));
    if let Some(bytes) = folder.and_then(|folder| fs::read(folder.join(&replay.file)).ok()) {
        assert_eq!(trace::read(&bytes, &replay).unwrap().trace.arrivals.len(), 19_366);
    }
}

#[test]
fn stats_as_json_have_units_in_their_names() {
    let stats = inspect(&read("azure.csv", None).trace);
    let json = serde_json::to_value(&stats).unwrap();
    for key in ["requests", "duration_s", "rate_per_s", "counts", "grid_ns", "output_tokens"] {
        assert!(json.get(key).is_some(), "{key}");
    }
    assert_eq!(stats.grid_ns, Some(200));
    assert_eq!(stats.rows().len(), 25);
    assert_eq!(inspect(&Trace::default()).rows()[0].text(), "0");
    assert_eq!(stats.duration_s, Nanos(200).as_s());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_break_the_reader(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        which in 0..4_usize,
        named in any::<bool>(),
    ) {
        let (name, columns) = [
            ("azure.csv", None),
            ("semicolon.csv", Some(["when", "s", "in", "out"])),
            ("tab.csv", Some(["t", "", "n", ""])),
            ("mooncake.jsonl", Some(["timestamp", "ms", "input_length", "output_length"])),
        ][which];
        let mut bytes = fs::read(data("traces").join(name)).unwrap();
        for (at, byte) in cuts {
            let at = at.index(bytes.len());
            match byte % 3 {
                0 => { bytes.remove(at); }
                1 => bytes.insert(at, byte),
                _ => bytes[at] = byte,
            }
        }
        let mut replay = replay(name, columns);
        if named {
            replay.format = Some("csv".to_owned());
        }
        if let Ok(file) = trace::read(&bytes, &replay) {
            prop_assert!(file.trace.arrivals.is_sorted());
            prop_assert_eq!(file.trace.arrivals[0], Nanos::ZERO);
            let _ = inspect(&file.trace).to_string();
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(?s)[\"',;{}\\[\\]:0-9a-z\r\n\té. -]{0,80}") {
        let _ = trace::read(text.as_bytes(), &replay("x", Some(["a", "s", "b", ""])));
        let _ = trace::read(text.as_bytes(), &replay("x", None));
    }
}

//! Recordings on disk: where they are, and what is known of them.

use super::exit::Failure;
use super::validate::LogArgs;
use crate::interop::recording::{self, Input, Mapping, Recorded};
use crate::outcome::Validation;
use crate::recording::{Aggregates, Recording};
use anyhow::Context;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The table of a recording folder, compressed or not.
const TABLES: [&str; 2] = ["requests.csv.gz", "requests.csv"];
/// What is known of misses, beside the recordings.
const MISSES: &str = "known-misses.csv";

/// What a file or folder holds.
pub(super) enum Found {
    /// Every request.
    Requests(Box<Recording>),
    /// Quantiles and throughput at several loads.
    Loads(Aggregates),
}

/// The recordings that are meant: as given, or with `all` those in the given folders.
pub(super) fn places(given: &[PathBuf], all: bool) -> Result<Vec<PathBuf>, Failure> {
    if !all {
        return Ok(given.to_vec());
    }
    let mut places = Vec::new();
    for folder in given {
        let entries = std::fs::read_dir(folder)
            .with_context(|| format!("cannot read the folder {}", folder.display()))?;
        let mut found: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.join("config.json").is_file())
            .collect();
        found.sort();
        if found.is_empty() {
            return Err(Failure::usage(
                format!("{} holds no recordings", folder.display()),
                "each is a folder with config.json and requests.csv.gz",
            ));
        }
        places.extend(found);
    }
    Ok(places)
}

/// Reads a recording.
pub(super) fn read(place: &Path, log: &LogArgs) -> Result<Found, Failure> {
    let mapping = mapping(log);
    let (file, config) = open(place)?;
    let name = name(place);
    let input = Input {
        name: &name,
        config: config.as_deref(),
        body: file,
        format: log.recording_format.as_deref(),
        columns: &mapping,
    };
    match recording::read(input) {
        Ok(Recorded::Requests(recording)) => Ok(Found::Requests(Box::new(recording))),
        Ok(Recorded::Aggregates(aggregates)) => Ok(Found::Loads(aggregates)),
        Err(e) => Err(Failure::usage(format!("{}:{e}", place.display()), e.help)),
    }
}

/// The requests, and `config.json` of a folder.
type Opened = (Box<dyn Read>, Option<Vec<u8>>);

fn open(place: &Path) -> Result<Opened, Failure> {
    if place == Path::new("-") {
        return Ok((Box::new(std::io::stdin()), None));
    }
    if !place.exists() {
        let what = format!("there is no recording {}", place.display());
        return Err(Failure::usage(what, "check the path"));
    }
    let file =
        |path: &Path| File::open(path).with_context(|| format!("cannot read {}", path.display()));
    if !place.is_dir() {
        return Ok((Box::new(file(place)?), None));
    }
    let table = TABLES.iter().map(|name| place.join(name)).find(|path| path.is_file());
    let config = std::fs::read(place.join("config.json"));
    match (table, config) {
        (Some(table), Ok(config)) => Ok((Box::new(file(&table)?), Some(config))),
        _ => Err(Failure::usage(
            format!("{} is not a recording", place.display()),
            "such a folder has config.json and requests.csv.gz; --all reads a folder of them",
        )),
    }
}

/// The name of a folder, or of a file without its extensions.
fn name(place: &Path) -> String {
    let absolute = place.canonicalize().unwrap_or_else(|_| place.to_path_buf());
    let name = absolute.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    if absolute.is_dir() {
        return name;
    }
    let name = name.trim_end_matches(".gz");
    let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    if name.is_empty() || name == "-" { "recording".to_owned() } else { name.to_owned() }
}

fn mapping(log: &LogArgs) -> Mapping {
    let columns = [
        ("arrival", &log.arrival),
        ("finish", &log.finish),
        ("start", &log.start),
        ("end", &log.end),
        ("batch", &log.batch),
        ("instance", &log.instance),
        ("batch_size", &log.batch_size),
        ("status", &log.status),
        ("items", &log.items),
        ("priority", &log.priority),
    ];
    let given = |(field, name): (&'static str, &Option<String>)| Some((field, name.clone()?));
    Mapping { columns: columns.into_iter().filter_map(given).collect(), unit: log.unit.clone() }
}

/// What is known of the misses, as a list in Markdown; empty where nothing missed.
pub(super) fn causes(places: &[PathBuf], all: &[Validation]) -> Result<String, Failure> {
    let mut known: Vec<[String; 3]> = Vec::new();
    let mut folders: Vec<&Path> = places.iter().filter_map(|p| p.parent()).collect();
    folders.dedup();
    for file in folders.iter().map(|folder| folder.join(MISSES)).filter(|f| f.is_file()) {
        let rows = csv::Reader::from_path(&file)
            .and_then(|mut reader| reader.deserialize().collect::<Result<Vec<_>, _>>());
        known.extend(rows.with_context(|| format!("cannot read {}", file.display()))?);
    }
    let mut text = String::new();
    for v in all {
        for number in &v.misses {
            let name = &v.recording.name;
            let cause = known.iter().find(|[r, n, _]| r == name && n == number);
            let cause = cause.map_or("the cause is not known", |[.., cause]| cause.as_str());
            text += &format!("- **{name} {number}**: {cause}\n");
        }
    }
    Ok(if text.is_empty() { text } else { format!("\n{text}") })
}

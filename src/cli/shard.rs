//! Files of `sweep --shard`: a heading, the cells, and a trailer that says they are all there.

use super::exit::Failure;
use super::files;
use super::journal::{Entry, Heading, JOURNAL, line};
use super::show::say;
use crate::report::count;
use crate::study::Shard;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Name of the file in the folder of a shard.
const FILE: &str = "shard.jsonl";
/// First key of the file.
const FORMAT: &str = "batchsim-shard-1";

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    format: String,
    shard: Shard,
    /// Cells of the whole sweep.
    cells: usize,
    /// Digest of everything the results depend on but the seed and the build.
    scenario_sha256: String,
    seed: u64,
    version: String,
    commit: String,
    /// The line above the table.
    title: String,
    sweep: Heading,
}

/// What the first line says in every version of the format.
#[derive(Debug, Deserialize)]
struct Stamp {
    version: String,
    commit: String,
}

/// The last line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Trailer {
    complete: bool,
    /// Cells in this file.
    cells: usize,
    /// Of all lines before this one.
    sha256: String,
}

/// Name of the folder of a shard.
pub(super) fn folder_name(shard: Shard) -> String {
    format!("shard-{}-of-{}", shard.number(), shard.of())
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing into a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Digest of the resolved scenario and the options that decide the results.
fn scenario_digest(heading: &Heading) -> Result<String, Failure> {
    let outcome = &heading.outcome;
    let mut scenario = outcome.scenario.clone();
    if let Some(keys) = scenario.as_object_mut() {
        keys.remove("seed");
    }
    let how = (heading.precision, heading.event_engine, heading.method);
    let all = (&scenario, &outcome.axes, how, &heading.traces);
    Ok(sha256(line(&all)?.as_bytes()))
}

/// Writes a complete shard, and says what to do with it; returns how many of its cells stall.
pub(super) fn write(
    folder: &Path,
    heading: &Heading,
    title: &str,
    cells: usize,
    entries: &[Entry],
) -> Result<u64, Failure> {
    let Some(shard) = heading.shard else { return Ok(0) };
    let tool = &heading.outcome.tool;
    let mut text = line(&Head {
        format: FORMAT.into(),
        shard,
        cells,
        scenario_sha256: scenario_digest(heading)?,
        seed: heading.outcome.seed,
        version: tool.version.clone(),
        commit: tool.commit.clone(),
        title: title.into(),
        sweep: heading.clone(),
    })?;
    for entry in entries {
        text += &line(entry)?;
    }
    let sha256 = sha256(text.as_bytes());
    text += &line(&Trailer { complete: true, cells: entries.len(), sha256 })?;
    let path = folder.join(FILE);
    files::write(&path, text.as_bytes())?;
    say(&format!(
        "shard {shard}: {} of {} cells in {}; `batchsim merge` puts the shards together",
        count(entries.len() as u64),
        count(cells as u64),
        path.display()
    ));
    Ok(entries.iter().filter(|e| e.stalled.is_some()).count() as u64)
}

/// A complete shard that was read.
#[derive(Debug)]
pub(super) struct Piece {
    path: PathBuf,
    head: Head,
    entries: Vec<Entry>,
}

/// The shard files that the arguments of `merge` name: files, folders of shards, and folders of
/// such folders.
pub(super) fn named_by(arguments: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in arguments {
        if path.is_file() {
            found.push(path.clone());
        } else if path.join(FILE).exists() || path.join(JOURNAL).exists() {
            found.push(path.join(FILE));
        } else {
            let inside = std::fs::read_dir(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let is_shard = |p: &PathBuf| {
                let name = p.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with("shard-") && (p.join(FILE).exists() || p.join(JOURNAL).exists())
            };
            let mut shards: Vec<PathBuf> =
                inside.filter_map(|e| Some(e.ok()?.path())).filter(is_shard).collect();
            if shards.is_empty() {
                return Err(Failure::usage(
                    format!("{} holds no shard of a sweep", path.display()),
                    "name the folders that `sweep --shard i/n` wrote, or the one that holds them",
                ));
            }
            shards.sort();
            found.extend(shards.iter().map(|p| p.join(FILE)));
        }
    }
    Ok(found)
}

/// Reads a shard file to its trailer.
pub(super) fn read(path: &Path) -> Result<Piece, Failure> {
    let shown = path.display();
    if !path.exists() {
        return Err(Failure::usage(
            format!("{shown} is missing: this shard was interrupted"),
            "run its sweep again; the same command goes on where it stopped",
        ));
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    let text = String::from_utf8_lossy(&bytes);
    let first = text.lines().next().unwrap_or_default();
    let damaged = || {
        Failure::usage(
            format!("{shown} is no shard of a sweep, or its first line is damaged"),
            "name a folder that `sweep --shard i/n` wrote, or run that shard again",
        )
    };
    let stamp: Stamp = serde_json::from_str(first).map_err(|_| damaged())?;
    own_build(path, &stamp)?;
    let known = serde_json::from_str(first).ok().filter(|h: &Head| h.format == FORMAT);
    let head = known.ok_or_else(damaged)?;
    let entries = body(&text, &head).ok_or_else(|| {
        Failure::usage(
            format!("{shown} is cut short or damaged: its trailer does not match its lines"),
            format!("copy it again, or run the sweep again with --shard {} --fresh", head.shard),
        )
    })?;
    Ok(Piece { path: path.to_path_buf(), head, entries })
}

/// The cells between heading and trailer, if every one of them is there.
fn body(text: &str, head: &Head) -> Option<Vec<Entry>> {
    let before = text.strip_suffix('\n')?.rfind('\n')? + 1;
    let trailer: Trailer = serde_json::from_str(&text[before..]).ok()?;
    let lines = text[..before].lines().skip(1);
    let entries: Vec<Entry> = lines.map(|l| serde_json::from_str(l).ok()).collect::<Option<_>>()?;
    let indices = entries.iter().map(|e| e.index);
    let whole = Trailer {
        complete: true,
        cells: entries.len(),
        sha256: sha256(&text.as_bytes()[..before]),
    };
    let planned = indices.eq((0..head.cells).filter(|i| head.shard.takes(*i)));
    (trailer == whole && planned).then_some(entries)
}

/// All shards of one sweep, put together.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) heading: Heading,
    pub(super) title: String,
    /// In index order.
    pub(super) entries: Vec<Entry>,
}

/// Puts shards together, if they are those of one sweep, each of them once.
pub(super) fn join(mut pieces: Vec<Piece>) -> Result<Whole, Failure> {
    pieces.sort_by_key(|p| p.head.shard.number());
    let Some((first, others)) = pieces.split_first() else {
        return Err(Failure::usage("there is nothing to merge", "name the folders of all shards"));
    };
    for other in others {
        same_sweep(first, other)?;
    }
    for pair in pieces.windows(2) {
        if pair[0].head.shard == pair[1].head.shard {
            let (a, b) = (pair[0].path.display(), pair[1].path.display());
            return Err(Failure::usage(
                format!("shard {} is there twice: {a} and {b}", pair[0].head.shard),
                "name each shard once",
            ));
        }
    }
    let of = first.head.shard.of();
    let there = |n: &u32| pieces.iter().any(|p| p.head.shard.number() == *n);
    let missing: Vec<String> =
        (1..=of).filter(|n| !there(n)).map(|n| format!("{n}/{of}")).collect();
    if let Some(one) = missing.first() {
        let (plural, verb) = if missing.len() == 1 { ("", "is") } else { ("s", "are") };
        let list = missing.join(", ");
        return Err(Failure::usage(
            format!("shard{plural} {list} {verb} missing beside {}", first.path.display()),
            format!("name every shard; compute one with the same sweep and --shard {one}"),
        ));
    }
    let (heading, title) = (first.head.sweep.clone(), first.head.title.clone());
    let mut entries: Vec<Entry> = pieces.into_iter().flat_map(|p| p.entries).collect();
    entries.sort_by_key(|e| e.index);
    Ok(Whole { heading, title, entries })
}

/// Another build might have simulated other cells, and might write other bytes.
fn own_build(path: &Path, stamp: &Stamp) -> Result<(), Failure> {
    let (version, commit) = (env!("CARGO_PKG_VERSION"), env!("BATCHSIM_COMMIT"));
    if (stamp.version.as_str(), stamp.commit.as_str()) == (version, commit) {
        return Ok(());
    }
    Err(Failure::usage(
        format!(
            "two builds: {} was made by batchsim {} ({}), this is batchsim {version} ({commit})",
            path.display(),
            stamp.version,
            stamp.commit
        ),
        "run and merge all shards with one program",
    ))
}

/// Refuses a shard of another seed, scenario or division.
fn same_sweep(first: &Piece, other: &Piece) -> Result<(), Failure> {
    let (a, b) = (first.path.display(), other.path.display());
    let (x, y) = (&first.head, &other.head);
    let differ = |what: String, help: &str| Err(Failure::usage(what, help));
    if x.seed != y.seed {
        return differ(
            format!("two seeds: {} in {a}, {} in {b}", x.seed, y.seed),
            "run all shards with one seed",
        );
    }
    if (&x.scenario_sha256, x.cells) != (&y.scenario_sha256, y.cells) {
        let (one, two) = (&x.sweep.outcome.scenario, &y.sweep.outcome.scenario);
        let place = first_difference(one, two, "").map_or_else(
            || "in the options or recordings".to_owned(),
            |(path, one, two)| format!("in {path}: {one} and {two}"),
        );
        return differ(
            format!("two scenarios: {a} and {b} differ {place}"),
            "run all shards with one scenario, the same --set and the same --precision",
        );
    }
    if x.shard.of() != y.shard.of() {
        return differ(
            format!("two divisions: {a} is shard {}, {b} is shard {}", x.shard, y.shard),
            "merge the shards of one division",
        );
    }
    Ok(())
}

/// The first place where two values differ, and what stands there.
fn first_difference(
    one: &serde_json::Value,
    two: &serde_json::Value,
    path: &str,
) -> Option<(String, String, String)> {
    use serde_json::Value::{Array, Null, Object};
    if one == two {
        return None;
    }
    let deeper = |key: &str| if path.is_empty() { key.into() } else { format!("{path}.{key}") };
    match (one, two) {
        (Object(x), Object(y)) => x.keys().chain(y.keys()).find_map(|key| {
            let (one, two) = (x.get(key).unwrap_or(&Null), y.get(key).unwrap_or(&Null));
            first_difference(one, two, &deeper(key))
        }),
        (Array(x), Array(y)) if x.len() == y.len() => {
            (0..x.len()).find_map(|i| first_difference(&x[i], &y[i], &deeper(&i.to_string())))
        }
        _ => Some((path.to_owned(), one.to_string(), two.to_string())),
    }
}

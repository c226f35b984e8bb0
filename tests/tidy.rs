//! House rules that a text can show, held by tests.
//!
//! Every rule is a function from text to the complaints about it. Each has a test that feeds it a
//! text it must refuse, and one that goes through the repository.
#![allow(clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longest line, in characters.
const LINE: usize = 100;
/// Most lines of a file in `src`.
const FILE: usize = 500;
/// Most lines of a function, signature and braces included.
const FUNCTION: usize = 70;

/// Modules that know no files, threads, argument parsers, drawing or serialisation.
const CORE: &[&str] = &[
    "time",
    "units",
    "number",
    "rng",
    "tagged",
    "arrivals",
    "cost",
    "policy",
    "engine",
    "llm",
    "record",
    "recording",
    "stats",
    "exact",
];

/// A line, from 1, and what is wrong there.
type Complaint = (usize, String);

// --- reading Rust without parsing it ---

/// The text with the contents of comments, strings and characters blanked, byte for byte.
fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => line_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if !follows_word(bytes, at) => raw_end(bytes, at),
            b'\'' => character_end(bytes, at),
            _ => at,
        };
        if end == at {
            at += 1;
            continue;
        }
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn follows_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_')
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n)
}

/// Block comments nest.
fn comment_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut i = at + 1;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 2,
            b'"' => return i + 1,
            _ => i += 1,
        }
    }
    bytes.len()
}

/// `r"…"`, `r#"…"#`; `at` itself where this is no raw string.
fn raw_end(bytes: &[u8], at: usize) -> usize {
    let hashes = bytes[at + 1..].iter().take_while(|b| **b == b'#').count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return at;
    }
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let rest = &bytes[open + 1..];
    let found = rest.windows(close.len()).position(|w| w == close);
    found.map_or(bytes.len(), |n| open + 1 + n + close.len())
}

/// `'x'`, `'\n'`; `at` itself for a lifetime.
fn character_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at + 1..];
    let escaped = rest.first() == Some(&b'\\');
    let text = std::str::from_utf8(&rest[..rest.len().min(8)]);
    let first = match text {
        Ok(text) => text.chars().next(),
        Err(e) => std::str::from_utf8(&rest[..e.valid_up_to()]).ok().and_then(|t| t.chars().next()),
    };
    let Some(first) = first else { return at };
    if escaped {
        let close = rest.iter().skip(2).position(|b| *b == b'\'');
        return close.map_or(at, |n| at + 1 + 2 + n + 1);
    }
    let len = first.len_utf8();
    if rest.get(len) == Some(&b'\'') { at + 1 + len + 1 } else { at }
}

/// The code with every item that follows one of these attributes blanked.
fn without_items(code: &str, raw: &str, attributes: &[&str]) -> String {
    let mut out = code.as_bytes().to_vec();
    let mut at = 0;
    while let Some(start) = code[at..].find("#[").map(|n| at + n) {
        let end = matching(code.as_bytes(), start + 1, b'[', b']');
        let written: String = raw[start..end].split_whitespace().collect();
        at = end;
        if attributes.contains(&written.as_str()) {
            let item_end = item_end(code.as_bytes(), end);
            out[start..item_end].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
            at = item_end;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The code with every attribute that begins like one of these blanked.
fn without_attributes(code: &str, raw: &str, beginnings: &[&str]) -> String {
    let mut out = code.as_bytes().to_vec();
    let mut at = 0;
    while let Some(start) = code[at..].find("#[").map(|n| at + n) {
        let end = matching(code.as_bytes(), start + 1, b'[', b']');
        let written: String = raw[start..end].split_whitespace().collect();
        if beginnings.iter().any(|b| written.starts_with(b)) {
            out[start..end].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
        }
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Past the bracket that closes the one at or after `at`.
fn matching(code: &[u8], at: usize, open: u8, close: u8) -> usize {
    let mut depth = 0;
    for (i, byte) in code.iter().enumerate().skip(at) {
        if *byte == open {
            depth += 1;
        } else if *byte == close {
            depth -= 1;
            if depth == 0 {
                return i + 1;
            }
        }
    }
    code.len()
}

/// Past the end of the item or field that begins at `at`: its `;`, its `,` or its braces.
fn item_end(code: &[u8], at: usize) -> usize {
    let mut round = 0;
    for (i, byte) in code.iter().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => round += 1,
            b')' | b']' => round -= 1,
            b'{' => return matching(code, i, b'{', b'}'),
            b';' | b',' if round == 0 => return i + 1,
            _ => {}
        }
    }
    code.len()
}

/// Code that ships: without tests.
fn shipped(text: &str) -> String {
    without_items(&code(text), text, &["#[cfg(test)]"])
}

fn line_of(text: &str, byte: usize) -> usize {
    text[..byte].matches('\n').count() + 1
}

/// Whether `word` stands at `at` with no word character on either side.
fn whole_word(text: &str, at: usize, word: &str) -> bool {
    let bytes = text.as_bytes();
    let is_word = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let joined = at > 0 && is_word(bytes.get(at - 1));
    !joined && !is_word(bytes.get(at + word.len()))
}

/// Every place of these words in code.
fn words(code: &str, forbidden: &[&str], why: &str) -> Vec<Complaint> {
    let mut found = Vec::new();
    for word in forbidden {
        for (at, _) in code.match_indices(word) {
            let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
            let from = at + word.find(bare).unwrap_or(0);
            if whole_word(code, from, bare) {
                found.push((line_of(code, at), format!("`{word}`: {why}")));
            }
        }
    }
    found.sort();
    found
}

// --- the rules ---

/// Lines of at most [`LINE`] characters; rows of numbers and literals are excepted.
fn long_lines(text: &str) -> Vec<Complaint> {
    let is_row = |line: &str| {
        let line = line.trim();
        line.ends_with(',') && !line.contains("//") && line.starts_with(['(', '[', '"', '-'])
            || line.starts_with(|c: char| c.is_ascii_digit())
    };
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| line.chars().count() > LINE && !is_row(line))
        .map(|(n, line)| (n, format!("{} characters", line.chars().count())))
        .collect()
}

/// Files of at most [`FILE`] lines.
fn long_file(text: &str) -> Vec<Complaint> {
    let lines = text.lines().count();
    if lines > FILE { vec![(FILE + 1, format!("{lines} lines"))] } else { Vec::new() }
}

/// Functions of at most [`FUNCTION`] lines.
fn long_functions(text: &str) -> Vec<Complaint> {
    let code = code(text);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if !whole_word(&code, at, "fn") {
            continue;
        }
        let end = item_end(code.as_bytes(), at);
        let lines = code[at..end].matches('\n').count() + 1;
        if lines > FUNCTION {
            let name: String =
                code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            found.push((line_of(&code, at), format!("`{name}` has {lines} lines")));
        }
    }
    found
}

/// Nothing that ends the program where an error should be returned.
fn panics(text: &str) -> Vec<Complaint> {
    let forbidden =
        [".unwrap()", ".expect(", "panic!", "todo!", "unimplemented!", "dbg!", "unreachable!"];
    words(&shipped(text), &forbidden, "return an error, or show that it cannot happen")
}

/// No clock: what a run says depends on scenario, seed and build.
fn clocks(text: &str) -> Vec<Complaint> {
    words(&shipped(text), &["Instant", "SystemTime"], "only src/cli may look at the clock")
}

/// The core knows nothing of files, threads, arguments, drawing, or of what is built on it.
fn core_knows(text: &str) -> Vec<Complaint> {
    let outside = [
        "std::fs",
        "std::io",
        "std::env",
        "std::thread",
        "std::process",
        "rayon",
        "clap",
        "plotters",
        "indicatif",
        "anyhow",
        "toml",
        "csv",
        "crate::scenario",
        "crate::outcome",
        "crate::study",
        "crate::report",
        "crate::plot",
        "crate::interop",
        "crate::cli",
    ];
    let shipped = shipped(text);
    let mut found = words(&shipped, &outside, "the core knows nothing of this");
    let plain = without_items(&shipped, text, &["#[cfg(feature=\"schema\")]"]);
    let plain = without_attributes(
        &plain,
        text,
        &["#[cfg_attr(feature=\"schema\",", "#[cfg_attr(feature=\"schema\")"],
    );
    let serialisers = ["serde", "serde_json", "schemars"];
    found.extend(words(&plain, &serialisers, "only behind the feature `schema`"));
    found
}

/// What each module outside the core may know beside it; `cli` may know everything.
const LAYERS: &[(&str, &[&str])] = &[
    ("scenario", &[]),
    ("interop", &["scenario"]),
    ("outcome", &[]),
    ("traps", &["scenario"]),
    ("study", &["scenario", "outcome", "traps"]),
    ("decide", &["scenario", "outcome", "study"]),
    ("report", &["outcome"]),
    ("plot", &["outcome", "report"]),
];

/// A module knows the core and the layers below it.
fn knows_above(text: &str, own: &str, below: &[&str]) -> Vec<Complaint> {
    let shipped = shipped(text);
    let mut found = Vec::new();
    for (at, _) in shipped.match_indices("crate::") {
        let name: String = shipped[at + "crate::".len()..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let is_outer = name == "cli" || LAYERS.iter().any(|(module, _)| *module == name);
        if is_outer && name != own && !below.contains(&name.as_str()) {
            found.push((line_of(&shipped, at), format!("`{own}` knows nothing of `{name}`")));
        }
    }
    found
}

/// Paths of one machine.
fn machine_paths(text: &str) -> Vec<Complaint> {
    // Put together here, so that this file passes its own rule.
    let roots = ["root", "home", "tmp/x", "work", "Users"].map(|folder| format!("/{folder}/"));
    let mut found = Vec::new();
    for (n, line) in (1..).zip(text.lines()) {
        for root in &roots {
            let starts = |at: usize| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "._-~/*".contains(c))
            };
            if line.match_indices(root.as_str()).any(|(at, _)| starts(at)) {
                found.push((n, format!("`{root}` exists on one machine only")));
            }
        }
    }
    found
}

/// The kinds that a `tagged!` list registers.
fn kinds(module: &str) -> Vec<String> {
    let mut found = Vec::new();
    for list in module.split("tagged! {").skip(1) {
        let list = list.split("\n}").next().unwrap_or_default();
        for line in list.lines() {
            if let Some((tag, _)) = line.trim().split_once(" => ")
                && let Some(kind) = tag.strip_prefix('"').and_then(|t| t.strip_suffix('"'))
            {
                found.push(kind.to_owned());
            }
        }
    }
    found
}

/// Kinds that no scenario uses.
fn unused_kinds(kinds: &[String], scenarios: &str) -> Vec<Complaint> {
    let used = |kind: &String| scenarios.contains(&format!("kind = \"{kind}\""));
    kinds
        .iter()
        .filter(|kind| !used(kind))
        .map(|kind| (1, format!("no scenario uses kind = \"{kind}\"")))
        .collect()
}

/// Kinds without a row (`| `kind` |`) in a page.
fn undocumented_kinds(kinds: &[String], page: &str) -> Vec<Complaint> {
    kinds
        .iter()
        .filter(|kind| !page.lines().any(|line| line.starts_with(&format!("| `{kind}`"))))
        .map(|kind| (1, format!("kind `{kind}` has no row in docs/SCENARIO.md")))
        .collect()
}

/// Names that the pages never mention.
fn unmentioned(names: &[String], pages: &str) -> Vec<Complaint> {
    names
        .iter()
        .filter(|name| !pages.contains(name.as_str()))
        .map(|name| (1, format!("no page mentions {name}")))
        .collect()
}

/// Links of a Markdown page to files that do not exist; `exists` is asked with the path as written.
fn dead_links(page: &str, exists: &dyn Fn(&str) -> bool) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (n, line) in (1..).zip(page.lines()) {
        for part in line.split("](").skip(1) {
            let target = part.split([')', ' ', '#']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !exists(target) {
                found.push((n, format!("links to {target}, which does not exist")));
            }
        }
    }
    found
}

// --- the repository ---

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Files of the repository; what git ignores is left out where there is git.
fn tracked() -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let mut paths: Vec<PathBuf> = match listed {
        Ok(out) if out.status.success() => String::from_utf8_lossy(&out.stdout)
            .split('\0')
            .filter(|p| !p.is_empty())
            .map(|p| root().join(p))
            .filter(|p| p.is_file())
            .collect(),
        _ => {
            let mut found = Vec::new();
            walk(&root(), &mut found);
            found
        }
    };
    paths.sort();
    paths
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            if !["target", ".git", "batchsim-out"].iter().any(|skipped| name == *skipped) {
                walk(&path, found);
            }
        } else {
            found.push(path);
        }
    }
}

/// Path inside the repository, with forward slashes.
fn inside(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap_or(path);
    path.to_string_lossy().replace('\\', "/")
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn page(path: &str) -> String {
    read(&root().join(path)).unwrap_or_default()
}

/// Applies a rule to the tracked files that `chosen` picks; fails with everything it finds.
fn everywhere(chosen: impl Fn(&str) -> bool, rule: impl Fn(&str) -> Vec<Complaint>) {
    let mut complaints = Vec::new();
    let mut seen = 0;
    for path in tracked() {
        let name = inside(&path);
        if !chosen(&name) {
            continue;
        }
        if let Some(text) = read(&path) {
            seen += 1;
            complaints
                .extend(rule(&text).into_iter().map(|(n, what)| format!("{name}:{n}: {what}")));
        }
    }
    assert!(seen > 0, "the rule was applied to no file");
    none(&complaints);
}

fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

fn in_src(name: &str) -> bool {
    name.starts_with("src/") && name.ends_with(".rs")
}

fn in_core(name: &str) -> bool {
    let within = |module: &&str| {
        name == format!("src/{module}.rs") || name.starts_with(&format!("src/{module}/"))
    };
    CORE.iter().any(within)
}

fn scenarios() -> Vec<(String, String)> {
    tracked()
        .iter()
        .map(|path| (inside(path), read(path).unwrap_or_default()))
        .filter(|(name, _)| name.starts_with("scenarios/") && name.ends_with(".toml"))
        .collect()
}

fn pages() -> String {
    let is_page =
        |name: &String| name.ends_with(".md") && (name.starts_with("docs/") || !name.contains('/'));
    tracked().iter().filter(|p| is_page(&inside(p))).filter_map(|p| read(p)).collect()
}

#[test]
fn lines_are_short() {
    let long = format!("let x = {};", "1 + ".repeat(30));
    assert_eq!(long_lines(&format!("ok\n{long}\n"))[0].0, 2);
    assert_eq!(long_lines(&format!("    ({}),\n", "1.0, ".repeat(30))), []);
    everywhere(|name| name.ends_with(".rs"), long_lines);
}

#[test]
fn files_are_short() {
    assert_eq!(long_file(&"x\n".repeat(501)).len(), 1);
    assert_eq!(long_file(&"x\n".repeat(500)), []);
    everywhere(in_src, long_file);
}

#[test]
fn functions_are_short() {
    let function = |n: usize| format!("fn f(a: [u8; 3]) {{\n{}}}\nfn g() {{}}\n", "a;\n".repeat(n));
    assert_eq!(long_functions(&function(69)), [(1, "`f` has 71 lines".to_owned())]);
    assert_eq!(long_functions(&function(68)), []);
    everywhere(in_src, long_functions);
}

#[test]
fn errors_are_returned() {
    let bad = "fn f() { a.unwrap(); b.expect(\"c\"); panic!(); todo!(); }";
    assert_eq!(panics(bad).len(), 4);
    let good = "// .unwrap()\n#[expect(x)]\nfn f() { a.unwrap_or(\".unwrap()\") }\n\
                #[cfg(test)]\nmod tests { fn g() { a.unwrap(); } }\n";
    assert_eq!(panics(good), []);
    everywhere(in_src, panics);
}

#[test]
fn nothing_looks_at_the_clock() {
    assert_eq!(clocks("use std::time::Instant;").len(), 1);
    assert_eq!(clocks("fn f() { std::time::SystemTime::now() }").len(), 1);
    assert_eq!(clocks("struct Instants; // Instant"), []);
    everywhere(|name| in_src(name) && !name.starts_with("src/cli/"), clocks);
}

#[test]
fn the_core_stands_alone() {
    for bad in [
        "use std::fs::File;",
        "use rayon::prelude::*;",
        "use clap::Parser;",
        "use plotters::prelude::*;",
        "use crate::scenario::Scenario;",
        "#[derive(serde::Serialize)]\nstruct S;",
        "#[cfg(feature = \"cli\")]\nuse serde::Serialize;",
    ] {
        assert!(!core_knows(bad).is_empty(), "{bad}");
    }
    let good = "#[cfg_attr(\n    feature = \"schema\",\n    derive(serde::Serialize)\n)]\n\
                struct S;\n#[cfg(feature = \"schema\")]\nimpl serde::Serialize for S {}\n\
                struct T { #[cfg_attr(feature = \"schema\", serde(default))] a: u8 }\n\
                #[cfg(test)]\nmod tests { use std::fs; }\n";
    assert_eq!(core_knows(good), []);
    everywhere(in_core, core_knows);
}

#[test]
fn layers_know_what_is_below_them() {
    assert_eq!(knows_above("use crate::plot::Chart;", "report", &["outcome"]).len(), 1);
    assert_eq!(knows_above("use crate::outcome::Cell;", "report", &["outcome"]), []);
    for (module, below) in LAYERS {
        let within = |name: &str| {
            name == format!("src/{module}.rs") || name.starts_with(&format!("src/{module}/"))
        };
        everywhere(|name| in_src(name) && within(name), |text| knows_above(text, module, below));
    }
}

#[test]
fn no_path_of_one_machine() {
    let bad = format!("see {}me/docs", concat!("/ho", "me/"));
    assert_eq!(machine_paths(&bad).len(), 1);
    assert_eq!(machine_paths("batchsim-out/home/x and ../home/x and ~/home/x"), []);
    let is_text = |name: &str| {
        let ends =
            [".rs", ".md", ".toml", ".yaml", ".json", ".sh", ".stderr", ".csv", ".svg", "run"];
        ends.iter().any(|end| name.ends_with(end))
    };
    everywhere(is_text, machine_paths);
}

#[test]
fn every_kind_is_shown_and_documented() {
    let module = "tagged! {\n    pub enum P {\n        \"none\" => None(U),\n    }\n}\n";
    assert_eq!(kinds(module), ["none"]);
    assert_eq!(unused_kinds(&kinds(module), "kind = \"greedy\"").len(), 1);
    assert_eq!(undocumented_kinds(&kinds(module), "`none` is nothing").len(), 1);
    assert_eq!(undocumented_kinds(&kinds(module), "| `none` | – |"), []);

    let policies = kinds(&page("src/policy/mod.rs"));
    assert!(policies.len() >= 4, "{policies:?}");
    let shown: String = scenarios().into_iter().map(|(_, text)| text).collect();
    let mut complaints = unused_kinds(&policies, &shown);
    let reference = page("docs/SCENARIO.md");
    complaints.extend(undocumented_kinds(&policies, &reference));
    for module in ["src/arrivals/mod.rs", "src/cost/mod.rs", "src/cost/jitter.rs"] {
        let kinds = kinds(&page(module));
        assert!(!kinds.is_empty(), "{module}");
        complaints.extend(undocumented_kinds(&kinds, &reference));
    }
    none(&complaints.into_iter().map(|(_, what)| what).collect::<Vec<_>>());
}

#[test]
fn every_scenario_is_mentioned() {
    assert_eq!(unmentioned(&["scenarios/x.toml".into()], "see scenarios/y.toml").len(), 1);
    let names: Vec<String> = scenarios().into_iter().map(|(name, _)| name).collect();
    assert!(!names.is_empty());
    let complaints = unmentioned(&names, &pages());
    none(&complaints.into_iter().map(|(_, what)| what).collect::<Vec<_>>());
}

#[test]
fn links_lead_somewhere() {
    let nothing = |_: &str| false;
    assert_eq!(dead_links("a [b](c.md#d) [e](https://f)", &nothing).len(), 1);
    let mut complaints = Vec::new();
    for path in tracked().iter().filter(|p| p.extension().is_some_and(|e| e == "md")) {
        let folder = path.parent().unwrap_or(path).to_path_buf();
        let found = dead_links(&read(path).unwrap_or_default(), &|to| folder.join(to).exists());
        let name = inside(path);
        complaints.extend(found.into_iter().map(|(n, what)| format!("{name}:{n}: {what}")));
    }
    none(&complaints);
}

#[test]
fn blanking_is_exact() {
    let text =
        "let a = 'x'; let b: &'a str = r#\"fn \"# ; /* fn /* fn */ */ '\\'' \"\\\"fn\" // fn";
    let code = code(text);
    assert_eq!(code.len(), text.len());
    assert!(!code.contains("fn") && code.contains("&'a str"), "{code}");
}

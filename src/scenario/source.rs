//! The input: a file, standard input or a text, checked before it is parsed.

use super::diag::{Diagnostic, INPUT};
use std::io::Read;
use std::path::Path;

/// Largest scenario or cost file, in bytes.
pub(crate) const MAX_BYTES: usize = 16 << 20;

/// How a scenario is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TOML 1.1.
    Toml,
    /// YAML 1.2.
    Yaml,
    /// JSON.
    Json,
}

/// A scenario before it is parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// What diagnostics call it.
    pub name: String,
    /// Name of the scenario unless it gives one itself.
    pub stem: String,
    /// The format; recognised from the content when `None`.
    pub format: Option<Format>,
    /// The content.
    pub bytes: Vec<u8>,
}

impl Input {
    /// Reads a file, or standard input for `-`.
    ///
    /// # Errors
    /// The file is missing, a directory, unreadable, or larger than 16 MiB.
    pub fn open(path: &Path) -> Result<Self, Diagnostic> {
        if path == Path::new("-") {
            let bytes = read_bounded(std::io::stdin().lock(), "standard input")?;
            return Ok(Self {
                name: "<stdin>".into(),
                stem: "scenario".into(),
                format: None,
                bytes,
            });
        }
        let name = path.display().to_string();
        let fail = |e: &std::io::Error| unreadable(&name, e);
        if path.is_dir() {
            return Err(Diagnostic::error(INPUT, format!("{name} is a directory"))
                .with_help("give the scenario file inside it, a .toml, .yaml or .json"));
        }
        let file = std::fs::File::open(path).map_err(|e| fail(&e))?;
        let bytes = read_bounded(file, &name)?;
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        Ok(Self {
            stem: stem.unwrap_or_else(|| "scenario".into()),
            format: Format::of(path),
            name,
            bytes,
        })
    }

    /// A scenario held in memory; `name` serves like a file name, extension included.
    #[must_use]
    pub fn from_text(name: &str, text: impl Into<Vec<u8>>) -> Self {
        let path = Path::new(name);
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        Self {
            name: name.into(),
            stem: stem.unwrap_or_else(|| "scenario".into()),
            format: Format::of(path),
            bytes: text.into(),
        }
    }
}

fn unreadable(name: &str, e: &std::io::Error) -> Diagnostic {
    let d = Diagnostic::error(INPUT, format!("cannot read {name}: {e}"));
    match e.kind() {
        std::io::ErrorKind::NotFound => {
            d.with_help("check the path; `batchsim init` writes a scenario to start from")
        }
        _ => d,
    }
}

fn read_bounded(from: impl Read, name: &str) -> Result<Vec<u8>, Diagnostic> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|e| unreadable(name, &e))?;
    Ok(bytes)
}

impl Format {
    /// The format a file name stands for.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "toml" => Some(Self::Toml),
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    /// The format a text looks like: JSON starts with a brace, TOML has `key =` or `[table]` in
    /// its first line of substance, the rest is YAML.
    pub(crate) fn sniff(text: &str) -> Self {
        let mut lines = text.lines().map(str::trim_start);
        let first = lines.find(|l| !l.is_empty() && !l.starts_with('#'));
        match first {
            Some(line) if line.starts_with('{') => Self::Json,
            Some(line) if line.starts_with('[') => Self::Toml,
            Some(line) => {
                let at = line.find(['=', ':']).map(|i| line.as_bytes()[i]);
                if at == Some(b'=') { Self::Toml } else { Self::Yaml }
            }
            None => Self::Toml,
        }
    }
}

/// Bytes as text, without a byte-order mark.
///
/// # Errors
/// Too large, not UTF-8 (with the byte offset), or nothing but white space.
pub(crate) fn decode(name: &str, bytes: &[u8]) -> Result<String, Diagnostic> {
    let fail = |what: String| Diagnostic::error(INPUT, what);
    if bytes.len() > MAX_BYTES {
        return Err(fail(format!("{name} is larger than 16 MiB")).with_help(
            "a scenario is small; recorded arrivals belong in a trace file of their own",
        ));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(fail(format!("{name} is UTF-16, a scenario is UTF-8"))
            .with_help("save the file as UTF-8"));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let at = e.valid_up_to();
        let line = bytes[..at].iter().filter(|b| **b == b'\n').count() + 1;
        fail(format!(
            "{name} is not UTF-8: byte 0x{:02x} at offset {at} (line {line})",
            bytes.get(at).copied().unwrap_or_default()
        ))
        .with_help("save the file as UTF-8")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(fail(format!("{name} is empty"))
            .with_help("`batchsim init` writes a scenario to start from"));
    }
    Ok(text.to_owned())
}

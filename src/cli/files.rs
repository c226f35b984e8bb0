//! Files: whole or not at all.

use super::exit::Failure;
use anyhow::Context;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Makes the folder for results before any work is done, and tries to write there.
pub(super) fn folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path)
        .with_context(|| format!("cannot make the folder {}", path.display()))?;
    let probe = path.join(".batchsim-probe");
    fs::write(&probe, b"")
        .and_then(|()| fs::remove_file(&probe))
        .with_context(|| format!("cannot write into {}", path.display()))?;
    Ok(())
}

/// Writes a file under another name first, so that it never exists in part.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(format!(".{name}.part"));
    let written = (|| {
        let mut file = fs::File::create(&draft)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&draft, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    Ok(written.with_context(|| format!("cannot write {}", path.display()))?)
}

/// `batchsim-out/<name>`, or what was asked for.
pub(super) fn output(asked: Option<&PathBuf>, name: &str) -> PathBuf {
    asked.cloned().unwrap_or_else(|| Path::new("batchsim-out").join(slug(name)))
}

/// A name as a file name: letters, digits, `-`, `_`, `.` and `@` stay.
pub(super) fn slug(name: &str) -> String {
    let text: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || "-_.@".contains(c) { c } else { '-' })
        .collect();
    let text = text.trim_matches('.').to_owned();
    if text.is_empty() { "unnamed".into() } else { text }
}

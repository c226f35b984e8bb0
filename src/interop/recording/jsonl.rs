//! `jsonl`: a request log with one JSON object per line.

use super::builder::{Builder, Row};
use super::csv::missing;
use super::{FIELDS, Format, Recorded, RecordingError, Source, unreadable};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::io::BufRead;

pub(super) const FORMAT: Format =
    Format { name: "jsonl", recognises: |line, _| line.starts_with('{'), read };

fn read(source: Source) -> Result<Recorded, RecordingError> {
    let mut builder = Builder::new(source.columns);
    let mut first = true;
    each(source.body, |line, object: Map<String, Value>| {
        let texts = FIELDS.map(|field| object.get(source.columns.column(field).0).map(text));
        if first {
            first = false;
            let names: Vec<&str> = object.keys().map(String::as_str).collect();
            for (field, found) in FIELDS.into_iter().zip(&texts) {
                let (key, asked) = source.columns.column(field);
                if found.is_none() && (field == "arrival" || asked) {
                    return Err(missing(key, field, &names));
                }
            }
        }
        let row: Row = std::array::from_fn(|i| texts[i].as_deref());
        builder.push(line, &row)
    })?;
    builder.finish(source.name, "jsonl").map(Recorded::Requests)
}

/// A scalar as a table would have it.
fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        other => Cow::Owned(other.to_string()),
    }
}

/// Reads a file line by line, each a JSON value.
pub(super) fn each<T: serde::de::DeserializeOwned>(
    mut body: Box<dyn BufRead + '_>,
    mut then: impl FnMut(u64, T) -> Result<(), RecordingError>,
) -> Result<(), RecordingError> {
    let mut text = String::new();
    for line in 1.. {
        text.clear();
        if body.read_line(&mut text).map_err(|e| unreadable(line, &e))? == 0 {
            break;
        }
        let json = text.trim_start_matches('\u{feff}').trim();
        if json.is_empty() {
            continue;
        }
        let value = serde_json::from_str(json).map_err(|e| {
            let help = "every line holds one JSON object with the keys of this format";
            RecordingError::at(line, format!("column {}: {e}", e.column()), help)
        })?;
        then(line, value)?;
    }
    Ok(())
}

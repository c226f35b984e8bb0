//! `jsonl`: one JSON object per line; the scenario says which key is what.

use super::builder::{Builder, Fault, Row, Which};
use super::{Format, Input, Read, TraceError, builder, suggest};
use crate::arrivals::Columns;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// One JSON object per line.
pub(super) const FORMAT: Format =
    Format { name: "jsonl", recognises: |first_line, _| first_line.starts_with(['{', '[']), read };

type Object = BTreeMap<String, Cell>;

/// A value as text; lists and objects are skipped, not kept.
enum Cell {
    Text(String),
    Other(&'static str),
}

struct CellVisitor;

impl<'de> Visitor<'de> for CellVisitor {
    type Value = Cell;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_str<E: Error>(self, v: &str) -> Result<Cell, E> {
        Ok(Cell::Text(v.trim().to_owned()))
    }

    fn visit_u64<E: Error>(self, v: u64) -> Result<Cell, E> {
        Ok(Cell::Text(v.to_string()))
    }

    fn visit_i64<E: Error>(self, v: i64) -> Result<Cell, E> {
        Ok(Cell::Text(v.to_string()))
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<Cell, E> {
        Ok(Cell::Text(v.to_string()))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Cell, E> {
        Ok(Cell::Other("true or false"))
    }

    fn visit_unit<E: Error>(self) -> Result<Cell, E> {
        Ok(Cell::Other("null"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Cell, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Cell::Other("a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cell, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Cell::Other("an object"))
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(CellVisitor)
    }
}

fn read(input: &Input) -> Result<Read, TraceError> {
    let mut builder = None;
    let mut known = None;
    let lines = (1..).zip(input.text.lines()).filter(|(_, line)| !line.trim().is_empty());
    for (number, line) in lines {
        let object = parse(line, number)?;
        let columns = match known {
            Some(columns) => columns,
            None => {
                let keys: Vec<&str> = object.keys().map(String::as_str).collect();
                *known.insert(suggest::wanted(input.replay, &keys)?)
            }
        };
        let place = |fault| place(fault, columns, line, number);
        let row = row(&object, columns, number, &place)?;
        let builder = match &mut builder {
            Some(builder) => builder,
            None => {
                let clock = builder::clock(columns, row.arrival).map_err(place)?;
                builder.insert(Builder::new(clock, input.limit, sort_hint(columns, input)))
            }
        };
        builder.push(&row).map_err(place)?;
    }
    match (builder.and_then(Builder::finish), known) {
        (Some(trace), Some(columns)) => Ok(Read { trace, columns: columns.clone() }),
        _ => Err(TraceError::whole("the trace has no requests", "add one line per request")),
    }
}

fn parse(line: &str, number: u64) -> Result<Object, TraceError> {
    if line.trim_start().starts_with('[') {
        return Err(TraceError::at(
            number,
            1,
            "a list, where jsonl has one object per line",
            "unpack it first: jq -c '.[]' trace.json > trace.jsonl",
        ));
    }
    serde_json::from_str(line).map_err(|e| {
        // The message ends in serde_json's own place, which counts bytes of this line.
        let message = e.to_string();
        let message = message.split(" at line ").next().unwrap_or("bad syntax");
        let before = line.get(..e.column().saturating_sub(1)).unwrap_or(line);
        let column = before.chars().count() as u64 + 1;
        let help = "write one object per line, as in {\"timestamp\": 12.5, \"tokens\": 30}";
        TraceError::at(number, column, format!("not a JSON object: {message}"), help)
    })
}

fn row<'a>(
    object: &'a Object,
    columns: &Columns,
    number: u64,
    place: &impl Fn(Fault) -> TraceError,
) -> Result<Row<'a>, TraceError> {
    let cell = |name: &str, which| match object.get(name) {
        Some(Cell::Text(text)) => Ok(text.as_str()),
        Some(Cell::Other(what)) => Err(place(Fault::new(
            which,
            format!("`{}` is {what}, not a number", super::cell::clip(name)),
            "drop the request, or give the value",
        ))),
        None => {
            let keys: Vec<&str> = object.keys().map(String::as_str).collect();
            Err(suggest::missing(name, &keys, number))
        }
    };
    let optional =
        |name: &Option<String>, which| name.as_deref().map(|name| cell(name, which)).transpose();
    Ok(Row {
        line: number,
        arrival: cell(&columns.arrival, Which::Arrival)?,
        input: optional(&columns.input_length, Which::Input)?,
        output: optional(&columns.output_length, Which::Output)?,
        items: optional(&columns.items, Which::Items)?,
        priority: optional(&columns.priority, Which::Priority)?,
    })
}

/// The place of a key in its line.
fn place(fault: Fault, columns: &Columns, line: &str, number: u64) -> TraceError {
    let key = match fault.which {
        Which::Row => None,
        Which::Arrival => Some(columns.arrival.as_str()),
        Which::Input => columns.input_length.as_deref(),
        Which::Output => columns.output_length.as_deref(),
        Which::Items => columns.items.as_deref(),
        Which::Priority => columns.priority.as_deref(),
    };
    let byte = key.and_then(|key| line.find(&format!("\"{key}\""))).unwrap_or(0);
    let column = line.get(..byte).unwrap_or("").chars().count() as u64 + 1;
    TraceError::at(number, column, fault.message, fault.help)
}

fn sort_hint(columns: &Columns, input: &Input) -> String {
    let (key, file) = (&columns.arrival, &input.replay.file);
    format!("sort it first: jq -c -s 'sort_by(.[\"{key}\"])[]' {file} > sorted.jsonl")
}

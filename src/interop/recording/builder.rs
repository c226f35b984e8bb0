//! Rows of a log, whatever it looks like: checked one by one, times kept exact.

use super::{FIELDS, Mapping, RecordingError};
use crate::interop::trace::cell::clip;
use crate::interop::trace::when::{Clock, UNITS, looks_like_date};
use crate::recording::{Exchange, Pass, Recording};
use std::collections::HashMap;

/// Places in a row, in the order of [`FIELDS`].
const ARRIVAL: usize = 0;
const FINISH: usize = 1;
const START: usize = 2;
const END: usize = 3;
const BATCH: usize = 4;
const INSTANCE: usize = 5;
const SIZE: usize = 6;
const STATUS: usize = 7;
const ITEMS: usize = 8;
const PRIORITY: usize = 9;

/// The values of one request as written, by field.
pub(super) type Row<'a> = [Option<&'a str>; FIELDS.len()];

/// Most requests of a recording: engines number them with 32 bits.
const MOST: usize = u32::MAX as usize;

/// Collects checked rows.
pub(super) struct Builder<'a> {
    columns: &'a Mapping,
    clock: Option<Clock>,
    rows: Vec<Raw>,
    batches: HashMap<(String, String), u32>,
    instances: HashMap<String, u32>,
}

/// A checked row, its times since the origin of the log's clock.
struct Raw {
    arrival: i128,
    finish: Option<i128>,
    start: Option<i128>,
    end: Option<i128>,
    batch: Option<(u32, u32)>,
    size: Option<u32>,
    items: u32,
    priority: u32,
}

impl<'a> Builder<'a> {
    pub(super) fn new(columns: &'a Mapping) -> Self {
        Self {
            columns,
            clock: None,
            rows: Vec::new(),
            batches: HashMap::new(),
            instances: HashMap::new(),
        }
    }

    /// Times are numbers of this unit.
    pub(super) fn in_unit(columns: &'a Mapping, unit: &'static str) -> Self {
        Self { clock: Some(Clock::Number(unit)), ..Self::new(columns) }
    }

    fn fault(&self, line: u64, field: usize, what: &str, help: &str) -> RecordingError {
        let (column, _) = self.columns.column(FIELDS[field]);
        RecordingError::at(line, format!("{}: {what}", clip(column)), help)
    }

    /// How times are written, from the first of them.
    fn clock(&mut self, line: u64, first: &str) -> Result<Clock, RecordingError> {
        if let Some(clock) = self.clock {
            return Ok(clock);
        }
        let clock = match (&self.columns.unit, looks_like_date(first)) {
            (None, true) => Clock::DateTime,
            (Some(_), true) => {
                let what = "these are date-times, which have no unit";
                return Err(self.fault(line, ARRIVAL, what, "leave --unit out"));
            }
            (None, false) => {
                let what = format!("`{}` is a number without a unit", clip(first));
                let help = format!("add --unit: one of {}", UNITS.join(", "));
                return Err(self.fault(line, ARRIVAL, &what, &help));
            }
            (Some(unit), false) => match UNITS.iter().find(|known| *known == unit) {
                Some(unit) => Clock::Number(unit),
                None => {
                    let what = format!("unknown unit of time `{}`", clip(unit));
                    let help = format!("write --unit with one of {}", UNITS.join(", "));
                    return Err(RecordingError::whole(what, help));
                }
            },
        };
        self.clock = Some(clock);
        Ok(clock)
    }

    fn time(&mut self, line: u64, row: &Row, field: usize) -> Result<Option<i128>, RecordingError> {
        let Some(text) = given(row, field) else { return Ok(None) };
        let clock = self.clock(line, text)?;
        let parsed = clock.parse(text);
        parsed.map(Some).map_err(|(what, help)| self.fault(line, field, &what, &help))
    }

    fn count(
        &self,
        line: u64,
        row: &Row,
        field: usize,
        least: u32,
    ) -> Result<Option<u32>, RecordingError> {
        let Some(text) = given(row, field) else { return Ok(None) };
        // Tables with gaps are often written with every number as a float.
        let whole = text.strip_suffix(".0").unwrap_or(text);
        match whole.parse::<u32>() {
            Ok(n) if n >= least => Ok(Some(n)),
            _ => {
                let what = format!("`{}` is not a count", clip(text));
                let help = format!("write a whole number from {least}");
                Err(self.fault(line, field, &what, &help))
            }
        }
    }

    /// The numbers of a batch and of its instance.
    fn batch(&mut self, row: &Row) -> Option<(u32, u32)> {
        let batch = given(row, BATCH)?;
        let instance = given(row, INSTANCE).unwrap_or("").to_owned();
        let next = u32::try_from(self.instances.len()).unwrap_or(u32::MAX);
        let number = *self.instances.entry(instance.clone()).or_insert(next);
        let next = u32::try_from(self.batches.len()).unwrap_or(u32::MAX);
        Some((*self.batches.entry((batch.to_owned(), instance)).or_insert(next), number))
    }

    pub(super) fn push(&mut self, line: u64, row: &Row) -> Result<(), RecordingError> {
        let Some(arrival) = self.time(line, row, ARRIVAL)? else {
            let help = "every request needs the moment it was sent";
            return Err(self.fault(line, ARRIVAL, "there is no time", help));
        };
        if self.rows.len() == MOST {
            let help = "cut the recording into parts";
            return Err(RecordingError::at(line, format!("more than {MOST} requests"), help));
        }
        let answered = row[STATUS].is_none_or(|status| succeeded(status.trim()));
        let finish = if answered { self.time(line, row, FINISH)? } else { None };
        let (start, end) = match finish {
            Some(_) => (self.time(line, row, START)?, self.time(line, row, END)?),
            None => (None, None),
        };
        let ordered = [Some(arrival), start, end, finish];
        let mut latest = arrival;
        for (time, field) in ordered.into_iter().zip([ARRIVAL, START, END, FINISH]) {
            let Some(time) = time else { continue };
            if time < latest {
                let what = "it lies before the moment that comes before it";
                let help = "times run arrival, start, end, finish; are they of one clock and unit?";
                return Err(self.fault(line, field, what, help));
            }
            latest = time;
        }
        let batch = if finish.is_some() { self.batch(row) } else { None };
        let size = if batch.is_some() { self.count(line, row, SIZE, 1)? } else { None };
        self.rows.push(Raw {
            arrival,
            finish,
            start,
            end,
            batch,
            size,
            items: self.count(line, row, ITEMS, 1)?.unwrap_or(1),
            priority: self.count(line, row, PRIORITY, 0)?.unwrap_or(0),
        });
        Ok(())
    }

    pub(super) fn finish(
        mut self,
        name: &str,
        format: &'static str,
    ) -> Result<Recording, RecordingError> {
        // Clients with several threads write their log out of order.
        self.rows.sort_by_key(|row| row.arrival);
        let Some(origin) = self.rows.first().map(|row| row.arrival) else {
            return Err(RecordingError::whole(
                "the recording has no requests",
                "a log has one line per request",
            ));
        };
        let since = |time: i128| u64::try_from(time - origin).unwrap_or(u64::MAX);
        let exchanges = self.rows.iter().map(|row| Exchange {
            send_ns: since(row.arrival),
            done_ns: row.finish.map(since),
            items: row.items,
            priority: row.priority,
            pass: row.batch.map(|(batch, instance)| Pass {
                batch,
                instance,
                size: row.size,
                start_ns: row.start.map(since),
                end_ns: row.end.map(since),
            }),
        });
        let exchanges = exchanges.collect();
        Ok(Recording { name: name.to_owned(), format, setup: None, exchanges, repeats: None })
    }
}

/// A cell that says something.
fn given<'r>(row: &Row<'r>, field: usize) -> Option<&'r str> {
    row[field].map(str::trim).filter(|text| !text.is_empty() && *text != "null")
}

/// Whether a status means that the request was answered.
fn succeeded(status: &str) -> bool {
    match status.trim_end_matches(".0").parse::<u32>() {
        Ok(code) => (200..300).contains(&code) || code == 0,
        Err(_) => ["", "ok", "success", "succeeded", "completed", "true", "null"]
            .contains(&status.to_lowercase().as_str()),
    }
}

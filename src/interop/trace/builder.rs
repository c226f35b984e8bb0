//! Rows of a trace, whatever the file looks like: checked one by one, times kept exact.

use super::cell::{clip, tokens};
use super::when::{Clock, UNITS, looks_like_date};
use crate::arrivals::{Columns, Mark, Trace};
use crate::time::Nanos;

/// Which of the values of a row a complaint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Row,
    Arrival,
    Input,
    Output,
    Items,
    Priority,
}

/// What is wrong with a row; the format knows where in the file that is.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) which: Which,
    pub(super) message: String,
    pub(super) help: String,
}

impl Fault {
    pub(super) fn new(which: Which, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { which, message: message.into(), help: help.into() }
    }
}

/// The values of one request, as written.
pub(super) struct Row<'a> {
    /// Line of the file where it starts, from 1.
    pub(super) line: u64,
    pub(super) arrival: &'a str,
    pub(super) input: Option<&'a str>,
    pub(super) output: Option<&'a str>,
    pub(super) items: Option<&'a str>,
    pub(super) priority: Option<&'a str>,
}

/// How times of a generic trace are written, from the first of them and the stated unit.
pub(super) fn clock(columns: &Columns, first: &str) -> Result<Clock, Fault> {
    let fault = |message: String, help: String| Err(Fault::new(Which::Arrival, message, help));
    let name = clip(&columns.arrival);
    if looks_like_date(first) {
        return match &columns.unit {
            None => Ok(Clock::DateTime),
            Some(unit) => fault(
                format!("column `{name}` holds date-times, which have no unit"),
                format!("leave `unit = \"{}\"` out", clip(unit)),
            ),
        };
    }
    let Some(unit) = &columns.unit else {
        return fault(
            format!("the times in column `{name}` are numbers without a unit: `{}`", clip(first)),
            format!("add it to `columns`, as in unit = \"ms\": one of {}", UNITS.join(", ")),
        );
    };
    match UNITS.iter().find(|known| *known == unit) {
        Some(unit) => Ok(Clock::Number(unit)),
        None => fault(
            format!("unknown unit of time `{}` for column `{name}`", clip(unit)),
            format!("write one of {}", UNITS.join(", ")),
        ),
    }
}

/// Collects checked rows.
pub(super) struct Builder {
    clock: Clock,
    limit: usize,
    sort_hint: String,
    trace: Trace,
    start: i128,
    /// Time, line and text of the row before.
    before: Option<(i128, u64, String)>,
}

impl Builder {
    /// `sort_hint` is what to run on a file whose times go backwards.
    pub(super) fn new(clock: Clock, limit: usize, sort_hint: String) -> Self {
        Self { clock, limit, sort_hint, trace: Trace::default(), start: 0, before: None }
    }

    pub(super) fn push(&mut self, row: &Row) -> Result<(), Fault> {
        if self.trace.arrivals.len() >= self.limit {
            let some = if self.limit == 1 { "request" } else { "requests" };
            return Err(Fault::new(
                Which::Row,
                format!("more than {} {some}", self.limit),
                "cut the trace into pieces",
            ));
        }
        let time = self.time(row)?;
        self.trace.arrivals.push(time);
        if let Some(text) = row.input {
            self.trace.input_lengths.push(length(Which::Input, text)?);
        }
        if let Some(text) = row.output {
            self.trace.output_lengths.push(length(Which::Output, text)?);
        }
        if row.items.is_some() || row.priority.is_some() {
            self.mark(row)?;
        }
        Ok(())
    }

    fn mark(&mut self, row: &Row) -> Result<(), Fault> {
        let value = |which, text: Option<&str>, default| match text {
            Some(text) => count(which, text),
            None => Ok(default),
        };
        let items = value(Which::Items, row.items, 1)?;
        if items == 0 {
            let help = "write how many items the request carries, from 1";
            return Err(Fault::new(Which::Items, "a request carries at least one item", help));
        }
        let mark = Mark { items, priority: value(Which::Priority, row.priority, 0)? };
        let table = &mut self.trace.mark_table;
        let at = table.iter().position(|m| *m == mark).unwrap_or_else(|| {
            table.push(mark);
            table.len() - 1
        });
        let Ok(at) = u8::try_from(at) else {
            return Err(Fault::new(
                Which::Items,
                "more than 256 different pairs of items and priority",
                "round the item counts",
            ));
        };
        self.trace.marks.push(at);
        Ok(())
    }

    fn time(&mut self, row: &Row) -> Result<Nanos, Fault> {
        let fault = |(message, help)| Fault::new(Which::Arrival, message, help);
        if row.arrival.is_empty() {
            return Err(fault(("no arrival time".into(), "every request needs one".into())));
        }
        let time = self.clock.parse(row.arrival).map_err(fault)?;
        match &mut self.before {
            None => {
                self.start = time;
                self.before = Some((time, row.line, row.arrival.to_owned()));
            }
            Some((before, line, text)) => {
                if time < *before {
                    return Err(fault((
                        format!(
                            "times go backwards: `{}` after `{}` on line {line}",
                            clip(row.arrival),
                            clip(text)
                        ),
                        self.sort_hint.clone(),
                    )));
                }
                (*before, *line) = (time, row.line);
                text.clear();
                text.push_str(row.arrival);
            }
        }
        u64::try_from(time - self.start).map(Nanos).map_err(|_| {
            fault(("the trace spans more than 584 years".into(), "check its times".into()))
        })
    }

    /// The trace; `None` when no row came.
    pub(super) fn finish(self) -> Option<Trace> {
        (!self.trace.arrivals.is_empty()).then_some(self.trace)
    }
}

fn length(which: Which, text: &str) -> Result<u32, Fault> {
    if text.is_empty() {
        return Err(Fault::new(which, "no length", "write a count, from 0"));
    }
    tokens(text).map_err(|(message, help)| Fault::new(which, message, help))
}

fn count(which: Which, text: &str) -> Result<u32, Fault> {
    text.parse().map_err(|_| {
        Fault::new(which, format!("`{}` is not a count", clip(text)), "write a whole number")
    })
}

//! `azure-llm-2023`: the Azure LLM inference traces, `TIMESTAMP,ContextTokens,GeneratedTokens`
//! with date-times of seven decimals (the traces of 2024, with six and a zone, read as well).

use super::table::{Table, delimiter};
use super::when::Clock;
use super::{Format, Input, Read, TraceError, suggest};
use crate::arrivals::{Columns, Replay};

/// The Azure LLM inference traces of 2023.
pub(super) const FORMAT: Format = Format { name: "azure-llm-2023", recognises, read };

const ARRIVAL: &str = "TIMESTAMP";
const INPUT: &str = "ContextTokens";
const OUTPUT: &str = "GeneratedTokens";

fn recognises(first_line: &str, replay: &Replay) -> bool {
    let separator = char::from(delimiter(first_line));
    let names: Vec<&str> =
        first_line.split(separator).map(|name| name.trim().trim_matches('"')).collect();
    replay.columns.is_none() && [ARRIVAL, INPUT, OUTPUT].iter().all(|name| names.contains(name))
}

fn read(input: &Input) -> Result<Read, TraceError> {
    if input.replay.columns.is_some() {
        return Err(TraceError::whole(
            "the columns of azure-llm-2023 are fixed",
            "leave `columns` out, or write format = \"csv\"",
        ));
    }
    let columns = Columns {
        arrival: ARRIVAL.to_owned(),
        unit: None,
        input_length: Some(INPUT.to_owned()),
        output_length: Some(OUTPUT.to_owned()),
        ..Columns::default()
    };
    let table = Table::open(input.text)?;
    let found = table.names();
    if ![ARRIVAL, INPUT, OUTPUT].iter().all(|name| found.contains(name)) {
        return Err(TraceError::at(
            table.header_line,
            1,
            format!("azure-llm-2023 has columns {ARRIVAL}, {INPUT} and {OUTPUT}, not these"),
            format!("write format = \"csv\" and {}", suggest::columns_line(&found)),
        ));
    }
    let trace = table.trace(input, &columns, |_| Ok(Clock::DateTime))?;
    Ok(Read { trace, columns })
}

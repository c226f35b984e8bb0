//! `csv`: any table of text with a header; the scenario says which column is what.

use super::table::Table;
use super::{Format, Input, Read, TraceError, builder, suggest};

/// A table separated by commas, semicolons or tabs.
pub(super) const FORMAT: Format = Format { name: "csv", recognises: |_, _| true, read };

fn read(input: &Input) -> Result<Read, TraceError> {
    let table = Table::open(input.text)?;
    let columns = suggest::wanted(input.replay, &table.names())?.clone();
    let trace = table.trace(input, &columns, |first| builder::clock(&columns, first))?;
    Ok(Read { trace, columns })
}

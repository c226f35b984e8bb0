//! What to write in a scenario for the columns that a file has.

use super::TraceError;
use super::cell::clip;
use crate::arrivals::{Columns, Replay};

/// Columns of published traces: what tells them apart, arrival, unit, input and output length.
const KNOWN: &[(&[&str], [&str; 4])] = &[
    // Qwen-Bailian before Mooncake: the same names, but in seconds, with chats.
    (&["chat_id"], ["timestamp", "s", "input_length", "output_length"]),
    (&[], ["timestamp", "ms", "input_length", "output_length"]),
    (&[], ["Timestamp", "s", "Request tokens", "Response tokens"]),
    (&[], ["arrived_at", "s", "num_prefill_tokens", "num_decode_tokens"]),
];

/// The columns of a generic trace, from the scenario.
pub(super) fn wanted<'a>(replay: &'a Replay, found: &[&str]) -> Result<&'a Columns, TraceError> {
    replay.columns.as_ref().ok_or_else(|| {
        TraceError::at(
            1,
            1,
            format!("the trace has columns {}; which one is the arrival time?", list(found)),
            format!("write {}", columns_line(found)),
        )
    })
}

/// The complaint about a column that is not there.
pub(super) fn missing(name: &str, found: &[&str], line: u64) -> TraceError {
    let near = found
        .iter()
        .map(|have| (strsim::jaro_winkler(&have.to_lowercase(), &name.to_lowercase()), have))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let help = match near {
        Some((_, have)) => format!("did you mean `{}`?", clip(have)),
        None => "write one of them".to_owned(),
    };
    let name = clip(name);
    TraceError::at(line, 1, format!("no column `{name}`; the trace has {}", list(found)), help)
}

/// Found names for a message, at most a dozen.
fn list(found: &[&str]) -> String {
    const MOST: usize = 12;
    let names: Vec<String> = found.iter().take(MOST).map(|n| format!("`{}`", clip(n))).collect();
    let more = found.len().saturating_sub(MOST);
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &tail
}

/// A `columns = …` line for what was found.
pub(super) fn columns_line(found: &[&str]) -> String {
    let has = |name: &&str| found.contains(name);
    let known = KNOWN.iter().find(|(marks, [arrival, _, input, output])| {
        marks.iter().chain([arrival, input, output]).all(has)
    });
    if let Some((_, [arrival, unit, input, output])) = known {
        return format!(
            "columns = {{ arrival = \"{arrival}\", unit = \"{unit}\", input_length = \"{input}\", \
             output_length = \"{output}\" }}"
        );
    }
    let hints = ["arriv", "time", "stamp"];
    let arrival = found
        .iter()
        .find(|name| hints.iter().any(|hint| name.to_lowercase().contains(hint)))
        .or(found.first())
        .map_or_else(String::new, |name| clip(name));
    format!(
        "columns = {{ arrival = \"{arrival}\", unit = \"ms\" }} with the unit it was recorded in \
         (ns, us, ms, s; none for date-times), and input_length, output_length where present"
    )
}

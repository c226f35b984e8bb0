//! Standard output carries results only; everything else goes to standard error.

use super::args::When;
use super::exit::Failure;
use crate::outcome::Outcome;
use crate::report::{Format, csv_cells, summary_table, verdict_lines, warning_lines};
use anyhow::Context;
use std::io::{IsTerminal, Write};

/// Whether to colour what goes to standard error.
pub(super) fn colour(when: When) -> bool {
    match when {
        When::Always => true,
        When::Never => false,
        When::Auto => std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    }
}

/// One line on standard error. A closed standard error is nobody's loss.
pub(super) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Results on standard output. A reader that went away (`| head`) ends the program quietly.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other.context("cannot write to standard output")?),
    }
}

/// Prints an Outcome; the table also with its verdicts.
pub(super) fn outcome(outcome: &Outcome, format: Format, title: &str) -> Result<(), Failure> {
    let text = match format {
        Format::Json => json(outcome)?,
        Format::Csv => csv_cells(outcome).to_csv(),
        Format::Markdown => {
            let mut text = format!("{title}\n\n{}", summary_table(outcome).to_markdown());
            let verdicts = verdict_lines(outcome);
            if !verdicts.is_empty() {
                text += "\n";
                verdicts.iter().for_each(|line| text += &format!("- {line}\n"));
            }
            text
        }
        Format::Table => {
            let mut text = format!("{title}\n\n{}", summary_table(outcome).to_text());
            let verdicts = verdict_lines(outcome);
            if !verdicts.is_empty() {
                text += "\n";
                verdicts.iter().for_each(|line| text += &format!("{line}\n"));
            }
            text
        }
    };
    print(&text)?;
    warning_lines(outcome).iter().for_each(|line| say(&format!("warning: {line}")));
    Ok(())
}

/// Pretty JSON with a final newline.
pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<String, Failure> {
    Ok(serde_json::to_string_pretty(value).context("cannot write the result as JSON")? + "\n")
}

/// JSON on one line, for files that programs read.
pub(super) fn compact_json<T: serde::Serialize>(value: &T) -> Result<String, Failure> {
    Ok(serde_json::to_string(value).context("cannot write the result as JSON")? + "\n")
}

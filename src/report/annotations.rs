//! Annotations in the form of GitHub's workflow commands.

use super::check::{Row, Weight, rows};
use crate::outcome::{Check, ScenarioCheck};

/// Annotations of one level that GitHub shows for one step.
const SHOWN: usize = 10;

/// One line per annotation: errors at the place of what failed, warnings at what is open. Beyond
/// ten of a level the last one says how many more there are. `path` turns the file of a scenario
/// into one that starts at the root of the repository.
#[must_use]
pub fn annotations(check: &Check, path: &dyn Fn(&str) -> String) -> String {
    let mut text = String::new();
    for (level, weight) in [("error", Weight::Bad), ("warning", Weight::Open)] {
        let found: Vec<(&ScenarioCheck, Row<'_>)> = check
            .scenarios
            .iter()
            .flat_map(|s| rows(s).into_iter().map(move |row| (s, row)))
            .filter(|(_, row)| row.weight == weight)
            .collect();
        let shown = if found.len() > SHOWN { SHOWN - 1 } else { found.len() };
        for (scenario, row) in found.iter().take(shown) {
            text += &command(level, scenario, row, path);
        }
        if let Some((scenario, _)) = found.get(shown) {
            let more = found.len() - shown;
            let what = format!("{more} more; the step summary and the JUnit file have them all");
            let file = property(&path(&scenario.file));
            text += &format!("::{level} file={file},title=batchsim::{}\n", data(&what));
        }
    }
    text
}

fn command(
    level: &str,
    scenario: &ScenarioCheck,
    row: &Row<'_>,
    path: &dyn Fn(&str) -> String,
) -> String {
    let file = property(&path(&scenario.file));
    let at = match row.spot {
        Some(spot) => format!("line={},col={}", spot.line, spot.column),
        None => "line=1".to_owned(),
    };
    let title = property(&format!("batchsim {}: {} {}", row.kind, row.policy, row.verdict));
    let words = data(&format!(
        "{}, {}: {}: {} (seed {})",
        scenario.name, row.policy, row.what, row.evidence, scenario.seed
    ));
    format!("::{level} file={file},{at},title={title}::{words}\n")
}

/// The text of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_command_or_a_property_is_escaped() {
        assert_eq!(data("1 %\nnext: a,b"), "1 %25%0Anext: a,b");
        assert_eq!(property("a:b,c%"), "a%3Ab%2Cc%25");
    }
}

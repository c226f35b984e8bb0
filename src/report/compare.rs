//! What `compare` found, as text, Markdown or CSV.

use super::check::{moved, numbers};
use super::grid::Grid;
use crate::outcome::{Change, Comparison, Judgement, Shift};

fn grid(c: &Comparison) -> Grid {
    let axes: Vec<&String> =
        c.cells.first().map_or_else(Vec::new, |cell| cell.coords.keys().collect());
    let mut titles = vec!["<policy".to_owned()];
    titles.extend(axes.iter().map(|a| (*a).clone()));
    titles.extend(["<number", "<verdict", "<change"].map(str::to_owned));
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut grid = Grid::new(&titles);
    for cell in &c.cells {
        let mut put = |number: String, verdict: String, change: String| {
            let mut row = vec![cell.label.clone()];
            let at = |a: &&String| cell.coords.get(*a).cloned().unwrap_or_else(|| "–".into());
            row.extend(axes.iter().map(at));
            row.extend([number, verdict, change]);
            grid.row(row);
        };
        for change in cell.changes.iter().filter(|c| c.shift != Shift::Identical) {
            put(change.metric.clone(), verdict(change), moved(change));
        }
        let same = cell.changes.iter().filter(|c| c.shift == Shift::Identical).count();
        if same > 0 {
            put(numbers(same), Shift::Identical.word().into(), String::new());
        }
    }
    grid
}

fn verdict(change: &Change) -> String {
    match change.shift {
        Shift::Changed => "different".into(),
        Shift::Better | Shift::Worse => format!("different, {}", change.shift.word()),
        other => other.word().into(),
    }
}

/// How the two were compared, and where they come from.
fn heading(c: &Comparison) -> String {
    let how = if c.paired { "paired by section" } else { "not paired" };
    let mut text = format!("{} → {} · {how}", c.a.file, c.b.file);
    if c.a.tool != c.b.tool {
        let build = |t: &crate::outcome::Tool| format!("{} {}", t.version, t.commit);
        text += &format!(" · builds {} → {}", build(&c.a.tool), build(&c.b.tool));
    }
    text
}

fn lines(c: &Comparison) -> Vec<String> {
    let side = |v: &Option<String>| v.clone().unwrap_or_else(|| "absent".into());
    let keys = c.scenario_changes.iter();
    let mut lines: Vec<String> =
        keys.map(|k| format!("changed {}: {} → {}", k.path, side(&k.old), side(&k.new))).collect();
    lines.extend(c.limits.iter().map(|l| {
        let word = match l.judgement {
            Judgement::Pass => "pass",
            Judgement::Fail => "FAIL",
            Judgement::Inconclusive => "inconclusive",
        };
        format!("{word}  {}  {}: {}", l.label, l.expr, l.evidence)
    }));
    lines
}

/// The whole comparison for a terminal.
#[must_use]
pub fn comparison_text(c: &Comparison) -> String {
    let mut text = format!("{}\n\n{}", heading(c), grid(c).to_text());
    let lines = lines(c);
    if !lines.is_empty() {
        text.push('\n');
    }
    lines.iter().for_each(|line| text += &format!("{line}\n"));
    text
}

/// The whole comparison for a pull request.
#[must_use]
pub fn comparison_markdown(c: &Comparison) -> String {
    let mut text = format!("{}\n\n{}", heading(c), grid(c).to_markdown());
    let lines = lines(c);
    if !lines.is_empty() {
        text.push('\n');
    }
    lines.iter().for_each(|line| text += &format!("- {line}\n"));
    text
}

/// Every change, unrounded.
#[must_use]
pub fn comparison_csv(c: &Comparison) -> String {
    let titles = [
        "<policy",
        "<coords",
        "<metric",
        "<unit",
        "old",
        "new",
        "change",
        "half_width",
        "margin",
        "<shift",
    ];
    let mut grid = Grid::new(&titles);
    for cell in &c.cells {
        let coords: Vec<String> = cell.coords.iter().map(|(k, v)| format!("{k}={v}")).collect();
        for change in &cell.changes {
            grid.row(vec![
                cell.label.clone(),
                coords.join("; "),
                change.metric.clone(),
                change.unit.clone(),
                change.old.to_string(),
                change.new.to_string(),
                change.change.to_string(),
                change.half_width.map(|h| h.to_string()).unwrap_or_default(),
                change.margin.to_string(),
                change.shift.word().into(),
            ]);
        }
    }
    grid.to_csv()
}

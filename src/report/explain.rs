//! An explanation as text, Markdown or CSV.

use super::{Grid, count, decimals, rate};
use crate::outcome::{Blame, BlameRow, Burst, Explanation, TrapNote};
use std::fmt::Write as _;

/// Widest line of running text.
const WIDTH: usize = 96;
/// Most batches shown of a timeline; of longer ones the middle is left out.
const LINES: usize = 14;

/// What a part means.
const MEANINGS: [&str; 8] = [
    "an instance was idle, the rule held it",
    "all instances were busy",
    "all busy, after a batch had left with room for it",
    "all busy, in a batch that was formed already",
    "its pass, as if alone",
    "its pass, because of the others in the batch",
    "its pass, because it was padded to a larger size",
    "ways, dispatch, order of answers",
];

/// Everything, for a terminal.
#[must_use]
pub fn explanation_text(e: &Explanation) -> String {
    let mut out = format!("{}\n\n", heading(e));
    let _ = writeln!(out, "{}\n", blame_title(e));
    out += &blame_grid(e).to_text();
    if let [worst, ..] = ranked(&e.above)[..] {
        let _ = writeln!(out, "\n{}", verdict(e, worst));
    }
    let _ = write!(out, "\nWhy batches left\n\n{}", reasons_grid(e).to_text());
    if !e.bursts.is_empty() {
        out += "\nThe slowest requests (ms after the arrival of each)\n";
        e.bursts.iter().for_each(|burst| out += &timeline(burst));
    }
    out += "\nTraps in this setting\n";
    if e.traps.is_empty() {
        out += "none of those known\n";
    }
    e.traps.iter().for_each(|trap| out += &trap_text(trap, e));
    out
}

/// Everything, for a wiki or a pull request.
#[must_use]
pub fn explanation_markdown(e: &Explanation) -> String {
    let mut out = format!("### {}\n\n{}\n\n", heading(e), blame_title(e));
    out += &blame_grid(e).to_markdown();
    let _ = write!(out, "\n#### Why batches left\n\n{}", reasons_grid(e).to_markdown());
    if !e.traps.is_empty() {
        out += "\n#### Traps in this setting\n\n";
    }
    for trap in &e.traps {
        let _ = writeln!(out, "* `{}`: {} *{}*", trap.id, trap.what, sentence(&trap.help));
        for trial in trials(trap, e) {
            let _ = writeln!(out, "  * {trial}");
        }
    }
    out
}

/// The blame, one line for each part.
#[must_use]
pub fn explanation_csv(e: &Explanation) -> String {
    let mut out =
        "policy,quantile,part,above_share,above_mean_ms,all_share,all_mean_ms\n".to_owned();
    let rows = e.above.share.parts().into_iter().zip(e.above.mean_ms.parts());
    let all = e.all.share.parts().into_iter().zip(e.all.mean_ms.parts());
    for (((name, share), (_, mean)), ((_, all_share), (_, all_mean))) in rows.zip(all) {
        let label = e.policy.label.replace('"', "\"\"");
        let q = e.quantile;
        let _ = writeln!(out, "\"{label}\",{q},{name},{share},{mean},{all_share},{all_mean}");
    }
    out
}

/// p99, p99.9.
fn percentile(quantile: f64) -> String {
    let text = format!("{:.4}", quantile * 100.0);
    format!("p{}", text.trim_end_matches('0').trim_end_matches('.'))
}

fn heading(e: &Explanation) -> String {
    let mut parts = vec![format!("{}: {}", e.scenario, e.policy.label)];
    if let Some(per_s) = e.rate_per_s {
        parts.push(format!("{}/s", rate(per_s)));
    }
    let r = &e.requests;
    parts.push(format!("{} requests", count(r.offered)));
    for (n, what) in [(r.rejected, "rejected"), (r.expired, "expired"), (r.other, "not answered")] {
        if n > 0 {
            parts.push(format!("{} {what}", count(n)));
        }
    }
    parts.push(format!("one run, no ±, seed {}", e.seed));
    parts.join(" · ")
}

fn blame_title(e: &Explanation) -> String {
    format!(
        "Where the time goes: {} requests at {} ({} ms) and above, and all {}",
        count(e.above.requests),
        percentile(e.quantile),
        decimals(e.latency_ms, 2),
        count(e.all.requests),
    )
}

fn blame_grid(e: &Explanation) -> Grid {
    let above = format!("≥{}", percentile(e.quantile));
    let titles = [
        "<part",
        &format!("{above} share"),
        &format!("{above} ms"),
        "all share",
        "all ms",
        "<waits for",
    ];
    let mut grid = Grid::new(&titles);
    let percent = |share: f64| format!("{} %", decimals(share * 100.0, 1));
    let parts = |blame: &Blame| blame.parts();
    let [share, mean, all_share, all_mean] =
        [&e.above.share, &e.above.mean_ms, &e.all.share, &e.all.mean_ms].map(parts);
    for (i, (name, value)) in share.iter().enumerate() {
        if all_mean[i].1 == 0.0 {
            continue;
        }
        grid.row(vec![
            (*name).to_owned(),
            percent(*value),
            decimals(mean[i].1, 2),
            percent(all_share[i].1),
            decimals(all_mean[i].1, 2),
            MEANINGS[i].to_owned(),
        ]);
    }
    grid.row(vec![
        "together".to_owned(),
        percent(share.iter().map(|(_, v)| v).sum()),
        decimals(e.above.latency_ms, 2),
        percent(all_share.iter().map(|(_, v)| v).sum()),
        decimals(e.all.latency_ms, 2),
        String::new(),
    ]);
    grid
}

/// Parts by their share, largest first.
fn ranked(row: &BlameRow) -> Vec<(&'static str, f64)> {
    let mut parts = row.share.parts().to_vec();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts
}

fn verdict(e: &Explanation, (worst, share): (&str, f64)) -> String {
    let what = MEANINGS
        .iter()
        .zip(e.above.share.parts())
        .find(|(_, (name, _))| *name == worst)
        .map_or("", |(meaning, _)| meaning);
    let percent = decimals(share * 100.0, 0);
    let percentile = percentile(e.quantile);
    format!("The largest part at {percentile} and above: {worst}, {percent} % ({what}).")
}

fn reasons_grid(e: &Explanation) -> Grid {
    let mut grid = Grid::new(&["<reason", "batches", "share", "mean size", "oldest waited ms"]);
    for row in &e.reasons {
        grid.row(vec![
            row.reason.clone(),
            count(row.batches),
            format!("{} %", decimals(row.share * 100.0, 1)),
            decimals(row.mean_size, 2),
            decimals(row.oldest_ms, 2),
        ]);
    }
    grid
}

fn timeline(burst: &Burst) -> String {
    let parts = burst.blame_ms.parts();
    let named: Vec<String> = parts
        .iter()
        .filter(|(_, ms)| *ms >= 0.005)
        .map(|(name, ms)| format!("{name} {}", decimals(*ms, 2)))
        .collect();
    let mut out = format!(
        "\n  {} ms, arrived at {} s: {}\n",
        decimals(burst.latency_ms, 2),
        decimals(burst.arrival_s, 3),
        named.join(", ")
    );
    let shown = burst.batches.len();
    for (i, batch) in burst.batches.iter().enumerate() {
        if shown > LINES && i == LINES / 2 {
            let _ = writeln!(out, "       …  {} more batches", shown - LINES);
        }
        if shown > LINES && (LINES / 2..shown - LINES / 2).contains(&i) {
            continue;
        }
        let _ = writeln!(
            out,
            "  {:>8}  +{:<3} instance {} runs {:>3} ({}) until {}, {} left waiting{}",
            format!("{:+.2}", batch.at_ms),
            batch.arrived,
            batch.instance,
            batch.size,
            batch.reason,
            format_args!("{:+.2}", batch.done_ms),
            count(batch.waiting),
            if batch.own { "  ← with it" } else { "" }
        );
    }
    out
}

fn trap_text(trap: &TrapNote, e: &Explanation) -> String {
    let mut out = format!("\n  {}\n", trap.id);
    out += &wrapped(&trap.what, "    ", "    ");
    out += &wrapped(&sentence(&trap.help), "    → ", "      ");
    for line in trials(trap, e) {
        let _ = writeln!(out, "      {line}");
    }
    out
}

/// What the ways out of a trap come to.
fn trials(trap: &TrapNote, e: &Explanation) -> Vec<String> {
    let said = |ms: Option<f64>| ms.map_or("–".to_owned(), |v| decimals(v, 2));
    let tried = trap.trials.iter().map(|t| {
        format!(
            "simulated with {}: p50 {} ms, p99 {} ms, mean batch {}",
            t.change,
            said(t.p50_ms),
            said(t.p99_ms),
            decimals(t.mean_batch, 2)
        )
    });
    let now = (e.quantile - 0.99).abs() < 1e-9 && !trap.trials.is_empty();
    let now = now.then(|| format!("as it is: p99 {} ms", decimals(e.latency_ms, 2)));
    now.into_iter().chain(tried).collect()
}

/// A remark that begins with a capital and ends with a point.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str().trim_end_matches('.'))
}

/// Text in lines of at most [`WIDTH`] characters.
fn wrapped(text: &str, first: &str, indent: &str) -> String {
    let (mut out, mut line) = (String::new(), first.to_owned());
    let mut fresh = true;
    for word in text.split_whitespace() {
        if !fresh && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out += &line;
            out.push('\n');
            indent.clone_into(&mut line);
            fresh = true;
        }
        if !fresh {
            line.push(' ');
        }
        line += word;
        fresh = false;
    }
    out + &line + "\n"
}

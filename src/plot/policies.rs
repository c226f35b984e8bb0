//! What the charts share: the look of each policy, objectives, and where the numbers come from.

use super::number::{plural, quantile, time, time_within};
use super::palette::{Color, Dash, Marker, series};
use crate::outcome::{Cell, Judgement, Method, Outcome, Slo};
use crate::report::{count, rate};

/// The labels of an Outcome in order of appearance; a policy looks the same in every chart.
pub(super) struct Policies(Vec<String>);

impl Policies {
    pub(super) fn of(outcome: &Outcome) -> Self {
        let mut labels: Vec<String> = Vec::new();
        for cell in outcome.cells.iter().chain(&outcome.curve) {
            if !labels.contains(&cell.policy.label) {
                labels.push(cell.policy.label.clone());
            }
        }
        Self(labels)
    }

    pub(super) fn look(&self, label: &str) -> (Color, Dash, Marker) {
        series(self.0.iter().position(|l| l == label).unwrap_or(self.0.len()))
    }

    pub(super) fn labels(&self) -> &[String] {
        &self.0
    }
}

/// A label as people see it.
pub(super) fn shown(label: &str) -> String {
    if label.trim().is_empty() { "(no label)".to_owned() } else { label.to_owned() }
}

/// The one cell of every policy, or why there is not one.
pub(super) fn one_cell_each(outcome: &Outcome) -> Result<Vec<&Cell>, String> {
    if outcome.cells.is_empty() {
        return Err("the result has no cells".into());
    }
    let mut seen = std::collections::BTreeSet::new();
    let repeated = outcome.cells.iter().find(|c| !seen.insert(&c.policy.label));
    match repeated {
        Some(cell) => Err(format!(
            "it compares policies at one point, and `{}` appears at several points of a sweep",
            cell.policy.label
        )),
        None => Ok(outcome.cells.iter().collect()),
    }
}

/// A title that starts with the name of the scenario.
pub(super) fn titled(outcome: &Outcome, what: &str) -> String {
    match outcome.scenario.get("name").and_then(|name| name.as_str()) {
        Some(name) if !name.is_empty() => format!("{name}: {what}"),
        _ => {
            let mut letters = what.chars();
            let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
            first + letters.as_str()
        }
    }
}

/// Where the numbers come from.
pub(super) fn footer<'a>(outcome: &Outcome, cells: impl Iterator<Item = &'a Cell>) -> String {
    let mut requests = 0u64;
    let mut methods: Vec<&str> = Vec::new();
    for cell in cells {
        requests = requests.saturating_add(cell.requests.offered);
        let method = match cell.method {
            Method::Simulation | Method::Recurrence => "simulated",
            Method::Exact => "exact solution",
            Method::Trace => "replay of recorded arrivals, no intervals",
        };
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    let tool = &outcome.tool;
    let mut parts = vec![match tool.commit.as_str() {
        "" | "unknown" => format!("{} {}", tool.name, tool.version),
        commit => format!("{} {} ({commit:.12})", tool.name, tool.version),
    }];
    parts.push(format!("seed {}", outcome.seed));
    parts.extend(methods.into_iter().map(str::to_owned));
    if requests > 0 {
        parts.push(format!("{} requests", count(requests)));
    }
    parts.join(" · ")
}

/// Objectives without repetitions, and without those that no axis can show.
pub(super) fn objectives(outcome: &Outcome) -> Vec<&Slo> {
    let mut slos: Vec<&Slo> = Vec::new();
    for slo in &outcome.slos {
        let usable = slo.latency_ms.is_finite()
            && slo.latency_ms > 0.0
            && (0.0..1.0).contains(&slo.quantile);
        let same = |s: &&Slo| s.quantile == slo.quantile && s.latency_ms == slo.latency_ms;
        if usable && !slos.iter().any(same) {
            slos.push(slo);
        }
    }
    slos
}

/// `p99 < 50 ms`.
pub(super) fn objective(slo: &Slo) -> String {
    let sign = if slo.expr.contains("<=") { "≤" } else { "<" };
    format!("{} {sign} {}", quantile(slo.quantile), time(slo.latency_ms))
}

/// Whether a cell meets its objectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Meets,
    Misses,
    Unsure,
    /// There is nothing to meet, or nothing is known.
    Unknown,
}

/// By the verdicts of the cell; without any, by the point values of its latencies.
pub(super) fn standing(cell: &Cell, slos: &[&Slo]) -> Standing {
    if !cell.verdicts.is_empty() {
        let has = |j| cell.verdicts.iter().any(|v| v.judgement == j);
        return match (has(Judgement::Fail), has(Judgement::Inconclusive)) {
            (true, _) => Standing::Misses,
            (false, true) => Standing::Unsure,
            (false, false) => Standing::Meets,
        };
    }
    if slos.is_empty() {
        return Standing::Unknown;
    }
    if !cell.stable {
        return Standing::Misses;
    }
    let held: Option<Vec<bool>> = slos.iter().map(|slo| holds(cell, slo)).collect();
    match held {
        None => Standing::Unknown,
        Some(held) if held.iter().all(|h| *h) => Standing::Meets,
        Some(_) => Standing::Misses,
    }
}

/// Whether a point value holds: attainment over offered requests where it was counted.
fn holds(cell: &Cell, slo: &Slo) -> Option<bool> {
    let counted = cell.attainment.iter().find(|a| a.within_ms == slo.latency_ms);
    if let Some(attainment) = counted {
        return Some(attainment.share >= slo.quantile);
    }
    let latency = cell.latency_ms.as_ref()?;
    let known = [
        (0.5, Some(latency.p50)),
        (0.9, Some(latency.p90)),
        (0.95, Some(latency.p95)),
        (0.99, Some(latency.p99)),
        (0.999, latency.p999),
    ];
    let (_, value) = known.into_iter().find(|(q, _)| (q - slo.quantile).abs() < 1e-9)?;
    Some(value? <= slo.latency_ms)
}

/// Lines under the label of a policy: its p99 or its overload, and how it stands.
pub(super) fn details(cell: &Cell) -> Vec<String> {
    if !cell.stable {
        let capacity = cell.capacity_per_s.filter(|c| c.is_finite());
        let limit = capacity.map(|c| format!("capacity {}/s", rate(c)));
        return vec!["overloaded".to_owned(), limit.unwrap_or_default()];
    }
    let Some(latency) = &cell.latency_ms else { return vec!["nothing completed".to_owned()] };
    let half = latency.ci95.as_ref().map(|ci| ci.p99);
    let verdict = match standing(cell, &[]) {
        Standing::Meets => "✓ meets the SLO",
        Standing::Misses => "✗ misses the SLO",
        Standing::Unsure => "? SLO: inconclusive",
        Standing::Unknown => "",
    };
    vec![format!("p99 {}", time_within(latency.p99, half)), verdict.to_owned()]
}

/// `900/s offered`, or the range of the rates.
pub(super) fn offered<'a>(cells: impl Iterator<Item = &'a Cell>) -> String {
    let rates = cells.map(|c| c.rate_per_s).filter(|r| r.is_finite() && *r > 0.0);
    let (lo, hi) = rates.fold((f64::INFINITY, 0.0_f64), |(lo, hi), r| (lo.min(r), hi.max(r)));
    if hi <= 0.0 {
        String::new()
    } else if hi <= 1.005 * lo {
        format!("{}/s offered", rate(hi))
    } else {
        format!("{} to {}/s offered", rate(lo), rate(hi))
    }
}

/// What the bands are, or that there are none.
pub(super) fn intervals<'a>(shape: &str, cells: impl Iterator<Item = &'a Cell>) -> String {
    let most = cells.filter(|c| c.stable).map(|c| c.replications).max().unwrap_or(0);
    if most > 1 {
        let runs = plural(usize::try_from(most).unwrap_or(0), "replication", "replications");
        format!("{shape}: 95 % interval over {runs}")
    } else {
        String::new()
    }
}

/// Parts of a line of words, without the empty ones.
pub(super) fn joined(parts: &[String]) -> String {
    let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|p| !p.is_empty()).collect();
    parts.join(" · ")
}

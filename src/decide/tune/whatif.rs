//! The recommended setting with one thing changed.

use super::contest::Candidate;
use crate::arrivals::{Clients, Gamma, Hawkes, Hyperexponential, Mmpp, Process, Weibull};
use crate::cost::Cost;
use crate::policy::{Dynamic, MaxWait, Policy};
use crate::scenario::{Loaded, Scenario};
use crate::time::Nanos;

/// A step of `max_wait`.
const STEP: Nanos = Nanos(1_000_000);

type Changed = (String, Candidate);

/// One more and one less of each knob.
pub(super) fn knobs(loaded: &Loaded, chosen: &Candidate) -> Vec<Changed> {
    let policy = &chosen.policy.policy;
    let mut edits: Vec<(String, String, String)> = Vec::new();
    let label = &chosen.policy.label;
    let mut edit = |what: &str, key: &str, value: String| {
        edits.push((what.to_owned(), format!("{label}.{key}"), value));
    };
    match policy {
        Policy::Dynamic(Dynamic { max_wait: MaxWait::After(wait), .. }) => {
            edit("max_wait + 1 ms", "max_wait", wait.plus(STEP).to_string());
            if *wait >= STEP {
                edit("max_wait − 1 ms", "max_wait", Nanos(wait.0 - STEP.0).to_string());
            }
        }
        Policy::Triton(p) => {
            let (key, us) = ("max_queue_delay_microseconds", p.max_queue_delay_microseconds);
            edit("max_queue_delay + 1 ms", key, us.saturating_add(1000).to_string());
            if us >= 1000 {
                edit("max_queue_delay − 1 ms", key, (us - 1000).to_string());
            }
        }
        _ => {}
    }
    if let Some(cap) = policy.cap().filter(|_| policy.kind() != "none") {
        edit("max_batch_size + 1", "max_batch_size", cap.saturating_add(1).to_string());
        if cap > 1 {
            edit("max_batch_size − 1", "max_batch_size", (cap - 1).to_string());
        }
    }
    let changed = |(what, path, value): (String, String, String)| {
        let mut coords: Vec<(&str, &str)> = chosen
            .coords
            .iter()
            .filter(|(other, _)| **other != path)
            .map(|(path, value)| (path.as_str(), value.as_str()))
            .collect();
        coords.push((&path, &value));
        // A value that the policy cannot mean (a minimum above the cap) is no neighbour.
        let scenario = loaded.cell(&coords).ok()?;
        Some((what, placed(chosen, scenario)?))
    };
    edits.into_iter().filter_map(changed).collect()
}

/// The same policy and server in a changed scenario.
fn placed(chosen: &Candidate, mut scenario: Scenario) -> Option<Candidate> {
    scenario.policies.iter_mut().for_each(|p| p.guard = false);
    let policy = scenario.policies.iter().find(|p| p.label == chosen.policy.label)?.clone();
    let server = scenario.servers.iter().find(|s| s.label == chosen.server.label)?.clone();
    Some(Candidate { coords: chosen.coords.clone(), server, policy, scenario })
}

/// Ten percent more and less of what the scenario assumes.
pub(super) fn conditions(chosen: &Candidate) -> Vec<Changed> {
    let mut all = Vec::new();
    let sides = [("+10 %", 1.1), ("−10 %", 0.9)];
    for (what, change) in costs() {
        for (sign, factor) in sides {
            let mut changed = chosen.clone();
            if change(&mut changed.server.cost, factor) {
                all.push((format!("{what} {sign}"), changed));
            }
        }
    }
    for (sign, factor) in sides {
        let mut changed = chosen.clone();
        if changed.scenario.total_rate_per_s().is_some() {
            changed.scenario.scale_rates(factor);
            all.push((format!("rate {sign}"), changed));
        }
    }
    for (sign, factor) in sides {
        let mut changed = chosen.clone();
        let mut any = false;
        for source in &mut changed.scenario.arrivals {
            if let Some(process) = burstier(&source.process, factor) {
                source.process = process;
                any = true;
            }
        }
        if any {
            all.push((format!("burstiness {sign}"), changed));
        }
    }
    all
}

type CostChange = fn(&mut Cost, f64) -> bool;

/// The parts of a cost, and how to change them; a change that does not apply says so.
fn costs() -> [(&'static str, CostChange); 3] {
    [("fixed cost", fixed), ("per-item cost", per_item), ("cost of every batch", whole)]
}

/// What a pass takes whatever its size.
fn fixed(cost: &mut Cost, factor: f64) -> bool {
    match cost {
        Cost::Affine(c) => {
            c.fixed = scaled(c.fixed, factor);
            true
        }
        Cost::FloorLinear(c) => {
            c.floor = scaled(c.floor, factor);
            c.fixed = scaled(c.fixed, factor);
            true
        }
        Cost::Roof(c) => {
            c.floor = scaled(c.floor, factor);
            true
        }
        Cost::TwoPiece(c) => {
            c.fixed = scaled(c.fixed, factor);
            true
        }
        Cost::Tiled(c) => {
            c.fixed = scaled(c.fixed, factor);
            true
        }
        _ => false,
    }
}

/// What items add.
fn per_item(cost: &mut Cost, factor: f64) -> bool {
    match cost {
        Cost::Affine(c) => {
            c.per_item = scaled(c.per_item, factor);
            true
        }
        Cost::FloorLinear(c) => {
            c.per_item = scaled(c.per_item, factor);
            true
        }
        Cost::Roof(c) => {
            c.per_item = scaled(c.per_item, factor);
            true
        }
        Cost::TwoPiece(c) => {
            c.per_item = scaled(c.per_item, factor);
            c.per_item_after = scaled(c.per_item_after, factor);
            true
        }
        Cost::Tiled(c) => {
            c.per_tile = scaled(c.per_tile, factor);
            true
        }
        _ => false,
    }
}

/// All of a table: it has no parts.
fn whole(cost: &mut Cost, factor: f64) -> bool {
    match cost {
        Cost::Table(c) => {
            c.points.iter_mut().for_each(|p| p.time = scaled(p.time, factor));
            true
        }
        _ => false,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a time"
)]
fn scaled(time: Nanos, factor: f64) -> Nanos {
    Nanos((time.0 as f64 * factor).round() as u64)
}

/// The same rate with a CV of gaps, or an excess of the index of dispersion over 1, that is
/// larger by `factor`; `None` where nothing says how bursty a process is.
fn burstier(process: &Process, factor: f64) -> Option<Process> {
    match process {
        Process::Poisson(p) => Some(Process::Gamma(Gamma { rate: p.rate, cv: factor })),
        Process::Gamma(p) => Some(Process::Gamma(Gamma { cv: p.cv * factor, ..*p })),
        Process::Weibull(p) => Some(Process::Weibull(Weibull { cv: p.cv * factor, ..*p })),
        Process::Hyperexponential(p) => {
            let cv = (p.cv * factor).max(1.0);
            Some(Process::Hyperexponential(Hyperexponential { cv, ..*p }))
        }
        Process::Clients(p) => Some(Process::Clients(Clients { cv: p.cv * factor, ..*p })),
        Process::Hawkes(p) => {
            // The excess of `1 / (1 − n)²` over 1.
            let idc = 1.0 + (p.idc_limit() - 1.0) * factor;
            Some(Process::Hawkes(Hawkes { branching: 1.0 - idc.powf(-0.5), ..*p }))
        }
        Process::Mmpp(p) => {
            let idc = p.idc.map(|idc| 1.0 + (idc - 1.0) * factor);
            // The excess is in proportion to the times between changes.
            let dwells = p.dwells.map(|dwells| dwells.map(|t| scaled(t, factor)));
            Some(Process::Mmpp(Mmpp { idc, dwells, ..p.clone() }))
        }
        Process::OnOff(p) => {
            let mut p = p.clone();
            (p.on, p.off) = (scaled(p.on, factor), scaled(p.off, factor));
            Some(Process::OnOff(p))
        }
        _ => None,
    }
}

/// Whether Poisson arrivals stand for the burstiness of a setting.
pub(super) fn replaced_poisson(chosen: &Candidate) -> bool {
    chosen.scenario.arrivals.iter().any(|s| matches!(s.process, Process::Poisson(_)))
}

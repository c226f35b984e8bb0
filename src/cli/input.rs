//! Reading scenarios and setting up threads.

use super::args::{Common, PrecisionArgs, SourceArgs};
use super::exit::Failure;
use super::show::{colour, say};
use crate::cost::Cost;
use crate::interop;
use crate::report::{count, decimals, rate};
use crate::scenario::{self, Disk, Input, Loaded, Scenario};
use crate::stats::burstiness;
use crate::study::{Engine, Options};
use crate::time::Nanos;
use crate::units::parse_fraction;
use anyhow::Context;

/// Reads the scenario with its changes, and says its warnings.
pub(super) fn load(
    args: &SourceArgs,
    precision: Option<&PrecisionArgs>,
    common: &Common,
) -> Result<Loaded, Failure> {
    let source = Input::open(&args.scenario).map_err(|d| Failure::Input(vec![d]))?;
    let disk = Disk::beside(&args.scenario, interop::trace::for_scenario);
    let mut sets = args.sets.clone();
    if let Some(seed) = args.seed {
        sets.push(format!("seed={seed}"));
    }
    // Options that are keys of a scenario are held to the same rules.
    if let Some(precision) = precision {
        if let Some(text) = &precision.precision {
            sets.push(format!("run.precision=\"{text}\""));
        }
        if precision.exact_latencies {
            sets.push("run.exact_latencies=true".into());
        }
    }
    let loaded = scenario::load(&source, &sets, &disk)?;
    for warning in &loaded.warnings {
        say(warning.render(colour(common.color)).trim_end());
    }
    for source in &loaded.scenario.arrivals {
        let warnings = source.trace.as_deref().map(burstiness::clock_warnings);
        warnings.iter().flatten().for_each(|w| say(&format!("warning: trace: {w}")));
    }
    Ok(loaded)
}

/// What to say where no policy has this label.
pub(super) fn no_policy(scenario: &Scenario, label: &str) -> Failure {
    let what = format!("the scenario has no policy `{label}`");
    Failure::usage(what, format!("it has {}", labels(scenario)))
}

/// The labels of all policies, to choose from.
pub(super) fn labels(scenario: &Scenario) -> String {
    let labels: Vec<String> = scenario.policies.iter().map(|p| format!("`{}`", p.label)).collect();
    labels.join(", ")
}

/// Sizes the thread pool.
pub(super) fn threads(common: &Common) -> Result<(), Failure> {
    if common.jobs == Some(0) {
        return Err(Failure::usage("--jobs 0 leaves nobody to work", "write 1 or more"));
    }
    let jobs = common.jobs.unwrap_or(0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build_global();
    Ok(pool.context("cannot start threads")?)
}

/// Options of a study from its arguments.
pub(super) fn options(args: &PrecisionArgs) -> Result<Options, Failure> {
    let precision = share("--precision", args.precision.as_deref())?;
    let engine = if args.event_engine { Engine::Event } else { Engine::Auto };
    Ok(Options { engine, precision })
}

/// A positive share from an option.
pub(super) fn share(option: &str, text: Option<&str>) -> Result<Option<f64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    match parse_fraction(text) {
        Ok(share) if share.get() > 0.0 => Ok(Some(share.get())),
        Ok(_) => Err(Failure::usage(format!("{option} 0% can never be reached"), "write 1%")),
        Err(e) => Err(Failure::usage(format!("{option}: {e}"), e.help)),
    }
}

/// The margin within which numbers count as the same, 0.5 % unless said.
pub(super) fn margin(text: Option<&str>) -> Result<f64, Failure> {
    let Some(text) = text else { return Ok(0.005) };
    match parse_fraction(text) {
        Ok(share) if share.get() > 0.0 => Ok(share.get()),
        Ok(_) => Err(Failure::usage("--margin 0% can never be shown", "write 0.5%")),
        Err(e) => Err(Failure::usage(format!("--margin: {e}"), e.help)),
    }
}

/// The line above a table: name, arrivals, cost, instances, seed.
pub(super) fn title(scenario: &Scenario) -> String {
    let mut parts = vec![scenario.name.clone()];
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for kind in scenario.arrivals.iter().map(|s| s.process.kind()) {
        match kinds.iter_mut().find(|(k, _)| *k == kind) {
            Some((_, n)) => *n += 1,
            None => kinds.push((kind, 1)),
        }
    }
    let kinds: Vec<String> = kinds
        .into_iter()
        .map(|(kind, n)| if n == 1 { kind.to_owned() } else { format!("{n} × {kind}") })
        .collect();
    let kinds = kinds.join(" + ");
    parts.push(match scenario.total_rate_per_s() {
        Some(per_s) => format!("{kinds} {}/s", rate(per_s)),
        None => kinds,
    });
    if let [server] = scenario.servers.as_slice() {
        parts.push(cost(&server.cost));
        let plural = if server.instances == 1 { "" } else { "s" };
        parts.push(format!("{} instance{plural}", count(u64::from(server.instances))));
        if server.replicas > 1 {
            parts.push(format!("{} replicas", count(u64::from(server.replicas))));
        }
    } else {
        parts.push(format!("{} servers", scenario.servers.len()));
    }
    if scenario.arrivals.iter().any(|s| s.trace.is_some()) {
        parts.push("one replay, no ±".into());
    } else {
        parts.push(format!("seed {}", scenario.seed));
    }
    parts.join(" · ")
}

fn cost(cost: &Cost) -> String {
    let ms = |t: Nanos| format!("{} ms", decimals_short(t.as_ms()));
    match cost {
        Cost::Affine(c) => format!("{} + {} per item", ms(c.fixed), ms(c.per_item)),
        Cost::FloorLinear(c) => format!(
            "the larger of {} and {} + {} per item",
            ms(c.floor),
            ms(c.fixed),
            ms(c.per_item)
        ),
        Cost::Roof(c) => format!(
            "roof of {} and {} per item, sharpness {}",
            ms(c.floor),
            ms(c.per_item),
            decimals_short(c.sharpness)
        ),
        Cost::TwoPiece(c) => format!(
            "{} + {} per item, {} above {} items",
            ms(c.fixed),
            ms(c.per_item),
            ms(c.per_item_after),
            c.knee
        ),
        Cost::Tiled(c) => {
            format!("{} + {} per tile of {} items", ms(c.fixed), ms(c.per_tile), c.tile)
        }
        Cost::Table(c) => format!("cost table of {} sizes", c.points.len()),
        Cost::File(c) => format!("cost from {}", c.file),
    }
}

/// Up to three decimals, none that are zero.
fn decimals_short(value: f64) -> String {
    let text = decimals(value, 3);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

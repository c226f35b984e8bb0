//! Numbers then and now: identical, equivalent, different, or undecided.

use crate::outcome::{Better, Cell, Change, Series, Shift, StandardError};
use crate::stats::{Difference, Estimate, Measure, holm};

/// Level at which a difference is called one, all numbers together.
const LEVEL: f64 = 0.05;

/// Kept for `--fail-on`, but not judged by themselves: the judged quantiles say it already.
const SPARE: [&str; 3] = ["p(90)", "p(95)", "p(99.9)"];

/// The numbers of a cell that two results share, one of each. A reason that never occurred in one
/// of them is there with a share of 0.
#[must_use]
pub fn pair_up(old: &[Series], new: &[Series]) -> Vec<(Series, Series)> {
    let find = |all: &[Series], metric: &str| all.iter().find(|s| s.metric == metric).cloned();
    let never = |other: &Series| Series {
        value: 0.0,
        sections: vec![0.0; other.sections.len()],
        error: other.error.map(|e| StandardError { value: 0.0, ..e }),
        ..other.clone()
    };
    // A result without sections does not state reasons at all.
    let states = |all: &[Series]| all.iter().any(|s| s.metric.starts_with("reason "));
    let both_state = states(old) && states(new);
    let is_reason = |s: &Series| both_state && s.metric.starts_with("reason ");
    let mut pairs: Vec<(Series, Series)> = old
        .iter()
        .filter_map(|o| {
            let n = find(new, &o.metric).or_else(|| is_reason(o).then(|| never(o)))?;
            Some((o.clone(), n))
        })
        .collect();
    let only_new = new.iter().filter(|n| is_reason(n) && find(old, &n.metric).is_none());
    pairs.extend(only_new.map(|n| (never(n), n.clone())));
    pairs
}

/// Whether a verdict is given on this number.
pub(super) fn is_judged(metric: &str) -> bool {
    !SPARE.iter().any(|spare| metric.split(" of ").next() == Some(spare))
}

/// The change of one number; shares change by points, everything else in relation.
#[must_use]
pub(super) fn difference(old: &Series, new: &Series, paired: bool) -> Difference {
    let measure = if old.unit == "share" { Measure::Absolute } else { Measure::Relative };
    Difference::between(estimate(old), estimate(new), measure, paired)
}

pub(super) fn estimate(s: &Series) -> Estimate<'_> {
    let error = s.error.map(|e| (e.value, e.replications));
    Estimate { value: s.value, sections: &s.sections, error }
}

/// Judges changes together.
///
/// A number is different when its paired 95 % interval (Holm over all numbers) excludes zero and
/// the change itself exceeds the margin; equivalent when two one-sided tests at 5 % put it inside
/// the margin; else undecided. Equivalence needs no correction: what is claimed is that all are.
#[must_use]
pub fn shifts(pairs: &[(Series, Series)], paired: bool, margin: f64) -> Vec<Change> {
    let found: Vec<Difference> = pairs.iter().map(|(o, n)| difference(o, n, paired)).collect();
    let p_values: Vec<f64> = found.iter().map(Difference::p_none).collect();
    let clear = holm(&p_values, LEVEL);
    let judged = pairs.iter().zip(&found).zip(clear);
    judged
        .map(|(((old, new), d), clear)| {
            let shift = if old.value.to_bits() == new.value.to_bits()
                && old.sections == new.sections
                && !old.sections.is_empty()
            {
                Shift::Identical
            } else if clear && d.value.abs() > margin {
                direction(new.better, d.value)
            } else if d.p_beyond(margin) <= LEVEL {
                Shift::Equivalent
            } else {
                Shift::Undecided
            };
            Change {
                metric: new.metric.clone(),
                unit: new.unit.clone(),
                old: old.value,
                new: new.value,
                change: d.value,
                half_width: d.half_width(),
                margin,
                shift,
            }
        })
        .collect()
}

fn direction(better: Better, change: f64) -> Shift {
    match (better, change > 0.0) {
        (Better::Neither, _) => Shift::Changed,
        (Better::Lower, true) | (Better::Higher, false) => Shift::Worse,
        (Better::Lower, false) | (Better::Higher, true) => Shift::Better,
    }
}

/// A queue that settled and no longer does, or the other way round.
pub(super) fn steady(old: &Cell, new: &Cell, margin: f64) -> Option<Change> {
    let number = |stable: bool| f64::from(u8::from(stable));
    (old.stable != new.stable).then(|| Change {
        metric: "steady state".into(),
        unit: "share".into(),
        old: number(old.stable),
        new: number(new.stable),
        change: number(new.stable) - number(old.stable),
        half_width: None,
        margin,
        shift: if new.stable { Shift::Better } else { Shift::Worse },
    })
}

//! The cells of a sweep as charts need them: axes in order, and which cell is where.

use super::number::significant;
use crate::outcome::{AxisValues, Cell, Outcome};
use std::collections::BTreeMap;

/// One axis of a sweep with its values in increasing order.
#[derive(Clone, Debug)]
pub(super) struct SweepAxis<'a> {
    pub(super) path: &'a str,
    pub(super) unit: &'a str,
    /// As written, to find cells.
    pub(super) written: Vec<&'a str>,
    /// As numbers; their positions when they are not numbers.
    pub(super) numbers: Vec<f64>,
    /// Whether the values are numbers.
    pub(super) numeric: bool,
}

impl<'a> SweepAxis<'a> {
    fn of(axis: &'a AxisValues) -> Self {
        let pairs = axis.values.iter().map(String::as_str).zip(axis.numbers.iter().copied());
        let mut pairs: Vec<(&str, f64)> = pairs.filter(|p| p.1.is_finite()).collect();
        // Values that are no numbers are numbered in the order in which they were written.
        let spells = |text: &str| text.chars().any(|c| c.is_ascii_digit());
        let numeric = !pairs.is_empty()
            && pairs.len() == axis.values.len()
            && (!axis.unit.is_empty() || pairs.iter().all(|p| spells(p.0)));
        if !numeric {
            pairs = axis.values.iter().map(String::as_str).zip((0..).map(f64::from)).collect();
        }
        pairs.sort_by(|a, b| a.1.total_cmp(&b.1));
        Self {
            path: &axis.path,
            unit: &axis.unit,
            written: pairs.iter().map(|p| p.0).collect(),
            numbers: pairs.iter().map(|p| p.1).collect(),
            numeric,
        }
    }

    /// Its name where `label` is understood: the last part of the path for the policy's own.
    pub(super) fn name(&self, label: &str) -> &'a str {
        match self.path.split_once('.') {
            Some((head, rest)) if head == label => rest,
            _ => self.path,
        }
    }

    /// Its name with the unit.
    pub(super) fn caption(&self, label: &str) -> String {
        match self.unit {
            "" => self.name(label).to_owned(),
            unit => format!("{} ({unit})", self.name(label)),
        }
    }

    /// A value without its unit.
    pub(super) fn value(&self, index: usize) -> String {
        if self.numeric {
            significant(self.numbers[index], 6)
        } else {
            self.written[index].trim_matches('"').to_owned()
        }
    }

    /// A value with its name and unit.
    pub(super) fn setting(&self, index: usize, label: &str) -> String {
        let value = self.value(index);
        match (self.numeric, self.unit) {
            (true, "/s") => format!("{} {value}/s", self.name(label)),
            (true, unit) if !unit.is_empty() => format!("{} {value} {unit}", self.name(label)),
            _ => format!("{} {value}", self.name(label)),
        }
    }

    fn is_wait(&self) -> bool {
        let last = self.path.rsplit('.').next().unwrap_or_default();
        last.contains("wait") || last.contains("delay")
    }

    fn is_batch(&self) -> bool {
        self.path.rsplit('.').next().unwrap_or_default().contains("batch")
    }
}

/// The axes that concern a policy, as far as its cells name them.
pub(super) fn axes_of<'a>(outcome: &'a Outcome, label: &str) -> Vec<SweepAxis<'a>> {
    let mut cells = outcome.cells.iter().filter(|c| c.policy.label == label);
    let first = cells.next();
    let axes = outcome.axes.iter().filter(|axis| {
        let named = |cell: &Cell| cell.coords.contains_key(&axis.path);
        axis.values.len() > 1 && first.is_some_and(named)
    });
    order(axes.map(SweepAxis::of).collect())
}

/// Waits first, batch sizes second, the others after them: across, up, one chart each.
fn order(mut axes: Vec<SweepAxis<'_>>) -> Vec<SweepAxis<'_>> {
    axes.sort_by_key(|axis| match (axis.is_wait(), axis.is_batch()) {
        (true, _) => 0,
        (false, false) => 2,
        (false, true) => 1,
    });
    axes
}

/// The cells of a policy by column and row, with the third axis at one of its values.
pub(super) fn table<'a>(
    outcome: &'a Outcome,
    label: &str,
    (x, y): (&SweepAxis<'_>, Option<&SweepAxis<'_>>),
    third: Option<(&SweepAxis<'_>, usize)>,
) -> BTreeMap<(usize, usize), &'a Cell> {
    let position = |cell: &Cell, axis: &SweepAxis<'_>| {
        let value = cell.coords.get(axis.path)?;
        axis.written.iter().position(|w| w == value)
    };
    let place = |cell: &Cell| {
        let column = position(cell, x)?;
        let row = match y {
            Some(y) => position(cell, y)?,
            None => 0,
        };
        let here = third.is_none_or(|(axis, at)| position(cell, axis) == Some(at));
        here.then_some((column, row))
    };
    let cells = outcome.cells.iter().filter(|c| c.policy.label == label);
    cells.filter_map(|cell| Some((place(cell)?, cell))).collect()
}

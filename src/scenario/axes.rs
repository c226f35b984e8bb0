//! Sweep axes: lists of values, or where they start, end and how far apart they are.

use super::de::View;
use super::diag::{BAD_AXIS, Problem, Span};
use super::fault::unknown_key;
use super::known::Table;
use super::tree::{Entry, Node, Value};
use crate::time::Nanos;
use crate::units::{Fraction, Rate, UnitError, parse_duration, parse_fraction, parse_rate};

/// Most values of one axis.
const MAX_VALUES: usize = 10_000;
/// Most points of a whole sweep.
const MAX_CELLS: usize = 1_000_000;

const HELP: &str = "write { values = [\"1ms\", \"2ms\"] }, { from = \"0ms\", to = \"20ms\", \
                    step = \"1ms\" } or { from = 1, to = 64, points = 8 }";

/// One axis, expanded, with the places of its parts.
#[derive(Clone, Debug)]
pub(crate) struct AxisNode {
    pub(crate) path: String,
    pub(crate) path_span: Span,
    /// Each value as written after `--set path=`, and its place.
    pub(crate) values: Vec<(String, Span)>,
}

const AXIS_KEYS: &[&str] = &["values", "from", "to", "step", "points"];

/// Expands `[sweep]`, or `over` of `[tune]`.
pub(crate) fn read(sweep: &Node, problems: &mut Vec<Problem>) -> Vec<AxisNode> {
    let mut axes = Vec::new();
    match &sweep.value {
        Value::Null => {}
        Value::Table(entries) => {
            entries.iter().for_each(|e| nested(e, &e.key, &mut axes, problems));
        }
        Value::List(items) => items.iter().for_each(|item| listed(item, &mut axes, problems)),
        _ => problems.push(Problem::new(BAD_AXIS, sweep.span, "axes are a table of paths").help(
            "write [sweep] or [tune.over], and below it \"dynamic.max_wait\" = { values = […] }",
        )),
    }
    for (i, axis) in axes.iter().enumerate() {
        if axes[..i].iter().any(|a| a.path == axis.path) {
            let what = format!("`{}` varies twice", axis.path);
            problems.push(Problem::new(BAD_AXIS, axis.path_span, what).help("keep one of the two"));
        }
    }
    let cells = axes.iter().try_fold(1usize, |n, a| n.checked_mul(a.values.len()));
    if cells.is_none_or(|n| n > MAX_CELLS) {
        problems.push(
            Problem::new(BAD_AXIS, sweep.span, "these axes span more than 1,000,000 points")
                .help("take fewer values per axis, or several scenarios"),
        );
    }
    axes
}

/// `"dynamic.max_wait" = {…}`, also where the path was not quoted and TOML made tables of it.
fn nested(entry: &Entry, path: &str, axes: &mut Vec<AxisNode>, problems: &mut Vec<Problem>) {
    if let Value::Table(inner) = &entry.node.value {
        let is_axis = inner.is_empty()
            || inner.iter().any(|e| AXIS_KEYS.contains(&e.key.as_str()))
            || path.contains('.') && inner.iter().all(|e| e.node.entries().is_none());
        if !is_axis {
            for e in inner {
                nested(e, &format!("{path}.{}", e.key), axes, problems);
            }
            return;
        }
    }
    match expand(&entry.node, &[]) {
        Ok(values) => {
            axes.push(AxisNode { path: path.to_owned(), path_span: entry.key_span, values })
        }
        Err(problem) => problems.push(problem),
    }
}

/// `[[sweep]] path = "…", values = […]`.
fn listed(item: &Node, axes: &mut Vec<AxisNode>, problems: &mut Vec<Problem>) {
    let Some(path) = item.get("path") else {
        let problem = Problem::new(BAD_AXIS, item.span, "this axis needs a `path`");
        return problems.push(problem.help("write path = \"dynamic.max_wait\""));
    };
    match (View::of("path", path).read::<String>(), expand(item, &["path"])) {
        (Ok(name), Ok(values)) => {
            axes.push(AxisNode { path: name, path_span: path.span, values });
        }
        (Err(problem), _) => problems.push(*problem),
        (_, Err(problem)) => problems.push(problem),
    }
}

fn expand(node: &Node, also: &[&str]) -> Result<Vec<(String, Span)>, Problem> {
    let bad = |span: Span, what: &str| Problem::new(BAD_AXIS, span, what).help(HELP);
    if let Value::List(items) = &node.value {
        return scalars(items, node.span);
    }
    let Value::Table(entries) = &node.value else {
        return Err(bad(node.span, "an axis is a list of values or a table"));
    };
    let known =
        |e: &&Entry| !AXIS_KEYS.contains(&e.key.as_str()) && !also.contains(&e.key.as_str());
    if let Some(e) = entries.iter().find(known) {
        return Err(unknown_key(Table::Other, None, &e.key, AXIS_KEYS, node, e.key_span));
    }
    match (node.get("values"), node.get("from"), node.get("to")) {
        (Some(Node { value: Value::List(items), span }), None, None) => {
            if let Some(e) = node.entry("step").or(node.entry("points")) {
                return Err(bad(e.key_span, "`values` stand alone"));
            }
            scalars(items, *span)
        }
        (Some(other), None, None) => Err(bad(other.span, "`values` must be a list")),
        (Some(_), _, _) => Err(bad(node.span, "an axis has either `values` or `from` and `to`")),
        (None, Some(from), Some(to)) => range(node, from, to),
        (None, _, _) => Err(bad(node.span, "an axis needs `values`, or `from` and `to`")),
    }
}

fn scalars(items: &[Node], span: Span) -> Result<Vec<(String, Span)>, Problem> {
    if items.is_empty() || items.len() > MAX_VALUES {
        let what = format!("an axis has 1 to {MAX_VALUES} values, not {}", items.len());
        return Err(Problem::new(BAD_AXIS, span, what).help(HELP));
    }
    let mut values: Vec<(String, Span)> = Vec::with_capacity(items.len());
    for item in items {
        let Some(text) = item.written() else {
            let what = format!("{} cannot be a value of an axis", item.what());
            return Err(Problem::new(BAD_AXIS, item.span, what).help(HELP));
        };
        values.push((text, item.span));
    }
    Ok(values)
}

/// A number with its unit; steps are taken between two of the same kind.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantity {
    Int(i128),
    Float(f64),
    Time(u64),
    Rate(f64),
    Share(f64),
}

impl Quantity {
    fn of(node: &Node) -> Result<Self, Problem> {
        let fail = |e: UnitError| Problem::new(BAD_AXIS, node.span, e.what).help(e.help);
        match &node.value {
            Value::Int(n) => Ok(Self::Int(*n)),
            Value::Float(x) => Ok(Self::Float(*x)),
            Value::Text(text) if text.contains('%') => {
                parse_fraction(text).map(|f| Self::Share(f.get())).map_err(fail)
            }
            Value::Text(text) if text.contains('/') => {
                parse_rate(text).map(|r| Self::Rate(r.per_s())).map_err(fail)
            }
            Value::Text(text) => parse_duration(text).map(|d| Self::Time(d.0)).map_err(fail),
            _ => {
                Err(Problem::new(BAD_AXIS, node.span, "a number or quantity is needed").help(HELP))
            }
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Int(_) | Self::Float(_) => "a plain number",
            Self::Time(_) => "a duration",
            Self::Rate(_) => "a rate",
            Self::Share(_) => "a percentage",
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "steps need no more than 53 bits")]
    fn number(self) -> f64 {
        match self {
            Self::Int(n) => n as f64,
            Self::Time(ns) => ns as f64,
            Self::Float(x) | Self::Rate(x) | Self::Share(x) => x,
        }
    }

    /// `number` in the unit of this one, as it would be written.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    fn written(self, number: f64) -> String {
        match self {
            Self::Int(_) => format!("{number:.0}"),
            Self::Float(_) => format!("{:?}", round(number)),
            Self::Time(_) => Nanos(number.round() as u64).to_string(),
            Self::Rate(_) => {
                Rate::per_second(round(number)).map_or_else(String::new, |r| r.to_string())
            }
            Self::Share(_) => Fraction::new(number).map_or_else(String::new, |f| f.to_string()),
        }
    }
}

/// To 12 significant digits: steps such as 0.1 do not end exactly in binary.
fn round(x: f64) -> f64 {
    format!("{x:.11e}").parse().unwrap_or(x)
}

fn range(node: &Node, from: &Node, to: &Node) -> Result<Vec<(String, Span)>, Problem> {
    let bad = |span: Span, what: String| Problem::new(BAD_AXIS, span, what).help(HELP);
    let (start, end) = (Quantity::of(from)?, Quantity::of(to)?);
    if start.unit() != end.unit() {
        let what = format!("`from` is {}, `to` is {}", start.unit(), end.unit());
        return Err(bad(to.span, what));
    }
    let (a, b) = (start.number(), end.number());
    if b < a {
        return Err(bad(to.span, "`to` is below `from`".into()));
    }
    let (intervals, width) = match (node.get("step"), node.get("points")) {
        (Some(step), None) => {
            let width = Quantity::of(step)?;
            if width.unit() != start.unit() || width.number() <= 0.0 {
                let what = format!("`step` must be {} above zero, like `from`", start.unit());
                return Err(bad(step.span, what));
            }
            // A hair more than the quotient: 0.3 / 0.1 is a little below 3.
            (((b - a) / width.number() * (1.0 + 1e-12)).floor(), width.number())
        }
        (None, Some(points)) => {
            let n = View::of("points", points).read::<u32>().map_err(|p| *p)?;
            if n < 2 {
                return Err(bad(points.span, "an axis from … to … has 2 points or more".into()));
            }
            (f64::from(n - 1), (b - a) / f64::from(n - 1))
        }
        _ => return Err(bad(node.span, "give either `step` or `points`".into())),
    };
    if intervals >= MAX_VALUES as f64 {
        return Err(bad(node.span, format!("this axis has more than {MAX_VALUES} values")));
    }
    let kind = match (start, end) {
        (Quantity::Int(_), Quantity::Float(_)) => end,
        _ => start,
    };
    let kind = match node.get("step").map(Quantity::of) {
        Some(Ok(step @ Quantity::Float(_))) => step,
        _ => kind,
    };
    let mut values: Vec<(String, Span)> = Vec::new();
    let mut k = 0.0;
    while k <= intervals {
        let text = kind.written(a + k * width);
        // Whole numbers are rounded, so close points can coincide.
        if values.last().is_none_or(|(last, _)| *last != text) {
            values.push((text, node.span));
        }
        k += 1.0;
    }
    Ok(values)
}

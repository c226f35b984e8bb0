//! Conditions on a change, for `compare --fail-on`: `p(99) > +5%`, `throughput < -20/s`.

use super::diag::Span;
use super::{Metric, Op, threshold};
use crate::units::{parse_duration, parse_fraction, parse_rate};

/// A condition on a change.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeLimit {
    /// As written.
    pub expr: String,
    /// What is compared.
    pub metric: Metric,
    /// How.
    pub op: Op,
    /// With what: a share of the first value, or a difference in the unit of the metric (ms, /s;
    /// shares always change by points).
    pub limit: f64,
    /// Whether `limit` is a share of the first value.
    pub relative: bool,
}

const EXAMPLES: &str = "write for example 'p(99) > +5%', 'mean > +2ms', 'throughput < -1%' or \
                        'attainment(50ms) < -0.5%'";

/// Reads a condition: a metric as thresholds name it, a comparison, a change with its sign.
///
/// # Errors
/// What is wrong, and what to write instead.
pub fn parse_change(expr: &str) -> Result<ChangeLimit, (String, String)> {
    let fail = |what: &str| Err((format!("{what}: {expr:?}"), EXAMPLES.to_owned()));
    let Some(at) = expr.find(['<', '>', '=', '!']) else {
        return fail("this condition compares nothing");
    };
    let (left, rest) = expr.split_at(at);
    let value = rest.trim_start_matches(['<', '>', '=', '!']);
    let op = match &rest[..rest.len() - value.len()] {
        "<" => Op::Below,
        "<=" => Op::AtMost,
        ">" => Op::Above,
        ">=" => Op::AtLeast,
        _ => return fail("write <, <=, > or >="),
    };
    let metric = threshold::metric(left, &|range| Span::new(0, range))
        .map_err(|p| (format!("{}: {expr:?}", p.message), p.help.join("; ")))?;
    let value = value.trim();
    let (sign, size) = match value.as_bytes().first() {
        Some(b'-') => (-1.0, value[1..].trim()),
        Some(b'+') => (1.0, value[1..].trim()),
        Some(_) => (1.0, value),
        None => return fail("the change is missing"),
    };
    let share = size.ends_with('%');
    let read = if share {
        parse_fraction_of_any_size(size)
    } else {
        match metric {
            Metric::Quantile(_) | Metric::Mean | Metric::GroupQuantile(_) | Metric::GroupMean => {
                parse_duration(size).map(|d| d.as_ms()).map_err(|e| (e.what, e.help))
            }
            Metric::Throughput => parse_rate(size).map(|r| r.per_s()).map_err(|e| (e.what, e.help)),
            Metric::Attainment(_) | Metric::Rejected | Metric::Expired => {
                return fail("a share changes by points, as in +0.5%");
            }
        }
    };
    let (what, help) = match read {
        Ok(size) => {
            let points =
                matches!(metric, Metric::Attainment(_) | Metric::Rejected | Metric::Expired);
            return Ok(ChangeLimit {
                expr: expr.trim().to_owned(),
                metric,
                op,
                limit: sign * size,
                relative: share && !points,
            });
        }
        Err(e) => e,
    };
    Err((format!("{what}: {expr:?}"), help))
}

/// Changes may exceed 100 %.
fn parse_fraction_of_any_size(text: &str) -> Result<f64, (String, String)> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent / 100.0),
        _ => match parse_fraction(text) {
            Ok(share) => Ok(share.get()),
            Err(e) => Err((e.what, e.help)),
        },
    }
}

/// A share per cent, without the noise of the multiplication.
fn percent(share: f64) -> f64 {
    (share * 1e9).round() / 1e7
}

impl ChangeLimit {
    /// The metric as results name it: `p(99)`, `attainment(50ms)`, ….
    #[must_use]
    pub fn name(&self) -> String {
        match self.metric {
            Metric::Quantile(q) => format!("p({})", percent(q)),
            Metric::GroupQuantile(q) => format!("group.p({})", percent(q)),
            Metric::GroupMean => "group.mean".into(),
            Metric::Mean => "mean".into(),
            Metric::Attainment(ms) => format!("attainment({ms}ms)"),
            Metric::Throughput => "throughput".into(),
            Metric::Rejected => "rejected".into(),
            Metric::Expired => "expired".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_read() {
        for (expr, name, op, limit, relative) in [
            ("p(99) > +5%", "p(99)", Op::Above, 0.05, true),
            ("p(99.9)>5%", "p(99.9)", Op::Above, 0.05, true),
            ("mean >= +250%", "mean", Op::AtLeast, 2.5, true),
            ("group.p(99) > +1ms", "group.p(99)", Op::Above, 1.0, false),
            ("mean > +2ms", "mean", Op::Above, 2.0, false),
            ("throughput < -20/s", "throughput", Op::Below, -20.0, false),
            ("throughput < - 1%", "throughput", Op::Below, -0.01, true),
            ("attainment(50ms) < -0.5%", "attainment(50ms)", Op::Below, -0.005, false),
        ] {
            let read = parse_change(expr).unwrap();
            assert_eq!((read.name().as_str(), read.op, read.relative), (name, op, relative));
            assert!((read.limit - limit).abs() < 1e-12, "{expr}");
        }
    }

    #[test]
    fn what_is_no_condition_says_why() {
        for (expr, what) in [
            ("p(99)", "compares nothing"),
            ("p(99) > ", "missing"),
            ("p(99) > +5", "unit"),
            ("p99 > +5%", "p99"),
            ("p(99) != 5%", "<, <=, > or >="),
            ("attainment(50ms) < -2ms", "points"),
        ] {
            let (found, help) = parse_change(expr).unwrap_err();
            assert!(found.contains(what) || help.contains(what), "{expr}: {found} / {help}");
        }
    }
}

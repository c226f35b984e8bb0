//! Threshold expressions: `p(99) < 50ms`, `group.p(99) < 80ms`, `attainment(50ms) >= 99%`,
//! `throughput >= 880/s`.

use super::diag::{BAD_THRESHOLD, NOT_YET, Problem, Span};
use super::known;
use super::{Metric, Op};
use crate::units::{UnitError, parse_duration, parse_fraction, parse_rate};
use std::ops::Range;

const EXAMPLES: &str = "write for example \"p(99) < 50ms\", \"mean < 20ms\", \
    \"attainment(50ms) >= 99%\", \"throughput >= 880/s\", \"rejected <= 0.1%\" or \
    \"expired <= 1%\"";

/// What an expression compares, how, and with what (ms, a share, or a rate per second).
///
/// `at` gives the place of a stretch of the expression.
///
/// # Errors
/// The expression is not a threshold; the place is the part that is wrong.
pub(crate) fn parse(
    expr: &str,
    at: &dyn Fn(Range<usize>) -> Span,
) -> Result<(Metric, Op, f64), Problem> {
    let whole = 0..expr.len();
    let Some(found) = expr.find(['<', '>', '=', '!']) else {
        return Err(Problem::new(BAD_THRESHOLD, at(whole), "this threshold compares nothing")
            .help(EXAMPLES));
    };
    let (left, rest) = expr.split_at(found);
    let symbols = rest.len() - rest.trim_start_matches(['<', '>', '=', '!']).len();
    let (symbol, right) = rest.split_at(symbols);
    let op = match symbol {
        "<" => Op::Below,
        "<=" => Op::AtMost,
        ">" => Op::Above,
        ">=" => Op::AtLeast,
        _ => {
            return Err(Problem::new(
                BAD_THRESHOLD,
                at(found..found + symbols),
                format!("`{symbol}` is not a comparison of thresholds"),
            )
            .help("write <, <=, > or >="));
        }
    };
    let metric = metric(left, at)?;
    let start = found + symbols;
    let limit = right.trim();
    let begin = start + (right.len() - right.trim_start().len());
    let range = begin..begin + limit.len();
    if limit.is_empty() {
        return Err(Problem::new(BAD_THRESHOLD, at(whole), "the limit is missing").help(EXAMPLES));
    }
    let limit = match metric {
        Metric::Quantile(_) | Metric::Mean | Metric::GroupQuantile(_) | Metric::GroupMean => {
            parse_duration(limit).map(|d| d.as_ms())
        }
        Metric::Throughput => parse_rate(limit).map(|r| r.per_s()),
        Metric::Attainment(_) | Metric::Rejected | Metric::Expired => {
            parse_fraction(limit).map(|f| f.get())
        }
    };
    let limit = limit.map_err(|e| unit(&e, at(range)))?;
    Ok((metric, op, limit))
}

fn unit(e: &UnitError, span: Span) -> Problem {
    Problem::new(BAD_THRESHOLD, span, e.what.clone()).help(e.help.clone())
}

pub(super) fn metric(left: &str, at: &dyn Fn(Range<usize>) -> Span) -> Result<Metric, Problem> {
    let start = left.len() - left.trim_start().len();
    let text = left.trim();
    let here = at(start..start + text.len());
    let (name, argument) = match text.split_once('(') {
        Some((name, rest)) => (name.trim(), Some(rest.trim_end().trim_end_matches(')').trim())),
        None => (text, None),
    };
    if text.contains('(') != text.ends_with(')') {
        return Err(Problem::new(BAD_THRESHOLD, here, "a bracket is missing").help(EXAMPLES));
    }
    let inner = text.find('(').map_or(here, |i| at(start + i + 1..start + text.len() - 1));
    later(name, here)?;
    match (name, argument) {
        ("p", Some(q)) => quantile(q, inner).map(Metric::Quantile),
        ("group.p", Some(q)) => quantile(q, inner).map(Metric::GroupQuantile),
        ("group.mean", None) => Ok(Metric::GroupMean),
        ("attainment", Some(time)) => parse_duration(time)
            .map(|time| Metric::Attainment(time.as_ms()))
            .map_err(|e| unit(&e, inner)),
        ("mean", None) => Ok(Metric::Mean),
        ("throughput", None) => Ok(Metric::Throughput),
        ("rejected", None) => Ok(Metric::Rejected),
        ("expired", None) => Ok(Metric::Expired),
        ("p" | "group.p", None) => {
            let what = format!("`{name}` needs a percentage");
            Err(Problem::new(BAD_THRESHOLD, here, what).help(format!("write {name}(99)")))
        }
        ("attainment", None) => {
            Err(Problem::new(BAD_THRESHOLD, here, "`attainment` needs the time to stay within")
                .help("write attainment(50ms)"))
        }
        _ => Err(unknown(name, argument, here)),
    }
}

/// Metrics that later versions know.
fn later(name: &str, here: Span) -> Result<(), Problem> {
    let family = name.split_once('.').map(|(family, _)| family);
    let named = match (name, family) {
        ("goodput", _) => "goodput".to_owned(),
        (_, Some(f @ ("ttft" | "tpot" | "itl" | "e2e"))) => format!("{f}."),
        _ => return Ok(()),
    };
    Err(Problem::new(
        NOT_YET,
        here,
        format!("`{named}` thresholds are not known to this version yet"),
    )
    .help(EXAMPLES))
}

/// A percentage as a share.
fn quantile(text: &str, span: Span) -> Result<f64, Problem> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(q) if q > 0.0 && q < 100.0 => Ok(share(q)),
        _ => Err(Problem::new(
            BAD_THRESHOLD,
            span,
            format!("a percentage lies above 0 and below 100, not `{text}`"),
        )
        .help("write p(99) for the 99th percentile, p(99.9) for the next nine")),
    }
}

/// `q` per cent, without the noise of the division: 99.9 becomes 0.999.
fn share(q: f64) -> f64 {
    (q * 1e7).round() / 1e9
}

fn unknown(name: &str, argument: Option<&str>, here: Span) -> Problem {
    const NAMES: [&str; 8] = [
        "p(99)",
        "mean",
        "attainment(50ms)",
        "throughput",
        "rejected",
        "expired",
        "group.p(99)",
        "group.mean",
    ];
    let bare = NAMES.map(|name| name.split('(').next().unwrap_or(name));
    if let (true, Some(_)) = (bare.contains(&name), argument) {
        return Problem::new(BAD_THRESHOLD, here, format!("`{name}` takes no brackets"))
            .help(format!("write {name}"));
    }
    let digits = name.trim_start_matches(['p', 'P']);
    let spelt = match name {
        "avg" | "average" => Some("mean".to_owned()),
        "med" | "median" => Some("p(50)".to_owned()),
        "rate" | "rps" | "qps" => Some("throughput".to_owned()),
        "latency" => Some("p(99)".to_owned()),
        _ if digits.len() < name.len() && digits.parse::<f64>().is_ok() => {
            let point = if digits.len() > 2 && !digits.contains('.') { "." } else { "" };
            let (nines, rest) = digits.split_at(digits.len().min(2));
            Some(format!("p({nines}{point}{rest})"))
        }
        _ => known::closest(name, &bare).map(str::to_owned),
    };
    let mut problem =
        Problem::new(BAD_THRESHOLD, here, format!("nothing is measured by the name `{name}`"));
    if let Some(near) = spelt {
        problem = problem.label(format!("did you mean `{near}`?"));
    }
    problem.help(format!("thresholds compare {}", known::listed(&NAMES, "or")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(expr: &str) -> Result<(Metric, Op, f64), Problem> {
        parse(expr, &|range| Span::new(0, range))
    }

    #[test]
    fn thresholds_read() {
        for (expr, wanted) in [
            ("p(99) < 50ms", (Metric::Quantile(0.99), Op::Below, 50.0)),
            ("p(99.9)<=1s", (Metric::Quantile(0.999), Op::AtMost, 1000.0)),
            ("mean < 20ms", (Metric::Mean, Op::Below, 20.0)),
            ("attainment(50ms) >= 99%", (Metric::Attainment(50.0), Op::AtLeast, 0.99)),
            (" throughput > 880/s ", (Metric::Throughput, Op::Above, 880.0)),
            ("rejected <= 0.1%", (Metric::Rejected, Op::AtMost, 0.001)),
            ("expired <= 1%", (Metric::Expired, Op::AtMost, 0.01)),
            ("group.p(99) < 30ms", (Metric::GroupQuantile(0.99), Op::Below, 30.0)),
            ("group.mean <= 12ms", (Metric::GroupMean, Op::AtMost, 12.0)),
        ] {
            assert_eq!(read(expr), Ok(wanted), "{expr}");
        }
    }

    #[test]
    fn nonsense_is_refused_without_panic() {
        for expr in [
            "",
            "<",
            "p(99)",
            "p(99 < 5ms",
            "p99) < 5ms",
            "p() < 5ms",
            "p(0) < 5ms",
            "p(100) < 5ms",
            "p(nan) < 5ms",
            "mean(3) < 5ms",
            "mean == 5ms",
            "mean < 5",
            "mean <",
            "goodput(x) > 1%",
            "ttft.p(99) < 1s",
            "é < 5ms",
            "p(é) < 5ms",
            "(((",
            ")(",
            ")( < 5ms",
            "attainment < 5%",
            "group < 5ms",
            "group.p < 5ms",
            "group.p(100) < 5ms",
            "group.mean(3) < 5ms",
            "group.throughput > 5/s",
            "group.mean < 5%",
        ] {
            assert!(read(expr).is_err(), "{expr}");
        }
    }
}

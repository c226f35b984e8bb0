//! What serde reports, turned into problems with a place, a subject and advice.

use super::de::View;
use super::diag::{
    BAD_QUANTITY, MISSING_KEY, MISSING_KIND, NOT_YET, Problem, Span, UNKNOWN_KEY, UNKNOWN_KIND,
    WRONG_TYPE,
};
use super::known;
use super::tree::Entry;
use crate::units::HELP_MARK;
use serde::de::{Error, Expected, Unexpected};
use std::fmt;

/// An error on its way through serde.
#[derive(Debug)]
pub(crate) struct Fault(Box<Inner>);

#[derive(Debug)]
struct Inner {
    problem: Problem,
    lacks: Lacks,
}

/// What the message still needs from the place it is raised at.
#[derive(Debug)]
enum Lacks {
    Nothing,
    /// The key: "`key` must be …".
    Subject,
    /// The key, set apart: "`key`: `5` needs a unit …".
    Prefix,
    /// The table, for a key that is not one of these.
    Keys(String, &'static [&'static str]),
    /// The table, for a key it must have.
    Missing(&'static str),
}

impl Fault {
    fn new(problem: Problem, lacks: Lacks) -> Self {
        Self(Box::new(Inner { problem, lacks }))
    }

    /// The finished problem.
    pub(crate) fn into_problem(self) -> Box<Problem> {
        Box::new(self.0.problem)
    }

    /// Gives the error the place and subject of `view` where it has none yet.
    pub(crate) fn settle(mut self, view: &View<'_>) -> Self {
        let inner = &mut *self.0;
        if !inner.problem.span.is_some() {
            inner.problem.span = view.node.span;
        }
        match std::mem::replace(&mut inner.lacks, Lacks::Nothing) {
            Lacks::Nothing => {}
            Lacks::Subject => {
                let subject = view.key.map_or("this".into(), |k| format!("`{k}`"));
                inner.problem.message = format!("{subject} {}", inner.problem.message);
            }
            Lacks::Prefix => {
                if let Some(key) = view.key {
                    inner.problem.message = format!("`{key}`: {}", inner.problem.message);
                }
            }
            Lacks::Keys(field, expected) => {
                return Self::unknown_key(view, &field, expected, view.node.span);
            }
            Lacks::Missing(field) => {
                inner.problem.message = match (view.kind, view.key) {
                    (Some(kind), _) => format!("`{kind}` needs `{field}`"),
                    (None, Some(key)) => format!("`{key}` needs `{field}`"),
                    (None, None) => format!("`{field}` is missing"),
                };
                inner.problem.label = Some(format!("no `{field}` here"));
            }
        }
        self
    }

    /// Gives the error the place of a key.
    pub(crate) fn at_key(mut self, view: &View<'_>, entry: &Entry) -> Self {
        if let Lacks::Keys(field, expected) = &self.0.lacks {
            return Self::unknown_key(view, field, expected, entry.key_span);
        }
        if !self.0.problem.span.is_some() {
            self.0.problem.span = entry.key_span;
        }
        self
    }

    fn unknown_key(view: &View<'_>, key: &str, expected: &[&str], span: Span) -> Self {
        let mut valid: Vec<&str> = expected.to_vec();
        valid.extend(view.skip);
        Self::new(
            unknown_key(view.table, view.kind.or(view.key), key, &valid, view.node, span),
            Lacks::Nothing,
        )
    }

    /// A table that needs a `kind` has none.
    pub(crate) fn missing_kind(family: &str, kinds: &[&str]) -> Self {
        let what = match family {
            "Process" => "these arrivals need",
            "Policy" => "this policy needs",
            "Cost" => "a cost needs",
            _ => "this table needs",
        };
        let problem = Problem::new(MISSING_KIND, Span::NONE, format!("{what} a `kind`"))
            .label("no `kind` here")
            .help(format!("one of {}", known::listed(kinds, "or")));
        Self::new(problem, Lacks::Nothing)
    }

    /// A kind or choice that is not one of `variants`.
    pub(crate) fn unknown_kind(
        family: &str,
        written: &str,
        variants: &[&str],
        span: Span,
        key: Option<&str>,
    ) -> Self {
        let (plural, later) = known::later_kinds(family);
        if later.contains(&written) {
            let problem = Problem::new(
                NOT_YET,
                span,
                format!("`{written}` {plural} are not known to this version yet"),
            )
            .help(format!("this version knows {}", known::listed(variants, "and")));
            return Self::new(problem, Lacks::Nothing);
        }
        let what = match (family, key) {
            ("Process", _) => "no arrival process is called".to_owned(),
            ("Policy", _) => "no policy is called".to_owned(),
            ("Cost", _) => "no cost model is called".to_owned(),
            (_, Some(key)) => format!("no `{key}` is called"),
            (_, None) => "no choice is called".to_owned(),
        };
        let mut problem = Problem::new(UNKNOWN_KIND, span, format!("{what} `{written}`"));
        if let Some(near) = known::closest(written, variants) {
            problem = problem.label(format!("did you mean `{near}`?"));
        }
        problem = problem.help(format!("write {}", known::listed(variants, "or")));
        Self::new(problem, Lacks::Nothing)
    }

    /// A list with more items than its type takes.
    pub(crate) fn too_many(len: usize, wanted: usize) -> Self {
        let message = format!("must be a list of {wanted}, it has {len}");
        Self::new(Problem::new(WRONG_TYPE, Span::NONE, message), Lacks::Subject)
    }
}

/// A key that a table does not have: still to come, a misspelling, or neither.
pub(crate) fn unknown_key(
    table: known::Table,
    owner: Option<&str>,
    key: &str,
    valid: &[&str],
    node: &super::tree::Node,
    span: Span,
) -> Problem {
    if known::later_keys(table).contains(&key) {
        return Problem::new(NOT_YET, span, format!("`{key}` is not known to this version yet"))
            .help("leave it out, or use a version that has it");
    }
    let whose = owner.map(|owner| format!(" of `{owner}`")).unwrap_or_default();
    let mut problem = Problem::new(UNKNOWN_KEY, span, format!("unknown key `{key}`{whose}"));
    let free: Vec<&str> = valid.iter().copied().filter(|v| node.get(v).is_none()).collect();
    // A key that is given already is the second-best guess.
    if let Some(near) = known::closest(key, &free).or_else(|| known::closest(key, valid)) {
        problem = problem.label(format!("did you mean `{near}`?"));
    }
    if valid.is_empty() {
        return problem.help("it has no keys");
    }
    problem.help(format!("the keys are {}", known::listed(valid, "and")))
}

/// What serde expects, in words.
fn expected_words(expected: &dyn Expected) -> String {
    let text = expected.to_string();
    match text.as_str() {
        "u8" | "u16" | "u64" | "usize" => "a whole number, 0 or more".into(),
        "u32" | "i8" | "i16" | "i32" | "i64" => "a whole number".into(),
        "f32" | "f64" => "a number".into(),
        "a boolean" => "`true` or `false`".into(),
        "a string" => "a text in quotes".into(),
        "a sequence" => "a list".into(),
        "a map" => "a table".into(),
        other if other.starts_with("struct ") => "a table".into(),
        other => other
            .strip_prefix("an array of length ")
            .map_or_else(|| other.to_owned(), |n| format!("a list of {n}")),
    }
}

fn found_words(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(b) => format!("`{b}`"),
        Unexpected::Unsigned(n) => format!("`{n}`"),
        Unexpected::Signed(n) => format!("`{n}`"),
        Unexpected::Float(x) => format!("`{x:?}`"),
        Unexpected::Str(text) => format!("the text {text:?}"),
        Unexpected::Unit | Unexpected::Option => "nothing".into(),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a table".into(),
        other => other.to_string(),
    }
}

/// Advice for the usual slips: a number in quotes, a whole number with a point.
fn type_help(found: Unexpected<'_>, expected: &str) -> Option<String> {
    match found {
        Unexpected::Str(text) if expected.contains("number") => {
            let number: f64 = text.trim().parse().ok()?;
            number.is_finite().then(|| format!("write {} without quotes", text.trim()))
        }
        Unexpected::Float(x) if expected.contains("whole number") && x.fract() == 0.0 => {
            Some(format!("write {x}"))
        }
        Unexpected::Signed(_) | Unexpected::Unsigned(_) | Unexpected::Float(_)
            if expected.starts_with("a text") =>
        {
            Some("put it in quotes".into())
        }
        _ => None,
    }
}

impl Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        match message.split_once(HELP_MARK) {
            Some((what, help)) => {
                Self::new(Problem::new(BAD_QUANTITY, Span::NONE, what).help(help), Lacks::Prefix)
            }
            None => Self::new(Problem::new(WRONG_TYPE, Span::NONE, message), Lacks::Prefix),
        }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let number = matches!(found, Unexpected::Signed(_) | Unexpected::Unsigned(_));
        let wanted = match expected.to_string().as_str() {
            "u32" if number => "a whole number from 0 to 4,294,967,295".into(),
            _ => expected_words(expected),
        };
        let message = match found {
            Unexpected::Unit | Unexpected::Option => {
                format!("has no value, it must be {wanted}")
            }
            _ => format!("must be {wanted}, not {}", found_words(found)),
        };
        let mut problem = Problem::new(WRONG_TYPE, Span::NONE, message);
        problem.help.extend(type_help(found, &wanted));
        Self::new(problem, Lacks::Subject)
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(len: usize, expected: &dyn Expected) -> Self {
        let message = format!("must be {}, it has {len}", expected_words(expected));
        Self::new(Problem::new(WRONG_TYPE, Span::NONE, message), Lacks::Subject)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::unknown_kind("", variant, expected, Span::NONE, None)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(
            Problem::new(UNKNOWN_KEY, Span::NONE, format!("unknown key `{field}`")),
            Lacks::Keys(field.to_owned(), expected),
        )
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(
            Problem::new(MISSING_KEY, Span::NONE, format!("`{field}` is missing")),
            Lacks::Missing(field),
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.problem.message)
    }
}

impl std::error::Error for Fault {}

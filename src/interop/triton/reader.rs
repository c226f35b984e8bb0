//! Typed access to the fields of a message, collecting what is wrong and what is not used.

use super::text::{Kind, Message, Value, place};
use super::{Ignored, ParseProblem};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// What becomes of a field.
#[derive(Clone, Copy)]
pub(super) enum Role {
    /// It shapes the scenario.
    Used,
    /// It does not, for this reason.
    Ignored(&'static str),
}

/// The fields of a kind of message.
pub(super) type Fields = &'static [(&'static str, Role)];

/// Reads messages of one text.
pub(super) struct Reader<'a> {
    text: &'a str,
    pub(super) problems: Vec<ParseProblem>,
    pub(super) ignored: Vec<Ignored>,
    listed: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, problems: Vec::new(), ignored: Vec::new(), listed: BTreeSet::new() }
    }

    pub(super) fn problem(&mut self, at: usize, message: impl Into<String>, help: &str) {
        self.problems.push(ParseProblem::at(self.text, at, message, help));
    }

    /// Lists the fields of a message that do not shape the scenario, each path once. A misspelt
    /// field that would is a problem: Triton refuses unknown fields too.
    pub(super) fn survey(&mut self, message: &Message, prefix: &str, fields: Fields) {
        for field in &message.fields {
            let known = fields.iter().find(|(name, _)| *name == field.name);
            let why = match known {
                Some((_, Role::Used)) => continue,
                Some((_, Role::Ignored(why))) => *why,
                None => {
                    if let Some(near) = nearest(&field.name, fields) {
                        let message = format!("unknown field `{}`", shown(&field.name));
                        let help = format!("did you mean `{near}`?");
                        self.problem(field.span.start, message, &help);
                        continue;
                    }
                    "unknown to this importer"
                }
            };
            let path = format!("{prefix}{}", shown(&field.name));
            if self.listed.insert(path.clone()) {
                let (line, column) = place(self.text, field.span.start);
                self.ignored.push(Ignored { path, line, column, why });
            }
        }
    }

    /// The only value of a field that may stand once.
    pub(super) fn one<'m>(&mut self, message: &'m Message, name: &str) -> Option<&'m Value> {
        let mut fields = message.fields.iter().filter(|field| field.name == name);
        let first = fields.next()?;
        for again in fields {
            self.problem(
                again.span.start,
                format!("`{name}` is set twice"),
                "keep one of them: Triton does not load such a file",
            );
        }
        if let Kind::List(_) = first.value.kind {
            let at = first.value.span.start;
            self.problem(at, format!("`{name}` takes one value, not a list"), "write one value");
            return None;
        }
        Some(&first.value)
    }

    /// A whole number in a range.
    pub(super) fn integer(
        &mut self,
        value: &Value,
        name: &str,
        range: RangeInclusive<i128>,
    ) -> Option<i128> {
        let at = value.span.start;
        match value.kind {
            Kind::Integer(v) if range.contains(&v) => Some(v),
            Kind::Integer(v) => {
                let message = format!("`{name}` is {v}");
                let help = format!("write a number from {} to {}", range.start(), range.end());
                self.problem(at, message, &help);
                None
            }
            _ => {
                let message = format!("`{name}` is {}, not a whole number", describe(&value.kind));
                self.problem(at, message, "write digits without quotes");
                None
            }
        }
    }

    /// A field that holds a whole number in a range.
    pub(super) fn number(
        &mut self,
        message: &Message,
        name: &str,
        range: RangeInclusive<i128>,
    ) -> Option<i128> {
        let value = self.one(message, name)?;
        self.integer(value, name, range)
    }

    /// A field that counts, 0 when absent.
    pub(super) fn count<T: TryFrom<i128> + Default>(
        &mut self,
        message: &Message,
        name: &str,
        most: i128,
    ) -> T {
        let number = self.number(message, name, 0..=most);
        number.and_then(|v| T::try_from(v).ok()).unwrap_or_default()
    }

    /// A field that is true or false, false when absent.
    pub(super) fn flag(&mut self, message: &Message, name: &str) -> bool {
        let Some(value) = self.one(message, name) else { return false };
        match &value.kind {
            Kind::Word(word) if matches!(word.as_str(), "true" | "True" | "t") => true,
            Kind::Word(word) if matches!(word.as_str(), "false" | "False" | "f") => false,
            Kind::Integer(1) => true,
            Kind::Integer(0) => false,
            other => {
                let message = format!("`{name}` is {}, not true or false", describe(other));
                self.problem(value.span.start, message, "write true or false");
                false
            }
        }
    }

    /// One of the enumerators of a field, by name or number; `None` when absent.
    pub(super) fn choice(
        &mut self,
        message: &Message,
        name: &str,
        names: &[&'static str],
    ) -> Option<&'static str> {
        let value = self.one(message, name)?;
        let found = match &value.kind {
            Kind::Word(word) => names.iter().find(|known| *known == word),
            Kind::Integer(v) => usize::try_from(*v).ok().and_then(|index| names.get(index)),
            _ => None,
        };
        if found.is_none() {
            let message = format!("`{name}` is {}", describe(&value.kind));
            self.problem(value.span.start, message, &format!("write one of {}", names.join(", ")));
        }
        found.copied()
    }

    /// A nested message that may stand once.
    pub(super) fn nested<'m>(&mut self, message: &'m Message, name: &str) -> Option<&'m Message> {
        let value = self.one(message, name)?;
        self.as_message(value, name)
    }

    /// A value as a message.
    pub(super) fn as_message<'m>(&mut self, value: &'m Value, name: &str) -> Option<&'m Message> {
        if let Kind::Message(message) = &value.kind {
            return Some(message);
        }
        let what = format!("`{name}` is {}, not a message", describe(&value.kind));
        self.problem(value.span.start, what, &format!("write {name} {{ … }}"));
        None
    }
}

/// A name of the file for a message.
pub(super) fn shown(name: &str) -> String {
    let mut short: String = name.chars().take(60).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    short
}

fn describe(kind: &Kind) -> String {
    match kind {
        Kind::Integer(v) => format!("{v}"),
        Kind::Float(v) => format!("{v:?}"),
        Kind::Text(_) => "a string".to_owned(),
        Kind::Word(word) => format!("`{}`", shown(word)),
        Kind::Message(_) => "a message".to_owned(),
        Kind::List(_) => "a list".to_owned(),
    }
}

/// A used field that this name is probably a misspelling of.
fn nearest(name: &str, fields: Fields) -> Option<&'static str> {
    let likeness = |known: &str| strsim::normalized_damerau_levenshtein(known, name);
    fields
        .iter()
        .max_by(|(a, _), (b, _)| likeness(a).total_cmp(&likeness(b)))
        .filter(|(known, role)| matches!(role, Role::Used) && likeness(known) > 0.75)
        .map(|(known, _)| *known)
}

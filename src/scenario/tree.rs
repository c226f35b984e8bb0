//! One tree for TOML, YAML and JSON, in which every value and key knows its place.

use super::diag::{DUPLICATE_KEY, Problem, SYNTAX, Span};
use super::source::Format;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Deepest nesting of tables and lists.
pub(crate) const MAX_DEPTH: usize = 32;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) span: Span,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// Between `i64::MIN` and `u64::MAX`.
    Int(i128),
    /// Finite.
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// Keys are distinct, in the order of the text.
    Table(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

impl Node {
    /// A table without keys.
    pub(crate) fn table(span: Span) -> Self {
        Self { value: Value::Table(Vec::new()), span }
    }

    /// The keys of a table; nothing has none.
    pub(crate) fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Table(entries) => Some(entries),
            Value::Null => Some(&[]),
            _ => None,
        }
    }

    /// The entry of `key`, where this is a table that has it.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries()?.iter().find(|e| e.key == key)
    }

    /// The value of `key`, where this is a table that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|e| &e.node)
    }

    /// Takes `key` out of a table.
    pub(crate) fn remove(&mut self, key: &str) {
        if let Value::Table(entries) = &mut self.value {
            entries.retain(|e| e.key != key);
        }
    }

    /// The text of `key`, where this is a table that has it.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// One or several tables: `[server]` and `[[server]]` are both accepted.
    pub(crate) fn one_or_many(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            Value::Null => &[],
            _ => std::slice::from_ref(self),
        }
    }

    /// What this is, in words.
    pub(crate) fn what(&self) -> String {
        match &self.value {
            Value::Null => "nothing".into(),
            Value::Bool(b) => format!("`{b}`"),
            Value::Int(n) => format!("`{n}`"),
            Value::Float(x) => format!("`{x}`"),
            Value::Text(text) => format!("the text {text:?}"),
            Value::List(_) => "a list".into(),
            Value::Table(_) => "a table".into(),
        }
    }

    /// A scalar as it would be written after `--set path=`.
    pub(crate) fn written(&self) -> Option<String> {
        match &self.value {
            Value::Bool(b) => Some(b.to_string()),
            Value::Int(n) => Some(n.to_string()),
            Value::Float(x) => Some(format!("{x:?}")),
            Value::Text(text) => Some(text.clone()),
            Value::Null | Value::List(_) | Value::Table(_) => None,
        }
    }
}

/// Parses a whole text, number `source` of the reading.
///
/// # Errors
/// The first place where it is not valid.
pub(crate) fn parse(text: &str, format: Format, source: u32) -> Result<Node, Problem> {
    let root = match format {
        Format::Toml => parse_toml(text, source),
        Format::Yaml => super::yaml::parse(text, source),
        Format::Json => super::json::parse(text, source),
    }?;
    if root.entries().is_none() {
        return Err(Problem::new(
            SYNTAX,
            root.span,
            format!("a table of keys is needed at the top, not {}", root.what()),
        ));
    }
    Ok(root)
}

fn parse_toml(text: &str, source: u32) -> Result<Node, Problem> {
    let table = DeTable::parse(text).map_err(|e| toml_problem(&e, text, source))?;
    let root = Spanned::new(0..text.len().min(1), DeValue::Table(table.into_inner()));
    from_toml(&root, source, 0)
}

fn toml_problem(e: &toml::de::Error, text: &str, source: u32) -> Problem {
    let end = text.trim_end().len();
    let range = e.span().unwrap_or(end..end);
    let message = e.message().trim();
    if let Some(rest) = message.strip_prefix("duplicate key") {
        let key = text.get(range.clone()).unwrap_or(rest).trim_matches('"');
        return Problem::new(
            DUPLICATE_KEY,
            Span::new(source, range.clone()),
            format!("`{key}` is given twice"),
        )
        .help("keep one of the two");
    }
    let (what, help) = explain_toml(message, text, &range);
    let mut problem =
        Problem::new(SYNTAX, Span::new(source, range), format!("this is not valid TOML: {what}"));
    problem.help.extend(help);
    problem
}

/// TOML's own words, and advice where a unit was written without quotes.
fn explain_toml(message: &str, text: &str, range: &Range<usize>) -> (String, Option<String>) {
    let line_start = text.get(..range.start).and_then(|t| t.rfind('\n')).map_or(0, |i| i + 1);
    let line = text.get(line_start..).and_then(|t| t.lines().next()).unwrap_or("");
    let value = line.split_once('=').map(|(_, v)| v.trim()).unwrap_or("");
    let bare: &str = value.split('#').next().unwrap_or("").trim();
    let quantity = bare.starts_with(|c: char| c.is_ascii_digit())
        && bare.ends_with(|c: char| c.is_ascii_alphabetic() || c == '%');
    let mut what: String = message.lines().next().unwrap_or(message).to_owned();
    if let Some(expected) = message.lines().find_map(|l| l.strip_prefix("expected ")) {
        what = format!("{what}, expected {expected}");
    }
    let help = quantity.then(|| format!("quantities are written in quotes: \"{bare}\""));
    (what, help)
}

fn from_toml(value: &Spanned<DeValue<'_>>, source: u32, depth: usize) -> Result<Node, Problem> {
    let span = Span::new(source, value.span());
    if depth > MAX_DEPTH {
        return Err(too_deep(span));
    }
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.clone().into_owned()),
        DeValue::Integer(n) => i128::from_str_radix(n.as_str(), n.radix())
            .ok()
            .filter(|n| fits(*n))
            .map(Value::Int)
            .ok_or_else(|| too_large(span))?,
        DeValue::Float(x) => float(x.as_str().parse().ok(), span)?,
        DeValue::Boolean(b) => Value::Bool(*b),
        DeValue::Datetime(when) => {
            return Err(Problem::new(SYNTAX, span, format!("no key takes a date, `{when}`"))
                .help("write a text in quotes"));
        }
        DeValue::Array(items) => Value::List(
            items
                .iter()
                .map(|item| from_toml(item, source, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => {
            let mut entries = Vec::with_capacity(table.len());
            for (key, value) in table {
                entries.push(Entry {
                    key: key.get_ref().clone().into_owned(),
                    key_span: Span::new(source, key.span()),
                    node: from_toml(value, source, depth + 1)?,
                });
            }
            entries.sort_by_key(|e| e.key_span.order());
            Value::Table(entries)
        }
    };
    Ok(Node { value, span })
}

/// The value of a `--set` argument: a TOML value where it is one, else the text itself.
///
/// `at` is the place of `text`.
pub(crate) fn parse_value(text: &str, at: Span) -> Node {
    let text = text.trim();
    let parsed = DeValue::parse(text).ok().and_then(|value| {
        if matches!(value.get_ref(), DeValue::Datetime(_)) {
            return None;
        }
        from_toml(&value, 0, 0).ok()
    });
    let mut node = parsed.unwrap_or_else(|| Node { value: Value::Text(text.to_owned()), span: at });
    node.place(at);
    node
}

impl Node {
    /// Moves the whole subtree to one place.
    pub(crate) fn place(&mut self, at: Span) {
        self.span = at;
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|item| item.place(at)),
            Value::Table(entries) => {
                for entry in entries {
                    entry.key_span = at;
                    entry.node.place(at);
                }
            }
            _ => {}
        }
    }
}

/// Whether an integer can be held by any key.
pub(crate) fn fits(n: i128) -> bool {
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&n)
}

/// A finite number.
pub(crate) fn float(x: Option<f64>, span: Span) -> Result<Value, Problem> {
    match x {
        Some(x) if x.is_finite() => Ok(Value::Float(x)),
        _ => Err(Problem::new(SYNTAX, span, "numbers must be finite")
            .label("infinity and not-a-number mean nothing here")),
    }
}

/// An integer that no key can hold.
pub(crate) fn too_large(span: Span) -> Problem {
    Problem::new(SYNTAX, span, "this number is too large")
        .help("the largest whole number is 18446744073709551615 (2^64 - 1)")
}

/// Nesting beyond [`MAX_DEPTH`].
pub(crate) fn too_deep(span: Span) -> Problem {
    Problem::new(SYNTAX, span, format!("tables and lists are nested deeper than {MAX_DEPTH}"))
        .help("no part of a scenario is nested more than a few levels deep")
}

/// A key that is there twice.
pub(crate) fn duplicate(key: &str, span: Span) -> Problem {
    Problem::new(DUPLICATE_KEY, span, format!("`{key}` is given twice")).help("keep one of the two")
}

//! YAML 1.2 with its core schema: `no` is a text, `1:30` too.
//!
//! Aliases are followed (within a budget), merge keys and foreign tags are refused.

use super::diag::{Problem, SYNTAX, Span};
use super::tree::{Entry, MAX_DEPTH, Node, Value, duplicate, fits, float, too_deep, too_large};
use serde_saphyr::granit_parser::{
    Event, Parser, ScalarStyle, ScanError, Span as YamlSpan, StrInput, Tag,
};
use std::collections::BTreeMap;

/// Most nodes of a text after aliases are followed.
const MAX_NODES: usize = 100_000;

/// Parses a YAML text.
///
/// # Errors
/// The first place where it is not valid.
pub(crate) fn parse(text: &str, source: u32) -> Result<Node, Problem> {
    let mut reader = Reader {
        events: Parser::new_from_str(text),
        text,
        source,
        anchors: BTreeMap::new(),
        nodes: 0,
    };
    let mut root = None;
    while let Some((event, span)) = reader.next()? {
        match event {
            Event::StreamStart | Event::StreamEnd | Event::DocumentStart(..) => {}
            Event::DocumentEnd => {}
            event if event.is_node() && root.is_some() => {
                return Err(Problem::new(
                    SYNTAX,
                    reader.span(&span),
                    "a scenario is one YAML document, a second one starts here",
                ));
            }
            event => root = Some(reader.node(event, &span, 0)?),
        }
    }
    Ok(root.unwrap_or(Node { value: Value::Null, span: Span::new(source, 0..0) }))
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    text: &'a str,
    source: u32,
    anchors: BTreeMap<usize, Node>,
    nodes: usize,
}

impl<'a> Reader<'a> {
    /// The next event; comments are left out.
    fn next(&mut self) -> Result<Option<(Event<'a>, YamlSpan)>, Problem> {
        loop {
            match self.events.next() {
                None => return Ok(None),
                Some(Err(e)) => return Err(self.syntax(&e)),
                Some(Ok((event, span))) => {
                    let structure = matches!(
                        event,
                        Event::StreamStart
                            | Event::StreamEnd
                            | Event::DocumentStart(..)
                            | Event::DocumentEnd
                            | Event::SequenceEnd
                            | Event::MappingEnd
                    );
                    if structure || event.is_node() {
                        return Ok(Some((event, span)));
                    }
                }
            }
        }
    }

    fn syntax(&self, e: &ScanError) -> Problem {
        let end = self.text.trim_end().len();
        let at = e.marker().byte_offset().unwrap_or(end).min(end);
        let span = Span::new(self.source, at..at + 1);
        let what = e.info();
        let tab = what.contains("tab");
        let problem = Problem::new(SYNTAX, span, format!("this is not valid YAML: {what}"));
        if tab { problem.help("YAML is indented with spaces") } else { problem }
    }

    fn span(&self, span: &YamlSpan) -> Span {
        let range = span.byte_range().unwrap_or(0..0);
        let text = self.text.get(range.clone()).unwrap_or("");
        // A block's span runs into the white space after it.
        let end = range.start + text.trim_end().len();
        Span::new(self.source, range.start..end.max(range.start))
    }

    /// The event after this one, inside a table or list.
    fn inside(&mut self) -> Result<(Event<'a>, YamlSpan), Problem> {
        let end = self.text.len();
        self.next()?.ok_or_else(|| {
            Problem::new(SYNTAX, Span::new(self.source, end..end), "the YAML text ends too early")
        })
    }

    fn node(&mut self, event: Event<'a>, at: &YamlSpan, depth: usize) -> Result<Node, Problem> {
        let span = self.span(at);
        if depth > MAX_DEPTH {
            return Err(too_deep(span));
        }
        self.nodes += 1;
        let (value, anchor, end) = match event {
            Event::Alias(id) => return self.alias(id, span),
            Event::Scalar(text, style, anchor, tag) => {
                (scalar(&text, style, tag.as_deref(), span)?, anchor, span)
            }
            Event::SequenceStart(_, anchor, tag) => {
                known_tag(tag.as_deref(), span)?;
                let (items, end) = self.list(depth)?;
                (Value::List(items), anchor, end)
            }
            Event::MappingStart(_, anchor, tag) => {
                known_tag(tag.as_deref(), span)?;
                let (entries, end) = self.table(depth)?;
                (Value::Table(entries), anchor, end)
            }
            _ => return Err(Problem::new(SYNTAX, span, "this is not valid YAML")),
        };
        let node = Node { value, span: span.until(end) };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn alias(&mut self, id: usize, span: Span) -> Result<Node, Problem> {
        let Some(node) = self.anchors.get(&id).cloned() else {
            return Err(Problem::new(SYNTAX, span, "an alias cannot be part of its own anchor"));
        };
        self.nodes += count(&node);
        if self.nodes > MAX_NODES {
            return Err(Problem::new(SYNTAX, span, "the aliases of this YAML text explode"));
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<(Vec<Node>, Span), Problem> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.inside()?;
            if event == Event::SequenceEnd {
                return Ok((items, self.span(&span)));
            }
            items.push(self.node(event, &span, depth + 1)?);
        }
    }

    fn table(&mut self, depth: usize) -> Result<(Vec<Entry>, Span), Problem> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let (event, span) = self.inside()?;
            let key_span = self.span(&span);
            let key = match event {
                Event::MappingEnd => return Ok((entries, key_span)),
                Event::Scalar(text, _, _, None) => text.into_owned(),
                _ => return Err(Problem::new(SYNTAX, key_span, "a key is a plain text")),
            };
            if key == "<<" {
                return Err(Problem::new(SYNTAX, key_span, "merge keys are not part of YAML 1.2")
                    .help("write the keys out, or give the whole table with an alias"));
            }
            if entries.iter().any(|e| e.key == key) {
                return Err(duplicate(&key, key_span));
            }
            let (event, span) = self.inside()?;
            let mut node = self.node(event, &span, depth + 1)?;
            if node.span.len() == 0 {
                // A key without a value: its own place is the best there is.
                node.span = key_span;
            }
            entries.push(Entry { key, key_span, node });
        }
    }
}

fn count(node: &Node) -> usize {
    1 + match &node.value {
        Value::List(items) => items.iter().map(count).sum(),
        Value::Table(entries) => entries.iter().map(|e| count(&e.node)).sum(),
        _ => 0,
    }
}

fn known_tag(tag: Option<&Tag>, span: Span) -> Result<Option<&str>, Problem> {
    match tag {
        None => Ok(None),
        Some(tag) if tag.handle() == "tag:yaml.org,2002:" => Ok(Some(tag.suffix())),
        Some(tag) => Err(Problem::new(
            SYNTAX,
            span,
            format!("the tag `{}{}` means nothing here", tag.handle(), tag.suffix()),
        )
        .help("leave the tag out")),
    }
}

/// A scalar by the core schema; quoted and block scalars are texts.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Result<Value, Problem> {
    let tag = known_tag(tag, span)?;
    if tag == Some("str") || (tag.is_none() && style != ScalarStyle::Plain) {
        return Ok(Value::Text(text.to_owned()));
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        ".nan" | ".NaN" | ".NAN" => return float(None, span),
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return float(None, span);
    }
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let whole = if let Some(hex) = text.strip_prefix("0x") {
        Some(i128::from_str_radix(hex, 16))
    } else if let Some(octal) = text.strip_prefix("0o") {
        Some(i128::from_str_radix(octal, 8))
    } else {
        digits(unsigned).then(|| text.parse())
    };
    if let Some(n) = whole {
        return match n {
            Ok(n) if fits(n) => Ok(Value::Int(n)),
            Ok(_) => Err(too_large(span)),
            Err(_) if digits(unsigned) => Err(too_large(span)),
            Err(_) => Ok(Value::Text(text.to_owned())),
        };
    }
    let number = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    match text.parse::<f64>() {
        Ok(x) if number => float(Some(x), span),
        _ => Ok(Value::Text(text.to_owned())),
    }
}

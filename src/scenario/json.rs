//! JSON: `serde_json` judges the syntax, a walk over the text then finds the places.

use super::diag::{Problem, SYNTAX, Span};
use super::tree::{Entry, MAX_DEPTH, Node, Value, duplicate, fits, float, too_deep, too_large};
use serde::de::IgnoredAny;

/// Parses a JSON text.
///
/// # Errors
/// The first place where it is not valid, or a key given twice.
pub(crate) fn parse(text: &str, source: u32) -> Result<Node, Problem> {
    if let Err(e) = serde_json::from_str::<IgnoredAny>(text) {
        return Err(syntax(&e, text, source));
    }
    let mut walk = Walk { text, at: 0, source };
    walk.value(0)
}

fn syntax(e: &serde_json::Error, text: &str, source: u32) -> Problem {
    let line_start: usize =
        text.split_inclusive('\n').take(e.line().saturating_sub(1)).map(str::len).sum();
    let at = (line_start + e.column().saturating_sub(1)).min(text.trim_end().len());
    let message = e.to_string();
    let what = message.split(" at line ").next().unwrap_or(&message);
    Problem::new(SYNTAX, Span::new(source, at..at + 1), format!("this is not valid JSON: {what}"))
}

/// A position in a text that is known to be JSON.
struct Walk<'a> {
    text: &'a str,
    at: usize,
    source: u32,
}

impl Walk<'_> {
    fn byte(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn blank(&mut self) {
        while matches!(self.byte(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    /// Whether the next byte of substance is `byte`; if so, steps over it.
    fn eat(&mut self, byte: u8) -> bool {
        self.blank();
        let here = self.byte() == byte;
        self.at += usize::from(here);
        here
    }

    fn span(&self, start: usize) -> Span {
        Span::new(self.source, start..self.at)
    }

    fn value(&mut self, depth: usize) -> Result<Node, Problem> {
        self.blank();
        let start = self.at;
        if depth > MAX_DEPTH {
            return Err(too_deep(self.span(start)));
        }
        let value = match self.byte() {
            b'{' => self.table(depth)?,
            b'[' => self.list(depth)?,
            b'"' => Value::Text(self.string()),
            _ => self.word(start)?,
        };
        Ok(Node { value, span: self.span(start) })
    }

    fn table(&mut self, depth: usize) -> Result<Value, Problem> {
        self.at += 1;
        let mut entries: Vec<Entry> = Vec::new();
        while !self.eat(b'}') {
            self.eat(b',');
            self.blank();
            let start = self.at;
            let key = self.string();
            let key_span = self.span(start);
            self.eat(b':');
            let node = self.value(depth + 1)?;
            if entries.iter().any(|e| e.key == key) {
                return Err(duplicate(&key, key_span));
            }
            entries.push(Entry { key, key_span, node });
        }
        Ok(Value::Table(entries))
    }

    fn list(&mut self, depth: usize) -> Result<Value, Problem> {
        self.at += 1;
        let mut items = Vec::new();
        while !self.eat(b']') {
            self.eat(b',');
            items.push(self.value(depth + 1)?);
        }
        Ok(Value::List(items))
    }

    /// A quoted text; its escapes are left to `serde_json`.
    fn string(&mut self) -> String {
        let start = self.at;
        self.at += 1;
        while !matches!(self.byte(), b'"' | 0) {
            self.at += 1 + usize::from(self.byte() == b'\\');
        }
        self.at = (self.at + 1).min(self.text.len());
        let quoted = self.text.get(start..self.at).unwrap_or("\"\"");
        serde_json::from_str(quoted).unwrap_or_default()
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self, start: usize) -> Result<Value, Problem> {
        while matches!(self.byte(), b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.') {
            self.at += 1;
        }
        let span = self.span(start);
        match self.text.get(start..self.at).unwrap_or("") {
            "null" => Ok(Value::Null),
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            word if word.contains(['.', 'e', 'E']) => float(word.parse().ok(), span),
            word => word
                .parse()
                .ok()
                .filter(|n| fits(*n))
                .map(Value::Int)
                .ok_or_else(|| too_large(span)),
        }
    }
}

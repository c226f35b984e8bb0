//! Protobuf text format, read without a schema: every field is kept, known or not, with its place.
//!
//! Messages may stand in either bracket and without a colon; lists, repeated fields, escapes and
//! adjacent strings, comments, all forms of numbers and extension names are understood.

use super::ParseProblem;
use std::ops::Range;

/// Messages nested deeper than this are refused.
const DEEPEST: u32 = 64;

/// A message: its fields in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// The fields; a repeated field stands here once per time it was written.
    pub fields: Vec<Field>,
}

/// A field as written once.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name; an extension keeps its brackets.
    pub name: String,
    /// Bytes of the name in the text.
    pub span: Range<usize>,
    /// The value.
    pub value: Value,
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// What was written.
    pub kind: Kind,
    /// Bytes of the value in the text, brackets and quotes included.
    pub span: Range<usize>,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A whole number.
    Integer(i128),
    /// A number with a point or an exponent, `inf` or `nan`.
    Float(f64),
    /// A quoted string, escapes resolved.
    Text(String),
    /// A bare word: an enumerator or a boolean.
    Word(String),
    /// A nested message.
    Message(Message),
    /// A list in square brackets.
    List(Vec<Value>),
}

impl Message {
    /// Every value of a field, lists opened up.
    #[must_use]
    pub fn all(&self, name: &str) -> Vec<&Value> {
        let mut values = Vec::new();
        for field in self.fields.iter().filter(|field| field.name == name) {
            match &field.value.kind {
                Kind::List(list) => values.extend(list),
                _ => values.push(&field.value),
            }
        }
        values
    }
}

/// Line and column of a byte, from 1, the column in characters.
pub(super) fn place(text: &str, byte: usize) -> (u64, u64) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() as u64 + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() as u64 + 1;
    (line, column)
}

/// Reads a text into a message.
///
/// # Errors
/// The first place that is not protobuf text format.
pub fn parse(text: &str) -> Result<Message, ParseProblem> {
    let mut parser = Parser { text, at: 0 };
    if text.starts_with('\u{feff}') {
        parser.at = '\u{feff}'.len_utf8();
    }
    parser.message(None, 0)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

/// Where a message was opened, and the bracket that closes it.
#[derive(Clone, Copy)]
struct Open {
    at: usize,
    close: char,
}

impl<'a> Parser<'a> {
    fn problem<T>(&self, at: usize, message: &str, help: &str) -> Result<T, ParseProblem> {
        Err(ParseProblem::at(self.text, at, message, help))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let hit = self.peek() == Some(wanted);
        if hit {
            self.at += wanted.len_utf8();
        }
        hit
    }

    fn skip(&mut self) {
        while let Some(c) = self.peek() {
            if c == '#' {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            } else if c.is_ascii_whitespace() || c == '\u{b}' {
                self.at += 1;
            } else {
                break;
            }
        }
    }

    /// The longest run of characters that pass, from here.
    fn run(&mut self, pass: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !pass(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn shown(&self) -> String {
        self.peek().map_or("the end of the file".to_owned(), |c| format!("`{}`", c.escape_debug()))
    }

    fn message(&mut self, open: Option<Open>, depth: u32) -> Result<Message, ParseProblem> {
        if depth > DEEPEST {
            return self.problem(self.at, "messages are nested too deeply", "check the brackets");
        }
        let mut message = Message::default();
        loop {
            self.skip();
            match (self.peek(), open) {
                (None, None) => return Ok(message),
                (None, Some(open)) => {
                    let what = format!("this message is never closed by `{}`", open.close);
                    return self.problem(open.at, &what, "close it");
                }
                (Some(c), Some(open)) if c == open.close => {
                    self.at += c.len_utf8();
                    return Ok(message);
                }
                (Some(c @ ('}' | '>' | ']')), _) => {
                    let what = format!("`{c}` closes nothing");
                    return self.problem(self.at, &what, "remove it, or check the brackets before");
                }
                _ => message.fields.push(self.field(depth)?),
            }
        }
    }

    fn field(&mut self, depth: u32) -> Result<Field, ParseProblem> {
        let start = self.at;
        let name = self.name()?;
        let span = start..self.at;
        self.skip();
        let colon = self.eat(':');
        self.skip();
        let here = self.at;
        let value = self.value(depth)?;
        if !colon && !is_message(&value.kind) {
            let what = format!("`{name}` needs a colon before its value");
            return self.problem(here, &what, &format!("write `{name}: …`"));
        }
        self.skip();
        if !self.eat(',') {
            self.eat(';');
        }
        Ok(Field { name, span, value })
    }

    fn name(&mut self) -> Result<String, ParseProblem> {
        let start = self.at;
        if self.eat('[') {
            let inner = self.run(|c| c.is_ascii_alphanumeric() || "_.-/".contains(c));
            if !inner.is_empty() && self.eat(']') {
                return Ok(format!("[{inner}]"));
            }
            return self.problem(start, "not the name of an extension", "write [package.name]");
        }
        let word = self.run(|c| c.is_ascii_alphanumeric() || c == '_');
        if word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Ok(word.to_owned());
        }
        self.at = start;
        let what = format!("expected the name of a field, found {}", self.shown());
        self.problem(start, &what, "a field is `name: value` or `name { … }`")
    }

    fn value(&mut self, depth: u32) -> Result<Value, ParseProblem> {
        let start = self.at;
        let kind = match self.peek() {
            Some(c @ ('{' | '<')) => {
                self.at += 1;
                let close = if c == '{' { '}' } else { '>' };
                Kind::Message(self.message(Some(Open { at: start, close }), depth + 1)?)
            }
            Some('[') => self.list(depth)?,
            Some('"' | '\'') => self.text_value()?,
            Some(c) if c.is_ascii_digit() || c == '-' || c == '.' => self.number()?,
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let word = self.run(|c| c.is_ascii_alphanumeric() || c == '_');
                unsigned_float(word).map_or_else(|| Kind::Word(word.to_owned()), Kind::Float)
            }
            _ => {
                let what = format!("expected a value, found {}", self.shown());
                return self.problem(start, &what, "write a number, a string, a name or `{ … }`");
            }
        };
        Ok(Value { kind, span: start..self.at })
    }

    fn list(&mut self, depth: u32) -> Result<Kind, ParseProblem> {
        let start = self.at;
        self.at += 1;
        let mut values = Vec::new();
        self.skip();
        if self.eat(']') {
            return Ok(Kind::List(values));
        }
        loop {
            self.skip();
            if self.peek() == Some('[') {
                return self.problem(self.at, "a list inside a list", "write one flat list");
            }
            values.push(self.value(depth)?);
            self.skip();
            if self.eat(']') {
                return Ok(Kind::List(values));
            }
            if self.peek().is_none() {
                return self.problem(start, "this list is never closed by `]`", "close it");
            }
            if !self.eat(',') {
                let what = format!("expected `,` or `]` in a list, found {}", self.shown());
                return self.problem(self.at, &what, "separate the values by commas");
            }
        }
    }

    fn number(&mut self) -> Result<Kind, ParseProblem> {
        let start = self.at;
        let negative = self.eat('-');
        self.skip();
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let hex = rest.starts_with("0x") || rest.starts_with("0X");
        let exponent = |i: usize| i > 0 && !hex && matches!(bytes[i - 1], b'e' | b'E');
        let end = rest
            .char_indices()
            .find(|&(i, c)| {
                let sign = (c == '+' || c == '-') && exponent(i);
                !(c.is_ascii_alphanumeric() || c == '.' || c == '_' || sign)
            })
            .map_or(rest.len(), |(i, _)| i);
        let digits = &rest[..end];
        self.at += end;
        match scalar(digits) {
            Some(Kind::Integer(v)) => Ok(Kind::Integer(if negative { -v } else { v })),
            Some(Kind::Float(v)) => Ok(Kind::Float(if negative { -v } else { v })),
            _ => {
                let shown: String = digits.chars().take(40).collect();
                self.problem(start, &format!("`{shown}` is not a number"), "write a number")
            }
        }
    }

    fn text_value(&mut self) -> Result<Kind, ParseProblem> {
        let mut bytes = Vec::new();
        loop {
            self.piece(&mut bytes)?;
            // Adjacent strings are one; what follows the last is not part of the value.
            let end = self.at;
            self.skip();
            if !matches!(self.peek(), Some('"' | '\'')) {
                self.at = end;
                return Ok(Kind::Text(String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
    }

    fn piece(&mut self, bytes: &mut Vec<u8>) -> Result<(), ParseProblem> {
        let start = self.at;
        let quote = self.peek().unwrap_or('"');
        self.at += 1;
        loop {
            let Some(c) = self.peek().filter(|&c| c != '\n') else {
                return self.problem(start, "this string is never closed", "close the quote");
            };
            self.at += c.len_utf8();
            if c == quote {
                return Ok(());
            }
            if c == '\\' {
                self.escape(bytes)?;
            } else {
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), ParseProblem> {
        let start = self.at.saturating_sub(1);
        let c = self.peek().unwrap_or('\n');
        if let Some(digits) = self.octal() {
            bytes.push(digits);
            return Ok(());
        }
        self.at += c.len_utf8().min(self.rest().len());
        let simple = match c {
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' | '\'' | '"' | '?' => c as u8,
            'x' | 'X' => match self.hex(1, 2).and_then(|v| u8::try_from(v).ok()) {
                Some(byte) => byte,
                None => return self.problem(start, "`\\x` without digits", "write \\x41"),
            },
            'u' | 'U' => {
                let count = if c == 'u' { 4 } else { 8 };
                let Some(decoded) = self.hex(count, count).and_then(char::from_u32) else {
                    return self.problem(start, "not a Unicode character", "write \\u0041");
                };
                bytes.extend_from_slice(decoded.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => {
                let what = format!("unknown escape `\\{}`", c.escape_debug());
                return self.problem(start, &what, "write \\\\ for a backslash");
            }
        };
        bytes.push(simple);
        Ok(())
    }

    /// One to three octal digits, if any stand here.
    fn octal(&mut self) -> Option<u8> {
        let rest = self.rest();
        let digits = rest.bytes().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
        let value = u32::from_str_radix(rest.get(..digits)?, 8).ok()?;
        self.at += digits;
        u8::try_from(value & 0xff).ok()
    }

    fn hex(&mut self, least: usize, most: usize) -> Option<u32> {
        let rest = self.rest();
        let digits = rest.bytes().take(most).take_while(u8::is_ascii_hexdigit).count();
        let value = u32::from_str_radix(rest.get(..digits)?, 16).ok()?;
        self.at += digits;
        (digits >= least).then_some(value)
    }
}

/// Only messages, and lists of them, may do without a colon.
fn is_message(kind: &Kind) -> bool {
    match kind {
        Kind::Message(_) => true,
        Kind::List(values) => values.iter().all(|value| is_message(&value.kind)),
        _ => false,
    }
}

fn unsigned_float(word: &str) -> Option<f64> {
    match word.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => Some(f64::INFINITY),
        "nan" => Some(f64::NAN),
        _ => None,
    }
}

fn scalar(digits: &str) -> Option<Kind> {
    if let Some(value) = unsigned_float(digits) {
        return Some(Kind::Float(value));
    }
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') || digits.contains('_') {
        return None;
    }
    if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        return i128::from_str_radix(hex, 16).ok().map(Kind::Integer);
    }
    if digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()) {
        return i128::from_str_radix(digits, 8).ok().map(Kind::Integer);
    }
    if let Ok(value) = digits.parse::<i128>() {
        return Some(Kind::Integer(value));
    }
    digits.trim_end_matches(['f', 'F']).parse().ok().map(Kind::Float)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        parse(text).expect(text).fields.into_iter().map(|field| field.value.kind).collect()
    }

    #[test]
    fn scalars() {
        let text = "a: 10, b: 0x1F; c: 017 d: -3 e: 2.5f f: 1e3 g: KIND_GPU h: -inf i: - 4";
        let wanted = [
            Kind::Integer(10),
            Kind::Integer(31),
            Kind::Integer(15),
            Kind::Integer(-3),
            Kind::Float(2.5),
            Kind::Float(1000.0),
            Kind::Word("KIND_GPU".into()),
            Kind::Float(f64::NEG_INFINITY),
            Kind::Integer(-4),
        ];
        assert_eq!(kinds(text), wanted);
    }

    #[test]
    fn strings() {
        let text = r#"a: "x\ty" 'z' # comment
            "\101\x42\u00e9""#;
        assert_eq!(kinds(text), [Kind::Text("x\tyzABé".into())]);
    }

    #[test]
    fn messages_and_lists() {
        let message = parse("m { x: 1 } m < x: 2 >, m: [ { x: 3 }, {} ] n: [] [a.b/c]: 1");
        let message = message.expect("valid");
        assert_eq!(message.all("m").len(), 4);
        assert!(message.all("n").is_empty());
        assert_eq!(message.fields[4].name, "[a.b/c]");
    }

    #[test]
    fn spans_cover_what_was_written() {
        let text = "\u{feff}name: \"é\"  # c\nsize: [4, 8]";
        let message = parse(text).expect("valid");
        let written: Vec<&str> =
            message.fields.iter().map(|f| &text[f.value.span.clone()]).collect();
        assert_eq!(written, ["\"é\"", "[4, 8]"]);
        assert_eq!(place(text, message.fields[1].value.span.start), (2, 7));
    }

    #[test]
    fn refused() {
        for text in [
            "a",
            "a:",
            "a 1",
            "a [1]",
            "a: [1,]",
            "a: [1 2]",
            "a: [[1]]",
            "a: [1",
            "a {",
            "a }",
            "a { >",
            "a: \"x",
            "a: \"\\q\"",
            "a: \"\\",
            "a: 12abc",
            "a: 089",
            "a: 1_0",
            "1: 2",
            "[: 1",
            "a: \"\\u12\"",
            "a: -",
            "é: 1",
            "a: 0x",
            "a: - b",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"a{".repeat(100_000)).is_err());
    }
}

//! The format of `java.util.Properties`, with the place of every byte of a value.

use std::ops::Range;

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Property {
    pub(super) key: String,
    /// Where the key starts.
    pub(super) at: usize,
    pub(super) value: String,
    /// The place of each byte of the value in the text, and of what follows it.
    map: Vec<usize>,
}

impl Property {
    /// Where a stretch of the value stands in the text; from its first byte to its last.
    pub(super) fn place(&self, range: Range<usize>) -> Range<usize> {
        let last = self.map.len() - 1;
        let start = self.map[range.start.min(last)];
        let end = range.end.checked_sub(1).map_or(start, |end| self.map[end.min(last)] + 1);
        start..end.max(start)
    }
}

/// A character of a logical line: what it means, where it stands, whether a backslash made it.
#[derive(Clone, Copy)]
struct Piece {
    c: char,
    at: usize,
    escaped: bool,
}

/// Reads all keys, in order; a later one of the same name replaces an earlier one in Java.
pub(super) fn parse(text: &str) -> Vec<Property> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (pieces, next) = logical(text, at);
        at = next;
        let blank = |p: &Piece| !p.escaped && p.c.is_ascii_whitespace();
        let Some(start) = pieces.iter().position(|p| !blank(p)) else { continue };
        if matches!(pieces[start], Piece { c: '#' | '!', escaped: false, .. }) {
            continue;
        }
        found.push(property(&pieces[start..], text, next));
    }
    found
}

/// The characters of the logical line at `at`, and where the next one starts. A comment does not
/// go on after a backslash.
fn logical(text: &str, mut at: usize) -> (Vec<Piece>, usize) {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut fresh = true;
    while let Some(c) = text[at..].chars().next() {
        let here = at;
        at += c.len_utf8();
        match c {
            '\n' | '\r' => {
                return (pieces, after_break(text, here));
            }
            ' ' | '\t' | '\u{c}' if fresh => {}
            '\\' if !comments(&pieces) => match text[at..].chars().next() {
                None => break,
                Some('\n' | '\r') => {
                    at = after_break(text, at);
                    fresh = true;
                    continue;
                }
                Some(next) => {
                    let (c, len) = unescape(&text[at..], next);
                    at += len;
                    pieces.push(Piece { c, at: here, escaped: true });
                }
            },
            c => pieces.push(Piece { c, at: here, escaped: false }),
        }
        fresh &= matches!(c, ' ' | '\t' | '\u{c}');
    }
    (pieces, text.len())
}

fn comments(pieces: &[Piece]) -> bool {
    matches!(pieces.first(), Some(Piece { c: '#' | '!', escaped: false, .. }))
}

fn after_break(text: &str, at: usize) -> usize {
    if text[at..].starts_with("\r\n") { at + 2 } else { at + 1 }
}

/// What an escape means, and how many bytes after the backslash it takes.
fn unescape(rest: &str, next: char) -> (char, usize) {
    let simple = match next {
        't' => '\t',
        'n' => '\n',
        'r' => '\r',
        'f' => '\u{c}',
        'u' => {
            let code = rest.get(1..5).and_then(|hex| u32::from_str_radix(hex, 16).ok());
            return code.and_then(char::from_u32).map_or(('u', 1), |c| (c, 5));
        }
        other => return (other, other.len_utf8()),
    };
    (simple, 1)
}

fn property(pieces: &[Piece], text: &str, next: usize) -> Property {
    let space = |p: &Piece| !p.escaped && p.c.is_ascii_whitespace();
    let sign = |p: &Piece| !p.escaped && matches!(p.c, '=' | ':');
    let end = pieces.iter().position(|p| space(p) || sign(p)).unwrap_or(pieces.len());
    let key = pieces[..end].iter().map(|p| p.c).collect();
    let mut from = end;
    while pieces.get(from).is_some_and(space) {
        from += 1;
    }
    if pieces.get(from).is_some_and(sign) {
        from += 1;
    }
    while pieces.get(from).is_some_and(space) {
        from += 1;
    }
    let (mut value, mut map) = (String::new(), Vec::new());
    for piece in &pieces[from..] {
        value.push(piece.c);
        map.extend((0..piece.c.len_utf8()).map(|i| piece.at + if piece.escaped { 0 } else { i }));
    }
    map.push(next.min(text.len()));
    Property { key, at: pieces[0].at, value, map }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        parse(text).into_iter().map(|p| (p.key, p.value)).collect()
    }

    #[test]
    fn as_java_reads_them() {
        let text =
            "# c \\\na=1\n ! d\r\n b : 2 \r\nc 3\n\nd\\ e=f\\=g\\u0041\nh=\\\n   i\\\n\tj\nk";
        let wanted = [("a", "1"), ("b", "2 "), ("c", "3"), ("d e", "f=gA"), ("h", "ij"), ("k", "")];
        assert_eq!(pairs(text), wanted.map(|(k, v)| (k.to_owned(), v.to_owned())));
        assert_eq!(pairs("x=\\"), [("x".to_owned(), String::new())]);
    }

    #[test]
    fn places_lead_back() {
        let text = "é=1\nm={\\\n  \"a\": 42,\\\n  \"b\": 7}\n";
        let all = parse(text);
        let at = all[1].value.find("42").unwrap();
        assert_eq!(&text[all[1].place(at..at + 2)], "42");
        assert_eq!(&text[all[0].place(0..1)], "1");
        assert_eq!(all[0].place(1..1).len(), 0);
    }
}

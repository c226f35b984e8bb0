//! Single changes of a text: set one value, add one field, take one out. Everything else stays
//! byte for byte, and what is added looks like what stands around it.

use super::ParseProblem;
use super::text::{self, Field, Kind, Message, Value};

/// One step from a message to one inside it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    /// The first message of this name.
    Name(&'a str),
    /// The entry of the map `priority_queue_policy` with this key.
    Level(u32),
}

impl Step<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Level(_) => "priority_queue_policy",
        }
    }

    /// What a new message of this step begins with.
    fn key(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Name(_) => None,
            Self::Level(level) => Some(("key", level.to_string())),
        }
    }

    fn find<'m>(&self, message: &'m Message) -> Option<&'m Value> {
        message.all(self.name()).into_iter().find(|value| match (&value.kind, self) {
            (Kind::Message(_), Self::Name(_)) => true,
            (Kind::Message(entry), Self::Level(level)) => {
                entry.all("key").iter().any(|key| key.kind == Kind::Integer(i128::from(*level)))
            }
            _ => false,
        })
    }
}

/// A message and where its inside begins and ends; the file itself ends with the text.
struct Inside<'m> {
    message: &'m Message,
    open: usize,
    close: Option<usize>,
}

/// How a file is written.
struct Style {
    newline: &'static str,
    /// Between a name and its scalar.
    colon: String,
    /// Between a name and its message.
    before_message: String,
    brackets: [char; 2],
    indent: String,
}

/// A field to be added.
enum New {
    Scalar(String, String),
    Message(String, Vec<New>),
}

/// Sets a value, adding its field and the messages around it where they are missing.
///
/// # Errors
/// A text that is no protobuf text format.
pub(super) fn set(
    text: &str,
    path: &[Step<'_>],
    name: &str,
    value: &str,
) -> Result<String, ParseProblem> {
    let root = text::parse(text)?;
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut here = Inside { message: &root, open: start, close: None };
    for (depth, step) in path.iter().enumerate() {
        match step.find(here.message) {
            Some(Value { kind: Kind::Message(message), span }) => {
                here = Inside { message, open: span.start + 1, close: Some(span.end - 1) };
            }
            _ => {
                let new = nested(&path[depth..], New::Scalar(name.into(), value.into()));
                return Ok(added(text, &root, &here, new));
            }
        }
    }
    let mut fields = here.message.fields.iter().filter(|field| field.name == name);
    if let Some(field) = fields.next() {
        let mut out = text.to_owned();
        out.replace_range(field.value.span.clone(), value);
        return Ok(out);
    }
    Ok(added(text, &root, &here, New::Scalar(name.into(), value.into())))
}

/// Adds an empty message at the top of the file.
///
/// # Errors
/// A text that is no protobuf text format.
pub(super) fn add_message(text: &str, name: &str) -> Result<String, ParseProblem> {
    let root = text::parse(text)?;
    let here = Inside { message: &root, open: 0, close: None };
    Ok(added(text, &root, &here, New::Message(name.into(), Vec::new())))
}

/// Takes a field out of a message, every time it stands there but the first `keep`.
///
/// # Errors
/// A text that is no protobuf text format.
pub(super) fn remove(
    text: &str,
    path: &[Step<'_>],
    name: &str,
    keep: usize,
) -> Result<String, ParseProblem> {
    let root = text::parse(text)?;
    let mut message = &root;
    for step in path {
        match step.find(message) {
            Some(Value { kind: Kind::Message(inner), .. }) => message = inner,
            _ => return Ok(text.to_owned()),
        }
    }
    let mut out = text.to_owned();
    let fields: Vec<&Field> = message.fields.iter().filter(|f| f.name == name).skip(keep).collect();
    for field in fields.into_iter().rev() {
        cut(&mut out, field);
    }
    Ok(out)
}

/// Takes out the entry of a level.
///
/// # Errors
/// A text that is no protobuf text format, or an entry that stands in a list.
pub(super) fn remove_level(text: &str, level: u32) -> Result<String, ParseProblem> {
    let root = text::parse(text)?;
    let Some(Value { kind: Kind::Message(batching), .. }) =
        Step::Name("dynamic_batching").find(&root)
    else {
        return Ok(text.to_owned());
    };
    let Some(entry) = Step::Level(level).find(batching) else { return Ok(text.to_owned()) };
    let Some(field) = batching.fields.iter().find(|field| field.value.span == entry.span) else {
        let what = "this entry stands in a list";
        let help = "take it out of the list by hand";
        return Err(ParseProblem::at(text, entry.span.start, what, help));
    };
    let mut out = text.to_owned();
    cut(&mut out, field);
    Ok(out)
}

/// The values of a field as they are written, for a new list in its style.
pub(super) fn list_like(old: Option<&str>, sizes: &[u32]) -> String {
    let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
    let old = old.filter(|old| old.starts_with('[') && !old.contains(['\n', '#']));
    let inner = old.map_or(" ", |old| &old[1..old.len() - 1]);
    let tight = !inner.starts_with(' ');
    let between = inner
        .find(',')
        .map_or(", ", |at| if inner[at + 1..].starts_with(' ') { ", " } else { "," });
    let list = sizes.join(between);
    if tight { format!("[{list}]") } else { format!("[ {list} ]") }
}

/// Removes a field with its separator, and its line where nothing else is on it.
fn cut(text: &mut String, field: &Field) {
    let start = field.span.start;
    let mut end = end_of(text, field);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let rest = &text[end..];
    let line_end = end + rest.find('\n').map_or(rest.len(), |at| at + 1);
    if text[line_start..start].trim().is_empty() && text[end..line_end].trim().is_empty() {
        text.replace_range(line_start..line_end, "");
        return;
    }
    end += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    text.replace_range(start..end, "");
}

/// Past a field and its separator.
fn end_of(text: &str, field: &Field) -> usize {
    let end = field.value.span.end;
    let blank = text[end..].len() - text[end..].trim_start().len();
    if text[end + blank..].starts_with([',', ';']) { end + blank + 1 } else { end }
}

/// The separator behind a field, if there is one.
fn separator(text: &str, field: &Field) -> Option<char> {
    let end = end_of(text, field);
    if end == field.value.span.end { None } else { text[..end].chars().next_back() }
}

/// The messages of a path around a field.
fn nested(path: &[Step<'_>], leaf: New) -> New {
    path.iter().rev().fold(leaf, |inner, step| {
        let mut fields: Vec<New> =
            step.key().map(|(key, value)| New::Scalar(key.into(), value)).into_iter().collect();
        fields.push(inner);
        New::Message(step.name().to_owned(), fields)
    })
}

impl Style {
    fn of(text: &str, root: &Message) -> Self {
        let mut style = Self {
            newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
            colon: ": ".to_owned(),
            before_message: " ".to_owned(),
            brackets: ['{', '}'],
            indent: "  ".to_owned(),
        };
        let (mut scalar, mut message, mut indent) = (false, false, false);
        let mut fields: Vec<&Field> = root.fields.iter().collect();
        while let Some(field) = fields.pop() {
            let between = &text[field.span.end..field.value.span.start];
            let plain = !between.contains(['\n', '#']);
            match &field.value.kind {
                Kind::Message(inner) => {
                    if !message && plain {
                        message = true;
                        between.clone_into(&mut style.before_message);
                        if text[field.value.span.start..].starts_with('<') {
                            style.brackets = ['<', '>'];
                        }
                    }
                    if let Some(first) = inner.fields.first()
                        && !indent
                        && text[field.value.span.start..first.span.start].contains('\n')
                    {
                        let deep = indent_at(text, first.span.start);
                        if let Some(more) = deep.strip_prefix(indent_at(text, field.span.start)) {
                            indent = true;
                            more.clone_into(&mut style.indent);
                        }
                    }
                    fields.extend(&inner.fields);
                }
                Kind::List(_) => {}
                _ if !scalar && plain => {
                    scalar = true;
                    between.clone_into(&mut style.colon);
                }
                _ => {}
            }
        }
        style
    }

    fn write(&self, new: &New, indent: Option<&str>) -> String {
        match new {
            New::Scalar(name, value) => format!("{name}{}{value}", self.colon),
            New::Message(name, fields) => {
                let [open, close] = self.brackets;
                let mut out = format!("{name}{}{open}", self.before_message);
                match indent.filter(|_| !fields.is_empty()) {
                    None => {
                        for field in fields {
                            out += " ";
                            out += &self.write(field, None);
                        }
                        out += " ";
                    }
                    Some(indent) => {
                        let deeper = format!("{indent}{}", self.indent);
                        for field in fields {
                            out += self.newline;
                            out += &deeper;
                            out += &self.write(field, Some(&deeper));
                        }
                        out += self.newline;
                        out += indent;
                    }
                }
                out.push(close);
                out
            }
        }
    }
}

/// The blanks that the line of a byte begins with.
fn indent_at(text: &str, at: usize) -> &str {
    let line = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let line = text[line..at].trim_start_matches('\u{feff}');
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// The text with one more field in a message.
fn added(text: &str, root: &Message, inside: &Inside<'_>, new: New) -> String {
    let style = Style::of(text, root);
    let mut out = text.to_owned();
    let body_end = inside.close.unwrap_or(text.len());
    let one_line = inside.close.is_some() && !text[inside.open..body_end].contains('\n');
    let Some(last) = inside.message.fields.last() else {
        let body = &text[inside.open..body_end];
        if inside.close.is_none() {
            let written = style.write(&new, Some(""));
            return format!("{text}{written}{}", style.newline);
        }
        if one_line {
            let gap = if body.is_empty() { " " } else { "" };
            out.insert_str(inside.open, &format!(" {}{gap}", style.write(&new, None)));
            return out;
        }
        let indent = indent_at(text, body_end).to_owned() + &style.indent;
        let line = text[..body_end].rfind('\n').unwrap_or(inside.open);
        let line = if text[..line].ends_with('\r') { line - 1 } else { line };
        let written = style.write(&new, Some(&indent));
        out.insert_str(line, &format!("{}{indent}{written}", style.newline));
        return out;
    };
    let end = end_of(text, last);
    let own = separator(text, last);
    let fields = &inside.message.fields;
    let usual = fields.iter().rev().find_map(|field| separator(text, field));
    // A separator that stands between fields, and not behind the last.
    let joint = if own.is_none() { usual } else { None };
    let behind = own.map(String::from).unwrap_or_default();
    if one_line {
        let joint = joint.map(String::from).unwrap_or_default();
        out.insert_str(end, &format!("{joint} {}{behind}", style.write(&new, None)));
        return out;
    }
    let indent = indent_at(text, last.span.start).to_owned();
    let written = format!("{}{indent}{}{behind}", style.newline, style.write(&new, Some(&indent)));
    let line = end + text[end..].find('\n').unwrap_or(text.len() - end);
    let line = if text[..line].ends_with('\r') { line - 1 } else { line };
    out.insert_str(
        if inside.close.is_some_and(|close| close < line) { end } else { line },
        &written,
    );
    if let Some(joint) = joint {
        out.insert(end, joint);
    }
    out
}

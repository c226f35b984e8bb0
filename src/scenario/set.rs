//! Changing a scenario by path: `--set dynamic.max_wait=3ms`, sweep axes, points of a sweep.
//!
//! Paths: `name`, `seed`, `run.KEY`, `curve.KEY`, `client.KEY`, `tune.KEY`; `server.KEY` or
//! `LABEL.KEY` of a server (nested tables too: `server.cost.fixed`); `arrivals.KEY` of a single
//! source or `arrivals.NAME.KEY`; `LABEL.KEY` of a policy, whose label is its kind unless given.
//! `arrivals.rate` with several sources is their total; the sources keep their proportions.

use super::diag::{CONFLICT, Problem, Span, UNKNOWN_PATH};
use super::known;
use super::tree::{Entry, Node, Value, parse_value};
use crate::units::parse_rate;

/// What a change leaves to do once the scenario is resolved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Edit {
    /// Nothing: the tree holds it.
    Done,
    /// Scale all sources to this total rate per second.
    TotalRate(f64, Span),
}

/// Words that begin a path of their own, so that no label may be one of them.
pub(crate) const RESERVED: &[&str] = &[
    "schema",
    "name",
    "seed",
    "run",
    "curve",
    "client",
    "server",
    "arrivals",
    "policy",
    "threshold",
    "sweep",
    "tune",
];

/// Splits a `--set` argument, number `source` of the texts, into path, value and their places.
///
/// # Errors
/// It holds no `=`.
pub(crate) fn split(argument: &str, source: u32) -> Result<(&str, Span, Node), Problem> {
    let Some((path, value)) = argument.split_once('=') else {
        let whole = Span::new(source, 0..argument.len());
        return Err(Problem::new(UNKNOWN_PATH, whole, "--set needs path=value")
            .help("write for example --set dynamic.max_wait=3ms"));
    };
    let at = Span::new(source, path.len() + 1..argument.len());
    let path_span = Span::new(source, 0..path.len());
    Ok((path.trim(), path_span, parse_value(value, at)))
}

/// Sets `path` to `value`; errors about the path point at `path_span`.
///
/// # Errors
/// The path leads nowhere, or to something that cannot be changed alone.
pub(crate) fn apply(
    root: &mut Node,
    path: &str,
    path_span: Span,
    value: Node,
) -> Result<Edit, Problem> {
    if path == "arrivals.rate" && is_total(root) {
        let text = value.written().unwrap_or_default();
        let rate = parse_rate(&text).map_err(|e| {
            Problem::new(super::diag::BAD_QUANTITY, value.span, e.what).help(e.help)
        })?;
        return Ok(Edit::TotalRate(rate.per_s(), value.span));
    }
    let nowhere = |root: &Node| nowhere(root, path, path_span);
    let Some((target, keys)) = locate(root, path) else {
        return Err(nowhere(root));
    };
    if keys.is_empty() || keys.split('.').any(str::is_empty) {
        return Err(nowhere(root));
    }
    match follow(root, &target) {
        Some(table) => put(table, keys, path_span, value).map(|()| Edit::Done),
        None => Err(nowhere(root)),
    }
}

/// Whether `arrivals.rate` cannot be the key of one source.
fn is_total(root: &Node) -> bool {
    let Some(sources) = root.get("arrivals").map(Node::one_or_many) else {
        return false;
    };
    match sources {
        [one] => {
            one.get("rate").is_none()
                && matches!(one.text("kind"), Some("mmpp" | "on-off" | "trace" | "closed-loop"))
        }
        many => many.len() > 1,
    }
}

/// Where a path begins: a section, and which of its tables.
struct Target {
    section: &'static str,
    index: Option<usize>,
}

fn locate<'p>(root: &Node, path: &'p str) -> Option<(Target, &'p str)> {
    let whole = |section| Target { section, index: None };
    if matches!(path, "name" | "seed") {
        return Some((whole(""), path));
    }
    for section in ["run", "curve", "client", "tune"] {
        if let Some(keys) = after(path, section) {
            return Some((whole(section), keys));
        }
    }
    if let Some(keys) = after(path, "arrivals") {
        let names = named(root, "arrivals", |n| n.text("name"));
        return pick("arrivals", &names, keys, keys);
    }
    if let Some(keys) = after(path, "server") {
        let names = named(root, "server", |n| n.text("label"));
        return pick("server", &names, "", keys);
    }
    let servers = named(root, "server", |n| n.text("label"));
    let policies = named(root, "policy", |n| n.text("label").or(n.text("kind")));
    let (a, b) = (longest(&policies, path), longest(&servers, path));
    match (a, b) {
        (Some((index, keys)), _) => Some((Target { section: "policy", index: Some(index) }, keys)),
        (None, Some((index, keys))) => {
            Some((Target { section: "server", index: Some(index) }, keys))
        }
        (None, None) => None,
    }
}

/// What follows `head.` in a path.
fn after<'p>(path: &'p str, head: &str) -> Option<&'p str> {
    path.strip_prefix(head)?.strip_prefix('.')
}

fn named<'n>(
    root: &'n Node,
    section: &str,
    name: impl Fn(&'n Node) -> Option<&'n str>,
) -> Vec<Option<&'n str>> {
    root.get(section).map_or(&[][..], Node::one_or_many).iter().map(name).collect()
}

/// The table whose name begins `path`; the longest name wins, since names may hold dots.
fn longest<'p>(names: &[Option<&str>], path: &'p str) -> Option<(usize, &'p str)> {
    let mut best: Option<(usize, usize, &str)> = None;
    for (index, name) in names.iter().enumerate() {
        if let Some(name) = name
            && let Some(keys) = after(path, name)
            && best.is_none_or(|(len, ..)| name.len() > len)
        {
            best = Some((name.len(), index, keys));
        }
    }
    best.map(|(_, index, keys)| (index, keys))
}

/// The named table of a section, or its only one.
fn pick<'p>(
    section: &'static str,
    names: &[Option<&str>],
    by_name: &'p str,
    keys: &'p str,
) -> Option<(Target, &'p str)> {
    match (longest(names, by_name), names.len()) {
        (Some((index, keys)), _) => Some((Target { section, index: Some(index) }, keys)),
        (None, 1) => Some((Target { section, index: Some(0) }, keys)),
        (None, _) => None,
    }
}

fn follow<'n>(root: &'n mut Node, target: &Target) -> Option<&'n mut Node> {
    if target.section.is_empty() {
        return Some(root);
    }
    let span = root.span;
    let Value::Table(entries) = &mut root.value else {
        return None;
    };
    let at = match (entries.iter().position(|e| e.key == target.section), target.index) {
        (Some(at), _) => at,
        (None, Some(_)) => return None,
        (None, None) => {
            entries.push(Entry {
                key: target.section.into(),
                key_span: Span::NONE,
                node: Node::table(span),
            });
            entries.len() - 1
        }
    };
    let node = &mut entries.get_mut(at)?.node;
    match (target.index, &mut node.value) {
        (Some(index), Value::List(_)) => match &mut node.value {
            Value::List(items) => items.get_mut(index),
            _ => None,
        },
        _ => Some(node),
    }
}

/// Sets a key below a table, making the tables in between.
fn put(table: &mut Node, keys: &str, path_span: Span, value: Node) -> Result<(), Problem> {
    let (key, rest) = match keys.split_once('.') {
        Some((key, rest)) => (key, Some(rest)),
        None => (keys, None),
    };
    if let Value::List(items) = &mut table.value {
        let len = items.len();
        let item = key.parse::<usize>().ok().and_then(|i| items.get_mut(i));
        return match (item, rest) {
            (Some(item), Some(rest)) => put(item, rest, path_span, value),
            (Some(item), None) => {
                *item = value;
                Ok(())
            }
            (None, _) => Err(Problem::new(
                UNKNOWN_PATH,
                path_span,
                format!("`{key}` is not a position in a list of {len}"),
            )
            .help("positions count from 0")),
        };
    }
    if table.value == Value::Null {
        table.value = Value::Table(Vec::new());
    }
    let Value::Table(entries) = &mut table.value else {
        return Err(Problem::new(
            CONFLICT,
            path_span,
            format!("there is no table for `{key}` here, but {}", table.what()),
        )
        .help("set the table itself, as in --set 'server.jitter={kind=\"lognormal\",cv=0.1}'"));
    };
    let at = match entries.iter().position(|e| e.key == key) {
        Some(at) => at,
        None => {
            let node = Node { value: Value::Null, span: path_span };
            entries.push(Entry { key: key.into(), key_span: path_span, node });
            entries.len() - 1
        }
    };
    let Some(entry) = entries.get_mut(at) else {
        return Ok(());
    };
    match rest {
        Some(rest) => put(&mut entry.node, rest, path_span, value),
        None => {
            entry.node = value;
            Ok(())
        }
    }
}

/// Every beginning of a path in this scenario.
fn beginnings(root: &Node) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let labels = named(root, "policy", |n| n.text("label").or(n.text("kind")));
    all.extend(labels.into_iter().flatten().map(str::to_owned));
    let sources = named(root, "arrivals", |n| n.text("name"));
    if sources.len() == 1 {
        all.push("arrivals".into());
    } else if !sources.is_empty() {
        all.extend(sources.into_iter().flatten().map(|n| format!("arrivals.{n}")));
        all.push("arrivals.rate".into());
    }
    let servers = named(root, "server", |n| n.text("label"));
    if servers.len() == 1 {
        all.push("server".into());
    }
    all.extend(servers.into_iter().flatten().map(str::to_owned));
    all.extend(["run", "curve", "client", "name", "seed"].map(str::to_owned));
    if root.get("tune").is_some() {
        all.push("tune".into());
    }
    all
}

fn nowhere(root: &Node, path: &str, span: Span) -> Problem {
    let all = beginnings(root);
    let valid: Vec<&str> = all.iter().map(String::as_str).collect();
    let head = path.split('.').next().unwrap_or(path);
    let mut problem = Problem::new(UNKNOWN_PATH, span, format!("the path `{path}` leads nowhere"));
    let several = |section: &str| root.get(section).is_some_and(|n| n.one_or_many().len() > 1);
    if head == "policy" || head == "policies" {
        problem = problem.help("policies are addressed by label, as in `dynamic.max_wait`");
    } else if head == "server" && several("server") {
        problem = problem.help("there are several servers: begin with the label of one");
    } else if head == "arrivals" && several("arrivals") {
        problem = problem.help("there are several sources: write `arrivals.NAME.key`");
    } else if valid.contains(&path) {
        problem = problem.help(format!("say which key: `{path}.…`"));
    } else if path.split('.').any(str::is_empty) {
        problem = problem.help("a path is names with single dots between them");
    } else if let Some(near) = known::closest(head, &valid) {
        let rest = path.strip_prefix(head).unwrap_or("");
        problem = problem.label(format!("did you mean `{near}{rest}`?"));
    }
    problem.help(format!("paths begin with {}", known::listed(&valid, "or")))
}

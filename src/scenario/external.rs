//! Traces and cost models in files of their own.

use super::de::View;
use super::diag::{BAD_COST_FILE, BAD_TRACE, Problem};
use super::resolve::{Resolver, place};
use super::source::{Format, decode};
use super::tree::{self, Node};
use crate::arrivals::{Replay, Trace};
use crate::cost::Cost;
use std::path::Path;
use std::sync::Arc;

impl Resolver<'_> {
    /// The recorded arrivals of a source.
    pub(crate) fn trace(&mut self, node: &Node, replay: &Replay) -> Option<Arc<Trace>> {
        if let Some(trace) = self.cache.trace(replay) {
            return Some(trace);
        }
        let span = place(node, "file");
        let read = self.file(&replay.file).and_then(|bytes| match self.files {
            Some(files) => files.trace(replay, bytes).map_err(|e| {
                let line = e.line.map(|n| format!(", line {n}")).unwrap_or_default();
                (format!("{}{line}: {}", replay.file, e.what), e.help)
            }),
            None => Err(unread(&replay.file)),
        });
        match read {
            Ok(trace) if trace.arrivals.is_empty() => {
                let what = format!("the trace {} has no arrivals", replay.file);
                self.problems.push(Problem::new(BAD_TRACE, span, what));
                None
            }
            Ok(trace) => {
                let trace = Arc::new(trace);
                self.cache.keep_trace(replay, &trace);
                Some(trace)
            }
            Err((what, help)) => {
                let mut problem = Problem::new(BAD_TRACE, span, what);
                problem.help.extend(help);
                self.problems.push(problem);
                None
            }
        }
    }

    /// A cost model, read from its file if it is in one.
    pub(crate) fn cost(&mut self, node: &Node, cost: Cost) -> Option<Cost> {
        let Cost::File(at) = &cost else {
            return Some(cost);
        };
        if let Some(cost) = self.cache.cost(&at.file) {
            return Some(cost);
        }
        match self.cost_file(&at.file) {
            Ok(cost) => {
                self.cache.keep_cost(&at.file, &cost);
                Some(cost)
            }
            Err(mut problem) => {
                if !problem.span.is_some() {
                    problem.span = place(node, "file");
                }
                self.problems.push(*problem);
                None
            }
        }
    }

    /// `{"kind": "affine", …}`, or the same under `cost` beside whatever else a calibration says.
    fn cost_file(&mut self, file: &str) -> Result<Cost, Box<Problem>> {
        let fail = |what: String, help: Option<String>| {
            let mut problem = Problem::new(BAD_COST_FILE, super::diag::Span::NONE, what);
            problem.help.extend(help);
            Box::new(problem)
        };
        let bytes = self.file(file).map_err(|(what, help)| fail(what, help))?;
        let text = decode(file, &bytes).map_err(|d| fail(d.message, d.help.into_iter().next()))?;
        let format = Format::of(Path::new(file)).unwrap_or_else(|| Format::sniff(&text));
        let number = self.texts.add(file, text.as_str());
        let root = tree::parse(&text, format, number)?;
        let node = root.get("cost").unwrap_or(&root);
        let cost: Cost = View::of("cost", node).read()?;
        if let Cost::File(_) = cost {
            return Err(fail(format!("the cost file {file} names yet another file"), None));
        }
        cost.check().map_err(|bad| {
            Problem::new(BAD_COST_FILE, place(node, bad.key), bad.what).help(bad.help)
        })?;
        Ok(cost)
    }

    fn file(&self, file: &str) -> Result<Vec<u8>, (String, Option<String>)> {
        let Some(files) = self.files else {
            return Err(unread(file));
        };
        files.read(Path::new(file)).map_err(|e| {
            let help = (e.kind() == std::io::ErrorKind::NotFound)
                .then(|| "paths are relative to the scenario file".to_owned());
            (format!("cannot read {file}: {e}"), help)
        })
    }
}

/// A file that only a point of a sweep names; all values are read before a sweep starts.
fn unread(file: &str) -> (String, Option<String>) {
    (format!("{file} was not read when the scenario was loaded"), None)
}

//! Loading: from a file or text to a [`Scenario`], and on to the points of a sweep.

use super::axes::AxisNode;
use super::diag::{CONFLICT, Diagnostic, Place, Problem, Span, Texts};
use super::resolve::{Axes, Resolver};
use super::set::{self, Edit};
use super::source::{Format, Input, decode};
use super::supply::{Cache, Files};
use super::tree::{self, Node, parse_value};
use super::{Scenario, check};

/// A scenario that was read without errors.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The scenario as it is meant.
    pub scenario: Scenario,
    /// What is legal, but hardly meant.
    pub warnings: Vec<Diagnostic>,
    tree: Node,
    stem: String,
    texts: Texts,
    cache: Cache,
    /// A total rate that `--set arrivals.rate` asked for.
    total: Option<(f64, Span)>,
}

/// Reads a scenario, changed by `sets` (each `path=value`).
///
/// # Errors
/// All independent errors that were found, in the order of the text.
pub fn load(source: &Input, sets: &[String], files: &dyn Files) -> Result<Loaded, Vec<Diagnostic>> {
    let text = decode(&source.name, &source.bytes).map_err(|d| vec![d])?;
    let format = source.format.unwrap_or_else(|| Format::sniff(&text));
    let mut texts = Texts::default();
    let number = texts.add(source.name.as_str(), text.as_str());
    let one = |texts: &Texts, problem: Problem| vec![texts.diagnose(problem)];
    let mut tree = tree::parse(&text, format, number).map_err(|p| one(&texts, p))?;
    let mut total = None;
    for argument in sets {
        let number = texts.add("--set", argument.as_str());
        let edit = set::split(argument, number)
            .and_then(|(path, span, value)| set::apply(&mut tree, path, span, value))
            .map_err(|p| one(&texts, p))?;
        if let Edit::TotalRate(rate, span) = edit {
            total = Some((rate, span));
        }
    }
    let mut cache = Cache::default();
    let stem = source.stem.clone();
    let read = resolve(&tree, &stem, total, Some(files), &mut cache, &mut texts);
    let (scenario, axes) = read.map_err(|p| diagnose(&texts, p))?;
    let mut loaded = Loaded { scenario, warnings: Vec::new(), tree, stem, texts, cache, total };
    loaded.check_axes(&axes.sweep, "sweep", files)?;
    loaded.check_axes(&axes.over, "search", files)?;
    let warnings = check::warnings(&loaded.scenario, &loaded.tree);
    loaded.warnings = diagnose(&loaded.texts, warnings);
    Ok(loaded)
}

fn diagnose(texts: &Texts, mut problems: Vec<Problem>) -> Vec<Diagnostic> {
    problems.sort_by_key(|p| p.span.order());
    problems.dedup();
    problems.into_iter().map(|p| texts.diagnose(p)).collect()
}

type Resolved = (Scenario, Axes);

fn resolve(
    tree: &Node,
    stem: &str,
    total: Option<(f64, Span)>,
    files: Option<&dyn Files>,
    cache: &mut Cache,
    texts: &mut Texts,
) -> Result<Resolved, Vec<Problem>> {
    let mut resolver = Resolver { files, cache, texts, problems: Vec::new() };
    let Some((mut scenario, axes)) = resolver.read(tree, stem) else {
        return Err(resolver.problems);
    };
    if let Some((rate, span)) = total {
        match scenario.with_total_rate(rate) {
            Some(scaled) => scenario = scaled,
            None => {
                let what = "these arrivals have no rate that could be set";
                let help = "the clients of a closed loop set the pace themselves, and a trace of \
                            one moment has none";
                return Err(vec![Problem::new(CONFLICT, span, what).help(help)]);
            }
        }
    }
    match check::errors(&scenario, tree) {
        none if none.is_empty() => Ok((scenario, axes)),
        errors => Err(errors),
    }
}

impl Loaded {
    /// Where the threshold with this index is written, for annotations of its line.
    #[must_use]
    pub fn threshold_place(&self, index: usize) -> Option<Place> {
        let table = self.tree.get("threshold")?.one_or_many().get(index)?;
        let span = table.get("expr").map_or(table.span, |expr| expr.span);
        self.texts.place(span)
    }

    /// The scenario at one point of its sweep or search: each path set to its value, and neither
    /// of its own.
    ///
    /// # Errors
    /// A value does not fit its path; [`load`] has tried every value of every axis with the first
    /// of the others.
    pub fn cell(&self, coords: &[(&str, &str)]) -> Result<Scenario, Vec<Diagnostic>> {
        let mut cache = self.cache.clone();
        let mut texts = self.texts.clone();
        let edits = coords.iter().map(|(path, value)| (*path, Span::NONE, *value, Span::NONE));
        if let Ok(scenario) = self.point(edits, None, &mut cache, &mut texts) {
            return Ok(scenario);
        }
        // Once more, with places to point at.
        let mut placed = Vec::with_capacity(coords.len());
        for (path, value) in coords {
            let number = texts.add("sweep", format!("{path} = {value}"));
            let start = path.len() + " = ".len();
            let at = Span::new(number, start..start + value.len());
            placed.push((*path, Span::new(number, 0..path.len()), *value, at));
        }
        self.point(placed.into_iter(), None, &mut cache, &mut texts)
            .map_err(|p| diagnose(&texts, p))
    }

    fn point<'e>(
        &self,
        edits: impl Iterator<Item = (&'e str, Span, &'e str, Span)>,
        files: Option<&dyn Files>,
        cache: &mut Cache,
        texts: &mut Texts,
    ) -> Result<Scenario, Vec<Problem>> {
        let mut tree = self.tree.clone();
        tree.remove("sweep");
        tree.remove("tune");
        let mut total = self.total;
        for (path, path_span, value, span) in edits {
            let value = parse_value(value, span);
            match set::apply(&mut tree, path, path_span, value) {
                Ok(Edit::TotalRate(rate, span)) => total = Some((rate, span)),
                Ok(Edit::Done) => {}
                Err(problem) => return Err(vec![problem]),
            }
        }
        resolve(&tree, &self.stem, total, files, cache, texts).map(|(scenario, _)| scenario)
    }

    /// Tries every value of every axis, with the first value of the others.
    fn check_axes(
        &mut self,
        axes: &[AxisNode],
        of: &str,
        files: &dyn Files,
    ) -> Result<(), Vec<Diagnostic>> {
        let mut problems = Vec::new();
        let mut cache = std::mem::take(&mut self.cache);
        let mut texts = std::mem::take(&mut self.texts);
        for (i, axis) in axes.iter().enumerate() {
            for varied in &axis.values {
                let edits = axes.iter().enumerate().filter_map(|(j, other)| {
                    let (text, span) = if i == j { varied } else { other.values.first()? };
                    Some((other.path.as_str(), other.path_span, text.as_str(), *span))
                });
                if let Err(found) = self.point(edits, Some(files), &mut cache, &mut texts) {
                    problems.extend(found.into_iter().map(|p| in_axis(p, axis, varied, of)));
                    break;
                }
            }
        }
        self.cache = cache;
        self.texts = texts;
        if problems.is_empty() { Ok(()) } else { Err(diagnose(&self.texts, problems)) }
    }
}

/// Says which value of which axis a problem came with.
fn in_axis(mut problem: Problem, axis: &AxisNode, value: &(String, Span), of: &str) -> Problem {
    if !problem.span.is_some() {
        problem.span = value.1;
    }
    // At the axis itself the place says it all.
    if problem.span != value.1 && problem.span != axis.path_span {
        problem.help.push(format!("this is `{}` = {} of the {of}", axis.path, value.0));
    }
    problem
}

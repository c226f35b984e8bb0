//! Diagnostics: what is wrong, where, and what to write instead.

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use std::ops::Range;
use std::sync::Arc;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing can be simulated.
    Error,
    /// Legal, but hardly meant.
    Warning,
}

/// A text that a diagnostic can point into: the scenario, a `--set` argument, a cost file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// What the user calls it: a path, or `--set`.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The text.
    pub source: Arc<Text>,
    /// Bytes of the text.
    pub range: Range<usize>,
}

/// One error or warning about a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Its stable code, a row of [`CODES`].
    pub code: &'static str,
    /// What is wrong, one sentence.
    pub message: String,
    /// Where; `None` when it concerns no place in particular.
    pub place: Option<Place>,
    /// A few words under the place.
    pub label: Option<String>,
    /// What to write instead.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// An error of the whole input, at no place in particular.
    pub(crate) fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            place: None,
            label: None,
            help: Vec::new(),
        }
    }

    /// Adds what to write instead.
    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// The diagnostic as text with the lines it points at, ending in a line feed; `colour` adds
    /// ANSI escapes.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = level
            .primary_title(&self.message)
            .id(self.code)
            .elements([] as [annotate_snippets::Message<'_>; 0]);
        if let Some(place) = &self.place {
            let range = place.in_bounds();
            group = if range == (0..0) {
                group.element(Origin::path(place.source.name.as_str()))
            } else {
                let mut mark = AnnotationKind::Primary.span(range);
                if let Some(label) = &self.label {
                    mark = mark.label(label.as_str());
                }
                let snippet = Snippet::source(place.source.text.as_str());
                group.element(snippet.path(place.source.name.as_str()).annotation(mark))
            };
        }
        for help in &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let mut out = renderer.render(&[group]);
        out.push('\n');
        out
    }

    /// Line and column of the place, both from 1; columns count characters.
    #[must_use]
    pub fn line_column(&self) -> Option<(usize, usize)> {
        self.place.as_ref()?.line_column()
    }
}

impl Place {
    /// Line and column of its start, both from 1; columns count characters.
    #[must_use]
    pub fn line_column(&self) -> Option<(usize, usize)> {
        let before = self.source.text.get(..self.in_bounds().start)?;
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Some((line, column))
    }

    /// The range, moved inside the text and onto character boundaries.
    fn in_bounds(&self) -> Range<usize> {
        let text = &self.source.text;
        let fit = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = fit(self.range.start);
        start..fit(self.range.end).max(start)
    }
}

/// The part of a stretch that is on its first line: whole tables are not worth showing.
fn first_line(text: &str, start: usize, end: usize) -> Range<usize> {
    let line = text.get(start..end).and_then(|t| t.lines().next());
    start..line.map_or(end, |line| start + line.trim_end().len())
}

/// A stretch of one of the texts of a reading; small and copyable, so every node has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    source: u32,
    start: u32,
    end: u32,
}

impl Span {
    /// Of something no text holds, such as a default.
    pub(crate) const NONE: Self = Self { source: u32::MAX, start: 0, end: 0 };

    /// The scenario as a whole.
    pub(crate) const SCENARIO: Self = Self { source: 0, start: 0, end: 0 };

    /// Bytes `range` of the text with number `source`.
    pub(crate) fn new(source: u32, range: Range<usize>) -> Self {
        let fit = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self { source, start: fit(range.start), end: fit(range.end) }
    }

    /// Its bytes in the text.
    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Whether this points anywhere.
    pub(crate) fn is_some(self) -> bool {
        self.source != u32::MAX
    }

    /// Bytes `range` of this stretch, counted from its start.
    pub(crate) fn within(self, range: Range<usize>) -> Self {
        Self::new(self.source, self.start as usize + range.start..self.start as usize + range.end)
    }

    /// From the start of this stretch to the end of a later one.
    pub(crate) fn until(self, end: Self) -> Self {
        Self { end: end.end.max(self.end), ..self }
    }

    /// Where it starts, for putting things in the order of the text.
    pub(crate) fn order(self) -> (u32, u32) {
        (self.source, self.start)
    }

    /// How many bytes it covers.
    pub(crate) fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

/// The texts of one reading; [`Span`]s point into them by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts(Vec<Arc<Text>>);

impl Texts {
    /// Adds a text and returns its number.
    pub(crate) fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> u32 {
        self.0.push(Arc::new(Text { name: name.into(), text: text.into() }));
        u32::try_from(self.0.len() - 1).unwrap_or(u32::MAX)
    }

    /// The text with this number.
    pub(crate) fn get(&self, number: u32) -> Option<&Arc<Text>> {
        self.0.get(number as usize)
    }

    /// The place of a stretch, cut to its first line.
    pub(crate) fn place(&self, span: Span) -> Option<Place> {
        let source = self.get(span.source)?;
        Some(Place {
            range: first_line(&source.text, span.start as usize, span.end as usize),
            source: Arc::clone(source),
        })
    }

    /// A problem as a user sees it.
    pub(crate) fn diagnose(&self, problem: Problem) -> Diagnostic {
        let place = self.place(problem.span);
        Diagnostic {
            severity: if problem.code.starts_with('W') {
                Severity::Warning
            } else {
                Severity::Error
            },
            code: problem.code,
            message: problem.message,
            place,
            label: problem.label,
            help: problem.help,
        }
    }
}

/// A diagnostic on its way out of the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) span: Span,
    pub(crate) label: Option<String>,
    pub(crate) help: Vec<String>,
}

impl Problem {
    /// A problem at `span`.
    pub(crate) fn new(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), span, label: None, help: Vec::new() }
    }

    /// Adds a few words under the place.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Adds what to write instead.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }
}

macro_rules! codes {
    ($($name:ident = $code:literal $what:literal),+ $(,)?) => {
        $(pub(crate) const $name: &str = $code;)+

        /// Every code and what it means.
        pub const CODES: &[(&str, &str)] = &[$(($code, $what)),+];
    };
}

codes! {
    INPUT = "E001" "The file cannot be read: missing, a directory, too large, not UTF-8, empty.",
    SYNTAX = "E002" "The text is not valid TOML, YAML or JSON.",
    DUPLICATE_KEY = "E003" "A key is given twice in one table.",
    UNKNOWN_KEY = "E004" "A key that means nothing here, usually a misspelling.",
    NOT_YET = "E005" "Part of the scenario language, but not known to this version yet.",
    MISSING_KEY = "E006" "A key that is always needed is missing.",
    WRONG_TYPE = "E007" "A value of the wrong type, such as a list where a number is needed.",
    UNKNOWN_KIND = "E008" "A kind or choice that does not exist.",
    MISSING_KIND = "E009" "A table that needs a kind has none.",
    BAD_PARAM = "E010" "A value that cannot be meant, such as a batch size of 0.",
    CONFLICT = "E011" "Keys that contradict each other or need one another.",
    DUPLICATE_LABEL = "E012" "Two policies, servers or sources share a label or name.",
    UNKNOWN_PATH = "E013" "A path of --set or of a sweep axis that leads nowhere.",
    BAD_THRESHOLD = "E014" "A threshold that cannot be read.",
    UNKNOWN_REF = "E015" "A policy or class is named that does not exist.",
    BAD_AXIS = "E016" "A sweep axis that cannot be expanded.",
    BAD_QUANTITY = "E017" "A quantity without a unit, or with one that does not fit.",
    BAD_TRACE = "E018" "A trace that cannot be read.",
    BAD_COST_FILE = "E019" "A cost file that cannot be read.",
    TABLE_TOO_SHORT = "E020" "A cost table refuses batches larger than its last point.",
    NOTHING = "E021" "There is nothing to simulate: no arrivals, server or policy.",
    CAP_UNREACHED = "W001" "The load can never fill max_batch_size.",
    WAIT_OVER_SLO = "W002" "max_wait alone uses up the latency objective.",
    OVERLOAD = "W003" "The offered rate reaches the capacity of a policy.",
    RUN_TOO_SHORT = "W004" "The run is too short for the quantile it is judged on.",
    STATIC_STALL = "W005" "A static batch can never fill: every client is waiting already.",
    COST_NOT_MONOTONE = "W006" "A larger batch costs less than a smaller one.",
    EXTRAPOLATED = "W007" "Batches go far beyond the last point of the cost table.",
    NO_EFFECT = "W008" "A setting that changes nothing here.",
    QUEUE_BELOW_CAP = "W009" "The queue limit is smaller than the batch.",
    ALL_EXPIRE = "W010" "Requests expire before a batch can form.",
    ONE_REPLAY = "W011" "Nothing is random, so replications are all alike.",
    REVERSED = "W012" "A threshold that is met when things go badly.",
}

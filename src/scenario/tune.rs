//! `[tune]`: what to seek, over which settings.

use super::axes::{self, AxisNode};
use super::de::View;
use super::diag::{BAD_PARAM, MISSING_KEY, NOT_YET, Problem, UNKNOWN_REF};
use super::file::TuneTable;
use super::known;
use super::resolve::{Resolver, place};
use super::tree::Node;
use super::{Axis, Labelled, Objective, Source, Tune};
use crate::arrivals::Process;

/// Default of `indifference`.
const INDIFFERENCE: f64 = 0.01;

/// The path that names policies instead of a key of one.
const POLICY: &str = "policy";

impl Resolver<'_> {
    /// Reads `[tune]`, with the places of its axes.
    pub(crate) fn tune(
        &mut self,
        root: &Node,
        sources: &[Source],
        policies: &[Labelled],
    ) -> Option<(Tune, Vec<AxisNode>)> {
        let node = root.get("tune")?;
        let table: TuneTable = self.taken(View::of("tune", node).read())?;
        let Some(text) = table.objective else {
            let problem = Problem::new(MISSING_KEY, node.span, "[tune] needs an `objective`");
            self.problems.push(problem.help("write objective = \"max rate\""));
            return None;
        };
        let indifference = table.indifference.map_or(INDIFFERENCE, |f| f.get());
        if !(0.0001..=0.5).contains(&indifference) {
            let what = "an indifference lies between 0.01% and 50%";
            let problem = Problem::new(BAD_PARAM, place(node, "indifference"), what);
            self.problems.push(problem.help("write indifference = \"1%\""));
        }
        let objective = match Objective::read(&text) {
            Ok(objective) => objective,
            Err(none) => {
                let code = if none.later { NOT_YET } else { BAD_PARAM };
                let problem = Problem::new(code, place(node, "objective"), none.what);
                self.problems.push(problem.help(none.help));
                return None;
            }
        };
        let grouped = |s: &Source| matches!(s.process, Process::Groups(_));
        if objective.about_groups() && self.problems.is_empty() && !sources.iter().any(grouped) {
            let what = format!("\"{objective}\" needs requests in groups, and there are none");
            let problem = Problem::new(BAD_PARAM, place(node, "objective"), what);
            self.problems.push(problem.help("add a source of kind = \"groups\""));
        }
        let mut axes = match node.get("over") {
            Some(over) => axes::read(over, &mut self.problems),
            None => Vec::new(),
        };
        let competing = axes.iter().position(|a| a.path == POLICY).map(|i| axes.remove(i));
        let competing = competing.map(|axis| self.competing(&axis, policies));
        self.fixed_by_objective(objective, &axes);
        let over = axes
            .iter()
            .map(|axis| Axis {
                path: axis.path.clone(),
                values: axis.values.iter().map(|(text, _)| text.clone()).collect(),
            })
            .collect();
        Some((Tune { objective, policies: competing, over, indifference }, axes))
    }

    /// The labels that compete.
    fn competing(&mut self, axis: &AxisNode, policies: &[Labelled]) -> Vec<String> {
        let labels: Vec<&str> = policies.iter().map(|p| p.label.as_str()).collect();
        let mut found = Vec::new();
        for (text, span) in &axis.values {
            let name = text.trim_matches('"');
            if labels.contains(&name) {
                found.push(name.to_owned());
            } else if self.problems.is_empty() {
                let what = format!("there is no policy `{name}`");
                let mut problem = Problem::new(UNKNOWN_REF, *span, what);
                if let Some(near) = known::closest(name, &labels) {
                    problem = problem.label(format!("did you mean `{near}`?"));
                }
                let known = known::listed(&labels, "and");
                self.problems.push(problem.help(format!(
                    "policies are named by their label: there is {known}; add a [[policy]] for \
                     another"
                )));
            }
        }
        found
    }

    /// What is sought cannot be an axis too.
    fn fixed_by_objective(&mut self, objective: Objective, axes: &[AxisNode]) {
        let (sought, why) = match objective {
            Objective::MaxRate => ("rate", "the rate is what is sought"),
            Objective::MinInstances => ("instances", "the number of instances is what is sought"),
            _ => return,
        };
        for axis in axes.iter().filter(|a| a.path.rsplit('.').next() == Some(sought)) {
            let what = format!("`{}` cannot vary: {why}", axis.path);
            let problem = Problem::new(BAD_PARAM, axis.path_span, what);
            self.problems.push(problem.help("leave this axis out, or choose another objective"));
        }
    }
}

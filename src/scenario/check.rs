//! What is legal but hardly meant, and what only shows once everything is read.

use super::Scenario;
use super::diag::Problem;
use super::tree::Node;

/// Warnings, and errors that concern several sections.
pub(crate) fn check(_scenario: &Scenario, _tree: &Node) -> Vec<Problem> {
    Vec::new()
}

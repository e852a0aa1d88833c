//! The plan of an agent: the steps of a task, for the user who follows it.

use openclaw_content::{Untrusted, clean_line};
use serde::Deserialize;

use super::reply::OutcomeBuilder;
use crate::outcome::ToolFailure;

/// Maximum number of steps.
pub(super) const MAX_STEPS: usize = 50;
/// Maximum length of a step, in characters.
pub(super) const MAX_STEP: usize = 500;

/// A plan, as the arguments of the tool have it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Plan {
    /// The steps, in order.
    pub plan: Vec<PlanStep>,
}

impl Plan {
    /// Whether at most one step is the current one.
    pub fn is_valid(&self) -> bool {
        self.plan.iter().filter(|it| it.status == StepStatus::InProgress).count() <= 1
    }
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PlanStep {
    /// What is done.
    pub step: String,
    /// How far it is.
    pub status: StepStatus,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not begun.
    Pending,
    /// The current step.
    InProgress,
    /// Done.
    Completed,
}

impl StepStatus {
    /// The values in the schema.
    pub(super) const NAMES: [&str; 3] = ["pending", "in_progress", "completed"];

    const fn mark(self) -> &'static str {
        match self {
            Self::Pending => "[ ]",
            Self::InProgress => "[>]",
            Self::Completed => "[x]",
        }
    }
}

/// Shows a plan: the result is what the user sees.
pub(super) fn show(plan: &Plan) -> OutcomeBuilder {
    if !plan.is_valid() {
        let words = "More than one step is `in_progress`. The plan was not changed.";
        return OutcomeBuilder::failed(ToolFailure::InvalidArguments, words);
    }
    let line = |it: &PlanStep| {
        format!("{} {}", it.status.mark(), clean_line(Untrusted::new(&it.step), MAX_STEP))
    };
    let lines: Vec<String> = plan.plan.iter().map(line).collect();
    OutcomeBuilder::default().say(lines.join("\n"))
}

//! What a question about a call says about the tool, for all clients.

use openclaw_content::{Untrusted, clean_excerpt};
use serde_json::Value;

use crate::approval::{ApprovalReason, ApprovalRequest};
use crate::spec::ToolEffect;

/// Maximum characters of a description.
const DESCRIPTION: usize = 400;
/// Maximum characters of a changed description.
const CHANGED_DESCRIPTION: usize = 2_000;

impl ApprovalRequest<'_> {
    /// Returns the tool's label, and why the question is asked if that is a reason for care.
    pub fn title(&self) -> String {
        let label = &self.tool.label;
        match (self.why, self.tool.effect) {
            (ApprovalReason::Changed, _) if !self.changes.is_empty() => {
                format!("{label} has changed since it was first seen or approved:")
            }
            // The earlier definition was not kept.
            (ApprovalReason::Changed, _) => format!(
                "{label} has changed since it was first seen or approved; its new description:"
            ),
            (ApprovalReason::Unlisted, _) => {
                format!("{label}: the server has not listed this URI")
            }
            (_, ToolEffect::Destructive) => format!("{label}: may delete or overwrite data"),
            _ => label.clone(),
        }
    }

    /// Returns the tool's description, given as `text`. A changed tool is described in full, with its
    /// parameters, since any of it may be new.
    pub fn description(&self, text: &str) -> String {
        if self.why != ApprovalReason::Changed {
            return clean_excerpt(Untrusted::new(text), DESCRIPTION);
        }
        let parameters = self.tool.input_schema.get("properties").and_then(Value::as_object);
        let names = parameters.into_iter().flat_map(|it| it.keys()).map(String::as_str);
        let parameters = match names.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "none".to_owned(),
            names => names,
        };
        let words = clean_excerpt(Untrusted::new(text), CHANGED_DESCRIPTION);
        let parameters = clean_excerpt(Untrusted::new(&parameters), DESCRIPTION);
        format!("{words} (parameters: {parameters})")
    }

    /// Returns how the tool has changed, line by line, cleaned: its new description, given as `text`, if
    /// the earlier one was not kept.
    pub fn shown_changes(&self, text: &str) -> Vec<String> {
        if self.why == ApprovalReason::Changed && self.changes.is_empty() {
            return vec![format!("+ {}", self.description(text))];
        }
        let lines = self.changes.iter();
        // In full: nothing is approved that is not shown.
        lines.map(|line| clean_excerpt(Untrusted::new(line), usize::MAX)).collect()
    }
}

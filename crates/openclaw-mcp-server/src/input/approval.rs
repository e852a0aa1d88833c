//! The question whether a call may be made, as a form for the user of a client.

use openclaw_content::{Untrusted, clean_excerpt};
use serde_json::{Value, json};

use super::{ClientQuestion, ELICIT};

/// Maximum length of a question, in characters.
pub(crate) const MAX_QUESTION: usize = 8_000;
/// Maximum length of what "always" allows, in characters.
const MAX_ALWAYS: usize = 600;
/// The answers that a user chooses from.
const ONCE: &str = "allow once";
const ALWAYS: &str = "always allow";
const NO: &str = "deny";

/// A call that the user of a client decides about.
#[derive(Debug)]
pub(crate) struct CallQuestion<'a> {
    /// What is asked, with the call.
    pub(crate) text: String,
    /// What "always" allows, if it is offered.
    pub(crate) always: Option<&'a str>,
}

/// The decision of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalChoice {
    /// Allow this call.
    Once,
    /// Allow also what `always` says.
    Always,
    /// Deny this call.
    Deny,
    /// None: the question was dismissed.
    Dismissed,
}

impl CallQuestion<'_> {
    /// The question as an elicitation.
    pub(crate) fn question(&self) -> ClientQuestion {
        let mut choices = vec![ONCE, NO];
        let mut schema = json!({ "type": "string", "title": "Decision" });
        if let Some(always) = self.always {
            choices.insert(1, ALWAYS);
            let always = clean_excerpt(Untrusted::new(always), MAX_ALWAYS);
            schema["description"] = json!(format!("{ALWAYS}: {always}"));
        }
        schema["enum"] = json!(choices);
        let properties = json!({ "decision": schema });
        let schema =
            json!({ "type": "object", "properties": properties, "required": ["decision"] });
        let params = json!({ "mode": "form", "message": self.text, "requestedSchema": schema });
        ClientQuestion { method: ELICIT, params }
    }

    /// Reads the answer.
    pub(crate) fn choice(&self, answer: &Value) -> ApprovalChoice {
        let decision = answer.pointer("/content/decision").and_then(Value::as_str);
        match (answer.get("action").and_then(Value::as_str), decision) {
            (Some("accept"), Some(ONCE)) => ApprovalChoice::Once,
            (Some("accept"), Some(ALWAYS)) if self.always.is_some() => ApprovalChoice::Always,
            (Some("accept" | "decline"), _) => ApprovalChoice::Deny,
            _ => ApprovalChoice::Dismissed,
        }
    }
}

//! An elicitation as a dialogue: what to show, what to prompt for next, what a typed line means.
//! The caller does the input and output (T11).

mod form;

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp_client::host::{ElicitationAnswer, ElicitationKind};
use openclaw_protocol::mcp::elicitation::{
    Action, Elicitation, QuestionKind as Shown, RespondParams,
};
use openclaw_protocol::{ErrorCode, RequestError, Surface, rpc};
use serde_json::{Map, Value};

use self::form::{Filled, FormField};
use crate::commands::link::look;
use openclaw_terminal::style::{FAINT, STRONG};

/// How much is shown of a server's name, its message, a field, and the reason for a rejection.
const NAME_CHARS: usize = 100;
const MESSAGE_CHARS: usize = 2_000;
const FIELD_CHARS: usize = 500;
const WHY_CHARS: usize = 200;
/// The maximum number of attempts for one field.
const MAX_TRIES: usize = 5;

/// An elicitation that is being answered.
#[derive(Debug)]
pub(crate) struct ElicitationDialogue {
    /// The lines to show first.
    introduction: Vec<String>,
    wanted: Prompt,
}

#[derive(Debug)]
enum Prompt {
    /// A confirmation, and the answer that "yes" gives.
    Consent {
        question: &'static str,
        yes: ElicitationAnswer,
    },
    Form {
        fields: Vec<FormField>,
        values: Map<String, Value>,
        tries: usize,
    },
}

/// The next step after a typed line.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// Prompt for the next field.
    Ask,
    /// Prompt for the same field again, with the reason.
    Again(String),
    /// The answer is complete.
    Done(ElicitationAnswer),
}

/// The result of sending an answer.
#[derive(Debug)]
pub(crate) enum Responded {
    /// Accepted, or no longer needed.
    Done,
    /// Rejected as invalid; the user can answer again.
    Unfit(String),
    /// Could not be sent.
    Failed(String),
}

/// Sends the answer to an elicitation to the gateway.
pub(crate) async fn respond(
    surface: &dyn Surface,
    id: &str,
    answer: ElicitationAnswer,
) -> Responded {
    let (action, content) = match answer {
        ElicitationAnswer::Accept(content) => (Action::Accept, content),
        ElicitationAnswer::Decline => (Action::Decline, None),
        ElicitationAnswer::Cancel => (Action::Cancel, None),
    };
    let params = RespondParams { id: id.to_owned(), action, content };
    match look::<rpc::McpElicitationRespond>(surface, params).await {
        Ok(_) => Responded::Done,
        Err(RequestError::Refused(shape)) => match shape.code {
            ErrorCode::ApprovalNotFound => Responded::Done,
            ErrorCode::InvalidRequest => Responded::Unfit(shape.to_string()),
            _ => Responded::Failed(shape.to_string()),
        },
        Err(error) => Responded::Failed(error.to_string()),
    }
}

impl ElicitationDialogue {
    /// Creates the dialogue. All texts are untrusted, and are sanitized here.
    pub(crate) fn new(server: &str, message: &str, wanted: &ElicitationKind) -> Self {
        let (server, message) = (line(server, NAME_CHARS), line(message, MESSAGE_CHARS));
        let mut introduction =
            vec![format!("MCP server {STRONG}{server}{STRONG:#} asks: {message}")];
        let wanted = match wanted {
            ElicitationKind::Visit(url) => {
                introduction.extend([
                    "  It asks you to open this URL in a browser:".to_owned(),
                    String::new(),
                    format!("    {}", undisguised(url)),
                    String::new(),
                ]);
                Prompt::Consent {
                    question: "Open it only if you trust the server. Accept? [y/N]",
                    yes: ElicitationAnswer::Accept(None),
                }
            }
            ElicitationKind::Form(schema) => {
                let mut fields = FormField::all(schema);
                // Prompted from the end.
                fields.reverse();
                let how = "Enter alone takes the default, leaves out an optional field, or declines. \
                           Never enter passwords here.";
                introduction.push(format!("  {FAINT}{how}{FAINT:#}"));
                if fields.is_empty() {
                    let yes = ElicitationAnswer::Accept(Some(Value::Object(Map::new())));
                    Prompt::Consent { question: "Accept? [y/N]", yes }
                } else {
                    Prompt::Form { fields, values: Map::new(), tries: 0 }
                }
            }
        };
        Self { introduction, wanted }
    }

    /// Creates the dialogue for an elicitation from the gateway.
    pub(crate) fn of(question: &Elicitation) -> Self {
        let wanted = match &question.wanted {
            Shown::Form { requested_schema } => ElicitationKind::Form(requested_schema.clone()),
            Shown::Url { url } => ElicitationKind::Visit(url.clone()),
        };
        Self::new(&question.server, &question.message, &wanted)
    }

    /// The lines to show first.
    pub(crate) fn introduction(&self) -> &[String] {
        &self.introduction
    }

    /// Returns the current prompt.
    pub(crate) fn question(&self) -> String {
        match &self.wanted {
            Prompt::Consent { question, .. } => (*question).to_owned(),
            Prompt::Form { fields, .. } => {
                let question = fields.last().map(FormField::question).unwrap_or_default();
                format!("{}:", line(&question, FIELD_CHARS))
            }
        }
    }

    /// Handles a typed line. Must not be called after [`Next::Done`].
    pub(crate) fn typed(&mut self, typed: &str) -> Next {
        match &mut self.wanted {
            Prompt::Consent { yes, .. } if is_yes(typed) => Next::Done(yes.clone()),
            Prompt::Consent { .. } => Next::Done(ElicitationAnswer::Decline),
            Prompt::Form { fields, values, tries } => {
                let Some(field) = fields.last() else {
                    return Next::Done(ElicitationAnswer::Cancel);
                };
                match field.read(typed.trim()) {
                    Filled::Value(value) => drop(values.insert(field.name.clone(), value)),
                    Filled::LeftOut => {}
                    Filled::Declined => return Next::Done(ElicitationAnswer::Decline),
                    Filled::Wrong(_) if *tries + 1 >= MAX_TRIES => {
                        return Next::Done(ElicitationAnswer::Cancel);
                    }
                    Filled::Wrong(why) => {
                        *tries += 1;
                        return Next::Again(line(&why, WHY_CHARS));
                    }
                }
                fields.pop();
                *tries = 0;
                match fields.is_empty() {
                    true => Next::Done(ElicitationAnswer::Accept(Some(Value::Object(
                        std::mem::take(values),
                    )))),
                    false => Next::Ask,
                }
            }
        }
    }
}

/// Whether the answer is "y" or "yes".
pub(crate) fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

fn line(text: &str, room: usize) -> String {
    clean_line(Untrusted::new(text), room)
}

/// Formats a whole URL. Characters other than visible ASCII are escaped: they may be invisible, or
/// look like others.
fn undisguised(url: &str) -> String {
    let shown = |c: char| match c.is_ascii_graphic() {
        true => c.to_string(),
        false => c.escape_unicode().to_string(),
    };
    url.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(properties: &Value, required: &Value) -> ElicitationDialogue {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        ElicitationDialogue::new("x", "Who are you?", &ElicitationKind::Form(schema))
    }

    #[test]
    fn a_form_is_asked_field_by_field() {
        let properties = json!({ "age": { "type": "integer" }, "name": { "type": "string" } });
        let mut dialogue = form(&properties, &json!(["name"]));
        assert_eq!(dialogue.question(), "age (a whole number; optional):");
        assert_eq!(dialogue.typed("old"), Next::Again("not a whole number".to_owned()));
        assert_eq!(dialogue.typed("36"), Next::Ask);
        assert_eq!(dialogue.question(), "name:");
        let values = json!({ "age": 36, "name": "Ada" });
        assert_eq!(dialogue.typed(" Ada "), Next::Done(ElicitationAnswer::Accept(Some(values))));
    }

    #[test]
    fn an_empty_required_field_declines() {
        let mut dialogue = form(&json!({ "name": { "type": "string" } }), &json!(["name"]));
        assert_eq!(dialogue.typed(""), Next::Done(ElicitationAnswer::Decline));
    }

    #[test]
    fn too_many_invalid_answers_cancel() {
        let mut dialogue = form(&json!({ "age": { "type": "integer" } }), &json!([]));
        for _ in 1..MAX_TRIES {
            assert!(matches!(dialogue.typed("old"), Next::Again(_)));
        }
        assert_eq!(dialogue.typed("old"), Next::Done(ElicitationAnswer::Cancel));
    }

    #[test]
    fn a_form_without_fields_and_a_visit_take_a_yes() {
        let nothing = || form(&json!({}), &json!([]));
        assert_eq!(nothing().typed("y"), Next::Done(ElicitationAnswer::Accept(Some(json!({})))));
        assert_eq!(nothing().typed(""), Next::Done(ElicitationAnswer::Decline));
        let visit = ElicitationKind::Visit("https://example.com/?a=1".to_owned());
        let mut visit = ElicitationDialogue::new("x", "Log in", &visit);
        assert!(visit.introduction().iter().any(|line| line == "    https://example.com/?a=1"));
        assert_eq!(visit.typed("yes"), Next::Done(ElicitationAnswer::Accept(None)));
    }

    #[test]
    fn control_characters_are_removed_and_urls_cannot_be_disguised() {
        let url = "https://good.com\u{202e}\u{200b}/\u{1b}[2J \u{430}";
        let visit = ElicitationKind::Visit(url.to_owned());
        let visit = ElicitationDialogue::new("x\u{1b}[2J", "Log\nin\u{7}", &visit);
        let shown = anstream::adapter::strip_str(&visit.introduction().join("\n")).to_string();
        assert!(
            shown.contains(r"    https://good.com\u{202e}\u{200b}/\u{1b}[2J\u{20}\u{430}"),
            "{shown}"
        );
        assert!(shown.contains("asks: Log in\n"), "{shown}");
        let title = json!({ "a": { "type": "string", "title": "A\u{1b}[2J\nB" } });
        assert!(!form(&title, &json!([])).question().contains(['\u{1b}', '\n']));
    }
}

//! A question of a server, and how a person is led through it: what is shown, what is asked next, what an
//! answer means. Whoever shows it brings the screen and the keyboard (T11).

mod form;

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::connection::client::{ElicitationAnswer, QuestionKind};
use openclaw_protocol::mcp::elicitation::{
    Action, Elicitation, QuestionKind as Shown, RespondParams,
};
use openclaw_protocol::{AskError, ErrorCode, Surface, rpc};
use serde_json::{Map, Value};

use self::form::{Field, Filled};
use crate::commands::link::look;
use crate::output::{FAINT, STRONG};

/// How much is shown of a server's name, of what it says, of a field, and of why something does not fit.
const NAME_CHARS: usize = 100;
const MESSAGE_CHARS: usize = 2_000;
const FIELD_CHARS: usize = 500;
const WHY_CHARS: usize = 200;
/// How often somebody may try to fill in one field.
const MAX_TRIES: usize = 5;

/// A question of a server on its way to an answer.
#[derive(Debug)]
pub(crate) struct Inquiry {
    /// What is shown first.
    introduction: Vec<String>,
    wanted: What,
}

#[derive(Debug)]
enum What {
    /// A yes or a no, and what a yes brings.
    Consent {
        question: &'static str,
        yes: ElicitationAnswer,
    },
    Form {
        fields: Vec<Field>,
        values: Map<String, Value>,
        tries: usize,
    },
}

/// What follows from a line that was typed.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// The next question is to be asked.
    Ask,
    /// The same once more; why.
    Again(String),
    /// That is the answer.
    Done(ElicitationAnswer),
}

/// What came of an answer.
#[derive(Debug)]
pub(crate) enum Responded {
    /// It was taken, or nobody waits for it any more.
    Done,
    /// It does not fit as a whole, and can be given anew.
    Unfit(String),
    /// It could not be given.
    Failed(String),
}

/// Tells the gateway the answer to a question.
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
        Err(AskError::Refused(shape)) => match shape.code {
            ErrorCode::ApprovalNotFound => Responded::Done,
            ErrorCode::InvalidRequest => Responded::Unfit(shape.to_string()),
            _ => Responded::Failed(shape.to_string()),
        },
        Err(error) => Responded::Failed(error.to_string()),
    }
}

impl Inquiry {
    /// A question of this server. All of it is from outside, and is cleaned here.
    pub(crate) fn new(server: &str, message: &str, wanted: &QuestionKind) -> Self {
        let (server, message) = (line(server, NAME_CHARS), line(message, MESSAGE_CHARS));
        let mut introduction = vec![format!("{STRONG}{server}{STRONG:#} asks: {message}")];
        let wanted = match wanted {
            QuestionKind::Visit(url) => {
                introduction.extend([
                    "  It asks you to open this URL in a browser:".to_owned(),
                    String::new(),
                    format!("    {}", undisguised(url)),
                    String::new(),
                ]);
                What::Consent {
                    question: "Open it only if you trust the server. Accept? [y/N]",
                    yes: ElicitationAnswer::Accept(None),
                }
            }
            QuestionKind::Form(schema) => {
                let mut fields = Field::all(schema);
                // Asked from the end.
                fields.reverse();
                let how = "Press Enter for the default, or to skip. Never enter passwords here.";
                introduction.push(format!("  {FAINT}{how}{FAINT:#}"));
                if fields.is_empty() {
                    let yes = ElicitationAnswer::Accept(Some(Value::Object(Map::new())));
                    What::Consent { question: "Accept? [y/N]", yes }
                } else {
                    What::Form { fields, values: Map::new(), tries: 0 }
                }
            }
        };
        Self { introduction, wanted }
    }

    /// A question as the gateway tells it.
    pub(crate) fn of(question: &Elicitation) -> Self {
        let wanted = match &question.wanted {
            Shown::Form { requested_schema } => QuestionKind::Form(requested_schema.clone()),
            Shown::Url { url } => QuestionKind::Visit(url.clone()),
        };
        Self::new(&question.server, &question.message, &wanted)
    }

    /// What is shown first, line by line.
    pub(crate) fn introduction(&self) -> &[String] {
        &self.introduction
    }

    /// What is asked now.
    pub(crate) fn question(&self) -> String {
        match &self.wanted {
            What::Consent { question, .. } => (*question).to_owned(),
            What::Form { fields, .. } => {
                let question = fields.last().map(Field::question).unwrap_or_default();
                format!("{}:", line(&question, FIELD_CHARS))
            }
        }
    }

    /// Somebody typed this. After [`Next::Done`] there is nothing more to ask.
    pub(crate) fn typed(&mut self, typed: &str) -> Next {
        match &mut self.wanted {
            What::Consent { yes, .. } if is_yes(typed) => Next::Done(yes.clone()),
            What::Consent { .. } => Next::Done(ElicitationAnswer::Decline),
            What::Form { fields, values, tries } => {
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

/// Whether that means yes.
pub(crate) fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

fn line(text: &str, room: usize) -> String {
    clean_line(Untrusted::new(text), room)
}

/// An address, all of it. What does not belong into one is shown as what it is: it may look like another
/// character, or not be seen at all.
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

    fn form(properties: &Value, required: &Value) -> Inquiry {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        Inquiry::new("x", "Who are you?", &QuestionKind::Form(schema))
    }

    #[test]
    fn a_form_is_asked_field_by_field() {
        let properties = json!({ "age": { "type": "integer" }, "name": { "type": "string" } });
        let mut inquiry = form(&properties, &json!(["name"]));
        assert_eq!(inquiry.question(), "age (a whole number; optional):");
        assert_eq!(inquiry.typed("old"), Next::Again("not a whole number".to_owned()));
        assert_eq!(inquiry.typed("36"), Next::Ask);
        assert_eq!(inquiry.question(), "name:");
        let values = json!({ "age": 36, "name": "Ada" });
        assert_eq!(inquiry.typed(" Ada "), Next::Done(ElicitationAnswer::Accept(Some(values))));
    }

    #[test]
    fn who_gives_nothing_where_something_is_needed_declines() {
        let mut inquiry = form(&json!({ "name": { "type": "string" } }), &json!(["name"]));
        assert_eq!(inquiry.typed(""), Next::Done(ElicitationAnswer::Decline));
    }

    #[test]
    fn nobody_is_asked_the_same_for_ever() {
        let mut inquiry = form(&json!({ "age": { "type": "integer" } }), &json!([]));
        for _ in 1..MAX_TRIES {
            assert!(matches!(inquiry.typed("old"), Next::Again(_)));
        }
        assert_eq!(inquiry.typed("old"), Next::Done(ElicitationAnswer::Cancel));
    }

    #[test]
    fn a_form_without_fields_and_a_visit_take_a_yes() {
        let nothing = || form(&json!({}), &json!([]));
        assert_eq!(nothing().typed("y"), Next::Done(ElicitationAnswer::Accept(Some(json!({})))));
        assert_eq!(nothing().typed(""), Next::Done(ElicitationAnswer::Decline));
        let visit = QuestionKind::Visit("https://example.com/?a=1".to_owned());
        let mut visit = Inquiry::new("x", "Log in", &visit);
        assert!(visit.introduction().iter().any(|line| line == "    https://example.com/?a=1"));
        assert_eq!(visit.typed("yes"), Next::Done(ElicitationAnswer::Accept(None)));
    }

    #[test]
    fn what_a_server_says_commands_no_terminal_and_disguises_no_address() {
        let url = "https://good.com\u{202e}\u{200b}/\u{1b}[2J \u{430}";
        let visit = QuestionKind::Visit(url.to_owned());
        let visit = Inquiry::new("x\u{1b}[2J", "Log\nin\u{7}", &visit);
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

//! Elicitations: questions of MCP servers to the user. They use ACP's own elicitation if the client
//! has it, a permission request for a yes-or-no question, and are declined otherwise.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, ElicitationAction, ElicitationFormMode, ElicitationMode,
    ElicitationSchema, ElicitationSessionScope, ElicitationUrlMode, PermissionOption,
    PermissionOptionKind, ToolCallId, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use futures_util::future::BoxFuture;
use openclaw_content::{Untrusted, clean_line, printable};
use openclaw_mcp_client::host::{ElicitationAnswer, ElicitationKind, ElicitationRequest, Elicitor};
use openclaw_protocol::mcp::elicitation::{Action, Elicitation, QuestionKind, RespondParams};
use openclaw_protocol::rpc;
use openclaw_tools::schema::Validator;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::client::SessionClient;
use crate::content::text_content;
use crate::current_turn::CurrentTurn;
use crate::gateway::GatewaySession;
use crate::ids::fresh_id;
use crate::questions::{OpenQuestions, PermissionAnswer, choose};
use crate::tasks::SessionTasks;

const YES: &str = "yes";
const NO: &str = "no";
/// Maximum length of a label, or of a message of the client, in characters.
const LABEL: usize = 500;

/// Forwards the questions of MCP servers to the client.
pub(crate) struct SessionElicitations {
    pub(crate) gateway: Arc<GatewaySession>,
    pub(crate) client: Arc<SessionClient>,
    pub(crate) turn: Arc<CurrentTurn>,
    pub(crate) questions: Arc<OpenQuestions>,
    pub(crate) tasks: SessionTasks,
}

/// Forwards the questions of a session's own servers.
impl Elicitor for SessionElicitations {
    fn ask(&self, question: ElicitationRequest) -> BoxFuture<'_, ElicitationAnswer> {
        Box::pin(async move {
            let ElicitationRequest { server, message, wanted, .. } = question;
            // A question ends with the turn that led to it.
            let over = self.turn.over().unwrap_or_else(|| self.tasks.ended().clone());
            let asking = ask(&self.client, &server, &message, wanted, &over);
            asking.await.unwrap_or(ElicitationAnswer::Cancel)
        })
    }
}

impl SessionElicitations {
    /// Forwards a question of a server of the gateway, in a task of its own.
    pub(crate) fn forward(self: &Arc<Self>, asked: Elicitation) {
        let Elicitation { id, server, message, wanted, .. } = asked;
        let wanted = match wanted {
            QuestionKind::Form { requested_schema } => ElicitationKind::Form(requested_schema),
            QuestionKind::Url { url } => ElicitationKind::Visit(url),
        };
        // The client that runs the turn may be another one, whose user is being asked.
        let is_shown = mode(&self.client, &wanted).is_some() || YesNo::read(&wanted).is_some();
        if !is_shown && self.turn.run().is_none() {
            return;
        }
        let withdrawn = self.questions.open(&id);
        let elicitations = Arc::clone(self);
        self.tasks.spawn(async move {
            let client = &elicitations.client;
            let answer = ask(client, &server, &message, wanted, &withdrawn).await;
            elicitations.questions.close(&id);
            let (action, content) = match answer {
                None => return,
                Some(ElicitationAnswer::Accept(content)) => (Action::Accept, content),
                Some(ElicitationAnswer::Decline) => (Action::Decline, None),
                Some(ElicitationAnswer::Cancel) => (Action::Cancel, None),
            };
            let params = RespondParams { id, action, content };
            let gateway = &elicitations.gateway;
            if let Err(error) = gateway.ask::<rpc::McpElicitationRespond>(params).await {
                tracing::info!(%error, "elicitation not accepted");
            }
        });
    }
}

/// Asks the user. Returns `None` if the question was withdrawn.
async fn ask(
    client: &SessionClient,
    server: &str,
    message: &str,
    wanted: ElicitationKind,
    withdrawn: &CancellationToken,
) -> Option<ElicitationAnswer> {
    let message = format!("MCP server `{server}` asks: {message}");
    if let Some(mode) = mode(client, &wanted) {
        let answer = with_elicitation(client, mode, message.clone(), withdrawn).await?;
        return Some(checked(&wanted, answer).unwrap_or_else(|why| {
            client.note(&format!("{message}\nIt was cancelled: invalid answer: {why}"));
            ElicitationAnswer::Cancel
        }));
    }
    if let Some(question) = YesNo::read(&wanted) {
        return question.ask(client, &message, withdrawn).await;
    }
    client.note(&format!("{message}\nIt was declined: this editor cannot show a form."));
    Some(ElicitationAnswer::Decline)
}

/// Returns ACP's own form of the question, if the client supports it.
fn mode(client: &SessionClient, wanted: &ElicitationKind) -> Option<ElicitationMode> {
    let supported = client.capabilities.elicitation.as_ref()?;
    let scope = ElicitationSessionScope::new(client.session.clone());
    match wanted {
        ElicitationKind::Form(schema) => {
            supported.form.as_ref()?;
            let mut schema = schema.clone();
            clean_labels(&mut schema);
            let schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
            Some(ElicitationFormMode::new(scope, schema).into())
        }
        ElicitationKind::Visit(url) => {
            supported.url.as_ref()?;
            Some(ElicitationUrlMode::new(scope, fresh_id(), printable(url)).into())
        }
    }
}

/// Cleans the labels of a form. Names and values are part of the answer, and stay as they are.
fn clean_labels(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(clean_labels),
        Value::Object(members) => {
            for (key, member) in members {
                match (key.as_str(), member) {
                    ("title" | "description", Value::String(label)) => *label = clean(label),
                    ("enumNames", Value::Array(labels)) => {
                        for label in labels {
                            if let Value::String(label) = label {
                                *label = clean(label);
                            }
                        }
                    }
                    (_, member) => clean_labels(member),
                }
            }
        }
        _ => {}
    }
}

fn clean(label: &str) -> String {
    clean_line(Untrusted::new(label), LABEL)
}

async fn with_elicitation(
    client: &SessionClient,
    mode: ElicitationMode,
    message: String,
    withdrawn: &CancellationToken,
) -> Option<ElicitationAnswer> {
    client.updates.flushed().await;
    let sent = client.send_request(CreateElicitationRequest::new(mode, message.clone()));
    let cancellation = sent.cancellation_handle();
    let answer = tokio::select! {
        answer = sent.block_task() => answer,
        () = withdrawn.cancelled() => {
            let _ = cancellation.cancel();
            return None;
        }
    };
    Some(match answer.map(|answer| answer.action) {
        Ok(ElicitationAction::Accept(accepted)) => {
            let content = accepted.content.and_then(|it| serde_json::to_value(it).ok());
            ElicitationAnswer::Accept(content)
        }
        Ok(ElicitationAction::Decline) => ElicitationAnswer::Decline,
        Ok(_) => ElicitationAnswer::Cancel,
        Err(error) => {
            let why = clean(&error.message);
            client.note(&format!("{message}\nThe editor could not show this question: {why}"));
            ElicitationAnswer::Cancel
        }
    })
}

/// Checks that an answer has exactly what was asked for, as the gateway does.
fn checked(
    wanted: &ElicitationKind,
    answer: ElicitationAnswer,
) -> Result<ElicitationAnswer, String> {
    let (schema, content) = match (wanted, answer) {
        (ElicitationKind::Form(schema), ElicitationAnswer::Accept(content)) => (schema, content),
        // There is no form, so there is no content.
        (ElicitationKind::Visit(_), ElicitationAnswer::Accept(_)) => {
            return Ok(ElicitationAnswer::Accept(None));
        }
        (_, answer) => return Ok(answer),
    };
    let empty = Map::new();
    let schema = schema.as_object().unwrap_or(&empty);
    let validator = Validator::compile_for_answers(schema).map_err(|error| error.to_string())?;
    let content = content.unwrap_or_else(|| json!({}));
    validator.check(&content).map_err(|violations| violations.to_string())?;
    Ok(ElicitationAnswer::Accept(Some(content)))
}

/// A question with two answers.
struct YesNo {
    /// The value for "yes".
    yes: ElicitationAnswer,
    no: ElicitationAnswer,
    /// What is shown besides the message.
    detail: Option<String>,
}

impl YesNo {
    fn read(wanted: &ElicitationKind) -> Option<Self> {
        let schema = match wanted {
            ElicitationKind::Visit(url) => {
                return Some(Self {
                    yes: ElicitationAnswer::Accept(None),
                    no: ElicitationAnswer::Decline,
                    detail: Some(format!("Open this URL in a browser:\n{}", printable(url))),
                });
            }
            ElicitationKind::Form(schema) => schema,
        };
        let none = Map::new();
        let fields = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let mut fields = fields.iter();
        match (fields.next(), fields.next()) {
            (None, _) => Some(Self {
                yes: ElicitationAnswer::Accept(Some(json!({}))),
                no: ElicitationAnswer::Decline,
                detail: None,
            }),
            (Some((name, field)), None) if field.get("type") == Some(&json!("boolean")) => {
                let with = |value: bool| ElicitationAnswer::Accept(Some(json!({ name: value })));
                let title = field.get("title").or(field.get("description"));
                let title = title.and_then(Value::as_str).unwrap_or(name);
                Some(Self { yes: with(true), no: with(false), detail: Some(clean(title)) })
            }
            _ => None,
        }
    }

    async fn ask(
        self,
        client: &SessionClient,
        message: &str,
        withdrawn: &CancellationToken,
    ) -> Option<ElicitationAnswer> {
        let detail = self.detail.map(text_content).into_iter().collect::<Vec<_>>();
        let fields = ToolCallUpdateFields::new()
            .title(message.to_owned())
            .status(ToolCallStatus::Pending)
            .content(detail);
        let mut shown = ShownQuestion::new(client);
        let call = ToolCallUpdate::new(shown.id.clone(), fields);
        let options = vec![
            PermissionOption::new(YES, "Yes", PermissionOptionKind::AllowOnce),
            PermissionOption::new(NO, "No", PermissionOptionKind::RejectOnce),
        ];
        let answer = match choose(client, call, options, withdrawn).await {
            PermissionAnswer::Chosen(chosen) if chosen == YES => self.yes,
            PermissionAnswer::Chosen(chosen) if chosen == NO => self.no,
            PermissionAnswer::Chosen(_)
            | PermissionAnswer::Cancelled
            | PermissionAnswer::NotAsked => ElicitationAnswer::Cancel,
            PermissionAnswer::Withdrawn => return None,
        };
        shown.is_answered = matches!(answer, ElicitationAnswer::Accept(_));
        Some(answer)
    }
}

/// The tool call that a question is shown as. Dropping it ends the call for the client: also if the
/// future that waits for the answer is dropped, because the server's call has ended.
struct ShownQuestion<'c> {
    client: &'c SessionClient,
    id: ToolCallId,
    is_answered: bool,
}

impl<'c> ShownQuestion<'c> {
    fn new(client: &'c SessionClient) -> Self {
        let id = ToolCallId::new(format!("question-{}", fresh_id()));
        Self { client, id, is_answered: false }
    }
}

impl Drop for ShownQuestion<'_> {
    fn drop(&mut self) {
        let status =
            if self.is_answered { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
        let fields = ToolCallUpdateFields::new().status(status);
        self.client.update_call(self.id.clone(), fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_boolean_is_a_yes_or_no_question_and_other_forms_are_not() {
        let form = |schema: Value| YesNo::read(&ElicitationKind::Form(schema));
        let yes = form(json!({"type": "object", "properties": {"sure": {"type": "boolean"}}}));
        let yes = yes.map(|question| (question.yes, question.no));
        let with = |value: bool| ElicitationAnswer::Accept(Some(json!({"sure": value})));
        assert_eq!(yes, Some((with(true), with(false))));
        assert!(form(json!({"type": "object", "properties": {}})).is_some());
        assert!(form(json!({"properties": {"name": {"type": "string"}}})).is_none());
        assert!(YesNo::read(&ElicitationKind::Visit("https://example.com".to_owned())).is_some());
    }

    #[test]
    fn labels_and_urls_are_cleaned_and_values_are_kept() {
        let evil = "Sure?\u{1b}[31m\u{202e}\n# no";
        let schema = json!({"properties": {"sure": {"type": "boolean", "title": evil}}});
        let detail = |wanted: ElicitationKind| YesNo::read(&wanted).and_then(|it| it.detail);
        assert_eq!(detail(ElicitationKind::Form(schema)).as_deref(), Some("Sure?[31m # no"));
        let shown = detail(ElicitationKind::Visit("https://a.test/\u{202e}x".to_owned()));
        assert_eq!(
            shown.as_deref(),
            Some("Open this URL in a browser:\nhttps://a.test/\\u{202e}x")
        );

        let mut form = json!({"properties": {
            "title": {"type": "string", "description": evil, "default": evil},
            "pick": {"enum": [evil], "enumNames": [evil]},
            "one": {"oneOf": [{"const": evil, "title": evil}]},
        }});
        clean_labels(&mut form);
        let clean = "Sure?[31m # no";
        let expected = json!({"properties": {
            "title": {"type": "string", "description": clean, "default": evil},
            "pick": {"enum": [evil], "enumNames": [clean]},
            "one": {"oneOf": [{"const": evil, "title": clean}]},
        }});
        assert_eq!(form, expected);
    }

    #[test]
    fn an_answer_must_match_the_form() {
        let form = ElicitationKind::Form(json!({
            "type": "object",
            "properties": {"ok": {"type": "boolean"}, "on": {"type": "string", "format": "date"}},
            "required": ["ok"],
        }));
        let accept = |content: Value| ElicitationAnswer::Accept(Some(content));
        let valid = accept(json!({"ok": true, "on": "2026-07-28"}));
        assert_eq!(checked(&form, valid.clone()), Ok(valid));
        for content in [json!({"ok": "notbool"}), json!({}), json!({"ok": true, "on": "today"})] {
            assert!(checked(&form, accept(content.clone())).is_err(), "{content}");
        }
        assert!(checked(&form, ElicitationAnswer::Accept(None)).is_err());
        let decline = ElicitationAnswer::Decline;
        assert_eq!(checked(&form, decline.clone()), Ok(decline));
        let visit = ElicitationKind::Visit("https://example.com".to_owned());
        let visited = checked(&visit, accept(json!({"ok": true})));
        assert_eq!(visited, Ok(ElicitationAnswer::Accept(None)));
    }
}

//! Elicitations: questions of MCP servers to the user. They use ACP's own elicitation if the client
//! has it, a permission request for a yes-or-no question, and are declined otherwise.

use std::sync::{Arc, Weak};

use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, ElicitationAction, ElicitationFormMode, ElicitationMode,
    ElicitationSchema, ElicitationSessionScope, ElicitationUrlMode, PermissionOption,
    PermissionOptionKind, ToolCallId, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use futures_util::future::BoxFuture;
use openclaw_mcp::connection::client::{
    ElicitationAnswer, ElicitationKind, ElicitationRequest, Elicitor,
};
use openclaw_protocol::mcp::elicitation::{Action, Elicitation, QuestionKind, RespondParams};
use openclaw_protocol::{ask as request, rpc};
use openclaw_tools::schema::Validator;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::fresh_name;
use crate::calls::text_content;
use crate::permission::{PermissionAnswer, choose};
use crate::session::AcpSession;

const YES: &str = "yes";
const NO: &str = "no";

/// Forwards the questions of a session's own servers.
pub(crate) struct SessionElicitor(pub(crate) Weak<AcpSession>);

impl Elicitor for SessionElicitor {
    fn ask(&self, question: ElicitationRequest) -> BoxFuture<'_, ElicitationAnswer> {
        Box::pin(async move {
            let Some(session) = self.0.upgrade() else { return ElicitationAnswer::Cancel };
            let ElicitationRequest { server, message, wanted, .. } = question;
            // A question ends with the turn that led to it.
            let over = session.lock().turn.as_ref().map(|turn| turn.over.clone());
            let over = over.unwrap_or_else(|| session.ended.clone());
            let asking = ask(&session, &server, &message, wanted, &over);
            asking.await.unwrap_or(ElicitationAnswer::Cancel)
        })
    }
}

/// Forwards a question of a server of the gateway, in a task of its own.
pub(crate) fn forward(session: &Arc<AcpSession>, asked: Elicitation) {
    let withdrawn = CancellationToken::new();
    session.lock().open_questions.push((asked.id.clone(), withdrawn.clone()));
    let asking = Arc::clone(session);
    session.spawn(async move {
        let Elicitation { id, server, message, wanted, .. } = asked;
        let wanted = match wanted {
            QuestionKind::Form { requested_schema } => ElicitationKind::Form(requested_schema),
            QuestionKind::Url { url } => ElicitationKind::Visit(url),
        };
        let answer = ask(&asking, &server, &message, wanted, &withdrawn).await;
        asking.lock().open_questions.retain(|(open, _)| *open != id);
        let (action, content) = match answer {
            None => return,
            Some(ElicitationAnswer::Accept(content)) => (Action::Accept, content),
            Some(ElicitationAnswer::Decline) => (Action::Decline, None),
            Some(ElicitationAnswer::Cancel) => (Action::Cancel, None),
        };
        let params = RespondParams { id, action, content };
        let responded = request::<rpc::McpElicitationRespond>(&*asking.surface, params).await;
        if let Err(error) = responded {
            tracing::info!(%error, "elicitation not accepted");
        }
    });
}

/// Asks the user. Returns `None` if the question was withdrawn.
async fn ask(
    session: &AcpSession,
    server: &str,
    message: &str,
    wanted: ElicitationKind,
    withdrawn: &CancellationToken,
) -> Option<ElicitationAnswer> {
    let message = format!("MCP server `{server}` asks: {message}");
    if let Some(mode) = mode(session, &wanted) {
        let answer = with_elicitation(session, mode, message.clone(), withdrawn).await?;
        return Some(checked(&wanted, answer).unwrap_or_else(|why| {
            session.note(&format!("{message}\nIt was cancelled: invalid answer: {why}"));
            ElicitationAnswer::Cancel
        }));
    }
    if let Some(question) = YesNo::of(&wanted) {
        return question.ask(session, &message, withdrawn).await;
    }
    session.note(&format!("{message}\nIt was declined: this editor cannot show a form."));
    Some(ElicitationAnswer::Decline)
}

/// Returns ACP's own form of the question, if the client supports it.
fn mode(session: &AcpSession, wanted: &ElicitationKind) -> Option<ElicitationMode> {
    let supported = session.client.elicitation.as_ref()?;
    let scope = ElicitationSessionScope::new(session.id.clone());
    match wanted {
        ElicitationKind::Form(schema) => {
            supported.form.as_ref()?;
            let schema: ElicitationSchema = serde_json::from_value(schema.clone()).ok()?;
            Some(ElicitationFormMode::new(scope, schema).into())
        }
        ElicitationKind::Visit(url) => {
            supported.url.as_ref()?;
            Some(ElicitationUrlMode::new(scope, fresh_name(), url.clone()).into())
        }
    }
}

async fn with_elicitation(
    session: &AcpSession,
    mode: ElicitationMode,
    message: String,
    withdrawn: &CancellationToken,
) -> Option<ElicitationAnswer> {
    session.updates.flushed().await;
    let sent = session.cx.send_request(CreateElicitationRequest::new(mode, message));
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
        _ => ElicitationAnswer::Cancel,
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
    fn of(wanted: &ElicitationKind) -> Option<Self> {
        let schema = match wanted {
            ElicitationKind::Visit(url) => {
                return Some(Self {
                    yes: ElicitationAnswer::Accept(None),
                    no: ElicitationAnswer::Decline,
                    detail: Some(format!("Open this URL in a browser:\n{url}")),
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
                Some(Self { yes: with(true), no: with(false), detail: Some(title.to_owned()) })
            }
            _ => None,
        }
    }

    async fn ask(
        self,
        session: &AcpSession,
        message: &str,
        withdrawn: &CancellationToken,
    ) -> Option<ElicitationAnswer> {
        let detail = self.detail.map(text_content).into_iter().collect::<Vec<_>>();
        let fields = ToolCallUpdateFields::new()
            .title(message.to_owned())
            .status(ToolCallStatus::Pending)
            .content(detail);
        let id = ToolCallId::new(format!("question-{}", fresh_name()));
        let options = vec![
            PermissionOption::new(YES, "Yes", PermissionOptionKind::AllowOnce),
            PermissionOption::new(NO, "No", PermissionOptionKind::RejectOnce),
        ];
        match choose(session, ToolCallUpdate::new(id, fields), options, withdrawn).await {
            PermissionAnswer::Chosen(chosen) if chosen == YES => Some(self.yes),
            PermissionAnswer::Chosen(chosen) if chosen == NO => Some(self.no),
            PermissionAnswer::Chosen(_) | PermissionAnswer::Cancelled => {
                Some(ElicitationAnswer::Cancel)
            }
            PermissionAnswer::Withdrawn => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_boolean_is_a_yes_or_no_question_and_other_forms_are_not() {
        let form = |schema: Value| YesNo::of(&ElicitationKind::Form(schema));
        let yes = form(json!({"type": "object", "properties": {"sure": {"type": "boolean"}}}));
        let yes = yes.map(|question| (question.yes, question.no));
        let with = |value: bool| ElicitationAnswer::Accept(Some(json!({"sure": value})));
        assert_eq!(yes, Some((with(true), with(false))));
        assert!(form(json!({"type": "object", "properties": {}})).is_some());
        assert!(form(json!({"properties": {"name": {"type": "string"}}})).is_none());
        assert!(YesNo::of(&ElicitationKind::Visit("https://example.com".to_owned())).is_some());
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

//! Elicitations: questions of servers during a call, answered by a connected client (T11).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_mcp_client::host::{
    ElicitationAnswer, ElicitationKind, ElicitationRequest, Elicitor, PATIENCE,
};
use openclaw_protocol::ErrorShape;
use openclaw_protocol::approvals::ResolvedReason;
use openclaw_protocol::mcp::elicitation::{
    Action, Elicitation, QuestionKind as Shown, ResolvedEvent, RespondParams,
};
use openclaw_tools::schema::Validator;
use serde_json::{Map, Value};

use crate::callers::{Callers, Connected};
use crate::clock::now_ms;
use crate::pending_requests::OpenRequests;

/// The engine times out this much later, so that the timeout is reported here first.
const MARGIN: Duration = Duration::from_secs(5);

/// Maximum number of pending questions.
const MAX_WAITING: usize = 32;
/// Maximum size of a form, in bytes: it is kept, and sent to every client that may answer.
const MAX_FORM: usize = 64 * 1024;
/// Maximum length of a URL to visit, in bytes.
const MAX_ADDRESS: usize = 16 * 1024;

/// Sends questions of servers to the connected clients: for servers, these are the one user whom they ask.
#[derive(Debug)]
pub(crate) struct Elicitations {
    callers: Arc<Callers>,
    pending: OpenRequests<Elicitation, ElicitationAnswer>,
}

impl Elicitations {
    pub(crate) fn new(callers: Arc<Callers>) -> Self {
        Self { callers, pending: OpenRequests::default() }
    }

    /// The pending questions that a caller may answer, oldest first.
    pub(crate) fn list(&self, caller: &Connected) -> Vec<Elicitation> {
        let mut elicitations = self.pending.list();
        elicitations.retain(|it| caller.answers_for(&it.session_keys));
        elicitations.sort_by_key(|it| it.created_at_ms);
        elicitations
    }

    /// Answers a question.
    pub(crate) fn respond(&self, params: &RespondParams) -> Result<(), ErrorShape> {
        self.pending.answer(&params.id, |asked| match (params.action, &params.content) {
            (Action::Accept, content) => accepted(&asked.wanted, content.as_ref()),
            (_, Some(_)) => Err(ErrorShape::invalid("`content` is only allowed with `accept`")),
            (Action::Decline, None) => Ok(ElicitationAnswer::Decline),
            (Action::Cancel, None) => Ok(ElicitationAnswer::Cancel),
        })
    }
}

/// Builds an accepting answer with exactly the requested content.
fn accepted(wanted: &Shown, content: Option<&Value>) -> Result<ElicitationAnswer, ErrorShape> {
    match (wanted, content) {
        (Shown::Url { .. }, None) => Ok(ElicitationAnswer::Accept(None)),
        (Shown::Url { .. }, Some(_)) => Err(ErrorShape::invalid("no `content` is expected here")),
        (Shown::Form { requested_schema }, content) => {
            let nothing = Value::Object(Map::new());
            let content = content.unwrap_or(&nothing);
            let empty = Map::new();
            let schema = requested_schema.as_object().unwrap_or(&empty);
            let validator = Validator::compile_for_answers(schema)
                .map_err(|error| ErrorShape::invalid(format!("cannot be accepted: {error}")))?;
            validator.check(content).map_err(|violations| {
                ErrorShape::invalid(format!("invalid answer: {violations}"))
            })?;
            Ok(ElicitationAnswer::Accept(Some(content.clone())))
        }
    }
}

/// Why no client could answer this question.
fn unanswerable(wanted: &ElicitationKind) -> Option<&'static str> {
    match wanted {
        ElicitationKind::Visit(url) => (url.len() > MAX_ADDRESS).then_some("its URL is too long"),
        ElicitationKind::Form(schema) if schema.to_string().len() > MAX_FORM => {
            Some("its form is too large")
        }
        ElicitationKind::Form(schema) => {
            let is_usable = schema.as_object().is_some_and(|it| Validator::look_at(it).is_ok());
            (!is_usable).then_some("its form is invalid")
        }
    }
}

impl Elicitor for Elicitations {
    fn ask(&self, question: ElicitationRequest) -> BoxFuture<'_, ElicitationAnswer> {
        Box::pin(self.ask_callers(question))
    }
}

impl Elicitations {
    async fn ask_callers(&self, question: ElicitationRequest) -> ElicitationAnswer {
        let asked = self.callers.who_answers_for(&question.sessions());
        let trouble = if asked.is_empty() {
            Some("no client can answer")
        } else if self.pending.count() >= MAX_WAITING {
            Some("too many pending questions")
        } else {
            unanswerable(&question.wanted)
        };
        if let Some(trouble) = trouble {
            tracing::info!(server = %question.server, "declined a question: {trouble}");
            return ElicitationAnswer::Decline;
        }
        let timeout = PATIENCE.saturating_sub(MARGIN);
        let elicitation = self.elicitation(question, timeout);
        let id = elicitation.id.clone();
        // Register first: the answer may arrive immediately.
        let answered = self.pending.open(id.clone(), elicitation.clone());
        let mut pending = Pending {
            elicitations: self,
            id,
            sessions: elicitation.session_keys.clone(),
            asked: &asked,
            reason: ResolvedReason::Cancelled,
            action: None,
        };
        self.callers.send_to_these(&asked, elicitation.clone());
        let answer = tokio::select! {
            biased;
            answer = tokio::time::timeout(timeout, answered) => answer,
            () = self.all_left(&asked, &elicitation.session_keys) => {
                return ElicitationAnswer::Cancel;
            }
        };
        match answer {
            Ok(Ok(answer)) => {
                pending.reason = ResolvedReason::User;
                pending.action = Some(match &answer {
                    ElicitationAnswer::Accept(_) => Action::Accept,
                    ElicitationAnswer::Decline => Action::Decline,
                    ElicitationAnswer::Cancel => Action::Cancel,
                });
                answer
            }
            Ok(Err(_)) => ElicitationAnswer::Cancel,
            Err(_) => {
                pending.reason = ResolvedReason::Expired;
                ElicitationAnswer::Cancel
            }
        }
    }

    /// Waits until no client that may answer is connected: neither one that was asked, nor one that
    /// has connected since.
    async fn all_left(&self, asked: &BTreeSet<u64>, sessions: &[String]) {
        let mut asked = asked.clone();
        while !asked.is_empty() {
            self.callers.all_left(&asked).await;
            asked = self.callers.who_answers_for(sessions);
        }
    }

    /// The question as clients see it.
    fn elicitation(&self, question: ElicitationRequest, timeout: Duration) -> Elicitation {
        let session_keys = question.sessions();
        let ElicitationRequest { server, message, wanted, .. } = question;
        let now = now_ms();
        let timeout = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        Elicitation {
            id: format!("{server}-{now}-{}", self.pending.number()),
            server,
            session_keys,
            message,
            wanted: match wanted {
                ElicitationKind::Form(requested_schema) => Shown::Form { requested_schema },
                ElicitationKind::Visit(url) => Shown::Url { url },
            },
            created_at_ms: now,
            expires_at_ms: now.saturating_add(timeout),
        }
    }
}

/// A pending question. Dropping it closes the question and notifies the clients that were asked.
struct Pending<'a> {
    elicitations: &'a Elicitations,
    id: String,
    sessions: Vec<String>,
    asked: &'a BTreeSet<u64>,
    reason: ResolvedReason,
    action: Option<Action>,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let Elicitations { callers, pending } = self.elicitations;
        pending.close(&self.id);
        let (id, action, reason) = (std::mem::take(&mut self.id), self.action, self.reason);
        let event = ResolvedEvent { id, action, reason };
        // Also to those that have connected since, and may have listed it.
        let meant = &callers.who_answers_for(&self.sessions) | self.asked;
        callers.send_to_these(&meant, event);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use futures_util::FutureExt as _;
    use openclaw_mcp_client::host::CallInProgress;
    use openclaw_protocol::connect::{ClientInfo, caps};
    use serde_json::json;

    use super::*;
    use crate::socket::Caller;

    const SESSION: &str = "here";

    /// `Elicitations` with one caller that can answer.
    fn elicitations() -> Elicitations {
        let elicitations = Elicitations::new(Arc::default());
        let caller = elicitations.callers.add(Caller {
            client: ClientInfo::default(),
            role: "operator".to_owned(),
            scopes: vec!["operator.approvals".to_owned()],
            caps: vec![caps::ELICITATION.to_owned()],
            commands: Vec::new(),
            remote: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            connection: "this process".to_owned(),
        });
        caller.follow(SESSION);
        elicitations
    }

    fn question(wanted: ElicitationKind) -> ElicitationRequest {
        let (server, message) = ("x".to_owned(), "Well?".to_owned());
        let (agent, session) = ("main".to_owned(), Some(SESSION.to_owned()));
        let calls = vec![CallInProgress { agent, session }];
        ElicitationRequest { server, calls, message, wanted, id: None }
    }

    fn form() -> ElicitationRequest {
        question(ElicitationKind::Form(json!({ "type": "object", "properties": {} })))
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_is_not_answered_in_time_is_cancelled_and_closed() {
        let elicitations = elicitations();
        // Before the engine times out, so that it is reported as expired.
        let answer = tokio::time::timeout(PATIENCE, elicitations.ask(form())).await.unwrap();
        assert_eq!((answer, elicitations.pending.count()), (ElicitationAnswer::Cancel, 0));
    }

    #[tokio::test]
    async fn an_unanswerable_question_is_declined_immediately() {
        let elicitations = elicitations();
        let forms = [
            json!([]),
            json!({ "type": "object", "properties": { "a": { "type": 5 } } }),
            json!({ "type": "object", "description": "x".repeat(MAX_FORM) }),
        ];
        for form in forms {
            let answer =
                elicitations.ask(question(ElicitationKind::Form(form.clone()))).now_or_never();
            assert_eq!(answer, Some(ElicitationAnswer::Decline), "{form}");
        }
        let address = format!("https://x.test/{}", "a".repeat(MAX_ADDRESS));
        let answer = elicitations.ask(question(ElicitationKind::Visit(address))).now_or_never();
        assert_eq!(answer, Some(ElicitationAnswer::Decline));
        let alone = ElicitationRequest { calls: Vec::new(), ..form() };
        assert_eq!(
            elicitations.ask(alone).now_or_never(),
            Some(ElicitationAnswer::Decline),
            "no session"
        );
    }

    #[tokio::test]
    async fn pending_questions_are_limited() {
        let elicitations = elicitations();
        let mut waiting: Vec<_> = (0..MAX_WAITING).map(|_| elicitations.ask(form())).collect();
        assert!(waiting.iter_mut().all(|asking| asking.now_or_never().is_none()));
        assert_eq!(elicitations.ask(form()).now_or_never(), Some(ElicitationAnswer::Decline));
        waiting.pop();
        assert!(elicitations.ask(form()).now_or_never().is_none(), "there is room again");
    }
}

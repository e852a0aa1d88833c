//! What the gateway asks during a run, put to the client: approvals of calls, and elicitations of MCP
//! servers.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use openclaw_content::{QuestionText, QuestionTooLong};
use openclaw_mcp_client::host::{ElicitationAnswer, ElicitationKind};
use openclaw_protocol::approvals::{
    self, Approval, ApprovalKind, Decision, PassParams, RespondParams as Decided,
};
use openclaw_protocol::chat::SendParams;
use openclaw_protocol::mcp::elicitation::{self, Action, Elicitation, QuestionKind, RespondParams};
use openclaw_protocol::{Event, RequestError, Rpc, Surface, ask, names, rpc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::run::SHORT;
use crate::input::approval::{ApprovalChoice, CallQuestion, MAX_QUESTION};
use crate::input::{AskableClient, ClientQuestion, ask_if_able, elicited};

/// Maximum number of questions of a run that wait for an answer.
const MAX_OPEN: usize = 16;

/// The input that the client is asked for during a run.
pub(super) struct RunInput {
    run: String,
    session: String,
    surface: Arc<dyn Surface>,
    client: Arc<dyn AskableClient>,
    asking: FuturesUnordered<BoxFuture<'static, String>>,
    /// Those that wait for an answer, by id.
    open: HashMap<String, CancellationToken>,
    next: u64,
}

impl RunInput {
    pub(super) fn new(
        sent: &SendParams,
        surface: Arc<dyn Surface>,
        client: Arc<dyn AskableClient>,
    ) -> Self {
        Self {
            run: sent.idempotency_key.clone(),
            session: sent.session_key.clone(),
            surface,
            client,
            asking: FuturesUnordered::new(),
            open: HashMap::new(),
            next: 0,
        }
    }

    /// Handles an event of the gateway, if it is about a question.
    pub(super) fn handle(&mut self, event: &Event) {
        let surface = Arc::clone(&self.surface);
        let client = Arc::clone(&self.client);
        match &*event.event {
            names::APPROVAL_REQUESTED => {
                let Some(approval) = event.read::<Approval>() else { return };
                // A foreign gateway does not name the run, and sends those of all sessions.
                let is_ours = match (&approval.run_id, &approval.session_key) {
                    (Some(run), _) => *run == self.run,
                    (None, Some(session)) => *session == self.session,
                    (None, None) => true,
                };
                let is_asked = is_ours && self.open.len() < MAX_OPEN;
                self.add(approval.id.clone(), async move {
                    if is_asked {
                        approve(&*surface, &*client, approval).await;
                    } else {
                        pass(&*surface, approval.id).await;
                    }
                });
            }
            names::MCP_ELICITATION_REQUESTED => {
                let Some(asked) = event.read::<Elicitation>() else { return };
                let number = self.next;
                let is_asked = self.open.len() < MAX_OPEN;
                self.next += 1;
                self.add(asked.id.clone(), async move {
                    let answer = if is_asked {
                        elicit(&*client, &asked, number).await
                    } else {
                        ElicitationAnswer::Decline
                    };
                    respond(&*surface, asked.id, answer).await;
                });
            }
            names::APPROVAL_RESOLVED => {
                let resolved = event.read::<approvals::ResolvedEvent>();
                self.withdraw(resolved.map(|it| it.id));
            }
            names::MCP_ELICITATION_RESOLVED => {
                let resolved = event.read::<elicitation::ResolvedEvent>();
                self.withdraw(resolved.map(|it| it.id));
            }
            _ => {}
        }
    }

    /// Ends a question that is not open any more.
    fn withdraw(&mut self, id: Option<String>) {
        if let Some(withdrawn) = id.and_then(|id| self.open.remove(&id)) {
            withdrawn.cancel();
        }
    }

    fn add(&mut self, id: String, asking: impl Future<Output = ()> + Send + 'static) {
        let withdrawn = CancellationToken::new();
        self.open.insert(id.clone(), withdrawn.clone());
        self.asking.push(Box::pin(async move {
            tokio::select! {
                () = asking => {}
                () = withdrawn.cancelled() => {}
            }
            id
        }));
    }

    /// Asks the client, until it is dropped. Cancel-safe.
    pub(super) async fn ask(&mut self) -> Infallible {
        while let Some(id) = self.asking.next().await {
            self.open.remove(&id);
        }
        std::future::pending().await
    }
}

/// Sends a short request about a question, which may not be open any more.
async fn send<R: Rpc>(surface: &dyn Surface, params: R::Params) {
    let sent: Result<Result<R::Result, RequestError>, _> =
        timeout(SHORT, ask::<R>(surface, params)).await;
    if let Ok(Err(error)) = sent {
        tracing::info!(%error, "answer not accepted");
    }
}

/// Leaves the decision to others, or to the fallback of the configuration.
async fn pass(surface: &dyn Surface, id: String) {
    send::<rpc::ApprovalsPass>(surface, PassParams { id }).await;
}

/// Has the client's user decide about a call.
async fn approve(surface: &dyn Surface, client: &dyn AskableClient, approval: Approval) {
    let offers_always = approval.allowed_decisions.contains(&Decision::AllowAlways);
    let always = approval.always.first().filter(|_| offers_always);
    let text = match text(&approval) {
        Ok(text) => text,
        Err(error) => {
            tracing::warn!(tool = approval.tool, %error, "the client is not asked");
            return pass(surface, approval.id).await;
        }
    };
    let call = CallQuestion { text, always: always.map(|always| always.words.as_str()) };
    let answer = ask_if_able(client, call.question()).await;
    let choice = answer.map_or(ApprovalChoice::Dismissed, |answer| call.choice(&answer));
    let decision = match choice {
        ApprovalChoice::Dismissed => return pass(surface, approval.id).await,
        ApprovalChoice::Once => Decision::AllowOnce,
        ApprovalChoice::Always => Decision::AllowAlways,
        ApprovalChoice::Deny => Decision::Deny,
    };
    let params = Decided { id: approval.id, decision, always: None, instead: None };
    send::<rpc::ApprovalsRespond>(surface, params).await;
}

/// What the client shows: the title names the server and the tool.
fn text(approval: &Approval) -> Result<String, QuestionTooLong> {
    let title = &approval.title;
    let title = match approval.kind {
        ApprovalKind::Sampling => format!("{title}. Allow it?"),
        ApprovalKind::Call => format!("Allow the agent to call `{}`?\n{title}", approval.tool),
    };
    let question = QuestionText {
        title: &title,
        arguments: approval.args.as_ref().map_or("{}", |args| args.get()),
        changes: &approval.changes,
        description: approval.description.as_deref().unwrap_or_default(),
        whole: approval.whole.as_deref(),
    };
    question.fit(MAX_QUESTION)
}

async fn elicit(client: &dyn AskableClient, asked: &Elicitation, number: u64) -> ElicitationAnswer {
    let message = format!("MCP server `{}` asks: {}", asked.server, asked.message);
    let wanted = match &asked.wanted {
        QuestionKind::Form { requested_schema } => ElicitationKind::Form(requested_schema.clone()),
        QuestionKind::Url { url } => ElicitationKind::Visit(url.clone()),
    };
    match ask_if_able(client, ClientQuestion::elicitation(&message, &wanted, number)).await {
        Ok(answer) => elicited(&answer),
        Err(_) => ElicitationAnswer::Decline,
    }
}

async fn respond(surface: &dyn Surface, id: String, answer: ElicitationAnswer) {
    let (action, content) = match answer {
        ElicitationAnswer::Accept(content) => (Action::Accept, content),
        ElicitationAnswer::Decline => (Action::Decline, None),
        ElicitationAnswer::Cancel => (Action::Cancel, None),
    };
    send::<rpc::McpElicitationRespond>(surface, RespondParams { id, action, content }).await;
}

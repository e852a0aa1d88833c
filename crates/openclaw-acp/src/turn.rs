//! A prompt: a turn of the gateway, from the request to its stop reason.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    ContentBlock, PromptResponse, SessionInfoUpdate, SessionUpdate, StopReason,
};
use agent_client_protocol::{Error, RequestCancellation};
use openclaw_protocol::chat::{SendParams, SendStatus};
use openclaw_protocol::sessions::{DescribeParams, Row};
use openclaw_protocol::{ask, ask_in, rpc};
use openclaw_trace::{Span, SpanContext, SpanKind};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::agent::fresh_name;
use crate::blocks::Prompt;
use crate::content::preformatted;
use crate::error::{internal, invalid_params, invalid_request, refused};
use crate::history::show_usage;
use crate::prompts::{self, ExpandedPrompt};
use crate::session::{AcpSession, PromptTurn, TurnEnd};
use crate::{calls, commands};

/// The interval of polling for the end of a turn after events were lost.
const RECHECK: Duration = Duration::from_secs(1);
/// How long an aborted turn may take to end before it is reported as cancelled anyway.
const ABORTED: Duration = Duration::from_secs(10);
/// How long a command about servers waits for those that are starting.
const BRIEFLY: Duration = Duration::from_secs(2);
/// The timeout of asking for the title.
const TITLE: Duration = Duration::from_secs(2);

/// A turn that is registered with its session.
pub(crate) struct BegunTurn {
    session: Arc<AcpSession>,
    prompt: Prompt,
    run: String,
    end: oneshot::Receiver<TurnEnd>,
    cancelled: CancellationToken,
    /// Ends with the turn.
    span: Span,
}

/// Registers a turn.
///
/// # Errors
/// If the prompt is invalid, or the session has a running turn.
pub(crate) fn begin(
    session: &Arc<AcpSession>,
    blocks: Vec<ContentBlock>,
    trace: Option<&SpanContext>,
) -> Result<BegunTurn, Error> {
    if session.ended.is_cancelled() || session.lock().is_gateway_gone {
        return Err(internal("the connection to the gateway was lost; load the session again"));
    }
    let prompt = Prompt::read(blocks).map_err(invalid_params)?;
    let (sender, end) = oneshot::channel();
    let (run, cancelled) = (fresh_name(), CancellationToken::new());
    let mut state = session.lock();
    if state.turn.is_some() {
        return Err(invalid_request(
            "a prompt is already running in this session; wait for it, or send session/cancel",
        ));
    }
    state.turns += 1;
    state.calls.clear();
    state.turn = Some(PromptTurn {
        run: run.clone(),
        cancelled: cancelled.clone(),
        over: CancellationToken::new(),
        end: Some(sender),
        text: String::new(),
        is_command: prompt.command_name().is_some(),
        has_gap: false,
        is_started: false,
    });
    drop(state);
    let span = session.tracer.start("session/prompt", SpanKind::Server, trace);
    span.set_text("gen_ai.conversation.id", &session.key);
    span.set("rpc.system.name", "jsonrpc");
    span.set("rpc.method", "session/prompt");
    span.set("jsonrpc.protocol.version", "2.0");
    Ok(BegunTurn { session: Arc::clone(session), prompt, run, end, cancelled, span })
}

/// A turn that is dropped is not running any more.
impl Drop for BegunTurn {
    fn drop(&mut self) {
        calls::close(&self.session);
        let turn = self.session.lock().turn.take();
        if let Some(turn) = turn {
            turn.over.cancel();
        }
    }
}

impl BegunTurn {
    /// Runs the turn to its end.
    pub(crate) async fn run(
        mut self,
        request: RequestCancellation,
    ) -> Result<PromptResponse, Error> {
        let session = Arc::clone(&self.session);
        let cancelled = self.cancelled.clone();
        let cancelled = async move {
            tokio::select! {
                () = cancelled.cancelled() => {}
                () = request.cancelled() => {}
            }
        };
        tokio::pin!(cancelled);
        let is_compaction = self.prompt.command_name() == Some("compact");
        let ready = async {
            // A command about servers explains what the others wait for.
            let patience = match self.prompt.mcp_command() {
                Some(_) => BRIEFLY.min(session.patience),
                None => session.patience,
            };
            session.servers_ready(patience).await;
            session.show_notes();
            prompts::expand(&session, &mut self.prompt).await
        };
        let ready = tokio::select! {
            ready = ready => ready,
            () = &mut cancelled => return Ok(PromptResponse::new(StopReason::Cancelled)),
        };
        let reason = match ready {
            ExpandedPrompt::Message => {
                let is_learned = session.lock().risks.is_some();
                if !is_learned {
                    commands::learn_tools(&session).await;
                }
                let reason = self.send(&mut cancelled).await?;
                if is_compaction {
                    show_usage(&session).await;
                }
                show_title(&session).await;
                reason
            }
            ExpandedPrompt::Answered(text) => {
                session.say(preformatted(text));
                StopReason::EndTurn
            }
        };
        calls::close(&session);
        // The response says that there are no more updates.
        tokio::select! {
            () = session.updates.flushed() => {}
            () = session.ended.cancelled() => {}
        }
        Ok(PromptResponse::new(reason))
    }

    /// Sends the prompt to the gateway, and waits for the end of the turn.
    async fn send(
        &mut self,
        cancelled: &mut (impl Future<Output = ()> + Unpin),
    ) -> Result<StopReason, Error> {
        let session = Arc::clone(&self.session);
        let about_servers = self.prompt.mcp_command();
        let sent = SendParams {
            session_key: session.key.clone(),
            message: std::mem::take(&mut self.prompt.message),
            attachments: Some(std::mem::take(&mut self.prompt.attachments)),
            suppress_command_interpretation: self.prompt.is_plain.then_some(true),
            idempotency_key: self.run.clone(),
            workspace: session.folder.as_ref().map(|folder| folder.display().to_string()),
            ..SendParams::default()
        };
        let trace = self.span.context();
        let begun = tokio::select! {
            begun = ask_in::<rpc::ChatSend>(&*session.surface, sent.clone(), trace) => begun,
            () = &mut *cancelled => {
                // It may have begun nevertheless.
                session.abort(&self.run).await;
                return Ok(StopReason::Cancelled);
            }
        };
        begun.map_err(|it| refused(&it))?;
        let end = tokio::select! {
            end = &mut self.end => end.unwrap_or(TurnEnd::GatewayGone),
            end = lost_end(&session, sent) => end,
            () = cancelled => {
                session.abort(&self.run).await;
                // Whatever its end is: the client has cancelled it.
                let _ = timeout(ABORTED, &mut self.end).await;
                TurnEnd::Stopped(Some("cancelled".to_owned()))
            }
        };
        match end {
            TurnEnd::Stopped(reason) => {
                // The gateway does not know the servers of the session.
                if let (Some(command), Some(servers)) = (about_servers, &session.servers)
                    && let Some(report) = servers.report(&command).await
                {
                    session.say(format!("\n\n{}", preformatted(report)));
                }
                Ok(stop_reason(reason.as_deref()))
            }
            TurnEnd::Failed(message) => {
                self.span.fail("_OTHER", "the turn failed");
                Err(internal(message))
            }
            TurnEnd::GatewayGone => Err(internal("the connection to the gateway was lost")),
        }
    }
}

/// Sends the title of the session, once it has one.
async fn show_title(session: &AcpSession) {
    if session.lock().has_title {
        return;
    }
    let params = DescribeParams {
        key: session.key.clone(),
        include_derived_titles: Some(true),
        ..DescribeParams::default()
    };
    let described = timeout(TITLE, ask::<rpc::SessionsDescribe>(&*session.surface, params)).await;
    let row = described.ok().and_then(Result::ok).and_then(|described| described.session);
    if let Some(title) = row.and_then(title_of) {
        session.lock().has_title = true;
        let info = SessionInfoUpdate::new().title(title);
        session.updates.send(SessionUpdate::SessionInfoUpdate(info));
    }
}

/// The title of a session: the user's, the gateway's, or one from the first message.
pub(crate) fn title_of(row: Row) -> Option<String> {
    row.label.or(row.display_name).or(row.derived_title)
}

fn stop_reason(reason: Option<&str>) -> StopReason {
    match reason {
        Some("cancelled" | "timeout") => StopReason::Cancelled,
        Some("too-many-rounds" | "going-in-circles") => StopReason::MaxTurnRequests,
        Some("cut-off") => StopReason::MaxTokens,
        Some("refused") => StopReason::Refusal,
        _ => StopReason::EndTurn,
    }
}

/// Returns the end of a turn whose events were lost. Never returns without a gap.
async fn lost_end(session: &AcpSession, sent: SendParams) -> TurnEnd {
    loop {
        sleep(RECHECK).await;
        if !session.lock().turn.as_ref().is_some_and(|turn| turn.has_gap) {
            continue;
        }
        // By its idempotency key it is not run twice, and the response has its status.
        match ask::<rpc::ChatSend>(&*session.surface, sent.clone()).await.map(|it| it.status) {
            Ok(SendStatus::Started | SendStatus::InFlight) => {}
            Ok(SendStatus::Ok) => return TurnEnd::Stopped(None),
            Ok(SendStatus::Timeout) => return TurnEnd::Failed("the turn timed out".to_owned()),
            Ok(SendStatus::Error) => return TurnEnd::Failed("the turn failed".to_owned()),
            Err(error) => return TurnEnd::Failed(error.to_string()),
        }
    }
}

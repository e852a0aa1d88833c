//! A prompt: a turn of the gateway, from the request to its stop reason.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    ContentBlock, PromptResponse, SessionInfoUpdate, SessionUpdate, StopReason,
};
use agent_client_protocol::{Error, RequestCancellation};
use openclaw_protocol::chat::{SendParams, SendStatus};
use openclaw_protocol::sessions::{DescribeParams, Row};
use openclaw_protocol::{ask_in, rpc};
use openclaw_trace::{Span, SpanContext, SpanKind};
use tokio::time::{sleep, timeout};

use crate::blocks::Prompt;
use crate::calls;
use crate::content::preformatted;
use crate::current_turn::{TurnEnd, TurnSignals};
use crate::error::{internal, invalid_params, invalid_request, refused};
use crate::history::show_usage;
use crate::ids::fresh_id;
use crate::prompts::{self, ExpandedPrompt};
use crate::session::AcpSession;

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
    signals: TurnSignals,
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
    if session.is_over() {
        return Err(internal("the connection to the gateway was lost; load the session again"));
    }
    let prompt = Prompt::read(blocks).map_err(invalid_params)?;
    let run = fresh_id();
    let Some(signals) = session.turn.begin(run.clone(), prompt.command_name().is_some()) else {
        return Err(invalid_request(
            "a prompt is already running in this session; wait for it, or send session/cancel",
        ));
    };
    session.calls.begin_turn();
    let span = session.tracer.start("session/prompt", SpanKind::Server, trace);
    span.set_text("gen_ai.conversation.id", &session.gateway.key);
    span.set("rpc.system.name", "jsonrpc");
    span.set("rpc.method", "session/prompt");
    span.set("jsonrpc.protocol.version", "2.0");
    Ok(BegunTurn { session: Arc::clone(session), prompt, run, signals, span })
}

/// A turn that is dropped is not running any more.
impl Drop for BegunTurn {
    fn drop(&mut self) {
        calls::close(&self.session.calls, &self.session.client);
        self.session.client.keep_notes();
        self.session.turn.forget();
    }
}

impl BegunTurn {
    /// Runs the turn to its end.
    pub(crate) async fn run(
        mut self,
        request: RequestCancellation,
    ) -> Result<PromptResponse, Error> {
        let session = Arc::clone(&self.session);
        let cancelled = self.signals.cancelled.clone();
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
            let is_about_servers = self.prompt.mcp_command().is_some();
            let patience = if is_about_servers { BRIEFLY } else { Duration::MAX };
            session.lending.ready(patience).await;
            session.client.show_notes();
            let servers = session.servers.as_deref();
            prompts::expand(&mut self.prompt, servers, &session.commands, &session.gateway).await
        };
        let ready = tokio::select! {
            ready = ready => ready,
            () = &mut cancelled => return Ok(PromptResponse::new(StopReason::Cancelled)),
        };
        let reason = match ready {
            ExpandedPrompt::Message => {
                if !session.describer.catalog.is_known() {
                    session.describer.catalog.fetch().await;
                }
                let reason = self.send(&mut cancelled).await?;
                if is_compaction {
                    show_usage(&session.gateway, &session.client).await;
                }
                show_title(&session).await;
                reason
            }
            ExpandedPrompt::Answered(text) => {
                session.client.say(preformatted(text));
                StopReason::EndTurn
            }
        };
        calls::close(&session.calls, &session.client);
        // The response says that there are no more updates.
        tokio::select! {
            () = session.client.updates.flushed() => {}
            () = session.tasks.ended().cancelled() => {}
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
        let folder = session.describer.folders.turns.as_ref();
        let sent = SendParams {
            session_key: session.gateway.key.clone(),
            message: std::mem::take(&mut self.prompt.message),
            attachments: Some(std::mem::take(&mut self.prompt.attachments)),
            suppress_command_interpretation: self.prompt.is_plain.then_some(true),
            idempotency_key: self.run.clone(),
            workspace: folder.map(|folder| folder.display().to_string()),
            ..SendParams::default()
        };
        let trace = self.span.context();
        let begun = tokio::select! {
            begun = ask_in::<rpc::ChatSend>(&*session.gateway.surface, sent.clone(), trace) => begun,
            () = &mut *cancelled => {
                // It may have begun nevertheless.
                session.gateway.abort(&self.run).await;
                return Ok(StopReason::Cancelled);
            }
        };
        begun.map_err(|it| refused(&it))?;
        let end = tokio::select! {
            end = &mut self.signals.end => end.unwrap_or(TurnEnd::GatewayGone),
            end = lost_end(&session, sent) => end,
            () = cancelled => {
                session.gateway.abort(&self.run).await;
                // Whatever its end is: the client has cancelled it.
                let _ = timeout(ABORTED, &mut self.signals.end).await;
                TurnEnd::cancelled()
            }
        };
        match end {
            TurnEnd::Stopped(reason) => {
                // The gateway does not know the servers of the session.
                if let (Some(command), Some(servers)) = (about_servers, &session.servers)
                    && let Some(report) = servers.report(&command).await
                {
                    session.client.say(format!("\n\n{}", preformatted(report)));
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
    if session.has_title.load(Ordering::Relaxed) {
        return;
    }
    let params = DescribeParams {
        key: session.gateway.key.clone(),
        include_derived_titles: Some(true),
        ..DescribeParams::default()
    };
    let described = session.gateway.ask_within::<rpc::SessionsDescribe>(TITLE, params).await;
    let row = described.ok().and_then(|described| described.session);
    if let Some(title) = row.and_then(title_of) {
        session.has_title.store(true, Ordering::Relaxed);
        let info = SessionInfoUpdate::new().title(title);
        session.client.send(SessionUpdate::SessionInfoUpdate(info));
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
        if session.turn.with_shown(|shown| shown.has_gap) != Some(true) {
            continue;
        }
        // By its idempotency key it is not run twice, and the response has its status.
        match session.gateway.ask::<rpc::ChatSend>(sent.clone()).await.map(|it| it.status) {
            Ok(SendStatus::Started | SendStatus::InFlight) => {}
            Ok(SendStatus::Ok) => return TurnEnd::Stopped(None),
            Ok(SendStatus::Timeout) => return TurnEnd::Failed("the turn timed out".to_owned()),
            Ok(SendStatus::Error) => return TurnEnd::Failed("the turn failed".to_owned()),
            Err(error) => return TurnEnd::Failed(error.to_string()),
        }
    }
}

//! A run: from the message to its end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::agents::ListParams as AgentsParams;
use openclaw_protocol::chat::{
    AbortParams, Attachment, HistoryParams, SendParams, SendResult, SendStatus,
};
use openclaw_protocol::servers_settled;
use openclaw_protocol::{EventReceiver, Received, RequestError, Surface, ask, ask_in, keys, rpc};
use openclaw_trace::Span;
use rmcp::model::CallToolResult;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::answer::CombinedAnswer;
use super::follow::{RunEnd, RunStep, Status, text_of};
use super::input::RunInput;
use super::progress::RunProgress;
use super::result::{OrderResult, failure, result};
use super::{OrderCaller, Orders, key};
use crate::media::{self, AllowedSources, FileArgument, MediaConversation, Returned};

/// How long a message waits for servers that are starting.
const SERVERS: Duration = Duration::from_secs(20);
/// The timeout of a short request to the gateway.
pub(super) const SHORT: Duration = Duration::from_secs(30);
/// The interval of polling for the end after events were lost.
const RECHECK: Duration = Duration::from_secs(1);
/// How long an aborted run may take to end.
const ABORTED: Duration = Duration::from_secs(5);
/// Messages of a run that are read back after events were lost.
const READ_BACK: u32 = 200;

/// A message that is about to be sent.
pub(super) struct OrderRun {
    pub(super) orders: Arc<Orders>,
    /// Also cancelled when the client is gone.
    pub(super) cancelled: CancellationToken,
    pub(super) caller: OrderCaller,
    pub(super) session: String,
    pub(super) agent: Option<String>,
    pub(super) deadline: Instant,
    /// Ends with the run.
    pub(super) span: Span,
}

impl OrderRun {
    /// Sends the message once it is its turn in `lane`, and follows the run.
    pub(super) async fn start<L>(
        self,
        lane: impl Future<Output = L>,
        message: String,
        files: Vec<FileArgument>,
    ) -> CallToolResult {
        let run = key::random();
        let mut answer = CombinedAnswer::default();
        let mut media = Returned::default();
        let end = tokio::select! {
            biased;
            () = self.stopped() => RunEnd::bare(self.why_stopped(), "it had not been sent yet"),
            started = self.send(lane, message, files, &run) => match started {
                Ok(mut started) => {
                    let end = self.follow(&mut started, &mut answer).await;
                    if started.has_calls || started.has_gap || end.has_media() {
                        media = started.media(self.caller.takes_links).await;
                    }
                    end
                }
                Err(words) => return failure(words),
            },
        };
        let status = end.status.name();
        if end.status != Status::Completed {
            self.span.fail(status, "");
        }
        tracing::info!(session = %self.session, %run, status, "run ended");
        let error = end.error.clone().or_else(|| match end.status {
            Status::Timeout => Some("timed out; the run was aborted".to_owned()),
            Status::Aborted => Some("the run was aborted".to_owned()),
            Status::Completed | Status::Incomplete | Status::Failed => None,
        });
        let output = OrderResult {
            text: answer.finish(&end.text()),
            session_key: self.session,
            run_id: run,
            status,
            error,
            usage: end.usage.and_then(|usage| usage.as_object().cloned()),
            media: media.list,
        };
        result(output, end.status, media.blocks)
    }

    /// Waits until the run is not wanted any more.
    async fn stopped(&self) {
        tokio::select! {
            () = sleep_until(self.deadline) => {}
            () = self.cancelled.cancelled() => {}
        }
    }

    fn why_stopped(&self) -> Status {
        if self.cancelled.is_cancelled() { Status::Aborted } else { Status::Timeout }
    }

    async fn send<L>(
        &self,
        lane: impl Future<Output = L>,
        message: String,
        files: Vec<FileArgument>,
        run: &str,
    ) -> Result<Started, String> {
        self.caller.progress.set("waiting for earlier messages of this session");
        let _turn = lane.await;
        self.caller.progress.set("waiting for the gateway");
        let surface = self.orders.connect_for(&*self.caller.client).await?;
        let attachments =
            if files.is_empty() { None } else { Some(self.attach(&*surface, files).await?) };
        self.caller.progress.set("waiting for the servers of the agent");
        let agent = self.agent.as_deref().or(keys::agent_of(&self.session));
        servers_settled(&*surface, agent, SERVERS).await;
        // Subscribed before sending, so that no event is missed.
        let events = surface.events();
        let left = self.deadline.saturating_duration_since(Instant::now());
        let sent = SendParams {
            session_key: self.session.clone(),
            agent_id: self.agent.clone(),
            message,
            attachments,
            // No slash command is executed, and no channel gets the answer.
            suppress_command_interpretation: Some(true),
            deliver: Some(false),
            timeout_ms: Some(u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1)),
            idempotency_key: run.to_owned(),
            ..SendParams::default()
        };
        let sending = ask_in::<rpc::ChatSend>(&*surface, sent.clone(), self.span.context());
        let answered = timeout(SHORT, sending).await;
        let answered = answered.map_err(|_| "the gateway did not respond in time".to_owned())?;
        answered.map_err(|error| error.to_string())?;
        tracing::info!(session = %self.session, %run, "message sent");
        self.caller.progress.set("the agent is working");
        let client = Arc::clone(&self.caller.client);
        let input = RunInput::new(&sent, Arc::clone(&surface), client);
        Ok(Started { surface, events, sent, input, has_gap: false, has_calls: false })
    }

    /// Reads the attachments.
    async fn attach(
        &self,
        surface: &dyn Surface,
        files: Vec<FileArgument>,
    ) -> Result<Vec<Attachment>, String> {
        self.caller.progress.set("reading the attachments");
        let Orders { options, fetcher, .. } = &*self.orders;
        let agents = timeout(SHORT, ask::<rpc::AgentsList>(surface, AgentsParams::default())).await;
        let agents = agents.map_err(|_| "the gateway did not respond in time".to_owned())?;
        let agents = agents.map_err(|error| error.to_string())?;
        let id = self.agent.as_deref().or(keys::agent_of(&self.session));
        let id = id.unwrap_or(&agents.default_id);
        let workspace = agents.agents.iter().find(|agent| agent.id == id);
        let workspace = workspace.and_then(|agent| agent.workspace.as_ref()).map(PathBuf::from);
        let folders = workspace.into_iter().chain(options.folders.iter().cloned()).collect();
        let sources = AllowedSources { folders, fetcher, pdf: options.pdf.as_ref() };
        media::load(files, &sources).await
    }

    /// Follows a run to its end; aborts it if it is not wanted any more.
    async fn follow(&self, started: &mut Started, answer: &mut CombinedAnswer) -> RunEnd {
        tokio::select! {
            biased;
            end = started.end(answer, &self.caller.progress) => return end,
            () = self.stopped() => {}
        }
        let status = self.why_stopped();
        self.caller.progress.set("aborting");
        let abort = AbortParams {
            session_key: self.session.clone(),
            agent_id: self.agent.clone(),
            run_id: Some(started.sent.idempotency_key.clone()),
            preserve_side_runs: None,
        };
        let aborting = ask::<rpc::ChatAbort>(&*started.surface, abort);
        if let Ok(Err(error)) = timeout(SHORT, aborting).await {
            tracing::warn!(%error, "cannot abort a run");
        }
        match timeout(ABORTED, started.end(answer, &self.caller.progress)).await {
            // It may have ended on its own just then.
            Ok(end) if end.status != Status::Aborted => end,
            Ok(end) => RunEnd { status, ..end },
            Err(_) => RunEnd { status, message: None, usage: None, error: None },
        }
    }
}

/// A run that was sent.
struct Started {
    surface: Arc<dyn Surface>,
    events: EventReceiver,
    sent: SendParams,
    input: RunInput,
    /// Whether events were lost, perhaps the end.
    has_gap: bool,
    /// Whether tools were called.
    has_calls: bool,
}

impl Started {
    /// Returns the images and other files of the run. They are not worth failing for.
    async fn media(&mut self, links: bool) -> Returned {
        let SendParams { session_key, agent_id, idempotency_key, .. } = &self.sent;
        let conversation = MediaConversation {
            surface: &*self.surface,
            session: session_key,
            agent: agent_id.as_deref(),
        };
        match timeout(SHORT, conversation.files_of(idempotency_key, links)).await {
            Ok(Ok(media)) => media,
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot read the media of a run");
                Returned::default()
            }
            Err(_) => Returned::default(),
        }
    }

    /// Waits for the end of the run. Cancel-safe.
    async fn end(&mut self, answer: &mut CombinedAnswer, progress: &RunProgress) -> RunEnd {
        loop {
            let received = tokio::select! {
                received = self.events.next() => received,
                never = self.input.ask() => match never {},
                end = lost_end(&*self.surface, &self.sent), if self.has_gap => {
                    let (end, whole) = end;
                    *answer = whole.unwrap_or_else(|| std::mem::take(answer));
                    return end;
                }
            };
            let event = match received {
                Some(Received::Event(event)) => event,
                Some(Received::Lagged(_)) => {
                    self.has_gap = true;
                    continue;
                }
                None => {
                    return RunEnd::bare(Status::Failed, "the connection to the gateway was lost");
                }
            };
            self.input.handle(&event);
            match RunStep::from_event(&event, &self.sent.idempotency_key) {
                None => {}
                Some(RunStep::Text(text)) => {
                    answer.partial(&text);
                    progress.set(format!("answering ({} bytes)", answer.len()));
                }
                Some(RunStep::Replaced(text)) => answer.replace(&text),
                Some(RunStep::Thinking) => progress.set("thinking"),
                Some(RunStep::Called(tool)) => {
                    self.has_calls = true;
                    answer.end_block();
                    progress.set(format!("calling {tool}"));
                }
                Some(RunStep::Advanced(state) | RunStep::Notice(state)) => progress.set(state),
                Some(RunStep::Over(end)) if !self.has_gap => return *end,
                // Earlier text may be missing: the conversation has all of it.
                Some(RunStep::Over(end)) => {
                    if let Ok(whole) = read_back(&*self.surface, &self.sent).await {
                        *answer = whole;
                    }
                    return *end;
                }
            }
        }
    }
}

/// Polls for the end of a run whose events were lost. By its idempotency key the message is not run
/// twice, and the response has the status of the run.
async fn lost_end(surface: &dyn Surface, sent: &SendParams) -> (RunEnd, Option<CombinedAnswer>) {
    loop {
        sleep(RECHECK).await;
        let polled = timeout(SHORT, ask::<rpc::ChatSend>(surface, sent.clone())).await;
        let status = match polled {
            Err(_) => continue,
            Ok(Ok(SendResult { status: SendStatus::Started | SendStatus::InFlight, .. })) => {
                continue;
            }
            Ok(Ok(SendResult { status, .. })) => status,
            Ok(Err(error)) => return (RunEnd::bare(Status::Failed, error.to_string()), None),
        };
        let lost = "the events of the run were lost";
        let end = match status {
            SendStatus::Timeout => RunEnd::bare(Status::Timeout, lost),
            SendStatus::Error => RunEnd::bare(Status::Failed, lost),
            _ => RunEnd { status: Status::Completed, message: None, usage: None, error: None },
        };
        return (end, read_back(surface, sent).await.ok());
    }
}

/// Returns the text of a run from its conversation.
async fn read_back(
    surface: &dyn Surface,
    sent: &SendParams,
) -> Result<CombinedAnswer, RequestError> {
    let params = HistoryParams {
        session_key: sent.session_key.clone(),
        agent_id: sent.agent_id.clone(),
        limit: Some(READ_BACK),
        ..HistoryParams::default()
    };
    let history = ask::<rpc::ChatHistory>(surface, params).await?;
    let mut answer = CombinedAnswer::default();
    for message in history.messages {
        let Ok(message) = serde_json::from_str::<Value>(message.get()) else { continue };
        if message["runId"] == *sent.idempotency_key && message["role"] == "assistant" {
            answer.block(&text_of(Some(&message)));
        }
    }
    Ok(answer)
}

//! Methods for sending messages and aborting turns.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use openclaw_agent::{EndReason, MessageRecord};
use openclaw_content::Text;
use openclaw_models::{Message, Part};
use openclaw_protocol::ErrorShape;
use openclaw_protocol::chat::{
    AbortParams, AbortResult, ErrorKind, InjectParams, InjectResult, MAX_MESSAGE, MESSAGE_TOO_LONG,
    SendParams, SendResult, SendStatus,
};
use openclaw_sessions::{EntryKind, NewEntry, SessionKey};

use super::{Reply, RequestContext, Services, attachments, has_scope};
use crate::agents::AgentRuntime;
use crate::callers::Connected;
use crate::commands::{ChatCommand, CommandRun, ParsedMessage};
use crate::runs::{RegisteredRun, RunAdmission};
use crate::sessions::store_error;
use crate::turn_events::TurnEvents;
use crate::turns::{TurnRequest, TurnWork};

/// Maximum length of a run id, in bytes.
const MAX_ID: usize = 256;

pub(super) async fn send(context: &RequestContext<'_>, params: SendParams) -> Reply<SendResult> {
    send_to(context, params, None).await
}

/// Like [`send`], to this model instead of the session's.
pub(super) async fn send_to(
    context: &RequestContext<'_>,
    params: SendParams,
    model: Option<String>,
) -> Reply<SendResult> {
    let services = context.services;
    let key = context.session(&params.session_key, params.agent_id.as_deref())?;
    let id = params.idempotency_key.as_str();
    if id.is_empty() || id.len() > MAX_ID || id.chars().any(char::is_control) {
        return Err(ErrorShape::invalid("`idempotencyKey` must have 1 to 256 plain characters"));
    }
    if params.message.len() > MAX_MESSAGE {
        return Err(ErrorShape::invalid(MESSAGE_TOO_LONG));
    }
    let files = attachments::read(params.attachments.as_deref().unwrap_or_default())?;
    if params.message.trim().is_empty() && files.is_empty() {
        return Err(ErrorShape::invalid("the message is empty"));
    }
    context.caller.follow(key.as_str());
    // Before the first await: messages are queued in the order in which they arrive.
    let attached = params.attachments.iter().flatten().filter_map(|file| file.content.as_ref());
    let bytes = attached.map(|content| content.get().len()).sum::<usize>() + params.message.len();
    let message = (&context.caller.name(), bytes);
    let run = match services.runs.begin(id, key.as_str(), message, context.caller.cancels_run()) {
        RunAdmission::New(run) => run,
        RunAdmission::Known(status) => return Ok(SendResult { run_id: id.to_owned(), status }),
        RunAdmission::NotNow(reason) => return Err(ErrorShape::unavailable(reason)),
    };
    let agent = services.sessions.agent_of(&key, params.agent_id.as_deref()).await?;
    let scopes = &context.caller.caller().scopes;
    let agent = services.agents.in_folder(agent, params.workspace.as_deref(), scopes)?;
    let command = if params.suppress_command_interpretation == Some(true) {
        None
    } else {
        let servers = services.servers.agent(&agent.config.id);
        ChatCommand::read(servers.as_deref(), &params.message)
    };
    if let Some(command) = &command {
        has_scope(context, &command.name(), command.method().scope())?;
    }
    let answer = SendResult { run_id: id.to_owned(), status: SendStatus::Started };
    let who = context.caller.name();
    let trace = context.trace.clone();
    let timeout = params.timeout_ms.map(Duration::from_millis);
    let connected = Arc::clone(context.caller);
    let services = Arc::clone(services);
    services.process.tasks.clone().spawn(async move {
        let mut run = run;
        run.ends_with(SendStatus::Error);
        let parsed = match command {
            None => None,
            Some(command) => {
                let parsed = execute(&services, &connected, &agent, &key, command, &mut run).await;
                let Some(parsed) = parsed else { return };
                Some(parsed)
            }
        };
        let caller = connected.id();
        let is_compaction = matches!(parsed, Some(ParsedMessage::Compact));
        let mut message = match parsed {
            Some(ParsedMessage::Done(text)) => {
                run.over(SendStatus::Ok);
                let events = TurnEvents::new(&services.callers, &run, agent.config.id.as_str());
                events.command_answered(caller, &params.message, &text);
                // Some clients are busy until the session has no active run.
                services.sessions.announce(&key, "agent.run.ended").await;
                return;
            }
            Some(ParsedMessage::Turn(parts)) => parts,
            Some(ParsedMessage::Compact) => Vec::new(),
            None if params.message.is_empty() => Vec::new(),
            None => vec![Part::Text(Text::user(params.message))],
        };
        message.extend(files);
        let work = if is_compaction { TurnWork::Compact } else { TurnWork::Answer(message) };
        let folder = params.workspace;
        let turn =
            TurnRequest { run, key, agent, folder, work, model, who, caller, timeout, trace };
        services.turns.run(turn).await;
    });
    Ok(answer)
}

/// Executes a command, which may take long. Returns `None` if it was cancelled or panicked: then the
/// run is over, and its end was reported.
async fn execute(
    services: &Services,
    caller: &Connected,
    agent: &AgentRuntime,
    key: &SessionKey,
    command: ChatCommand,
    run: &mut RegisteredRun,
) -> Option<ParsedMessage> {
    let cancel = run.cancel.clone();
    let context = CommandRun {
        sessions: &services.sessions,
        runs: &services.runs,
        servers: &services.servers,
        version: &services.process.version,
        caller,
        agent,
        key,
        run: &run.id,
    };
    let executing = Box::pin(context.execute(command));
    let parsed = tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        parsed = AssertUnwindSafe(executing).catch_unwind() => Some(parsed),
    };
    if let Some(Ok(parsed)) = parsed {
        return Some(parsed);
    }
    run.over(SendStatus::Error);
    let turn_events = TurnEvents::new(&services.callers, run, agent.config.id.as_str());
    match parsed {
        None => turn_events.aborted("", EndReason::Cancelled.name()),
        Some(_) => {
            tracing::error!(session = %run.session, "command panicked");
            turn_events.failed("the command failed unexpectedly".to_owned(), ErrorKind::Unknown);
        }
    }
    None
}

pub(super) fn abort(context: &RequestContext<'_>, params: &AbortParams) -> Reply<AbortResult> {
    let key = context.session(&params.session_key, params.agent_id.as_deref())?;
    let run_ids = context.services.runs.cancel(key.as_str(), params.run_id.as_deref());
    Ok(AbortResult { ok: true, aborted: !run_ids.is_empty(), run_ids })
}

pub(super) async fn inject(
    context: &RequestContext<'_>,
    params: InjectParams,
) -> Reply<InjectResult> {
    let key = context.session(&params.session_key, params.agent_id.as_deref())?;
    if params.message.len() > MAX_MESSAGE {
        return Err(ErrorShape::invalid(MESSAGE_TOO_LONG));
    }
    if context.services.runs.is_active(key.as_str()) {
        // The message could be inserted between a call and its result.
        let message = "a turn of this session is running; wait until it ends, or use `chat.abort`";
        return Err(ErrorShape::unavailable(message));
    }
    let sessions = &context.services.sessions;
    let agent = sessions.agent_of(&key, params.agent_id.as_deref()).await?;
    let store = sessions.store();
    store.open(&key, agent.config.id.as_str()).await.map_err(store_error)?;
    let message = Message::assistant(params.message);
    let record = MessageRecord { message, calls: Vec::new(), model: params.label, usage: None };
    let body = serde_json::to_value(record).unwrap_or_default();
    let added = store
        .append(&key, vec![NewEntry::new(EntryKind::Message, body)])
        .await
        .map_err(store_error)?;
    let message_id = added.first().map(ToString::to_string).unwrap_or_default();
    Ok(InjectResult { ok: true, message_id })
}

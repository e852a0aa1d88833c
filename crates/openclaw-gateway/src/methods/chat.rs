//! Methods for sending messages and aborting turns.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use openclaw_agent::{EndReason, MessageRecord};
use openclaw_content::Text;
use openclaw_models::{Message, Part};
use openclaw_protocol::chat::{
    AbortParams, AbortResult, ErrorKind, InjectParams, InjectResult, MAX_MESSAGE, MESSAGE_TOO_LONG,
    SendParams, SendResult, SendStatus,
};
use openclaw_protocol::{ErrorShape, keys};
use openclaw_sessions::{EntryKind, NewEntry, SessionKey};

use super::sessions::{announce, store_error};
use super::{Reply, RequestContext, attachments, has_scope};
use crate::agents::AgentRuntime;
use crate::callers::Connected;
use crate::commands::{ChatCommand, CommandRun, ParsedMessage as Said};
use crate::gateway::Gateway;
use crate::runs::{RegisteredRun, RunAdmission, Runs};
use crate::turn_events::TurnEvents;
use crate::turns::{self, TurnRequest, TurnWork};

/// Maximum length of a run id, in bytes.
const MAX_ID: usize = 256;

pub(super) async fn send(asked: &RequestContext<'_>, params: SendParams) -> Reply<SendResult> {
    send_to(asked, params, None).await
}

/// Like [`send`], to this model instead of the session's.
pub(super) async fn send_to(
    asked: &RequestContext<'_>,
    params: SendParams,
    model: Option<String>,
) -> Reply<SendResult> {
    let gateway = asked.gateway;
    let key = asked.session(&params.session_key, params.agent_id.as_deref())?;
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
    asked.caller.follow(key.as_str());
    // Before the first await: messages are queued in the order in which they arrive.
    let attached = params.attachments.iter().flatten().filter_map(|file| file.content.as_ref());
    let bytes = attached.map(|content| content.get().len()).sum::<usize>() + params.message.len();
    let message = (&asked.caller.name(), bytes);
    let run = match Runs::begin(gateway, id, key.as_str(), message, asked.caller.cancels_run()) {
        RunAdmission::New(run) => run,
        RunAdmission::Known(status) => return Ok(SendResult { run_id: id.to_owned(), status }),
        RunAdmission::NotNow(words) => return Err(ErrorShape::unavailable(words)),
    };
    let service = service(asked, &key, params.agent_id.as_deref()).await?;
    let service = asked.in_folder(service, params.workspace.as_deref())?;
    let is_plain = params.suppress_command_interpretation == Some(true);
    let read = || ChatCommand::read(gateway, &service, &params.message);
    let command = if is_plain { None } else { read() };
    if let Some(command) = &command {
        has_scope(asked, &command.name(), command.method().scope())?;
    }
    let answer = SendResult { run_id: id.to_owned(), status: SendStatus::Started };
    let (who, caller) = (asked.caller.name(), asked.caller.id);
    let trace = asked.trace.clone();
    let timeout = params.timeout_ms.map(Duration::from_millis);
    let connected = Arc::clone(asked.caller);
    let gateway = Arc::clone(gateway);
    gateway.tasks.spawn({
        let gateway = Arc::clone(&gateway);
        async move {
            let mut run = run;
            run.ended = Some(SendStatus::Error);
            let said = match command {
                None => None,
                Some(command) => {
                    let said =
                        executed(&gateway, &connected, &service, &key, command, &mut run).await;
                    let Some(said) = said else { return };
                    Some(said)
                }
            };
            let is_compaction = matches!(said, Some(Said::Compact));
            let mut message = match said {
                Some(Said::Done(text)) => {
                    run.over(SendStatus::Ok);
                    let events = TurnEvents::new(&gateway, &run, service.config.id.as_str());
                    events.command_answered(caller, &params.message, &text);
                    // Some clients are busy until the session has no active run.
                    announce(&gateway, &key, "agent.run.ended").await;
                    return;
                }
                Some(Said::Turn(parts)) => parts,
                Some(Said::Compact) => Vec::new(),
                None if params.message.is_empty() => Vec::new(),
                None => vec![Part::Text(Text::user(params.message))],
            };
            message.extend(files);
            let work = if is_compaction { TurnWork::Compact } else { TurnWork::Answer(message) };
            let (agent, folder) = (service, params.workspace);
            let turn =
                TurnRequest { run, key, agent, folder, work, model, who, caller, timeout, trace };
            turns::run(gateway, turn).await;
        }
    });
    Ok(answer)
}

/// Executes a command, which may take long. Returns `None` if it was cancelled or panicked: then the
/// run is over, and its end was reported.
async fn executed(
    gateway: &Arc<Gateway>,
    caller: &Arc<Connected>,
    service: &AgentRuntime,
    key: &SessionKey,
    command: ChatCommand,
    run: &mut RegisteredRun,
) -> Option<Said> {
    let cancel = run.cancel.clone();
    let context = CommandRun { gateway, caller, service, key, run: &run.id };
    let executing = Box::pin(context.execute(command));
    let said = tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        said = AssertUnwindSafe(executing).catch_unwind() => Some(said),
    };
    if let Some(Ok(said)) = said {
        return Some(said);
    }
    run.over(SendStatus::Error);
    let turn_events = TurnEvents::new(gateway, run, service.config.id.as_str());
    match said {
        None => turn_events.aborted("", EndReason::Cancelled.name()),
        Some(_) => {
            tracing::error!(session = %run.session, "command panicked");
            turn_events.failed("the command failed unexpectedly".to_owned(), ErrorKind::Unknown);
        }
    }
    None
}

/// The agent of a session: the named one, the one it belongs to, or the one in its key.
pub(super) async fn service(
    asked: &RequestContext<'_>,
    key: &SessionKey,
    named: Option<&str>,
) -> Reply<Arc<AgentRuntime>> {
    let in_key = keys::agent_of(key.as_str());
    if let Some(named) = named {
        let service = asked.agent(Some(named))?;
        return match in_key {
            Some(agent) if agent != named => {
                let words = format!("the session belongs to agent `{agent}`, not to `{named}`");
                Err(ErrorShape::invalid(words))
            }
            _ => Ok(service),
        };
    }
    if let Some(session) = asked.gateway.store.get(key).await.map_err(store_error)? {
        return asked.agent(Some(&session.agent));
    }
    asked.agent(in_key)
}

pub(super) fn abort(asked: &RequestContext<'_>, params: &AbortParams) -> Reply<AbortResult> {
    let key = asked.session(&params.session_key, params.agent_id.as_deref())?;
    let run_ids = asked.gateway.runs.cancel(key.as_str(), params.run_id.as_deref());
    Ok(AbortResult { ok: true, aborted: !run_ids.is_empty(), run_ids })
}

pub(super) async fn inject(
    asked: &RequestContext<'_>,
    params: InjectParams,
) -> Reply<InjectResult> {
    let key = asked.session(&params.session_key, params.agent_id.as_deref())?;
    if params.message.len() > MAX_MESSAGE {
        return Err(ErrorShape::invalid(MESSAGE_TOO_LONG));
    }
    if asked.gateway.runs.is_active(key.as_str()) {
        // The message could be inserted between a call and its result.
        let words = "a turn of this session is running; wait until it ends, or use `chat.abort`";
        return Err(ErrorShape::unavailable(words));
    }
    let service = service(asked, &key, params.agent_id.as_deref()).await?;
    let store = &asked.gateway.store;
    store.open(&key, service.config.id.as_str()).await.map_err(store_error)?;
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

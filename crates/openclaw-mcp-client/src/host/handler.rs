//! Handles what `rmcp` receives from a server: requests, log messages, changes.

use std::sync::atomic::{AtomicU64, Ordering};

use openclaw_content::{Untrusted, clean_line};
use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomNotification,
    CustomRequest, CustomResult, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode,
    ErrorData, Extensions, ListRootsResult, LoggingLevel, LoggingMessageNotificationParam,
    ResourceUpdatedNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use tokio::time::Instant;

use super::elicitation::MAX_ID;
use super::input::to_json;
use super::{ClientSide, LOG_CHARS};
use crate::limiter::Limiter;
use crate::wire::{GIVES_AWAY, MAX_PARSED, TOO_LARGE, WorkId};

/// Maximum length of an unknown method that is quoted, in characters.
const METHOD_CHARS: usize = 100;
/// Maximum number of log messages of a server per minute; further ones are only counted.
const LOGS_PER_MINUTE: u32 = 600;

/// Limits the log messages of a server.
#[derive(Debug)]
pub(super) struct LogLimit {
    limiter: Limiter,
    /// How many were not logged.
    omitted: AtomicU64,
}

impl Default for LogLimit {
    fn default() -> Self {
        Self { limiter: Limiter::new(Some(LOGS_PER_MINUTE)), omitted: AtomicU64::new(0) }
    }
}

impl LogLimit {
    /// Returns how many messages were omitted before this one; `None` if it is to be omitted, too.
    fn check(&self, now: Instant) -> Option<u64> {
        match self.limiter.check(now) {
            Ok(()) => Some(self.omitted.swap(0, Ordering::Relaxed)),
            Err(_) => {
                self.omitted.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }
}

impl ClientSide {
    async fn answer_elicitation(
        &self,
        params: Value,
        context: &RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = self
            .read_elicitation(params)
            .map_err(|problem| ErrorData::invalid_params(problem, None))?;
        // The server cancelled the request, so the user's answer is no longer needed.
        tokio::select! {
            answer = self.elicit(asked, work_of(&context.extensions)) => Ok(answer),
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }
}

/// Returns the call that a message belongs to, if it is known.
fn work_of(extensions: &Extensions) -> Option<WorkId> {
    extensions.get().copied()
}

impl ClientHandler for ClientSide {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.answer_elicitation(to_json(&request), &context).await
    }

    /// Receives what does not match a type of `rmcp`, also requests of methods that it knows.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        match method.as_str() {
            "elicitation/create" => {
                let answer = self.answer_elicitation(params.unwrap_or_default(), &context).await?;
                Ok(CustomResult::new(to_json(&answer)))
            }
            "sampling/createMessage" => {
                Err(ErrorData::invalid_params("invalid parameters of a sampling request", None))
            }
            TOO_LARGE => {
                let limit = MAX_PARSED / 1024 / 1024;
                let message = format!("the request is larger than {limit} MiB");
                Err(ErrorData::invalid_request(message, None))
            }
            GIVES_AWAY => {
                let (server, problem) =
                    (&self.shared.server, "a credential in a name or a value that is not a text");
                tracing::warn!(%server, problem, "rejected a request");
                Err(ErrorData::invalid_params(format!("the request has {problem}"), None))
            }
            _ => {
                let method = clean_line(Untrusted::new(&method), METHOD_CHARS);
                let message = format!("unknown method `{method}`");
                Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
            }
        }
    }

    async fn list_roots(
        &self,
        context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let undeclared = || ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "roots/list", None);
        self.roots(work_of(&context.extensions)).await.ok_or_else(undeclared)
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let refused = |message: String| ErrorData::new(ErrorCode(-1), message, None);
        let result = tokio::select! {
            result = self.sample(to_json(&params), work_of(&context.extensions)) => result.map_err(refused)?,
            () = context.ct.cancelled() => {
                return Err(refused("the server cancelled the request".to_owned()));
            }
        };
        serde_json::from_value(result).map_err(|error| refused(error.to_string()))
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        context: NotificationContext<RoleClient>,
    ) {
        let server = &self.shared.server;
        match self.shared.logs.check(Instant::now()) {
            None => return,
            Some(0) => {}
            Some(omitted) => tracing::warn!(%server, omitted, "log messages were omitted"),
        }
        if let Some(downstream) = &self.shared.host.downstream {
            let calls = self.shared.calls_about(work_of(&context.extensions)).callers;
            downstream.logged(server, &calls, &to_json(&params));
        }
        let text = match params.data {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let text = clean_line(Untrusted::new(&text), LOG_CHARS);
        match params.level {
            LoggingLevel::Debug => tracing::debug!(%server, "log: {text}"),
            LoggingLevel::Info | LoggingLevel::Notice => tracing::info!(%server, "log: {text}"),
            _ => tracing::warn!(%server, "log: {text}"),
        }
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _context: NotificationContext<RoleClient>,
    ) {
        let CustomNotification { method, params, .. } = notification;
        let id = params.as_ref().and_then(|params| params.get("elicitationId")?.as_str());
        if let Some(downstream) = &self.shared.host.downstream
            && method == "notifications/elicitation/complete"
            && let Some(id) = id.filter(|id| id.len() <= MAX_ID)
        {
            downstream.visited(&self.shared.server, id);
        }
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.updated(&params.uri);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed(|changes| changes.tools += 1);
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed(|changes| changes.resources += 1);
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed(|changes| changes.prompts += 1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn log_messages_are_limited_and_the_omitted_ones_are_counted() {
        let logs = LogLimit::default();
        let now = Instant::now();
        let logged = (0..10_000).filter(|_| logs.check(now).is_some()).count();
        assert_eq!(logged, usize::try_from(LOGS_PER_MINUTE).unwrap());
        assert_eq!(logs.check(now + Duration::from_secs(60)), Some(10_000 - logged as u64));
    }
}

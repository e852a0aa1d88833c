//! Handles what `rmcp` receives from a server: requests, log messages, changes.

use openclaw_content::{Untrusted, clean_line};
use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomRequest, CustomResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode, ErrorData, ListRootsResult,
    LoggingLevel, LoggingMessageNotificationParam, ResourceUpdatedNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use tokio::time::Instant;

use super::{Client, LOG_CHARS, to_json};
use crate::wire::{MAX_PARSED, TOO_LARGE};

/// Maximum length of an unknown method that is quoted, in characters.
const METHOD_CHARS: usize = 100;

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        // The server cancelled the request, so the user's answer is no longer needed.
        tokio::select! {
            answer = self.elicit(request) => Ok(answer),
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let refused = |message: String| ErrorData::new(ErrorCode(-1), message, None);
        let result = tokio::select! {
            result = self.sample(to_json(&params)) => result.map_err(refused)?,
            () = context.ct.cancelled() => {
                return Err(refused("the server cancelled the request".to_owned()));
            }
        };
        serde_json::from_value(result).map_err(|error| refused(error.to_string()))
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let server = &self.shared.server;
        match self.shared.logs.check(Instant::now()) {
            None => return,
            Some(0) => {}
            Some(omitted) => tracing::warn!(%server, omitted, "log messages were omitted"),
        }
        let text = match params.data {
            Value::String(text) => text,
            other => other.to_string(),
        };
        // Secrets are redacted before truncation: the log's own redaction would miss a truncated
        // one.
        let text = clean_line(Untrusted::new(&self.redactor.redact(&text)), LOG_CHARS);
        match params.level {
            LoggingLevel::Debug => tracing::debug!(%server, "log: {text}"),
            LoggingLevel::Info | LoggingLevel::Notice => tracing::info!(%server, "log: {text}"),
            _ => tracing::warn!(%server, "log: {text}"),
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == TOO_LARGE {
            let message = format!("the request is larger than {} MiB", MAX_PARSED / 1024 / 1024);
            return Err(ErrorData::invalid_request(message, None));
        }
        let method = clean_line(Untrusted::new(&request.method), METHOD_CHARS);
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
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

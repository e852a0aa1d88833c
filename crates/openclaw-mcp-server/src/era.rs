//! What all of our servers have in common towards a client of either era: they answer the methods
//! that they declare, and every result has what its version demands.

#![expect(deprecated, reason = "older clients still subscribe to resources and set the log level")]

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp_client::connection::era::Era;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientRequest,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, DiscoverResult, ErrorCode,
    GetMeta as _, GetPromptRequestParams, GetPromptResponse, GetPromptResult, GetTaskParams,
    GetTaskResult, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ResultType, ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};
use serde_json::json;

/// Maximum length of an unknown method that is quoted, in characters.
const MAX_METHOD: usize = 100;

/// A server behind the rules of both eras.
pub(crate) struct EraServer<H>(pub(crate) H);

/// The era of the client of a request.
pub(crate) fn era_of(context: &RequestContext<RoleServer>) -> Era {
    match context.protocol_version() {
        Some(version) if version >= ProtocolVersion::V_2026_07_28 => Era::Modern,
        _ => Era::Legacy,
    }
}

/// A result that has a type since 2026-07-28. `rmcp` leaves it out of results that were made without a
/// constructor, and of those that were parsed from an older server's.
trait TypedResult: Sized {
    fn result_type(&mut self) -> Option<&mut Option<ResultType>>;

    /// Adds what an era demands. (`rmcp` adds the members about caching, and removes the type for
    /// earlier clients.)
    fn of_era(mut self, era: Era) -> Self {
        if era == Era::Modern
            && let Some(result_type) = self.result_type()
        {
            result_type.get_or_insert(ResultType::COMPLETE);
        }
        self
    }
}

/// Adds what an era demands to the result of a method that `rmcp` does not know.
fn custom_of_era(CustomResult(mut result): CustomResult, era: Era) -> CustomResult {
    if era == Era::Modern
        && let Some(members) = result.as_object_mut()
    {
        for (name, value) in [
            ("resultType", json!("complete")),
            ("ttlMs", json!(0)),
            ("cacheScope", json!("private")),
        ] {
            members.entry(name).or_insert(value);
        }
    }
    CustomResult(result)
}

macro_rules! typed_results {
    ($($result:ty)*) => {
        $(impl TypedResult for $result {
            fn result_type(&mut self) -> Option<&mut Option<ResultType>> {
                Some(&mut self.result_type)
            }
        })*
    };
}

typed_results! {
    CallToolResult CompleteResult GetPromptResult ListPromptsResult ListResourceTemplatesResult
    ListResourcesResult ListToolsResult ReadResourceResult
}

macro_rules! typed_responses {
    ($($response:ident)*) => {
        $(impl TypedResult for $response {
            fn result_type(&mut self) -> Option<&mut Option<ResultType>> {
                match self {
                    Self::Complete(result) => result.result_type(),
                    // These always have one.
                    _ => None,
                }
            }
        })*
    };
}

typed_responses! { CallToolResponse GetPromptResponse ReadResourceResponse }

/// Methods of versions with a handshake only.
const UNTIL_2025: [&str; 3] = ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// Whether a server with these capabilities has a method, for clients of this era.
fn has_method(capabilities: &ServerCapabilities, method: &str, era: Era) -> bool {
    if era == Era::Modern && UNTIL_2025.contains(&method) {
        return false;
    }
    match method {
        "tools/list" | "tools/call" => capabilities.tools.is_some(),
        "resources/list" | "resources/templates/list" | "resources/read" => {
            capabilities.resources.is_some()
        }
        "resources/subscribe" | "resources/unsubscribe" => {
            capabilities.resources.as_ref().is_some_and(|it| it.subscribe == Some(true))
        }
        "prompts/list" | "prompts/get" => capabilities.prompts.is_some(),
        "completion/complete" => capabilities.completions.is_some(),
        "logging/setLevel" => capabilities.logging.is_some(),
        _ => false,
    }
}

impl<H: ServerHandler> EraServer<H> {
    fn has_method(&self, method: &str, era: Era) -> bool {
        has_method(&self.0.get_info().capabilities, method, era)
    }

    /// Refuses a method that the server does not declare.
    fn admit(&self, method: &str, context: &RequestContext<RoleServer>) -> Result<Era, ErrorData> {
        let era = era_of(context);
        if self.has_method(method, era) { Ok(era) } else { Err(unknown_method(method)) }
    }
}

/// Methods whose results have a type.
macro_rules! methods {
    ($($name:ident($method:literal, $params:ty) -> $result:ty;)*) => {
        $(async fn $name(
            &self,
            request: $params,
            context: RequestContext<RoleServer>,
        ) -> Result<$result, ErrorData> {
            let era = self.admit($method, &context)?;
            Ok(self.0.$name(request, context).await?.of_era(era))
        })*
    };
}

/// Methods with an empty result, which only earlier versions have.
macro_rules! methods_until_2025 {
    ($($name:ident($method:literal, $params:ty);)*) => {
        $(async fn $name(
            &self,
            request: $params,
            context: RequestContext<RoleServer>,
        ) -> Result<(), ErrorData> {
            self.admit($method, &context)?;
            self.0.$name(request, context).await
        })*
    };
}

impl<H: ServerHandler> ServerHandler for EraServer<H> {
    methods! {
        list_tools("tools/list", Option<PaginatedRequestParams>) -> ListToolsResult;
        call_tool("tools/call", CallToolRequestParams) -> CallToolResponse;
        list_resources("resources/list", Option<PaginatedRequestParams>) -> ListResourcesResult;
        list_resource_templates("resources/templates/list", Option<PaginatedRequestParams>)
            -> ListResourceTemplatesResult;
        read_resource("resources/read", ReadResourceRequestParams) -> ReadResourceResponse;
        list_prompts("prompts/list", Option<PaginatedRequestParams>) -> ListPromptsResult;
        get_prompt("prompts/get", GetPromptRequestParams) -> GetPromptResponse;
        complete("completion/complete", CompleteRequestParams) -> CompleteResult;
    }

    methods_until_2025! {
        set_level("logging/setLevel", SetLevelRequestParams);
        subscribe("resources/subscribe", SubscribeRequestParams);
        unsubscribe("resources/unsubscribe", UnsubscribeRequestParams);
    }

    fn get_info(&self) -> ServerConfig {
        self.0.get_info()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.0.initialize(request, context).await
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        self.0.discover(context).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.0.on_initialized(context).await;
    }

    /// Receives what does not match a type of `rmcp`, also requests of methods that it knows.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let era = era_of(&context);
        if self.has_method(&request.method, era) {
            return Err(invalid_params(&request.method));
        }
        let method = request.method.clone();
        let result = self.0.on_custom_request(request, context).await;
        // In our words.
        let result = result.map_err(|error| match error.code {
            ErrorCode::METHOD_NOT_FOUND => unknown_method(&method),
            _ => error,
        })?;
        Ok(custom_of_era(result, era))
    }

    fn accepted_subscription_filter(
        &self,
        asked: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.0.accepted_subscription_filter(asked)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        self.0.listen(subscription).await
    }

    // `rmcp` checks that tasks are declared.

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.0.get_task(request, context).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.update_task(request, context).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.cancel_task(request, context).await
    }
}

/// Whether a request is the beginning of a connection, in any protocol version.
pub(crate) fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => other.get_meta().protocol_version().is_some(),
    }
}

/// Whether a request is an `initialize` with invalid parameters. `rmcp` takes it for a request without
/// a handshake, and would report that.
pub(crate) fn is_bad_handshake(request: &ClientRequest) -> bool {
    matches!(request, ClientRequest::CustomRequest(it) if it.method == "initialize")
}

/// The error for a method that the server does not have.
pub(crate) fn unknown_method(method: &str) -> ErrorData {
    let method = clean_line(Untrusted::new(method), MAX_METHOD);
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("unknown method `{method}`"), None)
}

/// The error for a request of a method with other parameters than it has.
pub(crate) fn invalid_params(method: &str) -> ErrorData {
    let words = match method {
        "initialize" => {
            "`protocolVersion` must be a string, `capabilities` and `clientInfo` objects"
        }
        "tools/call" | "prompts/get" => "`name` must be a string, `arguments` an object",
        "completion/complete" => {
            "`ref` must be a prompt or a resource template, `argument` an object with `name` and \
             `value`"
        }
        "logging/setLevel" => "`level` must be a log level, such as `info`",
        "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
            "`cursor` must be a string"
        }
        _ => "`uri` must be a string",
    };
    ErrorData::invalid_params(format!("invalid parameters: {words}"), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_the_methods_that_it_declares_in_the_eras_that_have_them() {
        let tools = ServerCapabilities::builder().enable_tools().build();
        let all = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .enable_logging()
            .build();
        assert!(has_method(&tools, "tools/call", Era::Modern));
        for method in ["resources/list", "resources/templates/list", "resources/read"] {
            assert!(
                !has_method(&tools, method, Era::Legacy) && has_method(&all, method, Era::Modern)
            );
        }
        for method in ["prompts/list", "prompts/get", "completion/complete"] {
            assert!(
                !has_method(&tools, method, Era::Legacy) && has_method(&all, method, Era::Legacy)
            );
        }
        for method in UNTIL_2025 {
            assert!(
                !has_method(&tools, method, Era::Legacy) && has_method(&all, method, Era::Legacy)
            );
            assert!(!has_method(&all, method, Era::Modern), "{method}");
        }
        assert!(!has_method(&all, "unheard/of", Era::Legacy));
    }

    #[test]
    fn results_have_a_type_since_2026_07_28() {
        let mut bare = CompleteResult::default();
        bare.result_type = None;
        assert_eq!(bare.clone().of_era(Era::Modern).result_type, Some(ResultType::COMPLETE));
        assert_eq!(bare.of_era(Era::Legacy).result_type, None);
        let parsed: CallToolResult = serde_json::from_str(r#"{"content":[]}"#).unwrap();
        let mut response = CallToolResponse::from(parsed).of_era(Era::Modern);
        let result_type = response.result_type().unwrap();
        assert_eq!(*result_type, Some(ResultType::COMPLETE));
    }
}

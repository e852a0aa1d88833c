//! Everything but tool calls of the fast lane, as a server of `rmcp`.

#![expect(deprecated, reason = "older clients still subscribe to resources and set the log level")]

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::call::completion::{CompletionError, CompletionOf};
use openclaw_tools::{CallContext, CallOptions, Consent, RefusedBy, Relay};
use openclaw_trace::SpanContext;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
    CustomRequest, CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse,
    Implementation, InitializeRequestParams, InitializeResult, InputRequiredResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, Reference,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::answers::AskableClient as _;
use super::approver::ClientApprover;
use super::client::{HubClient, LONG_URI, MAX_SUBSCRIPTIONS, level_of, subscription_bytes};
use super::incoming::{CallRequest, MODERN, ModernRequest, RequestMeta};
use super::memory::MAX_URI;
use super::reply::HubReply;
use super::running::RunningCall;
use super::search;
use super::view::HubView;
use crate::server::{invalid_params, unknown_method};

/// Maximum length of an unknown name that is quoted, in characters.
const MAX_NAME: usize = 100;
/// Methods whose requests have parameters that can be wrong.
const KNOWN: [&str; 4] = ["tools/call", "resources/read", "prompts/get", "completion/complete"];
/// Those that 2026-07-28 does not have any more.
const UNTIL_2025: [&str; 3] = ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// The server that a client sees.
pub(super) struct Handler {
    client: OnceLock<Arc<HubClient>>,
}

/// The way of a client through `rmcp`'s HTTP server to its handler.
#[derive(Clone)]
pub(super) struct ClientOfRequest(pub(super) Arc<HubClient>);

fn failed(message: impl Into<std::borrow::Cow<'static, str>>) -> ErrorData {
    ErrorData::internal_error(message, None)
}

/// Converts our JSON into a type of `rmcp`.
fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| {
        tracing::debug!(%error, "a reply of a server is not valid");
        failed("a server sent an invalid reply")
    })
}

/// The error of a reply.
fn error_of(error: &Value) -> ErrorData {
    let code = error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let message = error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
    ErrorData::new(ErrorCode(code.unwrap_or(-32603)), message, error.get("data").cloned())
}

/// Either a result, or a request for input.
fn response<T: DeserializeOwned, R: From<T> + From<InputRequiredResult>>(
    reply: HubReply,
) -> Result<R, ErrorData> {
    let result = reply.into_value().map_err(|error| error_of(&error))?;
    if result.get("resultType").is_some_and(|kind| kind == "input_required") {
        return typed::<InputRequiredResult>(result).map(R::from);
    }
    typed::<T>(result).map(R::from)
}

impl Handler {
    /// The handler of a client that is known.
    pub(super) fn of(client: Arc<HubClient>) -> Self {
        Self { client: OnceLock::from(client) }
    }

    /// The handler of a client that its first request brings along.
    pub(super) fn of_request() -> Self {
        Self { client: OnceLock::new() }
    }

    fn client(&self, context: &RequestContext<RoleServer>) -> Result<Arc<HubClient>, ErrorData> {
        if let Some(client) = self.client.get() {
            return Ok(Arc::clone(client));
        }
        let parts = context.extensions.get::<http::request::Parts>();
        let client = parts.and_then(|parts| parts.extensions.get::<ClientOfRequest>());
        let client = client.ok_or_else(|| failed("unknown client"))?;
        Ok(Arc::clone(self.client.get_or_init(|| Arc::clone(&client.0))))
    }

    /// Returns the client of a method that changes its state, which several programs do not share.
    fn own_client(
        &self,
        context: &RequestContext<RoleServer>,
        method: &str,
    ) -> Result<Arc<HubClient>, ErrorData> {
        let client = self.client(context)?;
        if client.is_shared() { Err(unknown_method(method)) } else { Ok(client) }
    }

    async fn view(&self, context: &RequestContext<RoleServer>) -> Result<Arc<HubView>, ErrorData> {
        let client = self.client(context)?;
        client.settled_view().await.ok_or_else(|| failed("the agent was removed"))
    }

    fn meta(context: &RequestContext<RoleServer>) -> Option<RequestMeta> {
        RequestMeta::parse(&to_raw_value(&context.meta).ok()?)
    }

    /// The client's span: that of the message, or else that of its HTTP request.
    fn trace(context: &RequestContext<RoleServer>) -> Option<SpanContext> {
        let of_message = Self::meta(context).and_then(|meta| meta.trace);
        of_message.or_else(|| {
            let parts = context.extensions.get::<http::request::Parts>()?;
            SpanContext::find(|name| parts.headers.get(name)?.to_str().ok())
        })
    }

    /// The parts of a request since 2026-07-28; `None` if the client is older.
    fn modern(
        context: &RequestContext<RoleServer>,
        params: &impl Serialize,
    ) -> Option<ModernRequest> {
        let meta = Self::meta(context).filter(|meta| meta.is_modern)?;
        let params = serde_json::to_value(params).unwrap_or_default();
        let members = ["inputResponses", "requestState"];
        let given = members.into_iter().filter_map(|name| Some((name, params.get(name)?)));
        let more: Vec<String> = given.map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let responses = params.get("inputResponses").cloned();
        Some(ModernRequest {
            meta: meta.members,
            more: more.join(","),
            state: params.get("requestState").and_then(Value::as_str).map(ToOwned::to_owned),
            responses: responses.and_then(|it| serde_json::from_value(it).ok()).unwrap_or_default(),
            abilities: meta.abilities,
            client: meta.client,
        })
    }

    /// Reads a resource or gets a prompt, with the rights and for the user of the client.
    async fn request(
        &self,
        context: &RequestContext<RoleServer>,
        modern: Option<ModernRequest>,
        what: Wanted,
    ) -> Result<HubReply, ErrorData> {
        let client = self.client(context)?;
        let view = self.view(context).await?;
        let (fallback, _) = client.agent().ok_or_else(|| failed("the agent was removed"))?;
        let scope = client.scope();
        let approver = ClientApprover { answers: &*client, client: &client };
        let who = client.who(modern.as_ref().and_then(|it| it.client.as_deref()));
        let (more, meta) = match &modern {
            Some(modern) => (modern.more.as_str(), Some(modern.meta.as_str())),
            None => ("", None),
        };
        let relay = Relay { wraps: client.options.wrap, more, meta };
        let trace = Self::trace(context);
        let made = CallContext {
            agent: Some(client.agent_id()),
            session: Some(scope.session()),
            who: &who,
            consent: Consent::Ask { approver: &approver, fallback },
            options: CallOptions {
                relay: Some(relay),
                client: Some(client.number()),
                ..CallOptions::default()
            },
            begun: None,
            trace: trace.as_ref(),
        };
        let outcome = match what {
            Wanted::Resource { server, uri } => {
                let outcome = view.agent().read(&server, &uri, &made).await;
                // A URI that no server has listed, and there is no user to ask about it.
                if outcome.details.refused == Some(RefusedBy::NobodyToAsk) {
                    let about = json!({ "uri": uri });
                    return Err(ErrorData::resource_not_found(outcome.text(), Some(about)));
                }
                outcome
            }
            Wanted::Prompt { server, name, arguments } => {
                view.agent().prompt(&server, &name, &arguments, &made).await
            }
        };
        let reply = HubReply::of_request(outcome, client.options.wrap);
        Ok(if modern.is_some() { reply.typed() } else { reply })
    }
}

/// A resource or a prompt of a server.
enum Wanted {
    Resource { server: String, uri: String },
    Prompt { server: String, name: String, arguments: BTreeMap<String, String> },
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities::builder()
        .enable_tools()
        .enable_tool_list_changed()
        .enable_resources()
        .enable_resources_list_changed()
        .enable_resources_subscribe()
        .enable_prompts()
        .enable_prompts_list_changed()
        .enable_completions()
        .enable_logging()
        .build()
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let this = Implementation::new("openclaw-hub", env!("CARGO_PKG_VERSION"))
            .with_title("OpenClaw hub");
        ServerConfig::new(capabilities()).with_server_info(this)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let client = self.own_client(&context, "initialize")?;
        let capabilities = serde_json::to_value(&request.capabilities).unwrap_or_default();
        client.introduced(&request.client_info.name, &capabilities, &context.peer);
        let answer = self.negotiate_initialize(&request);
        context.peer.set_peer_info(request);
        answer
    }

    async fn on_initialized(&self, _: NotificationContext<RoleServer>) {
        if let Some(client) = self.client.get() {
            client.is_ready();
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let view = self.view(&context).await?;
        let entries = match self.client(&context)?.options.search {
            true => search::entries().to_vec(),
            false => view.tools().map(|(name, tool)| view.entry(name, tool)).collect(),
        };
        // A single tool that `rmcp` cannot represent is left out.
        let tools = entries.into_iter().filter_map(|entry| typed(entry).ok());
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = self.client(&context)?;
        let mut modern = Self::modern(&context, &request);
        let is_modern = modern.is_some();
        let abilities = match &modern {
            Some(modern) => modern.abilities,
            None => client.abilities(),
        };
        let parked = modern.as_ref().and_then(|it| client.take_parked(it.state.as_deref()?));
        let progress = context.meta.get_progress_token();
        let running = match (parked, &mut modern) {
            (Some(running), Some(modern)) => running.continued(&mut modern.responses),
            _ => {
                let arguments = request.arguments.unwrap_or_default();
                let request = CallRequest {
                    name: request.name.into_owned(),
                    arguments: to_raw_value(&arguments).map_err(|it| failed(it.to_string()))?,
                    progress: progress.and_then(|token| serde_json::to_string(&token).ok()),
                    modern,
                    trace: Self::trace(&context),
                };
                Ok(RunningCall::start(&client, request, abilities))
            }
        };
        let running = running.map_err(|reply| {
            let error = reply.into_value();
            error
                .err()
                .map_or_else(|| failed("the call cannot be continued"), |error| error_of(&error))
        })?;
        let reply = match is_modern {
            true => {
                running.until_asked(|method, params| client.notify(method, params.clone())).await
            }
            false => running.through_peer(&context.peer).await,
        };
        response::<rmcp::model::CallToolResult, _>(reply)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = self.view(&context).await?.resources();
        let entries = all.into_iter().map(|of| typed(json!(of.entry)));
        Ok(ListResourcesResult::with_all_items(entries.collect::<Result<_, _>>()?))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let all = self.view(&context).await?.templates();
        let entries = all.into_iter().map(|of| typed(json!(of.entry)));
        Ok(ListResourceTemplatesResult::with_all_items(entries.collect::<Result<_, _>>()?))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri.len() > MAX_URI {
            return Err(ErrorData::invalid_params(LONG_URI, None));
        }
        let view = self.view(&context).await?;
        let Some(server) = view.server_of(&request.uri) else {
            let about = json!({ "uri": request.uri });
            return Err(ErrorData::resource_not_found("resource not found", Some(about)));
        };
        let modern = Self::modern(&context, &request);
        let wanted = Wanted::Resource { server, uri: request.uri };
        let reply = self.request(&context, modern, wanted).await?;
        response::<rmcp::model::ReadResourceResult, _>(reply)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let client = self.own_client(&context, "resources/subscribe")?;
        let subscribed = client.subscribe(&request.uri).await;
        subscribed.map_err(|problem| ErrorData::invalid_params(problem, None))
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.own_client(&context, "resources/unsubscribe")?.unsubscribe(&request.uri);
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let all = self.view(&context).await?.prompts();
        let entries = all.into_iter().map(|prompt| {
            let mut entry = json!(prompt.entry);
            entry["name"] = json!(prompt.name);
            typed(entry)
        });
        Ok(ListPromptsResult::with_all_items(entries.collect::<Result<_, _>>()?))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let view = self.view(&context).await?;
        let prompt = view.prompt(&request.name);
        let prompt = prompt.ok_or_else(|| {
            let name = clean_line(Untrusted::new(&request.name), MAX_NAME);
            ErrorData::invalid_params(format!("unknown prompt `{name}`"), None)
        })?;
        let modern = Self::modern(&context, &request);
        let given = request.arguments.unwrap_or_default().into_iter();
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let arguments = given.map(|(name, value)| (name, text(value))).collect();
        let wanted = Wanted::Prompt { server: prompt.server, name: prompt.entry.name, arguments };
        let reply = self.request(&context, modern, wanted).await?;
        response::<rmcp::model::GetPromptResult, _>(reply)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let view = self.view(&context).await?;
        let unknown = || ErrorData::invalid_params("unknown prompt or resource template", None);
        let (server, prompt) = match &request.r#ref {
            Reference::Prompt(of) => {
                let prompt = view.prompt(&of.name).ok_or_else(unknown)?;
                (prompt.server, Some(prompt.entry.name))
            }
            Reference::Resource(of) => {
                (view.server_of_template(&of.uri).ok_or_else(unknown)?, None)
            }
            _ => return Err(unknown()),
        };
        let of = match (&request.r#ref, &prompt) {
            (Reference::Resource(of), _) => CompletionOf::Template(&of.uri),
            (_, name) => CompletionOf::Prompt(name.as_deref().unwrap_or_default()),
        };
        let given = request.context.and_then(|context| context.arguments).unwrap_or_default();
        let given: BTreeMap<String, String> = given.into_iter().collect();
        let argument = (request.argument.name.as_str(), request.argument.value.as_str());
        match view.agent().complete(&server, of, argument, &given).await {
            Ok(found) => {
                let mut info = CompletionInfo::default();
                info.values = found.values;
                info.total = found.total.and_then(|total| u32::try_from(total).ok());
                info.has_more = Some(found.has_more);
                Ok(CompleteResult::new(info))
            }
            Err(CompletionError::Unsupported(_)) => Ok(CompleteResult::default()),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let name = serde_json::to_value(request.level).unwrap_or_default();
        let level = name.as_str().and_then(level_of);
        let level = level.ok_or_else(|| ErrorData::invalid_params("unknown log level", None))?;
        self.own_client(&context, "logging/setLevel")?.set_log_level(level).await;
        Ok(())
    }

    /// Receives what does not match a type of `rmcp`, also requests of methods that it knows.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let version = context.protocol_version();
        let is_modern = version.is_some_and(|version| version.as_str() >= MODERN);
        let method = request.method.as_str();
        let is_known = KNOWN.contains(&method) || (!is_modern && UNTIL_2025.contains(&method));
        Err(match is_known {
            true => invalid_params(method),
            false => unknown_method(method),
        })
    }

    fn accepted_subscription_filter(
        &self,
        asked: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = asked.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| uri.len() <= MAX_URI);
            uris.truncate(MAX_SUBSCRIPTIONS);
        }
        Some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let client = self.client(subscription.request_context())?;
        let uris = subscription.accepted().resource_subscriptions.iter().flatten();
        let bytes = uris.map(|uri| subscription_bytes(uri)).sum();
        let _memory = client.budget.hold_exactly(bytes).map_err(|it| failed(it.to_string()))?;
        tokio::select! {
            () = subscription.cancelled() => {}
            () = super::listen::tell(&client, &subscription) => {}
        }
        Ok(())
    }
}

//! Everything but tool calls of the fast lane, as a server of `rmcp`.

#![expect(deprecated, reason = "older clients still subscribe to resources and set the log level")]

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::call::completion::{CompletionError, CompletionOf};
use openclaw_mcp_client::connection::era::Era;
use openclaw_tools::{CallContext, CallOptions, Consent, RefusedBy, Relay};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
    CustomRequest, CustomResult, DiscoverResult, ErrorCode, GetPromptRequestParams,
    GetPromptResponse, Implementation, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, Reference,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::approver::ClientApprover;
use super::asks::CallScope;
use super::client::{HubClient, LONG_URI, MAX_SUBSCRIPTIONS, subscription_bytes};
use super::view::HubView;
use super::{introduction, search, skills};
use crate::era::{era_of, invalid_params, unknown_method};
use crate::front::incoming::{CallRequest, level_of};
use crate::front::memory::MAX_URI;
use crate::front::reply::{BUSY, HubReply};
use crate::front::running::{CallingClient as _, RunningCall};
use crate::front::typed::{call_request, error_of, failed, meta_of, response, typed};
use crate::input::AskableClient;

/// Maximum length of an unknown name that is quoted, in characters.
const MAX_NAME: usize = 100;

/// Those of the extension for skills.
const SKILLS_LIST: &str = "skills/list";
const SKILLS_GET: &str = "skills/get";

/// The server that a client sees.
pub(super) struct Handler {
    client: OnceLock<Arc<HubClient>>,
}

/// The way of a client through `rmcp`'s HTTP server to its handler.
#[derive(Clone)]
pub(super) struct ClientOfRequest(pub(super) Arc<HubClient>);

impl Handler {
    /// The handler of a client that is known.
    pub(super) fn for_client(client: Arc<HubClient>) -> Self {
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

    /// Whether the client of a request shows pages of MCP Apps.
    fn shows_pages(&self, context: &RequestContext<RoleServer>) -> bool {
        match meta_of(context).ok().filter(|meta| meta.is_modern) {
            Some(meta) => meta.shows_pages,
            None => self.client(context).is_ok_and(|client| client.shows_pages()),
        }
    }

    async fn view(&self, context: &RequestContext<RoleServer>) -> Result<Arc<HubView>, ErrorData> {
        let client = self.client(context)?;
        client.settled_view().await.ok_or_else(|| failed("the agent was removed"))
    }

    /// Reads a resource or gets a prompt, with the rights and for the user of the client.
    async fn forward(
        &self,
        context: &RequestContext<RoleServer>,
        request: CallRequest,
        wanted: Wanted,
    ) -> Result<HubReply, ErrorData> {
        let client = self.client(context)?;
        let view = self.view(context).await?;
        let is_modern = request.modern.is_some();
        let (answers, events) = client.replying(&request);
        let running = RunningCall::forwarded(&client, wanted.method(), request, |request| {
            let client = Arc::clone(&client);
            let scope = client.scope_of(Arc::clone(&answers) as _);
            let future = Box::pin(async move {
                wanted.forward(&client, &view, &request, &*answers, &scope).await
            });
            (future, events)
        });
        let running = running.map_err(error_of)?;
        Ok(if is_modern {
            running.until_asked().await
        } else {
            // By the task of this request: over HTTP, its stream is the one that reaches the client.
            running.through_peer(&context.peer).await
        })
    }
}

/// A resource or a prompt of a server.
enum Wanted {
    Resource { server: String, uri: String },
    Prompt { server: String, name: String, arguments: BTreeMap<String, String> },
}

impl Wanted {
    fn method(&self) -> &'static str {
        match self {
            Self::Resource { .. } => "resources/read",
            Self::Prompt { .. } => "prompts/get",
        }
    }

    async fn forward(
        &self,
        client: &HubClient,
        view: &HubView,
        request: &CallRequest,
        answers: &dyn AskableClient,
        scope: &CallScope,
    ) -> HubReply {
        let Some((fallback, _)) = client.agent() else {
            return HubReply::error(BUSY, "the agent was removed");
        };
        let approver = ClientApprover { answers, client };
        let modern = request.modern.as_ref();
        let who = client.who(modern.and_then(|it| it.client.as_deref()));
        let shows_pages = client.shows_pages_in(request);
        let options = client.relaying_request(request);
        let relay = options.relay.map(|relay| Relay { shows_pages, ..relay });
        let context = CallContext {
            agent: Some(client.agent_id()),
            session: Some(scope.session()),
            who: &who,
            consent: Consent::Ask { approver: &approver, fallback },
            options: CallOptions { relay, ..options },
            begun: None,
            trace: request.trace.as_ref(),
        };
        let mut outcome = match self {
            Self::Resource { server, uri } => {
                let outcome = view.agent().read(server, uri, &context).await;
                // A URI that no server has listed, and there is no user to ask about it.
                if outcome.details.refused == Some(RefusedBy::NobodyToAsk) {
                    let data = json!({ "uri": uri });
                    let code = ErrorCode::RESOURCE_NOT_FOUND.0;
                    return HubReply::Error(
                        json!({ "code": code, "message": outcome.text(), "data": data })
                            .to_string(),
                    );
                }
                outcome
            }
            Self::Prompt { server, name, arguments } => {
                view.agent().prompt(server, name, arguments, &context).await
            }
        };
        let to = client.reply_to(self.method(), request);
        client.hub.asks.name_visits(&mut outcome, scope.session());
        HubReply::of_request(outcome, client.options.wrap, to)
    }
}

/// Converts entries of a list. A single one that `rmcp` cannot represent is left out.
fn all<T: DeserializeOwned>(entries: impl Iterator<Item = Value>) -> Vec<T> {
    entries.filter_map(|entry| typed(entry).ok()).collect()
}

/// The configuration of the server that a client sees, with what is known of its servers.
fn introduced(mut info: ServerConfig, view: Option<&HubView>) -> ServerConfig {
    if let Some(view) = view {
        info.instructions = introduction::instructions(view);
        info.capabilities.extensions = introduction::extensions(view);
    }
    info
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
        client.introduced(&request.client_info.name, &capabilities);
        let answer = client.connection.initialize(self, request, &context);
        answer.map(|info| introduced(info, client.view().as_deref()))
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let view = self.client(&context)?.view();
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, introduced(self.get_info(), view.as_deref())))
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
            false => {
                let tools = view.tools_for(self.shows_pages(&context));
                tools.map(|(name, tool)| view.entry(name, tool)).collect()
            }
        };
        Ok(ListToolsResult::with_all_items(all(entries.into_iter())))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let client = self.client(&context)?;
        let arguments = to_raw_value(&request.arguments.clone().unwrap_or_default());
        let arguments = arguments.map_err(|error| failed(error.to_string()))?;
        let name = request.name.clone().into_owned();
        let request = call_request(&context, &request, name, arguments)?;
        let is_modern = request.modern.is_some();
        if is_modern {
            return response::<rmcp::model::CallToolResult, _>(
                RunningCall::answer(&client, request).await,
            );
        }
        let reply = match RunningCall::answered(&client, request) {
            Ok(running) => running.through_peer(&context.peer).await,
            Err(reply) => reply,
        };
        response::<rmcp::model::CallToolResult, _>(reply)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let view = self.view(&context).await?;
        let entries = view.resources().into_iter().map(|of| view.listed(json!(of.entry)));
        Ok(ListResourcesResult::with_all_items(all(entries)))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let view = self.view(&context).await?;
        let entries = view.templates().into_iter().map(|of| view.listed(json!(of.entry)));
        Ok(ListResourceTemplatesResult::with_all_items(all(entries)))
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
        let parts_of = view.servers_of_part(&request.uri);
        if parts_of.len() > 1 {
            let servers = parts_of.into_iter().collect::<Vec<_>>().join(", ");
            let message = format!(
                "several MCP servers have this address ({servers}); connect to one of them, with the \
                 option `server`"
            );
            return Err(ErrorData::invalid_params(message, None));
        }
        let Some(server) = parts_of.into_iter().next().or_else(|| view.server_of(&request.uri))
        else {
            let about = json!({ "uri": request.uri });
            return Err(ErrorData::resource_not_found("resource not found", Some(about)));
        };
        let wanted = Wanted::Resource { server, uri: request.uri.clone() };
        let forwarded = call_request(&context, &request, request.uri.clone(), Box::default())?;
        let reply = self.forward(&context, forwarded, wanted).await?;
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
        let view = self.view(&context).await?;
        let entries = view.prompts().into_iter().map(|prompt| {
            let mut entry = json!(prompt.entry);
            entry["name"] = json!(prompt.name);
            view.listed(entry)
        });
        Ok(ListPromptsResult::with_all_items(all(entries)))
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
            let hint = view.about_unknown_prompt(&request.name);
            ErrorData::invalid_params(format!("unknown prompt `{name}`.{hint}"), None)
        })?;
        let arguments = to_raw_value(&request.arguments).map_err(|it| failed(it.to_string()))?;
        let forwarded = call_request(&context, &request, request.name.clone(), arguments)?;
        let given = request.arguments.unwrap_or_default().into_iter();
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let arguments = given.map(|(name, value)| (name, text(value))).collect();
        let wanted = Wanted::Prompt { server: prompt.server, name: prompt.entry.name, arguments };
        let reply = self.forward(&context, forwarded, wanted).await?;
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
        let client = self.client(&context)?;
        let extra = meta_of(&context)?.extra;
        let relay = client.relaying(None, "", &extra).relay;
        match view.agent().complete(&server, of, argument, &given, relay).await {
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

    /// Receives what `rmcp` has no method for.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method.as_str();
        let era = era_of(&context);
        if method == SKILLS_LIST || method == SKILLS_GET {
            let view = self.view(&context).await?;
            let mut result = match method {
                SKILLS_LIST => skills::list(&view),
                _ => {
                    let uri = request.params.as_ref().and_then(|it| it.get("uri")?.as_str());
                    let uri = uri.ok_or_else(|| invalid_params(method))?;
                    let unknown = || ErrorData::invalid_params("unknown skill", None);
                    skills::get(&view, uri).ok_or_else(unknown)?
                }
            };
            if era == Era::Modern {
                result["resultType"] = json!("complete");
                (result["ttlMs"], result["cacheScope"]) = (json!(0), json!("private"));
            }
            return Ok(CustomResult::new(result));
        }
        Err(unknown_method(method))
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

//! The protocol's methods: one implementation for callers in this process and on a socket.

mod absent;
mod approval_rules;
mod approvals;
mod attachments;
mod chat;
mod config;
mod health;
mod history;
mod logs;
mod mcp;
mod new_sessions;
mod previews;
mod runs;
pub(crate) mod sessions;
mod titles;
mod tools;

use std::path::Path;
use std::sync::Arc;

use openclaw_config::AgentId;
use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::approvals::QuestionsResult;
use openclaw_protocol::{ErrorShape, Method, Request, Response, Scope, keys};
use openclaw_sessions::SessionKey;
use openclaw_trace::SpanContext;
use serde_json::value::RawValue;

pub(crate) use health::models;
pub(crate) use new_sessions::reset;

use crate::agents::AgentRuntime;
use crate::callers::Connected;
use crate::gateway::Gateway;
use crate::socket::EarlyResponse;

/// The response to a request.
type Reply<T> = Result<T, ErrorShape>;

/// Maximum characters of a path in an error.
const MAX_SHOWN: usize = 200;

/// A request: the gateway and the caller.
pub(crate) struct RequestContext<'a> {
    pub(crate) gateway: &'a Arc<Gateway>,
    pub(crate) caller: &'a Arc<Connected>,
    /// The caller's span.
    pub(crate) trace: Option<SpanContext>,
    /// Sends a response before the last one, if the caller can receive it.
    pub(crate) early: Option<EarlyResponse>,
}

impl RequestContext<'_> {
    /// The requested agent, or the default one.
    fn agent(&self, id: Option<&str>) -> Reply<Arc<AgentRuntime>> {
        let active = self.gateway.active.load();
        let id = id.unwrap_or_else(|| active.default_agent());
        active.agent(id).map(Arc::clone).ok_or_else(|| unknown_agent(id))
    }

    /// The agent in the folder that the caller wants to work in.
    fn in_folder(
        &self,
        agent: Arc<AgentRuntime>,
        folder: Option<&str>,
    ) -> Reply<Arc<AgentRuntime>> {
        let Some(folder) = folder else { return Ok(agent) };
        // Files can be read there without asking. A gateway in the process of a command may have been
        // started for this folder.
        let is_own = self.gateway.host_context.workspace.as_deref() == Some(Path::new(folder));
        if !is_own && !Scope::Admin.is_in(&self.caller.who.scopes) {
            let scope = Scope::Admin.name().unwrap_or_default();
            return Err(ErrorShape::missing_scope("workspace", scope));
        }
        let path = Path::new(folder);
        let shown = || clean_line(Untrusted::new(folder), MAX_SHOWN);
        if !path.is_absolute() {
            return Err(ErrorShape::invalid(format!("not an absolute path: `{}`", shown())));
        }
        if !path.is_dir() {
            return Err(ErrorShape::invalid(format!("no folder `{}`", shown())));
        }
        let elsewhere = self.gateway.active.load().agent_in(&agent, path);
        elsewhere.map_err(|error| ErrorShape::invalid(error.to_string()))
    }

    /// The id of the requested agent, without setting the agent up.
    fn agent_id(&self, id: Option<&str>) -> Reply<AgentId> {
        let active = self.gateway.active.load();
        active.id(id).cloned().ok_or_else(|| unknown_agent(id.unwrap_or_default()))
    }

    /// Resolves a session key. All keys of callers go through here: `main` stands for the main
    /// session of the given agent, or of the default one.
    fn session(&self, key: &str, agent: Option<&str>) -> Reply<SessionKey> {
        if key.trim().is_empty() {
            return Err(ErrorShape::invalid("invalid session key: it is blank"));
        }
        let active = self.gateway.active.load();
        let agent = agent.unwrap_or_else(|| active.default_agent());
        SessionKey::new(keys::whole(key, agent))
            .map_err(|error| ErrorShape::invalid(format!("invalid session key: {error}")))
    }
}

/// The names of all methods that are answered, also those that answer "none".
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let methods = Method::ALL.iter().map(|method| method.name());
    methods.chain(absent::ABSENT.iter().map(|it| it.name))
}

/// Answers a JSON request from a socket.
pub(crate) async fn answer_json(
    asked: RequestContext<'_>,
    name: &str,
    params: Option<Box<RawValue>>,
) -> Reply<Box<RawValue>> {
    let Some(method) = Method::from_name(name) else {
        return absent::answer(&asked, name);
    };
    // Before the parameters are parsed.
    may(&asked, method)?;
    let request = Request::read(method, params.as_deref())?;
    let response = dispatch(asked, request).await?;
    response.result().map_err(|error| {
        tracing::error!(name, %error, "cannot serialize a response");
        ErrorShape::unavailable("cannot serialize the response")
    })
}

/// Answers a request.
pub(crate) async fn answer(asked: RequestContext<'_>, request: Request) -> Reply<Response> {
    may(&asked, request.method())?;
    dispatch(asked, request).await
}

/// Checks whether the caller may use this method.
fn may(asked: &RequestContext<'_>, method: Method) -> Reply<()> {
    has_scope(asked, method.name(), method.scope())
}

fn has_scope(asked: &RequestContext<'_>, method: &str, scope: Scope) -> Reply<()> {
    if scope.is_in(&asked.caller.who.scopes) {
        return Ok(());
    }
    Err(ErrorShape::missing_scope(method, scope.name().unwrap_or_default()))
}

async fn dispatch(asked: RequestContext<'_>, request: Request) -> Reply<Response> {
    // The most frequent method: avoids the allocation for `handle`.
    if let Request::Health(_) = request {
        return Ok(Response::Health(asked.gateway.health()));
    }
    Box::pin(handle(&asked, request)).await
}

/// Handles every method; a missing one does not compile.
async fn handle(asked: &RequestContext<'_>, request: Request) -> Reply<Response> {
    Ok(match request {
        Request::Connect(_) => return Err(ErrorShape::invalid("already connected")),
        Request::RequestCancel(_) => {
            // Handled by the socket connection; in this process, dropping the future cancels a
            // request.
            return Err(ErrorShape::invalid("`request.cancel` is only supported on a socket"));
        }
        Request::Health(_) => Response::Health(asked.gateway.health()),
        Request::Status(it) => Response::Status(health::status(asked, it).await?),
        Request::MetricsSample(_) => Response::MetricsSample(asked.gateway.sample()?),
        Request::AgentsList(it) => Response::AgentsList(health::agents(asked, it).await?),
        Request::ModelsList(it) => Response::ModelsList(health::models(asked, it).await?),
        Request::AgentIdentityGet(it) => Response::AgentIdentityGet(health::identity(asked, &it)?),
        Request::ChatMetadata(it) => Response::ChatMetadata(health::metadata(asked, it).await?),
        Request::CommandsList(it) => Response::CommandsList(health::commands(asked, &it)?),
        Request::SessionsList(it) => Response::SessionsList(sessions::list(asked, it).await?),
        Request::SessionsDescribe(it) => {
            Response::SessionsDescribe(sessions::describe(asked, it).await?)
        }
        Request::SessionsSubscribe(it) => {
            Response::SessionsSubscribe(sessions::subscribe(asked, it).await?)
        }
        Request::SessionsPatch(it) => Response::SessionsPatch(sessions::patch(asked, it).await?),
        Request::SessionsCreate(it) => {
            Response::SessionsCreate(new_sessions::create(asked, it).await?)
        }
        Request::SessionsReset(it) => {
            Response::SessionsReset(new_sessions::reset(asked, it, None).await?)
        }
        Request::SessionsGet(it) => Response::SessionsGet(history::get(asked, it).await?),
        Request::SessionsResolve(it) => {
            Response::SessionsResolve(sessions::resolve(asked, it).await?)
        }
        Request::SessionsMessagesSubscribe(it) => {
            Response::SessionsMessagesSubscribe(sessions::follow(asked, &it, true)?)
        }
        Request::SessionsMessagesUnsubscribe(it) => {
            Response::SessionsMessagesUnsubscribe(sessions::follow(asked, &it, false)?)
        }
        Request::SessionsTitle(it) => Response::SessionsTitle(titles::title(asked, it).await?),
        Request::SessionsDelete(it) => Response::SessionsDelete(sessions::delete(asked, it).await?),
        Request::SessionsSetExtraTools(it) => {
            Response::SessionsSetExtraTools(tools::set_extra(asked, it).await?)
        }
        Request::ChatSend(it) => Response::ChatSend(chat::send(asked, it).await?),
        Request::ChatAbort(it) => Response::ChatAbort(chat::abort(asked, &it)?),
        Request::ChatHistory(it) => Response::ChatHistory(history::history(asked, it).await?),
        Request::ChatStartup(it) => Response::ChatStartup(history::history(asked, it).await?),
        Request::ChatInject(it) => Response::ChatInject(chat::inject(asked, it).await?),
        Request::Agent(it) => Response::Agent(runs::run(asked, it).await?),
        Request::AgentWait(it) => Response::AgentWait(runs::wait(asked, it).await),
        Request::ToolsCatalog(it) => Response::ToolsCatalog(tools::catalog(asked, &it)?),
        Request::ToolsEffective(it) => Response::ToolsEffective(tools::effective(asked, &it)?),
        Request::ToolsInvoke(it) => Response::ToolsInvoke(tools::invoke(asked, it).await?),
        Request::NodeInvokeResult(it) => {
            Response::NodeInvokeResult(tools::invoke_result(asked, it)?)
        }
        Request::NodeInvokeProgress(it) => {
            Response::NodeInvokeProgress(tools::invoke_progress(asked, &it)?)
        }
        Request::ApprovalsList(it) => Response::ApprovalsList(approvals::list(asked, it)?),
        Request::ApprovalsRespond(it) => Response::ApprovalsRespond(approvals::respond(asked, it)?),
        Request::ApprovalsRules(it) => Response::ApprovalsRules(approval_rules::list(asked, &it)?),
        Request::ApprovalsRevoke(it) => {
            Response::ApprovalsRevoke(approval_rules::revoke(asked, &it)?)
        }
        Request::ApprovalsAllow(it) => {
            Response::ApprovalsAllow(approval_rules::allow(asked, it).await?)
        }
        Request::ApprovalsPass(it) => Response::ApprovalsPass(approvals::pass(asked, it)?),
        Request::QuestionList(_) => Response::QuestionList(QuestionsResult::default()),
        Request::PluginApprovalList(_) => Response::PluginApprovalList(approvals::published(asked)),
        Request::PluginApprovalResolve(it) => {
            Response::PluginApprovalResolve(approvals::resolve(asked, it)?)
        }
        // All approvals are listed as those of plugins; each can be answered under both names.
        Request::ExecApprovalList(_) => Response::ExecApprovalList(Vec::new()),
        Request::ExecApprovalGet(it) => Response::ExecApprovalGet(approvals::details(asked, &it)?),
        Request::ExecApprovalResolve(it) => {
            Response::ExecApprovalResolve(approvals::resolve(asked, it)?)
        }
        Request::SystemPresence(_) => Response::SystemPresence(health::presence(asked)),
        Request::LogsTail(it) => Response::LogsTail(logs::tail(asked, it).await?),
        Request::McpServers(it) => Response::McpServers(mcp::servers(asked, it)?),
        Request::McpTools(it) => Response::McpTools(mcp::tools(asked, it).await?),
        Request::McpStatus(it) => Response::McpStatus(mcp::status(asked, it)?),
        Request::McpConnect(it) => Response::McpConnect(mcp::connect(asked, it).await?),
        Request::McpDisconnect(it) => Response::McpDisconnect(mcp::disconnect(asked, it).await?),
        Request::McpAuth(it) => Response::McpAuth(mcp::auth(asked, it).await?),
        Request::McpRefresh(it) => Response::McpRefresh(mcp::refresh(asked, it).await?),
        Request::McpReload(it) => Response::McpReload(mcp::reload(asked, it).await?),
        Request::McpCall(it) => Response::McpCall(mcp::call(asked, it).await?),
        Request::McpResources(it) => Response::McpResources(mcp::resources(asked, it).await?),
        Request::McpRead(it) => Response::McpRead(mcp::read(asked, it).await?),
        Request::McpPrompts(it) => Response::McpPrompts(mcp::prompts(asked, it).await?),
        Request::McpPrompt(it) => Response::McpPrompt(mcp::prompt(asked, it).await?),
        Request::McpComplete(it) => Response::McpComplete(mcp::complete(asked, it).await?),
        Request::McpLogs(it) => Response::McpLogs(mcp::logs(asked, it).await?),
        Request::McpElicitationList(_) => Response::McpElicitationList(mcp::elicitations(asked)),
        Request::McpElicitationRespond(it) => {
            Response::McpElicitationRespond(mcp::respond(asked, it)?)
        }
        Request::ConfigGet(it) => Response::ConfigGet(config::get(asked, it)),
        Request::ConfigReload(it) => Response::ConfigReload(config::reload(asked, it).await),
        Request::GatewayStop(it) => Response::GatewayStop(config::stop(asked, it)?),
    })
}

fn unknown_agent(id: &str) -> ErrorShape {
    let id: String = id.chars().take(64).collect();
    ErrorShape::unknown_agent(&id)
}

//! The protocol's methods: one implementation for callers in this process and on a socket.

mod absent;
mod approvals;
mod attachments;
mod chat;
mod config;
mod health;
mod logs;
mod process;
mod runs;
mod sessions;
mod tools;

use std::sync::Arc;

use openclaw_protocol::approvals::QuestionsResult;
use openclaw_protocol::mcp::elicitation::{ListResult, RespondResult};
use openclaw_protocol::{ErrorShape, Method, Request, Response, Scope};
use openclaw_sessions::SessionKey;
use openclaw_trace::SpanContext;
use serde_json::value::RawValue;

pub(crate) use health::health;
pub(crate) use process::ProcessInfo;

use crate::agents::Agents;
use crate::approvals::{ApprovalRules, PendingApprovals};
use crate::callers::{Callers, Connected};
use crate::configuration::Configuration;
use crate::elicitations::Elicitations;
use crate::lent::Lent;
use crate::mcp::{self, McpServers, ServerRequest};
use crate::metrics::LiveMetrics;
use crate::runs::Runs;
use crate::sessions::Sessions;
use crate::socket::EarlyResponse;
use crate::turns::Turns;

/// The response to a request.
type Reply<T> = Result<T, ErrorShape>;

/// What answers requests.
pub(crate) struct Services {
    pub(crate) agents: Arc<Agents>,
    pub(crate) approvals: Arc<PendingApprovals>,
    pub(crate) approval_rules: ApprovalRules,
    pub(crate) callers: Arc<Callers>,
    pub(crate) configuration: Arc<Configuration>,
    pub(crate) elicitations: Arc<Elicitations>,
    pub(crate) lent: Arc<Lent>,
    pub(crate) metrics: LiveMetrics,
    pub(crate) process: ProcessInfo,
    pub(crate) runs: Arc<Runs>,
    pub(crate) servers: Arc<McpServers>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) turns: Turns,
}

/// A request of a caller.
pub(crate) struct RequestContext<'a> {
    pub(crate) services: &'a Arc<Services>,
    pub(crate) caller: &'a Arc<Connected>,
    /// The caller's span.
    pub(crate) trace: Option<SpanContext>,
    /// Sends a response before the last one, if the caller can receive it.
    pub(crate) early: Option<EarlyResponse>,
}

impl RequestContext<'_> {
    /// Resolves a session key of the caller.
    fn session(&self, key: &str, agent: Option<&str>) -> Reply<SessionKey> {
        self.services.agents.session_key(key, agent)
    }

    /// A request about the servers of an agent.
    fn servers(&self, agent: Option<&str>) -> Reply<ServerRequest<'_>> {
        let id = self.services.agents.id(agent)?;
        ServerRequest::new(&self.services.servers, id, self.caller, self.trace.as_ref())
    }
}

/// The names of all methods that are answered, also those that answer "none".
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let methods = Method::ALL.iter().map(|method| method.name());
    methods.chain(absent::ABSENT.iter().map(|it| it.name))
}

/// Answers a JSON request from a socket.
pub(crate) async fn answer_json(
    context: RequestContext<'_>,
    name: &str,
    params: Option<Box<RawValue>>,
) -> Reply<Box<RawValue>> {
    let Some(method) = Method::from_name(name) else {
        return absent::answer(&context, name);
    };
    // Before the parameters are parsed.
    may(&context, method)?;
    let request = Request::read(method, params.as_deref())?;
    let response = dispatch(context, request).await?;
    response.result().map_err(|error| {
        tracing::error!(name, %error, "cannot serialize a response");
        ErrorShape::unavailable("cannot serialize the response")
    })
}

/// Answers a request.
pub(crate) async fn answer(context: RequestContext<'_>, request: Request) -> Reply<Response> {
    may(&context, request.method())?;
    dispatch(context, request).await
}

/// Checks whether the caller may use this method.
fn may(context: &RequestContext<'_>, method: Method) -> Reply<()> {
    has_scope(context, method.name(), method.scope())
}

fn has_scope(context: &RequestContext<'_>, method: &str, scope: Scope) -> Reply<()> {
    if scope.is_in(&context.caller.caller().scopes) {
        return Ok(());
    }
    Err(ErrorShape::missing_scope(method, scope.name().unwrap_or_default()))
}

async fn dispatch(context: RequestContext<'_>, request: Request) -> Reply<Response> {
    // The most frequent method: avoids the allocation for `handle`.
    if let Request::Health(_) = request {
        return Ok(Response::Health(health(&context.services.agents)));
    }
    Box::pin(handle(&context, request)).await
}

/// Handles every method; a missing one does not compile.
async fn handle(context: &RequestContext<'_>, request: Request) -> Reply<Response> {
    let services = context.services;
    Ok(match request {
        Request::Connect(_) => return Err(ErrorShape::invalid("already connected")),
        Request::RequestCancel(_) => {
            // Handled by the socket connection; in this process, dropping the future cancels a
            // request.
            return Err(ErrorShape::invalid("`request.cancel` is only supported on a socket"));
        }
        Request::Health(_) => Response::Health(health(&context.services.agents)),
        Request::Status(it) => Response::Status(health::status(context, it).await?),
        Request::MetricsSample(_) => Response::MetricsSample(context.services.metrics.sample()?),
        Request::AgentsList(it) => Response::AgentsList(health::agents(context, it).await?),
        Request::ModelsList(it) => Response::ModelsList(health::models(context, it).await?),
        Request::AgentIdentityGet(it) => {
            Response::AgentIdentityGet(health::identity(context, &it)?)
        }
        Request::ChatMetadata(it) => Response::ChatMetadata(health::metadata(context, it).await?),
        Request::CommandsList(it) => Response::CommandsList(health::commands(context, &it)?),
        Request::SessionsList(it) => Response::SessionsList(services.sessions.list(it).await?),
        Request::SessionsDescribe(it) => {
            Response::SessionsDescribe(services.sessions.describe(it).await?)
        }
        Request::SessionsSubscribe(it) => {
            Response::SessionsSubscribe(sessions::subscribe(context, it).await?)
        }
        Request::SessionsPatch(it) => Response::SessionsPatch(services.sessions.patch(it).await?),
        Request::SessionsCreate(it) => {
            Response::SessionsCreate(sessions::create(context, it).await?)
        }
        Request::SessionsReset(it) => {
            Response::SessionsReset(services.sessions.reset(it, None).await?)
        }
        Request::SessionsGet(it) => Response::SessionsGet(sessions::get(context, it).await?),
        Request::SessionsResolve(it) => {
            Response::SessionsResolve(services.sessions.resolve(it).await?)
        }
        Request::SessionsMessagesSubscribe(it) => {
            Response::SessionsMessagesSubscribe(sessions::follow(context, &it, true)?)
        }
        Request::SessionsMessagesUnsubscribe(it) => {
            Response::SessionsMessagesUnsubscribe(sessions::follow(context, &it, false)?)
        }
        Request::SessionsTitle(it) => Response::SessionsTitle(services.sessions.title(it).await?),
        Request::SessionsDelete(it) => {
            Response::SessionsDelete(services.sessions.delete(it).await?)
        }
        Request::SessionsSetExtraTools(it) => {
            Response::SessionsSetExtraTools(tools::set_extra(context, it).await?)
        }
        Request::ChatSend(it) => Response::ChatSend(chat::send(context, it).await?),
        Request::ChatAbort(it) => Response::ChatAbort(chat::abort(context, &it)?),
        Request::ChatHistory(it) => Response::ChatHistory(sessions::history(context, it).await?),
        Request::ChatStartup(it) => Response::ChatStartup(sessions::history(context, it).await?),
        Request::ChatInject(it) => Response::ChatInject(chat::inject(context, it).await?),
        Request::Agent(it) => Response::Agent(runs::run(context, it).await?),
        Request::AgentWait(it) => Response::AgentWait(runs::wait(context, it).await),
        Request::ToolsCatalog(it) => Response::ToolsCatalog(tools::catalog(context, &it)?),
        Request::ToolsEffective(it) => Response::ToolsEffective(tools::effective(context, &it)?),
        Request::ToolsInvoke(it) => Response::ToolsInvoke(tools::invoke(context, it).await?),
        Request::NodeInvokeResult(it) => {
            Response::NodeInvokeResult(tools::invoke_result(context, it)?)
        }
        Request::NodeInvokeProgress(it) => {
            Response::NodeInvokeProgress(tools::invoke_progress(context, &it)?)
        }
        Request::ApprovalsList(it) => Response::ApprovalsList(approvals::list(context, it)?),
        Request::ApprovalsRespond(it) => {
            Response::ApprovalsRespond(approvals::respond(&services.approvals, it)?)
        }
        Request::ApprovalsRules(it) => Response::ApprovalsRules(services.approval_rules.list(&it)?),
        Request::ApprovalsRevoke(it) => {
            Response::ApprovalsRevoke(services.approval_rules.revoke(&it)?)
        }
        Request::ApprovalsAllow(it) => {
            Response::ApprovalsAllow(services.approval_rules.allow(it).await?)
        }
        Request::ApprovalsPass(it) => {
            Response::ApprovalsPass(approvals::pass(&services.approvals, context.caller, it)?)
        }
        Request::QuestionList(_) => Response::QuestionList(QuestionsResult::default()),
        Request::PluginApprovalList(_) => {
            Response::PluginApprovalList(approvals::published(&services.approvals))
        }
        Request::PluginApprovalResolve(it) => {
            Response::PluginApprovalResolve(approvals::resolve(&services.approvals, it)?)
        }
        // All approvals are listed as those of plugins; each can be answered under both names.
        Request::ExecApprovalList(_) => Response::ExecApprovalList(Vec::new()),
        Request::ExecApprovalGet(it) => {
            Response::ExecApprovalGet(approvals::details(&services.approvals, &it)?)
        }
        Request::ExecApprovalResolve(it) => {
            Response::ExecApprovalResolve(approvals::resolve(&services.approvals, it)?)
        }
        Request::SystemPresence(_) => Response::SystemPresence(health::presence(context)),
        Request::LogsTail(it) => {
            Response::LogsTail(logs::tail(services.process.logs.as_deref(), it).await?)
        }
        Request::McpServers(it) => {
            Response::McpServers(context.servers(it.agent_id.as_deref())?.servers())
        }
        Request::McpTools(it) => {
            Response::McpTools(context.servers(it.agent_id.as_deref())?.tools(&it).await?)
        }
        Request::McpStatus(it) => {
            Response::McpStatus(context.servers(it.agent_id.as_deref())?.status(&it.server)?)
        }
        Request::McpConnect(it) => {
            Response::McpConnect(context.servers(it.agent_id.as_deref())?.connect(it).await?)
        }
        Request::McpDisconnect(it) => {
            let servers = context.servers(it.agent_id.as_deref())?;
            Response::McpDisconnect(servers.disconnect(&it.server).await?)
        }
        Request::McpAuth(it) => {
            Response::McpAuth(context.servers(it.agent_id.as_deref())?.auth(it).await?)
        }
        Request::McpRefresh(it) => {
            let servers = context.servers(it.agent_id.as_deref())?;
            Response::McpRefresh(servers.refresh(it.server.as_deref()).await?)
        }
        Request::McpReload(it) => {
            let servers = context.servers(it.agent_id.as_deref())?;
            Response::McpReload(services.configuration.reload_servers(servers.agent_id()).await)
        }
        Request::McpCall(mut it) => {
            if let Some(key) = &mut it.session_key {
                *key = context.session(key, it.agent_id.as_deref())?.to_string();
            }
            Response::McpCall(context.servers(it.agent_id.as_deref())?.call(it).await?)
        }
        Request::McpResources(it) => {
            Response::McpResources(context.servers(it.agent_id.as_deref())?.resources(&it).await?)
        }
        Request::McpRead(it) => {
            Response::McpRead(context.servers(it.agent_id.as_deref())?.read(&it).await?)
        }
        Request::McpPrompts(it) => {
            Response::McpPrompts(context.servers(it.agent_id.as_deref())?.prompts(&it).await?)
        }
        Request::McpPrompt(it) => {
            Response::McpPrompt(context.servers(it.agent_id.as_deref())?.prompt(&it).await?)
        }
        Request::McpComplete(it) => {
            Response::McpComplete(context.servers(it.agent_id.as_deref())?.complete(&it).await?)
        }
        Request::McpLogs(it) => Response::McpLogs(mcp::logs(&services.servers, it).await?),
        Request::McpElicitationList(_) => {
            let elicitations = services.elicitations.list(context.caller);
            Response::McpElicitationList(ListResult { elicitations })
        }
        Request::McpElicitationRespond(it) => {
            services.elicitations.respond(&it)?;
            let result = RespondResult { ok: true, id: it.id, action: it.action };
            Response::McpElicitationRespond(result)
        }
        Request::ConfigGet(it) => Response::ConfigGet(config::get(services, it)),
        Request::ConfigReload(it) => Response::ConfigReload(config::reload(context, it).await),
        Request::GatewayStop(it) => Response::GatewayStop(config::stop(context, it)?),
    })
}

//! What callers can ask for: one implementation of every method, for those in this process and those at
//! the other end of a socket.

mod approvals;
mod attachments;
mod chat;
mod config;
mod health;
mod history;
mod mcp;
mod sessions;
mod tools;

use std::sync::Arc;

use openclaw_protocol::{ErrorCode, ErrorShape, Method, detail, keys, params_of};
use openclaw_sessions::SessionKey;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::agents::InService;
use crate::callers::Connected;
use crate::gateway::Gateway;

type Answered = Result<Box<RawValue>, ErrorShape>;

/// A request on its way.
pub(crate) struct Asked<'a> {
    pub(crate) gateway: &'a Arc<Gateway>,
    pub(crate) caller: &'a Arc<Connected>,
    method: Method,
    params: Option<Box<RawValue>>,
}

impl Asked<'_> {
    /// What the method is asked with.
    fn params<P: DeserializeOwned>(&self) -> Result<P, ErrorShape> {
        params_of(self.method.name(), self.params.as_deref())
    }

    /// The agent that is meant: the one of this id, or the default one.
    fn agent(&self, id: Option<&str>) -> Result<Arc<InService>, ErrorShape> {
        let in_force = self.gateway.in_force.load();
        let id = id.unwrap_or_else(|| in_force.default_agent());
        in_force.agent(id).map(Arc::clone).ok_or_else(|| unknown_agent(id))
    }

    /// The conversation that is meant, or what is wrong with its key. All keys of callers come by here:
    /// `main` is short for the main one of the agent of this id, or of the default one.
    fn session(&self, key: &str, agent: Option<&str>) -> Result<SessionKey, ErrorShape> {
        if key.trim().is_empty() {
            return Err(ErrorShape::invalid("the session key: it is blank"));
        }
        let in_force = self.gateway.in_force.load();
        let agent = agent.unwrap_or_else(|| in_force.default_agent());
        SessionKey::new(keys::whole(key, agent))
            .map_err(|error| ErrorShape::invalid(format!("the session key: {error}")))
    }
}

/// Answers a request.
pub(crate) async fn answer(
    gateway: &Arc<Gateway>,
    caller: &Arc<Connected>,
    name: &str,
    params: Option<Box<RawValue>>,
) -> Answered {
    let Some(method) = Method::from_name(name) else {
        return Err(ErrorShape::unknown_method(name));
    };
    if !caller.who.may(method) {
        let scope = method.scope().name().unwrap_or_default();
        let error =
            ErrorShape::new(ErrorCode::Forbidden, format!("`{name}` needs the scope `{scope}`"));
        return Err(error.with_detail(detail::MISSING_SCOPE));
    }
    let asked = Asked { gateway, caller, method, params };
    match method {
        Method::Health => give(&gateway.health()),
        Method::Connect => Err(ErrorShape::invalid("this caller is connected")),
        _ => Box::pin(answer_slowly(asked)).await,
    }
}

/// All but the most frequent method.
async fn answer_slowly(asked: Asked<'_>) -> Answered {
    match asked.method {
        Method::Status => health::status(&asked).await,
        Method::AgentsList => health::agents(&asked).await,
        Method::CommandsList => health::commands(&asked),
        Method::SessionsList => sessions::list(&asked).await,
        Method::SessionsDescribe => sessions::describe(&asked).await,
        Method::SessionsSubscribe => sessions::subscribe(&asked).await,
        Method::SessionsDelete => sessions::delete(&asked).await,
        Method::SessionsSetExtraTools => tools::set_extra(&asked).await,
        Method::ChatSend => chat::send(&asked).await,
        Method::ChatAbort => chat::abort(&asked),
        Method::ChatHistory => history::history(&asked).await,
        Method::ChatInject => chat::inject(&asked).await,
        Method::ToolsCatalog => tools::catalog(&asked),
        Method::ToolsInvoke => tools::invoke(&asked).await,
        Method::NodeInvokeResult => tools::invoke_result(&asked),
        Method::ApprovalsList => approvals::list(&asked),
        Method::ApprovalsRespond => approvals::respond(&asked),
        Method::QuestionList => give(&json!({ "questions": [] })),
        Method::PluginApprovalList => give(&json!([])),
        Method::ConfigGet => config::get(&asked),
        Method::ConfigReload => config::reload(&asked).await,
        _ => mcp::answer(&asked).await,
    }
}

/// An answer, as JSON.
fn give(answer: &impl Serialize) -> Answered {
    to_raw_value(answer).map_err(|error| {
        tracing::error!(%error, "an answer cannot be written");
        ErrorShape::unavailable("the answer cannot be written")
    })
}

fn unknown_agent(id: &str) -> ErrorShape {
    let id: String = id.chars().take(64).collect();
    ErrorShape::invalid(format!("there is no agent `{id}`")).with_detail(detail::UNKNOWN_AGENT_ID)
}

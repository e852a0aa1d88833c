//! The known methods with their parameters, results and required scopes.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use crate::approvals::published;
use crate::error::ErrorShape;
use crate::{
    agents, approvals, chat, config, connect, health, logs, mcp, metrics, models, runs, sessions,
    tools,
};

/// A method with the types of its parameters and its result. [`rpc`] has one type for each.
pub trait Rpc: fmt::Debug + Send + Sync + 'static {
    /// The method.
    const METHOD: Method;
    /// Type of the parameters.
    type Params: Send;
    /// Type of the result.
    type Result: Send;

    /// Creates a request.
    fn request(params: Self::Params) -> Request;

    /// Extracts the result; `None` if the response belongs to another method.
    fn result(response: Response) -> Option<Self::Result>;
}

/// Generates from the table below: [`Method`], a type in [`rpc`] per method, [`Request`],
/// [`Response`].
macro_rules! methods {
    ($($variant:ident $name:literal $scope:ident ($params:ty) -> $result:ty,)*) => {
        /// A method.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Method {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Method {
            /// All methods.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the name on the wire.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the method of that name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            /// Returns the scope that a caller needs.
            #[must_use]
            pub const fn scope(self) -> Scope {
                match self { $(Self::$variant => Scope::$scope,)* }
            }
        }

        /// One type per method, for [`ask`](crate::ask).
        pub mod rpc {
            use super::*;

            $(
                #[doc = concat!("`", $name, "`")]
                #[derive(Debug, Clone, Copy)]
                pub struct $variant;

                impl Rpc for $variant {
                    const METHOD: Method = Method::$variant;
                    type Params = $params;
                    type Result = $result;

                    fn request(params: $params) -> Request {
                        Request::$variant(params)
                    }

                    fn result(response: Response) -> Option<$result> {
                        match response {
                            Response::$variant(result) => Some(result),
                            _ => None,
                        }
                    }
                }
            )*
        }

        /// A method with its parameters.
        #[derive(Debug, Clone)]
        #[allow(clippy::large_enum_variant, reason = "there is one per request, and it is moved, not kept")]
        pub enum Request {
            $(#[doc = concat!("`", $name, "`")] $variant($params),)*
        }

        impl Request {
            /// Returns the method.
            #[must_use]
            pub const fn method(&self) -> Method {
                match self { $(Self::$variant(_) => Method::$variant,)* }
            }

            /// Parses the parameters of a method. Absent parameters count as `{}`.
            ///
            /// # Errors
            /// The error response if they do not match the method.
            pub fn read(method: Method, params: Option<&RawValue>) -> Result<Self, ErrorShape> {
                match method {
                    $(Method::$variant => params_of($name, params).map(Self::$variant),)*
                }
            }

            /// Serializes the parameters.
            ///
            /// # Errors
            /// If they cannot be serialized.
            pub fn params(&self) -> Result<Box<RawValue>, serde_json::Error> {
                match self { $(Self::$variant(params) => to_raw_value(params),)* }
            }
        }

        /// The result of a method.
        #[derive(Debug, Clone)]
        #[allow(clippy::large_enum_variant, reason = "there is one per request, and it is moved, not kept")]
        pub enum Response {
            $(#[doc = concat!("`", $name, "`")] $variant($result),)*
        }

        impl Response {
            /// Returns the method.
            #[must_use]
            pub const fn method(&self) -> Method {
                match self { $(Self::$variant(_) => Method::$variant,)* }
            }

            /// Parses the result of a method.
            ///
            /// # Errors
            /// If it has the wrong shape.
            pub fn read(method: Method, result: &RawValue) -> Result<Self, serde_json::Error> {
                match method {
                    $(Method::$variant => {
                        serde_json::from_str(result.get()).map(Self::$variant)
                    })*
                }
            }

            /// Serializes the result.
            ///
            /// # Errors
            /// If it cannot be serialized.
            pub fn result(&self) -> Result<Box<RawValue>, serde_json::Error> {
                match self { $(Self::$variant(result) => to_raw_value(result),)* }
            }
        }
    };
}

methods! {
    Connect "connect" Any (connect::ConnectParams) -> connect::HelloOk,
    RequestCancel "request.cancel" Any (connect::CancelParams) -> connect::CancelResult,
    Health "health" Read (health::HealthParams) -> health::Health,
    Status "status" Read (health::StatusParams) -> health::StatusResult,
    MetricsSample "metrics.sample" Metrics (metrics::SampleParams) -> metrics::SampleResult,
    AgentsList "agents.list" Read (agents::ListParams) -> agents::ListResult,
    ModelsList "models.list" Read (models::ListParams) -> models::ListResult,
    AgentIdentityGet "agent.identity.get" Read (agents::IdentityParams) -> agents::IdentityResult,
    ChatMetadata "chat.metadata" Read (agents::CommandsParams) -> agents::MetadataResult,
    CommandsList "commands.list" Read (agents::CommandsParams) -> agents::CommandsResult,
    SessionsList "sessions.list" Read (sessions::ListParams) -> sessions::ListResult,
    SessionsDescribe "sessions.describe" Read (sessions::DescribeParams) -> sessions::DescribeResult,
    SessionsSubscribe "sessions.subscribe" Read (Option<sessions::ListParams>) -> sessions::SubscribeResult,
    SessionsPatch "sessions.patch" Write (sessions::PatchParams) -> sessions::PatchResult,
    SessionsCreate "sessions.create" Write (sessions::CreateParams) -> sessions::CreateResult,
    SessionsReset "sessions.reset" Admin (sessions::SessionParams) -> sessions::ResetResult,
    SessionsGet "sessions.get" Read (sessions::GetParams) -> sessions::GetResult,
    SessionsResolve "sessions.resolve" Read (sessions::ResolveParams) -> sessions::ResolveResult,
    SessionsMessagesSubscribe "sessions.messages.subscribe" Read (sessions::SessionParams) -> sessions::MessagesResult,
    SessionsMessagesUnsubscribe "sessions.messages.unsubscribe" Read (sessions::SessionParams) -> sessions::MessagesResult,
    SessionsTitle "sessions.title" Write (sessions::SessionParams) -> sessions::TitleResult,
    SessionsDelete "sessions.delete" Admin (sessions::DeleteParams) -> sessions::DeleteResult,
    SessionsSetExtraTools "sessions.setExtraTools" Write (sessions::SetExtraToolsParams) -> sessions::SetExtraToolsResult,
    ChatSend "chat.send" Write (chat::SendParams) -> chat::SendResult,
    ChatAbort "chat.abort" Write (chat::AbortParams) -> chat::AbortResult,
    ChatHistory "chat.history" Read (chat::HistoryParams) -> chat::HistoryResult,
    ChatStartup "chat.startup" Read (chat::HistoryParams) -> chat::HistoryResult,
    ChatInject "chat.inject" Admin (chat::InjectParams) -> chat::InjectResult,
    Agent "agent" Write (runs::RunParams) -> runs::RunResult,
    AgentWait "agent.wait" Write (runs::WaitParams) -> runs::WaitResult,
    ToolsCatalog "tools.catalog" Read (tools::CatalogParams) -> tools::CatalogResult,
    ToolsEffective "tools.effective" Read (tools::EffectiveParams) -> tools::EffectiveResult,
    ToolsInvoke "tools.invoke" Write (tools::InvokeParams) -> tools::InvokeResult,
    NodeInvokeResult "node.invoke.result" Node (tools::InvokeResultParams) -> tools::InvokeResultReceived,
    NodeInvokeProgress "node.invoke.progress" Node (tools::InvokeProgressParams) -> tools::InvokeResultReceived,
    ApprovalsList "approvals.list" Approvals (approvals::ListParams) -> approvals::ListResult,
    ApprovalsRespond "approvals.respond" Approvals (approvals::RespondParams) -> approvals::RespondResult,
    ApprovalsRules "approvals.rules" Approvals (approvals::RulesParams) -> approvals::RulesResult,
    ApprovalsRevoke "approvals.revoke" Approvals (approvals::RevokeParams) -> approvals::RulesResult,
    ApprovalsAllow "approvals.allow" Admin (approvals::AllowParams) -> approvals::RulesResult,
    ApprovalsPass "approvals.pass" Approvals (approvals::PassParams) -> approvals::PassResult,
    QuestionList "question.list" Questions (approvals::AnyParams) -> approvals::QuestionsResult,
    PluginApprovalList "plugin.approval.list" Approvals (approvals::AnyParams) -> Vec<published::Requested>,
    PluginApprovalResolve "plugin.approval.resolve" Approvals (published::ResolveParams) -> published::ResolveResult,
    ExecApprovalList "exec.approval.list" Approvals (approvals::AnyParams) -> Vec<published::Requested>,
    ExecApprovalGet "exec.approval.get" Approvals (published::GetParams) -> published::ExecDetails,
    ExecApprovalResolve "exec.approval.resolve" Approvals (published::ResolveParams) -> published::ResolveResult,
    SystemPresence "system-presence" Read (approvals::AnyParams) -> Vec<connect::PresenceEntry>,
    LogsTail "logs.tail" Read (logs::TailParams) -> logs::TailResult,
    McpServers "mcp.servers" Read (mcp::ServersParams) -> mcp::ServersResult,
    McpTools "mcp.tools" Read (mcp::ListParams) -> mcp::ToolsResult,
    McpStatus "mcp.status" Read (mcp::ServerParams) -> Box<RawValue>,
    McpConnect "mcp.connect" Write (mcp::ConnectParams) -> mcp::ServerResult,
    McpDisconnect "mcp.disconnect" Write (mcp::ServerParams) -> mcp::ServerResult,
    McpAuth "mcp.auth" Admin (mcp::AuthParams) -> mcp::AuthResult,
    McpRefresh "mcp.refresh" Write (mcp::RefreshParams) -> mcp::RefreshResult,
    McpReload "mcp.reload" Admin (mcp::ServersParams) -> mcp::ReloadResult,
    McpCall "mcp.call" Write (mcp::CallParams) -> mcp::Outcome,
    McpResources "mcp.resources" Read (mcp::ListParams) -> mcp::ResourcesResult,
    McpRead "mcp.read" Write (mcp::ReadParams) -> mcp::Outcome,
    McpPrompts "mcp.prompts" Read (mcp::ListParams) -> mcp::PromptsResult,
    McpPrompt "mcp.prompt" Write (mcp::PromptParams) -> mcp::Outcome,
    McpComplete "mcp.complete" Write (mcp::CompleteParams) -> mcp::CompleteResult,
    McpLogs "mcp.logs" Read (mcp::LogsParams) -> mcp::LogsResult,
    McpElicitationList "mcp.elicitation.list" Approvals (mcp::elicitation::ListParams) -> mcp::elicitation::ListResult,
    McpElicitationRespond "mcp.elicitation.respond" Approvals (mcp::elicitation::RespondParams) -> mcp::elicitation::RespondResult,
    ConfigGet "config.get" Read (config::GetParams) -> config::GetResult,
    ConfigReload "config.reload" Admin (config::ReloadParams) -> config::ReloadResult,
    GatewayStop "gateway.stop" Admin (config::StopParams) -> config::StopResult,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Scope that a caller needs for a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// None.
    Any,
    /// Reading.
    Read,
    /// Reading metrics.
    Metrics,
    /// Changing state.
    Write,
    /// Administration. Includes all other operator scopes.
    Admin,
    /// Deciding about approvals.
    Approvals,
    /// Answering questions.
    Questions,
    /// The role `node`, or having lent tools.
    Node,
}

impl Scope {
    /// Returns the name on the wire; `None` for scopes that are not granted by name.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Any | Self::Node => None,
            Self::Read => Some("operator.read"),
            Self::Metrics => Some("operator.metrics"),
            Self::Write => Some("operator.write"),
            Self::Admin => Some("operator.admin"),
            Self::Approvals => Some("operator.approvals"),
            Self::Questions => Some("operator.questions"),
        }
    }

    /// The scopes that are granted by name.
    pub const NAMED: [Self; 6] =
        [Self::Read, Self::Metrics, Self::Write, Self::Admin, Self::Approvals, Self::Questions];

    /// Returns the scope with this name on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|scope| scope.name() == Some(name))
    }

    /// Returns whether `granted` is sufficient. `write` includes `read`, which includes `metrics`;
    /// `admin` includes everything.
    #[must_use]
    pub fn is_in(self, granted: &[String]) -> bool {
        let has = |name: &str| granted.iter().any(|scope| scope == name);
        let Some(name) = self.name() else { return true };
        let is_read = matches!(self, Self::Read | Self::Metrics);
        has(name)
            || has("operator.admin")
            || (is_read && has("operator.write"))
            || (self == Self::Metrics && has("operator.read"))
    }
}

/// Parses the parameters of a request. Unknown fields are ignored; absent parameters count as `null` for methods that
/// accept it, and as `{}` for all others.
///
/// # Errors
/// The error response if they do not match the method.
pub fn params_of<P: DeserializeOwned>(
    method: &str,
    params: Option<&RawValue>,
) -> Result<P, ErrorShape> {
    let read = match params {
        Some(params) => serde_json::from_str(params.get()),
        None => serde_json::from_str("null").or_else(|_| serde_json::from_str("{}")),
    };
    read.map_err(|error| {
        // serde would name the type.
        let is_object = params.is_none_or(|params| params.get().starts_with('{'));
        let error = if is_object { error.to_string() } else { "expected an object".to_owned() };
        ErrorShape::invalid(format!("invalid {method} params: {error}"))
    })
}

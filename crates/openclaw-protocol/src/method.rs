//! The methods that we know, and what a caller needs for them.

use std::fmt;

macro_rules! methods {
    ($($variant:ident $name:literal $scope:ident,)*) => {
        /// A method.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Method {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// As it is written.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The method of that name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            /// What a caller needs to use it.
            #[must_use]
            pub const fn scope(self) -> Scope {
                match self { $(Self::$variant => Scope::$scope,)* }
            }
        }
    };
}

methods! {
    Connect "connect" Any,
    Health "health" Read,
    Status "status" Read,
    AgentsList "agents.list" Read,
    CommandsList "commands.list" Read,
    SessionsList "sessions.list" Read,
    SessionsDescribe "sessions.describe" Read,
    SessionsSubscribe "sessions.subscribe" Read,
    SessionsDelete "sessions.delete" Admin,
    SessionsSetExtraTools "sessions.setExtraTools" Write,
    ChatSend "chat.send" Write,
    ChatAbort "chat.abort" Write,
    ChatHistory "chat.history" Read,
    ChatInject "chat.inject" Admin,
    ToolsCatalog "tools.catalog" Read,
    ToolsInvoke "tools.invoke" Write,
    NodeInvokeResult "node.invoke.result" Node,
    ApprovalsList "approvals.list" Approvals,
    ApprovalsRespond "approvals.respond" Approvals,
    QuestionList "question.list" Questions,
    PluginApprovalList "plugin.approval.list" Approvals,
    McpServers "mcp.servers" Read,
    McpTools "mcp.tools" Read,
    McpStatus "mcp.status" Read,
    McpConnect "mcp.connect" Write,
    McpDisconnect "mcp.disconnect" Write,
    McpAuth "mcp.auth" Admin,
    McpRefresh "mcp.refresh" Write,
    McpReload "mcp.reload" Admin,
    McpCall "mcp.call" Write,
    McpResources "mcp.resources" Read,
    McpRead "mcp.read" Write,
    McpPrompts "mcp.prompts" Read,
    McpPrompt "mcp.prompt" Write,
    McpLogs "mcp.logs" Read,
    McpElicitationRespond "mcp.elicitation.respond" Approvals,
    ConfigGet "config.get" Read,
    ConfigReload "config.reload" Admin,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a caller needs to use a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Nothing.
    Any,
    /// To look.
    Read,
    /// To change things.
    Write,
    /// To change how things are set up. It includes all others of an operator.
    Admin,
    /// To decide about calls.
    Approvals,
    /// To answer questions.
    Questions,
    /// The role of a node, or to have lent tools.
    Node,
}

impl Scope {
    /// As it is written; none for what is not granted by name.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Any | Self::Node => None,
            Self::Read => Some("operator.read"),
            Self::Write => Some("operator.write"),
            Self::Admin => Some("operator.admin"),
            Self::Approvals => Some("operator.approvals"),
            Self::Questions => Some("operator.questions"),
        }
    }

    /// Whether these scopes are enough. Who may write may read; an administrator may do everything.
    #[must_use]
    pub fn is_in(self, granted: &[String]) -> bool {
        let has = |name: &str| granted.iter().any(|scope| scope == name);
        let Some(name) = self.name() else { return true };
        has(name) || has("operator.admin") || (self == Self::Read && has("operator.write"))
    }
}

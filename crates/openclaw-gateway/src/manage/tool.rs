//! The tool `mcp_manage`: what `/mcp` does, for an agent.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use openclaw_config::AgentConfig;
use openclaw_content::{Source, Untrusted, label};
use openclaw_tools::native::Approvals;
use openclaw_tools::{
    Approval, Content, Decision, Details, Effect, Failure, Policy, Standing, Tool, ToolCall,
    ToolName, ToolOutcome, ToolSet, ToolSpec, Why,
};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{Verb, carry_out};
use crate::gateway::Gateway;
use crate::mcp::{Problem, ProblemKind};

/// Its name.
pub(crate) const NAME: &str = "mcp_manage";

/// What to do, as a model says it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: Action,
    #[serde(default)]
    server: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    Servers,
    Tools,
    Status,
    Refresh,
    Connect,
    Disconnect,
    Auth,
}

impl Arguments {
    fn read(arguments: &RawValue) -> Result<Self, Problem> {
        serde_json::from_str(arguments.get()).map_err(|error| {
            Problem::new(ProblemKind::Invalid, format!("The arguments cannot be read: {error}."))
        })
    }

    fn verb(self) -> Result<Verb, Problem> {
        let Self { action, server, url, name } = self;
        let missing = |what: &str| {
            Problem::new(ProblemKind::Invalid, format!("`{what}` must be given for this action."))
        };
        let must = |server: Option<String>| server.ok_or_else(|| missing("server"));
        Ok(match action {
            Action::Servers => Verb::Servers,
            Action::Tools => Verb::Tools { server },
            Action::Status => Verb::Status { server: must(server)? },
            Action::Refresh => Verb::Refresh { server },
            Action::Disconnect => Verb::Disconnect { server: must(server)? },
            Action::Auth => Verb::Auth { server: must(server)? },
            Action::Connect => match (url, server) {
                (Some(url), server) => Verb::Connect { url, name: name.or(server) },
                (None, Some(server)) => Verb::ConnectAgain { server },
                (None, None) => return Err(missing("url")),
            },
        })
    }
}

impl Action {
    /// Looking is free. Each new address is another matter: nobody can agree to all of them.
    fn standing(self, approvals: &Approvals) -> Standing {
        match self {
            Self::Servers | Self::Tools | Self::Status | Self::Auth => Standing::Free,
            Self::Refresh | Self::Disconnect if approvals.contains(NAME) => Standing::Free,
            Self::Refresh | Self::Disconnect => Standing::Ask(Why::MayChange),
            Self::Connect => Standing::Ask(Why::EachTime),
        }
    }
}

/// The tool, for one agent.
#[derive(Debug)]
pub(crate) struct ManageTool {
    gateway: Weak<Gateway>,
    agent: String,
    spec: ToolSpec,
    approvals: Approvals,
}

/// The tool, where it is allowed.
#[derive(Debug)]
pub(crate) struct ManageTools(Option<Arc<ManageTool>>);

impl ManageTool {
    /// The tool, where the policy allows it and MCP is on.
    pub(crate) fn set(
        gateway: Weak<Gateway>,
        agent: &AgentConfig,
        policy: &Policy,
        approvals: Approvals,
    ) -> ManageTools {
        let spec = spec().filter(|spec| policy.decide(&spec.name) == Decision::Allowed);
        let agent_id = agent.id.to_string();
        let tool = spec
            .filter(|_| agent.mcp.enabled)
            .map(|spec| Arc::new(Self { gateway, agent: agent_id, spec, approvals }));
        ManageTools(tool)
    }

    async fn carry_out(&self, call: ToolCall<'_>) -> Result<String, Problem> {
        let arguments = Arguments::read(call.arguments)?;
        match (arguments.action.standing(&self.approvals), call.approval) {
            (Standing::Ask(_), None) => {
                let words =
                    "This call is not allowed: somebody must approve it first. Nothing was done.";
                return Err(Problem::new(ProblemKind::Forbidden, words));
            }
            (Standing::Ask(why), Some(Approval::Always)) if why.can_last() => {
                self.approvals.remember(NAME);
            }
            _ => {}
        }
        let gone = || Problem::new(ProblemKind::Unavailable, "The gateway is stopping.");
        let gateway = self.gateway.upgrade().ok_or_else(gone)?;
        let service = gateway.config().agent(&self.agent).map(Arc::clone).ok_or_else(gone)?;
        let done = Box::pin(carry_out(&gateway, &service, &arguments.verb()?)).await?;
        Ok(done.text())
    }
}

fn spec() -> Option<ToolSpec> {
    Some(ToolSpec {
        name: ToolName::new(NAME).ok()?,
        label: "Manage MCP servers".to_owned(),
        description: "Looks at MCP servers and manages them: `servers` lists them, `tools` their tools, \
                      `status` tells all about one, `refresh` reads its lists again or connects anew, \
                      `auth` tells how it is logged in to. `connect` uses the service at a `url` and \
                      `disconnect` stops using a server, both only until the program ends, and only when \
                      the user asks for it."
            .to_owned(),
        input_schema: ToolSpec::schema(json!({
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["servers", "tools", "status", "refresh", "connect", "disconnect", "auth"],
                },
                "server": { "type": "string", "description": "The server's name" },
                "url": { "type": "string", "description": "For `connect`: the address, https" },
                "name": { "type": "string", "description": "For `connect`: what to call it" },
            },
            "required": ["action"],
            "additionalProperties": false,
        })),
        effect: Effect::Unknown,
    })
}

impl ToolSet for ManageTools {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.iter().map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let tool = self.0.as_ref().filter(|_| name == NAME)?;
        Some(Arc::clone(tool) as Arc<dyn Tool>)
    }
}

impl Tool for ManageTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn standing(&self) -> Standing {
        Action::Refresh.standing(&self.approvals)
    }

    fn standing_for(&self, arguments: &RawValue) -> Standing {
        match Arguments::read(arguments) {
            Ok(arguments) => arguments.action.standing(&self.approvals),
            // It is refused for what it is: nobody need be asked.
            Err(_) => Standing::Free,
        }
    }

    fn is_essential(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, call: ToolCall<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            match self.carry_out(call).await {
                Ok(text) => told(text, None),
                Err(problem) => {
                    let failure = match problem.kind {
                        ProblemKind::Forbidden | ProblemKind::Changed => Failure::Denied,
                        ProblemKind::TimedOut => Failure::TimedOut,
                        ProblemKind::Unavailable | ProblemKind::NoLogins => Failure::Unavailable,
                        ProblemKind::UnknownServer
                        | ProblemKind::UnknownTool
                        | ProblemKind::Unusable
                        | ProblemKind::Invalid => Failure::InvalidArguments,
                    };
                    told(problem.text(), Some(failure))
                }
            }
        })
    }
}

/// What servers say about themselves and their troubles is among it: all of it counts as from outside.
fn told(text: String, failure: Option<Failure>) -> ToolOutcome {
    let Ok((text, findings)) = label(Untrusted::new(text), Source::other(NAME)) else {
        return ToolOutcome::failure("The answer cannot be shown: there are no random numbers.");
    };
    let details = Details {
        untrusted: true,
        source: Some("mcp_server"),
        findings,
        failure,
        ..Details::default()
    };
    let content = vec![Content::Text(text)];
    ToolOutcome { content, is_error: failure.is_some(), details }
}

//! The tool `mcp_manage`: `/mcp` for an agent.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use openclaw_config::{AgentConfig, AgentId};
use openclaw_content::{Source, Untrusted, label};
use openclaw_protocol::Scope;
use openclaw_tools::native::{ApprovalKey, Approvals};
use openclaw_tools::schema::LazyValidator;
use openclaw_tools::{
    AlwaysOption, ApprovalContext, ApprovalExtent, ApprovalRule, Arguments as CallArguments,
    AuditName, Content, Decision, Executed, GrantRule, OutcomeDetails, Pin, Policy, Tool, ToolCall,
    ToolEffect, ToolFailure, ToolName, ToolOutcome, ToolSource, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Verb, execute};
use crate::mcp::problem::{Problem, ProblemKind};
use crate::mcp::servers::McpServers;

/// Name of the tool.
pub(crate) const NAME: &str = "mcp_manage";

/// The arguments of a call.
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
    fn read(arguments: &CallArguments<'_>) -> Result<Self, Problem> {
        let arguments = Value::Object(arguments.members());
        serde_json::from_value(arguments).map_err(|error| {
            Problem::new(ProblemKind::Invalid, format!("Invalid arguments: {error}."))
        })
    }

    fn verb(self) -> Result<Verb, Problem> {
        let Self { action, server, url, name } = self;
        let missing = |what: &str| {
            Problem::new(ProblemKind::Invalid, format!("`{what}` is required for this action."))
        };
        let must = |server: Option<String>| server.ok_or_else(|| missing("server"));
        Ok(match action {
            Action::Servers => Verb::Servers,
            Action::Tools => Verb::Tools { server },
            Action::Status => Verb::Status { server: must(server)? },
            Action::Refresh => Verb::Refresh { server },
            Action::Disconnect => Verb::Disconnect { server: must(server)? },
            Action::Auth => Verb::AuthState { server: must(server)? },
            Action::Connect => match (url, server) {
                (Some(url), server) => Verb::Connect { url, name: name.or(server) },
                (None, Some(server)) => Verb::ConnectAgain { server },
                (None, None) => return Err(missing("url")),
            },
        })
    }
}

impl Action {
    /// Reading is free. Each new URL needs its own approval.
    fn rule(self) -> ApprovalRule {
        match self {
            Self::Servers | Self::Tools | Self::Status | Self::Auth => ApprovalRule::Never,
            Self::Refresh | Self::Disconnect => ApprovalRule::Auto,
            Self::Connect => ApprovalRule::Always,
        }
    }
}

/// The tool, for one agent.
#[derive(Debug)]
pub(crate) struct ManageTool {
    servers: Arc<McpServers>,
    agent: AgentId,
    spec: ToolSpec,
    decision: Decision,
    validator: LazyValidator,
    approvals: Approvals,
}

/// The tool source: contains the tool if MCP is enabled.
#[derive(Debug)]
pub(crate) struct ManageTools(Option<Arc<ManageTool>>);

impl ManageTool {
    /// Creates the tool if MCP is enabled for the agent, with the policy's decision.
    pub(crate) fn set(
        servers: Arc<McpServers>,
        agent: &AgentConfig,
        policy: &Policy,
        approvals: Approvals,
    ) -> ManageTools {
        let tool = spec().filter(|_| agent.mcp.enabled).map(|spec| {
            let decision = policy.decide(&spec.name);
            let validator = LazyValidator::new(Arc::clone(&spec.input_schema));
            let agent = agent.id.clone();
            Arc::new(Self { servers, agent, spec, decision, validator, approvals })
        });
        ManageTools(tool)
    }

    fn key(&self) -> ApprovalKey {
        ApprovalKey {
            agent: self.agent.to_string(),
            workspace: None,
            session: None,
            tool: NAME.to_owned(),
            grant: GrantRule::Tool,
        }
    }

    async fn run(&self, call: ToolCall<'_>) -> Result<String, Problem> {
        let verb = Arguments::read(call.arguments)?.verb()?;
        Ok(Box::pin(execute(&self.servers, &self.agent, &verb, &scopes())).await?.text())
    }
}

/// The scopes of a call. It is made for a message or a request whose caller has at least this one,
/// and may have no other.
fn scopes() -> Vec<String> {
    Scope::Write.name().into_iter().map(ToOwned::to_owned).collect()
}

fn spec() -> Option<ToolSpec> {
    Some(ToolSpec {
        name: ToolName::new(NAME).ok()?,
        label: "Manage MCP servers".to_owned(),
        description: "Shows and manages MCP servers: `servers` lists them, `tools` lists their \
                      tools, `status` shows the details of one, `refresh` fetches its lists again \
                      or reconnects, `auth` shows whether a login is required. `connect` connects to the \
                      server at a `url` and `disconnect` disconnects a server, both only until the \
                      program exits, and only when the user asks for it."
            .to_owned(),
        input_schema: ToolSpec::schema(json!({
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["servers", "tools", "status", "refresh", "connect", "disconnect", "auth"],
                },
                "server": { "type": "string", "description": "The server's name" },
                "url": { "type": "string", "description": "For `connect`: the https URL" },
                "name": { "type": "string", "description": "For `connect`: the name to use" },
            },
            "required": ["action"],
            "additionalProperties": false,
        })),
        effect: ToolEffect::Unknown,
    })
}

impl ToolSource for ManageTools {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let allowed = self.0.iter().filter(|tool| tool.decision == Decision::Allowed);
        allowed.map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect()
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

    fn origin(&self) -> AuditName<'_> {
        AuditName { name: NAME, source: "openclaw", ..AuditName::default() }
    }

    fn decision(&self) -> &Decision {
        &self.decision
    }

    fn pin(&self, _: ApprovalContext<'_>) -> Pin {
        match self.approvals.contains(&self.key()) {
            true => Pin::Same { for_good: true },
            false => Pin::New,
        }
    }

    fn rule(&self, arguments: &CallArguments<'_>) -> ApprovalRule {
        match Arguments::read(arguments) {
            Ok(arguments) => arguments.action.rule(),
            // The call is rejected anyway, so no approval is needed.
            Err(_) => ApprovalRule::Never,
        }
    }

    fn always(&self, _: ApprovalContext<'_>) -> Vec<AlwaysOption> {
        let words = format!(
            "always allow `{NAME}` to refresh and disconnect servers for agent {}",
            self.agent
        );
        vec![AlwaysOption { grant: GrantRule::Tool, words }]
    }

    fn keep(&self, approval: &ApprovalExtent, _: Pin, _: ApprovalContext<'_>) {
        if matches!(approval, ApprovalExtent::Always(_))
            && let Err(error) = self.approvals.remember(self.key())
        {
            tracing::warn!(tool = NAME, %error, "cannot store the approval; it is valid until exit");
        }
    }

    fn validator(&self) -> &LazyValidator {
        &self.validator
    }

    fn is_essential(&self) -> bool {
        true
    }

    fn execute<'a>(&'a self, call: ToolCall<'a>) -> BoxFuture<'a, Executed> {
        Box::pin(async move {
            Executed::Done(match self.run(call).await {
                Ok(text) => external_outcome(text, None),
                Err(problem) => {
                    let failure = match problem.kind {
                        ProblemKind::Forbidden | ProblemKind::Changed => ToolFailure::Denied,
                        ProblemKind::TimedOut => ToolFailure::TimedOut,
                        ProblemKind::Unavailable => ToolFailure::Unavailable,
                        ProblemKind::NeedsLogin => ToolFailure::NeedsLogin,
                        ProblemKind::UnknownServer
                        | ProblemKind::UnknownTool
                        | ProblemKind::Unusable
                        | ProblemKind::Invalid => ToolFailure::InvalidArguments,
                    };
                    external_outcome(problem.text(), Some(failure))
                }
            })
        })
    }
}

/// Labels everything as content from outside, since it includes text and errors of servers.
fn external_outcome(text: String, failure: Option<ToolFailure>) -> ToolOutcome {
    let Ok((text, findings)) = label(Untrusted::new(text), Source::other(NAME)) else {
        return ToolOutcome::failure(
            "The result cannot be shown: no random numbers are available.",
        );
    };
    let details = OutcomeDetails {
        untrusted: true,
        source: Some("mcp_server"),
        findings,
        failure,
        ..OutcomeDetails::default()
    };
    let content = vec![Content::Text(text)];
    ToolOutcome { content, is_error: failure.is_some(), details: Box::new(details) }
}

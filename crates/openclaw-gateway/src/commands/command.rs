//! The commands, and the method that each of them stands for.

use openclaw_mcp::call::library::PromptCommand;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_protocol::Method;

use super::absent::{self, AbsentCommand};
use super::model::ModelCommand;
use crate::mcp::McpChatCommand;

/// A message that is a command.
#[derive(Debug)]
pub(crate) enum ChatCommand {
    /// List the commands.
    Help,
    /// Describe the session, its agent and the servers.
    Status,
    /// List the agent's tools.
    Tools,
    /// Show the tokens that the session has used.
    Usage,
    /// Replace the conversation with a summary.
    Compact,
    /// Abort what runs in the session.
    Stop,
    /// Delete the messages of the session, and answer this one, if any.
    Reset(String),
    /// Show or set the title of the session.
    Name(String),
    /// Show or set the model of the session.
    Model(ModelCommand),
    /// Show or manage MCP servers.
    Mcp(McpChatCommand),
    /// Send a prompt of an MCP server to the model, with these arguments.
    Prompt(Box<PromptCommand>, String),
    /// A command of other front ends that does not exist here.
    Absent(AbsentCommand),
}

impl ChatCommand {
    /// Reads a message to an agent with these servers. Returns `None` if it is for the model.
    pub(crate) fn read(servers: Option<&AgentTools>, text: &str) -> Option<Self> {
        let command = text.trim().strip_prefix('/')?;
        let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        if let Some(known) = Self::known(word, rest.trim()) {
            return Some(known);
        }
        let prompt =
            servers?.prompts().into_iter().find(|prompt| prompt.command.as_str() == word)?;
        Some(Self::Prompt(Box::new(prompt), rest.to_owned()))
    }

    /// Reads a command that does not depend on the servers.
    fn known(word: &str, rest: &str) -> Option<Self> {
        // Front ends also write `/model: NAME`.
        let (word, rest) = match word.split_once(':') {
            Some((word, "")) => (word, rest),
            Some((word, value)) if rest.is_empty() => (word, value),
            _ => (word, rest),
        };
        Some(match word.to_lowercase().as_str() {
            "help" | "commands" => Self::Help,
            "status" => Self::Status,
            "tools" => Self::Tools,
            "usage" => Self::Usage,
            "compact" => Self::Compact,
            "stop" | "abort" => Self::Stop,
            "new" | "reset" => Self::Reset(rest.to_owned()),
            "name" => Self::Name(rest.to_owned()),
            "model" => Self::Model(ModelCommand::read(rest)),
            "models" => Self::Model(ModelCommand::List),
            "mcp" => Self::Mcp(McpChatCommand::read(rest)),
            word => Self::Absent(absent::find(word)?),
        })
    }

    /// The method that the command stands for: whoever may not call that may not use the command.
    pub(crate) fn method(&self) -> Method {
        match self {
            Self::Help | Self::Absent(_) => Method::CommandsList,
            Self::Status | Self::Usage => Method::SessionsDescribe,
            Self::Tools => Method::ToolsEffective,
            // It requests an answer of the model, and changes nothing else.
            Self::Compact => Method::ChatSend,
            Self::Stop => Method::ChatAbort,
            Self::Reset(_) => Method::SessionsReset,
            Self::Name(title) if title.is_empty() => Method::SessionsDescribe,
            Self::Name(_) => Method::SessionsPatch,
            Self::Model(command) => command.method(),
            Self::Mcp(command) => command.method(),
            Self::Prompt(..) => Method::McpPrompt,
        }
    }

    /// The command as it is named in errors.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Help => "/help".to_owned(),
            Self::Status => "/status".to_owned(),
            Self::Tools => "/tools".to_owned(),
            Self::Usage => "/usage".to_owned(),
            Self::Compact => "/compact".to_owned(),
            Self::Stop => "/stop".to_owned(),
            Self::Reset(_) => "/reset".to_owned(),
            Self::Name(_) => "/name".to_owned(),
            Self::Model(_) => "/model".to_owned(),
            Self::Mcp(command) => command.name(),
            Self::Prompt(prompt, _) => format!("/{}", prompt.command),
            Self::Absent(command) => format!("/{}", command.name),
        }
    }
}

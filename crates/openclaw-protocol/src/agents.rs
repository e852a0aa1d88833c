//! `agents.list` and `commands.list`: the agents, and the commands they accept.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::models::ModelChoice;
use serde_json::Value;

/// Parameters of `agents.list`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListParams {}

/// Result of `agents.list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListResult {
    /// Agent used when a request names none.
    pub default_id: String,
    /// Key of each agent's main session.
    pub main_key: String,
    /// Which senders share a session.
    pub scope: Scope,
    /// All agents.
    pub agents: Vec<Agent>,
}

/// Which senders share a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// One session per sender.
    PerSender,
    /// One session for all senders.
    Global,
}

/// An agent.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Agent id.
    pub id: String,
    /// Display name.
    pub name: Option<String>,
    /// Working directory.
    pub workspace: Option<String>,
    /// Model and fallbacks.
    pub model: Option<AgentModel>,
    /// Identity shown to users: name, theme, emoji, avatar.
    pub identity: Option<Value>,
}

/// The models of an agent.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentModel {
    /// Model that is tried first.
    pub primary: Option<String>,
    /// Models that are tried, in order, when the primary fails.
    pub fallbacks: Option<Vec<String>>,
}

/// Parameters of `commands.list`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandsParams {
    /// Session key.
    pub session_key: Option<String>,
    /// Agent id.
    pub agent_id: Option<String>,
    /// Channel whose command names are used.
    pub provider: Option<String>,
    /// Only commands of this scope.
    pub scope: Option<CommandScope>,
    /// Whether to include arguments.
    pub include_args: Option<bool>,
}

/// How a command can be entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandScope {
    /// As text with a leading slash.
    Text,
    /// Through the channel's native command interface.
    Native,
    /// Both ways.
    Both,
}

/// Result of `commands.list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandsResult {
    /// Commands; at most 500.
    pub commands: Vec<Command>,
}

/// A command.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Command {
    /// Name, without the slash.
    pub name: String,
    /// Aliases, with the slash.
    pub text_aliases: Option<Vec<String>>,
    /// What it does.
    pub description: String,
    /// Category.
    pub category: Option<CommandCategory>,
    /// Where it comes from.
    pub source: CommandSource,
    /// How it can be entered.
    pub scope: CommandScope,
    /// Whether it accepts arguments.
    pub accepts_args: bool,
    /// Arguments.
    pub args: Option<Vec<CommandArg>>,
}

/// Category of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandCategory {
    /// Sessions.
    Session,
    /// Session options.
    Options,
    /// Status.
    Status,
    /// Managing the program.
    Management,
    /// Images and audio.
    Media,
    /// Tools.
    Tools,
}

/// Where a command comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandSource {
    /// Built in.
    Native,
    /// A skill.
    Skill,
    /// A plugin.
    Plugin,
}

/// An argument of a command.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandArg {
    /// Argument name.
    pub name: String,
    /// What it means.
    pub description: String,
    /// Value type.
    #[serde(rename = "type")]
    pub kind: CommandArgKind,
    /// Whether it is required.
    pub required: Option<bool>,
    /// Allowed values.
    pub choices: Option<Vec<CommandChoice>>,
    /// Whether the allowed values are computed at run time.
    pub dynamic: Option<bool>,
}

/// Type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandArgKind {
    /// A string.
    String,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
}

/// An allowed value of an argument.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandChoice {
    /// Value that is sent.
    pub value: String,
    /// Label that is displayed.
    pub label: String,
}

/// Parameters of `agent.identity.get`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdentityParams {
    /// Agent id; the default agent if absent.
    pub agent_id: Option<String>,
    /// Session key.
    pub session_key: Option<String>,
}

/// Result of `agent.identity.get`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdentityResult {
    /// Agent id.
    pub agent_id: String,
    /// Display name.
    pub name: String,
}

/// Result of `chat.metadata`. Its parameters are those of `commands.list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MetadataResult {
    /// Models.
    pub models: Vec<ModelChoice>,
    /// Commands.
    pub commands: Vec<Command>,
}

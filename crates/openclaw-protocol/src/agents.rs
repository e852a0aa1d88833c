//! `agents.list` and `commands.list`: who there is, and what can be said to them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `agents.list`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListParams {}

/// What `agents.list` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListResult {
    /// Who is spoken to if nobody is named.
    pub default_id: String,
    /// The key of everybody's main session.
    pub main_key: String,
    /// Who shares a session.
    pub scope: Scope,
    /// All of them.
    pub agents: Vec<Agent>,
}

/// Who shares a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Everybody has their own.
    PerSender,
    /// All share one.
    Global,
}

/// One agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Its id.
    pub id: String,
    /// What it is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The folder that it works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// What it thinks with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<AgentModel>,
    /// How it shows itself: name, theme, emoji, avatar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Value>,
}

/// What an agent thinks with.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentModel {
    /// The model that is asked first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,
    /// Those that are asked if that one fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallbacks: Option<Vec<String>>,
}

/// `commands.list`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandsParams {
    /// For which conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// Of whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// As which channel names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<CommandScope>,
    /// With what they take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_args: Option<bool>,
}

/// How a command can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandScope {
    /// As text with a slash.
    Text,
    /// In a channel's own way.
    Native,
    /// Either way.
    Both,
}

/// What `commands.list` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandsResult {
    /// At most 500.
    pub commands: Vec<Command>,
}

/// One command.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Command {
    /// Its name, without the slash.
    pub name: String,
    /// What else it is called, with the slash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_aliases: Option<Vec<String>>,
    /// What it does.
    pub description: String,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<CommandCategory>,
    /// Where it comes from.
    pub source: CommandSource,
    /// How it can be given.
    pub scope: CommandScope,
    /// Whether something may follow it.
    pub accepts_args: bool,
    /// What may follow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<CommandArg>>,
}

/// What a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandCategory {
    /// The conversation.
    Session,
    /// How it is led.
    Options,
    /// How things are.
    Status,
    /// The program.
    Management,
    /// Pictures and sounds.
    Media,
    /// Tools.
    Tools,
}

/// Where a command comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandSource {
    /// The program.
    Native,
    /// A skill.
    Skill,
    /// A plugin.
    Plugin,
}

/// What may follow a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandArg {
    /// Its name.
    pub name: String,
    /// What it means.
    pub description: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: CommandArgKind,
    /// Whether it must be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// What it may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<CommandChoice>>,
    /// Whether the choices depend on the moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamic: Option<bool>,
}

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandArgKind {
    /// Text.
    String,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
}

/// What an argument may be.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandChoice {
    /// What is sent.
    pub value: String,
    /// What is shown.
    pub label: String,
}

//! The list of commands.

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::call::library::PromptCommand;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_protocol::agents::{
    Command, CommandArg, CommandArgKind, CommandCategory, CommandScope, CommandSource,
};
use openclaw_tools::ToolSource;

use crate::mcp::McpChatCommand;

/// Maximum length of a listed description, in characters.
const DESCRIPTION: usize = 200;
/// Maximum number of commands listed from prompts.
const MAX_COMMANDS: usize = 500;

/// The command about MCP servers.
const MCP: &str = "mcp";
/// The names of each command, its argument, and what it does.
const NATIVE: [(&[&str], Option<&str>, &str); 11] = [
    (&["help", "commands"], None, "List the commands"),
    (&["status"], None, "Show the session, its model and the servers"),
    (&["tools"], None, "List the tools"),
    (&["usage"], None, "Show the tokens that the session has used"),
    (&["compact"], None, "Replace the conversation so far with a summary"),
    (&["stop", "abort"], None, "Abort the turn that runs in the session"),
    (&["reset", "new"], Some("message"), "Delete the messages of the session"),
    (&["name"], Some("title"), "Show or set the name of the session"),
    (&["model"], Some("name"), "Show or set the model of the session"),
    (&["models"], None, "List the models"),
    (&[MCP], Some("verb"), "Show and manage MCP servers"),
];

fn native(names: &[&str], argument: Option<&str>, description: &str) -> Command {
    let args = argument.map(|name| CommandArg {
        name: name.to_owned(),
        description: String::new(),
        kind: CommandArgKind::String,
        required: Some(false),
        choices: None,
        dynamic: None,
    });
    Command {
        name: names.first().copied().unwrap_or_default().to_owned(),
        text_aliases: Some(names.iter().map(|name| format!("/{name}")).collect()),
        description: description.to_owned(),
        category: Some(CommandCategory::Management),
        source: CommandSource::Native,
        scope: CommandScope::Text,
        accepts_args: args.is_some(),
        args: args.map(|arg| vec![arg]),
    }
}

/// All commands of an agent.
pub(crate) fn list(servers: Option<&AgentTools>, tools: &dyn ToolSource) -> Vec<Command> {
    let mut all: Vec<Command> = NATIVE
        .iter()
        .filter(|(names, ..)| names.first() != Some(&MCP) || McpChatCommand::is_allowed(tools))
        .map(|(names, argument, description)| native(names, *argument, description))
        .collect();
    if let Some(mcp) = all.iter_mut().find(|command| command.name == MCP) {
        let statuses = servers.map(AgentTools::statuses).unwrap_or_default();
        mcp.args = Some(McpChatCommand::arguments(&statuses));
    }
    let prompts = servers.into_iter().flat_map(AgentTools::prompts);
    all.extend(prompts.map(|prompt| prompt_command(&prompt)).take(MAX_COMMANDS));
    all
}

fn prompt_command(prompt: &PromptCommand) -> Command {
    let clean = |text: &str| clean_line(Untrusted::new(text), DESCRIPTION);
    let entry = &prompt.prompt.entry;
    let args: Vec<CommandArg> = entry
        .arguments
        .iter()
        .map(|argument| CommandArg {
            name: clean(&argument.name),
            description: clean(argument.description.as_deref().unwrap_or_default()),
            kind: CommandArgKind::String,
            required: Some(argument.required),
            choices: None,
            dynamic: None,
        })
        .collect();
    Command {
        name: prompt.command.to_string(),
        text_aliases: Some(vec![format!("/{}", prompt.command)]),
        description: clean(entry.description.as_deref().unwrap_or_default()),
        category: Some(CommandCategory::Tools),
        source: CommandSource::Plugin,
        scope: CommandScope::Text,
        accepts_args: !args.is_empty(),
        args: Some(args),
    }
}

pub(super) fn help(commands: &[Command]) -> String {
    let lines =
        commands.iter().map(|command| format!("/{}  {}", command.name, command.description));
    lines.collect::<Vec<_>>().join("\n")
}

//! Messages that are commands: executed without a model (M1, B15).

use std::sync::Arc;

use openclaw_agent::part_of;
use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::call::library::PromptCommand;
use openclaw_models::Part;
use openclaw_protocol::agents::{
    Command, CommandArg, CommandArgKind, CommandCategory, CommandChoice, CommandScope,
    CommandSource,
};
use openclaw_sessions::SessionKey;
use openclaw_tools::{CallContext, Decision, ToolSource as _};

use crate::agents::AgentRuntime;
use crate::gateway::Gateway;
use crate::manage::{self, Order, VERBS};
use crate::usage;

/// Maximum length of a listed description, in characters.
const DESCRIPTION: usize = 200;
/// Maximum number of commands listed from prompts.
const MAX_COMMANDS: usize = 500;

/// How a message is interpreted.
pub(crate) enum ParsedMessage {
    /// Content to send to the model.
    Turn(Vec<Part>),
    /// The output of a command that was executed.
    Done(String),
    /// A request to summarize the session.
    Compact,
}

/// Executes a message that is a command. Returns `None` for any other message.
pub(crate) async fn interpret(
    gateway: &Arc<Gateway>,
    service: &AgentRuntime,
    key: &SessionKey,
    text: &str,
) -> Option<ParsedMessage> {
    let command = text.trim().strip_prefix('/')?;
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    match name {
        "help" => return Some(ParsedMessage::Done(help(&list(gateway, service)))),
        "compact" => return Some(ParsedMessage::Compact),
        "usage" => {
            return Some(ParsedMessage::Done(usage::of_session(gateway, service, key).await));
        }
        "mcp" => return Some(ParsedMessage::Done(manage(gateway, service, rest).await)),
        _ => {}
    }
    let tools = gateway.fleet.agent(service.config.id.as_str())?;
    let prompt = tools.prompts().into_iter().find(|prompt| prompt.command.as_str() == name)?;
    let arguments = match prompt.arguments(rest) {
        Ok(arguments) => arguments,
        Err(words) => return Some(ParsedMessage::Done(words)),
    };
    let (server, own) = (prompt.prompt.server.as_str(), prompt.prompt.entry.name.as_str());
    let agent = Some(service.config.id.as_str());
    let context = CallContext { agent, ..CallContext::by_hand("command") };
    let outcome = tools.prompt(server, own, &arguments, &context).await;
    if outcome.is_error {
        return Some(ParsedMessage::Done(outcome.text()));
    }
    let mut parts = vec![Part::ours(prompt.lead())];
    parts.extend(outcome.content.into_iter().map(part_of));
    Some(ParsedMessage::Turn(parts))
}

/// `/mcp …`: like the tool `mcp_manage`, without a model. Not allowed where the tool is not.
async fn manage(gateway: &Gateway, service: &AgentRuntime, rest: &str) -> String {
    if !may_manage(service) {
        let name = manage::NAME;
        return format!("Not allowed: the configuration denies `{name}`, or MCP is disabled.");
    }
    let order = match Order::read(rest) {
        Ok(order) => order,
        Err(words) => return words,
    };
    match (Box::pin(manage::carry_out(gateway, &service.config.id, &order.verb)).await, order.json)
    {
        (Ok(done), false) => done.text(),
        (Ok(done), true) => done.json(),
        (Err(problem), false) => manage::problem_text(&problem),
        (Err(problem), true) => manage::problem_json(&problem),
    }
}

/// The arguments of `/mcp`.
fn manage_args(gateway: &Gateway, service: &AgentRuntime) -> Vec<CommandArg> {
    let choice = |value: &str, label: &str| CommandChoice {
        value: value.to_owned(),
        label: label.to_owned(),
    };
    // Both may be omitted: then the servers are listed.
    let argument = |name: &str, description: &str, choices, dynamic| CommandArg {
        name: name.to_owned(),
        description: description.to_owned(),
        kind: CommandArgKind::String,
        required: Some(false),
        choices: Some(choices),
        dynamic: Some(dynamic),
    };
    let verbs = VERBS.iter().map(|(verb, _, about)| choice(verb, about)).collect();
    let tools = gateway.fleet.agent(service.config.id.as_str());
    let statuses = tools.map(|tools| tools.statuses()).unwrap_or_default();
    let servers = statuses.iter().map(|it| choice(&it.name, it.state.name())).collect();
    vec![
        argument("verb", "The action", verbs, false),
        argument("server", "The server's name, or a URL", servers, true),
    ]
}

/// All commands of an agent.
pub(crate) fn list(gateway: &Gateway, service: &AgentRuntime) -> Vec<Command> {
    let native = |name: &str, description: &str, accepts_args| Command {
        name: name.to_owned(),
        text_aliases: Some(vec![format!("/{name}")]),
        description: description.to_owned(),
        category: Some(CommandCategory::Management),
        source: CommandSource::Native,
        scope: CommandScope::Text,
        accepts_args,
        args: None,
    };
    let mut all = vec![
        native("help", "List the commands", false),
        native("compact", "Replace the conversation so far with a summary", false),
        native("usage", "Show the tokens that the session has used", false),
    ];
    if may_manage(service) {
        let args = Some(manage_args(gateway, service));
        all.push(Command { args, ..native("mcp", "Show and manage MCP servers", true) });
    }
    let tools = gateway.fleet.agent(service.config.id.as_str());
    let prompts = tools.iter().flat_map(|tools| tools.prompts());
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

fn help(commands: &[Command]) -> String {
    let lines =
        commands.iter().map(|command| format!("/{}  {}", command.name, command.description));
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether the agent may use `mcp_manage`, the tool that `/mcp` corresponds to.
fn may_manage(service: &AgentRuntime) -> bool {
    let tool = service.tools.find(manage::NAME);
    tool.is_some_and(|tool| *tool.decision() == Decision::Allowed)
}

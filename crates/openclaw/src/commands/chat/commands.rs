//! Slash commands that the chat handles itself. The gateway handles all others.

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::inventory::describe::without_server;
use openclaw_protocol::agents::{Command, CommandsParams};
use openclaw_protocol::servers_settled;
use openclaw_protocol::tools::CatalogParams;
use openclaw_protocol::{RequestError, rpc};

use super::turn::SERVERS;
use super::{Chat, conversation, model, paste, results};
use crate::commands::approvals::{self, AllowDefaults};
use crate::commands::link::look;
use crate::commands::mcp::show_servers;
use crate::commands::talk;
use crate::error::CommandError;
use crate::output::{Output, plural, printable};
use openclaw_terminal::style::{FAINT, STRONG};

/// The name, the arguments and the description of each command.
pub(super) const LOCAL: [(&str, &str, &str); 13] = [
    ("/help", "", "List the commands"),
    ("/new", "[KEY]", "Start a new session"),
    ("/sessions", "", "List the latest sessions"),
    ("/session", "[KEY]", "Show the session's key, or switch to another one"),
    ("/resume", "", "Choose another session"),
    ("/model", "[NAME]", "Show the models, or switch to another one"),
    ("/tools", "[WORD]", "List the tools whose name or description contains the word"),
    ("/approvals", "[VERB …]", "List approvals; or `allow`, `revoke`, `--help`"),
    ("/call", "TOOL {JSON}", "Call a tool"),
    ("/show", "N", "Show result #N in full"),
    ("/save", "N [FILE]", "Save the images of result #N"),
    ("/paste", "", "Attach the image on the clipboard to the next message"),
    ("/exit", "", "Exit"),
];
/// The hint for a wrong `/call`.
const CALL_USAGE: &str =
    "use `/call TOOL {JSON}`; `/tools` lists the tools, and Tab completes them";
/// The number of conversations to list.
pub(super) const LATEST: u64 = 15;
/// The maximum length of a description, on a terminal and elsewhere.
const LINE_CHARS: usize = 120;
const PIPED_CHARS: usize = 4_000;

/// A typed line, parsed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypedLine<'a> {
    Empty,
    /// A command that was executed here.
    Done,
    /// A command that failed, with an error that was shown.
    Failed,
    /// A request to choose another conversation.
    Choose,
    Exit,
    /// A tool to call, and its arguments.
    Call(&'a str, &'a str),
    /// A message for the gateway.
    Say(ChatInput<'a>),
}

/// A message for the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChatInput<'a> {
    /// For the model, unless it is a command.
    Message(&'a str),
    /// For the model, even if it looks like a command.
    Text(&'a str),
}

impl<'a> ChatInput<'a> {
    /// A second slash, or a space before the first, turns a command into text.
    fn of(line: &'a str) -> Self {
        let said = line.trim();
        match said.strip_prefix('/') {
            Some(rest) if rest.starts_with('/') => Self::Text(rest),
            Some(_) if line.starts_with(char::is_whitespace) => Self::Text(said),
            _ => Self::Message(line),
        }
    }

    pub(super) fn text(self) -> &'a str {
        match self {
            Self::Message(text) | Self::Text(text) => text,
        }
    }
}

/// Parses a line, and executes it if it is a command of the chat itself.
pub(super) async fn take<'l>(
    chat: &mut Chat<'_>,
    line: &'l str,
    output: &mut Output,
) -> TypedLine<'l> {
    let said = ChatInput::of(line);
    if matches!(said, ChatInput::Text(_)) {
        return say(chat, said, output).await;
    }
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (word, rest.trim()) {
        ("", _) => return TypedLine::Empty,
        (word, "") if is_exit(word) => return TypedLine::Exit,
        // The offline model handles `/call` itself, so that the call is stored as a turn.
        ("/call", "") => {
            output.error(&CommandError::usage("`/call` needs a tool").hint(CALL_USAGE));
            return TypedLine::Failed;
        }
        ("/call", call) if !chat.whom.is_offline() => {
            let (tool, args) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
            return TypedLine::Call(tool, args.trim());
        }
        ("/help", "") => help(chat, output).await,
        ("/new", key) => return done(conversation::start(chat, key, output).await),
        ("/session", "") => conversation::tell(chat, "current session", output),
        ("/session" | "/resume", key) if !key.is_empty() => {
            return done(conversation::switch(chat, key, output).await);
        }
        ("/resume", _) => return TypedLine::Choose,
        ("/sessions", "") => conversation::list(chat, output).await,
        ("/model", "") => model::show(chat, output).await,
        ("/model", name) => return done(model::switch(chat, name, output).await),
        ("/show", number) if !number.is_empty() => {
            return done(results::show(chat, number, output).await);
        }
        ("/save", args) if !args.is_empty() => {
            return done(results::save(chat, args, output).await);
        }
        ("/paste", "") => return done(paste::paste(chat, output).await),
        ("/tools", word) => tools(chat, word, output).await,
        ("/mcp", "" | "servers" | "list") if output.columns().is_some() => {
            return mcp_servers(chat, said, output).await;
        }
        ("/approvals", arguments) => {
            let folder = chat.working_folder();
            let defaults = AllowDefaults { agent: Some(&chat.whom.agent), folder: &folder };
            return done(approvals::in_chat(arguments, defaults, chat.surface, output).await);
        }
        _ => return say(chat, said, output).await,
    }
    TypedLine::Done
}

/// Whether a command leaves the chat.
pub(super) fn is_exit(word: &str) -> bool {
    matches!(word, "/exit" | "/quit" | "/q")
}

fn done(is_done: bool) -> TypedLine<'static> {
    if is_done { TypedLine::Done } else { TypedLine::Failed }
}

/// Prepares the conversation for a message.
async fn say<'l>(chat: &mut Chat<'_>, said: ChatInput<'l>, output: &mut Output) -> TypedLine<'l> {
    let agent = chat.whom.named_for(&chat.session);
    if let Err(error) = chat.model.apply(chat.surface, &chat.session, agent).await {
        output.error(&error.into());
        return TypedLine::Failed;
    }
    TypedLine::Say(said)
}

/// Rejects a message that is an unknown command: it must not be sent to the model.
pub(super) async fn unknown(chat: &Chat<'_>, message: &str) -> Option<CommandError> {
    let word = message.split_whitespace().next().filter(|word| is_command(word))?;
    if word == "/call" && chat.whom.is_offline() {
        return None;
    }
    // If the commands cannot be listed, the gateway decides.
    let known = of_gateway(chat).await.ok()?;
    if has_command(&known, word) {
        return None;
    }
    let theirs: Vec<String> = known.iter().map(|command| format!("/{}", command.name)).collect();
    Some(unknown_command(word, &theirs))
}

/// Whether a message is a command that the gateway knows already.
pub(super) async fn is_known(chat: &Chat<'_>, said: ChatInput<'_>) -> bool {
    let word = said.text().split_whitespace().next().unwrap_or_default();
    is_command_line(said) && of_gateway(chat).await.is_ok_and(|known| has_command(&known, word))
}

fn has_command(known: &[Command], word: &str) -> bool {
    let is_alias = |command: &Command| command.text_aliases.iter().flatten().any(|it| it == word);
    known.iter().any(|command| word.strip_prefix('/') == Some(&command.name) || is_alias(command))
}

/// Whether a message begins with a command.
pub(super) fn is_command_line(said: ChatInput<'_>) -> bool {
    let word = said.text().split_whitespace().next().unwrap_or_default();
    matches!(said, ChatInput::Message(_)) && is_command(word)
}

/// Whether a message is `/mcp …`, whose result is not Markdown.
pub(super) fn is_mcp(said: ChatInput<'_>) -> bool {
    matches!(said, ChatInput::Message(text) if text.split_whitespace().next() == Some("/mcp"))
}

/// Whether a word has the form of a command, unlike a path.
fn is_command(word: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '?' | '!');
    word.strip_prefix('/').is_some_and(|name| !name.is_empty() && name.chars().all(is_plain))
}

fn unknown_command(word: &str, theirs: &[String]) -> CommandError {
    let shown = clean_line(Untrusted::new(word), LINE_CHARS);
    if let Some((_, args, _)) = LOCAL.iter().find(|(known, _, _)| *known == word) {
        let usage = format!("{word} {args}");
        return CommandError::usage(format!("wrong arguments for `{shown}`"))
            .hint(format!("use `{}`", usage.trim_end()));
    }
    let ours = LOCAL.iter().map(|(known, _, _)| *known);
    let known: Vec<&str> = ours.chain(theirs.iter().map(String::as_str)).collect();
    let similar = match openclaw_config::nearest(word, &known) {
        Some(similar) => format!("did you mean `{similar}`?"),
        None => "type `/help` for a list;".to_owned(),
    };
    CommandError::usage(format!("unknown command `{shown}`"))
        .hint(format!("{similar} to send it to the model, type `/{shown}`"))
}

async fn of_gateway(chat: &Chat<'_>) -> Result<Vec<Command>, RequestError> {
    let params = CommandsParams {
        agent_id: Some(chat.whom.agent.clone()),
        include_args: Some(true),
        ..CommandsParams::default()
    };
    let answer = look::<rpc::CommandsList>(chat.surface, params).await?;
    Ok(answer.commands)
}

/// `/mcp`: lists the servers. Not done by the gateway, which does not know the width of the terminal.
async fn mcp_servers<'l>(
    chat: &mut Chat<'_>,
    said: ChatInput<'l>,
    output: &mut Output,
) -> TypedLine<'l> {
    // Without the command, the agent may not manage servers.
    let is_known = of_gateway(chat).await.is_ok_and(|known| has_command(&known, "/mcp"));
    let listed = talk::servers(chat.surface, Some(&chat.whom.agent)).await;
    match listed {
        Ok(statuses) if is_known && !statuses.is_empty() => {
            show_servers(&statuses, output);
            TypedLine::Done
        }
        _ => say(chat, said, output).await,
    }
}

/// `/tools`: lists the tools by server.
async fn tools(chat: &Chat<'_>, word: &str, output: &mut Output) {
    if output.columns().is_none() {
        // In a pipe, nobody would see that servers are still starting.
        servers_settled(chat.surface, Some(&chat.whom.agent), SERVERS).await;
    }
    let agent_id = Some(chat.whom.agent.clone());
    let params = CatalogParams { agent_id, include_plugins: Some(true) };
    let catalog = look::<rpc::ToolsCatalog>(chat.surface, params).await;
    let groups = match catalog {
        Ok(catalog) => catalog.groups,
        Err(error) => return output.warning(&error.to_string()),
    };
    let word = word.to_lowercase();
    let is_meant = |text: &str| text.to_lowercase().contains(&word);
    let mut count = 0;
    for group in &groups {
        let tools = group.tools.iter().filter(|it| is_meant(&it.id) || is_meant(&it.description));
        for (at, tool) in tools.enumerate() {
            if at == 0 {
                let label = clean_line(Untrusted::new(&group.label), LINE_CHARS);
                output.folded(format_args!("{FAINT}{label}{FAINT:#}"));
            }
            show(&tool.id, without_server(&tool.description), output);
            count += 1;
        }
    }
    output.line(format_args!("{FAINT}{}{FAINT:#}", plural(count, "tool")));
}

async fn help(chat: &Chat<'_>, output: &mut Output) {
    for (word, args, about) in LOCAL {
        show(&format!("{word} {args}"), about, output);
    }
    let commands = match of_gateway(chat).await {
        Ok(commands) => commands,
        Err(error) => return output.warning(&error.to_string()),
    };
    let is_known =
        |name: &str| LOCAL.iter().any(|(word, _, _)| word.strip_prefix('/') == Some(name));
    for command in commands.iter().filter(|command| !is_known(&command.name)) {
        let args = command.args.iter().flatten().map(|arg| match arg.required {
            Some(true) => arg.name.clone(),
            _ => format!("[{}]", arg.name),
        });
        let args = args.collect::<Vec<_>>().join(" ");
        show(&format!("/{} {args}", command.name), &command.description, output);
    }
    show(
        "//TEXT",
        "Send text that starts with a slash to the model; a leading space does the same",
        output,
    );
    output.folded(format_args!(
        "{FAINT}@path attaches a file. Tab completes, Ctrl-R searches the history, Alt-Enter or a trailing \\ inserts a new \
         line.{FAINT:#}"
    ));
}

fn show(usage: &str, about: &str, output: &mut Output) {
    let room = if output.columns().is_some() { LINE_CHARS } else { PIPED_CHARS };
    let about = clean_line(Untrusted::new(about), room);
    let usage = printable(usage.trim_end()).into_owned();
    let label = format!("  {STRONG}{usage:24}{STRONG:#} ");
    if usage.chars().count() <= 24 {
        return output.labelled(&label, &about);
    }
    // A long one gets its own line, so that the others stay aligned.
    output.folded(label.trim_end());
    output.labelled(&" ".repeat(27), &about);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_slash_or_a_leading_space_turns_a_command_into_text() {
        assert_eq!(ChatInput::of("/help"), ChatInput::Message("/help"));
        assert_eq!(ChatInput::of("//help me"), ChatInput::Text("/help me"));
        assert_eq!(ChatInput::of("  /help me\n"), ChatInput::Text("/help me"));
        assert_eq!(ChatInput::of(" hello"), ChatInput::Message(" hello"));
    }

    #[test]
    fn paths_are_not_commands() {
        assert!(is_command("/sesions") && is_command("/mcp__a__b") && is_command("/?"));
        assert!(!is_command("/etc/hosts") && !is_command("/") && !is_command("no"));
    }

    #[test]
    fn the_hint_for_a_mistyped_command_names_the_nearest_one() {
        let theirs = ["/mcp".to_owned()];
        let unknown = |word| match unknown_command(word, &theirs) {
            CommandError::Failed(failure) => (failure.message, failure.hint.unwrap_or_default()),
            other => panic!("{other:?}"),
        };
        let (message, hint) = unknown("/sesions");
        assert_eq!(message, "unknown command `/sesions`");
        assert_eq!(hint, "did you mean `/sessions`? to send it to the model, type `//sesions`");
        assert!(unknown("/mpc").1.starts_with("did you mean `/mcp`?"));
        assert!(unknown("/quality").1.starts_with("type `/help` for a list"));
        assert_eq!(unknown("/exit").1, "use `/exit`");
    }
}

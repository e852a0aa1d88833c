//! `openclaw approvals`, and `/approvals` in a chat: which calls run without asking the user.

use std::path::Path;

use clap::Parser as _;
use comfy_table::{Attribute, Cell};
use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::approvals::{
    AllowParams, Approval, ListParams, RevokeParams, Rule, RulesParams,
};
use openclaw_protocol::{RequestError, Surface, rpc};
use serde_json::{Map, Value, json};

use super::link::{GatewayTarget, look, with_records};
use super::talk::approve::ApprovalPrompt;
use crate::cli::{AllowArgs, ApprovalsCommand, ChatApprovals, GatewayChoice};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::Output;
use openclaw_terminal::style::{FAINT, GOOD};

/// The tool whose approvals are commands.
const EXEC: &str = "exec";
/// The maximum length of what a rule allows, and of a folder.
const WORDS_CHARS: usize = 400;

/// What an approval applies to by default.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AllowDefaults<'a> {
    /// The agent; `None` for the first.
    pub(crate) agent: Option<&'a str>,
    pub(crate) folder: &'a Path,
}

/// Runs the subcommand.
pub(crate) fn approvals(
    command: ApprovalsCommand,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let folder = edge.folder()?;
    let target = GatewayTarget::find(&GatewayChoice::default(), edge)?;
    with_records(&target, edge, output, async |link, output| {
        let defaults = AllowDefaults { agent: None, folder: &folder };
        run(command, defaults, &*link.surface, output).await?;
        Ok(Exit::Ok)
    })
}

/// Runs `/approvals` of a chat, which takes the same arguments as the command. Returns whether it
/// succeeded.
pub(crate) async fn in_chat(
    arguments: &str,
    defaults: AllowDefaults<'_>,
    surface: &dyn Surface,
    output: &mut Output,
) -> bool {
    let command = match parse(arguments) {
        Ok(command) => command,
        Err(Unparsed::Help(text)) => {
            output.line(text.trim_end());
            return true;
        }
        Err(Unparsed::Wrong(error)) => {
            output.error(&error);
            return false;
        }
    };
    let done = run(command, defaults, surface, output).await;
    done.as_ref().inspect_err(|error| output.error(error)).is_ok()
}

/// Why arguments are not a command.
#[derive(Debug)]
enum Unparsed {
    /// The help was requested.
    Help(String),
    Wrong(CommandError),
}

/// Splits the arguments as a shell does, and parses them.
fn parse(arguments: &str) -> Result<ApprovalsCommand, Unparsed> {
    let hint = "`/approvals --help` explains the arguments";
    let wrong = |words: String| Unparsed::Wrong(CommandError::usage(words).hint(hint));
    let words = shlex::split(arguments).ok_or_else(|| wrong("unclosed quotes".to_owned()))?;
    match ChatApprovals::try_parse_from(words) {
        Ok(ChatApprovals { command }) => {
            Ok(command.unwrap_or(ApprovalsCommand::List { agent: None }))
        }
        Err(error) if !error.use_stderr() => Err(Unparsed::Help(error.render().to_string())),
        Err(error) => {
            // The first paragraph: a list of missing arguments follows its first line.
            let text = error.render().to_string();
            let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim);
            let words = lines.collect::<Vec<_>>().join(" ");
            Err(wrong(words.strip_prefix("error: ").unwrap_or(&words).to_owned()))
        }
    }
}

async fn run(
    command: ApprovalsCommand,
    defaults: AllowDefaults<'_>,
    surface: &dyn Surface,
    output: &mut Output,
) -> Result<(), CommandError> {
    match command {
        ApprovalsCommand::List { agent } => {
            let rules = rules(surface, agent).await?;
            match output.json {
                true => output.value(&json!({ "rules": rules })),
                false => show(&rules, output),
            }
        }
        ApprovalsCommand::Show { id } => {
            let answer = look::<rpc::ApprovalsList>(surface, ListParams::default()).await?;
            let mut pending = answer.approvals;
            pending.retain(|it| id.as_ref().is_none_or(|id| *id == it.id));
            match output.json {
                true => output.value(&json!({ "approvals": pending })),
                false => show_pending(&pending, output),
            }
        }
        ApprovalsCommand::Revoke { ids, all } => {
            let ids = match all {
                true => rules(surface, None).await?.into_iter().map(|rule| rule.id).collect(),
                false => ids,
            };
            changed(&revoke(surface, ids).await?, "revoked", output);
        }
        ApprovalsCommand::Allow(args) => {
            let params = allow_params(args, defaults)?;
            let answer = look::<rpc::ApprovalsAllow>(surface, params).await?;
            changed(&answer.rules, "allowed", output);
        }
    }
    Ok(())
}

async fn rules(surface: &dyn Surface, agent: Option<String>) -> Result<Vec<Rule>, RequestError> {
    let params = RulesParams { agent_id: agent };
    let answer = look::<rpc::ApprovalsRules>(surface, params).await?;
    Ok(answer.rules)
}

async fn revoke(surface: &dyn Surface, ids: Vec<String>) -> Result<Vec<Rule>, RequestError> {
    let answer = look::<rpc::ApprovalsRevoke>(surface, RevokeParams { ids }).await?;
    Ok(answer.rules)
}

fn show_pending(pending: &[Approval], output: &mut Output) {
    if pending.is_empty() {
        return output.line("No calls wait for an approval.");
    }
    for approval in pending {
        let mut prompt = ApprovalPrompt::new(approval, output.width());
        prompt.show_all();
        output.line(format_args!("{FAINT}{}{FAINT:#}", line(&approval.id)));
        prompt.lines().iter().for_each(|line| output.line(line));
    }
}

fn show(rules: &[Rule], output: &mut Output) {
    if rules.is_empty() {
        return output.folded(
            "No approvals. They are added when you answer a question with \"always\", or by \
             `openclaw approvals allow` (in a chat, `/approvals allow`).",
        );
    }
    output.table(rules.iter().map(|rule| {
        vec![
            Cell::new(&rule.id).add_attribute(Attribute::Bold),
            Cell::new(line(&rule.agent_id)),
            Cell::new(line(&rule.words)),
            Cell::new(place(rule)),
        ]
    }));
}

/// Where a rule applies.
fn place(rule: &Rule) -> String {
    match (&rule.server, &rule.workspace, &rule.session_key) {
        (Some(server), ..) => format!("server {}", line(server)),
        (None, Some(folder), _) => format!("in {}", line(folder)),
        (None, None, Some(session)) => format!("session {}", line(session)),
        (None, None, None) => String::new(),
    }
}

fn changed(rules: &[Rule], verb: &str, output: &mut Output) {
    if output.json {
        return output.value(&json!({ "ok": true, "rules": rules }));
    }
    for rule in rules {
        let (id, words, place) = (&rule.id, line(&rule.words), place(rule));
        let agent = line(&rule.agent_id);
        output.folded(format_args!(
            "{GOOD}✓{GOOD:#} {verb}: {words}, {place}, agent {agent} {FAINT}({id}){FAINT:#}"
        ));
    }
    if rules.is_empty() {
        output.line("Nothing has changed.");
    }
}

fn allow_params(args: AllowArgs, defaults: AllowDefaults<'_>) -> Result<AllowParams, CommandError> {
    let AllowArgs { tool, words, agent, workspace } = args;
    let folder = match workspace {
        Some(folder) => std::path::absolute(&folder)
            .context(format!("cannot find the folder {}", folder.display()))?,
        None => defaults.folder.to_owned(),
    };
    let mut params = AllowParams {
        agent_id: agent.or_else(|| defaults.agent.map(ToOwned::to_owned)),
        tool,
        command: None,
        arguments: Map::new(),
        workspace: folder.into_os_string().into_string().ok(),
    };
    if params.tool == EXEC {
        params.command = Some(match words.as_slice() {
            // It may be a whole command.
            [command] => command.clone(),
            // Each is one argument, also with characters that a shell would interpret.
            several => shlex::try_join(several.iter().map(String::as_str))
                .map_err(|error| CommandError::usage(format!("invalid command: {error}")))?,
        });
        return Ok(params);
    }
    for word in &words {
        let Some((name, value)) = word.split_once('=') else {
            return Err(CommandError::usage(format!("`{word}` is not NAME=VALUE"))
                .hint("only `exec` takes commands"));
        };
        // As in `mcp call`: JSON if it is a number or a boolean, otherwise text.
        let plain =
            serde_json::from_str(value).ok().filter(|it: &Value| it.is_number() || it.is_boolean());
        let value = plain.unwrap_or_else(|| Value::String(value.to_owned()));
        params.arguments.insert(name.to_owned(), value);
    }
    Ok(params)
}

fn line(text: &str) -> String {
    clean_line(Untrusted::new(text), WORDS_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_takes_the_arguments_of_the_command() {
        assert!(matches!(parse(""), Ok(ApprovalsCommand::List { agent: None })));
        assert!(matches!(parse("list --agent a"), Ok(ApprovalsCommand::List { agent: Some(_) })));
        let Ok(ApprovalsCommand::Revoke { ids, all: false }) = parse("revoke 3f2a 4b") else {
            panic!("not revoked");
        };
        assert_eq!(ids, ["3f2a", "4b"]);
        let Ok(ApprovalsCommand::Allow(args)) = parse("allow exec -- cargo test 'a b'") else {
            panic!("not allowed");
        };
        assert_eq!((args.tool.as_str(), args.words), ("exec", words(&["cargo", "test", "a b"])));
        assert!(
            matches!(parse("allow --help"), Err(Unparsed::Help(text)) if text.contains("exec"))
        );
        let Err(Unparsed::Wrong(error)) = parse("allow") else { panic!("it needs a tool") };
        assert!(error.to_string().contains("not provided: <TOOL>"), "{error}");
        for wrong in ["revoke", "allow", "perhaps", "allow exec 'a"] {
            assert!(matches!(parse(wrong), Err(Unparsed::Wrong(_))), "{wrong}");
        }
    }

    #[test]
    fn several_words_are_one_program_with_its_arguments() {
        let command = |arguments: &str| {
            let Ok(ApprovalsCommand::Allow(args)) = parse(arguments) else { panic!("{arguments}") };
            let defaults = AllowDefaults { agent: None, folder: Path::new("/w") };
            allow_params(args, defaults).ok().and_then(|params| params.command)
        };
        let expected = [
            ("allow exec -- ls -l", "ls -l"),
            ("allow exec -- git commit -m 'a;b' 'c d'", "git commit -m 'a;b' 'c d'"),
            ("allow exec 'make && make test'", "make && make test"),
        ];
        for (arguments, expected) in expected {
            assert_eq!(command(arguments).as_deref(), Some(expected));
        }
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

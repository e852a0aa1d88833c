//! `openclaw approvals`, and `/approvals` in a chat: which calls run without asking.

use std::path::Path;

use comfy_table::{Attribute, Cell};
use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::approvals::{
    AllowParams, ChangedRulesResult, RevokeParams, Rule, RulesParams, RulesResult,
};
use openclaw_protocol::{RequestError, Surface, rpc};
use serde_json::{Map, Value, json};

use super::link::{Target, look, with_records};
use crate::cli::{AllowArgs, ApprovalsCommand, GatewayChoice};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::{FAINT, GOOD, Output};

/// The tool whose approvals are command prefixes.
const EXEC: &str = "exec";
/// The maximum length of what a rule allows, and of a folder.
const WORDS_CHARS: usize = 400;

/// Runs the subcommand.
pub(crate) fn approvals(
    command: &ApprovalsCommand,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let target = Target::find(&GatewayChoice::default(), flag, edge)?;
    with_records(&target, flag, edge, output, async |link, output| {
        let surface = &*link.surface;
        match command {
            ApprovalsCommand::List { agent } => {
                let rules = rules(surface, agent.clone()).await?;
                match output.json {
                    true => output.value(&json!({ "rules": rules })),
                    false => show(&rules, output),
                }
            }
            ApprovalsCommand::Revoke { ids, all } => {
                let ids = match all {
                    true => rules(surface, None).await?.into_iter().map(|rule| rule.id).collect(),
                    false => ids.clone(),
                };
                changed(&revoke(surface, ids).await?, "revoked", output);
            }
            ApprovalsCommand::Allow(args) => {
                let params = allow_params(args, edge)?;
                let answer: ChangedRulesResult =
                    look::<rpc::ApprovalsAllow>(surface, params).await?;
                changed(&answer.rules, "allowed", output);
            }
        }
        Ok(Exit::Ok)
    })
}

/// Runs `/approvals` of a chat with its arguments.
pub(crate) async fn in_chat(surface: &dyn Surface, arguments: &str, output: &mut Output) {
    let mut words = arguments.split_whitespace();
    let done = match words.next() {
        None | Some("list") => rules(surface, None).await.map(|rules| show(&rules, output)),
        Some("revoke") => {
            let ids: Vec<String> = words.map(ToOwned::to_owned).collect();
            if ids.is_empty() {
                return output.line("Use `/approvals revoke ID`; `/approvals` lists the ids.");
            }
            let revoked = revoke(surface, ids).await;
            revoked.map(|rules| changed(&rules, "revoked", output))
        }
        Some(_) => {
            return output.folded(
                "Use `/approvals` or `/approvals revoke ID`; `openclaw approvals allow` in a shell \
                 adds approvals.",
            );
        }
    };
    if let Err(error) = done {
        output.warning(&error.to_string());
    }
}

async fn rules(surface: &dyn Surface, agent: Option<String>) -> Result<Vec<Rule>, RequestError> {
    let params = RulesParams { agent_id: agent };
    let answer: RulesResult = look::<rpc::ApprovalsRules>(surface, params).await?;
    Ok(answer.rules)
}

async fn revoke(surface: &dyn Surface, ids: Vec<String>) -> Result<Vec<Rule>, RequestError> {
    let answer: ChangedRulesResult =
        look::<rpc::ApprovalsRevoke>(surface, RevokeParams { ids }).await?;
    Ok(answer.rules)
}

fn show(rules: &[Rule], output: &mut Output) {
    if rules.is_empty() {
        return output.folded(
            "No approvals. They are added when you answer a question with \"always\", or by \
             `openclaw approvals allow`.",
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
            "{GOOD}✓{GOOD:#} {verb}: {words}, {place} for agent {agent} {FAINT}({id}){FAINT:#}"
        ));
    }
    if rules.is_empty() {
        output.line("Nothing has changed.");
    }
}

fn allow_params(args: &AllowArgs, edge: &Edge) -> Result<AllowParams, CommandError> {
    let AllowArgs { tool, words, agent, workspace } = args;
    let mut params = AllowParams {
        agent_id: agent.clone(),
        tool: tool.clone(),
        command: None,
        arguments: Map::new(),
        workspace: None,
    };
    let folder = workspace.clone().unwrap_or_else(|| edge.folder());
    params.workspace = folder.to_str().map(|folder| edge.absolute(folder));
    if tool == EXEC {
        params.command = Some(words.join(" "));
        return Ok(params);
    }
    for word in words {
        let Some((name, value)) = word.split_once('=') else {
            return Err(CommandError::usage(format!("`{word}` is not NAME=VALUE"))
                .hint("only `exec` takes the first words of commands"));
        };
        // As in `mcp call`: JSON if it is a number or a truth value, otherwise text.
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

//! The one tool through which an agent sees the resources of its servers (B14): without an address it
//! lists them, with one it reads.

use std::sync::Arc;

use openclaw_content::{Source, Text, Untrusted, clean_line, label};
use openclaw_tools::{
    Content, Decision, Details, Effect, Failure, ToolName, ToolOutcome, ToolSpec,
};
use serde::Deserialize;
use serde_json::json;

use crate::agent::AgentTools;
use crate::bridge::Call;
use crate::library::Of;

/// Its name. No tool of a server is called so: their names hold the server's.
pub const NAME: &str = "mcp_resources";

/// More are not listed at once.
const MAX_LISTED: usize = 200;
/// A longer line is not listed.
const MAX_LINE: usize = 500;
/// How much of a description is listed.
const MAX_DESCRIPTION: usize = 120;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    server: Option<String>,
    #[serde(default)]
    uri: Option<String>,
}

impl AgentTools {
    /// What an agent is told about the tool; none if no server has resources.
    pub fn resource_tool(&self) -> Option<ToolSpec> {
        let has_some = |server: &Arc<crate::server::Server>| {
            let inventory = server.shelf().inventory();
            !inventory.resources.is_empty() || !inventory.templates.is_empty()
        };
        let name = ToolName::new(NAME).ok()?;
        let is_allowed = self.policy().decide(&name) == Decision::Allowed;
        if !is_allowed || !self.servers().iter().any(has_some) {
            return None;
        }
        Some(ToolSpec {
            name,
            label: "MCP resources".to_owned(),
            description:
                "Lists the resources of MCP servers, or reads one: give `server` and `uri` as \
                          they are listed."
                    .to_owned(),
            input_schema: ToolSpec::schema(json!({
                "type": "object",
                "properties": {
                    "server": { "type": "string", "description": "The server's name" },
                    "uri": { "type": "string", "description": "The address of the resource to read" },
                },
                "additionalProperties": false,
            })),
            effect: Effect::ReadOnly,
        })
    }

    /// Carries out a call of the tool.
    pub(crate) async fn use_resources(&self, call: Call<'_>) -> ToolOutcome {
        let fail = |kind: Failure, words: &str| {
            let mut outcome = ToolOutcome::failure(words);
            outcome.details.failure = Some(kind);
            outcome
        };
        let wrong = |words: &str| fail(Failure::InvalidArguments, words);
        let decision = ToolName::new(NAME).map(|name| self.policy().decide(&name));
        if decision != Ok(Decision::Allowed) {
            return fail(Failure::Denied, "This call is not allowed: the configuration says so.");
        }
        match serde_json::from_str(call.arguments.get()) {
            Ok(Arguments { server: Some(server), uri: Some(uri) }) => {
                self.read(&server, &uri, call.who).await
            }
            Ok(Arguments { server: None, uri: Some(_) }) => wrong("`uri` needs `server`, too."),
            Ok(Arguments { server, uri: None }) => self.list_resources(server.as_deref()),
            Err(_) => wrong("The arguments are `server` and `uri`, both texts."),
        }
    }

    fn list_resources(&self, server: Option<&str>) -> ToolOutcome {
        let wanted = |of: &str| server.is_none_or(|server| server == of);
        let line = |server: &str, address: &str, name: &str, about: Option<&str>| {
            let clean = |text: &str| clean_line(Untrusted::new(text), MAX_DESCRIPTION);
            let about = about.map(|about| format!(": {}", clean(about))).unwrap_or_default();
            format!("{server}  {address}  {}{about}", clean(name))
        };
        let resources = self.resources();
        let templates = self.templates();
        let listed =
            resources.iter().filter(|of| wanted(&of.server)).map(|Of { server, entry }| {
                line(server, &entry.uri, &entry.name, entry.description.as_deref())
            });
        let families = templates.iter().filter(|of| wanted(&of.server));
        let families = families.map(|Of { server, entry }| {
            line(server, &entry.uri_template, &entry.name, entry.description.as_deref())
        });
        // What is too long to be listed is too long to be asked for.
        let fits = |line: &String| line.chars().count() <= MAX_LINE;
        let all: Vec<String> = listed.chain(families).filter(fits).collect();
        if all.is_empty() {
            return ours("There are no resources.");
        }
        let shown = all[..all.len().min(MAX_LISTED)].join("\n");
        let Ok((text, findings)) = label(Untrusted::new(shown), Source::other("MCP resources"))
        else {
            return ToolOutcome::failure("The list cannot be shown: there are no random numbers.");
        };
        let details =
            Details { untrusted: true, source: Some("mcp_server"), findings, ..Details::default() };
        let mut content = vec![Content::Text(text)];
        if all.len() > MAX_LISTED {
            let rest = all.len() - MAX_LISTED;
            let words = format!("{rest} more are not listed; ask for one `server`.");
            content.push(Content::Text(Text::ours(words)));
        }
        ToolOutcome { content, is_error: false, details }
    }
}

fn ours(words: &str) -> ToolOutcome {
    let content = vec![Content::Text(Text::ours(words))];
    ToolOutcome { content, is_error: false, details: Details::default() }
}

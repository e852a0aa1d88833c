//! The tool that gives an agent access to the resources and skills of its servers (B14): without a
//! URI it lists them, with one it reads.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use openclaw_content::{Source, Text, Untrusted, clean_line, label};
use openclaw_tools::schema::LazyValidator;
use openclaw_tools::{
    ApprovalRule, Arguments as CallArguments, AuditName, Content, Decision, Executed,
    OutcomeDetails, Policy, Tool, ToolCall, ToolEffect, ToolFailure, ToolName, ToolOutcome,
    ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::library::{self, ServerEntry};
use crate::catalogue::SOURCE;
use crate::catalogue::member::FleetMember;
use crate::catalogue::naming::RESOURCE_TOOL;
use crate::services::CallServices;
use openclaw_mcp_client::listing::ListedResource;

/// The maximum number of listed resources.
const MAX_LISTED: usize = 200;
/// Longer lines are not listed.
const MAX_LINE: usize = 500;
/// The maximum length of a name or description in the list.
const MAX_DESCRIPTION: usize = 120;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    server: Option<String>,
    #[serde(default)]
    uri: Option<String>,
}

/// The tool, for one agent.
#[derive(Debug)]
pub struct ResourceTool {
    spec: ToolSpec,
    decision: Decision,
    validator: LazyValidator,
    members: Vec<Arc<FleetMember>>,
    services: Arc<CallServices>,
}

impl ResourceTool {
    /// Creates the tool of an agent with these servers; `None` if none of them has resources.
    pub(crate) fn new(
        members: &[Arc<FleetMember>],
        policy: &Policy,
        services: &Arc<CallServices>,
    ) -> Option<Self> {
        let has_some = |member: &Arc<FleetMember>| {
            let inventory = member.server.cache().inventory();
            !inventory.resources.is_empty()
                || !inventory.templates.is_empty()
                || !inventory.skills.is_empty()
        };
        let name = ToolName::new(RESOURCE_TOOL).ok()?;
        let decision = policy.decide(&name);
        if !members.iter().any(has_some) {
            return None;
        }
        let spec = ToolSpec {
            name,
            label: "MCP resources".to_owned(),
            description:
                "Lists the resources and skills of MCP servers, or reads one: give `server` and \
                 `uri` as they are listed."
                    .to_owned(),
            input_schema: ToolSpec::schema(json!({
                "type": "object",
                "properties": {
                    "server": { "type": "string", "description": "The server's name" },
                    "uri": { "type": "string", "description": "The URI of the resource to read" },
                },
                "additionalProperties": false,
            })),
            effect: ToolEffect::ReadOnly,
        };
        Some(Self {
            decision,
            validator: LazyValidator::new(Arc::clone(&spec.input_schema)),
            spec,
            members: members.to_vec(),
            services: Arc::clone(services),
        })
    }
}

impl Tool for ResourceTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn origin(&self) -> AuditName<'_> {
        AuditName { name: RESOURCE_TOOL, source: SOURCE, ..AuditName::default() }
    }

    fn decision(&self) -> &Decision {
        &self.decision
    }

    fn decision_on(&self, arguments: &CallArguments<'_>) -> Decision {
        match self.meant(arguments) {
            Some((member, uri)) => member.decide_resource(&uri),
            None => Decision::Allowed,
        }
    }

    /// Listing is free; reading follows the rule of the server.
    fn rule(&self, arguments: &CallArguments<'_>) -> ApprovalRule {
        match self.meant(arguments) {
            Some((member, uri)) => member.resource_rule(&uri),
            None => ApprovalRule::Never,
        }
    }

    fn validator(&self) -> &LazyValidator {
        &self.validator
    }

    fn execute<'a>(&'a self, call: ToolCall<'a>) -> BoxFuture<'a, Executed> {
        Box::pin(async move { Executed::Done(self.carry_out(call).await) })
    }
}

impl ResourceTool {
    fn member(&self, server: &str) -> Option<&Arc<FleetMember>> {
        self.members.iter().find(|it| it.server.name().as_str() == server)
    }

    /// The resource to read, with its server, if the arguments name one.
    fn meant(&self, arguments: &CallArguments<'_>) -> Option<(&Arc<FleetMember>, String)> {
        let arguments: Arguments =
            serde_json::from_value(Value::Object(arguments.members())).ok()?;
        Some((self.member(&arguments.server?)?, arguments.uri?))
    }

    async fn carry_out(&self, call: ToolCall<'_>) -> ToolOutcome {
        let wrong = |words: &str| fail(ToolFailure::InvalidArguments, words);
        let arguments = serde_json::from_value(Value::Object(call.arguments.members()));
        match arguments {
            Ok(Arguments { server: Some(server), uri: Some(uri) }) => match self.member(&server) {
                Some(member) => library::read(member, &self.services, &uri, call).await,
                None => fail(ToolFailure::Unavailable, "No such MCP server, or it is not running."),
            },
            Ok(Arguments { server: None, uri: Some(_) }) => wrong("`uri` requires `server`."),
            Ok(Arguments { server: Some(server), uri: None }) if self.member(&server).is_none() => {
                fail(ToolFailure::Unavailable, "No such MCP server, or it is not running.")
            }
            Ok(Arguments { server, uri: None }) => self.list_resources(server.as_deref()),
            Err(_) => wrong("Expected arguments: `server` and `uri`, both strings."),
        }
    }

    fn list_resources(&self, server: Option<&str>) -> ToolOutcome {
        let line = |server: &str, address: &str, name: &str, about: Option<&str>| {
            let clean = |text: &str| clean_line(Untrusted::new(text), MAX_DESCRIPTION);
            let about = about.map(|about| format!(": {}", clean(about))).unwrap_or_default();
            format!("{server}  {address}  {}{about}", clean(name))
        };
        let skills = library::entries(&self.members, |it| it.skills.clone());
        let resources = library::entries(&self.members, |it| it.resources.clone());
        let templates = library::entries(&self.members, |it| it.templates.clone());
        // Their files may be among the resources, too.
        let files: HashSet<(&str, &str)> = skills
            .iter()
            .flat_map(|of| of.entry.files().map(|uri| (of.server.as_str(), uri)))
            .collect();
        let is_skill = |of: &&ServerEntry<ListedResource>| {
            files.contains(&(of.server.as_str(), of.entry.uri.as_str()))
        };
        let skills = skills.iter().map(|ServerEntry { server, entry }| {
            let name = format!("skill {}", entry.name());
            (server, &entry.uri, name, Some(entry.description()))
        });
        let resources = resources.iter().filter(|of| !is_skill(of));
        let resources = resources.map(|ServerEntry { server, entry }| {
            (server, &entry.uri, entry.name.clone(), entry.description.as_deref())
        });
        let templates = templates.iter().map(|ServerEntry { server, entry }| {
            (server, &entry.uri_template, entry.name.clone(), entry.description.as_deref())
        });
        let is_shown = |of: &str, uri: &str| {
            let is_wanted = server.is_none_or(|server| server == of);
            let member = self.member(of).filter(|_| is_wanted);
            member.is_some_and(|it| it.decide_resource(uri) == Decision::Allowed)
        };
        // An entry that is too long to be listed is too long to be requested.
        let fits = |line: &String| line.chars().count() <= MAX_LINE;
        let all = skills.chain(resources).chain(templates);
        let all = all.filter(|(server, uri, ..)| is_shown(server, uri));
        let lines = all.map(|(server, uri, name, about)| line(server, uri, &name, about));
        let all: Vec<String> = lines.filter(fits).collect();
        if all.is_empty() {
            return ours("No resources.");
        }
        let shown = all[..all.len().min(MAX_LISTED)].join("\n");
        let Ok((text, findings)) = label(Untrusted::new(shown), Source::other("MCP resources"))
        else {
            return ToolOutcome::failure(
                "The list cannot be shown: no random numbers are available.",
            );
        };
        let details = OutcomeDetails {
            untrusted: true,
            source: Some("mcp_server"),
            findings,
            ..OutcomeDetails::default()
        };
        let mut content = vec![Content::Text(text)];
        if all.len() > MAX_LISTED {
            let rest = all.len() - MAX_LISTED;
            let words = match server {
                None => format!("{rest} more are not listed; pass `server` to list one server."),
                Some(_) => format!("{rest} more are not listed."),
            };
            content.push(Content::Text(Text::ours(words)));
        }
        ToolOutcome { content, is_error: false, details: Box::new(details) }
    }
}

fn fail(kind: ToolFailure, words: &str) -> ToolOutcome {
    let mut outcome = ToolOutcome::failure(words);
    outcome.details.failure = Some(kind);
    outcome
}

fn ours(words: &str) -> ToolOutcome {
    let content = vec![Content::Text(Text::ours(words))];
    ToolOutcome { content, is_error: false, details: Box::default() }
}

//! The resources, prompts and skills of an agent's servers (B14, B15), and completion (T13).

use std::collections::BTreeMap;
use std::sync::Arc;

use openclaw_mcp_client::connection::ServerIntroduction;
use openclaw_mcp_client::listing::{
    ListedPrompt, ListedResource, ListedSkill, ListedTemplate, app,
};
use openclaw_tools::{Call, CallContext, Decision, Relay, Tool as _, ToolOutcome};
use serde_json::value::to_raw_value;

use crate::call::completion::{self, CompletionError, CompletionOf, Completions};
use crate::call::library::{LibraryCall, PromptCommand, ServerEntry, entries};
use crate::catalogue::CatalogueTool;
use crate::catalogue::member::FleetMember;
use crate::catalogue::naming::{RawTool, names};
use crate::fleet::agent::AgentTools;

/// The template for the command names of prompts.
pub(crate) const COMMANDS: &str = "mcp__{server}__{tool}";

impl AgentTools {
    /// Returns the resources of all servers.
    pub fn resources(&self) -> Vec<ServerEntry<ListedResource>> {
        entries(self.members(), |inventory| inventory.resources.clone())
    }

    /// Returns the resource templates of all servers.
    pub fn templates(&self) -> Vec<ServerEntry<ListedTemplate>> {
        entries(self.members(), |inventory| inventory.templates.clone())
    }

    /// Returns the skills of all servers. Their files are read like resources, and verified.
    pub fn skills(&self) -> Vec<ServerEntry<Arc<ListedSkill>>> {
        entries(self.members(), |inventory| inventory.skills.clone())
    }

    /// Like [`skills`](Self::skills), without those that the agent may not read.
    pub fn readable_skills(&self) -> Vec<ServerEntry<Arc<ListedSkill>>> {
        let Some(tool) = self.resource_tool() else { return Vec::new() };
        let is_allowed = |of: &ServerEntry<Arc<ListedSkill>>| {
            let member = self.member(&of.server);
            member.is_some_and(|member| member.decide_resource(&of.entry.uri) == Decision::Allowed)
        };
        match tool.decision() {
            Decision::Allowed => self.skills().into_iter().filter(is_allowed).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns what the servers tell their clients, as far as it is known.
    pub fn introductions(&self) -> Vec<ServerEntry<ServerIntroduction>> {
        entries(self.members(), |inventory| vec![inventory.introduction.clone()])
    }

    /// Returns whether a page of an MCP App may be read: like the tools that name it, of which one must
    /// be usable. `None` if no tool names it.
    fn decide_page(&self, server: &str, uri: &str) -> Option<Decision> {
        let decide = |tool: &Arc<CatalogueTool>| match &tool.decision {
            Decision::Allowed if tool.flaw().is_some() || tool.is_changed() => {
                Decision::Denied { by: format!("the state of the tool {}", tool.spec.name) }
            }
            Decision::Allowed => {
                let names = [tool.spec.name.as_str(), &tool.listed.name];
                tool.member.policy.decide_any(&names, &[uri])
            }
            denied @ Decision::Denied { .. } => denied.clone(),
        };
        let catalogue = self.catalogue();
        let naming = catalogue.all().iter().filter(|tool| {
            tool.server().name().as_str() == server && tool.app.page.as_deref() == Some(uri)
        });
        let all: Vec<Decision> = naming.map(decide).collect();
        let allowed = all.iter().find(|decision| **decision == Decision::Allowed);
        allowed.or_else(|| all.first()).cloned()
    }

    /// Returns the prompts of all servers as slash commands.
    pub fn prompts(&self) -> Vec<PromptCommand> {
        let prompts = entries(self.members(), |inventory| inventory.prompts.clone());
        let raw = prompts.iter().map(|of| raw_prompt(of)).collect::<Vec<_>>();
        let names = names(COMMANDS, raw, &self.names().commands);
        let commands = prompts.iter().filter_map(|of| {
            let command = names.get(&raw_prompt(of))?.name.clone();
            Some(PromptCommand { command, prompt: of.clone() })
        });
        commands.collect()
    }

    /// Creates a request for a resource of a server, to be run by the pipeline.
    pub fn reading(&self, server: &str, uri: &str) -> LibraryCall {
        let page = if app::is_page(&uri) { self.decide_page(server, uri) } else { None };
        LibraryCall::resource(self.named(server), uri, page, &self.services)
    }

    /// Creates a request for a prompt of a server. The arguments are those of the call.
    pub fn prompting(&self, server: &str, prompt: &str) -> LibraryCall {
        LibraryCall::prompt(self.named(server), prompt, &self.services)
    }

    /// Reads a resource through the pipeline.
    pub async fn read(&self, server: &str, uri: &str, context: &CallContext<'_>) -> ToolOutcome {
        let request = self.reading(server, uri).relayed(context.options.relay.is_some());
        let given = to_raw_value(&BTreeMap::from([("uri", uri)])).unwrap_or_default();
        let call = Call::new(request.method(), &*given);
        self.pipeline().call(&request, call, &self.context(context)).await
    }

    /// Gets a prompt with its arguments filled in, through the pipeline.
    pub async fn prompt(
        &self,
        server: &str,
        prompt: &str,
        arguments: &BTreeMap<String, String>,
        context: &CallContext<'_>,
    ) -> ToolOutcome {
        let request = self.prompting(server, prompt);
        let given = to_raw_value(arguments).unwrap_or_default();
        let call = Call::new(request.method(), &*given);
        self.pipeline().call(&request, call, &self.context(context)).await
    }

    /// Completes an argument of a prompt or resource template: its name, and what was typed of its
    /// value. `given` are the values of other arguments; `relay` is set for the client of another
    /// program.
    ///
    /// # Errors
    /// If the server is not available, does not complete arguments, or rejects the request. The
    /// message is one line; it may quote the server.
    pub async fn complete(
        &self,
        server: &str,
        of: CompletionOf<'_>,
        argument: (&str, &str),
        given: &BTreeMap<String, String>,
        relay: Option<Relay<'_>>,
    ) -> Result<Completions, CompletionError> {
        let unknown = || {
            let words = "no such MCP server, or it is not running".to_owned();
            CompletionError::Unavailable(words)
        };
        let member = self.member(server).ok_or_else(unknown)?;
        completion::complete(member, of, argument, given, relay).await
    }

    /// Returns the server with this name, or the name of an unknown one.
    fn named(&self, server: &str) -> Result<Arc<FleetMember>, String> {
        self.member(server).map(Arc::clone).ok_or_else(|| server.to_owned())
    }
}

fn raw_prompt(of: &ServerEntry<ListedPrompt>) -> RawTool<'_> {
    RawTool { server: &of.server, prefix: &of.server, tool: &of.entry.name }
}

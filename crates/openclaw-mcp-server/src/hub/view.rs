//! What a client sees: tools, resources and prompts of the servers that are offered to it, by the
//! names that it knows.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::call::library::ServerEntry;
use openclaw_mcp::call::permission::fits;
use openclaw_mcp::connection::ServerIntroduction;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::fleet::catalogue::{Catalogue, CatalogueTool};
use openclaw_mcp::inventory::listing::{
    ListedPrompt, ListedResource, ListedSkill, ListedTemplate, app,
};
use openclaw_tools::Tool as _;
use openclaw_tools::search::seen_by_model;
use serde_json::{Map, Value, json};

use super::options::HubClientOptions;
use super::shape::shape;

/// The members of a tool's annotations that are not text.
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/// The scheme of skills.
const SKILL: &str = "skill://";
/// Maximum length of a title, in characters.
const MAX_TITLE: usize = 600;

/// The tools, resources and prompts of a client at one point in time.
#[derive(Debug)]
pub(super) struct HubView {
    agent: Arc<AgentTools>,
    catalogue: Arc<Catalogue>,
    /// By the name that the client knows.
    tools: HashMap<String, Arc<CatalogueTool>>,
    /// Sorted by name.
    names: Vec<String>,
    servers: BTreeSet<String>,
    is_prefixed: bool,
    wraps: bool,
}

/// A prompt, by the name that the client knows.
#[derive(Debug, Clone)]
pub(super) struct NamedPrompt {
    pub(super) name: String,
    pub(super) server: String,
    pub(super) entry: ListedPrompt,
}

impl HubView {
    pub(super) fn of(agent: Arc<AgentTools>, options: &HubClientOptions) -> Self {
        let catalogue = agent.catalogue();
        let running = agent.servers().iter().map(|server| server.name().to_string());
        let is_offered = |name: &String| {
            options.servers.is_empty() || options.servers.iter().any(|it| it == name)
        };
        let servers: BTreeSet<String> = running.filter(is_offered).collect();
        let is_prefixed = options.prefix && servers.len() != 1;
        let offered: Vec<&Arc<CatalogueTool>> = catalogue
            .allowed()
            .filter(|tool| servers.contains(tool.server().name().as_str()))
            .collect();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for tool in &offered {
            *counts.entry(&tool.listed().name).or_default() += 1;
        }
        let named = offered.iter().map(|tool| {
            let own = tool.listed().name.as_str();
            let is_own = !is_prefixed && counts.get(own) == Some(&1);
            let name = if is_own { own } else { tool.spec.name.as_str() };
            (name.to_owned(), Arc::clone(tool))
        });
        let tools: HashMap<String, Arc<CatalogueTool>> = named.collect();
        let mut names: Vec<String> = tools.keys().cloned().collect();
        names.sort();
        let wraps = options.wrap;
        Self { catalogue: Arc::clone(&catalogue), agent, tools, names, servers, is_prefixed, wraps }
    }

    /// Whether it is up to date.
    pub(super) fn is_current(&self, agent: &Arc<AgentTools>) -> bool {
        Arc::ptr_eq(&self.agent, agent) && agent.is_current(&self.catalogue)
    }

    /// The agent whose servers these are.
    pub(super) fn agent(&self) -> &Arc<AgentTools> {
        &self.agent
    }

    /// Returns the tool with this name.
    pub(super) fn tool(&self, name: &str) -> Option<&Arc<CatalogueTool>> {
        self.tools.get(name)
    }

    /// Returns the tool with this name, for a client that shows pages or does not: only pages call some
    /// tools.
    pub(super) fn tool_for(&self, name: &str, shows_pages: bool) -> Option<&Arc<CatalogueTool>> {
        self.tool(name).filter(|tool| shows_pages || tool.app.is_for_model)
    }

    /// The tools for such a client, with their names, sorted.
    pub(super) fn tools_for(
        &self,
        shows_pages: bool,
    ) -> impl Iterator<Item = (&str, &Arc<CatalogueTool>)> {
        self.tools().filter(move |(_, tool)| shows_pages || tool.app.is_for_model)
    }

    /// The tools with their names, sorted.
    pub(super) fn tools(&self) -> impl Iterator<Item = (&str, &Arc<CatalogueTool>)> {
        self.names.iter().filter_map(|name| Some((name.as_str(), self.tools.get(name)?)))
    }

    /// The entry of a tool in `tools/list`.
    pub(super) fn entry(&self, name: &str, tool: &CatalogueTool) -> Value {
        let listed = tool.listed();
        if self.wraps || tool.is_withheld() {
            return self.plain_entry(name, tool);
        }
        let mut entry = serde_json::to_value(listed).unwrap_or_default();
        entry["name"] = json!(name);
        self.listed(entry)
    }

    /// An entry with the description that a model sees. Of a tool that has changed, the server's words
    /// are left out altogether.
    fn plain_entry(&self, name: &str, tool: &CatalogueTool) -> Value {
        let (description, schema) = seen_by_model(tool);
        let annotations = tool.listed().other.get("annotations");
        let annotations =
            annotations.and_then(|it| serde_json::from_str::<Map<_, _>>(it.get()).ok());
        let hints: Map<String, Value> = annotations
            .into_iter()
            .flatten()
            .filter(|(name, hint)| HINTS.contains(&name.as_str()) && hint.is_boolean())
            .collect();
        let mut entry = json!({ "name": name, "description": description, "inputSchema": *schema });
        if !hints.is_empty() {
            entry["annotations"] = Value::Object(hints);
        }
        if tool.is_withheld() {
            return entry;
        }
        let listed = tool.listed();
        if let Some(title) = &listed.title {
            entry["title"] = json!(clean_line(Untrusted::new(title), MAX_TITLE));
        }
        for name in ["icons", "_meta"] {
            let member = listed.other.get(name);
            if let Some(member) = member.and_then(|it| serde_json::from_str(it.get()).ok()) {
                entry[name] = member;
            }
        }
        self.listed(entry)
    }

    /// Returns an entry of a list as the client sees it.
    pub(super) fn listed(&self, mut entry: Value) -> Value {
        if let Value::Object(members) = &mut entry {
            shape(members);
        }
        entry
    }

    fn is_offered<T>(&self, of: &ServerEntry<T>) -> bool {
        self.servers.contains(&of.server)
    }

    /// The resources, with their servers.
    pub(super) fn resources(&self) -> Vec<ServerEntry<ListedResource>> {
        let mut all = self.agent.resources();
        all.retain(|of| self.is_offered(of));
        all
    }

    /// The resource templates, with their servers.
    pub(super) fn templates(&self) -> Vec<ServerEntry<ListedTemplate>> {
        let mut all = self.agent.templates();
        all.retain(|of| self.is_offered(of));
        all
    }

    /// The skills that may be read, with their servers.
    pub(super) fn skills(&self) -> Vec<ServerEntry<Arc<ListedSkill>>> {
        let mut all = self.agent.readable_skills();
        all.retain(|of| self.is_offered(of));
        all
    }

    /// What the servers tell their clients, as far as it is known.
    pub(super) fn introductions(&self) -> Vec<ServerEntry<ServerIntroduction>> {
        let mut all = self.agent.introductions();
        all.retain(|of| self.is_offered(of));
        all
    }

    /// Returns the servers that have a page of an MCP App or a file of a skill at this address. They need
    /// not list it as a resource.
    pub(super) fn servers_of_part(&self, uri: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        // By scheme: otherwise, a skill could claim the addresses of another server's resources.
        if uri.starts_with(SKILL) {
            let skills = self.skills().into_iter().filter(|of| of.entry.contains(uri));
            found.extend(skills.map(|of| of.server));
        } else if app::is_page(&uri) {
            let tools = self.tools.values().filter(|tool| tool.app.page.as_deref() == Some(uri));
            found.extend(tools.map(|tool| tool.server().name().to_string()));
            let listed = self.resources().into_iter().filter(|of| of.entry.uri == uri);
            found.extend(listed.map(|of| of.server));
        }
        found
    }

    /// The prompts.
    pub(super) fn prompts(&self) -> Vec<NamedPrompt> {
        let mut all = self.agent.prompts();
        all.retain(|of| self.is_offered(&of.prompt));
        let count = |name: &str| all.iter().filter(|it| it.prompt.entry.name == name).count();
        let named = all.iter().map(|of| {
            let own = &of.prompt.entry.name;
            let is_own = !self.is_prefixed && count(own) == 1;
            let name = if is_own { own.clone() } else { of.command.to_string() };
            NamedPrompt { name, server: of.prompt.server.clone(), entry: of.prompt.entry.clone() }
        });
        named.collect()
    }

    /// Returns the prompt with this name.
    pub(super) fn prompt(&self, name: &str) -> Option<NamedPrompt> {
        self.prompts().into_iter().find(|prompt| prompt.name == name)
    }

    /// Returns the server of a resource: the one that lists it, or else the one with the template
    /// that fits it. With a single server, that one.
    pub(super) fn server_of(&self, uri: &str) -> Option<String> {
        if let Some(listed) = self.resources().into_iter().find(|of| of.entry.uri == uri) {
            return Some(listed.server);
        }
        let templates = self.templates();
        let fitting = templates.iter().filter(|of| fits(&of.entry.uri_template, uri));
        // The longest one is the most specific.
        let best = fitting.max_by_key(|of| of.entry.uri_template.len()).map(|of| of.server.clone());
        let only = || self.servers.first().filter(|_| self.servers.len() == 1).cloned();
        best.or_else(only)
    }

    /// Returns the server of a resource template.
    pub(super) fn server_of_template(&self, template: &str) -> Option<String> {
        let of = self.templates().into_iter().find(|of| of.entry.uri_template == template);
        of.map(|of| of.server)
    }

    /// The names of the servers.
    pub(super) fn servers(&self) -> &BTreeSet<String> {
        &self.servers
    }

    /// Whether texts get boundaries.
    pub(super) fn wraps(&self) -> bool {
        self.wraps
    }
}

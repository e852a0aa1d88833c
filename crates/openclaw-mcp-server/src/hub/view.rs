//! What a client sees: tools, resources and prompts of the servers that are offered to it, by the
//! names that it knows.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use openclaw_content::{Untrusted, clean_json, clean_line, is_clean_text};
use openclaw_mcp::call::library::{PromptCommand, ServerEntry};
use openclaw_mcp::catalogue::claims::NameClaims;
use openclaw_mcp::catalogue::permission::fits;
use openclaw_mcp::catalogue::{Catalogue, CatalogueTool};
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp_client::connection::ServerIntroduction;
use openclaw_mcp_client::listing::{
    ListedPrompt, ListedResource, ListedSkill, ListedTemplate, app,
};
use openclaw_tools::Tool as _;
use openclaw_tools::search::seen_by_model;
use serde_json::{Map, Value, json};

use super::clean::clean_entry;
use super::options::HubClientOptions;
use super::shape::shape;

/// The members of a tool's annotations that are not text.
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/// The scheme of skills.
const SKILL: &str = "skill://";
/// Maximum length of a title, in characters.
const MAX_TITLE: usize = 600;
/// Maximum length of an own name or an address, in characters.
const MAX_NAME: usize = 8_192;

/// Which servers have offered something by their own name for it, to clients with the rights of one
/// agent. It outlives configurations: a client that knows a name must not reach another server by it.
#[derive(Debug, Default)]
pub(super) struct OwnNames {
    tools: NameClaims,
    prompts: NameClaims,
    /// Addresses of resources, and templates.
    addresses: NameClaims,
}

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
    /// The servers that the client has chosen; all if empty.
    chosen: Vec<String>,
    own_names: Arc<OwnNames>,
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
    pub(super) fn new(
        agent: Arc<AgentTools>,
        options: &HubClientOptions,
        own_names: Arc<OwnNames>,
    ) -> Self {
        let catalogue = agent.catalogue();
        let running = agent.servers().iter().map(|server| server.name().to_string());
        let chosen = options.servers.clone();
        let is_chosen = |name: &String| chosen.is_empty() || chosen.contains(name);
        let servers: BTreeSet<String> = running.filter(is_chosen).collect();
        let is_prefixed = options.prefix && servers.len() != 1;
        let (tools, names, wraps) = (HashMap::new(), Vec::new(), options.wrap);
        let mut view =
            Self { agent, catalogue, tools, names, servers, chosen, own_names, is_prefixed, wraps };
        view.tools = view.named_tools();
        view.names = view.tools.keys().cloned().collect();
        view.names.sort();
        view
    }

    /// The tools by the names that the client knows.
    fn named_tools(&self) -> HashMap<String, Arc<CatalogueTool>> {
        let is_offered =
            |tool: &&Arc<CatalogueTool>| self.servers.contains(tool.server().name().as_str());
        let offered: Vec<&Arc<CatalogueTool>> =
            self.catalogue.allowed().filter(is_offered).collect();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for tool in &offered {
            *counts.entry(&tool.listed().name).or_default() += 1;
        }
        let claims = &self.own_names.tools;
        let claimed = |tool: &CatalogueTool| {
            !self.is_prefixed && claims.claim(&tool.listed().name, tool.server().name().as_str())
        };
        // All claims come first.
        let claimed: Vec<bool> = offered.iter().map(|tool| claimed(tool)).collect();
        let named = offered.iter().zip(claimed).map(|(tool, is_claimed)| {
            let own = tool.listed().name.as_str();
            let is_another = self.catalogue.get(own).is_some_and(|it| !Arc::ptr_eq(it, tool));
            let is_own = is_claimed
                && !is_another
                && counts.get(own) == Some(&1)
                && self.is_own_name(own, claims);
            let name = if is_own { own } else { tool.spec.name.as_str() };
            (name.to_owned(), Arc::clone(tool))
        });
        named.collect()
    }

    /// Whether a name can be that of its server without a prefix: no other server has had it, and it
    /// could not be taken for a name with the prefix of another server.
    fn is_own_name(&self, name: &str, claims: &NameClaims) -> bool {
        !claims.is_contested(name, |server| self.is_chosen(server))
            && (self.servers.len() == 1 || !self.agent.is_prefixed_name(name))
            && self.is_clean(name)
    }

    fn is_chosen(&self, server: &str) -> bool {
        self.chosen.is_empty() || self.chosen.iter().any(|it| it == server)
    }

    /// Whether a name, which cannot be altered, may be shown to the client.
    fn is_clean(&self, name: &str) -> bool {
        let is_one_line = || !name.contains(['\n', '\t']);
        !self.wraps || (is_one_line() && is_clean_text(Untrusted::new(name), MAX_NAME))
    }

    /// Returns what became of a tool that had this name: the end of an error message.
    pub(super) fn about_unknown(&self, name: &str) -> String {
        let now = self.tools().filter(|(_, tool)| tool.listed().name == name);
        let now: Vec<String> = now.map(|(name, _)| name.to_owned()).collect();
        self.about(&self.own_names.tools, name, &now)
    }

    /// Like [`about_unknown`](Self::about_unknown), for a prompt.
    pub(super) fn about_unknown_prompt(&self, name: &str) -> String {
        let now = self.prompts().into_iter().filter(|prompt| prompt.entry.name == name);
        let now: Vec<String> = now.map(|prompt| prompt.name).collect();
        self.about(&self.own_names.prompts, name, &now)
    }

    fn about(&self, claims: &NameClaims, name: &str, now: &[String]) -> String {
        let had = claims.claimants(name, |server| self.is_chosen(server)).join(", ");
        match (had.is_empty(), now.is_empty()) {
            (true, _) => String::new(),
            (false, true) => {
                format!(" It was offered by MCP server {had}, which does not offer it now.")
            }
            (false, false) => format!(
                " It has been offered by several MCP servers ({had}). Use `{}`.",
                now.join("` or `")
            ),
        }
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

    /// Returns the tool that a model knows by this name.
    pub(super) fn tool_of_model(&self, name: &str) -> Option<&Arc<CatalogueTool>> {
        self.tools.values().find(|tool| tool.spec.name.as_str() == name)
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
        shaped(entry)
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
            if let Some(mut member) = member.and_then(|it| serde_json::from_str(it.get()).ok()) {
                if self.wraps && name == "icons" {
                    clean_json(&mut member, usize::MAX);
                }
                entry[name] = member;
            }
        }
        shaped(entry)
    }

    /// Returns an entry of another list as the client sees it.
    pub(super) fn listed(&self, entry: Value) -> Value {
        let mut entry = shaped(entry);
        if self.wraps {
            clean_entry(&mut entry);
        }
        entry
    }

    fn is_offered<T>(&self, of: &ServerEntry<T>) -> bool {
        self.servers.contains(&of.server)
    }

    /// The resources, with their servers. Of several with the same address, the one that is read by it.
    pub(super) fn resources(&self) -> Vec<ServerEntry<ListedResource>> {
        let mut all = self.agent.resources();
        all.retain(|of| self.is_offered(of) && self.is_clean(&of.entry.uri));
        all.retain(|of| self.claim_address(&of.entry.uri, &of.server));
        all
    }

    /// The resource templates, with their servers. Each is that of one server.
    pub(super) fn templates(&self) -> Vec<ServerEntry<ListedTemplate>> {
        let mut all = self.agent.templates();
        all.retain(|of| self.is_offered(of) && self.is_clean(&of.entry.uri_template));
        all.retain(|of| self.claim_address(&of.entry.uri_template, &of.server));
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
        let has_clean_arguments =
            |prompt: &ListedPrompt| prompt.arguments.iter().all(|it| self.is_clean(&it.name));
        all.retain(|of| self.is_offered(&of.prompt) && has_clean_arguments(&of.prompt.entry));
        let count = |name: &str| all.iter().filter(|it| it.prompt.entry.name == name).count();
        let is_command = |name: &str| all.iter().any(|it| it.command.as_str() == name);
        let claims = &self.own_names.prompts;
        let claimed = |of: &PromptCommand| {
            !self.is_prefixed && claims.claim(&of.prompt.entry.name, &of.prompt.server)
        };
        // All claims come first.
        let claimed: Vec<bool> = all.iter().map(claimed).collect();
        let named = all.iter().zip(claimed).map(|(of, is_claimed)| {
            let own = &of.prompt.entry.name;
            let is_own = is_claimed
                && count(own) == 1
                && (!is_command(own) || of.command.as_str() == own)
                && self.is_own_name(own, claims);
            let name = if is_own { own.clone() } else { of.command.to_string() };
            NamedPrompt { name, server: of.prompt.server.clone(), entry: of.prompt.entry.clone() }
        });
        named.collect()
    }

    /// Returns the prompt with this name.
    pub(super) fn prompt(&self, name: &str) -> Option<NamedPrompt> {
        self.prompts().into_iter().find(|prompt| prompt.name == name)
    }

    /// Returns the server of a resource: the first one that has had it, whether it lists it or not; or else
    /// the one with the template that fits it. With a single server, that one.
    pub(super) fn server_of(&self, uri: &str) -> Option<String> {
        // Records what is listed now.
        let _ = self.resources();
        if let Some(owner) = self.owner(uri) {
            return Some(owner);
        }
        let templates = self.templates();
        let fitting = templates.iter().filter(|of| fits(&of.entry.uri_template, uri));
        // The longest one is the most specific.
        let best = fitting.max_by_key(|of| of.entry.uri_template.len()).map(|of| of.server.clone());
        let only = || self.servers.first().filter(|_| self.servers.len() == 1).cloned();
        let server = best.or_else(only)?;
        self.own_names.addresses.claim(uri, &server);
        Some(server)
    }

    /// Returns the server of a resource template: the first one that has had it.
    pub(super) fn server_of_template(&self, template: &str) -> Option<String> {
        // Records what is listed now.
        let templates = self.templates();
        let listed = || templates.iter().find(|of| of.entry.uri_template == template);
        self.owner(template).or_else(|| listed().map(|of| of.server.clone()))
    }

    fn owner(&self, address: &str) -> Option<String> {
        self.own_names.addresses.first(address, |server| self.is_chosen(server))
    }

    /// Records the server of an address, unless another one has it. Returns false then.
    fn claim_address(&self, address: &str, server: &str) -> bool {
        let owner = self.owner(address);
        if owner.is_none() {
            // Not recorded if the server has had too many: then it is the one that lists it.
            self.own_names.addresses.claim(address, server);
        }
        owner.is_none_or(|owner| owner == server)
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

/// Returns an entry of any list in the form of the protocol.
fn shaped(mut entry: Value) -> Value {
    if let Value::Object(members) = &mut entry {
        shape(members);
    }
    entry
}

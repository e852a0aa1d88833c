//! All tools of an agent: by final name, to the server and its own name for the tool, with everything
//! that a call needs already decided (B1–B3, B8).
//!
//! A catalogue never changes: when a server's list does, another is built and takes its place.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use openclaw_config::Treatment;
use openclaw_content::Source;
use openclaw_tools::{Decision, Effect, Fingerprint, Policy, ToolName, ToolSpec};
use serde_json::{Map, Value};

use crate::call::bridge::CallServices;
use crate::connection::param_headers::{self, ParamHeader};
use crate::fleet::member::Member;
use crate::fleet::naming::{RawTool, names, plain};
use crate::inventory::describe;
use crate::inventory::listing::ListedTool;
use crate::server::Server;
use crate::store::pins;
use openclaw_tools::schema::{Dialect, LazyValidator, Unusable, provider_schema};

/// All tools of an agent.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// The count of changes that it was built from.
    pub(crate) revision: u64,
    tools: HashMap<ToolName, Arc<CatalogueTool>>,
    /// In the order of their names.
    sorted: Vec<Arc<CatalogueTool>>,
}

/// A tool in a catalogue.
#[derive(Debug)]
pub struct CatalogueTool {
    /// What an agent is told about it.
    pub spec: ToolSpec,
    /// Whether the policy lets it be used.
    pub decision: Decision,
    /// Why nobody can use it.
    flaw: Option<Flaw>,
    /// Its server, as the agent uses it.
    pub(crate) member: Arc<Member>,
    /// What watches over its calls.
    pub(crate) services: Arc<CallServices>,
    /// The tool as its server describes it.
    pub(crate) listed: Arc<ListedTool>,
    pub(crate) validator: LazyValidator,
    fingerprint: OnceLock<Fingerprint>,
    headers: OnceLock<Vec<ParamHeader>>,
    source: OnceLock<Arc<Source>>,
    schemas: [OnceLock<Result<Arc<Value>, Unusable>>; Dialect::ALL.len()],
}

/// Why a tool is not offered to an agent. People see it all the same, and whoever calls it is told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Its schema cannot be used.
    #[error(transparent)]
    Schema(#[from] Unusable),
    /// Its schema holds what people would not see and a model would.
    #[error("its schema has hidden characters in a name or a value")]
    HiddenCharacters,
}

impl CatalogueTool {
    /// Why nobody can use it, as far as that shows at first sight. That a schema makes no sense shows
    /// when it is used: in [`Self::schema_for`], and in a call.
    pub fn flaw(&self) -> Option<&Flaw> {
        self.flaw.as_ref()
    }

    /// The server that it belongs to.
    pub fn server(&self) -> &Server {
        &self.member.server
    }

    /// How the agent treats that server.
    pub fn treatment(&self) -> &Treatment {
        &self.member.treatment
    }

    /// Where its results come from.
    pub(crate) fn source(&self) -> &Arc<Source> {
        let source = || Source::mcp_tool(self.server().name().as_str(), self.listed.name.as_str());
        self.source.get_or_init(|| Arc::new(source()))
    }

    /// The tool as its server describes it.
    pub fn listed(&self) -> &ListedTool {
        &self.listed
    }

    /// Which arguments are told in headers, too; one whose marks are broken was left out of the list.
    pub(crate) fn headers(&self) -> &[ParamHeader] {
        let read = || param_headers::of_schema(&self.listed.input_schema).unwrap_or_default();
        self.headers.get_or_init(read)
    }

    /// The schema of its arguments as a provider of models takes it. Made when first asked for.
    ///
    /// # Errors
    /// Why the tool cannot be offered to such a model; others are not touched by it (B3).
    pub fn schema_for(&self, dialect: Dialect) -> Result<&Arc<Value>, &Unusable> {
        let make = || {
            // What cannot be called is not offered.
            self.validator.get().map_err(Clone::clone)?;
            provider_schema(&self.spec.input_schema, dialect).map(Arc::new)
        };
        let make_and_tell = || {
            let made = make();
            if let Err(reason) = &made {
                let (server, name) = (self.server().name(), &self.spec.name);
                tracing::warn!(%server, tool = %name, %reason, "a tool cannot be offered");
            }
            made
        };
        self.schemas[dialect as usize].get_or_init(make_and_tell).as_ref()
    }

    /// What it says about itself, in short.
    pub fn fingerprint(&self) -> &Fingerprint {
        self.fingerprint.get_or_init(|| pins::fingerprint(&self.listed))
    }

    /// Whether it may be used.
    pub fn is_allowed(&self) -> bool {
        self.decision == Decision::Allowed && self.flaw.is_none()
    }
}

impl Catalogue {
    /// What is there before the first is built.
    pub(crate) fn not_built() -> Self {
        Self { revision: u64::MAX, ..Self::default() }
    }

    /// Builds a catalogue. What has not changed is taken over from the one before.
    pub(crate) fn build(
        revision: u64,
        template: &str,
        policy: &Policy,
        members: &[Arc<Member>],
        services: &Arc<CallServices>,
        before: &Self,
    ) -> Self {
        let shelves: Vec<_> =
            members.iter().map(|member| (member, member.server.cache().inventory())).collect();
        let raw = shelves.iter().flat_map(|(member, inventory)| {
            let server = member.server.name().as_str();
            let prefix = member.prefix();
            inventory.tools.iter().map(move |tool| RawTool { server, prefix, tool: &tool.name })
        });
        let names = names(template, raw);
        let mut tools = HashMap::with_capacity(names.len());
        for (member, inventory) in &shelves {
            let server = member.server.name().as_str();
            let prefix = member.prefix();
            for listed in &inventory.tools {
                let raw = RawTool { server, prefix, tool: &listed.name };
                let Some(name) = names.get(&raw) else { continue };
                let same = before.tools.get(name).filter(|old| {
                    Arc::ptr_eq(&old.listed, listed) && Arc::ptr_eq(&old.member, member)
                });
                let tool = match same {
                    Some(tool) => Arc::clone(tool),
                    None => {
                        let known_as = plain(template, raw);
                        Arc::new(entry(name.clone(), &known_as, member, listed, policy, services))
                    }
                };
                tools.insert(name.clone(), tool);
            }
        }
        let mut sorted: Vec<_> = tools.values().map(Arc::clone).collect();
        sorted.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
        Self { revision, tools, sorted }
    }

    /// The tool of a name.
    pub fn get(&self, name: &str) -> Option<&Arc<CatalogueTool>> {
        self.tools.get(name)
    }

    /// The tool that a server calls so.
    pub fn find(&self, server: &str, tool: &str) -> Option<&Arc<CatalogueTool>> {
        self.sorted
            .iter()
            .find(|entry| entry.server().name().as_str() == server && entry.listed.name == tool)
    }

    /// All tools in the order of their names, those that are denied or have a flaw among them.
    pub fn all(&self) -> &[Arc<CatalogueTool>] {
        &self.sorted
    }

    /// The tools that may be used, in the order of their names.
    pub fn allowed(&self) -> impl Iterator<Item = &Arc<CatalogueTool>> {
        self.sorted.iter().filter(|tool| tool.is_allowed())
    }
}

fn entry(
    name: ToolName,
    known_as: &str,
    member: &Arc<Member>,
    listed: &Arc<ListedTool>,
    policy: &Policy,
    services: &Arc<CallServices>,
) -> CatalogueTool {
    let server = member.server.name().as_str();
    // A server decides by the names of its tools which of them get a hash: what is denied by its plain
    // name stays denied.
    let decision = match policy.decide_any(&[name.as_str()], &[known_as]) {
        // A server's own list may name its tools as the server does.
        Decision::Allowed => member.policy.decide_any(&[name.as_str(), &listed.name], &[known_as]),
        denied @ Decision::Denied { .. } => denied,
    };
    let schema = describe::clean_schema(&listed.input_schema);
    let validator = LazyValidator::new(Arc::clone(&listed.input_schema));
    let flaw = flaw(&validator, &schema);
    if let Some(reason) = &flaw {
        tracing::warn!(%server, tool = %name, %reason, "a tool cannot be used, and is not offered");
    }
    let spec = ToolSpec {
        name,
        label: describe::label(server, &listed.name),
        description: describe::description(server, listed),
        input_schema: schema,
        effect: effect(listed),
    };
    CatalogueTool {
        spec,
        decision,
        flaw,
        member: Arc::clone(member),
        services: Arc::clone(services),
        listed: Arc::clone(listed),
        validator,
        fingerprint: OnceLock::new(),
        headers: OnceLock::new(),
        source: OnceLock::new(),
        schemas: Default::default(),
    }
}

/// What can be found out about a schema at little cost: a catalogue has thousands of them.
fn flaw(listed: &LazyValidator, cleaned: &Map<String, Value>) -> Option<Flaw> {
    match listed.look_at() {
        Err(unusable) => Some(unusable.into()),
        Ok(()) => describe::hides_something(cleaned).then_some(Flaw::HiddenCharacters),
    }
}

fn effect(listed: &ListedTool) -> Effect {
    match (listed.hints.read_only_hint, listed.hints.destructive_hint) {
        (Some(true), _) => Effect::ReadOnly,
        (_, Some(true)) => Effect::Destructive,
        _ => Effect::Unknown,
    }
}

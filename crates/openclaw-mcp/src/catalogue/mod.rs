//! All tools of an agent, by final name. Each entry holds the server, the server's own name for the
//! tool, and everything that a call needs (B1–B3, B8).
//!
//! A catalogue is immutable: when a server's list changes, a new one is built and replaces it.

pub mod claims;
pub(crate) mod member;
pub mod naming;
pub mod permission;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use openclaw_config::ServerOptions;
use openclaw_content::{Hazard, JsonRenderer, Source};
use openclaw_metrics::CallSeries;
use openclaw_tools::schema::{LazyValidator, SchemaDialect, Unusable, provider_schema};
use openclaw_tools::{
    Arguments, Decision, Pin, Policy, ToolEffect, ToolFingerprint, ToolName, ToolSpec,
};
use serde_json::Value;
use tokio::time::Instant;

use crate::catalogue::claims::NameClaims;
use crate::catalogue::member::FleetMember;
use crate::catalogue::naming::{AssignedName, RawTool, names};
use crate::inventory::describe;
use crate::inventory::model_schema::ModelSchema;
use crate::server::Server;
use crate::services::CallServices;
use crate::store::pins;
use openclaw_mcp_client::listing::ListedTool;
use openclaw_mcp_client::listing::app::ToolApp;
use openclaw_mcp_client::wire::param_headers::{self, ParamHeader};

/// The source name of MCP tools, resources and prompts in the audit log.
pub(crate) const SOURCE: &str = "mcp";

/// All tools of an agent.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// The revision of the inventories that it was built from.
    pub(crate) revision: u64,
    tools: HashMap<ToolName, Arc<CatalogueTool>>,
    /// Sorted by name.
    sorted: Vec<Arc<CatalogueTool>>,
}

/// A tool in a catalogue.
#[derive(Debug)]
pub struct CatalogueTool {
    /// The description that an agent sees.
    pub spec: ToolSpec,
    /// Whether the policy allows it.
    pub decision: Decision,
    /// Why it cannot be used.
    flaw: Option<Flaw>,
    /// Its page, and whether it is meant for models.
    pub app: ToolApp,
    /// Its server, with the agent's options.
    pub(crate) member: Arc<FleetMember>,
    /// Approvals, audit log and other services used by its calls.
    pub(crate) services: Arc<CallServices>,
    /// The tool as its server describes it.
    pub(crate) listed: Arc<ListedTool>,
    pub(crate) validator: LazyValidator,
    output: OnceLock<Option<Arc<LazyValidator>>>,
    fingerprint: OnceLock<ToolFingerprint>,
    headers: OnceLock<Vec<ParamHeader>>,
    renderer: OnceLock<Arc<JsonRenderer>>,
    series: OnceLock<Option<Arc<CallSeries>>>,
    schemas: [OnceLock<Result<Arc<Value>, Unusable>>; SchemaDialect::ALL.len()],
}

/// Why a tool is not offered to an agent. Users still see it in listings, and a call of it fails
/// with this reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Its schema is unusable.
    #[error(transparent)]
    Schema(#[from] Unusable),
    /// Its schema must not be shown to a model.
    #[error(transparent)]
    Hazard(#[from] Hazard),
}

impl CatalogueTool {
    /// Returns why it cannot be used, from cheap checks only. An invalid schema is detected on
    /// first use: in [`Self::schema_for`], and in a call.
    pub fn flaw(&self) -> Option<&Flaw> {
        self.flaw.as_ref()
    }

    /// Its server.
    pub fn server(&self) -> &Server {
        &self.member.server
    }

    /// The agent's settings for that server.
    pub fn options(&self) -> &ServerOptions {
        &self.member.options
    }

    /// The source that its results are labelled with.
    pub(crate) fn source(&self) -> &Arc<Source> {
        self.renderer().source()
    }

    /// Renders its results for relays.
    pub(crate) fn renderer(&self) -> &Arc<JsonRenderer> {
        let source = || Source::mcp_tool(self.server().name().as_str(), self.listed.name.as_str());
        self.renderer.get_or_init(|| Arc::new(JsonRenderer::new(source())))
    }

    /// Where its calls are counted: looked up once.
    pub(crate) fn series(&self) -> Option<&Arc<CallSeries>> {
        let server = self.server().name().as_str();
        let tool = self.listed.name.as_str();
        let series = || self.services.metrics.calls(SOURCE, server, tool);
        self.series.get_or_init(series).as_ref()
    }

    /// The tool as its server describes it.
    pub fn listed(&self) -> &ListedTool {
        &self.listed
    }

    /// The arguments that are also sent as headers. Tools with invalid header annotations were left
    /// out of the list.
    pub fn headers(&self) -> &[ParamHeader] {
        let read = || param_headers::of_schema(&self.listed.input_schema).unwrap_or_default();
        self.headers.get_or_init(read)
    }

    /// The schema of its results, if it declares one. Parsed on first use.
    pub(crate) fn output_schema(&self) -> Option<&Arc<LazyValidator>> {
        let parse = || {
            let schema = self.listed.other.get("outputSchema")?;
            let schema = serde_json::from_str(schema.get()).ok()?;
            Some(Arc::new(LazyValidator::for_results(Arc::new(schema))))
        };
        self.output.get_or_init(parse).as_ref()
    }

    /// Returns the input schema in the dialect of a model provider. Computed on first use.
    ///
    /// # Errors
    /// Why the tool cannot be offered to such a model; other dialects are not affected (B3).
    pub fn schema_for(&self, dialect: SchemaDialect) -> Result<&Arc<Value>, &Unusable> {
        let make = || {
            // A tool whose arguments cannot be validated cannot be called, so it is not offered
            // either.
            self.validator.get().map_err(Clone::clone)?;
            provider_schema(&self.spec.input_schema, dialect).map(Arc::new)
        };
        let make_and_tell = || {
            let made = make();
            if let Err(reason) = &made {
                let server = self.server().name();
                let name = &self.spec.name;
                tracing::warn!(%server, tool = %name, %reason, "tool cannot be offered");
            }
            made
        };
        self.schemas[dialect as usize].get_or_init(make_and_tell).as_ref()
    }

    /// The hash of its description and schema.
    pub fn fingerprint(&self) -> &ToolFingerprint {
        self.fingerprint.get_or_init(|| pins::fingerprint(&self.listed))
    }

    /// Whether its description or schema has changed since it was first seen or approved (B13).
    pub fn is_changed(&self) -> bool {
        self.pinned(Instant::now(), None) == Pin::Changed
    }

    /// Compares it with what was seen and approved.
    pub(crate) fn pinned(&self, now: Instant, arguments: Option<&Arguments<'_>>) -> Pin {
        let Some(pins) = &self.services.pins else { return Pin::New };
        pins.check(&self.member.key, &self.listed.name, self.fingerprint(), now, arguments)
    }

    /// Whether it may be used.
    pub fn is_allowed(&self) -> bool {
        self.decision == Decision::Allowed && self.flaw.is_none()
    }
}

impl Catalogue {
    /// The catalogue before the first build.
    pub(crate) fn not_built() -> Self {
        Self { revision: u64::MAX, ..Self::default() }
    }

    /// Builds a catalogue, reusing the entries of the previous one that have not changed.
    pub(crate) fn build(
        revision: u64,
        template: &str,
        policy: &Policy,
        members: &[Arc<FleetMember>],
        services: &Arc<CallServices>,
        before: &Self,
        claims: &NameClaims,
    ) -> Self {
        let inventories: Vec<_> =
            members.iter().map(|member| (member, member.server.cache().inventory())).collect();
        let raw = inventories.iter().flat_map(|(member, inventory)| {
            let server = member.server.name().as_str();
            let prefix = member.prefix();
            inventory.tools.iter().map(move |tool| RawTool { server, prefix, tool: &tool.name })
        });
        // Before any of them reaches a model.
        if let Some(pins) = &services.pins {
            let own = inventories.iter().filter(|(member, _)| member.server.cache().is_own());
            own.for_each(|(member, inventory)| pins.see(&member.key, &inventory.tools));
        }
        let names = names(template, raw, claims);
        let mut tools = HashMap::with_capacity(names.len());
        for (member, inventory) in &inventories {
            let server = member.server.name().as_str();
            let prefix = member.prefix();
            for listed in &inventory.tools {
                let raw = RawTool { server, prefix, tool: &listed.name };
                let Some(AssignedName { name, plain }) = names.get(&raw) else { continue };
                let same = before.tools.get(name).filter(|old| {
                    Arc::ptr_eq(&old.listed, listed) && Arc::ptr_eq(&old.member, member)
                });
                let tool = match same {
                    Some(tool) => Arc::clone(tool),
                    None => Arc::new(entry(name.clone(), plain, member, listed, policy, services)),
                };
                tools.insert(name.clone(), tool);
            }
        }
        let mut sorted: Vec<_> = tools.values().map(Arc::clone).collect();
        sorted.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
        Self { revision, tools, sorted }
    }

    /// Returns the tool with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<CatalogueTool>> {
        self.tools.get(name)
    }

    /// Returns the tool with this name on this server.
    pub fn find(&self, server: &str, tool: &str) -> Option<&Arc<CatalogueTool>> {
        self.sorted
            .iter()
            .find(|entry| entry.server().name().as_str() == server && entry.listed.name == tool)
    }

    /// All tools sorted by name, including those that are denied or unusable.
    pub fn all(&self) -> &[Arc<CatalogueTool>] {
        &self.sorted
    }

    /// The tools that may be used, sorted by name.
    pub fn allowed(&self) -> impl Iterator<Item = &Arc<CatalogueTool>> {
        self.sorted.iter().filter(|tool| tool.is_allowed())
    }
}

fn entry(
    name: ToolName,
    known_as: &str,
    member: &Arc<FleetMember>,
    listed: &Arc<ListedTool>,
    policy: &Policy,
    services: &Arc<CallServices>,
) -> CatalogueTool {
    let server = member.server.name().as_str();
    // A server can force a hash into a name by choosing colliding names, so a tool that is denied
    // by its plain name stays denied.
    let decision = match policy.decide_any(&[name.as_str()], &[known_as]) {
        // The allow and deny lists of a server may use the server's own names.
        Decision::Allowed => member.policy.decide_any(&[name.as_str(), &listed.name], &[known_as]),
        denied @ Decision::Denied { .. } => denied,
    };
    let ModelSchema { schema, hazard } = ModelSchema::of(&listed.input_schema);
    let validator = LazyValidator::new(Arc::clone(&listed.input_schema));
    // Only the cheap checks: a catalogue can have thousands of schemas.
    let flaw = match validator.look_at() {
        Err(unusable) => Some(Flaw::Schema(unusable)),
        Ok(()) => hazard.map(Flaw::Hazard),
    };
    if let Some(reason) = &flaw {
        tracing::warn!(%server, tool = %name, %reason, "tool cannot be used and is not offered");
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
        app: ToolApp::of(listed.other.get("_meta")),
        member: Arc::clone(member),
        services: Arc::clone(services),
        listed: Arc::clone(listed),
        validator,
        output: OnceLock::new(),
        fingerprint: OnceLock::new(),
        headers: OnceLock::new(),
        renderer: OnceLock::new(),
        series: OnceLock::new(),
        schemas: Default::default(),
    }
}

fn effect(listed: &ListedTool) -> ToolEffect {
    match (listed.hints.read_only_hint, listed.hints.destructive_hint) {
        (Some(true), _) => ToolEffect::ReadOnly,
        (_, Some(true)) => ToolEffect::Destructive,
        _ => ToolEffect::Unknown,
    }
}

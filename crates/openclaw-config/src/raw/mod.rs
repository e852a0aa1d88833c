//! The sections of `openclaw.json`, declared once: keys, synonyms, types, documentation.

mod agent;
mod auth;
mod credential;
mod gateway;
mod models;
mod sampling;
mod secrets;
mod server;
mod tools;

use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::decode::{Decode, Decoder, Overlay, Spanned, Table, Whole, section};
use crate::diagnostic::Diagnostic;
use crate::name::ServerName;
use crate::schema;
use crate::text::ConfigText;
use crate::tree::ConfigNode;

pub use agent::ApprovalFallback;
pub(crate) use agent::{RawAgent, RawAgents, RawApproval, RawModelChoice};
pub(crate) use auth::{RawAuth, RawDpop, RawGrantType, RawIdentityProvider, RawNodeOAuth};
pub use gateway::HubApprovals;
pub(crate) use gateway::{
    RawAcp, RawControlUi, RawGateway, RawGatewayAuth, RawMetrics, RawRemoteGateway,
};
pub use models::ModelApi;
pub(crate) use models::{ApiSetting, RawModels, RawProvider};
pub(crate) use sampling::RawSampling;
pub use sampling::SamplingRule;
pub(crate) use secrets::{RawAws, RawExec, RawGcp, RawSecrets, RawVault};
pub use server::{ApprovalPolicy, LogLevel, ProtocolVersion, TransportKind};
pub(crate) use server::{RawNodeToolFilter, RawServer, RawServerTools, RawTls};
pub(crate) use tools::{RawExecTool, RawFetchTool, RawFsTools, RawPolicy, RawTools, RawWebTools};

/// Up to a day, in milliseconds.
type Millis = Whole<1, 86_400_000>;
/// Up to a day, in milliseconds; 0 disables the feature.
type MillisOrOff = Whole<0, 86_400_000>;
/// A list of strings.
pub(crate) type Words = Vec<Spanned<ConfigText>>;

section! {
    /// The configuration of OpenClaw. Sections not described here belong to other programs and are
    /// ignored.
    struct RawConfig("a configuration", Leave) {
        /// MCP servers and settings for all agents.
        mcp: RawMcp = "mcp",
        /// Servers as other programs write them; `mcp.servers` takes precedence.
        mcp_servers: RawServers = "mcpServers" => schema::named,
        /// The agents and their defaults.
        agents: RawAgents = "agents",
        /// Plugins; `mcp-client` is built in.
        plugins: RawPlugins = "plugins",
        /// The tool policy for all agents, and the settings of the built-in tools.
        tools: RawTools = "tools",
        /// The model providers.
        models: RawModels = "models",
        /// The gateway.
        gateway: RawGateway = "gateway",
        /// Metrics of the gateway.
        metrics: RawMetrics = "metrics",
        /// Limits for editor sessions.
        acp: RawAcp = "acp",
        /// Settings of the secret providers.
        secrets: RawSecrets = "secrets",
    }
}

section! {
    /// Plugins.
    struct RawPlugins("the plugins", Leave) {
        /// The plugins by name.
        entries: RawPluginEntries = "entries",
    }
}

section! {
    /// The plugins by name.
    struct RawPluginEntries("the plugins", Leave) {
        /// The built-in MCP client.
        mcp_client: RawMcpPlugin = "mcp-client",
    }
}

section! {
    /// The built-in MCP client, configured as a plugin.
    struct RawMcpPlugin("the MCP client", Refuse) {
        /// `false` disables MCP as a whole.
        enabled: bool = "enabled",
        /// MCP servers and settings for all agents; `mcp` takes precedence.
        config: RawMcp = "config",
    }
}

section! {
    /// MCP servers, and settings for all of them.
    struct RawMcp("the MCP settings", Refuse) {
        /// The servers by name.
        servers: RawServers = "servers" => schema::named,
        /// Interval of tool discovery, in milliseconds (300000); 0 disables it.
        tool_discovery_interval: MillisOrOff = "toolDiscoveryInterval",
        /// How many servers may connect concurrently (20).
        max_concurrent_servers: Whole<1, 1000> = "maxConcurrentServers",
        /// Template for the tool names that the model sees (`mcp_{server}_{tool}`).
        tool_naming: ConfigText = "toolNaming" => schema::tool_naming,
        /// Whether to log every MCP message. Accepted, but without effect yet.
        debug: bool = "debug",
        /// Maximum duration of a call whose timeout is extended by progress notifications, in
        /// milliseconds (600000).
        call_timeout_cap: Millis = "callTimeoutCapMs",
    }
}

/// The servers by name.
#[derive(Clone, Default)]
pub(crate) struct RawServers {
    pub(crate) by_name: Table<RawServer>,
    /// Servers with errors that were reported.
    pub(crate) damaged: BTreeSet<String>,
}

impl Decode for RawServers {
    fn decode(node: &ConfigNode, cx: &mut Decoder<'_>) -> Option<Self> {
        let mut servers = Self::default();
        for member in cx.object(node, "servers by name")? {
            let before = cx.found.len();
            if let Err(problem) = ServerName::new(member.key.as_str()) {
                let message = format!("invalid server name: {problem}");
                let found = Diagnostic::error(message).at(member.key_at, "invalid name");
                cx.report_key(member, found.suggest(&problem));
            }
            if let Some(server) = cx.member(member) {
                servers.by_name.0.insert(member.key.clone(), server);
            }
            if cx.found.len() > before {
                servers.damaged.insert(member.key.clone());
            }
        }
        Some(servers)
    }
}

impl Overlay for RawServers {
    fn overlaid_by(mut self, later: Self) -> Self {
        self.damaged.extend(later.damaged);
        Self { by_name: self.by_name.overlaid_by(later.by_name), damaged: self.damaged }
    }
}

impl JsonSchema for RawServers {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Servers".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let server = generator.subschema_for::<RawServer>();
        schemars::json_schema!({
            "type": "object",
            "properties": { "$include": true },
            "additionalProperties": server,
        })
    }
}

/// Returns the JSON Schema (2020-12) of `openclaw.json`.
pub fn json_schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<RawConfig>();
    schema.insert("title".to_owned(), json!("OpenClaw configuration"));
    schema.to_value()
}

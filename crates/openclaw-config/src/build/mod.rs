//! Builds the validated [`Config`] from raw sections: merges layers, checks values, and records
//! where each comes from.

mod agents;
mod fields;
mod gateway;
mod models;
mod normalise;
mod oauth;
mod secrets;
mod server;
mod tools;
mod transport;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

pub(crate) use values::{Builder, Unset};

use crate::decode::{Field, Overlay, Spanned, Whole};
use crate::diagnostic::Diagnostic;
use crate::mcp::{McpConfig, McpSettings, Origins, ToolNaming};
use crate::model::{AcpSettings, Config};
use crate::name::ServerName;
use crate::raw::{
    RawAcp, RawConfig, RawMcp, RawMcpPlugin, RawPluginEntries, RawPlugins, RawServers,
};
use crate::setting::Setting;
use crate::text::ConfigText;
use agents::AgentDefaults;
use models::Providers;
use server::{Built, ServerBuilder, Siblings};

const DEFAULT_DISCOVERY_MS: u64 = 300_000;
const DEFAULT_CONCURRENT_SERVERS: u64 = 20;
const DEFAULT_CALL_CAP_MS: u64 = 600_000;
const DEFAULT_ACP_SERVERS: u64 = 10;
const DEFAULT_ACP_TOOLS: u64 = 100;

impl Builder<'_> {
    /// Builds the configuration. The result must not be used if errors were found.
    pub(crate) fn build(&mut self, raw: RawConfig, file: Option<PathBuf>) -> Config {
        let RawConfig {
            mcp,
            mcp_servers,
            agents,
            plugins,
            tools,
            models,
            gateway,
            metrics,
            acp,
            secrets,
        } = raw;
        let mut noted = Vec::new();
        let (mcp_enabled, plugin) = self.plugin(plugins, &mut noted);
        let pasted = self.pasted(mcp_servers);
        let pasted = self.layer(pasted);
        let shared = pasted.overlaid_by(self.layer(plugin)).overlaid_by(self.layer(mcp));
        let RawAcp { max_servers, max_tools, use_logins } =
            acp.map(|acp| acp.value).unwrap_or_default();
        let (tools, native_tools) = self.tools(tools, &mut noted);
        let Providers { usable: models, named: providers } = self.models(models, &mut noted);
        let common = AgentDefaults { mcp: shared, mcp_enabled, providers: &providers };
        let agents = self.agents(agents, &common);
        let (gateway, gateway_tools) = self.gateway(gateway, &mut noted);
        let metrics = self.metrics(metrics, &mut noted);
        let acp = AcpSettings {
            max_servers: self.count(&mut noted, "acp.maxServers", max_servers, DEFAULT_ACP_SERVERS),
            max_tools: self.count(&mut noted, "acp.maxTools", max_tools, DEFAULT_ACP_TOOLS),
            use_logins: self.take(&mut noted, "acp.useLogins", use_logins, false, |it| json!(it)),
        };
        let secrets = secrets.map(|it| it.value).unwrap_or_default();
        let secrets = self.secrets(secrets, &mut noted);
        Config {
            file,
            contents: BTreeMap::new(),
            agents,
            tools,
            native_tools,
            models,
            gateway,
            gateway_tools,
            metrics,
            acp,
            secrets,
            origins: noted,
        }
    }

    fn count<const MIN: u64, const MAX: u64>(
        &self,
        noted: &mut Vec<Setting>,
        key: &str,
        field: Field<Whole<MIN, MAX>>,
        default: u64,
    ) -> usize {
        let count = self.take(noted, key, field, Whole(default), |count| json!(count.0)).0;
        usize::try_from(count).unwrap_or(usize::MAX)
    }

    /// Returns whether MCP is enabled, and the lowest layer, from `plugins.entries["mcp-client"]`.
    fn plugin(
        &mut self,
        plugins: Field<RawPlugins>,
        noted: &mut Vec<Setting>,
    ) -> (bool, Field<RawMcp>) {
        let RawPlugins { entries } = plugins.map(|it| it.value).unwrap_or_default();
        let RawPluginEntries { mcp_client } = entries.map(|it| it.value).unwrap_or_default();
        let RawMcpPlugin { enabled, config } = mcp_client.map(|it| it.value).unwrap_or_default();
        let key = "plugins.entries.mcp-client.enabled";
        (self.take(noted, key, enabled, true, |enabled| json!(enabled)), config)
    }

    /// Returns the servers that were pasted from another program's file, as the lowest layer.
    fn pasted(&mut self, servers: Field<RawServers>) -> Field<RawMcp> {
        let servers = servers?;
        let (at, path) = (servers.at, servers.path.clone());
        self.found.push(
            Diagnostic::note("`mcpServers` is read as `mcp.servers`")
                .at(at, "servers as other programs write them")
                .path(path.as_str()),
        );
        Some(Spanned { value: RawMcp { servers: Some(servers), ..RawMcp::default() }, at, path })
    }

    /// Normalizes one layer.
    fn layer(&mut self, mcp: Field<RawMcp>) -> Field<RawMcp> {
        let mut mcp = mcp?;
        if let Some(Spanned { value: servers, .. }) = &mut mcp.value.servers {
            for server in servers.by_name.0.values_mut() {
                server.value.normalise(&mut self.found);
            }
        }
        Some(mcp)
    }

    /// Builds the MCP configuration of an agent from its merged layers. The workspace is filled in
    /// afterwards.
    fn mcp(&mut self, merged: Field<RawMcp>, enabled: bool, has_workspace: bool) -> McpConfig {
        let RawMcp {
            servers,
            tool_discovery_interval,
            max_concurrent_servers,
            tool_naming,
            debug,
            call_timeout_cap,
        } = merged.map(|merged| merged.value).unwrap_or_default();

        let mut noted = Vec::new();
        let number = |number: &u64| json!(number);
        let interval = tool_discovery_interval.map(|it| it.map(|Whole(ms)| ms));
        let interval =
            self.take(&mut noted, "toolDiscoveryInterval", interval, DEFAULT_DISCOVERY_MS, number);
        let key = "maxConcurrentServers";
        let max_concurrent_servers =
            self.count(&mut noted, key, max_concurrent_servers, DEFAULT_CONCURRENT_SERVERS);
        let naming = self.tool_naming(tool_naming);
        let naming = self
            .take(&mut noted, "toolNaming", naming, ToolNaming::default(), |it| json!(it.as_str()));
        let debug = self.take(&mut noted, "debug", debug, false, |it| json!(it));
        let cap = call_timeout_cap.map(|it| it.map(|Whole(ms)| ms));
        let cap = self.take(&mut noted, "callTimeoutCapMs", cap, DEFAULT_CALL_CAP_MS, number);

        let mut mcp = McpConfig {
            enabled,
            settings: McpSettings {
                tool_discovery_interval: (interval > 0).then(|| Duration::from_millis(interval)),
                max_concurrent_servers,
                tool_naming: naming,
                debug,
                call_timeout_cap: Duration::from_millis(cap),
            },
            servers: BTreeMap::new(),
            held_back: BTreeMap::new(),
            plaintext_credentials: BTreeSet::new(),
            origins: Origins { settings: noted, servers: BTreeMap::new() },
        };
        self.servers(servers, has_workspace, &mut mcp);
        if !enabled {
            mcp.servers.clear();
            mcp.held_back.clear();
            mcp.plaintext_credentials.clear();
            mcp.origins.servers.clear();
        }
        mcp
    }

    fn servers(&mut self, servers: Field<RawServers>, has_workspace: bool, mcp: &mut McpConfig) {
        let RawServers { by_name, damaged } = servers.map(|it| it.value).unwrap_or_default();
        let names: Vec<String> = by_name.0.keys().cloned().collect();
        let siblings = Siblings { names: &names, damaged: &damaged };
        for (name, entry) in by_name.0 {
            // An invalid name was reported by the decoder.
            let known_name = ServerName::new(name.as_str());
            let mut builder = ServerBuilder::new(self, &name, has_workspace);
            let built = builder.build(entry, &siblings);
            let Ok(server_name) = known_name else { continue };
            let settings = std::mem::take(&mut builder.settings);
            if builder.plaintext.is_some() {
                mcp.plaintext_credentials.insert(server_name.clone());
            }
            match built {
                Built::Ready(server) => drop(mcp.servers.insert(server_name.clone(), *server)),
                Built::HeldBack(why) => drop(mcp.held_back.insert(server_name.clone(), why)),
                Built::Wrong => continue,
            }
            mcp.origins.servers.insert(server_name, settings);
        }
    }

    fn tool_naming(&mut self, naming: Field<ConfigText>) -> Field<ToolNaming> {
        let naming = naming?;
        let text = self.text(&naming, &mut Unset::Refused)?;
        match ToolNaming::new(text.as_str()) {
            Some(template) => Some(naming.map(|_| template)),
            None => {
                let message = "a naming template must contain `{tool}`, usually `{server}`, and \
                               otherwise only letters, digits, `_` and `-`";
                let help = "the default is `mcp_{server}_{tool}`";
                self.found.push(naming.error(message, "cannot be used").help(help));
                None
            }
        }
    }
}

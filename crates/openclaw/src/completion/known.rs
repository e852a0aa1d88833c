//! Names that are known without starting anything: from the configuration, the remembered listings of
//! servers, and the database of conversations.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use openclaw_config::{Config, Paths, ServerConfig};
use openclaw_mcp::inventory::Inventory;
use openclaw_mcp::store::memory::Memory;
use openclaw_sessions::{ListFilter, Session, SessionStore as _, SqliteStore};

use crate::edge::Edge;
use crate::state_files;

/// The maximum number of conversations that are offered, the latest first.
const MAX_SESSIONS: usize = 100;

/// The names on this machine. They are read when they are first needed.
#[derive(Clone)]
pub(super) struct Known(Arc<Inner>);

struct Inner {
    paths: Option<Paths>,
    config: OnceLock<Option<Config>>,
    load: Box<dyn Fn() -> Option<Config> + Send + Sync>,
    /// The words of the command line up to the one that is completed.
    words: Vec<String>,
}

impl Known {
    pub(super) fn new(edge: &Edge, words: Vec<String>) -> Self {
        let mut options = words.iter().skip_while(|word| *word != "--config");
        let attached = words.iter().find_map(|word| word.strip_prefix("--config="));
        let file = attached.or_else(|| options.nth(1).map(String::as_str)).map(Path::new);
        let paths = edge.paths_with(file).ok();
        let loader = paths.as_ref().map(|paths| edge.loader(&paths.config));
        let load = move || loader.as_ref().and_then(|loader| loader().config);
        Self(Arc::new(Inner { paths, config: OnceLock::new(), load: Box::new(load), words }))
    }

    fn config(&self) -> Option<&Config> {
        self.0.config.get_or_init(|| (self.0.load)()).as_ref()
    }

    /// Returns the words after a subcommand of `mcp`, without the one that is completed.
    pub(super) fn words_after(&self, subcommand: &str) -> &[String] {
        let words = &self.0.words[..self.0.words.len().saturating_sub(1)];
        let at = words.iter().position(|word| word == subcommand);
        at.map_or(&[], |at| &words[at + 1..])
    }

    /// Returns each server with its entry; `None` for one that is held back.
    fn entries(&self) -> Vec<(String, Option<&ServerConfig>)> {
        let mut entries: Vec<(String, Option<&ServerConfig>)> = Vec::new();
        for agent in self.config().into_iter().flat_map(|config| &config.agents) {
            for name in agent.mcp.origins.servers.keys() {
                if entries.iter().all(|(known, _)| known != name.as_str()) {
                    entries.push((name.to_string(), agent.mcp.servers.get(name)));
                }
            }
        }
        entries
    }

    /// Returns the names of the servers, each with its command or URL.
    pub(super) fn servers(&self) -> Vec<(String, String)> {
        let gist = |server: Option<&ServerConfig>| server.map(ServerConfig::gist);
        let entries = self.entries().into_iter();
        entries.map(|(name, server)| (name, gist(server).unwrap_or_default())).collect()
    }

    /// Returns the agents' ids.
    pub(super) fn agents(&self) -> Vec<String> {
        let agents = self.config().into_iter().flat_map(|config| &config.agents);
        agents.map(|agent| agent.id.to_string()).collect()
    }

    /// Returns what a server listed when it was last connected.
    pub(super) fn listed(&self, server: &str) -> Option<Inventory> {
        let folder = state_files::catalogue(&self.0.paths.as_ref()?.state);
        let (name, config) = self.entries().into_iter().find(|(name, _)| name == server)?;
        Some(Memory::of(&folder, &name, &config?.connection).recall().inventory)
    }

    /// Returns the keys of the latest conversations, each with its title.
    pub(super) fn sessions(&self) -> Vec<(String, String)> {
        let Some(file) = self.0.paths.as_ref().map(|paths| paths.state.join("sessions.db")) else {
            return Vec::new();
        };
        if !file.exists() {
            return Vec::new();
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return Vec::new() };
        runtime.block_on(async {
            let Ok(opened) = SqliteStore::open(&file).await else { return Vec::new() };
            let filter = ListFilter { limit: MAX_SESSIONS, ..ListFilter::default() };
            let listed = opened.store.list(filter).await.unwrap_or_default();
            let named =
                |session: Session| (session.key.to_string(), session.title.unwrap_or_default());
            listed.into_iter().map(named).collect()
        })
    }
}

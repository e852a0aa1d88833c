//! Caches the resources that are part of every session (B14), so that a turn need not wait for
//! them.
//!
//! If a server notifies about changes, its resources are cached longer; otherwise they are read
//! again after a minute. A turn waits only briefly: what arrives later is used in the next one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use openclaw_config::AgentConfig;
use openclaw_content::Text;
use openclaw_mcp::fleet::Fleet;
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::server::live::ResourceVersion;
use openclaw_tools::{CallContext, CallOptions, Content, ToolOutcome};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a turn waits.
const TURN_WAITS: Duration = Duration::from_secs(2);
/// Timeout for reading a resource in the background.
const READING: Duration = Duration::from_secs(60);
/// How long a cached resource is fresh: without change notifications, and with them. Notifications
/// may be lost.
const BELIEVED: Duration = Duration::from_secs(60);
const BELIEVED_AT_MOST: Duration = Duration::from_secs(10 * 60);
/// Maximum characters of a resource shown to a model.
const MAX_CHARS: usize = 20_000;
/// Maximum number of resources per agent.
const MAX_RESOURCES: usize = 50;

/// The cached resources.
#[derive(Debug)]
pub(crate) struct ResourceCache {
    kept: Mutex<BTreeMap<Key, Kept>>,
    fleet: Arc<Fleet>,
    tasks: TaskTracker,
    /// Cancelled when the gateway stops.
    ending: CancellationToken,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    agent: String,
    server: String,
    uri: String,
}

#[derive(Debug)]
struct Kept {
    /// The latest content.
    read: Option<Read>,
    /// A read in progress: when it started, and a receiver that closes when it ends.
    reading: Option<(Instant, watch::Receiver<()>)>,
}

#[derive(Debug)]
struct Read {
    texts: Vec<Text>,
    at: Instant,
    /// Set if the server sends change notifications.
    edition: Option<ResourceVersion>,
    failed: bool,
}

impl Read {
    fn is_fresh(&self, edition: Option<ResourceVersion>) -> bool {
        let age = self.at.elapsed();
        match (self.failed, edition) {
            (true, _) => false,
            (false, Some(now)) => self.edition == Some(now) && age < BELIEVED_AT_MOST,
            (false, None) => age < BELIEVED,
        }
    }
}

impl ResourceCache {
    pub(crate) fn new(fleet: Arc<Fleet>, tasks: TaskTracker, ending: CancellationToken) -> Self {
        Self { kept: Mutex::default(), fleet, tasks, ending }
    }

    /// Clears the cache after the configuration has changed.
    pub(crate) fn forget(&self) {
        self.kept.lock().clear();
    }

    /// Returns the resources configured for an agent, for a turn.
    pub(crate) async fn texts(self: &Arc<Self>, agent: &AgentConfig) -> Vec<Text> {
        let Some(tools) = self.fleet.agent(agent.id.as_str()) else { return Vec::new() };
        let keys: Vec<Key> = agent
            .mcp
            .servers
            .iter()
            .filter(|(_, config)| config.enabled)
            .flat_map(|(server, config)| {
                config.options.resources.iter().map(move |uri| (server, uri))
            })
            .map(|(server, uri)| Key {
                agent: agent.id.to_string(),
                server: server.to_string(),
                uri: uri.as_str().to_owned(),
            })
            .take(MAX_RESOURCES)
            .collect();
        let deadline = Instant::now() + TURN_WAITS;
        let each = join_all(keys.into_iter().map(|key| self.one(&tools, key, deadline))).await;
        each.into_iter().flatten().collect()
    }

    async fn one(
        self: &Arc<Self>,
        agent: &Arc<AgentTools>,
        key: Key,
        deadline: Instant,
    ) -> Vec<Text> {
        if let Some(mut reading) = self.begin(agent, &key) {
            // The sender is dropped at the end; the result is in the cache.
            let _ = timeout_at(deadline, async { while reading.changed().await.is_ok() {} }).await;
        }
        self.cached(&key).unwrap_or_else(|| vec![not_there(&key)])
    }

    /// Returns the cached content of a resource, if any.
    fn cached(&self, key: &Key) -> Option<Vec<Text>> {
        let kept = self.kept.lock();
        Some(kept.get(key)?.read.as_ref()?.texts.clone())
    }

    /// Starts reading a resource if it is not fresh. Returns what to wait for, if anything.
    fn begin(self: &Arc<Self>, agent: &Arc<AgentTools>, key: &Key) -> Option<watch::Receiver<()>> {
        let edition = edition(agent, key);
        let (done, reading) = watch::channel(());
        {
            let mut all = self.kept.lock();
            let kept = all.entry(key.clone()).or_insert(Kept { read: None, reading: None });
            if kept.read.as_ref().is_some_and(|read| read.is_fresh(edition)) {
                return None;
            }
            if let Some((since, under_way)) = &kept.reading
                && under_way.has_changed().is_ok()
            {
                // An earlier turn has already waited for it: it is slow.
                let is_slow = since.elapsed() >= TURN_WAITS;
                return (!is_slow).then(|| under_way.clone());
            }
            kept.reading = Some((Instant::now(), reading.clone()));
        }
        let (cache, agent, key) = (Arc::clone(self), Arc::clone(agent), key.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = cache.read(&agent, &key) => {}
                () = cache.ending.cancelled() => {}
            }
            drop(done);
        });
        Some(reading)
    }

    async fn read(&self, agent: &AgentTools, key: &Key) {
        // Wait until a starting server is ready: its notifications count from then on.
        if let Some(server) = agent.server(&key.server) {
            let _ = server.ready().await;
        }
        // Taken before reading, so that a change meanwhile is not missed.
        let edition = edition(agent, key);
        let options = CallOptions {
            deadline: Some(Instant::now() + READING),
            max_chars: Some(MAX_CHARS),
            ..CallOptions::default()
        };
        let context =
            CallContext { agent: Some(&key.agent), options, ..CallContext::by_hand("context") };
        let outcome = agent.read(&key.server, &key.uri, &context).await;
        let (at, failed) = (Instant::now(), outcome.is_error);
        let texts = if failed { vec![not_there(key)] } else { texts(outcome) };
        let mut all = self.kept.lock();
        if let Some(kept) = all.get_mut(key) {
            kept.read = Some(Read { texts, at, edition, failed });
            kept.reading = None;
        }
    }
}

fn not_there(Key { server, uri, .. }: &Key) -> Text {
    Text::ours(format!(
        "(The resource {uri} of the MCP server '{server}' is currently unavailable.)"
    ))
}

fn edition(agent: &AgentTools, key: &Key) -> Option<ResourceVersion> {
    let snapshots = agent.server(&key.server)?.snapshots();
    let attached = snapshots.borrow().connection.clone();
    attached?.edition_of(&key.uri)
}

/// Images and audio do not belong in a prompt.
fn texts(outcome: ToolOutcome) -> Vec<Text> {
    let texts = outcome.content.into_iter().filter_map(|part| match part {
        Content::Text(text) | Content::Placeholder(text) | Content::ForModel(text) => Some(text),
        Content::Image { .. } | Content::Audio { .. } => None,
    });
    texts.collect()
}

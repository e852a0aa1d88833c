//! A client of the hub.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use openclaw_budget::{ByteBudget, BytePermit};
use openclaw_config::LogLevel;
use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::server::Server;
use openclaw_mcp_client::limiter::{Limiter, RetryAfter};
use openclaw_mcp_client::listing::app;
use openclaw_protocol::{Principal, Scope};
use openclaw_tools::{CallClient, Fallback};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::asks::CallScope;
use super::options::HubClientOptions;
use super::view::HubView;
use super::{Hub, HubCaller};
use crate::front::connection::ClientConnection;
use crate::front::events::is_logged;
use crate::front::memory::MAX_URI;
use crate::input::{Abilities, AskableClient, ClientAnswer, ClientQuestion};

/// How long a call of an unknown tool waits for servers that are still connecting.
const CONNECTING: Duration = Duration::from_secs(20);
/// How long the lists of a client wait for servers that are still connecting: all of them together, not
/// each. Clients give a server 10 s or more to start, and are notified when a list has changed.
const FIRST_LISTS: Duration = Duration::from_secs(5);
/// Maximum number of resources that a client subscribes to.
pub(super) const MAX_SUBSCRIPTIONS: usize = 1_000;
/// Why a URI is refused.
pub(super) const LONG_URI: &str = "the URI exceeds 8 KiB";
/// Maximum length of a client's name, in characters.
const MAX_NAME: usize = 60;

/// Reports that the URL of an elicitation was visited (2025-11-25).
pub(super) const VISITED: &str = "notifications/elicitation/complete";

/// A client of the hub. Its requests are made with the rights of one agent.
pub(super) struct HubClient {
    pub(super) hub: Arc<Hub>,
    principal: Principal,
    agent: String,
    pub(super) options: HubClientOptions,
    number: u64,
    /// The memory of its principal.
    pub(super) budget: Arc<ByteBudget>,
    /// Whether several programs may be behind it: requests without a session. What one of them says
    /// about itself is not kept then.
    is_shared: bool,
    /// Its name in the audit log, with that of its token, until it has made itself known.
    unknown_name: String,
    name: OnceLock<String>,
    view: Mutex<Option<Arc<HubView>>>,
    limiter: Limiter,
    pub(super) connection: Arc<ClientConnection>,
    /// Whether it declared in the handshake that it shows pages of MCP Apps.
    shows_pages: OnceLock<bool>,
    ready: watch::Sender<bool>,
    /// When its lists no longer wait for servers; set by the first one.
    settled_at: OnceLock<Instant>,
    log_level: Mutex<Option<LogLevel>>,
    subscriptions: Mutex<Subscriptions>,
}

/// The resources that a client has subscribed to.
#[derive(Debug)]
struct Subscriptions {
    /// Their servers, by URI.
    servers: BTreeMap<String, String>,
    bytes: usize,
    memory: BytePermit,
}

impl Subscriptions {
    /// Counts the memory for a subscription. Returns whether there is enough.
    fn make_room(&mut self, uri: &str) -> bool {
        let bytes = self.bytes + subscription_bytes(uri);
        let has_room = self.memory.resize_exactly(bytes).is_ok();
        if has_room {
            self.bytes = bytes;
        }
        has_room
    }

    fn remove(&mut self, uri: &str) -> Option<String> {
        let server = self.servers.remove(uri)?;
        self.bytes = self.bytes.saturating_sub(subscription_bytes(uri));
        // Less than before.
        let _ = self.memory.resize_exactly(self.bytes);
        Some(server)
    }
}

/// The memory that a subscription takes, here and with its server.
pub(super) fn subscription_bytes(uri: &str) -> usize {
    512 + 2 * uri.len()
}

/// What the user of a client may approve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalRights {
    /// Calls, now and for later, and changed tools.
    All,
    /// Its own calls, each once.
    OwnCallOnce,
    /// Nothing.
    Nothing,
}

/// What a client may call at one point in time.
pub(super) struct Rights {
    /// What to do with calls that no user of the client approves.
    pub(super) fallback: Fallback,
    pub(super) view: Arc<HubView>,
    /// That time.
    pub(super) now: Instant,
}

impl fmt::Debug for HubClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("number", &self.number).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HubClient {
    pub(super) fn new(
        hub: Arc<Hub>,
        caller: HubCaller,
        agent: String,
        options: HubClientOptions,
        number: u64,
        is_shared: bool,
    ) -> Self {
        let limiter = Limiter::new(hub.agents.rate_limit());
        let HubCaller { principal, budget } = caller;
        let unknown_name = match principal.token() {
            Some(token) => format!("{} (token {})", options.name, token.name()),
            None => options.name.clone(),
        };
        let subscriptions =
            Subscriptions { servers: BTreeMap::new(), bytes: 0, memory: budget.permit() };
        Self {
            hub,
            principal,
            agent,
            options,
            number,
            budget,
            is_shared,
            unknown_name,
            name: OnceLock::new(),
            view: Mutex::default(),
            limiter,
            connection: Arc::default(),
            shows_pages: OnceLock::new(),
            ready: watch::Sender::new(false),
            settled_at: OnceLock::new(),
            log_level: Mutex::default(),
            subscriptions: Mutex::new(subscriptions),
        }
    }

    /// The agent with whose rights it makes requests, and what to do with calls that no user of the
    /// client approves; `None` if the agent was removed.
    pub(super) fn agent(&self) -> Option<(Fallback, Arc<AgentTools>)> {
        let fallback = self.hub.agents.fallback(&self.agent)?;
        Some((fallback, self.hub.agent_tools(&self.agent)?))
    }

    pub(super) fn agent_id(&self) -> &str {
        &self.agent
    }

    /// Whose client it is.
    pub(super) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Whether several programs may be behind it.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// What its user may approve.
    pub(super) fn approval_rights(&self) -> ApprovalRights {
        if self.principal.has(Scope::Approvals) {
            ApprovalRights::All
        } else if self.hub.agents.lets_clients_approve() {
            ApprovalRights::OwnCallOnce
        } else {
            ApprovalRights::Nothing
        }
    }

    /// Its name in the audit log; that in the request, if it has not made itself known before.
    pub(super) fn who(&self, named: Option<&str>) -> Cow<'_, str> {
        match (self.name.get(), named) {
            (Some(name), _) => Cow::Borrowed(name),
            (None, Some(named)) => Cow::Owned(self.named(named)),
            (None, None) => Cow::Borrowed(&self.unknown_name),
        }
    }

    fn named(&self, name: &str) -> String {
        // At the end, so that it cannot look like the name of a token.
        format!("{}: {}", self.unknown_name, clean_line(Untrusted::new(name), MAX_NAME))
    }

    /// Checks whether a call would exceed its rate limit; it is not counted.
    pub(super) fn check_room(&self, now: Instant) -> Result<(), RetryAfter> {
        self.limiter.check_room(now)
    }

    /// Counts a call against its rate limit, if there is one.
    pub(super) fn check_limit(&self, now: Instant) -> Result<(), String> {
        self.limiter.check(now).map_err(|wait| format!("{wait} (`gateway.hubRateLimit`)"))
    }

    /// Returns its current view; `None` if its agent was removed from the configuration.
    pub(super) fn view(&self) -> Option<Arc<HubView>> {
        self.hub.agent_tools(&self.agent).map(|agent| self.view_of(&agent))
    }

    /// Returns its rights at this time; `None` if its agent was removed.
    pub(super) fn rights(&self) -> Option<Rights> {
        let (fallback, agent) = self.agent()?;
        Some(Rights { fallback, view: self.view_of(&agent), now: Instant::now() })
    }

    /// Returns its current view of its agent.
    pub(super) fn view_of(&self, agent: &Arc<AgentTools>) -> Arc<HubView> {
        let mut kept = lock(&self.view);
        if let Some(view) = kept.as_ref().filter(|view| view.is_current(agent)) {
            return Arc::clone(view);
        }
        let view = Arc::new(HubView::new(
            Arc::clone(agent),
            &self.options,
            self.hub.own_names(&self.agent),
        ));
        *kept = Some(Arc::clone(&view));
        view
    }

    /// Like [`view`](Self::view), for a list: after every server was tried once, but not for long. A
    /// server that is slow or hangs delays only the first lists.
    pub(super) async fn settled_view(&self) -> Option<Arc<HubView>> {
        let until = *self.settled_at.get_or_init(|| Instant::now() + FIRST_LISTS);
        self.view_until(until).await
    }

    /// Like [`view`](Self::view), for a tool that is unknown: after every server was tried once, but not
    /// for long.
    pub(super) async fn connected_view(&self) -> Option<Arc<HubView>> {
        self.view_until(Instant::now() + CONNECTING).await
    }

    async fn view_until(&self, until: Instant) -> Option<Arc<HubView>> {
        let agent = self.hub.agent_tools(&self.agent)?;
        let _ = timeout_at(until, agent.tried()).await;
        self.view()
    }

    /// Records what the client says about itself in the handshake. A shared one has none.
    pub(super) fn introduced(&self, name: &str, capabilities: &Value) {
        let _ = self.name.set(self.named(name));
        let _ = self.shows_pages.set(app::is_declared(capabilities));
    }

    /// Whether it shows pages of MCP Apps, according to its handshake.
    pub(super) fn shows_pages(&self) -> bool {
        self.shows_pages.get().copied().unwrap_or_default()
    }

    /// Records that the handshake is done: from now on it may be notified of changes.
    pub(super) fn is_ready(&self) {
        self.ready.send_replace(true);
    }

    /// Waits until the handshake is done.
    pub(super) async fn until_ready(&self) {
        // The sender lives as long as this.
        let _ = self.ready.subscribe().wait_for(|is_ready| *is_ready).await;
    }

    /// The client as the servers know it, which may have connections of its own.
    pub(super) fn as_caller(&self) -> CallClient {
        CallClient { number: self.number, is_shared: self.is_shared }
    }

    /// Registers it as the client that calls of a new session are made for.
    pub(super) fn scope(self: &Arc<Self>) -> CallScope {
        self.scope_of(Arc::clone(self) as Arc<dyn AskableClient>)
    }

    /// Registers what answers for it during the calls of a new session.
    pub(super) fn scope_of(&self, answers: Arc<dyn AskableClient>) -> CallScope {
        let client = (self.number, self.is_shared);
        self.hub.asks.register(client, answers, self.options.wrap)
    }

    /// Sets the level of the log messages that it receives.
    pub(super) async fn set_log_level(&self, level: LogLevel) {
        *lock(&self.log_level) = Some(level);
        let Some(view) = self.view() else { return };
        let servers = view.servers().iter().filter_map(|name| view.agent().server(name));
        join_all(servers.map(|server| server.log_from(level))).await;
    }

    /// The level of the log messages that it receives, if it has set one.
    pub(super) fn log_level(&self) -> Option<LogLevel> {
        *lock(&self.log_level)
    }

    /// Whether it gets a log message outside of a request that wants them: after a handshake, and of
    /// the level that it has set. Before it sets one, the server decides (2025-11-25).
    pub(super) fn wants_log(&self, message: &Value) -> bool {
        self.connection.is_introduced()
            && self.log_level().is_none_or(|least| is_logged(message, least))
    }

    /// Subscribes it to changes of a resource.
    ///
    /// # Errors
    /// If no server has such a resource, or there are too many subscriptions.
    pub(super) async fn subscribe(&self, uri: &str) -> Result<(), &'static str> {
        if uri.len() > MAX_URI {
            return Err(LONG_URI);
        }
        let server = self.server_of(uri)?;
        {
            let mut subscriptions = lock(&self.subscriptions);
            if subscriptions.servers.contains_key(uri) {
                return Ok(());
            }
            if subscriptions.servers.len() >= MAX_SUBSCRIPTIONS || !subscriptions.make_room(uri) {
                return Err("too many subscriptions");
            }
            // Before the server is asked: it may report a change at once.
            subscriptions.servers.insert(uri.to_owned(), server.name().to_string());
        }
        server.follow(uri).await;
        Ok(())
    }

    /// Ends a subscription.
    pub(super) fn unsubscribe(&self, uri: &str) {
        let server = lock(&self.subscriptions).remove(uri);
        if let Some(server) = server {
            self.unfollow(&server, uri);
        }
    }

    /// Has the server of a resource report its changes, and returns its name.
    ///
    /// # Errors
    /// If no server has such a resource.
    pub(super) async fn follow(&self, uri: &str) -> Result<String, &'static str> {
        let server = self.server_of(uri)?;
        server.follow(uri).await;
        Ok(server.name().to_string())
    }

    fn server_of(&self, uri: &str) -> Result<Arc<Server>, &'static str> {
        let view = self.view().ok_or("the agent was removed")?;
        let name = view.server_of(uri);
        let server = name.and_then(|name| view.agent().server(&name).cloned());
        server.ok_or("no server has this resource")
    }

    /// Undoes [`follow`](Self::follow).
    pub(super) fn unfollow(&self, server: &str, uri: &str) {
        let agent = self.hub.agent_tools(&self.agent);
        if let Some(server) = agent.as_ref().and_then(|agent| agent.server(server)) {
            server.unfollow(uri);
        }
    }

    /// Passes a log message on that belongs to no call.
    pub(super) fn logged(&self, server: &str, message: &Value) {
        let is_ours = self.view().is_some_and(|view| view.servers().contains(server));
        if is_ours {
            self.log(message);
        }
    }

    /// Reports a change of a resource that it has subscribed to.
    pub(super) fn resource_updated(&self, server: &str, uri: &str) {
        let is_wanted = lock(&self.subscriptions).servers.get(uri).is_some_and(|of| of == server);
        if is_wanted {
            self.connection.notify("notifications/resources/updated", json!({ "uri": uri }));
        }
    }
}

impl AskableClient for HubClient {
    fn abilities(&self) -> Abilities {
        self.connection.abilities()
    }

    fn ask(&self, question: ClientQuestion) -> BoxFuture<'_, ClientAnswer> {
        self.connection.ask(question)
    }

    fn log(&self, message: &Value) {
        if self.wants_log(message) {
            self.connection.notify("notifications/message", message.clone());
        }
    }

    fn visited(&self, id: &str) {
        self.connection.notify(VISITED, json!({ "elicitationId": id }));
    }
}

impl Drop for HubClient {
    fn drop(&mut self) {
        let uris: Vec<String> = lock(&self.subscriptions).servers.keys().cloned().collect();
        uris.iter().for_each(|uri| self.unsubscribe(uri));
        self.hub.fleet.end_client(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscriptions_are_counted_until_they_end() {
        let budget = ByteBudget::new(64 * 1024);
        let (servers, memory) = (BTreeMap::new(), budget.permit());
        let mut subscriptions = Subscriptions { servers, bytes: 0, memory };
        let uris: Vec<String> = (0..9).map(|it| format!("{it}{}", "x".repeat(8_000))).collect();
        for uri in &uris {
            if subscriptions.make_room(uri) {
                subscriptions.servers.insert(uri.clone(), "one".to_owned());
            }
        }
        assert_eq!(subscriptions.servers.len(), 3, "each takes 16 KiB and some more");
        let before = budget.used();
        assert!(subscriptions.remove("unknown").is_none());
        assert_eq!(budget.used(), before);
        assert_eq!(subscriptions.remove(&uris[0]).unwrap(), "one");
        assert!(budget.used() < before && subscriptions.make_room(&uris[5]));
        drop(subscriptions);
        assert_eq!(budget.used(), 0);
    }
}

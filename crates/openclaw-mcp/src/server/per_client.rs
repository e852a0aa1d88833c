//! Connections of a local server that belong to one client of the hub each.
//!
//! Up to 2025-11-25, a server on stdio does not say which call its own requests belong to. Where it
//! sends such requests while calls of several clients are in progress, each client gets a process of its
//! own: started at its first call, and ended when the client goes. Programs that are not told apart take
//! turns there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use openclaw_config::Transport;
use openclaw_metrics::Metrics;
use openclaw_tools::CallClient;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Predecessors, Server, SharedContext, StorageFolders};
use crate::server::cache::Revision;
use crate::server::events::EventChannel;
use crate::server::shared_options::SharedOptions;

/// Maximum number of connections of clients to a server.
const MAX_CLIENTS: usize = 16;
/// Maximum number of connections of clients to all servers of a fleet.
pub(crate) const MAX_ALL: usize = 64;

/// The connections of clients to a server.
#[derive(Debug)]
pub(super) struct ClientConnections {
    common: SharedContext,
    /// Whether the configuration asks for them.
    is_configured: AtomicBool,
    /// Whether a request of the server could not be assigned to a client.
    is_needed: AtomicBool,
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    servers: BTreeMap<u64, ClientConnection>,
    is_closed: bool,
}

#[derive(Debug)]
struct ClientConnection {
    server: Arc<Server>,
    is_shared: bool,
    _place: OwnedSemaphorePermit,
}

impl ClientConnections {
    pub(super) fn new(common: &SharedContext, is_configured: bool) -> Self {
        Self {
            common: common.clone(),
            is_configured: AtomicBool::new(is_configured),
            is_needed: AtomicBool::new(false),
            running: Mutex::default(),
        }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the servers, so that no other one starts.
    fn close(&self) -> Vec<Arc<Server>> {
        let mut running = self.running();
        running.is_closed = true;
        std::mem::take(&mut running.servers).into_values().map(|it| it.server).collect()
    }
}

/// The permits for connections of clients.
pub(crate) fn places() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MAX_ALL))
}

impl Server {
    /// Whether each client of the hub has a connection of its own.
    pub fn is_per_client(&self) -> bool {
        let ClientConnections { is_configured, is_needed, .. } = &self.clients;
        is_configured.load(Ordering::Relaxed) || is_needed.load(Ordering::Relaxed)
    }

    /// Returns the number of connections that clients of the hub have of their own.
    pub fn client_connections(&self) -> usize {
        self.clients.running().servers.len()
    }

    /// Gives each client of the hub a connection of its own from now on, if this is a local server.
    /// Returns whether that is new.
    pub fn separate_clients(&self) -> bool {
        matches!(self.connection.transport, Transport::Stdio(_))
            && !self.is_per_client()
            && !self.clients.is_needed.swap(true, Ordering::Relaxed)
    }

    /// Returns the connection of a client of the hub, which is started if there is none; `None` if it
    /// uses that of all.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn of_client(
        &self,
        client: Option<CallClient>,
    ) -> Result<Option<Arc<Self>>, String> {
        let Some(CallClient { number, is_shared }) = client.filter(|_| self.is_per_client()) else {
            return Ok(None);
        };
        if !matches!(self.connection.transport, Transport::Stdio(_)) {
            return Ok(None);
        }
        let mut running = self.clients.running();
        if let Some(own) = running.servers.get(&number) {
            return Ok(Some(Arc::clone(&own.server)));
        }
        if running.is_closed {
            return Err(format!("MCP server '{}' has stopped.", self.name));
        }
        let place = Arc::clone(&self.clients.common.places).try_acquire_owned();
        let (Ok(place), 0..MAX_CLIENTS) = (place, running.servers.len()) else {
            return Err(format!(
                "Too many clients have a connection of their own to MCP server '{}' (`perClient`).",
                self.name
            ));
        };
        let upkeep = on_use(self.upkeep.borrow().clone(), is_shared);
        let name = self.name.clone();
        let connection = self.connection.clone();
        let none = Predecessors::default();
        let common = SharedContext {
            // What is listed, reported and logged is that of the shared connection.
            revision: Revision::default(),
            events: EventChannel::default(),
            folders: StorageFolders::default(),
            metrics: Metrics::off(),
            ..self.clients.common.clone()
        };
        let server = Self::start_for(name, connection, upkeep, none, &common, &self.users);
        let server = Arc::new(server);
        let own = ClientConnection { server: Arc::clone(&server), is_shared, _place: place };
        running.servers.insert(number, own);
        Ok(Some(server))
    }

    /// Removes the connection of a client that is gone, for the caller to stop it.
    pub(crate) fn take_client(&self, client: u64) -> Option<Arc<Self>> {
        self.clients.running().servers.remove(&client).map(|it| it.server)
    }

    /// Applies other settings to the connections of clients.
    pub(super) fn keep_clients(&self, upkeep: &SharedOptions) {
        self.clients.is_configured.store(upkeep.per_client, Ordering::Relaxed);
        let running = self.clients.running();
        let of = |it: &ClientConnection| (Arc::clone(&it.server), it.is_shared);
        let servers: Vec<_> = running.servers.values().map(of).collect();
        drop(running);
        for (server, is_shared) in servers {
            server.keep(on_use(upkeep.clone(), is_shared));
        }
    }

    /// Stops the connections of clients.
    pub(super) async fn stop_clients(&self) {
        let servers = self.clients.close();
        join_all(servers.iter().map(|server| server.supervisor.stop())).await;
    }
}

/// The settings of a server that starts at its first use. The calls of a shared client take turns: the
/// server's requests would not say which of its programs they are for.
fn on_use(upkeep: SharedOptions, is_shared: bool) -> SharedOptions {
    let one_at_a_time = upkeep.one_at_a_time || is_shared;
    SharedOptions { lazy: true, required: false, one_at_a_time, ..upkeep }
}

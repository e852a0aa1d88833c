//! The gateway: the whole program without a front end. Composes the services, and is their front door.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use openclaw_mcp::fleet::Fleet;
use openclaw_mcp_server::hub::Hub;
use openclaw_mcp_server::hub::asks::Asks;
use openclaw_mcp_server::hub::http::HubHttp;
use openclaw_metrics::prometheus::Format;
use openclaw_protocol::config::ReloadResult;
use openclaw_protocol::connect::{AuthMode, SessionDefaults, Snapshot};
use openclaw_protocol::mcp::ServerEvent;
use openclaw_protocol::{ErrorShape, Surface, detail, keys, names};
use openclaw_secrets::Resolver;
use openclaw_sessions::{SessionStore, SqliteStore, StoreError};
use openclaw_tools::native;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agents::{ActiveConfig, Agents};
use crate::approvals::{ApprovalRules, PendingApprovals};
use crate::callers::Callers;
use crate::client_metadata;
use crate::configuration::Configuration;
use crate::elicitations::Elicitations;
use crate::host::HostContext;
use crate::hub::{ActiveAgents, HubElicitor, HubSampler};
use crate::lent::Lent;
use crate::mcp::McpServers;
use crate::methods::{self, ProcessInfo, Services};
use crate::metrics::{LiveMetrics, ServedMetrics};
use crate::resource_cache::ResourceCache;
use crate::runs::Runs;
use crate::sampling::AgentSampler;
use crate::sessions::Sessions;
use crate::setup::{GatewaySetup, Prepare, StartError};
use crate::socket::{Caller, CallerService, Endpoint, HelloInfo, MetricsAccess};
use crate::store::StoreOnUse;
use crate::surface::CallerSurface;
use crate::turns::Turns;

/// Configuration, servers, agents and sessions, behind the methods of the protocol.
pub struct Gateway {
    services: Arc<Services>,
    hub: Arc<Hub>,
    hub_http: Arc<HubHttp>,
    state: PathBuf,
    resolver: Resolver,
    /// Cancelled when the gateway stops accepting work.
    ending: CancellationToken,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Starts the gateway. Servers connect in the background.
    ///
    /// # Errors
    /// Fails if the session store cannot be opened.
    pub async fn start(setup: GatewaySetup) -> Result<Arc<Self>, StartError> {
        Self::start_served(setup, None).await
    }

    /// Like [`start`](Self::start). With settings for `/metrics` it is a gateway that listens.
    pub(crate) async fn start_served(
        setup: GatewaySetup,
        served_metrics: Option<ServedMetrics>,
    ) -> Result<Arc<Self>, StartError> {
        let GatewaySetup {
            config,
            config_file,
            load,
            state,
            mut fleet,
            environment,
            version,
            prepare,
            workspace,
        } = setup;
        let started = Instant::now();
        let is_served = served_metrics.is_some();
        let database = state.join("sessions.db");
        let (store, note) = open_store(&database, prepare).await?;
        let tasks = TaskTracker::new();
        let ending = CancellationToken::new();
        let resolver = fleet.context.resolver.clone();
        let logs = fleet.folders.logs.clone();
        let host = HostContext {
            resolver: resolver.clone(),
            environment,
            state: state.clone(),
            workspace,
            native_approvals: native::Approvals::in_file(state.join("approvals.json")),
            guard: fleet.context.guard.clone(),
            metrics: fleet.services.metrics.clone(),
        };
        let callers = Arc::<Callers>::default();
        let runs = Arc::new(Runs::new(ending.clone()));
        let approvals = Arc::new(PendingApprovals::new(Arc::clone(&callers), is_served));
        let elicitations = Arc::new(Elicitations::new(Arc::clone(&callers)));
        let lent = Arc::new(Lent::new(Arc::clone(&callers)));
        let asks = Arc::<Asks>::default();
        fleet.context.host.workspace = Some(host.default_workspace());
        fleet.context.host.downstream = Some(Arc::clone(&asks) as _);
        // Declared in the handshake with a server, before any client is connected: servers list other
        // tools for clients without it. If no user can answer, it is declined (T11).
        fleet.context.host.elicitor = Some(Arc::new(HubElicitor {
            asks: Arc::clone(&asks),
            next: Arc::clone(&elicitations),
        }));
        let agents = Arc::new_cyclic(|agents: &Weak<Agents>| {
            let audit = fleet.services.audit.clone();
            fleet.context.host.sampler = Some(Arc::new(HubSampler {
                asks: Arc::clone(&asks),
                agents: agents.clone(),
                next: AgentSampler::new(
                    agents.clone(),
                    Arc::clone(&approvals),
                    Arc::clone(&callers),
                    audit,
                ),
            }));
            let config = Arc::new(config);
            let fleet = Fleet::start(&config, fleet);
            let servers = McpServers::new(
                Arc::clone(&fleet),
                Arc::clone(&config),
                logs.clone(),
                tasks.clone(),
            );
            Agents::new(config, fleet, Arc::new(servers), host)
        });
        let fleet = Arc::clone(agents.fleet());
        let servers = Arc::clone(agents.servers());
        let hub = Hub::new(Arc::clone(&fleet), Arc::new(ActiveAgents(Arc::clone(&agents))), asks);
        let resources =
            Arc::new(ResourceCache::new(Arc::clone(&fleet), tasks.clone(), ending.clone()));
        let sessions = Arc::new(Sessions::new(
            (store, database),
            Arc::clone(&agents),
            Arc::clone(&runs),
            Arc::clone(&callers),
            (tasks.clone(), ending.clone()),
        ));
        let turns = Turns::new(
            Arc::clone(&sessions),
            Arc::clone(&approvals),
            Arc::clone(&callers),
            Arc::clone(&lent),
            Arc::clone(&resources),
            Arc::clone(&fleet),
        );
        let configuration = Arc::new(Configuration::new(
            (config_file, load),
            Arc::clone(&agents),
            resources,
            resolver.clone(),
            served_metrics,
        ));
        let metrics = LiveMetrics {
            version: version.clone(),
            started,
            fleet: Arc::clone(&fleet),
            runs: Arc::clone(&runs),
            callers: Arc::clone(&callers),
            approvals: Arc::clone(&approvals),
        };
        let process = ProcessInfo {
            version,
            started,
            notes: note.into_iter().collect(),
            logs,
            is_served,
            tasks,
            stop_requested: CancellationToken::new(),
        };
        if prepare == Prepare::AtStart {
            agents.active().set_up();
        }
        let services = Services {
            approval_rules: ApprovalRules::new(Arc::clone(&agents)),
            agents,
            approvals,
            callers,
            configuration,
            elicitations,
            lent,
            metrics,
            process,
            runs,
            servers,
            sessions,
            turns,
        };
        let gateway = Self {
            services: Arc::new(services),
            hub_http: Arc::new(HubHttp::new(Arc::clone(&hub))),
            hub,
            state,
            resolver,
            ending,
        };
        gateway.watch_servers();
        Ok(Arc::new(gateway))
    }

    /// Returns a caller's end of the gateway. Dropping it unregisters the caller and its tools.
    pub fn caller(&self, caller: Caller) -> Arc<dyn Surface> {
        Arc::new(CallerSurface::new(Arc::clone(&self.services), caller))
    }

    /// Waits until a client has requested that the gateway stops.
    pub async fn stop_requested(&self) {
        self.services.process.stop_requested.cancelled().await;
    }

    /// Waits up to `grace` for running work, then terminates everything (L5).
    pub async fn stop(&self, grace: Duration) {
        self.wind_down(grace).await;
        self.end().await;
    }

    /// Stops accepting work, and waits up to `grace` for running turns.
    pub(crate) async fn wind_down(&self, grace: Duration) {
        self.ending.cancel();
        let runs = &self.services.runs;
        let drained = tokio::time::timeout(grace, runs.drained()).await;
        if drained.is_err() {
            tracing::info!("grace period is over; cancelling running turns");
            runs.cancel_all();
            let _ = tokio::time::timeout(Duration::from_secs(5), runs.drained()).await;
        }
    }

    /// Stops the servers and waits briefly for background tasks.
    pub(crate) async fn end(&self) {
        let tasks = &self.services.process.tasks;
        tasks.close();
        self.fleet().stop().await;
        let _ = tokio::time::timeout(Duration::from_secs(1), tasks.wait()).await;
    }

    /// The active configuration.
    pub fn config(&self) -> Arc<ActiveConfig> {
        self.services.agents.active()
    }

    /// Reloads the configuration. Only what has changed is affected.
    pub async fn reload(&self) -> ReloadResult {
        self.services.configuration.reload().await
    }

    /// Applies every saved change of the configuration until the gateway stops.
    pub(crate) fn watch_config(&self) {
        let configuration = Arc::clone(&self.services.configuration);
        let ending = self.ending.clone();
        self.services.process.tasks.spawn(async move { configuration.watch(ending).await });
    }

    /// The state folder.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Resolves secrets.
    pub fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// The MCP servers.
    pub fn fleet(&self) -> &Arc<Fleet> {
        self.services.agents.fleet()
    }

    /// The MCP servers of the agents, for other programs.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Startup notes for the user.
    pub fn notes(&self) -> &[String] {
        &self.services.process.notes
    }

    /// Forwards server state changes to the callers.
    fn watch_servers(&self) {
        let mut events = self.fleet().events();
        let callers = Arc::clone(&self.services.callers);
        let ending = self.ending.clone();
        self.services.process.tasks.spawn(async move {
            loop {
                let change = tokio::select! {
                    () = ending.cancelled() => return,
                    change = events.recv() => change,
                };
                let change = match change {
                    Ok(change) => change,
                    Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => return,
                };
                let event = ServerEvent {
                    agent_id: None,
                    name: change.server.to_string(),
                    state: change.state.name().to_owned(),
                    error: change.reason,
                };
                callers.tell_all(event);
            }
        });
    }
}

/// Opens the session store, or has it opened on first use. Returns a note for the user, if there is one.
async fn open_store(
    database: &Path,
    prepare: Prepare,
) -> Result<(Arc<dyn SessionStore>, Option<String>), StoreError> {
    Ok(match prepare {
        Prepare::AtStart => {
            let opened = SqliteStore::open(database).await?;
            (Arc::new(opened.store), opened.note)
        }
        Prepare::OnUse => (Arc::new(StoreOnUse::new(database.to_owned())), None),
    })
}

impl CallerService for Arc<Gateway> {
    fn open(&self, caller: Caller) -> Result<Arc<dyn Endpoint>, ErrorShape> {
        if self.ending.is_cancelled() {
            let error = ErrorShape::unavailable("the gateway is stopping");
            return Err(error.with_detail(detail::STOPPING));
        }
        Ok(Arc::new(CallerSurface::new(Arc::clone(&self.services), caller)))
    }

    fn hello(&self, _: &Caller) -> HelloInfo {
        let process = &self.services.process;
        let active = self.config();
        let agent = active.default_agent();
        HelloInfo {
            version: process.version.clone(),
            methods: methods::names().map(ToOwned::to_owned).collect(),
            events: names::ALL.iter().map(|name| (*name).to_owned()).collect(),
            capabilities: Vec::new(),
            snapshot: Snapshot {
                health: methods::health(&self.services.agents),
                uptime_ms: process.uptime_ms(),
                config_path: self.services.configuration.file().to_str().map(ToOwned::to_owned),
                state_dir: self.state.to_str().map(ToOwned::to_owned),
                session_defaults: Some(SessionDefaults {
                    default_agent_id: agent.to_owned(),
                    main_key: keys::MAIN.to_owned(),
                    main_session_key: keys::main_of(agent),
                    scope: None,
                }),
                auth_mode: Some(AuthMode::Token),
                ..Snapshot::default()
            },
        }
    }

    fn is_ready(&self) -> bool {
        !self.ending.is_cancelled()
    }

    fn client_metadata(&self) -> Option<Value> {
        let active = self.config();
        let public = active.config.gateway.public_url.as_ref()?;
        Some(client_metadata::document(&client_metadata::url(public.expose())?))
    }

    fn hub(&self) -> Option<(Arc<Hub>, Arc<HubHttp>)> {
        Some((Arc::clone(&self.hub), Arc::clone(&self.hub_http)))
    }

    fn metrics_access(&self) -> Option<Arc<MetricsAccess>> {
        self.services.configuration.metrics_access()
    }

    fn metrics(&self, format: Format) -> Option<String> {
        self.services.metrics.exposition(format)
    }

    fn control_ui(&self) -> Option<PathBuf> {
        self.config().config.gateway.control_ui.clone()
    }

    fn allowed_origins(&self) -> Vec<String> {
        let active = self.config();
        let gateway = &active.config.gateway;
        let public = gateway.public_url.as_ref();
        let public = public.map(|url| url.expose().origin().ascii_serialization());
        gateway.allowed_origins.iter().cloned().chain(public).collect()
    }
}

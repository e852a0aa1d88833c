//! The gateway: the whole program without a front end.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use openclaw_config::Loaded;
use openclaw_mcp::fleet::Fleet;
use openclaw_mcp_server::hub::Hub;
use openclaw_mcp_server::hub::asks::Asks;
use openclaw_mcp_server::hub::http::HubHttp;
use openclaw_metrics::prometheus::Format;
use openclaw_protocol::config::Issue;
use openclaw_protocol::connect::{AuthMode, SessionDefaults, Snapshot};
use openclaw_protocol::health::Health;
use openclaw_protocol::mcp::ServerEvent;
use openclaw_protocol::{ErrorShape, Surface, detail, keys, names};
use openclaw_secrets::Resolver;
use openclaw_sessions::{SessionStore, SqliteStore};
use openclaw_tools::native;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agents::{ActiveConfig, HostContext};
use crate::callers::{CallerSurface, Callers};
use crate::client_metadata;
use crate::connections::Connections;
use crate::context::ResourceCache;
use crate::elicitations::{ElicitationClients, Elicitations};
use crate::hub::{ActiveAgents, HubElicitor, HubSampler};
use crate::lent::Lent;
use crate::manage::Logins;
use crate::methods;
use crate::metrics::ServedMetrics;
use crate::question_subjects::QuestionSubjects;
use crate::questions::Questions;
use crate::runs::Runs;
use crate::sampling::{AgentModels, SamplingState};
use crate::setup::{GatewaySetup, Prepare, StartError};
use crate::socket::{Caller, CallerService, Endpoint, HelloInfo, MetricsAccess};
use crate::store::StoreOnUse;

/// Configuration, servers, agents and sessions, behind the methods of the protocol.
pub struct Gateway {
    pub(crate) version: String,
    pub(crate) started: Instant,
    pub(crate) config_file: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) load: Arc<dyn Fn() -> Loaded + Send + Sync>,
    /// Why the configuration on disk is not the active one.
    pub(crate) rejected: ArcSwap<Vec<Issue>>,
    /// Serializes configuration changes.
    pub(crate) changing: Mutex<()>,
    pub(crate) active: ArcSwap<ActiveConfig>,
    pub(crate) host_context: HostContext,
    /// For tasks that outlive a call.
    pub(crate) this: Weak<Self>,
    pub(crate) fleet: Arc<Fleet>,
    hub: Arc<Hub>,
    hub_http: Arc<HubHttp>,
    /// Set if it listens.
    pub(crate) served_metrics: OnceLock<ServedMetrics>,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) callers: Arc<Callers>,
    pub(crate) runs: Runs,
    pub(crate) questions: Questions,
    pub(crate) question_subjects: QuestionSubjects,
    pub(crate) elicitations: Arc<Elicitations>,
    pub(crate) sampling: SamplingState,
    pub(crate) lent: Lent,
    pub(crate) connections: Connections,
    pub(crate) logins: Logins,
    pub(crate) context: ResourceCache,
    /// Directory of the servers' logs.
    pub(crate) logs: Option<PathBuf>,
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the gateway stops accepting work.
    pub(crate) ending: CancellationToken,
    /// Cancelled when a client has requested that it stops.
    pub(crate) stop_requested: CancellationToken,
    /// Startup notes for the user.
    pub(crate) notes: Vec<String>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Gateway {
    /// The name of the process for users: what is not stored is kept until it exits.
    pub(crate) fn process_name(&self) -> &'static str {
        if self.is_served() { "the gateway" } else { "openclaw" }
    }

    /// Whether it listens.
    pub(crate) fn is_served(&self) -> bool {
        self.served_metrics.get().is_some()
    }

    /// Where all of a pending question can be read, if other processes can ask this one.
    pub(crate) fn shows_questions(&self) -> Option<String> {
        self.is_served()
            .then(|| "`openclaw approvals show` on the machine of the gateway".to_owned())
    }

    /// Starts the gateway. Servers connect in the background.
    ///
    /// # Errors
    /// Fails if the session store cannot be opened.
    pub async fn start(setup: GatewaySetup) -> Result<Arc<Self>, StartError> {
        let GatewaySetup {
            config,
            config_file,
            load,
            state,
            fleet,
            environment,
            version,
            prepare,
            workspace,
        } = setup;
        let sessions = state.join("sessions.db");
        let (store, note): (Arc<dyn SessionStore>, _) = match prepare {
            Prepare::AtStart => {
                let opened = SqliteStore::open(sessions).await?;
                (Arc::new(opened.store), opened.note)
            }
            Prepare::OnUse => (Arc::new(StoreOnUse::new(sessions)), None),
        };
        let host_context = HostContext {
            resolver: fleet.context.resolver.clone(),
            environment,
            state: state.clone(),
            workspace,
            native_approvals: native::Approvals::in_file(state.join("approvals.json")),
            guard: fleet.context.guard.clone(),
            metrics: fleet.services.metrics.clone(),
        };
        let logs = fleet.folders.logs.clone();
        let workspace = Some(host_context.default_workspace());
        let (callers, elicitations) = (Arc::<Callers>::default(), Arc::<Elicitations>::default());
        let mut fleet = fleet;
        let asks = Arc::<Asks>::default();
        fleet.context.host.workspace = workspace;
        fleet.context.host.downstream = Some(Arc::clone(&asks) as _);
        // Declared in the handshake with a server, before any client is connected: servers list other
        // tools for clients without it. If no user can answer, it is declined (T11).
        let next = ElicitationClients {
            callers: Arc::clone(&callers),
            waiting: Arc::clone(&elicitations),
        };
        let elicitor = HubElicitor { asks: Arc::clone(&asks), next };
        fleet.context.host.elicitor = Some(Arc::new(elicitor));
        let sampling = SamplingState::new(fleet.services.audit.clone());
        let gateway = Arc::new_cyclic(|this: &Weak<Self>| {
            let (gateway, next) = (this.clone(), AgentModels(this.clone()));
            let sampler = HubSampler { asks: Arc::clone(&asks), gateway, next };
            fleet.context.host.sampler = Some(Arc::new(sampler));
            let fleet = Fleet::start(&config, fleet);
            let agents = Arc::new(ActiveAgents(this.clone()));
            let hub = Hub::new(Arc::clone(&fleet), agents, asks);
            Self {
                version,
                started: Instant::now(),
                config_file,
                state,
                load,
                rejected: ArcSwap::default(),
                changing: Mutex::new(()),
                active: ArcSwap::from_pointee(ActiveConfig::new(
                    config,
                    &fleet,
                    &host_context,
                    this,
                )),
                this: this.clone(),
                host_context,
                hub_http: Arc::new(HubHttp::new(Arc::clone(&hub))),
                served_metrics: OnceLock::new(),
                hub,
                fleet,
                store,
                callers,
                runs: Runs::default(),
                questions: Questions::default(),
                question_subjects: QuestionSubjects::default(),
                elicitations,
                sampling,
                lent: Lent::default(),
                connections: Connections::default(),
                logins: Logins::default(),
                context: ResourceCache::default(),
                logs,
                tasks: TaskTracker::new(),
                ending: CancellationToken::new(),
                stop_requested: CancellationToken::new(),
                notes: note.into_iter().collect(),
            }
        });
        if prepare == Prepare::AtStart {
            gateway.active.load().set_up();
        }
        gateway.watch_servers();
        Ok(gateway)
    }

    /// Returns a caller's end of the gateway. Dropping it unregisters the caller and its tools.
    pub fn caller(self: &Arc<Self>, caller: Caller) -> Arc<dyn Surface> {
        Arc::new(CallerSurface::new(Arc::clone(self), caller))
    }

    /// Waits until a client has requested that the gateway stops.
    pub async fn stop_requested(&self) {
        self.stop_requested.cancelled().await;
    }

    /// Waits up to `grace` for running work, then terminates everything (L5).
    pub async fn stop(&self, grace: Duration) {
        self.wind_down(grace).await;
        self.end().await;
    }

    /// Stops accepting work, and waits up to `grace` for running turns.
    pub(crate) async fn wind_down(&self, grace: Duration) {
        self.ending.cancel();
        let drained = tokio::time::timeout(grace, self.runs.drained()).await;
        if drained.is_err() {
            tracing::info!("grace period is over; cancelling running turns");
            self.runs.cancel_all();
            let _ = tokio::time::timeout(Duration::from_secs(5), self.runs.drained()).await;
        }
    }

    /// Stops the servers and waits briefly for background tasks.
    pub(crate) async fn end(&self) {
        self.tasks.close();
        self.fleet.stop().await;
        let _ = tokio::time::timeout(Duration::from_secs(1), self.tasks.wait()).await;
    }

    /// The active configuration.
    pub fn config(&self) -> Arc<ActiveConfig> {
        self.active.load_full()
    }

    /// The state folder.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Resolves secrets.
    pub fn resolver(&self) -> &Resolver {
        &self.host_context.resolver
    }

    /// The MCP servers.
    pub fn fleet(&self) -> &Arc<Fleet> {
        &self.fleet
    }

    /// The MCP servers of the agents, for other programs.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Startup notes for the user.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Forwards server state changes to the callers.
    fn watch_servers(self: &Arc<Self>) {
        let (gateway, mut events) = (Arc::downgrade(self), self.fleet.events());
        let ending = self.ending.clone();
        self.tasks.spawn(async move {
            loop {
                let change = tokio::select! {
                    () = ending.cancelled() => return,
                    change = events.recv() => change,
                };
                let change = match change {
                    Ok(change) => change,
                    Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => continue,
                    Err(tokio::sync::broadcast::error::RecvError::Closed) => return,
                };
                let Some(gateway) = gateway.upgrade() else { return };
                let event = ServerEvent {
                    agent_id: None,
                    name: change.server.to_string(),
                    state: change.state.name().to_owned(),
                    error: change.reason,
                };
                gateway.callers.tell_all(names::MCP_SERVER, &event);
            }
        });
    }

    pub(crate) fn health(&self) -> Health {
        Health {
            ok: Some(true),
            ts: Some(now_ms()),
            duration_ms: Some(0),
            default_agent_id: Some(self.active.load().default_agent().to_owned()),
            config_reload: None,
        }
    }
}

impl CallerService for Arc<Gateway> {
    fn open(&self, caller: Caller) -> Result<Arc<dyn Endpoint>, ErrorShape> {
        if self.ending.is_cancelled() {
            let error = ErrorShape::unavailable("the gateway is stopping");
            return Err(error.with_detail(detail::STOPPING));
        }
        Ok(Arc::new(CallerSurface::new(Arc::clone(self), caller)))
    }

    fn hello(&self, _: &Caller) -> HelloInfo {
        let active = self.active.load();
        let agent = active.default_agent();
        HelloInfo {
            version: self.version.clone(),
            methods: methods::names().map(ToOwned::to_owned).collect(),
            events: names::ALL.iter().map(|name| (*name).to_owned()).collect(),
            capabilities: Vec::new(),
            snapshot: Snapshot {
                health: self.health(),
                uptime_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
                config_path: self.config_file.to_str().map(ToOwned::to_owned),
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
        let active = self.active.load();
        let public = active.config.gateway.public_url.as_ref()?;
        Some(client_metadata::document(&client_metadata::url(public.expose())?))
    }

    fn hub(&self) -> Option<(Arc<Hub>, Arc<HubHttp>)> {
        Some((Arc::clone(&self.hub), Arc::clone(&self.hub_http)))
    }

    fn metrics_access(&self) -> Option<Arc<MetricsAccess>> {
        self.served_metrics.get()?.access()
    }

    fn metrics(&self, format: Format) -> Option<String> {
        self.exposition(format)
    }

    fn control_ui(&self) -> Option<PathBuf> {
        self.active.load().config.gateway.control_ui.clone()
    }

    fn allowed_origins(&self) -> Vec<String> {
        let active = self.active.load();
        let gateway = &active.config.gateway;
        let public = gateway.public_url.as_ref();
        let public = public.map(|url| url.expose().origin().ascii_serialization());
        gateway.allowed_origins.iter().cloned().chain(public).collect()
    }
}

/// Milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

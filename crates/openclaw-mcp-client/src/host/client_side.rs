//! Our side of the protocol, for one server.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use openclaw_config::{LogLevel, RootsSetting};
use rmcp::model::{ClientConfig, ProtocolVersion};
use tokio::sync::watch;
use tokio::time::Instant;
use url::Url;

use super::calls::{CallsInProgress, ServerCalls};
use super::handler::LogLimit;
use super::{Host, Users};
use crate::wire::{CallError, FastLane, Thinking, WeakLane, WorkId};

/// How often a server reported a change of each list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Changes of the tools.
    pub tools: u64,
    /// Changes of the resources.
    pub resources: u64,
    /// Changes of the prompts.
    pub prompts: u64,
}

impl Changes {
    /// Counts a change of every list.
    pub(crate) fn count_all(&mut self) {
        self.tools += 1;
        self.resources += 1;
        self.prompts += 1;
    }

    /// Returns the changes since an earlier count.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            tools: self.tools - earlier.tools,
            resources: self.resources - earlier.resources,
            prompts: self.prompts - earlier.prompts,
        }
    }
}

/// Our side of the protocol, for one server. Clones share their state.
#[derive(Debug, Clone)]
pub struct ClientSide {
    pub(super) config: ClientConfig,
    /// The agents that use the server.
    pub(super) users: Users,
    /// Whether sampling is declared.
    offers_sampling: bool,
    /// The folder of these agents, if the server may know it.
    pub(super) roots: Vec<Url>,
    log_level: Option<LogLevel>,
    pub(super) shared: Arc<Shared>,
}

/// What the clones share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) server: String,
    pub(super) host: Host,
    /// The calls in progress; only tracked if there is a user or a sampler.
    pub(super) work: ServerCalls,
    /// The connection to the server, once there is one.
    lane: OnceLock<WeakLane>,
    changes: watch::Sender<Changes>,
    pub(super) logs: LogLimit,
    /// The watched resources, with the number of changes.
    updates: Mutex<BTreeMap<String, Followed>>,
}

/// A watched resource.
#[derive(Debug, Clone, Copy, Default)]
struct Followed {
    changes: u64,
    /// Whether the server currently reports its changes.
    is_reported: bool,
}

impl ClientSide {
    /// Creates our side for a server; neither sampling nor roots are declared to it.
    pub fn new(server: &str, host: Host) -> Self {
        let server = server.to_owned();
        let config = host.config(false, false);
        let changes = watch::Sender::new(Changes::default());
        let work = ServerCalls::default();
        let lane = OnceLock::new();
        let updates = Mutex::default();
        let logs = LogLimit::default();
        let shared = Arc::new(Shared { server, host, work, lane, changes, logs, updates });
        let offers_sampling = false;
        let roots = Vec::new();
        let log_level = None;
        Self { config, users: Users::default(), offers_sampling, roots, log_level, shared }
    }

    /// Sets whether sampling is declared to the server.
    #[must_use]
    pub fn with_sampling(mut self, is_offered: bool) -> Self {
        self.offers_sampling = is_offered;
        self.declared()
    }

    /// Sets what the server learns about the agents' folder.
    #[must_use]
    pub fn with_roots(mut self, roots: &RootsSetting) -> Self {
        let workspace = self.shared.host.workspace.as_ref();
        let folders = match roots {
            RootsSetting::Hidden => &[],
            RootsSetting::Workspace(own) => {
                own.as_ref().or(workspace).map_or(&[][..], slice::from_ref)
            }
            RootsSetting::Folders(folders) => folders,
        };
        let urls = folders.iter().filter_map(|folder| Url::from_directory_path(folder).ok());
        self.roots = urls.collect();
        self.declared()
    }

    /// Sets the agents that use the server.
    #[must_use]
    pub fn with_users(self, users: Users) -> Self {
        Self { users, ..self }
    }

    /// Sets the level of the server's log messages.
    #[must_use]
    pub fn with_log_level(self, log_level: Option<LogLevel>) -> Self {
        Self { log_level, ..self }
    }

    /// The level of the server's log messages.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.log_level
    }

    /// The name of the server.
    pub(crate) fn server(&self) -> &str {
        &self.shared.server
    }

    fn declared(mut self) -> Self {
        self.config = self.shared.host.config(self.offers_sampling, !self.roots.is_empty());
        self
    }

    /// Returns the client configuration that is sent to the server.
    pub fn config(&self) -> &ClientConfig {
        &self.config
    }

    /// Returns a receiver of list changes.
    pub fn changes(&self) -> watch::Receiver<Changes> {
        self.shared.changes.subscribe()
    }

    /// Returns a client that offers `version` in the handshake.
    pub(crate) fn offering(&self, version: ProtocolVersion) -> Self {
        let mut config = self.config.clone();
        // Older versions do not support tools in sampling.
        if let (Some(sampling), true) =
            (&mut config.capabilities.sampling, version < ProtocolVersion::V_2025_11_25)
        {
            sampling.tools = None;
        }
        let config = config.with_protocol_version(version);
        Self { config, ..self.clone() }
    }

    /// Counts changes of the lists.
    pub fn changed(&self, note: impl FnOnce(&mut Changes)) {
        self.shared.changes.send_modify(note);
    }

    /// Records that the server reports changes of these resources. Counts as a change of each: one
    /// may have happened before the subscription.
    pub(crate) fn follow(&self, resources: impl IntoIterator<Item = String>) {
        for uri in resources {
            if let Some(downstream) = &self.shared.host.downstream {
                downstream.updated(&self.shared.server, &uri);
            }
            let mut updates = self.updates();
            let followed = updates.entry(uri).or_default();
            followed.changes += 1;
            followed.is_reported = true;
        }
    }

    /// Forgets the resources that are no longer watched.
    pub(crate) fn forget_others(&self, watched: &BTreeSet<String>) {
        self.updates().retain(|uri, _| watched.contains(uri));
    }

    /// Records a change of a resource. Unwatched resources are ignored: a server could report any
    /// number.
    pub(crate) fn updated(&self, uri: &str) {
        match self.updates().get_mut(uri) {
            Some(followed) => followed.changes += 1,
            None => return,
        }
        if let Some(downstream) = &self.shared.host.downstream {
            downstream.updated(&self.shared.server, uri);
        }
    }

    /// Returns how often a resource has changed; `None` if the server does not report it.
    pub(crate) fn changes_of(&self, uri: &str) -> Option<u64> {
        self.updates().get(uri).filter(|it| it.is_reported).map(|it| it.changes)
    }

    /// Records that changes are no longer reported, and that some may have been missed.
    pub(crate) fn follow_nothing(&self) {
        self.updates().values_mut().for_each(|followed| followed.is_reported = false);
    }

    fn updates(&self) -> MutexGuard<'_, BTreeMap<String, Followed>> {
        self.shared.updates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the connection to the server.
    pub(crate) fn speaks_over(&self, lane: &FastLane) {
        // A client is for one connection.
        let _ = self.shared.lane.set(lane.downgrade());
    }

    /// Registers a call of an agent, in a session or without one, until the guard is dropped.
    pub fn working_for(&self, agent: &str, session: Option<&str>) -> Option<CallGuard> {
        let call = self.begin_work(agent, session)?;
        Some(CallGuard { shared: Arc::clone(&self.shared), call, is_abandoned: true })
    }

    /// Like [`working_for`](Self::working_for), until [`Self::end_work`].
    pub fn begin_work(&self, agent: &str, session: Option<&str>) -> Option<WorkId> {
        let Host { elicitor, sampler, downstream, .. } = &self.shared.host;
        if elicitor.is_none() && sampler.is_none() && downstream.is_none() {
            return None;
        }
        Some(self.shared.work.begin(agent, session))
    }

    /// Ends the work on a call that the server has responded to.
    pub fn end_work(&self, call: WorkId) {
        self.shared.work.end(call);
    }

    /// Ends a call without a response of the server, which may still process it.
    pub fn abandon_work(&self, call: WorkId) {
        self.shared.abandon(call);
    }

    /// Suspends the time limits of calls until the returned value is dropped.
    pub(super) fn thinking(&self) -> Option<Thinking> {
        let lane = self.shared.lane.get().and_then(WeakLane::upgrade);
        lane.map(|lane| lane.thinking())
    }
}

impl Shared {
    /// The calls in progress that a request of the server may belong to.
    pub(super) fn calls_about(&self, work: Option<WorkId>) -> CallsInProgress {
        self.settle();
        self.work.about(work, Instant::now())
    }

    fn abandon(&self, call: WorkId) {
        self.work.abandon(call, Instant::now());
        self.settle();
    }

    /// Forgets the abandoned calls that the server has responded to since.
    fn settle(&self) {
        if self.work.has_abandoned()
            && let Some(lane) = self.lane.get().and_then(WeakLane::upgrade)
        {
            self.work.settle(&lane.late_responses());
        }
    }
}

impl CallGuard {
    /// The number of the call.
    pub fn id(&self) -> WorkId {
        self.call
    }

    /// Ends a call that the server has responded to, or that has failed with this error.
    pub fn end(guard: Option<Self>, error: Option<&CallError>) {
        if let Some(mut guard) = guard {
            guard.is_abandoned = error.is_some_and(|error| !error.ends_work());
        }
    }
}

/// Registers a call as in progress until it is dropped. The server may still process a call that was not
/// [ended](Self::end).
#[derive(Debug)]
pub struct CallGuard {
    shared: Arc<Shared>,
    call: WorkId,
    is_abandoned: bool,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        match self.is_abandoned {
            true => self.shared.abandon(self.call),
            false => self.shared.work.end(self.call),
        }
    }
}

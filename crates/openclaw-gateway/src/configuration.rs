//! Loads the configuration again (C9). An invalid file is rejected, and so is one that was deleted or
//! emptied; the old configuration stays active.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use openclaw_config::{
    AgentId, Config, ConfigChanges, FileContent, Loaded, ReadFile, Report, ServerChange, Severity,
    Watcher,
};
use openclaw_protocol::config::{Issue, ReloadResult};
use openclaw_protocol::mcp::ReloadResult as ServersReloaded;
use openclaw_secrets::Resolver;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::agents::Agents;
use crate::metrics::ServedMetrics;
use crate::resource_cache::ResourceCache;
use crate::socket::MetricsAccess;

/// The configuration, from its file.
pub(crate) struct Configuration {
    file: PathBuf,
    load: Loader,
    agents: Arc<Agents>,
    resources: Arc<ResourceCache>,
    /// Set if the gateway listens.
    served_metrics: Option<ServedMetrics>,
    resolver: Resolver,
    /// Why the configuration on disk is not the active one.
    rejected: ArcSwap<Vec<Issue>>,
    /// Serializes configuration changes.
    changing: Mutex<()>,
}

/// Loads the configuration again.
pub(crate) type Loader = Arc<dyn Fn() -> Loaded + Send + Sync>;

impl Configuration {
    pub(crate) fn new(
        (file, load): (PathBuf, Loader),
        agents: Arc<Agents>,
        resources: Arc<ResourceCache>,
        resolver: Resolver,
        served_metrics: Option<ServedMetrics>,
    ) -> Self {
        let rejected = ArcSwap::default();
        let changing = Mutex::default();
        Self { file, load, agents, resources, served_metrics, resolver, rejected, changing }
    }

    /// The file that is read.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Why the configuration on disk is not the active one.
    pub(crate) fn issues(&self) -> Vec<Issue> {
        self.rejected.load().to_vec()
    }

    /// Who may read `/metrics`; `None` if it is not served.
    pub(crate) fn metrics_access(&self) -> Option<Arc<MetricsAccess>> {
        self.served_metrics.as_ref()?.access()
    }

    /// Reloads the configuration. Only what has changed is affected.
    pub(crate) async fn reload(&self) -> ReloadResult {
        match self.take_over().await.0 {
            Ok(changes) => ReloadResult { ok: true, changed: changes.keys(), issues: Vec::new() },
            Err(issues) => ReloadResult { ok: false, changed: Vec::new(), issues },
        }
    }

    /// Like [`reload`](Self::reload), but returns what changed for an agent's servers.
    pub(crate) async fn reload_servers(&self, agent: &AgentId) -> ServersReloaded {
        let (changes, issues) = match self.take_over().await.0 {
            Ok(changes) => (Some(changes), Vec::new()),
            Err(issues) => (None, issues),
        };
        let servers = changes.as_ref().and_then(|all| all.agents.get(agent));
        let those = |wanted: ServerChange| -> Vec<String> {
            let servers = servers.into_iter().flat_map(|agent| &agent.servers);
            servers.filter(|(_, it)| **it == wanted).map(|(name, _)| name.to_string()).collect()
        };
        ServersReloaded {
            ok: changes.is_some(),
            added: those(ServerChange::Added),
            removed: those(ServerChange::Removed),
            restarted: those(ServerChange::Restarted),
            updated: those(ServerChange::Updated),
            issues,
        }
    }

    /// Applies the configuration. Returns the changes or the issues, and the files as they were
    /// read, to detect later changes.
    async fn take_over(&self) -> (Result<ConfigChanges, Vec<Issue>>, Option<Vec<ReadFile>>) {
        let _changing = self.changing.lock().await;
        let (applied, files) = self.apply().await;
        let issues = applied.as_ref().err().cloned().unwrap_or_default();
        let is_repaired = issues.is_empty() && !self.rejected.load().is_empty();
        self.rejected.store(Arc::new(issues));
        if is_repaired {
            tracing::info!("the configuration is valid again");
        }
        (applied, files)
    }

    async fn apply(&self) -> (Result<ConfigChanges, Vec<Issue>>, Option<Vec<ReadFile>>) {
        let load = Arc::clone(&self.load);
        let Ok(loaded) = tokio::task::spawn_blocking(move || load()).await else {
            let message = "cannot read the configuration".to_owned();
            return (Err(vec![Issue { path: String::new(), message }]), None);
        };
        let files = Some(loaded.files);
        let Some(config) = loaded.config else { return (Err(refused(&loaded.report)), files) };
        let active = self.agents.active();
        let wanted = active.config.diff(&config);
        if wanted.is_empty() {
            return (Ok(wanted), files);
        }
        let lost = lost(&active.config, &config);
        if !lost.is_empty() {
            return (Err(lost), files);
        }
        let served_metrics = match self.newer_metrics(&config, &wanted).await {
            Ok(newer) => newer,
            Err(issue) => return (Err(vec![issue]), files),
        };
        for cause in wanted.needs_restart() {
            tracing::warn!("`{}` has changed; restart the gateway to apply it", cause.key());
        }
        let counts = config.metrics.counts();
        let config = Arc::new(config);
        let active = self.agents.prepare(Arc::clone(&config));
        // No await in between: from here on, no call starts under the old rules. The changes are
        // those the fleet made, which knows servers connected at run time.
        let changes = self.agents.servers().configure(config);
        self.agents.replace(active);
        if let Some((served, newer)) = &served_metrics {
            served.replace(newer);
            self.agents.fleet().metrics().switch(counts);
        }
        self.agents.fleet().learn();
        self.resources.forget();
        let changed = changes.keys().join(", ");
        tracing::info!(changed, "configuration reloaded");
        (Ok(changes), files)
    }

    /// Reads the settings of metrics, if they have changed and the gateway listens.
    async fn newer_metrics(
        &self,
        config: &Config,
        wanted: &ConfigChanges,
    ) -> Result<Option<(&ServedMetrics, ServedMetrics)>, Issue> {
        let Some(served) = self.served_metrics.as_ref().filter(|_| wanted.metrics) else {
            return Ok(None);
        };
        let newer = served.newer(&config.metrics, &self.resolver).await;
        let newer = newer.map_err(|error| {
            tracing::warn!("configuration rejected: {error}");
            Issue { path: "metrics.token".to_owned(), message: error.to_string() }
        })?;
        Ok(Some((served, newer)))
    }

    /// Applies every saved change of the configuration until `ending` is cancelled.
    pub(crate) async fn watch(&self, ending: CancellationToken) {
        // It may have changed since startup.
        let (_, Some(files)) = self.take_over().await else { return };
        let mut watcher = match Watcher::new(files) {
            Ok(watcher) => watcher,
            Err(error) => {
                tracing::warn!(%error, "cannot watch the configuration for changes");
                return;
            }
        };
        loop {
            let mut changed = tokio::select! {
                () = ending.cancelled() => return,
                changed = watcher.changed() => changed.map(|_| ()),
            };
            // Compare with the files that were applied: reading them once more would miss a
            // change in between.
            if let (true, (_, Some(files))) = (changed.is_ok(), self.take_over().await) {
                changed = watcher.watch(files);
            }
            if let Err(error) = changed {
                tracing::warn!(%error, "stopped watching the configuration for changes");
                return;
            }
        }
    }
}

/// Files that had content and are empty or missing now. A file that is deleted or being written
/// does not mean that all of its rules are void.
fn lost(old: &Config, new: &Config) -> Vec<Issue> {
    let is_lost = |(file, now): &(&PathBuf, &FileContent)| {
        **now == FileContent::Nothing && old.contents.get(*file) == Some(&FileContent::Something)
    };
    let lost = new.contents.iter().filter(is_lost).map(|(file, _)| {
        let what = if file.exists() { "is now empty" } else { "was deleted" };
        let name = file.file_name().unwrap_or(file.as_os_str()).display();
        let message = format!("{name} {what}; to reset everything to defaults, write `{{}}` to it");
        tracing::warn!(file = %file.display(), "configuration rejected: {message}");
        Issue { path: String::new(), message }
    });
    lost.collect()
}

/// The errors of a configuration.
fn refused(report: &Report) -> Vec<Issue> {
    let errors = report.diagnostics().iter().filter(|it| it.severity() == Severity::Error);
    let issues = errors.map(|it| {
        let place = report.location(it).map(tracing::field::display);
        let key = it.key_path().map(tracing::field::display);
        tracing::error!(at = place, key, "configuration rejected: {}", it.message());
        let path = it.key_path().unwrap_or_default().to_owned();
        Issue { path, message: it.message().to_owned() }
    });
    issues.collect()
}

//! Putting a changed configuration in force (C9): a bad file is refused, and the old one stays.

use std::sync::Arc;

use openclaw_config::{Severity, Watcher};
use openclaw_protocol::config::{Issue, ReloadResult};

use crate::agents::InForce;
use crate::gateway::Gateway;

impl Gateway {
    /// Reads the configuration again. Only what has changed is touched.
    pub async fn reload(&self) -> ReloadResult {
        let _changing = self.changing.lock().await;
        let load = Arc::clone(&self.load);
        let loaded = tokio::task::spawn_blocking(move || load()).await;
        let refused = |issues: Vec<Issue>| ReloadResult { ok: false, changed: Vec::new(), issues };
        let Ok(loaded) = loaded else {
            let message = "the configuration cannot be read".to_owned();
            return refused(vec![Issue { path: String::new(), message }]);
        };
        let Some(config) = loaded.config else {
            let issues: Vec<Issue> = loaded
                .report
                .diagnostics()
                .iter()
                .filter(|it| it.severity() == Severity::Error)
                .map(|it| Issue {
                    path: it.key_path().unwrap_or_default().to_owned(),
                    message: it.message().to_owned(),
                })
                .collect();
            for issue in &issues {
                tracing::error!(key = %issue.path, "the configuration is refused: {}", issue.message);
            }
            return refused(issues);
        };
        let changes = self.in_force.load().config.diff(&config);
        if changes.is_empty() {
            return ReloadResult { ok: true, changed: Vec::new(), issues: Vec::new() };
        }
        for cause in changes.needs_restart() {
            tracing::warn!("`{}` has changed: that takes a restart of the gateway", cause.key());
        }
        self.fleet.apply(&config).await;
        self.fleet.learn();
        self.in_force.store(Arc::new(InForce::new(config, &self.fleet, &self.ground)));
        let changed = changes.keys();
        tracing::info!(changed = changed.join(", "), "a changed configuration is in force");
        ReloadResult { ok: true, changed, issues: Vec::new() }
    }

    /// Puts every saved change of the configuration in force, until the gateway ends.
    pub fn watch_config(self: &Arc<Self>) {
        let gateway = Arc::clone(self);
        self.tasks.spawn(async move {
            let load = Arc::clone(&gateway.load);
            let Ok(loaded) = tokio::task::spawn_blocking(move || load()).await else { return };
            let mut watcher = match Watcher::new(loaded.files) {
                Ok(watcher) => watcher,
                Err(error) => {
                    tracing::warn!(%error, "changes of the configuration are not noticed");
                    return;
                }
            };
            loop {
                let changed = tokio::select! {
                    () = gateway.ending.cancelled() => return,
                    changed = watcher.changed() => changed,
                };
                if let Err(error) = changed {
                    tracing::warn!(%error, "changes of the configuration are no longer noticed");
                    return;
                }
                gateway.reload().await;
                let load = Arc::clone(&gateway.load);
                if let Ok(loaded) = tokio::task::spawn_blocking(move || load()).await
                    && let Err(error) = watcher.watch(loaded.files)
                {
                    tracing::warn!(%error, "changes of the configuration are no longer noticed");
                    return;
                }
            }
        });
    }
}

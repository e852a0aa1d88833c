//! What the gateway knows about the agent's tools.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use openclaw_protocol::rpc;
use openclaw_protocol::tools::{CatalogParams, Risk};

use crate::gateway::GatewaySession;

const ANSWER: Duration = Duration::from_secs(10);

/// The side effects of the agent's tools, by name.
pub(crate) struct ToolCatalog {
    gateway: Arc<GatewaySession>,
    /// `None` before they are known.
    risks: Mutex<Option<BTreeMap<String, Risk>>>,
}

impl ToolCatalog {
    pub(crate) fn new(gateway: Arc<GatewaySession>) -> Self {
        Self { gateway, risks: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<BTreeMap<String, Risk>>> {
        self.risks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_known(&self) -> bool {
        self.lock().is_some()
    }

    pub(crate) fn risk(&self, tool: &str) -> Option<Risk> {
        self.lock().as_ref()?.get(tool).copied()
    }

    /// Fetches the catalog. Returns the labels of the tools, by name.
    pub(crate) async fn fetch(&self) -> BTreeMap<String, String> {
        let params = CatalogParams {
            agent_id: Some(self.gateway.agent.clone()),
            include_plugins: Some(true),
        };
        let catalog = self.gateway.ask_within::<rpc::ToolsCatalog>(ANSWER, params).await;
        let Ok(catalog) = catalog else { return BTreeMap::new() };
        let mut risks = BTreeMap::new();
        let mut labels = BTreeMap::new();
        for tool in catalog.groups.into_iter().flat_map(|group| group.tools) {
            risks.extend(tool.risk.map(|risk| (tool.id.clone(), risk)));
            labels.insert(tool.id, tool.label);
        }
        *self.lock() = Some(risks);
        labels
    }
}

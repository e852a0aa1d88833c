//! The clients without a session, since 2026-07-28. Requests of one principal with the same options
//! share a client, which keeps its lists and its rate limit; nothing that a request says is kept in it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use openclaw_protocol::Principal;
use tokio::time::Instant;

use super::super::client::HubClient;
use super::super::options::HubClientOptions;
use super::super::{Hub, HubCaller, HubError};
use super::room::KeepLimits;

/// Maximum number of clients.
const LIMITS: KeepLimits = KeepLimits { total: 64, each: 16 };

/// The clients, by their principals and options.
#[derive(Debug, Default)]
pub(super) struct StatelessClients(Mutex<HashMap<StatelessKey, StatelessClient>>);

type StatelessKey = (Principal, String);

#[derive(Debug)]
struct StatelessClient {
    client: Arc<HubClient>,
    used: Instant,
}

impl StatelessClients {
    /// Returns the client for requests of a caller with these options.
    pub(super) fn client(
        &self,
        hub: &Arc<Hub>,
        caller: &HubCaller,
        options: HubClientOptions,
    ) -> Result<Arc<HubClient>, HubError> {
        let key = (caller.principal.clone(), options.query());
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let used = Instant::now();
        // The agent of a kept client may have been removed, or become known.
        if let Some(found) = kept.get_mut(&key).filter(|it| it.client.agent().is_some()) {
            found.used = used;
            return Ok(Arc::clone(&found.client));
        }
        let client = hub.shared_client(caller.clone(), options)?;
        kept.remove(&key);
        let all = kept.iter().map(|(key, it)| (key, &key.0, it.used));
        if let Some(displaced) = LIMITS.displaced(&caller.principal, all).cloned() {
            kept.remove(&displaced);
        }
        kept.insert(key, StatelessClient { client: Arc::clone(&client), used });
        Ok(client)
    }

    /// Removes the clients of these principals.
    pub(super) fn remove(&self, mut is_meant: impl FnMut(&Principal) -> bool) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(principal, _), _| !is_meant(principal));
    }
}

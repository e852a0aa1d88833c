//! The level from which on a server sends log messages (T13).

use std::collections::BTreeMap;
use std::time::Duration;

use openclaw_config::LogLevel;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};

use super::{Connection, DeclaredCapabilities};
use crate::connection::era::Era;
use crate::wire::TimeLimits;

/// Timeout of `logging/setLevel`.
const SETS_LEVEL: Duration = Duration::from_secs(5);
/// The member of `_meta` that replaces `logging/setLevel` since 2026-07-28.
pub(super) const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

/// Adds the level to the `_meta` of every request, for servers since 2026-07-28 that log.
pub(super) fn request(
    meta: &mut Map<String, Value>,
    level: Option<LogLevel>,
    offers: DeclaredCapabilities,
) {
    if let Some(level) = level.filter(|_| offers.logging) {
        meta.insert(LEVEL_KEY.to_owned(), Value::from(level.as_str()));
    }
}

impl Connection {
    /// Sets the level of the server's log messages, unless it is set already. Without a level, the
    /// server decides. Since 2026-07-28 the level is part of every request and cannot be changed.
    ///
    /// A server that rejects the request logs at its own level; the connection stays open.
    pub async fn set_log_level(&self, level: Option<LogLevel>) {
        let Some(level) = level.filter(|_| self.era == Era::Legacy && self.about.offers.logging)
        else {
            return;
        };
        let mut known = self.log_level.lock().await;
        if *known == Some(level) {
            return;
        }
        let params = BTreeMap::from([("level", to_raw_value(level.as_str()).unwrap_or_default())]);
        let limits = TimeLimits { timeout: SETS_LEVEL, cap: SETS_LEVEL };
        match self.request("logging/setLevel", params, limits).await {
            Ok(_) => *known = Some(level),
            Err(error) => {
                let server = self.client.server();
                let level = level.as_str();
                tracing::warn!(server, level, %error, "cannot set the log level");
            }
        }
    }
}

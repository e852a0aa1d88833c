//! A connection that is kept until its credentials are rejected.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::{ResolveErrorKind, resolve_error::ProviderFailure};

/// A lazily created connection that all requests share. It is recreated after its credentials were
/// rejected: the user may have logged in again, and should not have to restart the gateway.
pub(super) struct Kept<T> {
    /// Locked while connecting, so that concurrent requests share one connection.
    connection: Mutex<Option<Arc<T>>>,
}

impl<T> Kept<T> {
    pub(super) fn new() -> Self {
        Self { connection: Mutex::new(None) }
    }

    /// Returns the current connection, or a new one.
    pub(super) async fn get(
        &self,
        connect: impl AsyncFnOnce() -> Result<T, ProviderFailure>,
    ) -> Result<Arc<T>, ProviderFailure> {
        let mut kept = self.connection.lock().await;
        if let Some(connection) = &*kept {
            return Ok(connection.clone());
        }
        let connection = Arc::new(connect().await?);
        *kept = Some(connection.clone());
        Ok(connection)
    }

    /// Drops the connection if the credentials failed.
    pub(super) async fn check<V>(&self, result: &Result<V, ProviderFailure>) {
        let refused = [ResolveErrorKind::Denied, ResolveErrorKind::NotConfigured];
        if result.as_ref().is_err_and(|failure| refused.contains(&failure.kind)) {
            *self.connection.lock().await = None;
        }
    }
}

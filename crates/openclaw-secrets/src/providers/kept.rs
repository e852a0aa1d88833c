//! A connection that lasts until its credentials are refused.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::{ResolveErrorKind, resolve_error::Failure};

/// Made when first needed, shared by all requests, and made anew after a refusal: the user may have
/// logged in again meanwhile, and must not have to start the gateway again for it.
pub(super) struct Kept<T> {
    /// Held while connecting, so that requests which come side by side share one connection.
    connection: Mutex<Option<Arc<T>>>,
}

impl<T> Kept<T> {
    pub(super) fn new() -> Self {
        Self { connection: Mutex::new(None) }
    }

    /// The connection at hand, or a new one.
    pub(super) async fn get(
        &self,
        connect: impl AsyncFnOnce() -> Result<T, Failure>,
    ) -> Result<Arc<T>, Failure> {
        let mut kept = self.connection.lock().await;
        if let Some(connection) = &*kept {
            return Ok(connection.clone());
        }
        let connection = Arc::new(connect().await?);
        *kept = Some(connection.clone());
        Ok(connection)
    }

    /// Lets go of the connection if it was the credentials that failed.
    pub(super) async fn check<V>(&self, result: &Result<V, Failure>) {
        let refused = [ResolveErrorKind::Denied, ResolveErrorKind::NotConfigured];
        if result.as_ref().is_err_and(|failure| refused.contains(&failure.kind)) {
            *self.connection.lock().await = None;
        }
    }
}

//! The session at the gateway, over a connection of its own.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::Error;
use openclaw_protocol::chat::AbortParams;
use openclaw_protocol::{RequestError, Rpc, Surface, ask, rpc};
use tokio::time::timeout;

use crate::error::{internal, refused};

/// How long the gateway may take to abort a turn.
const ABORT: Duration = Duration::from_secs(2);

/// A session of the gateway.
pub(crate) struct GatewaySession {
    pub(crate) key: String,
    pub(crate) agent: String,
    pub(crate) surface: Arc<dyn Surface>,
}

impl GatewaySession {
    /// Sends a request.
    ///
    /// # Errors
    /// If the gateway refuses it, or is gone.
    pub(crate) async fn ask<R: Rpc>(&self, params: R::Params) -> Result<R::Result, RequestError> {
        ask::<R>(&*self.surface, params).await
    }

    /// Sends a request, with a timeout.
    ///
    /// # Errors
    /// If the gateway refuses it, or does not respond in time.
    pub(crate) async fn ask_within<R: Rpc>(
        &self,
        limit: Duration,
        params: R::Params,
    ) -> Result<R::Result, Error> {
        let answer = timeout(limit, self.ask::<R>(params)).await;
        let answer = answer.map_err(|_| internal("the gateway did not respond in time"))?;
        answer.map_err(|error| refused(&error))
    }

    /// Asks the gateway to abort a run.
    pub(crate) async fn abort(&self, run: &str) {
        let params = AbortParams {
            session_key: self.key.clone(),
            run_id: Some(run.to_owned()),
            ..AbortParams::default()
        };
        // Its end is reported by an event.
        let _ = self.ask_within::<rpc::ChatAbort>(ABORT, params).await;
    }
}

//! Renews a token, once for all tasks and processes.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use openclaw_metrics::labels::Success;

use crate::error::AuthError;
use crate::grant::Grant;
use crate::jwt;
use crate::refresh::{Binding, ended, ends_grant, renewed};
use crate::settings::GrantType;

use super::{Authorizer, LOCK_PATIENCE};

impl Authorizer {
    /// Renews a grant, once for all tasks and processes that need it.
    ///
    /// The transaction runs in a task of its own: if its caller is cancelled after the request was
    /// sent, the response is still stored; with rotation it has the only valid refresh token. Its
    /// requests have timeouts.
    pub(super) fn renew(&self, stale: &Arc<Grant>) -> BoxFuture<'_, Result<Arc<Grant>, AuthError>> {
        self.renew_as(stale, Binding::Kept)
    }

    /// Like [`renew`](Self::renew), for a token that is no longer bound to a key: the MCP server takes
    /// no others. The authorization server may insist on the key; then a login is necessary, which
    /// does not use one.
    pub(super) fn renew_unbound(
        &self,
        stale: &Arc<Grant>,
    ) -> BoxFuture<'_, Result<Arc<Grant>, AuthError>> {
        self.renew_as(stale, Binding::Dropped)
    }

    fn renew_as(
        &self,
        stale: &Arc<Grant>,
        binding: Binding,
    ) -> BoxFuture<'_, Result<Arc<Grant>, AuthError>> {
        let (this, stale) = (self.clone(), Arc::clone(stale));
        let renewal = tokio::spawn(async move { Box::pin(this.renew_now(&stale, binding)).await });
        let aborted = || Err(AuthError::Store("the refresh was aborted".into()));
        Box::pin(async move { renewal.await.unwrap_or_else(|_| aborted()) })
    }

    /// The transaction of [`store`](crate::store).
    async fn renew_now(&self, stale: &Grant, binding: Binding) -> Result<Arc<Grant>, AuthError> {
        let _one_at_a_time = self.0.renewal.lock().await;
        let is_other = |grant: &Grant| grant.access_token != stale.access_token;
        if let Some(current) = self.0.current.load_full().filter(|current| is_other(current)) {
            return Ok(current);
        }
        let store = &self.0.options.store;
        let lease = store.lock(&self.0.key, LOCK_PATIENCE).await?;
        let (mut grant, was_interrupted) = match store.load(&self.0.key).await? {
            None => {
                self.adopt(None);
                return Err(AuthError::LoginRequired);
            }
            Some(stored) if !self.allows(&stored.grant) => {
                self.adopt(None);
                return Err(AuthError::LoginRequired);
            }
            // Another process was first.
            Some(stored) if is_other(&stored.grant) => {
                let grant = Arc::new(stored.grant);
                self.adopt(Some(Arc::clone(&grant)));
                return Ok(grant);
            }
            Some(stored) => (stored.grant, stored.refreshing_since.is_some()),
        };
        if was_interrupted && let Some(grant) = store.recover(&lease).await? {
            tracing::info!(server = %self.0.key.server, "recovered the token of an interrupted refresh");
            let grant = Arc::new(grant);
            self.adopt(Some(Arc::clone(&grant)));
            return Ok(grant);
        }
        if binding == Binding::Dropped {
            tracing::info!(server = %self.0.key.server, "the server takes no tokens bound to a key");
            grant.bearer_only = true;
            if grant.refresh_token.is_none() {
                store.save(&lease, &grant).await?;
            }
        }
        let Some(refresh_token) = &grant.refresh_token else {
            return match self.0.options.settings.grant {
                GrantType::AuthorizationCode => Err(AuthError::LoginRequired),
                _ => {
                    let obtained = Box::pin(self.obtain_as_machine(&lease, &grant.scopes)).await;
                    self.count_refresh(obtained.is_ok());
                    obtained
                }
            };
        };
        let client = grant.client.clone().with_settings(&self.0.options.settings)?;
        let _in_progress = self.0.options.renewals.begin().await;
        store.mark_refreshing(&lease, jwt::now_signed()).await?;
        let dpop = grant.dpop.as_ref().filter(|_| binding == Binding::Kept);
        let endpoint = self.endpoint(&grant.token_endpoint, &client, &grant.resource, dpop);
        let response = endpoint.refresh(refresh_token, &[]).await;
        self.count_refresh(response.is_ok());
        match response {
            Ok(response) => {
                let renewed = renewed(grant, response);
                store.save(&lease, &renewed).await?;
                tracing::debug!(server = %self.0.key.server, "renewed the token");
                if !self.allows(&renewed) {
                    self.adopt(None);
                    return Err(AuthError::LoginRequired);
                }
                let renewed = Arc::new(renewed);
                self.adopt(Some(Arc::clone(&renewed)));
                Ok(renewed)
            }
            Err(error) if ends_grant(&client, &error, binding) => {
                // It will not be accepted another time: only a login helps.
                tracing::warn!(
                    server = %self.0.key.server, %error, was_interrupted,
                    "the refresh token is no longer valid"
                );
                let ended = ended(grant, &error);
                store.save(&lease, &ended).await?;
                self.adopt(Some(Arc::new(ended)));
                Err(AuthError::LoginRequired)
            }
            Err(error) => Err(error),
        }
    }

    fn count_refresh(&self, is_ok: bool) {
        if let Some(series) = &self.0.options.series {
            series.refreshed(if is_ok { Success::Ok } else { Success::Error });
        }
    }
}

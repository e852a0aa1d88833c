//! Refreshes: a token that expires is replaced, once for all tasks and processes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_metrics::labels::Success;
use tokio::sync::RwLock;
use tokio::time::timeout;

use crate::authorizer::{Authorizer, LOCK_PATIENCE};
use crate::challenge::Scheme;
use crate::client::{ClientIdentity, Registration};
use crate::dpop::DpopKey;
use crate::error::AuthError;
use crate::grant::Grant;
use crate::jwt;
use crate::metadata::Discovery;
use crate::settings::GrantType;
use crate::token::TokenResponse;

/// How long the end of the process waits for refreshes.
const PATIENCE_AT_END: Duration = Duration::from_secs(5);
/// The error code for a client that is unknown, or failed to authenticate.
const INVALID_CLIENT: &str = "invalid_client";

/// Whether a renewed token is bound to the key of the grant, if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binding {
    Kept,
    Dropped,
}

/// The refreshes in progress in this process. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Renewals(Arc<RwLock<()>>);

impl Renewals {
    /// Waits until no request for a new token is in progress, but not for long. Call it before the
    /// process ends: with rotation, the response has the only valid refresh token.
    pub async fn finished(&self) {
        if timeout(PATIENCE_AT_END, self.0.write()).await.is_err() {
            tracing::warn!("a token is still being renewed; a login may be necessary");
        }
    }
}

impl Authorizer {
    /// Renews a grant, once for all tasks and processes that need it.
    ///
    /// The transaction runs in a task of its own: if its caller is cancelled after the request was
    /// sent, the response is still stored; with rotation it has the only valid refresh token. Its
    /// requests have timeouts.
    pub(crate) fn renew(&self, stale: &Arc<Grant>) -> BoxFuture<'_, Result<Arc<Grant>, AuthError>> {
        self.renew_as(stale, Binding::Kept)
    }

    /// Like [`renew`](Self::renew), for a token that is no longer bound to a key: the MCP server takes
    /// no others. The authorization server may insist on the key; then a login is necessary, which
    /// does not use one.
    pub(crate) fn renew_unbound(
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
        let _in_progress = self.0.options.renewals.0.read().await;
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

/// Creates the grant of a first token response.
pub(crate) fn issued(
    discovery: &Discovery,
    client: ClientIdentity,
    dpop: Option<DpopKey>,
    response: TokenResponse,
) -> Grant {
    let requested = discovery.scopes.iter().flatten().cloned().collect();
    let now = jwt::now_signed();
    let server = &discovery.server;
    let grant = Grant {
        issuer: server.issuer.clone(),
        token_endpoint: server.token_endpoint.clone(),
        revocation_endpoint: server.revocation_endpoint.clone(),
        resource: discovery.resource.clone(),
        client,
        scopes: requested,
        access_token: response.access_token.clone(),
        dpop,
        bearer_only: false,
        issued_at: now,
        expires_at: None,
        refresh_token: None,
        logged_in_at: now,
    };
    renewed(grant, response)
}

/// Whether the authorization server no longer knows the refresh token or the client. Other errors,
/// such as a wrong secret in the configuration, can be corrected.
fn ends_grant(client: &ClientIdentity, error: &AuthError, binding: Binding) -> bool {
    let AuthError::Rejected { code, .. } = error else { return false };
    let is_registered_anew = client.registration == Registration::Dynamic;
    // The refresh tokens of public clients are bound, too (RFC 9449, section 5).
    code == "invalid_grant"
        || (code == INVALID_CLIENT && is_registered_anew)
        || binding == Binding::Dropped
}

/// Returns a grant that cannot be renewed. A client that the authorization server does not know is
/// registered again at the next login.
fn ended(mut grant: Grant, error: &AuthError) -> Grant {
    let is_client = matches!(error, AuthError::Rejected { code, .. } if code == INVALID_CLIENT);
    if is_client {
        grant.client.secret_expires_at = Some(0);
    }
    Grant { refresh_token: None, ..grant }
}

/// Returns a grant with the tokens of a response. What the response does not say stays as it is.
fn renewed(grant: Grant, response: TokenResponse) -> Grant {
    let now = jwt::now_signed();
    let lifetime = response.expires_in.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX));
    let is_bound = response.token_type == Scheme::Dpop;
    Grant {
        access_token: response.access_token,
        issued_at: now,
        expires_at: lifetime.map(|seconds| now.saturating_add(seconds)),
        refresh_token: response.refresh_token.or(grant.refresh_token),
        scopes: response.scopes.map_or(grant.scopes, |scopes| scopes.into_iter().collect()),
        dpop: grant.dpop.filter(|_| is_bound),
        client: ClientIdentity { auth: response.client_auth, ..grant.client },
        ..grant
    }
}

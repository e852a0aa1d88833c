//! Refreshes: those that are in progress, and what a response makes of a grant.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{RwLock, RwLockReadGuard};
use tokio::time::timeout;

use crate::challenge::Scheme;
use crate::client::{ClientIdentity, Registration};
use crate::dpop::DpopKey;
use crate::error::AuthError;
use crate::grant::Grant;
use crate::jwt;
use crate::metadata::Discovery;
use crate::token::TokenResponse;

/// How long the end of the process waits for refreshes.
const PATIENCE_AT_END: Duration = Duration::from_secs(5);
/// The error code for a client that is unknown, or failed to authenticate.
const INVALID_CLIENT: &str = "invalid_client";

/// Whether a renewed token is bound to the key of the grant, if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binding {
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

    /// Returns what is held while a request for a new token is in progress.
    pub(crate) async fn begin(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read().await
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
pub(crate) fn ends_grant(client: &ClientIdentity, error: &AuthError, binding: Binding) -> bool {
    let AuthError::Rejected { code, .. } = error else { return false };
    let is_registered_anew = client.registration == Registration::Dynamic;
    // The refresh tokens of public clients are bound, too (RFC 9449, section 5).
    code == "invalid_grant"
        || (code == INVALID_CLIENT && is_registered_anew)
        || binding == Binding::Dropped
}

/// Returns a grant that cannot be renewed. A client that the authorization server does not know is
/// registered again at the next login.
pub(crate) fn ended(mut grant: Grant, error: &AuthError) -> Grant {
    let is_client = matches!(error, AuthError::Rejected { code, .. } if code == INVALID_CLIENT);
    if is_client {
        grant.client.secret_expires_at = Some(0);
    }
    Grant { refresh_token: None, ..grant }
}

/// Returns a grant with the tokens of a response. What the response does not say stays as it is.
pub(crate) fn renewed(grant: Grant, response: TokenResponse) -> Grant {
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

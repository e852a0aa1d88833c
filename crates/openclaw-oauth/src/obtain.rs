//! New grants: by a login, or without a user where the configuration says how.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::authorizer::{Authorizer, LOCK_PATIENCE, SentToken};
use crate::challenge::Scheme;
use crate::client::{self, ClientIdentity};
use crate::dpop::DpopKey;
use crate::error::AuthError;
use crate::grant::Grant;
use crate::http::quoted;
use crate::issuer::{self, IssuerPin};
use crate::metadata::{self, AuthorizationServer, Discovery};
use crate::refresh::issued;
use crate::settings::{DpopUse, GrantType};
use crate::store::GrantLock;
use crate::token::TokenResponse;

impl Authorizer {
    /// Obtains a new grant: without a user where the configuration says how, else by a login.
    pub(crate) async fn obtain(
        &self,
        sent: Option<&SentToken>,
        scopes: &BTreeSet<String>,
    ) -> Result<(), AuthError> {
        let options = &self.0.options;
        let is_other = |grant: &Grant| {
            sent.is_none_or(|sent| sent.0.access_token != grant.access_token)
                && scopes.is_subset(&grant.scopes)
        };
        if !matches!(options.settings.grant, GrantType::AuthorizationCode) {
            let lease = options.store.lock(&self.0.key, LOCK_PATIENCE).await?;
            // Another task or process was first.
            if self.stored().await.ok().flatten().is_some_and(|stored| is_other(&stored)) {
                return Ok(());
            }
            return Box::pin(self.obtain_as_machine(&lease, scopes)).await.map(drop);
        }
        let prompt = options.prompt.as_ref().filter(|_| options.logs_in || !scopes.is_empty());
        let Some(prompt) = prompt else { return Err(AuthError::LoginRequired) };
        let _one_at_a_time = self.0.asking.lock().await;
        // The user has logged in for another request meanwhile.
        if self.0.current.load_full().is_some_and(|current| is_other(&current)) {
            return Ok(());
        }
        self.login(prompt.as_ref(), scopes).await.map(drop)
    }

    /// Obtains a grant for this program itself, which needs no user (O8).
    pub(crate) async fn obtain_as_machine(
        &self,
        lease: &GrantLock,
        scopes: &BTreeSet<String>,
    ) -> Result<Arc<Grant>, AuthError> {
        let options = &self.0.options;
        let pin = self.pinned_issuer().await;
        let discovery = self.discover(&pin).await?.with_scopes(scopes);
        let server = &discovery.server;
        // Before anything is sent there, a registration included.
        if let Err(unconfirmed) = issuer::check(server, &options.settings, &pin) {
            match &options.prompt {
                Some(prompt) if prompt.confirm(&unconfirmed).await => {
                    self.pin_issuer(unconfirmed.proposed).await?;
                }
                _ => return Err(AuthError::Unconfirmed(unconfirmed)),
            }
        }
        let known = options.store.load(&self.0.key).await.ok().flatten();
        let known = known.as_ref().map(|stored| &stored.grant.client);
        let client = client::identify(&options.http, server, &options.settings, "", known).await?;
        let dpop = discovery.dpop.then(DpopKey::generate).transpose()?;
        let endpoint =
            self.endpoint(&server.token_endpoint, &client, &discovery.resource, dpop.as_ref());
        let wanted = discovery.scopes.clone().unwrap_or_default();
        let response = match &options.settings.grant {
            GrantType::ClientCredentials => endpoint.client_credentials(&wanted).await,
            GrantType::JwtBearer { assertion } => endpoint.jwt_bearer(assertion, &wanted).await,
            GrantType::Enterprise(provider) => endpoint.enterprise(provider, &wanted).await,
            GrantType::AuthorizationCode => return Err(AuthError::LoginRequired),
        };
        let response = response.map_err(|error| with_binding(error, server, dpop.as_ref()))?;
        self.keep(lease, &discovery, client, dpop, response).await
    }

    /// Finds the authorization server, of several preferably the pinned one.
    pub(crate) async fn discover(&self, pin: &IssuerPin) -> Result<Discovery, AuthError> {
        let options = &self.0.options;
        let (settings, challenge) = (&options.settings, self.challenge());
        let pinned = pin.issuer();
        let discovering =
            metadata::discover(&options.http, &options.url, challenge.as_ref(), settings, pinned);
        let mut discovery = discovering.await?;
        if settings.dpop == DpopUse::Auto
            && challenge.is_none_or(|challenge| challenge.takes_bearer)
            && self.is_bearer_only().await
        {
            discovery.dpop = false;
        }
        Ok(discovery)
    }

    /// Whether the MCP server has rejected new tokens that were bound to a key.
    async fn is_bearer_only(&self) -> bool {
        let stored = self.0.options.store.load(&self.0.key).await.ok().flatten();
        stored.is_some_and(|stored| stored.grant.bearer_only)
    }

    /// Stores a new grant and uses it. Its authorization server is confirmed by it.
    pub(crate) async fn keep(
        &self,
        lease: &GrantLock,
        discovery: &Discovery,
        client: ClientIdentity,
        dpop: Option<DpopKey>,
        response: TokenResponse,
    ) -> Result<Arc<Grant>, AuthError> {
        let (store, key) = (&self.0.options.store, &self.0.key);
        self.check_binding(&discovery.server, &response)?;
        let bearer_only = dpop.is_none() && self.is_bearer_only().await;
        let grant = Grant { bearer_only, ..issued(discovery, client, dpop, response) };
        let confirmed =
            issuer::confirmed_by(&discovery.server, &grant.client, &self.0.options.settings).into();
        if store.issuer(key).await.ok().flatten().as_ref() != Some(&confirmed) {
            store.save_issuer(key, &confirmed).await?;
        }
        store.save(lease, &grant).await?;
        let grant = Arc::new(grant);
        self.adopt(Some(Arc::clone(&grant)));
        Ok(grant)
    }

    /// Fails if a token must be bound to a key and is not.
    fn check_binding(
        &self,
        server: &AuthorizationServer,
        response: &TokenResponse,
    ) -> Result<(), AuthError> {
        if self.0.options.settings.dpop.allows(response.token_type == Scheme::Dpop) {
            return Ok(());
        }
        let cause = "issues no tokens that are bound to a key, as `auth.dpop` demands".to_owned();
        Err(AuthError::Unsupported { issuer: quoted(&server.issuer), cause })
    }
}

/// Adds to the rejection of a request without a key that the authorization server may insist on one:
/// there is no error code for that.
pub(crate) fn with_binding(
    error: AuthError,
    server: &AuthorizationServer,
    dpop: Option<&DpopKey>,
) -> AuthError {
    let binds = server.dpop_signing_alg_values_supported.as_ref().is_some_and(|it| !it.is_empty());
    match error {
        AuthError::Rejected { .. } if binds && dpop.is_none() => AuthError::Binding {
            cause: format!(
                "{error}; the authorization server may insist on tokens that are bound to a key"
            ),
            remedy: DpopUse::Always,
        },
        error => error,
    }
}

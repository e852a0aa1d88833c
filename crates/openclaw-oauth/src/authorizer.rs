//! Authorizes the requests to one MCP server: sends its token, renews it, and answers challenges.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use openclaw_metrics::ServerSeries;
use openclaw_secrets::Redactor;
use tokio::sync::OnceCell;
use url::Url;

use crate::challenge::{AuthChallenge, Scheme};
use crate::client::ClientIdentity;
use crate::dpop::{DpopKey, PROOF_HEADER};
use crate::error::AuthError;
use crate::grant::{Grant, GrantKey};
use crate::http::{AuthHttpClient, HttpOptions};
use crate::jwt;
use crate::login::LoginPrompt;
use crate::refresh::Renewals;
use crate::server_hints::ServerHints;
use crate::settings::{AuthSettings, DpopUse};
use crate::store::{GrantStore, KeyPlace, Version};
use crate::token::TokenEndpoint;

/// How long to wait for another process that refreshes the same grant: longer than its requests may
/// take.
pub(crate) const LOCK_PATIENCE: Duration = Duration::from_secs(45);
/// How often a request may lead to a login with more scopes (O6).
const MAX_STEP_UPS: u8 = 2;

/// Authorizes the requests to one MCP server. Clones share its state.
#[derive(Clone)]
pub struct Authorizer(pub(crate) Arc<Inner>);

/// What an [`Authorizer`] needs.
pub struct AuthorizerOptions {
    /// The name of the server in the configuration.
    pub server: String,
    /// Its URL.
    pub url: Url,
    /// Its settings.
    pub settings: AuthSettings,
    /// The client for metadata and tokens.
    pub http: AuthHttpClient,
    /// Where grants are kept.
    pub store: Arc<dyn GrantStore>,
    /// Gets every token, so that none is logged.
    pub redactor: Redactor,
    /// Where a user can be asked to log in, if there is one.
    pub prompt: Option<Arc<dyn LoginPrompt>>,
    /// Whether that user is also asked when a server requires a first login, and not only when it
    /// requires more scopes.
    pub logs_in: bool,
    /// The port of the redirect URL; a free one if `None`.
    pub redirect_port: Option<u16>,
    /// The refreshes in progress in this process.
    pub renewals: Renewals,
    /// Where refreshes are counted.
    pub series: Option<Arc<ServerSeries>>,
}

impl AuthorizerOptions {
    /// Returns options without a user, with the default client for this server.
    ///
    /// # Errors
    /// If the settings do not allow a client.
    pub fn new(
        server: &str,
        url: Url,
        settings: AuthSettings,
        store: Arc<dyn GrantStore>,
    ) -> Result<Self, AuthError> {
        let http = AuthHttpClient::new(HttpOptions::for_server(&url, &settings))?;
        Ok(Self {
            server: server.to_owned(),
            url,
            settings,
            http,
            store,
            redactor: Redactor::new(),
            prompt: None,
            logs_in: false,
            redirect_port: None,
            renewals: Renewals::default(),
            series: None,
        })
    }
}

pub(crate) struct Inner {
    pub(crate) key: GrantKey,
    pub(crate) options: AuthorizerOptions,
    hints: ServerHints,
    /// The grant in use.
    pub(crate) current: ArcSwapOption<Grant>,
    /// The grant before: its token may still be valid, and is still redacted.
    previous: ArcSwapOption<Grant>,
    /// Whether the store was read.
    loaded: OnceCell<()>,
    /// The last challenge: it says where to log in, and for what.
    challenge: Mutex<Option<AuthChallenge>>,
    /// Held by the task that renews the grant.
    pub(crate) renewal: tokio::sync::Mutex<()>,
    /// Held by the request that asks the user for a login.
    pub(crate) asking: tokio::sync::Mutex<()>,
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").field("key", &self.0.key).finish_non_exhaustive()
    }
}

/// What was tried for one request, so that it is tried once.
#[derive(Debug, Default)]
pub struct AuthAttempts {
    proof: bool,
    renewed: bool,
    unbound: bool,
    obtained: bool,
    step_ups: u8,
}

/// The token that a request was sent with.
#[derive(Debug, Clone)]
pub struct SentToken(pub(crate) Arc<Grant>);

impl Authorizer {
    /// Creates the authorizer of a server. The store is read at the first request.
    pub fn new(options: AuthorizerOptions) -> Self {
        let key = GrantKey::new(options.server.clone(), &options.url);
        Self(Arc::new(Inner {
            key,
            options,
            hints: ServerHints::default(),
            current: ArcSwapOption::empty(),
            previous: ArcSwapOption::empty(),
            loaded: OnceCell::new(),
            challenge: Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }))
    }

    /// Adds the token to the headers of a request, if there is one; renews it first if it is about
    /// to expire. Nothing is added for another origin than that of the server.
    ///
    /// # Errors
    /// If an expired token cannot be renewed.
    pub async fn authorize(
        &self,
        method: &Method,
        url: &Url,
        headers: &mut HeaderMap,
    ) -> Result<Option<SentToken>, AuthError> {
        if url.origin() != self.0.options.url.origin() {
            return Ok(None);
        }
        let Some(grant) = self.usable().await? else { return Ok(None) };
        let token = grant.access_token.expose();
        let scheme = if grant.dpop.is_some() { "DPoP" } else { "Bearer" };
        let value = HeaderValue::try_from(format!("{scheme} {token}"));
        let mut value =
            value.map_err(|_| AuthError::Store("the token is not a valid header value".into()))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
        if let Some(key) = &grant.dpop {
            let proof = key.proof(method.as_str(), url, Some(token), &self.0.hints)?;
            if let Ok(proof) = HeaderValue::try_from(proof) {
                headers.insert(HeaderName::from_static(PROOF_HEADER), proof);
            }
        }
        Ok(Some(SentToken(grant)))
    }

    /// Handles a response with status 401 or 403. `Ok` means that the request should be sent again.
    ///
    /// # Errors
    /// [`AuthError::LoginRequired`] or [`AuthError::InsufficientScope`] if a user must act;
    /// [`AuthError::NotAboutTokens`] if another token cannot help; other errors if the authorization
    /// failed.
    pub fn challenged<'a>(
        &'a self,
        status: StatusCode,
        headers: &'a HeaderMap,
        sent: Option<&'a SentToken>,
        attempts: &'a mut AuthAttempts,
    ) -> BoxFuture<'a, Result<(), AuthError>> {
        // Boxed, like all that is rare and deep here: callers are polled often, and stay small.
        Box::pin(self.answer(status, headers, sent, attempts))
    }

    async fn answer(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        sent: Option<&SentToken>,
        attempts: &mut AuthAttempts,
    ) -> Result<(), AuthError> {
        let challenge = AuthChallenge::parse(headers);
        self.note_nonce(headers);
        let needs_proof = challenge.as_ref().is_some_and(|challenge| {
            challenge.is_use_dpop_nonce()
                || challenge.is_invalid_dpop_proof()
                    && self.0.hints.note_time(&self.0.options.url, headers)
        });
        if needs_proof && sent.is_some() && !std::mem::replace(&mut attempts.proof, true) {
            return Ok(());
        }
        if status == StatusCode::FORBIDDEN {
            return match challenge {
                Some(challenge) if challenge.is_insufficient_scope() => {
                    self.step_up(challenge, sent, attempts).await
                }
                _ => Err(AuthError::NotAboutTokens),
            };
        }
        // The new or renewed token was rejected: the server may not take tokens that are bound to a key.
        let rejected_for_key = sent.filter(|SentToken(grant)| {
            grant.dpop.is_some()
                && (attempts.renewed || grant.is_new(jwt::now_signed()))
                && challenge.as_ref().is_some_and(|it| it.takes_bearer && it.is_about_token())
        });
        let is_bearer_only = challenge.as_ref().is_some_and(|it| it.scheme == Scheme::Bearer);
        self.set_challenge(challenge);
        let other = self.obtain_other(sent, rejected_for_key, attempts).await;
        let is_always = self.0.options.settings.dpop == DpopUse::Always;
        match other {
            Err(AuthError::LoginRequired)
                if rejected_for_key.is_some() && is_bearer_only && is_always =>
            {
                Err(AuthError::Binding {
                    cause: "the server rejects tokens that are bound to a key".to_owned(),
                    remedy: DpopUse::Auto,
                })
            }
            other => other,
        }
    }

    /// Obtains another token for one that was rejected, perhaps since it is bound to a key.
    async fn obtain_other(
        &self,
        sent: Option<&SentToken>,
        rejected_for_key: Option<&SentToken>,
        attempts: &mut AuthAttempts,
    ) -> Result<(), AuthError> {
        if let Some(SentToken(grant)) = rejected_for_key
            && self.0.options.settings.dpop == DpopUse::Auto
            && !std::mem::replace(&mut attempts.unbound, true)
        {
            attempts.renewed = true;
            match self.renew_unbound(grant).await {
                Ok(_) => return Ok(()),
                Err(AuthError::LoginRequired) => {}
                Err(error) => return Err(error),
            }
        }
        if !std::mem::replace(&mut attempts.renewed, true) {
            match self.replaced(sent).await {
                Ok(()) => return Ok(()),
                Err(AuthError::LoginRequired) => {}
                Err(error) => return Err(error),
            }
        }
        if std::mem::replace(&mut attempts.obtained, true) {
            return Err(AuthError::LoginRequired);
        }
        self.obtain(sent, &BTreeSet::new()).await
    }

    /// Remembers the DPoP nonce of a response, which replaces the last one (RFC 9449, section 8.2).
    pub fn note_nonce(&self, headers: &HeaderMap) {
        self.0.hints.note_nonce(&self.0.options.url, headers);
    }

    /// Returns the version of the stored grant: it changes when another process logs in or out.
    pub async fn version(&self) -> Option<Version> {
        self.0.options.store.version(&self.0.key).await.unwrap_or_default()
    }

    /// Returns the grant that requests are authorized with now.
    pub fn in_use(&self) -> Option<Arc<Grant>> {
        self.0.current.load_full()
    }

    /// Whether the stored token is another one than that in use: another process has logged in.
    pub async fn has_another_token(&self) -> bool {
        let used = self.in_use().map(|grant| grant.access_token.clone());
        match self.load().await {
            Ok(Some(grant)) => used.as_ref() != Some(&grant.access_token),
            Ok(None) | Err(_) => false,
        }
    }

    /// Returns where the key that encrypts grants is kept.
    pub async fn key_place(&self) -> Option<KeyPlace> {
        self.0.options.store.key_place().await
    }

    /// Returns the stored grant, unless the settings want its token bound to a key and it is not, or
    /// the reverse.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn stored(&self) -> Result<Option<Arc<Grant>>, AuthError> {
        let grant = self.load().await?.map(Arc::new);
        self.adopt(grant.clone());
        Ok(grant)
    }

    async fn load(&self) -> Result<Option<Grant>, AuthError> {
        let stored = self.0.options.store.load(&self.0.key).await?;
        Ok(stored.map(|stored| stored.grant).filter(|grant| self.allows(grant)))
    }

    /// Whether the settings allow the token of a grant.
    pub(crate) fn allows(&self, grant: &Grant) -> bool {
        self.0.options.settings.dpop.allows(grant.dpop.is_some())
    }

    /// Returns the grant to use, renewed if it is about to expire.
    async fn usable(&self) -> Result<Option<Arc<Grant>>, AuthError> {
        let load = || async { self.stored().await.map(drop) };
        self.0.loaded.get_or_try_init(load).await?;
        let Some(grant) = self.0.current.load_full() else { return Ok(None) };
        if !grant.needs_refresh(jwt::now_signed()) {
            return Ok(Some(grant));
        }
        match self.renew(&grant).await {
            Ok(renewed) => Ok(Some(renewed)),
            // The server decides: it may accept the token a little longer, and its challenge is
            // needed for a login.
            Err(AuthError::LoginRequired) => Ok(Some(grant)),
            Err(error) if error.is_temporary() && !grant.is_expired(jwt::now_signed()) => {
                tracing::debug!(server = %self.0.key.server, %error, "using the token until it expires");
                Ok(Some(grant))
            }
            Err(error) => Err(error),
        }
    }

    /// Replaces a token that the server rejected: by one that another task or process has obtained
    /// meanwhile, or by a refresh.
    async fn replaced(&self, sent: Option<&SentToken>) -> Result<(), AuthError> {
        match sent {
            Some(SentToken(rejected)) => self.renew(rejected).await.map(drop),
            None => match self.stored().await? {
                Some(_) => Ok(()),
                None => Err(AuthError::LoginRequired),
            },
        }
    }

    /// Handles 403 `insufficient_scope`: requests a token with the scopes so far and those of the
    /// challenge (O6).
    async fn step_up(
        &self,
        challenge: AuthChallenge,
        sent: Option<&SentToken>,
        attempts: &mut AuthAttempts,
    ) -> Result<(), AuthError> {
        let wanted = challenge.scope.clone().unwrap_or_default();
        let had = sent.map(|sent| sent.0.scopes.clone()).unwrap_or_default();
        let insufficient = || AuthError::InsufficientScope { scopes: wanted.clone() };
        // More of the same cannot help.
        let is_new = wanted.iter().any(|scope| !had.contains(scope));
        if !is_new || attempts.step_ups == MAX_STEP_UPS {
            return Err(insufficient());
        }
        attempts.step_ups += 1;
        let all: BTreeSet<String> = had.into_iter().chain(wanted.iter().cloned()).collect();
        self.set_challenge(Some(challenge));
        match self.obtain(sent, &all).await {
            // Without a terminal, the prompt declines for the user.
            Err(AuthError::LoginRequired | AuthError::Cancelled { .. }) => Err(insufficient()),
            obtained => obtained,
        }
    }

    pub(crate) fn endpoint<'a>(
        &'a self,
        url: &'a Url,
        client: &'a ClientIdentity,
        resource: &'a str,
        dpop: Option<&'a DpopKey>,
    ) -> TokenEndpoint<'a> {
        let http = &self.0.options.http;
        TokenEndpoint { http, url, client, resource, dpop, hints: &self.0.hints }
    }

    /// Uses a grant from now on. Its tokens, and those of the one before, are redacted from logs.
    pub(crate) fn adopt(&self, grant: Option<Arc<Grant>>) {
        let redactor = &self.0.options.redactor;
        redactor.add_credentials(grant.iter().flat_map(|grant| grant.secrets()));
        let is_same = |before: &Arc<Grant>| {
            grant.as_ref().is_some_and(|grant| grant.access_token == before.access_token)
        };
        let before = self.0.current.swap(grant.clone());
        if let Some(before) = before.filter(|before| !is_same(before))
            && let Some(older) = self.0.previous.swap(Some(before))
        {
            older.secrets().for_each(|secret| redactor.forget(secret));
            // What is still in use stays redacted.
            let used = [grant, self.0.previous.load_full()];
            redactor.add_credentials(used.iter().flatten().flat_map(|grant| grant.secrets()));
        }
    }

    pub(crate) fn challenge(&self) -> Option<AuthChallenge> {
        self.0.challenge.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers a challenge. One without content does not replace one that says more.
    pub(crate) fn set_challenge(&self, challenge: Option<AuthChallenge>) {
        if let Some(challenge) = challenge {
            let mut last = self.0.challenge.lock().unwrap_or_else(PoisonError::into_inner);
            *last = Some(challenge);
        }
    }
}

//! Logins with a browser, and logouts.
//!
//! A login that has begun is stored. It is finished at the callback, at the prompt, or in another
//! process with the pasted code; each takes it from the store first, so that its code is used once.
//! A later login for the same server replaces it, and the earlier one ends.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::StatusCode;
use openclaw_secrets::SecretString;
use serde_json::json;
use tokio::time::{sleep, timeout};
use url::Url;

use crate::authorize::{AuthorizationRequest, CallbackParams};
use crate::authorizer::{Authorizer, LOCK_PATIENCE};
use crate::callback::{CallbackListener, LoginOutcome};
use crate::challenge::AuthChallenge;
use crate::client::{self, ClientIdentity};
use crate::error::AuthError;
use crate::grant::Grant;
use crate::issuer::{self, UnconfirmedIssuer};
use crate::jwt;
use crate::metadata::Discovery;
use crate::obtain::with_binding;
use crate::store::{LOGIN_LIFETIME, PendingLogin};
use crate::token;

/// How often to look whether another login has begun.
const TAKEN_OVER: Duration = Duration::from_secs(1);
/// How often the user is asked about the authorization server of one login: about itself, two
/// endpoints and the client id.
const MAX_QUESTIONS: u8 = 4;

/// A user who can be asked to log in.
pub trait LoginPrompt: Send + Sync + fmt::Debug {
    /// Shows the URL of a login to the user. Dropped when the login ends otherwise.
    fn show(&self, login: LoginRequest) -> BoxFuture<'_, PromptResponse>;

    /// Asks whether an authorization server may be used. It may not, if the prompt does not ask.
    fn confirm<'a>(&'a self, _unconfirmed: &'a UnconfirmedIssuer) -> BoxFuture<'a, bool> {
        Box::pin(async { false })
    }
}

/// A login that a user is asked for.
#[derive(Debug, Clone)]
pub struct LoginRequest {
    /// The name of the server.
    pub server: String,
    /// The URL to open in a browser.
    pub url: Url,
    /// The authorization server. Untrusted.
    pub issuer: String,
    /// The scopes that are requested. Untrusted.
    pub scopes: Vec<String>,
}

/// What a user does about a login.
#[derive(Debug, Clone)]
pub enum PromptResponse {
    /// The URL was shown; the browser will call back.
    Shown,
    /// The user pasted the code, or the URL that the browser was redirected to.
    Pasted(SecretString),
    /// The user does not want to log in.
    Declined,
}

/// What a logout did.
#[derive(Debug, Clone)]
pub enum Logout {
    /// There was no grant.
    NotLoggedIn,
    /// The grant was revoked and forgotten.
    Revoked,
    /// The grant was forgotten; it could not be revoked, for this reason.
    Forgotten(String),
}

impl Authorizer {
    /// Takes a user through a login, and stores its grant. Waits for the callback of the browser, or
    /// for what the user pastes. With scopes, requests these besides the usual ones.
    ///
    /// Cancel-safe: a login that was cancelled can be finished with
    /// [`finish_pasted`](Self::finish_pasted) for 15 minutes.
    ///
    /// # Errors
    /// If the login cannot begin, is declined or rejected, takes too long, or is replaced by
    /// another.
    pub fn login<'a>(
        &'a self,
        prompt: &'a dyn LoginPrompt,
        scopes: &'a BTreeSet<String>,
    ) -> BoxFuture<'a, Result<Arc<Grant>, AuthError>> {
        let patience = Duration::from_secs(LOGIN_LIFETIME.unsigned_abs());
        let late = AuthError::Cancelled { cause: "timed out after 15 minutes" };
        let login = timeout(patience, self.login_now(prompt, scopes));
        Box::pin(async { login.await.unwrap_or(Err(late)) })
    }

    async fn login_now(
        &self,
        prompt: &dyn LoginPrompt,
        scopes: &BTreeSet<String>,
    ) -> Result<Arc<Grant>, AuthError> {
        self.0.options.store.check_writable(&self.0.key).await?;
        let listener = self.listen().await.map_err(|error| AuthError::Setting {
            setting: "redirectPort",
            cause: error.to_string(),
        })?;
        let redirect_uri = listener.redirect_uri();
        let mut questions = 0;
        let request = loop {
            match self.begin_login(&redirect_uri, scopes).await {
                Err(AuthError::Unconfirmed(unconfirmed))
                    if questions < MAX_QUESTIONS && prompt.confirm(&unconfirmed).await =>
                {
                    questions += 1;
                    self.pin_issuer(unconfirmed.proposed).await?;
                }
                begun => break begun?,
            }
        };
        let shown = LoginRequest {
            server: self.0.key.server.clone(),
            url: request.url(),
            issuer: request.server.issuer.clone(),
            scopes: request.scopes.clone().unwrap_or_default(),
        };
        let callback =
            listener.wait(&self.0.key.server, request.state().expose(), request.callback_path());
        let pasted = async {
            match prompt.show(shown).await {
                PromptResponse::Shown => std::future::pending().await,
                PromptResponse::Pasted(text) => Some(text),
                PromptResponse::Declined => None,
            }
        };
        tokio::select! {
            callback = callback => {
                let callback = callback.map_err(|error| AuthError::Store(error.to_string()))?;
                let params = CallbackParams::parse(callback.query());
                let finished = match params {
                    Ok(params) => self.finish_login(&request, &params).await,
                    Err(error) => Err(error),
                };
                let outcome = if finished.is_ok() { LoginOutcome::LoggedIn } else { LoginOutcome::Failed };
                callback.finish(outcome).await;
                finished
            }
            pasted = pasted => match pasted {
                Some(text) => self.finish_login(&request, &CallbackParams::parse(text.expose())?).await,
                None => Err(AuthError::Cancelled { cause: "declined" }),
            },
            () = self.taken_over(&request) => {
                Err(AuthError::Cancelled { cause: "another login for this server has begun or finished" })
            }
        }
    }

    /// Listens for the callback: on the configured port, else on the one of the last registration,
    /// which can be used again then, or on a free one.
    async fn listen(&self) -> io::Result<CallbackListener> {
        let options = &self.0.options;
        if options.redirect_port.is_none()
            && let Some(known) = self.known_client().await
            && let port @ Some(_) = known.registered_port()
            && let Ok(listener) = CallbackListener::bind(port).await
        {
            return Ok(listener);
        }
        CallbackListener::bind(options.redirect_port).await
    }

    /// Returns the client of the stored grant, or of a login that was not finished. A damaged grant
    /// does not keep the user from logging in again.
    async fn known_client(&self) -> Option<ClientIdentity> {
        match self.0.options.store.load(&self.0.key).await.ok().flatten() {
            Some(stored) => Some(stored.grant.client),
            None => self.pending().await.ok().flatten().map(|pending| pending.client),
        }
    }

    /// Waits until the stored login is another one, or is gone.
    async fn taken_over(&self, request: &AuthorizationRequest) {
        loop {
            sleep(TAKEN_OVER).await;
            match self.pending().await {
                Ok(Some(pending)) if pending.state() == request.state() => {}
                // Unreadable right now: it may be being replaced.
                Err(_) => {}
                Ok(_) => return,
            }
        }
    }

    /// Begins a login, and stores it so that any process can finish it. Its redirect URI is the one of
    /// the callback, or below it.
    ///
    /// # Errors
    /// If the authorization server cannot be used, or the login cannot be stored;
    /// [`AuthError::Unconfirmed`] if the user must confirm the authorization server first.
    pub async fn begin_login(
        &self,
        callback: &str,
        scopes: &BTreeSet<String>,
    ) -> Result<AuthorizationRequest, AuthError> {
        let options = &self.0.options;
        if self.challenge().is_none() {
            self.probe().await?;
        }
        let pin = self.pinned_issuer().await;
        let discovery = self.discover(&pin).await?.with_scopes(scopes);
        let (server, settings) = (&discovery.server, &options.settings);
        if let Err(unconfirmed) = issuer::check(server, settings, &pin) {
            self.note_question(&pin, &unconfirmed).await;
            return Err(AuthError::Unconfirmed(unconfirmed));
        }
        // The URIs of other clients are registered, or published, without an issuer.
        let is_free = client::registers_itself(server, settings) && options.redirect_port.is_none();
        let redirect_uri = if is_free {
            issuer::redirect_uri(callback, &server.issuer)
        } else {
            callback.to_owned()
        };
        let known = self.known_client().await;
        let identify =
            client::identify(&options.http, server, settings, &redirect_uri, known.as_ref());
        let client = identify.await?;
        if !issuer::is_unmistakable(server, settings) {
            let known = self.known_clients().await;
            if let Err(unconfirmed) = issuer::check_client(server, &client, &pin, &known) {
                self.note_question(&pin, &unconfirmed).await;
                return Err(AuthError::Unconfirmed(unconfirmed));
            }
        }
        let request = AuthorizationRequest::new(&discovery, client, &redirect_uri)?;
        let stored = serde_json::to_value(&request)
            .map_err(|error| AuthError::Store(format!("cannot store the login: {error}")))?;
        let pending = PendingLogin { created_at: jwt::now_signed(), request: stored };
        options.store.save_login(&self.0.key, &pending).await?;
        Ok(request)
    }

    /// Finishes the stored login with a code, or with the URL that the browser was redirected to.
    ///
    /// # Errors
    /// [`AuthError::LoginRequired`] if no login has begun; otherwise as for
    /// [`login`](Self::login).
    pub fn finish_pasted<'a>(
        &'a self,
        text: &'a SecretString,
    ) -> BoxFuture<'a, Result<Arc<Grant>, AuthError>> {
        Box::pin(async {
            let params = CallbackParams::parse(text.expose())?;
            let request = self.pending().await?.ok_or(AuthError::LoginRequired)?;
            self.finish_login(&request, &params).await
        })
    }

    async fn pending(&self) -> Result<Option<AuthorizationRequest>, AuthError> {
        let pending = self.0.options.store.load_login(&self.0.key, jwt::now_signed()).await?;
        let parse = |pending: PendingLogin| {
            serde_json::from_value(pending.request)
                .map_err(|error| AuthError::Store(format!("cannot read the login: {error}")))
        };
        pending.map(parse).transpose()
    }

    async fn finish_login(
        &self,
        request: &AuthorizationRequest,
        params: &CallbackParams,
    ) -> Result<Arc<Grant>, AuthError> {
        let code = request.check_pasted(params)?;
        let options = &self.0.options;
        // The code is used up by the exchange.
        options.store.check_writable(&self.0.key).await?;
        if !options.store.delete_login(&self.0.key).await? {
            return Err(AuthError::Cancelled { cause: "it was finished already" });
        }
        let AuthorizationRequest { server, client, resource, dpop, scopes, .. } = request;
        let endpoint = self.endpoint(&server.token_endpoint, client, resource, dpop.as_ref());
        let response = endpoint.exchange_code(request, &code).await;
        let response = response.map_err(|error| with_binding(error, server, dpop.as_ref()))?;
        let discovery = Discovery {
            resource: resource.clone(),
            server: server.clone(),
            scopes: scopes.clone(),
            dpop: dpop.is_some(),
        };
        let lease = options.store.lock(&self.0.key, LOCK_PATIENCE).await?;
        let grant = self.keep(&lease, &discovery, client.clone(), dpop.clone(), response).await?;
        tracing::info!(server = %self.0.key.server, issuer = %grant.issuer, "logged in");
        Ok(grant)
    }

    /// Asks the server for its challenge, with a request without a token. Fails with
    /// [`AuthError::NotAboutTokens`] if the server answers it.
    pub(crate) async fn probe(&self) -> Result<(), AuthError> {
        let options = &self.0.options;
        let ping = json!({"jsonrpc": "2.0", "id": 0, "method": "ping"});
        let response = options.http.post_json("the login", &options.url, &ping).await?;
        let challenges = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
        if !challenges.contains(&response.status) {
            return Err(AuthError::NotAboutTokens);
        }
        self.set_challenge(AuthChallenge::parse(&response.headers));
        Ok(())
    }

    /// Revokes the grant and forgets it, with an unfinished login. The confirmed authorization server is
    /// kept.
    ///
    /// # Errors
    /// If it cannot be deleted.
    pub fn logout(&self) -> BoxFuture<'_, Result<Logout, AuthError>> {
        Box::pin(self.logout_now())
    }

    async fn logout_now(&self) -> Result<Logout, AuthError> {
        let options = &self.0.options;
        let lease = options.store.lock(&self.0.key, LOCK_PATIENCE).await?;
        let stored = options.store.load(&self.0.key).await;
        if let Err(error) = self.keep_confirmation().await {
            tracing::warn!(server = %self.0.key.server, %error, "cannot keep the confirmed issuer");
        }
        // First forgotten: a revocation that fails must not keep the tokens.
        let existed = options.store.delete(&lease).await?;
        options.store.delete_login(&self.0.key).await?;
        self.adopt(None);
        let grant = match stored {
            Ok(Some(stored)) => stored.grant,
            Ok(None) | Err(_) if !existed => return Ok(Logout::NotLoggedIn),
            // How to repair the file does not matter any more.
            Ok(None) | Err(_) => {
                return Ok(Logout::Forgotten("its tokens could not be read".into()));
            }
        };
        let Some(url) = &grant.revocation_endpoint else {
            let cause = "the authorization server has no revocation endpoint";
            return Ok(Logout::Forgotten(cause.to_owned()));
        };
        let client = match grant.client.clone().with_settings(&options.settings) {
            Ok(client) => client,
            Err(error) => return Ok(Logout::Forgotten(error.to_string())),
        };
        let (token, is_refresh_token) = match &grant.refresh_token {
            Some(token) => (token, true),
            None => (&grant.access_token, false),
        };
        match token::revoke(&options.http, url, &client, token, is_refresh_token).await {
            Ok(()) => Ok(Logout::Revoked),
            Err(error) => Ok(Logout::Forgotten(error.to_string())),
        }
    }
}

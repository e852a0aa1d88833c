//! Logins at MCP servers: begun here, finished by the browser or with a code (O4).
//!
//! A login runs as a task of the gateway: it listens for the browser's callback, and connects the
//! server afterwards. Clients get its URL at once and ask for its state.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use openclaw_config::{AgentId, OAuthGrant, Transport};
use openclaw_mcp::server::Server;
use openclaw_mcp::server::status::{ActiveTransport, AuthKind, ServerState, ServerStatus};
use openclaw_oauth::authorizer::Authorizer;
use openclaw_oauth::client::Registration;
use openclaw_oauth::error::AuthError;
use openclaw_oauth::grant::Grant;
use openclaw_oauth::issuer::{UnconfirmedIssuer, confirmation_hint};
use openclaw_oauth::login::{LoginPrompt, LoginRequest, Logout, PromptResponse};
use openclaw_oauth::store::Version;
use openclaw_protocol::mcp::{AuthResult, GrantInfo};
use openclaw_secrets::SecretString;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use super::problem::{Problem, ProblemKind};
use super::servers::McpServers;

/// The logins that have begun here, by server name.
#[derive(Debug, Default)]
pub(super) struct Logins(Mutex<HashMap<String, Login>>);

#[derive(Debug)]
struct Login {
    url: String,
    outcome: Arc<Mutex<Outcome>>,
    /// Dropping it ends the login; what is stored of it can still be finished with a code.
    task: AbortOnDropHandle<()>,
}

/// How far a login is.
#[derive(Debug, Clone, Default)]
enum Outcome {
    #[default]
    Running,
    /// The grant is stored, and the server was connected with it, if possible.
    LoggedIn,
    Failed(String),
}

impl Logins {
    /// Returns the URL of the last login, and how far it is.
    fn state(&self, server: &str) -> Option<(String, Outcome)> {
        let all = self.0.lock();
        let login = all.get(server)?;
        let outcome = login.outcome.lock().clone();
        Some((login.url.clone(), outcome))
    }

    /// Ends a running login, and waits until its port is free.
    async fn end(&self, server: &str) {
        let login = self.0.lock().remove(server);
        if let Some(Login { task, .. }) = login {
            task.abort();
            let _ = task.await;
        }
    }

    fn forget(&self, server: &str) {
        self.0.lock().remove(server);
    }
}

/// Passes the URL of a login on, and leaves the rest to the browser.
#[derive(Debug)]
struct UrlSender(Mutex<Option<oneshot::Sender<String>>>);

impl LoginPrompt for UrlSender {
    fn show(&self, login: LoginRequest) -> BoxFuture<'_, PromptResponse> {
        let sender = self.0.lock().take();
        if let Some(sender) = sender {
            // The caller may be gone; the login can still be finished with a code.
            let _ = sender.send(login.url.into());
        }
        Box::pin(async { PromptResponse::Shown })
    }
}

/// What to do about the login at a server.
#[derive(Debug)]
pub(crate) enum AuthRequest {
    /// Begin one.
    Begin {
        /// The scopes besides the usual ones.
        scopes: BTreeSet<String>,
        /// The authorization server that the user confirms.
        issuer: Option<String>,
    },
    /// Finish it with its code, or with the URL that the browser was redirected to.
    Finish(SecretString),
    Logout,
    Status,
}

impl McpServers {
    /// Begins or finishes a login, ends it, or returns its state.
    pub(crate) async fn auth(
        &self,
        id: &AgentId,
        name: &str,
        request: AuthRequest,
    ) -> Result<AuthResult, Problem> {
        let status = self.status(id, name)?;
        if matches!(request, AuthRequest::Status) {
            // Asked for several times a second.
            if let Some((url, Outcome::Running)) = self.logins.state(name) {
                return Ok(pending(url));
            }
            let authorizer = match self.server(id, name) {
                Ok(server) => server.authorizer().await.ok().flatten(),
                Err(_) => None,
            };
            return self.login_state(&status, authorizer.as_ref()).await;
        }
        let server = self.server(id, name)?;
        let Some(authorizer) =
            server.authorizer().await.map_err(|error| invalid(&error.message))?
        else {
            return Err(no_logins(&status));
        };
        match request {
            AuthRequest::Status => self.login_state(&status, Some(&authorizer)).await,
            AuthRequest::Logout => self.logout(&server, &authorizer).await,
            AuthRequest::Finish(code) => {
                let finished = authorizer.finish_pasted(&code).await;
                // A code that does not belong to the login leaves it as it is.
                if !matches!(finished, Err(AuthError::Mismatch(_))) {
                    self.logins.forget(name);
                }
                finished.map_err(|error| login_failed(name, &error))?;
                // The state says whether it worked.
                let _ = server.refresh().await;
                self.login_state(&server.status(), Some(&authorizer)).await
            }
            // Connected without a token.
            AuthRequest::Begin { .. }
                if status.state == ServerState::Ready && status.auth == AuthKind::None =>
            {
                self.login_state(&status, Some(&authorizer)).await
            }
            AuthRequest::Begin { scopes, issuer } => {
                if let Some(issuer) = issuer {
                    match authorizer.confirm_issuer(&issuer).await {
                        Err(AuthError::Unconfirmed(other)) => return Ok(to_confirm(*other)),
                        confirmed => confirmed.map_err(|error| login_failed(name, &error))?,
                    }
                }
                if !is_by_user(&server) {
                    // A token is obtained without a user, who must know where it comes from.
                    if let Ok(Some(unconfirmed)) = authorizer.unconfirmed_issuer().await {
                        return Ok(to_confirm(unconfirmed));
                    }
                    server.refresh().await?;
                    return self.login_state(&server.status(), Some(&authorizer)).await;
                }
                match self.begin_login(Arc::clone(&server), authorizer.clone(), scopes).await {
                    Ok(url) => Ok(pending(url)),
                    Err(AuthError::Unconfirmed(unconfirmed)) => Ok(to_confirm(*unconfirmed)),
                    // It needs none, denies access to all, or does not work.
                    Err(AuthError::NotAboutTokens) => {
                        server.refresh().await?;
                        self.login_state(&server.status(), Some(&authorizer)).await
                    }
                    Err(error) => Err(login_failed(name, &error)),
                }
            }
        }
    }

    /// Begins a login; a running one for the same server ends.
    async fn begin_login(
        &self,
        server: Arc<Server>,
        authorizer: Authorizer,
        mut scopes: BTreeSet<String>,
    ) -> Result<String, AuthError> {
        if !scopes.is_empty() {
            let before = authorizer.stored().await.ok().flatten();
            scopes.extend(before.iter().flat_map(|grant| grant.scopes.iter().cloned()));
        }
        let name = server.name().to_string();
        self.logins.end(&name).await;
        let (sender, url) = oneshot::channel();
        let outcome = Arc::new(Mutex::new(Outcome::Running));
        let reported = Arc::clone(&outcome);
        let (early, too_early) = oneshot::channel();
        let task = tokio::spawn(async move {
            let prompt = UrlSender(Mutex::new(Some(sender)));
            let before = authorizer.version().await;
            let outcome = match authorizer.login(&prompt, &scopes).await {
                Ok(_) => Outcome::LoggedIn,
                // Another process has finished it, with the code.
                Err(AuthError::Cancelled { .. })
                    if is_newer(before, authorizer.version().await) =>
                {
                    Outcome::LoggedIn
                }
                Err(error) => {
                    tracing::warn!(server = %server.name(), %error, "login failed");
                    let cause = error.to_string();
                    let _ = early.send(error);
                    Outcome::Failed(cause)
                }
            };
            if matches!(outcome, Outcome::LoggedIn) {
                // The state of the server says whether it worked.
                let _ = server.refresh().await;
            }
            *reported.lock() = outcome;
        });
        let task = AbortOnDropHandle::new(task);
        match url.await {
            Ok(url) => {
                let login = Login { url: url.clone(), outcome, task };
                self.logins.0.lock().insert(name, login);
                Ok(url)
            }
            Err(_) => Err(too_early.await.unwrap_or(AuthError::LoginRequired)),
        }
    }

    async fn logout(
        &self,
        server: &Server,
        authorizer: &Authorizer,
    ) -> Result<AuthResult, Problem> {
        let name = server.name().as_str();
        self.logins.forget(name);
        let failed = |error: AuthError| {
            let message = format!("cannot log out of `{name}`: {error}");
            Problem::new(ProblemKind::NeedsLogin, message)
        };
        let message = match authorizer.logout().await.map_err(failed)? {
            Logout::NotLoggedIn => {
                return Err(Problem::new(
                    ProblemKind::Invalid,
                    format!("not logged in to `{name}`"),
                ));
            }
            Logout::Revoked => None,
            Logout::Forgotten(cause) => Some(format!("the login was not revoked: {cause}")),
        };
        // A connection that was made with the login ends.
        server.reconnect().await;
        let state = "none".to_owned();
        Ok(AuthResult { ok: false, state, url: None, message, issuer: None, grant: None })
    }

    /// Returns the state of a login.
    async fn login_state(
        &self,
        status: &ServerStatus,
        authorizer: Option<&Authorizer>,
    ) -> Result<AuthResult, Problem> {
        let stored = match authorizer {
            Some(authorizer) => authorizer.stored().await,
            None => Ok(None),
        };
        let key_in = match authorizer {
            Some(authorizer) => authorizer.key_place().await.map(|place| place.to_string()),
            None => None,
        };
        let ok = matches!(status.state, ServerState::Ready | ServerState::Idle);
        let result = |state: &str, url, message, grant| {
            Ok(AuthResult { ok, state: state.to_owned(), url, message, issuer: None, grant })
        };
        let needs_auth = status.state == ServerState::NeedsAuth;
        let grant = |grant: &Arc<Grant>| info(grant, key_in.clone());
        match (self.logins.state(&status.name), stored) {
            // Also while an earlier login is still valid: the user wants another one.
            (Some((url, Outcome::Running)), _) => Ok(pending(url)),
            (Some((_, Outcome::Failed(cause))), stored) => {
                let stored = stored.ok().flatten();
                result("failed", None, Some(cause), stored.as_ref().map(grant))
            }
            (Some((_, Outcome::LoggedIn)), Ok(Some(_))) if needs_auth => {
                let error = status.last_error.as_ref().map(|error| error.message.clone());
                result("failed", None, error, None)
            }
            (_, Ok(Some(stored))) if !needs_auth => {
                result("authorized", None, None, Some(grant(&stored)))
            }
            (_, Err(error)) => result("required", None, Some(error.to_string()), None),
            (_, Ok(Some(stored))) if needs_auth => {
                let mut message = "the server rejected the stored token".to_owned();
                // The cause may be that the token is bound to a key.
                if stored.dpop.is_some()
                    && let Some(error) = &status.last_error
                {
                    message = format!("{message}: {}", error.message);
                }
                result("required", None, Some(message), None)
            }
            (_, Ok(None)) if needs_auth => result("required", None, None, None),
            (_, Ok(_)) if status.auth != AuthKind::None => result("authorized", None, None, None),
            (_, Ok(_)) => result("none", None, None, None),
        }
    }
}

fn pending(url: String) -> AuthResult {
    let state = "pending".to_owned();
    AuthResult { ok: false, state, url: Some(url), message: None, issuer: None, grant: None }
}

fn to_confirm(unconfirmed: UnconfirmedIssuer) -> AuthResult {
    let (state, message) = ("unconfirmed".to_owned(), Some(unconfirmed.to_string()));
    let issuer = Some(unconfirmed.issuer);
    AuthResult { ok: false, state, url: None, message, issuer, grant: None }
}

/// Whether tokens for a server are obtained by a user who logs in.
fn is_by_user(server: &Server) -> bool {
    match &server.connection().transport {
        Transport::Http(http) => http.oauth.grant == OAuthGrant::AuthorizationCode,
        Transport::Stdio(_) => false,
    }
}

/// Whether a grant was stored meanwhile.
fn is_newer(before: Option<Version>, now: Option<Version>) -> bool {
    now.is_some() && now != before
}

fn info(grant: &Grant, key_in: Option<String>) -> GrantInfo {
    let registration = match grant.client.registration {
        Registration::Configured => "configured",
        Registration::MetadataDocument => "metadata-document",
        Registration::Dynamic => "dynamic",
    };
    GrantInfo {
        issuer: grant.issuer.clone(),
        scopes: grant.scopes.iter().cloned().collect(),
        expires_at_ms: grant.expires_at.map(|seconds| seconds.saturating_mul(1000)),
        renewable: grant.refresh_token.is_some(),
        registration: registration.to_owned(),
        bound: grant.dpop.is_some(),
        key_in,
    }
}

fn invalid(message: &str) -> Problem {
    Problem::new(ProblemKind::Invalid, message)
}

fn login_failed(name: &str, error: &AuthError) -> Problem {
    let message = format!("cannot log in to `{name}`: {error}");
    match error {
        AuthError::LoginRequired => {
            let message = format!("no login to `{name}` is in progress, or it has expired");
            let hint = format!("run `openclaw mcp login {name}` first");
            Problem::new(ProblemKind::NeedsLogin, message).hint(hint)
        }
        AuthError::Unconfirmed(unconfirmed) => {
            let hint = confirmation_hint(name, &unconfirmed.issuer);
            Problem::new(ProblemKind::NeedsLogin, message).hint(hint)
        }
        AuthError::NotAboutTokens => invalid(&format!("`{name}` does not require a login")),
        AuthError::Unreachable { .. } => {
            let hint = "check `url` in the server's entry and the network, or try again later";
            Problem::new(ProblemKind::Unavailable, message).hint(hint)
        }
        AuthError::NotRegistered { .. } => {
            let hint = "register a client there by hand, with the redirect URL \
                        http://127.0.0.1/callback, and set `auth.clientId` in the server's entry";
            Problem::new(ProblemKind::NeedsLogin, message).hint(hint)
        }
        AuthError::Mismatch(_) => {
            let hint = "paste the whole URL that the browser was redirected to";
            Problem::new(ProblemKind::NeedsLogin, message).hint(hint)
        }
        AuthError::Binding { remedy, .. } => {
            let hint = AuthError::binding_hint(name, *remedy);
            Problem::new(ProblemKind::NeedsLogin, message).hint(hint)
        }
        AuthError::Rejected { .. } | AuthError::Cancelled { .. } => {
            let hint = format!("run `openclaw mcp login {name}` again");
            Problem::new(ProblemKind::NeedsLogin, message).hint(hint)
        }
        _ => Problem::new(ProblemKind::NeedsLogin, message),
    }
}

/// Why there is no login at this server.
fn no_logins(status: &ServerStatus) -> Problem {
    let name = &status.name;
    match (status.transport, status.auth) {
        (ActiveTransport::Stdio, _) => {
            invalid(&format!("`{name}` is a local server, which needs no login"))
                .hint("set the variables it needs in `env` of its entry")
        }
        (_, AuthKind::None) => invalid(&format!("`{name}` needs no login")),
        _ => invalid(&format!("`{name}` uses the key in its entry and needs no login"))
            .hint("remove `apiKey` and the `Authorization` header from its entry to log in"),
    }
}

//! Logins at MCP servers: begun here, finished by the browser or with a code (O4).
//!
//! A login runs as a task of the gateway: it listens for the browser's callback, and connects the
//! server afterwards. Clients get its URL at once and ask for its state.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use openclaw_config::AgentId;
use openclaw_mcp::server::Server;
use openclaw_mcp::server::status::{AuthKind, ServerState, ServerStatus, TransportKind};
use openclaw_oauth::authorizer::Authorizer;
use openclaw_oauth::client::Registration;
use openclaw_oauth::error::AuthError;
use openclaw_oauth::grant::Grant;
use openclaw_oauth::login::{LoginPrompt, LoginRequest, Logout, PromptResponse};
use openclaw_protocol::mcp::{AuthAction, AuthResult, GrantInfo};
use openclaw_secrets::SecretString;
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use super::status;
use crate::gateway::Gateway;
use crate::mcp::{Problem, ProblemKind};

/// The logins that have begun here, by server name.
#[derive(Debug, Default)]
pub(crate) struct Logins(Mutex<HashMap<String, Login>>);

#[derive(Debug)]
struct Login {
    url: String,
    /// Why it failed; `None` while it is running.
    failure: Arc<Mutex<Option<String>>>,
    /// Dropping it ends the login; what is stored of it can still be finished with a code.
    _task: AbortOnDropHandle<()>,
}

impl Logins {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Login>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the URL of a running login, or why the last one failed.
    fn state(&self, server: &str) -> Option<Result<String, String>> {
        let all = self.all();
        let login = all.get(server)?;
        let failure = login.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(failure.map_or_else(|| Ok(login.url.clone()), Err))
    }

    fn forget(&self, server: &str) {
        self.all().remove(server);
    }
}

/// Passes the URL of a login on, and leaves the rest to the browser.
#[derive(Debug)]
struct UrlSender(Mutex<Option<oneshot::Sender<String>>>);

impl LoginPrompt for UrlSender {
    fn show(&self, login: LoginRequest) -> BoxFuture<'_, PromptResponse> {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            // The caller may be gone; the login can still be finished with a code.
            let _ = sender.send(login.url.into());
        }
        Box::pin(async { PromptResponse::Shown })
    }
}

/// Begins or finishes a login, ends it, or returns its state.
pub(crate) async fn auth(
    gateway: &Gateway,
    id: &AgentId,
    name: &str,
    action: AuthAction,
    code: Option<&str>,
) -> Result<AuthResult, Problem> {
    let status = status(gateway, id, name)?;
    if action == AuthAction::Status {
        let authorizer = match gateway.server_of(id, name) {
            Ok(server) => server.authorizer().await.ok().flatten(),
            Err(_) => None,
        };
        return state_of(gateway, &status, authorizer.as_ref()).await;
    }
    let server = gateway.server_of(id, name)?;
    let Some(authorizer) = server.authorizer().await.map_err(|error| invalid(&error.message))?
    else {
        return Err(no_logins(&status));
    };
    match (action, code) {
        (AuthAction::Logout, _) => logout(gateway, &server, &authorizer).await,
        (_, Some(code)) => {
            let code = SecretString::from(code.to_owned());
            let finished = authorizer.finish_pasted(&code).await;
            finished.map_err(|error| login_failed(name, &error))?;
            gateway.logins.forget(name);
            // The state says whether it worked.
            let _ = server.refresh().await;
            state_of(gateway, &server.status(), Some(&authorizer)).await
        }
        // Connected without a token.
        (_, None) if status.state == ServerState::Ready && status.auth == AuthKind::None => {
            state_of(gateway, &status, Some(&authorizer)).await
        }
        (_, None) => {
            let url = begin(gateway, server, authorizer).await?;
            Ok(AuthResult {
                ok: false,
                state: "pending".to_owned(),
                url: Some(url),
                message: None,
                grant: None,
            })
        }
    }
}

/// Begins a login; a running one for the same server ends.
async fn begin(
    gateway: &Gateway,
    server: Arc<Server>,
    authorizer: Authorizer,
) -> Result<String, Problem> {
    let name = server.name().to_string();
    let (sender, url) = oneshot::channel();
    let failure = Arc::new(Mutex::new(None));
    let failed = Arc::clone(&failure);
    let (early, too_early) = oneshot::channel();
    let task = tokio::spawn(async move {
        let prompt = UrlSender(Mutex::new(Some(sender)));
        match authorizer.login(&prompt, &BTreeSet::new()).await {
            // The state of the server says whether it worked.
            Ok(_) => drop(server.refresh().await),
            Err(error) => {
                tracing::warn!(server = %server.name(), %error, "login failed");
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
                let _ = early.send(error);
            }
        }
    });
    let task = AbortOnDropHandle::new(task);
    match url.await {
        Ok(url) => {
            let login = Login { url: url.clone(), failure, _task: task };
            gateway.logins.all().insert(name, login);
            Ok(url)
        }
        Err(_) => {
            let error = too_early.await.unwrap_or(AuthError::LoginRequired);
            Err(login_failed(&name, &error))
        }
    }
}

async fn logout(
    gateway: &Gateway,
    server: &Server,
    authorizer: &Authorizer,
) -> Result<AuthResult, Problem> {
    let name = server.name().as_str();
    gateway.logins.forget(name);
    let message = match authorizer.logout().await.map_err(|error| login_failed(name, &error))? {
        Logout::NotLoggedIn => {
            return Err(Problem::new(ProblemKind::Invalid, format!("not logged in to `{name}`")));
        }
        Logout::Revoked => None,
        Logout::Forgotten(cause) => Some(format!("the login was not revoked: {cause}")),
    };
    // A connection that was made with the login ends.
    server.reconnect().await;
    Ok(AuthResult { ok: false, state: "none".to_owned(), url: None, message, grant: None })
}

/// Returns the state of a login.
async fn state_of(
    gateway: &Gateway,
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
        Ok(AuthResult { ok, state: state.to_owned(), url, message, grant })
    };
    match (gateway.logins.state(&status.name), stored) {
        (_, Ok(Some(grant))) if status.state != ServerState::NeedsAuth => {
            gateway.logins.forget(&status.name);
            result("authorized", None, None, Some(info(&grant, key_in)))
        }
        (Some(Ok(url)), _) => result("pending", Some(url), None, None),
        (Some(Err(cause)), _) => result("failed", None, Some(cause), None),
        (None, Err(error)) => result("required", None, Some(error.to_string()), None),
        (None, Ok(_)) if status.state == ServerState::NeedsAuth => {
            result("required", None, None, None)
        }
        (None, Ok(_)) if status.auth != AuthKind::None => result("authorized", None, None, None),
        (None, Ok(_)) => result("none", None, None, None),
    }
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
            let message = format!("no login to `{name}` has begun, or it has expired");
            let hint = format!("run `openclaw mcp login {name}` first");
            Problem::new(ProblemKind::Invalid, message).hint(hint)
        }
        AuthError::NotAboutTokens => invalid(&format!("`{name}` does not require a login")),
        AuthError::Unreachable { .. } => Problem::new(ProblemKind::Unavailable, message),
        AuthError::NotRegistered { .. } => {
            let hint = "register a client there, and set `auth.clientId` in the server's entry";
            Problem::new(ProblemKind::NeedsLogin, message).hint(hint)
        }
        _ => Problem::new(ProblemKind::NeedsLogin, message),
    }
}

/// Why there is no login at this server.
fn no_logins(status: &ServerStatus) -> Problem {
    let name = &status.name;
    match (status.transport, status.auth) {
        (TransportKind::Stdio, _) => {
            invalid(&format!("`{name}` is a local server and has no login"))
                .hint("set the variables it needs in `env` of its entry")
        }
        (_, AuthKind::None) => invalid(&format!("`{name}` has no login")),
        _ => invalid(&format!("`{name}` uses the key in its entry, and has no login"))
            .hint("remove `apiKey` and the `Authorization` header from its entry to log in"),
    }
}

//! The Vault token: a fixed one, or one from an AppRole login.

use std::path::PathBuf;

use serde_json::{Value, json};
use tokio::{
    sync::Mutex,
    time::{Duration, Instant},
};

use super::connection::VaultServer;
use crate::{
    ResolveErrorKind, SecretString,
    providers::{ProviderContext, http::ProviderCredential, text},
    resolve_error::ProviderFailure,
};

/// Where the token comes from.
pub(super) enum VaultLogin {
    Token(SecretString),
    /// The file written by `vault login`. Read every time: users may log in again at any time.
    File {
        path: PathBuf,
        token: ProviderCredential,
    },
    AppRole(AppRole),
}

pub(super) struct AppRole {
    mount: String,
    role_id: String,
    /// Optional: a role may not require it.
    secret_id: Option<SecretString>,
    token: ProviderCredential,
    /// Locked while logging in: secrets are fetched concurrently, and a `secret_id` may be valid
    /// for one login only.
    terms: Mutex<Terms>,
}

/// The properties of the token from the last login.
#[derive(Default)]
struct Terms {
    /// When the token expires, if it does.
    end: Option<Instant>,
    /// Whether the token may look itself up, which the policy `default` allows. Without it, Vault
    /// denies the lookup for valid and invalid tokens alike.
    may_ask: bool,
}

impl VaultLogin {
    /// Takes the token from the settings, then the environment, then the file of `vault login`.
    pub(super) fn new(context: &ProviderContext) -> Result<Self, ProviderFailure> {
        let settings = &context.settings.vault;
        let variable = |name| context.environment.get_set(name);
        if let Some(token) = &settings.token {
            return Ok(Self::fixed(context, token.clone()));
        }
        if let Some(role_id) = &settings.role_id {
            return Ok(Self::app_role(context, role_id.clone()));
        }
        if let Some(token) = variable("VAULT_TOKEN") {
            return Ok(Self::fixed(context, token.into()));
        }
        if let Some(role_id) = variable("VAULT_ROLE_ID") {
            return Ok(Self::app_role(context, role_id));
        }
        let home = context.settings.home.as_ref().ok_or_else(no_token)?;
        let token = ProviderCredential::new(context.redactor.clone());
        Ok(Self::File { path: home.join(".vault-token"), token })
    }

    fn fixed(context: &ProviderContext, token: SecretString) -> Self {
        context.redactor.add(&token);
        Self::Token(token)
    }

    fn app_role(context: &ProviderContext, role_id: String) -> Self {
        let settings = &context.settings.vault;
        let secret_id = settings
            .secret_id
            .clone()
            .or_else(|| context.environment.get_set("VAULT_SECRET_ID").map(SecretString::from));
        context.redactor.add_all(&secret_id);
        let mount = settings.approle_mount.as_deref().unwrap_or("approle");
        Self::AppRole(AppRole {
            mount: mount.trim_matches('/').to_owned(),
            role_id,
            secret_id,
            token: ProviderCredential::new(context.redactor.clone()),
            terms: Mutex::default(),
        })
    }

    /// Returns the token to use.
    pub(super) async fn token(
        &self,
        server: &VaultServer,
    ) -> Result<SecretString, ProviderFailure> {
        match self {
            Self::Token(token) => Ok(token.clone()),
            Self::File { path, token } => {
                let bytes = text::read_file(path).await.map_err(|_| no_token())?;
                let text = std::str::from_utf8(&bytes).map_err(|_| no_token())?.trim();
                if text.is_empty() {
                    return Err(no_token());
                }
                let new = SecretString::from(text);
                token.set(new.clone());
                Ok(new)
            }
            Self::AppRole(role) => role.token(server).await,
        }
    }

    /// Returns a new token after the server has denied a request with this one; `None` if there is
    /// no other, or if the token is still valid.
    pub(super) async fn token_instead_of(
        &self,
        refused: &SecretString,
        server: &VaultServer,
    ) -> Result<Option<SecretString>, ProviderFailure> {
        match self {
            Self::Token(_) | Self::File { .. } => Ok(None),
            Self::AppRole(role) => role.token_instead_of(refused, server).await,
        }
    }
}

impl AppRole {
    async fn token(&self, server: &VaultServer) -> Result<SecretString, ProviderFailure> {
        if let Some(token) = self.token.get() {
            return Ok(token);
        }
        let mut terms = self.terms.lock().await;
        // Another task may have logged in meanwhile.
        match self.token.get() {
            Some(token) => Ok(token),
            None => self.log_in(server, &mut terms).await,
        }
    }

    async fn token_instead_of(
        &self,
        refused: &SecretString,
        server: &VaultServer,
    ) -> Result<Option<SecretString>, ProviderFailure> {
        let mut terms = self.terms.lock().await;
        match self.token.get() {
            // Another task has logged in meanwhile.
            Some(token) if token != *refused => Ok(Some(token)),
            _ if terms.are_over(refused, server).await? => {
                self.log_in(server, &mut terms).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    async fn log_in(
        &self,
        server: &VaultServer,
        terms: &mut Terms,
    ) -> Result<SecretString, ProviderFailure> {
        let mut body = json!({ "role_id": self.role_id });
        if let Some(secret_id) = &self.secret_id {
            body["secret_id"] = secret_id.expose().into();
        }
        let reply = server.post(&format!("auth/{}/login", self.mount), &body).await?;
        let auth = &reply.body()["auth"];
        match (reply.status(), auth["client_token"].as_str()) {
            (200, Some(token)) => {
                let token = SecretString::from(token);
                *terms = Terms::new(auth);
                self.token.set(token.clone());
                Ok(token)
            }
            (400 | 401 | 403 | 404, _) => {
                let cause = "Vault rejected the AppRole login";
                Err(ProviderFailure::new(ResolveErrorKind::Denied, cause)
                    .hint("check the role id, the secret id and the AppRole mount"))
            }
            _ => Err(reply.failure("this path")),
        }
    }
}

impl Terms {
    fn new(auth: &Value) -> Self {
        let policies = auth["policies"].as_array();
        Self {
            // A lease duration of 0 means that it does not expire.
            end: auth["lease_duration"]
                .as_u64()
                .filter(|seconds| *seconds > 0)
                .and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds))),
            may_ask: policies.is_some_and(|policies| policies.iter().any(|it| it == "default")),
        }
    }

    /// Whether a token that was denied is no longer valid. If it is valid, a policy denied the
    /// request: another login would not help, and might use up the `secret_id`.
    async fn are_over(
        &self,
        token: &SecretString,
        server: &VaultServer,
    ) -> Result<bool, ProviderFailure> {
        if self.end.is_some_and(|end| end <= Instant::now()) {
            return Ok(true);
        }
        Ok(self.may_ask && server.get("auth/token/lookup-self", token).await?.status() == 403)
    }
}

fn no_token() -> ProviderFailure {
    ProviderFailure::new(ResolveErrorKind::NotConfigured, "no Vault token found")
        .hint("run `vault login`, or set `VAULT_TOKEN`, or `VAULT_ROLE_ID` and `VAULT_SECRET_ID`")
}

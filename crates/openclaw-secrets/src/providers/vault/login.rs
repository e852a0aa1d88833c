//! Whose token is used: a fixed one, or one that an AppRole login gives.

use std::path::PathBuf;

use serde_json::json;
use tokio::sync::Mutex;
use zeroize::Zeroizing;

use super::connection::Server;
use crate::{
    ResolveErrorKind, SecretString,
    providers::{Context, http::Credential},
    resolve_error::Failure,
};

/// The way to a token.
pub(super) enum Login {
    Token(SecretString),
    /// What `vault login` left behind. Read every time: people log in anew every day.
    File {
        path: PathBuf,
        token: Credential,
    },
    AppRole(AppRole),
}

pub(super) struct AppRole {
    mount: String,
    role_id: String,
    /// A role may do without.
    secret_id: Option<SecretString>,
    token: Credential,
    /// Held while logging in: secrets are fetched side by side, and a `secret_id` may be good for
    /// one login only.
    logging_in: Mutex<()>,
}

impl Login {
    /// What the settings say comes first, then the environment, then the file of `vault login`.
    pub(super) fn new(context: &Context) -> Result<Self, Failure> {
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
        let token = Credential::new(context.redactor.clone());
        Ok(Self::File { path: home.join(".vault-token"), token })
    }

    fn fixed(context: &Context, token: SecretString) -> Self {
        context.redactor.add(&token);
        Self::Token(token)
    }

    fn app_role(context: &Context, role_id: String) -> Self {
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
            token: Credential::new(context.redactor.clone()),
            logging_in: Mutex::new(()),
        })
    }

    /// The token to use.
    pub(super) async fn token(&self, server: &Server) -> Result<SecretString, Failure> {
        match self {
            Self::Token(token) => Ok(token.clone()),
            Self::File { path, token } => {
                let text = tokio::fs::read_to_string(path).await.map(Zeroizing::new);
                let text = text.map_err(|_| no_token())?;
                if text.trim().is_empty() {
                    return Err(no_token());
                }
                let new = SecretString::from(text.trim());
                token.set(new.clone());
                Ok(new)
            }
            Self::AppRole(role) => role.token(server, None).await,
        }
    }

    /// Another token, after the server has refused this one; `None` if there is no other.
    pub(super) async fn token_instead_of(
        &self,
        refused: &SecretString,
        server: &Server,
    ) -> Result<Option<SecretString>, Failure> {
        match self {
            Self::Token(_) | Self::File { .. } => Ok(None),
            Self::AppRole(role) => role.token(server, Some(refused)).await.map(Some),
        }
    }
}

impl AppRole {
    async fn token(
        &self,
        server: &Server,
        refused: Option<&SecretString>,
    ) -> Result<SecretString, Failure> {
        let usable = || self.token.get().filter(|token| Some(token) != refused);
        if let Some(token) = usable() {
            return Ok(token);
        }
        let _guard = self.logging_in.lock().await;
        // Someone else may have logged in while we waited.
        if let Some(token) = usable() {
            return Ok(token);
        }
        let mut body = json!({ "role_id": self.role_id });
        if let Some(secret_id) = &self.secret_id {
            body["secret_id"] = secret_id.expose().into();
        }
        let reply = server.post(&format!("auth/{}/login", self.mount), &body).await?;
        let token = reply.body()["auth"]["client_token"].as_str();
        match (reply.status(), token) {
            (200, Some(token)) => {
                let token = SecretString::from(token);
                self.token.set(token.clone());
                Ok(token)
            }
            (400 | 401 | 403 | 404, _) => {
                let cause = "Vault refused the AppRole login";
                Err(Failure::new(ResolveErrorKind::Denied, cause)
                    .hint("check the role id, the secret id, and where AppRole is mounted"))
            }
            _ => Err(reply.failure("this path")),
        }
    }
}

fn no_token() -> Failure {
    Failure::new(ResolveErrorKind::NotConfigured, "there is no token for Vault")
        .hint("run `vault login`, or set `VAULT_TOKEN`, or `VAULT_ROLE_ID` and `VAULT_SECRET_ID`")
}

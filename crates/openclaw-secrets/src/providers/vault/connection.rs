//! Requests to a Vault server, and the conversion of its errors.

use std::path::Path;

use reqwest::{
    Certificate, Client, RequestBuilder, Url,
    header::{HeaderName, HeaderValue},
};
use serde_json::Value;

use super::login::VaultLogin;
use crate::{
    ResolveErrorKind, SecretString,
    providers::{ProviderContext, expand, http, text},
    resolve_error::ProviderFailure,
};

const TOKEN: HeaderName = HeaderName::from_static("x-vault-token");
const NAMESPACE: HeaderName = HeaderName::from_static("x-vault-namespace");
/// A Vault agent may require it, as a protection against request forgery.
const REQUEST: HeaderName = HeaderName::from_static("x-vault-request");

/// An authenticated connection to a Vault server.
pub(super) struct VaultConnection {
    server: VaultServer,
    login: VaultLogin,
}

/// A Vault server, without authentication.
pub(super) struct VaultServer {
    client: Client,
    address: Url,
    namespace: Option<HeaderValue>,
}

/// A response of a Vault server.
pub(super) struct VaultReply {
    status: u16,
    body: Value,
}

impl VaultConnection {
    pub(super) async fn new(context: &ProviderContext) -> Result<Self, ProviderFailure> {
        Ok(Self { server: VaultServer::new(context).await?, login: VaultLogin::new(context)? })
    }

    /// Reads a path of the API. Retries once with a new token if the token is no longer valid.
    pub(super) async fn get(&self, path: &str) -> Result<VaultReply, ProviderFailure> {
        let token = self.login.token(&self.server).await?;
        let reply = self.server.get(path, &token).await?;
        if reply.status == 403
            && let Some(fresh) = self.login.token_instead_of(&token, &self.server).await?
        {
            return self.server.get(path, &fresh).await;
        }
        Ok(reply)
    }
}

impl VaultServer {
    async fn new(context: &ProviderContext) -> Result<Self, ProviderFailure> {
        let settings = &context.settings.vault;
        let variable = |name| context.environment.get_set(name);
        let address =
            settings.address.clone().or_else(|| variable("VAULT_ADDR")).ok_or_else(|| {
                not_configured("no Vault address configured")
                    .hint("set `secrets.vault.address` in the configuration, or `VAULT_ADDR`")
            })?;
        let address = Url::parse(&address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| {
                not_configured("the Vault address is not an http or https URL")
                    .hint("check `secrets.vault.address` and `VAULT_ADDR`")
            })?;
        let namespace = settings.namespace.clone().or_else(|| variable("VAULT_NAMESPACE"));
        let namespace = namespace.map(HeaderValue::try_from).transpose().map_err(|_| {
            not_configured("the Vault namespace contains invalid characters")
                .hint("check `secrets.vault.namespace` and `VAULT_NAMESPACE`")
        })?;
        let ca_file = match (&settings.ca_file, variable("VAULT_CACERT")) {
            (Some(path), _) => Some(expand(&context.settings, &path.to_string_lossy())?),
            (None, path) => path.map(Into::into),
        };
        let roots = match ca_file {
            Some(path) => Some(certificates(&path).await?),
            None => None,
        };
        let client = http::client(|builder| match roots {
            Some(roots) => builder.tls_certs_only(roots),
            None => builder,
        })?;
        Ok(Self { client, address, namespace })
    }

    pub(super) async fn get(
        &self,
        path: &str,
        token: &SecretString,
    ) -> Result<VaultReply, ProviderFailure> {
        let mut token = HeaderValue::try_from(token.expose()).map_err(|_| {
            not_configured("the Vault token contains invalid characters")
                .hint("check `VAULT_TOKEN`, or log in again with `vault login`")
        })?;
        token.set_sensitive(true);
        self.send(self.client.get(self.url(path)?).header(TOKEN, token)).await
    }

    /// Sends a request that needs no token.
    pub(super) async fn post(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<VaultReply, ProviderFailure> {
        self.send(self.client.post(self.url(path)?).json(body)).await
    }

    async fn send(&self, mut request: RequestBuilder) -> Result<VaultReply, ProviderFailure> {
        if let Some(namespace) = &self.namespace {
            request = request.header(NAMESPACE, namespace);
        }
        let request = request.header(REQUEST, "true");
        let response =
            request.send().await.map_err(|error| http::no_answer("the Vault server", &error))?;
        let status = response.status().as_u16();
        Ok(VaultReply { status, body: http::json_body("the Vault server", response).await? })
    }

    fn url(&self, path: &str) -> Result<Url, ProviderFailure> {
        let mut url = self.address.clone();
        url.path_segments_mut()
            .map_err(|()| not_configured("the Vault address has no host"))?
            .pop_if_empty()
            .push("v1")
            .extend(path.split('/'));
        Ok(url)
    }
}

impl VaultReply {
    pub(super) fn status(&self) -> u16 {
        self.status
    }

    pub(super) fn body(&self) -> &Value {
        &self.body
    }

    /// Converts an error response. The server's messages are omitted: they may echo the request.
    pub(super) fn failure(&self, what: &str) -> ProviderFailure {
        use ResolveErrorKind as Kind;
        let status = self.status;
        match status {
            403 => ProviderFailure::new(Kind::Denied, format!("Vault denied access to {what}"))
                .hint("check that the token is still valid and that its policy covers the path"),
            429 | 473 => ProviderFailure::new(Kind::Unreachable, "Vault is busy or in standby"),
            503 => ProviderFailure::new(Kind::Unreachable, "Vault is sealed or under maintenance")
                .hint("run `vault status` for details"),
            500..=599 => {
                let cause = format!("Vault returned HTTP {status}");
                ProviderFailure::new(Kind::Unreachable, cause)
            }
            _ => ProviderFailure::new(Kind::Failed, format!("Vault returned HTTP {status}")),
        }
    }
}

/// Reads the certificate authorities in a PEM file.
async fn certificates(path: &Path) -> Result<Vec<Certificate>, ProviderFailure> {
    let pem = text::read_file(path).await.unwrap_or_default();
    match Certificate::from_pem_bundle(&pem) {
        Ok(roots) if !roots.is_empty() => Ok(roots),
        _ => {
            let cause = format!("no readable certificates in `{}`", path.display());
            Err(not_configured(cause).hint("it must be a PEM file with CA certificates"))
        }
    }
}

fn not_configured(cause: impl Into<String>) -> ProviderFailure {
    ProviderFailure::new(ResolveErrorKind::NotConfigured, cause)
}

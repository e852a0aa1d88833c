//! The authorizer of a server: its OAuth settings with resolved secrets, and the client for its
//! authorization server (O1–O8).

use std::fmt;
use std::sync::Arc;

use openclaw_config::{DpopSetting, HttpServer, OAuthGrant, ProxySetting};
use openclaw_metrics::ServerSeries;
use openclaw_oauth::authorizer::{Authorizer, AuthorizerOptions};
use openclaw_oauth::http::{AuthHttpClient, HttpOptions};
use openclaw_oauth::login::LoginPrompt;
use openclaw_oauth::refresh::Renewals;
use openclaw_oauth::settings::{AuthSettings, DpopUse, Enterprise, GrantType};
use openclaw_oauth::store::GrantStore;
use openclaw_secrets::{ResolveError, Resolver, SecretString, SecretTemplate};
use url::Url;

use super::connector::bad;
use super::{Network, RemoteError, tls, userinfo};

/// What logins need, for all servers.
#[derive(Clone)]
pub struct AuthContext {
    /// Where grants are kept.
    pub store: Arc<dyn GrantStore>,
    /// A user who can be asked to log in, if there is one.
    pub prompt: Option<Arc<dyn LoginPrompt>>,
    /// Whether the user is also asked for a first login, and not only for more scopes.
    pub logs_in: bool,
    /// The URL of our client metadata document, for servers whose entry names none.
    pub client_metadata_url: Option<Url>,
    /// The refreshes in progress; the end of a fleet waits for them.
    pub renewals: Renewals,
}

impl fmt::Debug for AuthContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthContext").field("logs_in", &self.logs_in).finish_non_exhaustive()
    }
}

/// Why the authorizer of a server cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizerError {
    /// A secret cannot be resolved.
    #[error(transparent)]
    Secret(#[from] ResolveError),
    /// A setting is invalid.
    #[error(transparent)]
    Setting(#[from] RemoteError),
}

/// Whether the requests to a server are authorized with tokens: it has no key of its own.
pub fn uses_tokens(config: &HttpServer) -> bool {
    let says_so = |name: &String| name.eq_ignore_ascii_case("authorization");
    config.api_key.is_none() && !config.headers.keys().any(says_so) && !userinfo::counts(config)
}

/// Creates the authorizer of a server; `None` if it has a key of its own.
///
/// # Errors
/// If a secret cannot be resolved, or a setting is invalid.
pub async fn authorizer(
    server: &str,
    config: &HttpServer,
    context: &AuthContext,
    resolver: &Resolver,
    network: &Network,
    series: Option<&Arc<ServerSeries>>,
) -> Result<Option<Authorizer>, AuthorizerError> {
    if !uses_tokens(config) {
        return Ok(None);
    }
    let mut settings = settings(config, resolver).await?;
    if settings.client_metadata_url.is_none() {
        settings.client_metadata_url.clone_from(&context.client_metadata_url);
    }
    let url = userinfo::without(config.url.expose());
    let mut http = HttpOptions::for_server(&url, &settings);
    http.extra_roots = tls::extra_roots(&config.tls).await?;
    http.verify = config.tls.verify;
    http.proxy = match config.proxy.clone() {
        ProxySetting::Direct => None,
        ProxySetting::Url(proxy) => Some(Arc::new(move |_| Some(proxy.expose().clone()))),
        // The authorization server may be reached in another way than the server.
        ProxySetting::Environment => {
            let network = network.clone();
            Some(Arc::new(move |url| network.proxy_url(url)))
        }
    };
    let http = AuthHttpClient::new(http).map_err(|error| bad("`auth`", error.to_string()))?;
    Ok(Some(Authorizer::new(AuthorizerOptions {
        server: config.oauth.login.as_deref().unwrap_or(server).to_owned(),
        url,
        settings,
        http,
        store: Arc::clone(&context.store),
        redactor: resolver.redactor().clone(),
        prompt: context.prompt.clone(),
        logs_in: context.logs_in,
        redirect_port: config.oauth.redirect_port,
        renewals: context.renewals.clone(),
        series: series.cloned(),
    })))
}

async fn settings(config: &HttpServer, resolver: &Resolver) -> Result<AuthSettings, ResolveError> {
    let oauth = &config.oauth;
    let resolve = async |template: &SecretTemplate| -> Result<SecretString, ResolveError> {
        resolver.resolve_credential(template).await
    };
    let resolve_if = async |template: &Option<SecretTemplate>| match template {
        Some(template) => resolve(template).await.map(Some),
        None => Ok(None),
    };
    let grant = match &oauth.grant {
        OAuthGrant::AuthorizationCode => GrantType::AuthorizationCode,
        OAuthGrant::ClientCredentials => GrantType::ClientCredentials,
        OAuthGrant::JwtBearer { assertion } => {
            GrantType::JwtBearer { assertion: resolve(assertion).await? }
        }
        OAuthGrant::Enterprise(provider) => GrantType::Enterprise(Box::new(Enterprise {
            token_endpoint: provider.token_endpoint.expose().clone(),
            client_id: provider.client_id.clone(),
            client_secret: resolve_if(&provider.client_secret).await?,
            id_token: resolve(&provider.id_token).await?,
        })),
    };
    Ok(AuthSettings {
        client_id: oauth.client_id.clone(),
        client_secret: resolve_if(&oauth.client_secret).await?,
        private_key: resolve_if(&oauth.private_key).await?,
        signing_algorithm: oauth.signing_algorithm.clone(),
        authorization_server: oauth.authorization_server_url.as_ref().map(|it| it.expose().clone()),
        scopes: oauth.scopes.clone(),
        client_metadata_url: oauth.client_metadata_url.as_ref().map(|it| it.expose().clone()),
        grant,
        dpop: match oauth.dpop {
            DpopSetting::Auto => DpopUse::Auto,
            DpopSetting::Always => DpopUse::Always,
            DpopSetting::Never => DpopUse::Never,
        },
    })
}

//! The HTTP client for authorization: bounded, without redirects for requests with secrets, and
//! without a way into private networks for URLs that a server names (T8).

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use openclaw_net::address::{AllowPrivate, is_public};
use openclaw_net::client::{ClientOptions, ProxyAddress, TrustedRoots, guarded, is_not_public};
use openclaw_net::host::{is_internal_name, is_loopback};
use reqwest::dns::Resolve;
use reqwest::{Certificate, Client};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use url::{Host, Url, form_urlencoded};

use crate::error::AuthError;
use crate::quote::quoted;
use crate::settings::{AuthSettings, GrantType};

/// Timeout of a request, including redirects and the body.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of redirects of a GET request.
const MAX_REDIRECTS: usize = 3;
/// Maximum size of a body.
const MAX_BODY: usize = 256 * 1024;

/// Returns the proxy for a URL, or `None` for a direct connection.
pub type ProxyChoice = Arc<dyn Fn(&Url) -> Option<Url> + Send + Sync>;

/// Options of an [`AuthHttpClient`].
#[derive(Clone)]
pub struct HttpOptions {
    /// Certificate authorities to trust besides the system's: PEM files.
    pub extra_roots: Vec<Vec<u8>>,
    /// Whether certificates of [`trusted`](Self::trusted) hosts are verified. Those of other hosts
    /// always are.
    pub verify: bool,
    /// Chooses the proxy for a URL. It resolves names itself.
    pub proxy: Option<ProxyChoice>,
    /// URLs that the user configured. Their hosts may be private or on this machine.
    pub trusted: Vec<Url>,
    /// The resolver; the system's if absent. Its results are checked in any case.
    pub resolver: Option<Arc<dyn Resolve>>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            extra_roots: Vec::new(),
            verify: true,
            proxy: None,
            trusted: Vec::new(),
            resolver: None,
        }
    }
}

impl HttpOptions {
    /// Returns the default options for a server: the URLs of its settings are trusted.
    pub fn for_server(server: &Url, settings: &AuthSettings) -> Self {
        let mut trusted = vec![server.clone()];
        trusted.extend(settings.authorization_server.clone());
        trusted.extend(settings.client_metadata_url.clone());
        if let GrantType::Enterprise(provider) = &settings.grant {
            trusted.push(provider.token_endpoint.clone());
        }
        Self { trusted, ..Self::default() }
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trusted: Vec<_> = self.trusted.iter().map(Url::host_str).collect();
        f.debug_struct("HttpOptions")
            .field("verify", &self.verify)
            .field("trusted", &trusted)
            .finish_non_exhaustive()
    }
}

/// A response with its whole body.
#[derive(Clone)]
pub struct AuthResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, at most 256 KiB.
    pub body: Vec<u8>,
    /// Where it came from, after redirects.
    pub url: Url,
}

impl fmt::Debug for AuthResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("status", &self.status).finish_non_exhaustive()
    }
}

impl AuthResponse {
    /// Returns the JSON object in the body. Errors do not quote it.
    ///
    /// # Errors
    /// If it is HTML, not JSON, or not an object.
    pub fn object(&self, what: &'static str) -> Result<Map<String, Value>, AuthError> {
        let content_type = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_html = content_type.is_some_and(|kind| kind.to_ascii_lowercase().contains("html"));
        if is_html || self.body.trim_ascii_start().starts_with(b"<") {
            return Err(invalid(what, &self.url, "HTML instead of JSON"));
        }
        match serde_json::from_slice(&self.body) {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err(invalid(what, &self.url, "not a JSON object")),
            Err(_) if self.body.is_empty() => Err(invalid(what, &self.url, "an empty body")),
            Err(_) => Err(invalid(what, &self.url, "not JSON")),
        }
    }

    /// Returns the JSON object in the body as a type without secrets: errors quote it.
    ///
    /// # Errors
    /// If it is HTML, not JSON, or does not fit the type.
    pub fn document<T: DeserializeOwned>(&self, what: &'static str) -> Result<T, AuthError> {
        let object = self.object(what)?;
        serde_json::from_value(Value::Object(object))
            .map_err(|error| invalid(what, &self.url, &error.to_string()))
    }
}

/// An HTTP client for authorization. Clones share its connections.
///
/// Only https, except on this machine. A URL that a server names may lead to this machine or a
/// private network only if the user configured a URL with the same host; for this purpose, all
/// loopback hosts are the same.
#[derive(Clone, Debug)]
pub struct AuthHttpClient(Arc<Inner>);

struct Inner {
    trusted: Vec<Url>,
    verify: bool,
    proxy: Option<ProxyChoice>,
    roots: Vec<Certificate>,
    resolver: Option<Arc<dyn Resolve>>,
    /// Created when they are needed: loading the system's certificates is slow. The environment names
    /// three proxies at most.
    clients: Mutex<Vec<(Kind, Client)>>,
}

/// What distinguishes the clients.
#[derive(Clone, PartialEq)]
struct Kind {
    proxy: Option<ProxyAddress>,
    verifies: bool,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("verify", &self.verify).finish_non_exhaustive()
    }
}

impl AuthHttpClient {
    /// Returns a client.
    ///
    /// # Errors
    /// If a certificate is invalid.
    pub fn new(options: HttpOptions) -> Result<Self, AuthError> {
        let HttpOptions { extra_roots, verify, proxy, trusted, resolver } = options;
        let mut roots = Vec::new();
        for pem in &extra_roots {
            let found = Certificate::from_pem_bundle(pem).ok().filter(|found| !found.is_empty());
            roots.extend(found.ok_or_else(|| AuthError::Setting {
                setting: "tls.caFile",
                cause: "it has no valid PEM certificate".to_owned(),
            })?);
        }
        let clients = Mutex::default();
        Ok(Self(Arc::new(Inner { trusted, verify, proxy, roots, resolver, clients })))
    }

    /// Checks whether a URL may be contacted, or opened in a browser.
    ///
    /// # Errors
    /// [`AuthError::Refused`] if it is not https, has a user or password, or is private; another error
    /// if its proxy is invalid.
    pub fn check(&self, what: &'static str, url: &Url) -> Result<(), AuthError> {
        let refused = |cause| AuthError::Refused { what, url: AuthError::shown(url), cause };
        let host = url.host().ok_or_else(|| refused("not a web URL"))?;
        match url.scheme() {
            "https" => {}
            "http" if is_loopback(&host) => {}
            _ => return Err(refused("not https")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("a user name or password in the URL"));
        }
        let proxy = self.proxy(url)?;
        let is_fine = match &host {
            Host::Ipv4(address) => is_public((*address).into()),
            Host::Ipv6(address) => is_public((*address).into()),
            // What other names resolve to is checked by the resolver, but not by a proxy.
            Host::Domain(name) => match &proxy {
                Some(proxy) => !is_internal_name(name) && !proxy.is_host(name),
                None => !is_loopback(&host),
            },
        };
        if is_fine || self.is_trusted(url) { Ok(()) } else { Err(refused("a private address")) }
    }

    /// Gets a JSON document. Follows redirects; sends no credentials.
    ///
    /// # Errors
    /// If the URL is refused, the server cannot be reached, or the body is too large. Any status is a
    /// response.
    pub async fn get(&self, what: &'static str, url: &Url) -> Result<AuthResponse, AuthError> {
        let following = async {
            let mut url = url.clone();
            for _ in 0..=MAX_REDIRECTS {
                let response =
                    self.send(what, Method::GET, &url, HeaderMap::new(), Vec::new()).await?;
                if !is_redirect(response.status) {
                    return Ok(response);
                }
                let target = response.headers.get(LOCATION).and_then(|to| to.to_str().ok());
                let target = target.and_then(|target| url.join(target).ok());
                url = target.ok_or_else(|| invalid(what, &url, "an invalid redirect"))?;
            }
            Err(invalid(what, &url, "too many redirects"))
        };
        within(what, url, following).await
    }

    /// Posts a form, with further headers. Redirects are errors: they would leak the secrets.
    ///
    /// # Errors
    /// As for [`get`](Self::get), or if the response is a redirect.
    pub async fn post_form(
        &self,
        what: &'static str,
        url: &Url,
        form: &[(&str, &str)],
        mut headers: HeaderMap,
    ) -> Result<AuthResponse, AuthError> {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let content_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, content_type);
        self.post(what, url, headers, body.into_bytes()).await
    }

    /// Posts a JSON document. Redirects are errors.
    ///
    /// # Errors
    /// As for [`post_form`](Self::post_form).
    pub async fn post_json(
        &self,
        what: &'static str,
        url: &Url,
        body: &Value,
    ) -> Result<AuthResponse, AuthError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.post(what, url, headers, body.to_string().into_bytes()).await
    }

    async fn post(
        &self,
        what: &'static str,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<AuthResponse, AuthError> {
        let response = within(what, url, self.send(what, Method::POST, url, headers, body)).await?;
        if is_redirect(response.status) {
            return Err(invalid(what, url, "a redirect, which is not followed"));
        }
        Ok(response)
    }

    async fn send(
        &self,
        what: &'static str,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<AuthResponse, AuthError> {
        self.check(what, url)?;
        let client = self.client(url).await?;
        let request = client.request(method, url.clone()).header(ACCEPT, "application/json");
        let sent = request.headers(headers).body(body).send().await;
        let is_proxied = self.proxy(url)?.is_some();
        let lost = |error: reqwest::Error| unreachable(what, url, &error, is_proxied);
        let mut response = sent.map_err(lost)?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(lost)? {
            if body.len() + chunk.len() > MAX_BODY {
                return Err(invalid(what, url, "larger than 256 KiB"));
            }
            body.extend_from_slice(&chunk);
        }
        let (status, headers) = (response.status(), response.headers().clone());
        tracing::debug!(what, url = %AuthError::shown(url), status = status.as_u16(), "response");
        Ok(AuthResponse { status, headers, body, url: url.clone() })
    }

    async fn client(&self, url: &Url) -> Result<Client, AuthError> {
        let (inner, kind) = (&*self.0, self.kind(url)?);
        let mut clients = inner.clients.lock().await;
        if let Some((_, client)) = clients.iter().find(|(known, _)| *known == kind) {
            return Ok(client.clone());
        }
        let roots = match inner.roots.as_slice() {
            _ if !kind.verifies => TrustedRoots::Unverified,
            [] => TrustedRoots::System,
            extra => TrustedRoots::Extra(extra.to_vec()),
        };
        let options = ClientOptions {
            allow_private: allowed(&inner.trusted),
            proxy: kind.proxy.clone(),
            roots,
            resolver: inner.resolver.clone(),
        };
        let client = guarded(&options).await.map_err(|error| setting("tls", &error))?;
        clients.push((kind, client.clone()));
        Ok(client)
    }

    fn kind(&self, url: &Url) -> Result<Kind, AuthError> {
        let verifies = self.0.verify || !self.is_trusted(url);
        Ok(Kind { proxy: self.proxy(url)?, verifies })
    }

    fn proxy(&self, url: &Url) -> Result<Option<ProxyAddress>, AuthError> {
        let proxy = self.0.proxy.as_ref().and_then(|choose| choose(url));
        proxy.map(ProxyAddress::try_from).transpose().map_err(|error| setting("proxy", &error))
    }

    /// Whether the user configured a URL with the same host.
    fn is_trusted(&self, url: &Url) -> bool {
        let is_here = |url: &Url| url.host().is_some_and(|host| is_loopback(&host));
        let is_same =
            |trusted: &Url| trusted.host() == url.host() || (is_here(trusted) && is_here(url));
        self.0.trusted.iter().any(is_same)
    }
}

fn setting(setting: &'static str, cause: &dyn std::error::Error) -> AuthError {
    AuthError::Setting { setting, cause: cause.to_string() }
}

/// Names whose addresses are not checked. Address literals are never resolved.
fn allowed(trusted: &[Url]) -> AllowPrivate {
    let mut names: Vec<&str> = trusted.iter().filter_map(Url::domain).collect();
    if trusted.iter().filter_map(Url::host).any(|host| is_loopback(&host)) {
        names.push("localhost");
    }
    let valid = names.into_iter().filter(|name| AllowPrivate::new([*name]).is_ok());
    AllowPrivate::new(valid).unwrap_or_default()
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

async fn within<T>(
    what: &'static str,
    url: &Url,
    work: impl Future<Output = Result<T, AuthError>>,
) -> Result<T, AuthError> {
    let timed = tokio::time::timeout(TIMEOUT, Box::pin(work)).await;
    timed.unwrap_or_else(|_| {
        let cause = format!("timed out after {} s", TIMEOUT.as_secs());
        Err(AuthError::Unreachable { what, url: AuthError::shown(url), cause })
    })
}

fn unreachable(
    what: &'static str,
    url: &Url,
    error: &reqwest::Error,
    is_proxied: bool,
) -> AuthError {
    if is_not_public(error) {
        return AuthError::Refused {
            what,
            url: AuthError::shown(url),
            cause: "its host name resolves to a private address",
        };
    }
    // The innermost cause is the one that helps; the outer ones contain the URL with its query.
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let cause = causes.last().map_or_else(|| "connection lost".to_owned(), ToString::to_string);
    let cause = match is_proxied && error.is_connect() {
        true => format!("cannot connect through the proxy: {cause}"),
        false => cause,
    };
    AuthError::Unreachable { what, url: AuthError::shown(url), cause: quoted(&cause) }
}

/// Returns an error for a document or response that cannot be used.
pub(crate) fn invalid(what: &'static str, url: &Url, cause: &str) -> AuthError {
    AuthError::Invalid { what, url: AuthError::shown(url), cause: quoted(cause) }
}

/// Returns an error for a status that may be better next time, or `None`.
pub(crate) fn temporary(what: &'static str, response: &AuthResponse) -> Option<AuthError> {
    let status = response.status;
    let is_temporary = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
    is_temporary.then(|| AuthError::Unreachable {
        what,
        url: AuthError::shown(&response.url),
        cause: format!("HTTP {}", status.as_u16()),
    })
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;

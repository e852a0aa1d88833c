//! The HTTP client of one server: pooled, with its own certificates, proxy and headers (T8, T12).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::{ProxySetting, TlsSettings};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, ClientBuilder, Identity, Proxy, redirect};

use super::{RemoteError, RemotePlan};
use crate::wire::http::{NoSuchHost, RESERVED, tls_words};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// How many connections are kept for later.
const IDLE: usize = 16;
/// Larger files of certificates are none.
const MAX_PEM: u64 = 8 * 1024 * 1024;

/// A client, and what must be known of it.
pub(super) struct Made {
    pub(super) client: Client,
    pub(super) is_proxied: bool,
}

/// Authorities, where the system's do not do.
enum Roots {
    /// The system's and these.
    System(Vec<Certificate>),
    /// These alone.
    Only(Vec<Certificate>),
}

pub(super) async fn make(plan: &RemotePlan) -> Result<Made, RemoteError> {
    let url = plan.config.url.expose();
    let tls = &plan.config.tls;
    let headers = default_headers(plan)?;
    let proxy = proxy(plan)?;
    let is_proxied = proxy.is_some();
    let identity = identity(tls).await?;
    let roots = roots(plan, is_proxied).await?;
    let patience = CONNECT.min(plan.timeout);
    let begin = || {
        let mut builder = Client::builder()
            .default_headers(headers.clone())
            // Redirects are followed by the wire, which knows where credentials may go.
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .tcp_nodelay(true)
            // Another crate of the program switches unpacking on for all clients.
            .no_gzip()
            .http1_only()
            .connect_timeout(patience)
            .pool_max_idle_per_host(IDLE)
            .dns_resolver(Arc::new(Lookup))
            .tls_danger_accept_invalid_certs(!tls.verify);
        if let Some(proxy) = &proxy {
            builder = builder.proxy(proxy.clone());
        }
        if let Some(identity) = &identity {
            builder = builder.identity(identity.clone());
        }
        builder
    };
    let https = url.scheme() == "https";
    let client = match roots {
        Roots::Only(only) => build(begin().tls_certs_only(only)).await,
        Roots::System(more) => match build(begin().tls_certs_merge(more.clone())).await {
            Ok(client) => Ok(client),
            // A machine without certificates, such as a bare container: ours do.
            Err(_) => build(begin().tls_certs_only(bundled().chain(more))).await,
        },
    };
    let setting = if https { "`tls`" } else { "`url`" };
    let client = client.map_err(|error| bad(setting, innermost(error)))?;
    Ok(Made { client, is_proxied })
}

/// Reading the system's certificates takes a while.
async fn build(builder: ClientBuilder) -> reqwest::Result<Client> {
    match tokio::task::spawn_blocking(|| builder.build()).await {
        Ok(built) => built,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

fn bundled() -> impl Iterator<Item = Certificate> {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS
        .iter()
        .filter_map(|der| Certificate::from_der(der).ok())
}

async fn roots(plan: &RemotePlan, is_proxied: bool) -> Result<Roots, RemoteError> {
    if plan.config.url.expose().scheme() != "https" && !is_proxied {
        return Ok(Roots::Only(Vec::new()));
    }
    let mut more = Vec::new();
    if let Some(file) = &plan.config.tls.ca_file {
        more = certificates("`tls.caFile`", file).await?;
    }
    match &plan.network.cert_file {
        None => Ok(Roots::System(more)),
        Some(file) => {
            more.extend(certificates("`SSL_CERT_FILE`", file).await?);
            Ok(Roots::Only(more))
        }
    }
}

async fn certificates(setting: &str, file: &Path) -> Result<Vec<Certificate>, RemoteError> {
    let pem = read(setting, file).await?;
    let certificates = Certificate::from_pem_bundle(&pem);
    let certificates = certificates.map_err(|error| bad(setting, innermost(error)))?;
    if certificates.is_empty() {
        return Err(bad(setting, format!("there is no certificate in {}", file.display())));
    }
    Ok(certificates)
}

async fn identity(tls: &TlsSettings) -> Result<Option<Identity>, RemoteError> {
    let Some(certificate) = &tls.client_cert else { return Ok(None) };
    let mut pem = read("`tls.clientCert`", certificate).await?;
    if let Some(key) = &tls.client_key {
        pem.push(b'\n');
        pem.extend(read("`tls.clientKey`", key).await?);
    }
    let identity = Identity::from_pem(&pem);
    identity.map(Some).map_err(|error| bad("`tls.clientCert`", innermost(error)))
}

async fn read(setting: &str, file: &Path) -> Result<Vec<u8>, RemoteError> {
    let failed = |error: std::io::Error| bad(setting, format!("{}: {error}", file.display()));
    let size = tokio::fs::metadata(file).await.map_err(failed)?.len();
    if size > MAX_PEM {
        return Err(bad(setting, format!("{} is too large", file.display())));
    }
    tokio::fs::read(file).await.map_err(failed)
}

fn proxy(plan: &RemotePlan) -> Result<Option<Proxy>, RemoteError> {
    let made = match &plan.config.proxy {
        ProxySetting::Direct => return Ok(None),
        ProxySetting::Url(url) => Proxy::all(url.expose().as_str()),
        ProxySetting::Environment => {
            let Some(found) = plan.network.proxy_to(plan.config.url.expose()) else {
                return Ok(None);
            };
            let proxy = Proxy::all(found.uri().to_string());
            match found.basic_auth() {
                Some(auth) => proxy.map(|proxy| proxy.custom_http_auth(auth.clone())),
                None => proxy,
            }
        }
    };
    made.map(Some).map_err(|error| bad("`proxy`", innermost(error)))
}

fn default_headers(plan: &RemotePlan) -> Result<HeaderMap, RemoteError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &plan.headers {
        let setting = || format!("the header `{name}`");
        let parsed = HeaderName::from_bytes(name.as_bytes());
        let parsed = parsed.map_err(|_| bad(&setting(), "it is no name of a header"))?;
        if RESERVED.contains(&parsed) {
            tracing::debug!(server = plan.server, header = name, "set by the protocol; left out");
            continue;
        }
        let value = HeaderValue::from_str(value.expose());
        let mut value =
            value.map_err(|_| bad(&setting(), "its value holds what a header cannot"))?;
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    Ok(headers)
}

fn bad(setting: &str, cause: impl Into<String>) -> RemoteError {
    RemoteError::Setting { setting: setting.to_owned(), cause: cause.into() }
}

/// The innermost cause says most. Where it is the error itself: without the address, which may hold
/// credentials.
fn innermost(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &(dyn std::error::Error + 'static) = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.downcast_ref().map_or_else(|| cause.to_string(), tls_words)
}

/// Looks up host names as the system does, and says so if one is not known.
struct Lookup;

impl Resolve for Lookup {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await;
            let found = found.map_err(|cause| NoSuchHost { cause })?;
            Ok(Box::new(found.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}

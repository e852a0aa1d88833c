//! The HTTP client for pages: no cookies, no credentials, no automatic redirects, no decompression.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder, Proxy, redirect};
use url::Url;

use super::rules::FetchError;
use super::{GuardedResolver, WebSettings};

/// Timeout of connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// Maximum number of idle connections per host.
const IDLE: usize = 2;
/// User agent.
const AGENT: &str = concat!("openclaw/", env!("CARGO_PKG_VERSION"));

/// URL of a proxy, which may contain a password.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyAddress(Url);

/// A text that is not a valid proxy URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a proxy URL must be `http://host:port` or `https://host:port`")]
pub struct BadProxy;

impl FromStr for ProxyAddress {
    type Err = BadProxy;

    fn from_str(text: &str) -> Result<Self, BadProxy> {
        let url = Url::parse(text).map_err(|_| BadProxy)?;
        let fits = matches!(url.scheme(), "http" | "https") && url.host().is_some();
        if fits { Ok(Self(url)) } else { Err(BadProxy) }
    }
}

impl ProxyAddress {
    /// Returns whether this is the proxy's host name.
    pub(super) fn is_host(&self, name: &str) -> bool {
        self.0.host_str() == Some(name)
    }
}

impl fmt::Debug for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProxyAddress").field(&self.0.host_str().unwrap_or_default()).finish()
    }
}

pub(super) async fn make(settings: &WebSettings) -> Result<Client, FetchError> {
    let builder = begin(settings)?;
    let made = match &settings.authorities {
        Some(only) => build(builder.tls_certs_only(only.clone())).await,
        None => match build(builder).await {
            Some(client) => Some(client),
            // A system without certificates, such as a minimal container: use the bundled ones.
            None => build(begin(settings)?.tls_certs_only(bundled())).await,
        },
    };
    made.ok_or(FetchError::NoClient)
}

fn begin(settings: &WebSettings) -> Result<ClientBuilder, FetchError> {
    let proxy = settings.proxy.as_ref();
    let trusted = proxy.and_then(|proxy| proxy.0.host_str()).map(str::to_owned);
    let resolver = GuardedResolver::new(settings.resolver.clone(), settings.allow_private.clone());
    let builder = Client::builder()
        .user_agent(AGENT)
        // Redirects are followed one by one, and checked.
        .redirect(redirect::Policy::none())
        .referer(false)
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
        // Not even one from the environment: it would bypass the check of addresses.
        .no_proxy()
        .connect_timeout(CONNECT)
        .pool_max_idle_per_host(IDLE)
        .dns_resolver(Arc::new(resolver.trusting(trusted)));
    Ok(match proxy {
        Some(proxy) => {
            let proxy = Proxy::all(proxy.0.as_str()).map_err(|_| FetchError::NoClient)?;
            builder.proxy(proxy)
        }
        None => builder,
    })
}

/// On a blocking thread: loading the system's certificates is slow.
async fn build(builder: ClientBuilder) -> Option<Client> {
    let built = tokio::task::spawn_blocking(|| builder.build()).await.ok()?;
    built.inspect_err(|error| tracing::warn!(%error, "cannot create an HTTP client")).ok()
}

fn bundled() -> impl Iterator<Item = Certificate> {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS
        .iter()
        .filter_map(|der| Certificate::from_der(der).ok())
}

//! An HTTP client for untrusted URLs: no cookies, no credentials, no automatic redirects, no
//! decompression, and only public or allowed addresses.

use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::Resolve;
use reqwest::{Certificate, Client, ClientBuilder, Proxy, redirect};
use url::Url;

use crate::address::AllowPrivate;
use crate::resolver::{GuardedResolver, NotPublic};

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
#[error(
    "a proxy URL must be `http://host:port`, or begin with `https://`, `socks5://` or `socks5h://`"
)]
pub struct BadProxy;

impl FromStr for ProxyAddress {
    type Err = BadProxy;

    fn from_str(text: &str) -> Result<Self, BadProxy> {
        Url::parse(text).map_err(|_| BadProxy)?.try_into()
    }
}

impl TryFrom<Url> for ProxyAddress {
    type Error = BadProxy;

    fn try_from(url: Url) -> Result<Self, BadProxy> {
        let schemes = ["http", "https", "socks5", "socks5h"];
        let fits = schemes.contains(&url.scheme()) && url.host().is_some();
        if fits { Ok(Self(url)) } else { Err(BadProxy) }
    }
}

impl ProxyAddress {
    /// Returns whether this is the proxy's host name.
    pub fn is_host(&self, name: &str) -> bool {
        self.0.host_str() == Some(name)
    }
}

impl fmt::Debug for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProxyAddress").field(&self.0.host_str().unwrap_or_default()).finish()
    }
}

/// Certificate authorities that a client trusts.
#[derive(Debug, Clone, Default)]
pub enum TrustedRoots {
    /// Those of the system, or bundled ones if it has none.
    #[default]
    System,
    /// Those of the system or the bundled ones, and these.
    Extra(Vec<Certificate>),
    /// Only these.
    Only(Vec<Certificate>),
    /// Certificates are not verified.
    Unverified,
}

/// Options of a [`guarded`] client.
#[derive(Clone, Default)]
pub struct ClientOptions {
    /// Hosts and networks that may be reached although they are not public.
    pub allow_private: AllowPrivate,
    /// Proxy for all requests. It resolves names itself: what a name resolves to is not checked.
    pub proxy: Option<ProxyAddress>,
    /// Certificate authorities.
    pub roots: TrustedRoots,
    /// Resolver; the system's if absent. Its results are checked in any case.
    pub resolver: Option<Arc<dyn Resolve>>,
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions")
            .field("allow_private", &self.allow_private)
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

/// The client cannot be created: TLS is not available, or the proxy cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("TLS is not available on this machine")]
pub struct NoClient;

/// Returns a client that connects only to public and allowed addresses.
///
/// An address literal in a URL is never resolved, so the caller must check it (see
/// [`is_public`](crate::address::is_public)). Loading the system's certificates is slow: keep the
/// client.
///
/// # Errors
/// If it cannot be created.
pub async fn guarded(options: &ClientOptions) -> Result<Client, NoClient> {
    let builder = begin(options)?;
    let made = match &options.roots {
        TrustedRoots::Only(only) => build(builder.tls_certs_only(only.clone())).await,
        TrustedRoots::Unverified => build(builder.tls_danger_accept_invalid_certs(true)).await,
        TrustedRoots::System => match build(builder).await {
            Some(client) => Some(client),
            // A system without certificates, such as a minimal container: use the bundled ones.
            None => build(begin(options)?.tls_certs_only(bundled())).await,
        },
        TrustedRoots::Extra(extra) => match build(builder.tls_certs_merge(extra.clone())).await {
            Some(client) => Some(client),
            None => {
                let all = bundled().chain(extra.clone());
                build(begin(options)?.tls_certs_only(all)).await
            }
        },
    };
    made.ok_or(NoClient)
}

/// Returns whether a request failed because a host name resolves to an address that is not public.
pub fn is_not_public(error: &reqwest::Error) -> bool {
    let error: &(dyn Error + 'static) = error;
    std::iter::successors(Some(error), |&error| error.source()).any(|error| error.is::<NotPublic>())
}

fn begin(options: &ClientOptions) -> Result<ClientBuilder, NoClient> {
    let proxy = options.proxy.as_ref();
    let trusted = proxy.and_then(|proxy| proxy.0.host_str()).map(str::to_owned);
    let resolver = GuardedResolver::new(options.resolver.clone(), options.allow_private.clone());
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
        Some(proxy) => builder.proxy(Proxy::all(proxy.0.as_str()).map_err(|_| NoClient)?),
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

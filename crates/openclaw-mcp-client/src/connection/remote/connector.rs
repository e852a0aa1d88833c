//! Creates the HTTP client of one server, with its own certificates, proxy and headers (T8, T12).

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::uri::Uri;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::Intercept;
use openclaw_config::ProxySetting;
use rustls::ClientConfig;
use tower_service::Service;

use super::{RemoteError, RemotePlan, network, tls, userinfo};
use crate::wire::http::{
    ConnectorError, Forwarded, HttpClient, NoSuchHost, OpenConnection, RESERVED, RequestTarget,
    ServerRoute, Stream,
};

/// Maximum time to open a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// A peer that vanished is detected by keep-alive probes and, on Linux, by unacknowledged data.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const KEEP_ALIVE_PROBES: u32 = 3;
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Creates the client of a server and the target of its requests.
pub(super) async fn client_and_target(
    plan: &RemotePlan,
) -> Result<(HttpClient, RequestTarget), RemoteError> {
    let url = userinfo::without(plan.config.url.expose());
    let headers = default_headers(plan)?;
    let proxy = proxy(plan)?;
    let needs_tls = url.scheme() == "https" || proxy.is_some();
    let tls = Arc::new(tls::config(plan, needs_tls).await?);
    let bad_url = || bad("`url`", "not a valid HTTP URL");
    let server: Uri = url.as_str().parse().map_err(|_| bad_url())?;
    let is_proxied = proxy.is_some();
    let (connect, forwarded) = route(server, proxy, tls);
    let connect_timeout = CONNECT.min(plan.timeout);
    let traffic = plan.traffic.clone();
    let reach = ServerRoute { connect, connect_timeout, is_proxied, forwarded, headers, traffic };
    let client = HttpClient::new(reach);
    let target = client.target(url).ok_or_else(bad_url)?;
    Ok((client, target))
}

/// Returns how a connection is opened, and whether a proxy forwards the requests.
fn route(
    server: Uri,
    proxy: Option<Intercept>,
    tls: Arc<ClientConfig>,
) -> (OpenConnection, Option<Forwarded>) {
    let Some(proxy) = proxy else {
        return (connecting(HttpsConnector::from((tcp(), tls)), server), None);
    };
    let address = proxy.uri().clone();
    if address.scheme_str().is_some_and(|scheme| scheme.starts_with("socks5")) {
        let resolves_names = address.scheme_str() == Some("socks5h");
        let mut socks = SocksV5::new(with_port(address), tcp()).local_dns(!resolves_names);
        if let Some((user, password)) = proxy.raw_auth() {
            socks = socks.with_auth(user.to_owned(), password.to_owned());
        }
        return (connecting(HttpsConnector::from((socks, tls)), server), None);
    }
    let to_proxy = HttpsConnector::from((tcp(), Arc::clone(&tls)));
    let authorization = proxy.basic_auth().cloned();
    if server.scheme_str() == Some("http") {
        return (connecting(to_proxy, address), Some(Forwarded { authorization }));
    }
    let mut tunnel = Tunnel::new(address, to_proxy);
    if let Some(authorization) = authorization {
        tunnel = tunnel.with_auth(authorization);
    }
    (connecting(HttpsConnector::from((tunnel, tls)), server), None)
}

/// Adds the default port to the address of a SOCKS proxy, if it has none.
fn with_port(address: Uri) -> Uri {
    let (None, Some(host)) = (address.port(), address.host()) else { return address };
    let mut parts = address.clone().into_parts();
    parts.authority = format!("{host}:1080").parse().ok();
    Uri::from_parts(parts).unwrap_or(address)
}

/// Boxes a connector; its type depends on the proxy.
fn connecting<C>(connector: C, to: Uri) -> OpenConnection
where
    C: Service<Uri, Error = ConnectorError> + Clone + Send + Sync + 'static,
    C::Response: Stream + 'static,
    C::Future: Send,
{
    Box::new(move || {
        let mut connector = connector.clone();
        let to = to.clone();
        Box::pin(async move {
            std::future::poll_fn(|cx| connector.poll_ready(cx)).await?;
            Ok(Box::new(connector.call(to).await?) as Box<dyn Stream>)
        })
    })
}

fn tcp() -> HttpConnector<Lookup> {
    let mut tcp = HttpConnector::new_with_resolver(Lookup);
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEP_ALIVE));
    tcp.set_keepalive_interval(Some(KEEP_ALIVE));
    tcp.set_keepalive_retries(Some(KEEP_ALIVE_PROBES));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    tcp
}

fn proxy(plan: &RemotePlan) -> Result<Option<Intercept>, RemoteError> {
    let url = plan.config.url.expose();
    match &plan.config.proxy {
        ProxySetting::Direct => Ok(None),
        ProxySetting::Environment => Ok(plan.network.proxy_to(url)),
        ProxySetting::Url(proxy) => match network::configured_proxy(proxy.expose(), url) {
            Some(proxy) => Ok(Some(proxy)),
            None => Err(bad("`proxy`", "not a valid proxy URL")),
        },
    }
}

fn default_headers(plan: &RemotePlan) -> Result<HeaderMap, RemoteError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &plan.headers {
        let setting = || match (name.as_str(), &plan.config.api_key) {
            ("Authorization", Some(_)) => "`apiKey`".to_owned(),
            _ => format!("the header `{name}`"),
        };
        let parsed = HeaderName::from_bytes(name.as_bytes());
        let parsed = parsed.map_err(|_| bad(&setting(), "invalid header name"))?;
        if RESERVED.contains(&parsed) {
            tracing::debug!(server = plan.server, header = name, "ignored: set by the protocol");
            continue;
        }
        let value = HeaderValue::from_str(value.expose());
        let mut value = value.map_err(|_| {
            bad(&setting(), "its value has characters that are not allowed in a header")
        })?;
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    Ok(headers)
}

pub(super) fn bad(setting: &str, cause: impl Into<String>) -> RemoteError {
    RemoteError::Setting { setting: setting.to_owned(), cause: cause.into() }
}

/// Resolves host names with the system resolver; a failure has its own error type.
#[derive(Clone)]
struct Lookup;

impl Service<Name> for Lookup {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = NoSuchHost;
    type Future = BoxFuture<'static, Result<Self::Response, NoSuchHost>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoSuchHost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await;
            let found = found.map_err(|cause| NoSuchHost { cause })?;
            Ok(found.collect::<Vec<_>>().into_iter())
        })
    }
}

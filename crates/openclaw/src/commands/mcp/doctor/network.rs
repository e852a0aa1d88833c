//! Checks that the host of a remote server can be reached, before a connection is tried.

use std::path::Path;
use std::time::Duration;

use openclaw_config::{HttpServer, ProxySetting};
use openclaw_mcp_client::connection::remote::Network;
use openclaw_secrets::Environment;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::commands::check::Check;

/// The timeout of each step.
const PATIENCE: Duration = Duration::from_secs(5);

/// Resolves the host and opens the port, unless a proxy does that.
pub(super) async fn checks(server: &HttpServer, environment: &Environment) -> Vec<Check> {
    let url = server.url.expose();
    let mut checks = vec![Check::good(format!("URL: {}", server.url))];
    if !server.tls.verify {
        checks.push(Check::note("certificate verification is off (`tls.verify: false`)"));
    }
    if let Some(file) = server.tls.ca_file.as_deref().filter(|_| url.scheme() == "https") {
        checks.push(authorities(file));
    }
    if let Some(proxy) = proxy(server, environment) {
        checks.push(Check::note(proxy));
        return checks;
    }
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return checks;
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found = timeout(PATIENCE, lookup_host((host, port))).await;
    let addresses: Vec<_> = match found {
        Ok(Ok(addresses)) => addresses.collect(),
        Ok(Err(error)) => {
            let advice = "check the host name in `url`, and the network".to_owned();
            checks.push(Check::bad(format!("host `{host}` not found: {error}"), Some(advice)));
            return checks;
        }
        Err(_) => {
            let advice = "check the network, and whether a proxy is needed".to_owned();
            checks.push(Check::bad(format!("DNS lookup of `{host}` timed out"), Some(advice)));
            return checks;
        }
    };
    checks.push(Check::good(format!("host `{host}` found")));
    checks.push(match timeout(PATIENCE, TcpStream::connect(&addresses[..])).await {
        Ok(Ok(_)) => Check::good(format!("port {port} is open")),
        Ok(Err(error)) => Check::bad(
            format!("cannot connect to port {port}: {error}"),
            Some("check that the service is running and that the port is right".to_owned()),
        ),
        Err(_) => Check::bad(
            format!("connecting to port {port} timed out"),
            Some("check for a firewall, and whether a proxy is needed".to_owned()),
        ),
    });
    checks
}

/// Checks that the file exists; its contents are checked when connecting.
fn authorities(file: &Path) -> Check {
    let shown = file.display();
    match file.is_file() {
        true => Check::note(format!("`tls.caFile`: {shown}")),
        false => Check::bad(
            format!("`tls.caFile` not found: {shown}"),
            Some("correct `tls.caFile` in its entry".to_owned()),
        ),
    }
}

/// Describes the proxy, if one is used.
fn proxy(server: &HttpServer, environment: &Environment) -> Option<String> {
    match &server.proxy {
        ProxySetting::Direct => None,
        ProxySetting::Url(proxy) => Some(format!("connects through the proxy {proxy}")),
        // Loopback hosts and those in NO_PROXY are reached directly.
        ProxySetting::Environment => Network::of(environment)
            .proxy_on_the_way_to(server.url.expose())
            .map(|proxy| format!("connects through the proxy {proxy}, set in the environment")),
    }
}

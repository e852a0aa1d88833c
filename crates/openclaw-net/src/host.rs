//! Host names that only have a meaning on this machine or in its network.

use url::Host;

/// Returns whether a host is this machine: `localhost`, a name below it, or a loopback address.
///
/// ```
/// use url::Url;
///
/// let url = Url::parse("http://[::1]:8080/").unwrap();
/// assert!(openclaw_net::host::is_loopback(&url.host().unwrap()));
/// ```
pub fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => is_localhost(name),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

/// Returns whether a name is `localhost` or below it.
pub fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// Returns whether a name is never public, so that it can be rejected without resolving it.
///
/// ```
/// assert!(openclaw_net::host::is_internal_name("metadata.google.internal"));
/// ```
pub fn is_internal_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let internal = [".local", ".internal", ".home.arpa", ".lan", ".intranet"];
    is_localhost(name) || !name.contains('.') || internal.iter().any(|end| name.ends_with(end))
}

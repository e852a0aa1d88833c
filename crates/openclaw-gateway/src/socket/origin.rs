//! Checks the `Host` and `Origin` of requests. A web page opened in a browser on this machine must
//! not reach the gateway, not even by a name that resolves to it (DNS rebinding).

use std::net::IpAddr;

use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, header};

/// Whether the host is ours and the origin is allowed. `allowed` is called if another host is named or
/// the request comes from a page.
pub(super) fn is_allowed(
    target: &Uri,
    headers: &HeaderMap,
    local: IpAddr,
    allowed: impl FnOnce() -> Vec<String>,
) -> bool {
    let Some(host) = host(target, headers) else { return false };
    let names_machine = names_machine(&host, local);
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = match (origins.next(), origins.next()) {
        (None, _) if names_machine => return true,
        (origin, None) => origin,
        (_, Some(_)) => return false,
    };
    let allowed = allowed();
    let is_ours = names_machine || allowed.iter().any(|origin| is_of(origin, &host));
    let is_welcome = |origin: &str| {
        allowed.iter().any(|it| it.trim_end_matches('/').eq_ignore_ascii_case(origin))
            || is_same(origin, &host)
    };
    is_ours && origin.is_none_or(|origin| origin.to_str().is_ok_and(is_welcome))
}

/// The host that the client addresses, if it is unambiguous. An absolute target names one, too, and
/// takes precedence (RFC 9112, section 3.2.2): it must be the same. A user is never part of `Host`
/// (RFC 9110, section 7.2).
fn host(target: &Uri, headers: &HeaderMap) -> Option<Authority> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return None };
    let host = host.to_str().ok().filter(|host| !host.contains('@'))?.parse::<Authority>().ok()?;
    let is_same = |named: &Authority| named.as_str().eq_ignore_ascii_case(host.as_str());
    target.authority().is_none_or(is_same).then_some(host)
}

/// Whether the host is loopback, or the local address of the connection.
fn names_machine(host: &Authority, local: IpAddr) -> bool {
    match address(host) {
        Some(address) => address.is_loopback() || address == local.to_canonical(),
        None => host.host().eq_ignore_ascii_case("localhost"),
    }
}

fn address(host: &Authority) -> Option<IpAddr> {
    let host = host.host().trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

/// Whether the origin is a loopback page of this server.
fn is_same(origin: &str, host: &Authority) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else { return false };
    let Some(authority) = origin.authority() else { return false };
    let is_loopback = match address(authority) {
        Some(address) => address.is_loopback(),
        None => authority.host().eq_ignore_ascii_case("localhost"),
    };
    origin.scheme_str() == Some("http")
        && is_loopback
        && authority.as_str().eq_ignore_ascii_case(host.as_str())
}

/// Whether an allowed origin has this host. The default port may be given explicitly.
fn is_of(origin: &str, host: &Authority) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else { return false };
    let Some(authority) = origin.authority() else { return false };
    let usual = match origin.scheme_str() {
        Some("https" | "wss") => Some(443),
        Some("http" | "ws") => Some(80),
        _ => None,
    };
    authority.host().eq_ignore_ascii_case(host.host())
        && authority.port_u16().or(usual) == host.port_u16().or(usual)
}

#[cfg(test)]
mod tests {
    use super::{HeaderMap, IpAddr, Uri, header, is_allowed};

    fn verdict(host: &str, origin: Option<&str>) -> bool {
        verdict_on("/ws", host, origin)
    }

    fn verdict_on(target: &str, host: &str, origin: Option<&str>) -> bool {
        let target: Uri = target.parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let local: IpAddr = "192.0.2.7".parse().unwrap();
        is_allowed(&target, &headers, local, || vec!["https://example.com".to_owned()])
    }

    #[test]
    fn only_this_machines_hosts_are_accepted() {
        for host in ["localhost:1", "LOCALHOST", "127.0.0.1:80", "127.9.9.9", "[::1]:80"] {
            assert!(verdict(host, None), "{host}");
        }
        assert!(verdict("192.0.2.7:80", None), "the local address of the connection");
        assert!(verdict("example.com", None), "the host of an allowed page");
        assert!(verdict("Example.com:443", None), "its default port, explicitly");
        assert!(!verdict("example.com:80", None), "another port");
        for host in
            ["evil.example", "localhost.evil.example", "192.0.2.8", "127.0.0.1.evil.example"]
        {
            assert!(!verdict(host, None), "{host}");
        }
        for host in ["user@localhost", "user:password@127.0.0.1:80", "evil.example@localhost"] {
            assert!(!verdict(host, None), "{host}");
        }
    }

    #[test]
    fn an_absolute_target_must_name_the_same_host() {
        assert!(verdict_on("http://localhost:1/ws", "LOCALHOST:1", None));
        for target in [
            "http://evil.example/ws",
            "http://localhost:2/ws",
            "http://user@localhost:1/ws",
            "http://127.0.0.1:1/ws",
        ] {
            assert!(!verdict_on(target, "localhost:1", None), "{target}");
        }
        assert!(!verdict_on("http://evil.example/", "evil.example", None));
    }

    #[test]
    fn only_our_own_pages_and_allowed_ones_may_call() {
        assert!(verdict("localhost:1", Some("http://localhost:1")));
        assert!(verdict("localhost:1", Some("https://example.com")));
        for origin in [
            "null",
            "http://evil.example",
            "http://localhost:2",
            "https://localhost:1",
            "http://127.0.0.1:1",
            "https://example.com.evil.example",
            "http://example.com",
        ] {
            assert!(!verdict("localhost:1", Some(origin)), "{origin}");
        }
        assert!(!verdict("evil.example", Some("http://evil.example")), "rebinding");
    }
}

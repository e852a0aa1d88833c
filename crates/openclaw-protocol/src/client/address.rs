//! The address of a gateway.

use std::fmt;
use std::net::IpAddr;

use http::Uri;

use super::ConnectError;

/// A parsed `ws://host:port` or `wss://host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
    is_tls: bool,
}

impl Address {
    /// Parses the URL of a gateway.
    ///
    /// # Errors
    /// If it is not a `ws://` or `wss://` URL with a host.
    pub fn parse(url: &str) -> Result<Self, ConnectError> {
        let wrong = || ConnectError::Address(without_user(url));
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let is_tls = match uri.scheme_str() {
            Some("ws") => false,
            Some("wss") => true,
            _ => return Err(wrong()),
        };
        // Credentials in a URL end up in logs; a token has its own setting.
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(wrong());
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Self { host, port, is_tls })
    }

    /// Returns the host name or IP address.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns whether the connection is encrypted.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Returns whether the address is on this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let ip = self.host.parse::<IpAddr>();
        self.host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Removes the user and the password from a URL, for messages.
fn without_user(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find('/').unwrap_or(rest.len());
    let Some(at) = rest[..end].rfind('@') else { return url.to_owned() };
    format!("{scheme}://…{}", &rest[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_gateways_are_parsed() {
        for (url, shown, is_tls, is_loopback) in [
            ("ws://127.0.0.1:18789", "127.0.0.1:18789", false, true),
            ("ws://localhost", "localhost:80", false, true),
            ("ws://[::1]:7/x", "[::1]:7", false, true),
            ("wss://gateway.example/path", "gateway.example:443", true, false),
            ("ws://192.168.1.5:9", "192.168.1.5:9", false, false),
            // A name that only looks like this machine.
            ("ws://127.0.0.1.example:9", "127.0.0.1.example:9", false, false),
        ] {
            let address = Address::parse(url).unwrap();
            assert_eq!(address.to_string(), shown, "{url}");
            assert_eq!((address.is_tls(), address.is_loopback()), (is_tls, is_loopback), "{url}");
        }
    }

    #[test]
    fn other_urls_are_rejected_without_showing_their_password() {
        for url in ["http://x", "127.0.0.1:1", "ws://", "", "wss://me:hunter2@host"] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}

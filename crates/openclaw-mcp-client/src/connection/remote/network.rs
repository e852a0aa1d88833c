//! Network settings from the environment: proxies and trusted CAs (T12).

use std::fmt;
use std::path::PathBuf;

use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use openclaw_secrets::Environment;
use url::{Host, Url};

/// Network settings from the environment, read at program start.
#[derive(Clone, Default)]
pub struct Network {
    /// The proxy for `https` URLs.
    pub https_proxy: Option<String>,
    /// The proxy for `http` URLs.
    pub http_proxy: Option<String>,
    /// The proxy for schemes without their own.
    pub all_proxy: Option<String>,
    /// Comma-separated hosts that are reached without a proxy.
    pub no_proxy: Option<String>,
    /// A file with CAs that replace those of the system.
    pub cert_file: Option<PathBuf>,
}

impl Network {
    /// Reads the usual environment variables; those of proxies in upper or lower case.
    pub fn of(host: &Environment) -> Self {
        let set = |name: &str| host.get(name).filter(|value| !value.is_empty());
        let proxy = |name: &str| set(&name.to_lowercase()).or_else(|| set(name));
        Self {
            https_proxy: proxy("HTTPS_PROXY"),
            http_proxy: proxy("HTTP_PROXY"),
            all_proxy: proxy("ALL_PROXY"),
            no_proxy: proxy("NO_PROXY"),
            cert_file: set("SSL_CERT_FILE").map(PathBuf::from),
        }
    }

    /// Returns the proxy for a URL, if any, without its user and password.
    pub fn proxy_on_the_way_to(&self, url: &Url) -> Option<String> {
        let intercept = self.proxy_to(url)?;
        let uri = intercept.uri();
        let mut place = String::new();
        if let Some(scheme) = uri.scheme_str() {
            place.push_str(&format!("{scheme}://"));
        }
        place.push_str(uri.host()?);
        if let Some(port) = uri.port() {
            place.push_str(&format!(":{port}"));
        }
        Some(place)
    }

    /// Returns the proxy for a URL, with its user and password.
    pub(super) fn proxy_url(&self, url: &Url) -> Option<Url> {
        let intercept = self.proxy_to(url)?;
        let mut proxy = Url::parse(&intercept.uri().to_string()).ok()?;
        if let Some((user, password)) = intercept.raw_auth() {
            // These fail for URLs that cannot have a user.
            let _ = proxy.set_username(user);
            let _ = proxy.set_password(Some(password));
        }
        Some(proxy)
    }

    /// Returns the proxy for a URL; none for loopback hosts.
    pub(super) fn proxy_to(&self, url: &Url) -> Option<Intercept> {
        let is_here = match url.host()? {
            Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
        };
        if is_here {
            return None;
        }
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let matcher = Matcher::builder()
            .https(text(&self.https_proxy))
            .http(text(&self.http_proxy))
            .all(text(&self.all_proxy))
            .no(text(&self.no_proxy))
            .build();
        matcher.intercept(&url.as_str().parse().ok()?)
    }
}

/// Returns the proxy that is configured for a server.
pub(super) fn configured_proxy(proxy: &Url, url: &Url) -> Option<Intercept> {
    let matcher = Matcher::builder().all(proxy.as_str()).build();
    matcher.intercept(&url.as_str().parse().ok()?)
}

// The URL of a proxy may contain a password.
impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("has_proxy", &(self.https_proxy.is_some() || self.all_proxy.is_some()))
            .field("no_proxy", &self.no_proxy)
            .field("cert_file", &self.cert_file)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(variables: &[(&str, &str)], url: &str) -> Option<String> {
        let host: Environment = variables.iter().copied().collect();
        let intercept = Network::of(&host).proxy_to(&Url::parse(url).unwrap())?;
        Some(intercept.uri().to_string())
    }

    #[test]
    fn the_environment_sets_a_proxy_and_its_exceptions() {
        let both = [("HTTPS_PROXY", "http://p:1"), ("NO_PROXY", "inner.example, 10.0.0.0/8")];
        assert_eq!(proxy(&both, "https://a.example/mcp").unwrap(), "http://p:1/");
        for direct in ["https://inner.example/", "https://x.inner.example/", "https://10.1.2.3/"] {
            assert_eq!(proxy(&both, direct), None, "{direct}");
        }
        assert_eq!(proxy(&[("https_proxy", "http://q:2")], "https://a/").unwrap(), "http://q:2/");
        assert_eq!(proxy(&[("ALL_PROXY", "http://r:3")], "https://a/").unwrap(), "http://r:3/");
        assert_eq!(proxy(&[("HTTPS_PROXY", "")], "https://a/"), None);
    }

    #[test]
    fn loopback_hosts_bypass_the_proxy() {
        let all = [("ALL_PROXY", "http://p:1")];
        for here in ["http://localhost:9/", "http://127.0.0.1/", "http://[::1]:9/mcp"] {
            assert_eq!(proxy(&all, here), None, "{here}");
        }
    }

    #[test]
    fn the_password_of_a_proxy_is_not_shown() {
        let host: Environment = [("HTTPS_PROXY", "http://u:op@sesame@p:1")].into_iter().collect();
        let network = Network::of(&host);
        assert!(!format!("{network:?}").contains("sesame"));
        let shown = |url: &str| network.proxy_on_the_way_to(&Url::parse(url).unwrap());
        assert_eq!(shown("https://a.example/mcp").unwrap(), "http://p:1");
        assert_eq!(shown("http://localhost/mcp"), None);
    }
}

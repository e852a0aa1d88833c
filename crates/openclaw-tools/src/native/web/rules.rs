//! Which URLs may be fetched.

use std::net::{IpAddr, Ipv4Addr};

use openclaw_net::client::is_not_public;
use openclaw_net::host::{is_internal_name, is_localhost, is_loopback};
use url::{Host, Url};

use super::WebSettings;
use crate::address::{AllowPrivate, is_public};
use crate::outcome::ToolFailure;

/// Why a fetch failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("not a web URL")]
    NoAddress,
    #[error("only https URLs are allowed")]
    NotHttps,
    #[error("a URL with a user name or password is not allowed")]
    Credentials,
    #[error("the URL is not on the public internet, or redirects away from it")]
    NotPublic,
    #[error("it redirects to another URL scheme, which is not followed")]
    OtherScheme,
    #[error("it redirects to the host `{0}`, which needs an approval of its own: fetch that URL")]
    OtherHost(String),
    #[error("it redirects to an invalid URL")]
    BadRedirect,
    #[error("too many redirects")]
    TooManyRedirects,
    #[error("the response is compressed, which was not requested")]
    Packed,
    #[error("cannot connect to the server")]
    Unreachable,
    #[error("connection lost")]
    BrokenOff,
    #[error("TLS is not available on this machine")]
    NoClient,
}

impl FetchError {
    pub(super) fn failure(&self) -> ToolFailure {
        match self {
            Self::NoAddress => ToolFailure::InvalidArguments,
            Self::NotHttps
            | Self::Credentials
            | Self::NotPublic
            | Self::OtherScheme
            | Self::OtherHost(_) => ToolFailure::Denied,
            Self::BadRedirect | Self::TooManyRedirects | Self::Packed => {
                ToolFailure::InvalidResponse
            }
            Self::Unreachable | Self::BrokenOff | Self::NoClient => ToolFailure::Unavailable,
        }
    }

    pub(super) fn from_client(error: &reqwest::Error) -> Self {
        if is_not_public(error) {
            return Self::NotPublic;
        }
        if error.is_connect() { Self::Unreachable } else { Self::BrokenOff }
    }
}

/// Checks the URL itself. What a name resolves to is checked by the resolver.
pub(super) fn check(url: &Url, settings: &WebSettings) -> Result<(), FetchError> {
    let allowed = &settings.allow_private;
    let host = url.host().ok_or(FetchError::NoAddress)?;
    match url.scheme() {
        "https" => {}
        // Plain HTTP only to this machine, and only if configured.
        "http" if is_loopback(&host) && is_named(&host, allowed) => {}
        _ => return Err(FetchError::NotHttps),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(FetchError::Credentials);
    }
    // An address literal is never resolved, so the resolver does not check it.
    let is_fine = match &host {
        Host::Ipv4(address) => is_public((*address).into()) || is_named(&host, allowed),
        Host::Ipv6(address) => is_public((*address).into()) || is_named(&host, allowed),
        // A proxy resolves names itself: only names that are never public can be rejected here.
        Host::Domain(name) => match &settings.proxy {
            Some(proxy) => {
                is_named(&host, allowed) || !(is_internal_name(name) || proxy.is_host(name))
            }
            None => true,
        },
    };
    if is_fine { Ok(()) } else { Err(FetchError::NotPublic) }
}

fn is_named(host: &Host<&str>, allowed: &AllowPrivate) -> bool {
    match host {
        Host::Domain(name) => {
            let is_here = is_localhost(name);
            allowed.host(name) || (is_here && allowed.address(IpAddr::V4(Ipv4Addr::LOCALHOST)))
        }
        Host::Ipv4(address) => allowed.address((*address).into()),
        Host::Ipv6(address) => allowed.address((*address).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(url: &str, allowed: &[&str], proxy: Option<&str>) -> Result<(), String> {
        let settings = WebSettings {
            allow_private: AllowPrivate::new(allowed.iter().copied()).unwrap(),
            proxy: proxy.map(|proxy| proxy.parse().unwrap()),
            ..WebSettings::default()
        };
        check(&Url::parse(url).unwrap(), &settings).map_err(|why| format!("{why:?}"))
    }

    #[test]
    fn only_public_https_addresses_pass() {
        for good in ["https://example.org/a?b", "https://1.1.1.1/", "https://[2606:4700::1]:8443/"]
        {
            assert_eq!(checked(good, &[], None), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("http://example.org/", "NotHttps"),
            ("http://127.0.0.1/", "NotHttps"),
            ("ftp://example.org/", "NotHttps"),
            ("file:///etc/passwd", "NoAddress"),
            ("data:text/plain,x", "NoAddress"),
            ("https://me:secret@example.org/", "Credentials"),
            ("https://127.0.0.1/", "NotPublic"),
            ("https://2130706433/", "NotPublic"),
            ("https://0x7f.1/", "NotPublic"),
            ("https://169.254.169.254/latest/meta-data", "NotPublic"),
            ("https://[::1]/", "NotPublic"),
            ("https://[::ffff:10.0.0.1]/", "NotPublic"),
        ] {
            assert_eq!(checked(bad, &[], None), Err(why.to_owned()), "{bad}");
        }
    }

    #[test]
    fn what_is_allowed_by_name_or_network_passes_and_in_the_clear_only_on_this_machine() {
        assert_eq!(checked("http://127.0.0.1:9/", &["127.0.0.1"], None), Ok(()));
        assert_eq!(checked("http://localhost:9/", &["localhost"], None), Ok(()));
        assert_eq!(checked("https://10.1.2.3/", &["10.0.0.0/8"], None), Ok(()));
        for bad in ["http://10.1.2.3/", "http://wiki.example/", "http://127.0.0.2/"] {
            let allowed = ["10.0.0.0/8", "wiki.example", "127.0.0.1"];
            assert_eq!(checked(bad, &allowed, None), Err("NotHttps".to_owned()), "{bad}");
        }
    }

    #[test]
    fn behind_a_proxy_names_that_are_never_public_are_refused() {
        let proxy = Some("http://proxy.example:3128");
        assert_eq!(checked("https://example.org/", &[], proxy), Ok(()));
        for bad in ["localhost", "db", "metadata.google.internal", "printer.local", "proxy.example"]
        {
            let url = format!("https://{bad}/");
            assert_eq!(checked(&url, &[], proxy), Err("NotPublic".to_owned()), "{bad}");
        }
        assert_eq!(checked("https://db/", &["db"], proxy), Ok(()));
    }
}

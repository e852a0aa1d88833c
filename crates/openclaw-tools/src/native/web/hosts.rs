//! Which hosts may be fetched from without asking.

use url::Url;

use super::rules::check;
use super::{Web, WebSettings};
use crate::approval::ApprovalRule;

/// Returns the host of a URL, with its port unless it is the usual one: what an approval covers.
pub(in crate::native) fn host(url: &Url) -> Option<String> {
    let host = url.host_str()?.trim_end_matches('.');
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

impl Web {
    /// Returns which calls for a URL need an approval. One that is refused without a request needs
    /// none.
    pub(in crate::native) fn rule(&self, url: &str) -> ApprovalRule {
        match Url::parse(url.trim()) {
            Ok(url) if check(&url, &self.settings).is_ok() => rule(&url, &self.settings),
            _ => ApprovalRule::Never,
        }
    }
}

/// Returns which calls for a URL need an approval.
pub(super) fn rule(url: &Url, settings: &WebSettings) -> ApprovalRule {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    let is_allowed = |allowed: &String| match allowed.strip_prefix("*.") {
        Some(name) => host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')),
        None => host == allowed,
    };
    match settings.allow_hosts.iter().any(is_allowed) {
        true => ApprovalRule::Never,
        false => settings.approval,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_hosts_are_free() {
        let allow_hosts = vec!["docs.rs".to_owned(), "*.example.com".to_owned()];
        let settings = WebSettings { allow_hosts, ..WebSettings::default() };
        let rule = |url: &str| rule(&Url::parse(url).unwrap(), &settings);
        for free in ["https://docs.rs/x", "https://DOCS.RS./", "https://a.b.example.com:8443/"] {
            assert_eq!(rule(free), ApprovalRule::Never, "{free}");
        }
        for asked in [
            "https://example.com/",
            "https://badexample.com/",
            "https://docs.rs.evil.org/",
            "https://a.docs.rs/",
            "https://evil.org/?docs.rs",
        ] {
            assert_eq!(rule(asked), ApprovalRule::Auto, "{asked}");
        }
    }

    #[test]
    fn an_approval_is_for_one_host_and_port() {
        let host = |url: &str| host(&Url::parse(url).unwrap()).unwrap();
        assert_eq!(host("https://Docs.rs:443/x?y"), "docs.rs");
        assert_eq!(host("https://docs.rs.:8443/"), "docs.rs:8443");
        assert_eq!(host("https://1.1.1.1/"), "1.1.1.1");
    }
}

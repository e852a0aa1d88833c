//! Which settings hold credentials, judged by their names; and how to show text that may hold one.

use url::Url;

/// Stands where a credential would.
pub(crate) const REDACTED: &str = "[REDACTED]";

/// Parts of names under which people keep credentials.
const TELLING: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "key",
    "credential",
    "auth",
    "bearer",
    "cookie",
    "session",
    "signature",
    "private",
    "dsn",
    "connection_string",
    "pwd",
];

/// Whether a setting of this name (`GITHUB_TOKEN`, `X-Api-Key`, …) is likely to hold a credential.
pub(crate) fn is_credential_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    TELLING.iter().any(|part| name.contains(part))
}

/// A URL without its password and without the values of its query, which often is a credential.
pub(crate) fn safe_url(url: &Url) -> String {
    let mut safe = url.clone();
    if safe.password().is_some() {
        // Cannot fail: a URL with a password can have one.
        let _ = safe.set_password(Some("redacted"));
    }
    if url.query().is_none() {
        return safe.to_string();
    }
    safe.set_query(None);
    let fragment = url.fragment().map(|fragment| format!("#{fragment}")).unwrap_or_default();
    safe.set_fragment(None);
    let query: Vec<String> =
        url.query_pairs().map(|(name, _)| format!("{name}={REDACTED}")).collect();
    format!("{safe}?{}{fragment}", query.join("&"))
}

/// The arguments of a command as they may be shown: what follows `--token` or `--token=` is hidden.
pub(crate) fn safe_args<'a>(args: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut hide_next = false;
    args.into_iter()
        .map(|arg| {
            let hide = std::mem::take(&mut hide_next);
            if let Some((flag, _)) = arg.split_once('=') {
                if flag.starts_with('-') && is_credential_name(flag) {
                    return format!("{flag}={REDACTED}");
                }
            } else if arg.starts_with('-') {
                hide_next = is_credential_name(arg);
                return arg.to_owned();
            }
            if hide {
                return REDACTED.to_owned();
            }
            match Url::parse(arg) {
                Ok(url) if url.password().is_some() || url.query().is_some() => safe_url(&url),
                _ => arg.to_owned(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_credentials_are_recognised() {
        for name in ["GITHUB_TOKEN", "X-Api-Key", "Authorization", "clientSecret", "db_password"] {
            assert!(is_credential_name(name), "{name}");
        }
        for name in ["LOG_LEVEL", "Accept", "PORT", "command"] {
            assert!(!is_credential_name(name), "{name}");
        }
    }

    #[test]
    fn a_url_is_shown_without_password_and_query_values() {
        let url = Url::parse("https://me:hunter2@example.com/mcp?apiKey=tvly-1&x=2#top").unwrap();
        assert_eq!(
            safe_url(&url),
            "https://me:redacted@example.com/mcp?apiKey=[REDACTED]&x=[REDACTED]#top"
        );
        let plain = Url::parse("https://example.com/mcp").unwrap();
        assert_eq!(safe_url(&plain), "https://example.com/mcp");
    }

    #[test]
    fn arguments_that_follow_a_credential_flag_are_hidden() {
        let shown = safe_args(["--api-key", "sk-1", "--token=abc", "-y", "pkg", "pg://u:p@h/db"]);
        assert_eq!(
            shown,
            ["--api-key", REDACTED, "--token=[REDACTED]", "-y", "pkg", "pg://u:redacted@h/db"]
        );
    }
}

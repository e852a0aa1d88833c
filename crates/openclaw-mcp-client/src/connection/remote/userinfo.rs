//! User and password in a server's URL: they become a header, and are used nowhere else (K3).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use openclaw_config::HttpServer;
use openclaw_secrets::{Redactor, SecretString};
use percent_encoding::percent_decode_str;
use url::Url;

/// Returns whether user and password of the URL are used. A key or an `Authorization` header takes
/// precedence.
pub fn counts(server: &HttpServer) -> bool {
    let url = server.url.expose();
    let has_some = !url.username().is_empty() || url.password().is_some();
    let says_so = |name: &String| name.eq_ignore_ascii_case("authorization");
    has_some && server.api_key.is_none() && !server.headers.keys().any(says_so)
}

/// Returns the value of `Authorization` (RFC 7617).
pub(super) fn basic(url: &Url) -> SecretString {
    let mut pair: Vec<u8> = percent_decode_str(url.username()).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or_default()));
    SecretString::from(format!("Basic {}", BASE64_STANDARD.encode(pair)))
}

/// Registers the secret with the redactor, in all forms in which it may appear. Without a password,
/// the user name is the secret: usually a token.
pub(super) fn hide(url: &Url, redactor: &Redactor) {
    let user = url.username();
    let password = url.password().filter(|it| !it.is_empty());
    let secret = password.unwrap_or(user);
    let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let pair = |user: &str, password: &str| format!("{user}:{password}");
    let header = basic(url);
    let encoded = header.expose().trim_start_matches("Basic ").to_owned();
    let password = password.unwrap_or_default();
    let forms = [
        secret.to_owned(),
        plain(secret),
        pair(user, password),
        pair(&plain(user), &plain(password)),
        encoded,
    ];
    redactor.add_credentials(&forms.map(SecretString::from));
    redactor.add_credentials([&header]);
}

/// Returns the URL without user and password.
pub fn without(url: &Url) -> Url {
    let mut bare = url.clone();
    // Fails only for URLs that cannot have them.
    let _ = bare.set_password(None);
    let _ = bare.set_username("");
    bare
}

//! User and password in a server's address: they become a header, and go nowhere else (K3).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use openclaw_config::HttpServer;
use openclaw_secrets::{Redactor, SecretString};
use percent_encoding::percent_decode_str;
use url::Url;

/// Whether a server is told who is calling with what stands in its address. A key or a header that
/// says so, too, goes first.
pub(crate) fn counts(server: &HttpServer) -> bool {
    let url = server.url.expose();
    let has_some = !url.username().is_empty() || url.password().is_some();
    let says_so = |name: &String| name.eq_ignore_ascii_case("authorization");
    has_some && server.api_key.is_none() && !server.headers.keys().any(says_so)
}

/// The value of `Authorization` (RFC 7617).
pub(super) fn basic(url: &Url) -> SecretString {
    let mut pair: Vec<u8> = percent_decode_str(url.username()).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or_default()));
    SecretString::from(format!("Basic {}", BASE64_STANDARD.encode(pair)))
}

/// Has whatever of it is secret kept from logs and messages, in the forms in which it may turn up. Of a
/// user without a password the name is the secret: a token, mostly.
pub(super) fn hide(url: &Url, redactor: &Redactor) {
    let (user, password) = (url.username(), url.password().filter(|it| !it.is_empty()));
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
    redactor.add_all(&forms.map(SecretString::from));
    redactor.add(&header);
}

/// The address without them.
pub(crate) fn without(url: &Url) -> Url {
    let mut bare = url.clone();
    // Refused only where there can be none.
    let _ = bare.set_password(None);
    let _ = bare.set_username("");
    bare
}

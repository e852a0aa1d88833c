//! Translates the keys of Node OpenClaw and of other programs to ours before the layers are merged.

use url::Url;

use crate::decode::{Field, Spanned, Whole};
use crate::diagnostic::Diagnostic;
use crate::raw::{RawAuth, RawNodeOAuth, RawNodeToolFilter, RawServer, RawServerTools, RawTls};
use crate::text::ConfigText;

impl RawServer {
    /// Moves the values of other programs' keys to ours.
    pub(crate) fn normalise(&mut self, found: &mut Vec<Diagnostic>) {
        if let Some(filter) = self.tool_filter.take() {
            let Spanned { value: RawNodeToolFilter { include, exclude }, at, path } = filter;
            let fresh = || Spanned { value: RawServerTools::default(), at, path };
            let tools = &mut self.tools.get_or_insert_with(fresh).value;
            adopt(&mut tools.allow, include, "tools.allow", found);
            adopt(&mut tools.deny, exclude, "tools.deny", found);
        }
        if let Some(cert) = self.client_cert.take() {
            let tls = tls_of(&mut self.tls, &cert);
            adopt(&mut tls.client_cert, Some(cert), "tls.clientCert", found);
        }
        if let Some(key) = self.client_key.take() {
            let tls = tls_of(&mut self.tls, &key);
            adopt(&mut tls.client_key, Some(key), "tls.clientKey", found);
        }
        if let Some(verify) = self.ssl_verify.take() {
            let tls = tls_of(&mut self.tls, &verify);
            adopt(&mut tls.verify, Some(verify), "tls.verify", found);
        }
        if let Some(oauth) = self.oauth.take() {
            self.adopt_oauth(oauth, found);
        }
        if let Some(codex) = self.codex.take() {
            found.push(
                Diagnostic::note("`codex` has no effect here")
                    .at(codex.at, "accepted and ignored")
                    .path(codex.path),
            );
        }
        if let Some(disabled) = self.disabled.take() {
            let enabled = disabled.map(|disabled| !disabled);
            adopt(&mut self.enabled, Some(enabled), "enabled", found);
        }
        if let Some(list) = self.auto_approve.take() {
            found.push(
                Diagnostic::note("this list has no effect here")
                    .at(list.at, "accepted and ignored")
                    .path(list.path)
                    .help("`approval` sets which calls need approval"),
            );
        }
        self.description = None;
    }

    fn adopt_oauth(&mut self, oauth: Spanned<RawNodeOAuth>, found: &mut Vec<Diagnostic>) {
        let Spanned { value, at, path } = oauth;
        let RawNodeOAuth { client_id, client_secret, scope, client_metadata_url, redirect_url } =
            value;
        let fresh = || Spanned { value: RawAuth::default(), at, path };
        let auth = &mut self.auth.get_or_insert_with(fresh).value;
        adopt(&mut auth.client_id, client_id, "auth.clientId", found);
        adopt(&mut auth.client_secret, client_secret, "auth.clientSecret", found);
        adopt(&mut auth.client_metadata_url, client_metadata_url, "auth.clientMetadataUrl", found);
        let scopes = scope.map(|scope| {
            let word = |word: &str| Spanned {
                value: ConfigText(word.to_owned()),
                at: scope.at,
                path: scope.path.clone(),
            };
            let words = scope.value.0.split_whitespace().map(word).collect();
            Spanned { value: words, at: scope.at, path: scope.path.clone() }
        });
        adopt(&mut auth.scopes, scopes, "auth.scopes", found);
        if let Some(redirect) = redirect_url {
            let port = Url::parse(&redirect.value.0).ok().and_then(|url| url.port());
            match port {
                Some(port) => {
                    let port = redirect.map(|_| Whole(u64::from(port)));
                    adopt(&mut auth.redirect_port, Some(port), "auth.redirectPort", found);
                }
                None => found.push(
                    redirect
                        .warning("`redirectUrl` has no effect here without a port", "no port in it")
                        .help("the browser is redirected to http://127.0.0.1:PORT/callback"),
                ),
            }
        }
    }
}

/// Returns the TLS settings, creating them if missing.
fn tls_of<'a, T>(tls: &'a mut Field<RawTls>, cause: &Spanned<T>) -> &'a mut RawTls {
    let fresh = || Spanned { value: RawTls::default(), at: cause.at, path: cause.path.clone() };
    &mut tls.get_or_insert_with(fresh).value
}

/// Fills a slot from a synonym; reports an error if both are given.
fn adopt<T>(slot: &mut Field<T>, value: Field<T>, ours: &str, found: &mut Vec<Diagnostic>) {
    match (&*slot, value) {
        (Some(given), Some(value)) => found.push(
            value
                .error(format!("both this and `{ours}` are set"), "given again here")
                .also(given.at, "given here")
                .help(format!("keep `{ours}`")),
        ),
        (None, value) => *slot = value,
        (Some(_), None) => {}
    }
}

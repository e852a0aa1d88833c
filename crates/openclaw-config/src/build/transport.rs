//! Builds the two kinds of server: a local process and a remote service.

use serde_json::json;

use crate::decode::{Field, Spanned, Table};
use crate::raw::{RawAuth, RawTls, Words};
use crate::safe_url::SafeUrl;
use crate::server::{HttpFlavour, HttpServer, ProxySetting, StdioServer, TlsSettings};
use crate::text::ConfigText;

use super::server::ServerBuilder;
use super::values::Unset;

impl ServerBuilder<'_, '_> {
    /// Builds a local process; `None` without a valid command.
    pub(super) fn local(
        &mut self,
        command: Field<ConfigText>,
        args: Field<Words>,
        env: Field<Table<ConfigText>>,
        cwd: Field<ConfigText>,
        inherit_env: Field<Words>,
    ) -> Option<StdioServer> {
        let command = command.and_then(|command| {
            self.note("command", &command, json!(command.value.0));
            self.home_relative(&command)
        });
        let args = self.list("args", args);
        let env = self.credentials("env", env, |name| {
            (!is_valid_env_name(name)).then_some("a variable name must not be empty or contain `=`")
        });
        let cwd = self.path("cwd", cwd);
        let inherit_env = inherit_env.map_or_else(Vec::new, |names| self.variable_names(&names));
        Some(StdioServer { command: command?, args, env, cwd, inherit_env })
    }

    #[expect(clippy::too_many_arguments, reason = "one for each field that the transport has")]
    /// Builds a remote service; `None` without a valid URL.
    pub(super) fn remote(
        &mut self,
        url: Option<&Spanned<ConfigText>>,
        flavour: HttpFlavour,
        headers: Field<Table<ConfigText>>,
        api_key: Field<ConfigText>,
        auth: Field<RawAuth>,
        tls: Field<RawTls>,
        proxy: Field<ConfigText>,
    ) -> Option<HttpServer> {
        let address = url.and_then(|url| self.address("url", url));
        self.check_unused_oauth(&auth, &headers, &api_key, url.zip(address.as_ref()));
        let header = headers.as_ref().and_then(|headers| authorization(&headers.value));
        if let (Some(header), Some(api_key)) = (header, &api_key) {
            self.cx.found.push(
                header
                    .error("`apiKey` sets the `Authorization` header, too", "given here")
                    .also(api_key.at, "and here")
                    .help("keep one of them"),
            );
        }
        let headers = self.credentials("headers", headers, |name| {
            (!is_header_name(name)).then_some("invalid HTTP header name")
        });
        let api_key = api_key.and_then(|key| self.one_credential("apiKey", "apiKey", &key));
        let oauth = self.oauth(auth);
        let tls = self.tls(tls);
        let proxy = self.proxy(proxy);
        Some(HttpServer { url: address?, flavour, headers, api_key, oauth, tls, proxy })
    }

    /// Warns of OAuth settings that are not used: the server has a static credential, which takes
    /// precedence.
    fn check_unused_oauth(
        &mut self,
        auth: &Field<RawAuth>,
        headers: &Field<Table<ConfigText>>,
        api_key: &Field<ConfigText>,
        url: Option<(&Spanned<ConfigText>, &SafeUrl)>,
    ) {
        let (Some(auth), Some((url, address))) = (auth, url) else { return };
        let header = headers.as_ref().and_then(|headers| authorization(&headers.value));
        let has_user =
            !address.expose().username().is_empty() || address.expose().password().is_some();
        let (at, what) = if let Some(key) = api_key {
            (key.at, "`apiKey` is")
        } else if let Some(header) = header {
            (header.at, "the `Authorization` header is")
        } else if has_user {
            (url.at, "user and password in `url` are")
        } else {
            return;
        };
        let message = format!("the OAuth settings have no effect: {what} used instead");
        self.cx.found.push(
            auth.warning(message, "not used").also(at, "used instead").help("keep one of them"),
        );
    }

    pub(super) fn tls(&mut self, tls: Field<RawTls>) -> TlsSettings {
        let tls = tls.map(|tls| tls.value).unwrap_or_default();
        let RawTls { ca_file, client_cert, client_key, verify } = tls;
        if let (Some(key), None) = (&client_key, &client_cert) {
            self.cx.found.push(key.error("a client key needs a client certificate", "alone"));
        }
        if let Some(off @ Spanned { value: false, .. }) = &verify {
            let server = self.name;
            let message = format!(
                "certificate verification is off for MCP server `{server}`: anyone can impersonate it"
            );
            let help = "trust its authority with `tls.caFile` instead";
            self.cx.found.push(off.warning(message, "disabled here").help(help));
        }
        let verify = verify.is_none_or(|verify| self.flag("tls.verify", Some(verify), true));
        TlsSettings {
            ca_file: self.path("tls.caFile", ca_file),
            client_cert: self.path("tls.clientCert", client_cert),
            client_key: self.path("tls.clientKey", client_key),
            verify,
        }
    }

    pub(super) fn proxy(&mut self, proxy: Field<ConfigText>) -> ProxySetting {
        let Some(proxy) = proxy else { return ProxySetting::Environment };
        if proxy.value.0 == "none" {
            self.note("proxy", &proxy, json!("none"));
            return ProxySetting::Direct;
        }
        let Some(text) = self.cx.filled(&proxy, &mut Unset::HoldsBack(&mut self.unset)) else {
            return ProxySetting::Environment;
        };
        match url::Url::parse(text.as_str()) {
            Ok(url) if matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h") => {
                let url = SafeUrl::new(url, &proxy.value.0);
                self.note("proxy", &proxy, json!(url.to_string()));
                ProxySetting::Url(url)
            }
            _ => {
                let help = "write `http://host:port` or `none`";
                self.cx.found.push(proxy.error("invalid proxy URL", "here").help(help));
                ProxySetting::Environment
            }
        }
    }
}

/// Returns the `Authorization` header.
fn authorization(headers: &Table<ConfigText>) -> Option<&Spanned<ConfigText>> {
    let mut headers = headers.0.iter();
    headers.find(|(name, _)| name.eq_ignore_ascii_case("authorization")).map(|(_, value)| value)
}

fn is_valid_env_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// Whether a name is a token as defined by RFC 9110.
pub(super) fn is_header_name(name: &str) -> bool {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.chars().all(is_token)
}

//! Builds the settings of the gateway and its metrics.

use std::num::NonZeroU32;

use openclaw_secrets::SecretTemplate;
use serde_json::json;
use url::Url;

use crate::credential::safe_address;
use crate::decode::{Field, Spanned};
use crate::gateway::{Bind, GatewayConfig, MetricsConfig, RemoteGateway};
use crate::raw::{
    HubApprovals, RawControlUi, RawGateway, RawGatewayAuth, RawMetrics, RawRemoteGateway,
};
use crate::safe_url::SafeUrl;
use crate::setting::{Setting, SettingOrigin};
use crate::text::ConfigText;
use crate::tool_policy::ToolPolicy;

use super::values::{Builder, Unset, is_loopback};

const DEFAULT_PORT: u64 = 18_789;
const DEFAULT_GRACE_MS: u64 = 10_000;

impl Builder<'_> {
    pub(super) fn gateway(
        &mut self,
        gateway: Field<RawGateway>,
        noted: &mut Vec<Setting>,
    ) -> (GatewayConfig, ToolPolicy) {
        let RawGateway {
            mode,
            remote,
            port,
            bind,
            auth,
            public_url,
            allowed_origins,
            control_ui,
            shutdown_grace,
            hub_rate_limit,
            hub_approvals,
            tools,
        } = gateway.map(|it| it.value).unwrap_or_default();
        let remote = self.remote_gateway(mode, remote, noted);
        let RawGatewayAuth { mode, token } = auth.map(|it| it.value).unwrap_or_default();
        let port = self.count(noted, "gateway.port", port, DEFAULT_PORT);
        let bind = self.bind(bind, noted);
        self.auth_mode(mode, noted);
        let token = token.map(|token| token.map(|token| token.0));
        let help = "leave it out, and one is generated";
        let token = self.token("gateway.auth.token", token, help, noted);
        let public_url = public_url.and_then(|text| self.public_url(&text, noted));
        let rejection = [
            "expected a web origin: scheme, host and optionally port",
            "not an origin",
            "for example `https://example.com` or `http://localhost:5173`",
        ];
        let key = "gateway.allowedOrigins";
        let allowed_origins = self.noted_words(key, allowed_origins, noted, origin_of, rejection);
        let RawControlUi { root } = control_ui.map(|it| it.value).unwrap_or_default();
        let control_ui = self.noted_text("gateway.controlUi.root", root, noted, |cx, text| {
            cx.path(text, &mut Unset::Refused)
        });
        let shutdown_grace =
            self.millis(noted, "gateway.shutdownGraceMs", shutdown_grace, DEFAULT_GRACE_MS);
        let hub_rate_limit = self.count(noted, "gateway.hubRateLimit", hub_rate_limit, 0);
        let (key, once) = ("gateway.hubApprovals", HubApprovals::Once);
        let hub_approvals = self.take(noted, key, hub_approvals, once, |it| json!(it.as_str()));
        let tools = self.tool_policy("gateway.tools", tools, noted);
        let gateway = GatewayConfig {
            port: u16::try_from(port).unwrap_or(u16::MAX),
            bind,
            token,
            public_url,
            allowed_origins,
            control_ui,
            shutdown_grace,
            hub_rate_limit: u32::try_from(hub_rate_limit).ok().and_then(NonZeroU32::new),
            hub_approvals,
            remote,
        };
        (gateway, tools)
    }

    pub(super) fn metrics(
        &mut self,
        metrics: Field<RawMetrics>,
        noted: &mut Vec<Setting>,
    ) -> MetricsConfig {
        let RawMetrics { enabled, token } = metrics.map(|it| it.value).unwrap_or_default();
        if let Some(enabled) = &enabled {
            self.note(noted, "metrics.enabled", enabled, json!(enabled.value));
        }
        let token = token.map(|token| token.map(|token| token.0));
        let help = "leave it out, and the gateway's own tokens are accepted";
        let token = self.token("metrics.token", token, help, noted);
        MetricsConfig { enabled: enabled.map(|it| it.value), token }
    }

    fn bind(&mut self, bind: Field<ConfigText>, noted: &mut Vec<Setting>) -> Bind {
        if bind.is_none() {
            let (key, value) = ("gateway.bind".to_owned(), json!(Bind::Loopback.to_string()));
            noted.push(Setting { key, value, origin: SettingOrigin::Default });
        }
        let bind = self.noted_text("gateway.bind", bind, noted, |cx, text| {
            let word = cx.filled(text, &mut Unset::Refused)?;
            let bind = Bind::parse(word.as_str());
            if bind.is_none() {
                let message = "expected `loopback`, `lan`, `all` or an IP address";
                let help = match word.as_str() {
                    "custom" => "use the address itself instead of `customBindHost`",
                    "tailnet" => "use this machine's address in that network",
                    _ => "`loopback` is this machine only, `lan` and `all` are all networks",
                };
                cx.found.push(text.error(message, "not one of these").help(help));
            }
            bind
        });
        bind.unwrap_or(Bind::Loopback)
    }

    /// Returns the gateway of `mode: "remote"`.
    fn remote_gateway(
        &mut self,
        mode: Field<ConfigText>,
        remote: Field<RawRemoteGateway>,
        noted: &mut Vec<Setting>,
    ) -> Option<RemoteGateway> {
        let place = mode.clone();
        let is_remote = self.noted_text("gateway.mode", mode, noted, |cx, text| {
            let read = |mode: &str| match mode {
                "local" => Some(false),
                "remote" => Some(true),
                _ => None,
            };
            let help = "`local` is the gateway on this machine";
            cx.parsed(text, read, ["expected `local` or `remote`", "not one of these", help])
        });
        let RawRemoteGateway { url, token, tls_fingerprint, allow_plaintext } =
            remote.map(|it| it.value).unwrap_or_default();
        let has_url = url.is_some();
        let plaintext_key = "gateway.remote.allowPlaintext";
        let allow_plaintext = match allow_plaintext {
            Some(allowed) => {
                self.take(noted, plaintext_key, Some(allowed), false, |allowed| json!(allowed))
            }
            None => false,
        };
        let url = url.and_then(|text| self.gateway_url(&text, allow_plaintext, noted));
        let token = token.map(|token| token.map(|token| token.0));
        let token = self.token("gateway.remote.token", token, "leave it out", noted);
        let key = "gateway.remote.tlsFingerprint";
        let tls_fingerprint = self.noted_text(key, tls_fingerprint, noted, |cx, text| {
            let help = "`openssl x509 -noout -fingerprint -sha256 -in FILE` prints it";
            let message = "expected a SHA-256 fingerprint: 64 hexadecimal digits";
            cx.parsed(text, fingerprint, [message, "not a fingerprint", help])
        });
        if !is_remote? {
            return None;
        }
        if let (Some(mode), false) = (place, has_url) {
            let help = "set `gateway.remote.url` to `wss://host:port`";
            let message = "`remote` needs the URL of the gateway";
            self.found.push(mode.error(message, "no `gateway.remote.url`").help(help));
        }
        Some(RemoteGateway { url: url?, token, tls_fingerprint, allow_plaintext })
    }

    fn gateway_url(
        &mut self,
        text: &Spanned<ConfigText>,
        allow_plaintext: bool,
        noted: &mut Vec<Setting>,
    ) -> Option<SafeUrl> {
        self.note(noted, "gateway.remote.url", text, json!(safe_address(&text.value.0)));
        let url = self.any_url(text, &mut Unset::Refused, "wss://gateway.example:18789")?;
        let is_secure = url.scheme() == "wss" || is_loopback(&url);
        let (problem, help) = if !matches!(url.scheme(), "ws" | "wss") || !url.has_host() {
            ("expected a `wss://` or `ws://` URL", "for example `wss://gateway.example:18789`")
        } else if !is_bare(&url) {
            ("the URL must not have a user, query or fragment", "put the token in `token`")
        } else if !is_secure && !allow_plaintext {
            (
                "`ws://` would expose the token and all messages on the network",
                "use `wss://`, or a tunnel to `ws://127.0.0.1:PORT`; in a network that you trust, set \
                 `allowPlaintext: true`",
            )
        } else {
            return Some(SafeUrl::new(url, text.value.0.trim()));
        };
        self.found.push(text.error(problem, "not allowed").help(help));
        None
    }

    /// Only `token` exists; the setting is checked so that no operator relies on another mode.
    fn auth_mode(&mut self, mode: Field<ConfigText>, noted: &mut Vec<Setting>) {
        self.noted_text("gateway.auth.mode", mode, noted, |cx, text| {
            let mode = cx.filled(text, &mut Unset::Refused)?;
            if mode.as_str() != "token" {
                let message = "only `token` is supported: the gateway always requires a token";
                let help = "leave `mode` out; without `token` one is generated";
                cx.found.push(text.error(message, "not supported").help(help));
            }
            Some(())
        });
    }

    /// Returns a token; `help` says what to do instead of setting an empty one.
    fn token(
        &mut self,
        key: &str,
        token: Field<ConfigText>,
        help: &str,
        noted: &mut Vec<Setting>,
    ) -> Option<SecretTemplate> {
        let text = token?;
        let credential = self.noted_credential(key, &text, noted)?;
        if credential.is_empty {
            self.found.push(text.error("this must not be empty", "empty").help(help));
            return None;
        }
        Some(credential.value)
    }

    fn public_url(
        &mut self,
        text: &Spanned<ConfigText>,
        noted: &mut Vec<Setting>,
    ) -> Option<SafeUrl> {
        self.note(noted, "gateway.publicUrl", text, json!(safe_address(&text.value.0)));
        let url = self.any_url(text, &mut Unset::Refused, "https://example.com")?;
        let problem = if url.scheme() != "https" {
            "only an https URL can be published"
        } else if !is_bare(&url) {
            "a published URL must not have a user, query or fragment"
        } else {
            return Some(SafeUrl::new(url, text.value.0.trim()));
        };
        self.found
            .push(text.error(problem, "not allowed").help("for example `https://example.com`"));
        None
    }
}

/// Whether a URL has no user, query or fragment.
fn is_bare(url: &Url) -> bool {
    let has_user = !url.username().is_empty() || url.password().is_some();
    !has_user && url.query().is_none() && url.fragment().is_none()
}

/// Returns the digits of a SHA-256 fingerprint.
fn fingerprint(written: &str) -> Option<String> {
    let lower = written.trim().to_ascii_lowercase();
    let bare = lower.strip_prefix("sha256:").or(lower.strip_prefix("sha256=")).unwrap_or(&lower);
    let digits: String = bare.chars().filter(|c| *c != ':').collect();
    (digits.len() == 64 && digits.chars().all(|c| c.is_ascii_hexdigit())).then_some(digits)
}

/// Normalizes an origin as browsers do: `HTTPS://Example.com:443/` becomes `https://example.com`.
fn origin_of(written: &str) -> Option<String> {
    let url = Url::parse(written).ok()?;
    let is_bare = matches!(url.path(), "" | "/") && is_bare(&url);
    let host = url.host_str().filter(|host| is_bare && !host.is_empty() && !host.contains('*'))?;
    // Editors and extensions use their own schemes.
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{}://{}{port}", url.scheme(), host.to_ascii_lowercase()))
}

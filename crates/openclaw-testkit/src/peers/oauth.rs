//! Real authorization servers, and real MCP servers that they protect.

use serde::Serialize;
use serde_json::Value;

use super::running::Probe;
use super::{Peer, Peers, RunningPeer, kit};
use crate::oauth::{form, wire};

/// The options of `oidc-provider` and of the server that it protects. The names are those of
/// `peers/oidc_provider.mjs` and `peers/protected_server.mjs`.
#[derive(Debug, Clone, Serialize)]
pub struct OidcOptions {
    /// How long access tokens are valid, in seconds.
    pub access_token_lifetime: u64,
    /// `jwt` or `opaque`.
    pub access_token_format: &'static str,
    /// Whether tokens are issued and accepted only with a DPoP proof.
    pub dpop: bool,
    /// Whether DPoP proofs need a nonce.
    pub dpop_nonce: bool,
    /// Whether the protected server takes bearer tokens only.
    pub bearer_only: bool,
    /// Whether the metadata of the protected server requires bound tokens, whatever it accepts.
    pub dpop_required: bool,
}

impl Default for OidcOptions {
    fn default() -> Self {
        Self {
            access_token_lifetime: 3600,
            access_token_format: "jwt",
            dpop: false,
            dpop_nonce: false,
            bearer_only: false,
            dpop_required: false,
        }
    }
}

impl Peers {
    /// npm `oidc-provider` 9: registration, PKCE with S256 only, resource indicators, rotation of refresh
    /// tokens with detection of reuse, revocation, `iss`, DPoP. Any user name and password are accepted
    /// by its pages, which [`Browser`](crate::oauth::Browser) and real browsers understand. Scopes:
    /// `mcp:read` (the default), `mcp:admin`, `openid`, `offline_access`. Its URL is the issuer.
    pub fn oidc_provider(&self, options: &OidcOptions) -> OAuthPeer {
        let peer = self.kit_script("oidc_provider.mjs", options, None);
        OAuthPeer(RunningPeer::start_with(peer, "", Probe::Get("/_test/requests")))
    }

    /// An MCP server that accepts the tokens of this provider. TypeScript SDK 2; all versions. Tools:
    /// `whoami` returns `{subject, client, scopes}` of the token as JSON; `admin_task` needs the scope
    /// `mcp:admin`, too (403 `insufficient_scope` without).
    pub fn protected_server(&self, provider: &OAuthPeer, options: &OidcOptions) -> OAuthPeer {
        let peer = self.kit_script("protected_server.mjs", options, Some(provider.url()));
        OAuthPeer(RunningPeer::start_with(peer, "", Probe::Get("/_test/seen")))
    }

    /// A `FastMCP` 4 server with the authorization server of the Python SDK in the same process: opaque
    /// tokens, rotation of refresh tokens, revocation, no `iss`, no resource indicators. A page asks for
    /// the consent, without a login. Tools: `whoami` returns the client and the scopes as JSON;
    /// `admin_task` needs the scope `admin`, too, and is hidden without.
    pub fn fastmcp_oauth(&self) -> OAuthPeer {
        let script = kit().join("peers/fastmcp_oauth_server.py");
        let peer = self.python("python", &[&script.to_string_lossy()]);
        OAuthPeer(RunningPeer::start_with(peer, "", Probe::Get("/_test/requests")))
    }

    /// A `FastMCP` 4 server that checks the tokens of this provider with `JWTVerifier`, which takes bearer
    /// tokens only. Tool: `whoami`, like that of [`protected_server`](Self::protected_server).
    pub fn fastmcp_jwt(&self, provider: &OAuthPeer, options: &OidcOptions) -> OAuthPeer {
        let script = kit().join("peers/fastmcp_jwt_server.py");
        let mut peer = self.python("python", &[&script.to_string_lossy()]);
        let options = serde_json::to_string(options).unwrap_or_default();
        peer.env.push(("OPTIONS".to_owned(), options));
        peer.env.push(("ISSUER".to_owned(), provider.url().to_owned()));
        OAuthPeer(RunningPeer::start_with(peer, "", Probe::Get("/_test/seen")))
    }

    /// A script of ours that uses the installed packages.
    fn kit_script(&self, name: &str, options: &OidcOptions, issuer: Option<&str>) -> Peer {
        let installed = super::installed(self.0.join("node/package.json"));
        let script = kit().join("peers").join(name).to_string_lossy().into_owned();
        let folder = installed.with_file_name("").to_string_lossy().into_owned();
        let options = serde_json::to_string(options).unwrap_or_default();
        let mut env = vec![("OPTIONS".to_owned(), options)];
        env.extend(issuer.map(|issuer| ("ISSUER".to_owned(), issuer.to_owned())));
        Peer { program: self.node(), args: vec![script, folder], env }
    }
}

/// A running authorization server, a server that it protects, or both in one, with the controls of our
/// scripts; it is killed when this value is dropped. Its methods panic if it does not respond, or does not
/// have the control.
#[derive(Debug)]
pub struct OAuthPeer(RunningPeer);

impl OAuthPeer {
    /// Returns its address: the issuer, or the endpoint of the MCP server.
    pub fn url(&self) -> &str {
        self.0.url()
    }

    /// Returns all requests to an authorization server so far: `method`, `path`, `query`, `form`,
    /// `status`, and `error` if one failed.
    pub fn requests(&self) -> Vec<Value> {
        self.list("requests")
    }

    /// Returns the token requests with this grant type, such as `refresh_token`.
    pub fn token_requests(&self, grant_type: &str) -> Vec<Value> {
        let is_wanted = |request: &Value| {
            request["path"] == "/token" && request["form"]["grant_type"] == grant_type
        };
        self.requests().into_iter().filter(is_wanted).collect()
    }

    /// Returns the MCP requests to a protected server so far: `method`, `scheme` and `sha256` of the
    /// `Authorization` header (`null` without), `status`.
    pub fn seen(&self) -> Vec<Value> {
        self.list("seen")
    }

    /// Makes all refresh tokens of an authorization server invalid.
    pub fn revoke_refresh_tokens(&self) {
        self.control("revoke_refresh_tokens", &[]);
    }

    /// Makes all access tokens for an MCP server invalid; refresh tokens stay valid.
    pub fn expire_tokens(&self) {
        self.control("expire", &[]);
    }

    /// Changes whether DPoP proofs need a nonce, and changes the nonce.
    pub fn require_dpop_nonce(&self, required: bool) {
        self.control("dpop_nonce", &[("required", &required.to_string())]);
    }

    /// The address of a control.
    fn address(&self, name: &str) -> String {
        format!("{}/_test/{name}", self.url().trim_end_matches("/mcp"))
    }

    fn list(&self, name: &str) -> Vec<Value> {
        match wire::get(&self.address(name)).json() {
            Value::Array(entries) => entries,
            _ => Vec::new(),
        }
    }

    fn control(&self, name: &str, parameters: &[(&str, &str)]) {
        let url = format!("{}?{}", self.address(name), form::encode(parameters));
        let response = wire::send("POST", &url, &[], "");
        assert_eq!(response.status, 200, "{url}: {}", response.text());
    }
}

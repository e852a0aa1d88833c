//! Real authorization servers, and real MCP servers that they protect.

use std::ops::{Deref, DerefMut};

use serde::Serialize;
use serde_json::Value;

use super::running::Probe;
use super::{Peer, Peers, RunningPeer, kit};
use crate::oauth::{form, wire};

/// The options of [`OidcProvider`]. The names are those of `peers/oidc_provider.mjs`.
#[derive(Debug, Clone, Serialize)]
pub struct OidcOptions {
    /// How long access tokens are valid, in seconds.
    pub access_token_lifetime: u64,
    /// `jwt` or `opaque`.
    pub access_token_format: &'static str,
    /// When there are refresh tokens: `always`, `never`, or `offline_access` (only if the client
    /// requests this scope with `prompt=consent`, as OpenID Connect wants it).
    pub refresh_tokens: &'static str,
    /// Whether clients can register.
    pub registration: bool,
    /// Clients that are registered from the start, as in RFC 7591.
    pub clients: Vec<Value>,
    /// Whether tokens are issued only with a DPoP proof.
    pub dpop: bool,
    /// Whether DPoP proofs need a nonce.
    pub dpop_nonce: bool,
}

impl Default for OidcOptions {
    fn default() -> Self {
        Self {
            access_token_lifetime: 3600,
            access_token_format: "jwt",
            refresh_tokens: "always",
            registration: true,
            clients: Vec::new(),
            dpop: false,
            dpop_nonce: false,
        }
    }
}

/// The options of [`ProtectedServer`]. The names are those of `peers/protected_server.mjs`.
#[derive(Debug, Clone, Serialize)]
pub struct ProtectedOptions {
    /// Whether the challenge of a request without a token names the scope `mcp:read`. If not, every
    /// token of the authorization server is accepted.
    pub scope_in_challenge: bool,
    /// Whether the challenge has the address of the metadata.
    pub metadata_in_challenge: bool,
    /// Whether only tokens bound to a DPoP key are accepted.
    pub dpop: bool,
    /// Whether DPoP proofs need a nonce.
    pub dpop_nonce: bool,
}

impl Default for ProtectedOptions {
    fn default() -> Self {
        Self {
            scope_in_challenge: true,
            metadata_in_challenge: true,
            dpop: false,
            dpop_nonce: false,
        }
    }
}

impl Peers {
    /// npm `oidc-provider` 9: registration, PKCE with S256 only, resource indicators, rotation of refresh
    /// tokens with detection of reuse, revocation, `iss`, DPoP. Any user name and password are accepted
    /// by its pages, which [`Browser`](crate::oauth::Browser) and real browsers understand. Scopes:
    /// `mcp:read` (the default), `mcp:admin`, `openid`, `offline_access`.
    ///
    /// # Panics
    /// If it is not installed or does not start.
    pub fn oidc_provider(&self, options: &OidcOptions) -> OidcProvider {
        let peer = self.kit_script("oidc_provider.mjs", options, None);
        OidcProvider(AuthorizationPeer(RunningPeer::start_with(
            peer,
            "",
            Probe::Get("/_test/requests"),
        )))
    }

    /// An MCP server that accepts the tokens of this provider. TypeScript SDK 2; all versions. Tools:
    /// `whoami` returns `{subject, client, scopes}` of the token as JSON; `admin_task` needs the scope
    /// `mcp:admin`, too (403 `insufficient_scope` without).
    ///
    /// # Panics
    /// If it is not installed or does not start.
    pub fn protected_server(
        &self,
        provider: &OidcProvider,
        options: &ProtectedOptions,
    ) -> ProtectedServer {
        let peer = self.kit_script("protected_server.mjs", options, Some(provider.issuer()));
        ProtectedServer(RunningPeer::start_with(peer, "", Probe::Get("/_test/seen")))
    }

    /// A `FastMCP` 4 server with the authorization server of the Python SDK in the same process: opaque
    /// tokens, rotation of refresh tokens, revocation, no `iss`, no resource indicators. A page asks for
    /// the consent, without a login. Tools: `whoami` returns the client and the scopes as JSON;
    /// `admin_task` needs the scope `admin`, too, and is hidden without.
    ///
    /// # Panics
    /// If `FastMCP` is not installed or the server does not start.
    pub fn fastmcp_oauth(&self) -> FastMcpOAuth {
        let script = kit().join("peers/fastmcp_oauth_server.py");
        let peer = self.python("python", &[&script.to_string_lossy()]);
        FastMcpOAuth(AuthorizationPeer(RunningPeer::start_with(
            peer,
            "",
            Probe::Get("/_test/requests"),
        )))
    }

    /// A script of ours that uses the installed packages.
    fn kit_script(&self, name: &str, options: &impl Serialize, issuer: Option<&str>) -> Peer {
        let installed = super::installed(self.0.join("node/package.json"));
        let script = kit().join("peers").join(name).to_string_lossy().into_owned();
        let folder = installed.with_file_name("").to_string_lossy().into_owned();
        let options = serde_json::to_string(options).unwrap_or_default();
        let mut env = vec![("OPTIONS".to_owned(), options)];
        env.extend(issuer.map(|issuer| ("ISSUER".to_owned(), issuer.to_owned())));
        Peer { program: self.node(), args: vec![script, folder], env }
    }
}

/// A running authorization server with the controls of our scripts; it is killed when this value is
/// dropped.
#[derive(Debug)]
pub struct AuthorizationPeer(RunningPeer);

impl AuthorizationPeer {
    /// Returns its address.
    pub fn url(&self) -> &str {
        self.0.url()
    }

    /// Returns the process.
    pub fn process(&mut self) -> &mut RunningPeer {
        &mut self.0
    }

    /// Returns all requests so far: `method`, `path`, `query`, `form`, `status`, and `error` if one
    /// failed.
    ///
    /// # Panics
    /// If it does not respond.
    pub fn requests(&self) -> Vec<Value> {
        list(&self.0, "requests")
    }

    /// Returns the token requests with this grant type, such as `refresh_token`.
    ///
    /// # Panics
    /// If it does not respond.
    pub fn token_requests(&self, grant_type: &str) -> Vec<Value> {
        token_requests(self.requests(), grant_type)
    }

    /// Changes how long access tokens are valid, for tokens issued from now on.
    ///
    /// # Panics
    /// If it does not respond.
    pub fn set_access_token_lifetime(&self, seconds: u64) {
        control(&self.0, "access_token_lifetime", &[("seconds", &seconds.to_string())]);
    }

    /// Makes all refresh tokens invalid.
    ///
    /// # Panics
    /// If it does not respond.
    pub fn revoke_refresh_tokens(&self) {
        control(&self.0, "revoke_refresh_tokens", &[]);
    }
}

/// A running `oidc-provider`; it is killed when this value is dropped.
#[derive(Debug)]
pub struct OidcProvider(AuthorizationPeer);

impl Deref for OidcProvider {
    type Target = AuthorizationPeer;

    fn deref(&self) -> &AuthorizationPeer {
        &self.0
    }
}

impl DerefMut for OidcProvider {
    fn deref_mut(&mut self) -> &mut AuthorizationPeer {
        &mut self.0
    }
}

impl OidcProvider {
    /// Returns the issuer, which is also its address.
    pub fn issuer(&self) -> &str {
        self.0.url()
    }

    /// Makes all registrations invalid.
    ///
    /// # Panics
    /// If it does not respond.
    pub fn forget_clients(&self) {
        control(&self.0.0, "forget_clients", &[]);
    }

    /// Changes whether DPoP proofs need a nonce.
    ///
    /// # Panics
    /// If it does not respond.
    pub fn require_dpop_nonce(&self, required: bool) {
        control(&self.0.0, "dpop_nonce", &[("required", &required.to_string())]);
    }

    /// Lets the next requests to a path fail.
    ///
    /// # Panics
    /// If it does not respond.
    pub fn fail(&self, path: &str, status: u16, times: u64) {
        let (status, times) = (status.to_string(), times.to_string());
        control(&self.0.0, "fail", &[("path", path), ("status", &status), ("times", &times)]);
    }

    /// Answers requests to a path later.
    ///
    /// # Panics
    /// If it does not respond.
    pub fn delay(&self, path: &str, milliseconds: u64) {
        control(&self.0.0, "delay", &[("path", path), ("ms", &milliseconds.to_string())]);
    }
}

/// A running MCP server that accepts tokens of an [`OidcProvider`]; it is killed when this value is
/// dropped.
#[derive(Debug)]
pub struct ProtectedServer(RunningPeer);

impl ProtectedServer {
    /// Returns its endpoint.
    pub fn url(&self) -> &str {
        self.0.url()
    }

    /// Returns the process.
    pub fn process(&mut self) -> &mut RunningPeer {
        &mut self.0
    }

    /// Returns the MCP requests so far: `method`, `scheme` and `sha256` of the `Authorization` header
    /// (`null` without), `status`.
    ///
    /// # Panics
    /// If it does not respond.
    pub fn seen(&self) -> Vec<Value> {
        list(&self.0, "seen")
    }

    /// Makes all access tokens issued until now invalid. Refresh tokens stay valid.
    ///
    /// # Panics
    /// If it does not respond.
    pub fn expire_tokens(&self) {
        control(&self.0, "expire", &[]);
    }

    /// Changes whether DPoP proofs need a nonce, and changes the nonce.
    ///
    /// # Panics
    /// If it does not respond.
    pub fn require_dpop_nonce(&self, required: bool) {
        control(&self.0, "dpop_nonce", &[("required", &required.to_string())]);
    }
}

/// A running `FastMCP` server with its own authorization server; it is killed when this value is
/// dropped.
#[derive(Debug)]
pub struct FastMcpOAuth(AuthorizationPeer);

impl Deref for FastMcpOAuth {
    type Target = AuthorizationPeer;

    fn deref(&self) -> &AuthorizationPeer {
        &self.0
    }
}

impl DerefMut for FastMcpOAuth {
    fn deref_mut(&mut self) -> &mut AuthorizationPeer {
        &mut self.0
    }
}

impl FastMcpOAuth {
    /// Makes all access tokens invalid; refresh tokens stay valid.
    ///
    /// # Panics
    /// If it does not respond.
    pub fn expire_tokens(&self) {
        control(&self.0.0, "expire", &[]);
    }
}

/// The address of a control of our scripts.
fn address(peer: &RunningPeer, name: &str) -> String {
    format!("{}/_test/{name}", peer.url().trim_end_matches("/mcp"))
}

fn list(peer: &RunningPeer, name: &str) -> Vec<Value> {
    match wire::get(&address(peer, name)).json() {
        Value::Array(entries) => entries,
        _ => Vec::new(),
    }
}

fn control(peer: &RunningPeer, name: &str, parameters: &[(&str, &str)]) {
    let url = format!("{}?{}", address(peer, name), form::encode(parameters));
    let response = wire::send("POST", &url, &[], "");
    assert_eq!(response.status, 200, "{url}: {}", response.text());
}

fn token_requests(requests: Vec<Value>, grant_type: &str) -> Vec<Value> {
    let is_wanted = |request: &Value| {
        request["path"] == "/token" && request["form"]["grant_type"] == grant_type
    };
    requests.into_iter().filter(is_wanted).collect()
}

//! How an [`OAuthTestServer`](super::OAuthTestServer) behaves; the default behaves well.

use std::time::Duration;

use serde_json::Value;

use crate::script::Script;

/// The size of [`Fake::Huge`].
pub(super) const HUGE: usize = 10 << 20;

/// An endpoint of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// The MCP server.
    Mcp,
    /// The metadata of the MCP server (RFC 9728).
    ResourceMetadata,
    /// The metadata of the authorization server (RFC 8414).
    ServerMetadata,
    /// The registration of clients (RFC 7591).
    Register,
    /// Where the browser goes.
    Authorize,
    /// The token endpoint, for authorization codes.
    Token,
    /// The token endpoint, for refresh tokens.
    Refresh,
    /// The revocation of tokens (RFC 7009).
    Revoke,
    /// Any other address.
    Other,
}

/// A response in place of the regular one.
#[derive(Debug, Clone, PartialEq)]
pub enum Fake {
    /// This status, without a body.
    Status(u16),
    /// A web page with status 200, as captive portals and proxies send.
    Html,
    /// 10 MiB of valid JSON with status 200.
    Huge,
    /// A redirect (307) to this address.
    Redirect(String),
    /// This JSON with this status.
    Json(u16, Value),
    /// A connection that is closed without a response.
    HangUp,
}

impl Fake {
    /// An OAuth error, with status 400.
    pub fn error(code: &str) -> Self {
        Self::Json(400, serde_json::json!({ "error": code }))
    }
}

/// A parameter of the redirect to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parameter {
    /// The right value.
    Correct,
    /// Left out.
    Missing,
    /// This value.
    Other(String),
}

/// The behaviour of the server. It can be changed while the server runs, except for `mcp`.
#[derive(Debug, Clone)]
pub struct OAuthScript {
    /// The MCP server behind the access tokens. It runs in the process of the test, so scripts that
    /// exit are not possible.
    pub mcp: Script,
    /// The `WWW-Authenticate` header of a 401; `{metadata}` and `{scope}` are replaced.
    pub challenge: Option<String>,
    /// The scope that every MCP request needs.
    pub scope: String,
    /// Tools that need another scope: the name of the tool and the scope.
    pub tool_scopes: Vec<(String, String)>,
    /// The `resource` in the metadata of the MCP server, if it is not the URL of the MCP server.
    pub resource: Option<String>,
    /// The `issuer` in the metadata of the authorization server, if it is not the right one.
    pub issuer: Option<String>,
    /// Whether clients can register.
    pub registration: bool,
    /// Whether the metadata offers client id metadata documents. Any `client_id` that is an `https`
    /// URL is accepted then, unless `documents_at` is set.
    pub client_id_documents: bool,
    /// Where client id metadata documents are fetched: the base URL in the place of their `https` origin.
    pub documents_at: Option<String>,
    /// Clients that are registered from the start: id and secret.
    pub clients: Vec<(String, Option<String>)>,
    /// Whether secrets are accepted in the form only. The metadata offers the header, too, like that of
    /// servers of the Python SDK.
    pub secrets_in_form: bool,
    /// The parameter `iss` of the redirect to the client.
    pub iss: Parameter,
    /// The parameter `state` of the redirect to the client.
    pub state: Parameter,
    /// The error with which the user is sent back.
    pub authorize_error: Option<String>,
    /// How long access tokens are valid.
    pub lifetime: Duration,
    /// `expires_in` of token responses, whatever the lifetime; left out if `None`.
    pub expires_in: Option<i64>,
    /// `token_type` of token responses.
    pub token_type: String,
    /// Whether there are refresh tokens. A refresh returns a new one, and the old one is invalid
    /// afterwards. If it is used again, all tokens of the login become invalid.
    pub refresh_tokens: bool,
    /// Members of the metadata of the authorization server in place of the regular ones, or besides
    /// them; null removes one. `{issuer}` is replaced.
    pub server_metadata: Value,
    /// The same for the metadata of the MCP server.
    pub resource_metadata: Value,
    /// Whether token requests with a DPoP proof get tokens that are bound to its key. The proof is not
    /// checked, and the MCP server accepts bearer tokens only.
    pub binds_tokens: bool,
    /// Whether a refresh token that was replaced stays valid until the new one is used.
    pub grace: bool,
    /// Responses in place of the regular ones, and for how many requests; 0 is all.
    pub faults: Vec<(Endpoint, Fake, u64)>,
    /// How much longer requests take.
    pub delays: Vec<(Endpoint, Duration)>,
}

impl Default for OAuthScript {
    fn default() -> Self {
        Self {
            mcp: Script::new(),
            challenge: Some(r#"Bearer resource_metadata="{metadata}", scope="{scope}""#.into()),
            scope: "mcp".into(),
            tool_scopes: Vec::new(),
            resource: None,
            issuer: None,
            registration: true,
            client_id_documents: false,
            documents_at: None,
            clients: Vec::new(),
            secrets_in_form: false,
            iss: Parameter::Correct,
            state: Parameter::Correct,
            authorize_error: None,
            lifetime: Duration::from_secs(3600),
            expires_in: Some(3600),
            token_type: "Bearer".into(),
            refresh_tokens: true,
            server_metadata: Value::Null,
            resource_metadata: Value::Null,
            binds_tokens: false,
            grace: false,
            faults: Vec::new(),
            delays: Vec::new(),
        }
    }
}

impl OAuthScript {
    /// Behaves well.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends this response to the next `times` requests to an endpoint; 0 is all.
    pub fn fault(mut self, on: Endpoint, response: Fake, times: u64) -> Self {
        self.faults.push((on, response, times));
        self
    }

    /// Answers requests to an endpoint later.
    pub fn delay(mut self, on: Endpoint, time: Duration) -> Self {
        self.delays.push((on, time));
        self
    }

    /// Calls of this tool need another scope, too.
    pub fn tool_scope(mut self, tool: &str, scope: &str) -> Self {
        self.tool_scopes.push((tool.into(), scope.into()));
        self
    }
}

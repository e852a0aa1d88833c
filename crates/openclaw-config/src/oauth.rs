//! The validated OAuth settings of an MCP server.

use openclaw_secrets::SecretTemplate;

use crate::server::SafeUrl;

/// OAuth settings that are configured rather than discovered or registered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthSettings {
    /// The client id.
    pub client_id: Option<String>,
    /// The client secret.
    pub client_secret: Option<SecretTemplate>,
    /// The URL of the authorization server.
    pub authorization_server_url: Option<SafeUrl>,
    /// The scopes to request.
    pub scopes: Option<Vec<String>>,
    /// The URL of the client metadata document.
    pub client_metadata_url: Option<SafeUrl>,
    /// The local port of the redirect URL.
    pub redirect_port: Option<u16>,
}

//! What the configuration says about the authorization of one server, with resolved secrets.

use openclaw_secrets::SecretString;
use url::Url;

/// The grant type of assertions (RFC 7523, section 2.1).
pub(crate) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// The authorization settings of a server.
#[derive(Debug, Clone, Default)]
pub struct AuthSettings {
    /// The registered client id.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<SecretString>,
    /// The private key (PKCS#8 PEM) with which the client authenticates (`private_key_jwt`).
    pub private_key: Option<SecretString>,
    /// The JWS algorithm of that key; by default ES256 for EC keys and RS256 for RSA keys.
    pub signing_algorithm: Option<String>,
    /// The authorization server; by default the one that the MCP server names.
    pub authorization_server: Option<Url>,
    /// The scopes to request; by default those that the MCP server names.
    pub scopes: Option<Vec<String>>,
    /// The URL of our client metadata document (CIMD).
    pub client_metadata_url: Option<Url>,
    /// How tokens are obtained.
    pub grant: GrantType,
    /// Whether tokens are bound to a key.
    pub dpop: DpopUse,
}

/// Whether tokens are bound to a key (DPoP, RFC 9449).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DpopUse {
    /// Where the MCP server asks for it: in its metadata, or in its challenge. That an authorization
    /// server supports it says nothing about what the MCP server accepts.
    #[default]
    Auto,
    /// Unbound tokens are not used.
    Always,
    /// Bound tokens are not used.
    Never,
}

impl DpopUse {
    /// Whether a token may be used that is bound to a key, or not.
    pub(crate) fn allows(self, is_bound: bool) -> bool {
        match self {
            Self::Auto => true,
            Self::Always => is_bound,
            Self::Never => !is_bound,
        }
    }
}

/// How tokens are obtained.
#[derive(Debug, Clone, Default)]
pub enum GrantType {
    /// A user logs in with a browser.
    #[default]
    AuthorizationCode,
    /// The client is its own user (RFC 6749, section 4.4).
    ClientCredentials,
    /// A signed assertion of the platform stands for the workload (RFC 7523; SEP-1933).
    JwtBearer {
        /// The assertion, a JWT.
        assertion: SecretString,
    },
    /// An identity provider vouches for the user (SEP-990): its ID token is exchanged for an
    /// authorization grant (RFC 8693), and that for an access token (RFC 7523).
    Enterprise(Box<Enterprise>),
}

impl GrantType {
    /// Returns its name in the protocol (RFC 7591, section 2).
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::ClientCredentials => "client_credentials",
            Self::JwtBearer { .. } | Self::Enterprise(_) => JWT_BEARER,
        }
    }
}

/// The identity provider of [`GrantType::Enterprise`].
#[derive(Debug, Clone)]
pub struct Enterprise {
    /// Its token endpoint.
    pub token_endpoint: Url,
    /// The client id there.
    pub client_id: String,
    /// The client secret there.
    pub client_secret: Option<SecretString>,
    /// The user's ID token.
    pub id_token: SecretString,
}

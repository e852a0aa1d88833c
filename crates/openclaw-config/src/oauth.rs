//! The validated OAuth settings of an MCP server.

use openclaw_secrets::SecretTemplate;

use crate::safe_url::SafeUrl;

/// OAuth settings that are configured rather than discovered or registered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthSettings {
    /// How tokens are obtained.
    pub grant: OAuthGrant,
    /// The client id.
    pub client_id: Option<String>,
    /// The client secret.
    pub client_secret: Option<SecretTemplate>,
    /// The private key of the client, PKCS#8 PEM (`private_key_jwt`). Never set together with
    /// `client_secret`.
    pub private_key: Option<SecretTemplate>,
    /// The JWS algorithm of the private key: ES256, ES384, RS256, PS256 or EdDSA. `None` for the
    /// usual one of the key.
    pub signing_algorithm: Option<String>,
    /// The URL of the authorization server.
    pub authorization_server_url: Option<SafeUrl>,
    /// The scopes to request.
    pub scopes: Option<Vec<String>>,
    /// The URL of the client metadata document.
    pub client_metadata_url: Option<SafeUrl>,
    /// The local port of the redirect URL.
    pub redirect_port: Option<u16>,
    /// Whether tokens are bound to a key.
    pub dpop: DpopSetting,
    /// The name of the server whose login is used, if it is another one with the same URL.
    pub login: Option<String>,
}

/// Whether tokens are bound to a key (DPoP, RFC 9449).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DpopSetting {
    /// Where the server asks for it.
    #[default]
    Auto,
    /// Unbound tokens are not used.
    Always,
    /// Bound tokens are not used.
    Never,
}

/// How tokens are obtained.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OAuthGrant {
    /// A user logs in with a browser.
    #[default]
    AuthorizationCode,
    /// The client authenticates as itself (RFC 6749, section 4.4). `client_id` is set, and one of
    /// `client_secret` and `private_key`.
    ClientCredentials,
    /// The client presents a JWT of its platform (RFC 7523).
    JwtBearer {
        /// The JWT of the workload.
        assertion: SecretTemplate,
    },
    /// An identity provider vouches for the user (RFC 8693, then RFC 7523).
    Enterprise(IdentityProvider),
}

/// The identity provider of [`OAuthGrant::Enterprise`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityProvider {
    /// Its token endpoint.
    pub token_endpoint: SafeUrl,
    /// The client id there.
    pub client_id: String,
    /// The client secret there.
    pub client_secret: Option<SecretTemplate>,
    /// The ID token of the user.
    pub id_token: SecretTemplate,
}

impl OAuthSettings {
    /// Returns every value that may contain a credential, with the name of its setting.
    pub(crate) fn credentials(&self) -> Vec<(&'static str, &SecretTemplate)> {
        // Destructured, so that a new field must be handled here.
        let Self {
            grant,
            client_id: _,
            client_secret,
            private_key,
            signing_algorithm: _,
            authorization_server_url: _,
            scopes: _,
            client_metadata_url: _,
            redirect_port: _,
            dpop: _,
            login: _,
        } = self;
        let mut found = Vec::new();
        found.extend(client_secret.as_ref().map(|it| ("auth.clientSecret", it)));
        found.extend(private_key.as_ref().map(|it| ("auth.privateKey", it)));
        match grant {
            OAuthGrant::AuthorizationCode | OAuthGrant::ClientCredentials => {}
            OAuthGrant::JwtBearer { assertion } => found.push(("auth.assertion", assertion)),
            OAuthGrant::Enterprise(provider) => {
                let IdentityProvider { token_endpoint: _, client_id: _, client_secret, id_token } =
                    provider;
                let secret = client_secret.as_ref();
                found.extend(secret.map(|it| ("auth.identityProvider.clientSecret", it)));
                found.push(("auth.identityProvider.idToken", id_token));
            }
        }
        found
    }
}

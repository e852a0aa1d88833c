//! The identity of a client at one authorization server, and how it authenticates itself.

use openclaw_net::host::is_loopback;
use openclaw_secrets::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use crate::error::AuthError;
use crate::jwt::{Algorithm, SigningKey};
use crate::settings::AuthSettings;

/// The name that users see when they are asked for permission.
pub(crate) const CLIENT_NAME: &str = "OpenClaw";
/// A registration is renewed when its secret expires within this time, in seconds.
const EXPIRY_MARGIN: u64 = 300;

/// How a client authenticates at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenAuth {
    /// Not at all: a public client.
    #[serde(rename = "none")]
    None,
    /// With its secret in the `Authorization` header.
    #[serde(rename = "client_secret_basic")]
    Basic,
    /// With its secret in the form.
    #[serde(rename = "client_secret_post")]
    Post,
    /// With a signed assertion.
    #[serde(rename = "private_key_jwt")]
    PrivateKeyJwt,
}

impl TokenAuth {
    /// Returns the name of the method (RFC 7591).
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::None, Self::Basic, Self::Post, Self::PrivateKeyJwt]
            .into_iter()
            .find(|method| method.name() == name)
    }
}

/// Where a client id comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Registration {
    /// The configuration.
    Configured,
    /// It is the URL of our metadata document.
    MetadataDocument,
    /// The authorization server assigned it.
    Dynamic,
}

/// A client of one authorization server. It serializes with its secrets, for the encrypted store only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientIdentity {
    /// The authorization server. Nothing of the identity is sent to another one.
    pub issuer: String,
    /// The client id.
    pub id: String,
    /// The client secret.
    #[serde(default, with = "crate::secret::option", skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretString>,
    /// How it authenticates at the token endpoint.
    pub auth: TokenAuth,
    /// The private key (PKCS#8 PEM), for [`TokenAuth::PrivateKeyJwt`].
    #[serde(default, with = "crate::secret::option", skip_serializing_if = "Option::is_none")]
    pub private_key: Option<SecretString>,
    /// The algorithm of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_algorithm: Option<Algorithm>,
    /// Where the client id comes from.
    pub registration: Registration,
    /// The redirect URI it was registered with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// When the secret expires, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_expires_at: Option<u64>,
}

impl ClientIdentity {
    /// Returns the identity with the secret and key of the settings, if it is the configured client:
    /// they may have changed since it was stored.
    ///
    /// # Errors
    /// If the configured key is invalid.
    pub fn with_settings(mut self, settings: &AuthSettings) -> Result<Self, AuthError> {
        let is_same = settings.client_id.as_deref() == Some(self.id.as_str());
        if self.registration != Registration::Configured || !is_same {
            return Ok(self);
        }
        if settings.private_key.is_some() && self.auth == TokenAuth::PrivateKeyJwt {
            let key = signing_key(settings, &[])?;
            self.signing_algorithm = key.map(|key| key.algorithm());
            self.private_key.clone_from(&settings.private_key);
        }
        self.secret.clone_from(&settings.client_secret);
        Ok(self)
    }

    /// Returns the port of this machine that the client was registered with, if it registered itself.
    pub(crate) fn registered_port(&self) -> Option<u16> {
        let is_dynamic = self.registration == Registration::Dynamic;
        let uri = self.redirect_uri.as_ref().filter(|_| is_dynamic)?;
        let uri = Url::parse(uri).ok()?;
        uri.port().filter(|_| uri.host().is_some_and(|host| is_loopback(&host)))
    }

    /// Whether a stored dynamic registration can still be used for a login. The redirect URI must be
    /// identical: RFC 8252, section 7.3, allows any port of a loopback address, but many servers
    /// compare the whole URI, and show an error in the browser that is never reported to us.
    pub(crate) fn is_usable(&self, issuer: &str, redirect_uri: &str, now: u64) -> bool {
        let is_fresh = self.secret_expires_at.is_none_or(|at| at > now + EXPIRY_MARGIN);
        self.registration == Registration::Dynamic
            && self.issuer == issuer
            && self.redirect_uri.as_deref() == Some(redirect_uri)
            && is_fresh
    }
}

/// Reads the configured key. An RSA key signs with PS256 if that is `accepted` and RS256 is not.
pub(crate) fn signing_key(
    settings: &AuthSettings,
    accepted: &[String],
) -> Result<Option<SigningKey>, AuthError> {
    let Some(pem) = &settings.private_key else { return Ok(None) };
    let algorithm = settings.signing_algorithm.as_deref().map(str::parse).transpose()?;
    let key = SigningKey::from_pem(pem, algorithm)?;
    let accepts = |algorithm: Algorithm| accepted.iter().any(|name| name == algorithm.name());
    if algorithm.is_none()
        && key.algorithm() == Algorithm::Rs256
        && !accepts(Algorithm::Rs256)
        && accepts(Algorithm::Ps256)
    {
        return SigningKey::from_pem(pem, Some(Algorithm::Ps256)).map(Some);
    }
    Ok(Some(key))
}

/// Returns the client metadata document to be hosted at a URL (CIMD).
pub fn metadata_document(client_metadata_url: &Url, redirect_uris: &[String]) -> Value {
    json!({
        "client_id": client_metadata_url.as_str(),
        "client_name": CLIENT_NAME,
        "redirect_uris": redirect_uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": TokenAuth::None.name(),
        "application_type": "native",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authorize::tests::client;

    #[test]
    fn a_stored_configured_client_takes_the_current_secret() {
        let known = client("https://as.example", TokenAuth::Basic);
        let settings = AuthSettings {
            client_id: Some(known.id.clone()),
            client_secret: Some("rotated".into()),
            ..AuthSettings::default()
        };
        assert_eq!(known.clone().with_settings(&settings).unwrap().secret, settings.client_secret);
        let other = AuthSettings { client_id: Some("other".to_owned()), ..settings };
        assert_eq!(known.clone().with_settings(&other).unwrap(), known);
    }

    #[test]
    fn the_hosted_document_names_itself() {
        let url = "https://me.example/client.json".parse().unwrap();
        let redirect = "http://127.0.0.1:4711/callback";
        let document = metadata_document(&url, &[redirect.to_owned()]);
        assert_eq!(document["client_id"], "https://me.example/client.json");
        assert_eq!(document["redirect_uris"], json!([redirect]));
        assert_eq!(document["grant_types"], json!(["authorization_code", "refresh_token"]));
    }
}

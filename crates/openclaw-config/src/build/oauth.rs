//! Builds the OAuth settings of a remote service.

use openclaw_secrets::{SCHEME, SecretTemplate};
use serde_json::json;

use crate::decode::{Field, Spanned};
use crate::oauth::{DpopSetting, IdentityProvider, OAuthGrant, OAuthSettings};
use crate::raw::{RawAuth, RawDpop, RawGrantType, RawIdentityProvider};
use crate::text::ConfigText;

use super::server::{ServerBuilder, erase};

/// How to read a credential from a file.
const FROM_FILE: &str = "to read it from a file write `secret://file/PATH`";

impl ServerBuilder<'_, '_> {
    pub(super) fn oauth(&mut self, auth: Field<RawAuth>) -> OAuthSettings {
        let Some(auth) = auth else { return OAuthSettings::default() };
        self.check_client(&auth.value);
        self.check_grant(&auth.value);
        let RawAuth {
            grant_type,
            client_id,
            client_secret,
            private_key,
            signing_algorithm,
            assertion,
            identity_provider,
            authorization_server_url,
            scopes,
            client_metadata_url,
            redirect_port,
            dpop,
        } = auth.value;
        OAuthSettings {
            login: None,
            grant: self.grant(grant_type, assertion, identity_provider),
            client_id: self.word("auth.clientId", client_id),
            client_secret: client_secret.and_then(|secret| {
                self.one_credential("auth.clientSecret", "clientSecret", &secret)
            }),
            private_key: private_key.and_then(|key| self.private_key(&key)),
            signing_algorithm: signing_algorithm.map(|algorithm| {
                let name = algorithm.value.as_str();
                self.note("auth.signingAlgorithm", &algorithm, json!(name));
                name.to_owned()
            }),
            authorization_server_url: authorization_server_url
                .and_then(|url| self.address("auth.authorizationServerUrl", &url)),
            scopes: scopes.map(|scopes| {
                let scopes = self.list("auth.scopes", Some(scopes));
                scopes.iter().map(str::to_owned).collect()
            }),
            client_metadata_url: client_metadata_url
                .and_then(|url| self.address("auth.clientMetadataUrl", &url)),
            redirect_port: redirect_port.map(|port| {
                self.note("auth.redirectPort", &port, json!(port.value.0));
                u16::try_from(port.value.0).unwrap_or(u16::MAX)
            }),
            dpop: dpop.map_or(DpopSetting::Auto, |dpop| {
                self.note("auth.dpop", &dpop, json!(dpop.value.as_str()));
                match dpop.value {
                    RawDpop::Auto => DpopSetting::Auto,
                    RawDpop::Always => DpopSetting::Always,
                    RawDpop::Never => DpopSetting::Never,
                }
            }),
        }
    }

    /// Checks how the client authenticates.
    fn check_client(&mut self, auth: &RawAuth) {
        let RawAuth { client_id, client_secret, private_key, signing_algorithm, .. } = auth;
        if let (Some(secret), None) = (client_secret, client_id) {
            let help = "add `clientId`, the id that the secret belongs to";
            self.cx
                .found
                .push(secret.error("a client secret needs a client id", "alone").help(help));
        }
        match (client_secret, private_key) {
            (Some(secret), Some(key)) => self.cx.found.push(
                key.error("both `clientSecret` and `privateKey` authenticate the client", "here")
                    .also(secret.at, "and here")
                    .help("keep one of them"),
            ),
            (None, Some(key)) if client_id.is_none() => {
                let help = "add `clientId`, the id that the key is registered for";
                self.cx
                    .found
                    .push(key.error("a private key needs a client id", "alone").help(help));
            }
            _ => {}
        }
        if let (Some(algorithm), None, false) = (signing_algorithm, private_key, self.is_damaged) {
            let message = "`signingAlgorithm` has no effect without `privateKey`";
            self.cx.found.push(algorithm.warning(message, "not used"));
        }
    }

    /// Checks that the settings fit the grant.
    fn check_grant(&mut self, auth: &RawAuth) {
        if self.is_damaged {
            return;
        }
        let RawAuth { grant_type, client_id, assertion, identity_provider, redirect_port, .. } =
            auth;
        let grant = grant_type.as_ref().map_or(RawGrantType::AuthorizationCode, |it| it.value);
        if grant != RawGrantType::JwtBearer {
            self.refuse_for_grant("assertion", assertion, RawGrantType::JwtBearer, grant_type);
        }
        if grant != RawGrantType::Enterprise {
            let provider = identity_provider;
            self.refuse_for_grant(
                "identityProvider",
                provider,
                RawGrantType::Enterprise,
                grant_type,
            );
        }
        let Some(given) = grant_type else { return };
        let has_credential = auth.client_secret.is_some() || auth.private_key.is_some();
        let missing = match grant {
            RawGrantType::ClientCredentials if !has_credential && client_id.is_none() => Some((
                "`client_credentials` needs a client id and a client secret or private key",
                "add `clientId`, and `clientSecret` or `privateKey`",
            )),
            // `check_client` reports a credential without an id.
            RawGrantType::ClientCredentials if !has_credential => Some((
                "`client_credentials` needs a client secret or a private key",
                "add `clientSecret` or `privateKey`",
            )),
            RawGrantType::JwtBearer if assertion.is_none() => Some((
                "`jwt_bearer` needs an assertion",
                "add `assertion`, the JWT of the workload: `secret://file/PATH`",
            )),
            RawGrantType::Enterprise if identity_provider.is_none() => Some((
                "`enterprise` needs an identity provider",
                "add `identityProvider` with `tokenEndpoint`, `clientId` and `idToken`",
            )),
            _ => None,
        };
        if let Some((message, help)) = missing {
            self.cx.found.push(given.error(message, "incomplete").help(help));
        }
        if let Some(port) =
            redirect_port.as_ref().filter(|_| grant != RawGrantType::AuthorizationCode)
        {
            let message = format!("`redirectPort` has no effect with `{}`", grant.as_str());
            self.cx
                .found
                .push(port.warning(message, "not used").also(given.at, "no browser login"));
        }
    }

    /// Reports a setting that belongs to another grant.
    fn refuse_for_grant<T>(
        &mut self,
        key: &str,
        field: &Field<T>,
        needed: RawGrantType,
        given: &Field<RawGrantType>,
    ) {
        let Some(field) = field else { return };
        let needed = needed.as_str();
        let found = field.error(format!("`{key}` is only used by `{needed}`"), "not allowed here");
        self.cx.found.push(match given {
            Some(given) => found
                .also(given.at, "another grant")
                .help(format!("remove it, or write `grantType: \"{needed}\"`")),
            None => found.help(format!("add `grantType: \"{needed}\"`, or remove it")),
        });
    }

    fn grant(
        &mut self,
        grant_type: Field<RawGrantType>,
        assertion: Field<ConfigText>,
        provider: Field<RawIdentityProvider>,
    ) -> OAuthGrant {
        let grant = grant_type.map_or(RawGrantType::AuthorizationCode, |grant| {
            self.note("auth.grantType", &grant, json!(grant.value.as_str()));
            grant.value
        });
        let assertion = assertion.and_then(|jwt| self.jwt("auth.assertion", "assertion", &jwt));
        let provider = provider.and_then(|provider| {
            self.identity_provider(provider, grant == RawGrantType::Enterprise)
        });
        let grant = match grant {
            RawGrantType::AuthorizationCode => None,
            RawGrantType::ClientCredentials => Some(OAuthGrant::ClientCredentials),
            RawGrantType::JwtBearer => {
                assertion.map(|assertion| OAuthGrant::JwtBearer { assertion })
            }
            RawGrantType::Enterprise => provider.map(OAuthGrant::Enterprise),
        };
        // Without its settings, a grant was reported or holds the server back: the default is
        // never used in its place.
        grant.unwrap_or_default()
    }

    /// Builds the identity provider; `None` if a setting is missing or invalid.
    fn identity_provider(
        &mut self,
        provider: Spanned<RawIdentityProvider>,
        is_used: bool,
    ) -> Option<IdentityProvider> {
        let place = erase(&provider);
        let RawIdentityProvider { token_endpoint, client_id, client_secret, id_token } =
            provider.value;
        let required = [
            ("tokenEndpoint", token_endpoint.is_some(), "the URL of its token endpoint"),
            ("clientId", client_id.is_some(), "the id of this client there"),
            ("idToken", id_token.is_some(), "the ID token of the user: `secret://file/PATH`"),
        ];
        for (key, is_given, what) in required {
            if is_used && !is_given && !self.is_damaged {
                let message = format!("the identity provider needs `{key}`");
                let help = format!("add `{key}`, {what}");
                self.cx.found.push(place.error(message, "incomplete").help(help));
            }
        }
        let token_endpoint = token_endpoint
            .and_then(|url| self.address("auth.identityProvider.tokenEndpoint", &url));
        let client_id = self.word("auth.identityProvider.clientId", client_id);
        let client_secret = client_secret.and_then(|secret| {
            self.one_credential("auth.identityProvider.clientSecret", "clientSecret", &secret)
        });
        let id_token =
            id_token.and_then(|jwt| self.jwt("auth.identityProvider.idToken", "idToken", &jwt));
        Some(IdentityProvider {
            token_endpoint: token_endpoint?,
            client_id: client_id?,
            client_secret,
            id_token: id_token?,
        })
    }

    fn private_key(&mut self, text: &Spanned<ConfigText>) -> Option<SecretTemplate> {
        let written = &text.value.0;
        if is_written_out(written) && !written.contains("-----BEGIN PRIVATE KEY-----") {
            let message = "expected a private key in PKCS#8 PEM (`-----BEGIN PRIVATE KEY-----`)";
            let help = if written.contains("-----BEGIN ") {
                "convert it with `openssl pkcs8 -topk8 -nocrypt -in KEY.pem`"
            } else {
                FROM_FILE
            };
            self.cx.found.push(text.error(message, "not such a key").help(help));
        }
        self.one_credential("auth.privateKey", "privateKey", text)
    }

    fn jwt(&mut self, key: &str, name: &str, text: &Spanned<ConfigText>) -> Option<SecretTemplate> {
        let written = &text.value.0;
        if is_written_out(written) && !is_jwt(written.trim()) {
            self.cx.found.push(text.error("expected a JWT", "not a JWT").help(FROM_FILE));
        }
        self.one_credential(key, name, text)
    }
}

/// Whether a credential has neither variables nor secret references, so that its form can be
/// checked.
fn is_written_out(written: &str) -> bool {
    !written.contains('$') && !written.contains(SCHEME)
}

/// Whether a text has the form of a JWT: three parts (JWS) or five (JWE) of Base64url.
fn is_jwt(text: &str) -> bool {
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let parts = || text.split('.');
    // An encrypted JWT may have an empty second part, an unsigned one an empty last part.
    matches!(parts().count(), 3 | 5)
        && !text.starts_with('.')
        && parts().all(|part| part.chars().all(is_base64))
}

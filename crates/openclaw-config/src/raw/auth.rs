//! The OAuth settings of an MCP server.

use schemars::Schema;
use serde_json::json;

use super::Words;
use crate::decode::{Decoder, Whole, choice, section};
use crate::schema::{self, rule};
use crate::text::ConfigText;
use crate::tree::{ConfigNode, ConfigValue};

section! {
    /// OAuth settings, where discovery is not enough.
    struct RawAuth("the OAuth settings", Refuse, one_client_credential; oauth_word) {
        /// How tokens are obtained. `authorization_code` (the default): a user logs in with a
        /// browser. `client_credentials`: the client authenticates as itself. `jwt_bearer`: the
        /// client presents a JWT of its platform. `enterprise`: an identity provider vouches for
        /// the user.
        grant_type: RawGrantType = "grantType",
        /// The client id. Required by `clientSecret`, `privateKey` and `client_credentials`.
        client_id: ConfigText = "clientId",
        /// The client secret; preferably a `secret://…` reference.
        client_secret: ConfigText = "clientSecret" => schema::credential,
        /// The private key of the client (PKCS#8 PEM), instead of `clientSecret`; preferably a
        /// `secret://…` reference.
        private_key: ConfigText = "privateKey" => schema::private_key,
        /// The algorithm that `privateKey` signs with. If not given, the usual one of the key.
        signing_algorithm: SigningAlgorithm = "signingAlgorithm",
        /// The JWT of the workload, for `jwt_bearer`; usually `secret://file/PATH`.
        assertion: ConfigText = "assertion" => schema::jwt,
        /// The identity provider, for `enterprise`.
        identity_provider: RawIdentityProvider = "identityProvider",
        /// The URL of the authorization server.
        authorization_server_url: ConfigText = "authorizationServerUrl" => schema::address,
        /// The scopes to request.
        scopes: Words = "scopes",
        /// The URL of the client metadata document.
        client_metadata_url: ConfigText = "clientMetadataUrl" => schema::address,
        /// The local port of the redirect URL, whose path is `/callback` then; a free one if not given.
        redirect_port: Whole<1, 65535> = "redirectPort",
        /// Whether tokens are bound to a key (DPoP, RFC 9449). `auto` (the default): where the
        /// server asks for it. `always`: unbound tokens are not used. `never`: bound ones are not.
        dpop: RawDpop = "dpop",
    }
}

section! {
    /// The identity provider that vouches for the user. Everything but `clientSecret` is required.
    struct RawIdentityProvider("the identity provider", Refuse) {
        /// The URL of its token endpoint.
        token_endpoint: ConfigText = "tokenEndpoint" => schema::address,
        /// The id of this client there.
        client_id: ConfigText = "clientId",
        /// The client secret there; preferably a `secret://…` reference.
        client_secret: ConfigText = "clientSecret" => schema::credential,
        /// The ID token of the user, a JWT; usually `secret://file/PATH`.
        id_token: ConfigText = "idToken" => schema::jwt,
    }
}

choice! {
    /// How tokens are obtained.
    pub(crate) enum RawGrantType {
        /// A user logs in with a browser.
        AuthorizationCode = "authorization_code",
        /// The client authenticates as itself.
        ClientCredentials = "client_credentials",
        /// The client presents a JWT of its platform.
        JwtBearer = "jwt_bearer",
        /// An identity provider vouches for the user.
        Enterprise = "enterprise",
    }
}

choice! {
    /// Whether tokens are bound to a key (RFC 9449).
    pub(crate) enum RawDpop {
        /// Where the server asks for it.
        Auto = "auto",
        /// Unbound tokens are not used.
        Always = "always",
        /// Bound tokens are not used.
        Never = "never",
    }
}

choice! {
    /// The algorithm that a private key signs with (RFC 7518, RFC 8037).
    pub(crate) enum SigningAlgorithm {
        /// ECDSA on P-256.
        Es256 = "ES256",
        /// ECDSA on P-384.
        Es384 = "ES384",
        /// RSA, PKCS#1 v1.5.
        Rs256 = "RS256",
        /// RSA, PSS.
        Ps256 = "PS256",
        /// Ed25519.
        EdDsa = "EdDSA",
    }
}

/// Adds the rule that can be checked within one entry. The others cannot: another layer may set
/// the missing key.
fn one_client_credential(schema: &mut Schema) {
    rule(schema, json!({ "not": { "required": ["clientSecret", "privateKey"] } }));
}

section! {
    /// Node OpenClaw's form of the OAuth settings.
    struct RawNodeOAuth("the OAuth settings", Leave) {
        /// The client id.
        client_id: ConfigText = "clientId",
        /// The client secret.
        client_secret: ConfigText = "clientSecret" => schema::credential,
        /// The scopes to request, separated by spaces.
        scope: ConfigText = "scope",
        /// The URL of the client metadata document.
        client_metadata_url: ConfigText = "clientMetadataUrl" => schema::address,
        /// The redirect URL; only its port is used.
        redirect_url: ConfigText = "redirectUrl",
    }
}

/// Decodes the word `oauth`, as in Node OpenClaw.
fn oauth_word(node: &ConfigNode, cx: &mut Decoder<'_>) -> Option<Option<RawAuth>> {
    match &node.value {
        ConfigValue::String(word) if word == "oauth" => Some(Some(RawAuth::default())),
        ConfigValue::String(_) => {
            cx.wrong_type(node, "the OAuth settings (an object) or `\"oauth\"`");
            Some(None)
        }
        _ => None,
    }
}

//! The OAuth settings of an MCP server.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::Words;
use crate::decode::{Decode, Decoder, Overlay, Whole, section};
use crate::schema;
use crate::text::Text;
use crate::tree::{Node, Value};

section! {
    /// OAuth settings, where discovery is not enough.
    struct RawAuth("the OAuth settings", Refuse) {
        /// The client id.
        client_id: Text = "clientId",
        /// The client secret; preferably a `secret://…` reference.
        client_secret: Text = "clientSecret" => schema::credential,
        /// The URL of the authorization server.
        authorization_server_url: Text = "authorizationServerUrl" => schema::address,
        /// The scopes to request.
        scopes: Words = "scopes",
        /// The URL of the client metadata document.
        client_metadata_url: Text = "clientMetadataUrl" => schema::address,
        /// The local port of the redirect URL; a free one if not given.
        redirect_port: Whole<1, 65535> = "redirectPort",
    }
}

section! {
    /// Node OpenClaw's form of the OAuth settings.
    struct RawNodeOAuth("the OAuth settings", Leave) {
        /// The client id.
        client_id: Text = "clientId",
        /// The client secret.
        client_secret: Text = "clientSecret" => schema::credential,
        /// The scopes to request, separated by spaces.
        scope: Text = "scope",
        /// The URL of the client metadata document.
        client_metadata_url: Text = "clientMetadataUrl" => schema::address,
        /// The redirect URL; only its port is used.
        redirect_url: Text = "redirectUrl",
    }
}

/// The value of `auth`: an object, or the word `oauth` as in Node OpenClaw.
#[derive(Clone, Default)]
pub(crate) struct AuthSetting(pub(crate) RawAuth);

impl Decode for AuthSetting {
    fn decode(node: &Node, cx: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            Value::String(word) if word == "oauth" => Some(Self::default()),
            Value::String(_) => {
                cx.wrong_type(node, "the OAuth settings (an object) or `\"oauth\"`");
                None
            }
            _ => RawAuth::decode(node, cx).map(Self),
        }
    }
}

impl Overlay for AuthSetting {
    fn overlaid_by(self, later: Self) -> Self {
        Self(self.0.overlaid_by(later.0))
    }
}

impl JsonSchema for AuthSetting {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AuthSetting".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let section = generator.subschema_for::<RawAuth>();
        schemars::json_schema!({ "anyOf": [{ "const": "oauth" }, section] })
    }
}

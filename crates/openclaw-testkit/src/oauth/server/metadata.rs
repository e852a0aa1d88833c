//! The two metadata documents.

use hyper::Response;
use serde_json::{Value, json};

use super::shared::{Shared, json};
use crate::engine::lock;
use crate::http::bodies::Body;

/// The path of the metadata of the MCP server at `/mcp` (RFC 9728, section 3.1).
pub(super) const OF_RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
/// The path of the metadata of the authorization server.
pub(super) const OF_SERVER: &str = "/.well-known/oauth-authorization-server";

impl Shared {
    pub(super) fn resource_metadata_url(&self) -> String {
        format!("{}{OF_RESOURCE}", self.resource_origin)
    }

    /// The identifier of the MCP server.
    pub(super) fn resource(&self) -> String {
        lock(&self.script).resource.clone().unwrap_or_else(|| self.mcp_url())
    }

    pub(super) fn resource_metadata(&self) -> Response<Body> {
        let script = lock(&self.script).clone();
        let scope = &script.scope;
        let mut document = json!({
            "resource": self.resource(),
            "authorization_servers": [self.issuer()],
            "scopes_supported": scope.split(' ').collect::<Vec<_>>(),
            "bearer_methods_supported": ["header"],
        });
        merge(&mut document, &script.resource_metadata, &self.issuer());
        json(200, &document)
    }

    pub(super) fn server_metadata(&self) -> Response<Body> {
        let issuer = self.issuer();
        let script = lock(&self.script);
        let mut document = json!({
            "issuer": script.issuer.as_ref().unwrap_or(&issuer),
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "revocation_endpoint": format!("{issuer}/revoke"),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported":
                ["none", "client_secret_basic", "client_secret_post"],
            "authorization_response_iss_parameter_supported": true,
            "code_challenge_methods_supported": ["S256"],
        });
        if script.registration {
            document["registration_endpoint"] = json!(format!("{issuer}/register"));
        }
        if script.client_id_documents {
            document["client_id_metadata_document_supported"] = json!(true);
        }
        merge(&mut document, &script.server_metadata, &issuer);
        json(200, &document)
    }
}

/// Replaces members of a document; null removes one.
fn merge(document: &mut Value, members: &Value, issuer: &str) {
    for (name, value) in members.as_object().into_iter().flatten() {
        document[name] = match value {
            Value::String(text) => json!(text.replace("{issuer}", issuer)),
            value => value.clone(),
        };
    }
    if let Some(document) = document.as_object_mut() {
        document.retain(|_, value| !value.is_null());
    }
}

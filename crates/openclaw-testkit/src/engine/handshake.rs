//! The first messages: `initialize` and `server/discover`, and the checks of later requests.

use serde_json::{Value, json};

use super::message::Request;
use super::{Engine, Session};
use crate::script::{Discover, RpcError};

type HandshakeReply = Result<Option<Vec<u8>>, RpcError>;

impl Engine {
    pub(super) fn initialize(&self, session: &Session, request: &Request<'_>) -> HandshakeReply {
        let protocol = &self.script.protocol;
        let wanted = request.params.protocol_version.as_ref().map_or("", |version| &version.0);
        if protocol.crash_versions.iter().any(|version| version == wanted) {
            std::process::exit(1);
        }
        if protocol.initialize_silence {
            return Ok(None);
        }
        if protocol.rejected_versions.iter().any(|version| version == wanted) {
            return Err(RpcError::new(-32602, format!("Unsupported protocol version: {wanted}")));
        }
        // A server that supports only versions without a handshake has no version to offer.
        let Some(latest) = protocol.latest_with_handshake() else {
            return Err(self.unsupported(wanted));
        };
        let known = protocol.accepts(wanted) && !crate::script::is_modern(wanted);
        let offer = if known { wanted } else { latest };
        let version = protocol.answer_version.as_deref().unwrap_or(offer);
        session.set_initialized();
        let mut result = json!({
            "protocolVersion": version,
            "capabilities": self.capabilities(),
            "serverInfo": self.server_info(),
        });
        if let Some(instructions) = &protocol.instructions {
            result["instructions"] = json!(instructions);
        }
        Ok(Some(members(&result)))
    }

    pub(super) fn discover(&self, request: &Request<'_>) -> HandshakeReply {
        let protocol = &self.script.protocol;
        let wanted = request.params.meta.version.as_ref().map_or("", |version| &version.0);
        match protocol.discover {
            Some(Discover::Silence) => return Ok(None),
            Some(Discover::Crash) => std::process::exit(1),
            Some(Discover::InvalidParams) => {
                return Err(RpcError::new(-32602, "Invalid request parameters"));
            }
            Some(Discover::Modern) => {}
            None | Some(Discover::DelayMs(_)) if protocol.is_modern() => {}
            None | Some(Discover::DelayMs(_) | Discover::MethodNotFound) => {
                return Err(RpcError::new(-32601, "Method not found: server/discover"));
            }
        }
        if !protocol.accepts(wanted) {
            return Err(self.unsupported(wanted));
        }
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": protocol.versions,
            "capabilities": self.capabilities(),
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": self.server_info()},
        });
        if let Some(instructions) = &protocol.instructions {
            result["instructions"] = json!(instructions);
        }
        Ok(Some(members(&result)))
    }

    /// Returns why a request is rejected: it is too early, or a modern request lacks required fields.
    pub(super) fn refusal(&self, session: &Session, request: &Request<'_>) -> Option<RpcError> {
        if !request.modern {
            return (!session.is_initialized()).then(|| RpcError::new(-32600, "Not initialized"));
        }
        let meta = &request.params.meta;
        let version = meta.version.as_ref().map_or("", |version| &version.0);
        if !self.script.protocol.accepts(version) {
            return Some(self.unsupported(version));
        }
        meta.capabilities.is_none().then(|| {
            RpcError::new(-32602, "Invalid params: _meta must carry the client's capabilities")
        })
    }

    fn unsupported(&self, requested: &str) -> RpcError {
        RpcError {
            code: -32022,
            message: "Unsupported protocol version".into(),
            data: Some(json!({
                "requested": requested,
                "supported": self.script.protocol.versions,
            })),
        }
    }

    fn server_info(&self) -> Value {
        json!({"name": self.script.name, "version": env!("CARGO_PKG_VERSION")})
    }

    fn capabilities(&self) -> Value {
        if let Some(capabilities) = &self.script.protocol.capabilities {
            return capabilities.clone();
        }
        let mut capabilities = json!({"tools": {"listChanged": true}, "logging": {}});
        if !self.script.catalogue.tools_only {
            capabilities["resources"] = json!({});
            if self.script.catalogue.subscriptions {
                capabilities["resources"]["subscribe"] = json!(true);
            }
            capabilities["prompts"] = json!({});
            capabilities["completions"] = json!({});
        }
        if self.script.calls.task.is_some() {
            capabilities["tasks"] = json!({"cancel": {}, "requests": {"tools": {"call": {}}}});
            capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
        }
        if !self.script.catalogue.skills.is_empty() {
            capabilities["extensions"]["io.modelcontextprotocol/skills"] = json!({});
        }
        capabilities
    }
}

pub(super) fn members(result: &Value) -> Vec<u8> {
    let text = result.to_string();
    text.as_bytes()[1..text.len() - 1].to_vec()
}

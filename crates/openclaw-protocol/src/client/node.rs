//! Tools of a client at a gateway without `sessions.setExtraTools`: the client connects once more, as a
//! node, and publishes them. All agents of the gateway see them; a call names its session.

use openclaw_secrets::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::sync::Arc;

use super::{Client, ConnectError, ConnectOptions, DeviceKey};
use crate::connect::{ClientId, ClientInfo, ClientMode};
use crate::error::ErrorShape;
use crate::event::{Event, EventReceiver, names};
use crate::surface::Surface as _;
use crate::tools::InvokeResultParams;

/// The command by which a gateway calls an MCP tool of a node.
const CALL: &str = "mcp.tools.call.v1";
/// The publisher of MCP tools, as the Node gateway names it in its tool policy.
const PUBLISHER: &str = "node-mcp";
/// The number of tools that a gateway accepts from a node.
pub const MAX_TOOLS: usize = 128;
/// The length of a name that a gateway accepts.
const MAX_NAME: usize = 64;

/// A tool that is published.
#[derive(Debug, Clone)]
pub struct PublishedTool {
    /// The name that the model sees.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The schema of its arguments.
    pub parameters: Arc<Map<String, Value>>,
    /// The server that it belongs to.
    pub server: String,
}

impl PublishedTool {
    /// Whether a gateway accepts the name: a letter, then letters, digits, `_` and `-`.
    fn has_valid_name(&self) -> bool {
        let mut chars = self.name.chars();
        chars.next().is_some_and(|first| first.is_ascii_alphabetic())
            && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
            && self.name.len() <= MAX_NAME
    }
}

/// A call of a published tool.
#[derive(Debug)]
pub struct NodeCall {
    /// Call id.
    pub id: String,
    /// The node that is called.
    pub node_id: String,
    /// The session whose agent calls; `None` if the gateway does not say.
    pub session_key: Option<String>,
    /// The published name of the tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Box<RawValue>,
}

/// A node: a connection that publishes tools. They are removed when it is dropped.
#[derive(Debug)]
pub struct Node {
    client: Client,
    device: DeviceKey,
}

impl Node {
    /// Connects as a node, to the gateway of these options.
    ///
    /// # Errors
    /// If the gateway is not reachable, or rejects the node: it must know the device.
    pub async fn connect(
        operator: &ConnectOptions,
        device: DeviceKey,
    ) -> Result<Self, ConnectError> {
        let options = ConnectOptions {
            client: ClientInfo {
                id: ClientId::NodeHost,
                mode: ClientMode::Node,
                display_name: Some("openclaw acp".to_owned()),
                ..operator.client.clone()
            },
            role: "node".to_owned(),
            scopes: Vec::new(),
            caps: Vec::new(),
            commands: vec![CALL.to_owned()],
            device: Some(device.clone()),
            ..operator.clone()
        };
        Ok(Self { client: Client::connect(&options).await?, device })
    }

    /// Returns the id by which the gateway knows the node.
    #[must_use]
    pub fn id(&self) -> String {
        self.device.id()
    }

    /// Returns the key of the node.
    #[must_use]
    pub fn secret(&self) -> &SecretString {
        self.device.secret()
    }

    /// Publishes tools instead of those before. Returns the names that the gateway accepted: none
    /// until an operator has approved the node.
    ///
    /// # Errors
    /// If the gateway rejects the request, or the connection is lost.
    pub async fn publish(&self, tools: &[PublishedTool]) -> Result<Vec<String>, ErrorShape> {
        #[derive(Serialize)]
        struct Update<'a> {
            tools: Vec<Descriptor<'a>>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Descriptor<'a> {
            plugin_id: &'static str,
            name: &'a str,
            description: &'a str,
            parameters: &'a Map<String, Value>,
            command: &'static str,
            mcp: McpTool<'a>,
        }
        #[derive(Serialize)]
        struct McpTool<'a> {
            server: &'a str,
            tool: &'a str,
        }
        #[derive(Deserialize)]
        struct Updated {
            tools: Vec<Accepted>,
        }
        #[derive(Deserialize)]
        struct Accepted {
            name: String,
        }
        // One invalid name would make the gateway reject all tools.
        let valid = tools.iter().filter(|tool| tool.has_valid_name()).take(MAX_TOOLS);
        let tools = valid.map(|tool| Descriptor {
            plugin_id: PUBLISHER,
            name: &tool.name,
            description: match tool.description.trim() {
                "" => &tool.name,
                description => description,
            },
            parameters: &tool.parameters,
            command: CALL,
            mcp: McpTool { server: &tool.server, tool: &tool.name },
        });
        let params = to_raw_value(&Update { tools: tools.collect() });
        let params = params.map_err(|error| ErrorShape::invalid(error.to_string()))?;
        let updated = self.client.request("node.pluginTools.update", Some(params)).await?;
        let Updated { tools } = serde_json::from_str(updated.get())
            .map_err(|error| ErrorShape::invalid(error.to_string()))?;
        Ok(tools.into_iter().map(|tool| tool.name).collect())
    }

    /// Subscribes to the calls; [`call_of`] reads them.
    #[must_use]
    pub fn events(&self) -> EventReceiver {
        self.client.events()
    }

    /// Returns the result of a call to the gateway.
    ///
    /// # Errors
    /// If the gateway does not wait for it any more, or the connection is lost.
    pub async fn answer(&self, result: &InvokeResultParams) -> Result<(), ErrorShape> {
        let params = to_raw_value(result);
        let params = params.map_err(|error| ErrorShape::invalid(error.to_string()))?;
        self.client.request("node.invoke.result", Some(params)).await.map(drop)
    }
}

/// Returns the call of a published tool in an event, if it is one.
#[must_use]
pub fn call_of(event: &Event) -> Option<NodeCall> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Invoke {
        id: String,
        node_id: String,
        command: String,
        #[serde(rename = "paramsJSON")]
        params_json: Option<String>,
        session_key: Option<String>,
    }
    #[derive(Deserialize)]
    struct Params {
        tool: String,
        arguments: Option<Box<RawValue>>,
    }
    if event.event != names::NODE_INVOKE_REQUEST {
        return None;
    }
    let invoke: Invoke = serde_json::from_str(event.json().ok()?.get()).ok()?;
    if invoke.command != CALL {
        return None;
    }
    let Params { tool, arguments } = serde_json::from_str(&invoke.params_json?).ok()?;
    let arguments = arguments.or_else(|| RawValue::from_string("{}".to_owned()).ok())?;
    let Invoke { id, node_id, session_key, .. } = invoke;
    Some(NodeCall { id, node_id, session_key, tool, arguments })
}

/// The request of a node for approval, as an operator sees it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PendingNode {
    request_id: String,
    node_id: String,
}

/// Approves a node that waits for it, with the rights of this operator. Returns the id of the request;
/// `None` if there is none.
///
/// # Errors
/// If the operator may not approve nodes.
pub async fn approve(operator: &Client, node: &str) -> Result<Option<String>, ErrorShape> {
    #[derive(Deserialize)]
    struct Nodes {
        pending: Vec<PendingNode>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Approve<'a> {
        request_id: &'a str,
    }
    let unreadable = |error: serde_json::Error| ErrorShape::invalid(error.to_string());
    let none = RawValue::from_string("{}".to_owned()).map_err(unreadable)?;
    let nodes = operator.request("node.pair.list", Some(none)).await?;
    let Nodes { pending } = serde_json::from_str(nodes.get()).map_err(unreadable)?;
    let Some(found) = pending.into_iter().find(|it| it.node_id == node) else { return Ok(None) };
    let params = to_raw_value(&Approve { request_id: &found.request_id }).map_err(unreadable)?;
    operator.request("node.pair.approve", Some(params)).await?;
    Ok(Some(found.request_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_with_its_session() {
        let params = r#"{"server":"files","tool":"read","arguments":{"a":1}}"#;
        let payload = serde_json::json!({
            "id": "1", "nodeId": "n", "command": CALL, "paramsJSON": params, "sessionKey": "agent:main:x",
            "timeoutMs": 5, "later": true,
        });
        let call =
            call_of(&Event::from_json(names::NODE_INVOKE_REQUEST, to_raw_value(&payload).unwrap()))
                .unwrap();
        assert_eq!((call.tool.as_str(), call.arguments.get()), ("read", r#"{"a":1}"#));
        assert_eq!(call.session_key.as_deref(), Some("agent:main:x"));
        let mut other = payload;
        other["command"] = "system.run".into();
        assert!(
            call_of(&Event::from_json(names::NODE_INVOKE_REQUEST, to_raw_value(&other).unwrap()))
                .is_none()
        );
    }

    #[test]
    fn names_that_the_gateway_rejects_are_known() {
        let tool = |name: &str| PublishedTool {
            name: name.to_owned(),
            description: String::new(),
            parameters: Arc::default(),
            server: "s".to_owned(),
        };
        for (name, is_valid) in [("a", true), ("a-b_9", true), ("9a", false), ("a.b", false)] {
            assert_eq!(tool(name).has_valid_name(), is_valid, "{name}");
        }
        assert!(!tool(&"a".repeat(65)).has_valid_name());
    }
}

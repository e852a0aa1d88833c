//! `connect`: the handshake and its messages.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::health::Health;
use openclaw_secrets::SecretString;

/// Capabilities that a client can announce.
pub mod caps {
    /// Displays the progress of tool calls.
    pub const TOOL_EVENTS: &str = "tool-events";
    /// Lets a user approve calls. The Node gateway denies calls if no client announces it.
    pub const APPROVALS: &str = "approvals";
    /// Lets a user answer elicitations of MCP servers. Ours.
    pub const ELICITATION: &str = "mcp-elicitation";
    /// Shows the questions of MCP servers in all sessions, also in turns of other clients; otherwise
    /// only those of the sessions that it follows. Ours.
    pub const ALL_QUESTIONS: &str = "all-questions";
    /// Shows requests for approval only of the sessions that it follows; otherwise of all. A
    /// request that no client shows is denied at once. Ours.
    pub const OWN_APPROVALS: &str = "own-approvals";
    /// Its runs are aborted when it disconnects. Ours.
    pub const ENDS_RUNS: &str = "ends-runs";
    /// Assembles the text of a message from its deltas: they come without the `message` so far. Ours.
    pub const DELTA_TEXT: &str = "delta-text";
}

/// Payload of the event `connect.challenge`, the first message of a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// Nonce, to be included in a device signature.
    pub nonce: String,
    /// Timestamp, in milliseconds since 1970.
    pub ts: u64,
}

/// Parameters of `connect`, the first request of a client.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectParams {
    /// Oldest protocol version that the client supports.
    pub min_protocol: u32,
    /// Newest protocol version that the client supports.
    pub max_protocol: u32,
    /// Client identification.
    pub client: ClientInfo,
    /// Capabilities: some of [`caps`].
    pub caps: Option<Vec<String>>,
    /// Commands that can be invoked on a node.
    pub commands: Option<Vec<String>>,
    /// How the client's screen can be used.
    pub computer_use: Option<Value>,
    /// How the client can run agents.
    pub worker_runs: Option<Value>,
    /// Permissions of a node.
    pub permissions: Option<BTreeMap<String, bool>>,
    /// The client's `PATH`.
    pub path_env: Option<String>,
    /// `operator` or `node`.
    pub role: Option<String>,
    /// Requested scopes.
    pub scopes: Option<Vec<String>>,
    /// Device signature.
    pub device: Option<Value>,
    /// Credentials.
    pub auth: Option<Auth>,
    /// Locale.
    pub locale: Option<String>,
    /// User agent.
    pub user_agent: Option<String>,
}

/// Identification of a client.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientInfo {
    /// Program.
    pub id: ClientId,
    /// Display name.
    pub display_name: Option<String>,
    /// Version.
    pub version: String,
    /// Build id.
    pub build_id: Option<String>,
    /// Operating system.
    pub platform: String,
    /// Device family.
    pub device_family: Option<String>,
    /// Device model.
    pub model_identifier: Option<String>,
    /// Time zone.
    pub time_zone: Option<String>,
    /// How the client is used.
    pub mode: ClientMode,
    /// Distinguishes instances of the same client.
    pub instance_id: Option<String>,
}

/// Programs known to the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientId {
    /// The web chat.
    WebchatUi,
    /// The control UI.
    OpenclawControlUi,
    /// The browser copilot.
    OpenclawBrowserCopilot,
    /// The terminal UI.
    OpenclawTui,
    /// The web chat (alternative id).
    Webchat,
    /// The command line.
    #[default]
    Cli,
    /// Any other program.
    GatewayClient,
    /// The macOS app.
    OpenclawMacos,
    /// The Linux app.
    OpenclawLinux,
    /// The iOS app.
    OpenclawIos,
    /// The watchOS app.
    OpenclawWatchos,
    /// The Android app.
    OpenclawAndroid,
    /// A host that provides commands as a node.
    NodeHost,
    /// A host that runs agents.
    OpenclawWorker,
    /// A test.
    Test,
    /// A program that identifies the gateway.
    Fingerprint,
    /// A program that checks whether a gateway is reachable.
    OpenclawProbe,
}

/// How a client is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientMode {
    /// As a chat in a browser.
    Webchat,
    /// From a shell.
    #[default]
    Cli,
    /// By a user, through a graphical interface.
    Ui,
    /// By another program.
    Backend,
    /// As a node.
    Node,
    /// As a worker.
    Worker,
    /// To check whether a gateway is reachable.
    Probe,
    /// In a test.
    Test,
}

/// Credentials of a client. Only [`SecretString::expose`] reveals them.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Auth {
    /// Gateway token.
    #[serde(with = "sent")]
    pub token: Option<SecretString>,
    /// Bootstrap token.
    #[serde(with = "sent")]
    pub bootstrap_token: Option<SecretString>,
    /// Device token.
    #[serde(with = "sent")]
    pub device_token: Option<SecretString>,
    /// Password.
    #[serde(with = "sent")]
    pub password: Option<SecretString>,
    /// Token of the gateway's approval runtime.
    #[serde(with = "sent")]
    pub approval_runtime_token: Option<SecretString>,
    /// Token of an agent that the gateway started.
    #[serde(with = "sent")]
    pub agent_runtime_identity_token: Option<SecretString>,
}

/// Serializes tokens in plain text.
mod sent {
    use super::{Deserialize as _, Deserializer, SecretString, Serializer};

    pub(super) fn serialize<S: Serializer>(
        token: &Option<SecretString>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match token {
            Some(token) => serializer.serialize_str(token.expose()),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<SecretString>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(SecretString::from))
    }
}

/// `hello-ok`: the result of `connect`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HelloOk {
    /// Always `hello-ok`.
    #[serde(rename = "type")]
    pub kind: HelloKind,
    /// Negotiated protocol version.
    pub protocol: u32,
    /// Identification of the gateway.
    pub server: ServerInfo,
    /// Supported methods and events.
    pub features: Features,
    /// State of the gateway.
    pub snapshot: Snapshot,
    /// Granted role and scopes.
    pub auth: Granted,
    /// Limits that the client must respect.
    pub policy: Policy,
}

/// The constant `hello-ok`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HelloKind {
    /// `hello-ok`.
    #[serde(rename = "hello-ok")]
    HelloOk,
}

/// Identification of a gateway.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerInfo {
    /// Version.
    pub version: String,
    /// Build id.
    pub build_id: Option<String>,
    /// Changes at every start.
    pub boot_id: Option<String>,
    /// Id of this connection.
    pub conn_id: String,
}

/// Features of a gateway.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Features {
    /// Method names.
    pub methods: Vec<String>,
    /// Event names.
    pub events: Vec<String>,
    /// Further capabilities.
    pub capabilities: Option<Vec<String>>,
}

/// State of a gateway at connection time.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Other connected clients.
    pub presence: Vec<Value>,
    /// Health.
    pub health: Health,
    /// Versions of `presence` and `health`.
    pub state_version: StateVersion,
    /// Uptime in milliseconds.
    pub uptime_ms: u64,
    /// Path of the configuration file.
    pub config_path: Option<String>,
    /// State directory.
    pub state_dir: Option<String>,
    /// Session used when a request names none.
    pub session_defaults: Option<SessionDefaults>,
    /// How clients authenticate.
    pub auth_mode: Option<AuthMode>,
}

/// A connected client, or the gateway itself.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PresenceEntry {
    /// Name of the machine or the client.
    pub host: Option<String>,
    /// Version of the program.
    pub version: Option<String>,
    /// Operating system.
    pub platform: Option<String>,
    /// Kind of client, or `gateway`.
    pub mode: Option<String>,
    /// Why it is listed: `self` or `connect`.
    pub reason: Option<String>,
    /// One line for users.
    pub text: Option<String>,
    /// Timestamp, in milliseconds since 1970.
    pub ts: u64,
    /// Roles.
    pub roles: Option<Vec<String>>,
    /// Scopes.
    pub scopes: Option<Vec<String>>,
}

/// Change counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateVersion {
    /// Version of `presence`.
    pub presence: u64,
    /// Version of `health`.
    pub health: u64,
}

/// Session used when a request names none.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionDefaults {
    /// Default agent.
    pub default_agent_id: String,
    /// Short key, such as `main`.
    pub main_key: String,
    /// Full key.
    pub main_session_key: String,
    /// Which senders share it.
    pub scope: Option<String>,
}

/// How clients authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthMode {
    /// Without credentials.
    None,
    /// With a token.
    Token,
    /// With a password.
    Password,
    /// By a trusted proxy.
    TrustedProxy,
}

/// What a client is allowed to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Granted {
    /// Role.
    pub role: String,
    /// Scopes.
    pub scopes: Vec<String>,
}

/// Limits that a client must respect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// Maximum message size in bytes.
    pub max_payload: u64,
    /// Bytes that the gateway buffers for a client that does not read.
    pub max_buffered_bytes: u64,
    /// Interval of `tick` events in milliseconds.
    pub tick_interval_ms: u64,
}

/// Parameters of `request.cancel` (ours), which cancels a request on the same connection. The
/// cancelled request gets no response.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelParams {
    /// Request id.
    pub id: String,
}

/// Result of `request.cancel`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelResult {
    /// Whether the request was in progress.
    pub cancelled: bool,
}

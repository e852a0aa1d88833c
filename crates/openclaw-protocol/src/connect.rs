//! `connect`: the handshake, and what the two sides tell each other in it.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::health::Health;
use openclaw_secrets::SecretString;

/// What a client can say that it can show.
pub mod caps {
    /// How calls of tools get on.
    pub const TOOL_EVENTS: &str = "tool-events";
    /// Questions of servers, which somebody there answers. Ours alone.
    pub const ELICITATION: &str = "mcp-elicitation";
}

/// The event `connect.challenge`: the first word of a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// Something that was never said before; who signs for a device signs it.
    pub nonce: String,
    /// When, in milliseconds since 1970.
    pub ts: u64,
}

/// `connect`: the first request of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConnectParams {
    /// The oldest version that the client speaks.
    pub min_protocol: u32,
    /// The newest one.
    pub max_protocol: u32,
    /// Who it is.
    pub client: ClientInfo,
    /// What it can show: some of [`caps`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caps: Option<Vec<String>>,
    /// What can be called on it, if it is a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<String>>,
    /// How its screen can be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computer_use: Option<Value>,
    /// How it can run agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_runs: Option<Value>,
    /// What it may do, if it is a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<BTreeMap<String, bool>>,
    /// Its search path for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_env: Option<String>,
    /// `operator` or `node`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What it wants to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// A signature for a device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Value>,
    /// What lets it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Its language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// Its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
}

/// Who a client is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientInfo {
    /// Which program.
    pub id: ClientId,
    /// What to call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Its version.
    pub version: String,
    /// Its build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// What it runs on.
    pub platform: String,
    /// What kind of device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_family: Option<String>,
    /// Which device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_identifier: Option<String>,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// How it is used.
    pub mode: ClientMode,
    /// Tells two of the same apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
}

/// The programs that the protocol knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientId {
    /// The web chat.
    WebchatUi,
    /// The control page.
    OpenclawControlUi,
    /// The companion in a browser.
    OpenclawBrowserCopilot,
    /// The terminal interface.
    OpenclawTui,
    /// The web chat, too.
    Webchat,
    /// The command line.
    #[default]
    Cli,
    /// Another program.
    GatewayClient,
    /// The app for macOS.
    OpenclawMacos,
    /// The app for Linux.
    OpenclawLinux,
    /// The app for iOS.
    OpenclawIos,
    /// The app for watchOS.
    OpenclawWatchos,
    /// The app for Android.
    OpenclawAndroid,
    /// A machine that lends what it has.
    NodeHost,
    /// A machine that runs agents.
    OpenclawWorker,
    /// A test.
    Test,
    /// Somebody who wants to know who is there.
    Fingerprint,
    /// Somebody who wants to know whether anybody is there.
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
    /// By a person, with a picture of it.
    Ui,
    /// By another program.
    Backend,
    /// As a node.
    Node,
    /// As a worker.
    Worker,
    /// To find out whether a gateway is there.
    Probe,
    /// In a test.
    Test,
}

/// What lets a client in. Shown by nothing but [`SecretString::expose`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Auth {
    /// The gateway's token.
    #[serde(with = "sent", skip_serializing_if = "Option::is_none")]
    pub token: Option<SecretString>,
    /// A token for a first visit.
    #[serde(with = "sent", skip_serializing_if = "Option::is_none")]
    pub bootstrap_token: Option<SecretString>,
    /// A token for one device.
    #[serde(with = "sent", skip_serializing_if = "Option::is_none")]
    pub device_token: Option<SecretString>,
    /// A password.
    #[serde(with = "sent", skip_serializing_if = "Option::is_none")]
    pub password: Option<SecretString>,
    /// A token of a gateway's own helper.
    #[serde(with = "sent", skip_serializing_if = "Option::is_none")]
    pub approval_runtime_token: Option<SecretString>,
    /// A token of an agent that the gateway started.
    #[serde(with = "sent", skip_serializing_if = "Option::is_none")]
    pub agent_runtime_identity_token: Option<SecretString>,
}

/// How a token crosses the wire.
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

/// `hello-ok`: what `connect` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HelloOk {
    /// Says what this is.
    #[serde(rename = "type")]
    pub kind: HelloKind,
    /// The version that is spoken from now on.
    pub protocol: u32,
    /// Who the gateway is.
    pub server: ServerInfo,
    /// What it can do.
    pub features: Features,
    /// How it is.
    pub snapshot: Snapshot,
    /// What the client may do.
    pub auth: Granted,
    /// What the client must keep to.
    pub policy: Policy,
}

/// The word `hello-ok`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HelloKind {
    /// The word.
    #[serde(rename = "hello-ok")]
    HelloOk,
}

/// Who a gateway is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerInfo {
    /// Its version.
    pub version: String,
    /// Its build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// Changes when it is started anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// This connection.
    pub conn_id: String,
}

/// What a gateway can do.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Features {
    /// Its methods.
    pub methods: Vec<String>,
    /// Its events.
    pub events: Vec<String>,
    /// What else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
}

/// How a gateway is, when a client comes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Who else is there.
    pub presence: Vec<Value>,
    /// How it is.
    pub health: Health,
    /// Counts the changes of the two.
    pub state_version: StateVersion,
    /// For how long it has run.
    pub uptime_ms: u64,
    /// Its configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_path: Option<String>,
    /// Where it keeps things.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_dir: Option<String>,
    /// Which session is meant if none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_defaults: Option<SessionDefaults>,
    /// How clients are let in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_mode: Option<AuthMode>,
}

/// Counts changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateVersion {
    /// Of who is there.
    pub presence: u64,
    /// Of how the gateway is.
    pub health: u64,
}

/// Which session is meant if none is named.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionDefaults {
    /// Whose.
    pub default_agent_id: String,
    /// Its key, short.
    pub main_key: String,
    /// Its key, whole.
    pub main_session_key: String,
    /// Who shares it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// How clients are let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthMode {
    /// All are.
    None,
    /// With a token.
    Token,
    /// With a password.
    Password,
    /// By another program.
    TrustedProxy,
}

/// What a client may do.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Granted {
    /// As whom.
    pub role: String,
    /// What.
    pub scopes: Vec<String>,
}

/// What a client must keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// The largest message, in bytes.
    pub max_payload: u64,
    /// How much waits for a client that does not read.
    pub max_buffered_bytes: u64,
    /// How often a `tick` comes.
    pub tick_interval_ms: u64,
}

/// `request.cancel` (ours): a request on the same connection needs no answer any more. What it asked for is
/// cancelled, and it is not answered.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CancelParams {
    /// The id of the request.
    pub id: String,
}

/// What `request.cancel` answers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelResult {
    /// Whether it was under way.
    pub cancelled: bool,
}

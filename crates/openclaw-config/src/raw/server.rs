//! The section for an MCP server.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value as Json, json};

use super::{Millis, RawAuth, RawNodeOAuth, RawSampling, Words};
use crate::decode::{Decode, Decoder, Overlay, Table, Whole, choice, section};
use crate::schema::{self, rule};
use crate::text::ConfigText;
use crate::tree::ConfigNode;

section! {
    /// An MCP server: a local process (`command`) or a remote service (`url`).
    struct RawServer("an MCP server", Refuse, one_transport) {
        /// `false` disables the server.
        enabled: bool = "enabled",
        /// The transport, usually inferred: `command` means stdio, `url` means http with a fallback
        /// to sse.
        transport: TransportKind = "transport" | "type",
        /// The program to run.
        command: ConfigText = "command" => schema::filled,
        /// Arguments of the program.
        args: Words = "args",
        /// Environment variables of the process. Values may be `secret://…` references.
        env: Table<ConfigText> = "env" => schema::variables,
        /// The working folder of the process.
        cwd: ConfigText = "cwd" | "workingDirectory" => schema::filled,
        /// Names of variables that the process inherits from this program.
        inherit_env: Words = "inheritEnv" => schema::variable_names,
        /// The URL of the service: https, or http on this machine. User and password in the URL are
        /// sent as `Authorization: Basic …`, unless `apiKey` or `headers` provide credentials.
        url: ConfigText = "url" | "httpUrl" | "serverUrl" => schema::address,
        /// HTTP headers sent with every request. Values may contain `secret://…` references.
        headers: Table<ConfigText> = "headers" => schema::headers,
        /// A static key, sent as `Authorization: Bearer …`; preferably a `secret://…` reference.
        api_key: ConfigText = "apiKey" => schema::credential,
        /// OAuth settings, where discovery is not enough.
        auth: RawAuth = "auth" => schema::auth,
        /// Connect timeout, in milliseconds (30000).
        timeout: Millis = "timeout" | "connectTimeoutMs" | "connectionTimeoutMs",
        /// Timeout of a tool call, in milliseconds (60000).
        tool_timeout: Millis = "toolTimeout" | "requestTimeoutMs",
        /// Whether a crashed process is restarted (true).
        restart_on_crash: bool = "restartOnCrash",
        /// Maximum number of consecutive restarts (5).
        max_restarts: Whole<0, 1000> = "maxRestarts",
        /// Replaces the server's name in the names of its tools.
        tool_prefix: ConfigText = "toolPrefix" => schema::tool_prefix,
        /// Whether to connect only when a tool is first used (false).
        lazy: bool = "lazy",
        /// The tool policy of the server.
        tools: RawServerTools = "tools",
        /// Which calls need the user's approval: `auto` means all that are not read-only.
        approval: ApprovalPolicy = "approval",
        /// Calls per minute by agents (100); 0 means no limit. Calls by users are not limited.
        rate_limit: Whole<0, 1_000_000> = "rateLimit",
        /// Longer results are truncated for the model and saved to a file.
        max_result_chars: Whole<100, 100_000_000> = "maxResultChars",
        /// Whether the server supports concurrent calls (true).
        supports_parallel_tool_calls: bool = "supportsParallelToolCalls",
        /// Whether each client of the hub gets a process of its own (false). For local servers that ask
        /// the user or the model, or for roots, while they work for several clients.
        per_client: bool = "perClient",
        /// Whether the program refuses to start without this server (false).
        required: bool = "required",
        /// URIs of resources that are added to the context of every conversation.
        resources: Words = "resources" => schema::uris,
        /// Whether the server may use the agent's model: `never`, `ask` (the user, each time; same
        /// as `true`), `always`, or an object with limits.
        sampling: RawSampling = "sampling" => super::sampling::shape,
        /// Whether the server gets the agent's workspace (`roots`). By default only a `workspace`
        /// that is configured. Some servers then use it instead of the folders in `args`.
        roots: bool = "roots",
        /// The level from which on the server sends log messages. If not given, the server decides.
        log_level: LogLevel = "logLevel",
        /// The only protocol version to use. If not given, the newest that the server supports. Some
        /// servers offer a feature in an older version only.
        protocol_version: ProtocolVersion = "protocolVersion",
        /// TLS settings.
        tls: RawTls = "tls",
        /// The proxy for this server: a URL, or `none`.
        proxy: ConfigText = "proxy" => schema::proxy,
        /// Node OpenClaw's name for `auth`.
        oauth: RawNodeOAuth = "oauth",
        /// Node OpenClaw's name for `tools`.
        tool_filter: RawNodeToolFilter = "toolFilter",
        /// Node OpenClaw's name for `tls.verify`.
        ssl_verify: bool = "sslVerify",
        /// Node OpenClaw's name for `tls.clientCert`.
        client_cert: ConfigText = "clientCert",
        /// Node OpenClaw's name for `tls.clientKey`.
        client_key: ConfigText = "clientKey",
        /// A Node OpenClaw setting; ignored.
        codex: Ignored = "codex",
        /// Other programs' opposite of `enabled`.
        disabled: bool = "disabled",
        /// Other programs' list of tools that need no approval; ignored.
        auto_approve: Ignored = "autoApprove" | "alwaysAllow",
        /// A comment; ignored.
        description: Ignored = "description",
    }
}

section! {
    /// The tool policy of a server: glob patterns on tool names. Deny takes precedence.
    struct RawServerTools("a tool policy", Refuse) {
        /// If given, only these tools.
        allow: Words = "allow",
        /// Never these tools.
        deny: Words = "deny",
    }
}

section! {
    /// Node OpenClaw's form of a server's tool policy.
    struct RawNodeToolFilter("a tool filter", Refuse) {
        /// If given, only these tools.
        include: Words = "include",
        /// Never these tools.
        exclude: Words = "exclude",
    }
}

section! {
    /// TLS settings.
    struct RawTls("the TLS settings", Refuse) {
        /// A file of certificate authorities to trust in addition to the system's.
        ca_file: ConfigText = "caFile",
        /// The client certificate file.
        client_cert: ConfigText = "clientCert",
        /// The private key file of the client certificate.
        client_key: ConfigText = "clientKey",
        /// `false` disables certificate verification. Dangerous; for tests only.
        verify: bool = "verify",
    }
}

choice! {
    /// The transport of a server.
    pub enum TransportKind {
        /// A local process.
        Stdio = "stdio",
        /// Streamable HTTP.
        Http = "http" | "streamable-http" | "streamableHttp",
        /// HTTP with server-sent events, as in protocol version 2024-11-05.
        Sse = "sse",
    }
}

choice! {
    /// A version of the protocol.
    pub enum ProtocolVersion {
        /// The first one.
        V20241105 = "2024-11-05",
        /// Streamable HTTP.
        V20250326 = "2025-03-26",
        /// Elicitation and structured results.
        V20250618 = "2025-06-18",
        /// Tasks; the last one with a handshake.
        V20251125 = "2025-11-25",
        /// Without a handshake.
        V20260728 = "2026-07-28",
    }
}

choice! {
    /// Which calls need the user's approval.
    pub enum ApprovalPolicy {
        /// All except those that the server marks as read-only.
        Auto = "auto",
        /// All.
        Always = "always",
        /// None.
        Never = "never",
    }
}

choice! {
    /// The level of a server's log messages, most verbose first.
    pub enum LogLevel {
        /// Everything.
        Debug = "debug",
        /// General information.
        Info = "info",
        /// Significant events.
        Notice = "notice",
        /// Warnings.
        Warning = "warning" | "warn",
        /// Errors.
        Error = "error",
        /// Failures of a component.
        Critical = "critical",
        /// Failures that need action at once.
        Alert = "alert",
        /// The server is unusable.
        Emergency = "emergency",
    }
}

/// Adds the rules that can be checked within one entry. Whether `command` or `url` is set at all
/// cannot: another layer may set it.
fn one_transport(schema: &mut Schema) {
    rule(schema, json!({ "not": { "required": ["command", "url"] } }));
    for name in ["transport", "type"] {
        let conflict = |transport: Json, key: &str| {
            json!({
                "if": { "properties": { name: transport }, "required": [name] },
                "then": { "not": { "required": [key] } },
            })
        };
        rule(schema, conflict(json!({ "const": "stdio" }), "url"));
        rule(schema, conflict(json!({ "not": { "const": "stdio" } }), "command"));
    }
}

/// Any value; accepted and ignored.
#[derive(Clone)]
pub(crate) struct Ignored;

impl Decode for Ignored {
    fn decode(_: &ConfigNode, _: &mut Decoder<'_>) -> Option<Self> {
        Some(Self)
    }
}

impl Overlay for Ignored {}

impl JsonSchema for Ignored {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Ignored".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        true.into()
    }
}

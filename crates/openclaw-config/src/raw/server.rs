//! What may stand in the entry of an MCP server.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value as Json, json};

use super::{Millis, SamplingSetting, Words};
use crate::decode::{Decode, Decoder, Overlay, Table, Whole, choice, section};
use crate::schema::{self, rule};
use crate::text::Text;
use crate::tree::{Node, Value};

section! {
    /// An MCP server: a local process (`command`) or a remote service (`url`).
    struct RawServer("an MCP server", Refuse, one_transport) {
        /// `false` switches the server off.
        enabled: bool = "enabled",
        /// How to talk to it; mostly inferred: `command` means stdio, `url` means http, with a
        /// fallback to sse.
        transport: TransportKind = "transport",
        /// The program to run.
        command: Text = "command" => schema::filled,
        /// Its arguments.
        args: Words = "args",
        /// Environment variables of the process. Values may be `secret://…` references.
        env: Table<Text> = "env" => schema::variables,
        /// The folder that the process runs in.
        cwd: Text = "cwd" | "workingDirectory" => schema::filled,
        /// Names of variables of this program that the process gets, too.
        inherit_env: Words = "inheritEnv" => schema::variable_names,
        /// The address of the service: https, or http on this machine. User and password in it are sent
        /// as `Authorization: Basic …`, unless `apiKey` or `headers` say who is calling.
        url: Text = "url" => schema::address,
        /// HTTP headers of every request. Values may hold `secret://…` references.
        headers: Table<Text> = "headers" => schema::headers,
        /// A fixed key, sent as `Authorization: Bearer …`; best a `secret://…` reference.
        api_key: Text = "apiKey" => schema::credential,
        /// How to log in with OAuth, where that is not found out by itself.
        auth: AuthSetting = "auth",
        /// Milliseconds to connect (30000).
        timeout: Millis = "timeout" | "connectTimeoutMs" | "connectionTimeoutMs",
        /// Milliseconds that a tool call may take (60000).
        tool_timeout: Millis = "toolTimeout" | "requestTimeoutMs",
        /// Whether a crashed process is started again (true).
        restart_on_crash: bool = "restartOnCrash",
        /// How often in a row (5).
        max_restarts: Whole<0, 1000> = "maxRestarts",
        /// Takes the place of the server's name in the names of its tools.
        tool_prefix: Text = "toolPrefix" => schema::tool_prefix,
        /// Whether to connect only when a tool is first used (false).
        lazy: bool = "lazy",
        /// Which of its tools may be used.
        tools: RawServerTools = "tools",
        /// Which calls a person is asked about: `auto` asks for all that are not read-only.
        approval: Approval = "approval",
        /// Calls a minute (100); 0 means no limit.
        rate_limit: Whole<0, 1_000_000> = "rateLimit",
        /// A longer result is cut for the model and kept in a file.
        max_result_chars: Whole<100, 100_000_000> = "maxResultChars",
        /// Whether the server can serve several calls at once (true).
        supports_parallel_tool_calls: bool = "supportsParallelToolCalls",
        /// Whether the program must not start without this server (false).
        required: bool = "required",
        /// Resources of it that are put into the context of every conversation, by their URIs.
        resources: Words = "resources" => schema::uris,
        /// Whether it may use the agent's model: `never`, `ask` (a user, each time; `true` means the same),
        /// `always`, or an object with limits.
        sampling: SamplingSetting = "sampling",
        /// Certificates.
        tls: RawTls = "tls",
        /// The proxy for this server: its address, or `none`.
        proxy: Text = "proxy" => schema::proxy,
        /// Node OpenClaw's name for `auth`.
        oauth: RawNodeOAuth = "oauth",
        /// Node OpenClaw's name for `tools`.
        tool_filter: RawNodeToolFilter = "toolFilter",
        /// Node OpenClaw's name for `tls.verify`.
        ssl_verify: bool = "sslVerify",
        /// Node OpenClaw's name for `tls.clientCert`.
        client_cert: Text = "clientCert",
        /// Node OpenClaw's name for `tls.clientKey`.
        client_key: Text = "clientKey",
        /// A setting of Node OpenClaw without a meaning here.
        codex: Ignored = "codex",
        /// A note for people.
        description: Ignored = "description",
    }
}

section! {
    /// Which tools of a server may be used: glob patterns on their names. Deny beats allow.
    struct RawServerTools("a tool policy", Refuse) {
        /// Only these tools, if given.
        allow: Words = "allow",
        /// Not these tools.
        deny: Words = "deny",
    }
}

section! {
    /// Node OpenClaw's form of a server's tool policy.
    struct RawNodeToolFilter("a tool filter", Refuse) {
        /// Only these tools, if given.
        include: Words = "include",
        /// Not these tools.
        exclude: Words = "exclude",
    }
}

section! {
    /// OAuth, where it is not found out by itself.
    struct RawAuth("the OAuth settings", Refuse) {
        /// The id under which this program is registered.
        client_id: Text = "clientId",
        /// The secret that belongs to it; best a `secret://…` reference.
        client_secret: Text = "clientSecret" => schema::credential,
        /// The authorization server.
        authorization_server_url: Text = "authorizationServerUrl" => schema::address,
        /// The scopes to ask for.
        scopes: Words = "scopes",
        /// Where this program's client metadata document is published.
        client_metadata_url: Text = "clientMetadataUrl" => schema::address,
        /// The port on this machine that the browser is sent back to; a free one if not given.
        redirect_port: Whole<1, 65535> = "redirectPort",
    }
}

section! {
    /// Node OpenClaw's form of the OAuth settings.
    struct RawNodeOAuth("the OAuth settings", Leave) {
        /// The id under which this program is registered.
        client_id: Text = "clientId",
        /// The secret that belongs to it.
        client_secret: Text = "clientSecret" => schema::credential,
        /// The scopes to ask for, separated by spaces.
        scope: Text = "scope",
        /// Where this program's client metadata document is published.
        client_metadata_url: Text = "clientMetadataUrl" => schema::address,
        /// Where the browser is sent back to; only its port counts.
        redirect_url: Text = "redirectUrl",
    }
}

section! {
    /// Certificates.
    struct RawTls("the TLS settings", Refuse) {
        /// A file of certificate authorities to trust besides those of the system.
        ca_file: Text = "caFile",
        /// A file with this program's certificate.
        client_cert: Text = "clientCert",
        /// A file with the key of that certificate.
        client_key: Text = "clientKey",
        /// `false` accepts any certificate. Dangerous; for tests only.
        verify: bool = "verify",
    }
}

choice! {
    /// How to talk to a server.
    pub enum TransportKind {
        /// A local process.
        Stdio = "stdio",
        /// Streamable HTTP.
        Http = "http" | "streamable-http",
        /// HTTP with server-sent events, as in protocol version 2024-11-05.
        Sse = "sse",
    }
}

choice! {
    /// Which calls a person is asked about.
    pub enum Approval {
        /// All but those that the server calls read-only.
        Auto = "auto",
        /// All.
        Always = "always",
        /// None.
        Never = "never",
    }
}

/// What can be seen in one entry. (That there is a `command` or a `url` at all cannot: another place
/// may have it.)
fn one_transport(schema: &mut Schema) {
    rule(schema, json!({ "not": { "required": ["command", "url"] } }));
    let conflict = |transport: Json, key: &str| {
        json!({
            "if": { "properties": { "transport": transport }, "required": ["transport"] },
            "then": { "not": { "required": [key] } },
        })
    };
    rule(schema, conflict(json!({ "const": "stdio" }), "url"));
    rule(schema, conflict(json!({ "not": { "const": "stdio" } }), "command"));
}

/// `auth` is an object here and the word `oauth` in Node OpenClaw.
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

/// Anything: it is accepted and has no effect.
#[derive(Clone)]
pub(crate) struct Ignored;

impl Decode for Ignored {
    fn decode(_: &Node, _: &mut Decoder<'_>) -> Option<Self> {
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

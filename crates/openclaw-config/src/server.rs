//! A validated MCP server.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use openclaw_secrets::{SecretString, SecretTemplate};

use crate::credential;
use crate::oauth::OAuthSettings;
use crate::raw::ProtocolVersion;
pub use crate::raw::{ApprovalPolicy, LogLevel, SamplingRule};
use crate::safe_url::SafeUrl;
use crate::text::Expanded;
use crate::tool_policy::ToolPolicy;

/// An MCP server that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Whether it is enabled.
    pub enabled: bool,
    /// How to connect.
    pub connection: ServerConnection,
    /// The settings that do not affect the connection.
    pub options: ServerOptions,
}

/// How to connect to a server. It is the identity of a server: agents with equal connections share
/// a process or a session, and a change requires a restart (L7, L10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConnection {
    /// The transport.
    pub transport: Transport,
    /// Whether the `sampling` capability is advertised; that happens once, in the handshake.
    pub sampling: bool,
    /// What the server learns about the agent's folder, also in the handshake.
    pub roots: RootsSetting,
    /// The only protocol version to use; `None` for the newest that the server supports.
    pub protocol_version: Option<ProtocolVersion>,
}

/// What a server learns about the folder of the agents that use it (`roots/list`). Agents with
/// different folders do not share a connection: a server may allow access to every root it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootsSetting {
    /// Nothing: the `roots` capability is not advertised.
    Hidden,
    /// The agent's workspace; `None` for the default one.
    Workspace(Option<PathBuf>),
    /// The folders of an editor's session: the current one first.
    Folders(Vec<PathBuf>),
}

/// The settings of a server that do not affect its connection. A change is applied live: the
/// process, the connection and calls in flight are kept (L10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerOptions {
    /// The connect timeout. A change takes effect at the next connect.
    pub timeout: Duration,
    /// The timeout of a tool call.
    pub tool_timeout: Duration,
    /// Whether a crashed process is restarted.
    pub restart_on_crash: bool,
    /// The maximum number of consecutive restarts.
    pub max_restarts: u32,
    /// Replaces the server's name in the names of its tools.
    pub tool_prefix: Option<String>,
    /// Whether to connect only when a tool is first used.
    pub lazy: bool,
    /// Its tool policy.
    pub tools: ToolPolicy,
    /// Which calls need the user's approval.
    pub approval: ApprovalPolicy,
    /// Calls per minute; `None` for no limit.
    pub rate_limit: Option<NonZeroU32>,
    /// Results are truncated to this many characters for the model.
    pub max_result_chars: usize,
    /// Whether the server supports concurrent calls.
    pub supports_parallel_tool_calls: bool,
    /// Whether each client of the hub has a connection of its own to it.
    pub per_client: bool,
    /// Whether the program refuses to start without it.
    pub required: bool,
    /// URIs of resources that are added to the context of every conversation.
    pub resources: Vec<Expanded>,
    /// Whether and how much it may use the agent's model.
    pub sampling: SamplingSettings,
    /// The level of its log messages; `None` lets the server decide.
    pub log_level: Option<LogLevel>,
}

/// Whether and how much a server may use the agent's model (`sampling/createMessage`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplingSettings {
    /// Whether requests are allowed.
    pub allow: SamplingRule,
    /// The maximum length of a completion, in tokens.
    pub max_tokens: u32,
    /// Requests per minute.
    pub requests_per_minute: NonZeroU32,
}

impl SamplingSettings {
    /// Whether the `sampling` capability is advertised to the server.
    pub fn is_offered(self) -> bool {
        self.allow != SamplingRule::Never
    }
}

/// The variable that names the running program in a configuration; the built-in default uses it.
pub const PROGRAM_VARIABLE: &str = "OPENCLAW_PROGRAM";

impl ServerConfig {
    /// Returns a short description: the command line or the URL, without credentials.
    pub fn gist(&self) -> String {
        self.connection.gist()
    }
}

impl ServerConnection {
    /// Returns a short description: the command line or the URL, without credentials.
    pub fn gist(&self) -> String {
        match &self.transport {
            Transport::Stdio(stdio) => {
                let mut words = vec![program(stdio.command.written()).to_owned()];
                words.extend(stdio.args.shown());
                words.join(" ")
            }
            Transport::Http(http) => http.url.to_string(),
        }
    }

    /// Returns every value that may contain a credential, with the name of its setting.
    pub fn credentials(&self) -> Vec<(String, &SecretTemplate)> {
        match &self.transport {
            Transport::Stdio(stdio) => {
                stdio.env.iter().map(|(name, value)| (format!("env.{name}"), value)).collect()
            }
            Transport::Http(http) => {
                let headers = http.headers.iter();
                let headers = headers.map(|(name, value)| (format!("headers.{name}"), value));
                let api_key = http.api_key.iter().map(|value| ("apiKey".to_owned(), value));
                let oauth = http.oauth.credentials().into_iter();
                let oauth = oauth.map(|(name, value)| (name.to_owned(), value));
                headers.chain(api_key).chain(oauth).collect()
            }
        }
    }
}

/// Returns the name to display for a program: `openclaw` for [`PROGRAM_VARIABLE`].
fn program(written: &str) -> &str {
    let braced = written.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let name = braced.map(|inner| inner.split_once(":-").map_or(inner, |(name, _)| name));
    let name = name.or_else(|| written.strip_prefix('$'));
    if name == Some(PROGRAM_VARIABLE) { "openclaw" } else { written }
}

/// The transport of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there are a few dozen of these, all long-lived")]
pub enum Transport {
    /// A local process.
    Stdio(StdioServer),
    /// A remote service.
    Http(HttpServer),
}

/// A local process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioServer {
    /// The program.
    pub command: Expanded,
    /// Its arguments.
    pub args: Args,
    /// Environment variables in addition to the baseline.
    pub env: BTreeMap<String, SecretTemplate>,
    /// Its working folder.
    pub cwd: Option<PathBuf>,
    /// Names of variables that it inherits from this process.
    pub inherit_env: Vec<String>,
}

/// The arguments of a command. `Debug` redacts the value after a flag such as `--token`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Args(Vec<Expanded>);

impl Args {
    /// Returns the arguments. Do not display them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(Expanded::as_str)
    }

    /// Returns the credentials in them, to be registered with a redactor.
    pub fn credentials(&self) -> Vec<SecretString> {
        credential::arg_credentials(self.iter())
    }

    /// Returns the arguments with credentials redacted.
    pub fn shown(&self) -> Vec<String> {
        credential::safe_args(self.0.iter().map(Expanded::written))
    }
}

impl From<Vec<Expanded>> for Args {
    fn from(args: Vec<Expanded>) -> Self {
        Self(args)
    }
}

impl fmt::Debug for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown().fmt(f)
    }
}

/// A remote service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpServer {
    /// The URL.
    pub url: SafeUrl,
    /// Which HTTP transport to try first.
    pub flavour: HttpFlavour,
    /// Headers sent with every request.
    pub headers: BTreeMap<String, SecretTemplate>,
    /// A static API key.
    pub api_key: Option<SecretTemplate>,
    /// OAuth settings.
    pub oauth: OAuthSettings,
    /// TLS settings.
    pub tls: TlsSettings,
    /// The proxy.
    pub proxy: ProxySetting,
}

/// The HTTP transports of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpFlavour {
    /// Streamable HTTP, with a fallback to the older transport.
    Streamable,
    /// Server-sent events, as in protocol version 2024-11-05.
    Sse,
}

/// TLS settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// A file of certificate authorities to trust in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// The client certificate file.
    pub client_cert: Option<PathBuf>,
    /// The private key file of the client certificate.
    pub client_key: Option<PathBuf>,
    /// Whether server certificates are verified.
    pub verify: bool,
}

impl Default for TlsSettings {
    fn default() -> Self {
        Self { ca_file: None, client_cert: None, client_key: None, verify: true }
    }
}

/// The proxy for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxySetting {
    /// As set in the environment (`HTTPS_PROXY`, `NO_PROXY`).
    Environment,
    /// No proxy.
    Direct,
    /// This proxy.
    Url(SafeUrl),
}

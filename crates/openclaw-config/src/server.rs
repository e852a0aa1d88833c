//! One MCP server, validated.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use openclaw_secrets::SecretTemplate;
use url::Url;

use crate::credential;
use crate::model::ToolPolicy;
pub use crate::raw::{Approval, SamplingRule};
use crate::text::Expanded;

/// An MCP server that can be started: how to connect to it, and how to treat it once it is connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Whether it is to be started at all.
    pub enabled: bool,
    /// How to connect.
    pub connection: Connection,
    /// How to treat it.
    pub treatment: Treatment,
}

/// How to connect to a server. It decides whether two entries mean the same server: agents whose
/// entries agree in it share a process or a connection, and a change of it takes a restart (L7, L10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// How to reach it.
    pub transport: Transport,
    /// Whether it is told that it can ask for completions by the agent's model. Capabilities are told
    /// once, in the handshake.
    pub sampling: bool,
}

/// How to treat a server. A change is applied live: the process, the connection and the calls in flight
/// stay as they are (L10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Treatment {
    /// How long connecting may take. It counts from the next time that it is connected to.
    pub timeout: Duration,
    /// How long a tool call may take.
    pub tool_timeout: Duration,
    /// Whether a crashed process is started again.
    pub restart_on_crash: bool,
    /// How often in a row.
    pub max_restarts: u32,
    /// Takes the place of the server's name in the names of its tools.
    pub tool_prefix: Option<String>,
    /// Whether to connect only when a tool is first used.
    pub lazy: bool,
    /// Which of its tools may be used.
    pub tools: ToolPolicy,
    /// Which calls a person is asked about.
    pub approval: Approval,
    /// Calls a minute; none: no limit.
    pub rate_limit: Option<NonZeroU32>,
    /// A longer result is cut for the model.
    pub max_result_chars: usize,
    /// Whether the server can serve several calls at once.
    pub supports_parallel_tool_calls: bool,
    /// Whether the program must not start without it.
    pub required: bool,
    /// URIs of resources that are put into the context of every conversation.
    pub resources: Vec<Expanded>,
    /// Whether it may use the agent's model.
    pub sampling: Sampling,
}

/// Whether a server may use the agent's model (`sampling/createMessage`), and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Whether it may at all.
    pub allow: SamplingRule,
    /// The longest answer, in tokens.
    pub max_tokens: u32,
    /// Requests a minute.
    pub requests_per_minute: NonZeroU32,
}

impl Sampling {
    /// Whether the server is told that it can ask for a model.
    pub fn is_offered(self) -> bool {
        self.allow != SamplingRule::Never
    }
}

/// In a configuration this stands for the running program: the built-in default uses it.
pub const PROGRAM_VARIABLE: &str = "OPENCLAW_PROGRAM";

impl ServerConfig {
    /// What it is, in a few words: its command line or its address, without credentials.
    pub fn gist(&self) -> String {
        self.connection.gist()
    }
}

impl Connection {
    /// What it is, in a few words: its command line or its address, without credentials.
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

    /// Every value that may hold a credential, with the name of its setting.
    pub fn credentials(&self) -> Vec<(String, &SecretTemplate)> {
        match &self.transport {
            Transport::Stdio(stdio) => {
                stdio.env.iter().map(|(name, value)| (format!("env.{name}"), value)).collect()
            }
            Transport::Http(http) => {
                let headers = http.headers.iter();
                let headers = headers.map(|(name, value)| (format!("headers.{name}"), value));
                let api_key = http.api_key.iter().map(|value| ("apiKey".to_owned(), value));
                let client_secret = http.oauth.client_secret.iter();
                let client_secret =
                    client_secret.map(|value| ("auth.clientSecret".to_owned(), value));
                headers.chain(api_key).chain(client_secret).collect()
            }
        }
    }
}

/// A program as people know it: this one has a name, wherever it lies.
fn program(written: &str) -> &str {
    let braced = written.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let name = braced.map(|inner| inner.split_once(":-").map_or(inner, |(name, _)| name));
    let name = name.or_else(|| written.strip_prefix('$'));
    if name == Some(PROGRAM_VARIABLE) { "openclaw" } else { written }
}

/// How to reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there are a few dozen of these, all long-lived")]
pub enum Transport {
    /// A process on this machine.
    Stdio(StdioServer),
    /// A service at an address.
    Http(HttpServer),
}

/// A process on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioServer {
    /// The program.
    pub command: Expanded,
    /// Its arguments.
    pub args: Args,
    /// Its environment variables, besides the baseline.
    pub env: BTreeMap<String, SecretTemplate>,
    /// The folder that it runs in.
    pub cwd: Option<PathBuf>,
    /// Names of variables of this program that it gets, too.
    pub inherit_env: Vec<String>,
}

/// The arguments of a command. What follows a flag such as `--token` is not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Args(Vec<Expanded>);

impl Args {
    /// The arguments, to be used and not to be shown.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(Expanded::as_str)
    }

    /// The arguments as they may be shown.
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

/// A service at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpServer {
    /// The address.
    pub url: SafeUrl,
    /// Which HTTP transport to begin with.
    pub flavour: HttpFlavour,
    /// Headers of every request.
    pub headers: BTreeMap<String, SecretTemplate>,
    /// A fixed key.
    pub api_key: Option<SecretTemplate>,
    /// What is known about the OAuth login beforehand.
    pub oauth: OAuthSettings,
    /// Certificates.
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

/// What is known about an OAuth login beforehand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthSettings {
    /// The id under which this program is registered.
    pub client_id: Option<String>,
    /// The secret that belongs to it.
    pub client_secret: Option<SecretTemplate>,
    /// The authorization server.
    pub authorization_server_url: Option<SafeUrl>,
    /// The scopes to ask for.
    pub scopes: Option<Vec<String>>,
    /// Where this program's client metadata document is published.
    pub client_metadata_url: Option<SafeUrl>,
    /// The port that the browser is sent back to.
    pub redirect_port: Option<u16>,
}

/// Certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// Authorities to trust besides those of the system.
    pub ca_file: Option<PathBuf>,
    /// This program's certificate.
    pub client_cert: Option<PathBuf>,
    /// The key of that certificate.
    pub client_key: Option<PathBuf>,
    /// Whether certificates are checked at all.
    pub verify: bool,
}

/// The proxy of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxySetting {
    /// What the environment says (`HTTPS_PROXY`, `NO_PROXY`).
    Environment,
    /// None.
    Direct,
    /// This one.
    Url(SafeUrl),
}

/// An address that shows itself as it was written, without its user part and the values of its query.
#[derive(Clone)]
pub struct SafeUrl {
    url: Url,
    written: String,
}

impl SafeUrl {
    /// An address and how it was written, with `${VARIABLE}` for a variable.
    pub(crate) fn new(url: Url, written: &str) -> Self {
        Self { url, written: written.to_owned() }
    }

    /// Whether somebody who writes this means the same address.
    pub fn is(&self, written: &str) -> bool {
        Url::parse(written.trim()).is_ok_and(|url| url == self.url)
    }

    /// The address itself, to be used and not to be shown.
    pub fn expose(&self) -> &Url {
        &self.url
    }
}

impl PartialEq for SafeUrl {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url
    }
}

impl Eq for SafeUrl {}

impl From<Url> for SafeUrl {
    fn from(url: Url) -> Self {
        let written = url.to_string();
        Self { url, written }
    }
}

impl fmt::Display for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&credential::safe_address(&self.written))
    }
}

impl fmt::Debug for SafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

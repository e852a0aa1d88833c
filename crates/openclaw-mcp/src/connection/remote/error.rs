//! Why there is no connection, and what to do about it.

use std::fmt;
use std::time::Duration;

use openclaw_config::{HttpServer, ProxySetting};
use openclaw_content::{Untrusted, clean_line};
use url::{Host, Url};

use super::{RemotePlan, userinfo};
use crate::connection::local;
use crate::wire::{CallError, ReachProblem, Unfit, Unreachable};

/// The steps of connecting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Finding out which protocol the server speaks.
    Discovering,
    /// The handshake.
    Initializing,
    /// Opening the stream of the transport of 2024-11-05.
    OpeningStream,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discovering => "protocol discovery",
            Self::Initializing => "initialization",
            Self::OpeningStream => "event stream setup",
        })
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// A setting cannot be used.
    #[error("cannot use {setting}: {cause}")]
    Setting {
        /// Which.
        setting: String,
        /// Why.
        cause: String,
    },
    /// The server cannot be reached.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// Whoever is at an http address hangs up, or says what is no HTTP.
    #[error(transparent)]
    Wordless(Unreachable),
    /// It did not answer in time.
    #[error("timed out after {} ms during {step}", .after.as_millis())]
    TimedOut {
        /// What it was doing.
        step: Step,
        /// After how long.
        after: Duration,
    },
    /// The server wants to know who is calling (401).
    #[error("{}", match .key {
        Some(_) => "the server rejected the configured key (401)",
        None => "the server requires authorization",
    })]
    NeedsAuth {
        /// The server's name.
        server: String,
        /// Its `WWW-Authenticate`. From outside.
        challenge: Option<String>,
        /// The setting that a key came from, if it was given one: its name, and what is written there
        /// as far as that may be shown.
        key: Option<String>,
    },
    /// The server knows who is calling and refuses (403).
    #[error("the server denied access")]
    Forbidden {
        /// Its `WWW-Authenticate`. From outside.
        challenge: Option<String>,
    },
    /// There were too many requests of late.
    #[error(transparent)]
    RateLimited(CallError),
    /// It is out of service: it says until when, or whoever stands before it says so with a status.
    #[error(transparent)]
    OutOfService(CallError),
    /// The server is somewhere else.
    #[error("the server redirects to {to}")]
    Redirected {
        /// There.
        to: String,
    },
    /// The server speaks, but over another transport than its entry says.
    #[error("the server uses Streamable HTTP, not the transport of 2024-11-05 (`sse`)")]
    OtherTransport,
    /// A web page is there, and no MCP server.
    #[error("not an MCP server: the URL returns a web page (HTTP {status})")]
    WebPage {
        /// With which status.
        status: u16,
    },
    /// The answer is no JSON.
    #[error("the server's response is not valid JSON{}", match .body.as_str() {
        "" => String::new(),
        body => format!(": {body}"),
    })]
    NoJson {
        /// Its beginning: one clean line. From outside.
        body: String,
    },
    /// The answer cannot be used, whatever is in it.
    #[error("not a valid MCP response: {}", clean(&.0.to_string()))]
    Unfit(Unfit),
    /// Whoever answers is no MCP server.
    #[error("not a valid MCP response: {cause}")]
    NotMcp {
        /// What was wrong.
        cause: String,
    },
    /// The server insists on a version that nobody knows.
    #[error("unsupported protocol version: {version}")]
    UnknownVersion {
        /// Which. From outside.
        version: String,
    },
    /// The server answered, but with a refusal.
    #[error("{step} failed: {cause}")]
    Refused {
        /// What it was doing.
        step: Step,
        /// What was wrong.
        cause: String,
    },
}

impl RemoteError {
    /// A server that wants to know who is calling.
    pub(crate) fn needs_auth(server: String, config: &HttpServer, challenge: Option<&str>) -> Self {
        let (challenge, key) = (challenge.map(str::to_owned), key_setting(config));
        Self::NeedsAuth { server, challenge, key }
    }

    /// What became of a step.
    pub(super) fn of(plan: &RemotePlan, step: Step, error: CallError) -> Self {
        match error {
            CallError::NeedsAuth { challenge } => {
                Self::needs_auth(plan.server.clone(), &plan.config, challenge.as_deref())
            }
            CallError::Forbidden { challenge } => Self::Forbidden { challenge },
            CallError::RateLimited { .. } => Self::RateLimited(error),
            CallError::OutOfService { .. } => Self::OutOfService(error),
            CallError::Redirected { to } => Self::Redirected { to: clean(&to) },
            CallError::Unreachable(unreachable)
                if unreachable.problem == ReachProblem::Broken
                    && plan.config.url.expose().scheme() == "http" =>
            {
                Self::Wordless(unreachable)
            }
            CallError::Unreachable(unreachable) => {
                Self::Unreachable(blame_proxy(plan, unreachable))
            }
            CallError::TimedOut(after) => Self::TimedOut { step, after },
            CallError::Unreadable { body } => Self::NoJson { body: clean(&body) },
            CallError::Unfit(unfit) => Self::Unfit(unfit),
            CallError::Protocol(cause) => Self::NotMcp { cause: clean(&cause) },
            // Whatever JSON begins with, it is not this.
            CallError::Http { status, body } if body.trim_start().starts_with('<') => {
                match status {
                    // The page that a failing service shows. What is written in it says no more.
                    500.. => Self::OutOfService(CallError::Http { status, body: String::new() }),
                    _ => Self::WebPage { status },
                }
            }
            CallError::Rpc(error) => {
                Self::Refused { step, cause: local::rpc_refusal(&error, &plan.log) }
            }
            error => Self::Refused { step, cause: clean(&error.to_string()) },
        }
    }

    /// What to do about it, where that can be told.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NeedsAuth { key: Some(key), .. } => {
                return Some(format!("check that the key from {key} is correct and still valid"));
            }
            Self::NeedsAuth { key: None, .. } => {
                "set `apiKey` or `headers` in its entry (interactive login is not supported yet)"
            }
            Self::Redirected { to } => match Target::of(to) {
                Target::Usable => {
                    return Some(format!(
                        "if you trust that address, set `url` of this server to one at {to}"
                    ));
                }
                Target::Plain => {
                    "redirects to plain http are not followed, since keys could be intercepted: ask \
                     the operator of the server for its https URL"
                }
                Target::Senseless => {
                    "check `url`, and whether a proxy or a login page answers in place of the server"
                }
            },
            Self::Unreachable(unreachable) => match unreachable.problem {
                ReachProblem::Dns => "check the host name in `url`, and the network",
                ReachProblem::Connect | ReachProblem::Broken => {
                    "check host and port in `url`, and whether the server is running"
                }
                ReachProblem::ConnectTimedOut => {
                    "check the network; behind a firewall, a `proxy` may be needed"
                }
                ReachProblem::UnknownIssuer => {
                    "if the server's certificate is signed by your own authority, set `tls.caFile`"
                }
                ReachProblem::Expired => {
                    "check the clock of this machine; otherwise the server needs a new certificate"
                }
                ReachProblem::WrongName => "check the host name in `url`",
                ReachProblem::CaAsServer => {
                    "give the server a certificate with `basicConstraints=CA:FALSE` (`openssl req \
                     -x509 … -addext \
                     basicConstraints=CA:FALSE`), and set `tls.caFile` to it"
                }
                ReachProblem::Certificate => "the server needs another certificate",
                ReachProblem::Tls => {
                    "check that the port in `url` is an https port, and check `tls.clientCert`"
                }
                ReachProblem::Proxy => {
                    "check `proxy` of this server, or `HTTPS_PROXY` and `NO_PROXY` in the \
                     environment, and whether the proxy is running"
                }
            },
            Self::Wordless(_) => {
                "check host and port in `url`, and whether the server is running; if it expects \
                 https, use `https://`"
            }
            Self::TimedOut { .. } => "check the server, or set a longer `timeout`",
            Self::Forbidden { .. } => "check the permissions of the server's key or token",
            Self::RateLimited(_) => "wait, or send fewer requests",
            Self::OutOfService(_) => "the service is down: if that lasts, ask its operator",
            Self::OtherTransport => {
                "remove `transport` from its entry, or set `transport: \"http\"`"
            }
            Self::NoJson { .. } => {
                "check the log of the server, and whether something else answers in its place"
            }
            Self::Unfit(unfit) => match unfit {
                Unfit::Compressed { .. } => {
                    "the server, or a proxy in front of it, must not compress responses without \
                     being asked to"
                }
                Unfit::RedirectedTooOften { .. } => {
                    "check whether a proxy or a login page answers in place of the server"
                }
                Unfit::Empty => "check the path in `url`, and the log of the server",
                Unfit::TooLarge { .. } | Unfit::EventTooLarge { .. } | Unfit::Endless => {
                    return None;
                }
            },
            Self::NotMcp { .. } | Self::WebPage { .. } => {
                "check the path in `url`: many servers use `/mcp` or `/sse`"
            }
            Self::UnknownVersion { .. } => "a newer version of this program may support it",
            Self::Refused { .. } => "check the path in `url`, and the log of the server",
            Self::Setting { setting, .. } => return Some(format!("correct {setting}")),
        };
        Some(hint.to_owned())
    }
}

/// Where a proxy makes the connection, it is the proxy that was not found or does not answer: the name of
/// the server is for the proxy to look up.
fn blame_proxy(plan: &RemotePlan, unreachable: Unreachable) -> Unreachable {
    let url = plan.config.url.expose();
    let proxy = match &plan.config.proxy {
        ProxySetting::Direct => None,
        ProxySetting::Url(proxy) => proxy.expose().host_str().map(str::to_owned),
        ProxySetting::Environment => {
            plan.network.proxy_to(url).and_then(|proxy| proxy.uri().host().map(str::to_owned))
        }
    };
    let Unreachable { problem, cause } = &unreachable;
    let what = match problem {
        ReachProblem::Dns => "cannot be resolved",
        ReachProblem::ConnectTimedOut => "timed out",
        ReachProblem::Proxy => "does not connect",
        _ => return unreachable,
    };
    let Some(proxy) = proxy else { return unreachable };
    Unreachable { problem: ReachProblem::Proxy, cause: format!("`{proxy}` {what}: {cause}") }
}

/// What a redirect leads to.
enum Target {
    /// What `url` may be.
    Usable,
    /// Plain http to another machine, which `url` may not be (T8).
    Plain,
    /// No service at all, such as a file.
    Senseless,
}

impl Target {
    fn of(address: &str) -> Self {
        let Ok(url) = Url::parse(address) else { return Self::Senseless };
        let is_here = match url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        match url.scheme() {
            "https" => Self::Usable,
            "http" if is_here => Self::Usable,
            "http" => Self::Plain,
            _ => Self::Senseless,
        }
    }
}

/// Which setting a server's key comes from, without the key: `apiKey` (secret://env/TOKEN).
fn key_setting(config: &HttpServer) -> Option<String> {
    let key = config.api_key.iter().map(|template| ("`apiKey`".to_owned(), template));
    let headers = config.headers.iter().filter(|(name, template)| {
        name.eq_ignore_ascii_case("authorization") || template.references().next().is_some()
    });
    let headers = headers.map(|(name, template)| (format!("`headers.{name}`"), template));
    let settings = key.chain(headers).map(|(name, template)| {
        let references: Vec<String> = template.references().map(ToString::to_string).collect();
        if references.is_empty() { name } else { format!("{name} ({})", references.join(", ")) }
    });
    let in_address = userinfo::counts(config).then(|| "`url` (user and password)".to_owned());
    let settings: Vec<String> = settings.chain(in_address).collect();
    (!settings.is_empty()).then(|| settings.join(" and "))
}

/// Whether what a server is given comes from where it may have changed since.
pub(crate) fn key_is_kept_elsewhere(config: &HttpServer) -> bool {
    let mut templates = config.api_key.iter().chain(config.headers.values());
    templates.any(|template| template.references().next().is_some())
}

/// What may quote the server: one clean line.
fn clean(text: &str) -> String {
    clean_line(Untrusted::new(text), 300)
}

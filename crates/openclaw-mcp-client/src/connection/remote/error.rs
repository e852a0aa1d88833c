//! Errors of connecting to a remote server, and their hints.

use std::fmt;
use std::time::Duration;

use openclaw_config::{HttpServer, ProxySetting};
use openclaw_content::{Untrusted, clean_line};
use openclaw_oauth::error::AuthError;
use openclaw_oauth::issuer::confirmation_hint;
use url::{Host, Url};

use super::{RemotePlan, userinfo};
use crate::connection::local;
use crate::wire::{CallError, ReachProblem, Unreachable, UnusableResponse};

/// The steps of connecting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteStep {
    /// Detecting the protocol.
    Discovering,
    /// The handshake.
    Initializing,
    /// Opening the stream of the transport of 2024-11-05.
    OpeningStream,
}

impl fmt::Display for RemoteStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discovering => "protocol discovery",
            Self::Initializing => "initialization",
            Self::OpeningStream => "event stream setup",
        })
    }
}

/// Why connecting failed.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// A setting is invalid.
    #[error("cannot use {setting}: {cause}")]
    Setting {
        /// The setting.
        setting: String,
        /// The cause.
        cause: String,
    },
    /// The server is unreachable.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The connection to an `http` URL broke, or the response is not HTTP.
    #[error(transparent)]
    Wordless(Unreachable),
    /// The server did not respond in time.
    #[error("timed out after {} ms during {step}", .after.as_millis())]
    TimedOut {
        /// The step that failed.
        step: RemoteStep,
        /// The timeout.
        after: Duration,
    },
    /// The server requires authorization (401).
    #[error("{}", match .key {
        Some(_) => "the server rejected the configured key (401)",
        None => "the server requires authorization",
    })]
    NeedsAuth {
        /// The server's name.
        server: String,
        /// The `WWW-Authenticate` header. Untrusted.
        challenge: Option<String>,
        /// The setting that the key comes from, if there is one, with its secret references.
        key: Option<String>,
    },
    /// The authorization failed.
    #[error("{source}")]
    Auth {
        /// The server's name.
        server: String,
        /// The cause.
        source: AuthError,
    },
    /// The server denied access (403).
    #[error("the server denied access (403)")]
    Forbidden {
        /// The `WWW-Authenticate` header. Untrusted.
        challenge: Option<String>,
    },
    /// The server's rate limit is exceeded.
    #[error(transparent)]
    RateLimited(CallError),
    /// The server is unavailable: it sent `Retry-After`, or a 5xx web page was returned.
    #[error(transparent)]
    OutOfService(CallError),
    /// The server redirected to another address.
    #[error("the server redirects to {to}")]
    Redirected {
        /// The address.
        to: String,
    },
    /// The server uses another transport than configured.
    #[error("the server uses Streamable HTTP: connect with `http` instead of `sse`")]
    OtherTransport,
    /// The URL returns a web page.
    #[error("not an MCP server: the URL returns a web page (HTTP {status})")]
    WebPage {
        /// The status code.
        status: u16,
    },
    /// The response is not valid JSON.
    #[error("the server's response is not valid JSON{}", match .body.as_str() {
        "" => String::new(),
        body => format!(": {body}"),
    })]
    NoJson {
        /// The beginning of the body, sanitized to one line. Untrusted.
        body: String,
    },
    /// The response is unusable, whatever its content.
    #[error("not a valid MCP response: {}", clean(&.0.to_string()))]
    UnusableResponse(UnusableResponse),
    /// The response is not that of an MCP server.
    #[error("not a valid MCP response: {cause}")]
    NotMcp {
        /// The cause.
        cause: String,
    },
    /// The server selected an unknown protocol version.
    #[error("unsupported protocol version: {version}")]
    UnknownVersion {
        /// The version. Untrusted.
        version: String,
    },
    /// The server rejected the request.
    #[error("{step} failed: {cause}")]
    Refused {
        /// The step that failed.
        step: RemoteStep,
        /// The cause.
        cause: String,
    },
}

impl RemoteError {
    /// Creates the error for a server that requires authorization.
    pub fn needs_auth(server: String, config: &HttpServer, challenge: Option<&str>) -> Self {
        let challenge = challenge.map(str::to_owned);
        let key = key_setting(config);
        Self::NeedsAuth { server, challenge, key }
    }

    /// Converts the error of a step.
    pub(super) fn from_call(plan: &RemotePlan, step: RemoteStep, error: CallError) -> Self {
        match error {
            CallError::NeedsAuth { challenge } => {
                Self::needs_auth(plan.server.clone(), &plan.config, challenge.as_deref())
            }
            CallError::Auth(source) => Self::Auth { server: plan.server.clone(), source },
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
                Self::Unreachable(blame_proxy(plan, with_address(plan, unreachable)))
            }
            CallError::TimedOut(after) => Self::TimedOut { step, after },
            CallError::Unreadable { body } => Self::NoJson { body: clean(&body) },
            CallError::UnusableResponse(unfit) => Self::UnusableResponse(unfit),
            CallError::Protocol(cause) => Self::NotMcp { cause: clean(&cause) },
            // JSON never begins with `<`.
            CallError::Http { status, body } if body.trim_start().starts_with('<') => {
                match status {
                    // The error page of a failing service. Its content adds nothing.
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

    /// Returns what to do about the error, if known.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NeedsAuth { key: Some(key), .. } => {
                return Some(format!("check that the key from {key} is correct and still valid"));
            }
            Self::NeedsAuth { key: None, server, .. } => {
                return Some(format!(
                    "run `openclaw mcp login {server}`, or set `apiKey` in its entry"
                ));
            }
            Self::Auth { server, source } => return auth_hint(server, source),
            Self::Redirected { to } => match Target::classify(to) {
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
            Self::UnusableResponse(unfit) => match unfit {
                UnusableResponse::Compressed { .. } => {
                    "the server, or a proxy in front of it, must not compress responses without \
                     being asked to"
                }
                UnusableResponse::RedirectedTooOften { .. } => {
                    "check whether a proxy or a login page answers in place of the server"
                }
                UnusableResponse::Empty => "check the path in `url`, and the log of the server",
                UnusableResponse::TooLarge { .. }
                | UnusableResponse::EventTooLarge { .. }
                | UnusableResponse::TooManyBytes { .. }
                | UnusableResponse::Endless => {
                    return None;
                }
            },
            Self::NotMcp { .. } => {
                "check the path in `url` (many servers use `/mcp` or `/sse`), and the log of the \
                 server"
            }
            Self::WebPage { .. } => "check the path in `url`: many servers use `/mcp` or `/sse`",
            Self::UnknownVersion { .. } => "a newer version of this program may support it",
            Self::Refused { .. } => "check the path in `url`, and the log of the server",
            Self::Setting { setting, .. } => return Some(format!("correct {setting}")),
        };
        Some(hint.to_owned())
    }
}

/// Returns what to do about a failed authorization.
fn auth_hint(server: &str, error: &AuthError) -> Option<String> {
    let hint = match error {
        AuthError::Unreachable { .. } => "check the network; the request will be retried",
        AuthError::NotRegistered { .. } => {
            "register a client there by hand, with the redirect URL http://127.0.0.1/callback, and \
             set `auth.clientId` in the entry of the server"
        }
        AuthError::Unconfirmed(it) => return Some(confirmation_hint(server, &it.issuer)),
        AuthError::Binding { remedy, .. } => return Some(AuthError::binding_hint(server, *remedy)),
        AuthError::Setting { setting: setting @ ("tls" | "tls.caFile" | "proxy"), .. } => {
            return Some(format!("correct `{setting}`"));
        }
        AuthError::Setting { setting, .. } => return Some(format!("correct `auth.{setting}`")),
        AuthError::Refused { .. } | AuthError::Unsupported { .. } | AuthError::Invalid { .. } => {
            "this is a fault of the server: ask its operator, or set `apiKey` in its entry"
        }
        // Of a configured client, mostly: the login of a user ends with `LoginRequired`.
        AuthError::Rejected { .. } => {
            return Some(format!(
                "check the credentials in `auth` of its entry, then run `openclaw mcp login {server}`"
            ));
        }
        _ => return Some(format!("run `openclaw mcp login {server}`")),
    };
    Some(hint.to_owned())
}

/// Adds host and port of the server.
fn with_address(plan: &RemotePlan, unreachable: Unreachable) -> Unreachable {
    let url = plan.config.url.expose();
    let address = url.host_str().zip(url.port_or_known_default());
    let address = address.map(|(host, port)| format!("{host}:{port}"));
    Unreachable { address, ..unreachable }
}

/// With a proxy, a resolution or connection failure is that of the proxy: the proxy resolves the
/// server's name.
fn blame_proxy(plan: &RemotePlan, unreachable: Unreachable) -> Unreachable {
    let url = plan.config.url.expose();
    let proxy = match &plan.config.proxy {
        ProxySetting::Direct => None,
        ProxySetting::Url(proxy) => proxy.expose().host_str().map(str::to_owned),
        ProxySetting::Environment => {
            plan.network.proxy_to(url).and_then(|proxy| proxy.uri().host().map(str::to_owned))
        }
    };
    let Unreachable { problem, cause, .. } = &unreachable;
    let what = match problem {
        ReachProblem::Dns => " cannot be resolved",
        // The cause says that it timed out, or refused to connect.
        ReachProblem::ConnectTimedOut | ReachProblem::Proxy => "",
        _ => return unreachable,
    };
    let Some(proxy) = proxy else { return unreachable };
    let cause = format!("`{proxy}`{what}: {cause}");
    Unreachable { problem: ReachProblem::Proxy, address: None, cause }
}

/// The kind of a redirect's target.
enum Target {
    /// Allowed as `url`.
    Usable,
    /// Plain http to another host, which is not allowed as `url` (T8).
    Plain,
    /// Not an HTTP URL, such as a file.
    Senseless,
}

impl Target {
    fn classify(address: &str) -> Self {
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

/// Returns the setting that a server's key comes from, without the key: `apiKey`
/// (secret://env/TOKEN).
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

/// Returns whether a credential comes from a secret store, where it may have changed since.
pub fn key_is_kept_elsewhere(config: &HttpServer) -> bool {
    let mut templates = config.api_key.iter().chain(config.headers.values());
    templates.any(|template| template.references().next().is_some())
}

/// Sanitizes text that may quote the server.
fn clean(text: &str) -> String {
    clean_line(Untrusted::new(text), 300)
}

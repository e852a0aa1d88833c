//! From the merged raw entry of a server to a validated one.

use std::num::NonZeroU32;

use serde_json::json;

use crate::decode::Spanned;
use crate::diagnostic::{Diagnostic, Severity};
use crate::model::{HeldBack, Origin, Setting};
use crate::raw::{RawServer, TransportKind};
use crate::server::{HttpFlavour, ServerConfig, Transport};

use super::values::Builder;

const DEFAULT_TIMEOUT_MS: u64 = 30_000;
const DEFAULT_TOOL_TIMEOUT_MS: u64 = 60_000;
const DEFAULT_MAX_RESTARTS: u64 = 5;
const DEFAULT_RATE_LIMIT: u64 = 100;
const DEFAULT_MAX_RESULT_CHARS: u64 = 100_000;

/// What became of an entry: a server, one that must wait, or nothing (and errors were reported).
pub(crate) enum Built {
    Ready(Box<ServerConfig>),
    HeldBack(HeldBack),
    Wrong,
}

/// Builds one server.
pub(crate) struct ServerBuilder<'b, 'a> {
    pub(super) cx: &'b mut Builder<'a>,
    pub(super) name: &'b str,
    /// Variables that are not set.
    pub(super) unset: Vec<Spanned<String>>,
    /// What has been noted so far.
    pub(super) settings: Vec<Setting>,
    /// About the first credential that stands in the file as it is.
    pub(super) plaintext: Option<Diagnostic>,
}

impl<'b, 'a> ServerBuilder<'b, 'a> {
    pub(crate) fn new(cx: &'b mut Builder<'a>, name: &'b str) -> Self {
        Self { cx, name, unset: Vec::new(), settings: Vec::new(), plaintext: None }
    }

    /// `others` are the names of the agent's other servers, for a hint.
    pub(crate) fn build(&mut self, server: Spanned<RawServer>, others: &[&str]) -> Built {
        let Spanned { value: raw, at, path } = server;
        let whole = Spanned { value: (), at, path };
        let RawServer {
            enabled,
            transport,
            command,
            args,
            env,
            cwd,
            inherit_env,
            url,
            headers,
            api_key,
            auth,
            timeout,
            tool_timeout,
            restart_on_crash,
            max_restarts,
            tool_prefix,
            lazy,
            tools,
            approval,
            rate_limit,
            max_result_chars,
            supports_parallel_tool_calls,
            required,
            tls,
            proxy,
            // Moved elsewhere by `normalise`.
            oauth: _,
            tool_filter: _,
            ssl_verify: _,
            client_cert: _,
            client_key: _,
            codex: _,
            description: _,
        } = raw;

        let enabled = self.flag("enabled", enabled, true);
        let transport = match (command, url) {
            (Some(command), None) => {
                self.inferred_transport(transport.as_ref(), TransportKind::Stdio, "command");
                self.refuse_kind(transport.as_ref(), true);
                self.without_effect(
                    "a local process",
                    [
                        headers.as_ref().map(erase),
                        api_key.as_ref().map(erase),
                        auth.as_ref().map(erase),
                        tls.as_ref().map(erase),
                        proxy.as_ref().map(erase),
                    ],
                );
                self.stdio(&command, args, env, cwd, inherit_env).map(Transport::Stdio)
            }
            (None, Some(url)) => {
                self.inferred_transport(transport.as_ref(), TransportKind::Http, "url");
                self.refuse_kind(transport.as_ref(), false);
                self.without_effect(
                    "a remote service",
                    [
                        args.as_ref().map(erase),
                        env.as_ref().map(erase),
                        cwd.as_ref().map(erase),
                        inherit_env.as_ref().map(erase),
                        None,
                    ],
                );
                let flavour = match transport {
                    Some(Spanned { value: TransportKind::Sse, .. }) => HttpFlavour::Sse,
                    _ => HttpFlavour::Streamable,
                };
                self.http(
                    &url,
                    flavour,
                    headers,
                    api_key,
                    auth.map(|it| it.map(|auth| auth.0)),
                    tls,
                    proxy,
                )
                .map(Transport::Http)
            }
            (Some(command), Some(url)) => {
                self.cx.found.push(
                    url.error(
                        format!("MCP server `{}` has both `command` and `url`", self.name),
                        "a remote service",
                    )
                    .also(command.at, "and a local process")
                    .help("keep one; a second server needs a name of its own"),
                );
                None
            }
            (None, None) => {
                self.report_neither(&whole, enabled, others);
                None
            }
        };

        let config = transport.map(|transport| ServerConfig {
            enabled,
            transport,
            timeout: self.millis("timeout", timeout, DEFAULT_TIMEOUT_MS),
            tool_timeout: self.millis("toolTimeout", tool_timeout, DEFAULT_TOOL_TIMEOUT_MS),
            restart_on_crash: self.flag("restartOnCrash", restart_on_crash, true),
            max_restarts: small(self.number("maxRestarts", max_restarts, DEFAULT_MAX_RESTARTS)),
            tool_prefix: self.tool_prefix(tool_prefix),
            lazy: self.flag("lazy", lazy, false),
            tools: self.tools(tools),
            approval: self.approval(approval),
            rate_limit: NonZeroU32::new(small(self.number(
                "rateLimit",
                rate_limit,
                DEFAULT_RATE_LIMIT,
            ))),
            max_result_chars: small(self.number(
                "maxResultChars",
                max_result_chars,
                DEFAULT_MAX_RESULT_CHARS,
            )) as usize,
            supports_parallel_tool_calls: self.flag(
                "supportsParallelToolCalls",
                supports_parallel_tool_calls,
                true,
            ),
            required: self.flag("required", required, false),
        });
        self.finish(config, enabled)
    }

    fn finish(&mut self, config: Option<ServerConfig>, enabled: bool) -> Built {
        if enabled {
            self.cx.found.extend(self.plaintext.clone());
            for variable in &self.unset {
                let (name, server) = (&variable.value, self.name);
                self.cx.found.push(
                    variable
                        .warning(
                            format!("the environment variable `{name}` is not set"),
                            format!("MCP server `{server}` will not start without it"),
                        )
                        .help(format!("set it, or write `${{{name}:-default}}`")),
                );
            }
        }
        match config {
            _ if !self.unset.is_empty() => {
                let mut unset: Vec<String> =
                    self.unset.drain(..).map(|variable| variable.value).collect();
                unset.sort();
                unset.dedup();
                Built::HeldBack(HeldBack { unset_variables: unset })
            }
            Some(config) => Built::Ready(Box::new(config)),
            None => Built::Wrong,
        }
    }

    fn report_neither(&mut self, whole: &Spanned<()>, enabled: bool, others: &[&str]) {
        // A misspelt or wrong `command` has been reported; this would only be its echo.
        let inside = |path: &String| path.starts_with(&whole.path);
        if self
            .cx
            .found
            .iter()
            .any(|it| it.severity == Severity::Error && it.path.as_ref().is_some_and(inside))
        {
            return;
        }
        let message = format!("MCP server `{}` has neither `command` nor `url`", self.name);
        let similar = crate::suggest::nearest(self.name, others);
        let help = match similar {
            Some(similar) => format!("did you mean the server `{similar}`?"),
            None if enabled => {
                "add `command` for a local process or `url` for a remote service".to_owned()
            }
            None => "no server of this name is defined that could be switched off".to_owned(),
        };
        self.cx.found.push(whole.error(message, "nothing to connect to").help(help));
    }

    fn inferred_transport(
        &mut self,
        given: Option<&Spanned<TransportKind>>,
        inferred: TransportKind,
        from: &'static str,
    ) {
        let (kind, origin) = match given {
            Some(given) => (given.value, self.cx.origin(given)),
            None => (inferred, Origin::Inferred { from }),
        };
        self.note("transport", json!(kind.as_str()), origin);
    }

    fn refuse_kind(&mut self, given: Option<&Spanned<TransportKind>>, stdio: bool) {
        let Some(given) = given else { return };
        if (given.value == TransportKind::Stdio) == stdio {
            return;
        }
        let kind = given.value.as_str();
        let (has, needs) = if stdio { ("command", "url") } else { ("url", "command") };
        self.cx.found.push(
            given
                .error(
                    format!("transport `{kind}` needs `{needs}`, but the server has `{has}`"),
                    format!("does not fit `{has}`"),
                )
                .help("leave `transport` out: it follows from the rest"),
        );
    }

    fn without_effect(&mut self, what: &str, fields: [Option<Spanned<()>>; 5]) {
        for field in fields.into_iter().flatten() {
            let key = field.path.rsplit('.').next().unwrap_or_default().to_owned();
            self.cx
                .found
                .push(field.warning(format!("`{key}` has no effect on {what}"), "not used"));
        }
    }
}

/// Only the place of a field.
fn erase<T>(field: &Spanned<T>) -> Spanned<()> {
    Spanned { value: (), at: field.at, path: field.path.clone() }
}

/// The bounds of the fields are far below `u32::MAX`.
fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

//! Builds a validated server from its merged raw entry.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use openclaw_secrets::SecretRef;

use serde_json::json;

use crate::decode::{Field, Spanned};
use crate::diagnostic::Diagnostic;
use crate::mcp::HeldBack;
use crate::raw::{RawServer, TransportKind};
use crate::server::{
    ApprovalPolicy, HttpFlavour, RootsSetting, SamplingRule, SamplingSettings, ServerConfig,
    ServerConnection, ServerOptions, Transport,
};
use crate::setting::{Setting, SettingOrigin};
use crate::tool_policy::ToolPolicy;

use super::fields::DEFAULT_MAX_TOKENS;
use super::values::Builder;

const DEFAULT_TIMEOUT_MS: u64 = 30_000;
const DEFAULT_TOOL_TIMEOUT_MS: u64 = 60_000;
const DEFAULT_MAX_RESTARTS: u64 = 5;
const DEFAULT_RATE_LIMIT: u64 = 100;
const DEFAULT_MAX_RESULT_CHARS: u64 = 100_000;
/// The defaults, for a server that does not come from a file.
impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_millis(DEFAULT_TIMEOUT_MS),
            tool_timeout: Duration::from_millis(DEFAULT_TOOL_TIMEOUT_MS),
            restart_on_crash: true,
            max_restarts: small(DEFAULT_MAX_RESTARTS),
            tool_prefix: None,
            lazy: false,
            tools: ToolPolicy::default(),
            approval: ApprovalPolicy::Auto,
            rate_limit: NonZeroU32::new(small(DEFAULT_RATE_LIMIT)),
            max_result_chars: small(DEFAULT_MAX_RESULT_CHARS) as usize,
            supports_parallel_tool_calls: true,
            per_client: false,
            required: false,
            resources: Vec::new(),
            sampling: SamplingSettings {
                allow: SamplingRule::Never,
                max_tokens: small(DEFAULT_MAX_TOKENS),
                requests_per_minute: NonZeroU32::MIN,
            },
            log_level: None,
        }
    }
}

/// With more servers than this, similar names are not searched: it would take too long.
const MANY_SERVERS: usize = 100;

/// The result of building an entry.
pub(crate) enum Built {
    Ready(Box<ServerConfig>),
    HeldBack(HeldBack),
    /// Invalid; errors were reported.
    Wrong,
}

/// Builds one server.
pub(crate) struct ServerBuilder<'b, 'a> {
    pub(super) cx: &'b mut Builder<'a>,
    pub(super) name: &'b str,
    /// Whether a workspace is configured for the agent.
    has_workspace: bool,
    /// Whether a value of the entry could not be decoded. That was reported; what depends on the
    /// value is not reported again.
    pub(super) is_damaged: bool,
    /// Unset variables.
    pub(super) unset: Vec<Spanned<String>>,
    /// The settings recorded so far.
    pub(super) settings: Vec<Setting>,
    /// The warning about the first plaintext credential.
    pub(super) plaintext: Option<Diagnostic>,
    /// The secret references, each with its setting.
    pub(super) references: Vec<(SecretRef, String)>,
}

impl<'b, 'a> ServerBuilder<'b, 'a> {
    pub(crate) fn new(cx: &'b mut Builder<'a>, name: &'b str, has_workspace: bool) -> Self {
        Self {
            cx,
            name,
            has_workspace,
            is_damaged: false,
            unset: Vec::new(),
            settings: Vec::new(),
            plaintext: None,
            references: Vec::new(),
        }
    }

    /// Builds the server. The whole entry is checked, even if it turns out to be unusable.
    pub(crate) fn build(&mut self, server: Spanned<RawServer>, siblings: &Siblings<'_>) -> Built {
        let whole = erase(&server);
        self.is_damaged = siblings.damaged.contains(self.name);
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
            per_client,
            required,
            resources,
            sampling,
            roots,
            log_level,
            protocol_version,
            tls,
            proxy,
            // Moved elsewhere by `normalise`.
            oauth: _,
            tool_filter: _,
            ssl_verify: _,
            client_cert: _,
            client_key: _,
            codex: _,
            disabled: _,
            auto_approve: _,
            description: _,
        } = server.value;

        let enabled = self.flag("enabled", enabled, true);
        let given = TransportFields {
            transport,
            command: command.as_ref().map(erase),
            url: url.as_ref().map(erase),
            local: [mark(&args), mark(&env), mark(&cwd), mark(&inherit_env)]
                .into_iter()
                .flatten()
                .collect(),
            remote: [mark(&headers), mark(&api_key), mark(&auth), mark(&tls), mark(&proxy)]
                .into_iter()
                .flatten()
                .collect(),
        };
        let flavour = self.note_transport(&given);
        let local = self.local(command, args, env, cwd, inherit_env);
        let remote = self.remote(url.as_ref(), flavour, headers, api_key, auth, tls, proxy);
        let timeout = self.millis("timeout", timeout, DEFAULT_TIMEOUT_MS);
        let tool_timeout = self.millis("toolTimeout", tool_timeout, DEFAULT_TOOL_TIMEOUT_MS);
        let restart_on_crash = self.flag("restartOnCrash", restart_on_crash, true);
        let max_restarts = self.number("maxRestarts", max_restarts, DEFAULT_MAX_RESTARTS);
        let tool_prefix = self.tool_prefix(tool_prefix);
        let lazy = self.flag("lazy", lazy, false);
        let tools = self.tools(tools);
        let approval = self.approval(approval);
        let rate_limit = self.number("rateLimit", rate_limit, DEFAULT_RATE_LIMIT);
        let max_result_chars =
            self.number("maxResultChars", max_result_chars, DEFAULT_MAX_RESULT_CHARS);
        let parallel = supports_parallel_tool_calls;
        let supports_parallel_tool_calls = self.flag("supportsParallelToolCalls", parallel, true);
        let per_client = self.flag("perClient", per_client, false);
        let required = self.flag("required", required, false);
        let resources = self.resources(resources);
        let sampling = self.sampling(sampling);
        let roots = self.flag("roots", roots, self.has_workspace);
        let log_level = self.log_level(log_level);
        let protocol_version = self.protocol_version(protocol_version);

        let transport = match (&given.command, &given.url) {
            (Some(_), None) => local.map(Transport::Stdio),
            (None, Some(_)) => remote.map(Transport::Http),
            (Some(command), Some(url)) => {
                self.report_both(command, url);
                None
            }
            (None, None) => {
                self.report_neither(&whole, enabled, siblings);
                None
            }
        };
        // Every setting is part of the connection or the options; a forgotten one is an unused
        // variable.
        let options = ServerOptions {
            timeout,
            tool_timeout,
            restart_on_crash,
            max_restarts: small(max_restarts),
            tool_prefix,
            lazy,
            tools,
            approval,
            rate_limit: NonZeroU32::new(small(rate_limit)),
            max_result_chars: small(max_result_chars) as usize,
            supports_parallel_tool_calls,
            per_client,
            required,
            resources,
            sampling,
            log_level,
        };
        let config = transport.map(|transport| ServerConfig {
            enabled,
            connection: ServerConnection {
                transport,
                sampling: sampling.is_offered(),
                roots: if roots { RootsSetting::Workspace(None) } else { RootsSetting::Hidden },
                protocol_version,
            },
            options,
        });
        self.finish(config, enabled, required)
    }

    /// Records the transport and reports settings that do not apply to it.
    fn note_transport(&mut self, given: &TransportFields) -> HttpFlavour {
        let is_local = given.command.is_some() || given.url.is_none();
        let (kind, origin) = match (&given.transport, is_local) {
            (Some(kind), _) => (kind.value, self.cx.origin(kind)),
            (None, true) => (TransportKind::Stdio, SettingOrigin::Inferred { from: "command" }),
            (None, false) => (TransportKind::Http, SettingOrigin::Inferred { from: "url" }),
        };
        let (key, value) = ("transport".to_owned(), json!(kind.as_str()));
        self.settings.push(Setting { key, value, origin });
        if given.command.is_some() != given.url.is_some() {
            self.refuse_kind(given.transport.as_ref(), is_local);
            let (unused, what) = if is_local {
                (&given.remote, "a local process")
            } else {
                (&given.local, "a remote service")
            };
            for field in unused {
                let key = field.path.rsplit('.').next().unwrap_or_default();
                let message = format!("`{key}` has no effect on {what}");
                self.cx.found.push(field.warning(message, "not used"));
            }
        }
        if kind == TransportKind::Sse { HttpFlavour::Sse } else { HttpFlavour::Streamable }
    }

    fn report_both(&mut self, command: &Spanned<()>, url: &Spanned<()>) {
        let message = format!("MCP server `{}` has both `command` and `url`", self.name);
        self.cx.found.push(
            url.error(message, "a remote service")
                .also(command.at, "and a local process")
                .help("keep one; a second server needs its own name"),
        );
    }

    fn finish(&mut self, config: Option<ServerConfig>, enabled: bool, required: bool) -> Built {
        if enabled {
            // Once per server, regardless of how many agents have it (K4).
            if self.plaintext.is_some() && self.cx.warned.insert(self.name.to_owned()) {
                self.cx.found.extend(self.plaintext.clone());
            }
            for variable in &self.unset {
                let (name, server) = (&variable.value, self.name);
                self.cx.found.push(
                    variable
                        .warning(
                            format!("the environment variable `{name}` is not set"),
                            format!("MCP server `{server}` cannot start without it"),
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
                let references = std::mem::take(&mut self.references);
                // A disabled server is not required.
                let required = required && enabled;
                Built::HeldBack(HeldBack { required, unset_variables: unset, references })
            }
            Some(config) => Built::Ready(Box::new(config)),
            None => Built::Wrong,
        }
    }

    fn report_neither(&mut self, whole: &Spanned<()>, enabled: bool, siblings: &Siblings<'_>) {
        // A misspelt or invalid `command` has already been reported.
        if self.is_damaged {
            return;
        }
        let message = format!("MCP server `{}` has neither `command` nor `url`", self.name);
        let help = match siblings.nearest(self.name) {
            Some(similar) => format!("did you mean the server `{similar}`?"),
            None if enabled => {
                "add `command` for a local process or `url` for a remote service".to_owned()
            }
            None => "there is no server of this name to disable".to_owned(),
        };
        self.cx.found.push(whole.error(message, "nothing to connect to").help(help));
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
                    format!("conflicts with `{has}`"),
                )
                .help("remove `transport`: it is derived from the other settings"),
        );
    }
}

/// The fields that determine the transport.
struct TransportFields {
    transport: Field<TransportKind>,
    command: Field<()>,
    url: Field<()>,
    /// Fields that only a local process has.
    local: Vec<Spanned<()>>,
    /// Fields that only a remote service has.
    remote: Vec<Spanned<()>>,
}

/// The other servers of an agent.
pub(crate) struct Siblings<'a> {
    /// The names of all of them.
    pub(crate) names: &'a [String],
    /// Those with errors that were reported.
    pub(crate) damaged: &'a BTreeSet<String>,
}

impl Siblings<'_> {
    /// Returns the server with the most similar name, unless there are too many to compare.
    fn nearest(&self, name: &str) -> Option<&str> {
        if self.names.len() > MANY_SERVERS {
            return None;
        }
        let others = self.names.iter().map(String::as_str).filter(|other| *other != name);
        crate::suggest::nearest(name, &others.collect::<Vec<_>>())
    }
}

/// Keeps only the position of a field.
pub(super) fn erase<T>(field: &Spanned<T>) -> Spanned<()> {
    Spanned { value: (), at: field.at, path: field.path.clone() }
}

fn mark<T>(field: &Field<T>) -> Field<()> {
    field.as_ref().map(erase)
}

/// Converts to `u32`; the bounds of the fields are far below `u32::MAX`.
fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

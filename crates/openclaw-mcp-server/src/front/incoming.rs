//! Classifies a message of a client without parsing more of it than necessary.

use std::borrow::Cow;
use std::collections::BTreeMap;

use openclaw_budget::tree_bytes;
use openclaw_config::LogLevel;
use openclaw_mcp_client::connection::era::Era;
use openclaw_mcp_client::listing::app;
use openclaw_trace::{BAGGAGE, SpanContext, TRACEPARENT, TRACESTATE};
use rmcp::model::TASKS_EXTENSION_ID;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::input::Abilities;
use crate::input::state::answer_members;

/// The first version without a handshake.
pub(crate) const MODERN: &str = "2026-07-28";
/// The members of `_meta` that replace the handshake.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";
const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
const PROGRESS_KEY: &str = "progressToken";
/// The prefix of the protocol's own members.
const PROTOCOL: &str = "io.modelcontextprotocol/";
/// Maximum length of the other members of a request, in bytes; longer ones are not passed on.
const MAX_EXTRA: usize = 64 * 1024;
/// A shorter part of a call takes little memory when it is parsed, whatever it contains.
const SMALL_PART: usize = 4 * 1024;
/// The memory that a call in progress takes besides its text.
const CALL: usize = 4 * 1024;
/// The arguments of a call that has none.
const NO_ARGUMENTS: &str = "{}";

/// The kind of a message, with what is needed to route it.
#[derive(Debug)]
pub(crate) enum IncomingMessage<'a> {
    /// A tool call.
    Call(CallLine<'a>),
    /// `initialize`.
    Handshake {
        /// The id of the request, as JSON.
        id: &'a str,
        /// Whether it names a version that has no handshake as the one that it is written in.
        is_modern: bool,
    },
    /// Another request, with its id as JSON.
    Request(&'a str),
    /// A request with a state that is not a string. It continues nothing.
    BadState(&'a str),
    /// The cancellation of the request with this id.
    Cancel(&'a str),
    /// A response, with the id of our request.
    Response(&'a str),
    /// Another notification.
    Notification,
    /// A batch (2025-03-26).
    Batch,
    /// JSON, but not a message; with its id, if it has a valid one.
    Invalid(Option<&'a str>),
    /// Not JSON.
    Garbage,
}

/// A tool call.
#[derive(Debug)]
pub(crate) struct CallLine<'a> {
    /// The id of the request, as JSON.
    pub(crate) id: &'a str,
    params: CallParams<'a>,
}

/// A string, which is copied only if it contains escapes. `Option<Cow<str>>` is always copied.
#[derive(Debug, Deserialize)]
struct Words<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Debug, Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Words<'a>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: Words<'a>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "inputResponses")]
    responses: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "requestState", deserialize_with = "present")]
    state: Option<&'a RawValue>,
}

/// Reads a member that is there, also if it is `null`.
fn present<'de, D: Deserializer<'de>>(member: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(member).map(Some)
}

/// A tool call, parsed in one pass.
#[derive(Debug, Deserialize)]
struct CallEnvelope<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: CallParams<'a>,
}

#[derive(Debug, Deserialize)]
struct ClientInfo<'a> {
    #[serde(borrow)]
    name: Words<'a>,
}

#[derive(Debug, Deserialize)]
struct HandshakeParams<'a> {
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

impl HandshakeParams<'_> {
    fn is_modern(params: &RawValue) -> bool {
        let params = serde_json::from_str::<HandshakeParams<'_>>(params.get());
        let meta = params.ok().and_then(|params| RequestMeta::parse(params.meta?));
        meta.is_some_and(|meta| meta.is_modern)
    }
}

#[derive(Debug, Deserialize)]
struct CancelParams<'a> {
    #[serde(borrow, rename = "requestId")]
    id: &'a RawValue,
}

/// A tool call that nothing can happen to before its result.
#[derive(Debug)]
pub(crate) struct PlainCall<'a> {
    /// The name of the tool, as the client knows it.
    pub(crate) name: &'a str,
    /// The arguments: one JSON object.
    pub(crate) arguments: &'a RawValue,
    pub(crate) meta: Option<RequestMeta>,
}

impl PlainCall<'_> {
    /// Whether it is a call of 2026-07-28 or later.
    pub(crate) fn is_modern(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.is_modern)
    }
}

/// A tool call that outlives its message.
#[derive(Debug)]
pub(crate) struct CallRequest {
    /// The name of the tool, as the client knows it.
    pub(crate) name: String,
    /// The arguments: one JSON object.
    pub(crate) arguments: Box<RawValue>,
    /// The token of progress notifications, as JSON.
    pub(crate) progress: Option<String>,
    /// What the client sends with each request since 2026-07-28; `None` if it is older.
    pub(crate) modern: Option<ModernRequest>,
    /// The members of `_meta` that are not the protocol's own, without braces.
    pub(crate) extra: String,
    /// The client's span.
    pub(crate) trace: Option<SpanContext>,
}

impl CallRequest {
    /// The era of its client.
    pub(crate) fn era(&self) -> Era {
        if self.modern.is_some() { Era::Modern } else { Era::Legacy }
    }

    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let modern =
            self.modern.as_ref().map_or(0, |it| it.meta.len() + 2 * it.more.len() + it.tree);
        let text = self.name.len() + self.arguments.get().len() + modern;
        CALL + text + self.progress.as_ref().map_or(0, String::len)
    }
}

/// The parts of a request of 2026-07-28 besides its name and arguments.
#[derive(Debug, Default)]
pub(crate) struct ModernRequest {
    /// The members of `_meta` without braces, progress token and span.
    pub(crate) meta: String,
    /// The members for the server by which the client answers it, without braces: its input, and the
    /// server's own state once that is known.
    pub(crate) more: String,
    /// The state that a former result asked to send back.
    pub(crate) state: Option<String>,
    /// The input that a former result asked for.
    pub(crate) responses: BTreeMap<String, Value>,
    /// The memory of that input besides its text.
    tree: usize,
    /// What the client can be asked for.
    pub(crate) abilities: Abilities,
    /// The name of the client.
    pub(crate) client: Option<String>,
    /// Whether the client shows pages of MCP Apps.
    pub(crate) shows_pages: bool,
    /// Whether the client takes tasks as results.
    pub(crate) takes_tasks: bool,
    /// The level from which on it wants log messages of this request; none without.
    pub(crate) log_level: Option<LogLevel>,
}

impl CallLine<'_> {
    /// Returns the name of the tool.
    pub(crate) fn name(&self) -> &str {
        &self.params.name.0
    }

    /// The memory of what is parsed of it, everything but the arguments and the state, unless it is small.
    pub(crate) fn tree_bytes(&self) -> usize {
        let parts = [self.params.meta, self.params.responses].into_iter().flatten();
        let large = parts.map(|part| part.get().as_bytes()).filter(|part| part.len() > SMALL_PART);
        large.map(tree_bytes).sum()
    }

    /// Returns a call that nothing can happen to before its result: the client wants no progress, and
    /// if it is asked by results (2026-07-28), it cannot be asked for anything, does not answer
    /// anything and wants no log messages.
    pub(crate) fn plain(&self) -> Option<PlainCall<'_>> {
        let CallParams { name, arguments, meta, responses, state } = &self.params;
        let arguments = match arguments {
            Some(arguments) => arguments.get().starts_with('{').then_some(*arguments)?,
            None => serde_json::from_str(NO_ARGUMENTS).ok()?,
        };
        let meta = match meta {
            None => None,
            Some(meta) => {
                let meta = RequestMeta::parse(meta)?;
                if meta.progress.is_some() || meta.is_unknown {
                    return None;
                }
                let is_answer = responses.is_some() || state.is_some();
                let is_told = meta.abilities != Abilities::default() || meta.log_level.is_some();
                if meta.is_modern && (is_answer || is_told) {
                    return None;
                }
                Some(meta)
            }
        };
        Some(PlainCall { name: &name.0, arguments, meta })
    }

    /// Returns a copy of the call; `None` if its parameters are invalid.
    pub(crate) fn to_request(&self) -> Option<CallRequest> {
        let arguments = match self.params.arguments {
            Some(arguments) if arguments.get().starts_with('{') => arguments.to_owned(),
            Some(_) => return None,
            None => RawValue::from_string(NO_ARGUMENTS.to_owned()).ok()?,
        };
        let meta = match self.params.meta {
            Some(meta) => RequestMeta::parse(meta).filter(|meta| !meta.is_unknown)?,
            None => RequestMeta::default(),
        };
        let modern = match meta.is_modern {
            // An answer to a result is none before 2026-07-28.
            false if self.params.responses.is_some() || self.params.state.is_some() => return None,
            false => None,
            true => Some(ModernRequest::new(&meta, self.params.responses, self.params.state)?),
        };
        let name = self.params.name.0.clone().into_owned();
        let RequestMeta { progress, trace, extra, .. } = meta;
        Some(CallRequest { name, arguments, progress, modern, extra, trace })
    }
}

impl ModernRequest {
    /// Parses the parts of a request; `None` if they are invalid.
    pub(crate) fn new(
        meta: &RequestMeta,
        responses: Option<&RawValue>,
        state: Option<&RawValue>,
    ) -> Option<Self> {
        let state = match state {
            Some(state) => Some(serde_json::from_str::<String>(state.get()).ok()?),
            None => None,
        };
        let RequestMeta { members, abilities, log_level, client, shows_pages, takes_tasks, .. } =
            meta;
        Some(Self {
            meta: members.clone(),
            more: answer_members(responses, None),
            state,
            responses: match responses {
                Some(responses) => serde_json::from_str(responses.get()).ok()?,
                None => BTreeMap::new(),
            },
            tree: responses.map_or(0, |it| tree_bytes(it.get().as_bytes())),
            abilities: *abilities,
            log_level: *log_level,
            client: client.clone(),
            shows_pages: *shows_pages,
            takes_tasks: *takes_tasks,
        })
    }

    /// Whether the client answers a former result.
    pub(crate) fn is_answer(&self) -> bool {
        self.state.is_some() || !self.more.is_empty()
    }

    /// Adds the server's own state, which its client has sent back sealed.
    pub(crate) fn continues(&mut self, state: &str) {
        let state = answer_members(None, Some(state));
        self.more = if self.more.is_empty() { state } else { format!("{},{state}", self.more) };
    }
}

/// The `_meta` of a request.
#[derive(Debug, Default)]
pub(crate) struct RequestMeta {
    /// Whether it replaces the handshake, as since 2026-07-28.
    pub(crate) is_modern: bool,
    /// Whether its version is one that we do not know, which `rmcp` reports.
    is_unknown: bool,
    /// Since 2026-07-28, its members without braces, progress token and span.
    pub(crate) members: String,
    /// Those of them that are not the protocol's own.
    pub(crate) extra: String,
    /// The level from which on the client wants log messages (2026-07-28).
    pub(crate) log_level: Option<LogLevel>,
    /// The client's span.
    pub(crate) trace: Option<SpanContext>,
    /// The token of progress notifications, as JSON.
    pub(crate) progress: Option<String>,
    /// What the client can be asked for.
    pub(crate) abilities: Abilities,
    /// The name of the client.
    pub(crate) client: Option<String>,
    /// Whether the client shows pages of MCP Apps.
    pub(crate) shows_pages: bool,
    /// Whether the client takes tasks as results.
    pub(crate) takes_tasks: bool,
}

impl RequestMeta {
    /// Parses it; `None` if it is not an object, or names an unknown log level.
    pub(crate) fn parse(meta: &RawValue) -> Option<Self> {
        // The usual case before 2026-07-28 is a progress token only.
        let mut members: BTreeMap<Cow<'_, str>, &RawValue> =
            serde_json::from_str(meta.get()).ok()?;
        let progress = members.remove(PROGRESS_KEY).map(|token| token.get().to_owned());
        // Removed also if it is invalid: a server gets that of the call here.
        let mut part = |name: &str| {
            let value = members.remove(name)?;
            serde_json::from_str::<Words<'_>>(value.get()).ok().map(|Words(text)| text)
        };
        let [parent, state, baggage] = [TRACEPARENT, TRACESTATE, BAGGAGE].map(&mut part);
        let trace = parent.and_then(|parent| SpanContext::parse(&parent));
        let trace = trace.map(|it| it.carrying(state.as_deref(), baggage.as_deref()));
        let version = members.get(VERSION_KEY).map(|it| it.get().trim_matches('"'));
        let capabilities = members.get(CAPABILITIES_KEY).map(|it| serde_json::from_str(it.get()));
        let is_modern = version.is_some_and(|version| version >= MODERN)
            && matches!(capabilities, Some(Ok(Value::Object(_))));
        let is_unknown = version.is_some_and(|version| version > MODERN);
        let extra = extra(&members)?;
        if !is_modern {
            return Some(Self { is_unknown, progress, trace, extra, ..Self::default() });
        }
        let log_level = match members.get(LEVEL_KEY) {
            Some(level) => Some(level_of(serde_json::from_str::<&str>(level.get()).ok()?)?),
            None => None,
        };
        let capabilities = capabilities.and_then(Result::ok).unwrap_or_default();
        let abilities = Abilities::declared_in(&capabilities);
        let shows_pages = app::is_declared(&capabilities);
        let extensions = capabilities.get("extensions");
        let takes_tasks = extensions.is_some_and(|it| it.get(TASKS_EXTENSION_ID).is_some());
        let client = members.get(CLIENT_KEY).and_then(|it| serde_json::from_str(it.get()).ok());
        let client = client.map(|ClientInfo { name: Words(name) }| name.into_owned());
        let members = without_braces(&members)?;
        Some(Self {
            is_modern,
            is_unknown,
            members,
            extra,
            log_level,
            trace,
            progress,
            abilities,
            client,
            shows_pages,
            takes_tasks,
        })
    }
}

/// The members that are not the protocol's own, without braces; none if they are too long.
fn extra(members: &BTreeMap<Cow<'_, str>, &RawValue>) -> Option<String> {
    if members.is_empty() {
        return Some(String::new());
    }
    let is_own = |name: &str| name.starts_with(PROTOCOL);
    let extra: BTreeMap<_, _> = members.iter().filter(|(name, _)| !is_own(name)).collect();
    let text = without_braces(&extra)?;
    if text.len() > MAX_EXTRA {
        tracing::debug!(bytes = text.len(), "the `_meta` of a request is too long to pass on");
        return Some(String::new());
    }
    Some(text)
}

fn without_braces(members: &impl Serialize) -> Option<String> {
    let text = serde_json::to_string(members).ok()?;
    Some(text.strip_prefix('{')?.strip_suffix('}')?.to_owned())
}

/// Returns the log level with this name.
pub(crate) fn level_of(name: &str) -> Option<LogLevel> {
    use LogLevel::{Alert, Critical, Debug, Emergency, Error, Info, Notice, Warning};
    let all = [Debug, Info, Notice, Warning, Error, Critical, Alert, Emergency];
    all.into_iter().find(|level| level.as_str() == name)
}

/// Classifies a message.
pub(crate) fn classify(line: &[u8]) -> IncomingMessage<'_> {
    let Ok(text) = std::str::from_utf8(line) else { return IncomingMessage::Garbage };
    if let Some(call) = call_line(text) {
        return IncomingMessage::Call(call);
    }
    let envelope = match serde_json::from_str::<Envelope<'_>>(text) {
        // serde would read an array as the fields of a struct, in order.
        Ok(envelope) if text.trim_start().starts_with('{') => envelope,
        _ if text.trim_start().starts_with('[') => return IncomingMessage::Batch,
        _ if serde_json::from_str::<&RawValue>(text).is_ok() => {
            return IncomingMessage::Invalid(id_of(text));
        }
        _ => return IncomingMessage::Garbage,
    };
    // Some clients write one into notifications.
    let is_notification =
        envelope.method.as_ref().is_some_and(|Words(it)| it.starts_with("notifications/"));
    let id = match envelope.id.map(RawValue::get) {
        Some("null") if is_notification => None,
        Some(id) if !is_id(id) => return IncomingMessage::Invalid(None),
        id => id,
    };
    let Some(Words(method)) = envelope.method else {
        return id.map_or(IncomingMessage::Invalid(None), IncomingMessage::Response);
    };
    match (&*method, id, envelope.params) {
        ("tools/call", Some(id), Some(params)) => match serde_json::from_str(params.get()) {
            Ok(CallParams { state: Some(state), .. }) if !state.get().starts_with('"') => {
                IncomingMessage::BadState(id)
            }
            Ok(params) => IncomingMessage::Call(CallLine { id, params }),
            Err(_) => IncomingMessage::Request(id),
        },
        ("initialize", Some(id), params) => {
            let is_modern = params.is_some_and(HandshakeParams::is_modern);
            IncomingMessage::Handshake { id, is_modern }
        }
        ("prompts/get" | "resources/read", Some(id), Some(params)) if has_bad_state(params) => {
            IncomingMessage::BadState(id)
        }
        (_, Some(id), _) => IncomingMessage::Request(id),
        ("notifications/cancelled", None, Some(params)) => {
            let params = serde_json::from_str::<CancelParams<'_>>(params.get());
            params.map_or(IncomingMessage::Notification, |params| {
                IncomingMessage::Cancel(params.id.get())
            })
        }
        (_, None, _) => IncomingMessage::Notification,
    }
}

/// Whether a request has a state that is not a string. It would be taken for one without a state.
fn has_bad_state(params: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct State<'a> {
        #[serde(borrow, default, rename = "requestState", deserialize_with = "present")]
        state: Option<&'a RawValue>,
    }
    let params = serde_json::from_str::<State<'_>>(params.get());
    params.is_ok_and(|it| it.state.is_some_and(|state| !state.get().starts_with('"')))
}

/// Returns a tool call, in the usual case that all of its members are valid.
fn call_line(text: &str) -> Option<CallLine<'_>> {
    if !text.starts_with('{') {
        return None;
    }
    let CallEnvelope { id, method, params } = serde_json::from_str(text).ok()?;
    let id = id.get();
    let is_valid = params.state.is_none_or(|state| state.get().starts_with('"'));
    (method == "tools/call" && is_id(id) && is_valid).then_some(CallLine { id, params })
}

/// Returns the valid id of an object that is not a message.
fn id_of(text: &str) -> Option<&str> {
    #[derive(Deserialize)]
    struct WithId<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    let WithId { id } =
        serde_json::from_str(text).ok().filter(|_| text.trim_start().starts_with('{'))?;
    Some(id.get()).filter(|id| is_id(id))
}

/// Whether this JSON is a string or a number.
pub(crate) fn is_id(json: &str) -> bool {
    json.starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(params: &Value) -> CallRequest {
        let line = json!({ "id": 7, "method": "tools/call", "params": params }).to_string();
        match classify(line.as_bytes()) {
            IncomingMessage::Call(call) => call.to_request().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_are_told_apart() {
        let kind = |line: &str| format!("{:?}", classify(line.as_bytes()));
        assert_eq!(kind(r#"{"id":1,"method":"ping"}"#), r#"Request("1")"#);
        assert_eq!(kind(r#"{"id":"a","result":{}}"#), r#"Response("\"a\"")"#);
        assert_eq!(kind(r#"{"method":"notifications/x"}"#), "Notification");
        let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":"a"}}"#;
        assert_eq!(kind(cancel), r#"Cancel("\"a\"")"#);
        for method in ["tools/call", "prompts/get", "resources/read"] {
            for state in ["null", "5", "{}"] {
                let line = format!(
                    r#"{{"id":1,"method":"{method}","params":{{"name":"a","requestState":{state}}}}}"#
                );
                assert_eq!(kind(&line), r#"BadState("1")"#, "{line}");
            }
        }
        assert_eq!(kind("[]"), "Batch");
        for invalid in [
            "1",
            "{}",
            r#"{"id":[1],"method":"ping"}"#,
            r#"{"id":{},"result":1}"#,
            r#"{"id":null,"method":"ping"}"#,
            r#"{"id":null,"error":{}}"#,
        ] {
            assert_eq!(kind(invalid), "Invalid(None)", "{invalid}");
        }
        let numbered = r#"{"id":7,"method":8}"#;
        assert_eq!(kind(numbered), r#"Invalid(Some("7"))"#);
        assert_eq!(kind(r#"{"id":null,"method":"notifications/x"}"#), "Notification");
        assert_eq!(kind("{"), "Garbage");
        let no_name = r#"{"id":1,"method":"tools/call","params":{}}"#;
        assert_eq!(kind(no_name), r#"Request("1")"#, "for rmcp, which knows the error");
    }

    #[test]
    fn a_plain_call_wants_no_progress_and_cannot_be_asked() {
        let plain = |params: Value| {
            let line = json!({ "id": 7, "method": "tools/call", "params": params }).to_string();
            let IncomingMessage::Call(call) = classify(line.as_bytes()) else { panic!("{line}") };
            call.plain().map(|it| (it.arguments.get().to_owned(), it.is_modern()))
        };
        let modern =
            |capabilities: Value| json!({ VERSION_KEY: MODERN, CAPABILITIES_KEY: capabilities });
        let is_plain = |arguments: &str, is_modern| Some((arguments.to_owned(), is_modern));
        assert_eq!(plain(json!({ "name": "a" })), is_plain("{}", false));
        let arguments = json!({ "b": 1 });
        let with_meta = json!({ "name": "a", "arguments": arguments, "_meta": { "x": 1 } });
        assert_eq!(plain(with_meta), is_plain(r#"{"b":1}"#, false));
        let call = json!({ "name": "a", "_meta": modern(json!({ "experimental": {} })) });
        assert_eq!(plain(call.clone()), is_plain("{}", true));
        let mut answer = call;
        answer["requestState"] = json!("s");
        for other in [
            answer,
            json!({ "name": "a", "arguments": [] }),
            json!({ "name": "a", "_meta": { "progressToken": 1 } }),
            json!({ "name": "a", "_meta": modern(json!({ "roots": {} })) }),
            json!({ "name": "a", "_meta": [] }),
            json!({ "name": "a", "_meta": { VERSION_KEY: "2027-01-01", CAPABILITIES_KEY: {} } }),
        ] {
            assert_eq!(plain(other.clone()), None, "{other}");
        }
    }

    #[test]
    fn an_older_call_has_at_most_a_progress_token() {
        let call = request(&json!({ "name": "a\n", "_meta": { "progressToken": "t", "x": 1 } }));
        assert_eq!((call.name.as_str(), call.arguments.get()), ("a\n", "{}"));
        assert_eq!(call.progress.as_deref(), Some("\"t\""));
        assert!(call.modern.is_none());
    }

    #[test]
    fn the_span_of_a_call_is_read_and_not_passed_on_as_it_is() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for meta in [json!({}), json!({ VERSION_KEY: MODERN, CAPABILITIES_KEY: {} })] {
            let mut meta = meta;
            meta["traceparent"] = json!(parent);
            meta["tracestate"] = json!("a=b");
            meta["baggage"] = json!(7);
            let call = request(&json!({ "name": "a", "_meta": meta }));
            let trace = call.trace.unwrap();
            assert_eq!(trace.traceparent().to_string(), parent);
            assert_eq!((trace.state(), trace.baggage()), (Some("a=b"), None));
            assert!(!call.modern.unwrap_or_default().meta.contains("trace"));
        }
        let call = request(&json!({ "name": "a", "_meta": { "traceparent": "x" } }));
        assert!(call.trace.is_none());
    }

    #[test]
    fn a_call_since_2026_07_28_brings_everything_along() {
        let meta = json!({
            VERSION_KEY: MODERN, "progressToken": 1,
            CAPABILITIES_KEY: { "elicitation": {} }, "trace": "t",
        });
        let call = request(&json!({
            "name": "a", "arguments": { "b": 1.50 }, "_meta": meta,
            "inputResponses": { "k": { "action": "accept" } }, "requestState": "s",
        }));
        let mut modern = call.modern.unwrap();
        assert!(modern.abilities.form && !modern.abilities.sampling);
        assert_eq!(modern.state.as_deref(), Some("s"));
        assert_eq!(modern.responses["k"]["action"], "accept");
        let more = |modern: &ModernRequest| -> Value {
            serde_json::from_str(&format!("{{{}}}", modern.more)).unwrap()
        };
        // The state is not for the server, unless it is one of its own.
        assert_eq!(more(&modern), json!({ "inputResponses": { "k": { "action": "accept" } } }));
        modern.continues("theirs");
        assert_eq!(more(&modern)["requestState"], "theirs");
        let meta: Value = serde_json::from_str(&format!("{{{}}}", modern.meta)).unwrap();
        assert_eq!((meta["trace"].as_str(), meta.get("progressToken")), (Some("t"), None));
    }

    #[test]
    fn members_of_meta_that_are_not_the_protocols_own_are_passed_on_up_to_a_limit() {
        let meta = |extra: &str| json!({ "progressToken": 1, "traceparent": "x", "a/b": extra, VERSION_KEY: "2025-11-25" });
        let call = |meta: Value| request(&json!({ "name": "a", "_meta": meta }));
        assert_eq!(call(meta("c")).extra, r#""a/b":"c""#);
        assert_eq!(call(meta(&"c".repeat(MAX_EXTRA))).extra, "");
        assert_eq!(call(json!({ "progressToken": 1 })).extra, "");
        let modern = json!({ VERSION_KEY: MODERN, CAPABILITIES_KEY: {}, "a/b": "c" });
        assert_eq!(call(modern).extra, r#""a/b":"c""#);
    }

    #[test]
    fn a_request_since_2026_07_28_names_the_level_of_its_log_messages() {
        let parsed = |level: Value| {
            let meta = json!({ VERSION_KEY: MODERN, CAPABILITIES_KEY: {}, LEVEL_KEY: level });
            RequestMeta::parse(&serde_json::value::to_raw_value(&meta).unwrap())
        };
        assert_eq!(parsed(json!("info")).unwrap().log_level, Some(LogLevel::Info));
        assert!(parsed(json!("loud")).is_none() && parsed(json!(7)).is_none());
    }
}

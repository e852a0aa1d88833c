//! Faults over HTTP: status codes, lost sessions, broken streams.

use serde::{Deserialize, Serialize};

use super::Script;

/// The form of the response to a POST.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// `application/json`; messages other than the response go to the GET stream.
    #[default]
    Json,
    /// `text/event-stream`.
    Sse,
}

/// The HTTP requests to which a [`Fault`] applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum On {
    /// All of them.
    #[default]
    Any,
    /// POSTs.
    Post,
    /// POSTs of `initialize` or `server/discover`.
    Handshake,
    /// POSTs of `tools/call`.
    Call,
    /// GETs.
    Get,
    /// DELETEs.
    Delete,
}

/// A response that replaces the regular one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fault {
    /// The requests to which it applies.
    pub on: On,
    /// The number of matching requests to skip first.
    pub after: u64,
    /// The number of matching requests to affect; 0 is all.
    pub times: u64,
    /// The status; 0 closes the connection without a response.
    pub status: u16,
    /// The headers of the response.
    pub headers: Vec<(String, String)>,
    /// The body of the response.
    pub body: String,
}

impl Fault {
    /// Answers with this status.
    pub fn status(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// Closes the connection without a response.
    pub fn hang_up() -> Self {
        Self::status(0)
    }

    /// Applies only to these requests.
    pub fn on(mut self, on: On) -> Self {
        self.on = on;
        self
    }

    /// Skips this many matching requests.
    pub fn after(mut self, requests: u64) -> Self {
        self.after = requests;
        self
    }

    /// Affects at most this many requests.
    pub fn times(mut self, requests: u64) -> Self {
        self.times = requests;
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }
}

/// SSE streams of calls that end before the response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DropStream {
    /// The number of events after the first one, which has an event id and no data.
    pub after_events: usize,
    /// Whether a GET with `Last-Event-ID` returns the rest.
    pub resumable: bool,
    /// The connection is aborted instead of closed properly.
    pub abrupt: bool,
    /// Events have ids; without them, there is nothing to resume from.
    pub ids: bool,
}

impl Default for DropStream {
    fn default() -> Self {
        Self { after_events: 0, resumable: true, abrupt: false, ids: true }
    }
}

/// What an endless stream consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endless {
    /// Log notifications.
    Notifications,
    /// Comments, which are not events.
    Comments,
    /// Responses to calls that the client never made.
    ForeignAnswers,
}

/// Requests to the client without end, on the stream of the server's own messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestFlood {
    /// The client's responses are accepted.
    Accepting,
    /// The POSTs of the client's responses are never answered.
    Stalling,
}

/// Status codes, sessions and streams.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpScript {
    /// The form of responses.
    pub answer: Answer,
    /// `initialize` returns no session id, and requests need none.
    pub no_sessions: bool,
    /// All sessions are dropped after this many calls, once: 404 from then on.
    pub session_lost_after: Option<u64>,
    /// GET on `/mcp` returns 405.
    pub no_get: bool,
    /// Requests without `Authorization: Bearer` and this token return 401.
    pub bearer: Option<String>,
    /// `WWW-Authenticate` of that 401.
    pub challenge: Option<String>,
    /// Responses that replace the regular ones; the first that matches is sent.
    pub faults: Vec<Fault>,
    /// Calls are answered with gzip that decompresses to this many megabytes.
    pub gzip_bomb_mb: Option<u64>,
    /// Calls are answered with an endless SSE stream, without a response.
    pub endless_stream: Option<Endless>,
    /// The client is flooded with requests.
    pub request_flood: Option<RequestFlood>,
    /// SSE streams of calls end early.
    pub drop_stream: Option<DropStream>,
    /// `retry:` of SSE streams, in milliseconds.
    pub retry_ms: Option<u64>,
    /// `/mcp`, too, serves the old HTTP+SSE transport, and rejects POST.
    pub legacy_only: bool,
    /// The data of the `endpoint` event (old transport), instead of the regular path.
    pub endpoint: Option<String>,
}

setters! { http:
    /// Answers POSTs with SSE streams.
    sse_answers() => answer = Answer::Sse;
    /// Returns no session ids.
    no_sessions() => no_sessions = true;
    /// Drops all sessions after this many calls, once.
    session_lost_after_calls(calls: u64) => session_lost_after = Some(calls);
    /// Rejects GET on `/mcp`.
    no_get() => no_get = true;
    /// Answers calls with gzip that decompresses to this many megabytes.
    gzip_bomb_mb(megabytes: u64) => gzip_bomb_mb = Some(megabytes);
    /// Answers calls with a stream that never ends.
    endless_stream(of: Endless) => endless_stream = Some(of);
    /// Floods the client with requests as soon as it is initialized.
    request_flood(flood: RequestFlood) => request_flood = Some(flood);
    /// Sends `retry:` with SSE streams.
    retry_ms(ms: u64) => retry_ms = Some(ms);
    /// Sets the address in the `endpoint` event.
    sse_endpoint(endpoint: impl Into<String>) => endpoint = Some(endpoint.into());
}

impl Script {
    /// Requires this token; `challenge` is the `WWW-Authenticate` of the 401.
    pub fn bearer(mut self, token: impl Into<String>, challenge: Option<&str>) -> Self {
        self.http.bearer = Some(token.into());
        self.http.challenge = challenge.map(str::to_owned);
        self
    }

    /// Adds a fault.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.http.faults.push(fault);
        self
    }

    /// Redirects every POST to this location (307); `/mcp` makes a loop.
    pub fn redirect(self, location: impl Into<String>) -> Self {
        self.fault(Fault::status(307).on(On::Post).header("location", location))
    }

    /// Answers with SSE streams that end early.
    pub fn drop_stream(mut self, drop: DropStream) -> Self {
        self.http.answer = Answer::Sse;
        self.http.drop_stream = Some(drop);
        self
    }

    /// Serves only the old HTTP+SSE transport, also at `/mcp`.
    pub fn legacy_sse_only(mut self) -> Self {
        self.http.legacy_only = true;
        self.legacy()
    }
}

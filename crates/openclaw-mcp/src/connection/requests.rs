//! Requests other than tool calls, and the `_meta` of all of them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use memchr::memmem::Finder;
use openclaw_tools::Relay;
use openclaw_trace::SpanContext;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::Connection;
use super::input_required::{INPUT_REQUIRED, MAX_ROUNDS};
use super::tasks::TASK_ID;
use crate::wire::json::Json;
use crate::wire::{CallError, TimeLimits};

/// The `_meta` of every request to a server since 2026-07-28.
#[derive(Debug)]
pub(super) struct Meta {
    pub(super) object: Box<RawValue>,
    /// The members of `object` as text, without braces, which the fast lane puts into a call.
    pub(super) members: String,
    /// Finds results that may request input. Created once: creation costs more than a search.
    pub(super) input_required: Finder<'static>,
    /// Finds results that may be tasks.
    pub(super) task_id: Finder<'static>,
}

impl Meta {
    pub(super) fn new(object: &Map<String, Value>) -> Self {
        let object = to_raw_value(object).unwrap_or_default();
        let members = object.get().trim_start_matches('{').strip_suffix('}');
        let members = members.unwrap_or_default().to_owned();
        let [input_required, task_id] = [INPUT_REQUIRED, TASK_ID].map(Finder::new);
        Self { object, members, input_required, task_id }
    }
}

impl Connection {
    /// Sends another request. If the server requests input, the request is repeated with it.
    ///
    /// # Errors
    /// If the server responds with an error, the call times out, or the connection fails.
    pub async fn request(
        &self,
        method: &str,
        params: BTreeMap<&str, Box<RawValue>>,
        limits: TimeLimits,
    ) -> Result<Json, CallError> {
        self.traced_request(method, params, limits, None).await
    }

    /// Like [`request`](Self::request), as a part of a span.
    async fn traced_request(
        &self,
        method: &str,
        params: BTreeMap<&str, Box<RawValue>>,
        limits: TimeLimits,
        trace: Option<&SpanContext>,
    ) -> Result<Json, CallError> {
        let with_meta = |params| self.with_meta_and(params, trace);
        let mut result = self.lane.request(method, &with_meta(params.clone()), limits).await?;
        for _ in 0..MAX_ROUNDS {
            let Some(answers) = self.answers(&result, None).await? else { return Ok(result) };
            let mut params = params.clone();
            params.insert("inputResponses", answers.responses);
            if let Some(state) = answers.state {
                params.insert("requestState", state);
            }
            result = self.lane.request(method, &with_meta(params), limits).await?;
        }
        self.complete(result)
    }

    /// Returns the `_meta` and further members of a request that are passed on as they are: if both
    /// the client and the server answer and send requests for input as results (2026-07-28).
    pub(super) fn relayed_meta<'a>(&self, relay: Option<Relay<'a>>) -> Option<(&'a str, &'a str)> {
        let relay = relay.filter(|_| self.meta.is_some())?;
        Some((relay.meta?, relay.more))
    }

    /// Like [`request`](Self::request), for a relay.
    ///
    /// # Errors
    /// If the server responds with an error, the call times out, or the connection fails.
    pub(crate) async fn relay_request(
        &self,
        method: &str,
        params: BTreeMap<&str, Box<RawValue>>,
        limits: TimeLimits,
        relay: Option<Relay<'_>>,
        trace: Option<&SpanContext>,
    ) -> Result<Json, CallError> {
        let Some((meta, more)) = self.relayed_meta(relay) else {
            return self.traced_request(method, params, limits, trace).await;
        };
        let meta = &with_trace(meta, trace);
        let mut json = serde_json::to_string(&params).unwrap_or_default();
        // The parameters are never empty.
        json.truncate(json.len().saturating_sub(1));
        for part in [",\"_meta\":{", meta, "}", if more.is_empty() { "" } else { "," }, more, "}"] {
            json.push_str(part);
        }
        let params = RawValue::from_string(json);
        let params = params.map_err(|_| CallError::Unreadable { body: String::new() })?;
        self.lane.request(method, &params, limits).await
    }

    pub(super) fn with_meta(&self, params: BTreeMap<&str, Box<RawValue>>) -> Box<RawValue> {
        self.with_meta_and(params, None)
    }

    fn with_meta_and(
        &self,
        mut params: BTreeMap<&str, Box<RawValue>>,
        trace: Option<&SpanContext>,
    ) -> Box<RawValue> {
        if self.meta.is_some() || trace.is_some() {
            let own = self.meta.as_ref().map_or("", |meta| &meta.members);
            let meta = format!("{{{}}}", with_trace(own, trace));
            params.insert("_meta", RawValue::from_string(meta).unwrap_or_default());
        }
        to_raw_value(&params).unwrap_or_default()
    }
}

/// Adds a span to the members of `_meta`.
fn with_trace<'a>(members: &'a str, trace: Option<&SpanContext>) -> Cow<'a, str> {
    let Some(trace) = trace else { return Cow::Borrowed(members) };
    let mut all = members.as_bytes().to_vec();
    if !all.is_empty() {
        all.push(b',');
    }
    trace.write_members(&mut all);
    String::from_utf8(all).map_or(Cow::Borrowed(members), Cow::Owned)
}

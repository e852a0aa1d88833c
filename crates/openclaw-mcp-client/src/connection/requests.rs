//! Requests other than tool calls, and the `_meta` of all of them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use memchr::memmem::Finder;
use openclaw_tools::Relay;
use openclaw_trace::SpanContext;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::Connection;
use super::carried::Carried;
use super::input_required::{INPUT_REQUIRED, MAX_ROUNDS};
use super::tasks::TASK_ID;
use crate::wire::json::Json;
use crate::wire::{CallError, TimeLimits, WorkId, redacted};

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
        self.request_with((self.own_meta(), None), method, params, limits).await
    }

    /// Like [`request`](Self::request), with these members of `_meta`, for this call.
    async fn request_with(
        &self,
        (meta, work): (&str, Option<WorkId>),
        method: &str,
        params: BTreeMap<&str, Box<RawValue>>,
        limits: TimeLimits,
    ) -> Result<Json, CallError> {
        let mut result =
            self.lane.request_for(work, method, &with_members(&params, meta, ""), limits).await?;
        for _ in 0..MAX_ROUNDS {
            let Some(answers) = self.answers(&result, work).await? else { return Ok(result) };
            let params = with_members(&params, meta, &answers.members());
            result = self.lane.request_for(work, method, &params, limits).await?;
        }
        self.complete(result)
    }

    /// Like [`request`](Self::request), for a relay, and for this call among those in progress.
    ///
    /// # Errors
    /// If the server responds with an error, the call times out, or the connection fails.
    pub async fn relay_request(
        &self,
        method: &str,
        params: BTreeMap<&str, Box<RawValue>>,
        limits: TimeLimits,
        relay: Option<Relay<'_>>,
        (trace, work): (Option<&SpanContext>, Option<WorkId>),
    ) -> Result<Json, CallError> {
        let Carried { meta, more, relays_input } = self.carried(relay)?;
        let meta = &with_trace(&meta, trace);
        if !relays_input {
            return self.request_with((meta, work), method, params, limits).await;
        }
        let params = with_members(&params, meta, more);
        let result = self.lane.request_for(work, method, &params, limits).await?;
        // The client is asked by the result.
        redacted::other_result(result, self.lane.redactor())
            .map_err(|asked| CallError::AskedFor(asked.to_string()))
    }

    pub(super) fn with_meta(&self, params: &BTreeMap<&str, Box<RawValue>>) -> Box<RawValue> {
        with_members(params, self.own_meta(), "")
    }
}

/// Adds the members of `_meta`, and further ones, to the parameters of a request.
fn with_members(params: &BTreeMap<&str, Box<RawValue>>, meta: &str, more: &str) -> Box<RawValue> {
    let mut json = serde_json::to_string(params).unwrap_or_default();
    json.truncate(json.len().saturating_sub(1));
    let mut add = |parts: &[&str]| {
        if json.len() > 1 {
            json.push(',');
        }
        parts.iter().for_each(|part| json.push_str(part));
    };
    if !meta.is_empty() {
        add(&["\"_meta\":{", meta, "}"]);
    }
    if !more.is_empty() {
        add(&[more]);
    }
    json.push('}');
    RawValue::from_string(json).unwrap_or_default()
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

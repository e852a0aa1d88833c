//! Servers that request input before they return a result, since 2026-07-28 (T11).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::Connection;
use crate::wire::json::Json;
use crate::wire::redacted::GivesAway;
use crate::wire::{CallError, MAX_PARSED, ProgressWatcher, TimeLimits, WireCall, WorkId, redacted};

/// Maximum number of input rounds per request.
pub(super) const MAX_ROUNDS: usize = 10;
/// The `resultType` of a result that requests input.
pub(super) const INPUT_REQUIRED: &str = "input_required";

/// The type of a result.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultType<'a> {
    #[serde(borrow)]
    result_type: Cow<'a, str>,
}

/// A result that requests input (2026-07-28).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputRequired<'a> {
    #[serde(default)]
    input_requests: BTreeMap<String, Value>,
    #[serde(borrow, default)]
    request_state: Option<&'a RawValue>,
}

/// The input for a repeated request.
pub(super) struct InputAnswers {
    pub(super) responses: Box<RawValue>,
    /// The server's `requestState`, returned unchanged.
    pub(super) state: Option<Box<RawValue>>,
}

impl InputAnswers {
    /// Returns the members of a JSON object.
    pub(super) fn members(&self) -> String {
        let mut members = format!(r#""inputResponses":{}"#, self.responses.get());
        if let Some(state) = &self.state {
            members.push_str(r#","requestState":"#);
            members.push_str(state.get());
        }
        members
    }
}

impl Connection {
    /// Repeats a call with the input that the server requests, until it returns a result.
    pub(super) async fn asked_back(
        &self,
        call: WireCall<'_>,
        mut result: Json,
        limits: TimeLimits,
        watcher: Option<&ProgressWatcher>,
    ) -> Result<Json, CallError> {
        for _ in 0..MAX_ROUNDS {
            let Some(answers) = self.answers(&result, call.work).await? else { return Ok(result) };
            let more = answers.members();
            let call = WireCall { more: &more, ..call };
            result = self.lane.call_tool(call, limits, watcher).await?;
        }
        self.complete(result)
    }

    /// Collects the input for a repeated request, which belongs to this call, if it is known; `None`
    /// if the result is complete.
    pub(super) async fn answers(
        &self,
        result: &Json,
        work: Option<WorkId>,
    ) -> Result<Option<InputAnswers>, CallError> {
        if !self.is_incomplete(result.get()) {
            return Ok(None);
        }
        if result.get().len() > MAX_PARSED {
            let most = MAX_PARSED / 1024 / 1024;
            return Err(CallError::AskedFor(format!("input that is larger than {most} MiB")));
        }
        let parsed = serde_json::from_str::<InputRequired<'_>>(result.get());
        let Ok(missing) = parsed else { return Ok(None) };
        let state = missing.request_state.map(ToOwned::to_owned);
        let responses = self.fulfil(missing.input_requests, work).await?;
        let responses = to_raw_value(&responses).unwrap_or_default();
        Ok(Some(InputAnswers { responses, state }))
    }

    /// Answers requests for input, without their secrets.
    ///
    /// # Errors
    /// If an input cannot be provided, or asked for without a credential.
    pub(super) async fn fulfil(
        &self,
        mut requests: BTreeMap<String, Value>,
        work: Option<WorkId>,
    ) -> Result<BTreeMap<String, Value>, CallError> {
        for request in requests.values_mut() {
            if !redacted::request(request, self.lane.redactor()) {
                return Err(CallError::AskedFor(GivesAway.to_string()));
            }
        }
        Box::pin(self.client.fulfil(requests, work)).await.map_err(CallError::AskedFor)
    }

    /// Returns the result, or fails if it still requests input.
    pub(super) fn complete(&self, result: Json) -> Result<Json, CallError> {
        if self.is_incomplete(result.get()) {
            let what = "input repeatedly without returning a result".to_owned();
            return Err(CallError::AskedFor(what));
        }
        Ok(result)
    }

    /// Returns whether a result requests input. Cheap for complete results, which are not parsed.
    pub(super) fn is_incomplete(&self, result: &str) -> bool {
        let Some(meta) = &self.meta else { return false };
        meta.input_required.find(result.as_bytes()).is_some()
            && serde_json::from_str::<ResultType<'_>>(result)
                .is_ok_and(|typed| *typed.result_type == *INPUT_REQUIRED)
    }
}

//! Servers that ask back before they answer, since 2026-07-28 (T11).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::Connection;
use crate::wire::CallError;
use crate::wire::json::Json;

/// How often a server may ask back before it answers a request.
pub(super) const MAX_ROUNDS: usize = 10;
/// The type of a result that asks back.
pub(super) const INPUT_REQUIRED: &str = "input_required";

/// What a server answers when it wants to know something first (2026-07-28).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InputRequired<'a> {
    #[serde(borrow)]
    result_type: Cow<'a, str>,
    #[serde(default)]
    input_requests: BTreeMap<String, Value>,
    #[serde(borrow, default)]
    request_state: Option<&'a RawValue>,
}

/// What we answer to a server that asked back.
pub(super) struct Answers {
    pub(super) responses: Box<RawValue>,
    /// What it wants back, exactly as it gave it.
    pub(super) state: Option<Box<RawValue>>,
}

impl Answers {
    /// As members of an object.
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
    /// What to send along when asking again, if the result says that something is missing.
    pub(super) async fn answers(&self, result: &Json) -> Result<Option<Answers>, CallError> {
        let Some(missing) = self.missing(result) else { return Ok(None) };
        let state = missing.request_state.map(ToOwned::to_owned);
        let responses = Box::pin(self.client.fulfil(missing.input_requests)).await;
        let responses = responses.map_err(CallError::AskedFor)?;
        let responses = to_raw_value(&responses).unwrap_or_default();
        Ok(Some(Answers { responses, state }))
    }

    /// The last result.
    pub(super) fn complete(&self, result: Json) -> Result<Json, CallError> {
        match self.missing(&result) {
            Some(_) => {
                Err(CallError::AskedFor("more input again and again, without a result".to_owned()))
            }
            None => Ok(result),
        }
    }

    /// Cheap for what is complete: nothing is parsed then.
    pub(super) fn missing<'a>(&self, result: &'a Json) -> Option<InputRequired<'a>> {
        self.meta.as_ref()?.asks_back.find(result.get().as_bytes())?;
        let parsed: InputRequired<'a> = serde_json::from_str(result.get()).ok()?;
        (*parsed.result_type == *INPUT_REQUIRED).then_some(parsed)
    }
}

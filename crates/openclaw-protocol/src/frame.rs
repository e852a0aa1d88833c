//! Frames: the text messages of the protocol, parsed strictly and serialized directly.

use std::borrow::Cow;
use std::fmt;

use openclaw_trace::{BAGGAGE, SpanContext, TRACEPARENT, TRACESTATE};
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use crate::error::ErrorShape;

/// Maximum length of a request id, in bytes.
pub const MAX_ID: usize = 256;
/// Maximum length of a method or event name, in bytes.
pub const MAX_NAME: usize = 128;

/// A message whose payload is not deserialized yet.
#[derive(Debug, Clone)]
pub enum Frame {
    /// A request.
    Request {
        /// Id, repeated in the response.
        id: String,
        /// Method name.
        method: String,
        /// Parameters.
        params: Option<Box<RawValue>>,
        /// The caller's span; `None` if it sent no valid one.
        trace: Option<SpanContext>,
    },
    /// A response.
    Response {
        /// Id of the request.
        id: String,
        /// The result or the error.
        outcome: Result<Option<Box<RawValue>>, ErrorShape>,
    },
    /// An event.
    Event {
        /// Event name.
        event: String,
        /// Payload.
        payload: Option<Box<RawValue>>,
        /// Sequence number, for detecting gaps.
        seq: Option<u64>,
    },
}

/// Why a text is not a valid frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// It is not JSON, or has the wrong shape.
    #[error("invalid frame: {0}")]
    Json(#[from] serde_json::Error),
    /// A field is missing.
    #[error("a frame of the type `{kind}` needs `{field}`")]
    Missing {
        /// The kind of frame.
        kind: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A field is empty or too long.
    #[error("`{0}` is empty or too long")]
    Length(&'static str),
    /// A request has an unknown field.
    #[error("unknown field `{0}` in a request")]
    UnknownField(String),
    /// `ok` is true and `error` is present, or `ok` is false and `error` is absent.
    #[error("`ok` and `error` contradict each other")]
    Contradiction,
}

impl Frame {
    /// Parses a frame. The payload is checked to be JSON but not deserialized.
    ///
    /// # Errors
    /// If the text is not a valid frame. Responses and events may have unknown fields.
    pub fn parse(text: &str) -> Result<Self, FrameError> {
        let wire: Wire<'_> = serde_json::from_str(text)?;
        match wire.kind {
            Kind::Req => {
                if let Some(field) = wire.unknown {
                    return Err(FrameError::UnknownField(field.chars().take(MAX_NAME).collect()));
                }
                Ok(Self::Request {
                    id: named(wire.id, "req", "id", MAX_ID)?,
                    method: named(wire.method, "req", "method", MAX_NAME)?,
                    params: wire.params.map(RawValue::to_owned),
                    trace: wire.trace.context(),
                })
            }
            Kind::Res => {
                let id = named(wire.id, "res", "id", MAX_ID)?;
                let missing = FrameError::Missing { kind: "res", field: "ok" };
                let outcome = match (wire.ok.ok_or(missing)?, wire.error) {
                    (true, None) => Ok(wire.payload.map(RawValue::to_owned)),
                    (false, Some(error)) => Err(error),
                    (true, Some(_)) | (false, None) => return Err(FrameError::Contradiction),
                };
                Ok(Self::Response { id, outcome })
            }
            Kind::Event => Ok(Self::Event {
                event: named(wire.event, "event", "event", MAX_NAME)?,
                payload: wire.payload.map(RawValue::to_owned),
                seq: wire.seq,
            }),
        }
    }
}

fn named(
    value: Option<Cow<'_, str>>,
    kind: &'static str,
    field: &'static str,
    most: usize,
) -> Result<String, FrameError> {
    let value = value.ok_or(FrameError::Missing { kind, field })?;
    match value.len() {
        1.. if value.len() <= most => Ok(value.into_owned()),
        _ => Err(FrameError::Length(field)),
    }
}

/// Serializes a request. The protocol has `traceparent`; `tracestate` and `baggage`, which a context
/// may carry, are ours: other gateways refuse them.
///
/// # Errors
/// Never in practice: all parts are valid JSON already.
pub fn request(
    id: &str,
    method: &str,
    params: Option<&RawValue>,
    trace: Option<&SpanContext>,
) -> Result<String, serde_json::Error> {
    #[skip_serializing_none]
    #[derive(Serialize)]
    struct Request<'a> {
        r#type: &'static str,
        id: &'a str,
        method: &'a str,
        params: Option<&'a RawValue>,
        traceparent: Option<String>,
        tracestate: Option<&'a str>,
        baggage: Option<&'a str>,
    }
    serde_json::to_string(&Request {
        r#type: "req",
        id,
        method,
        params,
        traceparent: trace.map(|trace| trace.traceparent().to_string()),
        tracestate: trace.and_then(SpanContext::state),
        baggage: trace.and_then(SpanContext::baggage),
    })
}

/// Serializes a response.
///
/// # Errors
/// Never in practice: all parts are valid JSON already.
pub fn response(
    id: &str,
    outcome: Result<&RawValue, &ErrorShape>,
) -> Result<String, serde_json::Error> {
    #[skip_serializing_none]
    #[derive(Serialize)]
    struct Response<'a> {
        r#type: &'static str,
        id: &'a str,
        ok: bool,
        payload: Option<&'a RawValue>,
        error: Option<&'a ErrorShape>,
    }
    let (payload, error) = (outcome.ok(), outcome.err());
    serde_json::to_string(&Response { r#type: "res", id, ok: error.is_none(), payload, error })
}

/// Serializes an event.
///
/// # Errors
/// Never in practice: all parts are valid JSON already.
pub fn event(
    event: &str,
    payload: Option<&RawValue>,
    seq: Option<u64>,
) -> Result<String, serde_json::Error> {
    #[skip_serializing_none]
    #[derive(Serialize)]
    struct Event<'a> {
        r#type: &'static str,
        event: &'a str,
        payload: Option<&'a RawValue>,
        seq: Option<u64>,
    }
    serde_json::to_string(&Event { r#type: "event", event, payload, seq })
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Req,
    Res,
    Event,
}

/// The fields of all kinds of frames: `type` may come last.
struct Wire<'a> {
    kind: Kind,
    id: Option<Cow<'a, str>>,
    method: Option<Cow<'a, str>>,
    params: Option<&'a RawValue>,
    trace: WireTrace<'a>,
    ok: Option<bool>,
    payload: Option<&'a RawValue>,
    error: Option<ErrorShape>,
    event: Option<Cow<'a, str>>,
    seq: Option<u64>,
    /// The first field that is not allowed in a request.
    unknown: Option<String>,
}

/// The fields of a trace context, in any order.
#[derive(Default)]
struct WireTrace<'a> {
    parent: Option<Cow<'a, str>>,
    state: Option<Cow<'a, str>>,
    baggage: Option<Cow<'a, str>>,
}

impl WireTrace<'_> {
    fn context(&self) -> Option<SpanContext> {
        let context = SpanContext::parse(self.parent.as_deref()?)?;
        Some(context.carrying(self.state.as_deref(), self.baggage.as_deref()))
    }
}

impl<'de> Deserialize<'de> for Wire<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Wire<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `type`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Wire<'de>, A::Error> {
        let mut kind = None;
        let mut wire = Wire {
            kind: Kind::Req,
            id: None,
            method: None,
            params: None,
            trace: WireTrace::default(),
            ok: None,
            payload: None,
            error: None,
            event: None,
            seq: None,
            unknown: None,
        };
        let mut seen = [false; FIELDS.len()];
        while let Some(Text(key)) = map.next_key()? {
            if let Some(at) = FIELDS.iter().position(|field| *field == key)
                && std::mem::replace(&mut seen[at], true)
            {
                return Err(A::Error::duplicate_field(FIELDS[at]));
            }
            match &*key {
                "type" => kind = Some(map.next_value()?),
                "id" => wire.id = Some(map.next_value::<Text<'_>>()?.0),
                "method" => wire.method = Some(map.next_value::<Text<'_>>()?.0),
                "params" => wire.params = map.next_value()?,
                TRACEPARENT => wire.trace.parent = Some(map.next_value::<Text<'_>>()?.0),
                TRACESTATE => wire.trace.state = Some(map.next_value::<Text<'_>>()?.0),
                BAGGAGE => wire.trace.baggage = Some(map.next_value::<Text<'_>>()?.0),
                other => {
                    match other {
                        "ok" => wire.ok = Some(map.next_value()?),
                        "payload" => wire.payload = map.next_value()?,
                        "error" => wire.error = map.next_value()?,
                        "event" => wire.event = Some(map.next_value::<Text<'_>>()?.0),
                        "seq" => wire.seq = map.next_value()?,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                    wire.unknown.get_or_insert_with(|| other.to_owned());
                }
            }
        }
        wire.kind = kind.ok_or_else(|| A::Error::missing_field("type"))?;
        Ok(wire)
    }
}

const FIELDS: [&str; 12] = [
    "type",
    "id",
    "method",
    "params",
    TRACEPARENT,
    TRACESTATE,
    BAGGAGE,
    "ok",
    "payload",
    "error",
    "event",
    "seq",
];

/// A string, borrowed unless it contains escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;

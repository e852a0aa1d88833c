//! The headers of a message.

use std::borrow::Cow;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::route::Route;
use crate::wire::param_headers::{ParamHeader, header_value, marked_arguments};

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Headers that the protocol sets; the configuration cannot override them.
pub(crate) const RESERVED: [HeaderName; 7] =
    [ACCEPT, CONTENT_TYPE, SESSION, VERSION, METHOD, NAME, LAST_EVENT];

/// The method and object of a message; since 2026-07-28 they are also sent as headers.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageSubject<'a> {
    /// Empty for a response.
    pub(super) method: &'a str,
    pub(super) object: Object<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Object<'a> {
    Tool { name: &'a str, arguments: &'a RawValue, headers: &'a [ParamHeader] },
    Params(&'a RawValue),
    None,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "taskId")]
    task: Option<Cow<'a, str>>,
}

/// Returns the headers of a POST.
pub(super) fn of_post(route: &Route, subject: MessageSubject<'_>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    of_route(route, &mut headers);
    if route.is_modern() {
        of_subject(subject, &mut headers);
    }
    headers
}

/// Returns the headers of a GET, which opens or resumes a stream.
pub(super) fn of_get(route: &Route, last_event: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    of_route(route, &mut headers);
    if let Some(Ok(last)) = last_event.map(|id| HeaderValue::from_bytes(id.as_bytes())) {
        headers.insert(LAST_EVENT, last);
    }
    headers
}

/// Returns the headers of a DELETE.
pub(super) fn of_delete(route: &Route) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(2);
    of_route(route, &mut headers);
    headers
}

fn of_route(route: &Route, headers: &mut HeaderMap) {
    if let Some(session) = &route.session {
        headers.insert(SESSION, session.clone());
    }
    if let Some(version) = &route.version {
        headers.insert(VERSION, version.clone());
    }
}

fn of_subject(subject: MessageSubject<'_>, headers: &mut HeaderMap) {
    if subject.method.is_empty() {
        return;
    }
    if let Ok(method) = HeaderValue::from_str(subject.method) {
        headers.insert(METHOD, method);
    }
    let name = match subject.object {
        Object::Tool { name, .. } => Some(Cow::Borrowed(name)),
        Object::Params(params) => name_in(subject.method, params),
        Object::None => None,
    };
    if let Some(name) = name.as_deref().and_then(header_value) {
        headers.insert(NAME, name);
    }
    if let Object::Tool { arguments, headers: wanted, .. } = subject.object
        && !wanted.is_empty()
    {
        let arguments = marked_arguments(wanted, arguments);
        headers.extend(wanted.iter().filter_map(|header| header.value(&arguments)));
    }
}

/// Returns the value of `Mcp-Name`, for the methods that require it.
fn name_in<'a>(method: &str, params: &'a RawValue) -> Option<Cow<'a, str>> {
    let which: fn(Named<'a>) -> Option<Cow<'a, str>> = match method {
        "tools/call" | "prompts/get" => |named| named.name,
        "resources/read" => |named| named.uri,
        "tasks/get" | "tasks/update" | "tasks/cancel" => |named| named.task,
        _ => return None,
    };
    serde_json::from_str(params.get()).ok().and_then(which)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(method: &str, params: &str) -> Option<String> {
        let params = RawValue::from_string(params.to_owned()).unwrap();
        let subject = MessageSubject { method, object: Object::Params(&params) };
        let headers = of_post(&Route::modern(), subject);
        assert_eq!(headers["mcp-method"], method);
        assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
        headers.get("mcp-name").map(|name| name.to_str().unwrap().to_owned())
    }

    #[test]
    fn headers_contain_the_method_and_name_of_a_request() {
        assert_eq!(named("tools/call", r#"{"name":"a-b","uri":"x"}"#).unwrap(), "a-b");
        let uri = "file:///path/to/file%20name.txt";
        assert_eq!(named("resources/read", &format!(r#"{{"uri":"{uri}"}}"#)).unwrap(), uri);
        assert_eq!(named("prompts/get", r#"{"name":"\u00e9"}"#).unwrap(), "=?base64?w6k=?=");
        assert_eq!(named("tools/list", r#"{"name":"x"}"#), None);
    }
}

//! Converts failures into outcomes with a plain message (B7).
//!
//! A server's own error message is untrusted: it is labelled as such and never part of our own
//! words.

use std::time::Duration;

use openclaw_content::{Source, Text, Untrusted, clean_line, label};
use openclaw_oauth::error::AuthError;
use openclaw_tools::{Content, OutcomeDetails, RefusedBy, ResourceLink, ToolFailure, ToolOutcome};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::text::{RawString, without_needless_escapes};
use super::{ResponseOrigin, SOURCE};
use openclaw_mcp_client::host::visitable;
use openclaw_mcp_client::wire::{CallError, Closed, UnusableResponse};

/// The maximum length of a server's error message.
const MAX_THEIRS: usize = 4_000;
/// The maximum number of URLs to visit, and the maximum length of each.
const MAX_VISITS: usize = 5;
const MAX_SHOWN: usize = 600;
/// The JSON-RPC error code for a required visit to a URL (2025-11-25).
pub(super) const URL_ELICITATION_REQUIRED: i64 = -32042;
/// The maximum length of a server name.
const MAX_NAME: usize = 64;

/// A failure in our own words, which must not contain untrusted text.
///
/// ```
/// use openclaw_mcp::call::results::{ResponseOrigin, failure};
/// use openclaw_tools::ToolFailure;
///
/// let origin = ResponseOrigin { server: "files", tool: "read" };
/// let outcome = failure(ToolFailure::Denied, "This is not allowed.".to_owned(), Some(origin));
/// assert!(outcome.is_error && !outcome.details.untrusted);
/// assert_eq!(outcome.text(), "This is not allowed.");
/// ```
pub fn failure(
    failure: ToolFailure,
    words: String,
    origin: Option<ResponseOrigin<'_>>,
) -> ToolOutcome {
    let mut outcome = ToolOutcome::failure(words);
    outcome.details = Box::new(OutcomeDetails {
        source: origin.map(|_| SOURCE),
        server: origin.map(|origin| origin.server.into()),
        tool: origin.map(|origin| origin.tool.into()),
        failure: Some(failure),
        ..OutcomeDetails::default()
    });
    outcome
}

/// Like [`failure()`], followed by the beginning of the server's own error message.
pub fn failure_with(
    kind: ToolFailure,
    words: String,
    theirs: Untrusted<&str>,
    origin: ResponseOrigin<'_>,
) -> ToolOutcome {
    let mut outcome = failure(kind, words, Some(origin));
    let theirs = theirs.map(str::trim);
    let end = theirs.expose().char_indices().nth(MAX_THEIRS).map(|(at, _)| at);
    let shown = theirs.map(|text| end.and_then(|end| text.get(..end)).unwrap_or(text));
    if shown.expose().is_empty() {
        return outcome;
    }
    // Without randomness there is no boundary, so only our own words are shown.
    if let Ok((text, findings)) =
        label(shown.map(str::to_owned), Source::mcp_tool(origin.server, origin.tool))
    {
        outcome.details.untrusted = true;
        outcome.details.is_cut = end.is_some();
        outcome.details.findings = findings;
        outcome.content.push(Content::Text(text));
        if end.is_some() {
            let words = "The rest of the error is not shown.";
            outcome.content.push(Content::Text(Text::ours(words)));
        }
    }
    outcome
}

/// Converts the error of a call.
pub fn call_failed(error: CallError, origin: ResponseOrigin<'_>) -> ToolOutcome {
    let server = named(origin.server);
    let (kind, words) = match error {
        CallError::Rpc(error) => return rpc_failed(&error, origin),
        CallError::TimedOut(after) => (
            ToolFailure::TimedOut,
            format!(
                "The call timed out after {} ms. A cancellation was sent to {server}; the call may \
                 still have had effects.",
                after.as_millis()
            ),
        ),
        // The reason may quote the server.
        CallError::Closed(Closed::Lost(_)) => (
            ToolFailure::Unavailable,
            format!("{server} is not available: the connection was lost."),
        ),
        CallError::Closed(closed) => {
            (ToolFailure::Unavailable, format!("{server} is not available: {closed}."))
        }
        CallError::Busy => (
            ToolFailure::Unavailable,
            format!("Too many calls are queued for {server}. Retry later."),
        ),
        CallError::NeedsAuth { .. } | CallError::Auth(AuthError::LoginRequired) => (
            ToolFailure::NeedsLogin,
            format!(
                "{server} requires authorization, or rejected its key. The user must run `openclaw \
                 mcp login {}`, or correct the key in its entry.",
                origin.server
            ),
        ),
        // The names of scopes come from the server.
        CallError::Auth(AuthError::InsufficientScope { scopes }) => {
            let words = format!(
                "{server} denied the call: its login lacks a permission. The user can grant it with \
                 `openclaw mcp login {} --scope SCOPE`.",
                origin.server
            );
            let scopes = format!("Missing scopes: {}", scopes.join(" "));
            return failure_with(ToolFailure::NeedsLogin, words, Untrusted::new(&scopes), origin);
        }
        CallError::Auth(error @ AuthError::Unconfirmed(_)) => {
            let words = format!(
                "{server} needs a token of an authorization server that the user has not confirmed. The \
                 user can do so with `openclaw mcp login {}`.",
                origin.server
            );
            let cause = error.to_string();
            return failure_with(ToolFailure::NeedsLogin, words, Untrusted::new(&cause), origin);
        }
        // The cause may quote the authorization server.
        CallError::Auth(error) => {
            let words = format!("The authorization for {server} failed.");
            let cause = error.to_string();
            return failure_with(ToolFailure::Unavailable, words, Untrusted::new(&cause), origin);
        }
        CallError::Forbidden { .. } => {
            (ToolFailure::Unavailable, format!("{server} denied access (HTTP 403)."))
        }
        CallError::RateLimited { retry_after } => {
            let again =
                retry_after.map_or("later".to_owned(), |after| format!("in {}", seconds(after)));
            (ToolFailure::RateLimited, format!("{server} is rate limiting calls. Retry {again}."))
        }
        CallError::OutOfService { retry_after } => {
            let words = "is temporarily unavailable (HTTP 503). Retry in";
            (ToolFailure::Unavailable, format!("{server} {words} {}.", seconds(retry_after)))
        }
        CallError::Http { status, body } => {
            let words = format!("{server} returned HTTP {status}.");
            return failure_with(ToolFailure::Protocol, words, Untrusted::new(&body), origin);
        }
        CallError::Unreadable { body } => {
            let words = format!("{server} sent an invalid response: it is not valid JSON.");
            return failure_with(
                ToolFailure::InvalidResponse,
                words,
                Untrusted::new(&body),
                origin,
            );
        }
        // The name of the encoding comes from the server.
        CallError::UnusableResponse(unfit @ UnusableResponse::Compressed { .. }) => {
            let words = format!("{server} sent an invalid response.");
            let how = unfit.to_string();
            return failure_with(ToolFailure::InvalidResponse, words, Untrusted::new(&how), origin);
        }
        CallError::UnusableResponse(unfit) => {
            (ToolFailure::InvalidResponse, format!("{server} sent an invalid response: {unfit}."))
        }
        // The reason may quote the server.
        CallError::Protocol(how) => {
            let words = format!("{server} sent an invalid response.");
            return failure_with(ToolFailure::InvalidResponse, words, Untrusted::new(&how), origin);
        }
        CallError::Redirected { .. } => {
            let words = "redirects to another origin, to which its credentials must not be sent";
            (ToolFailure::Unavailable, format!("{server} {words}."))
        }
        CallError::TaskCancelled => {
            (ToolFailure::Protocol, format!("{server} cancelled the task that executes the call."))
        }
        CallError::AskedFor(what) => (ToolFailure::Protocol, format!("{server} requested {what}.")),
        CallError::UnaskedInput => {
            let words = "has not requested the input of this request. Nothing was called.";
            let mut refused =
                failure(ToolFailure::Denied, format!("{server} {words}"), Some(origin));
            refused.details.refused = Some(RefusedBy::UnaskedInput);
            return refused;
        }
        CallError::Unreachable(unreachable) => (
            ToolFailure::Unavailable,
            format!("{server} is not available: {}.", unreachable.problem),
        ),
    };
    failure(kind, words, Some(origin))
}

/// The data of error -32042.
#[derive(Deserialize)]
struct VisitsRequired {
    elicitations: Vec<Visit>,
}

#[derive(Deserialize)]
struct Visit {
    url: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct RpcError<'a> {
    #[serde(borrow, default)]
    code: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

/// Converts a JSON-RPC error. Only its numeric code may appear in our own words.
fn rpc_failed(error: &RawValue, origin: ResponseOrigin<'_>) -> ToolOutcome {
    let server = named(origin.server);
    let read = serde_json::from_str(error.get()).ok().filter(|_| error.get().starts_with('{'));
    let Some(RpcError { code, message, data }) = read else {
        let words = format!("{server} sent an invalid response: neither a result nor an error.");
        return failure(ToolFailure::InvalidResponse, words, Some(origin));
    };
    let code = code.and_then(|code| code.get().parse::<i64>().ok());
    if let Some(visits) = data.filter(|_| code == Some(URL_ELICITATION_REQUIRED)).and_then(visits) {
        return visits_first(&visits, message.and_then(RawString::parse), origin);
    }
    let code = code.map(|code| format!(" (code {code})")).unwrap_or_default();
    let mut text = message.and_then(RawString::parse).map(RawString::decode).unwrap_or_default();
    if let Some(data) = data {
        let text = text.to_mut();
        text.push_str("\n[data] ");
        match RawString::parse(data) {
            Some(data) => data.decode_into(text),
            None => text.push_str(&without_needless_escapes(data.get())),
        }
    }
    let says = if text.trim().is_empty() { " without a message" } else { "" };
    let words = format!("{server} returned an error{code}{says}.");
    failure_with(ToolFailure::Protocol, words, Untrusted::new(&text), origin)
}

/// Parses the URLs that the user must visit before the call is repeated.
fn visits(data: &RawValue) -> Option<Vec<Visit>> {
    let required: VisitsRequired = serde_json::from_str(data.get()).ok()?;
    let clean = |text: &str| clean_line(Untrusted::new(text), MAX_SHOWN);
    let visits = required.elicitations.into_iter().take(MAX_VISITS).filter_map(|visit| {
        let url = String::from(visitable(&visit.url).ok()?);
        // A truncated URL would lead elsewhere.
        let is_whole = url.len() <= MAX_SHOWN;
        is_whole.then(|| Visit { url: clean(&url), message: clean(&visit.message) })
    });
    let visits: Vec<Visit> = visits.collect();
    (!visits.is_empty()).then_some(visits)
}

/// The outcome if the user must visit a URL first (2025-11-25).
fn visits_first(
    visits: &[Visit],
    message: Option<RawString<'_>>,
    origin: ResponseOrigin<'_>,
) -> ToolOutcome {
    let words = format!(
        "{} requires the user to visit a URL first. A user who trusts the server opens the URL in a \
         browser and follows the steps there; then the call can be repeated.",
        named(origin.server)
    );
    let mut text = message.map(RawString::decode).unwrap_or_default().into_owned();
    for Visit { url, message } in visits {
        let about = if message.is_empty() { String::new() } else { format!(" ({message})") };
        text.push_str(&format!("\n[visit] {url}{about}"));
    }
    let mut outcome = failure_with(ToolFailure::Protocol, words, Untrusted::new(&text), origin);
    let link = |visit: &Visit| ResourceLink { uri: visit.url.clone(), name: None, mime_type: None };
    outcome.details.links = visits.iter().map(link).collect();
    outcome
}

/// A server in our own words. Its name comes from the configuration, but is sanitized anyway.
pub(crate) fn named(server: &str) -> String {
    format!("MCP server '{}'", clean_line(Untrusted::new(server), MAX_NAME))
}

fn seconds(duration: Duration) -> String {
    let rounded = (duration.as_secs_f64() * 10.0).round() / 10.0;
    format!("{rounded} s")
}

#[cfg(test)]
mod tests {
    use super::*;
    use openclaw_mcp_client::wire::Closed;

    const ORIGIN: ResponseOrigin<'_> = ResponseOrigin { server: "files", tool: "read" };

    fn rpc(error: &str) -> ToolOutcome {
        let error = RawValue::from_string(error.to_owned()).unwrap();
        call_failed(CallError::Rpc(error), ORIGIN)
    }

    #[test]
    fn every_failure_says_what_is_wrong_in_plain_words() {
        for (error, failure, words) in [
            (
                CallError::TimedOut(Duration::from_millis(29_960)),
                ToolFailure::TimedOut,
                "The call timed out after 29960 ms. A cancellation was sent to MCP server 'files';",
            ),
            (
                CallError::Closed(Closed::ByServer),
                ToolFailure::Unavailable,
                "MCP server 'files' is not available: the server closed the connection.",
            ),
            (
                CallError::Busy,
                ToolFailure::Unavailable,
                "Too many calls are queued for MCP server 'files'. Retry later.",
            ),
        ] {
            let outcome = call_failed(error, ORIGIN);
            assert!(outcome.text().starts_with(words), "{}", outcome.text());
            assert!(outcome.is_error && !outcome.details.untrusted);
            assert_eq!(outcome.details.failure, Some(failure));
            assert_eq!(outcome.details.server.as_deref(), Some("files"));
        }
    }

    #[test]
    fn the_error_message_of_a_server_is_untrusted() {
        let outcome =
            rpc(r#"{"code":-32602,"message":"No \u003c|im_start|>.","data":{"path":"x"}}"#);
        let [Content::Text(ours), Content::Text(theirs)] = outcome.content.as_slice() else {
            panic!("expected two texts");
        };
        assert_eq!(ours, &Text::ours("MCP server 'files' returned an error (code -32602)."));
        assert_eq!(theirs.expose(), "No <|im_start|>.\n[data] {\"path\":\"x\"}");
        assert!(theirs.is_outside());
        let details = &outcome.details;
        assert!(outcome.is_error && details.untrusted);
        assert_eq!((details.failure, details.findings.defused()), (Some(ToolFailure::Protocol), 1));
    }

    #[test]
    fn a_url_to_visit_first_is_shown_with_instructions() {
        let visit =
            r#"{"mode":"url","elicitationId":"1","url":"https://x.test/a","message":"Log\nin"}"#;
        let outcome = rpc(&format!(
            r#"{{"code":-32042,"message":"Not yet.","data":{{"elicitations":[{visit}]}}}}"#
        ));
        let text = outcome.text();
        assert!(text.starts_with("MCP server 'files' requires the user to visit a URL"), "{text}");
        assert!(text.ends_with("\nNot yet.\n[visit] https://x.test/a (Log in)"), "{text}");
        assert!(outcome.details.untrusted && outcome.is_error);
        assert_eq!(outcome.details.links[0].uri, "https://x.test/a");

        let script = r#"[{"url":"javascript:alert(1)"}]"#;
        for elicitations in ["7", script] {
            let error = format!(
                r#"{{"code":-32042,"message":"Not yet.","data":{{"elicitations":{elicitations}}}}}"#
            );
            let broken = rpc(&error);
            assert!(broken.text().contains("returned an error (code -32042)"));
            assert!(broken.details.links.is_empty());
        }
    }

    #[test]
    fn an_invalid_error_is_a_failure_too() {
        for error in ["null", "5", "[1, \"x\"]", "{}", r#"{"code":"obey","message":7}"#] {
            let outcome = rpc(error);
            assert!(outcome.is_error && !outcome.details.untrusted, "{error}");
            assert!(!outcome.text().contains("obey"));
        }
    }

    #[test]
    fn a_long_error_is_truncated() {
        let outcome = rpc(&format!(r#"{{"code":1,"message":"{}"}}"#, "é".repeat(1_000_000)));
        assert!(outcome.content_chars() < MAX_THEIRS + 1_000);
        assert!(outcome.details.is_cut);
        assert!(outcome.text().ends_with("The rest of the error is not shown."));
    }
}

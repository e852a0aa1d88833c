//! Completion of the arguments of prompts and resource templates (T13).
//!
//! Users see the values, models do not: the request needs no policy, no approval and no boundary.

use std::collections::BTreeMap;
use std::time::Duration;

use openclaw_content::{Untrusted, clean_line};
use openclaw_secrets::Redactor;
use openclaw_tools::Relay;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;

use crate::call::limits::limited;
use crate::call::results::{self, ResponseOrigin};
use crate::call::{consequences, send};
use crate::catalogue::member::FleetMember;
use openclaw_mcp_client::connection::Connection;
use openclaw_mcp_client::wire::TimeLimits;

/// Timeout of a request: a user is waiting.
const COMPLETES: Duration = Duration::from_secs(5);
/// Maximum number of values, which is also that of the protocol.
const MAX_VALUES: usize = 100;
/// Maximum length of a value, in characters; longer ones are dropped.
const MAX_CHARS: usize = 500;
/// Since this version servers declare whether they complete arguments.
const DECLARED_SINCE: &str = "2025-03-26";

/// What an argument belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionOf<'a> {
    /// A prompt, by its name.
    Prompt(&'a str),
    /// A resource template, by its URI template.
    Template(&'a str),
}

/// The values of an argument that begin as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completions {
    /// The values, best first. Untrusted, each one printable line.
    pub values: Vec<String>,
    /// How many there are, if the server knows.
    pub total: Option<u64>,
    /// Whether there are more than these.
    pub has_more: bool,
}

/// Why an argument cannot be completed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompletionError {
    /// The server is not available, or limits its requests.
    #[error("{0}")]
    Unavailable(String),
    /// The server does not complete arguments.
    #[error("MCP server '{0}' does not support completion of arguments")]
    Unsupported(String),
    /// The server rejected the request, or responded with something invalid.
    #[error("{0}")]
    Failed(String),
}

#[derive(Deserialize)]
struct CompleteResult {
    completion: Completion,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Completion {
    values: Vec<String>,
    #[serde(default)]
    total: Option<u64>,
    #[serde(default)]
    has_more: Option<bool>,
}

/// Completes an argument: its name, and what was typed of its value.
pub(crate) async fn complete(
    member: &FleetMember,
    of: CompletionOf<'_>,
    argument: (&str, &str),
    given: &BTreeMap<String, String>,
    relay: Option<Relay<'_>>,
) -> Result<Completions, CompletionError> {
    let server = member.server.name().as_str();
    let checked = member.server.limiter.check(Instant::now());
    checked.map_err(|wait| CompletionError::Unavailable(limited(server, wait)))?;
    let usable = send::usable(member, None).await;
    let usable = usable.map_err(|(_, words)| CompletionError::Unavailable(words))?;
    let connection = usable.live.connection();
    if !completes(connection) {
        return Err(CompletionError::Unsupported(server.to_owned()));
    }
    let (reference, what) = match of {
        CompletionOf::Prompt(name) => (json!({ "type": "ref/prompt", "name": name }), name),
        CompletionOf::Template(uri) => (json!({ "type": "ref/resource", "uri": uri }), uri),
    };
    let raw = |value| to_raw_value(&value).unwrap_or_default();
    let (name, typed) = argument;
    let mut params: BTreeMap<&str, Box<RawValue>> = BTreeMap::from([
        ("ref", raw(reference)),
        ("argument", raw(json!({ "name": name, "value": typed }))),
    ]);
    if !given.is_empty() {
        params.insert("context", raw(json!({ "arguments": given })));
    }
    let limits = TimeLimits { timeout: COMPLETES, cap: COMPLETES };
    let about = (None, None);
    match connection.relay_request("completion/complete", params, limits, relay, about).await {
        Ok(result) => parse(result.get(), connection.redactor()).ok_or_else(|| {
            CompletionError::Failed(format!("MCP server '{server}' sent an invalid completion"))
        }),
        Err(error) => {
            consequences::failed(&member.server, &usable.live, &error).await;
            let origin = ResponseOrigin { server, tool: what };
            let words = results::call_failed(error, origin).text();
            Err(CompletionError::Failed(clean_line(Untrusted::new(&words), MAX_CHARS)))
        }
    }
}

/// Whether the server completes arguments.
fn completes(connection: &Connection) -> bool {
    let about = connection.about();
    let is_old = about.version.as_deref().is_some_and(|version| version < DECLARED_SINCE);
    about.offers.completions || is_old
}

fn parse(result: &str, redactor: &Redactor) -> Option<Completions> {
    let Completion { values, total, has_more } =
        serde_json::from_str::<CompleteResult>(result).ok()?.completion;
    let is_cut = values.len() > MAX_VALUES;
    // A value is inserted where the user types: what cannot be shown as it is, is not offered.
    let is_plain = |value: &String| {
        !value.is_empty()
            && clean_line(Untrusted::new(value), MAX_CHARS) == **value
            && !redactor.finds_credential(value)
    };
    Some(Completions {
        values: values.into_iter().take(MAX_VALUES).filter(is_plain).collect(),
        total,
        has_more: is_cut || has_more.unwrap_or(false),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(values: &serde_json::Value) -> Completions {
        let redactor = Redactor::new();
        redactor.add_credentials([&"hunter22-and-more".into()]);
        parse(&json!({ "completion": { "values": values } }).to_string(), &redactor).unwrap()
    }

    #[test]
    fn only_printable_values_of_one_line_are_offered() {
        let odd = json!(["plain é", "", "a\u{1b}[2J", "two\nlines", "x".repeat(501), "\u{202e}"]);
        assert_eq!(values(&odd).values, ["plain é"]);
        assert_eq!(values(&json!(["a-hunter22-and-more", "b"])).values, ["b"]);
    }

    #[test]
    fn the_number_of_values_is_limited() {
        let many: Vec<String> = (0..150).map(|at| at.to_string()).collect();
        let completions = values(&json!(many));
        assert_eq!((completions.values.len(), completions.has_more), (100, true));
        assert_eq!(parse(r#"{"completion":{"values":7}}"#, &Redactor::new()), None);
        assert_eq!(parse("[]", &Redactor::new()), None);
    }
}

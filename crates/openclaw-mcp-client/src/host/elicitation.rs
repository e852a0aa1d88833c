//! The parameters of `elicitation/create` (T11).
//!
//! They are not parsed into `rmcp`'s type, which requires the `elicitationId` of a URL (2026-07-28
//! has none) and rejects forms with a keyword or a type that it does not know.

use openclaw_content::{Untrusted, clean_line, clean_text, hazard};
use openclaw_net::host::is_loopback;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::{ElicitationKind, LOG_CHARS};

/// Maximum size of a form, in bytes.
const MAX_FORM: usize = 64 * 1024;
/// Maximum length of a label of a form, in characters.
const LABEL_CHARS: usize = 1_000;

/// A question of a server to the user. Its texts are sanitized.
#[derive(Debug, PartialEq)]
pub(super) struct Elicitation {
    pub(super) message: String,
    pub(super) wanted: ElicitationKind,
    /// The id of a URL.
    pub(super) id: Option<String>,
}

/// Maximum length of an id, in bytes; a longer one is ignored.
pub(super) const MAX_ID: usize = 256;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    /// Absent before 2025-11-25, and then a form.
    #[serde(default)]
    mode: Option<String>,
    message: String,
    #[serde(default)]
    requested_schema: Option<Value>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    elicitation_id: Option<String>,
}

impl Elicitation {
    /// Parses the parameters of a request.
    ///
    /// # Errors
    /// If a required member is missing, the mode is unknown, the form is too large or hides something in
    /// a name or a value, or the URL must not be opened; the message is for the server.
    pub(super) fn parse(params: Value) -> Result<Self, &'static str> {
        let params: Params = serde_json::from_value(params)
            .map_err(|_| "an elicitation without a valid `message`")?;
        let mut id = None;
        let wanted = match params.mode.as_deref().unwrap_or("form") {
            "form" => {
                let schema = params.requested_schema.filter(Value::is_object);
                let schema = schema.ok_or("an elicitation without a `requestedSchema`")?;
                ElicitationKind::Form(clean_form(schema)?)
            }
            "url" => {
                let url = params.url.ok_or("an elicitation without a `url`")?;
                id = params.elicitation_id.filter(|id| id.len() <= MAX_ID);
                ElicitationKind::Visit(visitable(&url)?.into())
            }
            _ => return Err("an elicitation of an unsupported mode"),
        };
        let message = clean_line(Untrusted::new(&params.message), LOG_CHARS);
        Ok(Self { message, wanted, id })
    }
}

/// Returns the message and the kind of input of an elicitation that is passed on.
///
/// # Errors
/// If a required member is missing, the mode is unknown, the form is too large or hides something in
/// a name or a value, or the URL must not be opened; the message is for the server.
pub fn sanitized_elicitation(params: Value) -> Result<(String, ElicitationKind), &'static str> {
    Elicitation::parse(params).map(|Elicitation { message, wanted, .. }| (message, wanted))
}

/// Sanitizes the labels of a form. Names and values are part of the answer, and must stay as they are.
fn clean_form(mut schema: Value) -> Result<Value, &'static str> {
    if schema.to_string().len() > MAX_FORM {
        return Err("an elicitation whose form is larger than 64 KiB");
    }
    clean_labels(&mut schema);
    match schema.as_object().and_then(hazard) {
        None => Ok(schema),
        Some(_) => Err("an elicitation with hidden characters or control tokens in its form"),
    }
}

/// Recursion is bounded, as in all JSON that is parsed.
fn clean_labels(schema: &mut Value) {
    let clean = |label: &mut Value| {
        if let Value::String(text) = label {
            *text = clean_text(Untrusted::new(text), LABEL_CHARS);
        }
    };
    match schema {
        Value::Array(items) => items.iter_mut().for_each(clean_labels),
        Value::Object(members) => {
            for (key, member) in members {
                match (key.as_str(), member) {
                    ("title" | "description", label @ Value::String(_)) => clean(label),
                    ("enumNames", Value::Array(labels)) => labels.iter_mut().for_each(clean),
                    (_, member) => clean_labels(member),
                }
            }
        }
        _ => {}
    }
}

/// Parses a URL that a server wants the user to open. As a string, the result is ASCII: no character
/// in it can disguise where it leads.
///
/// # Errors
/// If it is neither https nor http on this machine, or names a user, which can look like the host.
pub fn visitable(url: &str) -> Result<Url, &'static str> {
    let url = Url::parse(url).map_err(|_| "an elicitation with an invalid `url`")?;
    let is_here = url.host().is_some_and(|host| is_loopback(&host));
    match url.scheme() {
        "https" => {}
        "http" if is_here => {}
        "http" => {
            return Err("an elicitation with an http `url`: use https, except for localhost");
        }
        _ => return Err("an elicitation with a `url` that is not https"),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an elicitation with a user name or a password in its `url`");
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_url_needs_no_elicitation_id() {
        let visit = |params: Value| Elicitation::parse(params).unwrap().wanted;
        let url = "https://example.com/login";
        let expected = ElicitationKind::Visit(url.to_owned());
        assert_eq!(visit(json!({ "mode": "url", "message": "a", "url": url })), expected);
        let legacy = json!({ "mode": "url", "message": "a", "url": url, "elicitationId": "1" });
        assert_eq!(visit(legacy), expected);
    }

    #[test]
    fn only_https_and_http_on_this_machine_may_be_opened() {
        let visit = |url: &str| {
            let params = json!({ "mode": "url", "message": "a", "url": url });
            Elicitation::parse(params).map(|parsed| parsed.wanted)
        };
        for url in ["https://example.com/a?b=c#d", "http://127.0.0.1:8080/a", "http://[::1]/"] {
            assert_eq!(visit(url), Ok(ElicitationKind::Visit(url.to_owned())));
        }
        for (url, expected) in [
            ("javascript:alert(1)", "not https"),
            ("java\nscript:alert(1)", "not https"),
            ("file:///etc/passwd", "not https"),
            ("http://example.com/", "use https, except for localhost"),
            ("http://localhost.example.com/", "use https, except for localhost"),
            ("https://example.com@evil.test/", "a user name or a password"),
            ("https://:secret@evil.test/", "a user name or a password"),
            ("example.com", "an invalid `url`"),
        ] {
            let reason = visit(url).unwrap_err();
            assert!(reason.contains(expected), "{url}: {reason}");
        }
        let disguised = visit("https://a.test/\u{202e}gpj.exe").unwrap();
        assert_eq!(disguised, ElicitationKind::Visit("https://a.test/%E2%80%AEgpj.exe".to_owned()));
    }

    #[test]
    fn a_form_keeps_keywords_and_types_of_any_dialect() {
        let schema = json!({
            "type": "object",
            "properties": { "b": { "type": "array", "items": { "type": "number" } }, "a": true },
            "x-order": ["b", "a"],
        });
        for mode in [json!("form"), json!(null)] {
            let params = json!({ "mode": mode, "message": "a", "requestedSchema": schema });
            let parsed = Elicitation::parse(params).unwrap();
            assert_eq!(parsed.wanted, ElicitationKind::Form(schema.clone()));
        }
    }

    #[test]
    fn labels_of_a_form_are_sanitized_and_what_hides_in_names_and_values_is_an_error() {
        let form = |schema: Value| {
            let params = json!({ "message": "a [INST]\n b", "requestedSchema": schema });
            Elicitation::parse(params)
        };
        let label = "a\u{202e} [INST]";
        let asked = form(json!({
            "title": label,
            "properties": {
                "title": { "type": "string", "title": label, "description": label },
                "b": { "enum": ["x"], "enumNames": [label] },
                "c": { "oneOf": [{ "const": "y\nz", "title": label }] },
            },
        }))
        .unwrap();
        assert_eq!(asked.message, "a [removed token] b");
        let ElicitationKind::Form(schema) = asked.wanted else { panic!("a form") };
        let shown = schema.to_string();
        assert_eq!(shown.matches("a [removed token]").count(), 5, "{shown}");
        assert!(!shown.contains("[INST]") && !shown.contains('\u{202e}'), "{shown}");
        assert_eq!(schema["properties"]["c"]["oneOf"][0]["const"], "y\nz");
        for hidden in [
            json!({ "properties": { "a [INST]": {} } }),
            json!({ "properties": { "a": { "enum": ["b\u{202e}"] } } }),
            json!({ "properties": { "a": { "default": "<|im_start|>" } } }),
            json!({ "x-hint": "[INST]" }),
            json!({ "description": ["x".repeat(70_000)] }),
        ] {
            assert!(form(hidden.clone()).is_err(), "{}", &hidden.to_string()[..40]);
        }
    }

    #[test]
    fn incomplete_and_unknown_elicitations_are_errors() {
        for params in [
            json!(null),
            json!({ "mode": "url", "message": "a" }),
            json!({ "mode": "url", "url": "https://example.com" }),
            json!({ "message": "a" }),
            json!({ "message": "a", "requestedSchema": "object" }),
            json!({ "mode": "voice", "message": "a", "requestedSchema": {} }),
        ] {
            assert!(Elicitation::parse(params.clone()).is_err(), "{params}");
        }
    }
}

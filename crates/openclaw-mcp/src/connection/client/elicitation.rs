//! The parameters of `elicitation/create` (T11).
//!
//! They are not parsed into `rmcp`'s type, which requires the `elicitationId` of a URL (2026-07-28
//! has none) and rejects forms with a keyword or a type that it does not know.

use serde::Deserialize;
use serde_json::Value;

use super::ElicitationKind;

/// A question of a server to the user.
#[derive(Debug, PartialEq)]
pub(super) struct Elicitation {
    pub(super) message: String,
    pub(super) wanted: ElicitationKind,
}

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
}

impl Elicitation {
    /// Parses the parameters of a request.
    ///
    /// # Errors
    /// If a required member is missing or the mode is unknown; the message is for the server.
    pub(super) fn parse(params: Value) -> Result<Self, &'static str> {
        let params: Params = serde_json::from_value(params)
            .map_err(|_| "an elicitation without a valid `message`")?;
        let wanted = match params.mode.as_deref().unwrap_or("form") {
            "form" => {
                let schema = params.requested_schema.filter(Value::is_object);
                ElicitationKind::Form(schema.ok_or("an elicitation without a `requestedSchema`")?)
            }
            "url" => ElicitationKind::Visit(params.url.ok_or("an elicitation without a `url`")?),
            _ => return Err("an elicitation of an unsupported mode"),
        };
        Ok(Self { message: params.message, wanted })
    }
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

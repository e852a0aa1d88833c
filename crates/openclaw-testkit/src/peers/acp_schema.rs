//! The published schema of the Agent Client Protocol.

use std::collections::BTreeMap;
use std::fs;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::Peers;

/// The published schema of ACP version 1 (npm `@agentclientprotocol/sdk`), for what an agent sends.
#[derive(Debug)]
pub struct AcpSchema {
    /// By method: the schema of its response.
    responses: BTreeMap<String, Validator>,
    /// By method: the schema of the parameters of a request or notification to the client.
    messages: BTreeMap<String, Validator>,
}

#[expect(clippy::expect_used, clippy::panic, reason = "a test cannot continue without the schema")]
impl AcpSchema {
    /// Reads the installed schema.
    ///
    /// # Panics
    /// If it is not installed.
    pub fn find() -> Self {
        let text = fs::read_to_string(Peers::find().acp_schema()).expect("the schema");
        let schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
        let (mut responses, mut messages) = (BTreeMap::new(), BTreeMap::new());
        let all = &schema["$defs"];
        for (name, definition) in all.as_object().expect("definitions") {
            let (Some(method), Some(side)) =
                (definition["x-method"].as_str(), definition["x-side"].as_str())
            else {
                continue;
            };
            let of = match (side, name.ends_with("Response")) {
                ("agent", true) => &mut responses,
                ("client" | "protocol", false) => &mut messages,
                _ => continue,
            };
            let schema = json!({ "$ref": format!("#/$defs/{name}"), "$defs": all });
            let validator = jsonschema::validator_for(&schema).expect("a valid schema");
            of.insert(method.to_owned(), validator);
        }
        Self { responses, messages }
    }

    /// Asserts that a frame of an agent is valid. `answered` is the method of the request that a
    /// response belongs to.
    ///
    /// # Panics
    /// If it is not, with all violations.
    #[track_caller]
    pub fn check(&self, frame: &Value, answered: Option<&str>) {
        assert_eq!(frame["jsonrpc"], "2.0", "{frame:#}");
        if let Some(error) = frame.get("error") {
            assert!(error["code"].is_i64() && error["message"].is_string(), "{frame:#}");
            return;
        }
        let (validator, value) = match frame["method"].as_str() {
            Some(method) => (self.messages.get(method), &frame["params"]),
            None => (answered.and_then(|method| self.responses.get(method)), &frame["result"]),
        };
        let validator = validator.unwrap_or_else(|| panic!("not in the schema: {frame:#}"));
        let errors = super::violations(validator, value);
        assert!(errors.is_empty(), "{errors:#?}\n{frame:#}");
    }
}

//! The published schema of the gateway protocol.

use std::fs;

use serde_json::Value;

use super::Peers;

/// The published schema of gateway protocol 4 (npm `@openclaw/gateway-protocol`).
#[derive(Debug)]
pub struct GatewaySchema(Value);

#[expect(clippy::expect_used, reason = "a test cannot continue without the schema")]
impl GatewaySchema {
    /// Reads the installed schema.
    ///
    /// # Panics
    /// If it is not installed.
    pub fn find() -> Self {
        let text = fs::read_to_string(Peers::find().gateway_schema()).expect("the schema");
        Self(serde_json::from_str(&text).expect("the schema is JSON"))
    }

    /// Returns a definition.
    ///
    /// # Panics
    /// If there is none with this name.
    pub fn definition(&self, name: &str) -> &Value {
        let definition = &self.0["definitions"][name];
        assert!(definition.is_object(), "the schema has no {name}");
        definition
    }

    /// Returns the scope that a method requires, if the schema has the method.
    pub fn scope(&self, method: &str) -> Option<&str> {
        self.0["methods"][method]["scope"].as_str()
    }

    /// Asserts that a value is valid according to a definition.
    ///
    /// # Panics
    /// If it is not, with all violations.
    #[track_caller]
    pub fn check(&self, name: &str, value: &Value) {
        let validator = jsonschema::validator_for(self.definition(name)).expect("a valid schema");
        let errors = super::violations(&validator, value);
        assert!(errors.is_empty(), "{name}: {errors:#?}\n{value:#}");
    }
}

//! Whether and how much a server may use the agent's model (`sampling`).

use schemars::{JsonSchema as _, SchemaGenerator};
use serde_json::{Value, json};

use crate::decode::{Decode, Decoder, Spanned, Whole, choice, section};
use crate::tree::{ConfigNode, ConfigValue};

choice! {
    /// Whether a server may use the agent's model.
    pub enum SamplingRule {
        /// No: the capability is not advertised.
        Never = "never",
        /// If the user approves; denied when no user can be asked.
        Ask = "ask",
        /// Yes, without asking.
        Always = "always",
    }
}

section! {
    /// Whether and how much the server may use the agent's model (`sampling/createMessage`).
    struct RawSampling("the sampling settings", Refuse; rule) {
        /// `never`, `ask` (the user, each time) or `always`.
        allow: SamplingRule = "allow",
        /// Maximum length of a completion in tokens, 4096 by default. A larger request is reduced
        /// to this limit.
        max_tokens: Whole<1, 1_000_000> = "maxTokens",
        /// Requests per minute, 10 by default. More are rejected.
        requests_per_minute: Whole<1, 10_000> = "requestsPerMinute",
    }
}

/// Decodes a rule, or (for compatibility) true or false.
fn rule(node: &ConfigNode, cx: &mut Decoder<'_>) -> Option<Option<RawSampling>> {
    let allow = match &node.value {
        ConfigValue::Bool(true) => Some(SamplingRule::Ask),
        ConfigValue::Bool(false) => Some(SamplingRule::Never),
        ConfigValue::String(_) => SamplingRule::decode(node, cx),
        ConfigValue::Object(_) => return None,
        _ => {
            cx.wrong_type(node, "never, ask, always or an object with `allow`");
            None
        }
    };
    Some(allow.map(|value| {
        let allow = Some(Spanned { value, at: node.mark(), path: cx.path() });
        RawSampling { allow, ..RawSampling::default() }
    }))
}

/// True or false, a rule, or a section with limits.
pub(super) fn shape(schema: &mut Value) {
    let rule = SamplingRule::json_schema(&mut SchemaGenerator::default());
    *schema = json!({ "anyOf": [{ "type": "boolean" }, rule, schema.take()] });
}

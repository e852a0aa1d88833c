//! Whether and how much a server may use the agent's model (`sampling`).

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::decode::{Decode, Decoder, Overlay, Spanned, Whole, choice, section};
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
    struct RawSampling("the sampling settings", Refuse) {
        /// `never`, `ask` (the user, each time) or `always`.
        allow: SamplingRule = "allow",
        /// Maximum length of a completion in tokens, 4096 by default. A larger request is reduced
        /// to this limit.
        max_tokens: Whole<1, 1_000_000> = "maxTokens",
        /// Requests per minute, 10 by default. More are rejected.
        requests_per_minute: Whole<1, 10_000> = "requestsPerMinute",
    }
}

/// The value of `sampling`: a rule, an object with limits, or (for compatibility) true or false.
#[derive(Clone, Default)]
pub(crate) struct SamplingSetting(pub(crate) RawSampling);

impl SamplingSetting {
    fn rule(allow: SamplingRule, node: &ConfigNode, cx: &Decoder<'_>) -> Self {
        let allow = Some(Spanned { value: allow, at: node.mark(), path: cx.path() });
        Self(RawSampling { allow, ..RawSampling::default() })
    }
}

impl Decode for SamplingSetting {
    fn decode(node: &ConfigNode, cx: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            ConfigValue::Bool(true) => Some(Self::rule(SamplingRule::Ask, node, cx)),
            ConfigValue::Bool(false) => Some(Self::rule(SamplingRule::Never, node, cx)),
            ConfigValue::String(_) => {
                SamplingRule::decode(node, cx).map(|allow| Self::rule(allow, node, cx))
            }
            _ => RawSampling::decode(node, cx).map(Self),
        }
    }
}

impl Overlay for SamplingSetting {
    fn overlaid_by(self, later: Self) -> Self {
        Self(self.0.overlaid_by(later.0))
    }
}

impl JsonSchema for SamplingSetting {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SamplingSetting".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let rule = generator.subschema_for::<SamplingRule>();
        let section = generator.subschema_for::<RawSampling>();
        schemars::json_schema!({ "anyOf": [{ "type": "boolean" }, rule, section] })
    }
}

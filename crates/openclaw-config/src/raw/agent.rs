//! The sections for agents and their defaults.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::server::Ignored;
use super::{Millis, RawMcp, RawPolicy, Words};
use crate::decode::{Decode, Decoder, Overlay, Spanned, Table, Whole, choice, section};
use crate::schema;
use crate::text::ConfigText;
use crate::tree::{ConfigNode, ConfigValue};

section! {
    /// The agents and their defaults.
    struct RawAgents("the agents", Leave) {
        /// Defaults for every agent.
        defaults: RawAgent = "defaults",
        /// The agents, as a list.
        list: Vec<Spanned<RawAgent>> = "list" => schema::with_ids,
        /// The agents, by id.
        entries: Table<RawAgent> = "entries" => schema::named,
    }
}

section! {
    /// An agent.
    struct RawAgent("an agent", Leave) {
        /// The agent's id.
        id: ConfigText = "id" => schema::name,
        /// Whether this is the default agent.
        default: bool = "default",
        /// The model: `provider/model`, or an object with fallbacks. Without one, the built-in
        /// offline model is used.
        model: ModelSetting = "model",
        /// The agent's working folder.
        workspace: ConfigText = "workspace" => schema::filled,
        /// Text added to the system prompt.
        system_prompt: ConfigText = "systemPrompt",
        /// Maximum number of model requests in one turn (50).
        max_rounds: Whole<1, 1000> = "maxRounds",
        /// How many tool calls may run concurrently (8).
        max_parallel_tools: Whole<1, 64> = "maxParallelTools",
        /// With more tools than this (50), the model gets a search tool instead of all schemas; 0
        /// always sends all schemas.
        tool_search_threshold: Whole<0, 100_000> = "toolSearchThreshold",
        /// Context size of the model in tokens, if it differs from the size known for the model.
        context_tokens: Whole<1000, 100_000_000> = "contextTokens",
        /// Settings for calls that need approval.
        approval: RawApproval = "approval",
        /// MCP servers and settings of this agent; they override inherited ones field by field.
        mcp: RawMcp = "mcp",
        /// The agent's tool policy.
        tools: RawPolicy = "tools",
        /// A Node OpenClaw setting; ignored.
        models: Ignored = "models",
    }
}

section! {
    /// A model and its fallbacks.
    struct RawModelChoice("a model", Leave) {
        /// The primary model: `provider/model`.
        primary: ConfigText = "primary" => schema::model,
        /// Models to try in this order when the primary one is unavailable.
        fallbacks: Words = "fallbacks" => schema::models,
    }
}

section! {
    /// Settings for calls that need approval.
    struct RawApproval("the approval settings", Refuse) {
        /// What happens to a call when no user can be asked (`deny`).
        fallback: ApprovalFallback = "fallback",
        /// How long to wait for the user's answer, in milliseconds (300000).
        timeout: Millis = "timeoutMs",
    }
}

choice! {
    /// What happens to a tool call when no user can be asked for approval.
    pub enum ApprovalFallback {
        /// It is denied.
        Deny = "deny",
        /// It runs.
        Allow = "allow",
    }
}

/// The value of `model`: a name, or an object with fallbacks.
#[derive(Clone, Default)]
pub(crate) struct ModelSetting(pub(crate) RawModelChoice);

impl Decode for ModelSetting {
    fn decode(node: &ConfigNode, cx: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            ConfigValue::String(name) => {
                let value = ConfigText(name.clone());
                let primary = Spanned { value, at: node.mark(), path: cx.path() };
                Some(Self(RawModelChoice { primary: Some(primary), fallbacks: None }))
            }
            ConfigValue::Object(_) => RawModelChoice::decode(node, cx).map(Self),
            _ => {
                cx.wrong_type(node, "`\"provider/model\"` or an object with `primary`");
                None
            }
        }
    }
}

impl Overlay for ModelSetting {
    fn overlaid_by(self, later: Self) -> Self {
        Self(self.0.overlaid_by(later.0))
    }
}

impl JsonSchema for ModelSetting {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ModelSetting".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut name = serde_json::json!({ "type": "string" });
        schema::model(&mut name);
        let section = generator.subschema_for::<RawModelChoice>();
        schemars::json_schema!({ "anyOf": [name, section] })
    }
}

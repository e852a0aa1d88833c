//! What may stand in the entry of an agent, and in what all agents have in common.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::server::Ignored;
use super::{Millis, RawMcp, RawPolicy, Words};
use crate::decode::{Decode, Decoder, Overlay, Spanned, Table, Whole, choice, section};
use crate::schema;
use crate::text::Text;
use crate::tree::{Node, Value};

section! {
    /// The agents, and what they have in common.
    struct RawAgents("the agents", Leave) {
        /// What holds for every agent, unless it says otherwise.
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
        /// Its id.
        id: Text = "id" => schema::name,
        /// Whether it answers where no agent is named.
        default: bool = "default",
        /// The model that it thinks with: `provider/model`, or an object with fallbacks. Without one
        /// the built-in offline model answers.
        model: ModelSetting = "model",
        /// The folder that it works in.
        workspace: Text = "workspace" => schema::filled,
        /// Words that are added to its system prompt.
        system_prompt: Text = "systemPrompt",
        /// How many times it may ask the model in one turn (50).
        max_rounds: Whole<1, 1000> = "maxRounds",
        /// How many tool calls may run at once (8).
        max_parallel_tools: Whole<1, 64> = "maxParallelTools",
        /// With more tools than this (50) it gets a tool to search them, not all their schemas; 0 means
        /// that it always gets all.
        tool_search_threshold: Whole<0, 100_000> = "toolSearchThreshold",
        /// How many tokens the model can take, where that is known better than by its name.
        context_tokens: Whole<1000, 100_000_000> = "contextTokens",
        /// What holds when a person must be asked.
        approval: RawApproval = "approval",
        /// MCP servers and settings of this agent; they change what is inherited, field by field.
        mcp: RawMcp = "mcp",
        /// Which tools it may use.
        tools: RawPolicy = "tools",
        /// A setting of Node OpenClaw without a meaning here.
        models: Ignored = "models",
    }
}

section! {
    /// A model, and those that stand in for it.
    struct RawModelChoice("a model", Leave) {
        /// The model: `provider/model`.
        primary: Text = "primary" => schema::model,
        /// Models to turn to when it cannot be had, in this order.
        fallbacks: Words = "fallbacks" => schema::models,
    }
}

section! {
    /// What holds when a person must be asked.
    struct RawApproval("the approval settings", Refuse) {
        /// What becomes of a call where nobody can answer (`deny`).
        fallback: ApprovalFallback = "fallback",
        /// Milliseconds to wait for an answer (300000).
        timeout: Millis = "timeoutMs",
    }
}

choice! {
    /// What becomes of a tool call that nobody can be asked about.
    pub enum ApprovalFallback {
        /// It is refused.
        Deny = "deny",
        /// It runs.
        Allow = "allow",
    }
}

/// `model` is a name, or an object with fallbacks.
#[derive(Clone, Default)]
pub(crate) struct ModelSetting(pub(crate) RawModelChoice);

impl Decode for ModelSetting {
    fn decode(node: &Node, cx: &mut Decoder<'_>) -> Option<Self> {
        match &node.value {
            Value::String(name) => {
                let value = Text(name.clone());
                let primary = Spanned { value, at: node.mark(), path: cx.path() };
                Some(Self(RawModelChoice { primary: Some(primary), fallbacks: None }))
            }
            Value::Object(_) => RawModelChoice::decode(node, cx).map(Self),
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

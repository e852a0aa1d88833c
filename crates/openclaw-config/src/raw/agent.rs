//! The sections for agents and their defaults.

use super::server::Ignored;
use super::{Millis, RawMcp, RawPolicy, Words};
use crate::decode::{Decoder, Spanned, Table, Whole, choice, section};
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
        model: RawModelChoice = "model" => schema::model_choice,
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
    struct RawModelChoice("a model", Leave; model_name) {
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

/// Decodes the name of a model, instead of an object with fallbacks.
fn model_name(node: &ConfigNode, cx: &mut Decoder<'_>) -> Option<Option<RawModelChoice>> {
    match &node.value {
        ConfigValue::String(name) => {
            let value = ConfigText(name.clone());
            let primary = Some(Spanned { value, at: node.mark(), path: cx.path() });
            Some(Some(RawModelChoice { primary, fallbacks: None }))
        }
        ConfigValue::Object(_) => None,
        _ => {
            cx.wrong_type(node, "`\"provider/model\"` or an object with `primary`");
            Some(None)
        }
    }
}

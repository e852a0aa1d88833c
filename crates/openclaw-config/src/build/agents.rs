//! Builds the agents, each with what it inherits.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use crate::agent::{AgentConfig, ApprovalSettings, ModelChoice, ModelName};
use crate::decode::{Field, Overlay, Spanned, Table, Whole};
use crate::diagnostic::Diagnostic;
use crate::name::AgentId;
use crate::raw::{
    ApprovalFallback, ModelApi, RawAgent, RawAgents, RawApproval, RawMcp, RawModelChoice, Words,
};
use crate::server::RootsSetting;
use crate::setting::Setting;
use crate::text::ConfigText;

use super::values::{Builder, Unset};

/// The agent that exists when none is configured.
const DEFAULT_AGENT: &str = "main";
const DEFAULT_MAX_ROUNDS: u64 = 50;
const DEFAULT_PARALLEL_TOOLS: u64 = 8;
const DEFAULT_SEARCH_THRESHOLD: u64 = 50;
const DEFAULT_APPROVAL_MS: u64 = 300_000;

/// What all agents share.
pub(super) struct AgentDefaults<'a> {
    /// The MCP servers and settings for all agents.
    pub(super) mcp: Field<RawMcp>,
    pub(super) mcp_enabled: bool,
    /// The ids of all providers in the file, usable or not.
    pub(super) providers: &'a BTreeSet<String>,
}

impl Builder<'_> {
    pub(super) fn agents(
        &mut self,
        agents: Field<RawAgents>,
        common: &AgentDefaults<'_>,
    ) -> Vec<AgentConfig> {
        let Ok(default_id) = AgentId::new(DEFAULT_AGENT) else { return Vec::new() };
        let RawAgents { defaults, list, entries } = agents.map(|it| it.value).unwrap_or_default();
        let mut defaults = defaults.map(|it| it.value).unwrap_or_default();
        // `id` and `default` have no meaning in `defaults`.
        (defaults.id, defaults.default) = (None, None);
        self.ignore_models(&mut defaults);
        defaults.mcp = common.mcp.clone().overlaid_by(self.layer(defaults.mcp.take()));
        // The defaults are checked even if every agent overrides them.
        let by_default = RawAgent { mcp: None, ..defaults.clone() };
        self.agent(&default_id, by_default, common);

        let mut built: Vec<AgentConfig> = Vec::new();
        let mut default = None;
        for (id, agent) in self.named_agents(list, entries) {
            if let Some(twin) = built.iter().position(|other| other.id == id) {
                let message = format!("duplicate agent `{}`", built[twin].id);
                self.found.push(agent.error(message, "same id again"));
                continue;
            }
            let mut own = agent.value;
            if let Some(mark) = own.default.take().filter(|is_default| is_default.value) {
                if default.is_some() {
                    let message = "another agent is already the default";
                    self.found.push(mark.warning(message, "has no effect"));
                }
                default.get_or_insert(built.len());
            }
            self.ignore_models(&mut own);
            own.mcp = self.layer(own.mcp.take());
            // A policy is inherited as a whole: mixing the halves of two would be neither.
            let tools = own.tools.take().or_else(|| defaults.tools.clone());
            let merged = RawAgent { tools, ..defaults.clone().overlaid_by(own) };
            built.push(self.agent(&id, merged, common));
        }
        if let Some(default) = default {
            built[..=default].rotate_right(1);
        }
        if built.is_empty() {
            built.push(self.agent(&default_id, defaults, common));
        }
        built
    }

    /// Ignores Node OpenClaw's model catalogue.
    fn ignore_models(&mut self, agent: &mut RawAgent) {
        if let Some(models) = agent.models.take() {
            self.found.push(no_effect(&models, "models"));
        }
    }

    fn agent(&mut self, id: &AgentId, agent: RawAgent, common: &AgentDefaults<'_>) -> AgentConfig {
        let RawAgent {
            id: _,
            default: _,
            model,
            workspace,
            system_prompt,
            max_rounds,
            max_parallel_tools,
            tool_search_threshold,
            context_tokens,
            approval,
            mcp,
            tools,
            models: _,
        } = agent;
        let mut mcp = self.mcp(mcp, common.mcp_enabled, workspace.is_some());
        let mut noted = Vec::new();
        let model = self.model_choice(model, common.providers, &mut noted);
        let workspace = self.noted_text("workspace", workspace, &mut noted, |cx, text| {
            cx.path(text, &mut Unset::Refused)
        });
        let system_prompt =
            self.noted_text("systemPrompt", system_prompt, &mut noted, |cx, text| {
                cx.plain(text, &mut Unset::Refused)
            });
        let max_rounds = self.count(&mut noted, "maxRounds", max_rounds, DEFAULT_MAX_ROUNDS);
        let max_parallel_tools =
            self.count(&mut noted, "maxParallelTools", max_parallel_tools, DEFAULT_PARALLEL_TOOLS);
        let key = "toolSearchThreshold";
        let threshold =
            self.count(&mut noted, key, tool_search_threshold, DEFAULT_SEARCH_THRESHOLD);
        let context_tokens = context_tokens.map(|tokens| {
            self.note(&mut noted, "contextTokens", &tokens, json!(tokens.value.0));
            tokens.value.0
        });
        let approval = self.approval(approval, &mut noted);
        let tools = self.tool_policy("tools", tools, &mut noted);
        for server in mcp.servers.values_mut() {
            if let RootsSetting::Workspace(folder) = &mut server.connection.roots {
                folder.clone_from(&workspace);
            }
        }
        AgentConfig {
            id: id.clone(),
            model,
            workspace,
            system_prompt,
            max_rounds,
            max_parallel_tools,
            tool_search_threshold: (threshold > 0).then_some(threshold),
            context_tokens,
            approval,
            mcp,
            tools,
            origins: noted,
        }
    }

    fn approval(
        &mut self,
        approval: Field<RawApproval>,
        noted: &mut Vec<Setting>,
    ) -> ApprovalSettings {
        let RawApproval { fallback, timeout } = approval.map(|it| it.value).unwrap_or_default();
        let key = "approval.fallback";
        let deny = ApprovalFallback::Deny;
        let fallback = self.take(noted, key, fallback, deny, |it| json!(it.as_str()));
        let timeout = self.millis(noted, "approval.timeoutMs", timeout, DEFAULT_APPROVAL_MS);
        ApprovalSettings { fallback, timeout }
    }

    fn model_choice(
        &mut self,
        model: Field<RawModelChoice>,
        providers: &BTreeSet<String>,
        noted: &mut Vec<Setting>,
    ) -> Option<ModelChoice> {
        let model = model?;
        let RawModelChoice { primary, fallbacks } = model.value.clone();
        if primary.is_none() {
            let help = "add `primary: \"provider/model\"`";
            self.found.push(model.error("missing model", "no `primary`").help(help));
        }
        let primary = self
            .noted_text("model.primary", primary, noted, |cx, text| cx.model_name(text, providers));
        let fallbacks = self.fallbacks(fallbacks, providers, noted);
        let primary = primary?;
        let mut named = BTreeSet::from([primary.clone()]);
        let fallbacks = fallbacks.into_iter().filter(|name| named.insert(name.clone())).collect();
        Some(ModelChoice { primary, fallbacks })
    }

    fn fallbacks(
        &mut self,
        fallbacks: Field<Words>,
        providers: &BTreeSet<String>,
        noted: &mut Vec<Setting>,
    ) -> Vec<ModelName> {
        let Some(names) = fallbacks else { return Vec::new() };
        self.note_words("model.fallbacks", &names, noted);
        names.value.iter().filter_map(|name| self.model_name(name, providers)).collect()
    }

    fn model_name(
        &mut self,
        text: &Spanned<ConfigText>,
        providers: &BTreeSet<String>,
    ) -> Option<ModelName> {
        let written = self.filled(text, &mut Unset::Refused)?;
        let Some(name) = ModelName::new(written.as_str()) else {
            let help = "for example `anthropic/claude-sonnet-4-5`, `ollama/llama3`, or `offline`";
            let message = "expected a model with its provider: `provider/model`";
            self.found.push(text.error(message, "not of that form").help(help));
            return None;
        };
        let is_known = |id: &str| ModelApi::of_provider(id).is_some() || providers.contains(id);
        if let Some(id) = name.provider().filter(|id| !is_known(id)) {
            let message = format!("unknown model provider `{id}`");
            let help = format!("add `models.providers.{id}` with its `baseUrl`");
            let label = "not defined";
            self.found.push(text.warning(message, label).help(help).unusable());
        }
        Some(name)
    }

    fn named_agents(
        &mut self,
        list: Field<Vec<Spanned<RawAgent>>>,
        entries: Field<Table<RawAgent>>,
    ) -> Vec<(AgentId, Spanned<RawAgent>)> {
        let mut named = Vec::new();
        for agent in list.map(|list| list.value).unwrap_or_default() {
            let Some(id) = agent.value.id.clone() else {
                let help = "add `id: \"…\"`";
                self.found.push(agent.error("missing agent id", "no `id`").help(help));
                continue;
            };
            named.push((id.map(|ConfigText(id)| id), agent));
        }
        for (name, agent) in entries.map(|entries| entries.value.0).unwrap_or_default() {
            let id = Spanned { value: name, at: agent.at, path: agent.path.clone() };
            named.push((id, agent));
        }
        let check = |(id, agent): (Spanned<String>, _)| match AgentId::new(id.value.as_str()) {
            Ok(name) => Some((name, agent)),
            Err(problem) => {
                let message = format!("invalid agent id: {problem}");
                self.found.push(id.error(message, "invalid id").suggest(&problem));
                None
            }
        };
        named.into_iter().filter_map(check).collect()
    }

    /// Returns a duration given in milliseconds.
    pub(super) fn millis<const MIN: u64, const MAX: u64>(
        &self,
        noted: &mut Vec<Setting>,
        key: &str,
        field: Field<Whole<MIN, MAX>>,
        default: u64,
    ) -> Duration {
        let millis = self.take(noted, key, field, Whole(default), |millis| json!(millis.0)).0;
        Duration::from_millis(millis)
    }
}

/// The note about a Node OpenClaw setting that is ignored.
pub(super) fn no_effect<T>(field: &Spanned<T>, key: &str) -> Diagnostic {
    Diagnostic::note(format!("`{key}` has no effect here"))
        .at(field.at, "accepted and ignored")
        .path(field.path.as_str())
}

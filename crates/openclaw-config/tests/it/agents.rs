//! The settings of an agent besides its servers: model, limits, approval.

use std::path::Path;
use std::time::Duration;

use crate::support::*;
use openclaw_config::{AgentConfig, ApprovalFallback, Config, ModelName, SettingOrigin};

fn agent<'c>(config: &'c Config, id: &str) -> &'c AgentConfig {
    config.agent(Some(id)).unwrap()
}

fn names(names: &[ModelName]) -> Vec<&str> {
    names.iter().map(ModelName::as_str).collect()
}

#[test]
fn every_setting_has_a_default() {
    let config = good("");
    let agent = &config.agents[0];
    assert!(agent.model.is_none() && agent.workspace.is_none() && agent.system_prompt.is_none());
    assert_eq!((agent.max_rounds, agent.max_parallel_tools), (50, 8));
    assert_eq!((agent.tool_search_threshold, agent.context_tokens), (Some(50), None));
    assert_eq!(agent.approval.fallback, ApprovalFallback::Deny);
    assert_eq!(agent.approval.timeout, Duration::from_secs(300));
}

#[test]
fn an_agent_inherits_field_by_field() {
    let config = good(
        "{ agents: {\n\
         defaults: { model: { primary: 'anthropic/a', fallbacks: ['openai/b', 'ollama/c'] }, workspace: '~/work',\n\
           systemPrompt: 'be brief', maxRounds: 5, approval: { timeoutMs: 7 }, toolSearchThreshold: 0 },\n\
         list: [ { id: 'a', model: 'openai/b', approval: { fallback: 'allow' } },\n\
           { id: 'b', model: { fallbacks: [] }, workspace: 'here', maxRounds: 6, contextTokens: 8000 } ] } }",
    );
    let a = agent(&config, "a");
    let model = a.model.as_ref().unwrap();
    assert_eq!(model.primary.as_str(), "openai/b");
    assert_eq!(names(&model.fallbacks), ["ollama/c"], "the primary model is not its own fallback");
    assert_eq!(a.workspace.as_deref(), Some(Path::new("/home/user/work")));
    assert_eq!(a.system_prompt.as_ref().unwrap().as_str(), "be brief");
    assert_eq!((a.max_rounds, a.tool_search_threshold), (5, None));
    assert_eq!(a.approval.fallback, ApprovalFallback::Allow);
    assert_eq!(a.approval.timeout, Duration::from_millis(7));
    let b = agent(&config, "b");
    let model = b.model.as_ref().unwrap();
    assert_eq!((model.primary.as_str(), model.fallbacks.len()), ("anthropic/a", 0));
    assert_eq!(b.workspace.as_deref(), Some(Path::new("here")), "relative to the file's folder");
    assert_eq!((b.max_rounds, b.context_tokens), (6, Some(8000)));
}

#[test]
fn the_origin_of_each_value_is_recorded() {
    let config = good(
        "{ agents: { defaults: { model: 'anthropic/a', maxRounds: 5 },\n list: [ { id: 'a', maxRounds: 6 } ] } }",
    );
    let origin = |key: &str| {
        let origins = &config.agents[0].origins;
        let setting = origins.iter().find(|setting| setting.key == key).unwrap();
        match &setting.origin {
            SettingOrigin::File { location, path } => format!("{path}, line {}", location.line),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(origin("model.primary"), "agents.defaults.model, line 1");
    assert_eq!(origin("maxRounds"), "agents.list[0].maxRounds, line 2");
    assert_eq!(origin("maxParallelTools"), "Default");
}

#[test]
fn the_home_folder_alone_is_a_workspace() {
    let config = good("{ agents: { defaults: { workspace: '~' } } }");
    assert_eq!(config.agents[0].workspace.as_deref(), Some(Path::new("/home/user")));
}

#[test]
fn a_model_needs_its_provider() {
    let model = |model: &str| format!("{{ agents: {{ defaults: {{ model: {model} }} }} }}");
    for wrong in ["'claude'", "'/x'", "'x/'", "'a b/c'", "'a/b c'", "{ primary: 'claude' }"] {
        assert_says(&bad(&model(wrong)), &["expected a model with its provider"]);
    }
    assert_says(&bad(&model("{ fallbacks: ['openai/x'] }")), &["missing model"]);
    assert_says(&bad(&model("7")), &["`\"provider/model\"` or an object with `primary`"]);
    assert_says(&bad(&model("'${NOPE}/x'")), &["the environment variable `NOPE` is not set"]);
    good(&model("'offline'"));
    let said = doubtful(&model("'openrouter/anthropic/claude'"));
    assert_says(&said, &["unknown model provider `openrouter`", "models.providers.openrouter"]);
    let known = "{ models: { providers: { openrouter: { baseUrl: 'https://x' } } }, agents: { defaults: { model: 'openrouter/x' } } }";
    assert_eq!(doubtful(known), "");
}

#[test]
fn defaults_are_checked_even_if_no_agent_uses_them() {
    let said = bad(
        "{ agents: { defaults: { model: 'x', tools: { deny: ['['] } }, list: [ { id: 'a', model: 'openai/x', tools: {} } ] } }",
    );
    assert_says(&said, &["agents.defaults.model", "agents.defaults.tools.deny"]);
}

#[test]
fn limits_are_bounded_and_typos_are_reported() {
    let said = bad(
        "{ agents: { defaults: { maxRounds: 0, maxParallelTools: 65, contextTokens: 1, approval: { fallback: 'ask', timeoutMS: 1 } } } }",
    );
    assert_says(
        &said,
        &[
            "a whole number from 1 to 1000",
            "a whole number from 1 to 64",
            "a whole number from 1000 to",
            "expected one of deny, allow",
            "did you mean `timeoutMs`?",
        ],
    );
}

#[test]
fn the_model_catalogue_of_node_openclaw_is_ignored_with_a_note() {
    let said = doubtful(
        "{ agents: { defaults: { models: { 'anthropic/x': { alias: 'x' } } }, list: [ { id: 'a', models: {} } ] } }",
    );
    assert_eq!(said.matches("note: `models` has no effect here").count(), 2, "{said}");
    assert!(!said.contains("warning"), "{said}");
}

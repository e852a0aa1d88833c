//! Model providers and their credentials (G2, K1, K4).

use openclaw_config::{Config, ModelApi, ProviderConfig, SettingOrigin, Severity};

use crate::support::*;

fn entry(entry: &str) -> String {
    format!("{{ models: {{ providers: {{ x: {entry} }} }} }}")
}

fn provider(text: &str) -> ProviderConfig {
    good(&entry(text)).models["x"].clone()
}

fn references(config: &Config) -> Vec<String> {
    let shown = |(reference, users)| format!("{reference} {users:?}");
    config.secret_references().into_iter().map(shown).collect()
}

#[test]
fn all_provider_settings_are_read() {
    let x = provider(
        "{ baseUrl: 'https://${HOST}/v1', apiKey: 'secret://env/KEY', api: 'openai-responses', headers: { 'X-Team': 'a' } }",
    );
    assert_eq!(x.api, ModelApi::OpenAiResponses);
    assert_eq!(x.base_url.as_ref().unwrap().expose().as_str(), "https://example.com/v1");
    assert_eq!(x.base_url.as_ref().unwrap().to_string(), "https://${HOST}/v1");
    assert_eq!(x.headers.keys().collect::<Vec<_>>(), ["X-Team"]);
}

#[test]
fn the_names_of_the_node_openclaw_mean_the_same() {
    for (word, api) in [
        ("anthropic", ModelApi::Anthropic),
        ("anthropic-messages", ModelApi::Anthropic),
        ("openai", ModelApi::OpenAi),
        ("openai-completions", ModelApi::OpenAi),
        ("openai-responses", ModelApi::OpenAiResponses),
        ("gemini", ModelApi::Gemini),
        ("google-generative-ai", ModelApi::Gemini),
        ("ollama", ModelApi::Ollama),
    ] {
        assert_eq!(provider(&format!("{{ api: '{word}' }}")).api, api, "{word}");
    }
    assert_says(&bad(&entry("{ api: 'antropic' }")), &["did you mean `anthropic`?"]);
}

#[test]
fn a_provider_with_an_unsupported_api_is_ignored_and_the_rest_is_kept() {
    let text = "{ models: { providers: { aws: { api: 'bedrock-converse-stream' }, y: {} } }, agents: { defaults: { model: 'aws/x' } } }";
    let said = doubtful(text);
    assert_says(&said, &["model provider `aws` is ignored"]);
    assert!(!said.contains("unknown model provider"), "reported twice: {said}");
    let config = good(text);
    let ids: Vec<&str> = config.models.keys().map(|id| id.as_str()).collect();
    assert_eq!(ids, ["y"]);
}

#[test]
fn the_api_follows_from_a_known_id_and_is_openai_otherwise() {
    let config = good("{ models: { providers: { anthropic: {}, google: {}, vllm: {} } } }");
    let apis: Vec<&str> = config.models.values().map(|provider| provider.api.as_str()).collect();
    assert_eq!(apis, ["anthropic", "gemini", "openai"]);
    let origin = |key: &str| {
        config.origins.iter().find(|setting| setting.key == key).unwrap().origin.clone()
    };
    assert_eq!(origin("models.providers.google.api"), SettingOrigin::Inferred { from: "the id" });
    assert_eq!(origin("models.providers.vllm.api"), SettingOrigin::Default);
    assert_eq!(ProviderConfig::built_in("ollama").unwrap().api, ModelApi::Ollama);
    assert_eq!(ProviderConfig::built_in("vllm"), None);
}

#[test]
fn plain_http_to_a_local_network_provider_is_allowed_with_a_warning() {
    assert_eq!(doubtful(&entry("{ baseUrl: 'http://127.0.0.1:11434' }")), "");
    let said = doubtful(&entry("{ baseUrl: 'http://192.168.1.5:11434' }"));
    assert_says(
        &said,
        &["warning: requests to this model provider are not encrypted", "plain http"],
    );
    assert_says(&bad(&entry("{ baseUrl: 'ftp://x' }")), &["only https and http"]);
    assert_says(&bad(&entry("{ baseUrl: 'api.example.com' }")), &["not a URL: "]);
}

#[test]
fn references_in_providers_and_the_gateway_are_collected() {
    let config = good(
        "{ models: { providers: { x: { apiKey: 'secret://env/KEY', headers: { A: 'Bearer secret://env/KEY' } } } },\n\
         gateway: { auth: { token: 'secret://file/token' } } }",
    );
    assert_eq!(
        references(&config),
        [
            r#"secret://env/KEY {"models.providers.x.apiKey", "models.providers.x.headers.A"}"#,
            r#"secret://file/token {"gateway.auth.token"}"#,
        ]
    );
}

#[test]
fn references_of_the_node_openclaw_to_the_environment_are_understood() {
    let config = good(
        "{ models: { providers: { x: { apiKey: { source: 'env', provider: 'default', id: 'KEY' } } } },\n\
         gateway: { auth: { token: { source: 'env', id: 'TOKEN' } } } }",
    );
    assert_eq!(
        references(&config),
        [
            r#"secret://env/KEY {"models.providers.x.apiKey"}"#,
            r#"secret://env/TOKEN {"gateway.auth.token"}"#,
        ]
    );
    for other in ["{ source: 'exec', id: 'x' }", "{ source: 'env' }", "{}"] {
        let said = bad(&entry(&format!("{{ apiKey: {other} }}")));
        assert_says(&said, &["only references to the environment are supported"]);
    }
}

#[test]
fn a_plaintext_key_is_reported_once_per_provider_and_never_displayed() {
    let text = entry("{ apiKey: 'sesame', headers: { Authorization: 'sesame' } }");
    let loaded = read(&text);
    let said = loaded.report.render(Default::default());
    assert_eq!(loaded.report.count(Severity::Warning), 1, "{said}");
    assert_says(
        &said,
        &[
            "Model provider 'x' has plaintext credentials in config — consider using secret:// references",
        ],
    );
    let config = loaded.config.unwrap();
    let shown = format!("{said}{config:?}{}", serde_json::to_string(&config.origins).unwrap());
    assert!(!shown.contains("sesame"), "{shown}");
    for fine in ["{ apiKey: '${TOKEN}' }", "{ apiKey: 'secret://env/A' }", "{ apiKey: '' }"] {
        assert_eq!(doubtful(&entry(fine)), "", "{fine}");
    }
    assert_eq!(provider("{ apiKey: '' }").api_key, None);
}

#[test]
fn invalid_provider_settings_are_reported() {
    assert_says(&bad(&entry("{ apiKey: 'secret://nope/x' }")), &["invalid secret reference"]);
    assert_says(&bad(&entry("{ apiKey: '${NOPE}' }")), &["`NOPE` is not set"]);
    assert_says(&bad(&entry("{ apiKey: 'a\\nb' }")), &["must be a single line"]);
    assert_says(&bad(&entry("{ headers: { 'a b': 'x' } }")), &["invalid HTTP header name"]);
    assert_says(&bad(&entry("{ headers: { A: 'x', a: 'y' } }")), &["are the same"]);
    assert_says(&bad("{ models: { providers: { 'a/b': {} } } }"), &["use `a-b`"]);
    assert_says(&doubtful(&entry("{ baseURL: 'x' }")), &["did you mean `baseUrl`?"]);
    assert_says(&doubtful(&entry("{ models: [{ id: 'a' }] }")), &["`models` has no effect here"]);
}

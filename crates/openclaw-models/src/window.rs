//! Context windows of known models.

use crate::settings::ApiKind;

/// The window of unknown models.
const UNKNOWN: u64 = 32_768;
/// Ollama silently truncates conversations to the window that it was started with, which is small.
const OLLAMA: u64 = 8_192;

/// Windows by model family: the first whose name the model's name contains.
const FAMILIES: [(&str, u64); 15] = [
    ("claude", 200_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4", 8_192),
    ("gpt-3.5", 16_385),
    // 400,000 tokens, of which 128,000 are for the answer.
    ("gpt-5", 272_000),
    ("gpt-oss", 131_072),
    ("gemini", 1_048_576),
    ("deepseek", 65_536),
    ("grok", 131_072),
    ("kimi", 131_072),
    ("llama-3", 131_072),
    ("mistral-large", 131_072),
    ("qwen3", 32_768),
];

/// Returns the window of a model in tokens. `model` is the name without the provider's id.
pub(crate) fn context_tokens(kind: ApiKind, model: &str) -> u64 {
    if kind == ApiKind::Ollama {
        return OLLAMA;
    }
    let model = model.to_ascii_lowercase();
    let last = model.rsplit('/').next().unwrap_or(&model);
    if matches!(last.as_bytes(), [b'o', b'1' | b'3' | b'4', ..]) {
        return 200_000;
    }
    FAMILIES.iter().find(|(family, _)| model.contains(family)).map_or(UNKNOWN, |(_, size)| *size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_known_and_the_rest_is_guessed_low() {
        for (kind, model, expected) in [
            (ApiKind::Anthropic, "claude-sonnet-4-5", 200_000),
            (ApiKind::OpenAi, "anthropic/claude-opus-4", 200_000),
            (ApiKind::OpenAi, "gpt-4.1-mini", 1_047_576),
            (ApiKind::OpenAi, "gpt-4", 8_192),
            (ApiKind::OpenAi, "o3-mini", 200_000),
            (ApiKind::OpenAi, "openai/o4-mini", 200_000),
            (ApiKind::Gemini, "gemini-2.5-pro", 1_048_576),
            (ApiKind::Ollama, "qwen3:8b", 8_192),
            (ApiKind::OpenAi, "something-else", 32_768),
        ] {
            assert_eq!(context_tokens(kind, model), expected, "{model}");
        }
    }
}

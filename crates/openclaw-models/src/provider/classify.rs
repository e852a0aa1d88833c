//! Classifies a provider's errors.
//!
//! A status or a code decides where there is one. For conversations that are too long, rejected tool
//! schemas and models without tools, most providers have none: there, the message decides.

use std::time::Duration;

use serde_json::Value;

use super::failure::Explain;
use super::refusal::refused_tool;
use crate::error::ModelError;

/// Messages of providers about a conversation that is too long.
const TOO_LONG: [&str; 8] = [
    "prompt is too long",
    "exceed context limit",
    "maximum context length",
    "context length exceeded",
    "exceeds the context window",
    "exceeds the available context size",
    "exceeds the maximum number of tokens allowed",
    "exceeds the model's context",
];

/// Messages of providers and servers about a model that does not support tools.
const NO_TOOLS: [&str; 14] = [
    "does not support tools",
    "does not support tool use",
    "does not support tool call",
    "does not support function call",
    "doesnt support tool",
    "support tool use",
    "tools is not supported",
    "tools are not supported",
    "tool use is not supported",
    "tool calling is not supported",
    "function calling is not supported",
    "function calling is not enabled",
    // llama.cpp and vLLM, if started without tool support.
    "tools param requires --jinja",
    "tool choice requires --enable-auto-tool-choice",
];

/// An error as a provider reports it.
#[derive(Debug, Default)]
pub(super) struct ProviderReport {
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
    /// Its type, code and status, as far as present.
    names: Vec<String>,
    /// The parameter that it is about: `tools[3].function.parameters`.
    param: String,
    pub(super) message: String,
}

impl ProviderReport {
    /// Reads an error: `{"error": {…}}`, a list of such, `{"error": "…"}`, or the error itself.
    pub(super) fn read(body: &Value) -> Self {
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
        let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
        let mut names: Vec<String> =
            ["type", "code", "status"].map(|name| text(name).into()).into();
        let number = error.get("code").and_then(Value::as_u64);
        let mut report = Self {
            status: number.and_then(|code| u16::try_from(code).ok()),
            param: text("param").to_owned(),
            message: error.as_str().unwrap_or_else(|| text("message")).to_owned(),
            ..Self::default()
        };
        // Gemini's details.
        for detail in error.get("details").and_then(Value::as_array).into_iter().flatten() {
            names.extend(detail.get("reason").and_then(Value::as_str).map(str::to_owned));
            let delay = detail.get("retryDelay").and_then(Value::as_str);
            let delay = delay.and_then(|delay| delay.strip_suffix('s')?.parse().ok());
            let delay = delay.and_then(|delay| Duration::try_from_secs_f64(delay).ok());
            report.retry_after = report.retry_after.or(delay);
        }
        names.retain(|name| !name.is_empty());
        report.names = names;
        report
    }

    fn is(&self, names: &[&str]) -> bool {
        self.names.iter().any(|name| names.contains(&name.as_str()))
    }
}

/// The number of characters from which a word with letters and digits may be a key.
const KEY_CHARS: usize = 12;

/// Replaces words that may be a key, or a part of one that the provider shows.
fn without_keys(message: &str) -> String {
    let is_key = |word: &str| {
        let is_masked = word.contains("**") || word.contains("...") || word.contains('…');
        let has = |what: fn(&char) -> bool| word.chars().any(|c| what(&c));
        let is_random = word.chars().count() >= KEY_CHARS
            && has(char::is_ascii_digit)
            && has(|c| c.is_alphabetic());
        (is_masked && has(|c| c.is_alphanumeric())) || is_random || word.starts_with("sk-")
    };
    // The punctuation around a word stays.
    let is_edge = |c: char| matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | ')' | '(');
    let is_edge = |c: char| is_edge(c) || matches!(c, '"' | '\'' | '`');
    let words = message.split(' ').map(|word| match word.trim_matches(is_edge) {
        bare if is_key(bare) => word.replace(bare, "[REDACTED]"),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Classifies an error.
pub(super) fn classify(explain: &Explain, report: &ProviderReport) -> ModelError {
    let provider = explain.provider.clone();
    let status = report.status.unwrap_or_default();
    let message = explain.short(&report.message);
    let retry_after = report.retry_after;
    if status == 401
        || report.is(&["authentication_error", "invalid_api_key", "API_KEY_INVALID"])
        || report.is(&["UNAUTHENTICATED"])
    {
        // Providers' messages about a key contain parts of it.
        return ModelError::Auth { provider, message: without_keys(&message) };
    }
    if status == 403 || report.is(&["permission_error", "PERMISSION_DENIED"]) {
        return ModelError::Auth { provider, message };
    }
    let lower = report.message.to_ascii_lowercase();
    if status == 402
        || report.is(&["insufficient_quota", "billing_error"])
        || lower.contains("credit balance is too low")
        // Without a wait: a quota per minute is a rate limit.
        || (lower.contains("exceeded your current quota") && retry_after.is_none())
    {
        return ModelError::OutOfCredit { provider, message };
    }
    if status == 429
        || report.is(&["rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"])
    {
        return ModelError::RateLimited { provider, message, retry_after };
    }
    // Some report this with the status of a missing model, or of a server error.
    let plain: String = lower.chars().filter(|c| !matches!(c, '`' | '\'' | '"')).collect();
    let is_offered_tools = !explain.tools.is_empty();
    if is_offered_tools && NO_TOOLS.iter().any(|words| plain.contains(words)) {
        return ModelError::NoTools { model: explain.model.clone(), message };
    }
    if status == 413
        || report.is(&["context_length_exceeded", "exceed_context_size_error", "request_too_large"])
        || TOO_LONG.iter().any(|words| lower.contains(words))
    {
        return ModelError::ContextTooLong;
    }
    if status == 408
        || (status >= 500 && status != 501)
        || report.is(&["overloaded_error", "api_error", "server_error", "timeout_error"])
        || report.is(&["UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED"])
    {
        return ModelError::Overloaded { provider, message, retry_after };
    }
    if status == 404 || report.is(&["not_found_error", "model_not_found", "NOT_FOUND"]) {
        return ModelError::NoSuchModel { model: explain.model.clone(), message };
    }
    if let Some(tool) = refused_tool(&report.message, &report.param, &explain.tools) {
        return ModelError::ToolRejected { tool, message };
    }
    let message = match (message.is_empty(), report.status) {
        (_, Some(status @ 300..=399)) => {
            format!("HTTP {status}, a redirect, which is not followed; check `baseUrl`")
        }
        (false, _) => message,
        (true, Some(status)) => format!("HTTP {status}"),
        (true, None) => "no reason given".to_owned(),
    };
    ModelError::Rejected { provider, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_parts_of_keys_are_redacted_in_the_words_of_a_provider() {
        for (said, expected) in [
            ("invalid x-api-key", "invalid x-api-key"),
            (
                "Incorrect API key provided: sk-abc***wxyz. You can find your API key at \
                 https://platform.openai.com/account/api-keys.",
                "Incorrect API key provided: [REDACTED]. You can find your API key at \
                 https://platform.openai.com/account/api-keys.",
            ),
            ("Your api key: ****3f9d is invalid", "Your api key: [REDACTED] is invalid"),
            ("bad key 'AIzaSyD4-x91kQ'", "bad key '[REDACTED]'"),
            ("key sk-...9z is revoked", "key [REDACTED] is revoked"),
            ("Missing bearer token... (HTTP 401)", "Missing bearer token... (HTTP 401)"),
        ] {
            assert_eq!(without_keys(said), expected);
        }
    }
}

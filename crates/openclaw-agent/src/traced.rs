//! The span of a request to a model, in the semantic conventions for generative AI.

use openclaw_models::{ModelError, StopReason};
use openclaw_trace::{AttributeValue, Span, SpanKind, Tracer};
use serde_json::json;

use crate::stream::ModelOutput;
use crate::turn::Turn;

/// Starts the span of a request. The name of a model is `provider/model`, as in the configuration.
pub(crate) fn start(tracer: &Tracer, name: &str, turn: &Turn) -> Span {
    let span = tracer.start("chat", SpanKind::Client, turn.trace.as_ref());
    if !span.is_recorded() {
        return span;
    }
    let (provider, model) = name.split_once('/').unwrap_or((name, name));
    span.rename(format!("chat {model}"), SpanKind::Client);
    span.set("gen_ai.operation.name", "chat");
    span.set_text("gen_ai.provider.name", provider_name(provider));
    span.set_text("gen_ai.request.model", model);
    span.set("gen_ai.request.stream", true);
    span.set_text("gen_ai.conversation.id", turn.session.as_str());
    span
}

/// Describes a request that is over.
pub(crate) fn end(span: &Span, output: &ModelOutput, error: Option<&ModelError>) {
    if !span.is_recorded() {
        return;
    }
    span.set("gen_ai.usage.input_tokens", output.usage.input_tokens);
    span.set("gen_ai.usage.output_tokens", output.usage.output_tokens);
    span.set("gen_ai.usage.cache_read.input_tokens", output.usage.cached_tokens);
    if let Some(stop) = &output.stop {
        let reason = AttributeValue::Texts(vec![finish_reason(stop).into()]);
        span.set("gen_ai.response.finish_reasons", reason);
    }
    let calls = || {
        let parts = output.tool_uses.iter();
        parts.map(|it| json!({ "type": "tool_call", "id": it.id, "name": it.name })).collect()
    };
    span.set_message("gen_ai.output.messages", "assistant", &output.text, calls);
    match error {
        Some(error) => span.fail(error_kind(error), ""),
        None if output.is_cancelled => span.fail("cancelled", ""),
        None => {}
    }
}

/// The name of a provider in the conventions, where it differs from ours.
fn provider_name(ours: &str) -> &str {
    match ours {
        "azure" | "azure-openai" => "azure.ai.openai",
        "bedrock" | "amazon-bedrock" => "aws.bedrock",
        "gemini" | "google" => "gcp.gemini",
        "moonshot" | "kimi" => "moonshot_ai",
        "vertex" | "google-vertex" => "gcp.vertex_ai",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        other => other,
    }
}

fn finish_reason(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::Done | StopReason::StopSequence => "stop",
        StopReason::ToolUse => "tool_call",
        StopReason::Length => "length",
        StopReason::Refused(_) => "content_filter",
        StopReason::Other(_) => "other",
    }
}

/// A kind of error from a small set. Messages may quote the conversation, and are left out.
fn error_kind(error: &ModelError) -> &'static str {
    match error {
        ModelError::RateLimited { .. } => "rate_limited",
        ModelError::ContextTooLong => "context_too_long",
        ModelError::Silent(_) => "timeout",
        ModelError::Interrupted => "interrupted",
        ModelError::ToolRejected { .. } => "tool_rejected",
        ModelError::NoTools { .. } => "no_tools",
        _ => "_OTHER",
    }
}

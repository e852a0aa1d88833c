//! A request, in `genai`'s terms.

use std::time::Duration;

use genai::chat::{CacheControl, ChatOptions, ChatRequest, ToolChoice};
use openclaw_content::render;
use serde_json::{Map, Value};

use super::pairing::paired;
use super::{offers, outgoing};
use crate::model::Request;
use crate::settings::ApiKind;

/// What `genai` takes for a wish about reasoning at the end of a name.
const WISHES: [&str; 8] =
    ["-zero", "-none", "-minimal", "-low", "-medium", "-high", "-xhigh", "-max"];

/// The conversation.
pub(super) fn chat(kind: ApiKind, name: &str, request: &Request) -> ChatRequest {
    let mut messages = outgoing::messages(kind, name, &paired(&request.messages));
    // Anthropic remembers what lies before a mark, and for how long it was asked to.
    if let (ApiKind::Anthropic, Some(last)) = (kind, messages.last_mut()) {
        last.options = Some(CacheControl::Ephemeral.into());
    }
    let mut chat = ChatRequest::from_messages(messages);
    if !request.system.is_empty() {
        chat = chat.with_system(render(&request.system).join("\n\n"));
    }
    if kind == ApiKind::Ollama && !request.tools.is_empty() {
        chat = chat.with_tools(offers::plain(&request.tools));
    }
    chat
}

/// All that is not conversation.
pub(super) fn options(
    kind: ApiKind,
    model: &str,
    request: &Request,
    silence: Duration,
) -> ChatOptions {
    let mut body = Map::new();
    if let Some(tools) = offers::native(kind, &request.tools) {
        body.insert("tools".to_owned(), tools);
    }
    if matches!(kind, ApiKind::Anthropic | ApiKind::OpenAi | ApiKind::OpenAiResponses) {
        body.insert("model".to_owned(), model.into());
    }
    let mut options = ChatOptions::default()
        .with_capture_usage(true)
        .with_capture_tool_calls(kind != ApiKind::OpenAi)
        // Asked of the others, it changes what is requested, which not every model takes.
        .with_capture_reasoning_content(matches!(kind, ApiKind::Anthropic | ApiKind::OpenAi))
        .with_stream_header_timeout(silence)
        .with_stream_read_timeout(silence)
        .with_extra_body(Value::Object(body));
    options.max_tokens = request.max_output_tokens;
    options.temperature = request.temperature;
    // Responses has none.
    if kind != ApiKind::OpenAiResponses {
        options.stop_sequences.clone_from(&request.stop_sequences);
    }
    if request.must_use_tool && !request.tools.is_empty() {
        options.tool_choice = Some(ToolChoice::Required);
    }
    options
}

/// A name from which `genai` reads nothing into the request that was not asked for. What the provider is
/// told is not this one: it goes into the body or the address.
pub(super) fn plain_name(kind: ApiKind, model: &str) -> String {
    if kind != ApiKind::Ollama && WISHES.iter().any(|wish| model.ends_with(wish)) {
        format!("{model}-")
    } else {
        model.to_owned()
    }
}

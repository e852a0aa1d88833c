//! The demo server's resource, and a prompt about it.

use rmcp::ErrorData;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResult,
    Prompt, PromptArgument, PromptMessage, ReadResourceResult, Resource, ResourceContents, Role,
};
use serde_json::json;

const URI: &str = "demo://notes";
const MIME_TYPE: &str = "text/markdown";
const PROMPT: &str = "summarise-notes";
/// The languages that are suggested; any other is accepted as well.
const LANGUAGES: [&str; 6] = ["English", "French", "German", "Italian", "Portuguese", "Spanish"];

const NOTES: &str = "# Welcome to OpenClaw

These notes are a resource of the demo server: text that can be passed to a model.

- OpenClaw connects agents to MCP servers and keeps those servers running.
- Servers are local programs or remote services; `openclaw mcp add` adds one.
- `openclaw mcp import` adds the servers that other programs already use.
- Credentials can stay in a secret store: write `secret://…` instead of the value.
- `openclaw config show` prints the active settings and where each value comes from.

The demo server is used when there is no configuration. It is read-only.
";

pub(super) fn resource() -> Resource {
    Resource::new(URI, "notes")
        .with_title("Notes about OpenClaw")
        .with_description("What OpenClaw does, in a few lines")
        .with_mime_type(MIME_TYPE)
        .with_size(NOTES.len() as u64)
}

pub(super) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    if uri != URI {
        let data = json!({ "uri": uri });
        return Err(ErrorData::resource_not_found("resource not found", Some(data)));
    }
    let contents = ResourceContents::text(NOTES, URI).with_mime_type(MIME_TYPE);
    Ok(ReadResourceResult::new(vec![contents]))
}

pub(super) fn prompt() -> Prompt {
    let language = PromptArgument::new("language")
        .with_description("The language of the summary; by default that of the notes")
        .with_required(false);
    Prompt::new(PROMPT, Some("Summarise the notes about OpenClaw"), Some(vec![language]))
        .with_title("Summarise the notes")
}

/// Completes the name of a language.
pub(super) fn complete(request: &CompleteRequestParams) -> CompleteResult {
    let is_ours =
        request.r#ref.as_prompt_name() == Some(PROMPT) && request.argument.name == "language";
    let typed = request.argument.value.to_lowercase();
    let fits = |language: &&&str| is_ours && language.to_lowercase().starts_with(&typed);
    let values = LANGUAGES.iter().filter(fits).map(ToString::to_string).collect();
    CompleteResult::new(CompletionInfo::with_all_values(values).unwrap_or_default())
}

pub(super) fn fill_prompt(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    if request.name != PROMPT {
        let message = format!("unknown prompt `{}`", request.name);
        return Err(ErrorData::invalid_params(message, None));
    }
    let language = request.arguments.as_ref().and_then(|arguments| arguments.get("language"));
    let wish = match language {
        None => "Summarise these notes in three sentences.".to_owned(),
        Some(language) => match language.as_str().map(str::trim) {
            Some(language) if !language.is_empty() => {
                format!("Summarise these notes in three sentences, in {language}.")
            }
            _ => {
                let message = "`language` must be the name of a language";
                return Err(ErrorData::invalid_params(message, None));
            }
        },
    };
    let notes = ResourceContents::text(NOTES, URI).with_mime_type(MIME_TYPE);
    let notes = rmcp::model::ContentBlock::resource(notes);
    Ok(GetPromptResult::new(vec![
        PromptMessage::new_text(Role::User, wish),
        PromptMessage::new(Role::User, notes),
    ])
    .with_description("Summarise the notes about OpenClaw"))
}

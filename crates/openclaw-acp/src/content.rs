//! Blocks of content, and parts of the gateway's messages as such.

use agent_client_protocol::v1::schema::{
    AudioContent, Content, ContentBlock, ContentChunk, ImageContent, TextContent, ToolCallContent,
};
use openclaw_content::printable;
use serde_json::Value;

pub(crate) fn text_block(text: impl Into<String>) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

pub(crate) fn chunk(text: impl Into<String>) -> ContentChunk {
    ContentChunk::new(text_block(text))
}

pub(crate) fn text_content(text: impl Into<String>) -> ToolCallContent {
    ToolCallContent::Content(Content::new(text_block(text)))
}

/// Escapes what could change the look of other text; a client may be a terminal.
pub(crate) fn printable_text(text: &str) -> String {
    text.split('\t').map(printable).collect::<Vec<_>>().join("\t")
}

/// Marks text in columns as such: clients render Markdown, which joins spaces and lines.
pub(crate) fn preformatted(text: String) -> String {
    let has_columns = text.lines().any(|line| line.trim().contains("  "));
    if has_columns && !text.contains("```") { format!("```\n{text}\n```") } else { text }
}

/// Converts a part of a message of the gateway: text, an image or audio. An omitted or unknown part
/// is `None`.
pub(crate) fn block(part: &Value) -> Option<ContentBlock> {
    let field = |name: &str| part.get(name).and_then(Value::as_str);
    let mime_type = field("mimeType").or(field("mime_type"));
    match field("type")? {
        "text" => field("text").map(text_block),
        "image" => {
            let image = ImageContent::new(field("data")?, mime_type.unwrap_or("image/png"));
            Some(ContentBlock::Image(image))
        }
        "audio" => {
            let audio = AudioContent::new(field("data")?, mime_type.unwrap_or("audio/wav"));
            Some(ContentBlock::Audio(audio))
        }
        _ => None,
    }
}

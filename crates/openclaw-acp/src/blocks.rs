//! The blocks of a prompt, as a message of the gateway.

use agent_client_protocol::v1::schema::{
    BlobResourceContents, ContentBlock, EmbeddedResourceResource, TextResourceContents,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openclaw_protocol::chat::{Attachment, MAX_MESSAGE, MESSAGE_TOO_LONG};
use serde_json::value::to_raw_value;

/// A message for the gateway.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    pub(crate) message: String,
    pub(crate) attachments: Vec<Attachment>,
    /// Whether it is not a command, even if it begins with a slash.
    pub(crate) is_plain: bool,
}

impl Prompt {
    /// Converts the blocks of a prompt.
    ///
    /// # Errors
    /// If the prompt is empty, too long, or has a block of an unknown type.
    pub(crate) fn read(blocks: Vec<ContentBlock>) -> Result<Self, String> {
        let mut prompt = Self { is_plain: blocks.len() != 1, ..Self::default() };
        for block in blocks {
            prompt.add(block)?;
        }
        if prompt.message.len() > MAX_MESSAGE {
            return Err(MESSAGE_TOO_LONG.to_owned());
        }
        if prompt.message.trim().is_empty() && prompt.attachments.is_empty() {
            return Err("the prompt is empty".to_owned());
        }
        Ok(prompt)
    }

    /// Returns the command without its slash, if it is one.
    pub(crate) fn command(&self) -> Option<&str> {
        if self.is_plain { None } else { self.message.trim().strip_prefix('/') }
    }

    /// Whether the user asks which MCP servers there are.
    pub(crate) fn asks_for_servers(&self) -> bool {
        matches!(self.command(), Some("mcp" | "mcp servers"))
    }

    fn add(&mut self, block: ContentBlock) -> Result<(), String> {
        match block {
            ContentBlock::Text(text) => self.text(&text.text),
            ContentBlock::ResourceLink(link) => {
                let title = link.title.as_deref().unwrap_or(&link.name);
                self.text(&format!("[{title}]({})", link.uri));
            }
            ContentBlock::Image(image) => {
                self.attach("image", Some(image.mime_type), image.uri, &image.data);
            }
            ContentBlock::Audio(audio) => {
                self.attach("audio", Some(audio.mime_type), None, &audio.data);
            }
            ContentBlock::Resource(resource) => match resource.resource {
                EmbeddedResourceResource::TextResourceContents(TextResourceContents {
                    text,
                    uri,
                    ..
                }) => {
                    let data = STANDARD.encode(text);
                    self.attach("file", Some("text/plain".to_owned()), Some(uri), &data);
                }
                EmbeddedResourceResource::BlobResourceContents(BlobResourceContents {
                    blob,
                    mime_type,
                    uri,
                    ..
                }) => self.attach("file", mime_type, Some(uri), &blob),
                _ => return Err("unknown kind of embedded resource".to_owned()),
            },
            _ => return Err("unknown type of content block".to_owned()),
        }
        Ok(())
    }

    /// Adds text. Blocks are parts of one sentence in some editors, so they are not separated by
    /// lines.
    fn text(&mut self, text: &str) {
        let is_apart = self.message.ends_with(char::is_whitespace)
            || self.message.is_empty()
            || text.starts_with(char::is_whitespace);
        if !is_apart {
            self.message.push(' ');
        }
        self.message.push_str(text);
    }

    pub(crate) fn attach(
        &mut self,
        kind: &str,
        mime: Option<String>,
        name: Option<String>,
        data: &str,
    ) {
        self.attachments.push(Attachment {
            kind: Some(kind.to_owned()),
            mime_type: mime,
            file_name: name,
            content: to_raw_value(data).ok(),
            ..Attachment::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(blocks: serde_json::Value) -> Result<Prompt, String> {
        Prompt::read(serde_json::from_value(blocks).unwrap())
    }

    #[test]
    fn text_and_links_are_the_message_and_the_rest_is_attached() {
        let prompt = read(json!([
            {"type": "text", "text": "look at"},
            {"type": "resource_link", "name": "a.rs", "uri": "file:///a.rs"},
            {"type": "image", "mimeType": "image/png", "data": "aGk="},
            {"type": "resource", "resource": {"uri": "file:///b.rs", "text": "fn b() {}"}},
        ]))
        .unwrap();
        assert_eq!(prompt.message, "look at [a.rs](file:///a.rs)");
        let kinds: Vec<_> = prompt.attachments.iter().map(|it| it.kind.as_deref()).collect();
        assert_eq!(kinds, [Some("image"), Some("file")]);
        assert_eq!(prompt.attachments[1].file_name.as_deref(), Some("file:///b.rs"));
        assert!(prompt.is_plain);
    }

    #[test]
    fn only_a_single_text_may_be_a_command() {
        assert!(!read(json!([{"type": "text", "text": "/mcp servers"}])).unwrap().is_plain);
        assert!(read(json!([])).is_err());
        assert!(read(json!([{"type": "text", "text": "  "}])).is_err());
    }
}

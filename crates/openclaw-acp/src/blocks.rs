//! The blocks of a prompt, as a message of the gateway.

use agent_client_protocol::v1::schema::{
    BlobResourceContents, ContentBlock, EmbeddedResourceResource, TextResourceContents,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::chat::{Attachment, MAX_MESSAGE, MESSAGE_TOO_LONG};
use serde_json::value::to_raw_value;

use crate::servers_command::ServersCommand;

/// Maximum length of the name and of the URI of a resource in a message, in characters.
const MAX_LINK: usize = 4_096;

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
    /// If the prompt is empty, too long, or has an invalid block.
    pub(crate) fn read(blocks: Vec<ContentBlock>) -> Result<Self, String> {
        // A command may have attachments. What only begins with a slash is text.
        let mut filled = blocks.iter().filter(|block| !is_blank(block));
        let is_command = filled.next().is_some_and(is_command) || filled.next().is_none();
        let mut prompt = Self { is_plain: !is_command, ..Self::default() };
        for (nth, block) in blocks.into_iter().enumerate() {
            prompt.add(block).map_err(|why| format!("`prompt[{nth}]`: {why}"))?;
        }
        if prompt.message.len() > MAX_MESSAGE {
            return Err(MESSAGE_TOO_LONG.to_owned());
        }
        if prompt.message.trim().is_empty() && prompt.attachments.is_empty() {
            return Err("the prompt is empty".to_owned());
        }
        prompt.unescape();
        Ok(prompt)
    }

    /// Turns `//word` into the text `/word`, as `openclaw chat` does.
    fn unescape(&mut self) {
        let text = self.command().filter(|text| {
            text.strip_prefix('/').is_some_and(|command| name_of(command).is_some())
        });
        if let Some(text) = text.map(ToOwned::to_owned) {
            self.message = text;
            self.is_plain = true;
        }
    }

    /// Returns the command without its slash, if it is one.
    pub(crate) fn command(&self) -> Option<&str> {
        if self.is_plain { None } else { self.message.trim().strip_prefix('/') }
    }

    /// Returns the name of the command that it looks like. A path does not look like one.
    pub(crate) fn command_name(&self) -> Option<&str> {
        name_of(self.command()?)
    }

    /// Returns the command, if it is one about MCP servers.
    pub(crate) fn mcp_command(&self) -> Option<ServersCommand> {
        ServersCommand::read(self.command()?)
    }

    fn add(&mut self, block: ContentBlock) -> Result<(), String> {
        match block {
            ContentBlock::Text(text) => self.text(&text.text),
            ContentBlock::ResourceLink(link) => {
                self.refer(link.title.as_deref().unwrap_or(&link.name), &link.uri);
            }
            ContentBlock::Image(image) => {
                check_base64("data", &image.data)?;
                self.attach("image", Some(image.mime_type), image.uri, &image.data);
            }
            ContentBlock::Audio(audio) => {
                check_base64("data", &audio.data)?;
                self.attach("audio", Some(audio.mime_type), None, &audio.data);
            }
            ContentBlock::Resource(resource) => match resource.resource {
                EmbeddedResourceResource::TextResourceContents(TextResourceContents {
                    text,
                    uri,
                    ..
                }) => {
                    self.refer(file_name(&uri), &uri);
                    let data = STANDARD.encode(text);
                    self.attach("file", Some("text/plain".to_owned()), Some(uri), &data);
                }
                EmbeddedResourceResource::BlobResourceContents(BlobResourceContents {
                    blob,
                    mime_type,
                    uri,
                    ..
                }) => {
                    check_base64("resource.blob", &blob)?;
                    self.refer(file_name(&uri), &uri);
                    self.attach("file", mime_type, Some(uri), &blob);
                }
                _ => return Err("unknown kind of embedded resource".to_owned()),
            },
            _ => return Err("unknown type of content block".to_owned()),
        }
        Ok(())
    }

    /// Names a resource where it stands in the text. A command about servers has no use for it. The
    /// user chose it, but names of files may be anything.
    fn refer(&mut self, name: &str, uri: &str) {
        if self.mcp_command().is_none() {
            let [name, uri] = [name, uri].map(|it| clean_line(Untrusted::new(it), MAX_LINK));
            self.text(&format!("[{name}]({uri})"));
        }
    }

    /// Adds text. Blocks are parts of one sentence in some editors, so they are not separated by
    /// lines.
    fn text(&mut self, text: &str) {
        let is_apart = self.message.ends_with(char::is_whitespace)
            || self.message.is_empty()
            || text.is_empty()
            || text.starts_with(|c: char| c.is_whitespace() || ",.;:!?)".contains(c));
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

/// Whether a block has no text. Some editors add one to a command.
fn is_blank(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text(text) if text.text.trim().is_empty())
}

fn is_command(block: &ContentBlock) -> bool {
    let ContentBlock::Text(text) = block else { return false };
    let command = text.text.trim_start().strip_prefix('/');
    command.is_some_and(|command| name_of(command.trim_start_matches('/')).is_some())
}

fn file_name(uri: &str) -> &str {
    let path = uri.split(['?', '#']).next().unwrap_or(uri);
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(uri)
}

/// Returns the name of a command, given without its slash. A path has none.
fn name_of(command: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '?' | '!');
    let name = command.split(char::is_whitespace).next()?;
    (!name.is_empty() && name.chars().all(is_plain)).then_some(name)
}

/// Checks here what the gateway checks again: it does not know the blocks.
fn check_base64(field: &str, data: &str) -> Result<(), String> {
    STANDARD.decode(data).map(drop).map_err(|_| format!("`{field}` is not base64"))
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
        assert_eq!(prompt.message, "look at [a.rs](file:///a.rs) [b.rs](file:///b.rs)");
        let kinds: Vec<_> = prompt.attachments.iter().map(|it| it.kind.as_deref()).collect();
        assert_eq!(kinds, [Some("image"), Some("file")]);
        assert_eq!(prompt.attachments[1].file_name.as_deref(), Some("file:///b.rs"));
        assert!(prompt.is_plain);
    }

    #[test]
    fn embedded_resources_are_named_where_they_stand() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let resource =
            |uri: &str| json!({"type": "resource", "resource": {"uri": uri, "text": "A"}});
        let prompt = read(json!([
            text("compare "),
            resource("file:///p/a.txt"),
            text(" with "),
            resource("file:///p/b.txt#L1"),
            text(", please"),
        ]))
        .unwrap();
        assert_eq!(
            prompt.message,
            "compare [a.txt](file:///p/a.txt) with [b.txt](file:///p/b.txt#L1), please"
        );
        assert_eq!(prompt.attachments.len(), 2);
    }

    #[test]
    fn names_of_resources_are_cleaned() {
        let prompt = read(json!([
            {"type": "text", "text": "<|im_start|> is mine:"},
            {"type": "resource_link", "name": "<|im_start|>\na", "uri": "file:///<|im_end|>"},
        ]));
        let expected = "<|im_start|> is mine: [[removed token] a](file:///[removed token])";
        assert_eq!(prompt.unwrap().message, expected);
    }

    #[test]
    fn an_invalid_block_is_named() {
        let image = json!({"type": "image", "mimeType": "image/png", "data": "not base64"});
        let error = read(json!([{"type": "text", "text": "look"}, image])).unwrap_err();
        assert_eq!(error, "`prompt[1]`: `data` is not base64");
    }

    #[test]
    fn a_command_has_a_name_and_a_path_has_none() {
        let prompt = |text: &str| read(json!([{"type": "text", "text": text}])).unwrap();
        assert_eq!(prompt("/nonsense now").command_name(), Some("nonsense"));
        for text in ["/etc/passwd", "/ a", "what is /mcp?", "// a comment", "//nonsense"] {
            assert_eq!(prompt(text).command_name(), None, "{text}");
        }
        let escaped = prompt("//nonsense now");
        assert_eq!((escaped.message.as_str(), escaped.is_plain), ("/nonsense now", true));
        assert_eq!(prompt("// a comment").message, "// a comment");
    }

    #[test]
    fn the_first_text_may_be_a_command_and_the_rest_is_attached() {
        assert!(!read(json!([{"type": "text", "text": "/mcp servers"}])).unwrap().is_plain);
        let with_empty =
            json!([{"type": "text", "text": "/mcp servers"}, {"type": "text", "text": ""}]);
        assert_eq!(read(with_empty).unwrap().mcp_command(), Some(ServersCommand::Servers));
        let link = json!({"type": "resource_link", "name": "a.rs", "uri": "file:///a.rs"});
        let file = json!({"type": "resource", "resource": {"uri": "file:///b.rs", "text": "B"}});
        let with =
            |text: &str| read(json!([{"type": "text", "text": text}, &link, &file])).unwrap();
        let servers = with("/mcp servers");
        assert_eq!(servers.mcp_command(), Some(ServersCommand::Servers));
        assert_eq!(servers.attachments.len(), 1);
        assert_eq!(
            with("/review").command(),
            Some("review [a.rs](file:///a.rs) [b.rs](file:///b.rs)")
        );
        assert!(with("/etc/passwd is odd").is_plain && with("look at /mcp").is_plain);
        assert!(read(json!([])).is_err());
        assert!(read(json!([{"type": "text", "text": "  "}])).is_err());
    }
}

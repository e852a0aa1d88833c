//! Parses and limits the parameters of `sampling/createMessage`. All of them are untrusted.

use openclaw_content::Untrusted;
use openclaw_tools::{MediaKind, ToolName, check_media};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Maximum number of messages.
const MAX_MESSAGES: usize = 100;
/// Maximum text of all messages, including the system prompt and tool calls, in bytes.
const MAX_TEXT: usize = 256 * 1024;
/// Maximum number of images and audio clips, and the maximum size of each in bytes.
const MAX_MEDIA: usize = 8;
const MAX_MEDIA_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of tools, and the maximum size of their schemas together in bytes.
const MAX_TOOLS: usize = 64;
const MAX_SCHEMAS: usize = 256 * 1024;
/// Maximum number of stop sequences and hints, and the maximum length of each in bytes.
const MAX_WORDS: usize = 16;
const MAX_WORD: usize = 256;

/// The parameters of a sampling request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Params {
    pub(super) messages: Vec<SampledMessage>,
    pub(super) system_prompt: Option<Untrusted<String>>,
    pub(super) max_tokens: u32,
    pub(super) temperature: Option<f64>,
    pub(super) stop_sequences: Vec<String>,
    /// Names of models, or parts of them, best first.
    pub(super) hints: Vec<String>,
    pub(super) tools: Vec<OfferedTool>,
    pub(super) must_use_tool: bool,
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SampledMessage {
    /// With the role of the user.
    User(Vec<SamplingPart>),
    /// With the role of the assistant: what the server claims the model has answered before.
    Assistant { pieces: Vec<SamplingPart>, calls: Vec<SamplingCall> },
    /// Results of calls that the server has made.
    Results(Vec<SamplingResult>),
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SamplingPart {
    Text(Untrusted<String>),
    Media { kind: MediaKind, mime_type: &'static str, data: String },
}

/// A call that the model requested before.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SamplingCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Map<String, Value>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SamplingResult {
    pub(super) id: String,
    pub(super) pieces: Vec<SamplingPart>,
    pub(super) is_error: bool,
}

/// A tool of the server, executed by the server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OfferedTool {
    pub(super) name: ToolName,
    pub(super) description: String,
    pub(super) schema: Map<String, Value>,
}

impl Params {
    /// Parses the parameters.
    ///
    /// # Errors
    /// Returns what is wrong with them, for the server.
    pub(super) fn read(params: &Value) -> Result<Self, String> {
        let raw = RawParams::deserialize(params).map_err(|error| error.to_string())?;
        if raw.messages.is_empty() {
            return Err("no messages".to_owned());
        }
        if raw.messages.len() > MAX_MESSAGES {
            return Err(format!("more than {MAX_MESSAGES} messages"));
        }
        let mut room = RemainingLimits { text: MAX_TEXT, media: MAX_MEDIA };
        if let Some(prompt) = &raw.system_prompt {
            room.take(prompt.len())?;
        }
        let messages: Vec<SampledMessage> = raw
            .messages
            .into_iter()
            .map(|message| room.message(message))
            .collect::<Result<_, _>>()?;
        let words = |words: Option<Vec<String>>, what: &str| {
            let words = words.unwrap_or_default();
            let fits = |word: &String| !word.is_empty() && word.len() <= MAX_WORD;
            match words.len() <= MAX_WORDS && words.iter().all(fits) {
                true => Ok(words),
                false => Err(format!("more than {MAX_WORDS} {what}, or one that is too long")),
            }
        };
        let hints = raw.model_preferences.and_then(|it| it.hints).unwrap_or_default();
        let hints = hints.into_iter().filter_map(|hint| hint.name).collect();
        let mode = raw.tool_choice.and_then(|choice| choice.mode);
        let tools = match mode.as_deref() {
            // The model must not call tools, so it does not see them.
            Some("none") => Vec::new(),
            _ => offered(raw.tools.unwrap_or_default())?,
        };
        let max_tokens = u32::try_from(raw.max_tokens).unwrap_or(u32::MAX);
        if max_tokens == 0 {
            return Err("`maxTokens` must not be 0".to_owned());
        }
        Ok(Self {
            messages,
            system_prompt: raw.system_prompt.map(Untrusted::new),
            max_tokens,
            temperature: raw.temperature.filter(|it| it.is_finite() && *it >= 0.0),
            stop_sequences: words(raw.stop_sequences, "stop sequences")?,
            hints: words(Some(hints), "hints")?,
            must_use_tool: mode.as_deref() == Some("required") && !tools.is_empty(),
            tools,
        })
    }
}

/// What is left of the limits.
struct RemainingLimits {
    text: usize,
    media: usize,
}

impl RemainingLimits {
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.text.checked_sub(bytes);
        self.text = left.ok_or_else(|| format!("more than {} KiB of text", MAX_TEXT / 1024))?;
        Ok(())
    }

    fn message(&mut self, message: RawMessage) -> Result<SampledMessage, String> {
        let (mut pieces, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
        for block in message.content.into_vec() {
            match (block, message.role) {
                (Block::ToolUse { id, name, input }, Role::Assistant) => {
                    self.take(
                        id.len() + name.len() + Value::Object(input.clone()).to_string().len(),
                    )?;
                    calls.push(SamplingCall { id, name, input });
                }
                (
                    Block::ToolResult { tool_use_id, content, structured_content, is_error },
                    Role::User,
                ) => {
                    self.take(tool_use_id.len())?;
                    let mut parts = Vec::new();
                    for block in content {
                        parts.push(self.piece(block)?);
                    }
                    if let (true, Some(structured)) = (parts.is_empty(), structured_content) {
                        parts.push(self.text(structured.to_string())?);
                    }
                    let id = tool_use_id;
                    results.push(SamplingResult {
                        id,
                        pieces: parts,
                        is_error: is_error == Some(true),
                    });
                }
                (block, _) => pieces.push(self.piece(block)?),
            }
        }
        match (message.role, results.is_empty()) {
            (Role::Assistant, _) => Ok(SampledMessage::Assistant { pieces, calls }),
            (Role::User, true) => Ok(SampledMessage::User(pieces)),
            // 2025-11-25, sampling, "tool result content".
            (Role::User, false) if pieces.is_empty() => Ok(SampledMessage::Results(results)),
            (Role::User, false) => Err("tool results must be the only content".to_owned()),
        }
    }

    fn text(&mut self, text: String) -> Result<SamplingPart, String> {
        self.take(text.len())?;
        Ok(SamplingPart::Text(Untrusted::new(text)))
    }

    fn piece(&mut self, block: Block) -> Result<SamplingPart, String> {
        match block {
            Block::Text { text } => self.text(text),
            Block::Image { data, mime_type } => self.media(MediaKind::Image, &mime_type, data),
            Block::Audio { data, mime_type } => self.media(MediaKind::Audio, &mime_type, data),
            Block::Resource { resource } => match resource.get("text").and_then(Value::as_str) {
                Some(text) => self.text(text.to_owned()),
                None => Err("binary resources are not supported".to_owned()),
            },
            Block::ResourceLink { uri } => self.text(uri),
            Block::ToolUse { .. } => Err("`tool_use` requires the role `assistant`".to_owned()),
            Block::ToolResult { .. } => Err("`tool_result` requires the role `user`".to_owned()),
        }
    }

    fn media(
        &mut self,
        kind: MediaKind,
        declared: &str,
        data: String,
    ) -> Result<SamplingPart, String> {
        let left = self.media.checked_sub(1);
        self.media = left.ok_or_else(|| format!("more than {MAX_MEDIA} images and audio clips"))?;
        let mime_type = check_media(kind, declared, &data, MAX_MEDIA_BYTES)
            .map_err(|_| "invalid or unsupported image or audio clip".to_owned())?;
        Ok(SamplingPart::Media { kind, mime_type, data })
    }
}

fn offered(tools: Vec<RawTool>) -> Result<Vec<OfferedTool>, String> {
    if tools.len() > MAX_TOOLS {
        return Err(format!("more than {MAX_TOOLS} tools"));
    }
    let mut size = 0;
    let mut offered: Vec<OfferedTool> = Vec::with_capacity(tools.len());
    for RawTool { name, description, input_schema } in tools {
        let name = ToolName::new(&name).map_err(|_| "invalid tool name".to_owned())?;
        if offered.iter().any(|known| known.name == name) {
            return Err("duplicate tool name".to_owned());
        }
        let description = description.unwrap_or_default();
        size += description.len() + Value::Object(input_schema.clone()).to_string().len();
        if size > MAX_SCHEMAS {
            return Err(format!("more than {} KiB of tools", MAX_SCHEMAS / 1024));
        }
        offered.push(OfferedTool { name, description, schema: input_schema });
    }
    Ok(offered)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawParams {
    messages: Vec<RawMessage>,
    max_tokens: u64,
    #[serde(default)]
    system_prompt: Option<String>,
    #[serde(default)]
    model_preferences: Option<Preferences>,
    #[serde(default)]
    temperature: Option<f64>,
    #[serde(default)]
    stop_sequences: Option<Vec<String>>,
    #[serde(default)]
    tools: Option<Vec<RawTool>>,
    #[serde(default)]
    tool_choice: Option<Choice>,
}

/// The priorities for cost, speed and intelligence are ignored: an agent's models are configured.
#[derive(Deserialize)]
struct Preferences {
    #[serde(default)]
    hints: Option<Vec<Hint>>,
}

#[derive(Deserialize)]
struct Hint {
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    mode: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTool {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    input_schema: Map<String, Value>,
}

#[derive(Deserialize)]
struct RawMessage {
    role: Role,
    content: Content,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

/// One block, or since 2025-11-25 several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Several(Vec<Block>),
    One(Block),
}

impl Content {
    fn into_vec(self) -> Vec<Block> {
        match self {
            Self::One(block) => vec![block],
            Self::Several(blocks) => blocks,
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Block {
    Text {
        text: String,
    },
    Image {
        data: String,
        mime_type: String,
    },
    Audio {
        data: String,
        mime_type: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Map<String, Value>,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(default)]
        content: Vec<Block>,
        #[serde(default)]
        structured_content: Option<Value>,
        #[serde(default)]
        is_error: Option<bool>,
    },
    Resource {
        resource: Map<String, Value>,
    },
    ResourceLink {
        uri: String,
    },
}

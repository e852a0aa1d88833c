//! What a server reports about itself in the handshake.

use openclaw_content::{Untrusted, clean_line};
use rmcp::model::ServerPeerInfo;

use crate::inventory::listing::SKILLS;

/// Maximum length of a program's name and version, and of instructions, in characters.
const MAX_PROGRAM: usize = 200;
const MAX_INSTRUCTIONS: usize = 64 * 1024;

/// What a server reported about itself.
#[derive(Debug, Clone, Default)]
pub struct ServerSelfInfo {
    /// The negotiated protocol version.
    pub version: Option<String>,
    /// The server program's name and version.
    pub program: Option<String>,
    /// How to use the server. Untrusted: must be wrapped before a model sees it.
    pub instructions: Option<String>,
    /// The server's capabilities.
    pub offers: DeclaredCapabilities,
}

/// The capabilities that a server declares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeclaredCapabilities {
    /// Tools.
    pub tools: bool,
    /// Resources.
    pub resources: bool,
    /// Notifications about changes of a subscribed resource.
    pub resource_updates: bool,
    /// Prompts.
    pub prompts: bool,
    /// Log messages.
    pub logging: bool,
    /// Completion of arguments.
    pub completions: bool,
    /// Tool calls as tasks.
    pub tasks: bool,
    /// Skills (SEP-2640).
    pub skills: bool,
}

impl From<&ServerPeerInfo> for ServerSelfInfo {
    fn from(info: &ServerPeerInfo) -> Self {
        let program = info.server_info.as_ref();
        let capabilities = &info.capabilities;
        Self {
            version: Some(info.protocol_version.to_string()),
            program: program.map(|program| {
                let program = format!("{} {}", program.name, program.version);
                clean_line(Untrusted::new(&program), MAX_PROGRAM)
            }),
            instructions: info.instructions.as_ref().map(|text| {
                let end =
                    text.char_indices().nth(MAX_INSTRUCTIONS).map_or(text.len(), |(at, _)| at);
                text[..end].to_owned()
            }),
            offers: DeclaredCapabilities {
                tools: capabilities.tools.is_some(),
                resources: capabilities.resources.is_some(),
                resource_updates: capabilities
                    .resources
                    .as_ref()
                    .is_some_and(|resources| resources.subscribe == Some(true)),
                prompts: capabilities.prompts.is_some(),
                logging: capabilities.logging.is_some(),
                completions: capabilities.completions.is_some(),
                tasks: capabilities.supports_tasks(),
                skills: capabilities
                    .extensions
                    .as_ref()
                    .is_some_and(|extensions| extensions.contains_key(SKILLS)),
            },
        }
    }
}

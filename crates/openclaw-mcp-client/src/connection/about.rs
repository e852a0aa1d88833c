//! What a server reports about itself in the handshake.

use std::collections::BTreeMap;

use openclaw_content::{Untrusted, clean_line};
use rmcp::model::ServerPeerInfo;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::listing::SKILLS;

/// Maximum length of a program's name and version, and of instructions, in characters.
const MAX_PROGRAM: usize = 200;
const MAX_INSTRUCTIONS: usize = 64 * 1024;
/// Maximum number of extensions of the protocol, length of a name, and size of the settings of one.
const MAX_EXTENSIONS: usize = 32;
const MAX_EXTENSION_NAME: usize = 128;
const MAX_SETTINGS: usize = 4 * 1024;

/// What a server reported about itself.
#[derive(Debug, Clone, Default)]
pub struct ServerSelfInfo {
    /// The negotiated protocol version.
    pub version: Option<String>,
    /// The server program's name and version.
    pub program: Option<String>,
    /// What it tells its clients' models and programs.
    pub introduction: ServerIntroduction,
    /// The server's capabilities.
    pub offers: DeclaredCapabilities,
}

/// What a server tells its clients in the handshake. Untrusted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerIntroduction {
    /// How to use the server: must be wrapped before a model sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The extensions of the protocol that it supports, with their settings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<String, Map<String, Value>>,
}

impl ServerIntroduction {
    /// Removes the extensions whose name or settings, as JSON, must not be shown.
    pub(super) fn withhold(&mut self, is_secret: impl Fn(&str) -> bool) {
        self.extensions.retain(|name, settings| {
            let json = serde_json::to_string(settings).unwrap_or_default();
            !is_secret(name) && !is_secret(&json)
        });
    }
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
            introduction: ServerIntroduction {
                instructions: info.instructions.as_ref().map(|text| {
                    let end = text.char_indices().nth(MAX_INSTRUCTIONS);
                    text[..end.map_or(text.len(), |(at, _)| at)].to_owned()
                }),
                extensions: extensions(info),
            },
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

fn extensions(info: &ServerPeerInfo) -> BTreeMap<String, Map<String, Value>> {
    let is_name = |name: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
        name.len() <= MAX_EXTENSION_NAME && name.bytes().all(is_part)
    };
    let fits = |settings: &Map<String, Value>| {
        serde_json::to_string(settings).is_ok_and(|json| json.len() <= MAX_SETTINGS)
    };
    let declared = info.capabilities.extensions.iter().flatten();
    let usable = declared.filter(|(name, settings)| is_name(name) && fits(settings));
    usable.take(MAX_EXTENSIONS).map(|(name, settings)| (name.clone(), settings.clone())).collect()
}

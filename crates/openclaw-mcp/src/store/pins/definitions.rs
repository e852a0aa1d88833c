//! The definitions of tools as they were seen or approved: a later change can then be shown, not only
//! noticed. One file per server of an agent, which is read only for that.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use openclaw_tools::ToolFingerprint;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::difference::{difference, whole};
use super::{Approvals, Pins, ServerKey, fingerprint};
use openclaw_mcp_client::listing::{Hints, ListedTool};

/// A larger definition is not kept.
const MAX_DEFINITION: usize = 64 * 1024;
/// A larger file is invalid; definitions that do not fit are not kept.
const MAX_FILE: usize = 8 * 1024 * 1024;

/// What a user approves about a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Definition {
    /// Set for the definition of a tool.
    fingerprint: Option<ToolFingerprint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) hints: Hints,
    pub(super) input_schema: Map<String, Value>,
}

impl Definition {
    pub(super) fn new(tool: &ListedTool) -> Self {
        Self {
            fingerprint: Some(fingerprint(tool)),
            title: tool.title.clone(),
            description: tool.description.clone(),
            hints: tool.hints,
            input_schema: (*tool.input_schema).clone(),
        }
    }
}

/// By tool. A definition of a later version is not read.
type Definitions = BTreeMap<String, Value>;

impl Pins {
    /// Returns how a tool differs from what was seen or approved, as lines that begin with `+` or
    /// `-`: all of the tool if that was not kept. `None` if there are too many. Reads a file.
    pub(crate) fn changes(&self, server: &ServerKey, tool: &ListedTool) -> Option<Vec<String>> {
        let approved = self.known().approved(server, &tool.name).map(|it| it.fingerprint);
        let mut kept = read(&self.definitions(server)).unwrap_or_default();
        let before = kept.remove(&tool.name).and_then(|it| serde_json::from_value(it).ok());
        let before = before.filter(|it: &Definition| it.fingerprint == approved);
        let after = Definition::new(tool);
        match before {
            Some(before) => difference(&before, &after),
            None => whole(&after),
        }
    }

    /// Keeps the definition of a tool that was approved, in the background.
    pub(crate) fn keep_definition(self: &Arc<Self>, server: &ServerKey, tool: &Arc<ListedTool>) {
        let pins = Arc::clone(self);
        let server = server.clone();
        let tool = Arc::clone(tool);
        self.saving.spawn_blocking(move || {
            let approvals = pins.known().approvals.clone();
            pins.save_definitions(&server, &[tool], &approvals);
        });
    }

    /// Keeps definitions, and drops those of tools that are not known any more. Failures are logged
    /// only: changes are still noticed without.
    pub(super) fn save_definitions(
        &self,
        server: &ServerKey,
        tools: &[Arc<ListedTool>],
        approvals: &Approvals,
    ) {
        let save = || -> io::Result<()> {
            let path = self.definitions(server);
            let _turn = super::file::take_turn(&path, self.patience)?;
            let mut kept = read(&path).unwrap_or_default();
            let of_server = approvals.get(server);
            kept.retain(|name, _| of_server.is_some_and(|known| known.contains_key(name)));
            for tool in tools {
                let definition = Definition::new(tool);
                let is_small = serde_json::to_vec(&definition)?.len() <= MAX_DEFINITION;
                let value = serde_json::to_value(&definition)?;
                if is_small {
                    kept.insert(tool.name.clone(), value);
                } else {
                    kept.remove(&tool.name);
                }
            }
            let text = serde_json::to_vec(&kept)?;
            if text.len() > MAX_FILE {
                return Err(io::Error::from(io::ErrorKind::FileTooLarge));
            }
            // After a power cut, changes of these tools are noticed but not shown.
            openclaw_files::replace_unsynced(&path, &text)
        };
        if let Err(error) = save() {
            tracing::info!(server = %server.server, %error, "definitions of tools are not kept");
        }
    }

    /// The file of a server's definitions.
    fn definitions(&self, server: &ServerKey) -> PathBuf {
        let mut hash = Sha256::new();
        for part in [&server.agent, &server.server, &server.identity.to_string()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let name = HEXLOWER.encode(&hash.finalize()[..16]);
        self.path.with_file_name("definitions").join(name).with_extension("json")
    }
}

fn read(path: &Path) -> Option<Definitions> {
    let text = openclaw_files::read(path, MAX_FILE as u64).ok()?;
    serde_json::from_slice(&text).ok()
}

//! Files in the state folder that persist between runs.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_mcp::server::StorageFolders;
use openclaw_mcp::services::CallServices;
use openclaw_mcp::store::pins::Pins;
use openclaw_mcp::store::spill::{Spill, SpillLimits};
use openclaw_oauth::store::{FileStore, KeyOptions};
use openclaw_secrets::Redactor;
use openclaw_tools::audit::{Audit, AuditOptions};

use crate::error::CommandError;
use crate::output::Output;

/// The folder of the cached listings of servers.
pub(crate) fn catalogue(state: &Path) -> PathBuf {
    state.join("mcp").join("catalogue")
}

/// The folder of the logs, of servers and of calls.
pub(crate) fn logs(state: &Path) -> PathBuf {
    state.join("logs")
}

pub(crate) fn folders(state: &Path) -> StorageFolders {
    StorageFolders { catalogue: Some(catalogue(state)), logs: Some(logs(state)) }
}

/// The file of the tool approvals.
pub(crate) fn pins(state: &Path) -> PathBuf {
    state.join("mcp").join("pins.json")
}

/// The stored logins at servers. Nothing is read until one is needed.
pub(crate) fn logins(state: &Path, options: KeyOptions) -> FileStore {
    FileStore::new(state, options)
}

/// Opens the tool approvals and, for a command that makes calls, the audit log. Unreadable
/// approvals are an error: a changed tool would go unnoticed. Anything else is a warning.
pub(crate) fn services(
    state: &Path,
    answers: bool,
    redactor: &Redactor,
    output: &mut Output,
) -> Result<CallServices, CommandError> {
    let file = pins(state);
    let pins = Pins::load(&file).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::Unsupported => "run that version, or set another `OPENCLAW_STATE_DIR`",
            _ => "set `OPENCLAW_STATE_DIR` to a folder that this user can read and write",
        };
        CommandError::failed(format!("cannot read tool approvals from {}", file.display()))
            .cause(error.to_string())
            .hint(hint)
    })?;
    if let Some(aside) = pins.set_aside() {
        output.warning(&format!(
            "cannot parse the tool approvals; the file was moved to {}",
            aside.display()
        ));
    }
    let mut services = CallServices { pins: Some(Arc::new(pins)), ..CallServices::none() };
    if !answers {
        return Ok(services);
    }
    if let Err(error) = openclaw_files::make_folder(&logs(state)) {
        let state = state.display();
        output.warning(&format!("cannot write to {state}: {error}"));
        return Ok(services);
    }
    let options = AuditOptions { redactor: redactor.clone(), ..AuditOptions::default() };
    let file = logs(state).join("audit.jsonl");
    match Audit::to_file(&file, options) {
        Ok(audit) => services.audit = audit,
        Err(error) => {
            output.warning(&format!("cannot write the audit log {}: {error}", file.display()));
        }
    }
    Ok(services)
}

/// Opens the store of results that are too large for a model.
pub(crate) fn spill(state: &Path, output: &mut Output) -> Option<Arc<Spill>> {
    let folder = state.join("spill");
    match Spill::open(&folder, SpillLimits::default()) {
        Ok(spill) => Some(Arc::new(spill)),
        Err(error) => {
            output.warning(&format!("cannot store large results in {}: {error}", folder.display()));
            None
        }
    }
}

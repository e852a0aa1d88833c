//! A folder that is home, state folder and working folder of the binary under test.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use openclaw_testkit::processes;

/// How long processes may take to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a command in this folder, without the variables of the developer.
pub(crate) fn prepare<'c>(folder: &Path, command: &'c mut Command) -> &'c mut Command {
    for name in ["OPENCLAW_LOG", "OPENCLAW_CONFIG_PATH", "OPENCLAW_GATEWAY_TOKEN"] {
        command.env_remove(name);
    }
    for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"] {
        command.env_remove(name);
    }
    command
        .current_dir(folder)
        .env("HOME", folder)
        .env("OPENCLAW_STATE_DIR", folder)
        // No test uses the keychain of the user.
        .env("OPENCLAW_KEYCHAIN", "off")
        .env("NO_COLOR", "1")
}

/// Asserts that no process with this folder in its command line is left.
pub(crate) fn assert_nothing_left(folder: &Path) {
    let tag = folder.to_str().unwrap_or_default();
    let left = processes::wait_until_none(PATIENCE, || processes::mentioning(tag));
    assert_eq!(left, Vec::<u32>::new());
}

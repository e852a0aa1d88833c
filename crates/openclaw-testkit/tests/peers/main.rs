//! The third-party servers: they are installed, and support the expected versions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod http;
mod stdio;

use openclaw_testkit::Peers;

#[test]
#[should_panic(expected = "run `cargo xtask peers`")]
fn the_error_for_a_missing_server_says_how_to_install_it() {
    let folder = tempfile::tempdir().unwrap();
    Peers::in_folder(folder.path()).everything();
}

//! The servers of the registries: are they there, and what do they speak?
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod http;
mod stdio;

use openclaw_testkit::Peers;

#[test]
#[should_panic(expected = "run `cargo xtask peers`")]
fn a_server_that_is_not_installed_is_named_with_the_way_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    Peers::in_folder(folder.path()).everything();
}

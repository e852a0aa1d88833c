//! Runs the transcripts in `cmd/`, in the README and in the documentation, and compares the output.
//!
//! `TRYCMD=overwrite cargo test -p openclaw --test cli` updates them.

#![allow(clippy::unwrap_used, reason = "these are tests")]

/// Transcripts that talk to servers, which write to the state folder.
const WITH_SERVERS: [&str; 7] = [
    "crates/openclaw/tests/cmd/servers.md",
    "crates/openclaw/tests/cmd/call.md",
    "docs/agent.md",
    "crates/openclaw/tests/cmd/front.md",
    "docs/quick-start.md",
    "docs/servers.md",
    "docs/troubleshooting.md",
];

fn cases() -> trycmd::TestCases {
    // The README's commands are meant to be run in its folder.
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    let cases = trycmd::TestCases::new();
    cases
        .env("HOME", "/home/user")
        .env("NO_COLOR", "1")
        .env("OPENCLAW_KEYCHAIN", "off")
        .env("GITHUB_TOKEN", "ghp_0123456789abcdef")
        // So that no files of other programs on this machine are found.
        .env("CLAUDE_CONFIG_DIR", "claude")
        .env("CODEX_HOME", "codex")
        .env("XDG_CONFIG_HOME", "xdg");
    cases
}

#[test]
fn transcripts_are_true() {
    let cases = cases();
    cases.case("crates/openclaw/tests/cmd/*.md").case("docs/*.md");
    for file in WITH_SERVERS {
        cases.skip(file);
    }
}

#[test]
fn transcripts_with_servers_are_true() {
    let state = tempfile::tempdir().unwrap();
    let cases = cases();
    cases.env("OPENCLAW_STATE_DIR", state.path().to_str().unwrap());
    for file in WITH_SERVERS {
        cases.case(file);
    }
    cases.case("README.md");
    // The cases run on drop, while the folder must still exist.
    drop(cases);
}

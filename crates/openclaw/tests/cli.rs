//! The program as a user runs it: the transcripts in `cmd/`, the README and the documentation are
//! run, and must print what they say.
//!
//! `TRYCMD=overwrite cargo test -p openclaw --test cli` writes what is printed into them.

#[test]
fn transcripts_are_true() {
    // The README's commands are meant to be run where it lies.
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    trycmd::TestCases::new()
        .env("HOME", "/home/user")
        .env("NO_COLOR", "1")
        .env("GITHUB_TOKEN", "ghp_0123456789abcdef")
        // Where other programs keep their files: nobody's own are to be found.
        .env("CLAUDE_CONFIG_DIR", "claude")
        .env("CODEX_HOME", "codex")
        .env("XDG_CONFIG_HOME", "xdg")
        .case("crates/openclaw/tests/cmd/*.md")
        .case("README.md")
        .case("docs/*.md");
}

//! On a terminal: prompts, approvals, progress lines, and no control characters from servers.

use openclaw_testkit::{Ask, Script, TestServer, Tool};
use serde_json::json;

use crate::support::{Place, at_a_terminal, conversation, typed_ahead};

#[test]
fn control_characters_on_a_servers_stderr_are_escaped() {
    let script = Script::new().exit_at_start(1).stderr_line("\u{1b}[31mred\u{1b}[0m \u{7}");
    let place = Place::new(&[("test", &script)]);
    for args in [&["mcp", "call", "test", "x"][..], &["mcp", "doctor"], &["mcp", "logs", "test"]] {
        let (_, shown) = at_a_terminal(&place, "never asked", "", args);
        assert!(shown.contains("red"), "{args:?}: {shown:?}");
        assert!(!shown.contains("\u{1b}[31mred"), "{args:?}: {shown:?}");
        assert!(!shown.contains('\u{7}'), "{args:?}: {shown:?}");
    }
}

#[test]
fn json_of_a_server_is_escaped_on_a_terminal_and_unchanged_in_a_pipe() {
    let text = "a\u{9b}2J\u{7f}\u{202e}b\u{200f}\u{2069}é";
    let place = Place::new(&[("test", &Script::new())]);
    let args = ["--json", "mcp", "call", "test", "echo", &format!("text={text}")];
    let (exit, shown) = at_a_terminal(&place, "never asked", "", &args);
    assert_eq!(exit, 0, "{shown:?}");
    assert!(shown.contains(r"a\u009b2J\u007f\u202eb\u200f\u2069é"), "{shown:?}");
    let is_raw = |c: char| c != 'é' && !c.is_ascii() || c == '\u{7f}';
    assert!(!shown.contains(is_raw), "{shown:?}");
    let (exit, stdout, _) = place.said(&args);
    assert!(exit == 0 && stdout.contains(text), "{stdout:?}");
}

#[test]
fn a_server_cannot_write_to_the_terminal() {
    let (program, args) = TestServer::stdio(&Script::new());
    let script = "printf SPOOFED >/dev/tty; exec \"$0\" \"$@\"";
    let words = [program.to_str().unwrap().to_owned()].into_iter().chain(args);
    let args: Vec<String> = ["-c".to_owned(), script.to_owned()].into_iter().chain(words).collect();
    let config = json!({ "mcp": { "servers": { "test": { "command": "sh", "args": args } } } });
    let place = Place::configured(&config);
    let (exit, shown) = at_a_terminal(&place, "never asked", "", &CALL);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains("hi") && !shown.contains("SPOOFED"), "{shown}");
}

const CALL: [&str; 5] = ["mcp", "call", "test", "echo", "text=hi"];

#[test]
fn an_elicitation_is_prompted_on_the_terminal() {
    let place = Place::new(&[("test", &Script::new().ask(Ask::Elicitation))]);
    let (exit, shown) = at_a_terminal(&place, "name: ", "Ada", &CALL);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains("asks: What is your name?"), "{shown}");
    assert!(shown.contains(r#""action":"accept","content":{"name":"Ada"}"#), "{shown}");
    let (_, shown) = at_a_terminal(&place, "name: ", "", &CALL);
    assert!(shown.contains(r#""action":"decline""#), "an empty answer declines: {shown}");
}

#[test]
fn the_url_of_an_elicitation_is_shown_in_full_and_needs_confirmation() {
    let place = Place::new(&[("test", &Script::new().ask(Ask::ElicitationUrl))]);
    for (answer, action) in [("y", "accept"), ("", "decline"), ("perhaps", "decline")] {
        let (_, shown) = at_a_terminal(&place, "[y/N] ", answer, &CALL);
        assert!(shown.contains("https://example.com/login?state=1"), "{shown}");
        assert!(shown.contains(&format!(r#""action":"{action}""#)), "{answer}: {shown}");
    }
}

/// A server whose tool has changed since it was called.
fn changed() -> Place {
    let tool = |says: &str| Script::new().tools([Tool::new("echo").description(says)]);
    let place = Place::new(&[("test", &tool("Answers."))]);
    place.ok(&CALL);
    place.configure(&[("test", &tool("Answers, and more."))]);
    place
}

#[test]
fn a_changed_tool_needs_approval_on_the_terminal() {
    let place = changed();
    let (exit, shown) = at_a_terminal(&place, "[y/N] ", "n", &CALL);
    assert_eq!(exit, 4, "{shown}");
    assert!(shown.contains("- Answers.") && shown.contains("+ Answers, and more."), "{shown}");
    assert_eq!(at_a_terminal(&place, "[y/N] ", "y", &CALL).0, 0);
    assert_eq!(place.said(&CALL).0, 0, "the changed tool is approved");
}

#[test]
fn a_slow_start_is_shown_on_a_terminal_and_erased() {
    let place = Place::new(&[("test", &Script::new().start_delay_ms(2_000))]);
    let (exit, shown) = at_a_terminal(&place, "never asked", "", &["mcp", "tools", "test"]);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains("\u{1b}[J") && shown.contains(" s\u{1b}"), "{shown:?}");
    let (_, stdout, stderr) = place.said(&["mcp", "tools", "test"]);
    assert!(stdout.starts_with(" mcp_test_add"), "{stdout}");
    assert_eq!(stderr, "", "nothing without a terminal");
}

/// A call that reports its progress.
const PROGRESSING: [&str; 6] = ["mcp", "call", "test", "sleep", "ms=3000", "every=100"];

/// Asserts that the progress of a call is shown on a terminal, and erased.
pub(crate) fn assert_progress_is_shown(place: &Place) {
    let (exit, shown) = at_a_terminal(place, "never asked", "", &PROGRESSING);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains("test/sleep") && shown.contains('%'), "{shown:?}");
    let last = shown.rfind("\u{1b}[J").unwrap();
    assert!(shown[last..].contains("slept") && !shown[last..].contains('%'), "{shown:?}");
}

#[test]
fn the_progress_of_a_call_is_shown_on_a_terminal_and_erased() {
    let place = Place::new(&[("test", &Script::new())]);
    assert_progress_is_shown(&place);
    let (exit, _, stderr) = place.said(&PROGRESSING);
    assert_eq!((exit, stderr.as_str()), (0, ""), "nothing without a terminal");
}

#[test]
fn input_typed_before_a_prompt_is_discarded() {
    let (exit, shown) = typed_ahead(&changed(), "y\ny\n", "[y/N] ", "n", &CALL);
    assert_eq!(exit, 4, "{shown}");
}

const TURN: [&str; 3] = ["agent", "--message", r#"/call mcp_test_keep {"text":"hi"}"#];

/// A server with a tool that needs approval.
fn asking() -> Place {
    let kept = serde_json::json!({ "content": [{ "type": "text", "text": "it is kept" }] });
    Place::new(&[("test", &Script::new().tools([Tool::new("keep").result(&kept)]))])
}

#[test]
fn keys_pressed_before_the_prompt_do_not_approve_a_call() {
    let place = asking();
    let (_, shown) = typed_ahead(&place, "a\na\n", "[n] no ", "n", &TURN);
    assert!(shown.contains("The user denied this call"), "{shown}");
    assert!(!shown.contains("it is kept"), "{shown}");
    let (_, shown) = at_a_terminal(&place, "[n] no ", "y", &TURN);
    assert!(shown.contains("it is kept"), "{shown}");
}

#[test]
fn what_follows_an_interrupted_question_begins_a_new_line() {
    let (exit, shown) = conversation(&asking(), &[("instead) ", "\u{3}")], &TURN);
    assert_eq!(exit, 130, "{shown}");
    let (_, after) = shown.split_once("instead) ").unwrap();
    assert!(after.trim_start_matches("^C").starts_with("\r\n"), "{after:?}");
}

#[test]
fn the_prompt_for_approval_shows_the_whole_call() {
    let text = format!("{}\u{202e}   THE END", "x".repeat(300));
    let message = format!("/call mcp_test_keep {}", serde_json::json!({ "text": text }));
    let (_, shown) = at_a_terminal(&asking(), "[n] no ", "n", &["agent", "--message", &message]);
    let question = shown.split("[n] no ").next().unwrap();
    assert!(question.contains("\\u{202e}   THE END\""), "{shown}");
    assert!(!shown.contains('\u{202e}'), "{shown}");
}

#[test]
fn an_invalid_number_prompts_again() {
    let place = Place::new(&[]);
    std::fs::create_dir(place.path(".cursor")).unwrap();
    let found = r#"{ "mcpServers": { "found": { "command": "found-mcp" } } }"#;
    std::fs::write(place.path(".cursor/mcp.json"), found).unwrap();
    let config = place.path("openclaw.json");
    let args = ["--config", config.to_str().unwrap(), "mcp", "import", "--from", "cursor"];
    let steps = [("for none): ", "9\n"), ("for none): ", "1\n")];
    let (exit, shown) = conversation(&place, &steps, &args);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains("`9` is not in the list"), "{shown}");
    assert!(std::fs::read_to_string(config).unwrap().contains("found-mcp"), "{shown}");
}

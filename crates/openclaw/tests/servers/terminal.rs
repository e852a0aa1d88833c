//! At a terminal: questions, approvals, live lines, and nothing that commands it.

use openclaw_testkit::{Ask, Script, TestServer, Tool};
use serde_json::json;

use crate::support::{Place, at_a_terminal, conversation, typed_ahead};

#[test]
fn what_servers_print_commands_no_terminal() {
    let script = Script::new().exit_at_start(1).stderr_line("\u{1b}[31mred\u{1b}[0m \u{7}");
    let place = Place::new(&[("test", &script)]);
    for args in [&["mcp", "call", "test", "x"][..], &["mcp", "doctor"], &["mcp", "logs", "test"]] {
        let (_, shown) = at_a_terminal(&place, "never asked", "", args);
        assert!(shown.contains("red"), "{args:?}: {shown:?}");
        assert!(
            !shown.contains("\u{1b}[31mred") && !shown.contains('\u{7}'),
            "{args:?}: {shown:?}"
        );
    }
}

#[test]
fn a_server_cannot_write_to_the_terminal() {
    let place = Place::new(&[]);
    let (program, args) = TestServer::stdio(&Script::new());
    let script = "printf SPOOFED >/dev/tty; exec \"$0\" \"$@\"";
    let words = [program.to_str().unwrap().to_owned()].into_iter().chain(args);
    let args: Vec<String> = ["-c".to_owned(), script.to_owned()].into_iter().chain(words).collect();
    let config = json!({ "mcp": { "servers": { "test": { "command": "sh", "args": args } } } });
    std::fs::write(place.path("openclaw.json"), config.to_string()).unwrap();
    let (exit, shown) = at_a_terminal(&place, "never asked", "", &CALL);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains("hi") && !shown.contains("SPOOFED"), "{shown}");
}

const CALL: [&str; 5] = ["mcp", "call", "test", "echo", "text=hi"];

#[test]
fn a_question_of_a_server_is_asked_at_the_terminal() {
    let place = Place::new(&[("test", &Script::new().ask(Ask::Elicitation))]);
    let (exit, shown) = at_a_terminal(&place, "name: ", "Ada", &CALL);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains("asks: What is your name?"), "{shown}");
    assert!(shown.contains(r#""action":"accept","content":{"name":"Ada"}"#), "{shown}");
    let (_, shown) = at_a_terminal(&place, "name: ", "", &CALL);
    assert!(shown.contains(r#""action":"decline""#), "an empty answer is a no: {shown}");
}

#[test]
fn an_address_to_visit_is_shown_in_full_and_needs_a_yes() {
    let place = Place::new(&[("test", &Script::new().ask(Ask::ElicitationUrl))]);
    for (answer, action) in [("y", "accept"), ("", "decline"), ("perhaps", "decline")] {
        let (_, shown) = at_a_terminal(&place, "[y/N] ", answer, &CALL);
        assert!(shown.contains("https://example.com/login?state=1"), "{shown}");
        assert!(shown.contains(&format!(r#""action":"{action}""#)), "{answer}: {shown}");
    }
}

#[test]
fn a_changed_tool_is_asked_about_at_the_terminal() {
    let tool = |says: &str| Script::new().tools([Tool::new("echo").description(says)]);
    let place = Place::new(&[("test", &tool("Answers."))]);
    assert_eq!(place.said(&CALL).0, 0);
    place.configure(&[("test", &tool("Answers, and more."))]);
    let (exit, shown) = at_a_terminal(&place, "[y/N] ", "n", &CALL);
    assert_eq!(exit, 4, "{shown}");
    assert!(shown.contains("new description: Answers, and more."), "{shown}");
    assert_eq!(at_a_terminal(&place, "[y/N] ", "y", &CALL).0, 0);
    assert_eq!(place.said(&CALL).0, 0, "it is approved as it is now");
}

#[test]
fn a_slow_start_is_shown_on_a_terminal_and_nothing_of_it_stays() {
    let place = Place::new(&[("test", &Script::new().start_delay_ms(2_000))]);
    let (exit, shown) = at_a_terminal(&place, "never asked", "", &["mcp", "tools", "test"]);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains("\u{1b}[J") && shown.contains(" s\u{1b}"), "{shown:?}");
    let (_, stdout, stderr) = place.said(&["mcp", "tools", "test"]);
    assert!(stdout.starts_with(" mcp_test_add"), "{stdout}");
    assert_eq!(stderr, "", "programs see nothing of it");
}

#[test]
fn the_progress_of_a_call_is_shown_on_a_terminal_and_nothing_of_it_stays() {
    let place = Place::new(&[("test", &Script::new())]);
    let args = ["mcp", "call", "test", "sleep", "ms=3000", "every=100"];
    let (exit, shown) = at_a_terminal(&place, "never asked", "", &args);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains("test/sleep") && shown.contains("%"), "{shown:?}");
    let last = shown.rfind("\u{1b}[J").unwrap();
    assert!(shown[last..].contains("slept") && !shown[last..].contains('%'), "{shown:?}");
    let (exit, _, stderr) = place.said(&args);
    assert_eq!((exit, stderr.as_str()), (0, ""), "programs see nothing of it");
}

#[test]
fn what_was_typed_before_a_question_is_no_answer_to_it() {
    let tool = |says: &str| Script::new().tools([Tool::new("echo").description(says)]);
    let place = Place::new(&[("test", &tool("Answers."))]);
    assert_eq!(place.said(&CALL).0, 0);
    place.configure(&[("test", &tool("Answers, and more."))]);
    let (exit, shown) = typed_ahead(&place, "y\ny\n", "[y/N] ", "n", &CALL);
    assert_eq!(exit, 4, "{shown}");
}

const TURN: [&str; 3] = ["agent", "--message", r#"/call mcp_test_keep {"text":"hi"}"#];

/// A tool that may change something: it is asked about.
fn asking() -> Place {
    let kept = serde_json::json!({ "content": [{ "type": "text", "text": "it is kept" }] });
    Place::new(&[("test", &Script::new().tools([Tool::new("keep").result(&kept)]))])
}

#[test]
fn keys_pressed_while_the_model_thinks_allow_nothing() {
    let place = asking();
    let (_, shown) = typed_ahead(&place, "a\na\n", "[n] no ", "n", &TURN);
    assert!(
        shown.contains("The user denied this call") && !shown.contains("it is kept"),
        "{shown}"
    );
    let (_, shown) = at_a_terminal(&place, "[n] no ", "y", &TURN);
    assert!(shown.contains("it is kept"), "{shown}");
}

#[test]
fn whoever_agrees_to_a_call_sees_all_of_it() {
    let text = format!("{}\u{202e}   THE END", "x".repeat(300));
    let message = format!("/call mcp_test_keep {}", serde_json::json!({ "text": text }));
    let (_, shown) = at_a_terminal(&asking(), "[n] no ", "n", &["agent", "--message", &message]);
    let question = shown.split("[n] no ").next().unwrap();
    assert!(question.contains("\\u{202e}   THE END\""), "{shown}");
    assert!(!shown.contains('\u{202e}'), "{shown}");
}

#[test]
fn a_wrong_number_is_no_reason_to_begin_again() {
    let place = Place::new(&[]);
    std::fs::create_dir(place.path(".cursor")).unwrap();
    let found = r#"{ "mcpServers": { "found": { "command": "found-mcp" } } }"#;
    std::fs::write(place.path(".cursor/mcp.json"), found).unwrap();
    let config = place.path("openclaw.json");
    let args = ["--config", config.to_str().unwrap(), "mcp", "import", "--from", "cursor"];
    let steps = [("for none) ", "9\n"), ("for none) ", "1\n")];
    let (exit, shown) = conversation(&place, &steps, &args);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains("`9` is not one of them"), "{shown}");
    assert!(std::fs::read_to_string(config).unwrap().contains("found-mcp"), "{shown}");
}

//! Elicitations during a chat, standalone and through a gateway (T11).

use openclaw_testkit::{Ask, Script};

use crate::support::{Place, chat, command_on_a_terminal, conversation, conversation_with};
use crate::with_gateway::gateway;

const CALL: &str = "/call mcp_x_echo {\"text\":\"hi\"}\r";

/// A chat with a server that elicits during every call, and returns the answer.
fn asking(ask: Ask) -> Place {
    Place::offline(&Script::new().ask(ask), "never")
}

/// Calls the tool, types the answers at their prompts, and exits.
fn shown(place: &Place, answers: &[(&str, &str)]) -> String {
    let mut steps = vec![("› ", CALL)];
    steps.extend(answers);
    steps.extend([("returned:", ""), ("› ", "/exit\r")]);
    chat(place, &steps)
}

#[test]
fn an_elicitation_is_answered_during_a_turn() {
    let place = asking(Ask::Elicitation);
    let answers = [
        ("Ada\r", r#""action":"accept","content":{"name":"Ada"}"#),
        ("\r", r#""action":"decline""#),
        ("\u{4}", r#""action":"cancel""#),
    ];
    for is_beside in [false, true] {
        let running = is_beside.then(|| gateway(&place));
        for (typed, told) in answers {
            let shown = shown(&place, &[("  name: ", typed)]);
            assert!(shown.contains("asks: What is your name?"), "{shown}");
            assert!(shown.contains(told), "{told}: {shown}");
            let place = if is_beside { "using the running gateway" } else { "in this process" };
            assert!(shown.contains(place), "{shown}");
        }
        drop(running);
    }
    place.assert_nothing_left();
}

#[test]
fn in_a_chat_a_url_is_shown_in_full_and_needs_confirmation() {
    let place = asking(Ask::ElicitationUrl);
    for (typed, told) in [("y\r", r#""action":"accept""#), ("\r", r#""action":"decline""#)] {
        let shown = shown(&place, &[("[y/N] ", typed)]);
        assert!(shown.contains("    https://example.com/login?state=1"), "{shown}");
        assert!(shown.contains(told), "{told}: {shown}");
    }
}

#[test]
fn ctrl_c_at_a_prompt_cancels_the_turn_but_not_the_chat() {
    let place = asking(Ask::Elicitation);
    let steps = [("› ", CALL), ("  name: ", "\u{3}"), ("cancelled", ""), ("› ", "/exit\r")];
    let shown = chat(&place, &steps);
    assert!(!shown.contains("returned:"), "{shown}");
}

const SLEEP: &str = "/call mcp_x_sleep {\"ms\":2000}\r";

/// What the line editor writes at the end of a prompt (bracketed paste off). A prompt alone may be
/// drawn again, and the editor drops the keys that arrive together with Ctrl-C.
const PROMPT_ENDED: &str = "\u{1b}[?2004l";

/// A chat with a server whose calls take a while.
fn slow() -> Place {
    Place::offline(&Script::new(), "never")
}

#[test]
fn text_that_is_typed_during_a_turn_goes_into_the_next_prompt() {
    let steps = [
        ("› ", SLEEP),
        ("mcp_x_sleep(", "echo one"),
        ("returned:", ""),
        ("echo one", "\r"),
        ("one", "/exit\r"),
    ];
    let shown = chat(&slow(), &steps);
    let (turn, rest) = shown.split_once("returned:").unwrap();
    assert!(!turn.contains("echo one"), "it is not echoed into the output: {shown}");
    assert!(rest.contains("echo one"), "{shown}");
}

#[test]
fn a_line_that_is_typed_during_a_turn_is_sent_after_it() {
    let steps = [("› ", SLEEP), ("mcp_x_sleep(", "/session\r/exit\r")];
    let shown = chat(&slow(), &steps);
    let (_, rest) = shown.split_once("returned:").unwrap();
    assert!(rest.contains("› /session") && rest.contains("current session:"), "{shown}");
}

#[test]
fn text_that_is_typed_before_ctrl_c_is_not_lost_and_not_sent() {
    let long = SLEEP.replace("2000", "60000");
    let steps = [
        ("› ", long.as_str()),
        ("mcp_x_sleep(", "/session\rmore\u{3}"),
        ("✗ cancelled", ""),
        ("more", "\u{15}\u{3}"),
        (PROMPT_ENDED, ""),
        ("› ", "/exit\r"),
    ];
    let shown = chat(&slow(), &steps);
    let (_, rest) = shown.split_once("✗ cancelled").unwrap();
    assert!(rest.contains("/session") && !rest.contains("current session:"), "{shown}");
}

#[test]
fn three_times_ctrl_c_at_an_empty_prompt_exits() {
    let steps = [
        ("› ", "text"),
        ("text", "\u{3}"),
        (PROMPT_ENDED, ""),
        ("› ", "\u{3}"),
        ("twice more", ""),
        ("› ", "\u{3}"),
        ("once more", ""),
        ("› ", "\u{3}"),
    ];
    chat(&slow(), &steps);
}

#[test]
fn ctrl_c_at_the_question_of_a_deletion_deletes_nothing() {
    let place = slow();
    let key = "agent:main:main";
    assert_eq!(place.said(&["agent", "--session", key, "--message", "hello"]).0, 0);
    let steps = [("[y/N] ", "\u{3}")];
    let (exit, shown) = conversation(&place, &steps, &["sessions", "delete", key]);
    assert_eq!(exit, 130, "{shown}");
    assert!(shown.ends_with('\n'), "the prompt of the shell follows on its own line: {shown:?}");
    assert_eq!(place.said(&["sessions", "show", key]).0, 0);
}

#[test]
fn a_resumed_conversation_begins_with_a_recap_and_can_be_chosen_from_a_list() {
    let place = slow();
    let first = [("› ", "echo lighthouse\r"), ("returned:", ""), ("› ", "/exit\r")];
    let (_, shown) = conversation(&place, &first, &["chat"]);
    assert!(shown.contains("openclaw chat --resume agent:main:"), "{shown}");
    let (exit, shown) = conversation(&place, &[("› ", "/exit\r")], &["chat", "-c"]);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains("Resumed echo lighthouse"), "{shown}");
    assert!(shown.matches("lighthouse").count() > 1, "the last answer is shown: {shown}");
    let steps = [("Resume a session", "light\r"), ("Resumed echo lighthouse", "/exit\r")];
    let (exit, shown) = conversation(&place, &steps, &["chat", "--resume"]);
    assert_eq!(exit, 0, "{shown}");
}

#[test]
fn a_terminal_without_utf8_gets_ascii_only() {
    let steps = [("> ", "echo one\r"), ("returned:", ""), ("> ", "/exit\r")];
    let (exit, shown) = conversation_with(&slow(), &steps, &["chat"], ("LC_ALL", "C"));
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.is_ascii(), "{shown}");
    // Questions, too.
    let place = Place::offline(&Script::new(), "always");
    let steps = [("> ", "echo one\r"), ("[y] once", "y\r"), ("returned:", ""), ("> ", "/exit\r")];
    let (exit, shown) = conversation_with(&place, &steps, &["chat"], ("LC_ALL", "C"));
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.is_ascii(), "{shown}");
}

#[test]
fn a_terminal_without_cursor_movements_gets_plain_lines() {
    let steps = [("› ", "echo one\n"), ("returned:", ""), ("› ", "/exit\n")];
    let (exit, shown) = conversation_with(&slow(), &steps, &["chat"], ("TERM", "dumb"));
    assert_eq!(exit, 0, "{shown}");
    assert!(!shown.contains('\u{1b}') && shown.contains("openclaw chat --resume"), "{shown:?}");
}

#[test]
fn the_list_of_servers_fits_a_narrow_terminal() {
    let place = slow();
    place.trust();
    let program = env!("CARGO_BIN_EXE_openclaw");
    let script = format!("stty cols 60 rows 24; exec '{program}' chat");
    let steps = [("› ", "/mcp\r"), ("MCP Servers (", ""), ("Status: ", ""), ("› ", "/exit\r")];
    let shell = ["/bin/sh", "-c", script.as_str()];
    let (exit, shown) = command_on_a_terminal(&place, &steps, &shell, &[("NO_COLOR", "1")]);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains(&"─".repeat(60)) && !shown.contains(&"─".repeat(61)), "{shown}");
}

#[test]
fn results_are_numbered_and_shown_in_full() {
    let text = "one\\ntwo\\nthree\\nfour\\nfive\\nsix";
    let call = format!("/call mcp_x_echo {{\"text\":\"{text}\"}}\r");
    let steps = [
        ("› ", call.as_str()),
        ("#1", ""),
        ("returned:", ""),
        ("› ", "/show 1\r"),
        ("six", "/save 1\r"),
        ("no image", "/show 7\r"),
        ("no result `7`", "/exit\r"),
    ];
    chat(&slow(), &steps);
}

#[test]
fn openclaw_agent_declines_elicitations() {
    let place = asking(Ask::Elicitation);
    let (_, stdout, stderr) = place.said(&["agent", "--message", CALL.trim_end()]);
    let said = format!("{stdout}{stderr}");
    assert!(said.contains(r#""action":"decline""#), "{said}");
}

//! Servers ask somebody in the middle of a chat: in this process, and beside a gateway (T11).

use openclaw_testkit::{Ask, Script};
use serde_json::{Value, json};

use crate::support::{Place, conversation};
use crate::with_gateway::gateway;

const CALL: &str = "/call mcp_x_echo {\"text\":\"hi\"}\r";

/// A chat with a server that asks during every call, and answers with what it was told.
fn asking(ask: Ask) -> Place {
    let place = Place::new(&[("x", &Script::new().ask(ask))]);
    let file = place.path("openclaw.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    config["agents"] = json!({ "defaults": { "model": "offline" } });
    config["mcp"]["servers"]["x"]["approval"] = json!("never");
    std::fs::write(file, config.to_string()).unwrap();
    place
}

/// Calls the tool, types these when they are asked for, and leaves.
fn shown(place: &Place, answers: &[(&str, &str)]) -> String {
    let mut steps = vec![("› ", CALL)];
    steps.extend(answers);
    steps.extend([("says:", ""), ("› ", "/exit\r")]);
    let (exit, shown) = conversation(place, &steps, &["chat"]);
    assert_eq!(exit, 0, "{shown}");
    shown
}

#[test]
fn a_question_of_a_server_is_answered_in_the_middle_of_a_turn() {
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
fn an_address_is_shown_whole_in_a_chat_and_needs_a_yes() {
    let place = asking(Ask::ElicitationUrl);
    for (typed, told) in [("y\r", r#""action":"accept""#), ("\r", r#""action":"decline""#)] {
        let shown = shown(&place, &[("[y/N] ", typed)]);
        assert!(shown.contains("    https://example.com/login?state=1"), "{shown}");
        assert!(shown.contains(told), "{told}: {shown}");
    }
}

#[test]
fn ctrl_c_at_a_question_ends_the_turn_and_not_the_chat() {
    let place = asking(Ask::Elicitation);
    let steps = [("› ", CALL), ("  name: ", "\u{3}"), ("cancelled", ""), ("› ", "/exit\r")];
    let (exit, shown) = conversation(&place, &steps, &["chat"]);
    assert_eq!(exit, 0, "{shown}");
    assert!(!shown.contains("says:"), "{shown}");
}

#[test]
fn one_message_without_a_chat_is_declined_what_servers_ask() {
    let place = asking(Ask::Elicitation);
    let (_, stdout, stderr) = place.said(&["agent", "--message", CALL.trim_end()]);
    let said = format!("{stdout}{stderr}");
    assert!(said.contains(r#""action":"decline""#), "{said}");
}

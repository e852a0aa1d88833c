//! Elicitations during a chat, standalone and through a gateway (T11).

use openclaw_testkit::{Ask, Script};
use serde_json::{Value, json};

use crate::support::{Place, conversation};
use crate::with_gateway::gateway;

const CALL: &str = "/call mcp_x_echo {\"text\":\"hi\"}\r";

/// A chat with a server that elicits during every call, and returns the answer.
fn asking(ask: Ask) -> Place {
    let place = Place::new(&[("x", &Script::new().ask(ask))]);
    let file = place.path("openclaw.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    config["agents"] = json!({ "defaults": { "model": "offline" } });
    config["mcp"]["servers"]["x"]["approval"] = json!("never");
    std::fs::write(file, config.to_string()).unwrap();
    place
}

/// Calls the tool, types the answers at their prompts, and exits.
fn shown(place: &Place, answers: &[(&str, &str)]) -> String {
    let mut steps = vec![("› ", CALL)];
    steps.extend(answers);
    steps.extend([("returned:", ""), ("› ", "/exit\r")]);
    let (exit, shown) = conversation(place, &steps, &["chat"]);
    assert_eq!(exit, 0, "{shown}");
    shown
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
    let (exit, shown) = conversation(&place, &steps, &["chat"]);
    assert_eq!(exit, 0, "{shown}");
    assert!(!shown.contains("returned:"), "{shown}");
}

#[test]
fn openclaw_agent_declines_elicitations() {
    let place = asking(Ask::Elicitation);
    let (_, stdout, stderr) = place.said(&["agent", "--message", CALL.trim_end()]);
    let said = format!("{stdout}{stderr}");
    assert!(said.contains(r#""action":"decline""#), "{said}");
}

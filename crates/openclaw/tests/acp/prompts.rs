//! Prompts of the session's own MCP servers as commands.

use openclaw_testkit::{ModelServer, Peers, Piece};
use serde_json::{Value, json};

use crate::editor::{Editor, Place};

fn demo() -> Value {
    let program = env!("CARGO_BIN_EXE_openclaw");
    json!({ "name": "mine", "command": program, "args": ["demo-server"], "env": [] })
}

/// The names of the commands, once `name` is among them.
fn wait_for_command(editor: &mut Editor, name: &str) -> Vec<Value> {
    loop {
        let menus = editor.of_kind("available_commands_update");
        let commands = menus.last().and_then(|menu| menu["availableCommands"].as_array().cloned());
        let commands = commands.unwrap_or_default();
        if commands.iter().any(|command| command["name"] == name) {
            return commands;
        }
        editor.frame();
    }
}

/// What the user has said so far, as the agent has it.
fn said(editor: &mut Editor, place: &Place, session: &str) -> String {
    editor.load(place, session, &[]);
    let chunks = editor.of_kind("user_message_chunk").into_iter();
    chunks.filter_map(|it| it["content"]["text"].as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_prompt_of_a_session_s_server_is_listed_and_run_when_it_is_typed() {
    let place = Place::new();
    let (mut editor, session) = Editor::open(&place, &[demo()]);
    let commands = wait_for_command(&mut editor, "mcp__mine__summarise-notes");
    let found = commands.iter().find(|it| it["name"] == "mcp__mine__summarise-notes").unwrap();
    assert_eq!(found["description"], "Summarise the notes about OpenClaw");
    assert_eq!(found["input"]["hint"], "[language]");
    assert!(commands.iter().any(|it| it["name"] == "mcp"), "those of the gateway, too");

    let (stop, _) = editor.prompt(&session, "/mcp__mine__summarise-notes language=French");
    assert_eq!(stop, "end_turn");
    let (_, text) = editor.prompt(&session, "/mcp servers");
    assert!(text.contains("MCP servers of this session:\n- mine: ready"), "{text}");
    let said = said(&mut editor, &place, &session);
    assert!(said.contains("I chose the prompt `mcp__mine__summarise-notes`"), "{said}");
    assert!(said.contains("in three sentences, in French"), "{said}");
}

#[test]
fn a_real_server_s_prompt_needs_its_arguments() {
    let place = Place::new();
    let peer = Peers::find().fastmcp();
    let server = json!({ "name": "fast", "command": peer.program, "args": peer.args, "env": [] });
    let mut editor = Editor::allowing(&place, &[]);
    let session = editor.session(&place, &[server]);
    wait_for_command(&mut editor, "mcp__fast__review");
    let (stop, text) = editor.prompt(&session, "/mcp__fast__review");
    assert_eq!(stop, "end_turn");
    assert!(text.contains("Missing arguments: code. Use `/mcp__fast__review code=…`"), "{text}");
    editor.prompt(&session, "/mcp__fast__review let x = 1;");

    // Its progress passes through the gateway.
    let slow = json!({ "steps": 4, "milliseconds": 400 });
    let (_, text) = editor.prompt(&session, &format!("/call mcp__fast__slow {slow}"));
    assert!(text.ends_with("done after 4 steps"), "{text}");
    let updates = serde_json::to_string(&editor.of_kind("tool_call_update")).unwrap();
    assert!(updates.contains("step 3 of 4"), "{updates}");
    let said = said(&mut editor, &place, &session);
    assert!(said.contains("Please review:\nlet x = 1;"), "{said}");
    assert_eq!(editor.close(), 0);
    place.assert_nothing_left();
}

#[test]
fn an_unknown_command_is_not_sent_to_the_model() {
    let server = ModelServer::start(|_| vec![Piece::text("got it")]);
    let place = Place::with_models(&server);
    let (mut editor, session) = Editor::open(&place, &[]);
    let (stop, text) = editor.prompt(&session, "/usge please");
    assert_eq!(stop, "end_turn");
    assert_eq!(
        text,
        "Unknown command `/usge`. Did you mean `/usage`? To send it to the model, type `//usge`."
    );
    assert_eq!(server.answered(), 0);
    for message in ["//usge please", "/etc/passwd is a file"] {
        assert_eq!(editor.prompt(&session, message).1, "got it");
    }
    let said = said(&mut editor, &place, &session);
    assert!(said.contains("/usge please") && !said.contains("//usge"), "{said}");
}

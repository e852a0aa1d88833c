//! The prompt of a chat: completion of paths, pasted pictures, Ctrl-Z.

use std::fs;

use openclaw_testkit::processes::write_program;
use openclaw_testkit::{HOSTILE_FILE, ModelServer, Piece, Script, Tool, assert_is_external_file};
use serde_json::{Value, json};

use crate::support::{Place, chat, command_on_a_terminal, conversation, on_a_terminal};

/// The smallest beginning of a PNG.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A place with a model that says how many pictures it has got.
fn place() -> (Place, ModelServer) {
    let model =
        ModelServer::start(|request| vec![Piece::text(format!("saw {}", pictures(request)))]);
    let place = Place::configured(&json!({
        "agents": { "defaults": { "model": "local/m" } },
        "models": { "providers": { "local": model.entry() } },
        "mcp": { "servers": {} },
    }));
    (place, model)
}

/// A place with a server, and a model that says how many pictures it has got.
fn with_server(script: &Script) -> (Place, ModelServer) {
    let (_, model) = place();
    let place = offline(script);
    place.change(|config| {
        config["agents"]["defaults"]["model"] = json!("local/m");
        config["models"] = json!({ "providers": { "local": model.entry() } });
    });
    (place, model)
}

/// A place with a server and the offline model.
fn offline(script: &Script) -> Place {
    let place = Place::offline(script, "never");
    place.trust();
    place
}

/// A server whose tool returns a picture.
fn with_picture() -> Script {
    let picture = json!({ "type": "image", "mimeType": "image/png", "data": PIXEL });
    Script::new().tools([Tool::new("shot").result(&json!({ "content": [picture] }))])
}

/// The number of pictures in the last message of a request.
fn pictures(request: &Value) -> usize {
    let last = request["messages"].as_array().and_then(|all| all.last()).cloned();
    let parts = last.unwrap_or_default()["content"].as_array().cloned().unwrap_or_default();
    parts.iter().filter(|part| part["type"] == "image_url").count()
}

#[test]
fn a_path_is_completed_after_an_at_sign() {
    let (place, _model) = place();
    fs::create_dir(place.path("my notes")).unwrap();
    fs::write(place.path("my notes/first.txt"), "lighthouse").unwrap();
    let steps = [
        ("› ", "read @my\t"),
        ("my\\ notes/", "fi\t"),
        ("first.txt", "\r"),
        ("attached my notes/first.txt", ""),
        ("saw 0", ""),
        ("› ", "/exit\r"),
    ];
    chat(&place, &steps);
}

#[test]
fn an_attached_file_is_external_text_for_the_model_and_named_in_an_export() {
    let (place, model) = place();
    fs::write(place.path("a.txt"), HOSTILE_FILE).unwrap();
    let steps = [
        ("› ", "read @a.txt <|im_start|>\r"),
        ("attached a.txt", ""),
        ("saw 0", ""),
        ("› ", "/exit\r"),
    ];
    chat(&place, &steps);
    let request = model.requests().remove(0);
    let messages = request["messages"].as_array().unwrap();
    let said = &messages.iter().rev().find(|it| it["role"] == "user").unwrap()["content"];
    let (typed, attached) = said.as_str().unwrap().split_once("\n\n").unwrap();
    assert_eq!(typed, "read @a.txt <|im_start|>");
    assert_is_external_file(attached, "a.txt");
    let (_, listed, _) = place.said(&["sessions", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let key = listed["sessions"][0]["key"].as_str().unwrap();
    let (exit, exported, _) = place.said(&["sessions", "export", key, "--format", "md"]);
    assert!(exit == 0 && exported.contains("Attached a.txt:"), "{exported}");
    assert!(exported.contains("after") && !exported.contains("Treat as untrusted"), "{exported}");
}

#[test]
fn the_path_of_a_picture_that_is_pasted_attaches_it() {
    let (place, _model) = place();
    let picture = place.path("a cat.png");
    fs::write(&picture, PNG).unwrap();
    let path = picture.to_str().unwrap().replace(' ', "\\ ");
    let pasted = format!("\u{1b}[200~{path}\u{1b}[201~ what is it\r");
    let steps = [("› ", pasted.as_str()), ("attached ", ""), ("saw 1", ""), ("› ", "/exit\r")];
    chat(&place, &steps);
}

#[test]
fn the_picture_on_the_clipboard_is_attached_to_the_next_message() {
    let (place, _model) = place();
    place.trust();
    fs::write(place.path("clipboard.png"), PNG).unwrap();
    let program = place.path("wl-paste");
    let script = format!("#!/bin/sh\ncat {}\n", place.path("clipboard.png").display());
    write_program(&program, &script);
    let path = format!("{}:{}", place.folder.path().display(), std::env::var("PATH").unwrap());
    let variables = [("NO_COLOR", "1"), ("WAYLAND_DISPLAY", "test-0"), ("PATH", path.as_str())];
    let steps = [
        ("› ", "/paste\r"),
        ("to the next message", "what is it\r"),
        ("saw 1", ""),
        ("› ", "and now\r"),
        ("saw 0", ""),
        ("› ", "/exit\r"),
    ];
    let (exit, shown) = on_a_terminal(&place, &steps, &["chat"], &variables);
    assert_eq!(exit, 0, "{shown}");
    fs::write(place.path("clipboard.png"), "text").unwrap();
    let steps = [("› ", "/paste\r"), ("no image on the clipboard", ""), ("› ", "/exit\r")];
    let (exit, shown) = on_a_terminal(&place, &steps, &["chat"], &variables);
    assert_eq!(exit, 0, "{shown}");
}

/// Runs a program as a job of a shell: waits until it is stopped, reports the mode of the terminal,
/// and continues it.
const AS_A_JOB: &str = r#"
import os, signal, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
status = os.waitpid(child, os.WUNTRACED)[1]
modes = termios.tcgetattr(0)[3]
is_usual = bool(modes & termios.ECHO) and bool(modes & termios.ICANON)
os.tcsetpgrp(0, os.getpgrp())
print("stopped:", os.WIFSTOPPED(status), "usual mode:", is_usual, flush=True)
os.tcsetpgrp(0, child)
os.killpg(child, signal.SIGCONT)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

#[test]
fn ctrl_z_suspends_at_the_prompt_and_the_chat_continues() {
    let (place, _model) = place();
    place.trust();
    let program = env!("CARGO_BIN_EXE_openclaw");
    let job = ["/usr/bin/env", "python3", "-c", AS_A_JOB, program, "chat"];
    let steps = [
        ("› ", "\u{1a}"),
        ("stopped: True usual mode: True", ""),
        ("› ", "hello\r"),
        ("saw 0", ""),
        ("› ", "/exit\r"),
    ];
    let (exit, shown) = command_on_a_terminal(&place, &steps, &job, &[("NO_COLOR", "1")]);
    assert_eq!(exit, 0, "{shown}");
}

#[test]
fn any_model_of_a_configured_provider_can_be_chosen_by_its_whole_name() {
    let (place, model) = place();
    let steps = [
        ("› ", "/model local/other\r"),
        ("Switched to `local/other`", "hello\r"),
        ("saw 0", ""),
        ("› ", "/model nowhere/other\r"),
        ("unknown model `nowhere/other`", ""),
        ("› ", "/exit\r"),
    ];
    chat(&place, &steps);
    assert!(model.requests().iter().any(|it| it["model"] == "other"), "{:?}", model.requests());
    let steps = [("› ", "hello\r"), ("saw 0", ""), ("› ", "/exit\r")];
    let (exit, shown) = conversation(&place, &steps, &["chat", "--model", "local/third"]);
    assert_eq!(exit, 0, "{shown}");
    assert!(model.requests().iter().any(|it| it["model"] == "third"), "{:?}", model.requests());
}

/// A PNG of one pixel, in base64.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn a_terminal_with_sixel_shows_the_pictures_of_a_result() {
    let place = offline(&with_picture());
    let steps =
        [("› ", "/call mcp_x_shot {}\r"), ("#1", ""), ("› ", "/show 1\r"), ("› ", "/exit\r")];
    let shown = |attributes: &str, terminal: &str| {
        let variables = [("NO_COLOR", "1"), ("DEVICE_ATTRIBUTES", attributes), ("TERM", terminal)];
        let (exit, shown) = on_a_terminal(&place, &steps, &["chat"], &variables);
        assert_eq!(exit, 0, "{shown}");
        shown
    };
    let with = shown("\u{1b}[?1;0;16S\u{1b}[?62;4c", "xterm");
    assert!(with.contains("\u{1b}P0;1q\"1;1;1;1#0;2;"), "{with:?}");
    assert!(!with.contains("to save it"), "{with:?}");
    // Any other terminal gets a line, and is asked only if it moves its cursor.
    let without = shown("\u{1b}[?1;2c", "xterm");
    assert!(without.contains("[image/png, /save 1 to save it]"), "{without:?}");
    let steps = [("> ", "/exit\n")];
    let plain = [("NO_COLOR", "1"), ("TERM", "dumb"), ("LC_ALL", "C")];
    let (_, plain) = on_a_terminal(&place, &steps, &["chat"], &plain);
    assert!(!plain.contains("\u{1b}["), "{plain:?}");
}

#[test]
fn without_redrawing_every_message_begins_a_new_line() {
    let place = offline(&Script::new().start_delay_ms(2_000));
    let steps = [
        ("› ", ""),
        ("✓ x", ""),
        ("› ", "hello\r"),
        ("› ", "\u{3}"),
        ("to exit", ""),
        ("› ", "\u{4}"),
    ];
    let variables = [("TERM", "dumb"), ("NO_COLOR", "1")];
    let (exit, shown) = on_a_terminal(&place, &steps, &["chat"], &variables);
    assert_eq!(exit, 0, "{shown}");
    for line in ["✓ x", "Ctrl-D, or Ctrl-C twice more", "to continue this session"] {
        let (before, _) = shown.split_once(line).unwrap();
        assert!(before.ends_with('\n'), "{line}: {shown:?}");
    }
}

#[test]
fn a_picture_of_a_direct_call_can_be_saved() {
    let (place, _model) = with_server(&with_picture());
    let steps = [
        ("› ", "/call mcp_x_shot {}\r"),
        ("#1", ""),
        ("› ", "/save 1 shot.png\r"),
        ("saved ", ""),
        ("› ", "/exit\r"),
    ];
    chat(&place, &steps);
    assert!(fs::read(place.path("shot.png")).unwrap().starts_with(PNG));
}

#[test]
fn a_direct_call_shows_its_progress() {
    let (place, _model) = with_server(&Script::new());
    let demo = json!({ "command": env!("CARGO_BIN_EXE_openclaw"), "args": ["demo-server"] });
    place.change(|config| config["mcp"]["servers"] = json!({ "demo": demo }));
    let steps = [
        ("demo  4 tools", "/call mcp_demo_count {\"to\":10,\"pause_ms\":300}\r"),
        ("0%", ""),
        ("counted to 10", ""),
        ("› ", "/exit\r"),
    ];
    chat(&place, &steps);
}

#[test]
fn typed_text_has_the_colour_of_the_terminal() {
    let (place, _model) = place();
    place.trust();
    let steps = [("› ", "hello\r"), ("saw 0", ""), ("› ", "/exit\r")];
    let (exit, shown) = on_a_terminal(&place, &steps, &["chat"], &[("COLORTERM", "")]);
    assert_eq!(exit, 0, "{shown}");
    // White would be invisible on a white background.
    assert!(shown.contains("\u{1b}[") && !shown.contains("\u{1b}[37m"), "{shown:?}");
}

#[test]
fn a_command_of_the_gateway_does_not_wait_for_servers() {
    let place = offline(&Script::new().start_delay_ms(8_000));
    let steps = [("› ", "/usage\r"), ("No tokens were used", ""), ("› ", "/exit\r")];
    let shown = chat(&place, &steps);
    assert!(!shown.contains("waiting ("), "{shown}");
}

//! Several clients of one gateway: questions reach an idle chat, a turn is shown in every window of
//! its conversation, and a chat outlives the gateway.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use openclaw_testkit::{ModelServer, Piece, Script, processes};
use serde_json::json;

use crate::common::run_with;
use crate::support::{LONG, Place, terminal};
use crate::with_gateway::gateway;

const CALL: &str = "/call mcp_x_add {\"a\":2,\"b\":3}";

/// A place with one server whose calls need approval, or not.
fn place(approval: &str) -> Place {
    Place::offline(&Script::new(), approval)
}

/// A program on a terminal that runs beside others. Killed on drop.
struct Window<'a> {
    place: &'a Place,
    name: &'a str,
    child: Child,
}

impl<'a> Window<'a> {
    /// Opens a chat, and types the answers at the expected texts.
    fn open(place: &'a Place, name: &'a str, steps: &[(&str, &str)]) -> Self {
        place.trust();
        let shown = fs::File::create(place.path(name)).unwrap();
        let command = [env!("CARGO_BIN_EXE_openclaw"), "chat", "--session", "shared"];
        let mut terminal = terminal(place, steps, &command);
        let child = terminal.env("NO_COLOR", "1").stdout(shown).spawn().unwrap();
        Self { place, name, child }
    }

    fn shown(&self) -> String {
        let bytes = fs::read(self.place.path(self.name)).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until it has shown a text.
    fn shows(&self, text: &str) {
        let is_shown = processes::wait_until(LONG, || self.shown().contains(text));
        assert!(is_shown, "`{text}` was never shown: {}", self.shown());
    }

    /// Waits until it has exited, and returns what it has shown.
    fn ended(mut self) -> String {
        let pid = self.child.id();
        let has_exited = processes::wait_until(LONG, || !processes::is_alive(pid));
        assert!(has_exited, "it never exited: {}", self.shown());
        let shown = self.shown();
        assert!(self.child.wait().unwrap().success(), "{shown}");
        shown
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_question_of_a_script_appears_in_an_idle_chat_and_what_was_typed_is_kept() {
    let place = place("auto");
    let _running = gateway(&place);
    let steps = [
        ("› ", "/he"),
        ("instead) ", "y\r"),
        ("/he", "lp\r"),
        ("List the commands", ""),
        ("› ", "/exit\r"),
    ];
    let chat = Window::open(&place, "chat.out", &steps);
    chat.shows("/he");
    let (code, stdout, stderr) = place.said(&["agent", "--message", CALL]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.contains('5'), "{stdout}");
    assert!(stderr.contains("note: waiting for approval in an open chat: "), "{stderr}");
    let shown = chat.ended();
    assert!(shown.contains("Allow mcp_x_add(a=2, b=3)?"), "{shown}");
    assert!(shown.contains("· session agent:main:"), "the session is named: {shown}");
}

#[test]
fn a_question_that_no_client_shows_is_denied_at_once() {
    let place = place("auto");
    let _running = gateway(&place);
    // A client that may approve calls, and shows none of other sessions.
    let mut waiting = place.command(&["mcp", "call", "x", "sleep", "ms=600000"]);
    let mut waiting = waiting.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (code, stdout, stderr) = place.said(&["agent", "--message", CALL]);
    let _ = waiting.kill();
    let _ = waiting.wait();
    assert_ne!(code, 0, "{stdout}{stderr}");
    assert!(stderr.contains("was denied"), "{stderr}");
}

#[test]
fn the_hint_of_a_denied_call_can_be_pasted() {
    let place = place("auto");
    let harmless = "/call exec {\"command\":\"echo 'a b'\"}";
    let exactly = "/call exec {\"command\":\"echo 'a b' && echo c\"}";
    let outside = "/call exec {\"command\":\"ls /\"}";
    for message in [CALL, harmless, exactly, outside] {
        let (code, _, stderr) = place.said(&["agent", "--message", message]);
        assert_eq!(code, 4, "{stderr}");
        let (_, command) = stderr.split_once("such calls: `openclaw ").expect(&stderr);
        let command = shlex::split(command.split_once('`').unwrap().0).unwrap();
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        place.ok(&command);
        place.ok(&["agent", "--message", message]);
    }
}

#[test]
fn a_piped_chat_with_a_model_calls_tools_that_need_no_approval() {
    let place = place("never");
    let model = ModelServer::start(|_| vec![Piece::text("hello")]);
    place.change(|config| {
        config["models"] = json!({ "providers": { "local": model.entry() } });
        config["agents"]["defaults"]["model"] = json!("local/talkative");
    });
    for (approval, expected) in [("never", "→ 5"), ("auto", "no user answered")] {
        place.change(|config| config["mcp"]["servers"]["x"]["approval"] = json!(approval));
        let output = run_with(place.command(&["chat"]), format!("{CALL}\n").as_bytes());
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_chat_exits_at_once_when_its_terminal_is_closed() {
    let place = place("auto");
    let _running = gateway(&place);
    let chat = Window::open(&place, "chat.out", &[("› ", "/he")]);
    chat.shows("/he");
    // The child of the process that holds the terminal.
    let holder = chat.child.id();
    let children = fs::read_to_string(format!("/proc/{holder}/task/{holder}/children")).unwrap();
    let pid: u32 = children.trim().parse().unwrap();
    let closed = Instant::now();
    drop(chat);
    assert!(processes::wait_until(LONG, || !processes::is_alive(pid)), "it never exited");
    // Until then, approvals wait for it. An editor that is waited for takes two seconds and more.
    assert!(closed.elapsed() < Duration::from_secs(2), "{:?}", closed.elapsed());
}

#[test]
fn a_withdrawn_question_is_followed_by_a_line_of_its_own() {
    let place = place("auto");
    let _running = gateway(&place);
    let steps = [("instead) ", ""), ("withdrawn", ""), ("› ", "/exit\r")];
    let chat = Window::open(&place, "chat.out", &steps);
    chat.shows("› ");
    let (code, ..) = place.said(&["agent", "--timeout", "3000", "--message", CALL]);
    assert_eq!(code, 5);
    let shown = chat.ended();
    let (before, _) = shown.split_once("· answered elsewhere, or withdrawn").unwrap();
    assert!(before.ends_with('\n'), "{shown:?}");
}

#[test]
fn a_turn_is_shown_in_every_window_of_its_conversation() {
    let place = place("never");
    let _running = gateway(&place);
    let steps = [("from another client", ""), ("returned:", ""), ("› ", "/exit\r")];
    let watching = Window::open(&place, "watching.out", &steps);
    watching.shows("› ");
    let call = format!("{CALL}\r");
    let steps = [("› ", call.as_str()), ("returned:", ""), ("› ", "/exit\r")];
    let sending = Window::open(&place, "sending.out", &steps).ended();
    let watching = watching.ended();
    assert!(watching.contains(&format!("› {CALL}")), "the message: {watching}");
    for shown in [&sending, &watching] {
        assert!(shown.contains("mcp_x_add(a=2, b=3) → 5"), "{shown}");
    }
    assert_eq!(watching.matches("from another client").count(), 1, "{watching}");
    assert_eq!(watching.matches("returned:").count(), 1, "{watching}");
    assert!(!sending.contains("from another client"), "{sending}");
}

#[test]
fn a_chat_outlives_its_gateway_and_keeps_what_was_typed() {
    let place = place("never");
    let running = gateway(&place);
    let steps = [
        ("› ", "/he"),
        ("connected to the gateway again", "lp\r"),
        ("List the commands", ""),
        ("› ", "/exit\r"),
    ];
    let chat = Window::open(&place, "chat.out", &steps);
    chat.shows("/he");
    drop(running);
    chat.shows("gateway lost, reconnecting");
    let _running = gateway(&place);
    chat.ended();
}

#[test]
fn a_message_waits_for_the_gateway_and_continues_the_conversation() {
    let place = place("never");
    let running = gateway(&place);
    let call = format!("{CALL}\r");
    let steps = [
        ("gateway lost", call.as_str()),
        ("returned:", ""),
        // The turn has ended once there is a prompt. Otherwise its message would be in the next one.
        ("› ", "/over\r"),
        ("gateway lost", "/local\r"),
        ("continuing in this process", call.as_str()),
        ("returned:", ""),
        ("› ", "/exit\r"),
    ];
    let chat = Window::open(&place, "chat.out", &steps);
    chat.shows("› ");
    drop(running);
    chat.shows("waiting for the gateway");
    let running = gateway(&place);
    chat.shows("unknown command `/over`");
    drop(running);
    let shown = chat.ended();
    assert_eq!(shown.matches("mcp_x_add(a=2, b=3) → 5").count(), 2, "{shown}");
    let (_, stdout, _) = place.said(&["sessions", "show", "shared"]);
    assert_eq!(stdout.matches(CALL).count(), 2, "one conversation: {stdout}");
    place.assert_nothing_left();
}

const SLEEP: &str = "/call mcp_x_sleep {\"ms\":2000}";

/// Opens a chat whose gateway is lost during a call. Types the answers, and exits after the next
/// call.
fn losing_the_gateway<'a>(place: &'a Place, answers: &[(&str, &str)]) -> Window<'a> {
    let running = gateway(place);
    let typed = format!("{SLEEP}\r");
    let begin = [("› ", typed.as_str()), ("mcp_x_sleep(", "")];
    let steps = [&begin, answers, &[("returned:", ""), ("› ", "/exit\r")]].concat();
    let chat = Window::open(place, "chat.out", &steps);
    chat.shows("mcp_x_sleep(");
    drop(running);
    chat
}

#[test]
fn a_turn_that_was_lost_with_the_gateway_can_be_sent_again() {
    let place = place("never");
    let chat = losing_the_gateway(&place, &[("connected to the gateway again", "\r")]);
    chat.shows("the turn was interrupted; the message is in the prompt");
    let _running = gateway(&place);
    let shown = chat.ended();
    let (_, after) = shown.split_once("the turn was interrupted").unwrap();
    assert!(after.contains(SLEEP), "{shown}");
}

#[test]
fn a_lost_turn_is_sent_again_in_this_process_with_one_word() {
    let place = place("never");
    let answers = [
        // The lost message is in the prompt, and the command is typed behind it.
        ("/local continues in this process", "/local\r"),
        ("continuing in this process", ""),
        (SLEEP, "\r"),
    ];
    let shown = losing_the_gateway(&place, &answers).ended();
    assert!(shown.contains("continuing in this process"), "{shown}");
}

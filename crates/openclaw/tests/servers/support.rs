//! Runs the binary in its own folder, with servers of the testkit, with or without a terminal.

use std::fs;
use std::process::{Command, Output, Stdio};

use openclaw_testkit::{Script, TestServer};
use serde_json::{Value, json};

pub(crate) use crate::common::LONG;
use crate::common::ended;
pub(crate) use crate::common::place::Place;

impl Place {
    pub(crate) fn new(servers: &[(&str, &Script)]) -> Self {
        let place = Self::configured(&json!({}));
        place.configure(servers);
        place
    }

    /// Writes the configuration. A server keeps its command line when its script changes.
    pub(crate) fn configure(&self, servers: &[(&str, &Script)]) {
        let entry = |name: &str, script: &Script| {
            let file = self.path(&format!("{name}.script.json"));
            let (program, args) = TestServer::stdio_from(&file, script);
            json!({ "command": program, "args": args, "timeout": 60_000 })
        };
        let servers: serde_json::Map<String, Value> = servers
            .iter()
            .map(|(name, script)| ((*name).to_owned(), entry(name, script)))
            .collect();
        let config = json!({ "mcp": { "servers": servers } });
        fs::write(self.path("openclaw.json"), config.to_string()).unwrap();
    }

    /// A place with one server and the offline model. Calls of the server need approval, or not.
    pub(crate) fn offline(script: &Script, approval: &str) -> Self {
        let place = Self::new(&[("x", script)]);
        place.change(|config| {
            config["agents"] = json!({ "defaults": { "model": "offline" } });
            config["mcp"]["servers"]["x"]["approval"] = json!(approval);
        });
        place
    }

    /// Changes the configuration.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Value)) {
        let file = self.path("openclaw.json");
        let mut config = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        change(&mut config);
        fs::write(file, config.to_string()).unwrap();
    }

    /// Trusts the folder and sets up no model, so that a chat asks about neither.
    pub(crate) fn trust(&self) {
        fs::write(self.path("model-setup.json"), r#"{"answer":"skipped"}"#).unwrap();
        let folder = openclaw_files::canonical(self.folder.path()).unwrap();
        let trusted = json!({ "folders": [folder] });
        fs::write(self.path("trusted-folders.json"), trusted.to_string()).unwrap();
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command, and returns the exit code, stdout and stderr.
    pub(crate) fn said(&self, args: &[&str]) -> (i32, String, String) {
        ended(self.run(args))
    }

    /// Runs a command that succeeds, and returns its stdout.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let (exit, stdout, stderr) = self.said(args);
        assert_eq!(exit, 0, "{args:?}: {stdout}{stderr}");
        stdout
    }

    /// Runs a command, and returns the JSON on its stdout.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let (_, stdout, stderr) = self.said(args);
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
    }
}

/// Runs the program on a pseudo-terminal, and for each step types the answer when the expected text
/// is shown. Passes its output on, and answers the cursor position request of line editors.
const ON_A_TERMINAL: &str = r#"
import json, os, pty, signal, sys
# A text that never appears must not keep the test waiting.
signal.signal(signal.SIGALRM, lambda *_: sys.exit(124))
signal.alarm(120)
steps = [[e.encode(), a.encode()] for e, a in json.loads(sys.argv[1])]
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
os.write(terminal, os.environ.get("TYPED_AHEAD", "").encode())
shown, seen, asked, described = b"", 0, 0, 0
while True:
    try:
        more = os.read(terminal, 4096)
    except OSError:
        break
    if not more:
        break
    shown += more
    while shown.count(b"\x1b[6n") > asked:
        asked += 1
        os.write(terminal, b"\x1b[1;1R")
    # The question for the device attributes; without an answer, the program waits for one.
    while shown.count(b"\x1b[c") > described:
        described += 1
        os.write(terminal, os.environ.get("DEVICE_ATTRIBUTES", "\x1b[?1;2c").encode())
    while steps and steps[0][0] in shown[seen:]:
        seen = shown.index(steps[0][0], seen) + len(steps[0][0])
        answer = steps.pop(0)[1]
        os.write(terminal, answer)
        # An answer changes what is shown; without one, the next text may be there already.
        if answer:
            break
    sys.stdout.buffer.write(more)
    sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

/// Returns a command that runs a program (by its path) on a terminal, with a dialogue of expected texts
/// and answers.
pub(crate) fn terminal(place: &Place, steps: &[(&str, &str)], command: &[&str]) -> Command {
    let steps = serde_json::to_string(steps).unwrap();
    let mut terminal = Command::new("python3");
    terminal
        .args(["-c", ON_A_TERMINAL, &steps])
        .args(command)
        .current_dir(place.folder.path())
        .env("OPENCLAW_STATE_DIR", place.folder.path())
        .env("OPENCLAW_KEYCHAIN", "off")
        .env("TERM", "xterm")
        .env("LC_ALL", "C.UTF-8")
        // So that a first chat offers what it offers to a user.
        .env_remove("CI")
        // So that no real model is used.
        .env_remove("ANTHROPIC_API_KEY")
        .env_remove("OPENAI_API_KEY")
        .env_remove("GEMINI_API_KEY")
        .stdin(Stdio::null());
    terminal
}

/// Runs a dialogue of expected texts and answers. Returns the exit code and the output.
pub(crate) fn on_a_terminal(
    place: &Place,
    steps: &[(&str, &str)],
    args: &[&str],
    variables: &[(&str, &str)],
) -> (i32, String) {
    let command = [&[env!("CARGO_BIN_EXE_openclaw")], args].concat();
    command_on_a_terminal(place, steps, &command, variables)
}

/// Like [`on_a_terminal`], with any program (by its path).
pub(crate) fn command_on_a_terminal(
    place: &Place,
    steps: &[(&str, &str)],
    command: &[&str],
    variables: &[(&str, &str)],
) -> (i32, String) {
    let mut terminal = terminal(place, steps, command);
    let output = terminal.envs(variables.iter().copied()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a dialogue without colours. Returns the exit code and the output.
pub(crate) fn conversation(place: &Place, steps: &[(&str, &str)], args: &[&str]) -> (i32, String) {
    place.trust();
    on_a_terminal(place, steps, args, &[("NO_COLOR", "1")])
}

/// Runs a chat without colours, which exits with 0. Returns its output.
pub(crate) fn chat(place: &Place, steps: &[(&str, &str)]) -> String {
    let (exit, shown) = conversation(place, steps, &["chat"]);
    assert_eq!(exit, 0, "{shown}");
    shown
}

/// Runs a dialogue with a variable of the environment. Returns the exit code and the output.
pub(crate) fn conversation_with(
    place: &Place,
    steps: &[(&str, &str)],
    args: &[&str],
    variable: (&str, &str),
) -> (i32, String) {
    place.trust();
    on_a_terminal(place, steps, args, &[variable])
}

/// Runs a command on a terminal, and types one answer. Returns the exit code and the output.
pub(crate) fn at_a_terminal(
    place: &Place,
    question: &str,
    answer: &str,
    args: &[&str],
) -> (i32, String) {
    typed_ahead(place, "", question, answer, args)
}

/// Like [`at_a_terminal`], but with input that was typed before the program started.
pub(crate) fn typed_ahead(
    place: &Place,
    ahead: &str,
    question: &str,
    answer: &str,
    args: &[&str],
) -> (i32, String) {
    let answer = format!("{answer}\n");
    place.trust();
    on_a_terminal(place, &[(question, &answer)], args, &[("TYPED_AHEAD", ahead)])
}

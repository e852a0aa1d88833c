//! `openclaw acp` as an editor sees it: the time until it answers, until a session's MCP servers are
//! ready, and of streamed output.
//!
//! Both sides run in turn, and the best of each counts: the machine is shared.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its results"
)]

#[allow(dead_code, reason = "other benchmarks use more of it")]
mod program;

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use openclaw_protocol::chat::{ChatEvent, ChatState, SendParams};
use openclaw_protocol::client::{Client, ConnectOptions};
use openclaw_protocol::{Received, Surface as _, ask, names, rpc};
use openclaw_testkit::bench::{load, pin, repeats, verdict};
use openclaw_testkit::{ModelServer, Peers, Piece, Script, TestServer};
use program::Program;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use serde_json::{Value, json};

const STARTS: usize = 100;
/// The limit for the answer to `initialize`, as a multiple of the time of `openclaw --version`.
const START: f64 = 3.0;
const SESSIONS: usize = 40;
/// With servers that take a second of CPU to start.
const REAL_SESSIONS: usize = 8;
const SERVERS: usize = 3;
/// The limit for a session with its servers, as a multiple of bare `rmcp` clients.
const READY: f64 = 1.2;
const ROUNDS: usize = 5;
const TURNS: usize = 20;
const CHUNKS: usize = 1_000;
/// The limit for streamed output, as a multiple of the same through the gateway's socket.
const STREAM: f64 = 2.0;

fn main() {
    println!("pinned to one core: {}; load average: {}", pin(), load());
    start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(sessions());
    runtime.block_on(streams());
}

/// A running agent. The process is killed on drop.
struct Editor {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    next: u64,
}

impl Editor {
    fn start(program: &Program) -> Self {
        let mut command = program.command(&["acp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut editor = Self { child, input, output, next: 0 };
        editor.ask("initialize", &json!({ "protocolVersion": 1 }));
        editor
    }

    /// Sends a request and returns its result, with the number of updates before it.
    fn ask(&mut self, method: &str, params: &Value) -> (Value, usize) {
        self.next += 1;
        let frame =
            json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        self.input.write_all(format!("{frame}\n").as_bytes()).unwrap();
        let mut updates = 0;
        loop {
            let line = self.output.next().unwrap().unwrap();
            let mut frame: Value = serde_json::from_str(&line).unwrap();
            if frame["id"] == self.next {
                assert!(frame.get("error").is_none(), "{frame}");
                return (frame["result"].take(), updates);
            }
            updates += 1;
        }
    }

    fn open(&mut self, servers: &[Value]) -> String {
        let cwd = std::env::temp_dir();
        let (opened, _) = self.ask("session/new", &json!({ "cwd": cwd, "mcpServers": servers }));
        opened["sessionId"].as_str().unwrap().to_owned()
    }

    fn prompt(&mut self, session: &str, text: &str) -> usize {
        let prompt = json!([{ "type": "text", "text": text }]);
        let (answer, updates) =
            self.ask("session/prompt", &json!({ "sessionId": session, "prompt": prompt }));
        assert_eq!(answer["stopReason"], "end_turn");
        updates
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn line(what: &str, ours: f64, base: f64, budget: f64) {
    let ratio = ours / base;
    println!("{what:<44} {ours:>8.2} ms {ratio:>6.2} × {base:.2} ms   {}", verdict(ratio, budget));
}

/// From before the spawn until the answer to `initialize`.
fn start() {
    let program = Program::with_servers(&json!({}));
    let mut best = [f64::MAX; 2];
    for _ in 0..repeats(STARTS) {
        let begun = Instant::now();
        let editor = Editor::start(&program);
        best[0] = best[0].min(millis(begun));
        drop(editor);
        best[1] = best[1].min(program.timed(&["--version"]));
    }
    line("start until `initialize` is answered", best[0], best[1], START);
}

/// A session with servers, until a prompt that needs no model is answered: it waits for them. The
/// test server starts in a millisecond, so that our own part shows.
async fn sessions() {
    let (command, args) = TestServer::stdio(&Script::new().tools_only());
    session("test servers", (&command, &args), repeats(SESSIONS)).await;
    let folder = tempfile::tempdir().unwrap();
    let peer = Peers::find().filesystem(folder.path());
    session("x server-filesystem", (&peer.program, &peer.args), repeats(REAL_SESSIONS)).await;
}

/// Compares the best times until a session is open and until its servers are ready with those of bare
/// clients.
async fn session(what: &str, (command, args): (&Path, &[String]), rounds: usize) {
    let program = Program::with_servers(&json!({}));
    let servers: Vec<Value> = (0..SERVERS)
        .map(
            |nth| json!({ "name": format!("s{nth}"), "command": command, "args": args, "env": [] }),
        )
        .collect();
    let mut editor = Editor::start(&program);
    let mut best = [f64::MAX; 3];
    for _ in 0..rounds {
        let begun = Instant::now();
        let session = editor.open(&servers);
        best[0] = best[0].min(millis(begun));
        editor.prompt(&session, "/help");
        best[1] = best[1].min(millis(begun));
        editor.ask("session/close", &json!({ "sessionId": session }));
        best[2] = best[2].min(bare(command, args).await);
    }
    let [open, ready, bare] = best;
    line(&format!("session/new, {SERVERS} {what}: answered"), open, bare, READY);
    line(&format!("session/new, {SERVERS} {what}: ready"), ready, bare, READY);
}

/// Bare clients that start the same servers and list their tools.
async fn bare(command: &Path, args: &[String]) -> f64 {
    let begun = Instant::now();
    let one = || async {
        let mut child = tokio::process::Command::new(command)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let pipes = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let config =
            ClientConfig::new(ClientCapabilities::default(), Implementation::new("bench", "0"))
                .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
        let client = rmcp::serve_client(config, pipes).await.unwrap();
        let tools = client.list_all_tools().await.unwrap();
        assert!(!tools.is_empty());
        (client, child)
    };
    let ready = join_all((0..SERVERS).map(|_| one())).await;
    let took = millis(begun);
    for (client, mut child) in ready {
        let _ = client.cancel().await;
        let _ = child.kill().await;
    }
    took
}

/// Turns with many pieces of output: to an editor, and to a client on the gateway's socket. The CPU
/// time of the serving process is compared, because the time of a turn is that of the model.
async fn streams() {
    let server = ModelServer::start(|_| {
        // Text and thoughts in turn: pieces of one kind are joined by the gateway.
        let piece = |nth: usize| match nth % 2 {
            0 => Piece::thought(format!("thought {nth} ")),
            _ => Piece::text(format!("word {nth} ")),
        };
        (0..CHUNKS).map(piece).collect()
    })
    .pausing(20, Duration::from_millis(1));
    let config = json!({
        "mcp": { "servers": {} },
        "models": { "providers": { "local": server.entry() } },
        "agents": { "defaults": { "model": "local/talkative" } },
    });
    let (alone, served) = (Program::with(&config), Program::with(&config));
    let mut editor = Editor::start(&alone);
    let session = editor.open(&[]);
    let mut gateway = served.command(&["gateway", "run", "--port", "0"]);
    let mut gateway = gateway.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let client = connect(&served).await;
    // The first turn of each opens the model and the store.
    editor.prompt(&session, "talk");
    turn(&client, 0).await;
    let mut best = [f64::MAX; 2];
    for round in 0..repeats(ROUNDS) {
        let before = cpu(editor.child.id());
        for _ in 0..repeats(TURNS) {
            let updates = editor.prompt(&session, "talk");
            assert!(updates >= CHUNKS, "{updates} updates");
        }
        best[0] = best[0].min(cpu(editor.child.id()) - before);
        let before = cpu(gateway.id());
        for nth in 0..repeats(TURNS) {
            let events = turn(&client, 1 + round * TURNS + nth).await;
            assert!(events >= CHUNKS, "{events} events");
        }
        best[1] = best[1].min(cpu(gateway.id()) - before);
    }
    let each = best.map(|all| all / TURNS as f64);
    line("1,000 streamed pieces, CPU", each[0], each[1], STREAM);
    let _ = gateway.kill();
    let _ = gateway.wait();
}

/// The CPU time of a process so far, in ms.
fn cpu(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // After the name, which may contain spaces; a tick is 10 ms.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    ticks as f64 * 10.0
}

async fn connect(program: &Program) -> Client {
    let file = program.state().join("gateway.json");
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let running: Option<Value> =
            std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if let Some(running) = running {
            let (url, token) = (running["url"].as_str().unwrap(), running["token"].as_str());
            let options = ConnectOptions::new(url.to_owned(), token.map(Into::into), "bench");
            return Client::connect(&options).await.unwrap();
        }
        assert!(Instant::now() < until, "the gateway does not listen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Runs a turn over the socket, and returns the number of events.
async fn turn(client: &Client, nth: usize) -> usize {
    let mut events = client.events();
    let run = format!("run{nth}");
    let sent = SendParams {
        session_key: "main".to_owned(),
        message: "talk".to_owned(),
        idempotency_key: run.clone(),
        ..SendParams::default()
    };
    ask::<rpc::ChatSend>(client, sent).await.unwrap();
    let mut count = 0;
    while let Some(received) = events.next().await {
        let event = match received {
            Received::Event(event) => event,
            Received::Lagged(missed) => {
                count += usize::try_from(missed).unwrap();
                continue;
            }
        };
        count += 1;
        if event.event == names::CHAT {
            let chat: ChatEvent = event.read().unwrap();
            if chat.run_id == run && matches!(chat.state, ChatState::Final { .. }) {
                return count;
            }
        }
    }
    count
}

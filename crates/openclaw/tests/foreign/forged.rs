//! A gateway that answers like the Node OpenClaw: protocol 4 without the methods of this program.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tungstenite::{Error, Message, WebSocket, accept};

pub(crate) const TOKEN: &str = "forged-token-0123456789";

/// How long a connection waits for input before it looks at its outbox.
const TURN: Duration = Duration::from_millis(10);

/// A forged gateway. It runs until the process ends.
pub(crate) struct Forged {
    pub(crate) url: String,
    /// The SHA-256 of its certificate.
    pub(crate) fingerprint: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    settings: Settings,
    /// The parameters of `connect` so far.
    connects: Vec<Value>,
    /// The requests so far: method and parameters.
    requests: Vec<(String, Value)>,
    /// The connection of the node.
    node: Option<Sender<Value>>,
    is_approved: bool,
    /// The calls that run, by id: the connection and the run that wait.
    calls: HashMap<String, (Sender<Value>, String, String)>,
}

/// How it differs from the usual one.
#[derive(Default, Clone, Copy)]
pub(crate) struct Settings {
    /// Operators cannot approve nodes.
    pub(crate) no_pairing: bool,
    /// Devices are not known.
    pub(crate) unknown_device: bool,
    /// The first connection is rejected, because it is still starting.
    pub(crate) is_starting: bool,
}

impl Forged {
    pub(crate) fn start() -> Self {
        Self::start_with(Settings::default())
    }

    pub(crate) fn start_with(settings: Settings) -> Self {
        Self::listen(settings, None)
    }

    /// With a self-signed certificate.
    pub(crate) fn start_tls() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["gateway.test".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let digest = Sha256::digest(made.cert.der());
        let fingerprint = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let forged = Self::listen(Settings::default(), Some(Arc::new(config)));
        Self { fingerprint, ..forged }
    }

    fn listen(settings: Settings, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let scheme = if tls.is_some() { "wss" } else { "ws" };
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State { settings, ..State::default() }));
        std::thread::spawn({
            let state = Arc::clone(&state);
            move || {
                for stream in listener.incoming().flatten() {
                    let (state, tls) = (Arc::clone(&state), tls.clone());
                    std::thread::spawn(move || match tls {
                        None => serve(stream.try_clone().unwrap(), &stream, &state),
                        Some(config) => {
                            let connection = ServerConnection::new(config).unwrap();
                            let socket = stream.try_clone().unwrap();
                            serve(StreamOwned::new(connection, socket), &stream, &state);
                        }
                    });
                }
            }
        });
        Self { url, fingerprint: String::new(), state }
    }

    /// The parameters of `connect` of the last operator.
    pub(crate) fn last_operator(&self) -> Value {
        let state = self.state.lock().unwrap();
        state.connects.iter().rfind(|it| it["role"] == "operator").cloned().unwrap()
    }

    pub(crate) fn connects(&self) -> Vec<Value> {
        self.state.lock().unwrap().connects.clone()
    }

    /// The parameters of the requests with this method.
    pub(crate) fn requests(&self, method: &str) -> Vec<Value> {
        let state = self.state.lock().unwrap();
        let found = state.requests.iter().filter(|(name, _)| name == method);
        found.map(|(_, params)| params.clone()).collect()
    }
}

fn serve<S: Read + Write>(stream: S, raw: &TcpStream, state: &Mutex<State>) {
    // A client that rejects the certificate, or hangs up.
    let Ok(mut socket) = accept(stream) else { return };
    raw.set_read_timeout(Some(TURN)).unwrap();
    let (sender, outbox) = channel();
    let challenge = json!({ "nonce": "nonce", "ts": 1_700_000_000_000_u64 });
    let _ =
        sender.send(json!({ "type": "event", "event": "connect.challenge", "payload": challenge }));
    let _ = talk(&mut socket, &sender, &outbox, state);
}

fn talk<S: Read + Write>(
    socket: &mut WebSocket<S>,
    sender: &Sender<Value>,
    outbox: &Receiver<Value>,
    state: &Mutex<State>,
) -> Result<(), Error> {
    let mut role = String::new();
    loop {
        while let Ok(frame) = outbox.try_recv() {
            socket.send(Message::text(frame.to_string()))?;
        }
        let text = match socket.read() {
            Ok(Message::Text(text)) => text,
            Ok(_) => continue,
            Err(Error::Io(error))
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        let frame: Value = serde_json::from_str(text.as_str()).unwrap();
        let (method, params) =
            (frame["method"].as_str().unwrap().to_owned(), frame["params"].clone());
        let answer = match method.as_str() {
            "connect" => {
                role = params["role"].as_str().unwrap().to_owned();
                state.lock().unwrap().connect(params, sender)
            }
            _ => state.lock().unwrap().answer(&method, params, &role, sender),
        };
        let mut reply = json!({ "type": "res", "id": frame["id"], "ok": answer.is_ok() });
        match answer {
            Ok(payload) => reply["payload"] = payload,
            Err(error) => reply["error"] = error,
        }
        socket.send(Message::text(reply.to_string()))?;
        if method == "connect" && reply["ok"] == false {
            return socket.close(None);
        }
    }
}

fn invalid(message: &str) -> Value {
    json!({ "code": "INVALID_REQUEST", "message": message })
}

fn event(name: &str, payload: Value) -> Value {
    json!({ "type": "event", "event": name, "payload": payload })
}

impl State {
    fn connect(&mut self, params: Value, sender: &Sender<Value>) -> Result<Value, Value> {
        if std::mem::take(&mut self.settings.is_starting) {
            return Err(json!({ "code": "UNAVAILABLE", "message": "gateway starting",
                "retryable": true, "retryAfterMs": 50 }));
        }
        if params["auth"]["token"] != TOKEN {
            let mut error = invalid("unauthorized: gateway token mismatch");
            error["details"] = json!({ "code": "AUTH_TOKEN_MISMATCH" });
            return Err(error);
        }
        if params["role"] == "node" {
            if self.settings.unknown_device {
                return Err(json!({ "code": "NOT_PAIRED", "message": "pairing required",
                    "details": { "code": "PAIRING_REQUIRED", "requestId": "device-7" } }));
            }
            assert!(params["device"]["signature"].is_string(), "{params}");
            self.node = Some(sender.clone());
        }
        let hello = json!({
            "type": "hello-ok", "protocol": 4, "server": { "version": "2026.9.6", "connId": "c" },
            "features": { "methods": ["chat.send", "agents.list"], "events": ["chat"] },
            "snapshot": { "presence": [], "health": {}, "uptimeMs": 1,
                "stateVersion": { "presence": 0, "health": 0 } },
            "auth": { "role": params["role"], "scopes": params["scopes"] },
            "policy": { "maxPayload": 26_214_400, "maxBufferedBytes": 52_428_800,
                "tickIntervalMs": 30_000 },
        });
        self.connects.push(params);
        Ok(hello)
    }

    fn answer(
        &mut self,
        method: &str,
        params: Value,
        role: &str,
        sender: &Sender<Value>,
    ) -> Result<Value, Value> {
        self.requests.push((method.to_owned(), params.clone()));
        match (role, method) {
            ("operator", "agents.list") => Ok(json!({ "defaultId": "main", "mainKey": "main",
                "scope": "per-sender", "agents": [{ "id": "main", "model": { "primary": "far/m" } }] })),
            ("operator", "sessions.list") => Ok(json!({ "ts": 1, "path": "x", "count": 0,
                "defaults": {}, "sessions": [] })),
            ("operator", "sessions.subscribe") => Ok(json!({ "subscribed": true })),
            ("operator", "chat.history") if params.get("includeMedia").is_some() => {
                Err(invalid("invalid chat.history params: at root: unexpected property"))
            }
            ("operator", "chat.send") => Ok(self.chat(&params, sender)),
            ("operator", "exec.approval.list" | "plugin.approval.list") => Ok(json!([])),
            ("operator", "node.pair.list") if self.settings.no_pairing => {
                Err(invalid("missing scope: operator.pairing"))
            }
            ("operator", "node.pair.list") => {
                let id = self.connects.iter().rfind(|it| it["role"] == "node").unwrap();
                let pending = json!({ "requestId": "r1", "nodeId": id["device"]["id"] });
                Ok(json!({ "pending": [pending], "paired": [] }))
            }
            ("operator", "node.pair.approve") => {
                assert_eq!(params["requestId"], "r1");
                self.is_approved = true;
                Ok(json!({}))
            }
            ("node", "node.pluginTools.update") => {
                let tools = if self.is_approved { params["tools"].clone() } else { json!([]) };
                Ok(json!({ "nodeId": "n", "tools": tools }))
            }
            ("node", "node.invoke.result") => {
                self.returned(&params);
                Ok(json!({ "ok": true }))
            }
            _ => Err(invalid(&format!("unknown method: {method}"))),
        }
    }

    /// `call NAME JSON` calls a tool of the node, `steal NAME JSON` from another session; anything else
    /// is answered with text.
    fn chat(&mut self, params: &Value, sender: &Sender<Value>) -> Value {
        let (run, key) = (params["idempotencyKey"].as_str().unwrap(), &params["sessionKey"]);
        let message = params["message"].as_str().unwrap();
        let words: Vec<&str> = message.splitn(3, ' ').collect();
        if let ([how @ ("call" | "steal"), tool, arguments], Some(node)) =
            (words.as_slice(), &self.node)
        {
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            let _ = sender.send(event("agent", json!({ "runId": run, "sessionKey": key,
                "stream": "tool", "seq": 1, "ts": 1,
                "data": { "phase": "start", "name": tool, "toolCallId": "t1", "args": arguments } })));
            let caller = if *how == "call" { key.clone() } else { json!("agent:main:other") };
            let params = json!({ "server": "editor", "tool": tool, "arguments": arguments });
            let id = format!("call-{}", self.requests.len());
            let _ = node.send(event(
                "node.invoke.request",
                json!({ "id": id, "nodeId": "n",
                "command": "mcp.tools.call.v1", "paramsJSON": params.to_string(),
                "timeoutMs": 60_000, "sessionKey": caller }),
            ));
            let waiting = (sender.clone(), run.to_owned(), key.as_str().unwrap().to_owned());
            self.calls.insert(id, waiting);
        } else {
            say(sender, run, key, &format!("You said: {message}"));
        }
        json!({ "runId": run, "status": "started" })
    }

    fn returned(&mut self, result: &Value) {
        let (sender, run, key) = self.calls.remove(result["id"].as_str().unwrap()).unwrap();
        let key = json!(key);
        let output = match result["ok"] == true {
            true => result["payload"].clone(),
            false => json!({ "content": [{ "type": "text", "text": result["error"]["message"] }] }),
        };
        let text = output["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        let _ = sender.send(event(
            "agent",
            json!({ "runId": run, "sessionKey": key, "stream": "tool",
            "seq": 2, "ts": 1, "data": { "phase": "result", "name": "x", "toolCallId": "t1",
            "isError": result["ok"] != true, "result": output } }),
        ));
        say(&sender, &run, &key, &format!("It returned: {text}"));
    }
}

/// Sends an answer, in two pieces.
fn say(sender: &Sender<Value>, run: &str, key: &Value, text: &str) {
    let base = |state: &str, seq: u64| json!({ "runId": run, "sessionKey": key, "seq": seq, "state": state });
    let mut delta = base("delta", 1);
    delta["deltaText"] = json!(text);
    delta["message"] =
        json!({ "role": "assistant", "content": [{ "type": "text", "text": text }] });
    let _ = sender.send(event("chat", delta));
    let mut end = base("final", 2);
    end["stopReason"] = json!("stop");
    end["message"] = json!({ "role": "assistant", "content": [{ "type": "text", "text": text }] });
    let _ = sender.send(event("chat", end));
}

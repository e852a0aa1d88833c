//! A model provider that records what it is given, and answers as the test wants.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::client::{LONG, Place};

/// A part of an answer.
pub(crate) enum Piece {
    /// Text.
    Say(String),
    /// A tool call.
    Call(&'static str, Value),
    /// Waits until the test releases it, or the client is gone.
    Wait,
}

pub(crate) fn say(text: &str) -> Vec<Piece> {
    vec![Piece::Say(text.to_owned())]
}

/// The provider. Its threads end with the process.
pub(crate) struct Model {
    url: String,
    asked: Receiver<Value>,
    release: Sender<()>,
}

impl Model {
    /// Starts it: `answer` gets the body of each request.
    pub(crate) fn start(answer: impl Fn(&Value) -> Vec<Piece> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (tell, asked) = channel();
        let (release, released) = channel();
        let (answer, released) = (Arc::new(answer), Arc::new(Mutex::new(released)));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let (tell, answer, released) = (tell.clone(), answer.clone(), released.clone());
                std::thread::spawn(move || serve(stream, &tell, &*answer, &released));
            }
        });
        Self { url, asked, release }
    }

    /// Always answers with this text.
    pub(crate) fn saying(text: &'static str) -> Self {
        Self::start(move |_| say(text))
    }

    /// A place whose agent uses it.
    pub(crate) fn place(&self) -> Place {
        Place::with(&self.config())
    }

    pub(crate) fn config(&self) -> Value {
        json!({
            "agents": { "defaults": { "model": "fake/model" } },
            "models": { "providers": { "fake": {
                "api": "openai", "baseUrl": self.url, "apiKey": "k"
            } } },
        })
    }

    /// The next request.
    pub(crate) fn next(&self) -> Value {
        self.asked.recv_timeout(LONG).unwrap()
    }

    /// Lets one waiting answer go on.
    pub(crate) fn release(&self) {
        self.release.send(()).unwrap();
    }
}

/// The content of the last user message of a request.
pub(crate) fn last_message(request: &Value) -> &Value {
    let messages = request["messages"].as_array().unwrap();
    &messages.iter().rev().find(|it| it["role"] == "user").unwrap()["content"]
}

fn serve(
    stream: TcpStream,
    tell: &Sender<Value>,
    answer: &dyn Fn(&Value) -> Vec<Piece>,
    released: &Mutex<Receiver<()>>,
) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let pieces = answer(&body);
    let _ = tell.send(body);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let _ = writer.write_all(head.as_bytes());
    let mut send = |chunk: Value| writer.write_all(format!("data: {chunk}\n\n").as_bytes());
    let mut reason = "stop";
    for (nth, piece) in pieces.into_iter().enumerate() {
        let sent = match piece {
            Piece::Say(text) => send(json!({ "choices": [{ "delta": { "content": text } }] })),
            Piece::Call(name, arguments) => {
                reason = "tool_calls";
                let function = json!({ "name": name, "arguments": arguments.to_string() });
                let call =
                    json!({ "index": nth, "id": format!("call-{nth}"), "function": function });
                send(json!({ "choices": [{ "delta": { "tool_calls": [call] } }] }))
            }
            Piece::Wait => {
                let _ = released.lock().unwrap().recv_timeout(LONG);
                Ok(())
            }
        };
        if sent.is_err() {
            return;
        }
    }
    let _ = send(json!({
        "choices": [{ "delta": {}, "finish_reason": reason }],
        "usage": { "prompt_tokens": 7, "completion_tokens": 3 },
    }));
    let _ = writer.write_all(b"data: [DONE]\n\n");
}

//! A model provider with the wire format of OpenAI's chat completions.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// The limit of a [`Piece::Wait`]; a test that needs more has failed.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A piece of a streamed answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text.
    Text(String),
    /// Reasoning.
    Thought(String),
    /// A tool call: its name and arguments.
    Call(String, Value),
    /// A pause, until [`ModelServer::release`] ends it.
    Wait,
}

impl Piece {
    /// A piece of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A piece of reasoning.
    pub fn thought(text: impl Into<String>) -> Self {
        Self::Thought(text.into())
    }

    /// A tool call.
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self::Call(name.into(), arguments)
    }
}

type Answers = dyn Fn(&Value) -> Vec<Piece> + Send + Sync;

/// A model provider on this machine. It runs until the process ends.
#[derive(Debug)]
pub struct ModelServer {
    url: String,
    requests: Arc<Mutex<Vec<Value>>>,
    answered: Arc<AtomicUsize>,
    pause: Arc<Mutex<Option<(usize, Duration)>>>,
    release: Sender<()>,
}

impl ModelServer {
    /// Starts a server that answers each request with these pieces, one event each.
    ///
    /// # Panics
    /// If it cannot listen.
    #[expect(clippy::expect_used, reason = "a test cannot continue without it")]
    pub fn start(answers: impl Fn(&Value) -> Vec<Piece> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let requests: Arc<Mutex<Vec<Value>>> = Arc::default();
        let answers: Arc<Answers> = Arc::new(answers);
        let answered: Arc<AtomicUsize> = Arc::default();
        let pause: Arc<Mutex<Option<(usize, Duration)>>> = Arc::default();
        let (release, released) = channel();
        let released = Arc::new(Mutex::new(released));
        std::thread::spawn({
            let (requests, answered) = (Arc::clone(&requests), Arc::clone(&answered));
            let pause = Arc::clone(&pause);
            move || {
                for stream in listener.incoming().flatten() {
                    let (requests, answers) = (Arc::clone(&requests), Arc::clone(&answers));
                    let (answered, released) = (Arc::clone(&answered), Arc::clone(&released));
                    let pause = *pause.lock().unwrap_or_else(PoisonError::into_inner);
                    // It ends when the client hangs up.
                    std::thread::spawn(move || {
                        if serve(&stream, &requests, &*answers, pause, &released).is_some() {
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
            }
        });
        Self { url, requests, answered, pause, release }
    }

    /// Lets it pause after this many pieces, again and again.
    #[must_use]
    pub fn pausing(self, pieces: usize, time: Duration) -> Self {
        *self.pause.lock().unwrap_or_else(PoisonError::into_inner) = Some((pieces, time));
        self
    }

    /// Ends one [`Piece::Wait`].
    pub fn release(&self) {
        // Fails if the server has ended: then nothing waits.
        let _ = self.release.send(());
    }

    /// Returns the base URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns its entry under `models.providers`.
    pub fn entry(&self) -> Value {
        json!({ "baseUrl": self.url, "api": "openai", "apiKey": "k" })
    }

    /// Returns how many answers were sent completely.
    pub fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    /// Returns the bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(
    stream: &TcpStream,
    requests: &Mutex<Vec<Value>>,
    answers: &Answers,
    pause: Option<(usize, Duration)>,
    released: &Mutex<Receiver<()>>,
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let pieces = answers(&request);
    requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    let mut stream = stream;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).ok()?;
    let mut send = |chunk: &Value| stream.write_all(format!("data: {chunk}\n\n").as_bytes()).ok();
    let mut reason = "stop";
    for (nth, piece) in pieces.into_iter().enumerate() {
        if let Some((_, time)) = pause.filter(|(pieces, _)| nth % pieces == 0) {
            std::thread::sleep(time);
        }
        let delta = match piece {
            Piece::Text(text) => json!({ "content": text }),
            Piece::Thought(text) => json!({ "reasoning_content": text }),
            Piece::Call(name, arguments) => {
                reason = "tool_calls";
                let function = json!({ "name": name, "arguments": arguments.to_string() });
                let call = json!({ "index": nth, "id": format!("call_{nth}"), "type": "function",
                                   "function": function });
                json!({ "tool_calls": [call] })
            }
            Piece::Wait => {
                let released = released.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = released.recv_timeout(LONGEST_WAIT);
                continue;
            }
        };
        send(&json!({ "choices": [{ "delta": delta }] }))?;
    }
    send(&json!({ "choices": [{ "delta": {}, "finish_reason": reason }],
                  "usage": { "prompt_tokens": 30, "completion_tokens": 12 } }))?;
    stream.write_all(b"data: [DONE]\n\n").ok()
}

//! A server that records its requests and sends scripted responses byte for byte.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

/// How a response ends.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Ending {
    /// Properly.
    Clean,
    /// The connection is closed in the middle.
    Broken,
    /// The connection stays open, without more data, until the client closes it.
    Silent,
}

/// A response.
#[derive(Clone)]
pub(crate) struct Reply {
    head: String,
    pieces: Vec<Vec<u8>>,
    ending: Ending,
}

impl Reply {
    /// A stream in chunks of `piece` bytes.
    pub(crate) fn stream(text: &str, piece: usize, ending: Ending) -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n".to_owned();
        let pieces = text.as_bytes().chunks(piece).map(<[u8]>::to_vec).collect();
        Self { head, pieces, ending }
    }

    /// An error.
    pub(crate) fn error(status: u16, header: &str, body: &Value) -> Self {
        let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
        let head = format!("HTTP/1.1 {status} No\r\ncontent-type: application/json\r\n{header}");
        Self { head, pieces: vec![body.to_string().into_bytes()], ending: Ending::Clean }
    }
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// The first line and the headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// The server. It stops when dropped.
pub(crate) struct Server {
    pub(crate) address: String,
    sent: Arc<Mutex<Vec<Sent>>>,
    left: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Starts a server that sends these responses, one per connection.
    pub(crate) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let sent = Arc::<Mutex<Vec<Sent>>>::default();
        let record = sent.clone();
        let left = Arc::<Notify>::default();
        let notice = left.clone();
        let task = tokio::spawn(async move {
            for reply in replies {
                let (mut connection, _) = listener.accept().await.unwrap();
                let request = read(&mut connection).await;
                record.lock().unwrap().push(request);
                write(&mut connection, &reply).await;
                notice.notify_one();
            }
        });
        Self { address, sent, left, task }
    }

    /// Starts a server whose responses depend on the requests; connections are served in parallel.
    pub(crate) async fn answering(answer: impl Fn(&Sent) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let sent = Arc::<Mutex<Vec<Sent>>>::default();
        let record = sent.clone();
        let answer = Arc::new(answer);
        let task = tokio::spawn(async move {
            let mut serving = JoinSet::new();
            loop {
                let (mut connection, _) = listener.accept().await.unwrap();
                let (record, answer) = (record.clone(), answer.clone());
                serving.spawn(async move {
                    let request = read(&mut connection).await;
                    let reply = answer(&request);
                    record.lock().unwrap().push(request);
                    write(&mut connection, &reply).await;
                });
            }
        });
        Self { address, sent, left: Arc::default(), task }
    }

    /// Waits until a connection is closed.
    pub(crate) async fn until_left(&self) {
        tokio::time::timeout(Duration::from_secs(60), self.left.notified()).await.unwrap();
    }

    /// Returns the requests so far.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }
}

async fn read(connection: &mut TcpStream) -> Sent {
    let mut bytes = Vec::new();
    let (head, begin) = loop {
        connection.read_buf(&mut bytes).await.unwrap();
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break (String::from_utf8(bytes[..at].to_vec()).unwrap(), at + 4);
        }
    };
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.parse().unwrap());
    while bytes.len() < begin + length {
        connection.read_buf(&mut bytes).await.unwrap();
    }
    Sent { head, body: serde_json::from_slice(&bytes[begin..]).unwrap_or_default() }
}

async fn write(connection: &mut TcpStream, reply: &Reply) {
    // The client may have disconnected.
    let mut send = async |bytes: &[u8]| connection.write_all(bytes).await.is_ok();
    let head = format!("{}connection: close\r\ntransfer-encoding: chunked\r\n\r\n", reply.head);
    send(head.as_bytes()).await;
    for piece in &reply.pieces {
        send(format!("{:x}\r\n", piece.len()).as_bytes()).await;
        send(piece).await;
        send(b"\r\n").await;
    }
    match reply.ending {
        Ending::Clean => {
            send(b"0\r\n\r\n").await;
        }
        Ending::Broken => {}
        Ending::Silent => {
            connection.read_to_end(&mut Vec::new()).await.ok();
        }
    }
    connection.shutdown().await.ok();
}

/// Formats server-sent events; a name may be empty.
pub(crate) fn events(events: &[(&str, Value)]) -> String {
    let event = |(name, data): &(&str, Value)| {
        let name = if name.is_empty() { String::new() } else { format!("event: {name}\n") };
        format!("{name}data: {data}\n\n")
    };
    events.iter().map(event).collect()
}

//! Passes lines on between a client and a hub that may be replaced: that of a gateway, and another one after
//! the gateway has ended. The client must not notice more of such a change than that the
//! requests in progress fail, because most clients do not start a server again.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};

/// Size of the buffer of each direction.
const BUFFER: usize = 64 * 1024;
/// How much of a line of the hub is kept to find the id that it answers.
const HEAD: usize = 4 * 1024;
const READY: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

/// A connection to a hub.
pub trait HubStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> HubStream for T {}

/// Which end has closed the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClosedBy {
    /// The client.
    Client,
    /// The hub.
    Hub,
}

/// A client, and what is known of it.
#[derive(Debug)]
pub struct LineRelay<R, W> {
    input: R,
    output: W,
    session: RefCell<Session>,
}

/// What a new hub must know, and what the client waits for.
#[derive(Debug, Default)]
struct Session {
    /// The request `initialize`, with its id.
    hello: Option<(Box<str>, Vec<u8>)>,
    /// Whether the handshake is done.
    is_ready: bool,
    /// The ids of the requests in progress, as JSON.
    open: BTreeSet<Box<str>>,
    /// The beginning of a line of the client whose end was not read yet.
    unfinished: Vec<u8>,
    /// The beginning of a line of the hub whose end was not read yet.
    head: Vec<u8>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CancelParams<'a> {
    #[serde(borrow, rename = "requestId")]
    id: &'a RawValue,
}

impl Session {
    /// Notes what the client sends.
    fn sent(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match (self.unfinished.is_empty(), piece.ends_with(b"\n")) {
                (true, true) => self.client_line(piece),
                (_, false) => self.unfinished.extend_from_slice(piece),
                (false, true) => {
                    let mut line = std::mem::take(&mut self.unfinished);
                    line.extend_from_slice(piece);
                    self.client_line(&line);
                }
            }
        }
    }

    fn client_line(&mut self, line: &[u8]) {
        // serde would read an array as the fields of a struct, in order.
        if !line.trim_ascii_start().starts_with(b"{") {
            return;
        }
        let Ok(message) = serde_json::from_slice::<Envelope<'_>>(line) else { return };
        let Some(method) = message.method.map(RawValue::get) else { return };
        match (message.id.map(RawValue::get), method) {
            (Some(id), _) => {
                if method == "\"initialize\"" {
                    self.hello = Some((id.into(), line.to_vec()));
                }
                self.open.insert(id.into());
            }
            (None, "\"notifications/initialized\"") => self.is_ready = true,
            (None, "\"notifications/cancelled\"") => {
                let params = message.params.map(RawValue::get).unwrap_or_default();
                if let Ok(CancelParams { id }) = serde_json::from_str(params) {
                    self.open.remove(id.get());
                }
            }
            (None, _) => {}
        }
    }

    /// Notes what the hub sends.
    fn received(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = HEAD.saturating_sub(self.head.len());
            self.head.extend_from_slice(piece.get(..room).unwrap_or(piece));
            if piece.ends_with(b"\n") {
                if let Some(id) = answered(&self.head) {
                    self.open.remove(id);
                }
                self.head.clear();
            }
        }
    }

    /// Returns the lines that answer the requests in progress, after the end of an unfinished one.
    /// `initialize` is sent again instead.
    fn failures(&mut self) -> Vec<u8> {
        let mut lines = Vec::new();
        if !self.head.is_empty() {
            lines.push(b'\n');
            self.head.clear();
        }
        let hello = self.hello.as_ref().map(|(id, _)| id.clone());
        for id in std::mem::take(&mut self.open) {
            if Some(&id) == hello.as_ref() {
                self.open.insert(id);
                continue;
            }
            let error = r#"{"code":-32000,"message":"the gateway has stopped; try again"}"#;
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n");
            lines.extend_from_slice(line.as_bytes());
        }
        lines
    }
}

/// Returns the id of the request that a line of the hub answers. Hubs write it first.
fn answered(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(br#"{"jsonrpc":"2.0","id":"#)?;
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<&RawValue>();
    let id = values.next()?.ok()?;
    let rest = rest.get(values.byte_offset()..)?;
    let is_answer = rest.starts_with(b",\"result\"") || rest.starts_with(b",\"error\"");
    is_answer.then(|| id.get())
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> LineRelay<R, W> {
    /// The relay of a client at the other end of these streams.
    pub fn new((input, output): (R, W)) -> Self {
        Self { input, output, session: RefCell::default() }
    }

    /// Passes lines on until one end closes.
    ///
    /// # Errors
    /// If the connection to the client breaks.
    pub async fn pass(&mut self, hub: impl HubStream) -> io::Result<ClosedBy> {
        let Self { input, output, session } = self;
        let session = &*session;
        let (mut from_hub, mut to_hub) = tokio::io::split(hub);
        let forth = async {
            let mut buffer = vec![0; BUFFER];
            loop {
                let count = input.read(&mut buffer).await?;
                let bytes = buffer.get(..count).unwrap_or_default();
                if bytes.is_empty() {
                    let _ = to_hub.shutdown().await;
                    return io::Result::Ok(());
                }
                session.borrow_mut().sent(bytes);
                if to_hub.write_all(bytes).await.is_err() || to_hub.flush().await.is_err() {
                    // The other direction ends, too.
                    return std::future::pending().await;
                }
            }
        };
        let back = async {
            let mut buffer = vec![0; BUFFER];
            loop {
                // A connection that broke is over, too.
                let count = from_hub.read(&mut buffer).await.unwrap_or(0);
                let bytes = buffer.get(..count).unwrap_or_default();
                if bytes.is_empty() {
                    return io::Result::Ok(());
                }
                session.borrow_mut().received(bytes);
                output.write_all(bytes).await?;
                output.flush().await?;
            }
        };
        let mut back = std::pin::pin!(back);
        tokio::select! {
            ended = back.as_mut() => ended.map(|()| ClosedBy::Hub),
            ended = forth => {
                ended?;
                // The replies to what the client has sent still arrive.
                back.await.map(|()| ClosedBy::Client)
            }
        }
    }

    /// Answers the requests in progress with an error.
    ///
    /// # Errors
    /// If the connection to the client breaks.
    pub async fn fail_requests(&mut self) -> io::Result<()> {
        let lines = self.session.borrow_mut().failures();
        self.output.write_all(&lines).await?;
        self.output.flush().await
    }

    /// Performs the handshake of the client with another hub, and sends what the former one has not
    /// read.
    ///
    /// # Errors
    /// If a connection breaks.
    pub async fn introduce<S: HubStream>(&mut self, hub: S) -> io::Result<BufReader<S>> {
        let mut hub = BufReader::new(hub);
        let session = self.session.get_mut();
        if let Some((id, hello)) = &session.hello {
            hub.write_all(hello).await?;
            hub.flush().await?;
            // The client waits for the answer only if it has none.
            let mut line = Vec::new();
            while !session.open.contains(id) && answered(&line) != Some(&**id) {
                line.clear();
                if hub.read_until(b'\n', &mut line).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            if session.is_ready {
                hub.write_all(READY).await?;
                // It may have other servers.
                for list in ["tools", "resources", "prompts"] {
                    let method = format!("notifications/{list}/list_changed");
                    let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}\n");
                    self.output.write_all(line.as_bytes()).await?;
                }
                self.output.flush().await?;
            }
        }
        hub.write_all(&session.unfinished).await?;
        hub.flush().await?;
        Ok(hub)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_progress_are_known_however_their_lines_are_cut() {
        let mut session = Session::default();
        let lines = concat!(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            "\n",
            r#"{"method":"tools/call","params":{"id":7},"jsonrpc":"2.0","id":"a"}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#,
            "\n",
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":9,"result":{}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":4,"#,
        );
        lines.as_bytes().chunks(7).for_each(|piece| session.sent(piece));
        let replies = concat!(
            r#"{"jsonrpc":"2.0","id":0,"result":{}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":2,"method":"roots/list"}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":2,"resu"#,
        );
        replies.as_bytes().chunks(5).for_each(|piece| session.received(piece));
        assert!(session.is_ready);
        assert_eq!(session.unfinished, br#"{"jsonrpc":"2.0","id":4,"#);
        let failures = String::from_utf8(session.failures()).unwrap();
        let ids: Vec<serde_json::Value> = failures
            .trim_start()
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].clone())
            .collect();
        assert_eq!(ids, [serde_json::json!("a"), serde_json::json!(2)]);
        assert!(failures.starts_with('\n'), "the unfinished line is ended");
        assert!(session.open.is_empty());
    }

    #[tokio::test]
    async fn another_hub_gets_the_handshake_and_the_client_does_not_see_its_answer() {
        let hello = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\"}\n";
        let (client, near) = tokio::io::duplex(1_000);
        let mut relay = LineRelay::new(tokio::io::split(near));
        relay.session.get_mut().sent(hello.as_bytes());
        relay.session.get_mut().sent(READY);
        relay.session.get_mut().received(b"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n");
        let (hub, far) = tokio::io::duplex(1_000);
        let serving = tokio::spawn(async move {
            let mut far = BufReader::new(far);
            let mut line = String::new();
            far.read_line(&mut line).await.unwrap();
            far.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n").await.unwrap();
            far.read_line(&mut line).await.unwrap();
            line
        });
        let hub = relay.introduce(hub).await.unwrap();
        assert_eq!(serving.await.unwrap(), format!("{hello}{}", String::from_utf8_lossy(READY)));
        drop((relay, hub));
        let mut told = String::new();
        BufReader::new(client).read_to_string(&mut told).await.unwrap();
        assert_eq!(told.lines().count(), 3, "{told}");
        assert!(told.lines().all(|line| line.contains("list_changed")), "{told}");
    }
}

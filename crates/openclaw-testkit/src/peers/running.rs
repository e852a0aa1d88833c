//! A third-party server over HTTP, for the duration of a test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use super::Peer;
use crate::engine::lock;
use crate::processes::KillGroup;
use crate::server::spawn;

/// The start timeout: Python servers take seconds on a busy machine.
const START: Duration = Duration::from_secs(120);

const HOST: &str = "http://127.0.0.1:";

/// The number of bytes of a server's log that are kept.
const LOG: usize = 16 << 10;

/// A running HTTP server; it is killed when this value is dropped, and exits with the test process. If
/// the test fails, its log is printed.
#[derive(Debug)]
pub struct RunningPeer {
    peer: Peer,
    path: &'static str,
    probe: Probe,
    child: Child,
    group: KillGroup,
    url: String,
    log: Arc<Mutex<String>>,
}

/// The first request, which shows that a server responds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Probe {
    /// A POST of `server/discover`.
    Mcp,
    /// A GET of this path, which the server does not count.
    Get(&'static str),
}

impl RunningPeer {
    /// Starts it on a free port, and waits until it has printed the port and responds.
    pub(super) fn start(peer: Peer, path: &'static str) -> Self {
        Self::start_with(peer, path, Probe::Mcp)
    }

    /// Like [`start`](Self::start), with another first request.
    pub(super) fn start_with(peer: Peer, path: &'static str, probe: Probe) -> Self {
        let log = Arc::default();
        let (child, group, address) = run(&peer, 0, &log);
        let url = format!("{address}{path}");
        let running = Self { peer, path, probe, child, group, url, log };
        running.until_it_answers();
        running
    }

    /// Returns its endpoint.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the pid, which is also the id of its process group.
    pub fn pid(&self) -> u32 {
        self.group.0
    }

    /// Returns the end of what it has written to stderr.
    pub fn log(&self) -> String {
        lock(&self.log).clone()
    }

    /// Kills it and waits until it has exited, so that its port is free.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again at the same address. Its state is lost.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_again(&mut self) {
        self.kill();
        let (child, group, address) = run(&self.peer, self.port(), &self.log);
        (self.child, self.group) = (child, group);
        assert_eq!(self.url, format!("{address}{}", self.path), "it listens at another address");
        self.until_it_answers();
    }

    /// Waits for any response. The first response of some servers takes seconds on a busy machine,
    /// and a client waits only two before it assumes an old server.
    fn until_it_answers(&self) {
        let port = self.port();
        let request = match self.probe {
            Probe::Get(path) => {
                format!(
                    "GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n"
                )
            }
            Probe::Mcp => self.discover(),
        };
        let asked = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).and_then(|mut stream| {
            stream.set_read_timeout(Some(START))?;
            stream.write_all(request.as_bytes())?;
            stream.read(&mut [0; 1])
        });
        assert!(asked.is_ok_and(|read| read > 0), "no response from {}", self.url);
    }

    fn discover(&self) -> String {
        let body = r#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"testkit","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
        let (port, length) = (self.port(), body.len());
        let path =
            self.url.trim_start_matches(HOST).trim_start_matches(|c: char| c.is_ascii_digit());
        format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             mcp-protocol-version: 2026-07-28\r\nmcp-method: server/discover\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
    }

    fn port(&self) -> u16 {
        let rest = self.url.trim_start_matches(HOST);
        rest.split('/').next().and_then(|port| port.parse().ok()).unwrap_or_default()
    }
}

impl Drop for RunningPeer {
    #[expect(clippy::print_stderr, reason = "for a test that fails")]
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            eprintln!("log of {:?}:\n{}", self.peer.args, self.log());
        }
    }
}

/// Starts a server on this port, and waits until it has printed its address.
#[expect(clippy::panic, reason = "a test cannot continue without it")]
fn run(peer: &Peer, port: u16, log: &Arc<Mutex<String>>) -> (Child, KillGroup, String) {
    let mut child = spawn(peer.command().env("PORT", port.to_string()).stderr(Stdio::piped()));
    let group = KillGroup(child.id());
    keep_log(&mut child, log);
    match address(&mut child) {
        Some(address) => (child, group, address),
        None => panic!("the server does not start: {:?}\n{}", peer.command(), lock(log)),
    }
}

/// Keeps the end of the log; the thread ends with the server.
fn keep_log(child: &mut Child, log: &Arc<Mutex<String>>) {
    let (stderr, log) = (child.stderr.take(), Arc::clone(log));
    thread::spawn(move || {
        let lines = stderr.into_iter().flat_map(|stderr| BufReader::new(stderr).split(b'\n'));
        for line in lines.map_while(Result::ok) {
            let mut log = lock(&log);
            log.push_str(&String::from_utf8_lossy(&line));
            log.push('\n');
            let excess = log.len().saturating_sub(LOG);
            let begin = (excess..=log.len()).find(|at| log.is_char_boundary(*at));
            log.drain(..begin.unwrap_or_default());
        }
    });
}

/// Returns the first line that is an address. Further output is read and discarded, so that the server
/// never blocks; the thread ends with the server.
fn address(child: &mut Child) -> Option<String> {
    let lines = BufReader::new(child.stdout.take()?).lines().map_while(Result::ok);
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || {
        for line in lines.filter(|line| line.starts_with(HOST)) {
            let _ = sender.try_send(line);
        }
    });
    receiver.recv_timeout(START).ok()
}

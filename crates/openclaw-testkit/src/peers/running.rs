//! A server of the registries that is served over HTTP, for as long as a test needs it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::Peer;
use crate::processes::KillGroup;
use crate::server::spawn;

/// Python servers need seconds on a busy machine.
const START: Duration = Duration::from_secs(120);

const HOST: &str = "http://127.0.0.1:";

/// A running HTTP server; it ends with this value, and with the test's process.
#[derive(Debug)]
pub struct RunningPeer {
    peer: Peer,
    path: &'static str,
    child: Child,
    group: KillGroup,
    url: String,
}

impl RunningPeer {
    /// Starts it on a free port, and waits until it has said which.
    pub(super) fn start(peer: Peer, path: &'static str) -> Self {
        let (child, group, address) = run(&peer, 0);
        let url = format!("{address}{path}");
        Self { peer, path, child, group, url }
    }

    /// Its endpoint.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The pid, which is the id of its process group too.
    pub fn pid(&self) -> u32 {
        self.group.0
    }

    /// Kills it and waits for its end, so that its port is free.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again at the same address. It knows nothing of what was before.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_again(&mut self) {
        self.kill();
        let (child, group, address) = run(&self.peer, self.port());
        (self.child, self.group) = (child, group);
        assert_eq!(self.url, format!("{address}{}", self.path), "it listens somewhere else");
    }

    fn port(&self) -> u16 {
        let rest = self.url.trim_start_matches(HOST);
        rest.split('/').next().and_then(|port| port.parse().ok()).unwrap_or_default()
    }
}

impl Drop for RunningPeer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a server on this port, and waits until it has said on which address it listens.
#[expect(clippy::panic, reason = "a test cannot go on without it")]
fn run(peer: &Peer, port: u16) -> (Child, KillGroup, String) {
    let mut child = spawn(peer.command().env("PORT", port.to_string()).stderr(Stdio::null()));
    let group = KillGroup(child.id());
    match address(&mut child) {
        Some(address) => (child, group, address),
        None => panic!("it does not start; try it in a terminal: {:?}", peer.command()),
    }
}

/// The first line that is an address. What else is printed is read and dropped, so that the server
/// never waits for us; the thread ends with the server.
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

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
const START: Duration = Duration::from_secs(60);

/// A running HTTP server; it ends with this value, and with the test's process.
#[derive(Debug)]
pub struct RunningPeer {
    child: Child,
    group: KillGroup,
    url: String,
}

impl RunningPeer {
    /// Starts it, and waits until it has said on which address it listens.
    #[expect(clippy::panic, reason = "a test cannot go on without it")]
    pub(super) fn start(peer: &Peer, path: &str) -> Self {
        let child = spawn(peer.command().stderr(Stdio::null()));
        let mut running = Self { group: KillGroup(child.id()), child, url: String::new() };
        running.url = match address(&mut running.child) {
            Some(address) => format!("{address}{path}"),
            None => panic!("it does not start; try it in a terminal: {:?}", peer.command()),
        };
        running
    }

    /// Its endpoint.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The pid, which is the id of its process group too.
    pub fn pid(&self) -> u32 {
        self.group.0
    }
}

impl Drop for RunningPeer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first line that is an address. What else is printed is read and dropped, so that the server
/// never waits for us; the thread ends with the server.
fn address(child: &mut Child) -> Option<String> {
    let lines = BufReader::new(child.stdout.take()?).lines().map_while(Result::ok);
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || {
        for line in lines.filter(|line| line.starts_with("http://127.0.0.1:")) {
            let _ = sender.try_send(line);
        }
    });
    receiver.recv_timeout(START).ok()
}

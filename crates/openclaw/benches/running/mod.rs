//! A running gateway process, measured from outside.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::program::Program;

/// The limit for every wait; a longer one is a failure.
const LONG: Duration = Duration::from_secs(60);
/// The interval between health checks.
const LOOK: Duration = Duration::from_micros(200);

/// A running gateway. The process is killed on drop.
pub(crate) struct Running {
    process: Child,
}

impl Running {
    /// Starts a gateway, and returns it with the milliseconds until it responded.
    pub(crate) fn start(program: &Program) -> (Self, f64) {
        let port = free_port();
        let mut command = program.command(&["gateway", "run", "--port", &port.to_string()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let start = Instant::now();
        let process = command.spawn().unwrap();
        let mut running = Self { process };
        while !is_well(port) {
            let ended = running.process.try_wait().unwrap();
            assert!(ended.is_none(), "the gateway does not respond: {ended:?}");
            assert!(start.elapsed() < LONG, "the gateway does not respond: {ended:?}");
            sleep(LOOK);
        }
        (running, start.elapsed().as_secs_f64() * 1e3)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits until this many servers are ready.
    pub(crate) fn until_ready(&self, program: &Program, servers: usize) {
        let start = Instant::now();
        loop {
            let (_, output) = program.run(&["--json", "gateway", "status"]);
            let status: serde_json::Value =
                serde_json::from_slice(&output.stdout).unwrap_or_default();
            if ready_servers(&status) == Some(servers) {
                return;
            }
            assert!(start.elapsed() < LONG, "the servers are not ready: {status}");
            sleep(Duration::from_millis(100));
        }
    }

    /// Returns a number from `/proc/<pid>/status`.
    pub(crate) fn figure(&self, name: &str) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Returns the number of voluntary context switches of all its threads so far.
    pub(crate) fn wake_ups(&self) -> usize {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        let statuses = threads
            .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("status")).ok());
        let switches = statuses.filter_map(|status| {
            let line = status.lines().find_map(|it| it.strip_prefix("voluntary_ctxt_switches:"))?;
            line.trim().parse::<usize>().ok()
        });
        switches.sum()
    }

    /// Sends SIGTERM, and waits until the process has exited.
    pub(crate) fn stop(mut self) {
        self.ask_to_end();
        let start = Instant::now();
        while self.process.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < LONG, "the gateway does not stop");
            sleep(Duration::from_millis(1));
        }
    }

    #[cfg(unix)]
    fn ask_to_end(&self) {
        use nix::sys::signal::{Signal, kill};
        let pid = nix::unistd::Pid::from_raw(self.pid().cast_signed());
        let _ = kill(pid, Signal::SIGTERM);
    }

    #[cfg(not(unix))]
    fn ask_to_end(&mut self) {
        let _ = self.process.kill();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the number of ready servers in the output of `openclaw gateway status`.
fn ready_servers(status: &serde_json::Value) -> Option<usize> {
    let servers = status.get("servers")?.as_array()?;
    Some(servers.iter().filter(|server| server["state"] == "ready").count())
}

/// Returns a port that is free at the moment.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Whether `/healthz` responds with 200 on this port.
fn is_well(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return false };
    let request =
        format!("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}

/// Returns the parent of a running process.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

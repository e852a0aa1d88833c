//! Runs all tests: builds them, then runs two test programs at a time.
//!
//! `cargo test` runs one program after the other. Many tests wait for a server or a timeout, and the
//! last test of a program waits alone.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use crate::peers;
use crate::programs::{self, Program};
use crate::shell::{Failure, Run as _, cargo, failed, hold};

/// How many programs run at the same time. Each runs as many tests at once as there are cores.
const AT_ONCE: usize = 2;

/// Runs every test of the workspace, including those in documentation. Their peers are installed while
/// they are built.
pub(crate) fn run_all() -> Result<(), Failure> {
    let (installed, built) = std::thread::scope(|scope| {
        let peers = scope.spawn(peers::install);
        let built = programs::build(cargo("test").args(["--all-features", "--workspace"]));
        (peers.join(), built)
    });
    let peers = &installed.map_err(|_| Failure::new("cannot install the test dependencies"))??;
    let mut programs = built?;
    // Large programs belong to the crates at the top, whose tests take longest.
    programs.sort_by_key(Program::size);
    let (logs, _lock) = hold("test-output")?;
    let waiting = Mutex::new(programs);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(program) = pop(&waiting) {
                    if let Err(failure) = run(&program, peers, &logs) {
                        push(&failures, format!("{}: {failure}", program.name()));
                    }
                }
            });
        }
    });
    let documentation = cargo("test")
        .args(["--all-features", "--workspace", "--doc"])
        .env("OPENCLAW_PEERS", peers)
        .run();
    let mut failures = failures.into_inner().unwrap_or_default();
    failures.extend(documentation.err().map(|failure| format!("documentation: {failure}")));
    if failures.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("failed tests:\n  {}", failures.join("\n  "))))
}

fn pop<T>(list: &Mutex<Vec<T>>) -> Option<T> {
    list.lock().ok()?.pop()
}

fn push<T>(list: &Mutex<Vec<T>>, item: T) {
    if let Ok(mut list) = list.lock() {
        list.push(item);
    }
}

/// Runs a test program, and prints its output when it has ended. The output goes to a file: a pipe
/// would stay open for as long as a process that a test left behind.
fn run(program: &Program, peers: &Path, logs: &Path) -> Result<(), Failure> {
    let log = logs.join(format!("{}.log", program.name().replace(' ', "-")));
    let unusable = |error: io::Error| failed(&log, &error);
    let output = File::create(&log).map_err(unusable)?;
    let started = Instant::now();
    let outcome = Command::new(&program.path)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("OPENCLAW_PEERS", peers)
        .stdin(Stdio::null())
        .stderr(output.try_clone().map_err(unusable)?)
        .stdout(output)
        .run();
    let output = std::fs::read(&log).map_err(unusable)?;
    let mut terminal = io::stdout().lock();
    let seconds = started.elapsed().as_secs();
    let _ = writeln!(terminal, "\n== {} ({seconds} s) ==", program.name());
    let _ = terminal.write_all(&output);
    outcome
}

//! Startup behaviour of the process: wait, print, fail, spawn a child.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio, exit};
use std::thread;
use std::time::Duration;

use crate::script::{Grandchild, ProcessScript, Script};

/// Runs the startup behaviour of the script; returns the pid of the grandchild.
pub(crate) fn begin(script: &Script) -> std::io::Result<Option<u32>> {
    let process = &script.process;
    if process.ignore_sigterm {
        ignore_sigterm()?;
    }
    for line in &process.stderr_lines {
        say(line);
    }
    let fails = fails_this_time(process)?;
    if fails {
        exit(process.exit_at_start.unwrap_or(1));
    }
    let grandchild = process.grandchild.as_ref().map(spawn).transpose()?;
    print_megabytes(process.stderr_mb);
    if process.start_delay_ms > 0 {
        thread::sleep(Duration::from_millis(process.start_delay_ms));
    }
    Ok(grandchild)
}

/// Prints a line on stderr, and ignores errors: it may be closed.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn fails_this_time(process: &ProcessScript) -> std::io::Result<bool> {
    let Some(path) = &process.state_file else { return Ok(process.exit_at_start.is_some()) };
    let starts = path.metadata().map_or(0, |file| file.len());
    File::options().create(true).append(true).open(path)?.write_all(b".")?;
    Ok(starts < u64::from(process.failing_starts))
}

fn print_megabytes(megabytes: usize) {
    let line = format!("{}\n", "e".repeat(1023));
    for _ in 0..megabytes * 1024 {
        if std::io::stderr().write_all(line.as_bytes()).is_err() {
            return;
        }
    }
}

fn spawn(grandchild: &Grandchild) -> std::io::Result<u32> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("linger").stdin(Stdio::null());
    if grandchild.ignore_sigterm {
        command.arg("--ignore-sigterm");
    }
    if !grandchild.hold_pipes {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    let pid = command.spawn()?.id();
    say(&format!("grandchild {pid}"));
    Ok(pid)
}

/// Sleeps for ten minutes, as the grandchild does (so that a failed test leaves no process forever).
pub(crate) fn linger(ignores_sigterm: bool) -> std::io::Result<()> {
    if ignores_sigterm {
        ignore_sigterm()?;
    }
    thread::sleep(Duration::from_secs(600));
    Ok(())
}

/// Ignores SIGTERM. tokio's handler stays installed after its stream is dropped, and needs no `unsafe`
/// here.
#[cfg(unix)]
fn ignore_sigterm() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    signal(SignalKind::terminate()).map(drop)
}

#[cfg(not(unix))]
fn ignore_sigterm() -> std::io::Result<()> {
    Ok(())
}
